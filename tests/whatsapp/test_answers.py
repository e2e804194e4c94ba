"""Questions in WhatsApp, answered there: agent, serve, the child, neonize, and all the way back."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.slack.support import DEPLOY, YES_NO
from tests.standins.whatsapp import STAND_IN, Person, SentText
from tests.standins.whatsapp.events import reaction, text, wrapped
from tests.standins.whatsapp.server import ACCOUNT, ACCOUNT_LID
from tests.whatsapp.support import ANA, ANOTHER, EVE, Lobby, Room, chat_of

from agent_runner.asking import Outcome, Question

Act = Callable[[Room, SentText], Any]


async def test_a_number_that_quotes_the_card_answers_it(room: Room) -> None:
    asked, card = await room.asked()

    room.ana.say(room.chat, "1", quote=card)

    assert await asked.answer() == (("Yes",), None)
    await room.told("answered", "Yes", "Ana", f"+{ANA}", quoting=card)


def as_lid(room: Room, card: SentText) -> None:
    room.ana.seen_as = "lid"
    room.ana.say(room.chat, "1", quote=card)


def as_lid_alone(room: Room, card: SentText) -> None:
    room.ana.seen_as = "lid alone"
    room.ana.say(room.chat, "1", quote=card)


def from_another_device(room: Room, card: SentText) -> None:
    room.ana.device = 23
    room.ana.say(room.chat, "1", quote=card)


WAYS: dict[str, Act] = {
    "under a hidden id with the number beside it": as_lid,
    "under a hidden id alone": as_lid_alone,
    "from another device": from_another_device,
    "as a disappearing message": lambda room, card: room.ana.send(
        room.chat, wrapped("ephemeralMessage", text("1", card.message_id))
    ),
    "twice wrapped": lambda room, card: room.ana.send(
        room.chat,
        wrapped("deviceSentMessage", wrapped("ephemeralMessage", text("1", card.message_id))),
    ),
    "as a keycap": lambda room, card: room.ana.say(room.chat, "1️⃣", quote=card),
    "as a reaction": lambda room, card: room.ana.react(room.chat, "1️⃣", card),
    "as a wrapped reaction": lambda room, card: room.ana.send(
        room.chat, wrapped("ephemeralMessage", reaction("1️⃣", card.message_id))
    ),
    "as the caption of a picture": lambda room, card: room.ana.send(
        room.chat,
        {"imageMessage": {"caption": "yes", "contextInfo": {"stanzaID": card.message_id}}},
    ),
    "as the label": lambda room, _: room.ana.say(room.chat, "Yes"),
    "as a bare number to the only card": lambda room, _: room.ana.say(room.chat, "1"),
    "twice with the same id": lambda room, card: [
        room.ana.send(room.chat, text("1", card.message_id), message_id=f"TWICE{room.group}")
        for _ in range(2)
    ],
}


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_counts_that_comes(room: Room, way: str) -> None:
    asked, card = await room.asked()

    WAYS[way](room, card)

    assert await asked.answer() == (("Yes",), None)
    settled = await room.told("answered", quoting=card)
    assert room.texts() == [card, settled]


async def test_what_is_no_answer_is_left_alone(room: Room) -> None:
    asked, card = await room.asked()
    everything: list[Any] = [
        {"imageMessage": {"contextInfo": {"stanzaID": card.message_id}}},
        {"stickerMessage": {"contextInfo": {"stanzaID": card.message_id}}},
        {"audioMessage": {}},
        {"locationMessage": {}},
        {"protocolMessage": {"key": {"ID": card.message_id}, "type": "MESSAGE_EDIT"}},
        {"editedMessage": {"message": text("1", card.message_id)}},
        reaction("", card.message_id),
        reaction("👍", card.message_id),
        reaction("1️⃣", "of another message"),
        text("what a day"),
        text("/deploy 1"),
        text("   "),
        {},
    ]

    for content in everything:
        room.ana.send(room.chat, content)
    edited = room.ana.event(room.chat, text("1", card.message_id), "EDIT1")
    room.whatsapp.say_message(edited | {"IsEdit": True})
    room.ana.say(room.chat, "1", at=time.time() - 3600)
    room.eve.say(room.chat, "1", quote=card)
    room.eve.react(room.chat, "1️⃣", card)
    echo = room.whatsapp.owner()
    echo.send(room.chat, text(card.text), message_id=card.message_id)
    room.ana.say("status@broadcast", "1", quote=card)
    room.ben.say(room.chat, "2", quote=card)

    assert await asked.answer() == (("No",), None)
    settled = await room.told("answered", "Ben", quoting=card)
    assert room.texts() == [card, settled]


async def test_a_message_of_another_under_the_cards_id_is_not_the_card(room: Room) -> None:
    asked, card = await room.asked()

    room.ana.send(room.chat, text("1", card.message_id, "Pizza tonight? 1 yes", EVE))
    room.ana.send(room.chat, reaction("1️⃣", card.message_id, EVE))
    room.ben.say(room.chat, "2", quote=card)

    assert await asked.answer() == (("No",), None)


async def test_nothing_of_another_chat_is_kept(lobby: Lobby, room: Room) -> None:
    asked, card = await room.asked()
    private = "the safe is behind the picture"

    room.ana.say("120363999999999999@g.us", private)
    room.eve.seen_as, room.eve.lid = "lid alone", "855555555555555@lid"
    room.eve.say(room.eve.jid, private)
    room.ana.say(room.chat, "1", quote=card)

    assert await asked.answer() == (("Yes",), None)
    await room.told("answered", quoting=card)
    files = [path for path in (lobby.host.data / "whatsapp").rglob("*") if path.is_file()]
    assert not [path for path in files if private in path.read_text(errors="replace")]


async def test_the_process_that_talks_to_whatsapp_does_not_see_the_host_s_secrets(
    lobby: Lobby,
) -> None:
    serving = json.loads((lobby.host.data / "host.json").read_bytes())["pid"]
    host, child = (
        Path(f"/proc/{pid}/environ").read_text() for pid in (serving, lobby.whatsapp.pids[-1])
    )

    assert STAND_IN in child
    assert (ANOTHER in host, ANOTHER in child) == (True, False)


async def test_of_two_open_questions_each_gets_its_own_answer(room: Room) -> None:
    first, first_card = await room.asked()
    second, second_card = await room.asked(Question("Tea?", options=YES_NO))

    room.ana.say(room.chat, "1")
    await room.told(f"#{room.short_id(first)}", f"#{room.short_id(second)}")
    room.ana.say(room.chat, f"#{room.short_id(second)} 2")
    room.ben.say(room.chat, "1", quote=first_card)

    assert await second.answer() == (("No",), None)
    assert await first.answer() == (("Yes",), None)
    await room.told("answered", "Ana", quoting=second_card)
    await room.told("answered", "Ben", quoting=first_card)


async def test_an_answer_in_one_chat_is_none_in_another(lobby: Lobby, room: Room) -> None:
    other = lobby.room()
    here, card = await room.asked()
    there, other_card = await other.asked()

    room.ana.say(room.chat, "2", quote=other_card)
    room.ana.say(room.chat, f"#{room.short_id(there)} 2")
    room.ana.say(room.chat, "1", quote=card)
    other.ben.say(other.chat, "2", quote=other_card)

    assert await here.answer() == (("Yes",), None)
    assert (await there.answer(), (await there.result()).answered_by) == (
        (("No",), None),
        f"Ben (+{other.ben.jid.partition('@')[0]})",
    )
    await other.close()


async def test_a_number_that_no_option_has_gets_a_hint_and_changes_nothing(room: Room) -> None:
    asked, card = await room.asked()

    room.ana.say(room.chat, "9", quote=card)
    hint = (await room.said(2))[1]
    room.ana.say(room.chat, "2", quote=hint)

    assert await asked.answer() == (("No",), None)


async def test_several_questions_are_answered_one_by_one(room: Room) -> None:
    asked, card = await room.asked(DEPLOY, Question("When?"))

    room.ana.say(room.chat, "1: yes", quote=card)
    await room.told("still to be answered")
    room.ana.say(room.chat, "2: tonight", quote=card)

    result = await asked.result()
    assert [(a.selected, a.text) for a in result.answers] == [(("Yes",), None), ((), "tonight")]


async def test_a_person_may_decline(room: Room) -> None:
    asked, card = await room.asked()

    room.ana.say(room.chat, "cancel", quote=card)

    assert (await asked.result()).outcome is Outcome.DECLINED
    await room.told("declined", "Ana", quoting=card)


async def test_who_comes_second_is_told_once_how_it_ended(room: Room) -> None:
    asked, card = await room.asked()
    room.ana.say(room.chat, "1", quote=card)
    await asked.answer()
    await room.told("answered", quoting=card)

    late = room.ben.say(room.chat, "2", quote=card)
    room.ben.say(room.chat, "2", quote=card)
    await room.told("over already", "Yes", quoting=late)
    next_asked, next_card = await room.asked(Question("Tea?", options=YES_NO))
    room.ben.say(room.chat, "2", quote=next_card)

    assert await next_asked.answer() == (("No",), None)
    assert len([s for s in room.texts() if "over already" in s.text]) == 1


async def test_a_withdrawn_question_says_so(room: Room) -> None:
    asked, card = await room.asked()

    await room.withdraw(asked)

    await room.told("withdrawn", quoting=card)


async def test_a_mention_in_the_question_mentions_nobody(room: Room) -> None:
    _, card = await room.asked(Question("Ask @491701111111 or @everyone?", options=YES_NO))

    assert "@491701111111" in card.text
    assert card.mentions == ()


async def test_in_a_direct_chat_plain_words_answer_the_only_question(lobby: Lobby) -> None:
    room = lobby.named("one", f"{ANA}@s.whatsapp.net")
    asked, _ = await room.asked(Question("Why?"))

    room.ana.seen_as = "lid alone"
    room.ana.say(room.chat, "because it is late")

    assert await asked.answer() == ((), "because it is late")
    await room.close()


@pytest.mark.parametrize("chat", [ACCOUNT, ACCOUNT_LID])
async def test_in_the_chat_with_oneself_own_messages_count_and_echoes_do_not(
    lobby: Lobby, chat: str
) -> None:
    room = lobby.named("self", ACCOUNT)
    owner: Person = lobby.whatsapp.owner()
    owner.seen_as = "phone" if chat == ACCOUNT else "lid alone"
    asked, card = await room.asked(Question(f"Why, {chat}?"))

    owner.send(chat, text(card.text), message_id=card.message_id)
    owner.send(chat, text(card.text))
    owner.say(chat, "because I say so")

    assert await asked.answer() == ((), "because I say so")
    await room.told("answered", quoting=card)
    await room.close()


async def test_people_of_one_group_do_not_answer_for_another_in_the_same_chat(
    lobby: Lobby,
) -> None:
    room = lobby.named("beside", chat_of(0))
    asked, card = await room.asked()

    room.ana.say(room.chat, "1", quote=card)
    room.ben.say(room.chat, "2", quote=card)

    assert await asked.answer() == (("No",), None)
    await room.close()
