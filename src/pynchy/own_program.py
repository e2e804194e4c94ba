"""How the pynchy that runs is called: at a terminal, and by the programs that start it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

from pynchy.errors import ConfigError

# Where uvx keeps what it made for one call, and what `uv run` sets for its command. Both put their
# own folder on the PATH of that command, and of nothing else.
_UVX_CACHE = "archive-v0"
_UV_RUN = "UV_RUN_RECURSION_DEPTH"


def own_command() -> tuple[str, ...]:
    """Return the words that start this pynchy from any terminal."""
    own = Path(sys.executable).with_name("pynchy")
    if _UVX_CACHE in own.parts:
        return ("uvx", *_origin_for_uvx(), "pynchy")
    found = shutil.which("pynchy")
    if found and (not own.exists() or (Path(found).samefile(own) and _UV_RUN not in os.environ)):
        return ("pynchy",)
    return (str(own),)


def own_call() -> str:
    """Return how to call this pynchy from any terminal, ready to be pasted."""
    return shlex.join(own_command())


def find_own_program() -> str:
    """Return where the pynchy that runs is, as it was called: a link may outlive what it means."""
    called = Path(sys.argv[0])
    if called.name != "pynchy" or not called.exists():
        beside = Path(sys.executable).with_name("pynchy")
        found = str(beside) if beside.exists() else shutil.which("pynchy")
        if not found:
            raise ConfigError("there is no program `pynchy` to start: install it first")
        called = Path(found)
    if _UVX_CACHE in called.absolute().parts:
        raise ConfigError(
            f"{called} is uvx's own, and goes with its cache: install pynchy first, such as with "
            "`uv tool install pynchy` (or, in a clone, `uv tool install .`), and use that one"
        )
    return str(called.absolute())


def _origin_for_uvx() -> tuple[str, ...]:
    """Return the option that says where this pynchy was installed from, unless from an index."""
    from importlib import metadata  # noqa: PLC0415 - takes long to import, and is needed here alone
    from urllib.parse import unquote  # noqa: PLC0415 - likewise

    try:
        told = json.loads(metadata.distribution("pynchy").read_text("direct_url.json") or "{}")
        url, vcs = str(told["url"]), told.get("vcs_info")
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return ()
    if vcs:
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return ("--from", unquote(url.removeprefix("file://")) if "dir_info" in told else url)
