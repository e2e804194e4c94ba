"""`pynchy status`, and `pynchy inbox` where there is no terminal."""

import http.client
import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from tests.unit.cli.support import Host, Run, start_pynchy, until

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
            "waiting": 1,
            "urgent": 0,
            "undelivered": 0,
        }


def test_without_a_host_the_bar_stays_whole_and_a_person_is_told(run: Run) -> None:
    line, told, as_json = run("status", "--line"), run("status"), run("status", "--json")

    assert (line.exit_code, line.stdout, line.stderr) == (0, "\n", "")
    assert told.exit_code == as_json.exit_code == 5
    assert "pynchy serve" in told.stderr


def test_a_host_that_says_something_else_leaves_the_bar_empty(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.datafolder.DataFolder._read_token", lambda _: "not the token")
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


def test_only_the_screen_needs_textual(host: Host) -> None:
    host.ask(DEPLOY)
    program = (
        "import sys; from pynchy.cli import cli\n"
        "cli(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'textual', 'rich', 'pydantic', 'starlette', 'http.client', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, "status", "--line"],
        env={**os.environ, "PYNCHY_DATA_DIR": str(host.data.path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert printed == "🔔 1\n[]\n"
