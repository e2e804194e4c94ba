"""How `codex app-server` is talked to, line by line."""

import json
import pwd
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.test_acp import FIELDS, FORM, VALUES, replies
from tests.unit.agent.test_cores import MAILBOX, SERVER, UUID, after

from agent_runner import codex_calls, cores
from agent_runner.asking import Answer, Outcome, RequestId, Result
from agent_runner.cores import base

YES, NO = base.Verdict(is_allowed=True), base.Verdict(is_allowed=False, words="Ana says: not now")
ASKS = ("-c", "approval_policy=on-request")
GPT = ("-c", 'model="gpt"')


def command(*extra: str, program_id: str | None = None) -> base.Command:
    start = base.Start("s1", MAILBOX, program_id, program_id is not None, SERVER, {}, extra)
    return cores.load("codex").command(start)


class Codex:
    """The other end of the lines."""

    def __init__(self, program_id: str | None = None) -> None:
        talk = command(*ASKS, program_id=program_id).talk
        assert talk is not None
        self.talk = talk
        self.sent = [json.loads(self.talk.begin("Do it."))]

    def says(self, message: Any) -> list[base.AgentEvent]:
        text = message if isinstance(message, str) else json.dumps(message)
        events = list(self.talk.read(text))
        self.sent += [json.loads(event.text) for event in events if isinstance(event, base.Send)]
        return [event for event in events if not isinstance(event, base.Send)]

    def answers(self, result: Any = None, **error: Any) -> list[base.AgentEvent]:
        asked = {"id": self.sent[-1]["id"]}
        return self.says(asked | ({"error": error} if error else {"result": result}))

    def tells(self, method: str, **params: Any) -> list[base.AgentEvent]:
        return self.says({"method": method, "params": {"threadId": "t1", **params}})

    def asks(self, method: str, **params: Any) -> list[base.AgentEvent]:
        return self.says({"id": 0, "method": method, "params": {"threadId": "t1", **params}})

    def wants(self, method: str, **params: Any) -> base.PermissionWanted:
        [wanted] = self.asks(method, **params)
        assert isinstance(wanted, base.PermissionWanted)
        return wanted


@pytest.fixture
def codex() -> Codex:
    found = Codex()
    found.answers({})
    found.answers({"thread": {"id": "t1"}})
    found.answers({"turn": {"id": "u1"}})
    return found


@pytest.mark.parametrize(
    "extra",
    [
        (),
        ("-c", "approval_policy=never"),
        ("-m", "x"),
        ("--config", 'approval_policy="never"'),
        ("-anever",),
        ("-capproval_policy=never",),
        ("-aon-request", "-anever"),
    ],
)
def test_codex_is_run_by_exec_where_nobody_is_to_be_asked(extra: tuple[str, ...]) -> None:
    assert command(*extra).argv[1] == "exec"
    assert command(*extra).talk is None


@pytest.mark.parametrize(
    ("extra", "added"),
    [
        (ASKS, ASKS),
        (("--config=approval_policy='untrusted'",), ("-c", "approval_policy='untrusted'")),
        (("-a", "on-request"), ("-c", 'approval_policy="on-request"')),
        (("-aon-request",), ("-c", 'approval_policy="on-request"')),
        (("-a=on-request",), ("-c", 'approval_policy="on-request"')),
        (("-capproval_policy=on-request",), ASKS),
        (("-c=approval_policy=on-request",), ASKS),
        (("-c", '"approval_policy"="untrusted"'), ("-c", '"approval_policy"="untrusted"')),
        ((*ASKS, "-mgpt", "-sread-only"), (*ASKS, *GPT, "-c", 'sandbox_mode="read-only"')),
        (
            (*ASKS, "-m", "gpt", "--sandbox=read-only", "--skip-git-repo-check", "--enable", "x"),
            (*ASKS, "-c", 'model="gpt"', "-c", 'sandbox_mode="read-only"', "--enable", "x"),
        ),
    ],
)
def test_a_policy_that_asks_chooses_the_server(
    extra: tuple[str, ...], added: tuple[str, ...]
) -> None:
    argv = command(*extra).argv

    assert argv[:2] == ("codex", "app-server")
    assert after(argv, "-c").startswith("mcp_servers.pynchy=")
    assert argv[4:] == added


def test_a_thread_is_begun_and_given_the_prompt() -> None:
    codex = Codex()
    assert "jsonrpc" not in codex.sent[0]

    codex.answers({})
    assert [one["method"] for one in codex.sent[1:]] == ["initialized", "thread/start"]
    assert codex.answers({"thread": {"id": "t1"}}) == [base.Named("t1")]
    assert codex.sent[-1]["params"]["input"] == [{"type": "text", "text": "Do it."}]


