"""The way back to programs in terminals of phux: the answer is typed there, at most once.

    answered ─► written down that it is being typed ─► typed ─► delivered
                    │                                   └─ refused, or asked no more ─► not typed
                    └─ the host died over it ─► may have been typed, and is never typed again

What cannot be typed now is never typed later: it would be read by another prompt.
"""

from __future__ import annotations

from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import Delivered, Dismissed, GaveUp, Held
from pynchy.model import DeliveryPath, GroupName, OutcomeKind, PendingQuestion, State
from pynchy.pending.base import Key, QuestionObserver
from pynchy.sources.base import Typist, Unreachable
from pynchy.typed_line import Typed, TypingResult

ASKED_NO_MORE = "the program asks it no more"
_HOST_DIED = TypingResult(Typed.MAYBE, "pynchy ended while it was being typed")
# A typist comes with the settings; this is for what nobody has told.
_POLL_SECONDS = 30.0


class PhuxRoute(QuestionObserver):
    """The AnswerRoute to terminals of phux. `typist` is set while [sources.phux] is."""

    def __init__(self, ledger: QuestionLedger) -> None:
        self._ledger = ledger
        self._lost: set[Key] = set()
        self.typist: Typist | None = None
        ledger.subscribe(self)

    def lose(self, key: Key) -> None:
        """The program asks it no more: an answer that was not typed yet never is."""
        if self._ledger.index.get(key) is not None:
            self._lost.add(key)
            self._ledger.notify(key)

    def question_closed(self, pending: PendingQuestion) -> None:
        """See QuestionObserver."""
        self._lost.discard(pending.key)

    async def respond(self, pending: PendingQuestion) -> None:
        """See AnswerRoute: an answer is typed when it is seen through, which happens once."""

    async def see_through(self, key: Key) -> None:
        """See AnswerRoute."""
        pending = self._ledger.get(key)
        if pending.state is State.HELD:
            await self._conclude(key, _HOST_DIED)
        elif pending.ending is None or pending.ending.outcome is not OutcomeKind.ANSWERED:
            # There is nothing to type, and the program asks on its screen as before.
            await self._ledger.apply(key, Delivered(DeliveryPath.NONE, self._ledger.now()))
        else:
            await self._conclude(key, await self._type(key))

    async def _type(self, key: Key) -> TypingResult:
        while key not in self._lost:
            version = self._ledger.version(key)
            if self.typist is not None:
                # Before it is typed: whoever finds it so must not type it again.
                return await self.typist.type_answer(await self._ledger.apply(key, Held()))
            await self._ledger.changed(key, version, _POLL_SECONDS)
        return TypingResult(Typed.NO, ASKED_NO_MORE)

    async def _conclude(self, key: Key, result: TypingResult) -> None:
        now = self._ledger.now()
        if result.typed is Typed.YES:
            await self._ledger.apply(key, Delivered(DeliveryPath.LIVE, now))
            return
        why = f"{result.typed}: {result.why}"
        await self._ledger.apply(key, GaveUp(why), Dismissed("pynchy", now))

    async def tell_unseen(self, pending: PendingQuestion, why: str) -> None:
        """See AnswerRoute: the program shows the question itself."""

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        """See AnswerRoute."""
        del pending
        return "what was not typed then would be read by another prompt now"

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """See AnswerRoute: phux says so when the answer is typed."""
        is_lost = pending.key in self._lost
        return Unreachable(ASKED_NO_MORE, is_final=True) if is_lost else None

    def problem(self, group: GroupName) -> str | None:
        """See AnswerRoute: what its source says is enough."""
        del group
        return None
