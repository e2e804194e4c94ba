"""Nothing is answered by accident, and nothing that comes in disturbs whoever is at work."""

import re

import pytest
from playwright.async_api import expect
from tests.acceptance.support import Host
from tests.browser.conftest import OpenWindow, StartHost
from tests.browser.support import IGNORE_MS, ask, open_questions, own_words, top_of
from tests.waiting import until

ON_APPEARANCE = """() => { window.clicked = new Promise(resolve => {
    new MutationObserver((_, observer) => {
        const card = document.querySelector("#list > .card");
        if (!card) return;
        observer.disconnect();
        card.querySelector("[data-option='1']").click();
        card.querySelector("[data-do=decline]").click();
        resolve([card.querySelector(".status").textContent, card.querySelector(".panel").hidden]);
    }).observe(document.getElementById("list"), {childList: true});
}) }"""


async def test_a_new_question_appears_by_itself_and_takes_no_focus(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)
    await expect(window.page.get_by_text("Nothing waits for you")).to_be_visible()
    await window.page.get_by_label("Search what waits").focus()
    await window.page.evaluate("window.same = true")

    request_id = ask(host, "Is it **live**?")

    card = await window.shown(request_id)
    await expect(card.locator("strong")).to_have_text("live")
    await expect(window.page).to_have_title(re.compile(r"^\(1\) "))
    await expect(window.page.locator("nav [data-count]")).to_have_text("1")
    await expect(window.page.get_by_text("Nothing waits for you")).to_be_hidden()
    assert await window.page.evaluate("window.same && document.activeElement.type") == "search"
    said = "New question from team · release agent"
    await expect(window.page.locator("#say")).to_contain_text(said)


async def test_a_click_on_a_card_that_has_just_appeared_does_nothing(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)

    await window.page.evaluate(ON_APPEARANCE)
    request_id = ask(host)

    assert await window.page.evaluate("window.clicked") == ["", True]
    assert request_id in open_questions(host)
    card = await window.shown(request_id)
    await card.get_by_role("button", name="Yes").click()
    await window.says(card, "Answered by ana")


