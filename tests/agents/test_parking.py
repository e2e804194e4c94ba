"""Claude Code parks: nothing of it runs while a person thinks, and the model gets the true call."""

import json

import pytest
from tests.acceptance.support import Json
from tests.agents.programs import CLAUDES, OLD_CLAUDE, TRIED_CLAUDES
from tests.agents.support import GROUP, Stage, marked
from tests.standins.models import AskUser, CallTool, Exchange, Refuse, Say
from tests.waiting import until

every_claude = pytest.mark.parametrize("program", CLAUDES, ids=lambda p: p.id, indirect=True)
claude = pytest.mark.parametrize("program", TRIED_CLAUDES, ids=lambda p: p.id, indirect=True)
old_claude = pytest.mark.parametrize("program", [OLD_CLAUDE], ids=[OLD_CLAUDE.id], indirect=True)

QUESTION = "Release to everyone or to the staff first?"
PROMPT = "Release the new version."
ASK = AskUser(QUESTION, "Everyone", "Staff")
OTHER = AskUser("At what hour?", "Nine", "Noon")
DONE = [Say("Staff it is.")]
RESTATED = "Before this session stopped"


def parks(after: str = "500ms", more: str = "") -> str:
    """Return the settings of a group whose agents are parked so soon."""
    return f'[groups.{GROUP}]\nwait = "park"\npark_after = "{after}"\n{more}\n'


async def run(stage: Stage) -> str:
    """Start a session as a person does, and return its id."""
    code, out, err = await stage.host.cli("run", GROUP, PROMPT, "--json")
    assert code == 0, err
    session_id: str = json.loads(out)["session_id"]
    return session_id


async def park(stage: Stage) -> tuple[str, Json]:
    """Start a session, and return its id and question once nothing of it is left."""
    session_id = await run(stage)
    await stage.session(session_id, "parked")
    assert marked(stage.mark) == [], stage.logs()
    [question] = [q for q in stage.host.pending() if q["session_id"] == session_id]
    return session_id, question


async def put_off(stage: Stage, question: Json) -> None:
    """Wait until the hook has said that the call is put off, whether or not the program does."""

    def is_told() -> bool:
        return "parked" in stage.host.kinds(question["request_id"])

    await until(is_told, "the call to be put off")


def results(request: Exchange) -> list[str]:
    """Return the results of tools that the model was sent, as text."""
    said = [m["content"] for m in request.body["messages"] if isinstance(m["content"], list)]
    blocks = [block for content in said for block in content]
    return [json.dumps(b["content"]) for b in blocks if b.get("type") == "tool_result"]


@every_claude
async def test_nothing_of_a_parked_agent_is_left_and_the_model_gets_the_true_result(
    stage: Stage,
) -> None:
    await stage.open([Say("Let me ask."), ASK], DONE, settings=parks())
    session_id, question = await park(stage)

    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)
    ended = await stage.session(session_id, "ended")

    [result] = results(second)
    assert f"Question: {QUESTION}\\nAnswer: Staff" in result
    assert "Let me ask." in second.text
    assert RESTATED not in second.text
    assert not ended["failed"], stage.logs()
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"


@every_claude
async def test_an_answer_given_after_the_host_was_killed_and_restarted_resumes_a_parked_agent(
    stage: Stage,
) -> None:
    await stage.open([ASK], DONE, settings=parks())
    session_id, question = await park(stage)

    stage.host.kill()
    await stage.host.start()
    await stage.session(session_id, "parked")
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    [result] = results(second)
    assert "Answer: Staff" in result
    assert RESTATED not in second.text


