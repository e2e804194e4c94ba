"""Turns at a service: in order, at a pace, and not in a queue for one that never answers."""

import asyncio

import pytest

from pynchy.channels.rate_limit import RateLimiter
from pynchy.errors import NotShown
from pynchy.model import GroupName

A, B = GroupName("a"), GroupName("b")


async def lose(turns: RateLimiter, began: asyncio.Event, go: asyncio.Event) -> None:
    async with turns.turn(A):
        began.set()
        await go.wait()
        raise TimeoutError


async def test_who_waited_through_a_service_that_never_answers_is_sent_away_at_once() -> None:
    turns = RateLimiter("Chat", 0.0, TimeoutError)
    began, go = asyncio.Event(), asyncio.Event()
    queue = [asyncio.create_task(lose(turns, began, go)) for _ in range(5)]
    await began.wait()
    await asyncio.sleep(0)
    go.set()

    ends = await asyncio.gather(*queue, return_exceptions=True)

    assert [type(end) for end in ends] == [*[TimeoutError] * 3, *[NotShown] * 2]
    assert "Chat does not answer" in str(ends[-1])


async def test_who_comes_later_may_try_again() -> None:
    turns = RateLimiter("Chat", 0.0, TimeoutError)
    for _ in range(4):
        with pytest.raises(TimeoutError):
            async with turns.turn(A):
                raise TimeoutError

    passed = False
    async with turns.turn(A):
        passed = True

    assert passed


async def test_the_first_turn_is_free_on_a_machine_that_was_just_switched_on() -> None:
    turns = RateLimiter("Chat", 3600.0, TimeoutError)

    async with asyncio.timeout(5), turns.turn(A):
        pass


async def test_a_turn_that_is_given_up_is_free_for_the_next() -> None:
    turns = RateLimiter("Chat", 3600.0, TimeoutError)
    async with turns.turn(A):
        pass

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), turns.turn(A):
            pass

    async with asyncio.timeout(5):
        await turns.free()


async def take(turns: RateLimiter, group: GroupName, done: list[GroupName]) -> None:
    async with turns.turn(group):
        done.append(group)


async def test_a_card_that_nobody_waits_for_any_more_costs_its_group_no_turn() -> None:
    turns = RateLimiter("Chat", 0.0, TimeoutError)
    done: list[GroupName] = []
    async with turns.turn(B):
        impatient = asyncio.create_task(take(turns, A, done))
        queue = [asyncio.create_task(take(turns, group, done)) for group in (A, B, A)]
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.wait([impatient])

    await asyncio.gather(*queue)

    assert done == [A, B, A]


async def test_a_turn_that_is_given_up_as_it_comes_goes_to_the_next() -> None:
    turns = RateLimiter("Chat", 0.0, TimeoutError)
    done: list[GroupName] = []
    async with turns.turn(A):
        given_up = asyncio.create_task(take(turns, A, done))
        patient = asyncio.create_task(take(turns, B, done))
        await asyncio.sleep(0)
    given_up.cancel()

    async with asyncio.timeout(5):
        await patient

    assert done == [B]


async def test_who_waits_for_the_present_message_does_not_wait_for_all_the_others() -> None:
    turns = RateLimiter("Chat", 3600.0, TimeoutError)
    async with turns.turn(A):
        others = [asyncio.create_task(take(turns, A, [])) for _ in range(3)]
        watching = asyncio.create_task(turns.free())
        await asyncio.sleep(0)
        assert not watching.done()

    async with asyncio.timeout(5):
        await watching

    for task in others:
        task.cancel()
    await asyncio.wait(others)


async def test_a_long_queue_is_told_and_a_short_one_is_not() -> None:
    turns = RateLimiter("Chat", 1.0, TimeoutError)
    told: list[str | None] = []
    async with turns.turn(A):
        queue = [asyncio.create_task(take(turns, B, [])) for _ in range(59)]
        await asyncio.sleep(0)
        told.append(turns.backlog())
        queue.append(asyncio.create_task(take(turns, A, [])))
        await asyncio.sleep(0)
        told.append(turns.backlog())
        for task in queue:
            task.cancel()
        await asyncio.wait(queue)
        told.append(turns.backlog())

    words = "60 messages wait their turn, 59 of them from group b, one every 1 s at most"
    assert told == [None, words, None]
