"""A program that has no core of its own and speaks ACP: here, OpenCode as any other."""

import json

import pytest
from tests.agents.programs import PROGRAMS
from tests.agents.support import GROUP, Stage
from tests.agents.test_agents import ASK, DONE, PROMPT, QUESTION
from tests.standins.models import CallTool, Say

OPENCODE = [program for program in PROGRAMS if program.agent == "opencode"]
pytestmark = pytest.mark.parametrize("program", OPENCODE, ids=lambda p: p.id, indirect=True)


def by_acp(stage: Stage, *command: str) -> None:
    stage.launcher |= {"acp_command": command or ("opencode", "acp")}
    stage.agent = "acp"


async def test_it_asks_is_killed_and_comes_back_with_the_answer(stage: Stage) -> None:
    by_acp(stage)
    await stage.open([ASK], DONE)
    code, out, err = await stage.host.cli("run", GROUP, PROMPT)
    assert code == 0, err
    [question] = await stage.asked()
    await stage.resumable()

    stage.kill_agents()
    stage.host.answer(question["short_id"], "2")
    first, second = await stage.requests(2)
    ended = await stage.session(out.strip(), "ended")

    assert PROMPT in first.text
    for part in (PROMPT, QUESTION, "Everyone", "Answer: Staff"):
        assert part in second.text
    assert not ended["failed"], stage.logs()
    assert (await stage.host.closed(question["request_id"]))["delivered"] == "late"


async def test_a_person_sees_the_change_of_a_file_and_allows_it(stage: Stage) -> None:
    by_acp(stage)
    file = stage.work / "a.txt"
    file.write_text("zero\none\ntwo\n")
    change = {"filePath": str(file), "oldString": "one", "newString": "1"}
    # Read first: OpenCode changes no file that the model has not seen.
    script = [CallTool("read", {"filePath": str(file)})], [CallTool("edit", change)], [Say("Made.")]
    settings = json.dumps({"permission": {"edit": "ask"}})
    await stage.open(*script, OPENCODE_CONFIG_CONTENT=settings)
    code, _, err = await stage.host.cli("run", GROUP, PROMPT)
    assert code == 0, err

    [asked] = await stage.asked()
    [question] = asked["questions"]
    assert asked["kind"] == "permission"
    assert "OpenCode wants to change the file" in question["question"]
    assert "-one\n+1\n" in question["question"]
    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(3)

    assert file.read_text() == "zero\n1\ntwo\n"
