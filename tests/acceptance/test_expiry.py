"""What nobody answers ends when its time is over, also when the host was down, and is told."""

from datetime import UTC, datetime

from tests.acceptance.conftest import StartHost
from tests.acceptance.support import MailboxAgent, Runs, agent_of
from tests.waiting import until


async def test_a_question_that_expires_while_the_host_is_down_is_ended_and_told(
    start_host: StartHost,
) -> None:
    host = await start_host('answer_ttl = "2s"\nwait_timeout = "1s"')
    agent = MailboxAgent(host.group("team"))
    first = agent.ask("Deploy?")
    [question] = await host.listed()
    host.kill()
    await until(lambda: _is_past(question["expires_at"]), "the deadline")

    await host.start()
    response = await agent.receive(first)
    closed = await host.closed(first)
    late = host.answer(first, "1")

    assert response["outcome"] == closed["ending"]["outcome"] == "expired"
    assert late.status == 409
    assert late.body["outcome"] == "expired"
    assert "expired" in host.kinds(first)


async def test_a_question_within_its_time_survives_restarts(start_host: StartHost) -> None:
    host = await start_host('answer_ttl = "1h"\nwait_timeout = "100ms"')
    async with agent_of(host) as agent:
        await agent.asking("Deploy?", timeout=0.1)
        [question] = await host.listed()
        await host.restart()
        assert await host.stop() == 0
        await host.start()
        [kept] = await host.listed()
        assert host.answer(kept["short_id"], "1").status == 200
        text = await agent.check(question["request_id"], timeout=30)

    for name in ("request_id", "short_id", "expires_at", "timestamp", "questions"):
        assert kept[name] == question[name]
    assert "Answer: Yes" in text


async def test_an_expired_question_tells_the_waiting_call_that_silence_is_not_consent(
    start_host: StartHost,
) -> None:
    host = await start_host('answer_ttl = "500ms"\nwait_timeout = "500ms"')
    async with agent_of(host) as agent:
        await agent.asking("Deploy?", timeout=0.1)
        [closed] = await until(host.history, "the end")
        text = await agent.check(closed["request_id"], timeout=30)

    assert "Expired" in text
    assert "Silence is not consent" in text


async def test_an_expired_question_resumes_nobody(start_host: StartHost, runs: Runs) -> None:
    settings = 'answer_ttl = "500ms"\nwait_timeout = "500ms"\n'
    host = await start_host(settings + runs.launcher("acknowledge"))
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    agent.die()

    closed = await until(lambda: [q for q in host.history() if q["request_id"] == request_id])

    assert closed[0]["ending"]["outcome"] == "expired"
    assert closed[0]["delivered"] == "none"
    assert runs.started() == []


def _is_past(moment: str) -> bool:
    return datetime.fromisoformat(moment) < datetime.now(UTC)
