"""Agent programs that behave badly, and groups that come and go, while the host runs on."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.acceptance.support import ERAS, PYNCHY, Host, MailboxAgent, agent_of
from tests.waiting import until


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cancels_leaves_the_question_open(
    shared_host: Host, group: str, era: str
) -> None:
    async with agent_of(shared_host, group, era=era) as agent:
        call = agent.asking("Deploy?")
        [question] = await shared_host.listed(group=group)
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: "call_ended" in shared_host.kinds(question["request_id"]), "the cancel")
        assert shared_host.question(question["request_id"])["state"] == "open"

        shared_host.answer(question["short_id"], "1")
        text = await agent.check(question["request_id"], timeout=30)

    assert "Answer: Yes" in text


class SilentClient:
    """A client that writes requests and never reads a reply."""

    def __init__(self, host: Host, group: str) -> None:
        self.process = subprocess.Popen(
            [PYNCHY, "mcp", "--group", group, "--data-dir", host.data],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )

    def call(self, number: int, method: str, **params: object) -> None:
        assert self.process.stdin
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def hang_up(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()


@pytest.fixture
def silent(host: Host) -> Iterator[SilentClient]:
    client = SilentClient(host, "silent")
    yield client
    with client.process:
        client.process.kill()


async def test_a_client_that_never_reads_hinders_nobody_and_ends_when_it_hangs_up(
    host: Host, silent: SilentClient
) -> None:
    for number in range(100):
        silent.call(number, "tools/list")
    silent.call(100, "tools/call", name="ask_user", arguments={"question": "Anyone?"})
    [question] = await host.listed()
    assert host.answer(question["short_id"], "yes").status == 200

    async with agent_of(host, "other") as agent:
        call = agent.asking("Deploy?")
        await until(lambda: [p for p in host.pending() if p["group"] == "other"], "the other")
        [other] = [p for p in host.pending() if p["group"] == "other"]
        host.answer(other["short_id"], "1")
        assert "Answer: Yes" in await call

    silent.hang_up()
    await until(lambda: silent.process.poll() is not None, "its server's end")
    assert list((host.group("silent") / "tasks").glob("*.lease")) == []


async def test_the_answer_to_a_client_that_hung_up_is_kept(
    host: Host, silent: SilentClient
) -> None:
    silent.call(1, "tools/call", name="ask_user", arguments={"question": "Anyone?"})
    [question] = await host.listed()

    silent.hang_up()
    await until(lambda: silent.process.poll() is not None, "its server's end")
    assert host.answer(question["short_id"], "yes").status == 200

    await host.state(question["request_id"], "undelivered")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_server_that_is_told_to_end_gives_up_its_lease(
    host: Host, silent: SilentClient, number: signal.Signals
) -> None:
    silent.call(1, "tools/call", name="ask_user", arguments={"question": "Anyone?"})
    await host.listed()

    silent.process.send_signal(number)
    await until(lambda: silent.process.poll() is not None, "its server's end")

    assert list((host.group("silent") / "tasks").glob("*.lease")) == []
    assert len(await host.listed()) == 1


async def test_a_group_that_appears_while_the_host_runs_is_served(
    shared_host: Host, group: str
) -> None:
    await until((shared_host.data / "ipc").is_dir, "the folder of groups")

    agent = MailboxAgent(shared_host.group(group))
    request_id = agent.ask()
    await shared_host.state(request_id, "open")
    shared_host.answer(request_id, "1")

    assert (await agent.receive(request_id))["outcome"] == "answered"
    greeting = json.loads((agent.mailbox / "input" / "host.json").read_bytes())
    assert greeting == {"v": 1, "wait_seconds": 1800, "phux_prefix": f"pynchy:{group}"}


async def test_questions_that_were_written_while_no_host_ran_are_taken_up(host: Host) -> None:
    host.kill()
    known = MailboxAgent(host.group("team"))
    ids = [known.ask(f"Question {number}?") for number in range(3)]

    await host.start()
    await host.listed(3)
    for request_id in ids:
        host.answer(request_id, "1")
        assert (await known.receive(request_id))["outcome"] == "answered"


async def test_an_agent_without_a_host_says_so_and_its_question_is_shown_later(host: Host) -> None:
    host.kill()
    async with agent_of(host) as agent:
        text = await agent.asking("Deploy?", timeout=0.2)
        assert "not to be running" in text

        await host.start()
        [question] = await host.listed()
        host.answer(question["short_id"], "1")
        assert "Answer: Yes" in await agent.check(question["request_id"], timeout=30)


async def test_a_call_waits_through_a_restart_of_the_host(host: Host) -> None:
    async with agent_of(host) as agent:
        call = agent.asking("Deploy?")
        [question] = await host.listed()
        await host.restart()
        await host.restart()
        assert host.answer(question["short_id"], "1").status == 200
        text = await call

    assert "Answer: Yes" in text
    assert (await host.closed(question["request_id"]))["delivered"] == "live"
