"""The data folder and the settings file: where they are, who holds them, and where the host is.

One host at a time holds the folder; the token in it is for whoever may answer.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pynchy.errors import ConfigError, DataFolderBusy, HostError, NoHost
from pynchy.own_program import own_call
from pynchy.safe_folder import Folder, UnsafeFile
from pynchy.status_line import is_held, read_announced

SETTINGS_NAME = "pynchy.toml"

_ANNOUNCED = "host.json"
_SERVED_WITH = "settings.json"
_TOKEN_BYTES = 32
_CAP = 4_096
# A path is at most 4,096 bytes, each of which may be written as six.
_HOST_CAP = 32_768
_LOW_SPACE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """Where settings come from: `path` is None where the defaults count.

    `digest` is empty where the file cannot be read twice, such as a pipe.
    """

    path: Path | None = None
    digest: str = ""

    @classmethod
    def of(cls, path: Path | None) -> Self:
        """Return the file as it is now. To be asked before the file is read, not after."""
        return cls() if path is None else cls(path.absolute(), _digest(path))

    def has_changed(self) -> bool:
        """Whether the file says something else now, or is gone."""
        return self.path is not None and bool(self.digest) and _digest(self.path) != self.digest

    def is_file(self, path: Path | None) -> bool:
        """Whether the settings come from that file, whatever links lead to it."""
        if self.path is None or path is None:
            return self.path is path
        return self.path.resolve() == path.resolve()


def _digest(path: Path) -> str:
    from hashlib import sha256  # noqa: PLC0415 - commands that only look for the host need none

    try:
        return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except OSError:
        return ""


def find_settings(explicit: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the settings file to read, or None where there is none.

    Raise ConfigError if the file that was asked for by name is missing.
    """
    if explicit is not None:
        return _existing(explicit, "--config")
    if named := environ.get("PYNCHY_CONFIG"):
        return _existing(Path(named), "PYNCHY_CONFIG")
    folders = [Path(), _own_folder(environ, "XDG_CONFIG_HOME", ".config")]
    paths = (folder / SETTINGS_NAME for folder in folders if folder is not None)
    return next((path for path in paths if _is_there(path)), None)


def groups_in_settings(path: Path | None) -> list[str]:
    """Return the groups that the file has tables for; none where it cannot be read."""
    import tomllib  # noqa: PLC0415 - only for a group that somebody names

    if path is None:
        return []
    try:
        tables = tomllib.loads(path.read_text("utf-8")).get("groups", {})
    except (OSError, ValueError):
        return []  # whoever loads the settings says what is wrong with them
    return list(tables) if isinstance(tables, dict) else []


def own_settings(environ: Mapping[str, str]) -> Path:
    """Return the settings file of this user, which need not exist. Raise ConfigError."""
    folder = _own_folder(environ, "XDG_CONFIG_HOME", ".config")
    if folder is None:
        raise ConfigError("this user has no home folder: say which file with --config")
    return folder / SETTINGS_NAME


