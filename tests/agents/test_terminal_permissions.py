"""May I, in Claude Code's real terminal: its dialog and a person elsewhere, the first one wins."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.acceptance.support import Json
from tests.agents.programs import CLAUDES, TRIED_CLAUDES, Program
from tests.agents.support import kill_all
from tests.agents.test_gate import Desk, go_through_first_start
from tests.agents.test_parking import results
from tests.agents.test_permissions import WAIT_SECONDS
from tests.standins.models import CallTool, Say
from tests.waiting import until

every_claude = pytest.mark.parametrize("program", CLAUDES, ids=lambda program: program.id)
claude = pytest.mark.parametrize("program", TRIED_CLAUDES, ids=lambda program: program.id)
newest = pytest.mark.parametrize("program", CLAUDES[-1:], ids=lambda program: program.id)
DIALOG = "Do you want to "


class AskingDesk(Desk):
    """The program asks before it does anything, and its host runs when it is connected."""

    async def ask(self, way: str = "http", *calls: CallTool, then: Sequence[CallTool] = ()) -> Json:
        """Let the model make the calls, of which the last one asks, and return the card."""
        self.connect("--permissions", way)
        go_through_first_start(self)
        self.sit_down("--permission-mode", "default")
        turns = [[call] for call in calls or (self.bash(f"touch {self.home}/made"),)]
        self.model.add(*turns, *([call] for call in then), [Say("Well then.")])
        await self.say("Make the file.", len(turns))
        await self.see(DIALOG)
        [asked] = await self.asked()
        return asked

    def bash(self, command: str) -> CallTool:
        return CallTool("Bash", {"command": command, "description": "Make it"})

    async def settled(self, asked: Json) -> Json:
        """Wait until the card is, and return how it ended."""
        try:
            closed = await self.host.closed(asked["request_id"])
        except AssertionError as exc:
            raise AssertionError(f"{exc}\n{self.tmux.screen}") from exc
        ending: Json = closed["ending"]
        return ending

    async def choose(self, key: str) -> None:
        """Press the key until the dialog has gone: for a moment it does not listen."""

        def look() -> bool:
            if DIALOG in self.tmux.screen:
                self.tmux.press(key)
                return False
            return True

        await until(look, "the dialog to go")

    async def dialog_gone(self) -> None:
        await until(lambda: DIALOG not in self.tmux.screen, "the dialog to go")

    @property
    def made(self) -> bool:
        return (self.home / "made").exists()


@pytest.fixture
async def desk(program: Program, tmp_path: Path) -> AsyncIterator[AskingDesk]:
    desk = AskingDesk(program, tmp_path)
    desk.model.start()
    desk.prepare()
    await desk.host.start()
    yield desk
    desk.close()


@every_claude
@pytest.mark.parametrize("way", ["http", "command"])
async def test_what_is_allowed_elsewhere_runs_and_the_dialog_goes(
    desk: AskingDesk, way: str
) -> None:
    asked = await desk.ask(way)
    [question] = asked["questions"]
    assert asked["kind"] == "permission"
    assert f"touch {desk.home}/made" in question["question"]
    assert "It would allow from then on (shown only, never used): `" in question["question"]
    assert not desk.made

    desk.host.answer(asked["short_id"], "approve")
    await desk.requests(2)

    assert desk.made
    await desk.dialog_gone()
    closed = await desk.host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")


@claude
@pytest.mark.parametrize("way", ["http", "command"])
async def test_what_a_person_has_edited_runs_in_its_place_and_the_model_is_told(
    desk: AskingDesk, way: str
) -> None:
    asked = await desk.ask(way)

    edited = {**asked["input"], "command": f"touch {desk.home}/edited"}
    reply = desk.host.answer(asked["short_id"], "approve: “my” way", edited=edited)
    assert reply.status == 200, reply.body
    _, second = await desk.requests(2)

    assert (desk.home / "edited").exists()
    assert not desk.made
    await desk.dialog_gone()
    assert f"command: touch {desk.home}/edited" in second.text
    assert f"You had: touch {desk.home}/made" in second.text
    assert "They say: “my” way" in second.text
    ending = await desk.settled(asked)
    assert ending["edited"] == edited


@claude
async def test_the_model_reads_what_a_person_says_beside_a_yes(desk: AskingDesk) -> None:
    asked = await desk.ask("http", desk.bash(f"touch {desk.home}/made; exit 3"))

    desk.host.answer(asked["short_id"], "approve: but “no” further")
    _, second = await desk.requests(2)

    assert desk.made
    assert "ana allowed this call. They say: but “no” further" in second.text


@claude
async def test_the_model_reads_word_for_word_why_it_was_denied(desk: AskingDesk) -> None:
    asked = await desk.ask()

    desk.host.answer(asked["short_id"], "deny: not in “my” home, please")
    _, second = await desk.requests(2)

    told = results(second)[-1]
    assert "not in “my” home, please" in json.loads(f'"{told[1:-1]}"')
    assert not desk.made
    await desk.dialog_gone()


@claude
@pytest.mark.parametrize("way", ["http", "command"])
async def test_a_yes_in_the_terminal_settles_the_card(desk: AskingDesk, way: str) -> None:
    asked = await desk.ask(way)

    await desk.choose("Enter")

    ending = await desk.settled(asked)
    assert ending["reason"] == "allowed in the terminal"
    assert desk.made


@claude
async def test_a_yes_to_a_call_that_fails_settles_the_card_too(desk: AskingDesk) -> None:
    asked = await desk.ask("http", desk.bash(f"touch {desk.home}/made; exit 3"))

    await desk.choose("Enter")

    ending = await desk.settled(asked)
    assert ending["reason"] == "allowed in the terminal"
    assert desk.made


@claude
async def test_a_yes_to_an_edit_settles_its_card(desk: AskingDesk) -> None:
    path = desk.work / "notes.txt"
    path.write_text("old\n")
    change = {"file_path": str(path), "old_string": "old", "new_string": "new"}
    calls = [CallTool("Read", {"file_path": str(path)}), CallTool("Edit", change)]
    asked = await desk.ask("http", *calls)
    [question] = asked["questions"]
    assert "```diff\n-old\n+new\n```" in question["question"]

    await desk.choose("Enter")

    ending = await desk.settled(asked)
    assert ending["reason"] == "allowed in the terminal"
    assert path.read_text() == "new\n"


@claude
@pytest.mark.parametrize("way", ["http", "command"])
async def test_escape_in_the_terminal_settles_the_card(desk: AskingDesk, way: str) -> None:
    asked = await desk.ask(way)

    await desk.choose("Escape")

    ending = await desk.settled(asked)
    assert ending["reason"] == "closed in the terminal"
    assert not desk.made


@newest
async def test_an_agent_that_is_killed_takes_its_card_with_it(desk: AskingDesk) -> None:
    asked = await desk.ask()

    kill_all(f"HOME={desk.home}")

    ending = await desk.settled(asked)
    assert ending["reason"] == "closed in the terminal"
    assert desk.host.answer(asked["short_id"], "approve").status == 409


@claude
async def test_the_dialog_stays_when_the_host_is_killed(desk: AskingDesk) -> None:
    asked = await desk.ask()

    desk.host.kill()
    await desk.host.start()
    closed = await desk.host.closed(asked["request_id"])
    dialog = desk.tmux.screen
    await desk.choose("Enter")
    await desk.requests(2)

    assert DIALOG in dialog
    assert "restarted" in closed["ending"]["reason"]
    assert desk.made


@newest
async def test_a_host_killed_right_after_the_answer_leaves_nothing_open(desk: AskingDesk) -> None:
    asked = await desk.ask()

    desk.host.answer(asked["short_id"], "approve")
    desk.host.kill()
    await desk.host.start()
    closed = await desk.host.closed(asked["request_id"])
    await desk.choose("Enter")  # only if the host died before it could tell
    await desk.requests(2)

    assert (closed["ending"]["outcome"], closed["ending"]["answered_by"]) == ("answered", "ana")
    assert desk.made


@newest
async def test_allowed_always_the_next_dialog_needs_nobody(desk: AskingDesk) -> None:
    asked = await desk.ask(then=[desk.bash(f"touch {desk.home}/made")])

    desk.host.answer(asked["short_id"], "always")
    await desk.requests(3)
    await desk.dialog_gone()

    second, first = await until(lambda: len(h := desk.host.history()) == 2 and h, "the history")
    assert first["request_id"] == asked["request_id"]
    assert (second["ending"]["channel"], second["cards"]) == ("rule", [])


@newest
async def test_a_dialog_waits_for_as_long_as_a_person_elsewhere_needs(desk: AskingDesk) -> None:
    asked = await desk.ask()
    since = time.monotonic()

    await until(lambda: time.monotonic() - since > WAIT_SECONDS, seconds=2 * WAIT_SECONDS)
    assert DIALOG in desk.tmux.screen
    desk.host.answer(asked["short_id"], "approve")
    await desk.requests(2)

    assert desk.made


@newest
@pytest.mark.parametrize("way", ["http", "command"])
async def test_without_a_terminal_nobody_is_asked_and_nothing_waits(
    desk: AskingDesk, way: str
) -> None:
    desk.connect("--permissions", way)
    desk.model.add([desk.bash(f"touch {desk.home}/made")], [Say("Well then.")])

    runner = desk.begin("Make the file.")
    await desk.requests(2)

    assert await runner.ended() == 0
    assert desk.host.history() == []
    assert not desk.made


@newest
async def test_without_a_host_the_terminal_asks_alone_and_shows_no_error(desk: AskingDesk) -> None:
    desk.connect()
    go_through_first_start(desk)
    desk.host.kill()
    desk.sit_down("--permission-mode", "default")
    desk.model.add([desk.bash(f"touch {desk.home}/made")], [Say("Well then.")])

    await desk.say("Make the file.", 1)
    await desk.see(DIALOG)
    await desk.choose("Enter")
    await desk.see("Well then.")

    assert desk.made
    assert "hook error" not in desk.tmux.screen
