"""Lost and found: the host goes and comes back, pages are reloaded, links run out."""

import asyncio
import re
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Route, expect
from tests.acceptance.support import Host
from tests.browser.conftest import OpenWindow, StartHost
from tests.browser.support import LAN_NAME, Window, answers, ask, link, open_menu, own_words


async def come_back(host: Host) -> None:
    await host.start("--port", str(urlsplit(host.url).port))


async def test_a_lost_connection_is_told_and_found_again_with_all_that_happened(
    host: Host, open_window: OpenWindow
) -> None:
    before = ask(host, "before?")
    window = await open_window(host)
    await window.shown(before)

    host.kill()
    state = window.page.locator("[data-link-text]")
    await expect(state).to_have_text(re.compile(r"reconnecting, last seen [1-9]\d*s ago"))
    during = ask(host, "during?")
    await come_back(host)
    host.answer(before, "Yes", by="ben")

    await expect(state).to_have_text("live")
    await window.shown(during)
    await window.says(window.card(before), "Answered by ben")
    await expect(window.page).to_have_title(re.compile(r"^\(1\) "))


async def test_half_typed_text_survives_a_reload_and_a_restart_of_the_host_but_no_choice_does(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(
        host,
        questions=[
            {"question": "Which?", "options": ["A", "B"], "multiSelect": True},
            {"question": "Why?"},
        ],
    )
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.get_by_role("checkbox", name="B").check()
    await card.get_by_label("Your answer").fill("because it is")

    host.kill()
    await expect(window.page.locator("[data-link=lost]")).to_be_visible()
    await come_back(host)
    await expect(window.page.locator("[data-link=live]")).to_be_visible()
    await expect(card.get_by_label("Your answer")).to_have_value("because it is")
    await window.reload()

    await expect(card.get_by_label("Your answer")).to_have_value("because it is")
    # A choice that came back by itself could be sent without having been looked at.
    assert await card.locator("input:checked").count() == 0


async def test_text_and_cursor_stay_when_the_card_changes_under_them(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, questions=[{"question": "One?"}, {"question": "Two?"}])
    await host.state(request_id, "open")
    window = await open_window(host)
    card = await window.shown(request_id)
    await card.get_by_label("Your answer").nth(1).click()
    await window.page.keyboard.type("before after")
    for _ in range(5):
        await window.page.keyboard.press("ArrowLeft")

    body = {"values": ["first"], "by": "ben", "question": 1}
    assert host.http("POST", f"/api/questions/{request_id}/answer", body).status == 202

    await window.says(card, "Answered in part by ben")
    await window.page.keyboard.type("and ")
    await expect(card.get_by_label("Your answer").nth(1)).to_have_value("before and after")


async def test_a_browser_stays_signed_in_over_a_restart_until_everybody_is_signed_out(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)
    host.kill()
    await come_back(host)
    await window.go("/history")

    code, out, _ = await host.cli("inbox", "--sign-out-all")

    assert code == 0
    assert out.startswith("1 browser is signed out")
    await window.page.reload()
    await expect(window.page.get_by_text("You are not signed in")).to_be_visible()
    await expect(window.page.get_by_text("pynchy inbox --open")).to_be_visible()


async def test_a_page_that_is_open_says_that_it_was_signed_out(
    host: Host, open_window: OpenWindow
) -> None:
    shown = ask(host, "An old secret?")
    window = await open_window(host)
    card = await window.shown(shown)
    await (await own_words(card)).fill("a secret answer")
    await host.cli("inbox", "--sign-out-all")

    request_id = ask(host, "A secret plan?")

    await expect(window.page.locator("[data-link-text]")).to_contain_text("signed out")
    await expect(window.page.locator("#main")).to_contain_text("You are signed out")
    await expect(window.card(request_id)).to_have_count(0)
    await expect(card).to_have_count(0)
    assert "secret" not in await window.page.evaluate("JSON.stringify({...localStorage})")


async def test_a_link_works_once_and_looking_at_it_does_not_spend_it(
    host: Host, browser: Browser
) -> None:
    address = await link(host)
    people = [await browser.new_page() for _ in range(3)]
    for person in people:
        await person.goto(address)
        await person.reload()

    await people[0].get_by_role("button", name="Sign in").click()
    await expect(people[0].get_by_role("heading", name="Waiting for you")).to_be_visible()
    await people[1].get_by_role("button", name="Sign in").click()
    await expect(people[1].get_by_text("This link does not work")).to_be_visible()
    await people[2].reload()
    await expect(people[2].get_by_text("This link does not work")).to_be_visible()

    for person in people:
        await person.close()


async def test_a_link_whose_time_is_up_lets_nobody_in(
    start_host: StartHost, browser: Browser
) -> None:
    host = await start_host('[channels.web]\nlink_ttl = "1ms"\n')
    page = await browser.new_page()

    reply = await page.goto(await link(host))

    assert reply is not None
    assert reply.status == 410
    await expect(page.get_by_text("its time is up")).to_be_visible()
    await page.close()


async def test_over_plain_http_it_works_and_says_what_does_not(
    start_host: StartHost, browser: Browser
) -> None:
    host = await start_host(f'[http]\nallowed_hosts = ["{LAN_NAME}"]\n')
    request_id = ask(host)
    await host.state(request_id, "open")
    address = (await link(host)).replace("127.0.0.1", LAN_NAME)
    page = await browser.new_page()

    await page.goto(address)
    await page.get_by_role("button", name="Sign in").click()
    await Window(host, page).live()
    assert not await page.evaluate("isSecureContext")
    await open_menu(page)
    await expect(page.get_by_text("This browser cannot notify here")).to_be_visible()
    await page.get_by_role("button", name="Keys and settings").click()
    await expect(page.get_by_text("This page came over plain http")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.locator(".card [data-option='1']").click()

    await expect(page.locator(".card")).to_contain_text("Answered by")
    assert answers(host, request_id)[0]["selected"] == ["Yes"]
    await page.close()


async def test_a_page_of_another_port_can_neither_answer_nor_read(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)
    await window.shown(request_id)
    # Another port of the same machine is another site's page with our cookie in its requests.
    other = await window.page.context.new_page()
    await other.route("http://127.0.0.1:8080/**", lambda route: route.fulfill(body="<p>evil</p>"))
    await other.goto("http://127.0.0.1:8080/")

    reading = await other.evaluate(
        """async ([url, id]) => {
            const target = `${url}/api/questions/${id}/answer`;
            const body = JSON.stringify({values: ["Yes"]});
            const sent = {method: "POST", body, mode: "no-cors", credentials: "include"};
            await fetch(target, sent).catch(() => {});
            const reading = fetch(`${url}/api/pending`, {credentials: "include"});
            return reading.then(() => "read", () => "refused");
        }""",
        [host.url, request_id],
    )

    assert reading == "refused"
    assert host.question(request_id)["state"] == "open"
    await other.close()


async def break_line(window: Window) -> None:
    """Cut the page off from the stream, until `mend_line`."""
    await window.page.route("**/inbox/stream", lambda route: route.abort())
    await window.page.evaluate("dispatchEvent(new Event('online'))")
    await expect(window.page.locator("[data-link=lost]")).to_be_visible()


async def mend_line(window: Window) -> None:
    await window.page.unroute("**/inbox/stream")
    await expect(window.page.locator("[data-link=live]")).to_be_visible()


async def test_a_slow_reply_does_not_bring_back_what_is_over(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)
    await break_line(window)
    request_id = ask(host, "Still there?")
    await host.state(request_id, "open")
    asked, told = asyncio.Event(), asyncio.Event()

    async def slow(route: Route) -> None:
        reply = await route.fetch()
        if "key=" in route.request.url:
            asked.set()
            await told.wait()
        await route.fulfill(response=reply)

    await window.page.route("**/inbox/cards*", slow)
    await mend_line(window)
    await asked.wait()
    count = window.page.locator("nav [data-count]")
    await expect(count).to_have_text("1")
    host.answer(request_id, "No", by="ben")
    await expect(count).to_be_hidden()
    async with window.page.expect_response("**/inbox/cards?key=*"):
        told.set()
    later = ask(host, "And this?")

    await window.shown(later)
    await expect(window.card(request_id)).to_have_count(0)


NOTIFIED = """navigator.serviceWorker.ready
    .then(worker => worker.getNotifications())
    .then(shown => shown.map(notification => notification.body))"""


async def wish_for_notifications(window: Window) -> None:
    await window.page.evaluate(
        """async () => {
            localStorage.setItem("pynchy-notify", "on");
            document.hasFocus = () => false;
            await navigator.serviceWorker.ready;
        }"""
    )
    await window.note_notifications()


async def test_what_came_while_the_line_was_broken_is_notified_of(
    host: Host, open_window: OpenWindow
) -> None:
    ask(host, "Before?")
    await host.listed(1)
    window = await open_window(host, notifies=True, permissions=["notifications"])
    await wish_for_notifications(window)
    await break_line(window)
    ask(host, "While lost?")
    await host.listed(2)

    await mend_line(window)

    await window.notified("While lost?")
    assert await window.page.evaluate(NOTIFIED) == ["While lost?"]


@pytest.mark.parametrize("path", ["/agents", "/history", "/q/team/{}"])
async def test_every_page_notifies(host: Host, open_window: OpenWindow, path: str) -> None:
    other = ask(host, "Other?")
    await host.listed(1)
    window = await open_window(
        host, path.format(other), notifies=True, permissions=["notifications"]
    )
    await wish_for_notifications(window)

    ask(host, "Elsewhere?")

    await window.notified("Elsewhere?")
    assert await window.page.evaluate(NOTIFIED) == ["Elsewhere?"]


async def test_a_change_that_comes_while_a_choice_waits_is_shown_when_it_is_taken_back(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host('[channels.web]\nundo_high = "5m"\n')
    request_id = ask(host, urgency="high", questions=[{"question": "One?"}, {"question": "Two?"}])
    await host.state(request_id, "open")
    window = await open_window(host)
    card = await window.shown(request_id)
    for number in range(2):
        await card.get_by_label("Your answer").nth(number).fill("mine")
    await card.get_by_role("button", name="Send").click()
    await window.says(card, "Sending in")
    body = {"values": ["first"], "by": "ben", "question": 1}
    assert host.http("POST", f"/api/questions/{request_id}/answer", body).status == 202
    # What comes after it on the stream has come.
    await window.shown(ask(host, "later?"))

    await card.get_by_role("button", name="Take it back").click()

    await window.says(card, "Answered in part by ben")
    await expect(card.get_by_label("Your answer").nth(1)).to_have_value("mine")


async def test_signing_in_again_ends_what_the_browser_was_signed_in_by(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)
    (old,) = await window.page.context.cookies()

    await window.sign_in()

    (new,) = await window.page.context.cookies()
    statuses = []
    for cookie in (old, new):
        headers = {"cookie": f"{cookie['name']}={cookie['value']}", "accept": "text/html"}
        reply = await window.page.request.get(f"{host.url}/agents", headers=headers)
        statuses.append(reply.status)
    assert statuses == [401, 200]


async def another_tab(window: Window, path: str = "/") -> Window:
    tab = Window(window.host, await window.page.context.new_page())
    await tab.go(path)
    return tab


async def test_eight_tabs_are_live_at_once_and_a_click_in_any_of_them_answers(
    host: Host, open_window: OpenWindow
) -> None:
    # A browser has six connections to a host, and each tab used to keep one for itself.
    tabs = [await open_window(host)]
    for path in ("/", "/agents", "/history", "/", "/", "/agents", "/"):
        tabs.append(await another_tab(tabs[0], path))
    lists = [tab for tab in tabs if await tab.page.locator("#list").count()]

    request_id = ask(host)
    for tab in tabs:
        await expect(tab.page).to_have_title(re.compile(r"^\(1\) "))
    card = await lists[-1].shown(request_id)
    await lists[-1].page.bring_to_front()
    await lists[-1].settle_down()
    await card.get_by_role("button", name="Yes").click()

    for tab in lists:
        await tab.says(tab.card(request_id), "Answered by ana")
    streams = sum("/inbox/stream" in url for tab in tabs for url in tab.requested)
    assert streams == 1


async def test_when_the_tab_with_the_connection_goes_another_takes_over(
    host: Host, open_window: OpenWindow
) -> None:
    first = await open_window(host)
    second = await another_tab(first)
    third = await another_tab(first, "/agents")
    assert not any("/inbox/stream" in url for url in [*second.requested, *third.requested])

    await first.page.close()

    request_id = ask(host, "Still live?")
    await second.shown(request_id)
    await expect(third.page).to_have_title(re.compile(r"^\(1\) "))
    late = await another_tab(second)
    await late.shown(request_id)


async def test_every_tab_says_that_the_host_is_gone_and_finds_it_again(
    host: Host, open_window: OpenWindow
) -> None:
    first = await open_window(host)
    second = await another_tab(first)

    host.kill()
    for tab in (first, second):
        await expect(tab.page.locator("[data-link-text]")).to_contain_text("reconnecting")
    request_id = ask(host, "While gone?")
    await come_back(host)

    for tab in (first, second):
        await expect(tab.page.locator("[data-link=live]")).to_be_visible()
        await tab.shown(request_id)


async def test_a_tab_whose_leader_is_frozen_connects_by_itself(
    host: Host, open_window: OpenWindow
) -> None:
    first = await open_window(host, clock=True)
    second = await another_tab(first)
    # It holds the lock and says nothing any more, as a page that the browser has frozen.
    await first.page.evaluate("BroadcastChannel.prototype.postMessage = () => {}")

    await second.page.clock.run_for(25_000)

    request_id = ask(host, "Anybody?")
    await second.shown(request_id)
    assert any("/inbox/stream" in url for url in second.requested)


async def test_without_locks_every_tab_has_a_connection_of_its_own(
    host: Host, open_window: OpenWindow
) -> None:
    first = await open_window(host)
    await first.page.context.add_init_script("delete Navigator.prototype.locks")
    tabs = [await another_tab(first) for _ in range(2)]

    request_id = ask(host)

    for tab in tabs:
        await tab.shown(request_id)
        assert any("/inbox/stream" in url for url in tab.requested)


async def test_another_server_on_this_machine_gets_the_cookie_and_can_do_nothing_with_it(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host, "A secret plan?")
    window = await open_window(host)
    await window.shown(request_id)
    heard = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        other = await window.page.context.new_page()
        await other.goto(f"http://127.0.0.1:{port}/")
        kept = await other.evaluate("JSON.stringify({...localStorage})")
        await other.close()
    stolen = re.search(r"(?im)^cookie: (.+?)\r?$", heard[0])
    assert stolen, "the browser keeps cookies from other ports: the page key is needed no more"

    headers = {"cookie": stolen[1], "sec-fetch-site": "same-origin", "accept": "text/html"}
    page = await window.page.request.get(f"{host.url}/", headers=headers)
    reply = await window.page.request.post(
        f"{host.url}/api/questions/{request_id}/answer",
        headers=headers,
        data={"values": ["Yes"]},
    )

    assert kept == "{}"
    assert "secret" not in await page.text()
    assert reply.status == 401
    assert host.question(request_id)["state"] == "open"


async def test_a_browser_that_lost_its_key_is_told_to_sign_in_again(
    host: Host, open_window: OpenWindow
) -> None:
    ask(host, "A secret plan?")
    window = await open_window(host)
    await window.page.evaluate("localStorage.clear()")

    await window.page.reload()

    await expect(window.page.get_by_text("You are signed out")).to_be_visible()
    await expect(window.page.get_by_text("secret")).to_have_count(0)
    await window.sign_in()
    await expect(window.cards()).to_have_count(1)


async def test_a_page_that_is_opened_while_the_host_is_away_comes_when_it_is_back(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(host)

    async def away(route: Route) -> None:
        if route.request.is_navigation_request():
            await route.continue_()
        else:
            await route.abort()

    await window.page.route(re.compile(r"/$"), away)
    await window.page.reload()
    await expect(window.page.get_by_text("The host does not answer")).to_be_visible()

    await window.page.unroute(re.compile(r"/$"))

    await window.shown(request_id)


async def snoozed(host: Host, window: Window) -> str:
    """Ask something and snooze it for an hour; return its id."""
    request_id = ask(host, "Later?")
    card = await window.shown(request_id)
    await card.get_by_role("button", name="Snooze").click()
    await card.get_by_role("button", name="1 hour").click()
    await expect(window.page.locator("#snoozed .card")).to_have_count(1)
    return request_id


async def is_over_where_it_was_hidden(window: Window, request_id: str) -> None:
    await expect(window.page.locator("#snoozed .card")).to_contain_text("Answered by ben")
    await window.page.clock.run_for(2_000)
    await expect(window.page.locator("#snoozed .card")).to_have_count(1)
    await expect(window.cards()).to_have_count(0)
    await expect(window.page.locator("#say")).not_to_contain_text("New question")
    await expect(window.card(request_id).get_by_role("button", name="Yes")).to_have_count(0)


async def test_a_snoozed_question_that_ends_is_not_announced_as_new(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host, clock=True)
    request_id = await snoozed(host, window)

    host.answer(request_id, "Yes", by="ben")

    await is_over_where_it_was_hidden(window, request_id)


async def test_a_snoozed_question_that_ends_while_the_line_is_broken_does_not_come_back(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host, clock=True)
    request_id = await snoozed(host, window)
    await break_line(window)
    host.answer(request_id, "Yes", by="ben")

    await window.page.unroute("**/inbox/stream")
    await window.page.clock.run_for(10_000)

    await is_over_where_it_was_hidden(window, request_id)


async def test_a_tab_that_has_just_signed_in_does_not_believe_one_that_was_signed_out(
    host: Host, open_window: OpenWindow
) -> None:
    first = await open_window(host)
    await host.cli("inbox", "--sign-out-all")
    ask(host, "First?")
    await expect(first.page.locator("#main")).to_contain_text("You are signed out")
    # It goes on asking the host, but not soon.
    await first.page.evaluate("window.setTimeout = () => 0")
    second = Window(host, await first.page.context.new_page())

    await second.sign_in()

    await second.shown(ask(host, "Second?"))
    await expect(first.cards()).to_have_count(2)


async def test_a_page_of_a_host_that_was_replaced_meanwhile_is_loaded_anew_with_its_scripts(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)
    build = await window.page.evaluate("document.documentElement.dataset.build")
    frames = 0

    async def first_of_an_older_host(route: Route) -> None:
        nonlocal frames
        reply = await route.fetch()
        text = await reply.text()
        if route.request.is_navigation_request():
            frames += 1
            old = f'data-build="{build}"', 'data-build="older"'
            text = text.replace(*old) if frames == 1 else text
        await route.fulfill(response=reply, body=text)

    await window.page.route(re.compile(r":\d+/$"), first_of_an_older_host)
    await window.page.reload()

    await window.live()
    assert frames == 2
