"""The parts of the channel that need no library: addresses, files, words, settings."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pynchy.bridge.cards import card_of
from pynchy.channels.loading import load_settings, make_channels
from pynchy.channels.numbered import NumberedCard
from pynchy.channels.whatsapp.addresses import normal
from pynchy.channels.whatsapp.child import cut_log
from pynchy.channels.whatsapp.connection_status import ConnectionState, ConnectionStatus, read_state
from pynchy.channels.whatsapp.inbound import read_groups
from pynchy.channels.whatsapp.inbound_queue import (
    MAX_TEXT,
    InboundMessage,
    InboundQueue,
    read_message,
)
from pynchy.channels.whatsapp.outbox import CARD, ChatCard, ChatCards, Outbox
from pynchy.config import Settings
from pynchy.errors import ConfigError
from pynchy.model import GroupName, Question, RequestId, ShortId
from pynchy.safe_folder import Folder
from pynchy.testing import NOON, make_pending

PHONE = "491701234567@s.whatsapp.net"
SAID = InboundMessage("3EB0", ("1@g.us",), (PHONE,), 1.0, "1")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("+49 170 123-4567", PHONE),
        ("491701234567", PHONE),
        ("+49 (170) 1234567", PHONE),
        (PHONE, PHONE),
        ("491701234567:23@s.whatsapp.net", PHONE),
        ("491701234567.1:23@s.whatsapp.net", PHONE),
        ("491701234567@c.us", PHONE),
        (" 811111111111111@lid ", "811111111111111@lid"),
        ("811111111111111:4@lid", "811111111111111@lid"),
        ("491701234567-1600000000@g.us", "491701234567-1600000000@g.us"),
        ("0170 1234567", ""),
        ("0049 170 1234567", ""),
        ("status@broadcast", ""),
        ("12345@newsletter", ""),
        ("Ana", ""),
        ("", ""),
        ("@s.whatsapp.net", ""),
        ("\uff11\uff12\uff13\uff14\uff15\uff16\uff17", ""),
        ("1" * 200, ""),
    ],
)
def test_an_address_is_the_same_however_it_is_written(written: str, expected: str) -> None:
    assert normal(written) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 10_000,
        json.dumps({"message_id": "x", "chats": "1@g.us"}).encode(),
        SAID.to_json().replace(b'"text", ', b'"poll", ').replace(b'"what": "text"', b'"what": 1'),
        SAID.to_json().replace(b"1.0", b"null"),
    ],
)
def test_a_damaged_message_on_the_queue_is_nothing_and_stops_nothing(
    tmp_path: Path, content: bytes
) -> None:
    queue = InboundQueue(tmp_path)
    queue.make()
    (tmp_path / "inbox" / "bad.json").write_bytes(content)

    assert read_message(content) is None
    assert queue.read("bad") is None
    assert queue.waiting() == ["bad"]


def test_what_is_read_from_the_queue_is_what_was_put_there(tmp_path: Path) -> None:
    queue = InboundQueue(tmp_path)
    queue.make()

    name = queue.put(SAID)

    assert name is not None
    assert queue.put(SAID) is None
    assert queue.read(name) == SAID
    queue.done(name)
    assert (queue.put(SAID), queue.waiting()) == (None, [])


def test_a_message_that_comes_again_under_another_form_of_its_sender_is_known(
    tmp_path: Path,
) -> None:
    lid = "811111111111111@lid"
    queue = InboundQueue(tmp_path)
    queue.make()
    alone = replace(SAID, chats=(lid,), senders=(lid,))

    assert queue.put(alone) is not None

    for forms in ((lid, PHONE), (PHONE, lid)):
        assert queue.put(replace(SAID, chats=forms, senders=forms)) is None
    assert queue.put(replace(alone, message_id="another")) is not None


def test_a_crash_between_handling_and_removing_is_finished_by_the_next_start(
    tmp_path: Path,
) -> None:
    queue = InboundQueue(tmp_path)
    queue.make()
    name = queue.put(SAID)
    (tmp_path / "handled" / str(name)).touch()

    queue.tidy()

    assert queue.waiting() == []


def test_another_outbox_knows_what_was_begun_and_never_confirmed(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.load()
    record = outbox.record(card_of(make_pending()), RequestId("q1"), " 1@g.us", "1@g.us")
    outbox.begin(record, CARD, "a card")
    (tmp_path / "outbox" / "damaged.json").write_bytes(b"{}")

    again = Outbox(tmp_path)
    [found] = again.load()

    assert (found.jid, found.address) == (" 1@g.us", "1@g.us")
    assert (found.parts[CARD].begun, found.parts[CARD].message_id) == (1, "")
    assert again.is_ours("unknown", "a card")
    assert not again.is_ours("unknown", "another text")


def test_a_card_whose_chat_was_corrected_is_sent_to_the_new_one(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.load()
    card = card_of(make_pending())
    outbox.begin(outbox.record(card, RequestId("q1"), "1@g.us", "1@g.us"), CARD, "a card")

    record = outbox.record(card, RequestId("q1"), "2@g.us", "2@g.us")

    assert (record.address, record.parts) == ("2@g.us", {})


def test_a_queue_that_is_used_for_months_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.channels.whatsapp.inbound_queue._MAX_HANDLED", 5)
    monkeypatch.setattr("pynchy.channels.whatsapp.inbound_queue._TIDY_EVERY", 5)
    queue = InboundQueue(tmp_path)
    queue.make()

    for number in range(23):
        queue.done(str(queue.put(replace(SAID, message_id=f"M{number}"))))

    assert len(list((tmp_path / "handled").iterdir())) < 10
    assert queue.put(replace(SAID, message_id="M22")) is None


def test_the_longest_message_that_quotes_the_longest_one_can_be_read_again(
    tmp_path: Path,
) -> None:
    queue = InboundQueue(tmp_path)
    queue.make()
    longest = replace(SAID, text="\U0001f642" * MAX_TEXT, quoted="\U0001f642" * MAX_TEXT)

    assert queue.read(str(queue.put(longest))) == longest


def test_names_that_a_stranger_made_too_long_are_the_same_when_they_are_read_again() -> None:
    long = "a" * 1_000
    said = replace(SAID, message_id=long, about=long, quoted_by=long, name=long).bounded()

    assert len(said.message_id) < len(long)
    assert read_message(said.to_json()) == said


def test_what_is_known_of_our_own_messages_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.channels.whatsapp.outbox._MAX_RECORDS", 3)
    monkeypatch.setattr("pynchy.channels.whatsapp.outbox._MAX_MARKS", 6)
    outbox = Outbox(tmp_path)
    outbox.load()

    for number in range(9):
        key = RequestId(f"q{number}")
        record = outbox.record(card_of(make_pending()), key, "1@g.us", "1@g.us")
        for _ in range(4):
            outbox.begin(record, CARD, f"card {number}")
            outbox.withdraw(record, CARD)
        outbox.sent(record, CARD, f"M{number}", 1.0)

    assert len(record.parts[CARD].digests) == 1
    assert outbox.is_ours("M8", "")
    assert outbox.is_ours("", "card 8")
    assert not outbox.is_ours("M0", "card 0")


def test_a_log_that_has_grown_too_long_is_emptied_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "child.log"
    with path.open("ab", buffering=0) as log_file:
        log_file.write(b"x" * 100)
        cut_log(log_file.fileno())
        short = path.stat().st_size
        log_file.write(b"x" * 5_000_000)
        cut_log(log_file.fileno())
        log_file.write(b"after")

    assert (short, path.read_bytes()) == (100, b"after")


@pytest.mark.parametrize("status", ConnectionStatus)
def test_every_standing_survives_being_written_down_and_has_words(
    tmp_path: Path, status: ConnectionStatus
) -> None:
    state = ConnectionState.of(status, 1.0, "why", 2.0)

    state.keep(Folder(tmp_path))

    assert read_state(Folder(tmp_path)) == state
    assert (state.problem() is None) == (status is ConnectionStatus.CONNECTED)


def settings_of(tmp_path: Path, group: str) -> Settings:
    path = tmp_path / "pynchy.toml"
    path.write_text(f"[channels.whatsapp]\n[groups.g]\n{group}\n")
    return load_settings(path)


def test_people_are_matched_in_every_form_to_what_the_settings_say(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        'channels = ["whatsapp"]\nchat = { whatsapp = "1203630000@g.us" }\n'
        'allowed_users = { whatsapp = ["+49 170 1234567", "81111111@lid"] }',
    )

    audience = read_groups(settings)

    assert audience.chats == {"1203630000@g.us"}
    assert audience.entry_of(GroupName("g"), ["8@lid", PHONE]) == "+49 170 1234567"
    assert audience.entry_of(GroupName("g"), ["81111111@lid"]) == "81111111@lid"
    assert audience.entry_of(GroupName("g"), ["492@s.whatsapp.net"]) is None
    assert audience.entry_of(GroupName("other"), [PHONE]) is None


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ('channels = ["whatsapp"]\nself_chat = true\nchat = { whatsapp = "1" }', "only one"),
        ("self_chat = true", "ask in WhatsApp"),
    ],
)
def test_a_self_chat_that_cannot_be_meant_is_refused(
    tmp_path: Path, group: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        settings_of(tmp_path, group)


def test_without_the_library_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.channels.whatsapp.plugin.find_spec", lambda _: None)

    with pytest.raises(ConfigError, match=r"pip install '\.\[whatsapp\]'"):
        make_channels(settings_of(tmp_path, ""), {}, tmp_path)


def test_a_card_that_counts_as_failed_is_over_if_somebody_may_see_it() -> None:
    card = NumberedCard(
        ShortId("ab12"), RequestId("q1"), GroupName("g"), (Question("Deploy?"),), NOON
    )
    cards = ChatCards()
    cards.put(ChatCard(card, "", PHONE))
    cards.give_up((card.group, card.request_id), may_be_there=False)
    assert cards.in_chat([PHONE]) == []

    cards.put(ChatCard(card, "", PHONE))
    cards.give_up((card.group, card.request_id), may_be_there=True)

    assert [entry.card.over for entry in cards.in_chat([PHONE])] == [True]
