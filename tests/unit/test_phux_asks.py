"""What a terminal of phux asks by what is heard of it, and what is typed for an answer."""

import asyncio
import json
import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy import wire
from pynchy.errors import MalformedRequest
from pynchy.model import (
    Answer,
    Ending,
    Option,
    OutcomeKind,
    PendingQuestion,
    Question,
    RequestId,
)
from pynchy.phux import Asked
from pynchy.sources.phux_asks import (
    CLOSED,
    MAX_TYPED_BYTES,
    NO_MORE,
    SOMETHING_ELSE,
    CannotType,
    TerminalAsks,
    reported_question,
    request_id_of,
    terminal_of,
    typed_line,
)
from pynchy.sources.phux_program import MAX_LINE, PhuxFailed, PhuxMissing, PhuxProgram
from pynchy.testing import make_pending
from pynchy.typed_line import Typed, one_typed_line

AT = datetime(2026, 11, 18, tzinfo=UTC)


def heard(*lines: dict[str, Any]) -> TerminalAsks:
    asks = TerminalAsks()
    for line in lines:
        asks.hear(wire.read_phux(wire.PhuxLine, json.dumps(line).encode()))
    return asks


def asked(question: str, *suggestions: str, name: str = "q1") -> dict[str, Any]:
    told = {"event": "asked", "terminal": "@9", "id": name, "question": question}
    return {**told, "suggestions": list(suggestions), "elapsed_seconds": None}


def titled(title: str | None) -> dict[str, Any]:
    return {"event": "title_changed", "terminal": "@9", "title": title}


CLOSES = {"event": "pane_closed", "terminal": "@9", "exit_status": None}
SENTINEL = titled("phux-ask[q1]:Go??s=y")


@pytest.mark.parametrize(
    ("lines", "question", "serial"),
    [
        ([], None, 0),
        ([asked("Go?")], "Go?", 1),
        ([asked("Go?"), asked("Go?")], "Go?", 1),
        ([asked("Go?"), {"event": "bell"}, {"event": "idle"}], "Go?", 1),
        ([SENTINEL, asked("Go?", "y"), SENTINEL], "Go?", 1),
        ([asked("Go?"), asked("Stop?")], "Stop?", 2),
        ([asked("Go?", "y"), asked("Go?", "y", "n")], "Go?", 2),
        ([asked("Go?", name="a"), asked("Go?", name="b")], "Go?", 2),
        ([asked("Go?"), titled("bash")], None, 0),
        ([asked("Go?"), titled(None)], None, 0),
        ([asked("Go?"), titled("bash"), asked("Go?")], "Go?", 2),
        ([asked("Go?"), CLOSES], None, 0),
    ],
)
def test_what_stands_is_what_was_heard_last(
    lines: list[dict[str, Any]], question: str | None, serial: int
) -> None:
    ask = heard(*lines).ask

    assert (ask.asked.question, ask.serial) == (question, serial) if ask else question is None


@pytest.mark.parametrize(
    ("last", "why"), [(titled("bash"), NO_MORE), (CLOSES, CLOSED), (asked("Stop?"), SOMETHING_ELSE)]
)
def test_what_is_over_says_why(last: dict[str, Any], why: str) -> None:
    assert heard(asked("Go?"), last).why_over == why


def test_what_is_no_word_about_asking_leaves_it_silent() -> None:
    assert heard({"event": "bell"}, SENTINEL).is_silent
    assert not heard(titled("bash")).is_silent


def test_the_title_of_a_card_is_the_last_one_that_asks_nothing() -> None:
    asks = heard(titled("make \x1b[31mdeploy\x07 " + "x" * 500), SENTINEL, asked("Go?"))

    assert asks.title.startswith("make [31mdeploy x")
    assert len(asks.title) == 200


