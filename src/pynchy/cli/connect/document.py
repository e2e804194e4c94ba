"""Read and replace a file that belongs to a person."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pynchy.errors import ConfigError

_CAP_BYTES = 32 * 1024 * 1024
_BOM = "\ufeff"
_WRITABLE = 0o222
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was read. `text` has plain line ends and no byte order mark."""

    path: Path
    raw: bytes | None
    text: str

    def encode(self, text: str) -> bytes:
        """Return the bytes of a new text, in the manner of the old. Raise ConfigError."""
        old = (self.raw or b"").decode()
        if _has_windows_lines(old):
            text = text.replace("\n", "\r\n")
        try:
            return ((_BOM if old.startswith(_BOM) else "") + text).encode()
        except UnicodeEncodeError as exc:  # a path may have any bytes in its name
            raise ConfigError(
                f"{self.path}: {text[exc.start - 30 : exc.end]!r} is no UTF-8 text, so it cannot be"
                " written there"
            ) from exc


def read_document(path: Path) -> Document:
    """Return what is there; an empty text where there is no file. Raise ConfigError."""
    try:
        real = path.resolve()
        if not stat.S_ISREG(real.stat().st_mode):  # before it is opened: a pipe would block
            raise ConfigError(f"{path}: is no regular file")
        with real.open("rb") as file:
            raw = file.read(_CAP_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Document(path, None, "")
    except (OSError, RuntimeError) as exc:
        raise ConfigError(f"{path}: cannot be read: {_reason(exc)}") from exc
    if len(raw) > _CAP_BYTES:
        raise ConfigError(f"{path}: is larger than {_CAP_BYTES} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8 text; nothing was written") from exc
    if _has_windows_lines(text):
        text = text.replace("\r\n", "\n")
    return Document(path, raw, text.removeprefix(_BOM))


def check_writable(path: Path) -> None:
    """Raise ConfigError if its owner, or the disk, does not let the file be changed."""
    real = path.resolve()
    with suppress(FileNotFoundError, NotADirectoryError):
        if not real.stat().st_mode & _WRITABLE or not os.access(real, os.W_OK):
            raise ConfigError(
                f"{path}: is read-only, so something else may look after it; nothing was written"
            )


def replace_document(
    document: Document, text: str, now: datetime, mode: int, hide: Callable[[str], str] = str
) -> Path | None:
    """Write the new text; return where the copy of the old one is. Raise ConfigError.

    `mode` is for a file that is new. `hide` takes secrets out of a text: a file with one is for its
    owner alone from now on, and no copy has any, since a repository may not ignore it.
    """
    check_writable(document.path)
    real = document.path.resolve()
    try:
        real.parent.mkdir(mode=0o777 if mode & _OTHERS else 0o700, parents=True, exist_ok=True)
        copy = _keep_copy(real, _without_secrets(document.raw, hide), now)
        try:
            is_secret = hide(text) != text
            _replace(real, document, document.encode(text), mode, is_secret=is_secret)
        except ConfigError:  # it was left alone, so there is nothing that the copy is of
            if copy is not None:
                copy.unlink()
            raise
    except OSError as exc:
        raise ConfigError(f"{document.path}: cannot be written: {_reason(exc)}") from exc
    return copy


def _without_secrets(raw: bytes | None, hide: Callable[[str], str]) -> bytes | None:
    if raw is None:
        return None
    return hide(raw.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _keep_copy(real: Path, raw: bytes | None, now: datetime) -> Path | None:
    if raw is None:
        return None
    info = real.stat()
    copy = real.with_name(f"{real.name}.before-pynchy-{now:%Y%m%dT%H%M%S}")
    for number in range(2, 100):
        try:
            _write_new(copy, raw, stat.S_IMODE(info.st_mode), info)
        except FileExistsError:  # twice in a second
            copy = real.with_name(f"{real.name}.before-pynchy-{now:%Y%m%dT%H%M%S}-{number}")
        else:
            return copy
    raise FileExistsError(errno.EEXIST, "too many copies are beside it", str(copy))


def _replace(real: Path, document: Document, data: bytes, mode: int, *, is_secret: bool) -> None:
    info = real.stat() if document.raw is not None else None
    mode = stat.S_IMODE(info.st_mode) if info else mode
    temporary = real.with_name(f".{real.name}.{os.urandom(6).hex()}.tmp")
    try:
        _write_new(temporary, data, mode & ~_OTHERS if is_secret else mode, info)
        if read_document(document.path).raw != document.raw:
            raise ConfigError(
                f"{document.path}: was changed by somebody else just now, so it was left alone;"
                " run this again"
            )
        temporary.replace(real)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(real.parent)


def _write_new(path: Path, data: bytes, mode: int, like: os.stat_result | None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        if like is not None:
            if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):  # ours then, as with any editor
                    os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, mode)
        file.write(data)
        file.flush()
        os.fsync(fd)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _has_windows_lines(text: str) -> bool:
    """True if every line ends as on Windows; a mixture is left as it is."""
    count = text.count("\r\n")
    return count > 0 and count == text.count("\n")


def _reason(exc: OSError | RuntimeError) -> str:
    return (isinstance(exc, OSError) and exc.strerror) or str(exc)
