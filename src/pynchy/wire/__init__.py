"""The only place where JSON becomes a model and a model becomes JSON.

What comes in is checked here, once; what goes out has the shapes of docs/mailbox.md.
"""

from pynchy.wire.mailbox import (
    Lease,
    claim_json,
    error_json,
    host_json,
    initial_json,
    read_claim,
    read_lease,
    rejected_json,
    response_json,
)
from pynchy.wire.records import (
    ending_json,
    ending_view,
    event_json,
    pending_json,
    pending_view,
    read_ending,
    read_event_kind,
    read_pending,
    read_sequence,
)
from pynchy.wire.requests import (
    MAX_REQUEST_BYTES,
    AskRequest,
    CancelRequest,
    Envelope,
    Request,
    WithdrawRequest,
    explain,
    read_envelope,
    read_request,
    usable_group,
    usable_id,
)
from pynchy.wire.shapes import VERSION, answers_out, question_out, session_id, timestamp

__all__ = [
    "MAX_REQUEST_BYTES",
    "VERSION",
    "AskRequest",
    "CancelRequest",
    "Envelope",
    "Lease",
    "Request",
    "WithdrawRequest",
    "answers_out",
    "claim_json",
    "ending_json",
    "ending_view",
    "error_json",
    "event_json",
    "explain",
    "host_json",
    "initial_json",
    "pending_json",
    "pending_view",
    "question_out",
    "read_claim",
    "read_ending",
    "read_envelope",
    "read_event_kind",
    "read_lease",
    "read_pending",
    "read_request",
    "read_sequence",
    "rejected_json",
    "response_json",
    "session_id",
    "timestamp",
    "usable_group",
    "usable_id",
]
