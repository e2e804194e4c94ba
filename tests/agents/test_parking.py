"""Claude Code parks: its process is gone while a person thinks, and the model gets the true call."""

import json

from tests.agents.support import GROUP, Stage, marked
from tests.waiting import until

from pynchy.testing_models import AskUser, CallTool, Exchange, Refuse, Say

QUESTION = "Release to everyone or to the staff first?"
PROMPT = "Release the new version."
ASK = AskUser(QUESTION, "Everyone", "Staff")
DONE = [Say("Staff it is.")]
PARKS = f'[groups.{GROUP}]\nwait = "park"\npark_after = "500ms"\n'


async def run(stage: Stage, prompt: str = PROMPT) -> str:
    """Start a session as a person does, and return its id."""
    code, out, err = await stage.host.cli("run", GROUP, prompt, "--json")
    assert code == 0, err
    session_id: str = json.loads(out)["session_id"]
    return session_id


def results(request: Exchange) -> list[str]:
    """Return the results of tools that the model was sent, as text."""
    blocks = [b for m in request.body["messages"] for b in m["content"] if isinstance(b, dict)]
    return [json.dumps(b["content"]) for b in blocks if b.get("type") == "tool_result"]


async def test_nothing_of_a_parked_agent_is_left_and_the_model_gets_the_true_result(
    stage: Stage,
) -> None:
    await stage.open([Say("Let me ask."), ASK], DONE, settings=PARKS)
    session_id = await run(stage)
    [question] = await stage.asked()

    parked = await stage.session(session_id, "parked")
    assert marked(stage.mark) == []
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)
    ended = await stage.session(session_id, "ended")

    [result] = results(second)
    assert f"Question: {QUESTION}\\\\nAnswer: Staff" in result or "Answer: Staff" in result
    assert "Before this session stopped" not in second.text
    assert parked["detail"] == question["short_id"]
    assert not ended["failed"], stage.logs()
    closed = await stage.host.closed(question["request_id"])
    assert closed["delivered"] == "late"
