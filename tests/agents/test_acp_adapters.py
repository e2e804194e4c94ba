"""Claude Code and Codex behind adapters that speak ACP; tried where there is time for it."""

import pytest
from tests.agents.programs import ACP_ADAPTERS
from tests.agents.support import GROUP, Stage
from tests.agents.test_acp import by_acp
from tests.agents.test_agents import ASK, DONE, PROMPT, QUESTION
from tests.agents.test_permissions import began, making
from tests.standins.models import Say

pytestmark = pytest.mark.parametrize("program", ACP_ADAPTERS, ids=lambda p: p.id, indirect=True)


@pytest.fixture(autouse=True)
def through_its_adapter(stage: Stage) -> None:
    by_acp(stage, stage.program.name)


async def test_it_asks_is_killed_and_comes_back_with_the_answer(stage: Stage) -> None:
    await stage.open([ASK], DONE)
    code, out, err = await stage.host.cli("run", GROUP, PROMPT)
    assert code == 0, err
    [question] = await stage.asked()
    await stage.resumable()

    stage.kill_agents()
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)

    for part in (PROMPT, QUESTION, "Answer: Staff"):
        assert part in second.text
    assert not (await stage.session(out.strip(), "ended"))["failed"], stage.logs()
    assert (await stage.host.closed(question["request_id"]))["delivered"] == "late"


async def test_what_is_allowed_runs(stage: Stage) -> None:
    await stage.open([making(stage)], [Say("Made.")])
    session_id, asked = await began(stage)

    assert not (stage.home / "made").exists()
    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(2)

    assert (stage.home / "made").exists()
    assert (await stage.session(session_id, "ended"))["detail"] == "finished"
