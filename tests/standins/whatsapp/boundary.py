"""The foreign functions of neonize, replaced; it runs in the child, before that connects.

Only `gocode` is replaced. What the library gives to it are real callbacks, and they are called
from a thread of their own with the bytes of real protobuf messages, as Go does.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pynchy.channels.whatsapp.child import allow_missing_libmagic

_PANIC = 2
_FOREVER = 3600.0


def install(address: str) -> None:
    """Let neonize talk to the stand-in at this address."""
    load_library()
    client: Any = import_module("neonize.aioze.client")
    client.gocode = Boundary(address)


def load_library() -> Any:
    """Return pynchy.channels.whatsapp.neonize_client, with neonize and without what is Go in it."""
    allow_missing_libmagic()
    os.environ["SPHINX"] = "1"
    try:
        return import_module("pynchy.channels.whatsapp.neonize_client")
    finally:
        del os.environ["SPHINX"]


class Boundary:
    """One connection to the stand-in."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._protos = import_module("neonize.proto.Neonize_pb2")
        self._formats = import_module("google.protobuf.json_format")
        self._codes = {
            kind.DESCRIPTOR.name: code
            for kind, code in import_module("neonize.events").EVENT_TO_INT.items()
        }
        self._types = import_module("neonize.events").INT_TO_EVENT
        self._socket: socket.socket | None = None
        self._numbers = itertools.count()
        self._replies: dict[int, SimpleQueue[Any]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()
        self._uuid = b""

    # The names below are those of Go's functions.

    def Neonize(self, store: bytes, uuid: bytes, *rest: Any) -> bytes:  # noqa: N802
        """Connect, and return when the connection has ended; with an error if it failed."""
        on_qr, on_event = rest[4], rest[6]
        Path(os.fsdecode(store)).touch(mode=0o600)
        self._uuid = uuid
        try:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(self._address)
        except OSError as exc:
            return f"failed to dial whatsapp: {exc.strerror}".encode()
        threading.Thread(target=self._read, args=(on_qr, on_event), daemon=True).start()
        self._say(hello=os.getpid())
        return self._ended.get().encode()

    def Stop(self, _uuid: bytes) -> None:  # noqa: N802
        """End the connection."""
        self._ended.put("")

    def SendMessage(self, _uuid: bytes, to: bytes, _: int, content: bytes, _n: int) -> bytes:  # noqa: N802
        """Send a message."""
        message = import_module("neonize.proto.waE2E.WAWebProtobufsE2E_pb2").Message
        return self._ask(
            "SendMessageReturnFunction",
            do="send",
            to=self._to_dict(self._protos.JID.FromString(to)),
            content=self._to_dict(message.FromString(content)),
        )

    def GetMe(self, _uuid: bytes) -> bytes:  # noqa: N802
        """Return the paired account."""
        return self._ask("Device", do="me")

    def GetPNFromLID(self, _uuid: bytes, lid: bytes, _: int) -> bytes:  # noqa: N802
        """Return the phone number of a hidden id."""
        asked = self._to_dict(self._protos.JID.FromString(lid))
        return self._ask("GetJIDFromStoreReturnFunction", do="phone", lid=asked)

    def PairPhone(self, _uuid: bytes, params: bytes, _: int) -> bytes:  # noqa: N802
        """Return a code to pair with."""
        asked = self._to_dict(self._protos.PairPhoneParams.FromString(params))
        return self._ask("PairPhoneReturnFunction", do="pair", params=asked)

    def GetJoinedGroups(self, _uuid: bytes) -> bytes:  # noqa: N802
        """Return the account's groups."""
        return self._ask("GetJoinedGroupsReturnFunction", do="groups")

    def Logout(self, _uuid: bytes) -> bytes:  # noqa: N802
        """Take the device off the account."""
        return str(self._call(do="logout") or "").encode()

    def _read(self, on_qr: Callable[..., None], on_event: Callable[..., None]) -> None:
        assert self._socket is not None
        with self._socket.makefile() as lines:
            for line in lines:
                self._take(json.loads(line), on_qr, on_event)
        self._ended.put("the stand-in has gone")

    def _take(
        self, told: dict[str, Any], on_qr: Callable[..., None], on_event: Callable[..., None]
    ) -> None:
        match told:
            case {"re": number, "value": value}:
                self._replies.pop(number).put(value)
            case {"qr": code}:
                on_qr(
                    None, ctypes.cast(ctypes.create_string_buffer(code.encode()), ctypes.c_void_p)
                )
            case {"event": kind, "body": body}:
                if "number" in told:
                    # The library thanks WhatsApp before anybody has seen the message.
                    self._say(ack=told["number"])
                self._call_back(on_event, kind, self._proto(self._types[self._codes[kind]], body))
            case {"event": kind, "raw": raw}:
                self._call_back(on_event, kind, bytes.fromhex(raw))
            case {"panic": words}:
                # As Go ends a process: at once, with the reason on stderr.
                sys.stderr.write(f"panic: {words}\n")
                sys.stderr.flush()
                os._exit(_PANIC)
            case {"end": error}:
                self._ended.put(error)

    def _call_back(self, on_event: Callable[..., None], kind: str, content: bytes) -> None:
        buffer = ctypes.create_string_buffer(content, len(content) or 1)
        on_event(self._uuid, ctypes.cast(buffer, ctypes.c_void_p), len(content), self._codes[kind])

    def _ask(self, kind: str, **asked: Any) -> bytes:
        return self._proto(getattr(self._protos, kind), self._call(**asked))

    def _call(self, **asked: Any) -> Any:
        number = next(self._numbers)
        self._replies[number] = SimpleQueue()
        waiting = self._replies[number]
        self._say(id=number, **asked)
        return waiting.get(timeout=_FOREVER)

    def _say(self, **body: Any) -> None:
        if self._socket is not None:
            self._socket.sendall(json.dumps(body).encode() + b"\n")

    def _proto(self, kind: Any, body: dict[str, Any]) -> bytes:
        made: bytes = self._formats.ParseDict(body, kind()).SerializeToString()
        return made

    def _to_dict(self, message: Any) -> Any:
        return self._formats.MessageToDict(message, preserving_proto_field_name=True)
