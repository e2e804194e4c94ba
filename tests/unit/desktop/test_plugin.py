"""The desktop channel as it is made and examined, where something is missing."""

import os
from pathlib import Path

import pytest

from pynchy.bridge.cards import card_of
from pynchy.channels.base import ChannelContext
from pynchy.channels.desktop import plugin
from pynchy.channels.desktop.plugin import PLUGIN
from pynchy.channels.plugins import BUILT_IN
from pynchy.config import TOKEN_CHANNELS, DesktopChannelSettings, Settings
from pynchy.desktop.dbus import DBusBackend, session_bus
from pynchy.desktop.popup import PopupQuestion
from pynchy.errors import ConfigError
from pynchy.findings import Status
from pynchy.testing import make_pending

PENDING = make_pending()


def context(folder: Path, **environ: str) -> ChannelContext:
    settings = Settings(channels={"desktop": DesktopChannelSettings()})
    return ChannelContext(settings, environ, folder, name="desktop")


def test_no_plug_in_gets_the_name_of_a_channel_that_needs_no_list_of_people() -> None:
    assert set(BUILT_IN) >= TOKEN_CHANNELS


def test_without_its_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.desktop.find_spec", lambda _: None)
    [finding] = PLUGIN.examine(context(tmp_path))

    assert finding.status is Status.PROBLEM
    assert finding.fix.startswith("pip install 'pynchy[desktop]' (or, in a clone")
    with pytest.raises(ConfigError, match=r"pynchy\[desktop\]"):
        PLUGIN.make(context(tmp_path))


def test_without_a_bus_doctor_says_where_the_host_must_run(tmp_path: Path) -> None:
    [finding] = PLUGIN.examine(
        context(tmp_path, DBUS_SESSION_BUS_ADDRESS=f"unix:path={tmp_path}/x")
    )

    assert finding.status is Status.PROBLEM
    assert "no session bus" in finding.detail
    assert "session" in finding.fix


@pytest.mark.parametrize("address", ["", "nonsense", "tcp:host=a,port=1", "unix:path=/nowhere/bus"])
async def test_a_channel_without_a_bus_opens_says_so_and_closes(
    tmp_path: Path, address: str
) -> None:
    channel = PLUGIN.make(context(tmp_path, DBUS_SESSION_BUS_ADDRESS=address))
    await channel.open(_Nobody())

    assert "no session bus" in (channel.problem() or "")
    assert channel.has_jobs
    await channel.close()


class _Nobody:
    def open_cards(self, _channel: str) -> list[object]:
        return []


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, ""),
        ({"XDG_RUNTIME_DIR": "/run/user/7"}, "unix:path=/run/user/7/bus"),
        ({"XDG_RUNTIME_DIR": "/r", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/b"}, "unix:path=/b"),
    ],
)
def test_the_bus_is_where_the_session_says_or_where_sessions_have_it(
    environ: dict[str, str], address: str
) -> None:
    assert session_bus(environ) == address


def test_an_id_of_another_service_is_never_taken_for_a_popup_of_this_one() -> None:
    assert not DBusBackend("").is_current("0/:1.5/7")
    assert not DBusBackend("").is_current("")


def test_the_page_is_at_the_public_address_and_else_at_a_host_that_runs(tmp_path: Path) -> None:
    card = card_of(PENDING, "https://pynchy.example.org")
    public = PopupQuestion(PENDING.request_id, PENDING.questions, card)
    local = PopupQuestion(PENDING.request_id, PENDING.questions, card_of(PENDING))

    assert plugin._page_of(public, tmp_path) == "https://pynchy.example.org/q/g1/q1"  # noqa: SLF001
    assert plugin._page_of(local, tmp_path) is None  # noqa: SLF001
    assert os.listdir(tmp_path) == []
