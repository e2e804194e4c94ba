"""Claude Code in a real terminal: the call waits, and the model gets a person's plain answer.

Claude Code moves a call that lasts to the background, two minutes after its beginning by default.
Its environment says three seconds here, so that this can be seen soon; what `pynchy connect` has
written into its settings must win over that.
"""

import json
import os
import pwd
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.acceptance.support import Json
from tests.agents.programs import CLAUDES, PROGRAMS, TRIED_CLAUDES, Program
from tests.agents.support import GROUP, kill_all
from tests.agents.terminal import Terminal
from tests.standins.models import AskUser, CallTool, Say
from tests.tmux import Tmux
from tests.waiting import DEADLINE_SECONDS, until

NEWEST = PROGRAMS[1]
SOON = {"CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS": "3000", "TERM": "xterm-256color"}
IN_THE_BACKGROUND = "MCP task"
PROMPT = "\u276f"
DIALOG = "requests your input"
PRESSES = 4
# When somebody presses Esc and when the phone answers, as the waiting call says; the second takes
# ten minutes and is tried only where PYNCHY_TEST_LONG_WAITS is set.
WAITS = [("10 s", "20 s"), ("30 s", "10 min")]
TRIED_WAITS = WAITS if os.environ.get("PYNCHY_TEST_LONG_WAITS") else WAITS[:1]


class Desk(Terminal):
    """Somebody sits at the terminal in which the program runs."""

    def __init__(self, program: Program, folder: Path) -> None:
        super().__init__(program, folder)
        self._opened: list[Tmux] = []

    @property
    def tmux(self) -> Tmux:
        return self._opened[-1]

    @contextmanager
    def settings(self) -> Iterator[Json]:
        """Change the person's own settings of Claude Code."""
        path = self.home / ".claude" / "settings.json"
        told = json.loads(path.read_text())
        yield told
        path.write_text(json.dumps(told))

    def sit_down(self, *arguments: str) -> None:
        socket = self._folder / f"tmux{len(self._opened)}"
        self._opened.append(Tmux(socket, self.env | SOON, self.work))
        self.tmux.start(" ".join(["claude", *arguments]), height=40)

    async def see(self, text: str, seconds: float = DEADLINE_SECONDS) -> None:
        try:
            await until(lambda: text in self.tmux.screen, seconds=seconds)
        except AssertionError as exc:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.tmux.screen}") from exc

    async def press(self, key: str, done: Callable[[str], bool]) -> None:
        """Press the key until it shows: one that comes while a dialog is drawn is lost."""
        for _ in range(PRESSES):
            self.tmux.press(key)
            with suppress(AssertionError):
                await until(lambda: done(self.tmux.screen), seconds=DEADLINE_SECONDS / PRESSES)
                return
        raise AssertionError(f"{key} does nothing:\n{self.tmux.screen}")

    async def miss(self, text: str) -> None:
        """Wait until it is no longer on the screen."""
        await until(lambda: text not in self.tmux.screen, f"the end of {text!r}")

    async def allow_desk_answers(self) -> None:
        self.host.configure(f"[groups.{GROUP}]\ndesk_answers = true\n")
        (self.mailbox / "tasks").mkdir(parents=True, exist_ok=True)
        await self.host.restart()
        told = self.mailbox / "input" / "host.json"
        await until(lambda: told.exists() and "desk_answers" in told.read_text())

    async def ask(self) -> tuple[Json, int]:
        """Let the model ask in the terminal; return the question, and how much it has heard."""
        self.sit_down()
        heard = await self.wait_for_the_tools() + 1
        self.model.add([AskUser("Deploy?", "Yes", "No")], [Say("So be it.")])
        await self.say("Deploy it.", heard)
        [question] = await self.asked()
        return question, heard

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
        for tmux in self._opened:
            tmux.close()
        super().close()


def go_through_first_start(desk: Desk) -> None:
    """Leave what Claude Code writes when a person has gone through its first start."""
    own = desk.home / ".claude.json"
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["sk-ant-scripted"], "rejected": []},
        "projects": {str(desk.work): {"hasTrustDialogAccepted": True}},
    }
    own.write_text(json.dumps(json.loads(own.read_text()) | known))


