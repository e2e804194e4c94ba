"""The straight way: an agent asks, a person answers, the agent has the answer."""

import asyncio
import json

import pytest
from tests.acceptance.support import ERAS, Host, MailboxAgent, agent_of


@pytest.mark.parametrize("era", ERAS)
async def test_the_answer_reaches_the_agent_with_who_and_where(
    shared_host: Host, group: str, era: str
) -> None:
    async with agent_of(shared_host, group, era=era, PYNCHY_AGENT="dev") as agent:
        call = agent.asking("Deploy?")
        [question] = await shared_host.listed(group=group)
        code, _, err = await shared_host.cli("answer", question["short_id"], "1", "--by", "ana")
        text = await call

    assert (code, err) == (0, "")
    for part in ("Deploy?", "Yes", "ana", "local"):
        assert part in text
    assert question["agent"] == "dev"
    closed = await shared_host.closed(question["request_id"])
    assert closed["delivered"] == "live"
    assert closed["ending"]["answered_by"] == "ana"


async def test_the_command_line_lists_answers_and_tells_who_came_second(host: Host) -> None:
    async with agent_of(host) as agent:
        call = agent.asking("Deploy?")
        [question] = await host.listed()
        _, listed, _ = await host.cli("pending", "--json")
        first = await host.cli("answer", question["request_id"], "No", "--by", "ana")
        second = await host.cli("answer", question["request_id"], "Yes", "--by", "ben")
        text = await call
    await host.closed(question["request_id"])
    third = await host.cli("answer", question["short_id"], "Yes", "--by", "ben")
    _, empty, _ = await host.cli("pending", "--json")
    _, history, _ = await host.cli("history", "--json")
    host.kill()
    fourth = await host.cli("answer", question["short_id"], "Yes")

    [entry] = json.loads(listed)
    expected = {"request_id", "short_id", "group", "agent", "state", "questions"}
    assert expected | {"channel_name", "timestamp", "expires_at"} <= set(entry)
    assert [code for code, _, _ in (first, second, third, fourth)] == [0, 4, 4, 5]
    for _, out, err in (second, third):
        assert "ana" in out + err
        assert "No" in out + err
    assert "pynchy serve" in fourth[2]
    assert "Answer: No" in text
    assert json.loads(empty) == []
    assert [each["request_id"] for each in json.loads(history)] == [question["request_id"]]


async def test_twelve_answers_at_once_have_one_winner_whom_all_are_told(
    shared_host: Host, group: str
) -> None:
    async with agent_of(shared_host, group) as agent:
        call = agent.calling("ask_user", {"question": "What name?"})
        [question] = await shared_host.listed(group=group)
        clicks = [
            asyncio.to_thread(
                shared_host.answer, question["request_id"], f"name {n}", by=f"person {n}"
            )
            for n in range(12)
        ]
        replies = await asyncio.gather(*clicks)
        text = await call

    [winner] = [n for n, reply in enumerate(replies) if reply.status == 200]
    losers = [reply for reply in replies if reply.status == 409]
    assert len(losers) == 11
    assert {reply.body["answered_by"] for reply in losers} == {f"person {winner}"}
    assert all(f"name {winner}" in reply.body["error"] for reply in losers)
    assert f"Answer: name {winner}" in text
    assert f"person {winner}" in text
    assert shared_host.kinds(question["request_id"]).count("answered") == 1


async def test_eight_agents_of_one_host_get_their_own_answers(host: Host) -> None:
    async def ask(number: int) -> str:
        async with agent_of(host, f"team-{number}") as agent:
            return await agent.asking(f"Question {number}?")

    calls = [asyncio.create_task(ask(number)) for number in range(8)]
    for question in await host.listed(8):
        assert host.answer(question["request_id"], f"for {question['group']}").status == 200
    texts = await asyncio.gather(*calls)

    for number, text in enumerate(texts):
        assert f"Question {number}?" in text
        assert f"for team-{number}" in text
        assert text.count("Answer:") == 1


async def test_fifty_groups_that_ask_at_once_get_their_own_answers(host: Host) -> None:
    agents = [MailboxAgent(host.group(f"team-{number}")) for number in range(50)]

    ids = [agent.ask(f"Question {number}?") for number, agent in enumerate(agents)]
    questions = {p["request_id"]: p for p in await host.listed(50)}
    answers = [asyncio.to_thread(host.answer, i, f"for {questions[i]['group']}") for i in ids]
    assert {reply.status for reply in await asyncio.gather(*answers)} == {200}
    responses = await asyncio.gather(
        *(agent.receive(request_id) for agent, request_id in zip(agents, ids, strict=True))
    )

    for number, response in enumerate(responses):
        assert response["answers"] == [
            {"question": f"Question {number}?", "selected": [], "text": f"for team-{number}"}
        ]
    for request_id in ids:
        assert (await host.closed(request_id))["delivered"] == "live"
    assert host.pending() == []
