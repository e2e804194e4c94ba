"""What a channel is, and the two that need no service.

A channel shows cards and passes replies on. It decides nothing: who may answer, what counts as an
answer and which answer wins is the bridge's business. Showing may fail; settling may be repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from pynchy.errors import AskingUnsupported, ConfigError
from pynchy.events import Announcement
from pynchy.model import Card, PendingQuestion, Question, Reply, RequestId, ShownCard

if TYPE_CHECKING:
    from pynchy.config import ChannelSettings, Settings

log = logging.getLogger(__name__)

# What any channel shows whole of which no more is known.
_SURELY_SHOWN = 500

Table = TypeVar("Table", bound="ChannelSettings")


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """What a plug-in is given: all settings, the environment, and the data folder to keep things.

    `name` is the channel's. `host_runs` says to `examine` that a host is running, which tells its
    own troubles.
    """

    settings: Settings
    environ: Mapping[str, str]
    data: Path
    host_runs: bool = False
    name: str = ""

    def table(self, model: type[Table]) -> Table:
        """Return the channel's own table. Raise ConfigError if there is none of that model."""
        table = self.settings.channels.get(self.name)
        if isinstance(table, model):
            return table
        raise ConfigError(f"[channels.{self.name}] is missing, or is no {model.__name__}")


# What an answer says it came from where it came through no channel of ours: a rule of the group,
# an earlier yes to the same call, or the agent's own terminal, and so through the agent's hands.
# No channel can be called so.
BY_RULE = "rule"
BY_GRANT = "earlier-yes"
AT_DESK = "desk"
NO_CHANNELS = frozenset({BY_RULE, BY_GRANT, AT_DESK})


class ReplyHandler(Protocol):
    """Where a channel takes what people say. Every refusal is a ReplyRejected with its reason."""

    async def answer(self, reply: Reply) -> PendingQuestion:
        """Return the question as the reply left it; its ending is set if the reply ended it."""

    async def decline(self, reply: Reply, reason: str | None = None) -> PendingQuestion:
        """Return the question, ended because the person will not answer."""

    async def dismiss(self, reply: Reply, implied_choice: str = "") -> None:
        """Know that a person has closed what shows the question. That is no answer.

        `implied_choice` is the option that closing stood for, where it had no button of its own.
        """

    def open_cards(self, channel: str) -> list[ShownCard]:
        """Return what the channel shows of open questions, also from before a restart."""


class ChannelReplies(ReplyHandler):
    """The reply handler as one channel gets it: whatever it passes on is said in that channel."""

    def __init__(self, channel: str, handler: ReplyHandler) -> None:
        self._channel = channel
        self._handler = handler

    async def answer(self, reply: Reply) -> PendingQuestion:
        """See ReplyHandler."""
        return await self._handler.answer(replace(reply, channel=self._channel))

    async def decline(self, reply: Reply, reason: str | None = None) -> PendingQuestion:
        """See ReplyHandler."""
        return await self._handler.decline(replace(reply, channel=self._channel), reason)

    async def dismiss(self, reply: Reply, implied_choice: str = "") -> None:
        """See ReplyHandler."""
        await self._handler.dismiss(replace(reply, channel=self._channel), implied_choice)

    def open_cards(self, channel: str) -> list[ShownCard]:
        """See ReplyHandler."""
        del channel
        return self._handler.open_cards(self._channel)


class Channel:
    """The base of every channel. One that cannot ask need not override `send_ask_user`."""

    name = ""
    # Without effect, and kept for channels that set it: who needs a list of people is the host's
    # to decide, and never the channel's.
    checks_users = True
    # A channel that waits its turn, because its service limits the rate, may need longer than
    # the setting says; it fails by itself when the service does not answer.
    least_send_timeout = 0.0

    # What runs beside the calls while the channel is open; see `start_jobs`.
    _jobs: asyncio.Task[None] | None = None

    async def open(self, handler: ReplyHandler) -> None:
        """Connect, and from now on pass replies to the reply handler.

        Opening a channel that is open changes nothing.
        """

    async def close(self) -> None:
        """Disconnect; no reply is passed on after this. Closing twice does no harm."""

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """Show the questions in the chat and return the id of what shows them.

        Raise ChannelUnavailable if they could not be shown; while the question is open that is
        tried again later, with `card.repeated`, since what failed may be there all the same. Raise
        NotShown where it surely is not, and CannotShow where trying again cannot help.
        """
        del jid, request_id, questions, card
        raise AskingUnsupported(f"{self.name} cannot ask")

    async def settle_card(
        self,
        jid: str,
        message_id: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> None:
        """Let the card show how the question ended (`card.ending`, `card.delivery`).

        `message_id` is empty for a card that may be there although showing it failed: one that
        the channel can find is settled, else there is nothing to do.
        Called again when the delivery has got further. Raise ChannelUnavailable to be called
        again later.
        """

    async def announce(self, jid: str, told: Announcement) -> None:
        """Show what wants no answer, once. A channel that does not show such things does nothing.

        Raise ChannelUnavailable if it cannot be shown now; it is not tried again.
        """

    def shows_whole(self, questions: tuple[Question, ...], card: Card) -> bool:
        """Say whether a person can read all of the questions on the card.

        Where it is not so, what needs to be seen whole cannot be chosen in the channel.
        """
        del card
        return sum(len(question.text) for question in questions) <= _SURELY_SHOWN

    def problem(self) -> str | None:
        """Say what is wrong with the channel, in words for `doctor`; None if nothing is.

        While there is something, cards that could not be shown are not tried again.
        """
        return None

    def backlog(self) -> str | None:
        """Say that many cards wait to be sent, in words for `doctor`; None if they do not.

        Other than with `problem`, cards that could not be shown are tried again meanwhile.
        """
        return None

    def start_jobs(self, *jobs: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run what an open channel does beside its calls, until `stop_jobs`.

        Where one of them ends by itself, the host closes the channel and opens it again.
        """
        self._jobs = asyncio.create_task(_run(jobs), name=self.name)

    async def stop_jobs(self) -> None:
        """Cancel the jobs, and return when they have ended."""
        jobs, self._jobs = self._jobs, None
        if jobs is not None:
            jobs.cancel()
            await asyncio.wait([jobs])

    @property
    def has_jobs(self) -> bool:
        """True while the jobs run."""
        return self._jobs is not None and not self._jobs.done()

    def stopped(self) -> str | None:
        """Say why the jobs ended by themselves; None if they run, or are not meant to."""
        if self._jobs is None or not self._jobs.done():
            return None
        error = None if self._jobs.cancelled() else self._jobs.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return "it ended by itself" if error is None else f"{type(error).__name__} in it"


async def _run(jobs: Iterable[Callable[[], Coroutine[None, None, None]]]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for job in jobs:
            tasks.create_task(job())


class LocalChannel(Channel):
    """Shows every question to whoever holds the data folder's token: in a terminal, over HTTP."""

    name = "local"

    def shows_whole(self, questions: tuple[Question, ...], card: Card) -> bool:
        """See Channel. Whoever looks can see everything."""
        del questions, card
        return True

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """Return an id at once: whoever looks reads the pending questions themselves."""
        del jid, request_id, questions
        return f"{self.name}-{card.short_id}"


class WebChannel(LocalChannel):
    """Shows every question to whoever is signed in to the page."""

    name = "web"


def said_of_itself(say: Callable[[], str | None]) -> str | None:
    """Return what a channel says of itself; a plug-in that fails at that stops nobody else."""
    try:
        return say()
    except Exception as exc:
        log.exception("channel.failed")
        return f"{type(exc).__name__} in it"
