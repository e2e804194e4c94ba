"""`pynchy whatsapp`: pair a phone, see how the connection stands, and take the phone off again."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import click

from pynchy.channels.loading import load_settings
from pynchy.channels.whatsapp import INSTALL, LIBRARY
from pynchy.channels.whatsapp.addresses import PHONE, normal, phone, read_account
from pynchy.channels.whatsapp.channel import make_home, store_of
from pynchy.channels.whatsapp.connection_status import ConnectionState, read_state
from pynchy.channels.whatsapp.setup import forget, list_groups, log_out, pair
from pynchy.cli import with_examples
from pynchy.cli.options import TEXT, config_option, data_dir_option, json_option
from pynchy.cli.output import show_json
from pynchy.cli.text import clean
from pynchy.config import WHATSAPP, WhatsAppChannelSettings
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_FAILED, ConfigError, HostError
from pynchy.safe_folder import Folder

_PAIR_SECONDS = 180.0


@click.group("whatsapp", short_help="Pair a phone for the WhatsApp channel, and see how it is.")
def whatsapp_command() -> None:
    r"""Pair a phone for the WhatsApp channel, and see how it is.

    \b
    Examples:
      pynchy whatsapp pair                          by a code that the phone scans
      pynchy whatsapp pair --phone "+49 170 1234567"   by letters to type into the phone
      pynchy whatsapp groups                        addresses to put into the settings
      pynchy whatsapp status
      pynchy whatsapp logout
    """


@click.command("pair", short_help="Pair a phone.")
@click.option("--phone", "number", type=TEXT, default="", help="Pair by letters, not by QR code.")
@data_dir_option
@config_option
def pair_command(data: DataFolder, config: Path | None, number: str) -> None:
    r"""Pair a phone: on it, WhatsApp → Settings → Linked devices → Link a device.

    A host that runs already begins to use it by itself.

    \b
    Examples:
      pynchy whatsapp pair
      pynchy whatsapp pair --phone "+49 170 1234567"
    """
    home, store = _place(data, config)
    _check_library()
    account = read_account(Folder(home))
    if account is not None:
        raise HostError(
            f"paired with {phone(account.jid)} already; to change that: pynchy whatsapp logout"
        )
    jid = normal(number)
    if number and not jid.endswith(PHONE):
        raise ConfigError(f"{number} is no phone number; write it as +49 170 1234567")
    made = asyncio.run(pair(home, store, jid, _show, _PAIR_SECONDS))
    click.echo(f"Paired with {phone(made.jid)}.")


@click.command("status", short_help="Say how the connection stands.")
@json_option
@data_dir_option
@config_option
def status_command(data: DataFolder, config: Path | None, *, as_json: bool) -> None:
    r"""Say which account is paired and how the connection stands.

    Exit code: 0 connected, 1 not connected, or no host is running.

    \b
    Examples:
      pynchy whatsapp status
      pynchy whatsapp status --json
    """
    home, _ = _place(data, config)
    account, running = read_account(Folder(home)), data.is_locked()
    state = read_state(Folder(home))
    problem = _problem(state, running=running)
    if as_json:
        since = _moment(state.since) if state else None
        show_json(
            {
                "account": account.jid if account else None,
                "state": state.status if state and running else None,
                "since": since if running else None,
                "problem": problem,
            }
        )
    else:
        click.echo(f"account: {phone(account.jid) if account else 'none'}")
        click.echo(f"connection: {problem or 'connected'}")
    if problem is not None:
        sys.exit(EXIT_FAILED)


@click.command("groups", short_help="List the account's groups and their addresses.")
@json_option
@data_dir_option
@config_option
def groups_command(data: DataFolder, config: Path | None, *, as_json: bool) -> None:
    r"""List the account's groups and their addresses, for chat.whatsapp. Stop the host first.

    \b
    Examples:
      pynchy whatsapp groups
      pynchy whatsapp groups --json
    """
    home, store = _place(data, config)
    _check_free(data)
    _check_library()
    found = asyncio.run(list_groups(home, store))
    if as_json:
        show_json([{"address": jid, "name": name} for jid, name in found.items()])
        return
    for jid, name in sorted(found.items(), key=lambda item: item[1].casefold()):
        click.echo(f"{jid}  {clean(name)}")


@click.command("logout", short_help="Take this device off the account.")
@click.option("--force", is_flag=True, help="Remove the session here even if WhatsApp is away.")
@data_dir_option
@config_option
def logout_command(data: DataFolder, config: Path | None, *, force: bool) -> None:
    r"""Take this device off the account, and remove the session. Stop the host first.

    \b
    Examples:
      pynchy whatsapp logout
      pynchy whatsapp logout --force
    """
    home, store = _place(data, config)
    _check_free(data)
    if force:
        forget(home, store)
        click.echo("The session is removed here. Take the device off in the phone's list, too.")
        return
    _check_library()
    asyncio.run(log_out(home, store))
    forget(home, store)
    click.echo("Logged out.")


def _place(data: DataFolder, config: Path | None) -> tuple[Path, Path]:
    table = load_settings(config).channels.get(WHATSAPP)
    if not isinstance(table, WhatsAppChannelSettings):
        raise ConfigError(
            f"there is no [channels.{WHATSAPP}] in the settings; pynchy docs whatsapp says how"
        )
    data.make()
    home = make_home(data.path)
    return home, store_of(table, home)


def _check_library() -> None:
    if find_spec(LIBRARY) is None:
        raise ConfigError(f"WhatsApp needs a library that is not installed ({LIBRARY}): {INSTALL}")


def _check_free(data: DataFolder) -> None:
    if data.is_locked():
        raise HostError("the running host uses the session: stop pynchy serve, then try again")


def _show(kind: str, code: str) -> None:
    """Show what the phone needs; a new one takes the place of an old one."""
    if kind == "code":
        click.echo(f"Type this into the phone (Link with phone number instead): {code}")
        return
    import segno  # noqa: PLC0415 - slow, and only for this

    click.echo("Scan this with the phone: WhatsApp → Settings → Linked devices → Link a device")
    segno.make_qr(code).terminal(sys.stdout, compact=True)


def _problem(state: ConnectionState | None, *, running: bool) -> str | None:
    if not running:
        return "no host is running; start one with: pynchy serve"
    return "not connected yet" if state is None else state.problem()


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


for _command in (pair_command, groups_command, status_command, logout_command):
    whatsapp_command.add_command(with_examples(_command))
