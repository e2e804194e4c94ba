"""The host's event loop when the kernel has no room for another entry of epoll."""

import asyncio
import errno
import os
import selectors
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Person

from pynchy.aio import HostLoop
from pynchy.config import Settings
from pynchy.data_dir import DataFolder
from pynchy.host import running_host

SETTINGS = Settings.model_validate({"http": {"port": 0}})


class Kernel(selectors.DefaultSelector):
    """Refuses entries as the kernel does when a user has `fs.epoll.max_user_watches` of them."""

    is_full = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if Kernel.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().register(fileobj, events, data)


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Kernel]]:
    monkeypatch.setattr(selectors, "DefaultSelector", Kernel)
    yield Kernel
    Kernel.is_full = False


def on_a_host(tmp_path: Path, use: Callable[[Person], Any]) -> Any:
    """Do something with a host that runs on its own loop."""

    async def run() -> Any:
        async with running_host(SETTINGS, DataFolder(tmp_path)) as running:
            return await asyncio.to_thread(use, Person(tmp_path, running.url))

    with asyncio.Runner(loop_factory=HostLoop) as runner:
        return runner.run(run())


def test_an_agent_that_takes_all_of_epoll_shut_http_for_everybody(tmp_path: Path) -> None:
    def use(person: Person) -> list[Any]:
        before = person.http("GET", "/healthz").body
        Kernel.is_full = True
        return [before, *(person.http("GET", "/healthz").body for _ in range(3))]

    before, *meanwhile = on_a_host(tmp_path, use)

    assert before["status"] == "ok"
    for each in meanwhile:
        [problem] = each["problems"]
        assert "taken all entries of epoll" in problem


def test_a_host_starts_where_epoll_is_full_already(tmp_path: Path) -> None:
    Kernel.is_full = True

    reply = on_a_host(tmp_path, lambda person: person.http("GET", "/api/pending"))

    assert (reply.status, reply.body) == (200, [])
