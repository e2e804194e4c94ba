"""Bugs that were found by reading, each under the name of its symptom."""

import asyncio
import errno
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from tests.prove.world import KEPT, RESUMABLE, World
from tests.waiting import DEADLINE_SECONDS, until

from agent_runner.asking import Asker
from pynchy import wire
from pynchy.aio import Rate, cancelled_at_end
from pynchy.audit import AuditLog
from pynchy.bridge import matching
from pynchy.bridge.ask import PREFIX
from pynchy.bridge.lifecycle import Delivered
from pynchy.config import LauncherSettings
from pynchy.errors import DuplicateRequest, MalformedRequest
from pynchy.events import Event, EventKind
from pynchy.http.auth import AuthMiddleware, Credentials
from pynchy.ipc.intake import Intake, Registry
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailbox, Mailboxes
from pynchy.ipc.watcher import Watcher
from pynchy.launchers.base import Launch
from pynchy.launchers.command import CommandLauncher
from pynchy.model import (
    Answer,
    DeliveryPath,
    Ending,
    GroupName,
    PendingQuestion,
    Question,
    Reply,
    RequestId,
    SessionId,
)
from pynchy.pending.base import Key
from pynchy.pending.files import FileStore
from pynchy.pending.index import ShortIds
from pynchy.safe_folder import Folder
from pynchy.testing import NOON, FakeClock, FakeLauncher, make_pending
from pynchy.tracking.liveness import Liveness

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
    await world.answers.answer(Reply("q0", "ana", "local", ("No",), question=1))

    world.clock.move(timedelta(hours=1))
    await world.expiry.end_due()
    still_open = world.ledger.get((GROUP, Q0)).ending
    world.clock.move(timedelta(days=8))
    await world.expiry.end_due()

    ending = world.ledger.get((GROUP, Q0)).ending
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


async def test_a_request_with_thousands_of_choices_by_default_held_up_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def defaults(questions: tuple[Question, ...]) -> tuple[Answer, ...]:
        threads.append(threading.get_ident())
        return read_defaults(questions)

    read_defaults = matching.defaults
    monkeypatch.setattr(matching, "defaults", defaults)
    many = {"options": ["a", "b"], "multiSelect": True, "default": [f"{'a,b,' * 100}a"] * 100}
    await world.take(KEPT, "q0", ask({"question": "Go?"} | many, wait_seconds=60))
    world.clock.move(timedelta(hours=1))
    await world.expiry.end_due()

    # Once when it is asked, once when nobody has answered.
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_an_id_under_which_a_request_was_refused_is_used_up(world: World) -> None:
    mailbox = world.mailboxes.of(GROUP)
    mailbox.respond(Q0, wire.error_json(Q0, "no"))

    with pytest.raises(DuplicateRequest):
        await world.take(KEPT, "q0", ask({"question": "Go?"}))

    assert world.index.get((GROUP, Q0)) is None


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


@pytest.mark.parametrize(
    "session_id",
    [
        "6f1c$(id)",
        "`id`",
        "a;id",
        "a b",
        "a|b",
        "~root",
        "a*",
        "a{b,c}",
        "a!1",
        "\u009b2J",
        "a\u202eb",
    ],
)
async def test_a_session_id_that_a_shell_would_run_is_refused(
    world: World, session_id: str
) -> None:
    with pytest.raises(MalformedRequest, match="session_id: letters") as refused:
        await world.take(KEPT, "q0", ask({"question": "Go?"}, session_id=session_id))

    assert refused.value.request_id == "q0"
    assert world.index.get((GROUP, Q0)) is None
    said = {"session_id": session_id, "event": "started", "request_id": "e1"}
    body = json.dumps({"v": 1, "type": "session:event", **said}).encode()
    event = wire.read_session_event(wire.read_envelope(body, "e1"))
    with pytest.raises(MalformedRequest, match="session_id: letters"):
        await world.tracker.heard(GROUP, event)
    assert world.tracker.sessions() == []


async def test_a_session_of_an_earlier_version_goes_on_under_its_odd_id(world: World) -> None:
    odd = SessionId("nightly build (2)")
    world.tracker.question_changed(make_pending(group=GROUP, session_id=odd))

    await world.take(KEPT, "q0", ask({"question": "Go?"}, session_id=odd))

    assert world.index.get((GROUP, Q0)) is not None


