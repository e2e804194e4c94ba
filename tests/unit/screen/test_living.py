"""The screen over time: hosts that go and come back, what is hidden, what outlives it."""

import asyncio

import pytest
from tests.unit.cli.support import Host, until
from tests.unit.screen.support import DEPLOY, Desk, HandClock

from pynchy.cli.events import read_events
from pynchy.cli.screen import keys, side_screens
from pynchy.cli.screen.saved_state import DraftPart, SavedState
from pynchy.config import Settings
from pynchy.inbox.keys import BINDINGS, SCREEN_BINDINGS

FAILING_LAUNCHER = {
    "http": {"port": 0},
    "groups": {"web-team": {"launcher": {"command": ["false", "{initial}"], "attempts": 1}}},
    "receipt_grace": "0s",
}


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return Settings.model_validate(getattr(request, "param", {"http": {"port": 0}}))


async def test_a_host_that_goes_is_told_and_one_that_comes_back_is_asked(
    desk: Desk, host: Host
) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes", "● live")
        await asyncio.to_thread(host.stop)
        await person.see("○ reconnecting, last seen", "ago", short_id)
        await person.press("1", "enter")
        await person.see("Not sent:", "is kept; try again.", "(•) Yes")

        await asyncio.to_thread(host.start)
        await person.see("● live")
        await person.press("enter")
        await desk.ended(person, short_id)


async def test_what_ended_while_the_host_was_away_is_settled(desk: Desk, host: Host) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes", "● live")
        await asyncio.to_thread(host.stop)
        await person.see("reconnecting")
        await asyncio.to_thread(host.start)
        await asyncio.to_thread(host.reply, short_id, "decline", "bo", reason="no need")

        await person.see("Declined by bo", "no need")


async def test_something_hidden_comes_back_and_stays_hidden_over_a_restart(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)
    other = await desk.ask("Another one?", urgency="low")

    async with desk.sit_down() as person:
        await person.look_at("( ) Yes")
        await person.press("h")
        await person.see(f"Hide #{short_id} for", "15 minutes")
        await person.press("1")
        await person.see("1 hidden", "1 waiting")
        await person.see_no_more(short_id)
        assert other in person.screen
    async with desk.sit_down() as person:
        await person.see("1 hidden", other)
        assert short_id not in person.screen
        person.clock.pass_seconds(16 * 60)

        screen = await person.see(short_id, "2 waiting")
        assert screen.index(short_id) < screen.index(other)


async def test_half_typed_text_outlives_the_screen_and_marks_do_not(desk: Desk) -> None:
    await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("( ) Yes")
        await person.press("1", "w")
        await person.type("half a thou")
        await person.see("half a thou", "(•) Yes")
    async with desk.sit_down() as person:
        screen = await person.see("half a thou")

        assert "(•)" not in screen


async def test_a_search_lists_what_fits(desk: Desk) -> None:
    first = await desk.ask(DEPLOY, urgency="high")
    second = await desk.ask("Which colour?", agent="codex")
    third = await desk.ask("Which name?", agent="claude")

    async with desk.sit_down() as person:
        await person.look_at(first, second, third, "( ) Yes")
        await person.press("slash")
        await person.type("codex")

        await person.see("search: codex", second)
        # What is being looked at stays.
        assert first in person.screen
        assert third not in person.screen
        await person.press("enter", "j")
        await person.see("Which colour?", f"#{second}")


@pytest.mark.parametrize("settings", [FAILING_LAUNCHER], indirect=True)
async def test_who_waits_is_listed_and_an_answer_is_delivered_again(desk: Desk, host: Host) -> None:
    stuck = await desk.ask(DEPLOY, agent="claude", session_id="s1", wait_seconds=0)
    await asyncio.to_thread(host.reply, stuck, "answer", "bo", values=["Yes"])
    waiting = await desk.ask("Which name?", agent="codex", task="rename", group="backend")

    async with desk.sit_down() as person:
        await person.look_at(waiting, "Your answer", "1 not delivered (a)")
        await person.press("a")
        await person.see("answer not delivered", "claude", "waiting on you", "codex", "rename")
        await person.press("r")
        await person.see("Choose an answer that was not delivered first.")
        await person.press("j", "r")
        await person.see("Trying again.")
        # The screen says so also before: only what has failed again can be let go of.
        await person.until(lambda: count_undelivered(host) == 2, "the second failure")
        await person.see("answer not delivered")
        await person.press("x")
        await person.see("No longer kept; history has it.")
        await person.see_no_more(f"#{stuck}")
        await person.press("escape")
        await person.see("● live")
        await person.see_no_more("not delivered")


