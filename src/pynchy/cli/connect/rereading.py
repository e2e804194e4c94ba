"""Read an edited text again before anybody writes it: it says what was meant, or it is refused."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from pynchy.cli.connect.json_text import BadText


class Unwritable(Exception):
    """The text says it in a way that is not ours to rewrite."""


class Readable(Protocol):
    """A text that can be read."""

    @property
    def plain(self) -> Any:  # noqa: ANN401 - JSON and TOML are anything
        """What the text says. Raise BadText."""


T = TypeVar("T", bound=Readable)


def reread(new: T, wanted: object) -> T:
    """Return the new text. Raise Unwritable if it does not say what is wanted."""
    try:
        said = new.plain
    except BadText:
        said = None
    if said != wanted:
        raise Unwritable("it is written there in a way that is not rewritten")
    return new
