"""What a status bar shows, as quickly as can be: `pynchy status --line` is run every few seconds.

Nothing is imported that is not needed. Whatever is not as expected leaves the line empty: a status
bar must not break. Only a host that runs and does not answer is told of.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_LINE_SECONDS = 2.0
_MAX_BYTES = 1024 * 1024
_NO_ANSWER = "⚠ pynchy does not answer"
_SIGNS = (
    ("🤖", "agents"),
    ("🔒", "permissions_pending"),
    ("🔔", "questions_pending"),
    ("📭", "undelivered"),
    ("⏳", "todos"),
)


def wants_line(words: Sequence[str]) -> bool:
    """True for the command lines that are answered here; all others are click's."""
    plain = list(words)
    while "--data-dir" in plain[:-1]:
        at = plain.index("--data-dir")
        del plain[at : at + 2]
    return [word for word in plain if not word.startswith("--data-dir=")] == ["status", "--line"]


def show_line(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Print the line."""
    try:
        text = _line(_data_dir(words, environ))
    except (OSError, OverflowError, ValueError, KeyError, TypeError):
        text = ""
    try:  # noqa: SIM105 - contextlib is slow to import
        # Not print: a terminal of an old encoding would refuse the signs.
        os.write(1, f"{text}\n".encode())
    except OSError:
        pass  # nobody looks any more


def short_line(status: dict[str, Any]) -> str:
    """Return the figures that are not zero, each behind its sign."""
    # A host of an earlier version tells all that waits in one figure.
    shown = {"questions_pending": status.get("waiting", 0)} | status
    shown["agents"] = status.get("agents", 0) - status.get("agents_idle", 0)
    return " ".join(f"{sign} {shown[name]}" for sign, name in _SIGNS if shown.get(name))


def get_object(url: str, token: str, path: str, seconds: float) -> dict[str, Any]:
    """Return the JSON object that the host answers with. Raise OSError or ValueError.

    With a bare socket: http.client alone would take a third of the time.
    """
    name, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\n\r\n"
    )
    # Not create_connection: it has the name looked at by a codec that is slow to import.
    with socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET) as host:
        host.settimeout(seconds)
        host.connect((name.strip("[]"), int(port)))
        host.sendall(request.encode())
        return _parse(_read_all(host))


def _line(folder: str) -> str:
    if not is_held(_open(f"{folder}/host.lock")):
        return ""
    url = str(read_announced(_open(f"{folder}/host.json"))["url"])
    token = _read(f"{folder}/token").strip()
    try:
        return short_line(get_object(url, token, "/api/status", _LINE_SECONDS))
    except TimeoutError:
        return _NO_ANSWER


def _data_dir(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the data folder as `pynchy.data_dir` finds it; what is said last counts."""
    said = ""
    for before, word in zip(["", *words], words, strict=False):
        if before == "--data-dir":
            said = word
        elif word.startswith("--data-dir="):
            said = word.partition("=")[2]
    if given := said or environ.get("PYNCHY_DATA_DIR"):
        return given
    shared = environ.get("XDG_DATA_HOME", "")
    if shared.startswith("/"):
        return f"{shared}/pynchy"
    return f"{environ.get('HOME') or os.path.expanduser('~')}/.local/share/pynchy"  # noqa: PTH111 - pathlib is slow to import


def is_held(fd: int) -> bool:
    """True if somebody has locked the open file, which is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def read_announced(fd: int) -> dict[str, Any]:
    """Return what a host has written into the open `host.json`, which is closed.

    Raise ValueError unless that host runs: what a killed one has left names a port that may be
    anybody's by now, and must be told no token.
    """
    try:
        told = json.loads(os.read(fd, _MAX_BYTES))
    except BaseException:
        os.close(fd)
        raise
    is_current = is_held(fd)
    # Hosts of earlier versions do not lock it.
    if not isinstance(told, dict) or (told.get("locked") and not is_current):
        raise ValueError("it is not by a host that runs")
    return told


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _read(path: str) -> str:
    fd = _open(path)
    try:
        return os.read(fd, 4_096).decode()
    finally:
        os.close(fd)


def _read_all(host: socket.socket) -> bytes:
    reply = b""
    while len(reply) < _MAX_BYTES and (some := host.recv(65_536)):
        reply += some
    return reply


def _parse(reply: bytes) -> dict[str, Any]:
    head, _, body = reply.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")[1:2]
    value = json.loads(body) if body else None
    if status != [b"200"] or not isinstance(value, dict):
        raise ValueError("it said something else: is it of another version?")
    return value
