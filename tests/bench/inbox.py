"""How soon the inbox shows itself with 500 open questions, and what one more of them costs.

First paint is when the page shows its content (cards, or that there are none), on an empty host and
on a full one in turn. The bytes of one new question are what the page's stream carries for it;
nothing else is requested. How soon it appears counts from the agent's file to the painted card.
"""

import asyncio
import json
import shutil
import sys
import time
from pathlib import Path

from playwright.async_api import BrowserContext, async_playwright
from tests.acceptance.support import Host, MailboxAgent
from tests.bench.figures import Line, Sample, Unit, line
from tests.browser.support import FLAGS, link
from tests.waiting import until

OPEN = 500
QUICK_OPEN = 60
ROUNDS = 15
QUICK_ROUNDS = 2
NEW = 10

# From the start of the navigation to the frame after the first card, or the note of none.
_PAINT = """() => new Promise(resolve => {
    const shown = () => document.querySelector("#list .card, [data-empty]:not([hidden])");
    const look = () => requestAnimationFrame(() => {
        if (shown()) requestAnimationFrame(() => resolve(performance.now()));
        else look();
    });
    look();
})"""
_WATCH = """() => {
    window.appeared = [];
    new MutationObserver(changes => {
        const cards = changes.flatMap(change => [...change.addedNodes]).filter(n => n.dataset?.key);
        if (!cards.length) return;
        requestAnimationFrame(() => requestAnimationFrame(() => {
            for (const card of cards) window.appeared.push([card.dataset.key, Date.now()]);
        }));
    }).observe(document.getElementById("list"), {childList: true});
}"""


# Whatever the page reads from its stream goes through here.
_OVERHEAR = """
    window.heard = [];
    const decode = TextDecoder.prototype.decode;
    TextDecoder.prototype.decode = function (...given) {
        const text = decode.apply(this, given);
        window.heard.push(text);
        return text;
    };
"""


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    path = shutil.which("chromium")
    if path is None:
        print("  left out: chromium is not installed", file=sys.stderr)  # noqa: T201 - progress
        return []
    return asyncio.run(_measure(folder, path, quick=quick))


async def _measure(folder: Path, path: str, *, quick: bool) -> list[Line]:
    few = Host(_made(folder / "few") / "data")
    many = Host(_made(folder / "many") / "data", "request_burst = 1000\n")
    try:
        await few.start()
        await many.start()
        await _fill(many, QUICK_OPEN if quick else OPEN)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
            empty, full = [await _signed_in(await browser.new_context(), h) for h in (few, many)]
            paints = [
                (await _first_paint(empty, few), await _first_paint(full, many))
                for _ in range(QUICK_ROUNDS if quick else ROUNDS)
            ]
            messages = await _new_questions(full, many)
            at_once = [await _appearing(context, h) for context, h in ((empty, few), (full, many))]
            await browser.close()
    finally:
        few.kill()
        many.kill()
    at_few, at_many = (Sample(values) for values in zip(*paints, strict=True))
    what = f"first paint of the inbox, {OPEN} open (limit: none open)"
    return [
        line("f1", what, Unit.MILLISECONDS, at_many, at_few, at_most_times=3),
        line("f2", "one new question on an open page", Unit.KILOBYTES, messages, at_most=16),
        line(
            "f3",
            f"one new question until it is painted, {OPEN} open (limit: none open)",
            Unit.MILLISECONDS,
            at_once[1],
            at_once[0],
        ),
    ]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def _fill(host: Host, count: int) -> None:
    agents = [MailboxAgent(host.group(f"group-{number}")) for number in range(10)]
    for number in range(count):
        agents[number % 10].ask(f"Which **way** for part {number}?", agent="bench")
    await host.listed(count)


async def _signed_in(context: BrowserContext, host: Host) -> BrowserContext:
    page = await context.new_page()
    await page.goto(await link(host))
    await page.get_by_role("button", name="Sign in").click()
    await page.locator("[data-link=live]").wait_for()
    await page.close()
    return context


async def _first_paint(context: BrowserContext, host: Host) -> float:
    page = await context.new_page()
    await page.goto(host.url + "/", wait_until="commit")
    painted = float(await page.evaluate(_PAINT))
    await page.close()
    return painted


async def _new_questions(context: BrowserContext, host: Host) -> Sample:
    """Return the kilobytes that came for each of some new questions."""
    page = await context.new_page()
    await page.add_init_script(_OVERHEAR)
    await page.goto(host.url + "/")
    await page.locator("[data-link=live]").wait_for()
    await page.locator("#list[data-more='0']").wait_for(state="attached")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    agent = MailboxAgent(host.group("new"))
    asked = [agent.ask(f"And part {n}?", agent="bench", urgency="high") for n in range(NEW)]

    async def heard() -> list[int]:
        sizes = _sizes(await page.evaluate("heard.join('')"), asked)
        return sizes if len(sizes) >= NEW else []

    came = await until(heard, "the messages")
    assert requests == [], "a new question must not make the page ask for more"
    await page.close()
    return Sample([size / 1000 for size in came])


def _sizes(stream: str, asked: list[str]) -> list[int]:
    """Return how many bytes the stream had for each card of these; repeats are not new."""
    first: dict[str, int] = {}
    for message in stream.split("\n\n")[:-1]:
        kind, _, data = message.partition("\ndata: ")
        if kind == "event: card":
            request_id = json.loads(data)["key"].partition("/")[2]
            if request_id in asked:
                first.setdefault(request_id, len(message.encode()))
    return list(first.values())


async def _appearing(context: BrowserContext, host: Host) -> Sample:
    """Return the milliseconds from each of some urgent questions to its painted card."""
    page = await context.new_page()
    await page.goto(host.url + "/")
    await page.locator("[data-link=live]").wait_for()
    await page.locator("#list[data-more='0']").wait_for(state="attached")
    await page.evaluate(_WATCH)
    agent, took = MailboxAgent(host.group("urgent")), []
    for number in range(NEW):
        asked_at = time.time() * 1000
        key = "urgent/" + agent.ask(f"Now {number}?", agent="bench", urgency="high")
        found = await page.wait_for_function(
            "key => appeared.find(([name]) => name === key)?.[1]", arg=key
        )
        took.append(await found.json_value() - asked_at)
    await page.close()
    return Sample(took)
