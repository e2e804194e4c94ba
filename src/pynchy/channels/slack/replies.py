"""Turn a click or a reply in a thread into a Reply, or say what is missing.

Where a reply may be for one of several questions, the person says by a click which was meant.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from pynchy.channels.slack import blocks
from pynchy.channels.slack.blocks import one_line
from pynchy.channels.slack.card_index import PostedCard
from pynchy.channels.slack.limits import Block
from pynchy.channels.slack.payloads import Click, ThreadReply
from pynchy.choices import read_typed, read_word
from pynchy.errors import InvalidReply
from pynchy.fair_order import fair_order
from pynchy.model import Answer, Question, Reply

_REMEMBERED = 500
_OFFERED = 8
_BRIEF_CHOICE = 200

# Neither “1.5 GB” nor “1:30” is numbered.
_NUMBERED = re.compile(r"([0-9]{1,2})\s*(?::(?![0-9])|[.)](?=\s))\s*(\S.*)\Z")
_INDEX = re.compile(r"[0-9]{1,4}\Z")
_BRIEF = 80


class AmbiguousReply(InvalidReply):
    """The reply may be for any of `waiting`."""

    def __init__(self, why: str, waiting: Sequence[PostedCard]) -> None:
        short_ids = [posted.short_id for posted in waiting]
        super().__init__(
            f"{why}: choose the one that you mean, or begin your reply with the id of it "
            f"(open: {', '.join(short_ids)}), such as “{short_ids[-1]}: yes”"
        )
        self.waiting = waiting


class AmbiguousReplies:
    """The replies that somebody may yet say more about; the oldest are forgotten."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[str, str], ThreadReply] = OrderedDict()

    def offer(self, said: ThreadReply, waiting: Sequence[PostedCard]) -> list[Block]:
        """Remember the reply. Return buttons that say what it is for, the newest question first.

        No group takes all of them.
        """
        self._said[said.channel, said.ts] = said
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        order = fair_order(range(len(waiting)), lambda at: -at, lambda at: waiting[at].group)
        return [_choice(said, waiting[at]) for at in order[:_OFFERED]]

    def resolve(self, click: Click, cards: Sequence[PostedCard]) -> PostedCard | None:
        """Return which of the cards the click names."""
        _, _, short_id = click.value.partition(" ")
        request_id = blocks.request_of(click.block_id)
        fits = (s for s in cards if (s.request_id, s.short_id) == (request_id, short_id))
        return next(fits, None)

    def said(self, click: Click) -> ThreadReply:
        """Return the reply that the click is about. Raise InvalidReply if it is not known."""
        ts, _, _ = click.value.partition(" ")
        said = self._said.get((click.channel, ts))
        if said is None or said.person.user_id != click.person.user_id:
            raise InvalidReply(
                "that reply is forgotten here: write it again, and begin with the id"
            )
        return said


def _choice(said: ThreadReply, posted: PostedCard) -> Block:
    asked = one_line(" / ".join(question.text for question in posted.questions), _BRIEF_CHOICE)
    button = blocks.button("This one", blocks.MEANT, f"{said.ts} {posted.short_id}")
    return blocks.section(f"{posted.short_id} · {posted.group}: {asked}") | {
        # Groups that share a thread may use the same request id.
        "block_id": blocks.make_block_id(posted.request_id, f"meant:{posted.short_id}"),
        "accessory": button,
    }


@dataclass(frozen=True, slots=True)
class Author:
    """Who replies, and in which channel."""

    by: str
    user_id: str
    channel: str

    def reply(
        self,
        posted: PostedCard,
        *,
        answers: tuple[Answer, ...] = (),
        values: tuple[str, ...] = (),
        question: int | None = None,
    ) -> Reply:
        """Return what the person says to the card."""
        return Reply(
            target=posted.request_id,
            group=posted.group,
            by=self.by,
            channel=self.channel,
            values=values,
            answers=answers,
            question=question,
            user_id=self.user_id,
            chat=posted.jid,
        )


def from_click(sender: Author, posted: PostedCard, click: Click) -> Reply:
    """Return the answer that the click gives. Raise InvalidReply with what is missing."""
    kind, _, rest = click.action_id.removeprefix(blocks.PREFIX).partition(":")
    if f"{blocks.PREFIX}{kind}" == blocks.PICK:
        number, option = _pair(rest)
        answer = Answer((_label(posted, number, option),), click.written(number))
        return sender.reply(posted, answers=(answer,), question=_only(posted, number))
    which = rest or click.value
    if _INDEX.match(which):
        return _one(sender, posted, click, int(which))
    return sender.reply(posted, answers=_all(posted, click))


