"""What `--resume` writes into pynchy.toml: how a session that has ended is brought back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pynchy.cli.connect.document import read_document
from pynchy.cli.connect.plan import Change, open_text
from pynchy.cli.connect.programs import EntryLocation, Format
from pynchy.cli.connect.rereading import Unwritable
from pynchy.cli.connect.toml_text import TomlText, write_table
from pynchy.errors import ConfigError
from pynchy.paths import own_settings

_SETTINGS = ("kind", "agent", "cwd")


def plan_launcher(
    place: EntryLocation, group: str, settings: Path | None, environ: Mapping[str, str]
) -> tuple[list[Change], str]:
    """Return what has to change, and what to say of a launcher that is there already.

    Raise ConfigError.
    """
    path = settings or own_settings(environ)
    document = read_document(path)
    text = open_text(document, Format.TOML)
    keys = ("groups", group, "launcher")
    wanted = dict(zip(_SETTINGS, ("process", place.program, str(place.folder)), strict=True))
    found = text.find(keys)
    if found is not None:
        same = isinstance(found, dict) and wanted.items() <= found.items()
        return [], "" if same else f"[{'.'.join(keys)}] in {path} is there already and was kept"
    try:
        changed = TomlText(document.text).put(keys, wanted)
    except Unwritable as exc:
        snippet = write_table(keys, wanted)
        raise ConfigError(f"{path}: {exc}; put this there yourself:\n{snippet}") from exc
    return [Change(document, changed.text, is_private=False)], ""
