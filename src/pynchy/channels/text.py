"""Lengths as the strictest service counts them: in UTF-16 units."""

from __future__ import annotations


def length(text: str) -> int:
    """Return how long a service may take the text to be."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def head(text: str, most: int) -> str:
    """Return as much of the start of the text as is at most so long."""
    kept = text[:most]
    while length(kept) > most:
        kept = kept[: -max(1, (length(kept) - most) // 2)]
    return kept
