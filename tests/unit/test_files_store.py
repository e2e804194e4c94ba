"""What only the file store must bear: crashes between two writes, and damage."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pynchy import wire
from pynchy.model import Answer, DeliveryPath, Ending, GroupName, OutcomeKind, State
from pynchy.pending.base import HistoryQuery
from pynchy.pending.files import FileStore
from pynchy.safe_folder import Folder
from pynchy.testing import NOON, make_pending

YES = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="ana")


async def test_a_crash_between_history_and_removal_is_finished(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.record(make_pending())
    over = make_pending(
        state=State.CLOSED, ending=YES, delivered=DeliveryPath.LIVE, delivered_at=NOON
    )
    Folder(tmp_path, "g1", "history").replace("q1.json", wire.pending_json(over))

    loaded = await FileStore(tmp_path).load()

    assert loaded == []
    assert not (tmp_path / "g1/pending_questions/q1.json").exists()
    assert [p.request_id for p in await store.recent(HistoryQuery())] == ["q1"]


async def test_leftovers_of_dead_writers_are_removed_on_load(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.record(make_pending())
    record = tmp_path / "g1/pending_questions/q1.json"
    os.link(record, record.with_name(".tmp-dead"))

    (stored,) = await FileStore(tmp_path).load()

    assert stored.pending == make_pending()
    assert [p.name for p in record.parent.iterdir()] == ["q1.json"]


async def test_a_damaged_record_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.record(make_pending())
    await store.record(make_pending("q2", short_id="s2"))
    (tmp_path / "g1/pending_questions/q1.json").write_text('{"v": 1, "timestamp": "never"}')

    again = FileStore(tmp_path)
    loaded = await again.load()

    assert [stored.pending.request_id for stored in loaded] == ["q2"]
    assert again.damaged == [str(tmp_path / "g1/pending_questions/q1.json")]


async def test_a_question_survives_the_removal_of_its_groups_folder(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    pending = make_pending()
    revision = await store.record(pending)
    for path in sorted((tmp_path / "g1").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (tmp_path / "g1").rmdir()

    await store.update(pending, revision)

    (stored,) = await FileStore(tmp_path).load()
    assert stored.pending == pending


async def test_host_files_and_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    pending = make_pending()
    await store.record(pending)
    await store.end(pending, YES)

    modes = {p.name: oct(p.stat().st_mode & 0o777) for p in (tmp_path / "g1").rglob("*")}

    assert modes == {
        "pending_questions": "0o700",
        "outcomes": "0o700",
        "history": "0o700",
        "q1.json": "0o600",
    }


async def test_the_record_has_the_documented_fields(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.record(make_pending(agent="claude", task="release"))

    raw = wire.read_envelope(
        (tmp_path / "g1/pending_questions/q1.json").read_bytes().replace(b'"v":1', b'"type":"x"'),
        "q1",
    ).body

    assert {
        "request_id", "short_id", "kind", "questions", "agent", "task", "chat_jid", "session_id",
        "channel_name", "message_id", "timestamp", "wait_until", "expires_at", "state",
    } <= raw.keys()  # fmt: skip
    assert raw["questions"][0]["question"] == "Deploy?"
    assert GroupName(raw["group"]) == "g1"


async def test_a_group_with_much_history_costs_another_group_none(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    loud = [make_pending(f"q{n}", group=GroupName("loud"), title="x" * 500) for n in range(8)]
    quiet = make_pending("q9", group=GroupName("quiet"), short_id="qu1t")
    for pending in [quiet, *loud]:
        revision = await store.record(pending)
        await store.end(pending, YES)
        await store.close(replace(pending, state=State.CLOSED, ending=YES), revision)

    removed = await store.prune(NOON - timedelta(days=1), 4_000)

    left = await store.recent(HistoryQuery())
    assert 0 < removed < len(loud)
    assert "quiet" in {pending.group for pending in left}
    assert left[0].request_id == "q7"


async def test_a_host_that_lost_its_folder_took_questions_that_the_next_one_never_saw(
    tmp_path: Path,
) -> None:
    owners = iter([True, False, False, False, False])
    store = FileStore(tmp_path, lambda: next(owners))
    revision = await store.record(make_pending())

    for write in (
        store.record(make_pending("q2", short_id="s2")),
        store.update(make_pending(title="another"), revision),
        store.end(make_pending(), YES),
        store.close(make_pending(), revision),
    ):
        with pytest.raises(OSError, match="another host"):
            await write

    (stored,) = await FileStore(tmp_path).load()
    assert (stored.pending, stored.ending) == (make_pending(), None)
