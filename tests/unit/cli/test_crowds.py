"""Programs without a token that take up connections of the HTTP interface."""

import http.client
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.unit.cli.support import Host, until
from tests.waiting import hung_up_on

from pynchy import http_connections

MOST = 30
OWN = Path("/proc/self/fd")


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may have few descriptors, of which half may be connections."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2 * MOST, 2 * MOST))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(host: Host) -> socket.socket:
    """Return a connection with little room for what comes."""
    where = urlsplit(host.data.host().url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 300)
    sock.connect((where.hostname, where.port))
    return sock


def descriptors() -> int:
    """Return how many this process has, in which the host runs beside the strangers."""
    return len(list(OWN.iterdir()))


def has_other_end(connection: socket.socket) -> bool:
    """True while a descriptor of this process, in which the host runs, is the other end of it."""
    return any(peer_of(int(entry.name)) == connection.getsockname() for entry in OWN.iterdir())


def peer_of(descriptor: int) -> object:
    try:
        copy = os.dup(descriptor)
    except OSError:
        return None
    try:
        sock = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return None
    with sock, suppress(OSError):
        return sock.getpeername()
    return None


def ask_and_never_read(host: Host) -> socket.socket:
    """Ask for a file that anybody may have, so often that the answers fill every buffer."""
    sock = connect(host)
    sock.sendall(b"GET /static/inbox.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)
    assert sock.recv(1)
    return sock


def test_strangers_who_ask_and_never_read_keep_nobody_out(host: Host, stack: ExitStack) -> None:
    before, crowd = descriptors(), 2 * MOST
    for _ in range(crowd):
        stack.enter_context(ask_and_never_read(host))

    answered = [host.client.pending() for _ in range(10)]

    assert answered == [[]] * 10
    until(lambda: descriptors() <= before + crowd + MOST + 2)


def test_a_stranger_who_asks_and_never_reads_is_sent_home_when_its_time_is_over(
    host: Host, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "TAKE_SECONDS", 0.2)

    stranger = stack.enter_context(ask_and_never_read(host))

    # A client that never reads does not notice that it was disconnected: look at the host's end.
    until(lambda: not has_other_end(stranger))


def test_strangers_are_sent_home_before_somebody_with_the_token(
    host: Host, stack: ExitStack
) -> None:
    address = host.data.host()
    where = urlsplit(address.url)
    known = http.client.HTTPConnection(where.hostname or "", where.port)
    stack.callback(known.close)
    headers = {"Authorization": f"Bearer {address.token}"}
    known.request("GET", "/api/pending", headers=headers)
    assert known.getresponse().read() == b"[]"

    crowd = [stack.enter_context(connect(host)) for _ in range(2 * MOST)]
    until(lambda: hung_up_on(crowd) >= MOST)

    known.request("GET", "/api/pending", headers=headers)
    assert known.getresponse().status == 200
