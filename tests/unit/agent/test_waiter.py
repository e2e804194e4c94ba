"""Waiting for a name: woken by events, by the re-scan, and without any observer."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.waiting import DEADLINE_SECONDS

from agent_runner.asking import _waiter
from agent_runner.asking._waiter import Waiter


class SilentObserver:
    """Starts, and never tells anything."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        del timeout


class Observers:
    """Counts how many were started and lets a test speak for them."""

    def __init__(self) -> None:
        self.started: list[SilentObserver] = []
        self.on_name: Callable[[str], None] = lambda _: None

    def start(self, _folder: Path, on_name: Callable[[str], None]) -> SilentObserver:
        self.on_name = on_name
        self.started.append(SilentObserver())
        return self.started[-1]


def no_inotify(_folder: Path, _on_name: Callable[[str], None]) -> SilentObserver:
    raise OSError(errno.EMFILE, "inotify instance limit reached")


def looker(path: Path) -> Callable[[], str | None]:
    return lambda: path.read_text() if path.exists() else None


async def test_what_is_there_already_is_found_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("here")

    assert await Waiter(tmp_path).wait_for("a", looker(tmp_path / "a"), 0) == "here"


async def test_what_is_there_at_the_deadline_counts(tmp_path: Path) -> None:
    looks: list[None] = []

    def look() -> str | None:
        looks.append(None)
        return "at the last moment" if len(looks) > 1 else None

    waiter = Waiter(tmp_path, start_observer=Observers().start)
    waiter.arm()

    assert await waiter.wait_for("a", look, 0.01) == "at the last moment"


@pytest.mark.parametrize("name", ["a", "b"])
async def test_either_of_two_names_wakes_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(_waiter, "RESCAN_SECONDS", 10 * DEADLINE_SECONDS)
    observers, path = Observers(), tmp_path / name
    waiter = Waiter(tmp_path, start_observer=observers.start)
    waiter.arm()
    waiting = asyncio.create_task(waiter.wait_for("a", looker(path), 10 * DEADLINE_SECONDS, "b"))
    await asyncio.sleep(0)
    path.write_text("here")
    observers.on_name(name)

    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await waiting == "here"


async def test_nothing_at_the_deadline_is_none(tmp_path: Path) -> None:
    waiter = Waiter(tmp_path)

    assert await waiter.wait_for("a", looker(tmp_path / "a"), 0.05) is None


@pytest.mark.parametrize("arrival", ["rename", "link", "write", "rename from elsewhere"])
async def test_watchdog_tells_of_every_way_a_file_gets_its_name(
    tmp_path: Path, arrival: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_waiter, "RESCAN_SECONDS", 60.0)
    folder, elsewhere = tmp_path / "watched", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    waiter = Waiter(folder)
    assert waiter.arm() is None
    waiting = asyncio.create_task(waiter.wait_for("a", looker(folder / "a"), 30))
    await asyncio.sleep(0)

    if arrival == "write":
        (folder / "a").write_text("x")
    else:
        source = (elsewhere if arrival == "rename from elsewhere" else folder) / ".tmp"
        source.write_text("x")
        if arrival == "link":
            (folder / "a").hardlink_to(source)
        else:
            source.rename(folder / "a")

    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await waiting is not None
    waiter.stop()


async def test_one_observer_serves_all_who_wait(tmp_path: Path) -> None:
    observers = Observers()
    waiter = Waiter(tmp_path, start_observer=observers.start)
    for _ in range(5):
        assert waiter.arm() is None
    waiting = [
        asyncio.create_task(waiter.wait_for(name, looker(tmp_path / name), 30)) for name in "aabc"
    ]
    await asyncio.sleep(0)

    for name in "abc":
        (tmp_path / name).write_text(name)
        observers.on_name(name)
    found = await asyncio.gather(*waiting)
    waiter.stop()

    assert found == ["a", "a", "b", "c"]
    assert [observer.stopped for observer in observers.started] == [True]


async def test_the_re_scan_finds_what_nobody_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_waiter, "RESCAN_SECONDS", 0.02)
    waiter = Waiter(tmp_path, start_observer=Observers().start)
    waiter.arm()
    waiting = asyncio.create_task(waiter.wait_for("a", looker(tmp_path / "a"), 30))
    await asyncio.sleep(0)

    (tmp_path / "a").write_text("found")

    assert await waiting == "found"


async def test_without_inotify_it_looks_often(tmp_path: Path) -> None:
    waiter = Waiter(tmp_path, start_observer=no_inotify)
    reason = waiter.arm()
    waiting = asyncio.create_task(waiter.wait_for("a", looker(tmp_path / "a"), 30))
    await asyncio.sleep(0)

    (tmp_path / "a").write_text("found")

    assert await waiting == "found"
    assert isinstance(reason, OSError)
    assert reason.errno == errno.EMFILE


async def test_without_a_thread_to_be_had_it_looks_often(tmp_path: Path) -> None:
    def no_thread(_folder: Path, _on_name: Callable[[str], None]) -> SilentObserver:
        raise RuntimeError("can't start new thread")

    waiter = Waiter(tmp_path, start_observer=no_thread)
    (tmp_path / "a").write_text("found")

    assert isinstance(waiter.arm(), RuntimeError)
    assert await waiter.wait_for("a", looker(tmp_path / "a"), 30) == "found"


async def test_an_event_after_the_loop_has_ended_is_harmless(tmp_path: Path) -> None:
    observers = Observers()

    def run_and_end() -> None:
        async def arm() -> None:
            Waiter(tmp_path, start_observer=observers.start).arm()

        asyncio.run(arm())
        observers.on_name("a")

    await asyncio.to_thread(run_and_end)
