"""Linux: the notification service of the session bus (org.freedesktop.Notifications), by jeepney.

On a session bus anybody may send a signal. Only signals of the service's owner count: the bus
vouches for who sent one. Popups of a service that is gone are gone with it.
"""

from __future__ import annotations

import asyncio
import html
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from jeepney import (
    DBusAddress,
    DBusErrorResponse,
    HeaderFields,
    MatchRule,
    Message,
    MessageType,
    message_bus,
    new_method_call,
)
from jeepney.auth import AuthenticationError
from jeepney.io.asyncio import DBusConnection, open_dbus_connection
from jeepney.wrappers import unwrap_msg

from pynchy.desktop.backend import (
    Backend,
    Happening,
    PopupDismissed,
    Pressed,
    ServiceReady,
    TextWritten,
)
from pynchy.desktop.popup import BODY, REPLY, USUAL_BUTTONS, Abilities, Popup
from pynchy.errors import ChannelUnavailable, NotShown
from pynchy.model import Urgency

log = logging.getLogger(__name__)

_SERVICE = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_BUS = "org.freedesktop.DBus"
_BY_PERSON = 2
_CALL_SECONDS = 5.0
_START_SECONDS = 3.0
_RECONNECT_SECONDS = 1.0
_RECONNECT_MAX_SECONDS = 60.0
_URGENCY = {Urgency.LOW: 0, Urgency.NORMAL: 1, Urgency.HIGH: 2}
# Those that are known to show more than three buttons, or have a menu for them.
_MANY_BUTTONS = frozenset(
    {"dunst", "mako", "plasma", "swaynotificationcenter", "xfce notify daemon"}
)
_MOST_BUTTONS = 8

NO_BUS = "there is no session bus: nobody is logged in at a desktop as the user that pynchy runs as"
_LOG_IN = (
    "run the host in your session (as your own user, while you are logged in), or take "
    "[channels.desktop] out and run pynchy desktop there (pynchy docs desktop)"
)
_START_SERVICE = "start your desktop's notification service, such as dunst or mako"
NO_SERVICE = "no notification service is running on the session bus"


class _Link:
    """One connection to the bus: calls with their replies, and signals."""

    def __init__(self, connection: DBusConnection) -> None:
        self._connection = connection
        self._replies: dict[int, tuple[str, asyncio.Future[Message]]] = {}
        self.signals: asyncio.Queue[Message] = asyncio.Queue()

    async def call(self, message: Message) -> tuple[Any, ...]:
        """Return what the call returns. Raise ChannelUnavailable if nothing comes."""
        serial = next(self._connection.outgoing_serial)
        callee = message.header.fields[HeaderFields.destination]
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._replies[serial] = (callee, reply)
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                await self._connection.send(message, serial=serial)
                return tuple(unwrap_msg(await reply))
        except TimeoutError as exc:
            raise ChannelUnavailable("the notification service does not answer") from exc
        except DBusErrorResponse as exc:
            raise NotShown(f"the notification service refused: {exc.name}") from exc
        except OSError as exc:
            raise ChannelUnavailable("the session bus went away") from exc
        finally:
            del self._replies[serial]

    async def receive(self) -> None:
        """Take what comes, until the bus goes away. Raise EOFError or OSError then."""
        while True:
            message = await self._connection.receive()
            fields = message.header.fields
            serial = fields.get(HeaderFields.reply_serial)
            if message.header.message_type is MessageType.signal:
                self.signals.put_nowait(message)
            elif serial in self._replies:
                callee, reply = self._replies[serial]
                # The bus itself answers for whoever is not there.
                if fields.get(HeaderFields.sender) in {callee, _BUS} and not reply.done():
                    reply.set_result(message)


