"""What the pages show: hostile text, small screens, every page, and whether all can use them."""

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect
from tests.acceptance.conftest import runs as _runs
from tests.acceptance.support import Host, MailboxAgent, Runs
from tests.browser.conftest import OpenWindow, StartHost
from tests.browser.support import Window, ask, open_menu
from tests.waiting import until

runs = _runs

HOSTILE = """<script>window.pwned = 1</script><img src=x onerror="window.pwned = 1">
![tracker](http://evil.example/pixel.png) [click](javascript:window.pwned=1)
[your bank](https://evil.example/login) <!channel> @everyone
right\u202eto left, zero\u200bwidth, \u2066isolated\u2069 <iframe src="http://evil.example/"></iframe>
<style>body{display:none}</style> &lt;b&gt; `<script>`
"""
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old()\n+new()\n same()\n"
EVERYTHING = [
    {
        "question": f"{HOSTILE}\n\n{'W' * 10_000}",
        "header": "<b>head</b>" + "h" * 400,
        "options": [
            {"label": "<img src=x onerror=alert(1)>" + "L" * 400, "description": HOSTILE},
            {"label": "Diff", "preview": DIFF},
            {"label": "Long", "preview": "\n".join(f"{n} {'x' * 300}" for n in range(100))},
        ],
    }
]


def ask_everything(host: Host) -> str:
    return ask(
        host,
        questions=EVERYTHING,
        agent="<i>agent</i>\u202e" + "a" * 300,
        task="t" * 400,
        title="<h1>title</h1>" + "T" * 400,
    )


