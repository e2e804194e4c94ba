"""The keyboard alone is enough."""

import pytest
from playwright.async_api import expect
from tests.acceptance.support import Host
from tests.browser.conftest import OpenWindow
from tests.browser.support import answers, ask, open_menu, open_questions

from pynchy.inbox.keys import BINDINGS


async def test_a_number_marks_and_enter_sends(host: Host, open_window: OpenWindow) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    press = window.page.keyboard.press

    await press("n")
    await press("2")
    await expect(card.get_by_role("button", name="No", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    assert request_id in open_questions(host)
    await press("u")
    assert await card.locator("[aria-pressed=true]").count() == 0
    await press("1")
    await press("Enter")

    await window.says(card, "Answered by ana")
    assert answers(host, request_id)[0]["selected"] == ["Yes"]


@pytest.mark.parametrize(("key", "name"), [("d", "Keep it open"), ("h", "Cancel")])
async def test_what_a_key_opens_at_the_end_of_a_tall_card_is_in_sight(
    host: Host, open_window: OpenWindow, key: str, name: str
) -> None:
    options = [f"Option {number}" for number in range(12)]
    request_id = ask(host, questions=[{"question": "Which?", "options": options}])
    window = await open_window(host, viewport={"width": 800, "height": 400})
    card = await window.shown(request_id)

    await window.page.keyboard.press("n")
    await window.page.keyboard.press(key)

    await expect(card.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)


async def test_enter_with_nothing_marked_sends_nothing(host: Host, open_window: OpenWindow) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    await window.page.keyboard.press("n")
    await window.page.keyboard.press("Enter")

    await window.says(card, "Choose an option or write something first")
    assert request_id in open_questions(host)


async def test_j_and_k_walk_and_n_goes_round_what_waits(
    host: Host, open_window: OpenWindow
) -> None:
    high, normal, low = (ask(host, urgency=urgency) for urgency in ("high", "normal", "low"))
    await host.listed(3)
    window = await open_window(host)
    walked = []

    for key in "jjjknn":
        await window.page.keyboard.press(key)
        walked.append(await window.focused())

    assert walked == [high, normal, low, normal, low, high]


async def test_a_form_is_filled_by_keys_alone(host: Host, open_window: OpenWindow) -> None:
    questions = [
        {"question": "Which?", "options": ["A", "B", "C"], "multiSelect": True},
        {"question": "Where?", "options": ["Here", "There"]},
    ]
    request_id = ask(host, questions=questions)
    window = await open_window(host)
    card = await window.shown(request_id)
    press = window.page.keyboard.press

    for key in ("n", "1", "3"):
        await press(key)
    await card.focus()
    await press("2")
    await press("Enter")

    await window.says(card, "Answered by ana")
    assert [a["selected"] for a in answers(host, request_id)] == [["A", "C"], ["There"]]


async def test_d_declines_with_a_reason_and_w_writes(host: Host, open_window: OpenWindow) -> None:
    first, second = ask(host, urgency="high"), ask(host)
    await host.listed(2)
    window = await open_window(host)
    keyboard = window.page.keyboard

    await keyboard.press("n")
    await keyboard.press("d")
    await keyboard.type("2 many n")
    await keyboard.press("Enter")
    await window.settle_down()
    assert first in open_questions(host)
    await keyboard.press("Enter")
    await window.says(window.card(first), "Sending in")
    await keyboard.press("Enter")
    await window.says(window.card(first), "Declined by ana")
    await window.card(second).focus()
    await window.settle_down()
    await keyboard.press("w")
    await keyboard.type("do it")
    await keyboard.press("Control+Enter")

    await window.says(window.card(second), "Answered by ana")
    assert host.question(first)["ending"]["reason"] == "2 many n"
    assert answers(host, second) == [{"selected": [], "text": "do it"}]


async def test_the_question_mark_lists_every_key_of_the_table(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)

    await window.page.keyboard.press("?")

    listed = await window.page.locator("#help .keys dd").all_inner_texts()
    assert listed == [binding.text for binding in BINDINGS]
    await window.page.keyboard.press("Escape")
    await expect(window.page.locator("#help")).to_be_hidden()


async def test_single_keys_can_be_switched_off(host: Host, open_window: OpenWindow) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await open_menu(window.page)
    await window.page.get_by_role("button", name="Keys and settings").click()
    await window.page.get_by_label("Single keys work").uncheck()
    await window.page.keyboard.press("Escape")
    await window.reload()
    await card.focus()

    for key in ("1", "d", "h", "?"):
        await window.page.keyboard.press(key)

    assert await card.locator("[aria-pressed=true]").count() == 0
    await expect(card.locator(".panel")).to_be_hidden()
    await expect(window.page.locator("#help")).to_be_hidden()


async def test_the_search_shows_only_what_fits(host: Host, open_window: OpenWindow) -> None:
    wanted, other = ask(host, "Rename the database?"), ask(host, "Paint the shed?")
    await host.listed(2)
    window = await open_window(host)

    await window.page.keyboard.press("/")
    await window.page.keyboard.type("database rename")

    await expect(window.card(wanted)).to_be_visible()
    await expect(window.card(other)).to_be_hidden()
    await window.page.keyboard.type(" nothing")
    await expect(window.page.get_by_text("Nothing that waits fits")).to_be_visible()
