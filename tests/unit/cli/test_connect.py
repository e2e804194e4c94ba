"""`pynchy connect`: what it writes, what it leaves alone, and what doctor makes of it."""

import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.support import Run

from pynchy.cli.doctor.connections import check_connections
from pynchy.data_dir import DataFolder
from pynchy.findings import Status

PYNCHY = str(Path(sys.executable).with_name("pynchy"))
PROGRAMS = ("claude", "codex", "opencode")
STRANGER = {
    "claude": '{"mcpServers": {"pynchy": {"command": "node", "args": ["mine.js"]}}}',
    "codex": '[mcp_servers.pynchy]\ncommand = "node"\n',
    "opencode": '{"mcp": {"pynchy": {"type": "remote", "url": "http://localhost"}}}',
}
BROKEN = {"claude": '{\n"a" 1}', "codex": "a = 1\nb\n", "opencode": '{\n"a": 1,, }'}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def files(tmp_path: Path, home: Path) -> dict[str, Path]:
    return {
        "claude": home / ".claude.json",
        "codex": home / ".codex" / "config.toml",
        "opencode": tmp_path / "config" / "opencode" / "opencode.json",
    }


@pytest.fixture
def write(files: dict[str, Path]) -> Callable[[str, str], Path]:
    def write(program: str, text: str) -> Path:
        files[program].parent.mkdir(parents=True, exist_ok=True)
        files[program].write_text(text)
        return files[program]

    return write


def argv(program: str, path: Path) -> list[str]:
    """Return the command that the program finds in its settings."""
    if program == "codex":
        entry = tomllib.loads(path.read_text())["mcp_servers"]["pynchy"]
    else:
        entry = json.loads(path.read_text())["mcpServers" if program == "claude" else "mcp"]
        entry = entry["pynchy"]
    if program == "opencode":
        return list(entry["command"])
    return [entry["command"], *entry["args"]]


def test_the_full_path_and_the_data_folder_are_written(
    run: Run, files: dict[str, Path], tmp_path: Path
) -> None:
    for program, path in files.items():
        result = run("connect", program, "--yes")

        assert result.exit_code == 0, result.output
        data = ["--data-dir", str(tmp_path / "data")]
        expected = [PYNCHY, "mcp", "--client", program, "--group", program, *data]
        assert argv(program, path) == expected


