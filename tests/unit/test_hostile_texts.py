"""What agents write costs every screen time in proportion to its length, whatever it looks like."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.unit.inbox.test_floods import grows_no_faster

from pynchy import wire
from pynchy.bridge.cards import card_of
from pynchy.calls import ToolCall
from pynchy.channels import numbered
from pynchy.channels.slack import render as slack
from pynchy.cli.question_text import question_sheet
from pynchy.cli.screen import markdown_text
from pynchy.cli.text import clean, flat
from pynchy.cli.views import read_question
from pynchy.fences import Part, split_code
from pynchy.inbox import markdown
from pynchy.inbox.views import card_view
from pynchy.model import Kind, Option, Question, RequestId
from pynchy.permissions.card import approval_question, describe_call
from pynchy.testing import make_pending

SHAPES = {
    "fences that nothing closes": "```a\n",
    "fences that close each other": "```\n",
    "tildes": "~~~ a\n",
    "backticks": "`",
    "backticks and letters": "`a",
    "blanks": " ",
    "blank lines": " \n",
    "blanks in no line": "a" + " " * 15,
    "no-break spaces": "\u00a0",
    "tabs and lines": "\t\n",
    "marks of markup": "*a_b~",
    "brackets": "[a](",
    "quotes": "> ",
    "lists": "- ",
    "numbers": "1. a\n",
    "tables": "|-\n",
    "heads of a diff": "--- a\n@@ ",
    "names of characters": "⟨U+202E",
    "hidden characters": "\u202ea",
    "entities": "&#x202e;",
    "hashes": "#a ",
    "carriage returns": "\r",
    "diffs that nothing closes": "```diff\n",
}


def longer_and_longer(length: int) -> str:
    """Return fences each of which is longer than the one before, so that none closes another."""
    text = "".join("`" * size + "\n" for size in range(3, 3 + int((2 * length) ** 0.5)))
    return text[:length]


def gap_within(length: int) -> str:
    """Return words with blanks between them, and none at their ends."""
    return f"a{' ' * (length - 2)}a"


def shape(pattern: str, length: int) -> str:
    return (pattern * length)[:length]


def show_in_slack(text: str) -> None:
    show_options_in_slack("", text)


def show_options_in_slack(described: str, text: str = "Which?") -> None:
    question = Question(text=text, options=(Option("Yes", described), Option("No")))
    pending = make_pending(questions=(question,))
    slack.render(RequestId("r"), (question,), card_of(pending))
    slack.is_whole((question,), card_of(pending))


def show_numbered(text: str) -> None:
    for question in (Question(text=text), approval_question(text, text, text, "low")):
        card = card_of(make_pending(questions=(question,)))
        numbered.render_card((question,), card, 16_000)
        numbered.fits_whole((question,), card, 16_000)


def describe(text: str) -> None:
    fields = {"command": text, "description": text, "content": text, "file_path": text}
    for tool in ("Bash", "Write", "Edit", "mcp__any__tool"):
        describe_call(ToolCall(text[:500], tool, fields, text))
    describe_call(ToolCall("claude", "Edit", {"old_string": text, "new_string": text[::-1]}))


def show_by_command(text: str) -> None:
    seen = wire.pending_view(make_pending(questions=(Question(text=text),)))
    assert list(question_sheet(read_question(seen)))


def show_on_page(text: str) -> None:
    question = approval_question(text, "", text, "low")
    card_view(make_pending(questions=(question,), kind=Kind.APPROVAL))


SCREENS: dict[str, Callable[[str], object]] = {
    "slack": show_in_slack,
    "options in slack": show_options_in_slack,
    "numbered": show_numbered,
    "card": describe,
    "page": show_on_page,
    "command": show_by_command,
    "markdown": markdown.render,
    "code": markdown.code,
    "terminal": markdown_text.markdown,
    "terminal code": markdown_text.code,
    "lists": flat,
    "printed": clean,
}


@pytest.mark.parametrize("screen", SCREENS)
def test_one_text_held_up_every_other_question(screen: str) -> None:
    show = SCREENS[screen]
    texts = {name: (shape(p, 1_500), shape(p, 6_000)) for name, p in SHAPES.items()}
    texts["longer and longer"] = (longer_and_longer(1_500), longer_and_longer(6_000))
    texts["one long gap"] = (gap_within(1_500), gap_within(6_000))

    slow = {
        name
        for name, (short, long) in texts.items()
        if not grows_no_faster(partial(show, short), partial(show, long), 8)
    }

    assert slow == set()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a\n```sh\nb\n```\nc", ["a", "code: b", "c"]),
        ("```\na\n\nb\n```", ["code: a\n\nb"]),
        ("````\n```\na\n````", ["code: ```\na"]),
        ("```\na\n`````  ", ["code: a"]),
        ("~~~\n```\n~~~\n```\na\n```", ["code: ```", "code: a"]),
        ("```\na\n~~~\n````b", ["```\na\n~~~\n````b"]),
        ("````\na\n```\nb\n```", ["````\na", "code: b"]),
        ("```rm -r /\na\n```", ["code: rm -r /\na"]),
        ("a ```b``` c\n```", ["a ```b``` c\n```"]),
        ("```a`b\n```\nc\n```", ["```a`b", "code: c"]),
        ("```\r\na\r\n```\r\nb", ["code: a", "b"]),
        ("```production\nold rows\n```", ["code: production\nold rows"]),
        ("```Python\na\n```", ["code: a"]),
        ("~~~everything\n~~~", ["code: everything"]),
        ("", []),
    ],
)
def test_code_is_told_from_words(text: str, parts: list[str]) -> None:
    def told(part: Part) -> str:
        return f"code: {part.text}" if part.is_code else part.text

    assert [told(part) for part in split_code(text)] == parts
