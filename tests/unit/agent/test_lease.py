"""The sign of life."""

import fcntl
import json
from pathlib import Path

import pytest

from agent_runner.asking import lease
from agent_runner.asking.lease import Lease, read_boot_id
from pynchy.wire import read_lease


def test_a_lease_appears_whole_and_goes_with_its_release(tmp_path: Path) -> None:
    lease = Lease(tmp_path, session_id="s")
    lease.take()
    path = tmp_path / f"{lease.name}.lease"

    content = json.loads(path.read_bytes())
    lease.release()
    lease.release()

    assert content == {"v": 1, "boot_id": read_boot_id(), "session_id": "s"}
    assert list(tmp_path.iterdir()) == []


def test_a_lease_names_its_owner_however_long_the_name_is(tmp_path: Path) -> None:
    lease = Lease(tmp_path, session_id="s" * 200, agent="\N{ROBOT FACE}" * 9_000, task="ci")
    lease.take()

    held = read_lease((tmp_path / f"{lease.name}.lease").read_bytes()[:4_096])
    lease.release()

    assert (held.agent[:1], held.task, held.session_id) == ("\N{ROBOT FACE}", "ci", "s" * 200)
    assert held.boot_id == read_boot_id()


def test_where_there_is_no_lock_no_boot_id_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _how: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    lease = Lease(tmp_path, session_id="s")
    lease.take()

    content = json.loads((tmp_path / f"{lease.name}.lease").read_bytes())
    lease.release()

    assert content["boot_id"] == ""


def test_where_there_is_no_boot_id_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_BOOT_ID", tmp_path / "none")

    assert read_boot_id() == ""


def test_a_lease_that_cannot_be_taken_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Lease(tmp_path / "none", session_id="").take()