@claude
async def test_several_agents_are_parked_at_once_and_each_gets_its_own_answer(
    stage: Stage,
) -> None:
    await stage.open([ASK], [OTHER], settings=parks())
    (_, first), (_, second) = await park(stage), await park(stage)
    stage.model.add(DONE, DONE)

    stage.host.answer(second["short_id"], "Noon")
    stage.host.answer(first["short_id"], "Everyone")
    *_, third, fourth = await stage.requests(4)

    said = sorted(results(third) + results(fourth))
    assert len(said) == 2
    assert "Question: At what hour?\\nAnswer: Noon" in said[0] + said[1]
    assert f"Question: {QUESTION}\\nAnswer: Everyone" in said[0] + said[1]


@claude
async def test_an_answer_that_comes_before_the_park_is_delivered_live(stage: Stage) -> None:
    await stage.open([ASK], DONE, settings=parks("10m"))
    session_id = await run(stage)
    [question] = await stage.asked()

    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)
    await stage.session(session_id, "ended")

    assert "Answer: Staff" in results(second)[0]
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "live"
    assert "parked" not in stage.host.kinds(question["request_id"])


@claude
@pytest.mark.parametrize("beside", [OTHER, CallTool("Bash", {"command": "echo together"})])
async def test_a_call_beside_others_waits_with_its_process_and_every_result_is_true(
    stage: Stage, beside: CallTool
) -> None:
    # Claude Code can put off one call of a turn, and would lose the result of another.
    await stage.open([ASK, beside], DONE, settings=parks())
    asked = 2 if beside is OTHER else 1
    session_id = await run(stage)
    questions = {q["questions"][0]["question"]: q for q in await stage.asked(asked)}

    await stage.session(session_id, "waiting")
    if beside is OTHER:
        stage.host.answer(questions["At what hour?"]["short_id"], "Noon")
    stage.host.answer(questions[QUESTION]["short_id"], "Everyone")
    _, second = await stage.requests(2)

    told = "\n".join(results(second))
    assert f"Question: {QUESTION}\\nAnswer: Everyone" in told
    assert ("Answer: Noon" if beside is OTHER else "together") in told
    for question in questions.values():
        closed = await stage.host.closed(question["request_id"])
        assert closed["delivered"] == "live"


@claude
async def test_a_parked_agent_can_park_again(stage: Stage) -> None:
    await stage.open([ASK], [OTHER], DONE, settings=parks())
    session_id, question = await park(stage)
    stage.host.answer(question["short_id"], "2")
    await stage.host.closed(question["request_id"])

    [other] = await stage.asked()
    await stage.session(session_id, "parked")
    stage.host.answer(other["short_id"], "Noon")
    *_, third = await stage.requests(3)

    first, second = results(third)
    assert "Answer: Staff" in first
    assert "Answer: Noon" in second


@claude
async def test_an_answer_whose_model_fails_is_told_again_by_a_prompt(stage: Stage) -> None:
    await stage.open([ASK], Refuse(500), DONE, settings=parks())
    _, question = await park(stage)

    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    assert RESTATED in second.text
    assert "Answer: Staff" in second.text
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"
    assert "resume_failed" in stage.host.kinds(question["request_id"])


@every_claude
async def test_a_parked_agent_killed_while_it_comes_back_makes_its_call_all_the_same(
    stage: Stage,
) -> None:
    await stage.open([ASK], DONE, settings=parks())
    _, question = await park(stage)

    stage.host.answer(question["short_id"], "2")
    await until(lambda: marked(stage.mark), "the resumed agent")
    stage.kill_agents()
    _, second = await stage.requests(2)

    assert "Answer: Staff" in results(second)[-1]
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"
    assert "resume_failed" in stage.host.kinds(question["request_id"])


@claude
async def test_a_declined_question_resumes_a_parked_agent_that_is_told_so(stage: Stage) -> None:
    await stage.open([ASK], [Say("Then not.")], settings=parks())
    _, question = await park(stage)

    code, _, err = await stage.host.cli("decline", question["short_id"])
    assert code == 0, err
    _, second = await stage.requests(2)

    [result] = results(second)
    assert "This is not consent" in result