def data_dir(explicit: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the data folder, which need not exist yet. Raise ConfigError without a home."""
    if explicit is not None:
        return explicit
    if named := environ.get("PYNCHY_DATA_DIR"):
        return Path(named)
    folder = _own_folder(environ, "XDG_DATA_HOME", ".local/share")
    if folder is None:
        raise ConfigError("this user has no home folder: say where with --data-dir")
    return folder


def _existing(path: Path, asked_by: str) -> Path:
    if not _is_there(path):
        raise ConfigError(
            f"{path}: there is no such settings file\n"
            f"  {asked_by} names it; write one with: pynchy init"
        )
    return path


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # What cannot be looked at is better refused when read than passed over.


def _own_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    named = Path(environ.get(variable, ""))
    # The XDG rules say that a relative path is to be ignored.
    if named.is_absolute():
        return named / "pynchy"
    home = _home(environ)
    return home / usual / "pynchy" if home else None


def _home(environ: Mapping[str, str]) -> Path | None:
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path.home()
    except RuntimeError:
        return None


@dataclass(frozen=True, slots=True)
class HostAddress:
    """Where a running host is, and the token that it wants."""

    url: str
    token: str


class DataFolder:
    """The folder that holds everything a host knows."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.ipc = self.path / "ipc"
        self.audit = self.path / "audit"
        self.folder = Folder(self.path)
        self._lock: int | None = None
        self._announced: int | None = None

    def make(self) -> None:
        """Create it for its owner alone. Raise HostError if that cannot be done."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.ipc.mkdir(mode=0o700, exist_ok=True)
        except OSError as exc:
            raise HostError(
                f"{self.path}: the data folder cannot be used ({exc.strerror}); "
                "choose another with --data-dir"
            ) from exc

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only host. Raise DataFolderBusy if there is one already."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self.path / "host.lock", flags, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                raise DataFolderBusy(
                    f"{self.path}: another pynchy host uses this data folder; "
                    "stop it, or choose another folder with --data-dir"
                ) from exc
            # A host that was killed has left it, and its port may be anybody's by now.
            self.folder.remove(_ANNOUNCED)
            self.folder.clear_temporary()
            self._lock = fd
            yield
        finally:
            self._lock = None
            self._unlock_announced()
            os.close(fd)

    def is_ours(self) -> bool:
        """True while the lock that this host holds is the one that another host would find.

        It is not if somebody has removed the lock or moved the folder.
        """
        try:
            found = (self.path / "host.lock").lstat()
            return self._lock is not None and os.path.samestat(found, os.fstat(self._lock))
        except OSError:
            return False

    @property
    def option(self) -> str:
        """What a command needs besides to use this folder: nothing for the usual one."""
        try:
            if self.path == data_dir(None, os.environ).absolute():
                return ""
        except ConfigError:
            pass
        return f" --data-dir {shlex.quote(str(self.path))}"

    def token(self) -> str:
        """Return the token, made on first use."""
        import secrets  # noqa: PLC0415 - slow to import, and only a host makes a token

        self.folder.create("token", secrets.token_urlsafe(_TOKEN_BYTES).encode())
        return self._read_token()

    def announce(self, url: str, origin: SettingsSource | None = None) -> None:
        """Write down where the host is, and where its settings come from if that is known.

        The file is locked, so that nobody believes it once this process is gone.
        """
        body: dict[str, object] = {"url": url, "pid": os.getpid(), "locked": True}
        if origin is not None:
            path = None if origin.path is None else str(origin.path)
            body["settings"] = {"file": path, "digest": origin.digest}
        # Locked under another name: whoever looks at it would be in the way of the lock.
        draft = f"{_ANNOUNCED}.new"
        self.folder.replace(draft, json.dumps(body).encode())
        self._unlock_announced()
        self._announced = self.folder.open_file(draft)
        fcntl.flock(self._announced, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.folder.rename(draft, _ANNOUNCED)
        if origin is not None and not self._was_served_with(origin.path):
            self._remember(origin.path)

    def check_found(self, found: Path | None) -> None:
        """Raise ConfigError for settings that lie in the current folder if others were used last.

        To be asked of a file that nobody has named. An agent may have left it in its workspace.
        """
        last = self._served_with()
        if found is None or last is None or found.absolute().parent != Path.cwd():
            return
        if last.is_file(found) or (last.path and not _is_there(last.path)):
            return
        here = shlex.quote(str(found.absolute()))
        other = f"    --config {shlex.quote(str(last.path))}\n" if last.path else ""
        raise ConfigError(
            f"{found.absolute()}: lies in this folder, but the host last ran with "
            f"{last.path or 'no settings file'}\n"
            f"  settings can start programs, so say once which file you mean:\n{other}"
            f"    --config {here}"
        )

    def accept(self, written: Path) -> None:
        """Let the file count that a person has just made, if the last host had none."""
        if self._was_served_with(None):
            self._remember(written.absolute())

    def _was_served_with(self, path: Path | None) -> bool:
        last = self._served_with()
        return last is not None and last.path == path

    def _served_with(self) -> SettingsSource | None:
        """Return where the settings of the last host came from; None if that is unknown."""
        try:
            path = json.loads(self.folder.read(_SERVED_WITH, _HOST_CAP))["file"]
        except (OSError, UnsafeFile, ValueError, KeyError, TypeError):
            return None
        if path is None:
            return SettingsSource()
        return SettingsSource(Path(path)) if isinstance(path, str) else None

    def _remember(self, settings: Path | None) -> None:
        path = None if settings is None else str(settings)
        self.folder.replace(_SERVED_WITH, json.dumps({"file": path}).encode())

    def retract(self) -> None:
        """Say that there is no host any more, unless the folder is another host's by now."""
        if self.is_ours():
            self.folder.remove(_ANNOUNCED)
        self._unlock_announced()

    def _unlock_announced(self) -> None:
        if self._announced is not None:
            os.close(self._announced)
            self._announced = None

    def is_locked(self) -> bool:
        """True while a host runs."""
        try:
            return is_held(self.folder.open_file("host.lock"))
        except (OSError, UnsafeFile):
            return False

    def host(self) -> HostAddress:
        """Return where the running host is. Raise NoHost if there is none."""
        try:
            if self.is_locked():
                url = read_announced(self.folder.open_file(_ANNOUNCED))["url"]
                return HostAddress(str(url), self._read_token())
        except (OSError, UnsafeFile, ValueError, KeyError):
            pass
        raise NoHost(
            f"no pynchy host is running on {self.path}; "
            f"start one with: {own_call()} serve{self.option}"
        )

    def origin(self) -> SettingsSource | None:
        """Return where the running host's settings come from; None if there is no telling."""
        try:
            if self.is_locked():
                told = read_announced(self.folder.open_file(_ANNOUNCED))["settings"]
                path = None if told["file"] is None else Path(str(told["file"]))
                return SettingsSource(path, str(told["digest"]))
        except (OSError, UnsafeFile, ValueError, KeyError, TypeError):
            pass
        return None

    def disk_problem(self) -> str | None:
        """Say what is wrong with its disk, in words for a person."""
        # The mailboxes may be on a disk of their own.
        return _disk_problem(self.path) or _disk_problem(self.ipc)

    def _read_token(self) -> str:
        return self.folder.read("token", _CAP, one_link=False).decode().strip()


def _disk_problem(path: Path) -> str | None:
    try:
        info = os.statvfs(path)
    except OSError as exc:
        return f"{path} cannot be looked at: {exc.strerror}"
    if info.f_flag & os.ST_RDONLY:
        return f"the disk of {path} is read-only: nothing can be asked or answered"
    if info.f_files and not info.f_favail:
        return f"the disk of {path} is full: there is room for no more files (inodes)"
    free = info.f_bavail * info.f_frsize
    if free >= _LOW_SPACE_BYTES:
        return None
    return f"the disk of {path} is nearly full: {free // 2**20} MiB are left"
