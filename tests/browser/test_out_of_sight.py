"""Nobody allows what is behind an edge: all of an approval is inside its card, on any screen."""

import pytest
from playwright.async_api import expect
from tests.acceptance.support import Host, MailboxAgent
from tests.browser.conftest import OpenWindow

SCREENS = {
    "desktop": {"viewport": {"width": 1200, "height": 900}},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}
HIDDEN = "drop-production"


def table(*cells: str) -> str:
    """Return a table whose head has as many empty cells."""
    rows = ([" "] * len(cells), ["-"] * len(cells), cells)
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def nested(mark: str, depth: int, step: str = "") -> str:
    return "\n".join(step * at + mark + ("x" if at < depth - 1 else HIDDEN) for at in range(depth))


ATTACKS = {
    "a wide table": table("ok", *" " * 56, "then", HIDDEN),
    "many columns and one cell in the middle": table(*" " * 30, HIDDEN, *" " * 30),
    "a table in a quote": "> " + table("ok", *" " * 40, HIDDEN).replace("\n", "\n> "),
    "a table with one long cell": table("ok", "x" * 900 + HIDDEN),
    "nested quotes": ">" * 60 + f" {HIDDEN}",
    "nested lists": nested("- ", 38, "  "),
    "nested numbers": nested("1. ", 30, "   "),
    "quotes and lists in turns": "> - " * 30 + HIDDEN,
    "code in nested quotes": "> " * 20 + "```\n" + "> " * 20 + f"{HIDDEN}\n" + "> " * 20 + "```",
    "as deep as it is read": "> - " * 3 + "W" * 300 + HIDDEN,
    "a long number": f"999999999. {HIDDEN}",
    "a long word": "W" * 2_000 + HIDDEN,
    "a long heading": "# " + "W" * 900 + HIDDEN,
    "a long code span": "`" + "W" * 900 + HIDDEN + "`",
    "blanks that do not break": "ok" + "\u00a0" * 400 + HIDDEN,
    "a link with a long text": f"[{'W' * 900}{HIDDEN}](https://a.example/{'x' * 900})",
    "a long line of code": f"```\n{'x' * 900} {HIDDEN}\n```",
    "a long line of a diff": f"```diff\n+{'x' * 900} {HIDDEN}\n```",
    "an indented block": "    " + " " * 90 + HIDDEN,
    "a title of a fence": f"```{'x' * 600}{HIDDEN}\nok\n```",
    "nothing but rules": "---\n\n" * 12 + HIDDEN,
    "empty items": "- \n" * 12 + f"- {HIDDEN}",
    "from right to left": "\u05d0" * 400 + f" {HIDDEN} " + ">" * 30,
    "marks above marks": "Z" + "\u0301" * 200 + HIDDEN,
}
# Every piece of text in the card that is not inside it, or is cut by what it stands in.
OUT_OF_SIGHT = r"""card => {
    const bad = [], edge = card.getBoundingClientRect();
    const inside = (box, by) => box.left >= by.left - 1 && box.right <= by.right + 1;
    const cut = (box, by) => !inside(box, by) || box.top < by.top - 1 || box.bottom > by.bottom + 1;
    for (const part of card.querySelectorAll(".md, .words, h2:not(.hidden), .who")) {
        const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
        for (let text; (text = texts.nextNode());) {
            if (!text.data.trim() || text.parentElement.closest(".hidden")) continue;
            // Word by word: blanks at the end of a line may hang over the edge.
            const boxes = [...text.data.matchAll(/\S+/g)].flatMap((word) => {
                const range = document.createRange();
                range.setStart(text, word.index);
                range.setEnd(text, word.index + word[0].length);
                return [...range.getClientRects()].filter((box) => box.width && box.height);
            });
            const style = getComputedStyle(text.parentElement);
            if (!boxes.length) bad.push(["no box", text.data.slice(-40)]);
            if (parseFloat(style.fontSize) < 9) bad.push(["too small", text.data.slice(-40)]);
            const see = { opacityProperty: true, visibilityProperty: true };
            if (!text.parentElement.checkVisibility(see)) bad.push(["unseen", text.data]);
            const cutters = [];
            for (let up = text.parentElement; up !== card; up = up.parentElement) {
                const kind = getComputedStyle(up);
                const clips = kind.overflowX !== "visible" || kind.overflowY !== "visible";
                if (clips && kind.display !== "inline") cutters.push(up.getBoundingClientRect());
            }
            for (const box of boxes) {
                if (!inside(box, edge)) bad.push(["outside", text.data.slice(-40), box.right]);
                if (cutters.some((by) => cut(box, by))) bad.push(["cut", text.data.slice(-40)]);
            }
        }
    }
    return bad.slice(0, 5);
}"""


@pytest.mark.parametrize("screen", SCREENS)
async def test_part_of_an_approval_stood_behind_the_edge_of_its_card(
    host: Host, open_window: OpenWindow, screen: str
) -> None:
    agent = MailboxAgent(host.group("team"))
    asked = {
        name: agent.ask(questions=[], approval={"action": f"Clean up?\n\n{text}"})
        for name, text in ATTACKS.items()
    }
    await host.listed(len(asked))
    window = await open_window(host, **SCREENS[screen])

    await expect(window.cards()).to_have_count(len(asked))
    await window.settle_down()
    await window.page.evaluate(
        "document.querySelectorAll('[data-do=unfold]').forEach(b => b.click())"
    )

    out_of_sight = {}
    for name, request_id in asked.items():
        card = window.card(request_id)
        out_of_sight[name] = await card.evaluate(OUT_OF_SIGHT)
        assert HIDDEN in await card.locator(".md").inner_text(), name
        assert await card.locator("[data-value=approve][inert]").count() == 0, name

    assert {name: found for name, found in out_of_sight.items() if found} == {}
    width = await window.page.evaluate("document.documentElement.scrollWidth")
    assert width <= SCREENS[screen]["viewport"]["width"]
