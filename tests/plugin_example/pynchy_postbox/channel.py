"""The channel: it writes cards, and looks every moment whether somebody has written a reply."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from pynchy import (
    Card,
    Channel,
    ChannelSettings,
    ChannelUnavailable,
    FolderPath,
    PendingQuestion,
    Question,
    Reply,
    ReplyHandler,
    ReplyRejected,
    RequestId,
    ShownCard,
)
from pynchy.channels import numbered
from pynchy.channels.numbered import (
    Answers,
    ChatMessage,
    Decline,
    Hint,
    NumberedCard,
    Reading,
    TooLate,
)

_PAUSE_SECONDS = 0.05
_MAX_TEXT = 16_000


class PostboxSettings(ChannelSettings):
    """Where the postbox is."""

    folder: FolderPath = Field(description='an absolute path, such as "/srv/postbox"')


class PostboxChannel(Channel):
    """Shows cards as files, and takes replies from files."""

    name = "postbox"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # By the chat and the name of the card's file.
        self._cards: dict[tuple[str, str], NumberedCard] = {}

    async def open(self, handler: ReplyHandler) -> None:
        """See Channel."""
        if self.has_jobs:
            return
        for shown in handler.open_cards(self.name):
            self._cards[shown.jid, shown.message_id] = NumberedCard.of(shown)
        self.start_jobs(lambda: self._run(handler))

    async def close(self) -> None:
        """See Channel."""
        await self.stop_jobs()

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """See Channel. The same question has the same file: there is never a second copy."""
        name = f"{card.group}.{request_id}.txt"
        shown = ShownCard(jid, name, request_id, questions, card)
        self._cards[jid, name] = NumberedCard.of(shown)
        self._write(jid, name, numbered.render_card(questions, card, _MAX_TEXT))
        return name

    async def settle_card(
        self,
        jid: str,
        message_id: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> None:
        """See Channel."""
        name = f"{card.group}.{request_id}.txt"
        if card.ending is None or name != message_id:
            return
        shown = NumberedCard.of(ShownCard(jid, name, request_id, questions, card))
        self._cards[jid, name] = replace(shown, over=True)
        told = numbered.render_settled(questions, card, card.ending, self.name, _MAX_TEXT)
        self._write(jid, name, told)

    def problem(self) -> str | None:
        """See Channel."""
        return None if self._folder.is_dir() else f"{self._folder} is not there"

    def _write(self, chat: str, name: str, text: str) -> None:
        if problem := self.problem():
            raise ChannelUnavailable(problem)
        try:
            _put(self._folder / chat / "cards" / name, text)
        except OSError as exc:
            raise ChannelUnavailable(f"{self._folder}: {exc.strerror}") from exc

    async def _run(self, handler: ReplyHandler) -> None:
        while True:
            for path in sorted(self._folder.glob("*/people/*/*.txt")):
                with suppress(OSError):  # it is there the next time, or its writer took it away
                    await self._judge(path, handler)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _judge(self, path: Path, handler: ReplyHandler) -> None:
        """Judge a reply once; what lies in `done` under its name was judged before."""
        done = path.parent / "done" / path.name
        if not done.exists():
            told = await self._told(path, handler)
            if told:
                _put(path.parent / "told" / path.name, told)
        done.parent.mkdir(exist_ok=True)
        path.replace(done)

    async def _told(self, path: Path, handler: ReplyHandler) -> str | None:
        """Pass the reply on. Return what its writer is to be told."""
        chat, user = path.parents[2].name, path.parent.name
        about, _, text = path.read_text(encoding="utf-8").partition("\n")
        card = self._cards.get((chat, about.removeprefix("Re: ").strip()))
        if card is None:
            return "Begin with the line “Re: ” and the name of the card's file."
        [quoted] = card.message_ids
        said = ChatMessage(text.strip(), datetime.now(UTC), private=True, quoted=quoted)
        sender = Reply(card.request_id, by=user, channel=self.name, user_id=user, chat=chat)
        try:
            return await self._decide(numbered.read(said, [card]), sender, handler, (chat, quoted))
        except ReplyRejected as exc:
            return numbered.refusal(exc)

    async def _decide(
        self, reading: Reading, sender: Reply, handler: ReplyHandler, key: tuple[str, str]
    ) -> str | None:
        pending: PendingQuestion | None = None
        match reading:
            case Answers():
                for reply in reading.replies(sender):
                    pending = await handler.answer(reply)
            case Decline():
                await handler.decline(numbered.aim(reading.card, sender), reading.reason)
            case TooLate():
                await handler.answer(numbered.aim(reading.card, sender))
            case Hint():
                return reading.text
        if pending is None or pending.ending is not None:
            return None
        self._cards[key] = replace(self._cards[key], answered=pending.answered)
        return numbered.noted(pending)


def _put(path: Path, text: str) -> None:
    """Write the file so that nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
