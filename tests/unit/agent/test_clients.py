"""An agent program that a person started tells its session in its own way, or not at all."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PYNCHY = str(Path(sys.executable).with_name("pynchy"))
THREAD = "01a1e4d5-0dca-7182-8cc5-f052f31358ca"
CLAUDE_SESSION = "78b44436-2bb0-456c-9515-4b1a6696eadf"


class Served:
    """What `pynchy mcp` left in the mailbox after calls of `ask_user` that did not wait."""

    def __init__(
        self, folder: Path, client: str, *metas: dict[str, str], client_info: Any = None, **env: str
    ) -> None:
        work = folder / "website"
        work.mkdir()
        command = [PYNCHY, "mcp", "--group", "g", "--data-dir", str(folder / "data")]
        process = subprocess.Popen(
            [*command, *(["--client", client] if client else [])],
            cwd=work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **env},
            text=True,
        )
        assert process.stdin
        assert process.stdout
        if client_info is not None:
            params = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": client_info,
            }
            hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}
            process.stdin.write(json.dumps(hello) + "\n")
            process.stdin.flush()
            assert "serverInfo" in process.stdout.readline()
        arguments = {"questions": [{"question": "Deploy?"}], "wait_for_response": False}
        for number, meta in enumerate(metas):
            params = {"name": "ask_user", "arguments": arguments, "_meta": meta}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            process.stdin.write(json.dumps(call) + "\n")
            process.stdin.flush()
            assert "request_id" in process.stdout.readline()
        tasks = folder / "data" / "ipc" / "g" / "tasks"
        found = [json.loads(path.read_text()) for path in tasks.glob("*.json")]
        self.sessions = sorted(one.get("session_id", "") for one in found)
        self.request: dict[str, Any] = found[0]
        self.lease: dict[str, Any] = json.loads(next(tasks.glob("*.lease")).read_text())
        process.stdin.close()
        process.stdout.close()
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("client", "session"),
    [("claude", CLAUDE_SESSION), ("codex", THREAD), ("opencode", ""), ("", "")],
)
def test_a_session_is_learnt_only_where_that_very_program_tells_it(
    tmp_path: Path, client: str, session: str
) -> None:
    meta = {"threadId": THREAD, "callId": "c1"}

    served = Served(tmp_path, client, meta, CLAUDE_CODE_SESSION_ID=CLAUDE_SESSION)

    assert served.request.get("session_id", "") == session
    assert served.lease["session_id"] == session
    assert served.request.get("agent") == (client or None)
    assert served.request.get("task") == ("website" if client else None)


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"name": "claude-code", "version": "2"}, "Claude Code"),
        ({"name": "my-client", "title": "My client", "version": "1"}, "My client"),
        ({"name": "my-client", "version": "1"}, "my-client"),
        ({"name": 7}, None),
        ("nonsense", None),
    ],
)
def test_who_asks_is_not_an_agent_where_the_client_has_told_its_name(
    tmp_path: Path, told: Any, name: str | None
) -> None:
    hello = Served(tmp_path, "", {}, client_info=told)

    assert hello.request.get("agent") == name


def test_a_session_that_was_told_outright_wins(tmp_path: Path) -> None:
    env = {"PYNCHY_SESSION_ID": "mine", "PYNCHY_AGENT": "me", "PYNCHY_TASK": "work"}

    served = Served(tmp_path, "codex", {"threadId": THREAD}, **env)

    assert served.request["session_id"] == served.lease["session_id"] == "mine"
    assert (served.request["agent"], served.request["task"]) == ("me", "work")


def test_each_question_is_of_the_session_that_called_and_the_lease_of_the_last(
    tmp_path: Path,
) -> None:
    served = Served(tmp_path, "codex", {}, {"threadId": "t1"}, {"threadId": "t2"})

    assert served.sessions == ["", "t1", "t2"]
    assert served.lease["session_id"] == "t2"