@claude
async def test_an_expired_question_resumes_a_parked_agent_that_is_told_so(stage: Stage) -> None:
    clocks = 'wait_timeout = "20s"\nanswer_ttl = "20s"\n'
    await stage.open([ASK], [Say("Then not.")], settings=clocks + parks())
    session_id, _ = await park(stage)

    _, second = await stage.requests(2)
    await stage.session(session_id, "ended")

    [result] = results(second)
    assert "Silence is not consent" in result


def built_in(question: str, *options: str) -> CallTool:
    """Return the call of Claude Code's own tool."""
    choices = [{"label": label, "description": f"{label} it is"} for label in options]
    asked = {"question": question, "header": "Release", "options": choices, "multiSelect": False}
    return CallTool("AskUserQuestion", {"questions": [asked]})


BUILT_IN = built_in(QUESTION, "Everyone", "Staff")
WITH_BUILT_IN = 'ask_with = "AskUserQuestion"'


@every_claude
async def test_the_built_in_question_is_parked_and_answered_too(stage: Stage) -> None:
    await stage.open([BUILT_IN], DONE, settings=parks(more=WITH_BUILT_IN))
    _, question = await park(stage)

    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    [result] = results(second)
    assert QUESTION in result
    assert "Staff" in result
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"


@claude
async def test_built_in_questions_are_answered_while_the_agent_blocks(stage: Stage) -> None:
    other = built_in("At what hour?", "Nine", "Noon")
    settings = f"[groups.{GROUP}]\n{WITH_BUILT_IN}\n"
    await stage.open([BUILT_IN, other], DONE, settings=settings)
    await run(stage)
    questions = {q["questions"][0]["question"]: q for q in await stage.asked(2)}

    stage.host.answer(questions[QUESTION]["short_id"], "2")
    code, _, err = await stage.host.cli("decline", questions["At what hour?"]["short_id"])
    assert code == 0, err
    _, second = await stage.requests(2)

    told = results(second)
    assert len(told) == 2
    assert sum("Staff" in one for one in told) == 1
    assert sum("This is not consent" in one for one in told) == 1
    closed = await stage.host.closed(questions[QUESTION]["request_id"])
    assert closed["delivered"] == "live"


@claude
async def test_where_the_built_in_tool_asks_people_are_asked_for_permissions(stage: Stage) -> None:
    outside = CallTool("Bash", {"command": f"touch {stage.home}/outside"})
    await stage.open([outside], DONE, settings=f"[groups.{GROUP}]\n{WITH_BUILT_IN}\n")
    session_id = await run(stage)

    [asked] = await stage.asked()
    stage.host.answer(asked["short_id"], "deny: not there")
    first, second = await stage.requests(2)
    ended = await stage.session(session_id, "ended")

    assert asked["kind"] == "permission"
    assert not (stage.home / "outside").exists()
    assert "not there" in results(second)[0]
    assert not ended["failed"], stage.logs()
    offered = {tool["name"] for tool in first.body["tools"]}
    assert "AskUserQuestion" in offered
    assert offered.isdisjoint({"mcp__pynchy__ask_user", "mcp__pynchy__permissions"})


@old_claude
async def test_a_version_that_cannot_park_waits_with_its_process(stage: Stage) -> None:
    await stage.open([ASK], DONE, settings=parks())
    session_id = await run(stage)
    [question] = await stage.asked()
    await put_off(stage, question)

    await stage.session(session_id, "waiting")
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    assert "Answer: Staff" in results(second)[0]
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "live"


@old_claude
async def test_a_version_that_cannot_park_is_resumed_by_a_prompt_when_it_was_killed(
    stage: Stage,
) -> None:
    await stage.open([ASK], DONE, settings=parks())
    await run(stage)
    [question] = await stage.asked()
    await put_off(stage, question)
    await stage.resumable()

    stage.kill_agents()
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    assert RESTATED in second.text
    assert "Answer: Staff" in second.text