def test_a_title_that_is_found_asks_as_a_line_does() -> None:
    asks = TerminalAsks()

    asks.find_title("phux-ask[q1]:Go??s=y| n")
    found = asks.ask
    asks.hear(wire.read_phux(wire.PhuxLine, json.dumps(asked("Go?", "y", "n")).encode()))

    assert found is not None
    assert found.is_found
    assert asks.ask is found


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        (["Yes", "No"], ["Yes", "No"]),
        (["Yes", "", "  ", "\u200b", "No"], ["Yes", "No"]),
        (["Yes", "yes", "YES ", "Y\u200bes", "No", "No"], ["Yes", "No"]),
        (["x" * 501, "y" * 500], ["y" * 500]),
        (["a\x1bb", "a\nb", "c"], ["c"]),
        ([str(n) for n in range(20)], [str(n) for n in range(16)]),
        ([" y ", "-n"], ["y", "-n"]),
    ],
)
def test_a_suggestion_that_nobody_could_choose_is_left_out(
    offered: list[str], kept: list[str]
) -> None:
    question = wire.phux_question(Asked("", "Go?", tuple(offered)))

    assert list(question.labels) == kept
    assert all(option.value in offered for option in question.options)
    assert question.takes_words_alone


@pytest.mark.parametrize("question", ["", "  ", "x" * 20_001])
def test_what_cannot_be_asked_is_refused(question: str) -> None:
    with pytest.raises(MalformedRequest):
        wire.phux_question(Asked("", question))


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"7", b'{"event": 1}', b'{"event": "asked", "suggestions": [1]}', b"\xff"],
)
def test_a_line_that_is_none_of_phux_is_malformed(line: bytes) -> None:
    with pytest.raises(MalformedRequest):
        wire.read_phux(wire.PhuxLine, line)


def test_an_id_that_no_command_could_name_is_none() -> None:
    assert wire.phux_ask_id(Asked("q1", "Go?")) == "q1"
    assert wire.phux_ask_id(Asked("x" * 129, "Go?")) == ""
    assert wire.phux_ask_id(Asked("a\x00b", "Go?")) == ""


def test_an_id_tells_terminal_words_and_count_apart() -> None:
    one = Asked("q1", "Go?", ("y",))
    ids = {
        request_id_of("@9", one, 0),
        request_id_of("@9", one, 1),
        request_id_of("@8", one, 0),
        request_id_of("@9", replace(one, question="Stop?"), 0),
        request_id_of("@9", replace(one, suggestions=()), 0),
    }

    assert len(ids) == 5
    assert request_id_of("@9", one, 0) in ids
    assert {terminal_of(one) for one in ids} == {"@9", "@8"}
    assert all(wire.usable_id(one) for one in ids)


def test_an_id_of_somebody_else_names_no_terminal() -> None:
    assert terminal_of(RequestId("phux-9-short")) == ""
    assert terminal_of(RequestId("0123")) == ""


@pytest.mark.parametrize(
    ("ask_id", "key"),
    [
        ("pynchy:web.team:ab12", ("web.team", "ab12")),
        ("pynchy:web:ab12#2", ("web", "ab12")),
        ("pynchy:web:ab12#x", None),
        ("pynchy:web:", None),
        ("pynchy:../x:ab12", None),
        ("xpynchy:web:ab12", None),
        ("q1", None),
        ("", None),
    ],
)
def test_an_id_of_ours_names_its_question(ask_id: str, key: tuple[str, str] | None) -> None:
    assert reported_question(ask_id) == key


def answered(*selected: str, text: str | None = None) -> PendingQuestion:
    question = Question("Go?", options=(Option("y", value=" y "), Option("n")))
    ending = Ending(OutcomeKind.ANSWERED, AT, (Answer(selected, text),))
    return replace(make_pending("a"), questions=(question,), ending=ending)


@pytest.mark.parametrize(
    ("pending", "line"),
    [
        (answered("y"), (" y ", True)),
        (answered("n"), ("n", True)),
        (answered(text=" later\nplease "), ("later please", False)),
        (answered("n", text="never"), ("n, never", False)),
    ],
)
def test_what_is_typed_is_the_choice_or_the_words(
    pending: PendingQuestion, line: tuple[str, bool]
) -> None:
    assert typed_line(pending) == line


