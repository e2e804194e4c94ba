"""Every store keeps the same promises; a new backend joins by the fixture."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pynchy.errors import DuplicateRequest
from pynchy.model import (
    Answer,
    DeliveryPath,
    Ending,
    GroupName,
    OutcomeKind,
    PendingQuestion,
    RequestId,
    ShortId,
    State,
)
from pynchy.pending.base import Conflict, HistoryQuery
from pynchy.pending.files import FileStore
from pynchy.testing import NOON, MemoryStore, make_pending

YES = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="ana", channel="local")
NO = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("No",)),), by="ben", channel="local")

Store = FileStore | MemoryStore


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    (tmp_path / "ipc").mkdir()
    return FileStore(tmp_path / "ipc") if request.param == "files" else MemoryStore()


def closed(request_id: str, **changes: Any) -> PendingQuestion:
    ending = changes.pop("ending", YES)
    return make_pending(
        request_id,
        state=State.CLOSED,
        ending=ending,
        delivered=DeliveryPath.LIVE,
        delivered_at=NOON,
        **changes,
    )


async def test_a_recorded_question_is_loaded_as_it_was(store: Store) -> None:
    pending = make_pending()

    await store.record(pending)

    (stored,) = await store.load()
    assert stored.pending == pending
    assert stored.ending is None


async def test_an_id_is_recorded_once_in_its_group(store: Store) -> None:
    await store.record(make_pending())

    with pytest.raises(DuplicateRequest):
        await store.record(make_pending(title="another"))
    await store.record(make_pending(group=GroupName("g2"), short_id="s2"))

    assert len(await store.load()) == 2


async def test_the_first_ending_wins_and_later_ones_are_told_it(store: Store) -> None:
    pending = make_pending()
    await store.record(pending)

    first = await store.end(pending, YES)
    second = await store.end(pending, NO)

    assert first == YES
    assert second == YES
    (stored,) = await store.load()
    assert stored.ending == YES


async def test_of_twelve_endings_at_once_exactly_one_wins(store: Store) -> None:
    pending = make_pending()
    await store.record(pending)
    tried = [Ending(OutcomeKind.ANSWERED, NOON, by=f"p{n}") for n in range(12)]

    told = await asyncio.gather(*(store.end(pending, ending) for ending in tried))

    assert len(set(told)) == 1
    assert told[0] in tried


async def test_an_update_is_what_is_loaded(store: Store) -> None:
    pending = make_pending()
    revision = await store.record(pending)
    changed = make_pending(call_waits=False, title="later")

    await store.update(changed, revision)

    (stored,) = await store.load()
    assert stored.pending == changed


async def test_a_closed_question_is_found_in_history_and_no_longer_loaded(store: Store) -> None:
    pending = make_pending()
    revision = await store.record(pending)
    await store.end(pending, YES)

    await store.close(closed("q1"), revision)

    assert await store.load() == []
    assert await store.find(GroupName("g1"), RequestId("q1")) == closed("q1")
    assert await store.find(GroupName("g1"), RequestId("other")) is None
    assert await store.with_short_id(ShortId("sq1")) == closed("q1")
    assert await store.with_short_id(ShortId("none")) is None
    assert await store.with_request_id(RequestId("q1")) == [closed("q1")]
    assert await store.with_request_id(RequestId("../q1")) == []


async def test_a_closed_id_cannot_be_asked_again(store: Store) -> None:
    pending = make_pending()
    revision = await store.record(pending)
    await store.end(pending, YES)
    await store.close(closed("q1"), revision)

    with pytest.raises(DuplicateRequest):
        await store.record(pending)


async def test_history_is_newest_first_and_filtered(store: Store) -> None:
    declined = Ending(OutcomeKind.DECLINED, NOON, by="ana")
    for number, ending in enumerate([YES, declined, YES]):
        pending = make_pending(f"q{number}", short_id=f"s{number}")
        revision = await store.record(pending)
        await store.end(pending, ending)
        await store.close(closed(f"q{number}", short_id=f"s{number}", ending=ending), revision)

    everything = await store.recent(HistoryQuery())
    some = await store.recent(HistoryQuery(limit=1, outcome=OutcomeKind.ANSWERED))
    none = await store.recent(HistoryQuery(group=GroupName("g2")))
    oldest = await store.recent(HistoryQuery(limit=1, words=("S0",)))

    assert [p.request_id for p in everything] == ["q2", "q1", "q0"]
    assert [p.request_id for p in some] == ["q2"]
    assert none == []
    assert [p.request_id for p in oldest] == ["q0"]


async def test_what_is_past_its_retention_is_forgotten(store: Store) -> None:
    pending = make_pending()
    revision = await store.record(pending)
    await store.end(pending, YES)
    await store.close(closed("q1"), revision)

    kept = await store.prune(NOON - timedelta(days=1), 10**9)
    removed = await store.prune(NOON + timedelta(days=10_000), 10**9)

    assert (kept, removed) == (0, 1)
    assert await store.recent(HistoryQuery()) == []
    await store.record(pending)


async def test_a_write_that_is_based_on_an_older_revision_changes_nothing(store: Store) -> None:
    revision = await store.record(make_pending())
    await store.update(make_pending(title="first"), revision)

    with pytest.raises(Conflict):
        await store.update(make_pending(title="second"), revision)
    with pytest.raises(Conflict):
        await store.close(closed("q1"), revision)

    stored = await store.get(make_pending().key)
    assert stored is not None
    assert stored.pending.title == "first"
    assert stored.revision > revision


async def test_a_question_is_got_with_its_ending_until_it_is_closed(store: Store) -> None:
    pending = make_pending()
    revision = await store.record(pending)
    await store.end(pending, YES)

    stored = await store.get(pending.key)
    await store.close(closed("q1"), revision)

    assert stored is not None
    assert (stored.pending, stored.ending, stored.revision) == (pending, YES, revision)
    assert await store.get(pending.key) is None
