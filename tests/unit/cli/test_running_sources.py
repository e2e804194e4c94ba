"""A source that fails stops neither the host nor another source, and is started again."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.support import Host, Run, until

from pynchy.config import Settings
from pynchy.sources import running
from pynchy.sources.base import SeenAgent, SourceHandler


class ToySource:
    """A source that ends at once, in the way that a test says."""

    name = "codex-terminal"
    warnings = ()
    how = ""
    runs = 0

    def __init__(self, *_: Any) -> None:
        """Take what a source is made with."""

    @property
    def route(self) -> Any:
        raise NotImplementedError

    @property
    def problem(self) -> str | None:
        if self.how == "tells nothing":
            raise RuntimeError("no")
        return None

    def agents(self) -> list[SeenAgent]:
        if self.how == "tells nothing":
            raise RuntimeError("no")
        return []

    async def run(self, handler: SourceHandler) -> None:
        del handler
        ToySource.runs += 1
        match self.how:
            case "raises":
                raise OSError("the disk is full")
            case "cancels itself":
                raise asyncio.CancelledError
            case "tells nothing":
                await asyncio.Event().wait()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr("pynchy.host.CodexSource", ToySource)
    monkeypatch.setattr(running, "_RESTART_SECONDS", 0.01)
    monkeypatch.setattr(ToySource, "runs", 0)
    table = {"http": {"port": 0}, "groups": {"team": {}}, "sources": {"codex": {"group": "team"}}}
    host = Host(tmp_path / "data", Settings.model_validate(table))
    yield host
    host.stop()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("raises", "OSError"),
        ("returns", "it ended by itself"),
        ("cancels itself", "it cancelled itself"),
    ],
)
def test_a_source_whose_run_ended_stopped_the_host_or_was_gone_without_a_word(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch, how: str, why: str
) -> None:
    monkeypatch.setattr(ToySource, "how", how)
    monkeypatch.setattr(running, "_RESTART_MAX_SECONDS", 0.01)

    host.start()
    until(lambda: ToySource.runs > 2)

    told = f"codex-terminal: stopped ({why}) and is started again"
    assert host.ask("Deploy?")
    assert told in host.client.problems()
    assert told in " ".join(run("doctor").output.split())


def test_a_source_that_cannot_tell_what_it_sees_costs_no_list_and_no_status(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToySource, "how", "tells nothing")

    host.start()

    assert host.client.agents() == []
    assert host.client.problems() == ["codex-terminal: cannot be asked (RuntimeError)"]


class Restless(ToySource):
    """Ends at once each time."""

    how = "returns"


async def test_a_source_that_ends_again_and_again_is_started_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            raise asyncio.CancelledError

    monkeypatch.setattr(running.asyncio, "sleep", sleep)
    sources = running.RunningSources([Restless()])

    async with asyncio.TaskGroup() as tasks:
        sources.start(None, tasks)  # type: ignore[arg-type]

    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert pauses[-2:] == [300.0, 300.0]


async def test_what_stopped_long_ago_is_no_problem_any_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: now[0])
    caplog.set_level(logging.CRITICAL)
    sources = running.RunningSources([Restless()])
    tasks = asyncio.TaskGroup()

    async with tasks:
        sources.start(None, tasks)  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task = next(task for task in asyncio.all_tasks() if task.get_name().startswith("source "))
        before = sources.problems()
        now[0] += 601
        after = sources.problems()
        task.cancel()

    assert (len(before), after) == (1, [])


async def test_what_could_not_be_written_is_tried_again_until_it_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running, "_RETRY_SECONDS", 0.0)
    attempts = iter([OSError("full"), RuntimeError("odd"), None])

    async def work() -> str:
        if (failure := next(attempts)) is not None:
            raise failure
        return "done"

    assert await running.keep_trying(work, "source.toy_failed") == "done"
    assert caplog.text.count("source.toy_failed") == 2
