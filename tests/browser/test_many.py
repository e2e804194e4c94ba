"""Hundreds of questions at once: the page stays small, and nothing of them is out of reach."""

import asyncio
import re

import pytest
import pytest_asyncio
from playwright.async_api import Route, expect
from tests.acceptance.support import Host, MailboxAgent
from tests.browser.conftest import OpenWindow, StartHost
from tests.browser.support import Window, ask, open_questions, own_words, top_of

MANY = 130
SHOWN = 100


@pytest_asyncio.fixture(loop_scope="session")
async def full_host(start_host: StartHost) -> Host:
    host = await start_host("request_burst = 1000\n")
    agent = MailboxAgent(host.group("team"))
    for number in range(MANY):
        agent.ask(f"Number {number:03}?", agent="flood")
    await host.listed(MANY)
    return host


async def filled(window: Window) -> None:
    await expect(window.cards()).to_have_count(SHOWN)
    await expect(window.page.get_by_role("button", name="Show 30 more of 30")).to_be_visible()
    await window.settle_down()


async def test_the_most_urgent_hundred_are_shown_and_the_others_on_demand(
    full_host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(full_host)
    await filled(window)
    await expect(window.page).to_have_title(re.compile(rf"^\({MANY}\) "))

    await window.page.get_by_role("button", name="Show 30 more").click()

    await expect(window.cards()).to_have_count(MANY)
    await expect(window.page.get_by_role("button", name="Show")).to_have_count(0)
    orders = await window.cards().evaluate_all("cards => cards.map(card => card.dataset.order)")
    assert orders == sorted(orders)
    texts = await window.cards().evaluate_all("cards => cards.map(card => card.dataset.brief)")
    assert set(texts) == {f"Number {number:03}?" for number in range(MANY)}


async def test_a_low_one_is_counted_and_an_urgent_one_appears_at_the_top(
    full_host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(full_host)
    await filled(window)
    key = await window.cards().nth(SHOWN - 1).get_attribute("data-key")
    last = window.page.locator(f'.card[data-key="{key}"]')
    await last.focus()
    before = await top_of(last)

    low = ask(full_host, "Low?", urgency="low")
    await expect(window.page.get_by_role("button", name="Show 31 more of 31")).to_be_visible()
    high = ask(full_host, "High?", urgency="high")
    await expect(window.card(high)).to_have_count(1)

    await expect(window.card(low)).to_have_count(0)
    await expect(window.cards().first).to_have_attribute("data-key", f"team/{high}")
    assert abs(await top_of(last) - before) < 1


async def test_a_flood_of_urgent_ones_does_not_pile_up_nor_take_away_what_was_begun(
    full_host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(full_host)
    await filled(window)
    begun = window.cards().nth(SHOWN - 2)
    key = await begun.get_attribute("data-key")
    await (await own_words(begun)).fill("half a thought")
    await window.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")

    agent = MailboxAgent(full_host.group("flood"))
    asked = [agent.ask(f"Urgent {n}?", urgency="high", agent="flood") for n in range(40)]
    await expect(window.card(asked[-1])).to_have_count(1)

    assert await window.cards().count() <= SHOWN + 21
    kept = window.page.locator(f'.card[data-key="{key}"] [data-text]')
    await expect(kept).to_have_value("half a thought")


async def test_the_search_finds_what_is_not_shown(full_host: Host, open_window: OpenWindow) -> None:
    window = await open_window(full_host)
    await filled(window)
    shown = await window.cards().evaluate_all("cards => cards.map(card => card.dataset.brief)")
    beyond = next(n for n in range(MANY) if f"Number {n:03}?" not in shown)
    search = window.page.get_by_label("Search what waits")

    await search.fill(f"{beyond:03}? number")
    visible = window.page.locator("#list > .card:not([hidden])")
    await expect(visible).to_have_count(1)
    await expect(visible).to_contain_text(f"Number {beyond:03}?")
    await search.fill("nobody asked this")
    await expect(window.page.get_by_text("Nothing that waits fits")).to_be_visible()
    await search.fill("")

    await expect(window.page.get_by_role("button", name="Show 29 more of 29")).to_be_visible()


@pytest.mark.parametrize("key", ["j", "n"])
async def test_keys_go_on_past_the_last_card(
    full_host: Host, open_window: OpenWindow, key: str
) -> None:
    window = await open_window(full_host)
    await filled(window)
    await window.cards().nth(SHOWN - 1).focus()

    await window.page.keyboard.press(key)

    await expect(window.cards()).to_have_count(MANY)
    await expect(window.cards().nth(SHOWN)).to_be_focused()


async def test_what_is_answered_makes_room_for_the_next(
    full_host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(full_host, clock=True)
    await filled(window)
    first = await window.cards().first.get_attribute("data-key")
    assert first
    await window.cards().first.get_by_role("button", name="Yes").click()
    await window.says(window.cards().first, "Answered by ana")
    await window.page.mouse.move(5, 5)
    await window.page.evaluate("document.activeElement.blur()")

    await window.page.clock.run_for(20_000)

    await expect(window.page.get_by_role("button", name="Show 29 more of 29")).to_be_visible()
    await expect(window.cards()).to_have_count(SHOWN)
    assert len(open_questions(full_host)) == MANY - 1


async def test_who_writes_while_more_is_fetched_is_left_alone(
    full_host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(full_host)
    await filled(window)
    last = window.cards().nth(SHOWN - 1)
    asked, may_come = asyncio.Event(), asyncio.Event()

    async def slow(route: Route) -> None:
        asked.set()
        await may_come.wait()
        await route.continue_()

    await window.page.route("**/inbox/cards*", slow)
    await last.focus()
    for _ in range(3):
        await window.page.keyboard.press("j")
    await asked.wait()
    await window.page.keyboard.press("w")
    await window.page.keyboard.type("do")
    may_come.set()
    await expect(window.cards()).to_have_count(MANY)
    await window.page.keyboard.type("n't")

    await expect(last.get_by_label("Or in your own words")).to_have_value("don't")
    fetched = [url for url in window.requested if "/inbox/cards?" in url]
    assert len(fetched) == len(set(fetched))


async def test_the_search_says_when_it_does_not_show_all_that_may_fit(
    full_host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(full_host)
    await filled(window)
    search = window.page.get_by_label("Search what waits")

    await search.fill("number")
    await expect(window.page.get_by_text("More than a hundred fit")).to_be_visible()
    await search.fill("012")
    await expect(window.page.get_by_text("More than a hundred fit")).to_be_hidden()
    await window.page.route("**/inbox/find*", lambda route: route.abort())
    await search.fill("nobody asked this")

    await expect(window.page.get_by_text("only what is on this page was searched")).to_be_visible()
    await expect(window.page.get_by_text("Nothing that waits fits")).to_be_hidden()
