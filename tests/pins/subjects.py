"""What the pins need of pynchy's inside. When something is moved, only this module follows."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

from pydantic import BaseModel

from pynchy import errors
from pynchy.channels.base import Channel, ReplyHandler
from pynchy.cli import cli as COMMAND_LINE  # noqa: N812 - the tree of commands, a value
from pynchy.config import KNOWN_CHANNELS, Settings
from pynchy.config.loading import read_settings
from pynchy.events import EventKind
from pynchy.http.api import make_api
from pynchy.http.pages import InboxPages
from pynchy.ipc.intake import Registry
from pynchy.model import AcceptsText, CardState, DeliveryPath, Kind, OutcomeKind, State, Urgency
from pynchy.session import SessionState

if TYPE_CHECKING:
    from enum import StrEnum

    from starlette.routing import Route

__all__ = ["COMMAND_LINE", "EXIT_CODES", "SEAMS", "SETTINGS", "WORDS", "read_settings", "routes"]

# By what they mean.
EXIT_CODES = {
    "refused or failed": errors.EXIT_FAILED,
    "declined": errors.EXIT_DECLINED,
    "nobody answered": errors.EXIT_UNANSWERED,
    "already over": errors.EXIT_OVER,
    "no host": errors.EXIT_NO_HOST,
    "partly answered": errors.EXIT_PARTLY,
    "wrong use of ask": errors.EXIT_USAGE,
    "interrupted": errors.EXIT_INTERRUPTED,
}

# The whole file, and the tables whose model depends on their name.
SETTINGS: dict[str, type[BaseModel]] = {
    "pynchy.toml": Settings,
    **{f"[channels.{name}]": model for name, model in KNOWN_CHANNELS.items()},
}

# The words that stand in JSON, by where they stand.
WORDS: dict[str, type[StrEnum]] = {
    "event type": EventKind,
    "question state": State,
    "question kind": Kind,
    "what own words are": AcceptsText,
    "question urgency": Urgency,
    "question delivered": DeliveryPath,
    "outcome": OutcomeKind,
    "card state": CardState,
    "session state": SessionState,
}

# What a program that extends pynchy implements or calls.
SEAMS: dict[str, type] = {"channel": Channel, "reply handler": ReplyHandler, "registry": Registry}


def routes() -> list[Route]:
    """Return the routes of the HTTP interface."""
    found: list[Route] = make_api(Mock(), InboxPages(Mock())).routes  # type: ignore[assignment]
    return found