async def test_hostile_text_is_shown_and_does_nothing(host: Host, open_window: OpenWindow) -> None:
    request_id = ask_everything(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    text = await card.inner_text()

    assert await window.page.evaluate("window.pwned") is None
    assert await card.locator("script, iframe, img, style, b, i, h1").count() == 0
    assert "<script>window.pwned = 1</script>" in text
    assert "<!channel> @everyone" in text
    assert "U+202E" in text
    assert "U+200B" in text
    assert "\u202e" not in text
    assert "\u200b" not in text
    hrefs = await card.locator(".md a").evaluate_all("links => links.map(link => link.href)")
    assert set(hrefs) == {"https://evil.example/login", "http://evil.example/pixel.png"}
    await window.says(card, "your bank (evil.example/login)")
    await card.get_by_role("button", name=re.compile(r"Show all \(\d+ lines\)")).click()
    await expect(card.get_by_role("button", name="Show all")).to_be_hidden()


async def test_a_diff_is_coloured_and_a_long_preview_is_folded_with_its_length(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask_everything(host)
    window = await open_window(host)
    card = await window.shown(request_id)

    await expect(card.locator("pre.diff .add")).to_have_text("+new()\n")
    await expect(card.locator("pre.diff .del")).to_have_text("-old()\n")
    long = card.locator("details.preview").nth(1)
    await expect(long.locator("summary")).to_have_text("Preview 100 lines")
    await expect(long.locator("pre")).to_be_hidden()
    await long.locator("summary").click()
    await expect(long.locator("pre")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/agents", "/history", "/q/team/{}"])
async def test_nothing_is_wider_than_a_small_phone(
    host: Host, open_window: OpenWindow, path: str
) -> None:
    over = ask_everything(host)
    await host.state(over, "open")
    host.answer(over, "2", by="b" * 200)
    request_id = ask_everything(host)
    await host.state(request_id, "open")

    window = await open_window(
        host,
        path.format(request_id),
        viewport={"width": 360, "height": 640},
        is_mobile=True,
        has_touch=True,
    )

    width = await window.page.evaluate("document.documentElement.scrollWidth")
    assert width == 360
    assert await window.page.evaluate("innerWidth") == 360


async def test_the_bar_at_the_bottom_of_a_phone_covers_nothing(
    host: Host, open_window: OpenWindow
) -> None:
    request_id = ask(host)
    window = await open_window(
        host, viewport={"width": 360, "height": 640}, is_mobile=True, has_touch=True
    )
    card = await window.shown(request_id)

    await window.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")

    bar = await window.page.locator(".bar nav").bounding_box()
    decline = await card.get_by_role("button", name="Decline").bounding_box()
    assert bar is not None
    assert decline is not None
    assert decline["y"] + decline["height"] <= bar["y"]
    await card.get_by_role("button", name="Yes").tap()
    await window.says(card, "Answered by ana")


async def serious(window: Window) -> list[str]:
    found = await Axe().run(window.page)
    return [
        f"{v['id']}: {[node['html'][:200] for node in v['nodes'][:3]]}"
        for v in found.response["violations"]
        if v["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious(
    start_host: StartHost, open_window: OpenWindow, runs: Runs, scheme: str
) -> None:
    host = await start_host(runs.launcher("fail", attempts=1))
    undelivered = ask(host)
    over = ask(host, "over?", group="other")
    ask(
        host,
        urgency="high",
        title="A title",
        questions=[
            {"question": "# Head\n\n- `list`\n\n> quote", "options": ["A", "B"], "header": "Head"},
            {"question": "Which?", "options": ["C", "D"], "multiSelect": True},
        ],
    )
    plain = ask(host, "Plain?", group="other", urgency="low", questions=EVERYTHING)
    await host.listed(4)
    host.answer(undelivered, "Yes")
    host.answer(over, "No")
    await host.state(undelivered, "undelivered")
    window = await open_window(host, color_scheme=scheme)
    await window.shown(plain)

    assert await serious(window) == []
    await window.card(plain).focus()
    await window.page.keyboard.press("1")
    await window.page.keyboard.press("d")
    assert await serious(window) == []
    await window.page.keyboard.press("Escape")
    await window.card(plain).focus()
    await window.page.keyboard.press("?")
    assert await serious(window) == []
    for path in (f"/q/team/{undelivered}", f"/q/other/{plain}", "/agents", "/history"):
        await window.go(path)
        assert await serious(window) == [], path
    await window.page.context.clear_cookies()
    await window.page.goto(host.url)
    assert await serious(window) == []


async def test_history_is_searched_and_filtered(host: Host, open_window: OpenWindow) -> None:
    yes, no = ask(host, "Rename the database?"), ask(host, "Paint the shed?", group="garden")
    await host.listed(2)
    host.answer(yes, "carefully please", by="ben")
    host.decline(no)
    for request_id in (yes, no):
        await host.state(request_id, "closed", "undelivered")
        host.http("POST", f"/api/questions/{request_id}/dismiss", {})
        await host.closed(request_id)
    window = await open_window(host, "/history")
    rows = window.page.locator(".rows > li")
    await expect(rows).to_have_count(2)

    await window.page.get_by_label("Search").fill("CAREFULLY database")
    await window.page.get_by_role("button", name="Show").click()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("carefully please")
    await window.page.get_by_label("Search").fill("")
    await window.page.get_by_label("Group").select_option("garden")
    await window.page.get_by_role("button", name="Show").click()
    await expect(rows).to_contain_text("Paint the shed?")
    await window.page.get_by_label("Outcome").select_option("answered")
    await window.page.get_by_role("button", name="Show").click()
    await expect(window.page.get_by_text("Nothing fits")).to_be_visible()


async def test_who_is_waiting_tells_every_agent_and_retries_what_was_not_delivered(
    start_host: StartHost, open_window: OpenWindow, runs: Runs
) -> None:
    host = await start_host(runs.launcher("fail", group="lost", attempts=1))
    worker = MailboxAgent(host.group("busy"), "session-7")
    asker = MailboxAgent(host.group("team"), "session-8")
    asker.ask("May I?", agent="the asker")
    lost = ask(host, "Lost?", group="lost", agent="the lost one")
    await host.listed(2)
    host.answer(lost, "Yes")
    await host.state(lost, "undelivered")
    window = await open_window(host, "/agents")

    rows = window.page.locator(".agents > li")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(0)).to_contain_text(re.compile("answer not delivered.*the lost one"))
    await expect(rows.nth(0)).to_contain_text("its process has ended")
    await expect(rows.nth(1)).to_contain_text(re.compile("waiting on you.*the asker"))
    await expect(rows.nth(2)).to_contain_text(re.compile("connected.*busy.*not known"))
    runs.do("succeed")
    await rows.nth(0).get_by_role("button", name="Try again").click()

    await host.closed(lost)
    await expect(rows).to_have_count(2)
    worker.die()


async def test_empty_pages_show_the_command_that_fills_them(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host)

    await expect(window.page.get_by_text('pynchy ask "Deploy?" -o Yes -o No')).to_be_visible()
    await window.go("/agents")
    await expect(window.page.get_by_text("pynchy mcp --group my-agent")).to_be_visible()
    await window.go("/history")
    await expect(window.page.get_by_text("pynchy answer ID VALUE")).to_be_visible()


async def test_a_new_question_notifies_and_an_answer_takes_the_notification_away(
    host: Host, open_window: OpenWindow
) -> None:
    window = await open_window(host, notifies=True, permissions=["notifications"])
    await open_menu(window.page)
    await window.page.get_by_role("button", name="Notify me").click()
    await window.page.get_by_role("button", name="Stop notifying me").wait_for()
    await window.page.keyboard.press("Escape")
    await window.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    await window.page.evaluate("document.hasFocus = () => false")
    await window.note_notifications()

    async def titles() -> list[str]:
        found: list[str] = await window.page.evaluate(
            """async () => {
                const registration = await navigator.serviceWorker.ready;
                const shown = await registration.getNotifications();
                return shown.map(one => `${one.title}: ${one.body}`);
            }"""
        )
        return found

    async def none() -> bool:
        return await titles() == []

    request_id = ask(host, "Ring?")
    await window.notified("Ring?")
    assert await titles() == ["team · release agent asks: Ring?"]
    host.answer(request_id, "Yes")
    await until(none, "no notification")


async def test_the_page_can_be_installed(host: Host, open_window: OpenWindow) -> None:
    window = await open_window(host)

    session = await window.page.context.new_cdp_session(window.page)
    manifest = await session.send("Page.getAppManifest")
    problems = await session.send("Page.getInstallabilityErrors")

    assert manifest["errors"] == []
    assert problems["installabilityErrors"] in (
        [],
        [{"errorId": "in-incognito", "errorArguments": []}],
    )


async def test_the_bar_of_a_phone_covers_nothing_that_tab_leads_to(
    host: Host, open_window: OpenWindow
) -> None:
    questions = [{"question": f"Number {n}?", "options": ["a", "b", "c"]} for n in range(4)]
    request_id = ask(host, questions=questions)
    window = await open_window(
        host, viewport={"width": 360, "height": 640}, is_mobile=True, has_touch=True
    )
    card = await window.shown(request_id)
    seen = 0

    for _ in range(await card.locator("textarea, button, input").count()):
        await window.page.keyboard.press("Tab")
        covered = await window.page.evaluate(
            """() => {
                const at = document.activeElement;
                if (!at.closest(".card")) return null;
                const bar = document.querySelector(".bar nav").getBoundingClientRect();
                return at.getBoundingClientRect().bottom > bar.top + 1 ? at.outerHTML : "";
            }"""
        )
        assert not covered
        seen += covered == ""

    assert seen > 5
