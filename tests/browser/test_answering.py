"""Answering in the browser: choices, forms, declining, taking back, being second."""

import asyncio
import re

import pytest
from playwright.async_api import Route, expect
from tests.acceptance.support import Host, MailboxAgent
from tests.browser.conftest import OpenWindow, StartHost
from tests.browser.support import Window, answers, ask, open_questions, outcome_path, own_words
from tests.waiting import until

BATCH = [
    {
        "question": "Which browsers?",
        "options": ["Firefox", "Chrome", "Safari"],
        "multiSelect": True,
    },
    {"question": "Where first?", "options": ["Staging", "Production"]},
    {"question": "What shall it be called?"},
]


async def test_a_click_on_an_option_answers_and_the_agent_gets_it(
    host: Host, open_window: OpenWindow
) -> None:
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Yes").click()

    await window.says(card, re.compile(r"Answered by ana \(web\)"))
    assert (await agent.receive(request_id))["answers"][0]["selected"] == ["Yes"]
    ending = host.question(request_id)["ending"]
    assert (ending["answered_by"], ending["channel"]) == ("ana", "web")


async def test_a_click_is_shown_at_once_and_called_answered_only_when_it_is_on_the_disk(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await window.page.route("**/answer", hold)
    # In the same turn of the browser's loop as the click, so well within 100 ms.
    at_once = await card.evaluate(
        """card => {
            card.querySelector("[data-option='1']").click();
            return [card.querySelector(".status").textContent,
                    card.querySelector("[data-option='2']").matches(":disabled")];
        }"""
    )

    assert at_once == ["Sending…", True]
    assert "Answered" not in await card.inner_text()
    assert not outcome_path(host, request_id).exists()
    held.set()
    await window.says(card, "Answered by ana")
    assert outcome_path(host, request_id).exists()


async def test_where_only_options_count_a_card_has_no_field_for_words(
    host: Host, open_window: OpenWindow
) -> None:
    options = {"question": "Deploy?", "options": ["Yes", "No"], "options_only": True}
    one = ask(host, questions=[options])
    two = ask(host, questions=[options, {"question": "Why?"}])
    window = await open_window(host)
    card, form = await window.shown(one), await window.shown(two)

    await expect(card.locator("textarea")).to_have_count(0)
    await card.get_by_role("button", name="Send").click()
    await window.says(card, "Choose an option first")
    await form.get_by_label("Your answer").fill("because")
    await form.get_by_role("button", name="Send").click()
    await window.says(form, "Question 1 has no answer yet")
    await form.get_by_label("No").check()
    await form.get_by_role("button", name="Send").click()
    await window.says(form, "Answered by ana")
    await window.settle_down()
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Answered by ana")

    assert [answer["text"] for answer in host.question(two)["ending"]["answers"]] == [
        None,
        "because",
    ]


async def test_a_part_that_somebody_else_has_answered_is_left_to_them(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, questions=[{"question": "Where?"}, {"question": "Why?"}])
    window = await open_window(host)
    card = await window.shown(request_id)
    body = {"values": ["here"], "question": 1, "by": "ben"}
    assert host.http("POST", f"/api/questions/{request_id}/answer", body).status == 202
    await window.says(card, "Answered in part by ben: only they can change this")

    fields = card.get_by_label("Your answer")
    await fields.nth(0).fill("there")
    await fields.nth(1).fill("because")
    await card.get_by_role("button", name="Send").click()
    await window.says(card, "Not taken: question 1 was answered by ben already: here")
    await fields.nth(0).fill("")
    await card.get_by_role("button", name="Send").click()
    await window.says(card, "Answered by ben, ana")

    texts = [answer["text"] for answer in host.question(request_id)["ending"]["answers"]]
    assert texts == ["here", "because"]


async def test_several_questions_are_one_form_with_boxes_and_text(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, questions=BATCH)
    window = await open_window(host)
    card = await window.shown(request_id)

    assert await card.locator("input:checked").count() == 0
    await card.get_by_label("Firefox").check()
    await card.get_by_label("Safari").check()
    await card.get_by_role("button", name="Send").click()
    await window.says(card, "Question 2 has no answer yet")
    assert request_id in open_questions(host)

    await card.get_by_label("Staging").check()
    await (await own_words(card, 1)).fill("but only on Monday")
    await card.get_by_label("Your answer").fill("blue\ngreen")
    await card.get_by_role("button", name="Send").click()

    await window.says(card, "Answered by ana")
    assert answers(host, request_id) == [
        {"selected": ["Firefox", "Safari"], "text": None},
        {"selected": ["Staging"], "text": "but only on Monday"},
        {"selected": [], "text": "blue\ngreen"},
    ]


async def test_text_alone_answers_a_question_with_options(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    await (await own_words(card)).fill("Only if the tests pass")
    await window.page.keyboard.press("Control+Enter")

    await window.says(card, "Answered by ana")
    assert answers(host, request_id) == [{"selected": [], "text": "Only if the tests pass"}]


async def test_a_note_goes_along_with_the_option_that_is_clicked(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    await (await own_words(card)).fill("slowly")
    await card.get_by_role("button", name="Yes").click()

    await window.says(card, "Answered by ana")
    assert answers(host, request_id) == [{"selected": ["Yes"], "text": "slowly"}]


async def test_declining_asks_for_a_reason_and_escape_never_declines(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Decline").click()
    await card.get_by_label("Why?").fill("not now")
    await window.page.keyboard.press("Escape")
    await window.page.keyboard.press("Escape")
    await expect(card.get_by_label("Why?")).to_have_count(0)
    assert request_id in open_questions(host)

    await window.settle_down()
    await card.get_by_role("button", name="Decline").click()
    await card.get_by_label("Why?").fill("ask me on Monday")
    await window.settle_down()
    await window.page.keyboard.press("Enter")

    await window.says(card, "Declined by ana")
    ending = host.question(request_id)["ending"]
    assert (ending["outcome"], ending["reason"]) == ("declined", "ask me on Monday")


async def test_an_urgent_choice_can_be_taken_back_before_it_is_sent(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host('[channels.web]\nundo_high = "5m"\n')
    tall = [{"question": "Deploy?", "options": ["Yes", "No", *(f"Perhaps {n}" for n in range(20))]}]
    request_id = ask(host, urgency="high", questions=tall)
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Yes").click()
    await window.says(card, re.compile(r"Sending in \d+ s"))
    await expect(card.get_by_role("button", name="Take it back")).to_be_in_viewport()
    await card.get_by_role("button", name="Take it back").click()

    await window.says(card, "Nothing was sent")
    assert request_id in open_questions(host)
    await card.get_by_role("button", name="No", exact=True).click()
    await window.says(card, re.compile(r"Sending in \d+ s"))
    await window.page.keyboard.press("Enter")
    await window.says(card, "Answered by ana")
    assert answers(host, request_id)[0]["selected"] == ["No"]


async def test_an_urgent_choice_is_sent_by_itself_when_its_time_is_over(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, urgency="high")
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Sending in 3 s")
    assert request_id in open_questions(host)

    await window.says(card, "Answered by ana")


async def test_the_first_of_two_windows_wins_and_the_other_keeps_its_text(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    first, second = await open_window(host), await open_window(host)
    second_card = await second.shown(request_id)
    await (await own_words(second_card)).fill("I had a long thought")

    await (await first.shown(request_id)).get_by_role("button", name="No", exact=True).click()

    await second.says(second_card, re.compile(r"Answered by ana \(web\)"))
    await second.says(second_card, "No")
    unsent = second_card.get_by_label("You had begun to write")
    await expect(unsent).to_have_value("I had a long thought")
    await second.at_rest(second_card)
    await second_card.get_by_role("button", name="Copy").click()
    assert await second.page.evaluate("getSelection().toString()") == "I had a long thought"


async def test_a_stale_click_is_told_who_answered_and_what(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await window.page.route("**/inbox/stream", lambda route: route.abort())
    await window.page.evaluate("dispatchEvent(new Event('online'))")
    await expect(window.page.locator("[data-link=lost]")).to_be_visible()
    host.answer(request_id, "No", by="ben")

    await card.get_by_role("button", name="Yes").click()

    await window.says(card, "somebody was first. It was answered by ben (local): No")
    assert answers(host, request_id)[0]["selected"] == ["No"]


async def test_an_answer_that_cannot_be_sent_is_kept_and_can_be_tried_again(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await (await own_words(card)).fill("with care")
    await window.page.route("**/answer", lambda route: route.abort())
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Not sent")

    await window.page.unroute("**/answer")
    await expect(card.get_by_label("Or in your own words")).to_have_value("with care")
    await card.get_by_role("button", name="Yes").click()

    await window.says(card, "Answered by ana")


@pytest.mark.parametrize("path", ["/q/team/{}", "/"])
async def test_one_question_has_a_page_of_its_own_open_and_over(
    host: Host, open_window: OpenWindow, path: str
) -> None:
    request_id = ask(host)
    await host.state(request_id, "open")
    window = await open_window(host, path.format(request_id))
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Answered by ana")
    await window.go(f"/q/team/{request_id}")

    await window.says(window.card(request_id), re.compile(r"Answered by ana \(web\)"))


async def test_a_label_that_no_page_can_hold_is_answered_by_its_number(
    host: Host, open_window: OpenWindow
) -> None:
    label = "a\u0000b\r\nc\u202e"
    request_id = ask(host, questions=[{"question": "Odd?", "options": [label, "plain"]}])
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.locator("[data-option='1']").click()

    await window.says(card, "Answered by ana")
    assert answers(host, request_id)[0]["selected"] == [label]


async def test_an_answer_given_in_a_terminal_settles_the_card_at_once(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    code, _, err = await host.cli("answer", request_id, "Yes", "--by", "ben")

    assert code == 0, err
    await window.says(card, re.compile(r"Answered by ben \(local\)"))
    await expect(window.page).to_have_title(re.compile(r"^Waiting"))
    await until(lambda: host.question(request_id)["ending"])


async def test_enter_on_a_card_that_is_over_sends_nothing_and_keeps_what_was_written(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await (await own_words(card)).fill("I had a long thought")
    host.answer(request_id, "No", by="ben")
    await window.says(card, "Answered by ben")
    await window.at_rest(card)
    await window.page.keyboard.press("Escape")

    await card.focus()
    for key in ("Enter", "d", "h", "1", "Enter"):
        await window.page.keyboard.press(key)
    await card.get_by_role("button", name="Copy").click()

    unsent = card.get_by_label("You had begun to write")
    await expect(unsent).to_have_value("I had a long thought")
    assert not [url for url in window.requested if url.endswith(("/answer", "/decline"))]
    kept = await window.page.evaluate("JSON.stringify({...localStorage})")
    assert "I had a long thought" in kept


async def test_two_tabs_of_one_browser_keep_what_the_second_has_written(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    other = Window(host, await window.page.context.new_page())
    await other.go("/")
    other_card = await other.shown(request_id)
    await (await own_words(other_card)).fill("I had a long thought")

    await window.page.bring_to_front()
    card = await window.shown(request_id)
    await card.get_by_role("button", name="No", exact=True).click()

    await other.says(other_card, "Answered by ana")
    unsent = other_card.get_by_label("You had begun to write")
    await expect(unsent).to_have_value("I had a long thought")
    await expect(card.get_by_label("You had begun to write")).to_have_count(0)


@pytest.mark.parametrize("field", ["Or in your own words", "Why?"])
async def test_what_was_written_is_kept_where_the_browser_stores_nothing(
    host: Host, open_window: OpenWindow, field: str
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await window.page.evaluate(
        "() => { Storage.prototype.setItem = () => { throw new DOMException() } }"
    )
    await card.locator("details.own summary").click()
    await card.get_by_role("button", name="Decline").click()
    await card.get_by_label(field).fill("because it is Friday")

    host.answer(request_id, "No", by="ben")

    await window.says(card, "Answered by ben")
    await expect(card.get_by_label("You had begun to write")).to_have_value("because it is Friday")


async def test_discard_takes_no_click_at_first_and_can_be_taken_back(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await (await own_words(card)).fill("I had a long thought")
    await window.page.evaluate(
        """() => { window.clicked = new Promise(resolve => {
            new MutationObserver((_, observer) => {
                const button = document.querySelector("[data-do=discard]");
                if (!button) return;
                observer.disconnect();
                button.click();
                resolve();
            }).observe(document.getElementById("list"), {childList: true, subtree: true});
        }) }"""
    )
    host.answer(request_id, "No", by="ben")
    await window.page.evaluate("window.clicked")
    unsent = card.get_by_label("You had begun to write")
    await expect(unsent).to_be_visible()
    await window.at_rest(card)

    await card.get_by_role("button", name="Discard").click()
    await expect(unsent).to_be_hidden()
    await card.get_by_role("button", name="Bring it back").click()

    await expect(unsent).to_have_value("I had a long thought")
    await expect(unsent).to_be_visible()


async def test_declining_something_urgent_can_be_taken_back(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host('[channels.web]\nundo_high = "5m"\n')
    request_id = ask(host, urgency="high")
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.get_by_role("button", name="Decline").click()
    await card.get_by_label("Why?").fill("not now")
    await window.settle_down()

    await card.locator("[data-do=decline-now]").click()
    await window.says(card, re.compile(r"Sending in \d+ s"))
    await card.get_by_role("button", name="Take it back").click()

    await window.says(card, "Nothing was sent")
    assert request_id in open_questions(host)
    await card.get_by_role("button", name="Decline").click()
    await expect(card.get_by_label("Why?")).to_have_value("not now")


async def test_a_choice_that_waits_to_be_sent_is_sent_when_the_page_is_left(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host('[channels.web]\nundo_high = "5m"\n')
    request_id = ask(host, urgency="high")
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Sending in")

    await window.go("/agents")

    await until(lambda: host.question(request_id)["ending"])
    assert answers(host, request_id)[0]["selected"] == ["Yes"]


async def test_a_choice_is_not_sent_by_a_page_that_slept_past_its_time(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, urgency="high")
    window = await open_window(host, clock=True)
    card = await window.shown(request_id)
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Sending in")

    await window.page.clock.fast_forward("10:00")

    await window.says(card, "this page was asleep")
    assert request_id in open_questions(host)
