"""Each program asks, waits, dies, and comes back with the answer."""

import json
import time

from tests.agents.support import GROUP, Stage
from tests.standins.models import AskUser, BreakOff, CheckAnswer, Refuse, Say
from tests.waiting import until

QUESTION = "Release to everyone or to the staff first?"
PROMPT = "Release the new version."
ASK = AskUser(QUESTION, "Everyone", "Staff")
DONE = [Say("Staff it is.")]


async def test_the_answer_to_a_living_agent_is_the_result_of_its_call(stage: Stage) -> None:
    await stage.open([ASK], DONE)
    runner = stage.begin(PROMPT, PYNCHY_TASK="the release")

    [question] = await stage.asked()
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    assert await runner.ended() == 0, runner.text()
    assert question["task"] == "the release"
    assert "Answer: Staff" in second.text
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "live"
    assert closed["agent"] == stage.program.agent


async def test_a_session_that_a_person_starts_asks_and_goes_on_with_the_answer(
    stage: Stage,
) -> None:
    await stage.open([ASK], DONE)
    code, out, err = await stage.host.cli("run", GROUP, PROMPT, "--json")
    assert code == 0, err
    session_id = json.loads(out)["session_id"]

    [question] = await stage.asked()
    waiting = await stage.session(session_id, "waiting")
    stage.host.answer(question["short_id"], "2")
    first, second = await stage.requests(2)
    ended = await stage.session(session_id, "ended")

    assert PROMPT in first.text
    assert "Answer: Staff" in second.text
    assert question["session_id"] == session_id
    assert waiting["agent"] == ended["agent"] == stage.program.agent
    assert not ended["failed"], stage.logs()


async def test_an_agent_killed_while_it_waits_comes_back_with_question_and_answer(
    stage: Stage,
) -> None:
    await stage.open([ASK], DONE)
    runner = stage.begin(PROMPT)
    [question] = await stage.asked()
    await stage.resumable()

    runner.kill()
    stage.host.answer(question["short_id"], "2")
    first, second = await stage.requests(2)

    assert QUESTION not in first.text
    for part in (PROMPT, QUESTION, "Everyone", "Answer: Staff"):
        assert part in second.text
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"


async def test_agent_and_host_killed_at_once_lose_nothing(stage: Stage) -> None:
    await stage.open([ASK], DONE)
    runner = stage.begin(PROMPT)
    [question] = await stage.asked()
    await stage.resumable()

    stage.host.kill()
    runner.kill()
    await stage.host.start()
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    for part in (PROMPT, QUESTION, "Everyone", "Answer: Staff"):
        assert part in second.text
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"


async def test_an_agent_that_comes_back_can_ask_again_and_die_again(stage: Stage) -> None:
    again = AskUser("At what hour?", "Nine", "Noon")
    await stage.open([ASK], [again], DONE)
    runner = stage.begin(PROMPT)
    [question] = await stage.asked()
    await stage.resumable()
    runner.kill()
    stage.host.answer(question["short_id"], "2")
    await stage.host.closed(question["request_id"])

    [other] = await stage.asked()
    stage.kill_agents()
    stage.host.answer(other["short_id"], "Noon")
    *_, third = await stage.requests(3)

    for part in (PROMPT, QUESTION, "Answer: Staff", "At what hour?", "Answer: Noon"):
        assert part in third.text
    assert (await stage.host.closed(other["request_id"]))["delivered"] == "late"


async def test_an_agent_that_waits_past_its_own_limit_gets_the_answer(stage: Stage) -> None:
    """By `check_answer`; OpenCode's limit starts again with progress, so there it is one call."""
    limit = 15.0
    one_call = stage.program.agent == "opencode"
    script = [[ASK], DONE] if one_call else [[ASK], [CheckAnswer("last", 60)], DONE]
    await stage.open(*script)
    runner = stage.begin(PROMPT, PYNCHY_MAX_WAIT=f"{limit:g}")
    [question] = await stage.asked()
    asked_at = time.monotonic()

    if one_call:
        await until(lambda: time.monotonic() > asked_at + limit + 3, "the limit")
    else:
        _, second = await stage.requests(2)
        assert "No answer yet" in second.text
    stage.host.answer(question["short_id"], "2")
    *_, last = await stage.requests(len(script))

    assert await runner.ended() == 0, runner.text()
    assert "Answer: Staff" in last.text
    assert (await stage.host.closed(question["request_id"]))["delivered"] == "live"


