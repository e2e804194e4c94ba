"""One group's mailbox as the host sees it.

The group is the folder. Nothing that an agent writes can make the host read, write or wait
outside of that folder, and a response is written once.
"""

from __future__ import annotations

import heapq
import logging
import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pynchy import wire
from pynchy.errors import MalformedRequest
from pynchy.model import GroupName, RequestId
from pynchy.safe_folder import GONE_PREFIX, Folder, UnsafeFile

log = logging.getLogger(__name__)

# In the order in which they are forgotten: the receipt itself last.
RECEIPTS = (".passed", ".resumed", ".received")
_RECEIPT_CAP = 4_096
SETTINGS_NAME = "host.json"
_UNSEEN = ".unseen.json"
_DISMISSED = ".dismissed.json"
_REMOVED = "removed"
_ASIDE = ".removed-tasks"
# Whoever takes up a group looks at so many names in each folder, since all groups wait meanwhile;
# whoever tidies, which keeps only other tidying waiting, at more.
_MAX_LOOKED_AT = 10_000
_MAX_TIDIED = 200_000
# So many names below folders that were removed are removed in one go.
_MAX_CLEARED = 1_000


def is_removed(path: Path) -> bool:
    """True if a person has removed the group whose mailbox is there, and nobody has asked since."""
    return (path / _REMOVED).exists() and not (path / "tasks").exists()


