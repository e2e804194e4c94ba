"""Which sessions are known, what they are said to be doing, and how long they are kept."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import CallEnded, Parked, Unparked
from pynchy.errors import UnknownSession
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailboxes
from pynchy.launchers.base import Launch, RunnerEnd
from pynchy.model import GroupName, RequestId, SessionId
from pynchy.pending.index import PendingIndex
from pynchy.safe_folder import UnsafeFile
from pynchy.session import Session, SessionState, Unconfirmed
from pynchy.testing import (
    FakeClock,
    FakeLauncher,
    FakeRunner,
    MemorySessions,
    MemoryStore,
    make_pending,
)
from pynchy.tracking.liveness import Liveness
from pynchy.tracking.table import SessionTable
from pynchy.tracking.tracker import SessionTracker

GROUP = GroupName("g1")


@dataclass
class House:
    """A tracker over fakes; what it keeps outlives a `restart`."""

    folder: Path
    tasks: asyncio.TaskGroup
    clock: FakeClock
    store: MemorySessions
    launcher: FakeLauncher
    tracker: SessionTracker
    ledger: QuestionLedger

    async def restart(self) -> None:
        self.ledger, self.tracker = make_tracker(self.folder, self.clock, self.store, self.launcher)
        await self.tracker.load(self.tasks)

    def state(self, session_id: str = "s1") -> str:
        session = self.tracker.get(GROUP, SessionId(session_id))
        return session.state.value if session else ""

    def launch(self, session_id: str = "s1") -> Launch:
        path = self.folder
        return Launch(GROUP, SessionId(session_id), session_id, 1, path, path, task="Mend it")


def make_tracker(
    folder: Path, clock: FakeClock, store: MemorySessions, launcher: FakeLauncher
) -> tuple[QuestionLedger, SessionTracker]:
    audit = AuditLog(folder / "audit", max_bytes=2**20, max_files=2)
    audit.open()
    ledger = QuestionLedger(MemoryStore(), PendingIndex(), audit, clock.now)
    mailboxes = Mailboxes(folder, lambda _: None)
    mailboxes.of(GROUP).make()
    liveness = Liveness(mailboxes, Leases(30), {GROUP: launcher})
    table = SessionTable(store, 3, is_group=lambda name: name in mailboxes.known())
    tracker = SessionTracker(table, ledger.index, audit, clock.now, liveness)
    ledger.subscribe(tracker)
    return ledger, tracker


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock, store, launcher = FakeClock(), MemorySessions(), FakeLauncher()
    ledger, tracker = make_tracker(tmp_path, clock, store, launcher)
    async with asyncio.TaskGroup() as tasks:
        await tracker.load(tasks)
        yield House(tmp_path, tasks, clock, store, launcher, tracker, ledger)
        for runner in launcher.runners:
            await runner.stop()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_session_is_known_while_its_runner_is_being_started(house: House) -> None:
    await house.tracker.launching(house.launch())
    await house.tracker.look()

    assert house.state() == "working"
    assert [s.session_id for s in await house.store.load()] == ["s1"]


async def test_a_session_ends_with_its_runner_and_that_outlives_the_host(house: House) -> None:
    launch = house.launch()
    await house.tracker.launching(launch)
    runner = await house.launcher.start(launch)
    house.tracker.launched(launch, runner)
    await house.tracker.look()
    before = house.state()

    house.clock.move(timedelta(minutes=5))
    runner.finish("exit code 3")
    await settle()
    await house.tracker.look()
    await house.restart()

    session = house.tracker.find("s1")
    assert before == "working"
    assert (session.state, session.detail, session.failed) == (
        SessionState.ENDED,
        "exit code 3",
        True,
    )
    assert session.since == house.clock.now()


async def run_and_die(house: House) -> None:
    """Have a runner work on the session s1, and be killed."""
    launch = house.launch()
    await house.tracker.launching(launch)
    runner = await house.launcher.start(launch)
    house.tracker.launched(launch, runner)
    runner.finish("exit code -9")
    await settle()


async def test_what_a_dead_runner_had_said_does_not_hide_how_it_ended(house: House) -> None:
    await run_and_die(house)

    # Written before it died, and read only now.
    await house.tracker.heard(GROUP, word("s1", wire.SessionWord.STARTED))
    await house.tracker.look()

    session = house.tracker.find("s1")
    assert (session.detail, session.failed) == ("exit code -9", True)


async def test_an_answer_that_was_handed_over_meanwhile_is_not_forgotten(house: House) -> None:
    await run_and_die(house)
    lease = {"v": 1, "boot_id": "", "session_id": "s1"}
    (house.folder / GROUP / "tasks" / "l1.lease").write_text(json.dumps(lease))

    hearing = asyncio.create_task(house.tracker.heard(GROUP, word("s1")))
    await asyncio.sleep(0)  # it looks at the leases
    await house.tracker.mark(house.tracker.find("s1"), Unconfirmed(RequestId("q1")))
    await hearing

    assert [mark.request_id for mark in house.tracker.find("s1").unconfirmed] == ["q1"]


async def test_what_a_session_was_denied_is_known_until_it_is_started_again(house: House) -> None:
    launch = house.launch()
    await house.tracker.launching(launch)
    await house.tracker.heard(GROUP, word("s1", wire.SessionWord.DENIED, "Bash: rm -r x"))
    await house.tracker.heard(GROUP, word("s1", wire.SessionWord.FINISHED))
    await house.restart()
    denied = house.tracker.find("s1").denied

    await house.tracker.launching(house.launch())

    assert denied == ("Bash: rm -r x",)
    assert house.tracker.find("s1").denied == ()


async def test_a_runner_is_watched_again_after_a_restart(house: House) -> None:
    launch = house.launch()
    await house.tracker.launching(launch)
    runner = await house.launcher.start(launch)
    house.tracker.launched(launch, runner)

    await house.restart()
    await house.tracker.look()
    working = house.state()
    runner.finish()
    await settle()
    await house.tracker.look()

    assert (working, house.state()) == ("working", "ended")
    assert house.tracker.find("s1").detail == "finished"


async def test_an_open_question_makes_its_session_wait_since_it_was_asked(house: House) -> None:
    pending = make_pending(session_id=SessionId("s1"), agent="Ada")
    house.clock.move(timedelta(hours=1))

    await house.ledger.record(pending)
    await house.tracker.look()

    session = house.tracker.find("s1")
    assert (session.state, session.agent) == (SessionState.WAITING, "Ada")
    assert (session.since, session.detail) == (pending.timestamp, pending.short_id)


async def test_a_session_whose_call_was_given_up_does_not_wait_while_it_lives(
    house: House,
) -> None:
    pending = replace(make_pending(), group=GROUP, session_id=SessionId("s1"))
    await house.ledger.record(pending)
    lease = house.folder / GROUP / "tasks" / "l1.lease"
    lease.write_text(json.dumps({"v": 1, "boot_id": "", "session_id": "s1"}))
    await house.tracker.look()
    assert house.state() == "waiting"

    await house.ledger.apply(pending.key, CallEnded("cancelled"))
    await house.tracker.look()
    assert house.state() == "working"

    lease.unlink()
    await house.tracker.look()
    assert house.state() == "waiting"  # the answer resumes it


async def test_a_session_is_parked_only_while_nothing_of_it_lives(house: House) -> None:
    launch = house.launch()
    await house.tracker.launching(launch)
    runner = await house.launcher.start(launch)
    house.tracker.launched(launch, runner)
    pending = make_pending(session_id=SessionId("s1"))
    await house.ledger.record(pending)
    await house.ledger.apply(pending.key, Parked())
    await house.tracker.look()
    living = house.state()

    runner.finish()
    await settle()
    await house.tracker.look()
    gone = house.state()
    await house.ledger.apply(pending.key, Unparked())
    await house.tracker.look()

    assert (living, gone, house.state()) == ("waiting", "parked", "waiting")
    assert house.tracker.find("s1").detail == pending.short_id


async def test_a_question_without_a_session_makes_none(house: House) -> None:
    await house.ledger.record(make_pending())
    await house.tracker.look()

    assert house.tracker.sessions() == []


def test_a_beginning_is_enough_where_it_is_one_sessions_alone(tmp_path: Path) -> None:
    _, tracker = make_tracker(tmp_path, FakeClock(), MemorySessions(), FakeLauncher())
    for session_id in ("abcd-1", "abcd-2", "abcd", "efgh-1"):
        asyncio.run(tracker.heard(GROUP, word(session_id)))

    assert tracker.find("efgh").session_id == "efgh-1"
    assert tracker.find("abcd").session_id == "abcd"
    for target, why in (("abcd-", "several"), ("efg", "no session"), ("zzzz", "no session")):
        with pytest.raises(UnknownSession, match=why):
            tracker.find(target)


async def test_an_id_that_another_group_made_up_does_not_capture_a_beginning(house: House) -> None:
    await house.tracker.heard(GROUP, word("6f1c2f0a-0d1c"))
    await house.tracker.heard(GroupName("evil"), word("6f1c"))

    with pytest.raises(UnknownSession, match="several sessions fit 6f1c"):
        house.tracker.find("6f1c")

    assert house.tracker.find("6f1c2").group == GROUP
    assert house.tracker.find("evil/6f1c").group == "evil"


async def test_an_id_made_up_to_look_like_a_groups_captures_nothing(house: House) -> None:
    await house.tracker.heard(GROUP, word("6f1c2f0a-0d1c"))
    await house.tracker.heard(GroupName("evil"), word(f"{GROUP}/6f1c"))
    await house.tracker.heard(GroupName("evil"), word("6f1c2f0a-0d1c"))

    for target in (f"{GROUP}/6f1c", f"{GROUP}/6f1c2f0a-0d1c"):
        assert house.tracker.find(target).key == (GROUP, "6f1c2f0a-0d1c")
    with pytest.raises(UnknownSession, match="several sessions fit 6f1c2f0a-0d1c"):
        house.tracker.find("6f1c2f0a-0d1c")


async def test_an_id_made_up_to_look_like_a_groups_captured_a_group_without_sessions(
    house: House,
) -> None:
    await house.tracker.heard(GroupName("evil"), word(f"{GROUP}/nightly"))
    await house.tracker.heard(GroupName("evil"), word("nobody/nightly"))

    for target in (f"{GROUP}/nightly", f"{GROUP}/nig"):
        with pytest.raises(UnknownSession, match="no session has the id"):
            house.tracker.find(target)
    # There is no group of that name, so it can be nothing but an id.
    assert house.tracker.find("nobody/nightly").group == "evil"
    assert house.tracker.find(f"evil/{GROUP}/nightly").group == "evil"


async def test_every_session_can_be_named_though_two_groups_use_the_same_id(house: House) -> None:
    other = GroupName("g2")
    for group in (GROUP, other):
        await house.tracker.heard(group, word("s1"))
    runner = await house.tracker.start(house.launcher, house.launch())

    # Though only one of them has a runner of ours: agents choose their ids.
    with pytest.raises(UnknownSession, match="GROUP/ID"):
        house.tracker.find("s1")
    assert house.tracker.find_running("s1").group == GROUP
    assert house.tracker.find("g1/s1").group == GROUP
    assert house.tracker.find("g2/s1").group == other
    assert not isinstance(runner, RunnerEnd)


async def test_no_group_can_hide_anothers_session_behind_an_id(house: House) -> None:
    await house.tracker.heard(GROUP, word("s1"))
    await house.tracker.heard(GroupName("g2"), word("g1/s1"))

    assert house.tracker.find("g1/s1").session_id == "s1"
    assert house.tracker.find("g2/g1/s1").session_id == "g1/s1"
    assert house.tracker.find("g2/g1").session_id == "g1/s1"


async def test_a_session_whose_runner_was_never_started_has_failed(house: House) -> None:
    await house.tracker.launching(house.launch())

    await house.restart()
    await house.tracker.look()

    session = house.tracker.find("s1")
    assert (session.state, session.failed) == (SessionState.ENDED, True)
    assert session.detail == "its process is gone"


@pytest.mark.parametrize("error", [UnsafeFile("odd"), asyncio.CancelledError()])
async def test_a_start_that_is_broken_off_leaves_no_session_that_works(
    house: House, error: BaseException
) -> None:
    class Broken(FakeLauncher):
        async def start(self, launch: Launch) -> FakeRunner:
            del launch
            raise error

    with pytest.raises(type(error)):
        await house.tracker.start(Broken(), house.launch())
    await house.tracker.look()

    session = house.tracker.find("s1")
    assert (session.state, session.failed) == (SessionState.ENDED, True)
    assert session.detail == "its start was broken off"


async def test_ended_sessions_are_kept_up_to_a_number_and_an_age(house: House) -> None:
    for number in range(5):
        await house.tracker.heard(GROUP, word(f"s{number}"))
        await house.tracker.look()
        house.clock.move(timedelta(hours=1))
    kept = {s.session_id for s in house.tracker.sessions()}

    await house.tracker.tidy(house.clock.now() - timedelta(minutes=90))

    assert kept == {"s2", "s3", "s4"}
    assert [s.session_id for s in await house.store.load()] == ["s4"]


async def test_what_could_not_be_saved_is_saved_by_a_later_look(house: House) -> None:
    full = FullDisk()
    _, tracker = make_tracker(house.folder, house.clock, full, house.launcher)
    with pytest.raises(OSError, match="full"):
        await tracker.heard(GROUP, word("s1"))

    full.is_full = False
    await tracker.look()

    assert [s.session_id for s in await full.load()] == ["s1"]


class FullDisk(MemorySessions):
    is_full = True

    async def keep(self, session: Session) -> None:
        if self.is_full:
            raise OSError("the disk is full")
        await super().keep(replace(session))


def word(
    session_id: str,
    event: wire.SessionWord = wire.SessionWord.FINISHED,
    detail: str | None = None,
) -> wire.SessionEvent:
    return wire.SessionEvent(
        v=1,
        type="session:event",
        request_id="e1",
        session_id=session_id,
        event=event,
        detail=detail,
    )
