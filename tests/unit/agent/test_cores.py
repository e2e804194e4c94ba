"""How each program is started, and what its lines mean."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.conftest import Mailbox

from agent_runner import cores
from agent_runner.cores import base
from agent_runner.cores.claude import claude_id
from agent_runner.errors import SessionUnknown
from agent_runner.session_ids import SessionIds, state_folder

SERVER = base.McpServer(
    ("/usr/bin/py thon", "-m", 'odd"name'), {"PYNCHY_SESSION_ID": "sé1"}, 90.0, ("PYNCHY_TASK",)
)
MAILBOX = Path("/ipc/team")
UUID = "0b9c6f3e-7c3f-4f5e-8f6e-2f8a8f4f0f11"


def start(program_id: str | None = None, *, resumes: bool = False, **environ: str) -> base.Start:
    return base.Start("s1", MAILBOX, program_id, resumes, SERVER, environ, ("--extra", "yes"))


def signs(agent: str, line: Any) -> list[base.AgentEvent]:
    text = line if isinstance(line, str) else json.dumps(line)
    return list(cores.load(agent).read(text))


def after(argv: tuple[str, ...], option: str) -> str:
    return argv[argv.index(option) + 1]


def test_every_module_beside_the_base_is_an_agent() -> None:
    assert cores.names() == ["acp", "claude", "codex", "opencode"]
    for name in cores.names():
        assert cores.load(name).program == ("" if name == "acp" else name)
    with pytest.raises(KeyError):
        cores.load("base")


@pytest.mark.parametrize(
    ("extra", "argv", "settings"),
    [
        ((), ("acp",), {}),
        (("--model", "a/b", "--agent=plan"), ("acp",), {"model": "a/b", "default_agent": "plan"}),
        (
            ("--pure", "--log-level", "WARN", "-m=x"),
            ("acp", "--pure", "--log-level", "WARN"),
            {"model": "x"},
        ),
        (("--thinking",), ("run", "--format", "json", "--thinking"), {}),
        (("--model", "x", "--auto"), ("run", "--format", "json", "--model", "x", "--auto"), {}),
    ],
)
def test_opencode_speaks_acp_unless_an_option_is_for_run_alone(
    extra: tuple[str, ...], argv: tuple[str, ...], settings: dict[str, str]
) -> None:
    command = cores.load("opencode").command(replace(start(), extra=extra))

    config = json.loads(command.env["OPENCODE_CONFIG_CONTENT"])
    assert command.argv == ("opencode", *argv)
    assert (command.talk is not None) == (argv[0] == "acp")
    assert {name: config[name] for name in ("model", "default_agent") if name in config} == settings


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_what_the_administrator_adds_is_on_the_command_line(agent: str) -> None:
    argv = cores.load(agent).command(start()).argv

    assert argv[0] == agent
    assert after(argv, "--extra") == "yes"


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_a_session_that_nobody_has_noted_is_not_begun_anew(agent: str) -> None:
    with pytest.raises(SessionUnknown):
        cores.load(agent).command(start(resumes=True))


def test_claude_gets_the_session_id_that_it_is_resumed_with() -> None:
    begun = cores.load("claude").command(start()).argv
    resumed = cores.load("claude").command(start(resumes=True)).argv

    assert after(begun, "--session-id") == after(resumed, "--resume") == claude_id("s1", MAILBOX)
    assert claude_id(UUID, MAILBOX) == UUID
    assert after(cores.load("claude").command(start("abc")).argv, "--resume") == "abc"


@pytest.mark.parametrize(
    ("tool", "matcher", "withheld"),
    [
        ("ask_user", "mcp__pynchy__ask_user", "AskUserQuestion"),
        ("AskUserQuestion", "AskUserQuestion", "mcp__pynchy__ask_user"),
    ],
)
def test_claude_calls_the_hook_before_the_one_tool_that_asks(
    tool: str, matcher: str, withheld: str
) -> None:
    hook = base.HookCommand(("/usr/bin/py thon", "-m", "hook"), tool, 90.4, {"PYNCHY_LEASE": "l1"})

    command = cores.load("claude").command(replace(start(), hook=hook))

    [entry] = json.loads(after(command.argv, "--settings"))["hooks"]["PreToolUse"]
    called = {"type": "command", "command": "'/usr/bin/py thon' -m hook", "timeout": 90}
    tools = f"{matcher}|mcp__pynchy__request_approval"
    assert entry == {"matcher": tools, "hooks": [called]}
    assert after(command.argv, "--disallowedTools") == withheld
    assert command.env["PYNCHY_LEASE"] == "l1"
    assert "--settings" not in cores.load("claude").command(start()).argv


HOOK = base.HookCommand(("hook",), "ask_user", 90.0, {})
BUILT_IN = replace(HOOK, tool="AskUserQuestion")


@pytest.mark.parametrize(
    ("hook", "goes_on", "blocks"),
    [
        (None, False, False),
        (HOOK, False, False),
        (HOOK, True, True),
        (BUILT_IN, False, True),
        (BUILT_IN, True, True),
    ],
)
def test_permissions_block_where_claude_goes_on_from_parking_or_asks_with_its_own_tool(
    hook: base.HookCommand | None, *, goes_on: bool, blocks: bool
) -> None:
    command = cores.load("claude").command(replace(start(), hook=hook, goes_on=goes_on))

    # Only what is told to the runner can be parked by it; a call of our tool waits for its answer.
    asked_by = "mcp__pynchy__permissions" if blocks else "stdio"
    server = json.loads(after(command.argv, "--mcp-config"))["mcpServers"]["pynchy"]
    assert after(command.argv, "--permission-prompt-tool") == asked_by
    assert (command.talk is None) is blocks
    assert (server["env"].get("PYNCHY_PERMISSIONS") == "1") is blocks


def test_claude_is_told_of_our_server_alone_and_of_its_limit() -> None:
    command = cores.load("claude").command(start())

    [entry] = json.loads(after(command.argv, "--mcp-config"))["mcpServers"].values()
    assert [entry["command"], *entry["args"]] == list(SERVER.command)
    assert entry["env"] == {"PYNCHY_SESSION_ID": "sé1", "PYNCHY_MAX_WAIT": "90"}
    assert (entry["alwaysLoad"], entry["timeout"]) == (True, 90_000)
    assert "--strict-mcp-config" in command.argv
    assert after(command.argv, "--disallowedTools") == "AskUserQuestion"
    assert command.env["CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS"] == "0"
    assert "CLAUDE_AUTO_BACKGROUND_TASKS" in command.unset


def test_codex_is_told_of_our_server_in_toml() -> None:
    argv = cores.load("codex").command(start()).argv

    entry = tomllib.loads(after(argv, "-c"))["mcp_servers"]["pynchy"]
    assert [entry["command"], *entry["args"]] == list(SERVER.command)
    assert entry["env"] == {"PYNCHY_SESSION_ID": "sé1", "PYNCHY_MAX_WAIT": "90"}
    assert (entry["required"], entry["tool_timeout_sec"]) == (True, 90)
    assert entry["env_vars"] == ["PYNCHY_TASK"]
    assert entry["default_tools_approval_mode"] == "approve"
    assert cores.load("codex").command(start("t1", resumes=True)).argv[-3:] == ("resume", "t1", "-")


def test_opencode_keeps_the_settings_that_the_environment_has_already() -> None:
    given = {
        "experimental": {"other": 1},
        "model": "x/y",
        "mcp": {"other": {}},
        "permission": {"bash": "deny"},
    }
    command = cores.load("opencode").command(
        start("ses_1", resumes=True, OPENCODE_CONFIG_CONTENT=json.dumps(given))
    )

    config = json.loads(command.env["OPENCODE_CONFIG_CONTENT"])
    assert config["model"] == "x/y"
    assert config["mcp"]["other"] == {}
    assert config["mcp"]["pynchy"]["command"] == list(SERVER.command)
    # Its own timeout would be how long it may take to start.
    assert "timeout" not in config["mcp"]["pynchy"]
    assert config["experimental"] == {"other": 1, "mcp_timeout": 90_000}
    # Progress starts its limit again, so the server is not to end the wait.
    assert config["mcp"]["pynchy"]["environment"] == {"PYNCHY_SESSION_ID": "sé1"}
    assert config["permission"] == {"bash": "deny", "pynchy_*": "allow"}
    assert after(command.argv, "--session") == "ses_1"


ASKED = {"server": "pynchy", "tool": "ask_user", "type": "mcp_tool_call"}


@pytest.mark.parametrize(
    ("agent", "line", "expected"),
    [
        ("claude", {"type": "result", "subtype": "success", "is_error": False}, [base.TurnEnded]),
        (
            "claude",
            {"type": "result", "subtype": "error_max_turns", "is_error": True},
            [base.Failed("error_max_turns"), base.TurnEnded],
        ),
        (
            "claude",
            {
                "type": "system",
                "subtype": "permission_denied",
                "tool_name": "Bash",
                "tool_use_id": "t1",
            },
            [base.Denied("t1", "Bash")],
        ),
        (
            "claude",
            {
                "type": "result",
                "subtype": "success",
                "permission_denials": [
                    {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "rm -r x"}}
                ],
            },
            [base.Denied("t1", "Bash: rm -r x"), base.TurnEnded],
        ),
        ("claude", "No conversation found with session ID: x", [base.NoSession]),
        ("claude", "Error: No deferred tool marker found in it.", [base.NotParked]),
        (
            "claude",
            {"type": "result", "subtype": "success", "stop_reason": "tool_deferred"},
            [base.Parked, base.TurnEnded],
        ),
        (
            "claude",
            {"type": "result", "is_error": True, "stop_reason": "tool_deferred_unavailable"},
            [base.NotParked, base.Failed, base.TurnEnded],
        ),
        (
            "claude",
            {"type": "result", "is_error": True, "result": "No conversation found"},
            [base.NoSession, base.Failed, base.TurnEnded],
        ),
        ("codex", {"type": "thread.started", "thread_id": "t1"}, [base.Named("t1")]),
        ("codex", {"type": "turn.started"}, []),
        (
            "codex",
            {"type": "item.started", "item": ASKED},
            [base.PromptAccepted, base.Said, base.Asking],
        ),
        (
            "codex",
            {"type": "item.completed", "item": {"type": "error", "message": "m"}},
            [base.Said("m")],
        ),
        (
            "codex",
            {"type": "item.completed", "item": {"type": "agent_message", "text": "hi"}},
            [base.PromptAccepted(), base.Said("says: hi")],
        ),
        ("codex", {"type": "turn.failed", "error": {"message": "m"}}, [base.Failed("m")]),
        ("codex", "required MCP servers failed to initialize: pynchy", [base.NoServer]),
        ("codex", "Error: no rollout found for thread id x", [base.NoSession]),
        ("opencode", {"type": "step_start", "sessionID": "ses_1"}, [base.Named("ses_1")]),
        (
            "opencode",
            {"type": "text", "part": {"text": "hi"}},
            [base.PromptAccepted(), base.Said("says: hi")],
        ),
        ("opencode", {"type": "tool_use", "part": {"tool": "t"}}, [base.PromptAccepted, base.Said]),
        ("opencode", {"type": "step_finish", "part": {"tokens": {"output": 0}}}, []),
        (
            "opencode",
            {"type": "step_finish", "part": {"tokens": {"output": 7}}},
            [base.PromptAccepted()],
        ),
        (
            "opencode",
            {"type": "error", "error": {"name": "APIError", "data": {"message": "m"}}},
            [base.Failed("m")],
        ),
        ("opencode", "Error: Session not found", [base.NoSession]),
        (
            "opencode",
            "\x1b[93m\x1b[1m! \x1b[0mpermission requested: bash (rm *); auto-rejecting",
            [base.Denied("bash (rm *)", "bash (rm *)")],
        ),
        ("opencode", "some text", [base.Said("some text")]),
    ],
)
def test_a_line_is_read_as(agent: str, line: Any, expected: list[Any]) -> None:
    found = signs(agent, line)

    assert len(found) == len(expected)
    for sign, wanted in zip(found, expected, strict=True):
        assert isinstance(sign, wanted) if isinstance(wanted, type) else sign == wanted


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
@pytest.mark.parametrize(
    "type_", ["system", "assistant", "item.started", "item.completed", "error"]
)
@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {"content": 3}, {"type": []}])
def test_no_line_is_too_odd_to_be_read(agent: str, type_: str, value: Any) -> None:
    names = ("message", "item", "part", "error", "mcp_servers", "session_id", "sessionID")
    line = {"type": type_, "subtype": "init", **dict.fromkeys(names, value)}

    for sign in signs(agent, line):
        assert isinstance(sign, base.AgentEvent)


def test_the_book_keeps_what_the_program_calls_a_session(mailbox: Mailbox) -> None:
    book = SessionIds(mailbox.path / "state", "codex", mailbox.path)

    assert book.find("../../etc") is None
    book.remember("../../etc", "t1")
    book.remember("s2", "t2")

    again = SessionIds(mailbox.path / "state", "codex", mailbox.path)
    assert (again.find("../../etc"), again.find("s2")) == ("t1", "t2")
    assert SessionIds(mailbox.path / "state", "opencode", mailbox.path).find("s2") is None
    for path in (mailbox.path / "state" / "codex").iterdir():
        path.write_text("{")
    assert again.find("s2") is None


def test_two_groups_with_the_same_session_id_have_two_sessions(tmp_path: Path) -> None:
    other = Path("/ipc/other")
    SessionIds(tmp_path, "codex", MAILBOX).remember("main", "thread-of-the-team")

    assert SessionIds(tmp_path, "codex", other).find("main") is None
    assert SessionIds(tmp_path, "codex", MAILBOX).find("main") == "thread-of-the-team"
    assert claude_id("main", MAILBOX) != claude_id("main", other)


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_what_stands_among_the_errors_is_no_event(agent: str) -> None:
    event = {"type": "item.started", "sessionID": "x", "item": {}, "message": {}}
    for type_ in ("item.started", "assistant", "text"):
        line = json.dumps(event | {"type": type_})

        assert list(cores.load(agent).read_error(line)) == [base.Said(line)]


def test_the_book_lies_where_the_environment_says() -> None:
    assert str(state_folder({"PYNCHY_STATE_DIR": "/a"})) == "/a"
    assert str(state_folder({"XDG_STATE_HOME": "/b"})) == "/b/agent_runner"


def test_codex_resumes_a_session_that_it_named_itself_by_that_name() -> None:
    named = replace(start(resumes=True), session_id="01a1e4d5-0dca-7182-8cc5-f052f31358ca")

    command = cores.load("codex").command(named)

    assert command.argv[-3:] == ("resume", named.session_id, "-")
    assert "resume" not in cores.load("codex").command(replace(named, resumes=False)).argv


class TalkingClaude:
    """The other end of Claude Code's stdin and stdout."""

    def __init__(self) -> None:
        talk = cores.load("claude").command(start()).talk
        assert talk is not None
        self.read = talk.read
        self.begun = [json.loads(line) for line in talk.begin("Do it.").splitlines()]

    def wants(self, call_id: str, **given: Any) -> base.PermissionWanted:
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": given}
        request = {**asked, "tool_use_id": call_id}
        line = {"type": "control_request", "request_id": f"r-{call_id}", "request": request}
        [wanted] = self.read(json.dumps(line))
        assert isinstance(wanted, base.PermissionWanted)
        return wanted

    def ended(self, call_id: str, event: str = "PostToolUse") -> Any:
        """Tell that a call has ended, and return what the model is to read beside its result."""
        told = {"hook_event_name": event, "tool_use_id": call_id}
        request = {"subtype": "hook_callback", "callback_id": "x", "input": told}
        line = {"type": "control_request", "request_id": "h1", "request": request}
        [sent] = self.read(json.dumps(line))
        assert isinstance(sent, base.Send)
        return response(sent.text)


