"""Which name somebody may have meant who wrote another one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_LETTERS = 100
_SIMILAR = 0.8
_PARTS = re.compile(r"[-_.]")


def similar_group(name: str, groups: Iterable[str]) -> str:
    """Return the group whose name was probably meant, empty where none is similar.

    Names that differ in a number or a last letter, such as team-a and team-b, are counted on.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only for a name that is not known

    known = set(groups)
    if name in known:
        return ""
    near = get_close_matches(name[:_MAX_LETTERS], sorted(known), n=5, cutoff=_SIMILAR)
    return next((other for other in near if not _is_series(name, other)), "")


def _is_series(one: str, other: str) -> bool:
    if re.sub(r"\d+", "", one) == re.sub(r"\d+", "", other):
        return True
    *start, last = _PARTS.split(one)
    *other_start, other_last = _PARTS.split(other)
    return bool(start) and start == other_start and len(last) == len(other_last) == 1
