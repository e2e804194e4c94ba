"""Bugs that were found by reading, each under the name of its symptom."""

import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from tests.prove.world import KEPT, World

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.errors import DuplicateRequest, MalformedRequest
from pynchy.events import Event, EventKind
from pynchy.folder import Folder
from pynchy.model import GroupName, Reply, RequestId
from pynchy.pending.files import FileStore
from pynchy.pending.index import PendingIndex
from pynchy.pending.short_ids import ShortIds
from pynchy.testing import NOON, FakeClock, FakeLauncher, make_pending

GROUP = GroupName(KEPT)
Q0 = RequestId("q0")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    (tmp_path / "ipc").mkdir()
    world = World(tmp_path, FakeLauncher(), FakeClock())
    await world.start()
    yield world
    await world.stop()


def ask(*questions: dict[str, object], **fields: object) -> bytes:
    body = {"v": 1, "type": "ask_user:ask", "request_id": "q0", "questions": questions}
    return json.dumps(body | fields).encode()


async def test_a_default_does_not_overrule_somebody_who_has_begun_to_answer(world: World) -> None:
    yes = {"question": "Drop the table?", "options": ["Yes", "No"], "default": "Yes"}
    await world.take(KEPT, "q0", ask(yes, {"question": "Why?", "default": "tidy"}))
    await world.answering.answer(Reply("q0", "ana", "local", ("No",), question=1))

    world.clock.move(timedelta(hours=1))
    await world.expiry.end_due()
    still_open = world.desk.get((GROUP, Q0)).ending
    world.clock.move(timedelta(days=8))
    await world.expiry.end_due()

    ending = world.desk.get((GROUP, Q0)).ending
    assert still_open is None
    assert ending is not None
    assert (ending.outcome, ending.answers) == ("expired", ())
    assert ending.reason == "only partly answered in time, by ana"


async def test_a_swept_default_has_its_answers(world: World) -> None:
    await world.take(KEPT, "q0", ask({"question": "Go?", "default": "no"}, wait_seconds=60))
    world.clock.move(timedelta(hours=1))

    (finding,) = await world.expiry.sweep(dry_run=False)

    assert finding.ending is not None
    assert [answer.text for answer in finding.ending.answers] == ["no"]


async def test_an_id_under_which_a_request_was_refused_is_used_up(world: World) -> None:
    mailbox = world.mailboxes.of(GROUP)
    mailbox.respond(Q0, wire.error_json(Q0, "no"))

    with pytest.raises(DuplicateRequest):
        await world.take(KEPT, "q0", ask({"question": "Go?"}))

    assert world.index.get((GROUP, Q0)) is None


def test_a_request_id_cannot_pass_for_anothers_short_id() -> None:
    index = PendingIndex()
    index.put(make_pending("q1", short_id="ab2c"))
    index.put(make_pending("ab2c", group=GroupName("evil"), short_id="xy3z"))

    assert index.resolve("ab2c").request_id == "q1"


def test_threads_never_get_the_same_short_id(tmp_path: Path) -> None:
    ids = ShortIds(Folder(tmp_path), lambda _: False)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: ids.make(), range(20_000)))

    assert len(set(made)) == len(made)


async def test_a_damaged_outcome_is_reported_and_its_question_not_reopened(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.record(make_pending())
    (tmp_path / "g1/outcomes/q1.json").touch()

    again = FileStore(tmp_path)

    assert await again.load() == []
    assert again.damaged == [str(tmp_path / "g1/outcomes/q1.json")]


@pytest.mark.parametrize("session_id", ["--dangerous", "a\u0000b", "a\nb"])
def test_a_session_id_cannot_become_an_option_of_the_command(session_id: str) -> None:
    envelope = wire.read_envelope(ask({"question": "Go?"}, session_id=session_id), "q0")

    with pytest.raises(MalformedRequest, match="session_id"):
        wire.read_request(envelope)


def test_an_event_log_beside_compressed_ones_opens(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl.1.gz").write_bytes(b"x")
    log = AuditLog(tmp_path, max_bytes=200, max_files=1)
    log.open()

    for _ in range(10):
        log.append(Event(EventKind.SHOWN, NOON, GROUP, Q0))
    log.close()

    assert log.problem is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["events.jsonl", "events.jsonl.1.gz"]
