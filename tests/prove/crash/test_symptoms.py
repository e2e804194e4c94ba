"""What the sweep has found, each by its symptom; these need neither strace nor time."""

import asyncio
import errno
import os
import stat
from collections.abc import Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import MailboxAgent
from tests.waiting import until

from pynchy import wire
from pynchy.bridge import workers
from pynchy.bridge.lifecycle import Dismissed, advance
from pynchy.config import LauncherSettings, Settings
from pynchy.data_dir import DataFolder
from pynchy.host import running_host
from pynchy.ipc.mailbox import Mailbox
from pynchy.launchers.command import CommandLauncher
from pynchy.model import (
    Answer,
    CardRef,
    CardState,
    Ending,
    GroupName,
    Late,
    OutcomeKind,
    RequestId,
    State,
)
from pynchy.outcome_text import delivery_note
from pynchy.pending.files import FileStore
from pynchy.safe_folder import Folder
from pynchy.testing import NOON, FakeChannel, make_pending

HOUR = timedelta(hours=1)
YES = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="ana")
NO = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("No",)),), by="ben")


def failing_once(call: Callable[..., Any], *, when: Callable[..., bool]) -> Callable[..., Any]:
    """Return the call such that it fails the first time that `when` says so."""
    left = [OSError(errno.EIO, os.strerror(errno.EIO))]

    def called(*arguments: Any, **named: Any) -> Any:
        if left and when(*arguments):
            raise left.pop()
        return call(*arguments, **named)

    return called


def is_folder(fd: int) -> bool:
    return stat.S_ISDIR(os.fstat(fd).st_mode)


@pytest.fixture
def folder_sync_fails_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def arm() -> None:
        monkeypatch.setattr(os, "fsync", failing_once(os.fsync, when=is_folder))

    return arm


async def test_a_question_whose_recording_failed_is_no_repeat_of_itself(
    tmp_path: Path, folder_sync_fails_once: Callable[[], None]
) -> None:
    store = FileStore(tmp_path)
    await store.record(make_pending("q0", short_id="s0"))
    folder_sync_fails_once()
    with pytest.raises(OSError, match="Input/output"):
        await store.record(make_pending())

    await store.record(make_pending())

    assert len(await store.load()) == 2


async def test_an_answer_that_failed_at_the_disk_does_not_win_behind_everybodys_back(
    tmp_path: Path, folder_sync_fails_once: Callable[[], None]
) -> None:
    store = FileStore(tmp_path)
    await store.record(make_pending())
    (tmp_path / "g1/outcomes").mkdir(exist_ok=True)
    folder_sync_fails_once()
    with pytest.raises(OSError, match="Input/output"):
        await store.end(make_pending(), YES)

    winner = await store.end(make_pending(), NO)

    assert winner == NO


def test_a_file_that_is_in_place_is_not_called_failed_for_a_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path)
    monkeypatch.setattr(os, "unlink", failing_once(os.unlink, when=lambda *_: True))

    assert folder.create("name", b"content")

    assert folder.read("name", 100) == b"content"


async def test_a_disk_error_at_the_start_does_not_hide_what_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await FileStore(tmp_path).record(make_pending())
    monkeypatch.setattr(os, "open", failing_once(os.open, when=lambda path, *_: path == "g1"))

    with pytest.raises(OSError, match="Input/output"):
        await FileStore(tmp_path).load()


@asynccontextmanager
async def host(tmp_path: Path, **channels: FakeChannel) -> Any:
    group = {"channels": list(channels) or ["gone"]}
    settings = Settings.model_validate({"http": {"port": 0}, "groups": {"g1": group}})
    async with running_host(settings, DataFolder(tmp_path), channels):
        yield tmp_path / "ipc" / "g1"


async def test_a_card_that_is_sent_again_after_a_disk_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = FakeChannel("chat")
    monkeypatch.setattr(workers, "_RETRY_SECONDS", 0.01)
    update = failing_once(FileStore._update, when=lambda *_: True)  # noqa: SLF001
    monkeypatch.setattr(FileStore, "_update", update)
    async with host(tmp_path, chat=chat) as mailbox:
        MailboxAgent(mailbox).ask()

        await until(lambda: len(chat.shown) == 2, "a second card")

    assert [sent.card.repeated for sent in chat.shown] == [False, True]


