"""A rule: what it says of calls that its pattern covers, for whom, and until when.

And a grant: a permission for one call of one session, which came after that call was gone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pynchy.model import GroupName, RequestId, SessionId

_ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 6
_ANY = SessionId("")


class Effect(StrEnum):
    """What a rule says: deny beats ask, ask beats allow."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Origin(StrEnum):
    """Where a rule was made."""

    SETTINGS = "settings"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Without a session it holds for the whole group.

    A rule that was revoked is kept until it would have expired, so that a request which is handled
    again after a crash does not make it anew.
    """

    id: str
    effect: Effect
    pattern: str
    group: GroupName
    made_by: str
    made_at: datetime
    session_id: SessionId = _ANY
    expires_at: datetime | None = None
    uses: int = 0
    last_used: datetime | None = None
    origin: Origin = Origin.CARD
    revoked_at: datetime | None = None
    revoked_by: str = ""

    @property
    def short_id(self) -> str:
        """What people call it."""
        number = int.from_bytes(hashlib.sha256(f"{self.group}/{self.id}".encode()).digest()[:8])
        letters = ""
        for _ in range(_ID_LENGTH):
            number, digit = divmod(number, len(_ID_LETTERS))
            letters += _ID_LETTERS[digit]
        return letters

    def is_called(self, name: str) -> bool:
        """True if people may mean it by that name."""
        names = {self.id, f"{self.group}/{self.id}"}
        return name in names or self.short_id == name.casefold()

    def is_like(self, other: Rule) -> bool:
        """True if the name of one could be meant for the other."""
        return other.is_called(self.short_id) or self.is_called(other.short_id)

    def applies_to(self, session_id: str, now: datetime) -> bool:
        """True if it counts now, for that session."""
        is_over = self.expires_at is not None and self.expires_at <= now
        return self.revoked_at is None and not is_over and self.session_id in {"", session_id}


@dataclass(frozen=True, slots=True)
class Because:
    """Why the rules say what they say: the host's own words, and the pattern or command meant."""

    words: str
    about: str = ""

    def describe(self) -> str:
        """Return both, for a person."""
        return f"{self.words}: {self.about}" if self.about else self.words


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission for one call, given when the call that asked for it had ended.

    `request_id` is the question that was answered so, `call` the digest of what may be done. Once
    used, by the request `used_by`, it is kept until it expires: it is never given anew. That
    request has it again after a crash, until its yes is recorded: from then on it `is_spent`.
    """

    request_id: RequestId
    group: GroupName
    session_id: SessionId
    call: str
    made_by: str
    expires_at: datetime
    used_by: str = ""
    is_spent: bool = False

    @property
    def user(self) -> tuple[GroupName, RequestId] | None:
        """The request that used it, whose yes may not be recorded yet; None if there is none."""
        is_open = self.used_by and not self.is_spent
        return (self.group, RequestId(self.used_by)) if is_open else None

    def can_be_used_by(self, request_id: RequestId) -> bool:
        """True if nobody has used it, or that request has, and may not know."""
        return not self.is_spent and self.used_by in {"", request_id}

    def is_for(self, other: Grant) -> bool:
        """True if both are about the same call of the same session."""
        own = (self.group, self.session_id, self.call)
        return own == (other.group, other.session_id, other.call)
