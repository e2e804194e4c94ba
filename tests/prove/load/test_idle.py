"""Thousands of answers that nobody has come for, or of groups at rest, cost next to nothing."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host
from tests.prove.load.people import Scales, opened, patiently
from tests.prove.load.test_load import SETTINGS, fill
from tests.waiting import until

from pynchy.ipc import watcher
from pynchy.model import GroupName

pytestmark = pytest.mark.timeout(900)


async def test_answers_that_nobody_comes_for_do_not_keep_the_host_busy(
    start_host: StartHost, proof: Any
) -> None:
    count = proof.choose(sample=100, prove=2_000, everything=8_000)
    seconds = proof.choose(sample=2, prove=10, everything=30)
    host = await start_host(SETTINGS + 'receipt_grace = "0s"\n')
    assert host.process is not None
    fill(host, count)

    def undelivered() -> bool:
        for question in host.pending():
            if question["state"] == "open":
                assert host.answer(question["request_id"], "nobody hears this").status == 200
        states = [question["state"] for question in host.pending()]
        return states == ["undelivered"] * count

    await patiently(undelivered, f"{count} undelivered answers")
    with Scales(host.process.pid) as scales:
        await asyncio.sleep(seconds)  # the time that is measured

    share = scales.cpu_seconds / seconds
    proof.report("idle", undelivered=count, busy_share=round(share, 3))
    assert share < 0.25
    host.group("idle-0").joinpath("tasks/idle-0.received").write_text("{}")
    await until(lambda: host.question("idle-0")["delivered"] == "live", "the receipt to be seen")


async def at_rest(start_host: StartHost, groups: int, seconds: float) -> Scales:
    """Weigh a host with so many groups that all want nothing, and see that each is still heard."""
    host: Host = await start_host("", f"data-{groups}", by_command=True)
    for number in range(groups):
        (host.group(f"rest-{number}") / "tasks").mkdir(parents=True, exist_ok=True)
    greeted = [host.group(f"rest-{number}") / "input" / "host.json" for number in range(groups)]
    await patiently(lambda: all(path.exists() for path in greeted), f"{groups} groups greeted")
    assert host.process is not None
    with Scales(host.process.pid) as scales:
        await asyncio.sleep(seconds)  # the time that is measured
    fill(host, 1)
    await opened(host, 1)
    assert await host.stop() == 0
    return scales


async def test_groups_at_rest_keep_no_thread_awake_and_cost_less_each_the_more_they_are(
    start_host: StartHost, proof: Any
) -> None:
    """Threads that wake are counted: as many, whether there are a hundred groups or thousands."""
    groups = proof.choose(sample=100, prove=3_000, everything=3_000)
    seconds = proof.choose(sample=2.5, prove=20, everything=40)

    many = await at_rest(start_host, groups, seconds)

    assert many.restless_threads < 50
    figures = {"groups": groups, "restless_threads": many.restless_threads}
    if proof.scale != "sample":
        few = await at_rest(start_host, groups // 10, seconds)
        ratio = many.cpu_seconds / max(few.cpu_seconds, 0.01)
        proof.report("groups at rest", **figures, cost_of_ten_times_as_many=round(ratio, 1))
        assert ratio < 4  # 7 where every group is looked at once a second
    proof.report("groups at rest", **figures, busy_share=round(many.cpu_seconds / seconds, 3))


class SlowGroups:
    """Groups at which it takes long to look; notes when each round of looks began and ended."""

    def __init__(self) -> None:
        self._began: float | None = None
        self.rounds: list[tuple[float, float]] = []

    def is_whole(self, _group: GroupName) -> bool:
        if self._began is None:
            self._began = time.monotonic()
        time.sleep(0.003)  # what makes the look long
        return True

    async def joined(self, _group: GroupName) -> None:
        return

    def noticed(self, _group: GroupName, _name: str) -> None:
        return

    def look(self, _group: GroupName) -> None:
        """The watcher looks at all in turn; with the first of them, the round is at its end."""
        if self._began is not None:
            self.rounds.append((self._began, time.monotonic()))
            self._began = None


async def test_looks_that_take_long_are_rare_so_that_looking_takes_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are measured on the same clock: no speed is judged."""
    monkeypatch.setattr(watcher, "RESCAN_SECONDS", 0.01)
    for number in range(10):
        (tmp_path / f"slow-{number}" / "tasks").mkdir(parents=True)
    groups = SlowGroups()
    watching = asyncio.create_task(watcher.Watcher(tmp_path, groups).run())

    await until(lambda: len(groups.rounds) == 4, "four rounds of looks")

    watching.cancel()
    await asyncio.wait([watching])
    looking = sum(ended - began for began, ended in groups.rounds[:-1])
    assert looking / (groups.rounds[-1][0] - groups.rounds[0][0]) < 0.2
