"""`pynchy inbox`: the way into the inbox that the host serves."""

from __future__ import annotations

import os
import platform
import sys
import webbrowser
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import click

from pynchy.cli.options import data_dir_option, user_name
from pynchy.cli.tables import print_pending
from pynchy.cli.text import clean
from pynchy.cli.views import how_to_decide, is_decision
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import NoHost
from pynchy.safe_folder import Folder

_REDIRECT_NAME = "inbox-open.html"
_NO_ADDRESS = frozenset({"::1", "::", "0.0.0.0", ""})  # noqa: S104 - compared, not listened at
_ONLY_HERE = (
    "It works on this machine alone. For a phone, set http.public_url to an address that the phone "
    "reaches; pynchy docs inbox says how."
)


def show_inbox(data: DataFolder) -> None:
    """Show what waits until the person leaves. Raise NoHost if there is no host to begin with."""
    if is_screen():
        data.host()
        from pynchy.cli.screen.inbox import InboxApp  # noqa: PLC0415 - slow to import

        InboxApp(data, user_name()).run()
        return
    views = HostClient.of(data).pending()
    print_pending(views, as_json=False)
    if views:
        click.echo(f"{_how_to_answer(views)} (there is no terminal here)", err=True)


def _how_to_answer(views: list[Json]) -> str:
    decisions = [is_decision(str(view.get("kind", ""))) for view in views]
    ways = [] if all(decisions) else ["Answer with: pynchy answer ID VALUE"]
    return "; ".join([*ways, *([f"Decide with: {how_to_decide('ID')}"] if any(decisions) else [])])


def is_screen() -> bool:
    """True if there is a whole terminal: keys come in, and the cursor can go anywhere."""
    is_smart = os.environ.get("TERM", "") not in {"", "dumb"}
    # The screen is drawn on stderr, as textual does.
    return is_smart and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


@click.command("inbox", short_help="Answer what waits, here or in a browser.")
@click.option("--open", "open_", is_flag=True, help="Print a link to sign in with, and open it.")
@click.option("--no-browser", is_flag=True, help="Print the link and do not open it.")
@click.option("--sign-out-all", is_flag=True, help="Sign every browser out.")
@data_dir_option
def inbox_command(*, open_: bool, no_browser: bool, sign_out_all: bool, data: DataFolder) -> None:
    r"""Answer here, in the terminal; with --open in a browser, on this machine or on a phone.

    The screen lists what waits, live; ? shows its keys. Without a terminal the list is printed
    once. The link of --open works once, within 15 minutes. Whoever opens it may answer
    everything, so pass it on to nobody else. `pynchy docs inbox` says how to reach it from a
    phone.

    \b
    Examples:
      pynchy inbox
      pynchy inbox --open
      pynchy inbox --sign-out-all
    """
    if sign_out_all:
        click.echo(_signed_out(_sign_out_all(data)))
    elif open_ or no_browser:
        link = HostClient.of(data).make_link()
        show_link(link)
        if not no_browser and open_in_browser(link, data.folder):
            click.echo("Opened in your browser.")
    else:
        show_inbox(data)


def show_link(link: str) -> None:
    """Print the link and, at a terminal, a code to scan where another device can reach it."""
    click.echo(f"Sign in to the inbox (works once): {clean(link)}")
    if not sys.stdout.isatty():
        return
    if not is_reachable(link):
        click.echo(_ONLY_HERE)
        return
    import segno  # noqa: PLC0415 - only where somebody looks

    segno.make(link, error="l").terminal(compact=True, border=2)


def is_reachable(link: str) -> bool:
    """True if the link leads to this machine also from another one."""
    name = urlsplit(link).hostname or ""
    return name not in _NO_ADDRESS and not name.startswith("127.") and name != "localhost"


def open_in_browser(link: str, folder: Folder) -> bool:
    """Open the link. Return False where there is no browser with a window.

    The browser is given a file of ours that leads to the link: everybody on this machine can read
    what stands on a command line.
    """
    if not has_browser():
        return False
    try:
        return webbrowser.open(link if browser_is_shut_in() else _leading_to(link, folder))
    except (webbrowser.Error, OSError):
        return False


def browser_is_shut_in() -> bool:
    """True where the browser may be unable to read our files: snaps, and Windows around us."""
    return Path("/snap/bin").is_dir() or "microsoft" in platform.release().lower()


def _leading_to(link: str, folder: Folder) -> str:
    """Return the address of a file, for its owner alone, that leads to the link."""
    address = escape(link)
    page = (
        '<!doctype html><meta charset="utf-8"><title>pynchy</title>'
        f'<meta http-equiv="refresh" content="0; url={address}">'
        f'<a href="{address}">To the inbox</a>'
    )
    folder.replace(_REDIRECT_NAME, page.encode())
    return (folder.path / _REDIRECT_NAME).absolute().as_uri()


def has_browser() -> bool:
    """True if a browser can show a window here. One inside the terminal would take it over."""
    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not has_screen:
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _sign_out_all(data: DataFolder) -> int:
    try:
        return HostClient.of(data).sign_out_all()
    except NoHost:
        from pynchy.inbox.sign_in import forget_all  # noqa: PLC0415 - heavy, seldom needed

        if data.is_locked():
            raise
        return forget_all(data.folder)


def _signed_out(count: int) -> str:
    browsers = "1 browser is" if count == 1 else f"{count} browsers are"
    return f"{browsers} signed out, and no earlier link works any more."
