"""What Claude Code tells a hook of, checked once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import from_json

from pynchy.errors import MalformedRequest
from pynchy.wire.asked import Label, SessionIdText
from pynchy.wire.requests import MAX_DEPTH, depth_of, explain


class HookEvent(BaseModel):
    """An event of a session of Claude Code; what it says beside this is not ours to know."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)

    hook_event_name: Label
    session_id: Annotated[SessionIdText, Field(min_length=1)]
    cwd: Annotated[str, StringConstraints(max_length=4_096)] = ""
    agent_id: Annotated[str, StringConstraints(max_length=500)] | None = None
    tool_name: Annotated[str, StringConstraints(max_length=500)] = ""
    tool_input: dict[str, Any] = {}
    # Why it asks, each of any form: it is shown as far as it is understood.
    decision_reason: Any = None
    blocked_path: Any = None
    permission_suggestions: Any = None


def input_digest(given: Mapping[str, Any]) -> str:
    """Return what tells the input of a call from others."""
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def read_hook_event(data: bytes) -> HookEvent:
    """Return the event. Raise MalformedRequest if it is none."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as exc:
        raise MalformedRequest(f"not JSON: {exc}") from exc
    if depth_of(value) > MAX_DEPTH:
        raise MalformedRequest(f"nested deeper than {MAX_DEPTH} levels")
    try:
        return HookEvent.model_validate(value)
    except ValidationError as exc:
        raise MalformedRequest(f"no hook event of Claude Code: {explain(exc)}") from exc
