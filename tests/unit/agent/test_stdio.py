"""Lines in and out."""

import asyncio
import os

from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import DEADLINE_SECONDS

from agent_runner.agent_tools._stdio import MAX_QUEUED_EXTRAS, Framer, Writer, start_reader


@given(
    st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b and b.strip() == b)), st.data()
)
def test_lines_come_out_whole_however_they_were_cut(
    lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    framer = Framer()

    found = [line for piece in pieces for line in framer.feed(piece)]

    assert found == lines
    assert list(framer.finish()) == []


def test_a_line_past_the_limit_is_told_once_and_the_next_one_comes() -> None:
    framer = Framer(limit=4)

    found = [
        line for piece in (b"12", b"345", b"67\nnext\n", b"rest") for line in framer.feed(piece)
    ]

    assert found == [None, b"next"]
    assert list(framer.finish()) == [b"rest"]


async def test_the_reader_tells_lines_then_the_end() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)  # as some parents leave it
    lines: list[bytes | None] = []
    ended = asyncio.Event()
    start_reader(read_end, lines.append, ended.set)

    os.write(write_end, b"one\ntwo")
    os.close(write_end)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await ended.wait()
    os.close(read_end)

    assert lines == [b"one", b"two"]


async def test_the_writer_waits_for_a_slow_client_and_drops_only_extras() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    writer = Writer(write_end, on_broken=lambda: None)
    big = b"x" * 1_000_000 + b"\n"

    writer.write(big)
    for _ in range(10 * MAX_QUEUED_EXTRAS):
        writer.write_extra(b"extra\n")
    writer.write(b"last\n")
    received = bytearray()
    while not received.endswith(b"last\n"):
        received += await asyncio.to_thread(os.read, read_end, 1 << 16)
    await asyncio.to_thread(writer.close, 20)
    os.close(read_end)
    os.close(write_end)

    assert received.startswith(big)
    assert 0 < received.count(b"extra\n") <= MAX_QUEUED_EXTRAS + 1


async def test_a_closed_pipe_is_told() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    broken = asyncio.Event()
    writer = Writer(write_end, on_broken=broken.set)

    writer.write(b"anybody?\n")

    async with asyncio.timeout(DEADLINE_SECONDS):
        await broken.wait()
    await asyncio.to_thread(writer.close, 20)
    os.close(write_end)
