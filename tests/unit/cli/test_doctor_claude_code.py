"""What doctor says of the Claude Code that is installed: do its calls wait, does it ask."""

import asyncio
import json
import os
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.waiting import until

from pynchy.cli.doctor.connections import ask_server, check_connections
from pynchy.cli.doctor.gate import NotTried, ScriptedModel, in_terminal
from pynchy.cli.doctor.programs import check_claude_code, find_version
from pynchy.data_dir import DataFolder
from pynchy.findings import Finding, Status

VARIABLE = "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS"
WAITS = {"env": {VARIABLE: "0"}}
ASKS = {"permissions": {"defaultMode": "default"}}

Install = Callable[[str], dict[str, str]]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Install a program that prints this when it is asked for its version."""

    def install(printed: str) -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "claude"
        program.write_text(f'#!/bin/sh\n[ "$*" = --version ] && echo "{printed}"\n')
        program.chmod(0o755)
        return {"HOME": str(tmp_path / "home"), "PATH": f"{folder}:/usr/bin:/bin"}

    return install


def write(path: Path, settings: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings))


def found(environ: dict[str, str], tmp_path: Path, **settings: Any) -> list[Finding]:
    """Return what is said with these settings: of the person, the project, and its local file."""
    for place, name in (("project", "settings"), ("local", "settings.local")):
        if place in settings:
            write(tmp_path / "work" / ".claude" / f"{name}.json", settings[place])
    write(tmp_path / "home" / ".claude" / "settings.json", settings["own"])
    return list(check_claude_code(environ, tmp_path / "work"))


def test_doctor_says_what_is_set_in_which_version_and_how_it_is_tried(
    install: Install, tmp_path: Path
) -> None:
    [finding] = found(install("2.1.197 (Claude Code)"), tmp_path, own=WAITS)

    assert finding.status is Status.OK
    assert "version 2.1.197 is set to wait for your answer, in a terminal too" in finding.detail
    assert "pynchy doctor --gate tries it" in finding.detail


def test_doctor_called_a_version_that_nobody_has_tested_fine(
    install: Install, tmp_path: Path
) -> None:
    finding = found(install("2.1.326"), tmp_path, own=WAITS | ASKS)[0]

    assert finding.status is Status.WARNING
    assert "version 2.1.326 is set to wait" in finding.detail
    assert "it is newer than what was tested (2.1.325)" in finding.detail
    assert "let it ask you something in a terminal" in finding.fix


def test_doctor_says_that_auto_mode_asks_for_no_permission(
    install: Install, tmp_path: Path
) -> None:
    waits, asks = found(install("2.1.325 (Claude Code)"), tmp_path, own=WAITS)

    assert waits.status is Status.OK
    assert "newer" not in waits.detail
    assert asks.status is Status.WARNING
    assert "version 2.1.325 asks for no permission at all" in asks.detail
    assert "claude --permission-mode default" in asks.fix


@pytest.mark.parametrize(
    ("own", "local", "words"),
    [
        (WAITS | ASKS, {}, ""),
        (WAITS, ASKS, ""),
        (WAITS | {"permissions": {"defaultMode": "acceptEdits"}}, {}, ""),
        (WAITS | {"permissions": {"defaultMode": ["default"]}}, {}, "says"),
        (
            WAITS | ASKS,
            {"permissions": {"defaultMode": "bypassPermissions"}},
            "settings.local.json",
        ),
    ],
)
def test_a_mode_that_was_chosen_is_believed(
    install: Install, tmp_path: Path, own: Any, local: Any, words: str
) -> None:
    findings = found(install("2.1.400"), tmp_path, own=own, local=local)

    warnings = [one.detail for one in findings[1:] if one.status is Status.WARNING]
    assert len(warnings) == bool(words)
    assert all(words in one for one in warnings)


@pytest.mark.parametrize(
    ("settings", "words", "fix"),
    [
        ({"own": {}}, "does not set it to 0", "run pynchy connect claude again"),
        ({"own": {"env": {VARIABLE: "120000"}}}, "to '120000'", "run pynchy connect claude again"),
        ({"own": WAITS, "project": {"env": {VARIABLE: "5"}}}, "to '5'", "take it out of"),
        ({"own": WAITS, "local": {"env": {VARIABLE: 0}}}, "to 0", "take it out of"),
    ],
)
def test_doctor_finds_what_lets_claude_go_on_without_an_answer(
    install: Install, tmp_path: Path, settings: Any, words: str, fix: str
) -> None:
    finding = found(install("2.1.197"), tmp_path, **settings)[0]

    assert finding.status is Status.PROBLEM
    assert words in finding.detail
    assert "goes on without your answer" in finding.detail
    assert finding.fix.startswith(fix)


def test_a_local_file_wins_over_the_projects(install: Install, tmp_path: Path) -> None:
    project = {"env": {VARIABLE: "5"}}

    [finding] = found(install("2.1.197"), tmp_path, own={}, project=project, local=WAITS)

    assert finding.status is Status.OK


def test_a_broken_file_is_said(install: Install, tmp_path: Path) -> None:
    [finding] = found(install("2.1.197"), tmp_path, own=WAITS, local='{\n"a" 1}')

    assert finding.status is Status.WARNING
    assert "settings.local.json:2" in finding.detail


@pytest.mark.parametrize("printed", ["", "hello", "2.1", "v2.1.3", "\\xff"])
def test_a_version_that_cannot_be_told_is_not_guessed(install: Install, printed: str) -> None:
    assert find_version(install(printed)) is None


def test_without_the_program_the_settings_are_told_of_all_the_same(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "nowhere")}

    [finding] = found(environ, tmp_path, own=WAITS)

    assert finding.status is Status.OK
    assert "(no version of it was found on your PATH) is set to wait" in finding.detail


@pytest.mark.parametrize(
    ("discovered", "offers"),
    [
        ('"error": {"code": -32601, "message": "no"}', False),
        ('"result": {"capabilities": {"tools": {}}}', False),
        ('"result": {"capabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}', True),
        ('"result": {"capabilities": []}', False),
    ],
)
def test_doctor_notices_a_server_that_offers_tasks_to_claude(
    tmp_path: Path, discovered: str, offers: object
) -> None:
    server = tmp_path / "server"
    lines = ['{"id": 0, "result": {}}', '{"id": 1, "result": {"tools": []}}']
    printed = "\n".join([*lines, f'{{"id": 2, {discovered}}}'])
    server.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}\nEND\ncat > /dev/null\n")
    server.chmod(0o755)

    offer = ask_server([str(server)], {"PATH": "/usr/bin:/bin"}, tmp_path, 60)

    assert offer.tasks is offers


def test_a_gate_that_could_not_be_tried_is_not_said_to_hold(
    install: Install, tmp_path: Path
) -> None:
    environ = install("2.1.197 (Claude Code)")
    write(tmp_path / "home" / ".claude" / "settings.json", WAITS)

    found = list(check_claude_code(environ, tmp_path / "work", try_gate=True))

    assert [finding.status for finding in found] == [Status.OK, Status.WARNING]
    assert "could not be tried: it ended without having asked" in found[1].detail


def test_a_gate_that_was_to_be_tried_was_passed_over_where_nothing_is_connected(
    tmp_path: Path,
) -> None:
    found = check_connections(
        DataFolder(tmp_path / "data"), {"HOME": str(tmp_path)}, tmp_path, try_gate=True
    )

    assert [one.detail for one in found] == ["not tried: Claude Code is not connected"]


def test_a_gate_is_not_tried_with_a_program_that_an_agent_may_have_put_there(
    install: Install, tmp_path: Path
) -> None:
    environ = install("2.1.197 (Claude Code)")
    write(tmp_path / "home" / ".claude" / "settings.json", WAITS)

    found = list(check_claude_code(environ, tmp_path, [tmp_path / "bin"], try_gate=True))

    assert "not tried: no claude was found" in found[1].detail


async def test_a_program_that_was_tried_lived_on_when_the_trial_failed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    started = tmp_path / "pid"
    command = ["/bin/sh", "-c", f"echo $$ > {started}; exec sleep 1000"]

    async def fail() -> None:
        async with in_terminal(command, tmp_path / "work", {"PATH": "/usr/bin:/bin"}):
            await until(lambda: started.exists() and started.read_text().strip())
            raise NotTried("it asked nothing")

    with pytest.raises(NotTried):
        await fail()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


class TestScriptedModel:
    """What Claude Code is told by the model that doctor tries its gate with."""

    ASK: ClassVar = {"name": "mcp__pynchy__ask_user"}

    @staticmethod
    def say(url: str, **body: Any) -> str:
        connection = HTTPConnection(url.removeprefix("http://"))
        connection.request("POST", "/v1/messages", json.dumps(body).encode())
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    async def test_it_asks_once_it_is_offered_the_tool_and_reads_until_then(self) -> None:
        with ScriptedModel("Yes, 1234") as model:
            first = {"messages": [{"role": "user", "content": "Go."}]}
            without = await asyncio.to_thread(self.say, model.url, tools=[], **first)
            reads = await asyncio.to_thread(self.say, model.url, tools=[{"name": "Read"}], **first)
            asks = await asyncio.to_thread(self.say, model.url, tools=[self.ASK], **first)

            assert "tool_use" not in without
            assert '"name": "Read"' in reads
            assert "mcp__pynchy__ask_user" in asks
            assert "Yes, 1234" in asks
            assert not model.heard.is_set()

    async def test_the_first_that_it_hears_of_its_call_counts(self) -> None:
        with ScriptedModel("Yes, 1234") as model:
            for told in ("moved to the background", "Answer: Yes, 1234"):
                block = {"type": "tool_result", "tool_use_id": "toolu_gate", "content": told}
                messages = [{"role": "user", "content": [block]}]
                await asyncio.to_thread(self.say, model.url, tools=[self.ASK], messages=messages)

            await model.heard.wait()
            assert model.result == '"moved to the background"'