def response(line: str) -> Any:
    said = json.loads(line)
    assert (said["type"], said["response"]["subtype"]) == ("control_response", "success")
    return said["response"]["response"]


def test_claude_is_told_to_tell_of_the_ends_of_calls_before_the_prompt() -> None:
    first, second = TalkingClaude().begun

    assert (first["type"], first["request"]["subtype"]) == ("control_request", "initialize")
    assert set(first["request"]["hooks"]) == {"PostToolUse", "PostToolUseFailure"}
    assert second["message"]["content"][0]["text"] == "Do it."


def test_claude_makes_the_call_as_it_was_edited_and_its_model_reads_so_once() -> None:
    claude = TalkingClaude()
    edited = base.Verdict(is_allowed=True, words="Ana changed it.", input={"command": "ls -l"})
    wanted = claude.wants("c1", command="ls")

    assert wanted.editable
    assert response(wanted.reply(edited)) == {
        "behavior": "allow",
        "updatedInput": {"command": "ls -l"},
    }
    assert claude.ended("c2") == {}
    assert claude.ended("c1", "PostToolUseFailure")["hookSpecificOutput"] == {
        "hookEventName": "PostToolUseFailure",
        "additionalContext": "Ana changed it.",
    }
    assert claude.ended("c1") == {}


