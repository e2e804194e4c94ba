"""`pynchy desktop`: popups in your session, of a host that runs without a desktop or elsewhere."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import click
from pydantic import TypeAdapter, ValidationError

from pynchy.cli.desktop.session import HostSession, SessionKeys, SignedOut, sign_in
from pynchy.cli.options import data_dir_option, user_name
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder, HostAddress
from pynchy.desktop import INSTALL, OTHER_SYSTEMS, make_backend, missing_library
from pynchy.desktop.backend import Backend
from pynchy.errors import HostError, NoHost, PynchyError
from pynchy.own_program import own_call, own_command
from pynchy.safe_folder import Folder, UnsafeFile

_KEYS = TypeAdapter(SessionKeys)
_KEYS_FILE = "keys.json"
_MAX_BYTES = 10_000
_LOOK_SECONDS = 1.0
# Either starts it with the session. Whichever comes second finds that one runs, and leaves.
UNIT = "pynchy-desktop.service"
_ENTRY = "pynchy-desktop.desktop"
_TARGET = "graphical-session.target"


@click.command("desktop", short_help="Pop up what waits, with buttons, in your session.")
@click.option("--url", metavar="URL", help="A link to sign in with, or the address of the host.")
@click.option("--install", is_flag=True, help="Start it with your session from now on.")
@click.option("--remove", is_flag=True, help="No longer start it with your session.")
@data_dir_option
def desktop_command(*, url: str | None, install: bool, remove: bool, data: DataFolder) -> None:
    r"""Show what waits as popups, and send the answers.

    For a host that runs as a service without a desktop, or on another machine. There,
    `pynchy inbox --open` makes a link; give it to --url once. From then on the address of the host
    is enough. Without --url it is the host of this machine, and no link is needed.

    \b
    Examples:
      pynchy desktop
      pynchy desktop --url 'https://pynchy.example.org/sign-in?key=…'
      pynchy desktop --url https://pynchy.example.org --install
    """
    if remove:
        _tell("removed", remove_autostart(os.environ))
        return
    if library := missing_library():
        raise PynchyError(f"{library} is not installed: {INSTALL}")
    if install and sys.platform in OTHER_SYSTEMS:
        raise PynchyError("--install is for Linux: let your system start pynchy desktop at login")
    folder = _state(url, data)
    with _alone(folder) as is_alone:
        if install:
            _install(folder, url, data)
        elif is_alone:
            _follow(folder, url, data)
        else:
            click.echo("pynchy desktop runs already for this host", err=True)


def _install(folder: Folder, url: str | None, data: DataFolder) -> None:
    if url is not None:
        _sign_in_by(folder, url)
        words = ("desktop", "--url", _address(url))
    else:
        words = ("desktop", "--data-dir", str(data.path))
    _tell("written", write_autostart((*own_command(), *words), os.environ))
    click.echo(f"It starts with your next session; now: systemctl --user start {UNIT}")


def _tell(done: str, paths: list[Path]) -> None:
    for path in paths:
        click.echo(f"{done}: {path}")


def _follow(folder: Folder, url: str | None, data: DataFolder) -> None:
    """Show what waits until the person ends it. The host of this machine is signed in to again."""
    while True:
        keys = _sign_in_by(folder, url) if url is not None else _sign_in_here(folder, data)
        click.echo(f"What waits at {keys.url} pops up here. Ctrl+C ends it.", err=True)

        def has_moved(at: str = keys.url) -> bool:
            return url is None and _is_elsewhere(data, at)

        try:
            asyncio.run(_run(HostSession(keys), folder, has_moved))
        except SignedOut:
            if url is not None:
                raise
            folder.remove(_KEYS_FILE)  # of a host that has another address now, or knows us no more
        else:
            return


def _is_elsewhere(data: DataFolder, url: str) -> bool:
    with suppress(NoHost):
        return data.host().url != url
    return False


async def _run(session: HostSession, folder: Folder, has_moved: Callable[[], bool]) -> None:
    from pynchy.cli.desktop.following import PopupFollower  # noqa: PLC0415 - its library is an extra
    from pynchy.desktop.popup_ids import PopupIds  # noqa: PLC0415 - the same

    backend = make_backend(os.environ)
    ids = PopupIds(Folder(folder.path, "popups"))
    following = asyncio.create_task(PopupFollower(session, backend, ids, has_moved).run())
    telling = asyncio.create_task(_tell_problem(backend))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, following.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await following
    except BaseExceptionGroup as group:
        found, others = group.split(SignedOut)
        if found is None or others is not None:
            raise
        raise SignedOut(_sign_in_again(f"signed out at {session.url}")) from None
    finally:
        telling.cancel()


async def _tell_problem(backend: Backend) -> None:
    """Say so where nothing can pop up just now."""
    await backend.tried.wait()
    if problem := backend.problem():
        click.echo(f"Nothing pops up yet: {problem}. To fix it: {backend.fix()}", err=True)


def _sign_in_again(why: str) -> str:
    link = f"get a link with {own_call()} inbox --open there"
    return f"{why}: {link}, and say {own_call()} desktop --url LINK"


def _sign_in_by(folder: Folder, url: str) -> SessionKeys:
    """Return the keys that the link gives, or those that an earlier one gave."""
    if urlsplit(url).path not in {"", "/"}:
        return _keep(folder, sign_in(url, user_name()))
    keys = _kept_keys(folder)
    if keys is None:
        raise SignedOut(_sign_in_again(f"not signed in at {url}"))
    return keys


def _keep(folder: Folder, keys: SessionKeys) -> SessionKeys:
    folder.replace(_KEYS_FILE, _KEYS.dump_json(keys))
    return keys


def _kept_keys(folder: Folder) -> SessionKeys | None:
    with suppress(OSError, UnsafeFile, ValidationError):
        return _KEYS.validate_json(folder.read(_KEYS_FILE, _MAX_BYTES))
    return None


def _sign_in_here(folder: Folder, data: DataFolder) -> SessionKeys:
    """Sign in at the host of this machine, by a link that the token makes; once is enough."""
    while True:
        host = _wait_for_host(data)
        keys = _kept_keys(folder)
        if keys is not None and keys.url == host.url:
            return keys
        try:
            key = urlsplit(HostClient(host).make_link()).query
            return _keep(folder, sign_in(f"{host.url}/sign-in?{key}", user_name()))
        except HostError as exc:
            click.echo(f"{exc}. It is tried again.", err=True)
            time.sleep(_LOOK_SECONDS)


def _wait_for_host(data: DataFolder) -> HostAddress:
    is_told = False
    while True:
        try:
            return data.host()
        except NoHost as exc:
            if not is_told:
                click.echo(f"{exc}. It is waited for.", err=True)
            is_told = True
            # Nothing tells of a host that comes back, so its file is looked at.
            time.sleep(_LOOK_SECONDS)


def _address(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _state(url: str | None, data: DataFolder) -> Folder:
    """Return where the keys and popups of one host are kept."""
    root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    root.mkdir(parents=True, exist_ok=True)
    host = _address(url) if url else str(data.path.resolve())
    name = hashlib.sha256(host.encode()).hexdigest()[:16]
    folder = Folder(root, "pynchy-desktop", name)
    folder.make()
    return folder


@contextmanager
def _alone(folder: Folder) -> Iterator[bool]:
    """Hold the folder. Yield False if another one does."""
    folder.create("lock", b"")
    fd = folder.open_file("lock")
    try:
        is_alone = False
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alone = True
        yield is_alone
    finally:
        os.close(fd)


def write_autostart(command: Sequence[str], environ: Mapping[str, str]) -> list[Path]:
    """Write what starts the command with the session, and return where it is.

    Raise PynchyError where no such file can name it.
    """
    for word in command:
        if not word.isprintable():
            raise PynchyError(f"{word!r}: a path with a line break or the like cannot be started")
    unit, wanted, entry = _autostart_paths(environ)
    for path in (unit, wanted, entry):
        path.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(_unit(command))
    wanted.unlink(missing_ok=True)
    wanted.symlink_to(unit)
    entry.write_text(_entry(command))
    return [unit, entry]


def remove_autostart(environ: Mapping[str, str]) -> list[Path]:
    """Remove what `write_autostart` wrote, and return what was there."""
    there = [path for path in _autostart_paths(environ) if path.is_symlink() or path.exists()]
    for path in there:
        path.unlink()
    return there


def _autostart_paths(environ: Mapping[str, str]) -> tuple[Path, Path, Path]:
    config = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    units = config / "systemd" / "user"
    return units / UNIT, units / f"{_TARGET}.wants" / UNIT, config / "autostart" / _ENTRY


def _unit(command: Sequence[str]) -> str:
    words = " ".join(_quoted(word).replace("%", "%%").replace("$", "$$") for word in command)
    return (
        "[Unit]\nDescription=Popups for what agents ask through pynchy\n"
        f"PartOf={_TARGET}\nAfter={_TARGET}\n\n"
        f"[Service]\nExecStart={words}\nRestart=on-failure\nRestartSec=10\n\n"
        f"[Install]\nWantedBy={_TARGET}\n"
    )


def _entry(command: Sequence[str]) -> str:
    # Quoted as for a shell, and then once more, as every text of such a file is.
    words = " ".join(
        _quoted(word, also="`$").replace("\\", "\\\\").replace("%", "%%") for word in command
    )
    return (
        "[Desktop Entry]\nType=Application\nName=pynchy\n"
        "Comment=Popups for what agents ask\n"
        f"Exec={words}\nNoDisplay=true\n"
    )


def _quoted(word: str, also: str = "") -> str:
    escaped = "".join(f"\\{char}" if char in f'\\"{also}' else char for char in word)
    return f'"{escaped}"'
