"""What an agent may not do: people learn of it, and nothing of it passes for a clean finish."""

import json

import pytest
from tests.agents.programs import PROGRAMS
from tests.agents.support import GROUP, Stage
from tests.standins.models import CallTool, Say

OPENCODE = [program for program in PROGRAMS if program.agent == "opencode"]
CLAUDES = [program for program in PROGRAMS if program.agent == "claude"]
every_claude = pytest.mark.parametrize("program", CLAUDES, ids=lambda p: p.id, indirect=True)


@every_claude
async def test_a_tool_that_was_denied_is_told_and_is_no_clean_finish(stage: Stage) -> None:
    command = f"touch {stage.home}/made"
    await stage.open([CallTool("Bash", {"command": command})], [Say("I could not.")])

    code, out, err = await stage.host.cli("run", GROUP, "Make the file.", "--follow", "--json")

    assert code == 7, err
    told = [json.loads(line) for line in out.splitlines()]
    (denied,) = [event for event in told if event["type"] == "session_denied"]
    assert denied["detail"].startswith("Bash")
    ended = await stage.session(denied["session_id"], "ended")
    assert ended["denied"] == [denied["detail"]]
    assert ended["detail"] == f"finished: 1 call was not allowed: Bash: {command}"
    assert not (stage.home / "made").exists()


@pytest.mark.parametrize("program", OPENCODE, ids=lambda p: p.id, indirect=True)
async def test_what_opencode_rejects_by_itself_is_told(stage: Stage) -> None:
    call = CallTool("bash", {"command": f"touch {stage.home}/made", "description": "make it"})
    await stage.open([call], [Say("I could not.")])

    code, out, err = await stage.host.cli("run", GROUP, "Make the file.", "--follow", "--json")

    assert code == 7, err
    told = [json.loads(line) for line in out.splitlines()]
    (denied,) = [event for event in told if event["type"] == "session_denied"]
    assert denied["detail"] == f"external_directory ({stage.home}/*)"
    assert not (stage.home / "made").exists()
