"""A host beside the stand-in for WhatsApp, and rooms: a group with its chat, people and agent."""

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Host
from tests.slack.support import Asked, Workplace
from tests.standins.whatsapp import SentText, WhatsAppStandIn, environ
from tests.standins.whatsapp.server import ACCOUNT, ACCOUNT_LID
from tests.waiting import until

from agent_runner.asking import Question
from pynchy.channels.whatsapp.addresses import Account, keep_account
from pynchy.safe_folder import Folder

ANA, BEN, EVE = "491701111111", "491702222222", "491703333333"
ANA_LID = "811111111111111"
ANOTHER = "xoxb-of-another-channel"
TEAM, OTHERS = "120363000000000001@g.us", "120363000000000002@g.us"


def settings(*tables: str) -> str:
    """Return pynchy.toml with the WhatsApp channel and these groups."""
    head = [line for line in tables if not line.lstrip().startswith("[")]
    rest = [line for line in tables if line.lstrip().startswith("[")]
    return "\n".join([*head, "[channels.whatsapp]", 'pace = "0s"', *rest, ""])


def group_table(name: str, chat: str | None, *channels: str, allowed: Any = (ANA, BEN)) -> str:
    """Return the table of a group that asks in this chat; None is the chat with oneself."""
    where = "self_chat = true" if chat is None else f'chat = {{ whatsapp = "{chat}" }}'
    return (
        f"[groups.{name}]\nchannels = {json.dumps(channels or ('whatsapp',))}\n{where}\n"
        f"allowed_users = {{ whatsapp = {json.dumps(allowed)} }}\n"
    )


def pair(data: Path) -> None:
    """Leave in the data folder what pairing leaves there."""
    home = Folder(data, "whatsapp")
    data.mkdir(parents=True, exist_ok=True)
    home.make()
    keep_account(home, Account(ACCOUNT, ACCOUNT_LID, "Owner"))


class Room(Workplace):
    """A group that asks in a chat of WhatsApp."""

    def __init__(self, whatsapp: WhatsAppStandIn, host: Host, group: str, chat: str) -> None:
        super().__init__(host, group)
        self.whatsapp = whatsapp
        self.chat = chat
        self.ana = whatsapp.person(ANA, "Ana", ANA_LID)
        self.ben = whatsapp.person(BEN, "Ben")
        self.eve = whatsapp.person(EVE, "Eve")

    async def asked(self, *questions: Question, **fields: Any) -> tuple[Asked, SentText]:
        """Ask, wait until the host knows that it is shown, and return the card."""
        asked = await self.ask(*questions, **fields)
        await self.host.state(asked.request_id, "open")
        return asked, next(s for s in self.texts() if self.short_id(asked) in s.text)

    def texts(self) -> list[SentText]:
        return self.whatsapp.texts(self.chat)

    async def told(self, *words: str, quoting: SentText | str | None = None) -> SentText:
        """Wait until the bridge has said something with these words in the chat."""
        quoted = quoting.message_id if isinstance(quoting, SentText) else quoting

        def look() -> SentText | None:
            fits = [s for s in self.texts() if all(w.lower() in s.text.lower() for w in words)]
            return next((s for s in fits if quoted in {None, s.quotes}), None)

        found: SentText = await until(look, f"{words} in {[s.text for s in self.texts()]}")
        return found

    async def said(self, count: int) -> list[SentText]:
        """Wait until the bridge has sent so many messages to the chat."""
        found: list[SentText] = await until(
            lambda: len(self.texts()) >= count and self.texts(), f"{count} messages"
        )
        return found

    def kill_child(self) -> None:
        os.kill(self.whatsapp.pids[-1], signal.SIGKILL)


class Lobby:
    """One stand-in and one host, with many rooms to hand out."""

    def __init__(self, folder: Path, rooms: int) -> None:
        self.whatsapp = WhatsAppStandIn().start()
        self.numbers = itertools.count()
        tables = [group_table(f"team{n}", chat_of(n)) for n in range(rooms)]
        tables += [
            group_table("one", f"+{ANA}", allowed=[f"+{ANA}"]),
            group_table("self", None, allowed=[ACCOUNT]),
            # The same chat, written in another way, and with other people.
            group_table("beside", f" {chat_of(0)} ", allowed=[BEN]),
        ]
        self.host = Host(folder / "data", settings(*tables))
        self.host.by_command = True  # its environment is looked at
        pair(folder / "data")

    async def start(self) -> "Lobby":
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environ(self.whatsapp.address).items():
                patch.setenv(name, value)
            patch.setenv("SLACK_BOT_TOKEN", ANOTHER)
            await self.host.start()
        await until(lambda: self.whatsapp.connected, "the host's child")
        return self

    def room(self) -> Room:
        number = next(self.numbers)
        return Room(self.whatsapp, self.host, f"team{number}", chat_of(number))

    def named(self, group: str, chat: str) -> Room:
        return Room(self.whatsapp, self.host, group, chat)

    def close(self) -> None:
        self.host.kill()
        self.whatsapp.stop()


def chat_of(number: int) -> str:
    return f"1203630000{number:08}@g.us"


__all__ = ["Lobby", "Room", "group_table", "pair", "settings"]
