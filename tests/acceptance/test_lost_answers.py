"""An answer that was received by a runner which then died is told again when it is resumed."""

import os
from pathlib import Path

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent, Runs
from tests.contract.agent_support import fill_the_pipe, unread_server
from tests.waiting import until

RETRY_SECONDS = "outcome again"


async def receive_the_first_of_two(host: Host) -> tuple[MailboxAgent, str, str]:
    """Have an agent ask twice and receive the answer to the first; the other stays open."""
    agent = MailboxAgent(host.group("team"))
    first, second = agent.ask("Deploy?"), agent.ask("Where to?")
    await host.listed(2)
    host.answer(first, "2")
    await agent.receive(first)
    closed = await host.closed(first)
    assert closed["delivered"] == "live"
    return agent, first, second


async def resumed_prompt(host: Host, runs: Runs, request_id: str) -> str:
    """Answer the question, and return the prompt that the session is resumed with."""
    host.answer(request_id, "1")
    assert (await host.closed(request_id))["delivered"] == "late"
    found: Json = runs.started()[-1]["initial"]
    assert found["request_id"] == request_id
    return str(found["prompt"])


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_a_killed_runner_had_just_received_is_restated_before_the_new_answer(
    start_host: StartHost, runs: Runs, *, restarted: bool
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent, first, second = await receive_the_first_of_two(host)

    agent.die()
    if restarted:
        await host.restart()
    prompt = await resumed_prompt(host, runs, second)

    assert RETRY_SECONDS in prompt
    restated, _, new = prompt.partition("Where to?")
    assert first in restated
    assert "Deploy?" in restated
    assert "Answer: No" in restated
    assert "Answer: Yes" in new
    assert "do not act on it twice" in prompt


async def test_the_host_dies_before_it_notices_the_receipt_and_the_answer_is_restated(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent = MailboxAgent(host.group("team"))
    first, second = agent.ask("Deploy?"), agent.ask("Where to?")
    await host.listed(2)
    host.answer(first, "2")
    await agent.responded(first)
    host.kill()
    assert agent.take(first)
    agent.die()

    await host.start()
    await host.closed(first)
    prompt = await resumed_prompt(host, runs, second)

    assert RETRY_SECONDS in prompt
    assert "Answer: No" in prompt


async def test_a_runner_that_ended_in_order_is_told_nothing_again(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent, _, second = await receive_the_first_of_two(host)

    agent.leave()

    assert RETRY_SECONDS not in await resumed_prompt(host, runs, second)


@pytest.mark.parametrize("sign", ["ask", "withdraw", "event"])
async def test_after_a_sign_of_life_nothing_is_told_again(
    start_host: StartHost, runs: Runs, sign: str
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent, _, second = await receive_the_first_of_two(host)
    third = agent.ask("And why?")
    await host.listed(2)
    host.answer(third, "1")
    await agent.receive(third)
    await host.closed(third)

    if sign == "ask":
        agent.ask("Once more?")
    elif sign == "withdraw":
        fourth = agent.ask("Never mind?")
        await host.listed(2)
        agent.tell("withdraw", fourth)
    else:
        say(agent, "waiting")
    await until(lambda: not list(agent.tasks.glob("*.json")), "the request to be taken")
    agent.die()

    assert RETRY_SECONDS not in await resumed_prompt(host, runs, second)


@pytest.mark.parametrize("no_sign", ["cancel", "started", "failed"])
async def test_a_cancel_a_start_and_a_word_of_failure_are_no_signs_of_life(
    start_host: StartHost, runs: Runs, no_sign: str
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent, _, second = await receive_the_first_of_two(host)

    if no_sign == "cancel":
        agent.tell("cancel", second)
    else:
        say(agent, no_sign)
    await until(lambda: not list(agent.tasks.glob("*.json")), "the request to be taken")
    agent.die()

    assert RETRY_SECONDS in await resumed_prompt(host, runs, second)


async def test_a_resume_that_fails_restates_again_and_one_that_works_ends_that(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("fail", attempts=2, backoff="50ms"))
    agent, _, second = await receive_the_first_of_two(host)
    agent.die()

    host.answer(second, "1")
    await host.state(second, "undelivered")
    runs.do("exit-0")
    host.retry(second)
    await host.closed(second)
    later = MailboxAgent(host.group("team"))
    third = later.ask("And now?")
    await host.listed()
    later.die()
    prompt = await resumed_prompt(host, runs, third)

    prompts = [run["initial"]["prompt"] for run in runs.started()]
    assert [RETRY_SECONDS in p for p in prompts] == [True, True, True, False]
    assert RETRY_SECONDS not in prompt


async def test_a_program_that_fails_to_resume_is_given_the_restated_answer_again(
    start_host: StartHost, tmp_path: Path
) -> None:
    programs, prompts = tmp_path / "bin", tmp_path / "prompts"
    programs.mkdir()
    prompts.mkdir()
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\nhead -n 2 > "{prompts}/$$"\nexit 1\n')
    claude.chmod(0o700)
    env = f'env = {{ PATH = "{programs}:{os.environ["PATH"]}", HOME = "{tmp_path}" }}\n'
    table = f'[groups.team.launcher]\nkind = "process"\nagent = "claude"\ncwd = "{tmp_path}"\n'
    host = await start_host(f'{table}attempts = 2\nbackoff = "50ms"\n{env}')
    agent, _, second = await receive_the_first_of_two(host)
    agent.die()

    host.answer(second, "1")
    await host.state(second, "undelivered")

    assert [RETRY_SECONDS in each.read_text() for each in prompts.iterdir()] == [True, True]


@pytest.mark.parametrize("mode", ["acknowledge", "exit-0"])
async def test_what_was_restated_to_a_runner_that_ended_well_is_not_restated_once_more(
    start_host: StartHost, runs: Runs, mode: str
) -> None:
    host = await start_host(runs.launcher(mode))
    agent = MailboxAgent(host.group("team"))
    first, second, third = (agent.ask(question) for question in ("Deploy?", "Where?", "Why?"))
    await host.listed(3)
    host.answer(first, "2")
    await agent.receive(first)
    await host.closed(first)
    agent.die()

    assert RETRY_SECONDS in await resumed_prompt(host, runs, second)
    await until(runs.succeeded, "the end of the runner")
    assert RETRY_SECONDS not in await resumed_prompt(host, runs, third)


@pytest.mark.parametrize("mode", ["fail", "finish"])
async def test_of_a_session_that_pynchy_started_the_runners_end_decides(
    start_host: StartHost, runs: Runs, mode: str
) -> None:
    """Its MCP server removes its lease in order also when the agent itself was killed."""
    host = await start_host(runs.process("ask"))
    session_id = host.run()
    [first] = await host.listed()
    beside = MailboxAgent(host.group("team"), session_id)
    second = beside.ask("Where to?", lease=None)
    await host.listed(2)
    beside.leave()

    host.answer(first["request_id"], "2")
    await until(lambda: runs.lines("answered"), "the answer")
    await host.closed(first["request_id"])
    runs.do(mode)
    await until(lambda: not list(beside.tasks.glob("*.lease")), "the lease to be removed")
    await until(lambda: _said(host, session_id, mode), "the runner's end")
    runs.do("finish")
    prompt = await resumed_prompt(host, runs, second)

    assert (RETRY_SECONDS in prompt) is (mode == "fail")


async def kill_a_server_that_holds_an_answer(host: Host) -> str:
    """Have the real MCP server take an answer that its client does not read, and kill it."""
    for name in ("tasks", "responses", "input"):
        (host.group("team") / name).mkdir(parents=True, exist_ok=True)  # the host may be first
    async with unread_server(host.group("team")) as (server, _):
        fill_the_pipe(server)
        server.call(
            1000, "ask_user", question="Deploy?", options=[{"label": "Yes"}, {"label": "No"}]
        )
        (asked,) = await host.listed(1)
        request_id = str(asked["request_id"])
        host.answer(request_id, "1")
        receipt = host.group("team") / "tasks" / f"{request_id}.received"
        await until(receipt.exists, "the receipt")
        assert host.question(request_id)["delivered"] is None
        server.process.kill()
    return request_id


async def test_a_server_that_dies_with_the_answer_in_its_hands_has_its_session_resumed(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))

    request_id = await kill_a_server_that_holds_an_answer(host)

    assert (await host.closed(request_id))["delivered"] == "late"
    (run,) = runs.started()
    assert "Answer: Yes" in run["initial"]["prompt"]
    assert "then its process died" in (await host.cli("show", request_id))[1]
    assert "taker_died" in [event["type"] for event in host.events(request_id)]


@pytest.mark.parametrize("restarted", [False, True])
async def test_without_a_launcher_it_is_said_that_the_process_died_with_the_answer(
    start_host: StartHost, *, restarted: bool
) -> None:
    host = await start_host("")

    request_id = await kill_a_server_that_holds_an_answer(host)

    kept = await host.state(request_id, "undelivered")
    if restarted:
        await host.restart()
        kept = await host.state(request_id, "undelivered")
    assert kept["delivery_error"].startswith("received, then its process died")
    assert "then its process died" in (await host.cli("show", request_id))[1]
    later = MailboxAgent(host.group("team"))
    assert later.take(request_id)
    assert (await host.closed(request_id))["delivered"] == "live"


async def ask_and_answer(host: Host) -> tuple[MailboxAgent, str]:
    """Have an agent ask, and leave the answer where it can take it."""
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask("Deploy?")
    await host.listed(1)
    host.answer(request_id, "2")
    await agent.responded(request_id)
    return agent, request_id


async def test_a_host_that_was_down_when_the_process_died_finds_that_out(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent, request_id = await ask_and_answer(host)
    host.kill()
    assert agent.take(request_id, lease=agent.lease)
    agent.die()

    await host.start()

    assert (await host.closed(request_id))["delivered"] == "late"
    assert "Answer: No" in runs.started()[-1]["initial"]["prompt"]


async def test_a_process_that_dies_after_it_has_passed_the_answer_on_has_delivered_it(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent, request_id = await ask_and_answer(host)
    assert agent.take(request_id, lease=agent.lease)
    (agent.tasks / f"{request_id}.passed").touch()
    agent.die()

    assert (await host.closed(request_id))["delivered"] == "live"
    assert runs.started() == []


def _said(host: Host, session_id: str, mode: str) -> bool:
    kind = {"fail": "session_failed", "finish": "session_finished"}[mode]
    told = [e["type"] for e in host.events() if e.get("session_id") == session_id]
    return kind in told


def say(agent: MailboxAgent, event: str) -> None:
    request_id = f"e-{event}"
    body = {"v": 1, "type": "session:event", "request_id": request_id, "event": event}
    agent.write_json(f"{request_id}.json", body | {"session_id": agent.session_id})