async def test_clicks_and_keys_are_ignored_when_the_window_has_just_come_back(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.focus()

    await window.page.evaluate(
        """() => {
            dispatchEvent(new Event("focus"));
            const card = document.querySelector(".card");
            card.querySelector("[data-option='1']").click();
            for (const key of ["1", "Enter", "d"]) {
                const how = {key, bubbles: true, cancelable: true};
                card.dispatchEvent(new KeyboardEvent("keydown", how));
            }
        }"""
    )

    assert await card.locator("[aria-pressed=true]").count() == 0
    assert await card.locator(".status").inner_text() == ""
    await expect(card.locator(".panel")).to_be_hidden()
    assert request_id in open_questions(host)


async def test_twenty_cards_arrive_while_somebody_types_and_nothing_happens_to_them(
    host: Host, open_window: OpenWindow
) -> None:
    first = ask(host, "Which name?")
    window = await open_window(host)
    card = await window.shown(first)
    field = await own_words(card)
    await field.click()
    before = await top_of(card)

    asked, typed = [], ""
    for number in range(20):
        # Digits and letters that are keys of the list, were they not typed into a field.
        word = f"{number} dnjkhu"
        asked.append(ask(host, f"Question {number}?", urgency=("high", "low")[number % 2]))
        await window.page.keyboard.type(word)
        typed += word
        await expect(window.card(asked[-1])).to_have_count(1)
        assert await window.focused() == first
        assert abs(await top_of(card) - before) < 1

    await expect(field).to_have_value(typed)
    await expect(window.cards()).to_have_count(21)
    assert open_questions(host) == {first, *asked}
    assert await window.page.locator(".card :is([aria-pressed=true], :checked)").count() == 0
    await expect(window.page.get_by_role("button", name="new above")).to_be_visible()


async def test_the_most_urgent_is_first_and_then_what_ends_soonest(
    host: Host, open_window: OpenWindow
) -> None:
    low = ask(host, "low?", urgency="low")
    late = ask(host, "late?")
    soon = ask(
        host,
        wait_seconds=600,
        questions=[{"question": "soon?", "options": ["A", "B"], "default": "A"}],
    )
    high = ask(host, "high?", urgency="high")
    await host.listed(4)
    window = await open_window(host)
    later = ask(host, "later and urgent?", urgency="high")
    await window.shown(later)

    keys = await window.cards().evaluate_all("cards => cards.map(c => c.dataset.key.split('/')[1])")

    assert keys == [high, later, soon, late, low]
    await window.says(window.card(soon), "the agent goes on with: A")
    await window.says(window.card(soon), re.compile(r"9m \d+s left"))


async def test_the_age_of_a_card_ticks(host: Host, open_window: OpenWindow) -> None:
    request_id = ask(host)
    window = await open_window(host)
    age = (await window.shown(request_id)).locator("time[data-age]")
    before = await age.inner_text()

    await expect(age).not_to_have_text(before)

    assert re.fullmatch(r"\d+s ago", await age.inner_text())


async def test_a_snoozed_question_comes_back_on_top(host: Host, open_window: OpenWindow) -> None:
    other = ask(host, "urgent?", urgency="high")
    request_id = ask(host, "not now?")
    await host.listed(2)
    window = await open_window(host, clock=True)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Snooze").click()
    await card.get_by_role("button", name="15 minutes").click()
    await expect(window.cards()).to_have_count(1)
    await expect(window.page).to_have_title(re.compile(r"^\(1\) "))
    await window.page.clock.fast_forward("15:05")

    await expect(window.cards()).to_have_count(2)
    await expect(window.cards().first).to_have_attribute("data-key", f"team/{request_id}")
    assert open_questions(host) == {other, request_id}


async def test_a_snooze_survives_a_reload_and_can_be_taken_back(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.focus()
    await window.page.keyboard.press("h")
    await card.get_by_role("button", name="1 hour").click()
    await window.reload()
    await expect(window.cards()).to_have_count(0)

    await window.page.get_by_text("Snoozed 1").click()
    await window.card(request_id).click()

    await expect(window.cards()).to_have_count(1)


async def test_a_snooze_never_goes_past_the_end(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host('wait_timeout = "10m"\nanswer_ttl = "40m"\n')
    request_id = ask(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    await card.get_by_role("button", name="Snooze").click()

    offered = await card.locator("[data-do=snooze-now]").all_inner_texts()
    assert offered[0] == "15 minutes"
    assert len(offered) == 2
    assert re.fullmatch(r"3[34]m.*it ends soon.*", offered[1])


async def test_a_card_that_settles_leaves_the_others_where_they_are(
    host: Host, open_window: OpenWindow
) -> None:
    first, second = ask(host, "first?", urgency="high"), ask(host, "second?")
    await host.listed(2)
    window = await open_window(host, clock=True)
    below = await window.shown(second)
    before = await top_of(below)

    host.answer(first, "Yes", by="ben")

    await window.says(window.card(first), "Answered by ben")
    assert abs(await top_of(below) - before) < 1

    await window.page.mouse.move(500, before + 30)
    await window.page.clock.run_for(20_000)
    assert abs(await top_of(below) - before) < 1
    await window.page.mouse.move(5, 5)
    await window.page.clock.run_for(20_000)
    await expect(window.card(first)).to_have_count(0)


@pytest.mark.parametrize("typed", ["no, 1", "needed"])
async def test_typing_on_when_a_card_ends_does_nothing_to_the_others(
    host: Host, open_window: OpenWindow, typed: str
) -> None:
    first, second = ask(host, "first?", urgency="high"), ask(host, "second?")
    await host.listed(2)
    window = await open_window(host, clock=True)
    card = await window.shown(first)
    await window.page.clock.pause_at(await window.page.evaluate("Date.now()") + 1000)
    await (await own_words(card)).click()
    await window.page.keyboard.type("we ")
    host.answer(first, "No", by="ben")
    # It changes once more when nobody is found who takes the answer, and ignores input again.
    await window.says(card, "Answered by ben")
    await expect(card.get_by_role("button", name="Stop keeping it")).to_be_visible()
    # Nothing could resume the agent.
    await expect(card.get_by_role("button", name="Try again")).to_have_count(0)
    await window.page.clock.run_for(IGNORE_MS)

    await window.page.keyboard.type(typed)
    await window.page.keyboard.press("Enter")

    assert await window.focused() == first
    other = window.card(second)
    await expect(other.locator(".panel")).to_be_hidden()
    assert await other.locator("[aria-pressed=true]").count() == 0
    assert second in open_questions(host)
    await window.page.keyboard.press("Escape")

    async def move_on() -> bool:
        # A card ignores input again when it settles once more, since the agent is gone.
        await window.page.clock.run_for(IGNORE_MS)
        await window.page.keyboard.press("n")
        return await window.focused() == second

    await until(move_on, "the focus on the other card")


async def test_a_snooze_that_ends_while_no_page_is_open_comes_back_on_top(
    host: Host, open_window: OpenWindow
) -> None:
    ask(host, "urgent?", urgency="high")
    request_id = ask(host, "not now?")
    await host.listed(2)
    window = await open_window(host)
    await window.shown(request_id)
    await window.page.evaluate(
        """key => localStorage.setItem(
            `pynchy-snooze:${key}`, JSON.stringify({until: Date.now() - 1000}))""",
        f"team/{request_id}",
    )

    await window.reload()

    await expect(window.cards().first).to_have_attribute("data-key", f"team/{request_id}")


async def test_on_a_phone_an_urgent_question_pushes_nothing_away_also_at_the_top(
    host: Host, open_window: OpenWindow
) -> None:
    first = ask(host, "first?")
    window = await open_window(
        host, viewport={"width": 360, "height": 640}, is_mobile=True, has_touch=True
    )
    card = await window.shown(first)
    before = await top_of(card)

    urgent = ask(host, "urgent?", urgency="high")

    await expect(window.cards()).to_have_count(2)
    await expect(window.cards().first).to_have_attribute("data-key", f"team/{urgent}")
    assert abs(await top_of(card) - before) < 1
    await expect(window.page.get_by_role("button", name="new above")).to_be_visible()
