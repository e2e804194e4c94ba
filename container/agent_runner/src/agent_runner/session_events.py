"""Tell the host how the session goes: requests of type `session:event` in the mailbox.

Telling is a courtesy: where it fails, the run goes on.
"""

from enum import StrEnum

from agent_runner.asking import Mailbox, _wire, fresh_request_id

TYPE_EVENT = "session:event"

_MAX_DETAIL_CHARACTERS = 500


class Event(StrEnum):
    """What can happen to a session."""

    STARTED = "started"
    WAITING = "waiting"
    PARKED = "parked"
    FINISHED = "finished"
    FAILED = "failed"


class HostReporter:
    """Tells the host of one session."""

    def __init__(self, mailbox: Mailbox, *, session_id: str, agent: str) -> None:
        self._mailbox = mailbox
        self._session_id = session_id
        self._agent = agent

    def tell(self, event: Event, detail: str = "") -> None:
        """Write the event. Raise OSError if that fails."""
        request_id = fresh_request_id()
        fields = {
            "type": TYPE_EVENT,
            "request_id": request_id,
            "session_id": self._session_id,
            "agent": self._agent,
            "event": event,
            **({"detail": detail[:_MAX_DETAIL_CHARACTERS]} if detail else {}),
        }
        self._mailbox.send(f"{request_id}.json", _wire.encode(fields))