def test_the_usual_data_folder_is_not_named(
    run: Run, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYNCHY_DATA_DIR")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    run("connect", "codex", "--group", "web", "--yes")

    assert argv("codex", files["codex"])[1:] == ["mcp", "--client", "codex", "--group", "web"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_a_yes_the_change_is_shown_and_nothing_written(
    run: Run, files: dict[str, Path], program: str
) -> None:
    shown, dry = run("connect", program), run("connect", program, "--dry-run")

    assert (shown.exit_code, dry.exit_code) == (2, 0)
    assert "--yes" in shown.stderr
    assert f"+++ {files[program]}" in shown.stdout
    assert not files[program].exists()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_second_run_changes_nothing_and_keeps_the_group(
    run: Run, files: dict[str, Path], program: str
) -> None:
    run("connect", program, "--group", "web-team", "--yes")
    before = files[program].read_bytes()

    again = run("connect", program, "--yes")

    assert again.exit_code == 0
    assert "already, as group web-team" in again.stdout
    assert files[program].read_bytes() == before


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_taken_out_again_with_all_that_came_with_it(
    run: Run, home: Path, files: dict[str, Path], program: str
) -> None:
    run("connect", program, "--yes")

    removed, again = (
        run("connect", program, "--remove", "--yes"),
        run("connect", program, "--remove"),
    )

    assert (removed.exit_code, again.exit_code) == (0, 0)
    assert "not connected" in again.stdout
    rest = [files[program].read_text()]
    if program == "claude":
        rest.append((home / ".claude" / "settings.json").read_text())
    assert "pynchy" not in "".join(rest)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("option", ["--yes", "--remove"])
def test_an_entry_that_is_not_ours_is_left_alone(
    run: Run, write: Callable[[str, str], Path], program: str, option: str
) -> None:
    path = write(program, STRANGER[program])

    result = run("connect", program, "--yes", option)

    assert result.exit_code == 1
    assert "not ours" in result.stderr
    assert path.read_text() == STRANGER[program]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_broken_file_is_refused_with_its_line(
    run: Run, write: Callable[[str, str], Path], program: str
) -> None:
    path = write(program, BROKEN[program])

    result = run("connect", program, "--yes")

    assert result.exit_code == 1
    assert f"{path}:2: " in result.stderr
    assert path.read_text() == BROKEN[program]
    assert list(path.parent.glob("*before*")) == []


def test_what_cannot_be_rewritten_is_given_to_paste(
    run: Run, write: Callable[[str, str], Path]
) -> None:
    write("codex", "mcp_servers = { other = { command = 'x' } }\n")

    result = run("connect", "codex", "--yes")

    assert result.exit_code == 1
    assert "[mcp_servers.pynchy]" in result.stderr


def test_claude_may_call_the_tools_until_the_last_connection_is_gone(run: Run, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{\n  "permissions": {\n    "allow": ["Read"]\n  }\n}\n')
    run("connect", "claude", "--yes")
    run("connect", "claude", "--scope", "project", "--yes")

    run("connect", "claude", "--remove", "--yes")
    between = settings.read_text()
    run("connect", "claude", "--scope", "project", "--remove", "--yes")

    assert "mcp__pynchy" in between
    assert settings.read_text() == '{\n  "permissions": {\n    "allow": ["Read"]\n  }\n}\n'


def test_claude_lets_its_calls_wait_and_the_rest_of_its_environment_stays(
    run: Run, home: Path
) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    before = '{\n  "env": {\n    "EDITOR": "vi"\n  }\n}\n'
    settings.write_text(before)

    shown = run("connect", "claude", "--dry-run").stdout
    run("connect", "claude", "--yes")
    connected = json.loads(settings.read_text())["env"]
    run("connect", "claude", "--remove", "--yes")

    assert '+    "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS": "0"' in shown
    assert "counts for all MCP servers" in shown
    assert connected == {"EDITOR": "vi", "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS": "0"}
    assert settings.read_text() == before


def test_an_earlier_connection_of_claude_is_completed_by_another_run(run: Run, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    run("connect", "claude", "--yes")
    settings.write_text('{"permissions": {"allow": ["mcp__pynchy"]}}')

    assert run("connect", "claude", "--yes").exit_code == 0

    told = json.loads(settings.read_text())
    assert told["env"]["CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS"] == "0"


def test_opencode_keeps_its_comments_and_lets_the_tools_be_called(
    run: Run, files: dict[str, Path]
) -> None:
    path = files["opencode"].with_suffix(".jsonc")
    path.parent.mkdir(parents=True)
    path.write_text('{\n  // careful\n  "permission": {"*": "ask"},\n}\n')
    before = path.read_text()

    run("connect", "opencode", "--yes")
    connected = path.read_text()
    run("connect", "opencode", "--remove", "--yes")

    assert "// careful" in connected
    assert '"pynchy_*": "allow"' in connected
    assert path.read_text() == before
    assert not files["opencode"].exists()


def test_a_project_is_the_repository_and_its_group_is_named_after_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "My  site!" / "src"
    below.mkdir(parents=True)
    (below.parent / ".git").mkdir()
    monkeypatch.chdir(below)

    for program in PROGRAMS:
        told = json.loads(run("connect", program, "--scope", "project", "--yes", "--json").stdout)
        assert told["written"]
        assert told["group"] == "My-site"

    claude = json.loads((tmp_path / "home" / ".claude.json").read_text())
    assert list(claude["projects"]) == [str(below.parent)]
    assert (below.parent / ".codex" / "config.toml").exists()
    assert (below.parent / "opencode.json").exists()


def test_where_a_link_leads_is_shown(
    run: Run, write: Callable[[str, str], Path], files: dict[str, Path], tmp_path: Path
) -> None:
    target = tmp_path / "dotfiles.toml"
    target.write_text("")
    write("codex", "").unlink()
    files["codex"].symlink_to(target)

    assert f"{files['codex']} → {target}" in run("connect", "codex", "--yes").stdout
    assert "[mcp_servers.pynchy]" in target.read_text()


def test_resume_writes_the_launcher_and_keeps_one_that_is_there(run: Run, tmp_path: Path) -> None:
    settings = tmp_path / "pynchy.toml"
    settings.write_text("# mine\n[groups.web]\nchannels = ['local']\n")
    arguments = ("connect", "codex", "--scope", "project", "--group", "web", "--resume", "--yes")

    run(*arguments)
    written = settings.read_text()
    again = run(*arguments)
    settings.write_text(written.replace('"codex"', '"claude"'))
    kept = run(*arguments)

    launcher = {"kind": "process", "agent": "codex", "cwd": str(tmp_path)}
    assert written.startswith("# mine\n")
    assert tomllib.loads(written)["groups"]["web"]["launcher"] == launcher
    assert "nothing to change" in again.stdout
    assert "was kept" in kept.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("claude", "--resume"), "--scope project"),
        (("opencode", "--scope", "project", "--resume"), "does not tell"),
        (("claude", "--group", "a b"), "letters, digits"),
        (("gemini",), "is not one of"),
    ],
)
def test_what_cannot_be_is_said(run: Run, arguments: tuple[str, ...], words: str) -> None:
    result = run("connect", *arguments, "--yes")

    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize("launcher", ['"mine"', "[]", "3"])
def test_a_launcher_that_is_no_table_is_kept_and_said(
    run: Run, tmp_path: Path, launcher: str
) -> None:
    settings = tmp_path / "mine.toml"
    settings.write_text(f"[groups.web]\nlauncher = {launcher}\n")
    told = ("--scope", "project", "--group", "web", "--config", str(settings))

    result = run("connect", "claude", "--resume", *told, "--dry-run")

    assert result.exit_code == 0, result.output
    assert "[groups.web.launcher]" in result.stdout
    assert "is there already and was kept" in result.stdout


def test_claude_code_calls_a_hook_that_tells_what_a_session_missed(home: Path, run: Run) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    own = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}
    settings.write_text(json.dumps(own))

    run("connect", "claude", "--yes", "--permissions", "off")
    connected = json.loads(settings.read_text())["hooks"]
    run("connect", "claude", "--yes", "--data-dir", str(home / "other"))
    moved = json.loads(settings.read_text())["hooks"]
    run("connect", "claude", "--remove", "--yes")

    commands = {
        event: [one["hooks"][0]["command"] for one in entries]
        for event, entries in connected.items()
    }
    [command] = commands["SessionStart"]
    assert command.partition(" ")[2].startswith("hook claude")
    assert commands["Stop"] == ["say done", *commands["SessionStart"]]
    assert len(moved["SessionStart"]) == 1
    assert moved["SessionStart"][0]["hooks"][0]["command"].endswith(f"--data-dir {home}/other")
    assert json.loads(settings.read_text()) == own


