"""Which of the processes on this machine are taken for OpenCode servers of one's own."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import psutil
import pytest

from pynchy.sources.opencode.source import find_servers


class Address(NamedTuple):
    ip: str
    port: int


class Uids(NamedTuple):
    real: int
    effective: int
    saved: int


@dataclass
class Connection:
    laddr: Address | tuple[()]
    status: str = psutil.CONN_LISTEN


def listening(ip: str = "127.0.0.1", port: int = 4096) -> Connection:
    return Connection(Address(ip, port))


@dataclass
class FakeProcess:
    """A process as psutil shows it; `raises` is what cannot be read of it."""

    called: str = "opencode"
    program: str = "/usr/local/bin/opencode"
    arguments: tuple[str, ...] = ("opencode", "serve")
    uid: int = os.getuid()
    connections: tuple[Connection, ...] = (listening(),)
    raises: str = ""
    began: float = 0.0

    def create_time(self) -> float:
        return self._told("create_time", self.began)

    def name(self) -> str:
        return self._told("name", self.called)

    def exe(self) -> str:
        return self._told("exe", self.program)

    def cmdline(self) -> list[str]:
        return self._told("cmdline", list(self.arguments))

    def uids(self) -> Uids:
        return self._told("uids", Uids(self.uid, self.uid, self.uid))

    def net_connections(self, kind: str) -> list[Connection]:
        assert kind == "tcp"
        return self._told("net_connections", list(self.connections))

    def _told(self, what: str, value: Any) -> Any:
        if self.raises == what:
            raise psutil.AccessDenied
        return value


Found = Callable[..., list[str]]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Found:
    """Return what is found among these processes."""

    def find(*processes: FakeProcess) -> list[str]:
        monkeypatch.setattr(psutil, "process_iter", lambda: iter(processes))
        return find_servers()

    return find


NODE = {"called": "node", "program": "/usr/bin/node"}


@pytest.mark.parametrize(
    "process",
    [
        FakeProcess(),
        FakeProcess(called="OpenCode", program="/Applications/OpenCode", arguments=()),
        FakeProcess(**NODE, arguments=("node", "/usr/lib/node_modules/.bin/opencode", "serve")),
        FakeProcess(called="bun", program="/usr/bin/bun", arguments=("bun", "/srv/opencode.js")),
        FakeProcess(called="opencode-linux", arguments=("/opt/opencode",), program="/opt/x"),
    ],
)
def test_an_opencode_of_our_own_user_is_found(found: Found, process: FakeProcess) -> None:
    assert found(process) == ["http://127.0.0.1:4096"]


@pytest.mark.parametrize(
    "process",
    [
        FakeProcess(uid=os.getuid() + 1),
        FakeProcess(called="python3"),
        FakeProcess(called="postgres", program="/usr/bin/postgres", arguments=("postgres",)),
        FakeProcess(**NODE, arguments=("node", "/srv/shop/server.js")),
        # What it works on is no proof of what it is.
        FakeProcess(**NODE, arguments=("node", "server.js", "opencode")),
        FakeProcess(**NODE, arguments=("node", "/srv/opencode/server.js")),
        FakeProcess(**NODE, arguments=("node", "/srv/opencode-proxy")),
    ],
)
def test_another_users_process_and_another_program_are_left_alone(
    found: Found, process: FakeProcess
) -> None:
    assert found(process) == []


@pytest.mark.parametrize(
    ("ip", "urls"),
    [
        ("127.0.0.1", ["http://127.0.0.1:4096"]),
        ("127.0.0.53", ["http://127.0.0.53:4096"]),
        ("::1", ["http://[::1]:4096"]),
        # Listens everywhere, and so on loopback.
        ("0.0.0.0", ["http://127.0.0.1:4096"]),  # noqa: S104 - nobody listens
        ("::", ["http://[::1]:4096"]),
        ("192.168.1.7", []),
        ("10.0.0.1", []),
        ("fe80::1", []),
        ("2001:db8::1", []),
    ],
)
def test_only_an_address_on_loopback_is_taken(found: Found, ip: str, urls: list[str]) -> None:
    assert found(FakeProcess(connections=(listening(ip),))) == urls


def test_a_connection_that_is_none_to_listen_on_is_left_alone(found: Found) -> None:
    talking = Connection(Address("127.0.0.1", 50_000), psutil.CONN_ESTABLISHED)
    nowhere = Connection(())

    assert found(FakeProcess(connections=(talking, nowhere))) == []


@pytest.mark.parametrize("raises", ["name", "uids", "exe", "cmdline", "net_connections"])
def test_a_process_that_cannot_be_read_hides_no_other(found: Found, raises: str) -> None:
    hidden = FakeProcess(raises=raises, connections=(listening(port=1),))

    assert found(hidden, FakeProcess()) == ["http://127.0.0.1:4096"]


def test_each_address_is_found_once_and_no_more_than_twenty(found: Found) -> None:
    processes = [FakeProcess(connections=(listening(port=4000 + n),)) for n in range(40)]

    urls = found(*processes, *processes)

    assert len(urls) == len(set(urls)) == 20


def test_a_process_that_listened_on_many_ports_drove_out_an_honest_server(found: Found) -> None:
    flood = tuple(listening(port=10_000 + n) for n in range(40))
    honest = FakeProcess(began=1.0, connections=(listening(port=41_999),))

    urls = found(FakeProcess(began=2.0, connections=flood), honest)

    assert urls == [
        "http://127.0.0.1:41999",
        "http://127.0.0.1:10000",
        "http://127.0.0.1:10001",
    ]


def test_processes_that_came_later_did_not_drive_out_an_earlier_one(found: Found) -> None:
    later = [
        FakeProcess(began=9.0, connections=(listening(port=10_000 + n),), raises=raises)
        for n, raises in enumerate(["", "create_time"] * 20)
    ]

    urls = found(*later, FakeProcess(began=1.0, connections=(listening(port=41_999),)))

    assert urls[0] == "http://127.0.0.1:41999"
    assert len(urls) == 20
