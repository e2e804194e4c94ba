"""Ask a person through the mailbox and take the answer in exactly once.

    ask ─► lease ─► arm the watch ─► tasks/<id>.json ─► look ─► wait ─► look ─► receipt ─► Result

This package knows the mailbox and nothing of MCP: the tools of an agent and `pynchy ask` are both
thin layers over it. What asks needs asyncio, which takes long to load: whoever needs the mailbox
alone does not pay for it.
"""

from typing import TYPE_CHECKING, Any

from agent_runner.asking._model import (
    Announcement,
    Answer,
    Approval,
    Option,
    Outcome,
    Permission,
    Question,
    Request,
    RequestId,
    Result,
    TerminalAsk,
    Urgency,
    WhyAsked,
    fresh_request_id,
    is_request_id,
    request_id_of,
)
from agent_runner.asking.mailbox import Mailbox

if TYPE_CHECKING:
    from agent_runner.asking._asker import Asker, ask

__all__ = [
    "Announcement",
    "Answer",
    "Approval",
    "Asker",
    "Mailbox",
    "Option",
    "Outcome",
    "Permission",
    "Question",
    "Request",
    "RequestId",
    "Result",
    "TerminalAsk",
    "Urgency",
    "WhyAsked",
    "ask",
    "fresh_request_id",
    "is_request_id",
    "request_id_of",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module may hold
    if name not in {"Asker", "ask"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent_runner.asking import _asker  # noqa: PLC0415 - see above

    return getattr(_asker, name)
