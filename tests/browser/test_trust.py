"""What a card may take of the page, and what it can imitate: an agent may want to mislead."""

import asyncio
import re

import pytest
from playwright.async_api import Route, expect
from tests.acceptance.support import Host, MailboxAgent
from tests.browser.conftest import OpenWindow, StartHost
from tests.browser.support import answers, ask, open_menu, open_questions, own_words, top_of

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LONG = "Delete the staging copy?\n\n" + "and\n\n" * 40 + "the production database"


async def test_a_question_that_is_folded_cannot_be_answered_until_all_of_it_is_shown(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, LONG)
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.locator("[data-option='1']").click(force=True)
    await card.focus()
    await window.page.keyboard.press("1")
    await window.says(card, "Show all of the question first")
    await window.page.keyboard.press("Control+Enter")
    assert request_id in open_questions(host)

    await card.get_by_role("button", name="Show all").click()
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Answered by ana")


async def test_a_form_with_a_folded_question_takes_no_number_keys(
    host: Host, open_window: OpenWindow
) -> None:
    second = {"question": "And then?", "options": [{"label": "Go"}, {"label": "Stop"}]}
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask(questions=[{"question": LONG, "options": ["Yes"]}, second])
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.focus()
    await window.page.keyboard.press("1")

    await window.says(card, "Show all of the question first")
    await expect(card.locator("input:checked")).to_have_count(0)


async def test_a_card_that_is_too_long_for_the_list_is_answered_on_its_own_page(
    host: Host, open_window: OpenWindow
) -> None:
    option = {"label": "Yes", "preview": "\x7fa" * 30_000}
    asked = {"question": "Deploy?", "options": [option, {"label": "No"}]}
    request_id = ask(host, questions=[asked])
    window = await open_window(host)
    card = await window.shown(request_id)
    await window.says(card, "Cut here")
    await expect(card.locator("[data-option]")).to_have_count(0)

    await card.focus()
    await window.page.keyboard.press("Enter")

    await expect(window.page).to_have_url(re.compile("/q/team/"))
    await window.live()
    card = await window.shown(request_id)
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Answered by ana")