def test_a_thread_that_codex_does_not_know_is_not_begun_anew() -> None:
    codex = Codex(UUID)
    codex.answers({})

    assert codex.sent[-1]["method"] == "thread/resume"
    assert codex.sent[-1]["params"]["threadId"] == UUID
    first, *_ = codex.answers(code=-32600, message=f"no rollout found for thread id {UUID}")
    assert isinstance(first, base.NoSession)


def test_codex_without_our_server_says_so() -> None:
    codex = Codex()
    codex.answers({})

    told = "error creating thread: required MCP servers failed to initialize: pynchy"
    first, *_ = codex.answers(code=-32603, message=told)
    assert isinstance(first, base.NoServer)


def test_the_prompt_is_no_sign_of_the_model_and_its_words_are(codex: Codex) -> None:
    assert codex.tells("item/started", item={"type": "userMessage"}) == []
    said = {"type": "agentMessage", "text": "Done."}
    assert codex.tells("item/completed", item=said) == [
        base.PromptAccepted(),
        base.Said("says: Done."),
    ]
    other = {"method": "item/completed", "params": {"threadId": "of a helper", "item": said}}
    assert codex.says(other) == []
    asking = {"type": "mcpToolCall", "server": "pynchy", "tool": "ask_user"}
    assert base.Asking() in codex.tells("item/started", item=asking)


def test_the_turn_ends_or_fails(codex: Codex) -> None:
    assert codex.tells("turn/completed", turn={"status": "completed"}) == [base.TurnEnded(15.0)]
    failed = {"status": "failed", "error": {"message": "no quota"}}
    assert codex.tells("turn/completed", turn=failed)[0] == base.Failed("no quota")
    for odd in ({"status": "interrupted"}, {}, {"status": 3}):
        assert isinstance(codex.tells("turn/completed", turn=odd)[0], base.Failed)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("/bin/bash -lc 'touch x; ls'", "touch x; ls"),
        ("/usr/bin/zsh -c ls", "ls"),
        ("bash -lc ls", "bash -lc ls"),
        ("/bin/bash -lc ls more", "/bin/bash -lc ls more"),
        ("/bin/bash -xc ls", "/bin/bash -xc ls"),
        ("/bin/sh -c ' '", "/bin/sh -c ' '"),
        ("touch 'x", "touch 'x"),
    ],
)
def test_a_command_is_shown_as_the_model_wrote_it(codex: Codex, told: str, shown: str) -> None:
    method = "item/commandExecution/requestApproval"
    wanted = codex.wants(method, itemId="c1", command=told, cwd="/w", reason="why", kind="command")

    assert (wanted.tool, wanted.cwd) == ("Bash", "/w")
    assert wanted.input == {"command": shown, "description": "why"}


