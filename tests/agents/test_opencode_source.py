"""OpenCode's real server: what its sessions wait for is seen, asked elsewhere and answered."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.acceptance.support import Json
from tests.agents.opencode_server import OpenCode
from tests.agents.programs import PROGRAMS
from tests.agents.support import GROUP, Stage
from tests.standins.models import CallTool, Say
from tests.waiting import until

OPENCODE = [program for program in PROGRAMS if program.agent == "opencode"]
pytestmark = pytest.mark.parametrize("program", OPENCODE, ids=lambda p: p.id, indirect=True)

TOUCH = CallTool("bash", {"command": "touch done", "description": "make a file"})
PUSH = CallTool("bash", {"command": "git push", "description": "publish"})
WHICH = CallTool(
    "question",
    {
        "questions": [
            {
                "question": "Which colour?",
                "header": "Colour",
                "options": [
                    {"label": "Red", "description": "as before"},
                    {"label": "Green", "description": "as new"},
                ],
            }
        ]
    },
)
NOTIFY = CallTool(
    "notify_ask_user",
    {"title": "Merge?", "question": "May I merge it?", "options": ["Yes", "No"], "agent": "Ed"},
)


class Terminals:
    """A host that follows OpenCode's servers, and people at both ends."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.host = stage.host
        self.servers: list[OpenCode] = []

    async def open(self, *script: list[CallTool | Say], more: str = "", count: int = 1) -> OpenCode:
        """Start servers and the host, and return the first server."""
        env = self.stage._environ()  # noqa: SLF001
        for number in range(count):
            server = OpenCode(self.stage, f"work{number}")
            self.servers.append(server)
            await server.start(env)
        urls = [server.url for server in self.servers]
        settings = f"[sources.opencode]\nurls = {urls}\ngroup = '{GROUP}'\npoll = '1s'\n{more}\n"
        await self.stage.open(*script, settings=settings)
        return self.servers[0]

    async def asked(self, kind: str, text: str, beside: Json | None = None) -> Json:
        """Wait for a question with that text, other than the one that was asked before it."""
        before = beside["request_id"] if beside else ""

        def look() -> Json | None:
            listed = [one for one in self.host.pending() if one["state"] == "open"]
            found = [one for one in listed if text in str(one["questions"])]
            return next((one for one in found if one["request_id"] != before), None)

        found: Json = await until(look, f"“{text}” to be asked")
        assert found["kind"] == kind
        return found

    async def over(self, count: int) -> list[Json]:
        """Wait until so many questions are over, and return them."""
        await until(lambda: len(self.host.history()) == count, f"{count} questions to be over")
        return self.host.history()

    async def agent(self, state: str) -> Json:
        def look() -> Json | None:
            rows = self.host.http("GET", "/api/agents").body
            found = [r for r in rows if r.get("source") == "opencode" and r["state"] == state]
            return found[0] if found else None

        found: Json = await until(look, f"an agent that is {state}")
        return found


@pytest.fixture
async def terminals(stage: Stage) -> AsyncIterator[Terminals]:
    found = Terminals(stage)
    yield found
    for server in found.servers:
        server.kill()


def told_to_model(stage: Stage) -> str:
    return str(stage.model.requests[-1].body)


async def test_permissions_are_allowed_once_by_a_rule_and_denied_with_a_reason(
    terminals: Terminals, stage: Stage
) -> None:
    twice = CallTool("bash", {"command": "git status", "description": "look"})
    script = [TOUCH], [twice], [twice], [PUSH], [Say("Done.")]
    server = await terminals.open(*script)
    server.prompt(server.new_session())

    question = await terminals.asked("permission", "touch done")
    assert (await terminals.agent("permission"))["guessed"] is False
    terminals.host.answer(question["short_id"], "approve")
    question = await terminals.asked("permission", "git status")
    assert (server.work / "done").exists()
    terminals.host.answer(question["short_id"], "always")
    # The second look is answered by the rule: the next that is asked is the push.
    question = await terminals.asked("permission", "git push")
    terminals.host.answer(question["short_id"], "deny: not on a Friday")

    await stage.requests(5)
    assert "not on a Friday" in told_to_model(stage)
    over = await terminals.over(4)
    assert {one["delivered"] for one in over} == {"live"}
    assert [one["ending"]["channel"] for one in over].count("rule") == 1
    assert server.permissions() == []


