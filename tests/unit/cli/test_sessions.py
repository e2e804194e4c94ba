"""`pynchy run --follow`, seen from its terminal."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.support import Host, Run, start_pynchy, until

from pynchy.config import Settings

WORK = "import time; print('at work', flush=True); time.sleep(60)"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    launcher = {"command": [sys.executable, "-c", WORK], "cwd": str(tmp_path), "term_grace": 1}
    return Settings.model_validate(
        {"http": {"port": 0}, "groups": {"web-team": {"launcher": launcher}}}
    )


def test_ctrl_c_detaches_says_so_and_leaves_the_session_alone(host: Host, run: Run) -> None:
    process = start_pynchy(
        host,
        *("run", "web-team", "Mend it", "--follow"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    first = process.stdout.readline()

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    [session] = host.client.sessions()
    assert first == "at work\n"
    assert process.returncode == 130
    assert "Detached; the session goes on" in err
    assert f"pynchy stop {session['session_id']}" in err
    assert session["state"] == "working"
    assert run("stop", session["session_id"]).stdout == f"{session['session_id']}: stopped\n"
    until(lambda: host.client.sessions()[0]["state"] == "ended")


def test_the_command_that_is_told_at_detaching_has_an_odd_id_quoted(host: Host) -> None:
    odd = "6f1c$(id)\u202e"
    host.ask("Why?", session_id="old-1")
    host.stop()
    for record in (host.data.ipc / "web-team" / "pending_questions").iterdir():
        record.write_text(record.read_text().replace("old-1", odd))
    host.start()
    until(lambda: any(s["session_id"] == odd for s in host.client.sessions()))
    process = start_pynchy(host, "log", odd, "--follow", stderr=subprocess.PIPE)
    until(lambda: _follows(process.pid))

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert err.rstrip().endswith("pynchy stop '6f1c$(id)⟨U+202E⟩'")


def _follows(pid: int) -> bool:
    """True once the process has the thread that hears what happens."""
    return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1


def test_the_session_of_a_command_is_started_with_a_prompt_from_stdin(host: Host, run: Run) -> None:
    process = start_pynchy(
        host, "run", "web-team", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    out, _ = process.communicate("Mend it\nall of it\n", timeout=30)

    [session] = host.client.sessions()
    assert (process.returncode, out) == (0, f"{session['session_id']}\n")
    assert (session["task"], session["agent"]) == ("Mend it", "")
    fields = run("sessions").stdout.rstrip("\n").split("\t")
    assert (fields[3], fields[6]) == ("working", "none: it runs as you, and could answer itself")
    run("stop", session["session_id"])


def test_how_isolated_a_session_was_is_not_claimed_once_its_launcher_is_gone(
    host: Host, run: Run
) -> None:
    session_id = run("run", "web-team", "Mend it").stdout.strip()
    run("stop", session_id)
    host.stop()
    host.settings = Settings.model_validate({"http": {"port": 0}})
    host.start()

    view = host.client.session(session_id)

    assert view["isolation"].startswith("not known: pynchy started it by a launcher")


def test_the_log_is_all_that_was_printed_and_can_be_followed_to_the_end(
    host: Host, run: Run
) -> None:
    session_id = run("run", "web-team", "Mend it").stdout.strip()
    until(lambda: run("log", session_id[:8]).stdout == "at work\n")
    process = start_pynchy(
        host, "log", session_id, "-f", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    run("stop", session_id)
    _, err = process.communicate(timeout=30)

    assert first == "at work\n"
    assert "Ended" in err
    assert run("log", session_id).stdout == "at work\n"
    assert run("log", "nobody").exit_code == 1


def test_a_session_that_printed_nothing_says_so(host: Host, run: Run) -> None:
    host.ask("Why?", session_id="mine-1")
    until(host.client.sessions)

    result = run("log", "mine-1")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing" in result.stderr


def test_without_a_session_it_is_said_how_to_start_one(host: Host, run: Run) -> None:
    del host

    assert "pynchy run" in run("sessions").stdout
    assert run("sessions", "--json").stdout == "[]\n"