@pytest.mark.parametrize(
    "session_id",
    ["6f1c2f0a-0d1c-4f6e-9d57-3d3f1f6d2b11", "ses_2b7FzQ", "web-team/nightly.2:a@b+c", "YWJj=="],
)
async def test_the_ids_of_real_programs_are_taken(world: World, session_id: str) -> None:
    await world.take(KEPT, "q0", ask({"question": "Go?"}, session_id=session_id))

    assert world.index.get((GROUP, Q0)) is not None


@pytest.mark.parametrize(("value", "usable"), [("x", True), ("x\n", False), ("", False)])
def test_a_session_id_has_no_line_break_at_its_end(value: str, *, usable: bool) -> None:
    assert wire.usable_session_id(value) is usable


def test_an_event_log_beside_compressed_ones_opens(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl.1.gz").write_bytes(b"x")
    log = AuditLog(tmp_path, max_bytes=200, max_files=1)
    log.open()

    for _ in range(10):
        log.publish(Event(EventKind.SHOWN, NOON, GROUP, Q0))
    log.close()

    assert log.problem is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["events.jsonl", "events.jsonl.1.gz"]


def test_an_event_log_that_could_not_be_rotated_goes_on_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path, max_bytes=400, max_files=3)
    log.open()
    with monkeypatch.context() as broken:
        broken.setattr(Path, "rename", failing(errno.EIO))
        for _ in range(5):
            log.publish(Event(EventKind.SHOWN, NOON, GROUP, Q0))
        told = log.problem

    for _ in range(5):
        log.publish(Event(EventKind.SHOWN, NOON, GROUP, Q0))
    log.close()

    assert told == "the event log cannot be written: Input/output error"
    assert log.problem is None
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["seq"] == 10


def test_what_a_dying_writer_left_half_done_is_cleared_away(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GROUP)
    mailbox.prepare(b"{}")
    for name in ("responses", "input", "rejected"):
        (tmp_path / GROUP / name / ".tmp-left").write_bytes(b"half")

    mailbox.prepare(b"{}")

    assert list(tmp_path.glob("*/*/.tmp-*")) == []


async def test_a_host_that_may_open_no_more_files_says_so_and_watches_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g1/tasks").mkdir(parents=True)
    listener = Looked()
    watcher = Watcher(tmp_path, listener)
    with monkeypatch.context() as broken:
        broken.setattr(os, "scandir", failing(errno.EMFILE))
        await watcher.look_around()
        told = watcher.problem

    watching = asyncio.create_task(watcher.run())
    async with asyncio.timeout(DEADLINE_SECONDS):
        await listener.looked.wait()
        (tmp_path / "g1/tasks/q1.json").touch()
        await listener.hinted.wait()

    watching.cancel()
    assert told == "the mailboxes cannot be looked at (Too many open files)"
    assert watcher.problem is None


async def test_a_group_whose_folder_cannot_be_looked_into_keeps_no_other_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group in ("closed", "g1"):
        (tmp_path / group / "tasks").mkdir(parents=True)
    listener = Looked()
    watcher = Watcher(tmp_path, listener)
    stat = Path.stat

    def refuse(path: Path, **options: Any) -> os.stat_result:
        if "closed" in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied")
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    await watcher.look_around()

    assert listener.looked.is_set()


