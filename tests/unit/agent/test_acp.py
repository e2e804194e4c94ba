"""How a program that speaks ACP is talked to, line by line."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.test_cores import MAILBOX, SERVER

from agent_runner import cores
from agent_runner.asking import Answer, Outcome, RequestId, Result
from agent_runner.cores import base
from agent_runner.cores._calls import read_call
from agent_runner.cores.base import Fields
from agent_runner.errors import SessionUnknown

START = base.Start("s1", MAILBOX, None, False, SERVER, {"PYNCHY_TASK": "it"}, ("gem", "--acp"))  # noqa: FBT003 - as the runner makes it
INITIALIZED = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
OPTIONS = [
    {"optionId": "a", "kind": "allow_always", "name": "Always"},
    {"optionId": "o", "kind": "allow_once", "name": "Once"},
    {"optionId": "r", "kind": "reject_once", "name": "No"},
]
YES, NO = base.Verdict(is_allowed=True), base.Verdict(is_allowed=False, words="Ana says: not now")


class Program:
    """The other end of the lines."""

    def __init__(self, start: base.Start = START) -> None:
        talk = cores.load("acp").command(start).talk
        assert talk is not None
        self.talk = talk
        self.sent = [json.loads(self.talk.begin("Do it."))]

    def says(self, message: Any) -> list[base.AgentEvent]:
        text = message if isinstance(message, str) else json.dumps(message)
        events = list(self.talk.read(text))
        self.sent += [json.loads(event.text) for event in events if isinstance(event, base.Send)]
        return [event for event in events if not isinstance(event, base.Send)]

    def answers(self, result: Any = None, **error: Any) -> list[base.AgentEvent]:
        """Answer what we asked last."""
        asked = {"jsonrpc": "2.0", "id": self.sent[-1]["id"]}
        return self.says(asked | ({"error": error} if error else {"result": result}))

    def begins(self) -> None:
        """Go on to the first prompt."""
        self.answers(INITIALIZED)
        self.answers({"sessionId": "p1"})

    def asks(self, method: str, **params: Any) -> list[base.AgentEvent]:
        return self.says({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})

    def updates(self, what: str, **fields: Any) -> list[base.AgentEvent]:
        params = {"sessionId": "p1", "update": {"sessionUpdate": what, **fields}}
        return self.says({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def wants(self, **call: Any) -> base.PermissionWanted:
        _, wanted = self.asks("session/request_permission", toolCall=call, options=OPTIONS)
        assert isinstance(wanted, base.PermissionWanted)
        return wanted


@pytest.fixture
def program() -> Program:
    found = Program()
    found.begins()
    return found


def said(text: str) -> dict[str, Any]:
    return {"content": {"type": "text", "text": text}}


def test_a_new_session_is_told_of_our_server_and_given_the_prompt() -> None:
    program = Program()

    assert program.sent[0]["method"] == "initialize"
    assert program.sent[0]["params"]["clientCapabilities"]["elicitation"] == {"form": {}}
    program.answers(INITIALIZED)
    opened = program.sent[-1]
    assert (opened["method"], opened["params"]["cwd"]) == ("session/new", str(Path.cwd()))
    [server] = opened["params"]["mcpServers"]
    assert [server["command"], *server["args"]] == list(SERVER.command)
    env = {one["name"]: one["value"] for one in server["env"]}
    assert env == {"PYNCHY_TASK": "it", "PYNCHY_SESSION_ID": "sé1", "PYNCHY_MAX_WAIT": "90"}
    assert program.answers({"sessionId": "p1"}) == [base.Named("p1")]
    prompt = [{"type": "text", "text": "Do it."}]
    assert program.sent[-1]["params"] == {"sessionId": "p1", "prompt": prompt}


def test_what_a_loaded_session_tells_of_its_past_is_not_taken_for_the_model() -> None:
    program = Program(replace(START, program_id="p1", resumes=True))
    program.answers(INITIALIZED)
    assert program.sent[-1]["method"] == "session/load"

    assert program.updates("agent_message_chunk", **said("long ago")) == []
    program.answers({})
    assert program.sent[-1]["method"] == "session/prompt"
    program.updates("agent_message_chunk", **said("now"))
    assert base.PromptAccepted() in program.answers({"stopReason": "end_turn"})


def test_a_session_that_the_program_does_not_know_is_not_begun_anew() -> None:
    with pytest.raises(SessionUnknown):
        cores.load("acp").command(replace(START, resumes=True))
    known = replace(START, program_id="p1", resumes=True)
    program = Program(known)
    program.answers(INITIALIZED)

    assert program.answers(code=-32002, message="not found") == [base.NoSession("not found")]
    assert isinstance(Program(known).answers({"protocolVersion": 1})[0], base.NoSession)
    for code in (-32603, "odd", None):
        other = Program(known)
        other.answers(INITIALIZED)
        assert isinstance(other.answers(code=code, message="m")[0], base.Failed)


def test_the_turn_ends_with_its_reason(program: Program) -> None:
    for words in ("All ", "done."):
        assert program.updates("agent_message_chunk", **said(words)) == []

    ended = program.answers({"stopReason": "end_turn"})

    told = [base.PromptAccepted(), base.Said("says: All done.")]
    assert ended == [*told, base.TurnEnded(15.0)]


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "cancelled", "", None, 3])
def test_a_turn_that_ends_in_another_way_has_failed(program: Program, reason: Any) -> None:
    failed, _ = program.answers({"stopReason": reason})

    assert isinstance(failed, base.Failed)


def test_words_before_an_error_are_not_taken_for_the_models(program: Program) -> None:
    program.updates("agent_message_chunk", **said("Model metadata not found."))

    ended = program.answers(code=-32603, message="no quota")

    assert base.PromptAccepted() not in ended
    assert base.Said("says: Model metadata not found.") in ended


def test_an_error_of_the_model_is_a_failure(program: Program) -> None:
    failed, ended = program.answers(code=-32603, message="Internal", data={"details": "no quota"})

    assert failed == base.Failed("Internal (no quota)")
    assert isinstance(ended, base.TurnEnded)


@pytest.mark.parametrize(
    ("call", "tool", "shown"),
    [
        ({"kind": "execute", "rawInput": {"command": "ls"}}, "Bash", {"command": "ls"}),
        (
            {"kind": "execute", "rawInput": {"command": ["sh", "-c", "a b"], "cwd": "/x"}},
            "Bash",
            {"command": "sh -c 'a b'", "cwd": "/x"},
        ),
        (
            {"kind": "edit", "content": [{"type": "diff", "path": "/a", "newText": "x\n"}]},
            "Write",
            {"file_path": "/a", "content": "x\n"},
        ),
        (
            {
                "kind": "edit",
                "rawInput": {"filePath": "/a", "diff": "-x\n+y", "replaceAll": True},
                "content": [{"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}],
            },
            "Edit",
            {
                "file_path": "/a",
                "diff": "--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y",
                "replaceAll": True,
            },
        ),
        ({"kind": "fetch", "rawInput": {"url": "http://x"}}, "WebFetch", {"url": "http://x"}),
        ({"kind": "read", "rawInput": {"path": "/a"}}, "Read", {"file_path": "/a"}),
        ({"title": "jira", "rawInput": {"a": 1}}, "“jira”", {"a": 1}),
        ({"title": "jira", "rawInput": ["a"]}, "“jira”", {"input": ["a"]}),
        ({"title": "x" * 900, "kind": "think"}, "“think”", {"title": "x" * 900}),
        (
            {"title": "rm -r x", "kind": "execute", "content": [{"content": {"text": "why"}}]},
            "“rm -r x”",
            {"content": "why"},
        ),
        (
            {
                "kind": "edit",
                "rawInput": {"file_path": "/a", "old_string": "x", "new_string": "y"},
                "content": [{"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}],
                "locations": [{"path": "/a", "line": 3}],
            },
            "Edit",
            {"file_path": "/a", "diff": "--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y"},
        ),
        (
            {
                "kind": "edit",
                "rawInput": {"filepath": "/a", "diff": "Index: /a\n@@ -1,1 +1,1 @@\n-x\n+y\n"},
                "content": [{"type": "diff", "path": "/a", "oldText": " x", "newText": " y"}],
            },
            "Edit",
            {"file_path": "/a", "diff": "--- /a\n+++ /a\n@@ -1 +1 @@\n- x\n+ y"},
        ),
    ],
)
def test_a_call_is_shown_as(program: Program, call: Any, tool: str, shown: Any) -> None:
    wanted = program.wants(toolCallId="c1", **call)

    assert (wanted.tool, dict(wanted.input)) == (tool, shown)


@pytest.mark.parametrize(
    "call",
    [
        {"title": "mcp__prod__ssh_exec", "kind": "other", "rawInput": {"command": "git status"}},
        {"title": "mcp__prod__ssh_exec", "kind": "execute", "rawInput": {"command": "git status"}},
        {"title": "mcp__prod__get", "kind": "fetch", "rawInput": {"url": "http://x"}},
        {"title": "mcp__prod__cat", "kind": "read", "rawInput": {"path": "/a"}},
        {"title": "mcp__jira__create", "kind": "think", "rawInput": {"prompt": "p"}},
        {"title": "Bash", "kind": "think", "rawInput": {"command": "git status"}},
    ],
)
def test_a_title_is_no_name_that_a_rule_allows(program: Program, call: Any) -> None:
    wanted = program.wants(toolCallId="c1", **call)

    assert (wanted.tool, wanted.input) == (f"“{call['title']}”", call["rawInput"])


CHANGE = {"type": "diff", "path": "/w/src/a", "oldText": "x", "newText": "y"}
SHOWN = {"file_path": "/w/src/a", "diff": "--- /w/src/a\n+++ /w/src/a\n@@ -1 +1 @@\n-x\n+y"}


@pytest.mark.parametrize(
    ("told", "tool", "more"),
    [
        ({"kind": "edit", "rawInput": {"file_path": "/etc/x"}}, "Edit", {"file_path_": "/etc/x"}),
        ({"kind": "edit", "rawInput": {"filePath": "/etc/x"}}, "Edit", {"filePath": "/etc/x"}),
        ({"kind": "edit", "rawInput": {"content": "z"}}, "Edit", {"content": "z"}),
        (
            {"kind": "edit", "rawInput": {"old_string": "x", "new_string": "z"}},
            "Edit",
            {"old_string": "x", "new_string": "z"},
        ),
        ({"kind": "edit", "rawInput": {"diff": "-x\n+z"}}, "Edit", {"diff_": "-x\n+z"}),
        ({"kind": "edit", "rawInput": {"command": "ls"}}, "Edit", {"command": "ls"}),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, "Bash", {"command": "ls"}),
        (
            {"kind": "edit", "locations": [{"path": "/etc/x"}]},
            "Edit",
            {"locations": [{"path": "/etc/x"}]},
        ),
    ],
)
def test_nothing_that_differs_from_the_shown_change_is_left_out(
    program: Program, told: Any, tool: str, more: Any
) -> None:
    wanted = program.wants(toolCallId="c1", content=[CHANGE], **told)

    assert (wanted.tool, wanted.input) == (tool, {**SHOWN, **more})


def test_a_command_is_shown_with_the_files_that_it_is_about(program: Program) -> None:
    where = [{"path": "/etc/x"}]

    wanted = program.wants(kind="execute", rawInput={"command": "ls"}, locations=where)

    assert wanted.input == {"command": "ls", "locations": where}


def test_the_folder_that_is_shown_anyway_is_not_told_twice(program: Program) -> None:
    here, given = str(Path.cwd()), {"command": "ls"}

    where = [{"path": here}]
    wanted = program.wants(kind="execute", rawInput={**given, "cwd": here}, locations=where)
    assert wanted.input == given
    wanted = program.wants(kind="execute", rawInput={**given, "cwd": "/etc"}, locations=where)
    assert wanted.input == {**given, "cwd": "/etc"}


def test_a_command_that_needs_another_folder_is_still_a_command(program: Program) -> None:
    # As OpenCode asks for it.
    program.updates("tool_call", toolCallId="c1", title="bash", kind="execute")

    given = {"command": "touch /x/a", "directories": ["/x"]}
    wanted = program.wants(toolCallId="c1", kind="other", title="touch /x/a", rawInput=given)

    assert (wanted.tool, wanted.input) == ("Bash", given)


def edited(old: str, new: str, **given: Any) -> Fields:
    change = {"type": "diff", "path": "/w/a", "oldText": old, "newText": new}
    return read_call({"kind": "edit", "rawInput": given, "content": [change]}, "/w")[1]


@pytest.mark.parametrize("ends", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\r"])
def test_a_comment_that_was_made_code_showed_an_empty_diff(ends: str) -> None:
    told = edited(f"# see{ends}rm -r ~\n", "# see\nrm -r ~\n")

    assert f"\n-# see{ends}rm -r ~\n+# see\n+rm -r ~\n" in told["diff"]


def test_a_change_of_the_last_newline_showed_an_empty_diff() -> None:
    assert edited("x\n", "x")["diff"].endswith("\n x\n-")


@pytest.mark.parametrize(
    "diff",
    [
        "-a\n+b\n+++ evil",
        "@@ -1 +1 @@\n-a\n+b\n+++ evil",
        "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n--- c",
        "-a\n+b\x0c",
        "-a\n+ b",
        "-a\n+b ",
        " -a\n+b",
    ],
)
def test_a_diff_that_said_more_than_the_change_was_left_out(diff: str) -> None:
    assert edited("a", "b", diff=diff)["diff_"] == diff


@pytest.mark.parametrize(
    "diff",
    [
        "Index: a\n===\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n def f():\n-  x\n+  y\n",
        # As OpenCode has it: without the blanks that all of its lines begin with.
        "--- a\n+++ a\n@@ -2 +2 @@\n-x\n+y",
    ],
)
def test_a_diff_that_says_the_same_is_told_once(diff: str) -> None:
    assert set(edited("def f():\n  x\n", "def f():\n  y\n", diff=diff)) == {"file_path", "diff"}


def test_changes_of_several_files_are_one_diff_and_no_single_file(program: Program) -> None:
    content = [
        {"type": "diff", "path": "/a", "oldText": "x", "newText": "y"},
        {"type": "diff", "path": "/etc/passwd", "oldText": None, "newText": "z"},
    ]

    wanted = program.wants(toolCallId="c1", kind="edit", content=content)

    assert wanted.tool == "MultiEdit"
    assert set(wanted.input) == {"diff", "paths"}
    assert wanted.input["paths"] == ["/a", "/etc/passwd"]
    assert "+++ /etc/passwd" in wanted.input["diff"]


def test_what_was_told_of_a_call_before_belongs_to_it(program: Program) -> None:
    program.updates("tool_call", toolCallId="c1", title="bash", kind="execute", rawInput={})
    program.updates("tool_call_update", toolCallId="c1", rawInput={"command": "make"}, title=None)

    wanted = program.wants(toolCallId="c1", title="Allow?")

    assert (wanted.tool, wanted.input) == ("Bash", {"command": "make"})


def test_a_yes_is_for_once_and_a_no_is_told_with_its_words(program: Program) -> None:
    wanted = program.wants(toolCallId="c1", kind="execute", rawInput={"command": "rm x"})

    assert json.loads(wanted.reply(YES))["result"]["outcome"]["optionId"] == "o"
    assert json.loads(wanted.reply(NO))["result"]["outcome"]["optionId"] == "r"
    ended = program.answers({"stopReason": "end_turn"})

    assert ended == [base.Denied("c1", "Bash: rm x")]
    [told] = program.sent[-1]["params"]["prompt"]
    assert "Bash: rm x" in told["text"]
    assert "Ana says: not now" in told["text"]
    assert program.answers({"stopReason": "end_turn"}) == [base.TurnEnded(15.0)]


def test_what_goes_with_a_yes_is_told_when_the_turn_has_ended(program: Program) -> None:
    wanted = program.wants(toolCallId="c1", kind="execute", rawInput={"command": "rm x"})

    reply = json.loads(wanted.reply(base.Verdict(is_allowed=True, words="Ana says: slowly")))

    assert (reply["result"]["outcome"]["optionId"], wanted.editable) == ("o", False)
    assert program.answers({"stopReason": "end_turn"}) == []
    [told] = program.sent[-1]["params"]["prompt"]
    assert told["text"] == "Bash: rm x\nAna says: slowly"
    assert program.answers({"stopReason": "end_turn"}) == [base.TurnEnded(15.0)]


def test_what_a_person_said_to_one_request_is_no_answer_to_another_like_it() -> None:
    asked = []
    for run in (Program(), Program()):
        run.begins()
        for number in (1, 2):
            params = {"toolCall": {"toolCallId": "c1", "title": "t"}, "options": OPTIONS}
            message = {"id": number, "method": "session/request_permission", "params": params}
            _, wanted = run.says(message)
            assert isinstance(wanted, base.PermissionWanted)
            asked.append(wanted.call_id)

    assert len(set(asked)) == 4


@pytest.mark.parametrize(
    "options",
    [
        [OPTIONS[0]],
        [OPTIONS[1], {"optionId": "more", "kind": "allow_once", "name": "Once, and more"}],
        [OPTIONS[1], {"optionId": "o", "kind": "reject_once", "name": "No"}],
        [{"optionId": "", "kind": "allow_once", "name": "Once"}],
    ],
)
def test_what_cannot_clearly_be_allowed_just_once_is_not_allowed(
    program: Program, options: Any
) -> None:
    events = program.asks("session/request_permission", toolCall={"title": "t"}, options=options)

    assert events == [base.PromptAccepted()]
    assert program.sent[-1]["result"] == {"outcome": {"outcome": "cancelled"}}


ASKED = {"questions": [{"question": "Which?"}]}


@pytest.mark.parametrize(
    ("title", "given"),
    [
        ("mcp__pynchy__ask_user", ASKED),
        ("pynchy_check_answer", {"request_id": "r1"}),
        ("pynchy.withdraw_question", {"request_id": "r1"}),
        ("mcp.pynchy.request_approval", {"action": "Deploy?"}),
        (
            "Tool: pynchy/ask_user",
            {"server": "pynchy", "tool": "ask_user", "arguments": ASKED},
        ),
    ],
)
def test_nobody_is_asked_whether_somebody_may_be_asked(
    program: Program, title: str, given: Any
) -> None:
    call = {"toolCallId": "c1", "title": title, "kind": "other", "rawInput": given}

    assert program.asks("session/request_permission", toolCall=call, options=OPTIONS) == []
    assert program.sent[-1]["result"]["outcome"]["optionId"] == "o"


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("mcp__pynchy__ask_user; rm -r x", "other"),
        ("pynchy_ask_user", "execute"),
        ("pynchy_ask_user", "think"),
        ("pynchy_ask_user", []),
        ("not_pynchy_ask_user", "other"),
        ("pynchy_other", "other"),
        ("pynchy_ask_user\nrm -r x", "other"),
    ],
)
def test_what_only_looks_like_our_tool_is_asked_for(
    program: Program, title: str, kind: Any
) -> None:
    wanted = program.wants(toolCallId="c1", title=title, kind=kind, rawInput=ASKED)

    assert wanted.tool == f"“{title}”"


DIFF = {"type": "diff", "path": "/etc/passwd", "oldText": "a", "newText": "b"}


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"rawInput": {}},
        {"rawInput": {"prompt": "Delete it all.", "subagent_type": "x", "description": "…"}},
        {"rawInput": {**ASKED, "command": "rm -r x"}},
        {"rawInput": {"file_path": "/etc/passwd"}, "content": [DIFF]},
        {"rawInput": ASKED, "content": [DIFF]},
        {"rawInput": ASKED, "locations": [{"path": "/etc/passwd"}]},
        {"rawInput": {"server": "prod", "tool": "ask_user", "arguments": ASKED}},
        {"rawInput": {"server": "pynchy", "tool": "other", "arguments": ASKED}},
    ],
)
def test_a_title_alone_allows_nothing(program: Program, call: Any) -> None:
    wanted = program.wants(toolCallId="c1", title="pynchy/ask_user", **call)

    assert isinstance(wanted, base.PermissionWanted)


def test_a_call_of_our_tool_says_that_the_model_waits(program: Program) -> None:
    signs = program.updates("tool_call", toolCallId="c1", title="pynchy_ask_user", kind="other")

    assert base.Asking() in signs


def test_a_permission_that_is_given_up_is_taken_back(program: Program) -> None:
    wanted = program.wants(toolCallId="c1", title="t")

    note = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}}
    assert program.says(note) == [base.RequestDropped(wanted.key)]


def test_a_program_that_wants_a_key_is_signed_in_to_once() -> None:
    program = Program()
    program.answers({**INITIALIZED, "authMethods": [{"id": "chatgpt"}, {"id": "some-api-key"}]})
    program.answers(code=-32000, message="sign in")

    assert program.sent[-1]["method"] == "authenticate"
    assert program.sent[-1]["params"] == {"methodId": "some-api-key"}
    program.answers({})
    assert program.sent[-1]["method"] == "session/new"
    [failed, _] = program.answers(code=-32000, message="sign in")
    assert isinstance(failed, base.Failed)


def test_what_we_cannot_do_is_refused_so_that_no_program_waits(program: Program) -> None:
    assert program.asks("fs/read_text_file", path="/etc/passwd") == []
    assert program.sent[-1]["error"]["code"] == -32601


FORM = {
    "type": "object",
    "properties": {
        "colour": {
            "type": "string",
            "title": "Colour",
            "description": "Which colour?",
            "oneOf": [{"const": "b", "title": "Blue"}, {"const": "g", "title": "Green"}],
        },
        "colour_custom": {"type": "string"},
        "sizes": {"type": "array", "items": {"enum": ["S", "M"]}},
        "sure": {"type": "boolean", "title": "Sure?"},
        "count": {"type": "integer"},
    },
    "required": ["colour", "count"],
}


def form(program: Program, schema: Any = FORM) -> base.QuestionWanted:
    [wanted] = program.asks("elicitation/create", message="Choose.", requestedSchema=schema)
    assert isinstance(wanted, base.QuestionWanted)
    return wanted


def ended(outcome: Outcome, *answers: Answer) -> Result:
    return Result(RequestId("r1"), outcome, answers)


def reply(wanted: base.QuestionWanted, result: Result) -> Any:
    return json.loads(wanted.reply(result))["result"]


def test_a_form_is_asked_as_questions_and_filled_in(program: Program) -> None:
    wanted = form(program)

    assert wanted.title == "Choose."
    colour, sizes, sure, count = wanted.questions
    assert (colour.question, colour.header) == ("Which colour?", "Colour")
    assert [option.label for option in colour.options] == ["Blue", "Green"]
    assert (colour.options_only, sizes.options_only) == (False, True)
    assert (sizes.multi_select, [o.label for o in sure.options]) == (True, ["Yes", "No"])
    assert count.options == ()
    answers = [
        Answer("", ("Green",)),
        Answer("", ("S", "M")),
        Answer("", ("No",)),
        Answer("", text="3"),
    ]
    filled = {"colour": "g", "sizes": ["S", "M"], "sure": False, "count": 3}
    told = reply(wanted, ended(Outcome.ANSWERED, *answers))
    assert told == {"action": "accept", "content": filled}
    answers[0] = Answer("", text="Red")
    told = reply(wanted, ended(Outcome.ANSWERED, *answers))
    assert told["content"]["colour_custom"] == "Red"
    assert "colour" not in told["content"]


@pytest.mark.parametrize("message", ["Really delete PROD?", "Really\ndelete PROD?", "x" * 600])
def test_what_a_form_says_of_all_its_fields_is_seen(program: Program, message: str) -> None:
    schema = {"properties": {"sure": {"type": "boolean", "title": "Sure"}, "why": {}}}
    [wanted] = program.asks("elicitation/create", message=message, requestedSchema=schema)

    assert isinstance(wanted, base.QuestionWanted)
    assert len(wanted.title) <= 500
    for question in wanted.questions:
        assert message in (wanted.title, *question.question.split("\n\n"))
    assert wanted.questions[0].question.endswith("Sure")


@pytest.mark.parametrize(
    ("outcome", "action"),
    [
        (Outcome.DECLINED, "decline"),
        (Outcome.PENDING, "cancel"),
        (Outcome.EXPIRED, "cancel"),
        (Outcome.ERROR, "cancel"),
        (Outcome.ELSEWHERE, "cancel"),
    ],
)
def test_a_form_without_an_answer_is_never_accepted(
    program: Program, outcome: Outcome, action: str
) -> None:
    assert reply(form(program), ended(outcome)) == {"action": action}


@pytest.mark.parametrize("written", ["many", "nan", "1e999", "-inf", ""])
def test_a_number_that_is_none_is_no_answer(program: Program, written: str) -> None:
    schema = {"properties": {"n": {"type": "number"}}, "required": ["n"]}
    wanted = form(program, schema)

    assert wanted.questions[0].question == "Choose."
    told = reply(wanted, ended(Outcome.ANSWERED, Answer("", text=written)))
    assert told == {"action": "cancel"}


def test_a_long_title_of_a_field_is_shown_beside_its_description(program: Program) -> None:
    title = "Delete every row of the production database"
    told = {"a": {"title": title, "description": "Are you sure?"}, "b": {"title": title}}

    sure, bare = form(program, {"properties": told}).questions

    assert (sure.header, sure.question) == ("", f"{title}\n\nAre you sure?")
    assert bare.question == title


def test_the_only_field_of_a_form_is_described_with_what_the_form_says(program: Program) -> None:
    wanted = form(program, {"properties": {"n": {"title": "Sure", "description": "Deletes PROD"}}})

    [question] = wanted.questions
    assert (question.header, question.question) == ("Sure", "Choose.\n\nDeletes PROD")


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"properties": {}},
        {"properties": {f"p{n}": {} for n in range(5)}},
        {"properties": {"p": {"type": "object"}}},
        {"properties": {"p": {"type": ["string"]}}},
        {"properties": {"p": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"p": {"enum": ["Yes", "yes"]}}},
        {"properties": {"p": {"enum": ["Yes", 1]}}},
        {"properties": {"p": {"oneOf": [{"const": "a", "title": "A"}, {"const": 2}]}}},
        {"properties": {"p": {"oneOf": [{"const": c, "title": "Same"} for c in "ab"]}}},
    ],
)
def test_a_form_that_cannot_be_asked_is_cancelled_at_once(program: Program, schema: Any) -> None:
    events = program.asks("elicitation/create", message="m", requestedSchema=schema)

    assert all(isinstance(event, base.Said) for event in events)
    assert program.sent[-1]["result"] == {"action": "cancel"}


NAMES = st.sampled_from(
    [
        "id",
        "update",
        "sessionUpdate",
        "toolCall",
        "toolCallId",
        "rawInput",
        "content",
        "options",
        "kind",
        "optionId",
        "sessionId",
        "requestedSchema",
        "properties",
        "title",
        "type",
        "path",
        "oldText",
        "newText",
        "oneOf",
        "enum",
        "items",
        "required",
        "requestId",
        "mode",
        "text",
        "command",
        "message",
        "code",
        "data",
    ]
)
WORDS = st.sampled_from(
    [
        "tool_call",
        "p1",
        "tool_call_update",
        "agent_message_chunk",
        "form",
        "diff",
        "string",
        "array",
        "edit",
        "execute",
        "allow_once",
    ]
)
METHODS = st.sampled_from(
    ["session/update", "session/request_permission", "elicitation/create", "$/cancel_request", "x"]
)
LEAVES = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | WORDS | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)
FIELDS = st.dictionaries(NAMES, VALUES, max_size=6)
CALLS = st.fixed_dictionaries({"method": METHODS, "params": FIELDS}, optional={"id": VALUES})
ANSWERS = st.fixed_dictionaries({"id": VALUES}, optional={"result": VALUES, "error": VALUES})


def replies(event: base.AgentEvent) -> Iterator[str]:
    match event:
        case base.PermissionWanted():
            yield event.reply(YES)
            yield event.reply(NO)
        case base.QuestionWanted():
            answers = [Answer("", ("x",), "y") for _ in event.questions]
            yield event.reply(ended(Outcome.ANSWERED, *answers))


ODD = [None, 1, [], ["x"], {}, {"type": []}, [{"type": "diff"}], True]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("what", ["agent_message_chunk", "tool_call", "tool_call_update"])
def test_no_update_is_too_odd_to_be_read(program: Program, what: str, odd: Any) -> None:
    names = ("toolCallId", "title", "kind", "status", "rawInput", "content", "locations")
    fields = dict.fromkeys(names, odd)

    program.updates(what, **fields)
    asked = program.asks("session/request_permission", toolCall=fields, options=OPTIONS)

    assert isinstance(asked[-1], base.PermissionWanted)
    note = {"method": "session/update", "params": {"sessionId": "p1", "update": odd}}
    assert program.says(note) == []
    update = {"sessionUpdate": odd}
    assert program.says({**note, "params": {"sessionId": "p1", "update": update}}) == []


@pytest.mark.parametrize("odd", ODD)
def test_no_answer_is_too_odd_to_be_read(odd: Any) -> None:
    for steps in range(4):
        program = Program()
        for result in (INITIALIZED, {"sessionId": "p1"}, {"stopReason": "end_turn"})[:steps]:
            program.answers(result)
        program.says({"id": True, "result": {}})
        program.says({"id": program.sent[-1]["id"], "result": odd, "error": odd})


@given(st.lists(CALLS | ANSWERS | FIELDS | st.text(max_size=9), max_size=5))
def test_no_line_is_too_odd_to_be_read(messages: list[Any]) -> None:
    program = Program()
    for steps in range(3):
        for message in messages:
            for event in program.says(message):
                assert isinstance(event, base.AgentEvent)
                for line in replies(event):
                    assert line.endswith("\n")
                    assert isinstance(json.loads(line), dict)
        program.answers([INITIALIZED, {"sessionId": "p1"}, {}][steps])