async def test_a_question_that_no_channel_took_ends_though_the_host_died_before_it_said_so(
    tmp_path: Path,
) -> None:
    failed = CardRef("gone", state=CardState.FAILED, error="not configured")
    pending = make_pending(
        state=State.RECORDED, cards=(failed,), expires_at=NOON.replace(year=2999)
    )
    questions = tmp_path / "ipc/g1/pending_questions"
    questions.mkdir(parents=True)
    (questions / "q1.json").write_bytes(wire.pending_json(pending))

    async with host(tmp_path) as mailbox:
        await until((mailbox / "history/q1.json").exists, "the question to be closed")

    outcome = wire.read_ending((tmp_path / "ipc/g1/outcomes/q1.json").read_bytes())
    assert outcome.outcome is OutcomeKind.UNDELIVERABLE


async def test_a_refused_request_is_told_of_before_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "audit/events.jsonl"
    told = asyncio.get_running_loop().create_future()
    reject = Mailbox.reject

    def look(*arguments: Any) -> None:
        told.get_loop().call_soon_threadsafe(told.set_result, log.read_text())
        reject(*arguments)

    monkeypatch.setattr(Mailbox, "reject", look)
    async with host(tmp_path) as mailbox:
        MailboxAgent(mailbox).write("bad.json", b"{}")

        assert '"rejected"' in await told


def test_what_a_killed_host_left_in_tasks_goes_in_time(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(b"{}")
    for name, at in ((".tmp-old", NOON - HOUR), (".tmp-fresh", NOON + HOUR)):
        path = mailbox.tasks.path / name
        path.touch()
        os.utime(path, (at.timestamp(), at.timestamp()))

    mailbox.tidy(set(), responses=NOON, rejected=NOON)

    assert os.listdir(mailbox.tasks.path) == [".tmp-fresh"]


def test_what_a_killed_host_wrote_for_a_session_that_never_was_goes_in_time(
    tmp_path: Path,
) -> None:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(b"{}")
    for name, at in (("old", NOON - HOUR), ("asked", NOON - HOUR), ("fresh", NOON + HOUR)):
        folder = mailbox.write_initial(name, b"{}").parent
        (folder / ".tmp-dead").touch()
        os.utime(folder, (at.timestamp(), at.timestamp()))

    mailbox.tidy({RequestId("asked")}, responses=NOON, rejected=NOON)

    assert sorted(os.listdir(mailbox.path / "input")) == ["asked", "fresh", "host.json"]


async def test_what_a_killed_host_left_among_its_runners_is_gone_after_a_restart(
    tmp_path: Path,
) -> None:
    leftover = tmp_path / "runners/g1/.tmp-dead"
    leftover.parent.mkdir(parents=True)
    leftover.touch()
    settings = LauncherSettings(command=("true",))

    await CommandLauncher(tmp_path, GroupName("g1"), settings, {}).adopt()

    assert not leftover.exists()


@pytest.mark.parametrize("what", ["cancel", "withdraw"])
async def test_what_comes_while_a_question_is_being_closed_is_no_error(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = asyncio.Event()
    closed = FileStore.close

    async def close_when_told(*arguments: Any) -> None:
        agent.tell(what, "q1")
        await until(lambda: "read" in seen, "the request to be read")
        closing.set()
        await closed(*arguments)

    seen: list[str] = []
    read = Mailbox.read_request

    def note(mailbox: Mailbox, name: str) -> bytes:
        if what in name:
            seen.append("read")
        return read(mailbox, name)

    monkeypatch.setattr(FileStore, "close", close_when_told)
    monkeypatch.setattr(Mailbox, "read_request", note)
    async with host(tmp_path, chat=FakeChannel("chat")) as mailbox:
        agent = MailboxAgent(mailbox)
        agent.ask(request_id="q1")
        await until((mailbox / "pending_questions/q1.json").exists, "the question")
        agent.tell("withdraw", "q1")

        await until((mailbox / "history/q1.json").exists, "the question to be closed")
        await until(lambda: not list(agent.tasks.glob("*.json")), "the request to be dealt with")

    assert closing.is_set()
    assert "request.failed" not in caplog.text


def test_the_card_of_a_dismissed_answer_does_not_say_not_yet() -> None:
    late = Late(error="no launcher")
    undelivered = make_pending(state=State.UNDELIVERED, ending=YES, late=late)

    dismissed = advance(undelivered, Dismissed("ana", NOON))

    assert "Not delivered yet" in delivery_note(undelivered)
    assert delivery_note(dismissed) == "Not delivered, and dismissed: no launcher"
