"""What once got through, named after what it did."""

import asyncio
import fcntl
import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.acceptance.support import MailboxAgent
from tests.prove.hostile.conftest import StartHost

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.bridge import matching
from pynchy.config.loading import read_settings
from pynchy.errors import ConfigError
from pynchy.events import AskedQuestion, Event, EventKind
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailbox
from pynchy.model import GroupName, Option, Question, SessionId
from pynchy.safe_folder import Folder, UnsafeFile

NOW = datetime(2026, 1, 15, tzinfo=UTC)


def nest(path: Path, depth: int) -> None:
    """Make folders within folders, deeper than any path may be long."""
    fd, name = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY), path.name
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd, name = below, "d"
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)


def test_a_folder_of_a_thousand_levels_ended_the_host_when_it_was_removed(abyss: Path) -> None:
    nest(abyss / "x.lease", 1_200)

    Folder(abyss).remove("x.lease")
    while Folder(abyss).clear_removed(10_000):
        continue

    assert os.listdir(abyss) == []


def test_a_link_in_a_folder_that_is_removed_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    trap = tmp_path / "box" / "trap.json"
    trap.mkdir(parents=True)
    (trap / "link").symlink_to(outside, target_is_directory=True)
    (trap / "deeper").mkdir()
    (trap / "deeper" / "link").symlink_to(outside)

    Folder(tmp_path, "box").remove("trap.json")

    assert os.listdir(tmp_path / "box") == []
    assert os.listdir(outside) == ["kept"]


def test_a_file_that_its_owner_holds_a_lease_on_was_an_unknown_error(
    tmp_path: Path,
) -> None:
    path = tmp_path / "held.json"
    path.write_text("{")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with path.open("r+") as file:
        fcntl.fcntl(file.fileno(), fcntl.F_SETLEASE, fcntl.F_WRLCK)

        with pytest.raises(UnsafeFile):
            Folder(tmp_path).read("held.json", 100)

        fcntl.fcntl(file.fileno(), fcntl.F_SETLEASE, fcntl.F_UNLCK)
    signal.signal(signal.SIGIO, before)


def test_leases_that_change_their_names_were_remembered_for_ever(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GroupName("team"))
    mailbox.prepare(b"{}")
    leases = Leases(30)
    lease = mailbox.tasks.path / "0.lease"
    lease.write_text(json.dumps({"v": 1, "session_id": "s"}))

    for number in range(1, 50):
        assert leases.is_session_live(mailbox, SessionId("s"))
        lease = lease.rename(lease.with_name(f"{number}.lease"))

    assert len(leases._seen) <= 2  # noqa: SLF001 - what it holds in memory


async def test_a_reader_who_stands_still_was_kept_half_a_gigabyte_of_events(
    tmp_path: Path,
) -> None:
    audit = AuditLog(tmp_path / "audit", max_bytes=2**20, max_files=2)
    audit.open()
    stream = audit.stream(None)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    asked = (AskedQuestion("x" * 100_000),)

    for _ in range(200):
        audit.publish(Event(EventKind.ASKED, NOW, GroupName("team"), asked=asked))
    kept = [await first, *[line async for line in stream]]
    audit.close()

    assert sum(len(line.data) for line in kept) < 10 * 2**20
    assert [line.sequence for line in kept] == list(range(1, len(kept) + 1))


def test_a_request_whose_name_is_not_utf_8_could_not_be_put_aside() -> None:
    record = wire.rejected_json(os.fsdecode(b"\xff\n.json"), "not JSON", NOW, b"\xfe")

    assert json.loads(record)["name"] == "\\udcff\n.json"


@pytest.mark.parametrize("name", ["header", "options", "multiSelect", "default"])
def test_a_field_that_is_null_was_an_unknown_error_and_left_the_request_lying(name: str) -> None:
    asked = {"v": 1, "type": "ask_user:ask", "request_id": "q1"}
    data = json.dumps(asked | {"questions": [{"question": "x", name: None}]}).encode()

    request = wire.read_request(wire.read_envelope(data, "q1"))

    assert isinstance(request, wire.AskRequest)


def test_a_reply_of_many_numbers_held_the_whole_host_up_for_seconds() -> None:
    options = tuple(Option(f"{'long ' * 90}{number}") for number in range(100))
    question = Question("Which?", options=options, multi_select=True)
    begun = time.process_time()

    answer = matching.match(question, ("1," * 9_999 + "2",) * 6)

    assert answer.selected == (options[0].label, options[1].label)
    assert time.process_time() - begun < 1


def test_a_setting_of_thousands_of_dots_took_a_minute_to_be_refused(tmp_path: Path) -> None:
    path = tmp_path / "pynchy.toml"
    path.write_text("a" + ".a" * 10_000 + " = 1\n")
    begun = time.process_time()

    with pytest.raises(ConfigError):
        read_settings(path)

    assert time.process_time() - begun < 2


async def test_a_default_that_fits_no_option_kept_others_from_expiring(
    start_host: StartHost,
) -> None:
    host = await start_host()
    agent = MailboxAgent(host.group("team"))
    asked = [{"question": "Which?", "options": ["a", "b"], "default": "9"}]

    response = await agent.responded(agent.ask(questions=asked, wait_seconds=0))

    assert "default" in response["error"]
    assert host.http("POST", "/api/sweep", {"dry_run": False}).status == 200
