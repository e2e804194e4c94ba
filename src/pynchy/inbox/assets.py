"""The files that the pages load, as they are in the package.

Their address has a hash of all of them in it, so a browser may keep them for good and never has old
ones beside new ones.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
# Not among what a page of the inbox imports.
_OTHER_SCRIPTS = frozenset({"enter.js", "frame.js", "sw.js"})

ASSETS = {
    path.name: path.read_bytes()
    for path in sorted((files("pynchy.inbox") / "static").iterdir(), key=lambda path: path.name)
    if path.is_file()
}
BUILD = hashlib.sha256(b"\0".join([*map(str.encode, ASSETS), *ASSETS.values()])).hexdigest()[:16]
MODULES = [name for name in ASSETS if name.endswith(".js") and name not in _OTHER_SCRIPTS]


def media_type(name: str) -> str:
    """Return the type of one of our files."""
    return TYPES["." + name.rpartition(".")[2]]
