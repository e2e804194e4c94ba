"""An agent that has put its call off: seen as parked, and resumed to make it however it ends."""

from datetime import UTC, datetime

from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, MailboxAgent, Runs
from tests.waiting import until

SESSION = "session-1"


async def park(host: Host, *before: str) -> tuple[str, list[str]]:
    """Have an agent ask, park on its last question and end. Return that one and the others."""
    agent = MailboxAgent(host.group("team"), SESSION)
    others = [agent.ask(question) for question in before]
    parked_on = agent.ask("Deploy?")
    await host.listed(1 + len(before))
    agent.tell("park", parked_on)
    await host.session_is(SESSION, "waiting")
    agent.leave()
    await host.session_is(SESSION, "parked")
    return parked_on, others


async def test_the_answer_to_a_parked_agent_resumes_it_where_it_was(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    request_id, _ = await park(host)

    host.kill()
    await host.start()
    parked = await host.session_is(SESSION, "parked")
    host.answer(request_id, "2")
    closed = await host.closed(request_id)

    [run] = runs.started()
    assert parked["detail"] == closed["short_id"]
    assert run["initial"]["parked"] is True
    assert "Answer: No" in run["initial"]["prompt"]
    assert (closed["delivered"], closed["parked"]) == ("late", True)


async def test_an_agent_that_makes_its_call_after_all_is_no_longer_parked(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agent = MailboxAgent(host.group("team"), SESSION)
    request_id = agent.ask("Deploy?")
    await host.listed()
    agent.tell("park", request_id)
    await until(lambda: host.question(request_id)["parked"], "the call to be put off")

    agent.ask("Deploy?", request_id=request_id)
    await until(lambda: not host.question(request_id)["parked"], "the call to be made")
    agent.leave()
    host.answer(request_id, "1")
    await host.closed(request_id)

    [run] = runs.started()
    assert "parked" not in run["initial"]


async def test_an_answer_to_another_question_waits_for_the_one_that_the_agent_is_parked_on(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    request_id, [other] = await park(host, "Which colour?")

    host.answer(other, "1")
    await host.state(other, "held")
    asks = host.question(request_id)["short_id"]
    await host.session_is(SESSION, "parked", detail=asks)
    host.answer(request_id, "1")
    await host.closed(request_id)
    await host.closed(other)

    first, second = runs.started()
    assert first["initial"]["request_id"] == request_id
    assert second["initial"]["request_id"] == other
    assert "parked" not in second["initial"]


async def test_a_parked_agent_is_told_that_nobody_answered(
    start_host: StartHost, runs: Runs
) -> None:
    clocks = 'wait_timeout = "3s"\nanswer_ttl = "3s"\n'
    host = await start_host(clocks + runs.launcher("acknowledge"))
    request_id, _ = await park(host)

    closed = await host.closed(request_id)

    [run] = runs.started()
    assert run["initial"]["outcome"] == "expired"
    assert "Nobody has given consent" in run["initial"]["prompt"]
    assert closed["delivered"] == "late"


async def test_a_prompt_that_takes_the_place_of_a_call_ends_its_parking(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("fail", attempts=1))
    request_id, [other] = await park(host, "Which colour?")
    host.answer(request_id, "1")
    await host.state(request_id, "undelivered")

    runs.do("acknowledge")
    host.answer(other, "1")
    await host.closed(other)
    host.retry(request_id)
    await host.closed(request_id)

    told = [(run["initial"]["request_id"], run["initial"].get("parked")) for run in runs.started()]
    assert told == [(request_id, True), (other, None), (request_id, None)]


async def test_stopping_a_parked_session_says_what_can_be_done(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    request_id, _ = await park(host)

    code, _, err = await host.cli("stop", SESSION)
    short_id = host.question(request_id)["short_id"]

    assert code == 4
    assert f"pynchy decline {short_id}" in err
    assert host.question(request_id)["state"] == "open"
    assert "parked: the answer resumes it" in (await host.cli("show", short_id))[1]
    listed = (await host.cli("sessions"))[1]
    assert "parked, waiting on you" in listed
    assert f"pynchy answer {short_id}" in listed


async def test_an_agent_that_parked_while_its_question_expired_is_told(
    start_host: StartHost, runs: Runs
) -> None:
    clocks = 'wait_timeout = "2s"\nanswer_ttl = "2s"\n'
    host = await start_host(clocks + runs.launcher("acknowledge"))
    agent = MailboxAgent(host.group("team"), SESSION)
    request_id = agent.ask("Deploy?")
    [asked] = await host.listed()
    host.kill()
    agent.tell("park", request_id)
    agent.leave()
    over = datetime.fromisoformat(asked["expires_at"])
    await until(lambda: datetime.now(UTC) > over, "the question to be over")

    await host.start()
    closed = await host.closed(request_id)

    assert (closed["parked"], closed["delivered"]) == (True, "late")
    [run] = runs.started()
    assert run["initial"]["outcome"] == "expired"
