"""Replies that may be for one of several questions: the person says by a click which was meant.

Nothing is taken until then, so a reply is never a guess.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from pynchy.channels.slack import blocks, ids
from pynchy.channels.slack.card_index import PostedCard
from pynchy.channels.slack.limits import Block
from pynchy.channels.slack.payloads import Click, ThreadReply
from pynchy.channels.slack.text import one_line
from pynchy.errors import InvalidReply

_REMEMBERED = 500
_OFFERED = 5
_BRIEF = 200


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
        """Remember the reply. Return buttons that say what it is for, the newest question first."""
        self._said[said.channel, said.ts] = said
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        return [_choice(said, posted) for posted in reversed(waiting[-_OFFERED:])]

    def resolve(self, click: Click, cards: Sequence[PostedCard]) -> PostedCard | None:
        """Return which of the cards the click names."""
        _, _, short_id = click.value.partition(" ")
        request_id = ids.request_of(click.block_id)
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
    asked = one_line(" / ".join(question.text for question in posted.questions), _BRIEF)
    button = blocks.button("This one", ids.MEANT, f"{said.ts} {posted.short_id}")
    return blocks.section(f"{posted.short_id}: {asked}") | {
        # Groups that share a thread may use the same request id.
        "block_id": ids.block_id(posted.request_id, f"meant:{posted.short_id}"),
        "accessory": button,
    }
