"""`pynchy desktop` at its edges: links, strangers at the host's port, sleep, and what starts it."""

import asyncio
import hashlib
import hmac
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.standins.notifications import NotificationStandIn, StandInBackend
from tests.waiting import until

from pynchy.cli.desktop import following
from pynchy.cli.desktop.command import UNIT, remove_autostart, write_autostart
from pynchy.cli.desktop.following import PopupFollower
from pynchy.cli.desktop.session import HostSession, SessionKeys, SignedOut, sign_in
from pynchy.desktop.popup_ids import PopupIds
from pynchy.errors import HostError, PynchyError
from pynchy.inbox.sign_in import NONCE, PROOF, SIGNATURE
from pynchy.model import Option, Question
from pynchy.safe_folder import Folder


class Stranger(BaseHTTPRequestHandler):
    """Whoever has taken the port of a host that is down."""

    heard: ClassVar[list[str]] = []
    nonce = ""

    def do_GET(self) -> None:
        self.heard.append(str(self.headers))
        self.send_response(401 if self.nonce else 200)
        if self.nonce:
            self.send_header("pynchy-nonce", self.nonce)
        self.end_headers()
        self.wfile.write(b'[{"request_id": "forged"}]')

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Stranger, "heard", [])
    server = HTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_a_stranger_at_the_hosts_port_says_is_no_reply_and_it_never_hears_the_key(
    stranger: str,
) -> None:
    session = HostSession(SessionKeys(stranger, "pynchy-1=c", "the page key"))

    with pytest.raises(HostError, match="is not the host"):
        session.call("GET", "/inbox/questions?key=a/b")
    assert "the page key" not in "".join(Stranger.heard)


def test_a_host_that_refuses_what_was_signed_for_it_has_signed_out(
    stranger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stranger, "nonce", "n1")

    with pytest.raises(SignedOut):
        HostSession(SessionKeys(stranger, "c=c", "k")).call("GET", "/")
    assert len(Stranger.heard) == 2


class Restarted(BaseHTTPRequestHandler):
    """A host after a restart: the second to ask hears of its nonce after the first has used it."""

    key = hashlib.sha256(b"k").hexdigest()
    used: ClassVar[threading.Event]
    first: ClassVar[threading.Lock]

    def do_GET(self) -> None:
        nonce, challenge, *_ = self.headers[SIGNATURE].split()
        if nonce == "new":
            self.used.set()
            mac = hmac.new(self.key.encode(), f"reply\n{challenge}".encode(), hashlib.sha256)
            self.send_response(200)
            self.send_header(PROOF, mac.hexdigest())
        else:
            if not self.first.acquire(blocking=False):
                assert self.used.wait(30)
            self.send_response(401)
            self.send_header(NONCE, "new")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


async def test_two_requests_at_once_after_a_restart_were_taken_for_a_sign_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Restarted, "used", threading.Event(), raising=False)
    monkeypatch.setattr(Restarted, "first", threading.Lock(), raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Restarted) as server:
        threading.Thread(target=server.serve_forever).start()
        session = HostSession(SessionKeys(f"http://127.0.0.1:{server.server_port}", "c=c", "k"))
        try:
            replies = await asyncio.gather(
                *(asyncio.to_thread(session.call, "GET", "/") for _ in range(2))
            )
        finally:
            server.shutdown()

    assert [status for status, _ in replies] == [200, 200]


@pytest.mark.parametrize(
    "link", ["", "x", "ftp://h/sign-in?key=a", "http://h/sign-in", "http:///?key=a"]
)
def test_what_is_no_link_is_refused_with_where_to_get_one(link: str) -> None:
    with pytest.raises(SignedOut, match="inbox --open"):
        sign_in(link, "ana")


def test_a_host_that_is_not_there_is_told() -> None:
    with pytest.raises(HostError, match="no host answers"):
        sign_in("http://127.0.0.1:1/sign-in?key=a", "ana")


class SleepySession(HostSession):
    """A connection that ends only when it is stopped."""

    def __init__(self) -> None:
        super().__init__(SessionKeys("http://h", "c", "k"))
        self.opened = 0
        self._stopped = threading.Event()

    def events(self) -> Iterator[tuple[str, Any]]:
        self.opened += 1
        self._stopped.clear()
        yield "sync", {"open": []}
        self._stopped.wait(30)

    def stop(self) -> None:
        self._stopped.set()


