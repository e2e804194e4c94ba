"""May I, in the browser: seen whole, chosen with care, and told to the agent."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import expect
from tests.acceptance.support import Host, MailboxAgent
from tests.browser.conftest import OpenWindow, StartHost

_BEYOND = "e => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"


def may_i(host: Host, command: str, **more: Any) -> tuple[MailboxAgent, str]:
    agent = MailboxAgent(host.group("team"))
    call = {"program": "claude", "tool": "Bash", "input": {"command": command}, "cwd": "/srv/app"}
    return agent, agent.ask(questions=[], permission=call | more, agent="release agent")


async def test_a_permission_is_allowed_after_a_moment_to_take_it_back(
    host: Host, open_window: OpenWindow
) -> None:
    agent, request_id = may_i(host, "git push origin main")
    window = await open_window(host)
    card = await window.shown(request_id)

    await expect(card.get_by_text("git push origin main", exact=True)).to_be_visible()
    await expect(card.locator(".chip.kind")).to_have_text("permission")
    await card.get_by_role("button", name="Allow once").click()
    await card.get_by_role("button", name="Take it back").click()
    await window.says(card, "Taken back. Nothing was sent.")
    await card.get_by_role("button", name="Allow once").click()
    await card.get_by_role("button", name="Send now").click()

    await window.says(card, re.compile(r"Answered by ana \(web\)"))
    [answer] = (await agent.receive(request_id))["answers"]
    assert answer["values"] == ["approve"]


async def test_the_agent_reads_why_it_was_denied(host: Host, open_window: OpenWindow) -> None:
    agent, request_id = may_i(host, "rm -r build")
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_text("Add a note…").click()
    await card.get_by_label("A note beside your choice").fill("the build is needed")
    await card.get_by_role("button", name="Send").click()
    await window.says(card, "Choose an option first")
    await card.get_by_role("button", name="Deny").click()
    await card.get_by_role("button", name="Send now").click()

    [answer] = (await agent.receive(request_id))["answers"]
    assert (answer["values"], answer["text"]) == (["deny"], "the build is needed")


async def test_a_command_is_edited_and_allowed_after_a_moment_to_take_it_back(
    host: Host, open_window: OpenWindow
) -> None:
    agent, request_id = may_i(host, "git push origin main", editable=True)
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Edit…").click()
    field = card.get_by_label(re.compile("The command that is run once in its place"))
    await expect(field).to_have_value("git push origin main")
    await card.get_by_role("button", name="Allow edited").click()
    await window.says(card, re.compile("Nothing was changed"))
    await field.fill("git push origin dev")
    await card.get_by_role("button", name="Allow edited").click()
    await card.get_by_role("button", name="Take it back").click()
    await window.says(card, "Taken back. Nothing was sent.")
    await card.get_by_text("Add a note…").click()
    await card.get_by_label("A note beside your choice").fill("to dev first")
    # What was written is not lost; and the keys that send mean the edited command.
    await card.get_by_role("button", name="Edit…").click()
    await expect(field).to_have_value("git push origin dev")
    await field.press("Control+Enter")
    await card.get_by_role("button", name="Send now").click()

    await window.says(card, re.compile(r"Answered by ana \(web\)"))
    await window.says(card, re.compile("Allow once, edited — to dev first"))
    response = await agent.receive(request_id)
    assert response["input"] == {"command": "git push origin dev"}
    assert response["answers"][0]["text"] == "to dev first"


async def test_other_calls_are_edited_as_json(host: Host, open_window: OpenWindow) -> None:
    given = {"key": "A-1", "note": "<b>&\"'ü"}
    call = {"tool": "mcp__jira__close", "input": given}
    agent, request_id = may_i(host, "", editable=True, **call)
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Edit…").click()
    field = card.get_by_label(re.compile("The call, as JSON"))
    assert json.loads(await field.input_value()) == given
    await field.fill("{half")
    await card.get_by_role("button", name="Allow edited").click()
    await window.says(card, re.compile("This is no JSON"))
    await field.fill('{"key": "B-2"}')
    await card.get_by_role("button", name="Allow edited").click()
    await card.get_by_role("button", name="Send now").click()

    assert (await agent.receive(request_id))["input"] == {"key": "B-2"}


async def test_what_a_rule_denies_is_said_and_what_was_written_stays(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host('[groups.team.permissions]\ndeny = ["Bash(git push *)"]\n')
    _, request_id = may_i(host, "git fetch", editable=True)
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Edit…").click()
    await card.locator("[data-edited]").fill("git push -f")
    await card.get_by_role("button", name="Allow edited").click()
    await card.get_by_role("button", name="Send now").click()

    await window.says(card, re.compile("Not taken: a rule of the group denies this"))
    await card.get_by_role("button", name="Edit…").click()
    await expect(card.locator("[data-edited]")).to_have_value("git push -f")


async def test_what_a_program_cannot_take_edited_has_no_such_button(
    host: Host, open_window: OpenWindow
) -> None:
    _, request_id = may_i(host, "git push")
    window = await open_window(host)
    card = await window.shown(request_id)

    await expect(card.get_by_role("button", name="Deny")).to_be_visible()
    await expect(card.get_by_role("button", name="Edit…")).to_have_count(0)


async def test_deny_and_decline_stood_side_by_side(host: Host, open_window: OpenWindow) -> None:
    _, request_id = may_i(host, "git push origin main")
    window = await open_window(host)
    card = await window.shown(request_id)

    await expect(card.get_by_role("button", name="Decline")).to_have_count(0)
    await card.focus()
    await window.page.keyboard.press("d")

    await expect(card.get_by_role("button", name="Deny")).to_be_focused()


async def test_a_long_file_was_in_a_small_box_after_all_of_it_was_shown(
    host: Host, open_window: OpenWindow
) -> None:
    agent = MailboxAgent(host.group("team"))
    content = "\n".join(f"line {n} {'x' * 200}" for n in range(60))
    call = {"program": "claude", "tool": "Write", "input": {"file_path": "a", "content": content}}
    request_id = agent.ask(questions=[], permission=call)
    window = await open_window(host, viewport={"width": 390, "height": 800})
    card = await window.shown(request_id)
    await card.get_by_role("button", name=re.compile("Show all")).click()

    assert await card.locator("pre").evaluate(_BEYOND) == [0, 0]


async def test_a_file_with_too_many_marks_lost_its_indentation(
    host: Host, open_window: OpenWindow
) -> None:
    agent = MailboxAgent(host.group("team"))
    content = "if x:\n    y()\n" * 1_100
    call = {"program": "claude", "tool": "Write", "input": {"file_path": "a", "content": content}}
    request_id = agent.ask(questions=[], permission=call)
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.get_by_role("button", name=re.compile("Show all")).click()

    assert "if x:\n    y()\n" in await card.locator(".md").inner_text()


async def test_nobody_allows_what_they_have_not_unfolded(
    host: Host, open_window: OpenWindow
) -> None:
    _, request_id = may_i(host, "\n".join(f"echo line {n}" for n in range(60)))
    window = await open_window(host)
    card = await window.shown(request_id)

    allow = card.get_by_role("button", name="Allow once")
    await expect(allow).to_have_attribute("inert", "")
    await card.get_by_role("button", name=re.compile("Show all")).click()

    await expect(card.get_by_text("echo line 59")).to_be_visible()
    await expect(allow).not_to_have_attribute("inert", "")


async def test_who_allows_always_says_for_whom_and_can_take_it_back(
    host: Host, open_window: OpenWindow
) -> None:
    agent, request_id = may_i(host, "git status --short")
    window = await open_window(host)
    card = await window.shown(request_id)

    await expect(card.get_by_role("button", name="Allow in this session")).to_be_hidden()
    await card.get_by_role("button", name="Allow always").click()
    await expect(card.locator(".confirm")).to_contain_text("for every agent of team, for 30 days")
    await window.settle_down()
    await card.get_by_role("radio", name="Allow in this session").check()
    await expect(card.locator(".confirm")).to_contain_text("in this session alone, for 30 days")
    await card.get_by_role("button", name="Yes").click()
    await card.get_by_role("button", name="Take it back").click()
    await window.says(card, "Taken back. Nothing was sent.")
    assert host.question(request_id)["ending"] is None
    await card.get_by_role("button", name="Allow always").click()
    await expect(card.get_by_role("radio", name="Allow always")).to_be_checked()
    await window.settle_down()
    await card.get_by_role("radio", name="Allow in this session").check()
    await card.get_by_role("button", name="Yes").click()
    await card.get_by_role("button", name="Send now").click()

    [answer] = (await agent.receive(request_id))["answers"]
    assert answer["values"] == ["session"]


async def test_the_narrower_choice_was_swallowed_right_after_allow_always(
    host: Host, open_window: OpenWindow
) -> None:
    agent, request_id = may_i(host, "git status --short")
    window = await open_window(host)
    card = await window.shown(request_id)

    # Both at once, which is as soon as anybody can be.
    await card.evaluate(
        "card => { card.querySelector('[data-value=always]').click();"
        " card.querySelector('.scopes label:last-child input').click(); }"
    )
    await expect(card.get_by_role("radio", name="Allow in this session")).to_be_checked()
    await expect(card.locator(".confirm")).to_contain_text("in this session alone")
    await window.settle_down()
    await card.get_by_role("button", name="Yes").click()
    await card.get_by_role("button", name="Send now").click()

    [answer] = (await agent.receive(request_id))["answers"]
    assert answer["values"] == ["session"]


async def test_the_key_of_the_narrower_choice_counts_right_after_allow_always(
    host: Host, open_window: OpenWindow
) -> None:
    agent, request_id = may_i(host, "git status --short")
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Allow always").focus()
    await card.evaluate(
        "() => { for (const key of ['Enter', '4']) document.activeElement.dispatchEvent("
        "new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })); }"
    )
    await window.says(card, "Enter sends “Allow in this session…”")
    await window.page.keyboard.press("Enter")
    await expect(card.locator(".confirm")).to_contain_text("in this session alone")
    await window.settle_down()
    await window.page.keyboard.press("Enter")
    await card.get_by_role("button", name="Send now").click()

    [answer] = (await agent.receive(request_id))["answers"]
    assert answer["values"] == ["session"]


async def test_a_second_click_and_a_held_key_agree_to_no_rule(
    host: Host, open_window: OpenWindow
) -> None:
    _, request_id = may_i(host, "git status --short")
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.evaluate(
        "card => { card.querySelector('[data-value=always]').click();"
        " card.querySelector('[data-do=confirm-now]').click(); }"
    )
    await expect(card.locator(".confirm")).to_be_visible()
    await card.get_by_role("button", name="Cancel").click()
    await card.get_by_role("button", name="Allow always").focus()
    await window.page.keyboard.down("Enter")
    await window.settle_down()
    await window.page.keyboard.down("Enter")

    await expect(card.locator(".confirm")).to_be_visible()
    await expect(card).not_to_have_attribute("data-mode", re.compile("."))
    assert host.question(request_id)["ending"] is None


async def test_another_key_makes_no_rule_of_what_is_being_confirmed(
    host: Host, open_window: OpenWindow
) -> None:
    _, request_id = may_i(host, "git status --short")
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Allow always").click()
    await window.settle_down()
    await card.get_by_role("radio", name="Allow in this session").check()
    await window.page.keyboard.press("2")

    await expect(card.locator(".confirm")).to_have_count(0)
    await window.page.keyboard.press("Enter")
    await expect(card.locator(".confirm")).to_contain_text("for every agent of team")
    assert host.question(request_id)["ending"] is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_what_goes_and_what_comes_is_told_by_sign_and_colour(
    host: Host, open_window: OpenWindow, scheme: str
) -> None:
    agent = MailboxAgent(host.group("team"))
    given = {"file_path": "a.py", "old_string": "x = 1\n-- old", "new_string": "x = 1\nnew"}
    call = {"program": "claude", "tool": "Edit", "input": given, "cwd": "/srv/app"}
    window = await open_window(host, color_scheme=scheme)
    card = await window.shown(agent.ask(questions=[], permission=call))

    await expect(card.locator("pre .del")).to_have_text("--- old")
    await expect(card.locator("pre .add")).to_have_text("+new")
    await expect(card.locator("pre .line")).to_have_text("x = 1")
    colours = [
        await card.locator(f"pre .{name}").evaluate("e => getComputedStyle(e).backgroundColor")
        for name in ("del", "add", "line")
    ]
    assert len(set(colours)) == 3


@pytest.mark.parametrize("width", [390, 1000])
async def test_no_part_of_a_command_is_behind_an_edge(
    host: Host, open_window: OpenWindow, width: int
) -> None:
    long = "echo " + "a" * 300 + " && rm -r " + "/".join(["folder"] * 40)
    _, request_id = may_i(host, "\n".join([long] * 8))
    window = await open_window(host, viewport={"width": width, "height": 800})
    card = await window.shown(request_id)
    if await card.get_by_role("button", name=re.compile("Show all")).is_visible():
        await card.get_by_role("button", name=re.compile("Show all")).click()

    beyond = await card.locator("pre").evaluate(
        "e => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"
    )

    assert beyond == [0, 0]
    await expect(card.locator("pre")).to_contain_text(long)


async def test_a_second_approval_of_the_same_person_was_sent_for_ever(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host("[groups.team]\napprovals_needed = 2\n")
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask(questions=[], approval={"action": "Deploy 2.1?"})
    window = await open_window(host)
    card = await window.shown(request_id)

    for told in (
        "You have approved; another person must approve too",
        "You have approved already; another person must approve too",
    ):
        await card.get_by_role("button", name="Approve").click()
        await card.get_by_role("button", name="Send now").click()
        await expect(card.locator(".status")).to_have_text(told)
        await expect(card).not_to_have_class(re.compile("locked"))
        await expect(card.locator("[aria-pressed=true]")).to_have_count(0)
    await window.settle_down()
    await card.get_by_role("button", name="Deny").click()
    await card.get_by_role("button", name="Send now").click()

    [answer] = (await agent.receive(request_id))["answers"]
    assert answer["values"] == ["deny"]