def count_undelivered(host: Host) -> int:
    return sum(event["type"] == "undelivered" for event in read_events(host.data.audit))


def finish(host: Host, short_id: str, answer: str) -> None:
    """Answer it, and let go of the answer that nobody comes for."""
    host.reply(short_id, "answer", "bo", values=[answer])
    until(lambda: host.client.question(short_id)["state"] == "undelivered")
    host.reply(short_id, "dismiss", "bo")
    until(lambda: host.client.question(short_id)["state"] == "closed")


async def test_what_is_over_can_be_searched(desk: Desk, host: Host) -> None:
    for question, answer in (("Deploy to mars?", "Yes"), ("Paint it?", "No")):
        asked = await desk.ask({"question": question, "options": ["Yes", "No"]})
        await asyncio.to_thread(finish, host, asked, answer)

    async with desk.sit_down() as person:
        await person.see("Nothing waits")
        await person.press("o")
        await person.see("What is over", "mars", "Paint", "Answered by bo")
        await person.press("slash")
        await person.type("mars")
        await person.see_no_more("Paint")
        await person.press("escape", "escape")
        await person.see("● live")


async def test_a_search_that_did_not_see_everything_says_so(
    desk: Desk, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_screens, "_MAX_OVER", 1)
    asked = await desk.ask(DEPLOY)
    await asyncio.to_thread(finish, host, asked, "Yes")

    async with desk.sit_down() as person:
        await person.see("Nothing waits")
        await person.press("o")
        await person.see("What is over", "Deploy?")
        await person.press("slash")
        await person.type("mars")
        await person.see("Nothing fits among the newest 1.")


async def test_help_has_every_key_of_the_table(desk: Desk) -> None:
    async with desk.sit_down(size=(120, 50)) as person:
        await person.see("● live")
        await person.press("question_mark")

        await person.see(*(binding.text for binding in (*BINDINGS, *SCREEN_BINDINGS)))


