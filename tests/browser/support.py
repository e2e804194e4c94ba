"""A window of the inbox as a person uses it."""

import re
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect
from tests.acceptance.support import Host, MailboxAgent
from tests.waiting import until

LAN_NAME = "inbox.test"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A name that browsers do not trust as they trust localhost.
    f"--host-resolver-rules=MAP {LAN_NAME} 127.0.0.1",
]
PATIENCE_MS = 30_000
# Cards ignore input for 400 ms after they appear.
IGNORE_MS = 450

expect.set_options(timeout=PATIENCE_MS)


class Window:
    """One browser profile with one page, and what went wrong in it."""

    def __init__(self, host: Host, page: Page) -> None:
        self.host = host
        self.page = page
        self.requested: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self._heard(message.type, message.text))

    def _heard(self, kind: str, text: str) -> None:
        # A host that is gone and an answer that came second are no failure of the page.
        if kind == "error" and "Failed to load resource" not in text:
            self.errors.append(text)

    async def sign_in(self, path: str = "/", by: str = "ana") -> None:
        await self.page.goto(await link(self.host) + f"&next={path}")
        await self.page.get_by_label("Your name").fill(by)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.live()

    async def go(self, path: str) -> None:
        await self.page.goto(self.host.url + path)
        await self.live()

    async def reload(self) -> None:
        await self.page.reload()
        await self.live()

    async def note_notifications(self) -> None:
        """Note what Chromium has shown on this page from now on."""
        await self.page.evaluate(
            """() => {
                const show = ServiceWorkerRegistration.prototype.showNotification;
                window.shown = [];
                ServiceWorkerRegistration.prototype.showNotification = async function (...given) {
                    await show.apply(this, given);
                    window.shown.push(given[1].body);
                };
            }"""
        )

    async def notified(self, body: str) -> None:
        """Wait until Chromium has shown it; its list is not to be asked for before.

        Who asks for the list takes out of it what is not on the screen yet.
        """

        async def is_shown() -> bool:
            return body in await self.page.evaluate("window.shown")

        await until(is_shown, f"a notification of {body}")

    async def live(self) -> None:
        """Wait until the page is up to date and its cards take clicks."""
        await expect(self.page.locator("[data-link=live]")).to_be_visible()
        await self.settle_down()

    async def settle_down(self) -> None:
        """Wait until no card ignores input any more."""
        await self.page.wait_for_function(
            "until => performance.now() > until",
            arg=await self.page.evaluate("performance.now()") + IGNORE_MS,
        )

    async def at_rest(self, card: Locator) -> None:
        """Wait for the last word on an answer that no agent takes, and until the card takes clicks.

        Whatever is said of it makes the card ignore clicks again.
        """
        await self.says(card, "kept for check_answer")
        await self.settle_down()

    def cards(self) -> Locator:
        return self.page.locator("#list > .card")

    def card(self, request_id: str) -> Locator:
        return self.page.locator(f'.card[data-key$="/{request_id}"]')

    async def shown(self, request_id: str) -> Locator:
        """Wait for the card, and until it takes clicks."""
        card = self.card(request_id)
        await expect(card).to_be_visible()
        await self.settle_down()
        return card

    async def focused(self) -> str:
        """Return the id of the question whose card has the focus."""
        key = await self.page.evaluate("document.activeElement.closest('.card')?.dataset.key ?? ''")
        return str(key).partition("/")[2]

    async def says(self, card: Locator, text: str | re.Pattern[str]) -> None:
        await expect(card).to_contain_text(text)


async def own_words(card: Locator, which: int = 0) -> Locator:
    """Open the field for other words where it is folded, and return it."""
    box = card.locator("details.own").nth(which)
    if not await box.evaluate("box => box.open"):
        await box.locator("summary").click()
    return box.get_by_label("Or in your own words")


async def open_menu(page: Page) -> None:
    await page.locator(".menu summary").click()


async def link(host: Host) -> str:
    """Return a new link to sign in with."""
    code, out, err = await host.cli("inbox", "--open")
    assert code == 0, err
    return out.split(": ", 1)[1].splitlines()[0]


def ask(host: Host, question: str = "Deploy?", group: str = "team", **fields: Any) -> str:
    """Ask as an agent of the group; return the id of the question."""
    agent = MailboxAgent(host.group(group))
    try:
        return agent.ask(question, **({"agent": "release agent"} | fields))
    finally:
        agent.die()


def open_questions(host: Host) -> set[str]:
    return {p["request_id"] for p in host.pending() if p["state"] in {"recorded", "open"}}


def answers(host: Host, request_id: str) -> list[dict[str, Any]]:
    """Return what was answered: what is chosen and written for each question."""
    ending = host.question(request_id)["ending"]
    return [{"selected": a["selected"], "text": a["text"]} for a in ending["answers"]]


def outcome_path(host: Host, request_id: str, group: str = "team") -> Path:
    return host.group(group) / "outcomes" / f"{request_id}.json"


async def top_of(card: Locator) -> float:
    """Return where the card begins on the screen; it may be off by less than a pixel."""
    return float(await card.evaluate("card => card.getBoundingClientRect().top"))
