"""Somebody who can reach the port and holds no token, and somebody who holds it and is rude."""

import asyncio
import json
import resource
import secrets
import select
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.acceptance.support import Host, MailboxAgent
from tests.prove.conftest import Proof
from tests.prove.hostile.conftest import StartHost
from tests.prove.hostile.intruder import ask, connect, head, parse, say
from tests.prove.hostile.watching import Bystander, descriptors, is_healthy, pid_of, resident_mib
from tests.prove.load.people import opened
from tests.waiting import until

from pynchy import http_connections
from pynchy.http import auth

ANSWER = json.dumps({"values": ["1"], "by": "mallory"}).encode()
READS = ("/api/pending", "/api/history", "/api/events", "/api/questions/{id}", "/", "/x")
# For a thousand questions and more, on a busy machine.
MANY_SECONDS = 300.0
WRITES = ("/api/sweep", *(f"/api/questions/{{id}}/{verb}" for verb in ("answer", "decline")))


@pytest.fixture(autouse=True)
async def victim(shared_host: Host) -> AsyncIterator[str]:
    """The id of an open question, which is as open afterwards, on a host that is well."""
    request_id = MailboxAgent(shared_host.group("victims")).ask()
    before = await shared_host.state(request_id, "open")

    yield request_id

    assert shared_host.question(request_id) == before
    assert is_healthy(shared_host)
    assert "Traceback" not in shared_host.log.read_text()


def wrong_tokens(token: str) -> Iterator[str]:
    """Every way to be nearly right, and texts of many lengths."""
    yield from (token[:-1], token + "x", token.swapcase(), token[::-1], f"{token},{token}")
    yield from (token[: len(token) // 2], f"x{token}", f'"{token}"', "ÿ" * len(token), "\udcff")
    yield from ("", *(secrets.token_urlsafe(n)[:n] for n in range(1, 100)), "a" * 20_000)


def test_whoever_has_no_token_or_another_one_is_told_nothing(
    shared_host: Host, victim: str, proof: Proof
) -> None:
    tokens = list(wrong_tokens(shared_host.token()))
    asked = [f"GET {path.format(id=victim)}" for path in READS]
    asked += [f"POST {path.format(id=victim)}" for path in WRITES]
    chosen = tokens if proof.scale != "sample" else [*tokens[:12], *tokens[12::20]]

    refused = [ask(shared_host, line, body=ANSWER) for line in asked]
    refused += [ask(shared_host, asked[n % len(asked)], token=t) for n, t in enumerate(chosen)]
    for scheme in ("Basic", "Token", "Bearer" * 2, ""):
        given = f"Authorization: {scheme} {shared_host.token()}"
        refused.append(ask(shared_host, f"GET /api/questions/{victim}", given))

    assert {heard.status for heard in refused} == {401}
    assert all("token" in heard.error for heard in refused)
    assert not any(victim.encode() in heard.body for heard in refused)
    proof.report("intruder: wrong tokens", tried=len(refused))


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "evil.example#127.0.0.1",
        "127.0.0.1@evil.example",
        "[::1].evil.example",
        "[evil.example]",
        "192.168.0.1",
        "2130706433",
        "",
    ],
)
def test_a_page_that_rebinds_its_name_is_turned_away_with_any_token(
    shared_host: Host, victim: str, name: str
) -> None:
    line = f"POST /api/questions/{victim}/answer"

    if "[::1]" in name:  # a name in brackets is an address; what follows it is not looked at
        assert ask(shared_host, line, body=ANSWER, name=name).status == 401
        return
    assert ask(shared_host, line, body=ANSWER, token=shared_host.token(), name=name).status == 421
    assert ask(shared_host, "GET /healthz", name=name).status == 421


def test_a_page_of_another_site_can_neither_read_nor_answer(shared_host: Host, victim: str) -> None:
    page = ("Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Cookie: token=x")
    line = f"/api/questions/{victim}/answer"

    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
        heard = ask(shared_host, f"POST {line}", *page, f"Content-Type: {kind}", body=ANSWER)
        assert heard.status == 401
        assert not any("allow-origin" in name for name in heard.headers)
    wanted = "Access-Control-Request-Method: POST"
    preflight = ask(shared_host, f"OPTIONS {line}", *page, wanted)

    assert preflight.status == 401
    assert not any(name.startswith("access-control") for name in preflight.headers)


