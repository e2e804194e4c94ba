"""Make the pictures of the inbox: a real host, real questions, a real Chromium.

.venv/bin/python docs/images/inbox.py
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from make import PYNCHY, hosted

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
    with tempfile.TemporaryDirectory() as data, hosted(data) as env:
        for number, (group, request) in enumerate(QUESTIONS.items()):
            ask(Path(data), group, f"q{number}", request)
        link = subprocess.check_output([PYNCHY, "inbox", "--no-browser"], env=env, text=True)  # noqa: S603 - our own
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=FLAGS
            )
            draw(browser, link.split(": ", 1)[1].strip())
            browser.close()


def ask(data: Path, group: str, request_id: str, request: dict[str, object]) -> None:
    """Write the request as an agent would."""
    tasks = data / "ipc" / group / "tasks"
    tasks.mkdir(parents=True, mode=0o700)
    body = {"v": 1, "type": "ask_user:ask", "request_id": request_id, **request}
    whole = tasks / f".{request_id}.tmp"
    whole.write_text(json.dumps(body))
    whole.rename(tasks / f"{request_id}.json")


def draw(browser: Browser, link: str) -> None:
    """Sign in, and write the pictures: light, dark, and on a phone."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Your name").fill("ana")
    page.get_by_role("button", name="Sign in").click()
    page.locator("[data-link=live]").wait_for()
    state = context.storage_state()
    home = link.partition("/sign-in")[0] + "/"
    phone = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
    wide = {"viewport": {"width": 1000, "height": 800}}
    looks = {
        "inbox": (wide, "light", 0),
        "inbox-dark": (wide, "dark", 1),
        "inbox-phone": (phone, "light", 0),
    }
    for name, (screen, scheme, card) in looks.items():
        look = browser.new_context(
            **screen, color_scheme=scheme, storage_state=state, device_scale_factor=1.5
        )
        page = look.new_page()
        page.goto(home)
        page.locator("[data-link=live]").wait_for()
        page.locator("#list > .card").nth(2).wait_for()
        if card:
            page.locator("#list > .card").nth(card).evaluate(
                "card => scrollTo(0, card.getBoundingClientRect().top - 90)"
            )
        page.screenshot(path=HERE / f"{name}.png")
        look.close()


if __name__ == "__main__":
    main()
