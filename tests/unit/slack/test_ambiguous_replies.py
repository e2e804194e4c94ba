"""A reply that may be for several questions is kept, for a while, for its writer to say more."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.slack.cards import YES_NO
from tests.unit.slack.test_replies import posted_card

from pynchy.channels.slack import replies
from pynchy.channels.slack.limits import violations
from pynchy.channels.slack.payloads import Click, SlackUser, ThreadReply
from pynchy.channels.slack.replies import AmbiguousReplies, AmbiguousReply
from pynchy.errors import InvalidReply
from pynchy.model import GroupName, ShortId

ANA = SlackUser("U1", frozenset())
CARD = posted_card(YES_NO, ts="1.000001")
# Agents choose their request ids themselves.
NAMESAKE = replace(CARD, group=GroupName("other"), short_id=ShortId("zz22"))


def said(ts: str = "2.000001") -> ThreadReply:
    return ThreadReply(ANA, "C1", ts, "1.000001", "yes")


def pressed(block: dict[str, Any], person: SlackUser = ANA) -> Click:
    button = block["accessory"]
    ids = (button["action_id"], block["block_id"], button["value"])
    return Click(person, "C1", "3.000001", None, *ids, "3.1", ())


def test_the_question_that_is_chosen_is_the_one_that_is_meant() -> None:
    kept = AmbiguousReplies()

    offered = kept.offer(said(), [CARD, NAMESAKE])

    assert violations("text", offered) == []
    for block, meant in zip(offered, [NAMESAKE, CARD], strict=True):
        assert kept.said(pressed(block)) == said()
        assert kept.resolve(pressed(block), [CARD, NAMESAKE]) is meant


def test_one_group_takes_not_all_of_the_choices_and_each_names_its_group() -> None:
    many = [replace(NAMESAKE, short_id=ShortId(f"id{n:02}")) for n in range(30)]

    offered = AmbiguousReplies().offer(said(), [CARD, *many])

    told = [block["text"]["text"] for block in offered]
    assert any(text.startswith(f"{CARD.short_id} · {CARD.group}: ") for text in told)
    assert sum(" · other: " in text for text in told) == len(told) - 1


def test_only_the_writer_can_choose_and_only_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "_REMEMBERED", 2)
    kept = AmbiguousReplies()
    [old], [block], _ = (kept.offer(said(f"{n}.000001"), [CARD]) for n in (2, 3, 4))

    kept.said(pressed(block))
    with pytest.raises(InvalidReply, match="forgotten"):
        kept.said(pressed(block, SlackUser("U2", frozenset())))
    with pytest.raises(InvalidReply, match="forgotten"):
        kept.said(pressed(old))


def test_many_open_questions_are_named_and_the_newest_offered() -> None:
    many = [replace(CARD, short_id=ShortId(f"id{n:02}")) for n in range(30)]

    offered = AmbiguousReplies().offer(said(), many)

    assert [block["text"]["text"][:4] for block in offered] == [f"id{n}" for n in range(29, 21, -1)]
    assert "id00" in str(AmbiguousReply("several", many))