@pytest.mark.parametrize(
    "shell",
    [
        "/srv/app/.build/bash",
        "/srv/sh",
        "/usr/local/bin/zsh",
        "/bin/../srv/bash",
        "/usr/bin/./sh",
        "//bin/sh",
        "/bin/fish",
    ],
)
def test_a_program_that_is_only_called_like_a_shell_is_shown(
    codex: Codex, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setattr("agent_runner.codex_calls.login_shell", lambda: "/bin/bash")
    told = f"{shell} -lc 'git status'"

    wanted = codex.wants("item/commandExecution/requestApproval", command=told, cwd="/w")

    assert wanted.input == {"command": told}


def test_the_shell_of_the_user_who_runs_codex_is_left_out(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, told = "item/commandExecution/requestApproval", "/opt/homebrew/bin/bash -lc ls"
    monkeypatch.setattr("agent_runner.codex_calls.login_shell", lambda: "/opt/homebrew/bin/bash")

    assert codex.wants(method, command=told).input == {"command": "ls"}


@pytest.mark.parametrize("shell", ["", "/usr/sbin/nologin", "/usr/bin/fish", "bash"])
def test_alogin_shell_of_which_commands_are_not_read_is_shown(
    monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    user = pwd.struct_passwd(("u", "x", 1, 1, "", "/", shell))
    monkeypatch.setattr("pwd.getpwuid", lambda _: user)

    assert not codex_calls.login_shell.__wrapped__()


def test_what_is_more_than_a_command_is_shown(codex: Codex) -> None:
    method = "item/commandExecution/requestApproval"
    wanted = codex.wants(
        method, itemId="c1", command="x", kind="stdin", networkApprovalContext={"host": "h"}
    )

    assert wanted.input == {"command": "x", "kind": "stdin", "network": {"host": "h"}}


@pytest.mark.parametrize(
    ("changes", "tool", "shown"),
    [
        (
            [{"path": "/a", "kind": {"type": "add"}, "diff": "hello\n"}],
            "Write",
            {"file_path": "/a", "content": "hello\n"},
        ),
        (
            [{"path": "/a", "kind": {"type": "update", "move_path": None}, "diff": "-x\n+y"}],
            "Edit",
            {"file_path": "/a", "diff": "-x\n+y"},
        ),
        (
            [{"path": "/a", "kind": {"type": "update", "move_path": "/b"}, "diff": "-x"}],
            "MultiEdit",
            {"paths": ["/a", "/b"], "diff": "update /a → /b\n-x"},
        ),
        (
            [
                {"path": "/a", "kind": {"type": "delete"}, "diff": "x"},
                {"path": "/b", "kind": {"type": "add"}, "diff": "y"},
            ],
            "MultiEdit",
            {"paths": ["/a", "/b"], "diff": "delete /a\nx\nadd /b\ny"},
        ),
        (
            [{"path": "/a", "kind": {"type": "delete"}, "diff": "x"}],
            "MultiEdit",
            {"paths": ["/a"], "diff": "delete /a\nx"},
        ),
    ],
)
def test_a_change_is_shown_with_what_was_told_of_it_before(
    codex: Codex, changes: Any, tool: str, shown: Any
) -> None:
    codex.tells("item/started", item={"type": "fileChange", "id": "c1", "changes": changes})

    wanted = codex.wants("item/fileChange/requestApproval", itemId="c1", grantRoot="/")

    assert (wanted.tool, wanted.input) == (tool, {**shown, "grantRoot": "/"})


@pytest.mark.parametrize(
    "changes",
    [
        None,
        [],
        [{"kind": {"type": "delete"}, "diff": "x"}],
        [{"path": "/a", "kind": {"type": "update"}, "diff": ""}],
        [{"path": "/a", "kind": {"type": "update", "move_path": ["/b"]}, "diff": "-x"}],
        [{"path": "/a", "kind": {"type": "of another version"}, "diff": "-x"}],
        [{"path": "/a", "kind": {"type": "add"}, "diff": ""}, {}],
    ],
)
def test_a_change_that_is_not_described_is_denied_in_words(codex: Codex, changes: Any) -> None:
    codex.tells("item/started", item={"type": "fileChange", "id": "c1", "changes": changes})

    assert codex.asks("item/fileChange/requestApproval", itemId="c1", reason="why") == []

    assert codex.sent[-1]["method"] == "turn/steer"
    assert "did not tell what it wants to do" in codex.sent[-1]["params"]["input"][0]["text"]
    [denied] = codex.answers({})
    assert isinstance(denied, base.Denied)
    assert codex.sent[-1] == {"id": 0, "result": {"decision": "decline"}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("item/commandExecution/requestApproval", {"command": None}),
        ("item/commandExecution/requestApproval", {"command": " ", "reason": "why"}),
        ("item/permissions/requestApproval", {"permissions": {}, "reason": "why"}),
    ],
)
def test_what_codex_does_not_describe_is_asked_of_nobody(
    codex: Codex, method: str, params: Any
) -> None:
    assert codex.asks(method, itemId="c1", **params) == []
    assert codex.sent[-1]["method"] == "turn/steer"
    codex.answers({})
    assert codex.sent[-1]["result"] in (
        {"decision": "decline"},
        {"permissions": {}, "scope": "turn"},
    )


def test_a_no_is_told_to_the_turn_with_its_words(codex: Codex) -> None:
    method = "item/commandExecution/requestApproval"
    wanted = codex.wants(method, itemId="c1", command="rm x")

    assert json.loads(wanted.reply(YES)) == {"id": 0, "result": {"decision": "accept"}}
    steered = json.loads(wanted.reply(NO))

    assert (steered["method"], steered["params"]["expectedTurnId"]) == ("turn/steer", "u1")
    assert "Ana says: not now" in steered["params"]["input"][0]["text"]
    # Here it is a turn that can no longer be told: the next one is.
    assert codex.says({"id": steered["id"], "error": {}}) == [base.Denied("c1", "Bash: rm x")]
    assert codex.sent[-1] == {"id": 0, "result": {"decision": "decline"}}
    assert codex.tells("turn/completed", turn={"status": "completed"}) == []
    assert codex.sent[-1]["method"] == "turn/start"
    assert "Ana says: not now" in codex.sent[-1]["params"]["input"][0]["text"]


def test_what_goes_with_a_yes_is_told_to_the_turn_first(codex: Codex) -> None:
    wanted = codex.wants("item/commandExecution/requestApproval", itemId="c1", command="rm x")

    steered = json.loads(wanted.reply(base.Verdict(is_allowed=True, words="Ana says: slowly")))

    assert steered["method"] == "turn/steer"
    assert steered["params"]["input"][0]["text"] == "Bash: rm x\nAna says: slowly"
    assert codex.says({"id": steered["id"], "result": {}}) == []
    assert codex.sent[-1] == {"id": 0, "result": {"decision": "accept"}}


def test_more_rights_are_granted_for_the_turn_alone(codex: Codex) -> None:
    rights = {"network": {"enabled": True}}
    wanted = codex.wants("item/permissions/requestApproval", itemId="c1", permissions=rights)

    assert wanted.input == rights
    granted = json.loads(wanted.reply(YES))["result"]
    assert granted == {"permissions": rights, "scope": "turn"}
    codex.says({"id": json.loads(wanted.reply(NO))["id"], "result": {}})
    assert codex.sent[-1]["result"]["permissions"] == {}


def ended(outcome: Outcome, *answers: Answer) -> Result:
    return Result(RequestId("r1"), outcome, answers)


def test_its_own_questions_reach_a_person(codex: Codex) -> None:
    asked = {
        "id": "colour",
        "header": "H",
        "question": "Which?",
        "options": [{"label": "Blue", "description": ""}, {"label": "Red", "description": "d"}],
    }
    [wanted] = codex.asks("item/tool/requestUserInput", questions=[asked])

    assert isinstance(wanted, base.QuestionWanted)
    [question] = wanted.questions
    assert (question.question, question.options_only) == ("Which?", True)
    answer = ended(Outcome.ANSWERED, Answer("", ("Red",), "a note"))
    told = json.loads(wanted.reply(answer))["result"]
    assert told == {"answers": {"colour": {"answers": ["Red", "a note"]}}}
    told = json.loads(wanted.reply(ended(Outcome.PENDING)))["result"]
    assert told == {"answers": {}}


def test_nobody_is_asked_for_a_secret_in_a_chat(codex: Codex) -> None:
    asked = {"id": "key", "header": "", "question": "Your key?", "isSecret": True}

    [said] = codex.asks("item/tool/requestUserInput", questions=[asked])

    assert isinstance(said, base.Said)
    assert codex.sent[-1]["result"] == {"answers": {}}


def test_the_form_of_another_server_is_asked_as_questions(codex: Codex) -> None:
    [wanted] = codex.asks("mcpServer/elicitation/request", message="m", requestedSchema=FORM)

    assert isinstance(wanted, base.QuestionWanted)
    told = json.loads(wanted.reply(ended(Outcome.DECLINED)))["result"]
    assert told == {"action": "decline", "content": None}


def test_what_was_answered_in_a_terminal_is_taken_back_here(codex: Codex) -> None:
    wanted = codex.wants("item/commandExecution/requestApproval", itemId="c1", command="ls")

    resolved = codex.tells("serverRequest/resolved", requestId=0)
    assert resolved == [base.RequestDropped(wanted.key)]


METHODS = st.sampled_from(
    [
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "item/tool/requestUserInput",
        "mcpServer/elicitation/request",
        "item/started",
        "item/completed",
        "turn/completed",
        "serverRequest/resolved",
        "x",
    ]
)
NAMES = st.sampled_from(
    [
        "itemId",
        "item",
        "turn",
        "command",
        "changes",
        "kind",
        "path",
        "diff",
        "type",
        "id",
        "text",
        "permissions",
        "questions",
        "options",
        "reason",
        "cwd",
        "status",
        "error",
    ]
)
PARAMS = st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES, max_size=4), max_size=5)
CALLS = st.fixed_dictionaries(
    {"method": METHODS, "params": PARAMS | FIELDS}, optional={"id": VALUES}
)
ANSWERS = st.fixed_dictionaries({"id": VALUES}, optional={"result": VALUES, "error": VALUES})


