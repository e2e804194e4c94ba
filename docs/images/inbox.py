"""Make the pictures of the inbox: a real host, real questions, a real Chromium.

.venv/bin/python docs/images/inbox.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from make import PERMISSIONS, PYNCHY, hosted, write_request

HERE = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
DIFF = """\
--- a/billing.py
+++ b/billing.py
@@ -10,7 +10,7 @@ class Invoice:
     total: Decimal

-    def pay(self):
-        charge(self.total)
+    def pay(self, gateway: Gateway) -> Receipt:
+        return gateway.charge(self.total)
"""


@dataclass(frozen=True)
class Look:
    """A picture: on which screen, light or dark, from which card on, and what is pressed first."""

    screen: dict[str, object]
    scheme: str = "light"
    card: int = 0
    pressed: str = ""


PHONE = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
WIDE = {"viewport": {"width": 1000, "height": 800}}
LOOKS = {
    "inbox": Look(WIDE),
    "inbox-dark": Look(WIDE, "dark", card=1),
    "inbox-phone": Look(PHONE),
}
PERMISSION_LOOKS = {
    "permission": Look({"viewport": {"width": 1000, "height": 980}}, pressed="Allow always"),
    "permission-dark": Look({"viewport": {"width": 1000, "height": 860}}, "dark", card=1),
    "permission-phone": Look(PHONE, card=1),
}
QUESTIONS = {
    "web-team": {
        "agent": "release agent",
        "task": "release 2.1",
        "urgency": "high",
        "questions": [
            {
                "question": "All checks are green. **Deploy 2.1 to production?**\n\n"
                "There are `14` changes, two of them migrations:\n\n"
                "- add `orders.paid_at`\n- drop `orders.legacy_state`",
                "options": [
                    {"label": "Deploy now", "description": "everybody has it in ten minutes"},
                    {"label": "Staging first", "description": "and ask again tomorrow"},
                    {"label": "Do not deploy"},
                ],
            }
        ],
    },
    "billing": {
        "agent": "refactoring agent",
        "task": "split the billing module",
        "questions": [
            {
                "question": "Which way shall I take?",
                "options": [
                    {"label": "Small steps", "description": "three requests", "preview": DIFF},
                    {"label": "All at once", "description": "one request, 1,900 lines"},
                ],
            }
        ],
    },
    "docs": {
        "agent": "docs agent",
        "questions": [{"question": "What should the release note say first?"}],
    },
}


def main() -> None:
    """Ask, look, and keep what was seen."""
    may_i = [("web-team", request) for request in PERMISSIONS[:2]]
    for asked, looks in (([*QUESTIONS.items()], LOOKS), (may_i, PERMISSION_LOOKS)):
        with tempfile.TemporaryDirectory() as data, hosted(data) as env:
            for number, (group, request) in enumerate(asked):
                write_request(Path(data), group, f"q{number}", request)
            link = subprocess.check_output([PYNCHY, "inbox", "--no-browser"], env=env, text=True)  # noqa: S603 - our own
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=FLAGS
                )
                draw(browser, link.split(": ", 1)[1].strip(), looks, len(asked))
                browser.close()


def draw(browser: Browser, link: str, looks: dict[str, Look], count: int) -> None:
    """Sign in, and write the pictures."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Your name").fill("ana")
    page.get_by_role("button", name="Sign in").click()
    page.locator("[data-link=live]").wait_for()
    state = context.storage_state()
    home = link.partition("/sign-in")[0] + "/"
    for name, look in looks.items():
        seen = browser.new_context(
            **look.screen, color_scheme=look.scheme, storage_state=state, device_scale_factor=1.5
        )
        page = seen.new_page()
        page.goto(home)
        page.locator("[data-link=live]").wait_for()
        page.locator("#list > .card").nth(count - 1).wait_for()
        if look.pressed:
            # A card that has just appeared ignores clicks.
            page.wait_for_timeout(500)
            page.get_by_role("button", name=look.pressed).first.click()
        if look.card:
            page.locator("#list > .card").nth(look.card).evaluate(
                "card => scrollTo(0, card.getBoundingClientRect().top - 90)"
            )
        page.screenshot(path=HERE / f"{name}.png")
        seen.close()


if __name__ == "__main__":
    main()
