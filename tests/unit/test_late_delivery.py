"""What can happen to an answer at the moment in which the host resumes its session."""

import asyncio
import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_runner_limits import COMMAND, GROUP, House, a_house
from tests.waiting import until

from pynchy.bridge import workers
from pynchy.bridge.resume import Arrived
from pynchy.ipc.leases import read_boot_id
from pynchy.model import (
    Answer,
    DeliveryPath,
    Ending,
    Late,
    OutcomeKind,
    PendingQuestion,
    RequestId,
    SessionId,
    State,
)
from pynchy.testing import FakeChannel, make_pending
from pynchy.tracking.control import Wanted


class Rival:
    """A process of the agent that takes the receipt right before the host would."""

    def __init__(self, house: House, patch: pytest.MonkeyPatch, lease: str) -> None:
        self._mailbox = house.core.mailboxes.of(GROUP)
        self._house, self._lease = house, lease
        self._claim = self._mailbox.claim
        self.tasks = self._mailbox.tasks.path
        self.claims = 0
        patch.setattr(self._mailbox, "claim", self._claim_second)

    def _claim_second(self, request_id: RequestId, claim: str, at: datetime) -> bool:
        self.claims += 1
        if self.claims == 1:
            taken = {"v": 1, "by": "waiter", "lease": self._lease}
            (self.tasks / f"{request_id}.received").write_text(json.dumps(taken))
        return self._claim(request_id, claim, at)

    def pass_on(self, pending: PendingQuestion) -> None:
        (self.tasks / f"{pending.request_id}.passed").touch()
        self._house.core.ledger.notify(pending.key)

    @contextmanager
    def living(self) -> Iterator[None]:
        path = self.tasks / f"{self._lease}.lease"
        path.write_text(json.dumps({"v": 1, "boot_id": read_boot_id(), "session_id": "other"}))
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield


async def test_an_answer_was_lost_whose_taker_died_when_the_host_came_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(tmp_path, **COMMAND) as house:
        rival = Rival(house, monkeypatch, "dead")
        pending = await house.ask("s1", with_default=False)

        await house.answer(pending)
        await house.lives("s1")
        house.runner_on("s1").finish()

        closed = await house.closed(pending)
        assert closed.delivered is DeliveryPath.LATE
        assert closed.late.taker_died
        assert rival.claims == 2


async def test_a_taker_that_was_faster_than_the_host_has_the_answer_when_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(tmp_path, **COMMAND) as house:
        rival = Rival(house, monkeypatch, "living")
        with rival.living():
            pending = await house.ask("s1", with_default=False)
            await house.answer(pending)
            await house.comes_to(pending, State.RESUMING)
            await until(lambda: rival.claims, "the host's own claim")
            before = house.core.ledger.get(pending.key).delivered

            rival.pass_on(pending)

            closed = await house.closed(pending)
        assert before is None
        assert closed.delivered is DeliveryPath.LIVE
        assert rival.claims == 1
        assert house.launcher.runners == []


async def test_a_question_with_many_attempts_was_stuck_in_resuming(tmp_path: Path) -> None:
    async with a_house(tmp_path, **COMMAND, attempts=5_000) as house:
        pending = await house.ask("s1", with_default=False)
        known = house.core.ledger.get(pending.key)
        house.core.index.put(replace(known, late=replace(known.late, attempts=4_000)))
        await house.answer(pending)
        await house.lives("s1")

        house.runner_on("s1").finish("exit code 1")

        await until(lambda: house.core.ledger.get(pending.key).late.retry_at, "a next attempt")


@pytest.mark.parametrize("is_own", [True, False])
async def test_an_answer_vanished_whose_id_was_that_of_an_ended_session(
    tmp_path: Path, *, is_own: bool
) -> None:
    async with a_house(tmp_path, **COMMAND) as house:
        session = await house.core.control.start(Wanted(GROUP, "Mend the roof"))
        house.runner_on(session.session_id).finish()
        await house.lives()
        asker = session.session_id if is_own else SessionId("other")
        ending = Ending(OutcomeKind.ANSWERED, house.clock.now(), (Answer(("Yes",)),), "ana")
        pending = make_pending(session.session_id, session_id=asker)
        await house.core.ledger.record(pending)

        # So a host leaves it that dies when it has taken the receipt, and has started nothing.
        begun = Late(claim="c", attempts=1)
        left = replace(pending, state=State.RESUMING, ending=ending, late=begun)
        house.core.index.put(left)
        resuming = asyncio.ensure_future(house.core.late.resume(left))

        await house.lives(asker)
        house.runner_on(asker).finish()
        assert await resuming == Arrived(DeliveryPath.LATE)


async def test_a_card_that_was_being_settled_when_the_answer_arrived_was_left_for_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_RETRY_MAX_SECONDS", 10_000.0)
    may_settle, settle_card = asyncio.Event(), FakeChannel.settle_card

    async def settle_later(*args: Any, **named: Any) -> None:
        await may_settle.wait()
        await settle_card(*args, **named)

    monkeypatch.setattr(FakeChannel, "settle_card", settle_later)
    async with a_house(tmp_path, **COMMAND) as house:
        pending = await house.ask("s1", with_default=False)
        await house.comes_to(pending, State.OPEN)
        await house.answer(pending)
        await house.lives("s1")
        house.runner_on("s1").finish()
        await until(lambda: house.core.ledger.get(pending.key).delivered, "the answer to arrive")

        may_settle.set()

        assert (await house.closed(pending)).delivered is DeliveryPath.LATE