def test_claude_makes_a_call_as_it_was_where_nobody_has_edited_it() -> None:
    claude = TalkingClaude()

    allowed = response(claude.wants("c1", command="ls").reply(base.Verdict(is_allowed=True)))

    assert allowed == {"behavior": "allow", "updatedInput": {"command": "ls"}}
    assert claude.ended("c1") == {}


@pytest.mark.parametrize(
    "line",
    [
        {"type": "control_request"},
        {"type": "control_request", "request_id": 1, "request": {"subtype": "hook_callback"}},
        {"type": "control_response", "response": {"subtype": "error"}},
    ],
)
def test_what_has_no_name_to_answer_to_is_passed_over(line: Any) -> None:
    assert list(TalkingClaude().read(json.dumps(line))) == []


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("gemini", "--acp"), "gemini"),
        (("/usr/bin/opencode", "acp"), "opencode"),
        (("npx", "-y", "@zed-industries/claude-agent-acp@0.49.0"), "claude-agent-acp"),
        (("/usr/bin/npx", "--package", "x", "codex-acp"), "codex-acp"),
        (("uvx", "--from=x", "some-agent==1.2", "--acp"), "some-agent==1.2"),
        (("npx",), "npx"),
        (("npx", "-y", "-p"), "npx"),
    ],
)
def test_a_card_names_the_program_and_not_what_fetches_it(
    command: tuple[str, ...], name: str
) -> None:
    assert base.name_of(command) == name
