"""A question ends once, whatever comes at the same moment, and both sides are told the same."""

import asyncio

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent, agent_of
from tests.waiting import until

ROUNDS = 12


async def check_one_outcome(host: Host, agent: MailboxAgent, request_id: str) -> Json:
    """Hold the person's reply, the agent's response and the record to one outcome."""
    response = await agent.receive(request_id)
    closed = await host.closed(request_id)
    assert response["outcome"] == closed["ending"]["outcome"]
    assert response["answers"] == closed["ending"]["answers"]
    assert response["answered_by"] == closed["ending"]["answered_by"]
    endings = {"answered", "declined", "defaulted", "expired", "withdrawn"}
    told = [kind for kind in host.kinds(request_id) if kind in endings]
    assert told == [closed["ending"]["outcome"]]
    return response


@pytest.mark.parametrize("rival", ["expired", "defaulted"])
async def test_an_answer_that_races_the_clock_has_one_outcome(
    start_host: StartHost, rival: str
) -> None:
    host = await start_host('answer_ttl = "1s"\nwait_timeout = "1s"')
    agent = MailboxAgent(host.group("team"))
    question: Json = {"question": "Deploy?", "options": ["Yes", "No"]}
    if rival == "defaulted":
        question["default"] = "No"

    asked = [agent.ask(questions=[question], wait_seconds=1) for _ in range(ROUNDS)]

    async def race(request_id: str) -> str:
        reply = await asyncio.to_thread(host.answer, request_id, "1")
        response = await check_one_outcome(host, agent, request_id)
        assert reply.status == (200 if response["outcome"] == "answered" else 409)
        if reply.status == 409:
            assert reply.body["outcome"] == response["outcome"] == rival
        return str(response["outcome"])

    def happened(kind: str) -> int:
        return [event["type"] for event in host.events()].count(kind)

    await until(lambda: happened("asked") == ROUNDS, "the questions")
    # They have nearly one deadline: when the clock has won the first, it is at the others.
    await until(lambda: happened(rival), "the clock to win once")
    outcomes = await asyncio.gather(*(race(request_id) for request_id in asked))

    assert set(outcomes) <= {"answered", rival}
    assert rival in outcomes


async def test_an_answer_that_races_a_withdrawal_has_one_outcome(
    shared_host: Host, group: str
) -> None:
    agent = MailboxAgent(shared_host.group(group))

    async def race(number: int) -> None:
        request_id = agent.ask(f"Question {number}?")
        await until(lambda: shared_host.http("GET", f"/api/questions/{request_id}").status == 200)
        click = asyncio.to_thread(shared_host.answer, request_id, "1")
        if number % 2:
            agent.tell("withdraw", request_id)
            reply = await click
        else:
            clicking = asyncio.create_task(click)
            await asyncio.sleep(0)
            agent.tell("withdraw", request_id)
            reply = await clicking
        response = await check_one_outcome(shared_host, agent, request_id)
        assert reply.status == (200 if response["outcome"] == "answered" else 409)
        assert response["outcome"] in {"answered", "withdrawn"}

    await asyncio.gather(*(race(number) for number in range(ROUNDS)))


async def test_an_answer_that_races_a_refusal_has_one_outcome(
    shared_host: Host, group: str
) -> None:
    agent = MailboxAgent(shared_host.group(group))
    for _ in range(ROUNDS):
        request_id = agent.ask()
        await shared_host.listed(group=group)

        yes, no = await asyncio.gather(
            asyncio.to_thread(shared_host.answer, request_id, "1", by="ana"),
            asyncio.to_thread(shared_host.decline, request_id, by="ben"),
        )
        response = await check_one_outcome(shared_host, agent, request_id)

        assert sorted([yes.status, no.status]) == [200, 409]
        winner = "ana" if yes.status == 200 else "ben"
        assert response["answered_by"] == winner
        loser = no if yes.status == 200 else yes
        assert loser.body["answered_by"] == winner


async def test_silence_gives_the_agent_its_own_default_and_says_that_nobody_answered(
    shared_host: Host,
    group: str,
) -> None:
    asked = {"question": "Deploy?", "options": ["Yes", "No"], "default": "No"}
    async with agent_of(shared_host, group) as agent:
        text = await agent.call("ask_user", {"questions": [asked], "timeout": 0.5})

    assert "Nobody answered" in text
    assert "Answer: No" in text
    [closed] = await until(
        lambda: [q for q in shared_host.history() if q["group"] == group], "the end"
    )
    assert closed["ending"]["outcome"] == "defaulted"
    assert closed["ending"]["answered_by"] is None


async def test_silence_without_a_default_is_never_an_answer(shared_host: Host, group: str) -> None:
    async with agent_of(shared_host, group) as agent:
        text = await agent.asking("Deploy?", timeout=0.3)

    assert "No answer yet" in text
    assert "Silence is not consent" in text
    assert "Answer:" not in text
    [question] = await shared_host.listed(group=group)
    assert question["ending"] is None


async def test_an_agent_can_take_its_question_back(shared_host: Host, group: str) -> None:
    async with agent_of(shared_host, group) as agent:
        await agent.asking("Deploy?", wait_for_response=False)
        [question] = await shared_host.listed(group=group)
        text = await agent.call("withdraw_question", {"request_id": question["request_id"]})
        late = shared_host.answer(question["request_id"], "1")

    assert "withdrawn" in text
    assert late.status == 409
    assert late.body["outcome"] == "withdrawn"
    await shared_host.closed(question["request_id"])


async def test_the_parts_of_an_answer_that_come_at_once_end_the_question(
    shared_host: Host, group: str
) -> None:
    agent = MailboxAgent(shared_host.group(group))
    asked = [{"question": f"Question {number}?", "options": ["Yes", "No"]} for number in range(4)]

    async def race() -> None:
        request_id = agent.ask(questions=asked)
        await until(lambda: shared_host.http("GET", f"/api/questions/{request_id}").status == 200)
        path = f"/api/questions/{request_id}/answer"
        bodies = [{"values": ["1"], "question": number, "by": "ana"} for number in range(1, 5)]
        replies = await asyncio.gather(
            *(asyncio.to_thread(shared_host.http, "POST", path, body) for body in bodies)
        )
        assert {reply.status for reply in replies} <= {200, 202}
        response = await check_one_outcome(shared_host, agent, request_id)
        assert [answer["selected"] for answer in response["answers"]] == [["Yes"]] * 4

    await asyncio.gather(*(race() for _ in range(4)))
