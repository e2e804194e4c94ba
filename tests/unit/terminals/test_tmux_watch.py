"""What a title asks from one look to the next, with a tmux that says what it is told to."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pynchy.terminals import tmux
from pynchy.terminals.foreground import Foreground
from pynchy.terminals.tmux import TmuxWatch, _Pane, _PaneAsk
from pynchy.terminals.tmux_panes import TYPED, PaneSeen
from pynchy.terminals.tmux_server import TmuxServer
from pynchy.terminals.watching import RETITLED
from pynchy.typed_line import Typed, TypingResult

ASKING = PaneSeen("%1", 42, "000", "", "/dev/null", "s:0.0", "phux-ask:One?")


class Watched(TmuxWatch):
    """Notes what is begun, said and done."""

    def __init__(self) -> None:
        self.said: list[str] = []
        super().__init__(TmuxServer(), Path(), str, self.said.append)
        self.begun: list[_PaneAsk] = []
        self.done: list[str] = []
        self.looks = 0

    @property
    def is_detached(self) -> bool:
        return False

    def begin(self, standing: _PaneAsk) -> None:
        self.begun.append(standing)

    async def look(self) -> None:
        self.looks += 1
        standing = self.begun[-1]
        standing.pane.look(standing.pane.seen)

    async def do(self, command: str) -> list[str]:
        self.done.append(command)
        return [TYPED]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """A watch for whose panes one program is in front, which may be typed at."""
    monkeypatch.setattr(tmux, "group_in_front_of", lambda _: 7)
    monkeypatch.setattr(tmux, "look_at", lambda group: Foreground(group, "100"))
    monkeypatch.setattr(tmux, "why_not_typed", lambda *_: "")
    monkeypatch.setattr(tmux, "waits_for_input", lambda _: True)
    return Watched()


async def test_a_title_that_is_seen_again_begins_nothing(watch: Watched) -> None:
    pane = _Pane(watch, ASKING)

    assert not pane.look(ASKING)
    assert not pane.look(replace(ASKING, flags="010"))

    assert [one.asked.question for one in watch.begun] == ["One?"]


async def test_an_answer_is_not_typed_for_the_question_that_came_in_that_moment(
    watch: Watched,
) -> None:
    pane = _Pane(watch, ASKING)
    pane.look(replace(ASKING, title="phux-ask:Two?"))
    first, second = watch.begun

    assert await first.type_line("Yes") == TypingResult(Typed.NO, RETITLED)
    assert watch.done == []
    assert await second.type_line("No") == TypingResult(Typed.YES)
    assert len(watch.done) == 2


async def test_an_answer_that_waits_looks_again_only_when_somebody_else_has(
    watch: Watched,
) -> None:
    pane = _Pane(watch, replace(ASKING, flags="010"))
    waiting = asyncio.create_task(watch.begun[0].until_typable())
    for _ in range(50):
        await asyncio.sleep(0)
    assert watch.looks == 1

    pane.look(ASKING)

    assert await waiting == ""
    assert watch.looks == 2


async def test_an_answer_waits_for_a_program_that_does_not_read(
    watch: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = [False, True]
    monkeypatch.setattr(tmux, "waits_for_input", lambda _: reads.pop(0))
    pane = _Pane(watch, ASKING)
    waiting = asyncio.create_task(watch.begun[0].until_typable())
    for _ in range(50):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert "the program does not wait for input" in watch.said[-1]

    pane.look(ASKING)

    assert await waiting == ""


async def test_our_own_terminal_asks_nothing(
    watch: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmux, "group_in_front_of", lambda _: os.getpgrp())

    _Pane(watch, ASKING)

    assert watch.begun == []
    assert watch.said == ["s:0.0  not asked: it is our own terminal"]


async def test_without_its_program_in_front_there_is_no_enter(
    watch: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Pane(watch, ASKING)
    in_front = [7, 8]
    monkeypatch.setattr(tmux, "group_in_front_of", lambda _: in_front.pop(0))

    attempt = await watch.begun[0].type_line("Yes")

    assert attempt.typed is Typed.MAYBE
    assert [("-p -d" in line, "-r -d" in line) for line in watch.done] == [(True, False)]