class DBusBackend(Backend):
    """The notification service of a session bus; `address` is the bus's own."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._link: _Link | None = None
        self._bus_id = ""
        # Who shows notifications, and has told us what it can; and whoever has the name.
        self._owner = ""
        self._holder = ""
        self._problem: str | None = "not connected yet"
        self._abilities = Abilities()
        self._escapes = False

    @property
    def abilities(self) -> Abilities:
        """See Backend."""
        return self._abilities

    def problem(self) -> str | None:
        """See Backend."""
        return self._problem

    def fix(self) -> str:
        """See Backend."""
        return _LOG_IN if self._problem == NO_BUS else _START_SERVICE

    def is_current(self, popup_id: str) -> bool:
        """See Backend."""
        return bool(self._owner) and popup_id.rpartition("/")[0] == self._prefix

    async def run(self) -> None:
        """See Backend."""
        pause = _RECONNECT_SECONDS
        while True:
            try:
                async with self._connected() as link:
                    pause = _RECONNECT_SECONDS
                    await self._follow(link)
            except* (ChannelUnavailable, OSError, EOFError, *_BROKEN) as exc:
                log.info("desktop.no_bus", extra={"why": repr(exc.exceptions[0])})
            self._lose(NO_BUS)
            self.tried.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _RECONNECT_MAX_SECONDS)

    async def show(self, popup: Popup, replaces: str = "") -> str:
        """See Backend."""
        link, owner = self._service()
        old = int(replaces.rpartition("/")[2]) if self.is_current(replaces) else 0
        prefix = self._prefix
        body = html.escape(popup.body, quote=False) if self._escapes else popup.body
        expires_ms = 0 if popup.stays else -1
        notify = ("pynchy", old, "", popup.title, body, _actions(popup), _hints(popup), expires_ms)
        [shown] = await link.call(_method(owner, "Notify", "susssasa{sv}i", notify))
        return f"{prefix}/{shown}"

    async def close(self, popup_id: str) -> None:
        """See Backend."""
        link, owner = self._service()
        number = int(popup_id.rpartition("/")[2])
        try:
            await link.call(_method(owner, "CloseNotification", "u", (number,)))
        except NotShown:
            log.debug("desktop.gone_already")

    @property
    def _prefix(self) -> str:
        return f"{self._bus_id}/{self._owner}"

    def _service(self) -> tuple[_Link, str]:
        if self._link is None or not self._owner:
            raise NotShown(self._problem or NO_SERVICE)
        return self._link, self._owner

    def _lose(self, problem: str) -> None:
        self._owner, self._problem = "", problem

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Link]:
        if not self._address:
            raise NotShown(NO_BUS)
        connection = await open_dbus_connection(self._address)
        try:
            yield _Link(connection)
        finally:
            self._link = None
            self._lose(NO_BUS)
            connection.writer.close()

    async def _follow(self, link: _Link) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(link.receive())
            await self._subscribe(link)
            self._link = link
            await self._meet(link, await self._find_owner(link), tasks)
            self.tried.set()
            while True:
                signal = await link.signals.get()
                owner = _new_owner(signal)
                if owner is None:
                    self._hear(signal)
                elif not owner or owner != self._owner:
                    await self._meet(link, owner, tasks)

    async def _meet(self, link: _Link, owner: str, tasks: asyncio.TaskGroup) -> None:
        """Greet whoever shows notifications now; one that is busy is asked again."""
        had_owner, self._holder = self._owner, owner
        if not owner:
            self._lose(NO_SERVICE)
            if had_owner:
                tasks.create_task(self._start_again(link))
        elif not await self._greet(link, owner):
            tasks.create_task(self._greet_again(link, owner))

    async def _greet_again(self, link: _Link, owner: str) -> None:
        pause = _RECONNECT_SECONDS
        while self._holder == owner:
            await asyncio.sleep(pause)
            pause = min(pause * 2, _RECONNECT_MAX_SECONDS)
            if self._holder != owner or await self._greet(link, owner):
                return

    async def _start_again(self, link: _Link) -> None:
        """Let the bus start the service where it can, unless somebody does that themselves."""
        await asyncio.sleep(_START_SECONDS)
        if not self._owner:
            with suppress(ChannelUnavailable):
                await link.call(message_bus.StartServiceByName(_SERVICE))

    async def _subscribe(self, link: _Link) -> None:
        owner_changes = MatchRule(
            type="signal", sender=_BUS, interface=_BUS, member="NameOwnerChanged"
        )
        owner_changes.add_arg_condition(0, _SERVICE)
        ours = MatchRule(type="signal", sender=_SERVICE, interface=_SERVICE, path=_PATH)
        for rule in (owner_changes, ours):
            await link.call(message_bus.AddMatch(rule))
        [self._bus_id] = await link.call(new_method_call(message_bus, "GetId"))

    async def _find_owner(self, link: _Link) -> str:
        """Return who shows notifications, started by the bus if it can; empty if nobody does."""
        with suppress(ChannelUnavailable):
            [owner] = await link.call(message_bus.GetNameOwner(_SERVICE))
            return str(owner)
        with suppress(ChannelUnavailable):
            await link.call(message_bus.StartServiceByName(_SERVICE))
            [owner] = await link.call(message_bus.GetNameOwner(_SERVICE))
            return str(owner)
        return ""

    async def _greet(self, link: _Link, owner: str) -> bool:
        """Learn what a new service can do. Return whether it has answered.

        Nothing of ours is shown there yet.
        """
        try:
            [abilities] = await link.call(_method(owner, "GetCapabilities"))
            name, *_ = await link.call(_method(owner, "GetServerInformation"))
        except ChannelUnavailable as exc:
            self._lose(str(exc))
            return False
        many = str(name).casefold() in _MANY_BUTTONS
        self._abilities = Abilities(
            actions="actions" in abilities,
            most_buttons=_MOST_BUTTONS if many else USUAL_BUTTONS,
            text_field="inline-reply" in abilities,
        )
        self._escapes = "body-markup" in abilities
        self.service_name = str(name)
        self._owner, self._problem = owner, None
        self.happenings.put_nowait(ServiceReady())
        return True

    def _hear(self, signal: Message) -> None:
        fields = signal.header.fields
        sender, member = fields.get(HeaderFields.sender), fields.get(HeaderFields.member)
        if sender == self._owner and fields.get(HeaderFields.interface) == _SERVICE:
            happening = _read(str(member), signal.body, self._prefix)
            if happening is not None:
                self.happenings.put_nowait(happening)


_BROKEN = (AuthenticationError, RuntimeError, ValueError)


def session_bus(environ: Mapping[str, str]) -> str:
    """Return the address of the person's bus; a service of theirs may know no more than where."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    return environ.get("DBUS_SESSION_BUS_ADDRESS") or (
        f"unix:path={runtime}/bus" if runtime else ""
    )


