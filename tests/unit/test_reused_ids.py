"""An id whose question was closed and forgotten is used again: nothing of before counts."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.core import make_core
from tests.unit.test_ledger import KEY, YES, two_hosts
from tests.waiting import DEADLINE_SECONDS, until

from pynchy.bridge.lifecycle import Delivered
from pynchy.config import Settings
from pynchy.core import Core
from pynchy.model import DeliveryPath, Ending, OutcomeKind, State
from pynchy.sources.base import CODEX_TERMINAL
from pynchy.testing import NOON, FakeChannel, FakeClock, make_pending


async def forget_history(core: Core) -> None:
    assert await core.store.prune(NOON + timedelta(days=999), 0) == 1


async def test_an_answer_was_never_delivered_whose_id_another_host_had_closed_before(
    tmp_path: Path,
) -> None:
    async with two_hosts(tmp_path) as (one, _):
        asked = make_pending(source="gone")
        await one.ledger.record(asked)
        await one.ledger.end(KEY, YES)
        await until(lambda: one.ledger.get(KEY).state is State.UNDELIVERED, "it to be kept")
        [stored] = await one.store.load()
        await one.store.close(stored.pending, stored.revision)
        await until(lambda: one.index.get(KEY) is None, "the host to see that")
        await forget_history(one)

        await one.ledger.record(asked)
        await one.ledger.end(KEY, YES)

        await until(lambda: one.ledger.get(KEY).state is State.UNDELIVERED, "the second answer")


@pytest.fixture
def core(tmp_path: Path) -> Core:
    (tmp_path / "ipc").mkdir()
    return make_core(tmp_path, FakeClock(), Settings(), {"local": FakeChannel("local")})


async def test_a_question_asked_again_was_an_orphan_because_its_first_asker_had_left(
    core: Core,
) -> None:
    asked = make_pending(source=CODEX_TERMINAL, cards=())
    await core.ledger.record(asked)
    await core.ledger.end(KEY, Ending(OutcomeKind.CLEARED, NOON))
    await core.rejoined.see_through(KEY)
    core.rejoined.lose(KEY)
    await core.ledger.close(KEY)
    await forget_history(core)

    await core.ledger.record(asked)

    assert await core.expiry.sweep(dry_run=True) == []


async def test_who_waited_for_a_change_waited_on_after_the_question_was_closed(core: Core) -> None:
    await core.ledger.record(make_pending(cards=()))
    version = core.ledger.version(KEY)
    await core.ledger.end(KEY, Ending(OutcomeKind.CLEARED, NOON))
    await core.ledger.apply(KEY, Delivered(DeliveryPath.NONE, NOON))
    await core.ledger.close(KEY)

    await core.ledger.changed(KEY, version, DEADLINE_SECONDS)
    closed = core.ledger.version(KEY)
    core.ledger.notify(KEY)

    assert closed == core.ledger.version(KEY)
    assert closed != version
