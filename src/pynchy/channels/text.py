"""What every chat channel says in the same words, and how long a text may be.

Lengths are counted as the strictest service does: in UTF-16 units.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pynchy.choices import approved_so_far
from pynchy.errors import AlreadyOver, ReplyRejected
from pynchy.model import Ending, OutcomeKind, PendingQuestion

REPEATED = "This card may be a repeat. It is the same question: one answer closes every copy."
FAILED = "Something went wrong here, and your answer was not taken. Please try again."
_BRIEF = 300
# What chats read as markup, and leave out.
_MARKUP = re.compile("[*_~]")


def length(text: str) -> int:
    """Return how long a service may take the text to be."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def head(text: str, most: int) -> str:
    """Return as much of the start of the text as is at most so long."""
    kept = text[:most]
    while length(kept) > most:
        kept = kept[: -max(1, (length(kept) - most) // 2)]
    return kept


def as_written(line: str) -> str:
    """Return the line with its code as chats write it; all of it is code if it has other markup."""
    words = line.split("`")
    if "``" in line or len(words) % 2 == 0 or _MARKUP.search("".join(words[::2])):
        return as_code(line)
    return "".join(as_code(word) if at % 2 else word for at, word in enumerate(words))


def as_code(line: str) -> str:
    """Return the line as code, in which a chat takes nothing for markup."""
    code = line.strip().replace("`", "⟨U+0060⟩")
    return f"{line[: len(line) - len(line.lstrip())]}```{code}```" if code else ""


def describe(ending: Ending, here: str, one_line: Callable[[str, int], str]) -> str:
    """Return in one line how the question ended; with a single answer, what it was.

    `here` is the channel that says it; `one_line` makes what others wrote harmless there, in a
    single line of at most so many characters.
    """
    by = f" by {one_line(ending.by, _BRIEF)}" if ending.by else ""
    single = len(ending.answers) == 1
    said = f": {one_line(ending.answers[0].describe(), _BRIEF)}" if single else ""
    why = f": {one_line(ending.reason, _BRIEF)}" if ending.reason else ""
    match ending.outcome:
        case OutcomeKind.ANSWERED if ending.channel != here:
            return f"Answered elsewhere{said}{by} ({ending.channel})"
        case OutcomeKind.ANSWERED:
            return f"Answered{said}{by}"
        case OutcomeKind.DECLINED:
            return f"Declined{by}{why}"
        case OutcomeKind.DEFAULTED:
            return f"Nobody answered; the agent took its own default{said}"
        case OutcomeKind.EXPIRED:
            return f"Expired{why or ': nobody answered in time'}"
        case OutcomeKind.WITHDRAWN:
            return f"Withdrawn{by}: no answer is needed any more"
        case OutcomeKind.UNDELIVERABLE:
            return f"Undeliverable{why}"
        case OutcomeKind.CLEARED:
            return f"No longer asked{why}"


def refusal(exc: ReplyRejected) -> str:
    """Return what the person is told whose reply the reply handler did not take."""
    if isinstance(exc, AlreadyOver):
        return f"This question is over already: {exc.ending.describe()}"
    return f"Not taken: {exc}"


def noted(pending: PendingQuestion) -> str:
    """Return what is said when some of the questions are answered, or some people have approved."""
    if pending.approvals_needed > 1:
        people = [draft.by for draft in pending.drafts]
        return f"Noted. {approved_so_far(people, pending.approvals_needed)}."
    numbers = range(1, len(pending.questions) + 1)
    left = [str(number) for number in numbers if number not in pending.answered]
    return f"Noted. Still to be answered: question {', '.join(left)}."