class Mailbox:
    """The folders of one group that an agent sees, and the one for what was refused."""

    def __init__(self, ipc: Path, group: GroupName, *, agent_uid: int | None = None) -> None:
        self.group = group
        self.path = ipc / group
        self.tasks = Folder(ipc, group, "tasks", owner=agent_uid)
        self._responses = Folder(ipc, group, "responses", owner=agent_uid)
        self._input = Folder(ipc, group, "input", owner=agent_uid)
        self._rejected = Folder(ipc, group, "rejected")
        self._ipc = ipc
        self._agent_uid = agent_uid
        self._refused: deque[RequestId] = deque()

    def make(self) -> None:
        """Create what is missing."""
        for folder in (self.tasks, self._responses, self._input, self._rejected):
            folder.make()

    def prepare(self, settings: bytes) -> None:
        """Create what is missing and tell agents what they need to know of the host.

        For whoever takes up the group, and nobody beside: it clears what is being written. A group
        that was removed is left alone until somebody asks in it again.
        """
        if is_removed(self.path):
            return
        self.make()
        Folder(self._ipc, self.group).remove(_REMOVED)
        for folder in (self._responses, self._input, self._rejected):
            folder.clear_temporary(limit=_MAX_LOOKED_AT)
        self._input.replace(SETTINGS_NAME, settings)

    def exists(self) -> bool:
        """True while the group's folder is there for the agent."""
        return self.tasks.exists()

    def is_whole(self) -> bool:
        """True while every folder that an agent needs is there."""
        return all(folder.exists() for folder in (self.tasks, self._responses, self._input))

    def requests(self, limit: int) -> list[str]:
        """Return the names of requests that wait to be read, questions before what ends them."""
        # Not as a list, of which an agent says how long it is.
        names = (name for name in self.tasks.entries() if _is_request(name))
        return heapq.nsmallest(limit, names, key=lambda name: name.count("."))

    def read_request(self, name: str) -> bytes:
        """Return a request's content. Raise MalformedRequest for what must not be read."""
        try:
            return self.tasks.read(name, wire.MAX_REQUEST_BYTES)
        except UnsafeFile as exc:
            raise MalformedRequest(str(exc), wire.usable_id(name.removesuffix(".json"))) from exc

    def has_question_of(self, name: str) -> bool:
        """True if the request is about a question that has itself not been read yet."""
        stem = name.removesuffix(".json").rpartition(".")[0]
        return bool(stem) and self.tasks.has(f"{stem}.json")

    def drop_request(self, name: str) -> None:
        """Remove a request that has been dealt with."""
        self.tasks.remove(name)

    def reject(self, name: str, reason: str, at: datetime, content: bytes, keep: int) -> None:
        """Move a request out of the way, with the reason beside it; keep the newest `keep`."""
        record = wire.rejected_json(name, reason, at, content)
        self._rejected.make()
        self._rejected.create(f"{_stamp(at)}-{secrets.token_hex(3)}.json", record)
        for old in sorted(self._rejected.names())[: -keep or None]:
            self._rejected.remove(old)
        self.tasks.remove(name)

    def respond(self, request_id: RequestId, response: bytes) -> None:
        """Write the response unless one is there already."""
        name = f"{request_id}.json"
        try:
            self._responses.create(name, response)
        except FileNotFoundError:
            # Only now: an agent waits, and making sure of each folder takes its time. The
            # receipt's folder first, since who finds the response takes the receipt at once.
            self.tasks.make()
            self._responses.make()
            self._responses.create(name, response)

    def respond_refused(self, request_id: RequestId, response: bytes, keep: int) -> None:
        """Tell the agent why its request was refused; keep the newest `keep` of such responses."""
        self.respond(request_id, response)
        self._refused.append(request_id)
        while len(self._refused) > keep:
            self._responses.remove(f"{self._refused.popleft()}.json")

    def has_response(self, request_id: RequestId) -> bool:
        """True if the agent can read how its question ended."""
        return self._responses.has(f"{request_id}.json")

    def note_unseen(self, request_id: RequestId, note: bytes | None) -> None:
        """Let the agent read that nobody can have seen its question; None takes that back."""
        name = f"{request_id}{_UNSEEN}"
        if note is None:
            self._responses.remove(name)
        elif self._responses.exists():
            self._responses.replace(name, note)

    def note_dismissed(self, request_id: RequestId, note: bytes) -> None:
        """Let the agent read that a person has closed what showed its question."""
        if self._responses.exists():
            self._responses.replace(f"{request_id}{_DISMISSED}", note)

    def is_received(self, request_id: RequestId) -> bool:
        """True if somebody has taken the answer, the agent or the host."""
        return self.tasks.has(f"{request_id}.received")

    def taker(self, request_id: RequestId) -> str:
        """Return the lease of the process that took the answer and is to say when it passed it on.

        Empty for one that says nothing of it, and for the host.
        """
        return wire.read_taker(self._receipt(request_id))

    def is_passed_on(self, request_id: RequestId) -> bool:
        """True if the process that took the answer says that whoever asked has it."""
        return self.tasks.has(f"{request_id}.passed")

    def take_back(self, request_id: RequestId) -> None:
        """Remove the receipt of a process that died before it passed the answer on."""
        self.tasks.remove(f"{request_id}.received")

    def is_resumed(self, request_id: RequestId) -> bool:
        """True if a resumed runner says that it has taken the answer in."""
        return self.tasks.has(f"{request_id}.resumed")

    def is_being_parked(self, request_id: RequestId) -> bool:
        """True if the agent says that it puts the call off, and nobody has read that yet."""
        return self.tasks.has(f"{request_id}.park.json")

    def claim(self, request_id: RequestId, claim: str, at: datetime) -> bool:
        """Take the receipt for the host. Return False if the agent has the answer already."""
        name = f"{request_id}.received"
        self.tasks.make()
        return self.tasks.create(name, wire.claim_json(claim, at)) or self.is_ours(
            request_id, claim
        )

    def is_ours(self, request_id: RequestId, claim: str) -> bool:
        """True if the receipt is the one that the host took under this claim."""
        found = wire.read_claim(self._receipt(request_id)) or ""
        return bool(claim) and secrets.compare_digest(found.encode(), claim.encode())

    def _receipt(self, request_id: RequestId) -> bytes:
        try:
            return self.tasks.read(f"{request_id}.received", _RECEIPT_CAP, one_link=False)
        except (UnsafeFile, FileNotFoundError):
            return b""

    def release(self, request_id: RequestId, claim: str) -> None:
        """Give the receipt back, so that `check_answer` can take the answer."""
        if self.is_ours(request_id, claim):
            self.tasks.remove(f"{request_id}.resumed")
            self.tasks.remove(f"{request_id}.received")

    def write_initial(self, name: str, initial: bytes) -> Path:
        """Write what a session begins with, or is resumed with, and return where it is."""
        folder = Folder(self._ipc, self.group, "input", name, owner=self._agent_uid)
        folder.make()
        folder.replace("initial.json", initial)
        return folder.path / "initial.json"

    def forget_initial(self, name: str) -> None:
        """Remove what a session began with."""
        if self._input.exists():
            self._input.remove(name)

    def forget(self, request_id: RequestId) -> None:
        """Remove every trace of a question that is past its retention.

        The response goes first: a waiter that wakes up in between finds nothing to take.
        """
        self._responses.remove(f"{request_id}.json")
        for suffix in (_UNSEEN, _DISMISSED):
            self._responses.remove(f"{request_id}{suffix}")
        self._input.remove(request_id)
        for suffix in RECEIPTS:
            self.tasks.remove(f"{request_id}{suffix}")

    def remove(self) -> bool:
        """Remove what agents see of the group; its history stays.

        Return False, with everything in its place, if a request lies there that nobody has read.
        """
        self.finish_removal()
        folder = Folder(self._ipc, self.group)
        # First: a group without its folders is given new ones, unless it is known to be removed.
        folder.replace(_REMOVED, b"")
        folder.rename("tasks", _ASIDE)
        self.finish_removal()
        return not self.tasks.exists()

    def finish_removal(self) -> None:
        """Finish a removal that was begun, or undo it if a request lies there."""
        folder = Folder(self._ipc, self.group)
        if not folder.has(_ASIDE):
            return
        aside = Folder(self._ipc, self.group, _ASIDE)
        unread = [name for name in aside.entries() if _is_request(name)]
        if not self.tasks.exists():
            if unread:
                folder.rename(_ASIDE, "tasks")
                folder.remove(_REMOVED)
                return
            for name in ("responses", "input", "rejected"):
                folder.remove(name)
        for name in unread:  # somebody has brought the group back meanwhile
            with suppress(UnsafeFile, FileNotFoundError):
                self.tasks.create(name, aside.read(name, wire.MAX_REQUEST_BYTES))
        folder.remove(_ASIDE)

    def tidy(self, keep: set[RequestId], responses: datetime, rejected: datetime) -> None:
        """Forget responses, what runners began with, and refused requests from before then."""
        for name in self._responses.names(_MAX_TIDIED):
            stem = name.removesuffix(_UNSEEN).removesuffix(_DISMISSED)
            request_id = RequestId(stem.removesuffix(".json"))
            if request_id not in keep and _is_older(self._responses, name, responses):
                self.forget(request_id)
        # Also what was written for a session which a crash kept from ever being known.
        for name in self._input.names(_MAX_TIDIED):
            is_kept = name == SETTINGS_NAME or RequestId(name) in keep
            if not is_kept and _is_older(self._input, name, responses):
                self._input.remove(name)
        # Not at the start, as elsewhere: an agent may be writing under such a name.
        self.tasks.clear_temporary(before=responses, limit=_MAX_TIDIED)
        stamp = _stamp(rejected)
        for name in [name for name in self._rejected.names() if name < stamp]:
            self._rejected.remove(name)

    def clear_removed(self) -> bool:
        """Go on with the removal of folders that were full. Return True if there may be more."""
        removed = 0
        of_group = Folder(self._ipc, self.group)
        for folder in (of_group, self.tasks, self._responses, self._input, self._rejected):
            with suppress(FileNotFoundError):
                removed += folder.clear_removed(_MAX_CLEARED - removed)
        return removed >= _MAX_CLEARED


