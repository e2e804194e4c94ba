"""A card whose question is over: what was asked stays, how it ended is said, controls are gone."""

from __future__ import annotations

from collections.abc import Iterator

from pynchy.channels.slack import blocks, limits
from pynchy.channels.slack.limits import Block
from pynchy.channels.slack.pages import Role
from pynchy.channels.slack.render import SlackMessage, frame, layout
from pynchy.channels.slack.text import clip, one_line
from pynchy.channels.wording import describe
from pynchy.model import Answer, Card, Ending, Question, RequestId

# How much of the answers is shown, the more the better.
_ANSWERS = (2_000, 600, 120)
_BRIEF = 300


def render_settled(
    request_id: RequestId, questions: tuple[Question, ...], card: Card, ending: Ending, here: str
) -> tuple[SlackMessage, ...]:
    """Return what each message of the card becomes; `here` is the name of this channel."""
    headline = describe(ending, here, one_line)
    text = blocks.fallback(f"{headline} ({card.short_id})")
    pages = layout(request_id, questions, card)
    first = SlackMessage(
        text, _first(questions, card, ending, headline, pages[0].blocks(Role.ASKED))
    )
    more = [SlackMessage(text, _later(headline, page.blocks(Role.ASKED))) for page in pages[1:]]
    return (first, *more)


def settled_remainder(card: Card, ending: Ending, here: str) -> SlackMessage:
    """Return what a message of the card becomes that nothing is known of but that it is ours."""
    headline = describe(ending, here, one_line)
    return SlackMessage(blocks.fallback(f"{headline} ({card.short_id})"), _later(headline, []))


def _first(
    questions: tuple[Question, ...], card: Card, ending: Ending, headline: str, asked: list[Block]
) -> list[Block]:
    """Return the question, whole, with as much of the answer as there is room for."""
    top = frame(questions, card)
    made: list[Block] = []
    for most in _ANSWERS:
        made = [*_result(questions, ending, headline, most), *_delivery(card, most)]
        if _fit([*top, *asked, *made]):
            return [*top, *asked, *made]
    while asked and not _fit([*top, *asked, *made]):
        asked = asked[:-1]
    return [*top, *asked, *made]


def _fit(made: list[Block]) -> bool:
    return len(made) <= limits.BLOCKS and sum(map(limits.size, made)) <= limits.BUDGET


def _later(headline: str, asked: list[Block]) -> list[Block]:
    return [*asked, blocks.context(headline)]


def _result(
    questions: tuple[Question, ...], ending: Ending, headline: str, most: int
) -> Iterator[Block]:
    yield blocks.section(headline)
    if len(ending.answers) == 1 and len(_said(ending.answers[0])) > _BRIEF:
        yield blocks.section(clip(_said(ending.answers[0]), most))
    if len(ending.answers) > 1:
        for question, answer in zip(questions, ending.answers, strict=False):
            said = clip(_said(answer), most // len(questions))
            asked = one_line(question.text, min(most, _BRIEF))
            yield blocks.section(f"{asked}\n→ {said}")


def _delivery(card: Card, most: int) -> list[Block]:
    return [blocks.context(clip(card.delivery, most))] if card.delivery else []


def _said(answer: Answer) -> str:
    return answer.describe()
