"""Questions as numbered text and answers as numbers: for every channel that has only text.

Pure: nothing here talks to a service or to pynchy, or reads a clock. What is said without a target
is never an answer where it could be meant for something else: then the person is asked back.

How a channel uses it:

    text = render_card(questions, card, limit)        show it; keep the id of the message
    reading = read(ChatMessage(text, at, private, quoted), cards)
    reading = read_reaction(Reacted(emoji, message_id, at), cards)

`cards` are the NumberedCards of that one chat: open ones (`NumberedCard.of` makes them from what
`ReplyHandler.open_cards` returns) and, with `over=True`, those that ended lately. Then

    match reading:
        case Answers():   for each of reading.replies(sender): await handler.answer(reply);
                          if the question it returns has no ending yet, say noted(pending)
        case Decline():   await handler.decline(aim(reading.card, sender), reading.reason)
        case Hint():      say reading.text, and add the id of that message to the card's
                          `message_ids`, so that quoting the hint counts as quoting the card
        case TooLate():   say how it ended: AlreadyOver knows, through refusal(exc);
                          once for each person is enough
        case NotForUs():  nothing: other programs may have been meant

`sender` is a Reply with by, channel, user_id and chat; target and answers are filled in. Whatever
the reply handler refuses (ReplyRejected) is said with refusal(exc). When the question is over,
render_settled(questions, card, ending, here, limit) is the follow-up text.

Who may answer is not decided here; but a channel does well to ask before it says a Hint in a
group, and to say none to people who may not answer.
"""

from pynchy.channels.numbered.parse import read, read_reaction
from pynchy.channels.numbered.render import (
    SMALLEST_LIMIT,
    fits_whole,
    noted,
    refusal,
    render_card,
    render_settled,
)
from pynchy.channels.numbered.types import (
    Answers,
    ChatMessage,
    Decline,
    Hint,
    NotForUs,
    NumberedCard,
    PartAnswer,
    Reacted,
    Reading,
    TooLate,
    aim,
)

__all__ = [
    "SMALLEST_LIMIT",
    "Answers",
    "ChatMessage",
    "Decline",
    "Hint",
    "NotForUs",
    "NumberedCard",
    "PartAnswer",
    "Reacted",
    "Reading",
    "TooLate",
    "aim",
    "fits_whole",
    "noted",
    "read",
    "read_reaction",
    "refusal",
    "render_card",
    "render_settled",
]