@pytest.mark.parametrize(
    "pending",
    [
        answered(),
        answered(text="\x07\n"),
        answered(text="é" * (MAX_TYPED_BYTES // 2 + 1)),
        replace(answered(), ending=None),
    ],
)
def test_what_is_no_line_is_not_typed(pending: PendingQuestion) -> None:
    with pytest.raises(CannotType):
        typed_line(pending)


@given(st.text())
def test_a_line_has_no_character_that_a_terminal_obeys(text: str) -> None:
    line = one_typed_line(text)

    assert all(ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0 for c in line)
    assert "\u2028" not in line
    assert line.encode() is not None


@pytest.mark.parametrize("end", ["\x1b[201~", "\x1b[200~", "\x9b201~"])
def test_the_marks_of_a_paste_are_taken_out(end: str) -> None:
    assert one_typed_line(f"a{end}b") == "ab"


def program(tmp_path: Path, script: str) -> PhuxProgram:
    """Return a phux that is played by some lines of Python."""
    path = tmp_path / "phux"
    path.write_text(f"#!{sys.executable} -IS\nimport os, sys, time\n{script}\n")
    path.chmod(0o755)
    return PhuxProgram(str(path), tmp_path / "a socket", {"PATH": "/usr/bin:/bin"})


async def test_lines_come_in_pieces_and_long_ones_are_dropped(tmp_path: Path) -> None:
    phux = program(
        tmp_path,
        f"for part in (b'on', b'e\\ntwo\\n', b'x' * {3 * MAX_LINE}, b'x\\nthree\\n', b'rest'):\n"
        "    os.write(1, part)",
    )

    async with phux.watching("@9") as lines:
        found = [line async for line in lines]

    assert found == [b"one", b"two", None, b"three"]


async def test_a_watch_that_is_left_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    phux = program(tmp_path, "os.fork()\nprint(os.getpgid(0), flush=True)\ntime.sleep(600)")

    async with phux.watching("@9") as lines:
        group = int(await anext(lines) or b"0")
        await anext(lines)

    with pytest.raises(ProcessLookupError):
        await asyncio.to_thread(_wait_for_end, group)


def _wait_for_end(group: int) -> None:
    for _ in range(3_000):
        os.killpg(group, 0)
        time.sleep(0.01)


async def test_a_program_that_tells_without_end_is_stopped(tmp_path: Path) -> None:
    phux = program(tmp_path, "while True:\n    os.write(1, b'x' * 65536)")

    with pytest.raises(PhuxFailed, match="phux ls tells too much"):
        await phux.terminals()


async def test_a_program_that_does_not_end_may_have_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.sources.phux_program._TYPE_SECONDS", 0.01)
    phux = program(tmp_path, "time.sleep(600)")

    result = await phux.answer("@9", "q1", "yes", is_offered=True)

    assert result is not None
    assert (result.typed, result.why) == (Typed.MAYBE, "phux agent does not end")


async def test_a_program_that_is_not_there_types_nothing(tmp_path: Path) -> None:
    phux = PhuxProgram("phux", None, {"PATH": str(tmp_path)})

    assert (await phux.paste("@9", "yes")).typed is Typed.NO
    with pytest.raises(PhuxMissing, match="there is no program phux here"):
        await phux.terminals()


async def test_a_phux_without_a_list_of_terminals_is_too_old(tmp_path: Path) -> None:
    phux = program(tmp_path, 'print(\'{"schema_version": 1, "sessions": []}\')')

    with pytest.raises(PhuxFailed, match="a newer one is needed"):
        await phux.terminals()


async def test_terminals_of_other_machines_are_left_alone(tmp_path: Path) -> None:
    phux = program(tmp_path, 'print(\'{"terminals": ["@1", "mini/@2", "-x", "@3;", "@4"]}\')')

    assert await phux.terminals() == ["@1", "@4"]


async def test_the_socket_of_the_settings_is_used(tmp_path: Path) -> None:
    phux = program(tmp_path, f"open({str(tmp_path / 'args')!r}, 'w').write(repr(sys.argv[1:]))")

    await phux.paste("@9", "--help")

    socket = f"--socket={tmp_path}/a socket"
    assert (tmp_path / "args").read_text() == repr(["paste", socket, "--", "@9", "--help"])
