"""Which handler takes a request, by the prefix of its type."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pynchy.errors import MalformedRequest
from pynchy.model import GroupName
from pynchy.wire import Envelope

Handler = Callable[[GroupName, Envelope], Awaitable[None]]


class Registry:
    """Prefixes and their handlers. The longest prefix that fits wins."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def register_prefix(self, prefix: str, handler: Handler) -> None:
        """Let the handler take every request whose type begins with the prefix."""
        if prefix in self._handlers:
            raise ValueError(f"prefix {prefix!r} has a handler already")
        self._handlers[prefix] = handler

    async def dispatch(self, group: GroupName, envelope: Envelope) -> None:
        """Hand the request over. Raise MalformedRequest if nobody takes its type."""
        fitting = [prefix for prefix in self._handlers if envelope.type.startswith(prefix)]
        if not fitting:
            known = ", ".join(sorted(self._handlers))
            reason = f"type: nothing here handles it; known prefixes: {known}"
            raise MalformedRequest(reason, envelope.request_id)
        await self._handlers[max(fitting, key=len)](group, envelope)