def test_to_remove_what_is_not_there_needs_no_name_for_a_group(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nameless = tmp_path / "日本"
    nameless.mkdir()
    monkeypatch.chdir(nameless)

    result = run("connect", "codex", "--scope", "project", "--remove", "--yes")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "codex is not connected (project)" in result.stdout


def test_a_folder_whose_name_is_no_text_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    odd.mkdir()
    monkeypatch.chdir(odd)

    result = run("connect", "claude", "--scope", "project", "--group", "web", "--yes")

    assert result.exit_code == 1
    assert "no UTF-8 text" in result.stderr


def test_what_was_written_before_something_failed_is_said(
    run: Run, files: dict[str, Path], home: Path
) -> None:
    home.mkdir(exist_ok=True)
    (home / ".claude").write_text("in the way")

    result = run("connect", "claude", "--yes")

    assert result.exit_code == 1
    assert f"already written: {files['claude']}" in result.stderr


def connections(run: Run) -> dict[str, dict[str, Any]]:
    found = json.loads(run("doctor", "--json").stdout)
    return {one["check"]: one for one in found if one["check"].startswith(PROGRAMS)}


def test_doctor_lists_the_tools_through_each_connection(run: Run) -> None:
    for program in PROGRAMS:
        run("connect", program, "--yes")
    run("connect", "codex", "--scope", "project", "--group", "web", "--yes")

    found = connections(run)

    assert found.pop("claude permissions (user)")["status"] == "ok"
    assert set(found) == {*(f"{one} (user)" for one in PROGRAMS), "codex (project)"}
    for finding in found.values():
        assert finding["status"] == "ok", finding
        assert "ask_user, check_answer, withdraw_question" in finding["detail"]


def test_doctor_makes_no_mailbox_for_a_connected_program(run: Run, tmp_path: Path) -> None:
    def entries() -> list[Path]:
        return sorted(tmp_path.rglob("*"))

    for program in PROGRAMS:
        run("connect", program, "--yes")
    before = entries()
    found = connections(run)
    after = entries()
    for name in ("tasks", "input"):
        (tmp_path / "data" / "ipc" / "codex" / name).mkdir(parents=True)
    half = entries()
    found_half = connections(run)

    assert after == before
    assert entries() == half
    for finding in (*found.values(), *found_half.values()):
        assert finding["status"] == "ok", finding


def test_doctor_says_that_a_mailbox_cannot_be_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "ipc").mkdir(parents=True)
    (tmp_path / "data" / "ipc" / "codex").write_text("in the way")
    run("connect", "codex", "--yes")

    finding = connections(run)["codex (user)"]

    assert finding["status"] == "problem"
    assert "mailbox cannot be made" in finding["detail"]


