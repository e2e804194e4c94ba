"""What all commands share: help, lazy imports, completion, and init."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.support import Host, Run, until

from pynchy.cli import COMMANDS
from pynchy.config.loading import read_settings

OF_CHANNELS = ("slack", "whatsapp")
HEAVY = {"rich", "pydantic", "starlette", "uvicorn", "aiofiles", "tomli"}


@pytest.mark.parametrize("command", [*COMMANDS, *OF_CHANNELS])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_an_example(run: Run, command: str, flag: str) -> None:
    result = run(command, flag)

    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert r"\b" not in result.stdout


def test_the_list_of_commands_names_each(run: Run) -> None:
    listed = run("--help").stdout

    assert all(f"  {name} " in listed for name in (*COMMANDS, *OF_CHANNELS))
    assert "\n    pynchy serve " in listed


def test_a_wrong_command_gets_a_near_one_suggested(run: Run) -> None:
    result = run("pendign")

    assert result.exit_code == 2
    assert "Did you mean pending?" in result.stderr


@pytest.mark.parametrize("arguments", [["mcp", "--help"], ["--help"]])
def test_mcp_and_help_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import json, sys\nfrom pynchy.cli import cli\n"
        f"cli({arguments!r}, standalone_mode=False)\n"
        "print('\\n' + json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    loaded = set(json.loads(out.stdout.splitlines()[-1]))
    assert not loaded & HEAVY
    assert "pynchy" in loaded


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(run: Run, shell: str) -> None:
    result = run("completion", shell)

    assert result.exit_code == 0
    assert "_PYNCHY_COMPLETE" in result.stdout


def complete(words: str, data: Path, cwd: Path | None = None) -> list[str]:
    env = {"_PYNCHY_COMPLETE": "bash_complete", "COMP_WORDS": words, "PYNCHY_DATA_DIR": str(data)}
    code = "from pynchy.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env | {"COMP_CWORD": str(len(words.split(" ")) - 1), "HOME": str(data)},
        cwd=cwd,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("command", ["answer", "approve", "decline", "deny", "retry", "show"])
def test_ids_are_completed_from_the_running_host(host: Host, command: str) -> None:
    short_id = host.ask("Why?")

    assert complete(f"pynchy {command} ", host.data.path) == [short_id]
    other = Path("/nonexistent")
    assert complete(f"pynchy --data-dir {host.data.path} {command} ", other) == [short_id]


def test_sessions_are_completed_from_the_running_host(host: Host) -> None:
    host.ask("Why?", session_id="mine-1")
    host.ask("Why?", session_id="other-1")
    until(lambda: {s["state"] for s in host.client.sessions()} == {"waiting"})

    assert complete("pynchy stop ", host.data.path) == ["other-1", "mine-1"]
    assert complete("pynchy stop mi", host.data.path) == ["mine-1"]


def test_what_an_agent_wrote_is_never_completed_into_a_command_that_the_shell_runs(
    host: Host, tmp_path: Path
) -> None:
    odd = "6f1c$(touch\u00a0pwned)"
    for session_id in ("good-1", "old-1"):
        host.ask("Why?", session_id=session_id)
    host.stop()
    # Earlier versions took any id, and their records are read.
    for record in (host.data.ipc / "web-team" / "pending_questions").iterdir():
        record.write_text(record.read_text().replace("old-1", odd))
    (host.data.path / "sessions" / "web-team" / "old-1.json").unlink(missing_ok=True)
    host.start()

    def states() -> dict[str, str]:
        return {s["session_id"]: s["state"] for s in host.client.sessions()}

    until(lambda: states() == {odd: "waiting", "good-1": "waiting"})
    (host.data.ipc / "`id`" / "tasks").mkdir(parents=True)
    (tmp_path / "pynchy.toml").write_text('[groups."$(id)"]\n[groups.planned]\n')

    assert complete("pynchy stop ", host.data.path) == ["good-1"]
    assert complete("pynchy run ", host.data.path) == ["web-team"]
    host.stop()
    assert complete("pynchy run ", host.data.path, cwd=tmp_path) == ["planned", "web-team"]
    host.start()


@pytest.mark.parametrize("command", ["history --group", "ask --group", "mcp --group", "run"])
def test_groups_are_completed(host: Host, command: str) -> None:
    host.ask("Why?")

    assert complete(f"pynchy {command} ", host.data.path) == ["web-team"]
    assert complete(f"pynchy {command} x", host.data.path) == []


def test_completion_is_silent_without_a_host(tmp_path: Path) -> None:
    assert complete("pynchy answer ", tmp_path) == []
    assert complete("pynchy stop ", tmp_path) == []
    assert complete("pynchy history --group ", tmp_path) == []
    assert complete("pynchy pend", tmp_path) == ["pending"]


def test_init_writes_settings_that_are_valid_and_says_what_is_next(
    tmp_path: Path, run: Run
) -> None:
    result = run("init")

    assert result.exit_code == 0
    assert "pynchy serve" in result.stdout
    read_settings(tmp_path / "pynchy.toml")


def test_init_leaves_a_file_alone_unless_forced(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "conf" / "mine.toml"
    assert run("init", str(path)).exit_code == 0
    path.write_text("mine")

    refused = run("init", str(path))
    kept = path.read_text()
    forced = run("init", "--force", str(path))

    assert (refused.exit_code, kept) == (1, "mine")
    assert "--force" in refused.stderr
    assert forced.exit_code == 0
    assert path.read_text() != "mine"
