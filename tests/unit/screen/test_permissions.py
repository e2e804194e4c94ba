"""Permissions on the screen: their kind is seen, and a rule is agreed to, for whom it is meant."""

import asyncio
from typing import Any

import pytest
from tests.unit.screen.support import Desk


async def may_i(desk: Desk, tool: str = "Bash", **given: Any) -> str:
    call = {"program": "claude", "tool": tool, "input": given, "cwd": "/srv/app"}
    return await desk.ask(questions=[], permission=call, session_id="one")


async def test_a_row_says_that_it_is_a_permission_and_later_that_it_was(desk: Desk) -> None:
    short_id = await may_i(desk, command="git push")
    await desk.ask(questions=[], approval={"action": "Deploy 2.1?"})

    async with desk.sit_down() as person:
        await person.look_at("permission: git push", "approval: Deploy 2.1?")
        await person.mark("1", "(•) Allow once")
        await person.press("enter", "enter")
        await person.see("✓ permission: answered by ana")
        await asyncio.to_thread(desk.host.take, await desk.question(short_id))
        await person.press("o")
        await person.see("What is over", "permission: git push")


@pytest.mark.parametrize(
    ("keys", "value"), [(["2"], "always"), (["2", "4"], "session"), (["4", "2"], "always")]
)
async def test_who_allows_always_says_for_whom(desk: Desk, keys: list[str], value: str) -> None:
    short_id = await may_i(desk, command="git status")

    async with desk.sit_down() as person:
        await person.look_at("( ) Allow always…")
        assert "Allow in this session…" not in person.screen
        await person.press("2")
        await person.see("(•) Allow always…", "for every agent of", "4 “Allow in this")
        await person.see("( ) Allow in this session…")
        await person.press("4")
        await person.see("in this session alone", "2 “Allow always…”")
        await person.press("u")
        await person.see("( ) Allow always…")
        await person.see_no_more("Allow in this session…")
        await person.press(*keys, "enter", "enter")

        ending = await desk.ended(person, short_id)
        assert ending["answers"][0]["values"] == [value]


async def test_enter_on_the_wider_form_sends_the_narrower_one_that_is_marked(desk: Desk) -> None:
    short_id = await may_i(desk, command="git status")

    async with desk.sit_down() as person:
        await person.look_at("( ) Allow always…")
        await person.press("tab", "tab")
        await person.press("space")
        await person.see("(•) Allow always…", "for every agent of")
        await person.press("4")
        await person.see("in this session alone")
        await person.press("enter")

        ending = await desk.ended(person, short_id)
        assert ending["answers"][0]["values"] == ["session"]


async def test_the_mark_was_on_allow_always_when_it_was_for_this_session(desk: Desk) -> None:
    await may_i(desk, command="git status")

    async with desk.sit_down() as person:
        await person.look_at("( ) Allow always…")
        await person.press("4")
        await person.see("( ) Allow always…", "4  (•) Allow in this session…")


async def test_a_click_chooses_this_session_and_enter_agrees(desk: Desk) -> None:
    short_id = await may_i(desk, command="git status")

    async with desk.sit_down() as person:
        await person.look_at("( ) Allow always…")
        await person.press("2")
        await person.see("( ) Allow in this session…")
        await person.pilot.click(person.pilot.app.screen.query(".choice").last())
        await person.see("(•) Allow in this session…", "in this session alone")
        await person.press("enter")

        ending = await desk.ended(person, short_id)
        assert ending["answers"][0]["values"] == ["session"]


async def test_a_reason_is_written_beside_deny_and_reaches_the_model(desk: Desk) -> None:
    short_id = await may_i(desk, command="git push")

    async with desk.sit_down() as person:
        await person.look_at("( ) Allow once", "( ) Deny")
        await person.mark("3", "(•) Deny")
        await person.press("w")
        await person.type("too risky")
        await person.press("ctrl+enter")

        ending = await desk.ended(person, short_id)
        [answer] = ending["answers"]
        assert (answer["values"], answer["text"]) == (["deny"], "too risky")
