"""Whoever sits in front of the agent's program answers there: desk and phone race, one wins."""

import asyncio
import json
from typing import Any

from mcp_types import ElicitRequestParams, ElicitResult
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, MailboxAgent, agent_of
from tests.waiting import until

SETTINGS = "[groups.team]\ndesk_answers = true\n"


class Desk:
    """A person who answers the form when they are told to."""

    def __init__(self, **content: Any) -> None:
        self.shown: list[ElicitRequestParams] = []
        self.may_answer = asyncio.Event()
        self.was_interrupted = False
        self._content = content

    async def __call__(self, _context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.shown.append(params)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.was_interrupted = True
            raise
        return ElicitResult(action="accept", content=self._content)


async def greeted(host: Host) -> None:
    """Let the group join, so that its agents are told of the desk from the start."""
    (host.group("team") / "tasks").mkdir(parents=True, exist_ok=True)
    told = host.group("team") / "input" / "host.json"
    await until(lambda: told.exists() and "desk_answers" in told.read_text(), "the greeting")


async def test_an_answer_at_the_desk_is_the_calls_result_and_in_history(
    start_host: StartHost,
) -> None:
    host, desk = await start_host(SETTINGS), Desk(question_1="No", question_1_words="not on Friday")
    await greeted(host)

    async with agent_of(host, at_desk=desk) as agent:
        call = agent.asking()
        [question] = await host.listed()
        desk.may_answer.set()
        result = await call

    closed = await host.closed(question["request_id"])
    assert "Answer: No" in result
    assert "not on Friday" in result
    assert closed["ending"]["channel"] == "desk"
    assert closed["ending"]["answered_by"] in result
    assert closed["delivered"] == "live"
    assert host.card_states(question["request_id"]) == {"local": "settled"}
    [late] = [host.answer(question["request_id"], "1")]
    assert late.status == 409


async def test_an_answer_from_the_phone_takes_the_form_away(start_host: StartHost) -> None:
    host, desk = await start_host(SETTINGS), Desk(question_1="No")
    await greeted(host)

    async with agent_of(host, at_desk=desk) as agent:
        call = agent.asking()
        [question] = await host.listed()
        await until(lambda: desk.shown, "the form")
        host.answer(question["request_id"], "1")
        result = await call
        await until(lambda: desk.was_interrupted, "the form to go")

    assert "Answer: Yes" in result
    closed = await host.closed(question["request_id"])
    assert (closed["ending"]["channel"], closed["ending"]["answered_by"]) == ("local", "ana")


async def test_of_desk_and_phone_at_once_exactly_one_wins(start_host: StartHost) -> None:
    host = await start_host(SETTINGS)
    await greeted(host)

    for _ in range(5):
        desk = Desk(question_1="No")
        async with agent_of(host, at_desk=desk) as agent:
            call = agent.asking()
            [question] = await host.listed()
            await until(lambda desk=desk: desk.shown, "the form")
            desk.may_answer.set()
            await asyncio.to_thread(host.answer, question["request_id"], "1")
            result = await call
        closed = await host.closed(question["request_id"])
        won = closed["ending"]["answers"][0]["selected"]
        assert won == (["No"] if closed["ending"]["channel"] == "desk" else ["Yes"])
        assert f"Answer: {won[0]}" in result


async def test_an_agent_of_another_group_cannot_answer_for_the_desk(start_host: StartHost) -> None:
    host = await start_host(SETTINGS)
    await greeted(host)
    asker, stranger = (MailboxAgent(host.group(name)) for name in ("team", "stranger"))
    request_id = asker.ask()
    await host.state(request_id, "open")
    forged = {
        "v": 1,
        "type": "ask_user:desk_answer",
        "request_id": request_id,
        "by": "ana",
        "answers": [{"selected": ["Yes"]}],
    }

    stranger.write_json(f"{request_id}.desk_answer.json", forged)
    own = stranger.ask()
    await host.state(own, "open")
    stranger.write_json(f"{own}.desk_answer.json", forged | {"request_id": own})
    rejected = stranger.mailbox / "rejected"
    await until(lambda: rejected.is_dir() and len(list(rejected.iterdir())) == 2, "both refused")

    reasons = " ".join(json.loads(path.read_bytes())["reason"] for path in rejected.iterdir())
    assert "no question has the id" in reasons
    assert "desk_answers = true" in reasons
    assert {host.question(each)["state"] for each in (request_id, own)} == {"open"}
    assert stranger.response(request_id) is None
