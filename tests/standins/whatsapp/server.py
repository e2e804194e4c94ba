"""WhatsApp as the stand-in plays it: one account, its devices' connection, chats, and trouble."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from tests.standins.whatsapp import events
from tests.standins.whatsapp.events import Json
from tests.standins.whatsapp.person import Person

ACCOUNT, ACCOUNT_LID = f"491700000000@{events.PHONE}", f"900700000000@{events.LID}"
_DEVICE = 17


@dataclass(frozen=True, slots=True)
class SentText:
    """A message that the bridge has sent."""

    message_id: str
    to: str
    text: str
    quotes: str = ""
    mentions: tuple[str, ...] = ()
    at: float = field(default_factory=time.time)


class WhatsAppStandIn:
    """A WhatsApp with one account to pair with; `paired` says whether that has been done.

    `refuse` is an error that sends meet; `panics` is how many sends end the process after WhatsApp
    has the message and before it can say so.
    """

    def __init__(self, *, paired: bool = True) -> None:
        self._folder = tempfile.mkdtemp(prefix="wa-")
        self.address = f"{self._folder}/socket"
        self.account = ACCOUNT
        self.paired = paired
        self.sent: list[SentText] = []
        self.pids: list[int] = []
        self.refuse = ""
        self.panics = 0
        self.phones: dict[str, str] = {ACCOUNT_LID: ACCOUNT}
        self.asked_phone = ""
        self.groups: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Json] = {}
        self._lock = threading.RLock()
        self._connection: socket.socket | None = None
        self._listening = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Listen."""
        self._listening.bind(self.address)
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def stop(self) -> None:
        """End, with whoever is connected."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.drop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def connected(self) -> bool:
        """True while a child is connected."""
        return self._connection is not None

    def person(self, number: str, name: str, lid: str = "") -> Person:
        """Return somebody with this phone number, and with a hidden id where one is given."""
        if lid:
            self.phones[f"{lid}@{events.LID}"] = f"{number}@{events.PHONE}"
        return Person(self, number, name, lid)

    def owner(self) -> Person:
        """Return whoever holds the phone that is paired."""
        number, lid = ACCOUNT.partition("@")[0], ACCOUNT_LID.partition("@")[0]
        return Person(self, number, "Owner", lid, from_me=True)

    def new_id(self) -> str:
        """Return the id of a new message."""
        return f"3EB0{next(self._numbers):012X}"

    def texts(self, chat: str) -> list[SentText]:
        """Return what the bridge has sent to the chat."""
        with self._lock:
            return [sent for sent in self.sent if sent.to == chat]

    def emit(self, kind: str, **body: Any) -> None:
        """Let an event of this kind happen."""
        self._deliver({"event": kind, "body": body})

    def emit_raw(self, kind: str, content: bytes) -> None:
        """Let an event with these very bytes happen."""
        self._deliver({"event": kind, "raw": content.hex()})

    def say_message(self, event: Json) -> None:
        """Deliver a message; while nobody has thanked for it, each new connection gets it."""
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = event
            self._deliver_message(number)

    def say_and_panic(self, event: Json) -> None:
        """Deliver a message, and end the process as soon as the library has been called."""
        with self._lock:
            self.say_message(event)
            self.panic()

    def scan(self) -> None:
        """Let the phone accept this device."""
        self.paired = True
        self.emit(
            "PairStatus",
            ID=events.jid(ACCOUNT, _DEVICE),
            BusinessName="",
            Platform="android",
            Status="SUCCESS",
            Error="",
        )
        self.emit("Connected", status=True)

    def panic(self, words: str = "runtime error: invalid memory address") -> None:
        """Let the Go side end its process."""
        self._deliver({"panic": words})

    def end(self, error: str) -> None:
        """Let the library give up with an error."""
        self._deliver({"end": error})

    def drop(self) -> None:
        """Break the connection."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection, connection.makefile() as lines:
            for line in lines:
                self._take(connection, json.loads(line))
        with self._lock:
            if self._connection is connection:
                self._connection = None

    def _take(self, connection: socket.socket, told: Json) -> None:
        with self._lock:
            if "hello" in told:
                self.pids.append(told["hello"])
                self._connection = connection
                self._greet()
            elif "ack" in told:
                self._waiting.pop(told["ack"], None)
            elif "do" in told:
                value = getattr(self, f"_{told['do']}")(told)
                if value is not None:
                    self._deliver({"re": told["id"], "value": value})

    def _greet(self) -> None:
        if self.paired:
            self.emit("Connected", status=True)
            for number in list(self._waiting):
                self._deliver_message(number)
        else:
            self._deliver({"qr": "2@stand-in,not,a,session"})

    def _send(self, told: Json) -> Json | None:
        if self.refuse:
            return {"Error": self.refuse}
        sent = self._note(told)
        if self.panics:
            self.panics -= 1
            self.panic("send on closed channel")
            return None
        return {"SendResponse": _response(sent)}

    def _note(self, told: Json) -> SentText:
        content = told["content"]
        long = content.get("extendedTextMessage", {})
        context = long.get("contextInfo", {})
        sent = SentText(
            self.new_id(),
            f"{told['to']['User']}@{told['to']['Server']}",
            content.get("conversation") or long.get("text", ""),
            context.get("stanzaID", ""),
            tuple(context.get("mentionedJID", ())),
        )
        self.sent.append(sent)
        return sent

    def _me(self, _: Json) -> Json:
        return {
            "JID": events.jid(ACCOUNT, _DEVICE),
            "LID": events.jid(ACCOUNT_LID, _DEVICE),
            "Platform": "android",
            "BussinessName": "",
            "PushName": "Owner",
            "Initialized": True,
        }

    def _phone(self, told: Json) -> Json:
        found = self.phones.get(f"{told['lid']['User']}@{events.LID}")
        return {"Jid": events.jid(found)} if found else {"Error": "no such mapping"}

    def _pair(self, told: Json) -> Json:
        self.asked_phone = told["params"]["phone"]
        return {"Code": "ABCD-EFGH"}

    def _groups(self, _: Json) -> Json:
        return {"Group": [events.group(chat, name) for chat, name in self.groups.items()]}

    def _logout(self, _: Json) -> str:
        self.paired = False
        return self.refuse

    def _deliver_message(self, number: int) -> None:
        if self.paired:
            body = self._waiting[number]
            self._deliver({"event": "Message", "body": body, "number": number})

    def _deliver(self, body: Json) -> None:
        with self._lock:
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.sendall(json.dumps(body).encode() + b"\n")


def _response(sent: SentText) -> Json:
    steps = "Queue Marshal GetParticipants GetDevices GroupEncrypt PeerEncrypt Send Resp Retry"
    return {
        "Timestamp": int(sent.at * 1000),
        "ID": sent.message_id,
        "ServerID": 0,
        "DebugTimings": dict.fromkeys(steps.split(), 0),
    }