def _new_owner(signal: Message) -> str | None:
    """Return who has the service's name now, empty for nobody; None if the signal is another."""
    fields = signal.header.fields
    sender, member = fields.get(HeaderFields.sender), fields.get(HeaderFields.member)
    is_told = sender == _BUS and member == "NameOwnerChanged" and signal.body[0] == _SERVICE
    return str(signal.body[2]) if is_told else None


def _method(
    owner: str, name: str, signature: str | None = None, body: tuple[Any, ...] = ()
) -> Message:
    return new_method_call(DBusAddress(_PATH, owner, _SERVICE), name, signature, body)


def _actions(popup: Popup) -> list[str]:
    body = [BODY, "Open"] if popup.opens else []
    field = [REPLY, popup.text_field] if popup.text_field else []
    return [*body, *field, *(word for b in popup.buttons for word in (b.key, b.label))]


def _hints(popup: Popup) -> dict[str, tuple[str, Any]]:
    # Resident: we close it ourselves, when the answer is taken.
    return {
        "urgency": ("y", _URGENCY[popup.urgency]),
        "category": ("s", "im.received"),
        "desktop-entry": ("s", "pynchy"),
        "resident": ("b", bool(popup.buttons)),
    }


def _read(member: str, body: tuple[Any, ...], prefix: str) -> Happening | None:
    match member, body:
        case "ActionInvoked", (int(number), str(key)):
            return None if key == REPLY else Pressed(f"{prefix}/{number}", key)
        case "NotificationReplied", (int(number), str(text)):
            return TextWritten(f"{prefix}/{number}", text)
        case "NotificationClosed", (int(number), int(reason)) if reason == _BY_PERSON:
            return PopupDismissed(f"{prefix}/{number}")
    return None
