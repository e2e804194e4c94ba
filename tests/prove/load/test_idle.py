"""Thousands of answers that nobody has come for cost next to nothing."""

import asyncio
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.prove.load.people import Scales, patiently
from tests.prove.load.test_load import SETTINGS, fill
from tests.waiting import until

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
