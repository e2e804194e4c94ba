"""Packages that bring channels, put where Python finds them without being installed."""

import itertools
from pathlib import Path

import pytest

# No module of an earlier test is taken for a later one's.
_numbers = itertools.count()


def put(folder: Path, name: str, code: str) -> None:
    """Write a distribution of one module whose entry point is a channel of this name."""
    module = f"{name}_{next(_numbers)}"
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(code)
    metadata = folder / f"pynchy_{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    entry = f"[pynchy.channels]\n{name} = {module}:PLUGIN\n"
    (metadata / "entry_points.txt").write_text(entry)


def use(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let Python look there as well."""
    monkeypatch.syspath_prepend(str(folder))


BROKEN = "import a_library_that_nobody_has\n"
WORKS = """
from pynchy.channels.base import Channel
from pynchy.channels.plugins import ChannelPlugin, PluginCommand
from pynchy.config import ChannelSettings
from pynchy.findings import fine


class Table(ChannelSettings):
    colour: str = "red"


class Toy(Channel):
    name = "toy"
    checks_users = False


class Plugin(ChannelPlugin):
    name = "toy"
    commands = {"toy": PluginCommand("nowhere:at_all", "Play."), "serve": PluginCommand("x:y", "!")}

    def settings(self):
        return Table

    def make(self, context):
        if context.table(Table).colour == "none":
            raise RuntimeError("no colour")
        return Toy()

    def check_chat(self, chat):
        return "" if chat == "box" else "a box"

    def check_user(self, user):
        return "" if user == "kid" else "a kid"

    def examine(self, context):
        yield fine("toy", context.table(Table).colour)


PLUGIN = Plugin()
"""
