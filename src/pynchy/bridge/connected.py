"""The way back to agents that hold a connection open until their question has ended.

A connection is all that such an agent has: an answer that comes when it is gone reaches nobody, and
is not kept for anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import Delivered, Dismissed, GaveUp
from pynchy.model import DeliveryPath, GroupName, PendingQuestion
from pynchy.pending.base import Key, QuestionObserver
from pynchy.sources.base import HeldConnection, Unreachable

# Whatever happens to a question wakes who waits for it; this is for what nobody has told.
_POLL_SECONDS = 30.0
_GONE = "the program that asked no longer waits for it"


class ConnectedRoute:
    """The AnswerRoute to agents that wait at the other end of a connection."""

    def __init__(self, ledger: QuestionLedger) -> None:
        self._ledger = ledger
        self._connections: dict[Key, HeldConnection] = {}

    @contextmanager
    def connection(self, key: Key) -> Iterator[HeldConnection]:
        """Take it that the agent waits for the question's end for as long as this lasts."""
        connection = self._connections[key] = HeldConnection()
        try:
            yield connection
        finally:
            del self._connections[key]
            connection.closed.set()

    def count(self, group: GroupName) -> int:
        """Return how many agents of the group wait."""
        return sum(key[0] == group for key in self._connections)

    def release(self) -> None:
        """Let everybody go who waits, without an answer: the host stops."""
        for connection in self._connections.values():
            if not connection.ended.done():
                connection.ended.set_result(None)

    async def respond(self, pending: PendingQuestion) -> None:
        """See AnswerRoute."""
        connection = self._connections.get(pending.key)
        if connection is not None and not connection.ended.done():
            connection.ended.set_result(pending)

    async def see_through(self, key: Key) -> None:
        """See AnswerRoute."""
        connection = self._connections.get(key)
        if connection is not None:
            await connection.closed.wait()
        await self._conclude(key, is_told=connection is not None and connection.told)

    async def _conclude(self, key: Key, *, is_told: bool) -> None:
        now = self._ledger.now()
        if not self._ledger.get(key).resumes:
            await self._ledger.apply(key, Delivered(DeliveryPath.NONE, now))
        elif is_told:
            await self._ledger.apply(key, Delivered(DeliveryPath.LIVE, now))
        else:
            await self._ledger.apply(key, GaveUp(_GONE), Dismissed("pynchy", now))

    async def tell_unseen(self, pending: PendingQuestion, why: str) -> None:
        """See AnswerRoute: the program shows the question itself."""

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        """See AnswerRoute."""
        return None if pending.key in self._connections else _GONE

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """See AnswerRoute."""
        if pending.key in self._connections:
            return None
        return Unreachable(_GONE, is_final=True)

    def problem(self, group: GroupName) -> str | None:
        """See AnswerRoute: a question without a connection is cleared at once."""
        del group
        return None


class RejoinedRoute(ConnectedRoute, QuestionObserver):
    """The AnswerRoute to programs that keep a question while we are away, and show it again.

    So an answer waits until its question is shown again, or is known to be asked no more.
    """

    def __init__(self, ledger: QuestionLedger) -> None:
        super().__init__(ledger)
        self._lost: set[Key] = set()
        ledger.subscribe(self)

    @contextmanager
    def connection(self, key: Key) -> Iterator[HeldConnection]:
        """See ConnectedRoute."""
        with super().connection(key) as connection:
            self._lost.discard(key)
            self._ledger.notify(key)
            yield connection

    def lose(self, key: Key) -> None:
        """The program does not wait for it any more: an answer would reach nobody."""
        if self._ledger.index.get(key) is not None:
            self._lost.add(key)
            self._ledger.notify(key)

    def question_closed(self, pending: PendingQuestion) -> None:
        """See QuestionObserver."""
        self._lost.discard(pending.key)

    async def see_through(self, key: Key) -> None:
        """See AnswerRoute."""
        is_told = False
        while self._ledger.get(key).resumes and not is_told:
            version = self._ledger.version(key)
            if connection := self._connections.get(key):
                await self.respond(self._ledger.get(key))
                await connection.closed.wait()
                is_told = connection.told
            elif key in self._lost:
                break
            else:
                await self._ledger.changed(key, version, _POLL_SECONDS)
        await self._conclude(key, is_told=is_told)

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """See AnswerRoute: whoever is away may come back."""
        return Unreachable(_GONE, is_final=True) if pending.key in self._lost else None
