"""Pack the pieces of a card into messages that Slack takes, without losing a piece.

A piece is never torn apart. What was posted is packed again, the same way, when it is settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pynchy.channels.slack import limits
from pynchy.channels.slack.limits import Block

# Room for a line on top of a message that was not known when it was packed.
_RESERVED_BLOCKS = 2
_RESERVED_SIZE = 900


class Role(StrEnum):
    """What becomes of a piece when the question is over: only what was asked stays."""

    FRAME = "frame"
    ASKED = "asked"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Piece:
    """Blocks that stay together."""

    role: Role
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One message of a card; `question` counts from 1 where it is about that one alone."""

    pieces: tuple[Piece, ...]
    question: int | None = None

    def blocks(self, *roles: Role) -> list[Block]:
        """Return the blocks of those roles, in order; of all roles without any."""
        wanted = roles or tuple(Role)
        return [block for piece in self.pieces if piece.role in wanted for block in piece.blocks]


def fits(pieces: Iterable[Piece]) -> bool:
    """True if the pieces can be one message, with room to spare."""
    sizes = [limits.size(block) for piece in pieces for block in piece.blocks]
    return _have_room(sum(sizes), len(sizes))


def pack(pieces: Iterable[Piece], question: int | None = None) -> list[Page]:
    """Return the pieces on as few pages as it takes, in order."""
    pages: list[list[Piece]] = [[]]
    size = count = 0
    for piece in pieces:
        added = sum(map(limits.size, piece.blocks))
        if pages[-1] and not _have_room(size + added, count + len(piece.blocks)):
            pages.append([])
            size = count = 0
        pages[-1].append(piece)
        size, count = size + added, count + len(piece.blocks)
    return [Page(tuple(page), question) for page in pages if page]


def _have_room(size: int, count: int) -> bool:
    small = size <= limits.BUDGET - _RESERVED_SIZE
    return small and count <= limits.BLOCKS - _RESERVED_BLOCKS
