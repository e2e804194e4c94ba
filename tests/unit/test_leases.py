"""Is anybody there? By the lock on this machine, by the file's times elsewhere."""

import fcntl
import os
from pathlib import Path

import pytest

from pynchy import wire
from pynchy.ipc import leases as lease_files
from pynchy.ipc.leases import Leases, read_boot_id
from pynchy.ipc.mailbox import Mailbox
from pynchy.model import GroupName


class Steady:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(wire.host_json(60))
    return mailbox


@pytest.fixture
def steady() -> Steady:
    return Steady()


@pytest.fixture
def leases(steady: Steady) -> Leases:
    return Leases(30.0, steady)


def write_lease(mailbox: Mailbox, boot_id: str = "elsewhere") -> Path:
    path = mailbox.path / "tasks/l1.lease"
    path.write_text(f'{{"v": 1, "boot_id": "{boot_id}", "session_id": ""}}')
    return path


def test_a_lease_lives_while_its_times_move(
    mailbox: Mailbox, leases: Leases, steady: Steady
) -> None:
    path = write_lease(mailbox)
    seen = []
    for at in (0, 29, 40, 60, 75):
        steady.now = at
        if at == 29:
            os.utime(path, ns=(1, 1))
        seen.append(leases.is_live(mailbox, "l1"))

    assert seen == [True, True, True, False, False]


def test_a_time_in_the_future_does_not_keep_a_lease_alive(
    mailbox: Mailbox, leases: Leases, steady: Steady
) -> None:
    path = write_lease(mailbox)
    os.utime(path, (2**33, 2**33))

    assert leases.is_live(mailbox, "l1")
    steady.now = 31
    assert not leases.is_live(mailbox, "l1")


def test_a_missing_lease_is_dead(mailbox: Mailbox, leases: Leases) -> None:
    assert not leases.is_live(mailbox, "l1")


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder"])
def test_what_is_no_file_is_dead(mailbox: Mailbox, leases: Leases, kind: str) -> None:
    path = mailbox.path / "tasks/l1.lease"
    match kind:
        case "symlink":
            path.symlink_to("/etc/passwd")
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()

    assert not leases.is_live(mailbox, "l1")


def test_on_this_machine_a_free_lock_means_dead_at_once(mailbox: Mailbox, leases: Leases) -> None:
    path = write_lease(mailbox, read_boot_id())

    with path.open() as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        held = leases.is_live(mailbox, "l1")
    released = leases.is_live(mailbox, "l1")

    assert (held, released) == (True, False)


def test_a_lock_from_another_kernel_says_nothing(mailbox: Mailbox, leases: Leases) -> None:
    write_lease(mailbox, "another-kernel")

    assert leases.is_live(mailbox, "l1")


def test_tidying_removes_dead_leases_alone(mailbox: Mailbox, leases: Leases) -> None:
    write_lease(mailbox, read_boot_id())
    (mailbox.path / "tasks/l2.lease").write_text("not json: the times decide")

    leases.tidy(mailbox)

    assert [path.name for path in (mailbox.path / "tasks").iterdir()] == ["l2.lease"]


def test_among_too_many_leases_one_that_a_question_names_dies_in_its_time(
    mailbox: Mailbox, leases: Leases, steady: Steady, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_files, "MAX_LEASES", 0)
    write_lease(mailbox)
    assert leases.is_live(mailbox, "l1")

    for _ in range(4):
        steady.now += 10
        leases.live(mailbox)

    assert not leases.is_live(mailbox, "l1")


def test_masses_of_temporary_files_were_gone_through_at_every_look_at_leases(
    mailbox: Mailbox, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_files, "_MAX_NAMES", 20)
    for number in range(30):
        (mailbox.path / f"tasks/.{number}").touch()
    write_lease(mailbox)

    leases.live(mailbox)

    [problem] = leases.problems()
    assert "or 20 files, in its tasks folder" in problem
    assert leases.is_live(mailbox, "l1")
