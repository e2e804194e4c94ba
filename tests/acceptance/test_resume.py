"""The agent is gone, or waits no longer: the answer reaches it all the same."""

import asyncio
import signal
from pathlib import Path

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Agent, Host, Json, MailboxAgent, Runs, agent_of, gone
from tests.waiting import until


async def ask_and_be_killed(host: Host, **environ: str) -> Json:
    """Have a real agent ask, and kill -9 its server while it waits."""
    async with agent_of(host, **environ) as agent:
        call = agent.asking("Deploy?")
        [question] = await host.listed()
        agent.signal(signal.SIGKILL)
        await gone(call)
    return question


@pytest.mark.parametrize("mode", ["acknowledge", "exit-0"])
async def test_the_answer_to_a_killed_agent_resumes_its_session(
    start_host: StartHost, runs: Runs, mode: str
) -> None:
    host = await start_host(runs.launcher(mode))
    question = await ask_and_be_killed(host, PYNCHY_SESSION_ID="session-42")

    reply = host.answer(question["short_id"], "2")
    closed = await host.closed(question["request_id"])

    assert reply.status == 200
    [run] = runs.started()
    assert run["session_id"] == run["environ"] == run["initial"]["session_id"] == "session-42"
    assert run["initial"]["request_id"] == question["request_id"]
    assert run["initial"]["questions"][0]["question"] == "Deploy?"
    assert run["initial"]["answers"] == [{"question": "Deploy?", "selected": ["No"], "text": None}]
    assert run["initial"]["answered_by"] == "ana"
    for part in ("Deploy?", "No", "ana"):
        assert part in run["initial"]["prompt"]
    assert closed["delivered"] == "late"
    assert host.pending() == []