@pytest.mark.parametrize(
    "path",
    [
        "//api/pending",
        "/api//pending",
        "/./api/pending",
        "/healthz/../api/pending",
        "/healthz/%2e%2e/api/pending",
        "/healthz%2f..%2fapi%2fpending",
        "/healthz;/../api/pending",
        "//healthz",
        "/healthz/",
        "/HEALTHZ",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/questions/..%2f..%2ftoken",
        "/api/questions/%00",
        "/api/questions/%ff%fe",
        "/api/questions/%0d%0aSet-Cookie:%20x",
        "/api/questions/" + "a" * 20_000,
        "/api/questions/" + "%41" * 5_000 + "/answer",
        "/" + "a/" * 5_000,
        "http://evil.example/api/pending",
        "/api/history?limit=" + "9" * 5_000,
        "/api/history?group=../../etc&outcome=%00",
        "/api/events?after=" + "9" * 5_000,
        "/api/events?after=-1",
        "*",
    ],
)
def test_no_spelling_of_a_path_leads_past_the_token_or_out_of_the_house(
    shared_host: Host, path: str
) -> None:
    nobody = ask(shared_host, f"GET {path}")
    somebody = ask(shared_host, f"GET {path}", token=shared_host.token())

    assert nobody.status == 401
    assert somebody.status in {200, 307, 400, 404, 405, 422}
    assert b"root:" not in somebody.body
    assert shared_host.token().encode() not in somebody.body
    assert "set-cookie" not in somebody.headers
    if somebody.status >= 400:
        assert somebody.error


RUBBISH = [
    b"GET /\r\n",
    b"\x00" * 1_000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 500,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\r\n" * 1_000 + b"GET",
    b"GET /healthz HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: a\r\n" * 10_000 + b"\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n folded: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nBad\x00Name: x\r\n\r\n",
    head("POST /api/sweep", "Content-Length: -1"),
    head("POST /api/sweep", "Content-Length: 5", "Content-Length: 6") + b"hello!",
    head("POST /api/sweep", "Content-Length: " + "9" * 5_000),
    head("POST /api/sweep", "Content-Length: ٣"),
    head("POST /api/sweep", "Transfer-Encoding: chunked") + b"ffffffffffffffff\r\nx",
    head("POST /api/sweep", "Transfer-Encoding: chunked") + b"zz\r\n",
    head("POST /api/sweep", "Transfer-Encoding: gzip") + b"x",
]


@pytest.mark.parametrize("data", RUBBISH, ids=range(len(RUBBISH)))
def test_what_is_no_request_is_refused_and_hung_up_on(shared_host: Host, data: bytes) -> None:
    heard = parse(say(shared_host, data, then_hang_up=True))

    assert {each.status for each in heard} <= {200, 400, 401, 413, 421, 431, 501}


def test_random_bytes_are_refused(shared_host: Host, proof: Proof) -> None:
    rounds = proof.choose(sample=50, prove=2_000, everything=20_000)
    for number in range(rounds):
        whole = (
            head("POST /api/sweep", "Content-Length: 9", token=shared_host.token()) + b'{"a": 1}\n'
        )
        broken = bytearray(whole)
        for _ in range(1 + number % 8):
            broken[secrets.randbelow(len(broken))] = secrets.randbelow(256)
        say(shared_host, bytes(broken), then_hang_up=True)
    proof.report("intruder: broken bytes", tried=rounds)


def test_a_body_of_another_length_than_was_said_changes_nothing(
    shared_host: Host, victim: str
) -> None:
    # By its short id it is found at once: before it is noticed that nobody listens any more.
    short_id, token = shared_host.question(victim)["short_id"], shared_host.token()
    line = f"POST /api/questions/{short_id}/answer"
    short = head(line, "Content-Length: 200000", token=token) + ANSWER[:-1]
    smuggled = head(line, "Content-Length: 3", token=token) + b"{} " + head(line) + ANSWER
    both = head(line, "Content-Length: 3", "Transfer-Encoding: chunked", token=token) + b"0\r\n\r\n"

    say(shared_host, short, then_hang_up=True)
    heard = parse(say(shared_host, smuggled, then_hang_up=True))
    mixed = parse(say(shared_host, both, then_hang_up=True))

    assert heard[0].status == 422
    assert {each.status for each in heard[1:]} <= {400, 401}
    assert {each.status for each in mixed} <= {400, 422}


