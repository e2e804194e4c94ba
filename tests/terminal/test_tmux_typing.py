"""What is typed by tmux is what was to be typed, whatever it holds, and in one pane alone."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.terminal.panes import Panes
from tests.waiting import until

from pynchy.terminals.tmux_control import ControlClient, TmuxRefused
from pynchy.terminals.tmux_panes import (
    CHANGED,
    LIST_PANES,
    TYPED,
    PaneSeen,
    read_panes,
    type_enter,
    type_text,
)
from pynchy.terminals.tmux_server import TmuxServer
from pynchy.typed_line import one_typed_line

TITLE = "phux-ask:#{pane_id},} \"'$HOME;\\101 é?"
HOSTILE = st.text(st.sampled_from("\"'\\$;#{}()[]%~`-|&*?! \té日🙂\u202e\u200bab01"), max_size=60)


class Typist:
    """A pane whose keys are kept, and a client that types."""

    def __init__(self, panes: Panes) -> None:
        self.panes = panes
        self._loop = asyncio.new_event_loop()
        panes.prepare("one", TITLE)
        script = "stty raw -echo; printf '\\033]2;%s\\007' \"$(cat one.title)\"; exec cat > keys"
        self.pane = panes.run(script)
        self._loop.run_until_complete(panes.title_is(self.pane, TITLE))
        self._client = self._loop.run_until_complete(self._attach())

    async def _attach(self) -> ControlClient:
        server = TmuxServer(str(self.panes.socket))
        session = await server.session()
        assert session
        return await server.attach(session).__aenter__()

    @property
    def keys(self) -> bytes:
        return (self.panes.folder / "keys").read_bytes()

    def do(self, command: str) -> list[str]:
        return self._loop.run_until_complete(self._client.do(command))

    def seen(self) -> PaneSeen:
        return read_panes(self.do(LIST_PANES))[self.pane]

    def reads(self, data: bytes) -> None:
        self._loop.run_until_complete(until(lambda: len(self.keys) >= len(data), repr(data)))
        assert self.keys == data

    def close(self) -> None:
        self._loop.run_until_complete(self._client.__aexit__())
        self._loop.close()


@pytest.fixture
def typist(panes: Panes) -> Iterator[Typist]:
    typist = Typist(panes)
    yield typist
    typist.close()


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.one_of(HOSTILE, st.text(max_size=200)))
def test_a_line_is_typed_byte_by_byte(typist: Typist, text: str) -> None:
    line = one_typed_line(text) or "-"
    before = typist.keys
    seen = typist.seen()
    mark = f"{len(before):x}f"

    assert typist.do(type_text(seen, mark, line)) == [TYPED]
    assert typist.do(type_enter(seen, mark)) == [TYPED]

    typist.reads(before + line.encode("utf-8", "replace") + b"\r")
    assert typist.do("list-buffers") == []


def test_a_line_as_long_as_any_is_typed_whole(typist: Typist) -> None:
    line = "é" * 2_000

    assert typist.do(type_text(typist.seen(), "a", line)) == [TYPED]

    typist.reads(line.encode())


def test_the_same_is_typed_once_whoever_types_it(typist: Typist) -> None:
    seen = typist.seen()

    assert typist.do(type_text(seen, "abc", "Yes")) == [TYPED]
    assert typist.do(type_text(seen, "abc", "Yes")) == [CHANGED]
    assert typist.do(type_enter(seen, "abc")) == [TYPED]

    typist.reads(b"Yes\r")
    assert typist.do("list-buffers") == []


@pytest.mark.parametrize(
    "change",
    [
        "select-pane -t {pane} -T 'phux-ask:Another?'",
        "copy-mode -t {pane}",
        "select-pane -d -t {pane}",
        "respawn-pane -k -t {pane} cat",
    ],
)
def test_nothing_is_typed_into_a_pane_that_has_changed(typist: Typist, change: str) -> None:
    seen = typist.seen()
    typist.do(change.format(pane=typist.pane))

    assert typist.do(type_text(seen, "abc", "Yes")) == [CHANGED]
    assert typist.do(type_enter(seen, "")) == [CHANGED]

    assert typist.keys == b""
    assert typist.do("list-buffers") == []
    assert "@pynchy" not in "".join(typist.do(f"show-options -p -t {typist.pane}"))


def test_nothing_is_typed_elsewhere_when_the_pane_is_gone(typist: Typist) -> None:
    seen = typist.seen()
    typist.do(f"kill-pane -t {typist.pane}")

    with pytest.raises(TmuxRefused, match="pane"):
        typist.do(type_text(seen, "abc", "Yes"))

    assert typist.do("list-buffers") == []
    assert "Yes" not in typist.panes.screen("idle:0")


def test_a_line_that_did_not_arrive_whole_does_nothing(typist: Typist) -> None:
    cut = type_text(typist.seen(), "abc", "Yes")
    typist.panes.tmux.send_control(cut)

    typist.do(type_text(typist.seen(), "def", "No"))

    typist.reads(b"No")
