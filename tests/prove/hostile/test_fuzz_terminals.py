"""Whatever a terminal's program writes, and wherever that is cut, the readers say the same of it.

They raise the one error that they document, and keep no more than they say.
"""

import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from tests.prove.conftest import SEED, Proof
from tests.prove.hostile.fuzzing import Seeded, volume

from pynchy.phux import MAX_FRAME, BadFrame, EventDecoder, decode_events, format_title, parse_title
from pynchy.terminals.keys import KeyReader
from pynchy.terminals.output import MAX_STRING, OutputReader

_PIECES = 4


def cut(data: bytes) -> Iterator[bytes]:
    """Yield the data in a few pieces, cut anywhere, the same each time."""
    chance = Seeded(zlib.crc32(data))
    places = sorted(chance.below(len(data) + 1) for _ in range(_PIECES))
    for begin, end in pairwise([0, *places, len(data)]):
        yield data[begin:end]


def events_in(*pieces: bytes) -> list[object]:
    """Return what the frames say; of a bad one that it was there, and nothing behind the last."""
    decoder = EventDecoder()
    found: list[object] = []
    for piece in pieces:
        fed = piece
        while True:
            try:
                found.extend(decoder.feed(fed))
                break
            except BadFrame as exc:
                found.append("bad")
                fed = b""
                if "cannot be" in str(exc):
                    return [*found, "lost"]
        assert len(decoder._body) <= MAX_FRAME  # noqa: SLF001 - it is bounded
    return found


def read_frames(data: bytes) -> bool:
    assert events_in(*cut(data)) == events_in(data)
    try:
        return bool(decode_events(data))
    except BadFrame:
        return False


def read_title(data: bytes) -> bool:
    asked = parse_title(data.decode("utf-8", "replace"))
    if asked is None:
        return False
    title = format_title(asked)
    assert title is None or parse_title(title) == asked
    return True


def read_output(data: bytes) -> bool:
    whole, in_pieces = OutputReader(), OutputReader()
    told = list(whole.feed(data))
    assert [one for piece in cut(data) for one in in_pieces.feed(piece)] == told
    assert in_pieces.modes == whole.modes
    assert len(whole._string) <= MAX_STRING  # noqa: SLF001 - it is bounded
    return bool(told)


def read_keys(data: bytes) -> bool:
    whole, in_pieces = KeyReader(), KeyReader()
    whole.feed(data)
    for piece in cut(data):
        in_pieces.feed(piece)
    assert in_pieces.has_begun_line == whole.has_begun_line
    assert in_pieces._length == whole._length  # noqa: SLF001 - what a later key is counted from
    return whole.has_begun_line


# For each: its corpus, its reader, and how many inputs (in the sample, in make prove, PROVE=all).
READERS: dict[str, tuple[str, Callable[[bytes], bool], tuple[int, int, int]]] = {
    "phux frames": ("phux", read_frames, (1_000, 100_000, 1_000_000)),
    "phux titles": ("titles", read_title, (1_000, 100_000, 1_000_000)),
    "terminal output": ("output", read_output, (1_000, 100_000, 1_000_000)),
    "keys": ("keys", read_keys, (1_000, 100_000, 1_000_000)),
}


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", READERS)
def test_terminals_raise_only_documented_errors_wherever_they_are_cut(
    proof: Proof, name: str
) -> None:
    corpus, read, (sample, prove, everything) = READERS[name]
    count = proof.choose(sample=sample, prove=prove, everything=everything)

    accepted = sum(read(data) for data in volume(corpus, SEED, count))

    assert 0 < accepted < count
    proof.report(f"fuzz: {name}", inputs=count, accepted=accepted, seed=SEED)
