"""A data folder whose lock, address or very self is taken away, in any order, under its host.

At most one host goes on, whoever lost the folder says why it stops and leaves the next one's files
alone, and each question that was asked meanwhile is answered once and delivered.
"""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.acceptance.support import Host, MailboxAgent
from tests.prove.conftest import SEED, Proof
from tests.prove.surroundings.support import logged, problems, serves
from tests.waiting import until

GROUPS = ("one", "two", "three")
# Far more than a moment on any machine, and far less than for ever.
MOMENT_SECONDS = 15.0
PAUSE_SECONDS = 0.03


class Takeovers:
    """One data folder, the hosts that were started on it, and what was asked meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.chance = random.Random(SEED)  # noqa: S311 - a repeatable choice, not a secret
        self.folder = folder
        self.data = folder / "data"
        self.aside = folder / "aside"
        self.hosts: list[Host] = []
        self.asked: dict[str, MailboxAgent] = {}
        self.steps: list[str] = []

    @property
    def host(self) -> Host:
        return self.hosts[-1]

    async def start(self) -> None:
        """Start the next host, with a log of its own."""
        host = Host(self.data)
        host.log = self.folder / f"host-{len(self.hosts)}.log"
        self.hosts.append(host)
        await host.start()

    async def step(self) -> None:
        """Do one thing of all that may happen, and see that all is well afterwards."""
        happens: Callable[[], Awaitable[None]] = self.chance.choice(
            [
                self.lock_is_removed,
                self.lock_is_replaced,
                self.folder_is_moved_and_back,
                self.folder_is_replaced_by_a_copy,
                self.folder_is_another_for_a_while,
                self.address_is_removed,
                self.address_is_overwritten,
                self.second_host_is_started,
                self.host_ends,
                self.host_is_killed,
            ]
        )
        self.steps.append(happens.__name__)
        self.ask()
        await happens()
        self.ask()
        # Two hosts that take up a new group in the same moment may be in each other's way, once.
        await until(lambda: not problems(self.host), f"health: {self.steps}", MOMENT_SECONDS)
        assert [h for h in self.hosts if _runs(h)] == [self.host], self.steps

    def ask(self) -> None:
        agent = MailboxAgent(self.data / "ipc" / self.chance.choice(GROUPS))
        self.asked[agent.ask()] = agent

    async def lock_is_removed(self) -> None:
        (self.data / "host.lock").unlink()
        await self.is_taken_over()

    async def lock_is_replaced(self) -> None:
        (self.folder / "lock").touch(0o600)
        (self.folder / "lock").replace(self.data / "host.lock")
        await self.is_taken_over()

    async def folder_is_moved_and_back(self) -> None:
        """With or without the time to notice, the host makes no other folder in its place."""
        self.data.rename(self.aside)
        if notices := self.chance.choice((True, False)):
            await self.stops(self.host)
        assert not self.data.exists(), self.steps
        self.aside.rename(self.data)
        if notices:
            await self.start()

    async def folder_is_replaced_by_a_copy(self) -> None:
        """As a backup that is put back."""
        await until(lambda: not [*self.data.glob("ipc/*/tasks/*.json")], "all to be recorded")
        passing = shutil.ignore_patterns(".tmp-*")
        shutil.copytree(self.data, self.folder / "copy", symlinks=True, ignore=passing)
        self.data.rename(self.aside)
        (self.folder / "copy").rename(self.data)
        await self.is_taken_over()
        shutil.rmtree(self.aside)

    async def folder_is_another_for_a_while(self) -> None:
        """A host of another folder comes and goes in the place of the first."""
        old = self.host
        self.data.rename(self.aside)
        await self.start()
        await self.stops(old)
        await serves(self.host)
        assert await self.host.stop() == 0, self.steps
        assert not (self.data / "host.json").exists(), self.steps
        shutil.rmtree(self.data)
        self.aside.rename(self.data)
        await self.start()

    async def address_is_removed(self) -> None:
        (self.data / "host.json").unlink(missing_ok=True)

    async def address_is_overwritten(self) -> None:
        (self.data / "host.json").write_bytes(self.chance.choice((b"", b"{", b'{"url": 1}')))

    async def second_host_is_started(self) -> None:
        """It is refused, and changes nothing."""
        address = self.data / "host.json"
        before = address.read_bytes() if address.exists() else None

        code, out, err = await asyncio.wait_for(
            self.host.cli("serve", "--port", "0"), MOMENT_SECONDS
        )

        assert (code, out) == (1, ""), (self.steps, err)
        assert "another pynchy host" in err, (self.steps, err)
        assert (address.read_bytes() if address.exists() else None) == before, self.steps

    async def host_ends(self) -> None:
        assert await self.host.stop() == 0, self.steps
        assert not (self.data / "host.json").exists(), self.steps
        await self.start()

    async def host_is_killed(self) -> None:
        self.host.kill()
        await self.start()

    async def is_taken_over(self) -> None:
        """The next host starts at once, and people ask while both are there."""
        old = self.host
        asking = asyncio.create_task(self.ask_all_the_time())
        await self.start()
        if is_told := self.chance.random() < 0.3:
            assert old.process is not None
            old.process.send_signal(signal.SIGTERM)
        await self.stops(old, says_why=not is_told)
        asking.cancel()
        await asyncio.wait([asking])
        assert f'"{self.host.url}"' in (self.data / "host.json").read_text(), self.steps

    async def ask_all_the_time(self) -> None:
        while True:
            self.ask()
            await asyncio.sleep(PAUSE_SECONDS)

    async def stops(self, host: Host, *, says_why: bool = True) -> None:
        process = host.process
        assert process is not None
        await until(lambda: process.poll() is not None, f"the end: {self.steps}", MOMENT_SECONDS)
        if says_why:
            assert process.returncode == 1, self.steps
            assert logged(host, "host.lock was removed or the folder was moved"), self.steps

    async def all_are_answered_once(self) -> None:
        for request_id in self.asked:
            await until(lambda i=request_id: self._is_known(i), f"{request_id}: {self.steps}")
            if self.host.question(request_id)["ending"] is None:
                assert self.host.answer(request_id, "1").status == 200, self.steps
        for request_id, agent in self.asked.items():
            agent.die()  # its lease may have stayed in another folder
            response = await agent.receive(request_id)
            assert response["answers"][0]["selected"] == ["Yes"], self.steps
        for request_id in self.asked:
            await self.host.closed(request_id)
            assert self.host.kinds(request_id).count("answered") == 1, self.steps

    def _is_known(self, request_id: str) -> bool:
        return self.host.http("GET", f"/api/questions/{request_id}").status == 200


def _runs(host: Host) -> bool:
    return host.process is not None and host.process.poll() is None


@pytest.fixture
async def takeovers(tmp_path: Path) -> AsyncIterator[Takeovers]:
    takeovers = Takeovers(tmp_path)
    await takeovers.start()
    yield takeovers
    for host in takeovers.hosts:
        host.kill()


@pytest.mark.timeout(1_800)
async def test_whatever_is_done_to_lock_and_folder_one_host_goes_on_and_no_question_is_lost(
    takeovers: Takeovers, proof: Proof
) -> None:
    steps = proof.choose(sample=8, prove=60, everything=600)

    for _ in range(steps):
        await takeovers.step()
    await takeovers.all_are_answered_once()

    proof.report(
        "lock and folder",
        steps=steps,
        hosts=len(takeovers.hosts),
        questions=len(takeovers.asked),
        seed=SEED,
    )
    assert os.listdir(takeovers.folder).count("aside") == 0
