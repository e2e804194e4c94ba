"""The channels of this repository with the services and people behind them, for the promises."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest
from tests.standins.notifications import NotificationStandIn, StandInBackend, markup_in
from tests.standins.slack import Delivery, Fault, Message, NothingThere, SlackStandIn, look
from tests.standins.whatsapp import Person, SentText, WhatsAppStandIn, environ
from tests.standins.whatsapp.events import Json
from tests.standins.whatsapp.events import text as message_text
from tests.waiting import until
from tests.whatsapp.support import TEAM, pair

from pynchy.channels.base import Channel
from pynchy.channels.desktop.channel import DesktopChannel
from pynchy.channels.slack.channel import Secrets, SlackChannel, SlackGroups
from pynchy.channels.whatsapp.channel import WhatsAppChannel
from pynchy.channels.whatsapp.inbound import WhatsAppGroups
from pynchy.config import SlackChannelSettings
from pynchy.desktop.backend import PopupDismissed, Pressed
from pynchy.desktop.popup_ids import PopupIds
from pynchy.model import Answer, GroupName, Reply
from pynchy.safe_folder import Folder
from pynchy.testing import Ability, ChannelWorld, FakeChannel, NothingToDo, SeenCard, Sent


class FakeWorld(ChannelWorld):
    """The fake channel; what it remembers is what people see."""

    channel: FakeChannel
    chat = "box"
    first, second, stranger = "ana", "ben", "eve"
    cannot: Mapping[Ability, str] = {
        Ability.REMOVE_CARDS: "what was shown is a list in memory",
    }

    def __init__(self) -> None:
        self.channel = FakeChannel()
        self._events = 0
        self._last: Reply | None = None

    async def restart(self) -> None:
        old, self.channel = self.channel, FakeChannel()
        await old.close()
        self.channel.shown, self.channel.settled = old.shown, old.settled

    def cards(self) -> list[SeenCard]:
        return [self._seen(sent) for sent in self.channel.shown]

    def told(self, user: str) -> list[str]:
        return [text for who, text in self.channel.told if who == user]

    async def choose(self, user: str, card: SeenCard, *labels: str) -> None:
        await self._say(user, card, answers=(Answer(labels),))

    async def write(self, user: str, card: SeenCard, text: str) -> None:
        await self._say(user, card, answers=(Answer(text=text),))

    async def choose_part(self, user: str, card: SeenCard, number: int, label: str) -> None:
        await self._say(user, card, answers=(Answer((label,)),), question=number)

    async def decline(self, user: str, card: SeenCard) -> None:
        await self._say(user, card)

    async def repeat(self) -> None:
        assert self._last is not None
        await self.channel.say(str(self._events), self._last)

    async def lose_reply(self) -> None:
        self.channel.lost_replies = 1

    async def go_down(self) -> None:
        self.channel.down = True

    async def come_back(self) -> None:
        self.channel.down = False

    def _seen(self, sent: Sent) -> SeenCard:
        settled = [s for s in self.channel.settled if s.request_id == sent.request_id]
        ending = settled[-1].card.ending if settled else None
        words = [part for q in sent.questions for part in (q.text, *map(str, q.options))]
        said = [ending.describe() + settled[-1].card.delivery] if ending else []
        marks = ["again"] if sent.card.repeated else []
        text = "\n".join([*marks, sent.card.short_id, *words, *said])
        return SeenCard(text, ending is None, sent, ())

    async def _say(
        self,
        user: str,
        card: SeenCard,
        answers: tuple[Answer, ...] = (),
        question: int | None = None,
    ) -> None:
        assert isinstance(card.handle, Sent)
        if not self._seen(card.handle).takes_answers:
            raise NothingToDo(card.text)
        self._events += 1
        self._last = Reply(
            card.handle.request_id,
            by=user.title(),
            channel=self.channel.name,
            answers=answers,
            question=question,
            user_id=user,
            chat=self.chat,
        )
        await self.channel.say(str(self._events), self._last)


class DesktopWorld(ChannelWorld):
    """A desktop, whose notification service is played by a stand-in."""

    chat = ""
    first, second, stranger = "ana", "ben", "eve"
    cannot: Mapping[Ability, str] = {
        Ability.CHOOSE_SEVERAL: "a button is one choice; the page takes several",
        Ability.PARTS: "a popup of several questions leads to their page",
        Ability.DECLINE: "to close a popup is no answer; the page can decline",
        Ability.TELL_ALONE: "there is nobody else",
        Ability.TELL_STRANGERS: "whoever sits there may answer",
        Ability.TELL_APART: "a desktop has the one person who is logged in",
        Ability.KEEP_CARDS: "a popup goes away when its question is over",
        Ability.LOSE_REPLIES: "a local call that gets no reply is a service that has hung",
    }

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._service = NotificationStandIn()
        self._last: tuple[str, str] | None = None
        self.channel = self._make()

    async def restart(self) -> None:
        await self.channel.close()
        self.channel = self._make()

    def cards(self) -> list[SeenCard]:
        return [self._seen(popup_id) for popup_id in self._service.screen]

    def told(self, user: str) -> list[str]:
        del user
        texts = [self._service.text(popup) for _, popup in self._service.shown]
        return [text for text in texts if "Not taken" in text or "over already" in text]

    async def choose(self, user: str, card: SeenCard, *labels: str) -> None:
        del user
        [label] = labels
        popup = self._service.screen.get(str(card.handle))
        if popup is None or label not in {button.label for button in popup.buttons}:
            raise NothingToDo(card.text)
        self._last = (str(card.handle), label)
        self._backend.press(*self._last)

    async def write(self, user: str, card: SeenCard, text: str) -> None:
        del user
        self._backend.write(str(card.handle), text)

    async def repeat(self) -> None:
        assert self._last is not None
        self._backend.happenings.put_nowait(Pressed(self._last[0], "choice-0"))

    async def remove(self, card: SeenCard) -> None:
        self._service.screen.pop(str(card.handle), None)
        self._backend.happenings.put_nowait(PopupDismissed(str(card.handle)))

    async def go_down(self) -> None:
        self._service.is_down = True

    async def come_back(self) -> None:
        self._service.is_down = False
        self._service.restart()
        self._backend.come_back()

    def _make(self) -> Channel:
        self._backend = StandInBackend(self._service)
        ids = PopupIds(Folder(self._folder, "desktop"))
        return DesktopChannel(self._backend, ids, self.first, lambda _: None)

    def _seen(self, popup_id: str) -> SeenCard:
        popup = self._service.screen[popup_id]
        text = self._service.text(popup)
        takes_answers = len(popup.buttons) > 0
        return SeenCard(text, takes_answers, popup_id, markup_in(popup.title))


class SlackWorld(ChannelWorld):
    """Slack, played by the stand-in."""

    chat = "C1"
    first, second, stranger = "U0ANA", "U0BEN", "U0EVE"

    async def __aenter__(self) -> Self:
        self._stack = ExitStack()
        self._slack = self._stack.enter_context(SlackStandIn())
        for user, name in ((self.first, "Ana"), (self.second, "Ben"), (self.stranger, "Eve")):
            self._slack.workspace.add_user(user, name)
        self._slack.workspace.add_channel(self.chat, self.first, self.second, self.stranger)
        self._last: Delivery | None = None
        self.channel = self._make()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.channel.close()
        self._stack.close()

    async def restart(self) -> None:
        await self.channel.close()
        self.channel = self._make()

    def cards(self) -> list[SeenCard]:
        said = self._slack.workspace.all_in(self.chat)
        return [self._seen(message) for message in said if message.by_bot]

    def told(self, user: str) -> list[str]:
        return [look(ephemeral).text for ephemeral in self._slack.person(user).told]

    async def choose(self, user: str, card: SeenCard, *labels: str) -> None:
        person, message = self._slack.person(user), self._message(card)
        try:
            if len(labels) == 1:
                self._last = person.press(message, *labels)
                return
            person.choose(message, *labels)
            self._last = person.press(message, "Submit")
        except NothingThere as exc:
            raise NothingToDo(card.text) from exc

    async def write(self, user: str, card: SeenCard, text: str) -> None:
        self._slack.person(user).type(self._message(card), text, enter=True)

    async def choose_part(self, user: str, card: SeenCard, number: int, label: str) -> None:
        self._slack.person(user).reply(self._message(card), f"{number}: {label}")

    async def decline(self, user: str, card: SeenCard) -> None:
        self._slack.person(user).press(self._message(card), "Decline")

    async def repeat(self) -> None:
        assert self._last is not None
        self._slack.redeliver(self._last)

    async def remove(self, card: SeenCard) -> None:
        self._slack.workspace.delete(self._message(card))

    async def lose_reply(self) -> None:
        self._slack.fail("chat.postMessage", Fault(drop=True))

    async def go_down(self) -> None:
        await asyncio.to_thread(self._slack.go_away)

    async def come_back(self) -> None:
        await asyncio.to_thread(self._slack.come_back)

    def _make(self) -> Channel:
        settings = SlackChannelSettings(
            api_url=self._slack.url, ping_interval=timedelta(milliseconds=300)
        )
        secrets = Secrets(self._slack.bot_token, self._slack.app_token)
        groups = SlackGroups(frozenset({self.chat}), frozenset({self.first, self.second}))
        return SlackChannel(settings, secrets, pace_seconds=0, audience=groups)

    def _seen(self, message: Message) -> SeenCard:
        sight = look(message)
        # The one thing that we let Slack make of a text: a time as the reader's clock has it.
        made = [token for token in sight.mentions if not token.startswith("!date^")]
        return SeenCard(sight.text, message.is_open, message, (*made, *sight.links))

    def _message(self, card: SeenCard) -> Message:
        assert isinstance(card.handle, Message)
        return card.handle


class WhatsAppWorld(ChannelWorld):
    """WhatsApp, played by the stand-in; the child process and neonize are real."""

    chat = TEAM
    first, second, stranger = "+491701111111", "+491702222222", "+491703333333"
    cannot: Mapping[Ability, str] = {
        Ability.TELL_ALONE: "whatever is said in a group, everybody in it sees",
        Ability.TELL_STRANGERS: "a group is full of people who talk of other things",
        Ability.CHANGE_CARDS: "a message can be edited for some minutes only",
        Ability.REMOVE_CARDS: "nobody is told that a message was removed",
    }

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> Self:
        self._stack = ExitStack()
        self._whatsapp = self._stack.enter_context(WhatsAppStandIn())
        patch = self._stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in environ(self._whatsapp.address).items():
            patch.setenv(name, value)
        pair(self._folder)
        names = {self.first: "Ana", self.second: "Ben", self.stranger: "Eve"}
        self._people = {user: self._whatsapp.person(user[1:], name) for user, name in names.items()}
        self._said: list[tuple[Person, str, Json]] = []
        self.channel = self._make()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.channel.close()
        self._stack.close()

    async def restart(self) -> None:
        await self.channel.close()
        self.channel = self._make()

    def cards(self) -> list[SeenCard]:
        sent = [message for message in self._whatsapp.texts(self.chat) if not message.quotes]
        return [SeenCard(message.text, True, message, message.mentions) for message in sent]  # noqa: FBT003

    def sees(self) -> str:
        return "\n".join(message.text for message in self._whatsapp.texts(self.chat))

    def told(self, user: str) -> list[str]:
        own = {message_id for person, message_id, _ in self._said if person is self._people[user]}
        return [m.text for m in self._whatsapp.texts(self.chat) if m.quotes in own]

    async def choose(self, user: str, card: SeenCard, *labels: str) -> None:
        await self.write(user, card, ", ".join(labels))

    async def write(self, user: str, card: SeenCard, text: str) -> None:
        assert isinstance(card.handle, SentText)
        person, message_id, shown = self._people[user], self._whatsapp.new_id(), card.handle
        content = message_text(text, shown.message_id, shown.text, self._whatsapp.account)
        self._said.append((person, message_id, content))
        await self.repeat()

    async def choose_part(self, user: str, card: SeenCard, number: int, label: str) -> None:
        await self.write(user, card, f"{number}: {label}")

    async def decline(self, user: str, card: SeenCard) -> None:
        await self.write(user, card, "cancel")

    async def repeat(self) -> None:
        person, message_id, content = self._said[-1]
        person.send(self.chat, content, message_id=message_id)

    async def lose_reply(self) -> None:
        self._whatsapp.panics = 1

    async def go_down(self) -> None:
        await until(lambda: self._whatsapp.connected, "the child")
        self._whatsapp.emit("Disconnected", status=True)

    async def come_back(self) -> None:
        self._whatsapp.emit("Connected", status=True)

    def _make(self) -> Channel:
        home = self._folder / "whatsapp"
        listed = {f"{user[1:]}@s.whatsapp.net": user for user in (self.first, self.second)}
        groups = WhatsAppGroups(frozenset({TEAM}), people={GroupName("g1"): listed})
        return WhatsAppChannel(home, home / "session.db", groups, pace_seconds=0)