def from_words(
    sender: Author, posted: PostedCard, text: str, question: int | None, *, is_aimed: bool = False
) -> Reply:
    """Return the answer that a reply in the thread gives. Raise InvalidReply if it is unclear.

    `is_aimed`: the reply has named the question.
    """
    if posted.questions[0].needs_word:
        answer = read_word(posted.questions[0], posted.short_id, text, is_aimed=is_aimed)
        return sender.reply(posted, answers=(answer,))
    if len(posted.questions) == 1 or question is not None:
        return sender.reply(posted, values=(text,), question=question)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbered = [match for line in lines if (match := _NUMBERED.match(line))]
    if numbered and len(numbered) == len(lines):
        return _by_number(
            sender, posted, {int(m.group(1)): m.group(2) for m in numbered}, len(lines)
        )
    if numbered or len(lines) != len(posted.questions):
        raise _unclear(posted)
    return sender.reply(posted, values=tuple(lines))


def _by_number(sender: Author, posted: PostedCard, said: dict[int, str], lines: int) -> Reply:
    """Return the answers in the order of the questions, whatever order they were given in."""
    count = len(posted.questions)
    known = said.keys() <= set(range(1, count + 1))
    if known and lines == len(said) == count:
        return sender.reply(posted, values=tuple(said[number] for number in sorted(said)))
    if known and lines == 1:
        [(number, text)] = said.items()
        return sender.reply(posted, values=(text,), question=number)
    raise _unclear(posted)


def _unclear(posted: PostedCard) -> InvalidReply:
    count = len(posted.questions)
    return InvalidReply(
        f"{count} questions were asked: reply with {count} lines, one for each, either all with "
        "the number of their question or none; or answer one alone, such as “2: yes”"
    )


def without_short_id(text: str, short_id: str) -> str | None:
    """Return what follows the short id at the start of a reply; None if it is not there."""
    addressed = re.compile(rf"(?i)#?{re.escape(short_id)}\b[\s:,]*(.*)\Z", re.DOTALL)
    match = addressed.match(text.strip())
    return match.group(1) if match else None


def is_word_and_id(text: str, short_id: str) -> bool:
    """True for “approve ab2c …”: a reply that names its question after its first word."""
    return re.match(rf"(?i)\s*\w+\s+#?{re.escape(short_id)}(?!\w)", text) is not None


def _one(sender: Author, posted: PostedCard, click: Click, number: int) -> Reply:
    answer = _answer(posted, click, number)
    if answer is None:
        words = " or write your answer" if _question(posted, number).takes_words_alone else ""
        raise InvalidReply(f"choose something{words}, then submit")
    only = _only(posted, number)
    if answer.selected or answer.text is None:
        return sender.reply(posted, answers=(answer,), question=only)
    # What was typed may be the number of an option.
    return sender.reply(posted, values=(answer.text,), question=only)


def _all(posted: PostedCard, click: Click) -> tuple[Answer, ...]:
    answers = [_answer(posted, click, number) for number in range(len(posted.questions))]
    missing = [_name(posted, number) for number, answer in enumerate(answers) if answer is None]
    if missing:
        raise InvalidReply(f"still missing: {'; '.join(missing)}")
    return tuple(
        _typed(posted.questions[number], answer)
        for number, answer in enumerate(answers)
        if answer is not None
    )


def _answer(posted: PostedCard, click: Click, number: int) -> Answer | None:
    labels = tuple(_label(posted, number, option) for option in click.ticked(number))
    text = click.written(number)
    return Answer(labels, text) if labels or text else None


def _typed(question: Question, answer: Answer) -> Answer:
    """Return the answer with the option that was typed, by its label or number, as chosen."""
    if answer.selected or answer.text is None or not question.options:
        return answer
    return read_typed(question, (answer.text,))


def _name(posted: PostedCard, number: int) -> str:
    question = _question(posted, number)
    return f"{number + 1}. {one_line(question.header or question.text, _BRIEF)}"


def _only(posted: PostedCard, number: int) -> int | None:
    return None if len(posted.questions) == 1 else number + 1


def _label(posted: PostedCard, number: int, option: int) -> str:
    options = _question(posted, number).options
    if option >= len(options):
        raise InvalidReply("this card does not belong to the question")
    return options[option].label


def _question(posted: PostedCard, number: int) -> Question:
    if number >= len(posted.questions):
        raise InvalidReply("this card does not belong to the question")
    return posted.questions[number]


def _pair(rest: str) -> tuple[int, int]:
    number, _, option = rest.partition(":")
    if not (_INDEX.match(number) and _INDEX.match(option)):
        raise InvalidReply("this card does not belong to the question")
    return int(number), int(option)