@pytest.mark.parametrize("odd", [None, 1, [], ["x"], {}, {"type": []}, [{"kind": []}], True])
@pytest.mark.parametrize(
    "method",
    ["item/started", "item/completed", "turn/completed", "item/commandExecution/requestApproval"],
)
def test_no_field_is_too_odd_to_be_read(codex: Codex, method: str, odd: Any) -> None:
    names = ("type", "id", "changes", "server", "tool", "status", "error", "command", "kind")
    fields = dict.fromkeys(names, odd)

    for event in codex.asks(method, item=fields, turn=fields, **fields):
        assert isinstance(event, base.AgentEvent)
    for event in codex.tells(method, item=fields, turn=fields, **fields):
        assert isinstance(event, base.AgentEvent)


@given(st.lists(CALLS | ANSWERS | st.text(max_size=9), max_size=5))
def test_no_line_is_too_odd_to_be_read(messages: list[Any]) -> None:
    codex = Codex()
    for result in ({}, {"thread": {"id": "t1"}}, {"turn": {"id": "u1"}}, {}):
        for message in messages:
            if isinstance(message, dict) and "params" in message:
                message["params"].setdefault("threadId", "t1")
            for event in codex.says(message):
                assert isinstance(event, base.AgentEvent)
                for lines in replies(event):
                    assert all(json.loads(line) for line in lines.splitlines())
        codex.answers(result)
