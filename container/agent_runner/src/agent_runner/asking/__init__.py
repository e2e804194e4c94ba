"""Ask a person through the mailbox and take the answer in exactly once.

    ask ─► lease ─► arm the watch ─► tasks/<id>.json ─► look ─► wait ─► look ─► receipt ─► Result

This package knows the mailbox and nothing of MCP: the tools of an agent and `pynchy ask` are both
thin layers over it.
"""

from agent_runner.asking._asker import Asker, ask
from agent_runner.asking._mailbox import Mailbox
from agent_runner.asking._model import (
    Answer,
    Option,
    Outcome,
    Question,
    Request,
    RequestId,
    Result,
    Urgency,
    fresh_request_id,
    is_request_id,
)

__all__ = [
    "Answer",
    "Asker",
    "Mailbox",
    "Option",
    "Outcome",
    "Question",
    "Request",
    "RequestId",
    "Result",
    "Urgency",
    "ask",
    "fresh_request_id",
    "is_request_id",
]
