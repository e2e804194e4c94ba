"""A host whose log nobody reads, or nobody can: neither people nor its own end wait for that."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.acceptance.support import Host
from tests.prove.conftest import Proof
from tests.prove.hostile.test_flood import flooding
from tests.prove.hostile.watching import Bystander, figures_are_told

OpenLog = Callable[[], AbstractContextManager[int]]


@contextmanager
def full_pipe() -> Iterator[int]:
    """Nobody reads, and there is room for nothing: whoever writes waits for ever."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    yield writer
    os.close(writer)
    os.close(reader)


@contextmanager
def closed_pipe() -> Iterator[int]:
    """Whoever read has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@contextmanager
def full_disk() -> Iterator[int]:
    """Every write fails for want of room."""
    with Path("/dev/full").open("wb", buffering=0) as file:
        yield file.fileno()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("open_log", [full_pipe, closed_pipe, full_disk], ids=lambda o: o.__name__)
async def test_a_log_that_takes_nothing_delays_no_answer_and_no_end(
    tmp_path: Path, proof: Proof, open_log: OpenLog
) -> None:
    trips = proof.choose(sample=2, prove=50, everything=500)
    files = proof.choose(sample=100, prove=1_000, everything=1_000)
    host = Host(tmp_path / "data")
    other, noisy = Bystander(host), Bystander(host, "noisy")
    with open_log() as log:
        host.log_to = log
        try:
            await host.start("--port", "0", "--log-level", "debug")
            for each in (other, noisy):
                await each.greeted()
            with flooding(noisy.agent.tasks, files):
                for _ in range(trips):
                    await other.is_served()
                assert host.http("GET", "/api/status").status == 200
            assert await figures_are_told(host)
            await host.restart()
            await other.is_served()

            assert await host.stop() == 0
        finally:
            host.kill()
