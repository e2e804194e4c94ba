"""Every store of sessions keeps the same promises; a new backend joins by the fixture."""

from dataclasses import replace
from pathlib import Path

import pytest

from pynchy.model import GroupName, RequestId, SessionId
from pynchy.session import Session, SessionState, Unconfirmed
from pynchy.testing import NOON, MemorySessions
from pynchy.tracking.table import FileSessions, SessionStore


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SessionStore:
    return FileSessions(tmp_path) if request.param == "files" else MemorySessions()


def session(session_id: str = "s1", group: str = "g1") -> Session:
    return Session(
        GroupName(group),
        SessionId(session_id),
        SessionState.WAITING,
        since=NOON,
        started_at=NOON,
        agent="claude",
        task="Mend it",
        launches=("s1.1", "q1.1"),
        home="/home/ana",
        cwd="/srv",
        unconfirmed=(Unconfirmed(RequestId("q1"), "q1.1", ("lease",)),),
    )


async def test_nothing_is_loaded_from_an_empty_store(store: SessionStore) -> None:
    assert await store.load() == []


async def test_a_session_is_loaded_as_it_was_kept_last(store: SessionStore) -> None:
    await store.keep(session())
    changed = replace(session(), state=SessionState.ENDED, detail="finished", unconfirmed=())

    await store.keep(changed)

    assert await store.load() == [changed]


@pytest.mark.parametrize(
    "session_id", ["..", "a/b", "x" * 500, "ein Wort", "💥", "6f1c2f0a-0d1c-4f6e-9d57-3d3f1f6d2b11"]
)
async def test_whatever_a_session_is_called_it_is_kept(
    store: SessionStore, session_id: str
) -> None:
    await store.keep(session(session_id))
    await store.keep(session("another"))

    assert {s.session_id for s in await store.load()} == {session_id, "another"}


async def test_the_same_id_in_two_groups_is_two_sessions(store: SessionStore) -> None:
    await store.keep(session(group="g1"))
    await store.keep(session(group="g2"))

    await store.forget([(GroupName("g1"), SessionId("s1"))])

    assert await store.load() == [session(group="g2")]


async def test_what_is_not_known_can_be_forgotten(store: SessionStore) -> None:
    await store.keep(session())

    await store.forget([(GroupName("g1"), SessionId("s2")), (GroupName("g2"), SessionId("s1"))])

    assert await store.load() == [session()]


async def test_a_damaged_record_costs_that_session_alone(tmp_path: Path) -> None:
    store = FileSessions(tmp_path)
    await store.keep(session("s1"))
    await store.keep(session("s2"))
    (tmp_path / "sessions" / "g1" / "s1.json").write_text("{")

    assert [s.session_id for s in await FileSessions(tmp_path).load()] == ["s2"]


async def test_nobody_else_may_read_what_is_kept(tmp_path: Path) -> None:
    await FileSessions(tmp_path).keep(session())

    [path] = (tmp_path / "sessions" / "g1").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
