"""A notification service on a real bus that can do as much as a test says."""

import threading
from dataclasses import dataclass
from typing import Any, Self

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import open_dbus_connection

_SERVICE = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"


@dataclass(frozen=True, slots=True)
class Notified:
    """One call of Notify: who called, and with what."""

    sender: str
    number: int
    title: str
    body: str
    actions: tuple[str, ...]
    hints: dict[str, Any]


class NotificationService:
    """Owns the service's name from `with` on, until its end."""

    def __init__(self, address: str, *capabilities: str) -> None:
        self._address = address
        self._capabilities = list(capabilities)
        self.shown: list[Notified] = []
        self.closed: list[int] = []
        # How often it is too busy to say what it can.
        self.busy = 0
        self._count = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._connection = open_dbus_connection(self._address)
        self._connection.send_and_get_reply(message_bus.RequestName(_SERVICE))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.send(message_bus.ReleaseName(_SERVICE))
        self._thread.join()
        self._connection.close()

    def reply(self, number: int, text: str) -> None:
        """Let a person write into the text field of a popup."""
        self._tell("NotificationReplied", "us", (number, text))

    def press(self, number: int, key: str) -> None:
        self._tell("ActionInvoked", "us", (number, key))

    def dismiss(self, number: int) -> None:
        """Say that a person closed the popup, as many services do of what was pressed, too."""
        self._tell("NotificationClosed", "uu", (number, 2))

    def _tell(self, member: str, signature: str, body: tuple[Any, ...]) -> None:
        emitter = DBusAddress(_PATH, interface=_SERVICE)
        self._connection.send(new_signal(emitter, member, signature, body))

    def _serve(self) -> None:
        while True:
            message = self._connection.receive()
            if message.header.message_type is MessageType.method_call:
                member = message.header.fields[HeaderFields.member]
                if member == "GetCapabilities" and self.busy:
                    self.busy -= 1
                else:
                    self._connection.send(self._answer(message))
            elif message.header.message_type is MessageType.method_return:
                return  # of ReleaseName

    def _answer(self, call: Message) -> Message:
        match call.header.fields[HeaderFields.member]:
            case "GetCapabilities":
                return new_method_return(call, "as", (self._capabilities,))
            case "GetServerInformation":
                return new_method_return(call, "ssss", ("stand-in", "pynchy", "1", "1.2"))
            case "Notify":
                return new_method_return(call, "u", (self._notify(call),))
            case "CloseNotification":
                self.closed.append(call.body[0])
        return new_method_return(call)

    def _notify(self, call: Message) -> int:
        _, replaces, _, title, body, actions, hints, _ = call.body
        self._count += not replaces
        number = int(replaces or self._count)
        sender = call.header.fields[HeaderFields.sender]
        self.shown.append(Notified(sender, number, title, body, tuple(actions), hints))
        return number