@pytest.mark.parametrize(
    ("program", "words", "seconds"),
    [
        ("/gone/pynchy", "cannot be started", 60),
        ("#!/bin/sh\necho the disk is full >&2; exit 3\n", "the disk is full", 60),
        ("#!/bin/sh\necho hello\n", "no MCP", 60),
        ("#!/bin/sh\nexec sleep 60\n", "did not answer", 0.1),
        ("#!/bin/sh\necho '[1]'; echo '{\"id\": 0, \"error\": {}}'\n", "with an error", 60),
    ],
)
def test_doctor_says_what_keeps_the_tools_away(
    run: Run, tmp_path: Path, program: str, words: str, seconds: float
) -> None:
    path = Path(program)
    if program.startswith("#!"):
        path = tmp_path / "bin" / "pynchy"
        path.parent.mkdir()
        path.write_text(program)
        path.chmod(0o755)
    run("connect", "codex", "--yes")
    settings = tmp_path / "home" / ".codex" / "config.toml"
    settings.write_text(settings.read_text().replace(PYNCHY, str(path)))

    data = DataFolder(tmp_path / "data")
    [finding] = check_connections(data, os.environ, tmp_path, seconds)

    assert finding.status is Status.PROBLEM
    assert words in finding.detail
    assert finding.fix == "run pynchy connect codex again"


def test_doctor_warns_of_a_connection_to_another_hosts_data(run: Run, tmp_path: Path) -> None:
    run("connect", "codex", "--data-dir", str(tmp_path / "other"), "--yes")

    finding = connections(run)["codex (user)"]

    assert finding["status"] == "warning"
    assert f"it asks in {tmp_path / 'other'}" in finding["detail"]
    assert not (tmp_path / "other").exists()


def test_doctor_starts_no_stranger_from_a_projects_files(run: Run, tmp_path: Path) -> None:
    stranger = tmp_path / "pynchy"
    stranger.write_text("#!/bin/sh\ntouch started\n")
    stranger.chmod(0o755)
    command = [str(stranger), "mcp", "--group", "g"]
    servers = {"mcp": {"pynchy": {"type": "local", "command": command}}}
    (tmp_path / "opencode.json").write_text(json.dumps(servers))
    folder = tmp_path / ".codex"
    folder.mkdir()
    sly = f'command = "{PYNCHY}"\nargs = ["mcp", "--group", "g"]\nenv = {{ PYTHONPATH = "." }}\n'
    (folder / "config.toml").write_text(f"[mcp_servers.pynchy]\n{sly}")

    found = connections(run)

    assert {one["status"] for one in found.values()} == {"warning"}
    assert "not the pynchy that runs" in found["opencode (project)"]["detail"]
    assert "PYTHONPATH" in found["codex (project)"]["detail"]
    assert not (tmp_path / "started").exists()


def test_doctor_runs_no_other_command_of_pynchys_that_a_projects_file_names(
    run: Run, files: dict[str, Path], tmp_path: Path
) -> None:
    command = [PYNCHY, "connect", "claude", "--yes", "--group", "mcp"]
    servers = {"mcp": {"pynchy": {"type": "local", "command": command}}}
    (tmp_path / "opencode.json").write_text(json.dumps(servers))

    [finding] = connections(run).values()

    assert "does not start `pynchy mcp`" in finding["detail"]
    assert not files["claude"].exists()