def test_chunks_without_end_are_cut_off_at_the_cap(shared_host: Host, victim: str) -> None:
    line = f"POST /api/questions/{victim}/answer"
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    request = head(
        line, "Transfer-Encoding: chunked", "Connection: close", token=shared_host.token()
    )

    before = resident_mib(shared_host)
    heard = say(shared_host, request + chunk * 200)

    assert not heard or parse(heard)[0].status == 413
    assert resident_mib(shared_host) - before < 30


def test_requests_in_one_breath_are_answered_in_order(shared_host: Host, victim: str) -> None:
    known, unknown = f"GET /api/questions/{victim}", "GET /api/questions/nope"
    token = shared_host.token()
    turns = [(known, token, 200), (known, None, 401), (unknown, token, 404), ("GET /x", None, 401)]
    asked = [turns[n % 4] for n in range(60)]

    data = b"".join(head(line, token=given) for line, given, _ in asked)
    heard = parse(say(shared_host, data + head("GET /healthz", "Connection: close")))

    assert [each.status for each in heard] == [*(status for _, _, status in asked), 200]


async def test_a_thousand_who_connect_and_say_nothing_take_nothing_from_others(
    start_host: StartHost, proof: Proof
) -> None:
    host = await start_host()
    # What most systems give a process, whatever this one has given us.
    resource.prlimit(pid_of(host), resource.RLIMIT_NOFILE, (1_024, 1_024))
    other = Bystander(host)
    await other.greeted()
    before = descriptors(host)

    with ExitStack() as stack:
        crowd = [stack.enter_context(connect(host)) for _ in range(1_000)]
        for sock in crowd[::2]:
            sock.send(b"GET /healthz HTTP/1.1\r\nHo")
        await until(lambda: descriptors(host) > 400, "the crowd to be taken in")
        served = [await other.is_served() for _ in range(5)]
        most = descriptors(host)
        if proof.scale != "sample":
            await until(lambda: descriptors(host) <= before + 5, "the silent to be sent home")

    await until(lambda: descriptors(host) <= before + 2, "their descriptors")
    assert most < 800
    assert is_healthy(host)
    assert "Too many open files" not in host.log.read_text()
    proof.report(
        "intruder: silent connections",
        opened=1_000,
        descriptor_limit=1_024,
        most_descriptors=most,
        descriptors_before=before,
        descriptors_after=descriptors(host),
        slowest_bystander_seconds=round(max(served), 3),
    )


async def test_hundreds_of_slow_bodies_keep_nobody_out(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    host = Host(tmp_path / "data")
    host.by_command = True
    # What most systems give a process, whatever this one has given us.
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, hard))
    await host.start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    other = Bystander(host)
    await other.greeted()
    form = "Content-Type: application/x-www-form-urlencoded"
    ours = "Sec-Fetch-Site: same-origin"
    slow = head("POST /sign-in", form, ours, "Content-Length: 60") + b"key="

    with ExitStack() as stack:
        for _ in range(700):
            stack.enter_context(connect(host)).sendall(slow)
        await until(lambda: descriptors(host) > 400, "the crowd to be taken in")
        served = [await other.is_served() for _ in range(5)]
        answered = [host.http("GET", "/api/status").status for _ in range(12)]

    assert answered == [200] * 12
    assert max(served) < 3
    assert await host.stop() == 0


async def test_a_body_that_drips_is_cut_off_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auth, "BODY_SECONDS", 0.2)
    sent: list[dict[str, object]] = []

    async def drip() -> dict[str, object]:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def app(_scope: object, receive: Callable[[], object], _send: object) -> None:
        while True:
            await receive()  # type: ignore[misc]

    scope = {
        "type": "http",
        "path": "/api/sweep",
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer t")],
    }
    passes = auth.Credentials("t", "c", lambda _: None)
    guarded = auth.AuthMiddleware(app, app, passes, ["127.0.0.1"])  # type: ignore[arg-type]
    begun = time.monotonic()
    with pytest.raises(auth.BodyTooSlow):
        await guarded(scope, drip, send)  # type: ignore[arg-type]

    assert time.monotonic() - begun < 5


