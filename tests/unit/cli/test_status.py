"""`pynchy status`, and `pynchy inbox` where there is no terminal."""

import fcntl
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.unit.cli.support import Host, Run, start_pynchy, until

from pynchy import status_line
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder, SettingsSource, data_dir
from pynchy.errors import NoHost
from pynchy.status_line import _data_dir

DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}


def test_the_line_is_empty_where_there_is_nothing_to_tell(host: Host, run: Run) -> None:
    del host
    result = run("status", "--line")

    assert (result.exit_code, result.stdout) == (0, "\n")


def test_the_line_counts_agents_at_work_and_questions(host: Host, run: Run) -> None:
    host.ask(DEPLOY)
    asker = start_pynchy(host, "ask", "Which name?", stderr=subprocess.PIPE)
    with asker:
        until(lambda: run("status", "--line").stdout == "🤖 1 🔔 2\n")
        asker.kill()
    until(lambda: run("status", "--line").stdout == "🔔 2\n")


def test_a_person_is_told_in_a_few_lines(host: Host, run: Run) -> None:
    host.ask(DEPLOY, urgency="high")

    told = run("status").stdout

    assert "host         running\n" in told
    assert "waiting      1, 1 of them urgent\n" in told
    assert "pynchy inbox" in told


def test_programs_get_json(host: Host, run: Run) -> None:
    host.ask(DEPLOY)

    for options in (["--json"], ["--json", "--line"]):
        told = json.loads(run("status", *options).stdout)
        assert told == {
            "status": "ok",
            "problems": [],
            "agents": 0,
            "agents_waiting": 0,
            "agents_working": 0,
            "agents_idle": 0,
            "agents_unknown": 0,
            "waiting": 1,
            "urgent": 0,
            "undelivered": 0,
            "permissions_pending": 0,
            "permissions_guessed": 0,
            "questions_pending": 1,
            "todos": 0,
        }


def test_without_a_host_the_bar_stays_whole_and_a_person_is_told(run: Run) -> None:
    line, told, as_json = run("status", "--line"), run("status"), run("status", "--json")

    assert (line.exit_code, line.stdout, line.stderr) == (0, "\n", "")
    assert told.exit_code == as_json.exit_code == 5
    assert "pynchy serve" in told.stderr


def test_a_host_that_does_not_answer_is_told_of_in_the_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    data = DataFolder(tmp_path)
    data.make()
    monkeypatch.setattr(status_line, "_LINE_SECONDS", 0.1)

    with data.locked(), socket.create_server(("127.0.0.1", 0)) as silent:
        data.token()
        data.announce(f"http://127.0.0.1:{silent.getsockname()[1]}")
        status_line.show_line(["status", "--line", "--data-dir", str(tmp_path)], {})

    assert capfd.readouterr().out == "⚠ pynchy does not answer\n"


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[socket.socket]:
    """Listens at the port of a host that was killed, whose data folder is `tmp_path`."""
    data = DataFolder(tmp_path)
    data.make()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        with data.locked():
            data.token()
            data.announce(f"http://127.0.0.1:{stranger.getsockname()[1]}", SettingsSource())
        stranger.setblocking(False)  # noqa: FBT003 - as it is called
        yield stranger


def test_the_token_is_not_told_to_who_has_the_port_of_a_killed_host_while_the_next_one_starts(
    tmp_path: Path, stranger: socket.socket, capfd: pytest.CaptureFixture[str]
) -> None:
    with DataFolder(tmp_path).locked():
        status_line.show_line(["status", "--line", "--data-dir", str(tmp_path)], {})
        with pytest.raises(NoHost):
            HostClient.of(DataFolder(tmp_path))

    assert capfd.readouterr().out == "\n"
    with pytest.raises(BlockingIOError):
        stranger.accept()


