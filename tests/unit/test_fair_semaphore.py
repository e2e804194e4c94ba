"""Groups take turns at what only so many may do at once."""

import asyncio
import threading
from contextlib import suppress

import pytest
from tests.waiting import DEADLINE_SECONDS, until

from pynchy.aio import FairSemaphore, FairThreads
from pynchy.model import GroupName

A, B, C = GroupName("a"), GroupName("b"), GroupName("c")


class Line:
    """People who stand in line, each until told to go; `served` is the order of their turns."""

    def __init__(self, turns: FairSemaphore) -> None:
        self._turns = turns
        self._go: dict[str, asyncio.Event] = {}
        self.served: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def stand(self, name: str, group: GroupName) -> None:
        self._go[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._wait(name, group))
        await settle()

    async def go(self, name: str) -> None:
        self._go[name].set()
        await settle()

    async def _wait(self, name: str, group: GroupName) -> None:
        async with self._turns.turn(group):
            self.served.append(name)
            await self._go[name].wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_no_more_than_so_many_at_once() -> None:
    line = Line(FairSemaphore(2))

    for name, group in (("a1", A), ("b1", B), ("c1", C)):
        await line.stand(name, group)

    assert line.served == ["a1", "b1"]
    await line.go("a1")
    assert line.served == ["a1", "b1", "c1"]


async def test_a_group_whose_runners_never_say_a_word_held_up_the_others() -> None:
    line = Line(FairSemaphore(4))
    for number in range(6):
        await line.stand(f"a{number}", A)

    await line.stand("b1", B)
    served = [*line.served]
    await line.stand("b2", B)
    await line.go("b1")

    assert served == ["a0", "a1", "a2", "b1"]
    assert line.served == [*served, "b2"]  # not a3: the last place is for who has none


async def test_one_place_alone_is_left_to_nobody() -> None:
    line = Line(FairSemaphore(1))
    await line.stand("a1", A)

    await line.go("a1")
    await line.stand("a2", A)

    assert line.served == ["a1", "a2"]


async def test_groups_take_turns_however_many_one_group_has_waiting() -> None:
    line = Line(FairSemaphore(1))
    for name in ("a1", "a2", "a3", "a4"):
        await line.stand(name, A)
    for name, group in (("b1", B), ("c1", C), ("b2", B)):
        await line.stand(name, group)

    while len(line.served) < 7:
        await line.go(line.served[-1])

    assert line.served == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_who_goes_away_while_waiting_takes_no_turn() -> None:
    line = Line(FairSemaphore(1))
    for name, group in (("a1", A), ("a2", A), ("b1", B)):
        await line.stand(name, group)

    line.tasks["a2"].cancel()
    await settle()
    await line.go("a1")

    assert line.served == ["a1", "b1"]


async def test_who_goes_away_just_when_served_passes_the_turn_on() -> None:
    turns = FairSemaphore(1)
    line = Line(turns)
    await line.stand("a1", A)
    await line.stand("a2", A)
    await line.stand("b1", B)

    line._go["a1"].set()  # noqa: SLF001 - without letting the served one run
    await asyncio.sleep(0)
    line.tasks["a2"].cancel()
    await settle()

    assert line.served == ["a1", "b1"]


async def test_a_failure_gives_the_place_back() -> None:
    turns = FairSemaphore(1)

    with pytest.raises(ValueError, match="oh no"):
        async with turns.turn(A):
            raise ValueError("oh no")

    async with asyncio.timeout(5), turns.turn(A):
        pass


async def test_who_holds_a_place_too_long_holds_up_nobody_and_gives_it_back_once() -> None:
    line = Line(FairSemaphore(1, longest_seconds=0.0))
    await line.stand("a1", A)
    await line.stand("b1", B)
    await until(lambda: line.served == ["a1", "b1"], "the other group's turn")
    turns = FairSemaphore(1, longest_seconds=0.0)
    async with turns.turn(A), asyncio.timeout(5), turns.turn(B):
        pass

    strict = Line(turns)
    turns._longest_seconds = 60.0  # noqa: SLF001 - so that only its own end frees a place
    for name in ("a1", "a2"):
        await strict.stand(name, A)

    assert strict.served == ["a1"]


async def test_work_of_one_group_that_never_ends_held_up_the_others() -> None:
    threads = FairThreads(2, DEADLINE_SECONDS, "test")
    go = threading.Event()
    tasks = [asyncio.create_task(threads.run(A, go.wait)) for _ in range(5)]
    await settle()

    assert await threads.run(B, lambda: "done") == "done"

    go.set()
    assert await asyncio.gather(*tasks) == [True] * 5


async def test_work_that_was_given_up_counts_for_its_group_until_it_ends() -> None:
    threads = FairThreads(2, 0.01, "test")
    go = threading.Event()
    begun: list[None] = []

    def hang() -> None:
        begun.append(None)
        go.wait(DEADLINE_SECONDS)

    for _ in range(4):
        with pytest.raises(TimeoutError):
            await threads.run(A, hang)
    assert len(begun) == 2

    async def is_served() -> bool:
        with suppress(TimeoutError):
            return await threads.run(A, lambda: True)
        return False

    go.set()
    await until(is_served, "the group's turn after its work has ended")


async def test_a_group_without_a_name_has_its_turn_too() -> None:
    async with FairSemaphore(1).turn(GroupName("")):
        pass