async def test_a_connection_that_was_open_while_the_machine_slept_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = 0.0
    monkeypatch.setattr(following, "_slept_seconds", lambda: slept)
    monkeypatch.setattr(following, "_LOOK_SECONDS", 0.01)
    session = SleepySession()
    ids = PopupIds(Folder(tmp_path, "popups"))
    job = asyncio.create_task(
        PopupFollower(session, StandInBackend(NotificationStandIn()), ids).run()
    )
    await until(lambda: session.opened == 1, "the stream")
    slept = 3_600.0
    await until(lambda: session.opened == 2, "the stream again")
    job.cancel()
    await asyncio.wait([job])


class Silent(BaseHTTPRequestHandler):
    """A host that takes its time with the stream, and then never ends it."""

    asked: ClassVar[threading.Event]
    go_on: ClassVar[threading.Event]

    def do_GET(self) -> None:
        challenge = self.headers[SIGNATURE].split()[1]
        self.asked.set()
        assert self.go_on.wait(30)
        mac = hmac.new(Restarted.key.encode(), f"reply\n{challenge}".encode(), hashlib.sha256)
        self.send_response(200)
        self.send_header(PROOF, mac.hexdigest())
        self.end_headers()
        self.wfile.write(b": nothing\n")
        self.wfile.flush()
        self.rfile.read(1)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_stream_that_was_stopped_while_it_was_opened_was_read_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Silent, "asked", threading.Event(), raising=False)
    monkeypatch.setattr(Silent, "go_on", threading.Event(), raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()
        session = HostSession(SessionKeys(f"http://127.0.0.1:{server.server_port}", "c=c", "k"))
        reader = threading.Thread(target=lambda: list(session.events()), daemon=True)
        reader.start()
        assert Silent.asked.wait(30)
        session.stop()
        Silent.go_on.set()
        reader.join(15)
        server.shutdown()

    assert not reader.is_alive()


def test_what_cannot_be_read_whole_is_not_offered() -> None:
    options = (Option("Allow once", needs_sight=True), Option("Deny"))
    short, long = Question("Run ls?", options=options), Question("x\n" * 99, options=options)

    [kept, cut] = following._offered((short, long))  # noqa: SLF001

    assert (kept.labels, cut.labels) == (("Allow once", "Deny"), ("Deny",))


def test_it_starts_with_the_session_until_it_is_removed(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    for _ in range(2):
        unit, entry = write_autostart(("/o p/pynchy", "desktop", "--url", "http://h/%"), environ)
    wanted = tmp_path / "systemd/user/graphical-session.target.wants" / UNIT

    assert 'ExecStart="/o p/pynchy" "desktop" "--url" "http://h/%%"\n' in unit.read_text()
    assert 'Exec="/o p/pynchy" "desktop" "--url" "http://h/%%"\n' in entry.read_text()
    assert wanted.resolve() == unit
    assert set(remove_autostart(environ)) == {unit, wanted, entry}
    assert remove_autostart(environ) == []


@pytest.mark.parametrize("path", ["/a\nExecStart=/evil", "/a\r", "/a\x1b[", "/a\u2028b", "/\udcff"])
def test_a_line_break_in_a_path_added_lines_to_the_unit(tmp_path: Path, path: str) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}

    with pytest.raises(PynchyError, match="cannot be started"):
        write_autostart(("pynchy", "desktop", "--data-dir", path), environ)

    assert list(tmp_path.iterdir()) == []


def test_what_a_shell_or_systemd_would_read_is_quoted(tmp_path: Path) -> None:
    command = ("pynchy", 'a"b', "c\\d", "$HOME", "%h", "`id`")
    unit, entry = write_autostart(command, {"XDG_CONFIG_HOME": str(tmp_path)})
    [started] = [x for x in unit.read_text().split("\n") if x.startswith("ExecStart=")]
    [entered] = [x for x in entry.read_text().split("\n") if x.startswith("Exec=")]

    assert started == r'''ExecStart="pynchy" "a\"b" "c\\d" "$$HOME" "%%h" "`id`"'''
    assert entered == r'''Exec="pynchy" "a\\"b" "c\\\\d" "\\$HOME" "%%h" "\\`id\\`"'''