async def test_a_small_terminal_shows_the_list_above_the_question(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down(size=(120, 40)) as person:
        await person.look_at("( ) Yes")
        await person.press("1")
        # In the list its id stands without the mark: beside the question on one line, or above it.
        await person.until(lambda: _ids_beside(person.screen, short_id) == 2, "both on one line")
        await person.pilot.resize_terminal(60, 24)
        await person.until(lambda: _ids_beside(person.screen, short_id) == 1, "the list above")
        await person.see("(•) Yes", short_id)
        await person.pilot.resize_terminal(20, 6)
        await person.pilot.resize_terminal(120, 40)
        await person.until(lambda: _ids_beside(person.screen, short_id) == 2, "both on one line")
        await person.see("(•) Yes", short_id)


def _ids_beside(screen: str, short_id: str) -> int:
    """Return how often the id stands on the line that has the question's heading."""
    headed = [line for line in screen.splitlines() if f"#{short_id}" in line]
    return headed[0].count(short_id) if headed else 0


async def test_a_long_preview_is_folded_with_its_length(desk: Desk) -> None:
    lines = "\n".join(f"line {n}" for n in range(1, 41))
    short = "@@ -1 +1 @@\n-old\n+new"
    options = [{"label": "Long", "preview": lines}, {"label": "Short", "preview": short}]
    await desk.ask({"question": "Which?", "options": options})

    async with desk.sit_down(size=(120, 80)) as person:
        screen = await person.see("Preview, 40 lines (f)", "+new")
        assert "line 7" not in screen
        await person.wait_out_deafness()
        await person.press("f")

        await person.see("line 7", "line 40")


async def test_what_an_agent_writes_cannot_leave_its_place(desk: Desk) -> None:
    option = {
        "label": "[red]Go\x1b[2J\x1b[1;1H",
        "description": "\u202eevil",
        "preview": "\x1b]0;x\x07p",
    }
    hostile = {
        "question": "Turn &#x202e;back?\n\n[b]x[/b] [bank](http://evil)",
        "options": [option],
    }
    await desk.ask(hostile, agent="\x1b[31mclaude", task="[link=x]t[/link]", title="a\x9b2Jb")

    async with desk.sit_down() as person:
        screen = await person.see("[red]Go", "⟨U+202E⟩back?", "[b]x[/b]", "bank (http://evil)")

        assert "\x1b" not in screen
        assert "\u202e" not in screen
        assert "⟨U+202E⟩evil" in screen
        assert "[link=x]t[/link]" in screen


async def test_a_damaged_file_of_drafts_is_no_obstacle(desk: Desk, clock: HandClock) -> None:
    del clock
    (desk.host.data.path / "inbox-terminal.json").write_text('{"drafts": [[1]], "snoozes": 7}')
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("( ) Yes")
        await person.press("1", "enter")
        await desk.ended(person, short_id)


async def test_two_screens_keep_each_others_drafts_and_naps(desk: Desk) -> None:
    await desk.ask(DEPLOY, urgency="high")
    hidden = await desk.ask("Another one?", urgency="low")

    async with desk.sit_down() as one, desk.sit_down() as two:
        await one.look_at("( ) Yes")
        await two.look_at("( ) Yes")
        await one.press("w")
        await one.type("slowly")
        await one.see("slowly")
        await two.press("1", "j")
        await two.look_at("Your answer")
        await two.press("h")
        await two.see(f"Hide #{hidden} for")
        await two.press("1")
        await two.see("1 hidden")

    async with desk.sit_down() as person:
        screen = await person.see("slowly", "1 hidden")
        assert hidden not in screen


async def test_a_draft_that_was_sent_from_another_screen_does_not_come_back(
    desk: Desk, clock: HandClock
) -> None:
    key, other = ("web-team", "q1"), ("web-team", "q2")
    folder, now = desk.host.data.folder, clock.made().now
    first = SavedState(folder, now)
    first.keep(key, [DraftPart(text="mine")])
    first.save()
    one, two = SavedState(folder, now), SavedState(folder, now)

    one.forget(key)
    one.save()
    two.keep(key, [DraftPart(options=(1,), text="mine")])
    two.keep(other, [DraftPart(text="another")])
    two.save()

    assert [SavedState(folder, now).written(k) for k in (key, other)] == ["", "another"]


async def test_enter_on_a_question_without_options_says_where_one_writes(desk: Desk) -> None:
    await desk.ask({"question": "Which name?"})
    async with desk.sit_down() as person:
        await person.look_at("Your answer")
        await person.press("enter")
        await person.see("Write an answer first: you are in its field now.")


async def test_single_keys_can_be_switched_off_and_stay_off(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)
    async with desk.sit_down() as person:
        await person.look_at("Or in your own words")
        await person.press("question_mark")
        await person.see("Single keys work")
        await person.press("space")
        await person.see("Single keys are off")
        await person.press("escape")
        await person.see("after Ctrl+K")

        for key in ("d", "1", "h", "a", "q"):
            await person.press(key)
        assert "Why?" not in person.screen
        await person.press("enter")
        await person.see("Choose an option or write something first")

    async with desk.sit_down() as person:
        await person.look_at("Or in your own words", "after Ctrl+K")
        await person.press("ctrl+k", "w")
        await person.type("123 d")
        await person.press("escape")
        await person.press("ctrl+k", "2")
        await person.press("enter")
        ending = await desk.ended(person, short_id)
        await person.press("f1")
        await person.press("space")
        await person.see("Single keys work")

    assert ending["answers"][0] == {"question": "Deploy?", "selected": ["No"], "text": "123 d"}


async def test_keys_of_the_lists_beside_are_off_as_well(desk: Desk) -> None:
    await desk.ask(DEPLOY)
    async with desk.sit_down() as person:
        await person.look_at("Or in your own words")
        await person.press("question_mark", "space", "escape")
        await person.press("ctrl+k", "a")
        await person.see("waiting on you")

        await person.press("q")
        await person.see("waiting on you")
        await person.press("ctrl+k", "q")

        await person.look_at("Or in your own words")


@pytest.mark.parametrize("single_keys", [True, False])
def test_no_key_at_the_bottom_of_eighty_columns_is_cut(single_keys: bool) -> None:  # noqa: FBT001
    for width in (78, 40, 20):
        told = keys.hints(width, single_keys=single_keys).plain

        assert len(told) <= max(width, len("F1 keys  after Ctrl+K:"))
        assert "keys" in told
    line = keys.hints(78).plain
    assert all(word in line for word in ("leave", "move", "mark", "send", "write", "decline"))


async def test_the_bottom_line_fits_a_narrow_terminal(desk: Desk) -> None:
    async with desk.sit_down((80, 24)) as person:
        await person.look_at("Nothing waits for you")

        last = person.screen.rstrip().splitlines()[-1]
        assert "…" not in last
        assert "1-9 mark  ↵ send  w write  d decline  u undo" in last


async def test_how_long_the_call_still_waits_is_told(desk: Desk, clock: HandClock) -> None:
    await desk.ask(DEPLOY, wait_seconds=240)

    async with desk.sit_down() as person:
        await person.see("waits 3m", "the agent: waits 3m")
        clock.pass_seconds(300)
        await person.see("its call no longer waits; the answer is kept")
