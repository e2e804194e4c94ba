"""What lies around the boxes of enemies: files, programs and services, each with a secret.

Whoever reads one of them and writes down what it found is seen by the secret in what it wrote.
"""

import ctypes
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.support import Json
from tests.prove.conftest import SEED
from tests.prove.hostile import outsider
from tests.prove.hostile.watching import files_below

from pynchy.launchers import syscall_filter

IS_ROOT = os.geteuid() == 0
AGENT = 54_321
GROUP = 54_399
# Where services put their sockets, and people their files.
PLACES = ("/etc", "/home", "/mnt", "/root", "/run", "/srv", "/tmp", "/var", "/var/lib", "/var/tmp")  # noqa: S108 - looked at
PLACES += ("/dev/shm",)  # noqa: S108 - the same
SYSTEM = ("/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/opt", "/proc", "/sys", "/dev", "/boot")
CALLS = syscall_filter.own_abi().keys


def new_secret() -> str:
    return f"canary-{os.urandom(12).hex()}"


@dataclass(frozen=True)
class Shape:
    """How the boxes of one round are made."""

    uid: int | None = None
    unix_sockets: bool = False
    user_namespaces: bool = False

    @classmethod
    def of_round(cls, number: int) -> "Shape":
        """Return the usual shape, then that of another user, then any."""
        if number < 2:
            return cls(AGENT if number and IS_ROOT else None)
        chance = random.Random(f"{SEED}-{number}")  # noqa: S311 - repeatable, not secret
        uid = chance.choice([None, AGENT]) if IS_ROOT else None
        return cls(uid, chance.random() < 0.5, chance.random() < 0.5)

    def settings(self) -> Json:
        return {"unix_sockets": self.unix_sockets, "user_namespaces": self.user_namespaces}

    def is_expected(self, claim: str) -> bool:
        """Say whether the settings allow what a box has without them not."""
        if claim.startswith(("a ring for calls", "a socket of family")):
            return self.unix_sockets
        # Who has one can put a folder of its own in the place of another.
        return claim.startswith(("a user namespace", "wrote to")) and self.user_namespaces


class Program:
    """An outsider that runs, outside of all boxes."""

    def __init__(self, shape: Shape, sockets: list[str]) -> None:
        self.secret = new_secret()
        plan = {"secret": self.secret, "calls": CALLS, "uid": shape.uid, "sockets": sockets}
        plan["segment_key"] = random.SystemRandom().getrandbits(30)
        self._process = subprocess.Popen(
            [sys.executable, outsider.__file__, json.dumps(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "SECRET": f"{self.secret}-environment"},
        )
        assert self._process.stdout is not None
        self.known: Json = json.loads(self._process.stdout.readline())

    def end(self) -> Json:
        """End it, and return what was done to it."""
        out, _ = self._process.communicate(timeout=30)
        return json.loads(out) if out else {"killed": self._process.returncode}

    def close(self) -> None:
        """End it if it still runs: its keys would outlive it."""
        with suppress(subprocess.TimeoutExpired, ValueError):
            self._process.communicate(timeout=10)
        self._process.kill()
        self._process.wait()


class Outside:
    """What the enemies must not get at: files, programs, and whatever lies beside them."""

    def __init__(self, stack: ExitStack, shape: Shape, folder: Path) -> None:
        self._stack = stack
        self.shape = shape
        self.secret = new_secret()
        self.mark = f"enemy-{os.urandom(6).hex()}"
        self.folders: list[Path] = []
        self.programs: list[Program] = []
        self.shown = folder / "shown"
        self.shown.mkdir(mode=0o755)
        self.files = [self._file(self.shown / "hidden", "hidden")]
        for place in PLACES:
            if os.access(place, os.W_OK):
                self.folders.append(Path(tempfile.mkdtemp(prefix="pynchy-", dir=place)))
                stack.callback(shutil.rmtree, self.folders[-1], ignore_errors=True)
                self.folders[-1].chmod(0o777)
                self.files.append(self._file(self.folders[-1] / "secret", "file"))
                self._file(self.folders[-1] / f"{self.secret}-name", "file")

    def _file(self, path: Path, kind: str) -> Path:
        path.write_text(f"{self.secret}-{kind}")
        path.chmod(0o666)
        return path

    def add_closed_file(self) -> None:
        """Add a file that the box shows, and that is open to a group of the host's alone."""
        path = self._file(self.shown / "closed", "group")
        os.chown(path, 1, GROUP)
        path.chmod(0o060)
        self.files.append(path)

    def start_program(self, name: str, *more: Path) -> None:
        """Start a program that listens everywhere."""
        places = [*self.folders, *([] if self.shape.unix_sockets else [*more, self.shown])]
        paths = [f"{place}/{name}" for place in places]
        self.programs.append(Program(self.shape, [*paths, f"@{self.mark}-{name}"]))
        self._stack.callback(self.programs[-1].close)

    def targets(self) -> list[Path]:
        """What is worth a try: what lies in a folder that is shown, as often as all the rest."""
        shown = [path for path in self.files if path.is_relative_to(self.shown)]
        return [*self.files, *shown * (len(self.files) // len(shown))]

    def handles(self) -> list[Json]:
        """The numbers by which file systems know the files."""
        found = [(path, handle_of(path)) for path in self.files]
        return [{"path": str(path), **handle} for path, handle in found if handle]

    def state(self) -> dict[str, object]:
        """What is there, and what it is like."""
        entries = [
            Path(e.path) for folder in (*self.folders, self.shown) for e in files_below(folder)
        ]
        found: dict[str, object] = {}
        for path in (*entries, *self.files):
            if not path.exists():
                found[str(path)] = "gone"
                continue
            info = path.lstat()
            text = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (info.st_mode, info.st_uid, info.st_mtime_ns, info.st_nlink, text)
        return found

    def marked(self, data: Path, own: list[Path]) -> list[str]:
        """What an enemy has left where nothing is its own."""
        near = [path for place in (*SYSTEM, *PLACES) for path in _listed(place)]
        places = [data, self.shown, *self.folders]
        below = [path for place in places for path in place.rglob("*")]
        found = [path for path in (*near, *below) if self.mark in path.name]
        return [str(p) for p in found if not any(p.is_relative_to(place) for place in own)]


def _listed(place: str) -> list[Path]:
    with suppress(OSError):
        return [Path(place, name) for name in os.listdir(place)]
    return []


def handle_of(path: Path) -> Json | None:
    """Return by which number the file is opened by who may do so past its folders."""
    buffer = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder), 8 + 128)
    number = ctypes.c_int()
    at = -100
    call = ctypes.CDLL(None).name_to_handle_at
    if call(at, os.fsencode(path), buffer, ctypes.byref(number), 0) < 0:
        return None
    size, kind = (int.from_bytes(buffer.raw[a : a + 4], sys.byteorder) for a in (0, 4))
    return {"handle": buffer.raw[8 : 8 + size].hex(), "kind": kind}