async def test_a_flood_of_one_group_leaves_the_first_places_to_the_others(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host("request_burst = 1000\n")
    flooder = MailboxAgent(host.group("flood"))
    for number in range(40):
        flooder.ask(f"Urgent {number}?", urgency="high", agent="flood")
    await host.listed(40)
    early = ask(host, "Early?", group="team", urgency="low")
    await host.listed(41)
    window = await open_window(host)
    await expect(window.cards()).to_have_count(41)
    late = ask(host, "Late?", group="ops")
    await expect(window.card(late)).to_have_count(1)

    keys = await window.cards().evaluate_all("cards => cards.map(card => card.dataset.key)")

    assert keys.index(f"team/{early}") <= 6
    assert keys.index(f"ops/{late}") <= 6


async def test_what_an_agent_writes_cannot_look_like_a_groups_name_or_an_outcome(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, "`prod` **Answered** by ana (web)\n\nDeploy?", task="prod")
    window = await open_window(host)
    card = await window.shown(request_id)
    look = """node => {
        const style = getComputedStyle(node);
        return [style.borderTopWidth, style.borderTopStyle, style.backgroundColor];
    }"""

    group = await card.locator(".group").evaluate(look)
    code = await card.locator(".md code").evaluate(look)

    assert group[:2] == ["1px", "solid"]
    assert code == ["0px", "none", "rgba(0, 0, 0, 0)"]
    for text in ("prod", "Answered", "Deploy?"):
        outside = card.locator(f":not(.from-agent, .from-agent *):text-is('{text}')")
        assert await outside.count() == 0, text


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
async def test_a_card_that_is_answered_here_shrinks_to_two_lines_and_leaves(
    host: Host, open_window: OpenWindow, options: dict[str, object]
) -> None:
    agent = MailboxAgent(host.group("team"))
    first = agent.ask("first?\n\n" + "why\n\n" * 8, urgency="high", agent="release agent")
    second = ask(host, "second?")
    await host.listed(2)
    window = await open_window(host, clock=True, **options)
    card = await window.shown(first)

    await card.get_by_role("button", name="Yes").click()
    await card.get_by_role("button", name="Send now").click()

    await window.says(card, "Answered by ana")
    await expect(card).to_have_class(re.compile("compact"))
    assert float(await card.evaluate("card => card.offsetHeight")) < 110
    await expect(window.card(second)).to_be_visible()
    await window.page.clock.run_for(30_000)
    await expect(card).to_have_count(0)


async def test_an_answered_card_does_not_shrink_while_the_next_one_is_pointed_at(
    host: Host, open_window: OpenWindow
) -> None:
    first, second = ask(host, "first?\n\n" + "why\n\n" * 8), ask(host, "second?")
    await host.listed(2)
    window = await open_window(host)
    card, below = await window.shown(first), await window.shown(second)
    may_go = asyncio.Event()

    async def slow(route: Route) -> None:
        await may_go.wait()
        await route.continue_()

    await window.page.route("**/answer", slow)
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Sending")
    await below.hover(position={"x": 12, "y": 12})
    before = await top_of(below)
    may_go.set()

    await window.says(card, "Answered by ana")
    assert abs(await top_of(below) - before) < 1

    await window.page.mouse.move(3, 3)
    await expect(card).to_have_class(re.compile("compact"))


async def test_other_words_are_folded_and_one_tap_opens_them(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host, **PHONE)
    card = await window.shown(request_id)
    await expect(card.get_by_label("Or in your own words")).to_be_hidden()
    await expect(card.get_by_role("button", name="Yes")).to_be_in_viewport()

    await card.locator("summary", has_text="Other…").tap()
    await expect(card.get_by_label("Or in your own words")).to_be_focused()
    await window.page.keyboard.type("only at night")
    await window.reload()

    card = await window.shown(request_id)
    await expect(card.get_by_label("Or in your own words")).to_have_value("only at night")
    await card.get_by_role("button", name="Send").click()
    await window.says(card, "Answered by ana")
    assert answers(host, request_id) == [{"selected": [], "text": "only at night"}]


async def test_w_opens_the_folded_words(host: Host, open_window: OpenWindow) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.focus()

    await window.page.keyboard.press("w")
    await window.page.keyboard.type("later")

    await expect(await own_words(card)).to_have_value("later")


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
async def test_signing_out_and_notifications_are_in_a_menu_that_can_be_seen(
    host: Host, open_window: OpenWindow, options: dict[str, object]
) -> None:
    window = await open_window(host, notifies=True, **options)
    page = window.page
    await open_menu(page)
    await expect(page.get_by_role("button", name="Notify me of new questions")).to_be_in_viewport()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Sign out")).to_be_hidden()

    await open_menu(page)
    await page.get_by_role("button", name="Sign out").click()

    await expect(page.get_by_text("pynchy inbox --open").first).to_be_visible()


async def test_history_tells_why_something_was_declined_and_its_rows_open(
    host: Host, open_window: OpenWindow
) -> None:
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask("Deploy now?")
    await host.listed(1)
    reason = {"by": "ben", "reason": "the tests are red"}
    host.http("POST", f"/api/questions/{request_id}/decline", reason)
    await agent.receive(request_id)
    await host.closed(request_id)
    window = await open_window(host, "/history")

    row = window.page.locator(".rows > li").first
    await expect(row).to_contain_text("the tests are red")
    await row.get_by_text("Show all of it").click()

    await expect(window.page).to_have_url(re.compile(f"/q/team/{request_id}"))
    card = window.card(request_id)
    await expect(card).to_contain_text("Declined by ben")
    await expect(card).to_contain_text("the tests are red")
    await expect(card).to_contain_text("Deploy now?")


async def test_a_card_tells_how_long_the_agent_still_waits(
    host: Host, open_window: OpenWindow
) -> None:
    patient, hasty = ask(host, "A?", wait_seconds=240), ask(host, "B?", wait_seconds=2)
    window = await open_window(host)

    await window.says(window.card(patient), re.compile(r"the agent waits 3m \d+s more"))
    await window.says(window.card(hasty), "the answer is kept for it")
