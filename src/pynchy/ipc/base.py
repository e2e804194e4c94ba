"""What the host's other parts need of mailboxes, however they are made.

Every method touches the disk, and must be kept off the event loop.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Protocol

from pynchy.errors import MalformedRequest
from pynchy.model import GroupName, RequestId


class GroupMailbox(Protocol):
    """One group's mailbox as the host sees it."""

    @property
    def path(self) -> Path:
        """Return where it is."""

    def make(self) -> None:
        """Create what is missing."""

    def prepare(self, settings: bytes) -> None:
        """Create what is missing and tell agents what they need to know of the host."""

    def exists(self) -> bool:
        """True while the group's folder is there for the agent."""

    def reject(self, name: str, reason: str, at: datetime, content: bytes, keep: int) -> None:
        """Move a request out of the way, with the reason beside it; keep the newest `keep`."""

    def respond(self, request_id: RequestId, response: bytes) -> None:
        """Write the response unless one is there already."""

    def respond_refused(self, request_id: RequestId, response: bytes, keep: int) -> None:
        """Tell the agent why its request was refused; keep the newest `keep` of such responses."""

    def has_response(self, request_id: RequestId) -> bool:
        """True if the agent can read how its question ended."""

    def note_unseen(self, request_id: RequestId, note: bytes | None) -> None:
        """Let the agent read that nobody can have seen its question; None takes that back."""

    def note_dismissed(self, request_id: RequestId, note: bytes) -> None:
        """Let the agent read that a person has closed what showed its question."""

    def is_received(self, request_id: RequestId) -> bool:
        """True if somebody has taken the answer, the agent or the host."""

    def taker(self, request_id: RequestId) -> str:
        """Return the lease of the process that took the answer and is to say when it passed it on.

        Empty for one that says nothing of it, and for the host.
        """

    def is_passed_on(self, request_id: RequestId) -> bool:
        """True if the process that took the answer says that whoever asked has it."""

    def take_back(self, request_id: RequestId) -> None:
        """Remove the receipt of a process that died before it passed the answer on."""

    def is_resumed(self, request_id: RequestId) -> bool:
        """True if a resumed runner says that it has taken the answer in."""

    def is_being_parked(self, request_id: RequestId) -> bool:
        """True if the agent says that it puts the call off, and nobody has read that yet."""

    def claim(self, request_id: RequestId, claim: str, at: datetime) -> bool:
        """Take the receipt for the host. Return False if the agent has the answer already."""

    def is_ours(self, request_id: RequestId, claim: str) -> bool:
        """True if the receipt is the one that the host took under this claim."""

    def release(self, request_id: RequestId, claim: str) -> None:
        """Give the receipt back, so that `check_answer` can take the answer."""

    def write_initial(self, name: str, initial: bytes) -> Path:
        """Write what a session begins with, or is resumed with, and return where it is."""

    def tidy(self, keep: set[RequestId], responses: datetime, rejected: datetime) -> None:
        """Forget responses, what runners began with, and refused requests from before then."""

    def clear_removed(self) -> bool:
        """Go on with the removal of folders that were full. Return True if there may be more."""


class MailboxDirectory(Protocol):
    """The mailbox of every group."""

    def of(self, group: GroupName) -> GroupMailbox:
        """Return the group's mailbox; its folders need not exist."""

    def known(self) -> list[GroupName]:
        """Return the groups that have been met since the start, also those that were removed."""

    def groups(self) -> list[GroupName]:
        """Return the groups whose mailboxes are in use."""


class IntakeHandler(Protocol):
    """What intake does not decide itself."""

    async def joined(self, group: GroupName) -> None:
        """A group has appeared."""

    async def refuse(
        self, group: GroupName, name: str, malformed: MalformedRequest, content: bytes
    ) -> None:
        """Answer or file a request that cannot be understood, and remove it."""

    def receipt_seen(self, group: GroupName, request_id: RequestId) -> None:
        """Somebody has created a receipt."""
