"""May I, in Codex's real terminal: its dialog and a person elsewhere, the first one wins."""

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.acceptance.support import Json
from tests.agents.programs import PROGRAMS, Program
from tests.agents.support import GROUP, kill_all, marked
from tests.agents.test_gate import Desk
from tests.standins.models import CallTool, Say
from tests.tmux import Tmux
from tests.waiting import until

CODEX = [program for program in PROGRAMS if program.agent == "codex"]
pytestmark = pytest.mark.parametrize("program", CODEX, ids=lambda program: program.id)
PROMPT = "\u203a"
DIALOG = "Would you like to "
QUESTION = "Which colour?"
DAEMON = b"app-server\0--listen"


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class CodexDesk(Desk):
    """Nothing is set up in Codex: the host finds its daemon."""

    def sit_down(self, *arguments: str) -> None:
        socket = self._folder / f"tmux{len(self._opened)}"
        self._opened.append(Tmux(socket, self.env | {"TERM": "xterm-256color"}, self.work))
        self.tmux.start(" ".join(["codex", *arguments]), height=40)

    async def say(self, text: str, heard: int) -> None:
        await self.see(PROMPT)
        self.tmux.type(text)
        await until(lambda: self.typed == text, "the text in the prompt")
        # One that comes right behind typed text is taken for a part of it.
        # None comes behind one that was taken: it would answer what is asked next.
        await self.press("Enter", lambda _: self.typed != text or len(self.turns()) >= heard)
        await until(lambda: len(self.turns()) >= heard, f"request {heard} to the model")

    @property
    def typed(self) -> str:
        """What stands at the prompt, or is chosen in a dialog."""
        lines = [line for line in self.tmux.screen.splitlines() if line.startswith(PROMPT)]
        return lines[-1].removeprefix(PROMPT).strip() if lines else ""

    def turns(self) -> list[Json]:
        """Return what the model was asked, but for titles, which have no tools."""
        return [request.body for request in self.model.requests if request.body.get("tools")]

    async def open(self, *turns: list[CallTool | Say], more: str = "") -> None:
        self.prepare(*turns)
        self.host.configure(
            f"[groups.{GROUP}]\n[sources.codex]\ngroup = {json.dumps(GROUP)}\n"
            f"home = {json.dumps(str(self.home / '.codex'))}\n{more}"
        )
        await self.host.start()
        self.sit_down("-a", "on-request")

    async def ask(self, *, more: str = "") -> Json:
        """Let the model run a command that needs a permission, and return the card."""
        await self.open([self.making()], [Say("Well then.")], more=more)
        await self.say("Make the file.", 1)
        await self.see(DIALOG)
        [asked] = await self.asked()
        return asked

    def making(self) -> CallTool:
        outside = {"sandbox_permissions": "require_escalated", "justification": "Make it"}
        return CallTool("exec_command", {"cmd": f"touch {self.home}/made", **outside})

    @property
    def made(self) -> bool:
        return (self.home / "made").exists()

    async def settled(self, asked: Json) -> Json:
        try:
            closed = await self.host.closed(asked["request_id"])
        except AssertionError as exc:
            raise AssertionError(f"{exc}\n{self.tmux.screen}") from exc
        return closed

    def kill_daemon(self) -> None:
        daemons = [pid for pid in marked(f"HOME={self.home}") if DAEMON in _command(pid)]
        assert daemons
        for pid in daemons:
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        super().close()
        kill_all(f"HOME={self.home}")


@pytest.fixture
async def desk(program: Program, tmp_path: Path) -> AsyncIterator[CodexDesk]:
    desk = CodexDesk(program, tmp_path)
    desk.model.start()
    yield desk
    desk.close()


async def test_what_is_allowed_elsewhere_runs_and_the_dialog_goes(desk: CodexDesk) -> None:
    asked = await desk.ask()
    [question] = asked["questions"]
    assert asked["kind"] == "permission"
    assert f"touch {desk.home}/made\n" in question["question"]
    assert not desk.made

    desk.host.answer(asked["short_id"], "approve")
    await desk.see("Well then.")

    assert desk.made
    await desk.miss(DIALOG)
    closed = await desk.settled(asked)
    assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")


async def test_why_it_was_denied_is_read_by_the_model_and_in_the_terminal(desk: CodexDesk) -> None:
    asked = await desk.ask()

    desk.host.answer(asked["short_id"], "deny: not in “my” home, please")
    await desk.see("Well then.")

    assert not desk.made
    _, second = desk.turns()
    told = json.dumps(second["input"][-2:], ensure_ascii=False)
    assert "rejected by user" in told
    assert "not in “my” home, please" in told
    assert "not in “my” home, please" in desk.tmux.screen
    await desk.miss(DIALOG)