async def test_a_drip_holds_its_line_no_longer_than_the_limit_and_nobody_else(
    shared_host: Host, victim: str, proof: Proof
) -> None:
    if proof.scale == "sample":
        assert auth.BODY_SECONDS <= 10  # how long it takes in earnest
        assert http_connections.HEAD_SECONDS <= 10
        return
    line = f"POST /api/questions/{victim}/answer"
    whole = head(line, "Content-Length: 9999", token=shared_host.token())
    nobody = head(line, "Content-Length: 9999")
    dripping = [asyncio.to_thread(drip, shared_host, data) for data in (whole, nobody, whole[:40])]
    calls = [asyncio.create_task(each) for each in dripping]
    other = Bystander(shared_host, "beside-a-drip")
    await other.greeted()

    served = [await other.is_served() for _ in range(10)]
    took = await asyncio.gather(*calls)

    assert all(each < 15 for each in took)
    assert max(served) < 3
    proof.report("intruder: slow bodies", cut_off_after_seconds=[round(each, 1) for each in took])


def drip(host: Host, data: bytes) -> float:
    """Send a byte now and then until the other side hangs up. Return the seconds that it took."""
    begun = time.monotonic()
    with connect(host) as sock:
        sock.sendall(data)
        sock.settimeout(0.5)
        while time.monotonic() - begun < 40:
            try:
                sock.send(b"a")
                if sock.recv(65_536) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    return time.monotonic() - begun


def all_answered(readers: list[socket.socket]) -> bool:
    """True if each has something to read, which stays unread."""
    readable, _, _ = select.select(readers, [], [], 0)
    return len(readable) == len(readers)


async def test_readers_of_events_who_never_read_cost_little_and_are_sent_home(
    start_host: StartHost, proof: Proof
) -> None:
    host = await start_host("requests_per_second = 1000\nrequest_burst = 2000\n")
    other = Bystander(host)
    await other.greeted()
    lines = proof.choose(sample=20, prove=1_500, everything=3_000)
    before, level = resident_mib(host), descriptors(host)

    with ExitStack() as stack:
        readers = [stack.enter_context(connect(host, receive_buffer=4_096)) for _ in range(20)]
        for sock in readers:
            sock.sendall(head("GET /api/events", token=host.token()))
        await until(lambda: all_answered(readers), "the readers to be there")
        talkers = [MailboxAgent(host.group(f"talker-{n}")) for n in range(4)]
        ids = [(t, t.ask("x" * 20_000)) for t in talkers for _ in range(lines // len(talkers))]
        served = [await other.is_served() for _ in range(3)]
        taken = [lambda t=t: not any(t.tasks.glob("*.json")) for t in talkers]
        await until(lambda: all(look() for look in taken), "the talk", MANY_SECONDS)
        for talker, request_id in ids:
            talker.tell("withdraw", request_id)
        await opened(host, 0)
        grown = resident_mib(host) - before
        if proof.scale != "sample":
            await until(lambda: descriptors(host) <= level + 3, "the readers to be sent home")

    assert grown < 100
    assert is_healthy(host)
    proof.report(
        "intruder: readers who never read",
        readers=20,
        events_kib=len(ids) * 40,
        rss_growth_mib=round(grown, 1),
        slowest_bystander_seconds=round(max(served), 3),
    )


def test_a_reader_who_comes_and_goes_leaves_nothing_behind(shared_host: Host) -> None:
    before = descriptors(shared_host)
    for _ in range(50):
        with connect(shared_host) as sock:
            sock.sendall(head("GET /api/events?after=0", token=shared_host.token()))
            sock.recv(100)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    asyncio.run(until(lambda: descriptors(shared_host) <= before + 2, "their descriptors"))


def test_a_stream_of_events_that_is_asked_for_with_a_flood_is_refused(shared_host: Host) -> None:
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    request = head("GET /api/events", "Transfer-Encoding: chunked", token=shared_host.token())

    heard = parse(say(shared_host, request + chunk * 5))

    assert not heard or heard[0].status == 413


def test_an_upgrade_is_not_given(shared_host: Host) -> None:
    wanted = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

    with connect(shared_host) as sock:
        sock.sendall(head("GET /api/events", *wanted, key))
        heard = sock.recv(65_536)

    assert parse(heard)[0].status == 401


def test_a_flood_of_rubbish_does_not_fill_the_log(shared_host: Host) -> None:
    before = shared_host.log.stat().st_size
    for _ in range(200):
        say(shared_host, b"rubbish\r\n\r\n")

    assert shared_host.log.stat().st_size - before < 2_000
