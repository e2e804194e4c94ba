"""The source of phux where phux, the disk or the people have too much to do."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest
from tests.waiting import until

from pynchy.config import PhuxSourceSettings
from pynchy.model import PendingQuestion
from pynchy.pending.base import Key
from pynchy.pending.index import PendingIndex
from pynchy.sources import phux, running
from pynchy.sources.base import MAX_OPEN, SourceHandler, SourceQuestion, TypingRoute
from pynchy.sources.phux import PhuxSource
from pynchy.sources.phux_program import PhuxFailed, PhuxProgram
from pynchy.testing import make_pending
from pynchy.wire import PHUX


class PlayedPhux:
    """A program whose every word comes from the test."""

    def __init__(self, *terminals: str) -> None:
        self.names = list(terminals)
        self.lines: dict[str, asyncio.Queue[bytes]] = {}

    async def terminals(self) -> list[str]:
        return self.names

    async def title(self, terminal: str) -> str | None:
        del terminal
        return None

    @asynccontextmanager
    async def watching(self, terminal: str) -> AsyncIterator[AsyncIterator[bytes]]:
        queue = self.lines.setdefault(terminal, asyncio.Queue())

        async def lines() -> AsyncIterator[bytes]:
            while line := await queue.get():
                yield line

        yield lines()

    async def ask(self, terminal: str, question: str) -> None:
        await until(lambda: terminal in self.lines, "somebody who watches")
        told = {"event": "asked", "terminal": terminal, "id": "q", "question": question}
        self.lines[terminal].put_nowait(json.dumps(told).encode())


class Ledger:
    """Records what is asked and cleared; fails as often as it is told to."""

    def __init__(self) -> None:
        self.index = PendingIndex()
        self.questions: list[str] = []
        self.cleared_ids: list[str] = []
        self.failures = 0

    async def find(self, key: Key) -> PendingQuestion | None:
        return self.index.get(key)

    async def asked(self, source: str, question: SourceQuestion) -> None:
        self._fail()
        fields: dict[str, Any] = {"group": question.group, "questions": question.questions}
        self.index.put(make_pending(question.request_id, source=source, **fields))
        self.questions.append(question.questions[0].text)

    async def cleared(self, source: str, group: Any, request_id: Any, reason: str) -> None:
        del source, reason
        self._fail()
        self.index.remove((group, request_id))
        self.cleared_ids.append(request_id)

    def lose(self, key: Key) -> None:
        del key

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phux, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(phux, "_CALM_SECONDS", 0)
    monkeypatch.setattr(running, "_RETRY_SECONDS", 0)


@asynccontextmanager
async def following(ledger: Ledger, program: PlayedPhux) -> AsyncIterator[PhuxSource]:
    route = cast("TypingRoute", ledger)
    table = PhuxSourceSettings(group="g1")
    source = PhuxSource(table, route, ledger.index, ledger.find, {})
    source.program = cast("PhuxProgram", program)
    task = asyncio.create_task(source.run(cast("SourceHandler", ledger)))
    try:
        yield source
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_of_a_flood_only_some_are_asked_and_the_last_one_stands(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phux, "_BURST", 2)
    monkeypatch.setattr(phux, "_PER_SECOND", 50.0)
    program = PlayedPhux("@9")

    async with following(ledger, program):
        for number in range(1_000):
            await program.ask("@9", f"Number {number}?")
        await until(lambda: "Number 999?" in ledger.questions, "the last one")

    assert len(ledger.questions) < 1_000
    assert len(ledger.questions) == len(ledger.cleared_ids) + 1


async def test_no_more_is_open_than_a_person_can_see(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    program = PlayedPhux("@9", "@8")
    for number in range(MAX_OPEN):
        ledger.index.put(make_pending(f"phux-8-{number:024x}", source=PHUX))

    async with following(ledger, program):
        await program.ask("@9", "Too much?")
        await until(lambda: "phux.too_many_questions" in caplog.messages, "the refusal")

    assert ledger.questions == []


async def test_terminals_beyond_the_limit_are_told_of(ledger: Ledger) -> None:
    program = PlayedPhux(*(f"@{number}" for number in range(MAX_OPEN + 2)))

    async with following(ledger, program) as source:
        await until(lambda: source.warnings, "the warning")
        assert source.warnings == (f"phux has {MAX_OPEN + 2} terminals: {MAX_OPEN} are followed",)
        program.names = program.names[:3]
        await until(lambda: not source.warnings, "its end")

    assert source.problem is None


async def test_a_full_disk_is_waited_for(ledger: Ledger) -> None:
    program = PlayedPhux("@9")
    ledger.failures = 3

    async with following(ledger, program):
        await program.ask("@9", "Deploy?")
        await until(lambda: ledger.questions == ["Deploy?"], "the question")
        ledger.failures = 3
        program.names = []
        await until(lambda: len(ledger.cleared_ids) == 1, "its end")


async def test_a_watch_that_ends_again_and_again_is_a_problem(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PlayedPhux("@9")

    @asynccontextmanager
    async def ends(terminal: str) -> AsyncIterator[None]:
        raise PhuxFailed(f"{terminal} cannot be watched")
        yield

    monkeypatch.setattr(program, "watching", ends)
    async with following(ledger, program) as source:
        await until(lambda: source.problem, "the problem")

    assert source.problem == "phux: phux watch @9 ends again and again"


async def test_what_another_group_was_asked_is_ended(ledger: Ledger) -> None:
    program = PlayedPhux("@9")
    ledger.index.put(make_pending("phux-9-" + "0" * 24, source=PHUX, group="g2"))
    ledger.index.put(make_pending("phux-9-" + "1" * 24, source=PHUX, group="g1"))

    async with following(ledger, program):
        await until(lambda: ledger.cleared_ids, "the end of the other group's")

    assert ledger.cleared_ids == ["phux-9-" + "0" * 24]