async def test_a_question_is_answered_and_then_one_is_answered_there_first(
    terminals: Terminals, stage: Stage
) -> None:
    server = await terminals.open([WHICH], [WHICH], [WHICH], [Say("Done.")])
    session = server.new_session()
    server.prompt(session)

    question = await terminals.asked("question", "Which colour?")
    assert (await terminals.agent("waiting"))["session_id"] == session
    terminals.host.answer(question["short_id"], "Green")
    await stage.requests(2)
    assert "Green" in told_to_model(stage)

    question = await terminals.asked("question", "Which colour?", beside=question)
    server.reply(server.questions()[0]["id"], "Red")
    await stage.requests(3)
    [cleared] = [one for one in await terminals.over(2) if one["ending"]["outcome"] == "cleared"]
    assert cleared["ending"]["reason"] == "answered in OpenCode"
    assert "Red" in told_to_model(stage)

    # At both at once: OpenCode takes one, and whoever lost is told.
    question = await terminals.asked("question", "Which colour?", beside=question)
    waiting = server.questions()[0]["id"]
    await asyncio.gather(
        asyncio.to_thread(server.reply, waiting, "Red", ok=False),
        asyncio.to_thread(terminals.host.answer, question["short_id"], "Green"),
    )
    await stage.requests(4)
    found = next(o for o in await terminals.over(3) if o["request_id"] == question["request_id"])
    if found["delivered"] == "live":
        assert "Green" in told_to_model(stage)
    else:
        assert "Red" in told_to_model(stage)
        lost = (
            found["ending"]["outcome"] == "cleared" or "no longer waits" in found["delivery_error"]
        )
        assert lost


async def test_what_a_subagent_asks_counts_for_its_parent(
    terminals: Terminals, stage: Stage
) -> None:
    task = {"description": "look", "prompt": "Touch it", "subagent_type": "general"}
    server = await terminals.open([CallTool("task", task)], [TOUCH], [Say("Did.")], [Say("Done.")])
    session = server.new_session()
    server.prompt(session)

    question = await terminals.asked("permission", "touch done")

    assert question["session_id"] == session
    row = await terminals.agent("permission")
    assert row["session_id"] == session
    terminals.host.answer(question["short_id"], "approve")
    await until((server.work / "done").exists, "the command to run")
    await stage.requests(4)


@pytest.mark.parametrize("how", ["abort", "restart"])
async def test_what_opencode_forgets_is_cleared(
    terminals: Terminals, stage: Stage, how: str
) -> None:
    server = await terminals.open([TOUCH], [Say("Done.")])
    session = server.new_session()
    server.prompt(session)
    question = await terminals.asked("permission", "touch done")

    if how == "abort":
        server.call("POST", f"/session/{session}/abort")
    else:
        server.kill()
        await server.start(stage._environ())  # noqa: SLF001

    [over] = await terminals.over(1)
    assert over["request_id"] == question["request_id"]
    assert over["ending"]["outcome"] == "cleared"
    await terminals.agent("idle")


async def test_two_servers_are_followed_and_one_that_was_only_found_is_handed_nothing(
    terminals: Terminals, stage: Stage
) -> None:
    known = await terminals.open([TOUCH], [TOUCH], [Say("Done.")], more="discover = true", count=1)
    found = OpenCode(stage, "found")
    terminals.servers.append(found)
    await found.start(stage._environ())  # noqa: SLF001
    known.prompt(known.new_session())
    question = await terminals.asked("permission", "touch done")
    found.prompt(found.new_session())

    def both() -> bool:
        rows = terminals.host.http("GET", "/api/agents").body
        return sum(row["state"] == "permission" for row in rows) == 2

    await until(both, "both to be seen")
    assert len(terminals.host.pending()) == 1
    terminals.host.answer(question["short_id"], "approve")
    await until((known.work / "done").exists, "the command to run")
    assert len(found.permissions()) == 1
    found.kill()
    await until(lambda: not both(), "the one that is gone to be forgotten")


async def test_a_notify_ask_is_seen_and_answered_by_a_prompt(
    terminals: Terminals, stage: Stage
) -> None:
    script = [NOTIFY], [Say("I have asked.")], [Say("Thank you.")]
    server = await terminals.open(*script, more="reply_by_prompt = true")
    session = server.new_session()
    server.prompt(session)

    question = await terminals.asked("question", "May I merge it?")
    assert (question["title"], question["agent"]) == ("Merge?", "Ed")
    row = await terminals.agent("waiting")
    assert (row["session_id"], row["title"]) == (session, "Merge?")
    terminals.host.answer(question["short_id"], "Yes")

    await stage.requests(3)
    assert "The answer to your question “Merge?”: Yes" in told_to_model(stage)
    assert not server.is_busy(session) or await until(lambda: not server.is_busy(session))
    await terminals.agent("idle")


async def test_a_host_that_is_killed_finds_what_is_still_asked(
    terminals: Terminals, stage: Stage
) -> None:
    server = await terminals.open([TOUCH], [Say("Done.")])
    server.prompt(server.new_session())
    question = await terminals.asked("permission", "touch done")

    terminals.host.kill()
    await terminals.host.start()

    [again] = terminals.host.pending()
    assert again["request_id"] == question["request_id"]
    terminals.host.answer(again["short_id"], "approve")
    await until((server.work / "done").exists, "the command to run")
    await stage.requests(2)
    [over] = await terminals.over(1)
    assert over["delivered"] == "live"
