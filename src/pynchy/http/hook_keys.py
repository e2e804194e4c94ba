"""Who may ask for permissions over HTTP: one key for each group whose program was connected.

A key is made of the host's token and a salt, so the file with the salts lets nobody in. A group's
key is good for its permissions and nothing else, and is void as soon as its salt is gone. A file
that cannot be understood is left as it is: to write another would make all keys void.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from pynchy.data_dir import DataFolder
from pynchy.errors import ConfigError
from pynchy.model import GroupName
from pynchy.safe_folder import UnsafeFile

log = logging.getLogger(__name__)

HOOK_PATH = "/hooks/claude"
# In the scope of a request: the group whose key it has.
HOOK_GROUP = "pynchy.hook_group"
# How the program was started, in a header of its events and, to its commands, in a variable.
STARTED_HEADER = "Pynchy-Entrypoint"
STARTED_VARIABLE = "CLAUDE_CODE_ENTRYPOINT"
# In the data folder while a permission is asked for in some terminal.
WAITING_FILE = "terminal-waits"
FILE_NAME = "hooks.json"
PREFIX = "pynchy_hook_"

_CAP = 256 * 1024
_SALT_BYTES = 16


def is_unattended(started: str) -> bool:
    """True for a program that shows no dialog: it is run by a script, or by pynchy itself."""
    return started.startswith("sdk")


class HookKeys:
    """The keys of one data folder."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._seen: tuple[int, int] | None = None
        self._known: dict[str, str] = {}

    def groups(self) -> list[GroupName]:
        """Return the groups that have a key. Raise ConfigError, as all here, for a damaged file."""
        return [GroupName(group) for group in self._salts()]

    def find(self, group: str) -> str | None:
        """Return the group's key; None if there is none."""
        salt = self._salts().get(group)
        return self._key(group, salt) if salt and self._data.folder.has("token") else None

    def make(self, group: str) -> str:
        """Return the group's key, made if there is none."""
        if (known := self.find(group)) is not None:
            return known
        self._data.make()
        with self._locked():
            salts = self._salts()
            if group not in salts:
                salts[group] = secrets.token_hex(_SALT_BYTES)
                self._write(salts)
        return self._key(group, salts[group])

    def drop(self, group: str) -> None:
        """Let the group's key be void."""
        if group not in self._salts():
            return
        with self._locked():
            self._write({name: salt for name, salt in self._salts().items() if name != group})

    def group_of(self, key: str) -> GroupName | None:
        """Return the group whose key it is; None if it is nobody's."""
        given, found = key.encode(errors="replace"), None
        for group, known in self._keys().items():  # all of them: time must not tell
            if hmac.compare_digest(given, known.encode()):
                found = GroupName(group)
        return found

    def _keys(self) -> dict[str, str]:
        """Return the key of each group; the file is read again only if it has changed."""
        try:
            info = self._data.folder.stat(FILE_NAME)
        except (OSError, UnsafeFile):
            self._seen = None
            return {}
        if self._seen != (info.st_ino, info.st_mtime_ns):
            try:
                salts = self._salts()
            except ConfigError as exc:
                log.warning("hook_keys.unreadable", extra={"why": str(exc)})
                salts = {}
            self._known = {group: self._key(group, salt) for group, salt in salts.items()}
            self._seen = (info.st_ino, info.st_mtime_ns)
        return self._known

    def _key(self, group: str, salt: str) -> str:
        made_of = f"claude hook\0{group}\0{salt}".encode()
        return PREFIX + hmac.new(self._data.token().encode(), made_of, hashlib.sha256).hexdigest()

    def _salts(self) -> dict[str, str]:
        # Not in wire/, which takes a hook that runs for each dialog longer to load than all else.
        try:
            body = json.loads(self._data.folder.read(FILE_NAME, _CAP))
            salts = body["claude"]
            return {group: salt for group, salt in salts.items() if isinstance(salt, str)}
        except FileNotFoundError:
            return {}
        except OSError as exc:
            raise ConfigError(f"{self._path}: cannot be read: {exc.strerror}") from exc
        except (UnsafeFile, ValueError, LookupError, TypeError, AttributeError) as exc:
            raise ConfigError(
                f"{self._path} is damaged, so that no hook is let in: repair it, or remove it and "
                "run pynchy connect claude again for each group"
            ) from exc

    @property
    def _path(self) -> str:
        return str(self._data.path / FILE_NAME)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Be the only one who changes the file: two terminals may begin at the same time."""
        try:
            fd = os.open(self._data.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as exc:
            raise ConfigError(f"{self._data.path}: cannot be used: {exc.strerror}") from exc
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _write(self, salts: dict[str, str]) -> None:
        body = json.dumps({"v": 1, "claude": salts}).encode()
        try:
            self._data.folder.replace(FILE_NAME, body)
        except OSError as exc:
            raise ConfigError(f"{self._path}: cannot be written: {exc.strerror}") from exc
