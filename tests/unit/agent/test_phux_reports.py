"""Reports to phux, in whose terminal an agent asks: beside the question, and never in its way."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.standins.phux import PhuxStandIn
from tests.unit.agent.conftest import Mailbox
from tests.waiting import until

from agent_runner.asking import (
    Approval,
    Asker,
    Option,
    Outcome,
    Permission,
    Question,
    Request,
    RequestId,
    TerminalAsk,
    phux,
)

PREFIX = "pynchy:web-team"


@pytest.fixture
def program(tmp_path: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> PhuxStandIn:
    """Be in terminal 9 of a phux, with a host that wants reports."""
    program = PhuxStandIn(tmp_path / "phux")
    program.start("@9")
    monkeypatch.setenv("PHUX_TERMINAL_ID", "9")
    monkeypatch.delenv("PHUX_SOCKET", raising=False)
    monkeypatch.setenv("PATH", f"{program.folder}:/usr/bin:/bin")
    tell(mailbox, phux_prefix=PREFIX)
    return program


def tell(mailbox: Mailbox, **told: Any) -> None:
    (mailbox.input / "host.json").write_text(json.dumps({"v": 1, "wait_seconds": 30, **told}))


async def ask(mailbox: Mailbox, *questions: Question, **fields: Any) -> Request:
    request = Request(questions, **fields)
    mailbox.respond(request.request_id)
    async with Asker(mailbox.path) as asker:
        assert (await asker.ask(request)).outcome is Outcome.ANSWERED
    return request


async def reports(program: PhuxStandIn, count: int = 1) -> list[list[str]]:
    await until(lambda: len(program.calls("ask")) >= count, "the reports")
    assert program.refused() == ""
    return program.calls("ask")


async def test_each_question_of_a_request_is_reported_under_an_id_of_its_own(
    mailbox: Mailbox, program: PhuxStandIn
) -> None:
    first = Question("Deploy?", options=(Option("Yes"), Option("No")))

    request = await ask(mailbox, first, Question("When?"))

    name = f"--id={PREFIX}:{request.request_id}"
    assert await reports(program, 2) == [
        ["ask", name, "--suggest=Yes", "--suggest=No", "--", "@9", "Deploy?"],
        ["ask", f"{name}#2", "--", "@9", "When?"],
    ]


async def test_the_socket_of_the_terminal_is_named(
    mailbox: Mailbox, program: PhuxStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHUX_SOCKET", "/run/some where/-x.sock")
    monkeypatch.setenv("PHUX_TERMINAL_ID", "@9")

    await ask(mailbox, Question("Deploy?"))

    [report] = await reports(program)
    assert report[2:] == ["--socket=/run/some where/-x.sock", "--", "@9", "Deploy?"]


async def test_no_text_becomes_an_option_or_a_command(
    mailbox: Mailbox, program: PhuxStandIn
) -> None:
    labels = ("--json", "-x", "=", "$(id)", "a\x00b", "\x07", "\ud800", "é" * 300)
    hostile = Question("--socket=/evil `id`\x1b]0;title\x07\nand more", options=_options(*labels))

    await ask(mailbox, hostile)

    [report] = await reports(program)
    assert report[-1] == "--socket=/evil `id` ]0;title and more"
    offered = [one.removeprefix("--suggest=") for one in report if one.startswith("--suggest")]
    assert offered[:6] == ["--json", "-x", "=", "$(id)", "a b", "\ufffd"]
    assert offered[6].endswith("é…")
    assert len(offered[6].encode()) <= 512


async def test_what_is_too_long_is_cut_as_phux_takes_it(
    mailbox: Mailbox, program: PhuxStandIn
) -> None:
    many = Question("é" * 5_000, options=_options(*(str(number) for number in range(30))))

    await ask(mailbox, many)

    [report] = await reports(program)
    assert len(report[-1].encode()) <= 4_096
    assert report[-1].endswith("é…")
    assert sum(one.startswith("--suggest=") for one in report) == 16


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"approval": Approval("Deploy to production")}, "Deploy to production"),
        ({"permission": Permission("claude", "Bash", {"command": "ls"})}, "May claude use Bash?"),
    ],
)
async def test_approvals_and_permissions_are_reported_without_suggestions(
    mailbox: Mailbox, program: PhuxStandIn, fields: dict[str, Any], text: str
) -> None:
    request = await ask(mailbox, **fields)

    [report] = await reports(program)
    assert report == ["ask", f"--id={PREFIX}:{request.request_id}", "--", "@9", text]


@pytest.mark.parametrize(
    ("environ", "told", "fields"),
    [
        ({}, {}, {}),
        ({"PHUX_TERMINAL_ID": ""}, {"phux_prefix": PREFIX}, {}),
        ({"PHUX_TERMINAL_ID": "9; id"}, {"phux_prefix": PREFIX}, {}),
        ({}, {"phux_prefix": PREFIX}, {"terminal": TerminalAsk("q1")}),
        ({}, {"phux_prefix": "pynchy:" + "g" * 64}, {"request_id": RequestId("r" * 64)}),
        ({"PATH": "/nowhere"}, {"phux_prefix": PREFIX}, {}),
    ],
    ids=["off", "no terminal", "odd terminal", "by a title", "long id", "no phux"],
)
async def test_nothing_is_reported_where_it_should_not_be(  # noqa: PLR0913, PLR0917 - fixtures
    mailbox: Mailbox,
    program: PhuxStandIn,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    told: dict[str, str],
    fields: dict[str, Any],
) -> None:
    made: list[list[str]] = []
    monkeypatch.setattr(phux, "_call", lambda command, _: made.append(command))
    monkeypatch.setattr(phux, "Thread", _AtOnce)
    tell(mailbox, **told)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    await ask(mailbox, Question("Deploy?"), **fields)

    assert made == []
    assert program.calls() == []


async def test_what_is_sent_again_is_reported_once(
    mailbox: Mailbox, program: PhuxStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []
    monkeypatch.setattr(phux, "_call", lambda command, _: made.append(command))
    monkeypatch.setattr(phux, "Thread", _AtOnce)
    request = Request((Question("Deploy?"),))

    async with Asker(mailbox.path) as asker:
        await asker.ask(request, wait=False)
        await asker.ask(request, wait=False)

    assert [command[0] for command in made] == [str(program.command)]


async def test_a_phux_that_hangs_does_not_hold_up_the_question(
    mailbox: Mailbox, program: PhuxStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever waited for the report would wait for ever.
    monkeypatch.setattr(phux, "_SECONDS", 600.0)
    pid_file = hang(program, tmp_path)

    await ask(mailbox, Question("Deploy?"))

    pid = int(await until(lambda: pid_file.exists() and pid_file.read_text(), "the report"))
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_there(pid), "its end, and no zombie")


def test_a_phux_that_hangs_is_killed(
    program: PhuxStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phux, "_SECONDS", 0.5)
    hang(program, tmp_path)

    phux._call([str(program.command)], dict(os.environ))  # noqa: SLF001 - returns when it is gone

    assert program.calls() == []


def hang(program: PhuxStandIn, folder: Path) -> Path:
    """Let phux hang; return the file that says which process does."""
    pid_file = folder / "pid"
    script = f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))"
    program.command.write_text(f"#!{sys.executable} -IS\n{script}\ntime.sleep(600)\n")
    return pid_file


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("content", ["not a program", "#!/nowhere\n"])
async def test_a_phux_that_cannot_be_started_is_no_matter(
    mailbox: Mailbox, program: PhuxStandIn, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr(phux, "Thread", _AtOnce)
    program.command.write_text(content)

    await ask(mailbox, Question("Deploy?"))

    assert program.calls() == []


async def test_a_process_without_room_for_a_thread_asks_all_the_same(
    mailbox: Mailbox, program: PhuxStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phux, "Thread", _NoThread)

    await ask(mailbox, Question("Deploy?"))

    assert program.calls() == []


def _options(*labels: str) -> tuple[Option, ...]:
    return tuple(Option(label) for label in labels)


class _AtOnce:
    """A thread that has done its work when it has been started."""

    def __init__(self, target: Any, args: Any, *, daemon: bool) -> None:
        assert daemon
        self.start = lambda: target(*args)


class _NoThread:
    """A thread that cannot be started."""

    def __init__(self, **_: Any) -> None:
        pass

    def start(self) -> None:
        raise RuntimeError("can't start new thread")