async def test_a_stored_question_that_cannot_be_judged_does_not_stop_the_host(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    yes = {"question": "Go?", "options": ["Yes", "No"], "default": "Yes", "options_only": True}
    await world.take(KEPT, "q0", ask(yes))
    pending = world.ledger.get((GROUP, Q0))
    (question,) = pending.questions
    world.index.put(replace(pending, questions=(replace(question, default=("Maybe",)),)))
    world.clock.move(timedelta(days=1))

    await world.expiry.report_orphans()
    await world.expiry.sweep(dry_run=True)

    assert "expiry.question_failed" in caplog.messages


@pytest.mark.parametrize("group", [KEPT, RESUMABLE])
async def test_an_agent_that_took_its_answer_and_ended_was_said_to_be_gone(
    world: World, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    await world.take(group, "q0", ask({"question": "Go?"}, session_id="s1", lease="l1"))

    async def ends_meanwhile(_liveness: Liveness, pending: PendingQuestion) -> bool:
        (world.folder / "ipc" / group / "tasks" / f"{pending.request_id}.received").touch()
        return False

    monkeypatch.setattr(Liveness, "is_session_busy", ends_meanwhile)
    steps: list[object] = []
    apply = world.ledger.apply

    async def noted(at: Any, *made: Any) -> PendingQuestion:
        steps.extend(type(step).__name__ for step in made)
        return await apply(at, *made)

    monkeypatch.setattr(world.ledger, "apply", noted)
    await world.answers.answer(Reply("q0", by="ana", channel="local", values=("Yes",)))
    await until(lambda: "Delivered" in steps, "the answer to arrive")

    assert not {"GaveUp", "Resuming"} & set(steps)


async def test_an_agent_is_seen_to_live_before_its_first_question(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GROUP)
    mailbox.prepare(wire.host_json(60))
    leases = Leases(60)

    async with Asker(mailbox.path, session_id="s1"):
        during = leases.is_session_live(mailbox, SessionId("s1"))

    assert during
    assert not leases.is_session_live(mailbox, SessionId("s1"))


async def test_a_process_that_a_runner_left_behind_does_not_keep_it_alive_after_a_restart(
    tmp_path: Path,
) -> None:
    initial = tmp_path / "initial.json"
    launch = Launch(GROUP, SessionId("s1"), "q0", 1, initial, tmp_path, Q0)
    # The one left behind inherits the job's lock and waits for a file that the test makes.
    left = "import pathlib,sys,time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)"
    ends = (
        "import subprocess,sys\nsubprocess.Popen([sys.executable,'-c',*sys.argv[1:]],close_fds=0)"
    )
    command = (sys.executable, "-c", ends, left, str(tmp_path / "over"))

    def launcher() -> CommandLauncher:
        return CommandLauncher(tmp_path, GROUP, LauncherSettings(command=command), os.environ)

    before = launcher()
    try:
        await (await before.start(launch)).ended()
        after = launcher()
        await after.adopt()
        found = await after.find(launch.stem)
        assert found is not None
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert (await found.ended()).error is None
        assert not after.runner_on(GROUP, SessionId("s1"))
    finally:
        (tmp_path / "over").touch()


@pytest.mark.parametrize(
    ("name", "status"), [("[::1]:8765", 200), ("[::1]", 200), ("[::2]:8765", 421)]
)
async def test_an_address_with_colons_is_a_host_name(name: str, status: int) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/healthz", "query_string": b""}
    fine = PlainTextResponse("fine")
    guard = AuthMiddleware(fine, fine, Credentials("token", "cookie", lambda _: None), ["[::1]"])
    await guard({**scope, "headers": [(b"host", name.encode())]}, receive, send)

    assert sent[0]["status"] == status


class Looked:
    """A listener that tells what it was told."""

    def __init__(self) -> None:
        self.looked = asyncio.Event()
        self.hinted = asyncio.Event()

    def noticed(self, group: GroupName, name: str) -> None:
        del group, name
        self.hinted.set()

    def look(self, group: GroupName) -> None:
        del group
        self.looked.set()

    def is_whole(self, group: GroupName) -> bool:
        del group
        return True

    async def joined(self, group: GroupName) -> None:
        del group


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def put_file_in_place_of(folder: Path) -> None:
    """Spoil a folder, which whoever works in the group just now may make again meanwhile."""
    while not folder.is_file():
        folder.rmdir()
        folder.touch()


async def test_a_question_that_cannot_be_ended_keeps_no_other_open(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.take(KEPT, "q0", ask({"question": "Go?"}))
    await world.take(RESUMABLE, "q1", ask({"question": "Go?"}, request_id="q1"))
    outcomes = world.folder / "ipc" / KEPT / "outcomes"
    put_file_in_place_of(outcomes)
    world.clock.move(timedelta(days=8))

    await world.expiry.end_due()
    world.clock.move(timedelta(seconds=10))
    await world.expiry.end_due()

    assert world.ledger.get((GroupName(RESUMABLE), RequestId("q1"))).ending is not None
    assert world.ledger.get((GROUP, Q0)).ending is None
    assert caplog.messages.count("expiry.question_failed") == 1
    outcomes.unlink()
    world.clock.move(timedelta(seconds=10))
    await world.expiry.end_due()
    assert world.ledger.get((GROUP, Q0)).ending is not None


async def test_a_group_with_much_that_is_due_kept_the_deadlines_of_others_waiting(
    world: World,
) -> None:
    for number in range(50):
        body = ask({"question": "Go?"}, request_id=f"q{number}", wait_seconds=0)
        await world.take(KEPT, f"q{number}", body)
    world.clock.move(timedelta(seconds=1))
    await world.take(RESUMABLE, "q", ask({"question": "Go?"}, request_id="q"))
    world.clock.move(timedelta(days=8))

    await world.expiry.end_due()

    lines = (world.folder / "audit/events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    ended = [event["group"] for event in events if event["type"] == "expired"]
    assert ended.count(KEPT) == 50
    assert ended.index(RESUMABLE) < 10


async def test_a_sweep_says_what_it_could_not_end_and_ends_the_others(world: World) -> None:
    await world.take(KEPT, "q0", ask({"question": "Go?"}))
    await world.take(RESUMABLE, "q1", ask({"question": "Go?"}, request_id="q1"))
    outcomes = world.folder / "ipc" / KEPT / "outcomes"
    put_file_in_place_of(outcomes)
    world.clock.move(timedelta(days=8))

    swept = await world.expiry.sweep(dry_run=False)

    told = {finding.pending.request_id: (finding.why, finding.ending) for finding in swept}
    assert "cannot be ended now" in told[Q0][0]
    assert told[Q0][1] is None
    assert told[RequestId("q1")][1] is not None


async def test_a_sweep_does_not_claim_to_have_ended_what_somebody_began_to_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    yes = {"question": "Drop the table?", "options": ["Yes", "No"], "default": "Yes"}
    await world.take(KEPT, "q0", ask(yes, {"question": "Why?", "default": "tidy"}))
    world.clock.move(timedelta(hours=1))
    loop, found = asyncio.get_running_loop(), matching.defaults

    def defaults(questions: tuple[Question, ...]) -> tuple[Answer, ...]:
        monkeypatch.undo()
        part = world.answers.answer(Reply("q0", "ana", "local", ("No",), question=1))
        asyncio.run_coroutine_threadsafe(part, loop).result(timeout=30)
        return found(questions)

    monkeypatch.setattr(matching, "defaults", defaults)

    [finding] = await world.expiry.sweep(dry_run=False)

    assert world.ledger.get((GROUP, Q0)).ending is None
    assert finding.ending is None
    assert "changed since" in finding.why


def test_a_withdrawal_is_not_read_before_its_question_in_a_backlog(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GROUP)
    mailbox.make()
    for number in range(20):
        for name in (f"q{number}.withdraw.json", f"q{number}.json"):
            (mailbox.path / "tasks" / name).touch()

    first = mailbox.requests(20)

    assert not [name for name in first if "withdraw" in name]


async def test_a_group_that_joins_spoils_no_listing_of_the_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailboxes = Mailboxes(tmp_path, lambda _: None)
    mailboxes.of(GROUP)

    def joins(mailbox: Mailbox) -> bool:
        mailboxes.of(GroupName(f"after-{mailbox.group}"))
        return True

    monkeypatch.setattr(Mailbox, "exists", joins)

    assert mailboxes.groups() == [GROUP]


async def test_stopping_a_session_whose_answer_just_arrived_is_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"request_id": "q1", "session_id": "s1"}
    await world.take(RESUMABLE, "q1", ask({"question": "Go?"}, **fields))
    await world.answers.answer(Reply("q1", "ana", "local", ("yes",)))
    key = (GroupName(RESUMABLE), RequestId("q1"))
    looked = world.tracker.liveness.is_lease_held

    async def arrives(pending: PendingQuestion) -> bool:
        held = await looked(pending)
        await world.ledger.apply(key, Delivered(DeliveryPath.LIVE, NOON))
        return held

    monkeypatch.setattr(world.tracker.liveness, "is_lease_held", arrives)

    assert await world.late.halt(key[0], SessionId("s1")) is False


async def test_a_withdrawal_waits_for_a_question_that_could_not_be_recorded_yet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = world.mailboxes.of(GROUP).path / "tasks"
    (tasks / "q0.json").write_bytes(ask({"question": "Go?"}))
    withdrawn = {"v": 1, "type": "ask_user:withdraw", "request_id": "q0"}
    (tasks / "q0.withdraw.json").write_bytes(json.dumps(withdrawn).encode())
    record, full = world.ledger.record, [OSError(errno.ENOSPC, "full")]

    async def recorded(pending: PendingQuestion, ending: Ending | None) -> None:
        if full:
            raise full.pop()
        await record(pending, ending)

    monkeypatch.setattr(world.ledger, "record", recorded)
    registry = Registry()
    registry.register_prefix(PREFIX, world.ask_handler.handle)

    async with cancelled_at_end() as running:
        handler = world.ask_handler
        intake = Intake(world.mailboxes, registry, handler, running, lambda: Rate(100.0, 100))
        await intake.joined(GROUP)
        intake.look(GROUP)
        await until(lambda: not full, "the question to be tried")
        # A folder that took long to list is given a rest: one look need not be enough.
        await until(lambda: intake.look(GROUP) or not os.listdir(tasks), "both to be read")

    found = world.index.get((GROUP, Q0)) or await world.store.find(GROUP, Q0)
    assert found is not None
    assert found.ending is not None
    assert found.ending.outcome == "withdrawn"


@pytest.mark.parametrize("state", ["held", "delivering"])
async def test_masses_of_answers_that_wait_cost_a_share_of_a_core_at_rest(
    world: World, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr("pynchy.bridge.deliver.POLL_SECONDS", 0.5)
    (world.folder / "ipc" / KEPT / "tasks/l1.lease").write_text('{"v": 1, "boot_id": "other"}')
    pauses: dict[str, float] = {}
    changed = world.ledger.changed

    async def wait(key: Key, since: int, seconds: float) -> None:
        pauses[key[1]] = seconds
        await changed(key, since, seconds)

    monkeypatch.setattr(world.ledger, "changed", wait)
    ids = [f"ask-{number}" for number in range(200)]
    for request_id in ids:
        await world.take(
            KEPT, request_id, ask({"question": "Go?"}, request_id=request_id, lease="l1")
        )
        cancel = {"v": 1, "type": "ask_user:cancel", "request_id": request_id}
        if state == "held":
            await world.take(KEPT, request_id, json.dumps(cancel).encode())
    for request_id in ids:
        await world.answers.answer(Reply(request_id, "ana", "local", ("Yes",)))

    def states() -> set[str]:
        return {pending.state for pending in world.index}

    await until(lambda: states() == {state}, "all to wait for their agent")
    await until(lambda: sum(1 / pause for pause in pauses.values()) < 100, "fewer looks", 20)

    (world.folder / "ipc" / KEPT / "tasks/ask-7.received").write_text("{}")
    world.ask_handler.receipt_seen(GROUP, RequestId("ask-7"))
    await until(lambda: (GROUP, RequestId("ask-7")) not in world.index, "the receipt to be seen")


class SlowListing:
    """A clock that goes on by itself only while the folder of one group is listed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.looks: Counter[GroupName] = Counter()
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr("pynchy.ipc.intake.time", clock)
        monkeypatch.setattr(Mailbox, "requests", lambda mailbox, _limit: self._list(mailbox))

    def _list(self, mailbox: Mailbox) -> list[str]:
        self.now += 0.5 * (mailbox.group == GROUP)
        self.looks[mailbox.group] += 1
        return []


async def test_a_group_with_masses_of_files_cost_a_share_of_a_core_at_rest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, other = SlowListing(monkeypatch), GroupName(RESUMABLE)

    async with cancelled_at_end() as running:
        handler = world.ask_handler
        intake = Intake(world.mailboxes, Registry(), handler, running, lambda: Rate(100.0, 100))
        for group in (GROUP, other):
            await intake.joined(group)
        for second in range(60):
            slow.now += 1.0
            intake.look(GROUP)
            intake.look(other)
            looked = second + 1
            await until(lambda looked=looked: slow.looks[other] == looked, "a look")

    assert slow.looks[GROUP] in {2, 3}


async def test_a_host_whose_folder_was_moved_made_another_one_in_its_place(tmp_path: Path) -> None:
    data = tmp_path / "data"
    watcher = Watcher(data / "ipc", Looked())

    watching = asyncio.create_task(watcher.run())
    problem = await until(lambda: watcher.problem, "what the watcher says of it")

    watching.cancel()
    assert problem == "the mailboxes cannot be looked at (No such file or directory)"
    assert not data.exists()
