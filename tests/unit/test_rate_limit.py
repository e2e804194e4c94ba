"""Turns at a service: in order, at a pace, and not in a queue for one that never answers."""

import asyncio

import pytest

from pynchy.channels.rate_limit import RateLimiter
from pynchy.errors import NotShown


async def lose(turns: RateLimiter, began: asyncio.Event, go: asyncio.Event) -> None:
    async with turns:
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
            async with turns:
                raise TimeoutError

    passed = False
    async with turns:
        passed = True

    assert passed


async def test_the_first_turn_is_free_on_a_machine_that_was_just_switched_on() -> None:
    turns = RateLimiter("Chat", 3600.0, TimeoutError)

    async with asyncio.timeout(5), turns:
        pass


async def test_a_turn_that_is_given_up_is_free_for_the_next() -> None:
    turns = RateLimiter("Chat", 3600.0, TimeoutError)
    async with turns:
        pass

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), turns:
            pass

    async with asyncio.timeout(5):
        await turns.free()