def test_the_token_is_not_told_in_the_moment_after_the_next_host_has_the_lock(
    tmp_path: Path, stranger: socket.socket, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (tmp_path / "host.json").exists()

    with (tmp_path / "host.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status_line.show_line(["status", "--line", "--data-dir", str(tmp_path)], {})
        with pytest.raises(NoHost):
            HostClient.of(DataFolder(tmp_path))
        assert DataFolder(tmp_path).origin() is None

    assert capfd.readouterr().out == "\n"
    with pytest.raises(BlockingIOError):
        stranger.accept()


def test_a_host_of_an_earlier_version_is_still_found(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    data.make()
    with data.locked():
        data.token()
        (tmp_path / "host.json").write_text('{"url": "http://127.0.0.1:1", "pid": 1}')

        assert data.host().url == "http://127.0.0.1:1"


def test_a_host_that_says_something_else_leaves_the_bar_empty(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.data_dir.DataFolder._read_token", lambda _: "not the token")
    assert host.data

    assert run("status", "--line").stdout == "\n"
    assert run("status").exit_code == 1


@pytest.mark.parametrize("path", ["/api/status", "/api/inbox/settings"])
def test_nobody_is_told_without_the_token(host: Host, path: str) -> None:
    address = urlsplit(host.data.host().url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
    connection.request("GET", path)

    assert connection.getresponse().status == 401
    connection.close()


def test_without_a_terminal_the_inbox_is_printed_once(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    result = run("inbox")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"{short_id}\tweb-team\tDeploy?\tYes / No")
    assert "pynchy answer ID VALUE" in result.stderr


def test_an_inbox_without_a_host_says_how_to_start_one(run: Run) -> None:
    result = run("inbox")

    assert result.exit_code == 5
    assert "pynchy serve" in result.stderr


def glance(folder: str, *words: str, code: str = "", **environ: str) -> str:
    """Run the line as a status bar does, as a process of its own."""
    program = f"from pynchy.__main__ import main; main(); {code}"
    told = {name: value for name, value in os.environ.items() if name != "PYNCHY_DATA_DIR"}
    words = words or ("status", "--line")
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**told, **({"PYNCHY_DATA_DIR": folder} if folder else {}), **environ},
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    ).stdout


def test_the_line_loads_nothing_heavy_nor_the_command_line(host: Host) -> None:
    host.ask(DEPLOY)
    heavy = "{'textual', 'rich', 'pydantic', 'click', 'pathlib', 'http.client', 'dataclasses'}"
    code = f"import sys; print(sorted({heavy} & set(sys.modules)))"

    printed = glance(str(host.data.path), code=code)

    assert printed == "🔔 1\n[]\n"


def test_the_line_finds_the_folder_by_every_way_of_saying_it(host: Host, tmp_path: Path) -> None:
    host.ask(DEPLOY)
    folder, nowhere = str(host.data.path), str(tmp_path / "nowhere")
    (tmp_path / "share").mkdir()
    (tmp_path / "share" / "pynchy").symlink_to(folder)

    said = [
        glance(folder),
        glance(nowhere, "status", "--line", "--data-dir", folder),
        glance(nowhere, "--data-dir", nowhere, "status", f"--data-dir={folder}", "--line"),
        glance("", XDG_DATA_HOME=str(tmp_path / "share")),
        glance(folder, PYTHONIOENCODING="ascii"),
    ]

    assert said == ["🔔 1\n"] * 5


@pytest.mark.parametrize("name", ["host.json", "token", "host.lock"])
@pytest.mark.parametrize("content", ["", '{"url": 1}', "[]", '{"url": "http://[::1]:99999"}'])
def test_the_line_stays_empty_whatever_is_in_the_folder(
    host: Host, name: str, content: str
) -> None:
    folder = host.data.path
    copy = folder.parent / "copy"
    copy.mkdir()
    for file in ("host.json", "token", "host.lock"):
        (copy / file).write_bytes((folder / file).read_bytes())
    (copy / name).write_text(content)

    with (copy / "host.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        printed = glance(str(copy))

    assert printed == "\n"


def test_the_line_complains_to_nobody_who_has_gone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    command = [sys.executable, "-m", "pynchy", "status", "--line", "--data-dir", str(tmp_path)]
    with os.fdopen(writer, "wb") as gone:
        told = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=True)

    assert told.stderr == b""


@pytest.mark.parametrize("variables", [("HOME",), ("HOME", "XDG_DATA_HOME"), ("PYNCHY_DATA_DIR",)])
@pytest.mark.parametrize("value", ["/a/b", "a", "", "/a/"])
def test_the_line_looks_where_every_other_command_looks(
    variables: tuple[str, ...], value: str
) -> None:
    environ = {"HOME": "/home/x"} | dict.fromkeys(variables, value)

    found = Path(_data_dir([], environ))

    assert found == data_dir(None, environ)