async def test_a_killed_agent_is_not_said_to_wait(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    async with agent_of(host, PYNCHY_SESSION_ID="session-42") as agent:
        call = agent.asking("Deploy?")
        [question] = await host.listed()
        _, waiting, _ = await host.cli("show", question["short_id"])
        agent.signal(signal.SIGKILL)
        await gone(call)

    _, dead, _ = await host.cli("show", question["short_id"])

    assert "waits 30m" in waiting or "waits 29m" in waiting
    assert "has stopped: the answer resumes it" in dead


async def test_an_acknowledged_answer_is_delivered_while_the_runner_still_works(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("linger"))
    question = await ask_and_be_killed(host)

    host.answer(question["short_id"], "1")
    closed = await host.closed(question["request_id"])

    assert closed["delivered"] == "late"
    assert runs.succeeded() == []
    runs.do("acknowledge")
    await until(runs.succeeded, "the runner's end")


async def test_a_session_without_an_id_is_started_cold(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.launcher("exit-0"))
    question = await ask_and_be_killed(host, PYNCHY_SESSION_ID="")

    host.answer(question["short_id"], "1")
    await host.closed(question["request_id"])

    [run] = runs.started()
    assert run["session_id"] == run["initial"]["session_id"] == ""


async def test_a_failing_command_is_tried_again_then_shown_and_started_again_by_a_person(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("fail", attempts=3, backoff="50ms"))
    question = await ask_and_be_killed(host)

    host.answer(question["short_id"], "1")
    undelivered = await host.state(question["request_id"], "undelivered")

    assert len(runs.started()) == 3
    assert "exit code 3" in undelivered["delivery_error"]
    assert [p["state"] for p in host.pending()] == ["undelivered"]
    assert host.kinds(question["request_id"]).count("resume_failed") == 2

    runs.do("acknowledge")
    code, _, err = await host.cli("retry", question["short_id"])
    assert (code, err) == (0, "")
    closed = await host.closed(question["request_id"])

    assert closed["delivered"] == "late"
    assert len(runs.started()) == 4
    assert len(runs.succeeded()) == 1
    assert host.retry(question["request_id"]).status == 409


async def test_the_next_attempt_waits_for_its_pause(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.launcher("fail", attempts=2, backoff="1h"))
    question = await ask_and_be_killed(host)

    host.answer(question["short_id"], "1")
    await until(lambda: host.question(question["request_id"])["retry_at"], "a failed attempt")

    found = host.question(question["request_id"])
    assert found["state"] == "resuming"
    assert found["delivery_attempts"] == 1
    assert len(runs.started()) == 1


async def test_a_retry_during_the_pause_makes_the_next_attempt_now_and_only_one(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("fail", attempts=5, backoff="1h"))
    question = await ask_and_be_killed(host)
    host.answer(question["short_id"], "1")
    await until(lambda: host.question(question["request_id"])["retry_at"], "a failed attempt")

    runs.do("wait")
    code, _, err = await host.cli("retry", question["short_id"])
    await until(lambda: len(runs.started()) == 2, "the next attempt")
    refused = host.retry(question["request_id"])
    runs.do("acknowledge")
    closed = await host.closed(question["request_id"])

    assert (code, err) == (0, "")
    assert refused.status == 409
    assert "under way" in refused.body["error"]
    assert closed["delivered"] == "late"
    assert closed["delivery_attempts"] == 2
    assert len(runs.started()) == 2


async def test_a_command_that_exceeds_its_cap_is_asked_to_end_then_killed(
    start_host: StartHost, runs: Runs
) -> None:
    table = runs.launcher("hang", attempts=1, timeout="1s", term_grace="300ms")
    host = await start_host(table)
    question = await ask_and_be_killed(host)

    host.answer(question["short_id"], "1")
    undelivered = await host.state(question["request_id"], "undelivered")

    assert "cap" in undelivered["delivery_error"]
    [run] = runs.started()
    assert len(runs.lines("asked to end")) == 1
    assert runs.succeeded() == []
    await until(lambda: not _is_alive(run["pid"]), "the command to be gone")


async def test_without_a_launcher_the_answer_is_kept_and_check_answer_brings_it(
    host: Host,
) -> None:
    question = await ask_and_be_killed(host)

    host.answer(question["short_id"], "1")
    undelivered = await host.state(question["request_id"], "undelivered")
    async with agent_of(host) as agent:
        text = await agent.check(question["request_id"])

    assert "no launcher" in undelivered["delivery_error"]
    assert "Answer: Yes" in text
    assert "ana" in text
    assert "Already delivered" not in text
    await host.closed(question["request_id"])
    assert host.retry(question["request_id"]).status == 409


async def test_a_waiter_that_slept_past_its_lease_is_told_that_another_has_the_answer(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host('lease_ttl = "1s"\n' + runs.launcher("acknowledge"))
    async with agent_of(host) as agent:
        call = agent.calling("ask_user", {"question": "What name?"})
        [question] = await host.listed()
        agent.signal(signal.SIGSTOP)
        await until(lambda: _state_of(agent.pid) == "T", "the waiter to stand still")
        try:
            host.answer(question["short_id"], "a secret word")
            closed = await host.closed(question["request_id"])
        finally:
            agent.signal(signal.SIGCONT)
        text = await call

    assert closed["delivered"] == "late"
    assert len(runs.succeeded()) == 1
    assert "handed to a resumed session" in text
    assert "secret word" not in text


@pytest.mark.parametrize("how", ["timed out", "cancelled"])
async def test_an_answer_to_a_runner_that_waits_no_longer_is_held_for_check_answer(
    start_host: StartHost, runs: Runs, how: str
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    async with agent_of(host) as agent:
        question = await _stop_waiting(host, agent, how)
        assert host.answer(question["short_id"], "1").status == 200
        await host.state(question["request_id"], "held")
        text = await agent.check(question["request_id"])
        closed = await host.closed(question["request_id"])

    assert "Answer: Yes" in text
    assert closed["delivered"] == "live"
    assert runs.started() == []


async def test_an_answer_that_is_held_comes_with_the_next_result(host: Host) -> None:
    async with agent_of(host) as agent:
        question = await _stop_waiting(host, agent, "timed out")
        host.answer(question["short_id"], "1")
        await host.state(question["request_id"], "held")
        call = agent.asking("Something else?")
        [other] = await host.listed()
        host.answer(other["short_id"], "2")
        text = await call
        closed = await host.closed(question["request_id"])

    assert "Question: Something else?\nAnswer: No" in text
    assert "Question: Deploy?\nAnswer: Yes" in text
    assert closed["delivered"] == "live"


async def test_an_answer_that_is_held_resumes_the_session_when_the_runner_ends(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    async with agent_of(host) as agent:
        question = await _stop_waiting(host, agent, "timed out")
        host.answer(question["short_id"], "1")
        await host.state(question["request_id"], "held")
        assert runs.started() == []

    closed = await host.closed(question["request_id"])
    assert closed["delivered"] == "late"
    [run] = runs.succeeded()
    assert run


@pytest.mark.parametrize("agent_lives", [True, False])
async def test_an_answer_after_the_wait_and_after_a_restart_arrives(
    start_host: StartHost, runs: Runs, *, agent_lives: bool
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    async with agent_of(host) as agent:
        question = await _stop_waiting(host, agent, "timed out")
        if not agent_lives:
            agent.signal(signal.SIGKILL)
        await host.restart()
        [kept] = await host.listed()
        assert kept["short_id"] == question["short_id"]
        assert host.answer(kept["short_id"], "1").status == 200
        if agent_lives:
            await host.state(question["request_id"], "held")
            assert "Answer: Yes" in await agent.check(question["request_id"])
        closed = await host.closed(question["request_id"])

    assert closed["delivered"] == ("live" if agent_lives else "late")
    assert len(runs.succeeded()) == (0 if agent_lives else 1)


async def test_the_host_dies_while_it_resumes_and_the_next_one_finds_the_runner(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("wait"))
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.listed()
    agent.die()

    host.answer(request_id, "1")
    await until(runs.started, "the runner")
    await host.restart()
    second = host.answer(request_id, "2", by="ben")
    await host.state(request_id, "resuming")
    runs.do("exit-0")
    closed = await host.closed(request_id)

    assert second.status == 409
    assert closed["delivered"] == "late"
    assert len(runs.started()) == len(runs.succeeded()) == 1


async def test_a_declined_question_resumes_the_session_without_consent(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("exit-0"))
    question = await ask_and_be_killed(host)

    assert host.decline(question["short_id"]).status == 200
    await host.closed(question["request_id"])

    [run] = runs.started()
    assert run["initial"]["outcome"] == "declined"
    assert run["initial"]["answers"] == []
    assert "declined" in run["initial"]["prompt"]


async def test_two_answers_of_one_session_never_have_two_runners_at_once(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("wait"))
    agent = MailboxAgent(host.group("team"))
    ids = [agent.ask(f"Question {n}?") for n in range(2)]
    await host.listed(2)
    agent.die()

    for request_id in ids:
        host.answer(request_id, "1")
    await until(runs.started, "the first runner")
    states = await until(
        lambda: sorted(p["state"] for p in host.pending() if p["ending"]), "both to have ended"
    )
    assert len(states) == 2
    assert states.count("resuming") == 1
    assert len(runs.started()) == 1
    runs.do("exit-0")
    for request_id in ids:
        assert (await host.closed(request_id))["delivered"] == "late"
    assert len(runs.succeeded()) == 2


async def _stop_waiting(host: Host, agent: Agent, how: str) -> Json:
    """Have the agent's call end without an answer, and return the question that stays open."""
    if how == "timed out":
        text = await agent.asking("Deploy?", timeout=0.2)
        assert "No answer yet" in text
        [question] = await host.listed()
        return question
    call = agent.asking("Deploy?")
    [question] = await host.listed()
    call.cancel()
    await asyncio.wait([call])
    await until(lambda: not host.question(question["request_id"])["call_waits"], "the cancel")
    return question


def _is_alive(pid: int) -> bool:
    return _state_of(pid) not in {"Z", ""}


def _state_of(pid: int) -> str:
    """Return the letter that the kernel shows for the process, nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
