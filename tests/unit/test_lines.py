"""Connections over lines: whole, apart from each other, and one after the other on the same."""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from agent_runner import lines

Address = tuple[str, int]
Serve = Callable[[Callable[[socket.socket], None]], Address]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def serve(stack: ExitStack) -> Serve:
    """Return what starts a server that does that with each connection."""

    def start(handle: Callable[[socket.socket], None]) -> Address:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                handle(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 2 * lines.COUNT

        server = stack.enter_context(Server(("127.0.0.1", 0), Handler))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        stack.callback(server.shutdown)
        return "127.0.0.1", int(server.server_address[1])

    return start


@pytest.fixture
def box(stack: ExitStack) -> Callable[..., tuple[Address, list[socket.socket]]]:
    """Return what opens so many lines to an address; their near end, and their ends in the box."""

    def open_to(far: Address, count: int) -> tuple[Address, list[socket.socket]]:
        pairs = lines.make_lines()
        ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        for line in ours:
            stack.enter_context(line)
        thread = lines.receive_from(ours, lambda: socket.create_connection(far, 20))
        stack.callback(thread.join, 20)
        for line in theirs:
            # Whoever still reads from it hears that it is over.
            stack.callback(line.close)
            stack.callback(line.shutdown, socket.SHUT_RDWR)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stack.callback(listener.shutdown, socket.SHUT_RDWR)
        lines.send_over(listener, theirs[:count])
        return listener.getsockname(), theirs

    return open_to


def echo(line: socket.socket) -> None:
    heard = b"".join(iter(lambda: line.recv(65536), b""))
    line.sendall(heard)


def call(near: Address, data: bytes) -> bytes:
    with socket.create_connection(near, 20) as line:
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65536), b""))


def test_a_line_carries_one_connection_after_another(serve: Serve, box: Callable[..., Any]) -> None:
    near, _ = box(serve(echo), 1)

    said = [str(number).encode() for number in range(20)]

    assert [call(near, data) for data in said] == said


def test_connections_at_once_do_not_mix_and_those_too_many_wait(
    serve: Serve, box: Callable[..., Any]
) -> None:
    near, _ = box(serve(echo), 3)
    said = [bytes([number]) * 300_000 for number in range(12)]

    with ThreadPoolExecutor(12) as pool:
        heard = list(pool.map(lambda data: call(near, data), said))

    assert heard == said


def test_a_client_that_leaves_ends_what_is_sent_to_it_and_frees_its_line(
    serve: Serve, box: Callable[..., Any]
) -> None:
    ended = threading.Event()

    def stream(line: socket.socket) -> None:
        if line.recv(1) == b"e":
            line.sendall(b"x")
            return
        with suppress(OSError):
            while True:
                line.sendall(bytes(65536))
        ended.set()

    near, _ = box(serve(stream), 1)

    with socket.create_connection(near, 20) as line:
        line.sendall(b"s")
        assert line.recv(9)

    assert ended.wait(20)
    assert call(near, b"e") == b"x"


def test_an_address_that_is_down_ends_the_connection_and_the_next_one_is_carried(
    stack: ExitStack, box: Callable[..., Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        far = gone.getsockname()
    near, _ = box(far, 1)

    with socket.create_connection(near, 20) as line:
        assert line.recv(9) == b""
    server = stack.enter_context(socket.create_server(far))

    def serve_one() -> None:
        with server.accept()[0] as line:
            echo(line)

    threading.Thread(target=serve_one, daemon=True).start()
    assert call(near, b"x") == b"x"


@pytest.mark.parametrize("words", [[b"x"], [b"d" * 99], [b"o", b"f"], [b"o", b"?"], [b"o", b"o"]])
def test_nonsense_on_one_line_does_not_end_the_others(
    serve: Serve, box: Callable[..., Any], words: list[bytes]
) -> None:
    near, theirs = box(serve(echo), 1)
    for line in theirs[1:]:
        for word in words:
            line.send(word)

    assert call(near, b"hello") == b"hello"