def _is_request(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _is_older(folder: Folder, name: str, than: datetime) -> bool:
    """True if the file was written before then; what has gone meanwhile was not."""
    try:
        return folder.stat(name).st_mtime < than.timestamp()
    except FileNotFoundError:
        return False


def _stamp(at: datetime) -> str:
    return at.strftime("%Y%m%dT%H%M%S%f")


class Mailboxes:
    """The mailbox of every group, made when it is first asked for."""

    def __init__(self, ipc: Path, agent_uid_of: Callable[[GroupName], int | None]) -> None:
        self.path = ipc
        self._agent_uid_of = agent_uid_of
        self._mailboxes: dict[GroupName, Mailbox] = {}

    def of(self, group: GroupName) -> Mailbox:
        """Return the group's mailbox; its folders need not exist."""
        if known := self._mailboxes.get(group):
            return known
        made = Mailbox(self.path, group, agent_uid=self._agent_uid_of(group))
        # Threads ask too: all must get the same one.
        return self._mailboxes.setdefault(group, made)

    def finish_removals(self) -> None:
        """Finish what an earlier host had begun when it died."""
        for gone in self.path.glob(f"*/{GONE_PREFIX}*"):
            self.of(GroupName(gone.parent.name))  # so that it is among those that are tidied
        for aside in self.path.glob(f"*/{_ASIDE}"):
            try:
                self.of(GroupName(aside.parent.name)).finish_removal()
            except OSError as exc:
                about = {"group": aside.parent.name, "why": exc.strerror}
                log.warning("group.not_removed", extra=about)

    def known(self) -> list[GroupName]:
        """Return the groups that have been met since the start, also those that were removed."""
        return list(self._mailboxes)

    def groups(self) -> list[GroupName]:
        """Return the groups whose mailboxes are in use."""
        return [group for group, mailbox in list(self._mailboxes.items()) if mailbox.exists()]