def test_arguments_are_completed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "ipc" / "web-team" / "tasks").mkdir(parents=True)

    def complete(*words: str) -> str:
        monkeypatch.setenv("_PYNCHY_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["pynchy", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return run().stdout

    assert "opencode" in complete("connect", "o")
    assert "web-team" in complete("connect", "codex", "--group", "w")


def test_connecting_claude_says_that_it_keeps_its_own_questions(run: Run) -> None:
    told = run("connect", "claude", "--dry-run").stdout

    assert "Claude Code keeps its own AskUserQuestion" in told
    assert "--no-own-questions" in told
    assert "keeps its own" not in run("connect", "codex", "--dry-run").stdout


def test_its_own_questions_are_switched_off_and_on_again(run: Run, home: Path) -> None:
    settings = home / ".claude" / "settings.json"

    shown = run("connect", "claude", "--no-own-questions", "--yes").stdout
    denied = json.loads(settings.read_text())["permissions"]["deny"]
    again = run("connect", "claude", "--yes")
    run("connect", "claude", "--remove", "--yes")

    assert '"AskUserQuestion"' in shown
    assert denied == ["AskUserQuestion"]
    assert "nothing to change" in again.stdout
    assert "keeps its own" not in again.stdout
    assert "deny" not in settings.read_text()


def test_a_rule_that_somebody_made_themselves_survives_the_removal(run: Run, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"deny": ["AskUserQuestion"]}}')

    run("connect", "claude", "--no-own-questions", "--yes")
    run("connect", "claude", "--remove", "--yes")

    assert json.loads(settings.read_text()) == {"permissions": {"deny": ["AskUserQuestion"]}}


@pytest.mark.parametrize("first", ["user", "project"])
def test_removing_one_connection_leaves_the_questions_off_that_another_switched_off(
    run: Run, home: Path, first: str
) -> None:
    settings = home / ".claude" / "settings.json"
    second = "project" if first == "user" else "user"
    for scope in (first, second):
        run("connect", "claude", "--scope", scope, "--no-own-questions", "--yes")

    run("connect", "claude", "--scope", first, "--remove", "--yes")
    between = json.loads(settings.read_text())["permissions"]
    run("connect", "claude", "--scope", second, "--remove", "--yes")

    assert between == {"allow": ["mcp__pynchy"], "deny": ["AskUserQuestion"]}
    assert "AskUserQuestion" not in settings.read_text()


def test_a_connection_that_never_switched_its_own_questions_off_does_not_keep_them_off(
    run: Run, home: Path
) -> None:
    settings = home / ".claude" / "settings.json"
    run("connect", "claude", "--yes")
    run("connect", "claude", "--scope", "project", "--no-own-questions", "--yes")

    run("connect", "claude", "--scope", "project", "--remove", "--yes")

    assert json.loads(settings.read_text())["permissions"] == {"allow": ["mcp__pynchy"]}


def test_the_hook_of_the_connection_that_stays_is_called_after_a_removal(
    run: Run, home: Path
) -> None:
    settings = home / ".claude" / "settings.json"
    run("connect", "claude", "--no-own-questions", "--data-dir", str(home / "one"), "--yes")
    other = ("--scope", "project", "--data-dir", str(home / "two"))
    run("connect", "claude", *other, "--yes")

    def hook() -> str:
        [entry] = json.loads(settings.read_text())["hooks"]["SessionStart"]
        return str(entry["hooks"][0]["command"])

    before = hook()
    run("connect", "claude", "--remove", "--yes")
    kept = hook()
    run("connect", "claude", "--data-dir", str(home / "one"), "--yes")
    run("connect", "claude", "--remove", "--yes")

    assert before.endswith(f"--data-dir {home}/two")
    assert kept == before
    assert hook() == before


def test_removing_what_is_not_connected_changes_nothing_for_another_connection(
    run: Run, home: Path
) -> None:
    settings = home / ".claude" / "settings.json"
    run("connect", "claude", "--yes")
    settings.write_text("{}")

    removed = run("connect", "claude", "--scope", "project", "--remove", "--yes")

    assert "claude is not connected (project)" in removed.stdout
    assert settings.read_text() == "{}"


@pytest.mark.parametrize("program", ["codex", "opencode"])
def test_only_claude_has_questions_to_switch_off(run: Run, program: str) -> None:
    assert run("connect", program, "--no-own-questions", "--yes").exit_code == 2