@pytest.mark.parametrize(("key", "is_made"), [("y", True), ("Escape", False)])
async def test_what_is_decided_in_the_terminal_clears_the_card(
    desk: CodexDesk, key: str, *, is_made: bool
) -> None:
    asked = await desk.ask()

    await desk.press(key, lambda screen: DIALOG not in screen)

    closed = await desk.settled(asked)
    assert closed["ending"]["outcome"] == "cleared"
    assert closed["ending"]["reason"] == "decided in the terminal"
    await until(lambda: desk.made == is_made, "the file")


async def test_a_host_that_was_killed_finds_the_open_dialog_again(desk: CodexDesk) -> None:
    asked = await desk.ask()

    desk.host.kill()
    await desk.host.start()
    [again] = await desk.asked()
    desk.host.answer(again["short_id"], "approve")
    await desk.see("Well then.")

    assert again["request_id"] == asked["request_id"]
    assert desk.made
    closed = await desk.settled(asked)
    assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")
    assert len(desk.host.history()) == 1


async def test_what_was_decided_while_no_host_ran_is_cleared(desk: CodexDesk) -> None:
    asked = await desk.ask()

    desk.host.kill()
    await desk.press("y", lambda screen: DIALOG not in screen)
    await desk.see("Well then.")
    await desk.host.start()

    closed = await desk.settled(asked)
    assert closed["ending"]["reason"] == "Codex does not ask for it any more"
    assert desk.made


async def test_a_daemon_that_is_killed_takes_its_card_with_it(desk: CodexDesk) -> None:
    asked = await desk.ask()

    desk.kill_daemon()

    closed = await desk.settled(asked)
    assert closed["ending"]["outcome"] == "cleared"
    assert desk.host.answer(asked["short_id"], "approve").status == 409
    assert not desk.made


async def test_an_answer_reaches_a_codex_whose_terminal_was_closed(desk: CodexDesk) -> None:
    asked = await desk.ask()

    desk.tmux.close()
    desk.host.answer(asked["short_id"], "approve")

    closed = await desk.settled(asked)
    assert closed["delivered"] == "live"
    await until(lambda: desk.made, "the file")


async def test_a_person_sees_the_change_of_a_file_and_allows_it(desk: CodexDesk) -> None:
    file = desk.home / "a.txt"
    file.write_text("zero\none\ntwo\n")
    patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n-one\n+1\n*** End Patch"
    change = CallTool("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"})
    await desk.open([change], [Say("Well then.")])

    await desk.say("Change it.", 1)
    await desk.see(DIALOG)
    [asked] = await desk.asked()
    desk.host.answer(asked["short_id"], "approve")
    await desk.see("Well then.")

    [question] = asked["questions"]
    assert f"Codex wants to change the file `{file}`" in question["question"]
    assert "-one\n+1\n" in question["question"]
    assert file.read_text() == "zero\n1\ntwo\n"


async def test_its_own_question_is_answered_elsewhere(desk: CodexDesk) -> None:
    options = [
        {"label": "Blue", "description": "like the sea"},
        {"label": "Red", "description": "like fire"},
    ]
    asking = {"id": "colour", "header": "Colour", "question": QUESTION, "options": options}
    call = CallTool("request_user_input", {"questions": [asking]})
    await desk.open([call], [Say("Well then.")])
    await desk.see(PROMPT)
    desk.tmux.type("/plan")
    await desk.see("/plan")
    await desk.press("Enter", lambda screen: "for Plan mode" in screen)

    await desk.say("Ask.", 1)
    await desk.see(QUESTION)
    [asked] = await desk.asked()
    desk.host.answer(asked["short_id"], "2")
    await desk.see("Well then.")

    assert asked["kind"] == "question"
    _, second = desk.turns()
    assert "Red" in json.dumps(second["input"][-1])
    await desk.miss(QUESTION)


async def test_a_rule_of_the_group_answers_before_a_person_is_asked(desk: CodexDesk) -> None:
    rules = f'[groups.{GROUP}.permissions]\nallow = ["Bash(touch {desk.home}/made)"]\n'
    await desk.open([desk.making()], [Say("Well then.")], more=rules)

    await desk.say("Make the file.", 1)
    await desk.see("Well then.")

    assert desk.made
    [closed] = desk.host.history()
    assert closed["ending"]["channel"] == "rule"