@pytest.fixture
async def desk(program: Program, tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(program, tmp_path)
    desk.model.start()
    desk.prepare()
    desk.connect()
    if program.agent == "claude":
        go_through_first_start(desk)
    await desk.host.start()
    yield desk
    desk.close()


@pytest.mark.parametrize("program", CLAUDES, ids=lambda program: program.id)
async def test_a_call_in_the_terminal_waits_and_its_answer_is_a_plain_result(desk: Desk) -> None:
    question, heard = await desk.ask()

    await desk.see("waiting for a person (10 s)")  # long after the three seconds
    meanwhile = desk.tmux.screen
    desk.host.answer(question["short_id"], "1")

    assert IN_THE_BACKGROUND not in meanwhile
    await has_plain_answer(desk, heard, "Yes")
    found = desk.doctor("--gate")
    [tried] = [one for one in found if one["check"] == "Claude Code's gate"]
    assert tried["status"] == "ok"
    assert f"{desk.program.version} waits for your answer" in tried["detail"]
    told = [one["detail"] for one in found if one["check"] == "Claude Code"]
    assert f"version {desk.program.version} is set to wait for your answer" in told[0]
    assert ["asks for no permission" in one for one in told[1:]] == [True] * (
        desk.program == NEWEST
    )


async def has_plain_answer(desk: Desk, heard: int, answer: str) -> None:
    """The next thing that the model hears is the person's answer, and nothing but that."""
    requests = await desk.requests(heard + 1)
    assert len(requests) == heard + 1
    result = requests[-1].text
    assert f"Answer: {answer}" in result
    assert "NOT USER INPUT" not in result
    assert "background" not in result[result.index("Deploy?") :].partition(f"Answer: {answer}")[0]


@pytest.mark.parametrize("program", [NEWEST], ids=lambda program: program.id)
async def test_without_the_setting_the_model_would_go_on_without_an_answer(desk: Desk) -> None:
    with desk.settings() as told:
        del told["env"]["CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS"]
    desk.sit_down()
    heard = await desk.wait_for_the_tools()
    desk.model.add([AskUser("Deploy?", "Yes", "No")], [Say("I go on.")])

    await desk.say("Deploy it.", heard + 1)
    await desk.see(IN_THE_BACKGROUND)

    assert len(await desk.asked()) == 1
    finding, tried = [one for one in desk.doctor("--gate") if one["status"] == "problem"]
    assert tried["check"] == "Claude Code's gate"
    assert f"{desk.program.version} goes on without your answer" in tried["detail"]
    assert "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS" in finding["detail"]
    assert f"version {desk.program.version} goes on without your answer" in finding["detail"]


@pytest.mark.parametrize("program", TRIED_CLAUDES, ids=lambda program: program.id)
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


@pytest.mark.parametrize("program", TRIED_CLAUDES, ids=lambda program: program.id)
async def test_who_sits_at_the_terminal_can_answer_there(desk: Desk) -> None:
    await desk.allow_desk_answers()
    question, heard = await desk.ask()
    await desk.see(DIALOG)

    await desk.press("Right", lambda screen: "Space to select" in screen)
    await desk.press("Down", lambda screen: f"{PROMPT} \u25ef No" in screen)
    await desk.press("Space", lambda screen: "\u25b8 No" in screen)
    await desk.press("Enter", lambda screen: "Type something" in screen)
    await desk.press("Enter", lambda screen: f"{PROMPT} Accept" in screen)
    await desk.press("Enter", lambda screen: DIALOG not in screen)

    await has_plain_answer(desk, heard, "No")
    await desk.miss(DIALOG)
    closed = await desk.host.closed(question["request_id"])
    me = pwd.getpwuid(os.getuid()).pw_name
    assert (closed["ending"]["answered_by"], closed["ending"]["channel"]) == (me, "desk")
    assert closed["delivered"] == "live"


@pytest.mark.parametrize("program", TRIED_CLAUDES, ids=lambda program: program.id)
async def test_the_dialog_goes_when_the_phone_is_first(desk: Desk) -> None:
    await desk.allow_desk_answers()
    question, heard = await desk.ask()
    await desk.see(DIALOG)
    await desk.see("waiting for a person (10 s)")  # long after the three seconds
    meanwhile = desk.tmux.screen

    desk.host.answer(question["short_id"], "1")

    assert IN_THE_BACKGROUND not in meanwhile
    await has_plain_answer(desk, heard, "Yes")
    await desk.miss(DIALOG)
    await desk.see("So be it.")


@pytest.mark.parametrize(("escapes", "answers"), TRIED_WAITS, ids=[w[1] for w in TRIED_WAITS])
@pytest.mark.parametrize("program", TRIED_CLAUDES, ids=lambda program: program.id)
async def test_after_esc_the_phone_still_answers_however_late(
    desk: Desk, escapes: str, answers: str
) -> None:
    await desk.allow_desk_answers()
    question, heard = await desk.ask()
    await desk.see(DIALOG)

    await desk.see(f"waiting for a person ({escapes})")
    desk.tmux.press("Escape")
    await desk.miss(DIALOG)
    await desk.see(f"waiting for a person ({answers})", seconds=15 * 60)
    meanwhile = desk.tmux.screen
    desk.host.answer(question["short_id"], "1")

    assert DIALOG not in meanwhile
    assert IN_THE_BACKGROUND not in meanwhile
    await has_plain_answer(desk, heard, "Yes")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
async def test_without_a_terminal_nobody_answers_by_declining(desk: Desk) -> None:
    await desk.allow_desk_answers()
    desk.model.add([AskUser("Deploy?", "Yes", "No")], [Say("So be it.")])

    runner = desk.begin("Deploy it.")
    [question] = await desk.asked()
    desk.host.answer(question["short_id"], "1")

    await has_plain_answer(desk, 1, "Yes")
    assert await runner.ended() == 0, runner.text()


@pytest.mark.parametrize("program", [NEWEST], ids=lambda program: program.id)
async def test_in_the_mode_that_doctor_advises_permissions_are_asked_for(desk: Desk) -> None:
    with desk.settings() as told:
        told["permissions"]["defaultMode"] = "default"
    desk.sit_down()
    keep = "No, keep manual mode"  # it asks at its first start, and means this one
    await desk.press("Down", lambda screen: f"{PROMPT} {keep}" in screen)
    await desk.press("Enter", lambda screen: keep not in screen)
    heard = await desk.wait_for_the_tools()
    made = desk.home / "made"
    desk.model.add([CallTool("Bash", {"command": f"touch {made}", "description": "Make it"})])

    await desk.say("Make the file.", heard + 1)
    await desk.see("Do you want to proceed?")

    assert not made.exists()
    assert {one["status"] for one in desk.doctor()} == {"ok"}
