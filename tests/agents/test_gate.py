"""Claude Code in a real terminal: the call waits, and the model gets a person's plain answer.

Claude Code moves a call that lasts to the background, two minutes after its beginning by default.
Its environment says three seconds here, so that this can be seen soon; what `pynchy connect` has
written into its settings must win over that.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.agents.programs import PROGRAMS, Program
from tests.agents.support import kill_all
from tests.agents.terminal import Terminal
from tests.standins.models import AskUser, Say
from tests.tmux import Tmux
from tests.waiting import until

NEWEST = PROGRAMS[1]
CLAUDES = [program for program in PROGRAMS if program.agent == "claude"]
SOON = {"CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS": "3000", "TERM": "xterm-256color"}
IN_THE_BACKGROUND = "MCP task"
PROMPT = "\u276f"


class Desk(Terminal):
    """Somebody sits at the terminal in which the program runs."""

    def sit_down(self, *arguments: str) -> None:
        self.tmux = Tmux(self._folder / f"tmux{len(arguments)}", self.env | SOON, self.work)
        self.tmux.start(" ".join(["claude", *arguments]), height=40)

    async def see(self, text: str) -> None:
        try:
            await until(lambda: text in self.tmux.screen)
        except AssertionError as exc:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.tmux.screen}") from exc

    async def say(self, text: str, heard: int) -> None:
        """Type it, and wait until the model has heard so much."""
        await self.see(PROMPT)
        self.tmux.type(text)
        await self.see(text)
        self.tmux.press("Enter")
        await self.requests(heard)

    async def wait_for_the_tools(self) -> int:
        """Chat until the program offers our tools: it does not wait for them. Return how often."""
        for heard in range(1, 20):
            self.model.add([Say("Here I am.")])
            await self.say(f"Are you there, number {heard}?", heard)
            if "mcp__pynchy__ask_user" in json.dumps(self.model.requests[-1].body["tools"]):
                return heard
        raise AssertionError("the tools never came")

    def close(self) -> None:
        self.tmux.close()
        super().close()


@pytest.fixture
async def desk(program: Program, tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(program, tmp_path)
    desk.model.start()
    desk.prepare()
    desk.connect()
    # As Claude Code writes when a person has gone through its first start.
    own = desk.home / ".claude.json"
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["sk-ant-scripted"], "rejected": []},
        "projects": {str(desk.work): {"hasTrustDialogAccepted": True}},
    }
    own.write_text(json.dumps(json.loads(own.read_text()) | known))
    await desk.host.start()
    yield desk
    desk.close()


@pytest.mark.parametrize("program", CLAUDES, ids=lambda program: program.id)
async def test_a_call_in_the_terminal_waits_and_its_answer_is_a_plain_result(desk: Desk) -> None:
    desk.sit_down()
    heard = await desk.wait_for_the_tools()
    desk.model.add([AskUser("Deploy?", "Yes", "No")], [Say("So be it.")])

    await desk.say("Deploy it.", heard + 1)
    [question] = await desk.asked()
    await desk.see("waiting for a person (10 s)")  # long after the three seconds
    meanwhile = desk.tmux.screen
    desk.host.answer(question["short_id"], "1")
    requests = await desk.requests(heard + 2)

    assert IN_THE_BACKGROUND not in meanwhile
    assert len(requests) == heard + 2
    result = requests[-1].text
    assert "Answer: Yes" in result
    assert "NOT USER INPUT" not in result
    assert "background" not in result[result.index("Deploy?") :].partition("Answer: Yes")[0]


@pytest.mark.parametrize("program", [NEWEST], ids=lambda program: program.id)
async def test_without_the_setting_the_model_would_go_on_without_an_answer(desk: Desk) -> None:
    settings = desk.home / ".claude" / "settings.json"
    told = json.loads(settings.read_text())
    del told["env"]["CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS"]
    settings.write_text(json.dumps(told))
    desk.sit_down()
    heard = await desk.wait_for_the_tools()
    desk.model.add([AskUser("Deploy?", "Yes", "No")], [Say("I go on.")])

    await desk.say("Deploy it.", heard + 1)
    await desk.see(IN_THE_BACKGROUND)

    assert len(await desk.asked()) == 1
    [finding] = [one for one in desk.doctor() if one["status"] == "problem"]
    assert "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS" in finding["detail"]


@pytest.mark.parametrize("program", CLAUDES, ids=lambda program: program.id)
async def test_a_session_that_is_opened_again_is_told_what_was_answered_meanwhile(
    desk: Desk,
) -> None:
    desk.sit_down()
    heard = await desk.wait_for_the_tools()
    desk.model.add([AskUser("Deploy?", "Yes", "No")])
    await desk.say("Deploy it.", heard + 1)
    [question] = await desk.asked()
    await desk.resumable()
    # At once, or it might tell the model that its call was broken off.
    kill_all(f"HOME={desk.home}")
    desk.host.answer(question["short_id"], "1")
    await desk.host.state(question["request_id"], "undelivered")

    desk.model.add([Say("We deploy.")])
    desk.sit_down("--resume", question["session_id"])
    await desk.say("Where were we?", heard + 2)
    await desk.see("We deploy.")

    [last] = [one for one in desk.model.requests if "Where were we?" in one.text]
    assert "Answer: Yes" in last.text
    closed = await desk.host.closed(question["request_id"])
    assert closed["delivered"] == "live"