async def test_an_agent_that_gave_up_is_told_so_and_comes_back_with_the_answer(
    stage: Stage,
) -> None:
    await stage.open([AskUser(QUESTION, "Everyone", "Staff", timeout=1)], [Say("Later.")], DONE)
    runner = stage.begin(PROMPT)
    [question] = await stage.asked()

    _, second = await stage.requests(2)
    assert await runner.ended() == 0, runner.text()
    stage.host.answer(question["short_id"], "2")
    *_, third = await stage.requests(3)

    assert "No answer yet" in second.text
    assert "Silence is not consent" in second.text
    assert "Answer: Staff" in third.text
    assert "Later." in third.text
    assert (await stage.host.closed(question["request_id"]))["delivered"] == "late"


async def test_two_questions_in_one_turn_each_get_their_own_answer(stage: Stage) -> None:
    other = AskUser("At what hour?", "Nine", "Noon")
    await stage.open([ASK, other], DONE)
    runner = stage.begin(PROMPT)

    questions = {q["questions"][0]["question"]: q for q in await stage.asked(2)}
    stage.host.answer(questions["At what hour?"]["short_id"], "Noon")
    stage.host.answer(questions[QUESTION]["short_id"], "Everyone")
    _, second = await stage.requests(2)

    assert await runner.ended() == 0, runner.text()
    assert f"Question: {QUESTION}\\nAnswer: Everyone" in second.text
    assert "Question: At what hour?\\nAnswer: Noon" in second.text


async def test_the_tool_is_there_on_the_first_turn_though_its_server_is_slow(
    stage: Stage,
) -> None:
    await stage.open([ASK], DONE)
    runner = stage.begin(PROMPT, server="sleep 5; exec {python}")

    [question] = await stage.asked()
    stage.host.answer(question["short_id"], "2")

    assert await runner.ended() == 0, runner.text()
    _, second = await stage.requests(2)
    assert "Answer: Staff" in second.text


async def test_an_answer_whose_model_fails_is_not_taken_for_delivered(stage: Stage) -> None:
    # A failure that the program does not meet by trying again itself.
    failure = Refuse(500 if stage.program.agent == "claude" else 400)
    await stage.open([ASK], failure, DONE)
    runner = stage.begin(PROMPT)
    [question] = await stage.asked()
    await stage.resumable()

    runner.kill()
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    assert "Answer: Staff" in second.text
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"
    assert "resume_failed" in stage.host.kinds(question["request_id"])


async def test_an_answer_that_the_model_meets_with_silence_is_not_taken_for_delivered(
    stage: Stage,
) -> None:
    await stage.open(DONE, *[BreakOff()] * 20)
    assert await stage.begin(PROMPT).ended() == 0, stage.logs()

    runner = stage.begin("Answer: Staff", fields={"request_id": "r1"})

    assert await runner.ended() == 1, runner.text()
    assert "Answer: Staff" in stage.model.requests[1].text
    assert not (stage.mailbox / "tasks" / "r1.resumed").exists()


async def test_an_agent_without_the_tool_does_not_work_on(stage: Stage) -> None:
    await stage.open(DONE, DONE)
    runner = stage.begin(PROMPT, server="exit 1")

    assert await runner.ended() == 6, runner.text()
    assert stage.model.refused == []


async def test_a_session_that_the_program_does_not_know_is_not_begun_anew(stage: Stage) -> None:
    await stage.open(DONE)
    runner = stage.begin(PROMPT, fields={"request_id": "r1", "session_id": "unknown"})

    assert await runner.ended() == 7, runner.text()
    assert stage.model.requests == []
    assert not (stage.mailbox / "tasks" / "r1.resumed").exists()


async def test_a_program_that_is_not_installed_is_named(stage: Stage) -> None:
    await stage.open()
    runner = stage.begin(PROMPT, PATH="/nowhere")

    assert await runner.ended() == 5
    assert stage.program.agent in runner.text()
