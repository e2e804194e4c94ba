"""The inbox over plain HTTP: who gets in, what an attacker meets, and what it tells others."""

import http.client
import json
import os
import pty
import re
import subprocess
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import PYNCHY, Host, MailboxAgent, Runs

BROWSER = {"Accept": "text/html,*/*", "Sec-Fetch-Site": "same-origin"}


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    text: str


def send(
    host: Host, method: str, path: str, headers: dict[str, str] | None = None, body: str = ""
) -> Reply:
    address = urlsplit(host.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        connection.request(method, path, body or None, BROWSER if headers is None else headers)
        reply = connection.getresponse()
        found = {name.lower(): value for name, value in reply.getheaders()}
        return Reply(reply.status, found, reply.read().decode())
    finally:
        connection.close()


async def new_link(host: Host) -> str:
    reply = host.http("POST", "/api/inbox/link", {})
    assert reply.status == 200
    return str(reply.body["url"])


async def sign_in(host: Host, **headers: str) -> Reply:
    key = urlsplit(await new_link(host)).query.removeprefix("key=")
    body = urlencode({"key": key, "by": "ana", "next": "/"})
    return send(host, "POST", "/sign-in", BROWSER | headers, body)


def entry_of(reply: Reply) -> dict[str, str]:
    """Return what the page that signs in hands to its script."""
    found = re.search(r'<script type="application/json" id="entry">(.+?)</script>', reply.text)
    assert found
    entry: dict[str, str] = json.loads(found[1])
    return entry


async def signed_in_browser(host: Host) -> dict[str, str]:
    """Return what our own pages send: the cookie and the page key."""
    reply = await sign_in(host)
    cookie = {"Cookie": reply.headers["set-cookie"].partition(";")[0]}
    return cookie | {"Pynchy-Page-Key": entry_of(reply)["key"]}


async def stolen_cookie(host: Host) -> dict[str, str]:
    """Return what another port of the same machine is sent by the browser."""
    headers = await signed_in_browser(host)
    return {"Cookie": headers["Cookie"]}


async def test_a_link_leads_to_a_cookie_and_a_key_that_open_the_pages(shared_host: Host) -> None:
    reply = await sign_in(shared_host)

    assert (reply.status, entry_of(reply)["next"]) == (200, "/")
    assert reply.headers["cache-control"] == "no-store"
    kept = reply.headers["set-cookie"]
    assert re.match(r"pynchy-[0-9a-f]{8}=\S{40,};", kept)
    assert "HttpOnly" in kept
    assert "SameSite=lax" in kept
    assert "Secure" not in kept
    key = entry_of(reply)["key"]
    token = {"Cookie": kept.partition(";")[0], "Pynchy-Page-Key": key}
    assert len(key) >= 40
    assert key not in kept
    assert send(shared_host, "GET", "/", BROWSER | token).status == 200
    assert send(shared_host, "GET", "/inbox/cards", BROWSER | token).status == 200


@pytest.mark.parametrize(
    "request_line",
    [
        "POST /api/inbox/link",
        "POST /api/inbox/sign-out-all",
        "POST /api/sweep",
        "POST /api/sessions",
        "POST /api/sessions/x/stop",
        "GET /api/sessions",
        "GET /api/sessions/x/log",
        "GET /api/events",
        "GET /api/pending",
        "GET /api/history",
        "GET /api/agents",
        "GET /api/status",
        "GET /api/inbox/settings",
        "GET /api/questions/x",
    ],
)
async def test_a_browser_may_do_no_more_than_its_pages_do(
    shared_host: Host, request_line: str
) -> None:
    method, path = request_line.split()
    headers = BROWSER | await signed_in_browser(shared_host)

    reply = send(shared_host, method, path, headers, "{}" if method == "POST" else "")

    assert reply.status == 403
    assert "token" in json.loads(reply.text)["error"]
    assert send(shared_host, "GET", "/", headers).status == 200


PLACES = [
    "/",
    "/q/team/{id}",
    "/agents",
    "/history",
    "/history?q=secret",
    "/inbox/cards?key=team/{id}",
    "/inbox/agents",
    "/inbox/find?q=secret",
    "/inbox/stream",
    "/api/pending",
    "/api/questions/{id}",
    "/api/events",
]


@pytest.mark.parametrize("key", [{}, {"Pynchy-Page-Key": ""}, {"Pynchy-Page-Key": "guessed"}])
async def test_a_stolen_cookie_alone_reads_no_question(
    shared_host: Host, key: dict[str, str]
) -> None:
    open_, over = (MailboxAgent(shared_host.group("team")).ask("A secret plan?") for _ in "12")
    await shared_host.state(open_, "open")
    await shared_host.state(over, "open")
    shared_host.answer(over, "Yes")
    headers = BROWSER | await stolen_cookie(shared_host) | key

    for request_id, place in product((open_, over), PLACES):
        reply = send(shared_host, "GET", place.format(id=request_id), headers)

        assert reply.status == (401 if place.startswith(("/api", "/inbox")) else 200), place
        assert not re.search("secret|ana|Yes", reply.text), place
        assert request_id not in reply.text, place


@pytest.mark.parametrize("whose", ["nobody's", "another browser's", "the cookie's own"])
async def test_a_stolen_cookie_alone_changes_nothing(shared_host: Host, whose: str) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")
    stolen = await stolen_cookie(shared_host)
    keys = {
        "nobody's": "",
        "another browser's": (await signed_in_browser(shared_host))["Pynchy-Page-Key"],
        "the cookie's own": stolen["Cookie"].partition("=")[2],
    }
    headers = BROWSER | stolen | {"Pynchy-Page-Key": keys[whose]}

    for verb in ("answer", "decline", "retry", "dismiss"):
        body = json.dumps({"values": ["Yes"]} if verb == "answer" else {})
        reply = send(shared_host, "POST", f"/api/questions/{request_id}/{verb}", headers, body)
        assert reply.status == 401, verb
    out = send(shared_host, "POST", "/inbox/sign-out", headers, "{}")

    assert out.status == 401
    assert shared_host.question(request_id)["state"] == "open"


async def test_a_page_key_without_its_cookie_opens_nothing(shared_host: Host) -> None:
    key = (await signed_in_browser(shared_host))["Pynchy-Page-Key"]

    assert send(shared_host, "GET", "/", BROWSER | {"Pynchy-Page-Key": key}).status == 401


async def test_what_tells_of_the_host_or_of_a_body_is_not_kept_by_caches(
    shared_host: Host,
) -> None:
    token = {"Authorization": f"Bearer {shared_host.token()}", "Transfer-Encoding": "chunked"}
    too_much = f"{300 * 1024:x}\r\n{'x' * 300 * 1024}\r\n0\r\n\r\n"

    refused = send(shared_host, "POST", "/api/sweep", token, too_much)

    assert refused.status == 413
    assert refused.headers["cache-control"] == "no-store"
    assert send(shared_host, "GET", "/healthz").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/history", "/agents", "/q/team/abc", "/nowhere"])
async def test_a_browser_that_is_not_signed_in_sees_how_to_and_nothing_else(
    shared_host: Host, path: str
) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask("A secret plan?")
    await shared_host.state(request_id, "open")

    reply = send(shared_host, "GET", path)

    assert reply.status == 401
    assert "pynchy inbox --open" in reply.text
    assert "secret" not in reply.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://["},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {},
    ],
)
async def test_another_site_cannot_answer_with_our_cookie(
    shared_host: Host, headers: dict[str, str]
) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")
    signed_in = await signed_in_browser(shared_host)
    body = json.dumps({"values": ["Yes"]})

    reply = send(
        shared_host, "POST", f"/api/questions/{request_id}/answer", headers | signed_in, body
    )
    login = send(shared_host, "POST", "/sign-in", headers, "key=x")

    assert (reply.status, login.status) == (403, 403)
    assert shared_host.question(request_id)["state"] == "open"


async def test_our_own_page_may_answer_also_where_the_browser_says_only_its_origin(
    shared_host: Host,
) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")
    signed_in = await signed_in_browser(shared_host)

    reply = send(
        shared_host,
        "POST",
        f"/api/questions/{request_id}/answer",
        {"Origin": shared_host.url, **signed_in},
        json.dumps({"answers": [{"options": [2]}], "group": "team", "by": "somebody else"}),
    )

    assert reply.status == 200
    ending = json.loads(reply.text)["ending"]
    assert (ending["answered_by"], ending["channel"]) == ("ana", "web")
    assert ending["answers"][0]["selected"] == ["No"]


async def test_other_sites_may_link_to_a_page_and_read_nothing(shared_host: Host) -> None:
    signed_in = await signed_in_browser(shared_host)
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}

    assert send(shared_host, "GET", "/history", link | signed_in).status == 200
    for mode in ("no-cors", "cors"):
        read = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
        assert send(shared_host, "GET", "/api/pending", read | signed_in).status == 403
        assert send(shared_host, "GET", "/inbox/stream", read | signed_in).status == 403


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/static/inbox-page.js", "/api/pending", "/healthz"]
)
async def test_every_reply_has_a_strict_policy(shared_host: Host, path: str) -> None:
    reply = send(shared_host, "GET", path)

    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    "onward", ["//evil.example", "http://evil.example", "/\\evil", "x", "/a\nb"]
)
async def test_signing_in_leads_to_no_other_site(shared_host: Host, onward: str) -> None:
    key = urlsplit(await new_link(shared_host)).query.removeprefix("key=")

    body = urlencode({"key": key, "by": "ana", "next": onward})
    reply = send(shared_host, "POST", "/sign-in", BROWSER, body)

    assert (reply.status, entry_of(reply)["next"]) == (200, "/")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pages.py",
        "/static/..%2fpages.py",
        "/static/nothing.js",
        "/static/0123/nothing.js",
        "/static/",
        "/q/team/nothing",
        "/q/..%2f..%2fetc/passwd",
        "/q/%00/x",
    ],
)
async def test_what_is_not_there_is_not_found(shared_host: Host, path: str) -> None:
    reply = send(shared_host, "GET", path, BROWSER | await signed_in_browser(shared_host))

    assert reply.status == 404


async def test_a_browser_may_keep_the_files_of_this_version_and_no_others(
    shared_host: Host,
) -> None:
    page = send(shared_host, "GET", "/")
    found = re.search(r'href="(/static/[0-9a-f]+/inbox.css)"', page.text)
    assert found

    kept = send(shared_host, "GET", found[1])
    other = send(shared_host, "GET", "/static/0123456789abcdef/inbox.css")

    assert "immutable" in kept.headers["cache-control"]
    assert other.text == kept.text
    assert other.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "query",
    ["after=x", "after=-1", "after=99999999", "group=%2e%2e", "outcome=x", "q=" + "%C0%AF", "q=["],
)
async def test_odd_filters_of_the_history_break_nothing(shared_host: Host, query: str) -> None:
    headers = BROWSER | await signed_in_browser(shared_host)

    reply = send(shared_host, "GET", f"/history?{query}", headers)

    assert reply.status == 200


@pytest.mark.parametrize("body", ["", "key", "key=%ff&by=%00", "a=1&" * 50, "key=" + "x" * 9_000])
async def test_rubbish_does_not_sign_in(shared_host: Host, body: str) -> None:
    assert send(shared_host, "POST", "/sign-in", BROWSER, body).status in {400, 410}


async def test_behind_a_proxy_its_name_is_allowed_and_the_cookie_is_for_https_alone(
    start_host: StartHost,
) -> None:
    host = await start_host('[http]\npublic_url = "https://inbox.example.org"\n')
    link = await new_link(host)
    assert link.startswith("https://inbox.example.org/sign-in?key=")
    proxied = BROWSER | {"Host": "inbox.example.org"}
    key = urlsplit(link).query

    reply = send(host, "POST", "/sign-in", proxied, f"{key}&by=ana")

    assert reply.status == 200
    assert "Secure" in reply.headers["set-cookie"]
    assert send(host, "GET", "/healthz", {"Host": "other.example.org"}).status == 421


async def test_everybody_can_be_signed_out_also_while_no_host_runs(
    start_host: StartHost,
) -> None:
    host = await start_host()
    signed_in = await signed_in_browser(host)
    await host.stop()

    code, out, _ = await host.cli("inbox", "--sign-out-all")

    assert (code, out.split(" ")[0]) == (0, "1")
    await host.start()
    assert send(host, "GET", "/", BROWSER | signed_in).status == 401


async def test_without_a_host_there_is_no_link(start_host: StartHost) -> None:
    host = await start_host()
    await host.stop()

    code, out, err = await host.cli("inbox", "--open")

    assert (code, out) == (5, "")
    assert "pynchy serve" in err


async def test_serve_prints_no_link_where_nobody_sits(host: Host) -> None:
    written = "".join(path.read_text() for path in host.data.parent.glob("host-*.out"))

    assert written.count("\n") == 1
    assert "key=" not in written + host.log.read_text()


def serve_at_a_terminal(folder: Path, settings: str, until: str) -> list[str]:
    """Return what somebody sees, up to a line with that in it."""
    (folder / "pynchy.toml").write_text(settings)
    screen, terminal = pty.openpty()
    command = [PYNCHY, "serve", "--data-dir", folder / "data", "--port", "0"]
    command += ["--config", folder / "pynchy.toml"]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL) as p:
        os.close(terminal)
        lines = []
        with os.fdopen(screen, encoding="utf-8") as shown:
            while not any(until in line for line in lines):
                lines.append(shown.readline().strip())
            p.terminate()
    return lines


def test_at_a_terminal_serve_prints_its_address_then_a_link(tmp_path: Path) -> None:
    lines = serve_at_a_terminal(tmp_path, "", "For a phone")

    assert not any("▄▄" in line for line in lines), "a phone cannot reach this machine's loopback"
    assert lines[0].startswith("pynchy is ready: http://127.0.0.1:")
    assert re.search(r"http://127\.0\.0\.1:\d+/sign-in\?key=\S{20,}$", lines[1])


def test_where_a_phone_reaches_it_there_is_a_code_to_scan(tmp_path: Path) -> None:
    lines = serve_at_a_terminal(
        tmp_path, '[http]\npublic_url = "http://192.168.1.20:8765"\n', "▄▄▄▄▄"
    )

    assert re.search(r"http://192\.168\.1\.20:8765/sign-in\?key=\S{20,}$", lines[1])


async def test_who_is_waiting_is_told_over_http_too(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.launcher("fail", group="lost", attempts=1))
    agent = MailboxAgent(host.group("team"), "session-3")
    asked = agent.ask(agent="asker", task="a task")
    gone = MailboxAgent(host.group("lost"))
    lost = gone.ask(agent="lost")
    gone.die()
    await host.listed(2)
    host.answer(lost, "Yes")
    await host.state(lost, "undelivered")

    agents = host.http("GET", "/api/agents").body

    assert [(a["agent"], a["standing"], a["lives"]) for a in agents] == [
        ("lost", "undelivered", False),
        ("asker", "waiting", True),
    ]
    assert agents[1]["questions"][0]["request_id"] == asked
    assert agents[1]["session_id"] == "session-3"


async def test_the_same_id_in_two_groups_is_answered_in_the_group_that_is_meant(
    shared_host: Host,
) -> None:
    for group in ("one", "two"):
        MailboxAgent(shared_host.group(group)).ask(request_id="same")
    await shared_host.listed(1, "one")
    await shared_host.listed(1, "two")

    reply = shared_host.http(
        "POST", "/api/questions/same/answer", {"answers": [{"options": [1]}], "group": "two"}
    )

    assert reply.status == 200
    assert reply.body["group"] == "two"
    assert len(await shared_host.listed(1, "one")) == 1


@pytest.mark.parametrize(
    "answer", [{"options": [0]}, {"options": [3]}, {"options": ["1"]}, {"options": [1, 2]}]
)
async def test_a_number_that_fits_no_option_is_refused(
    shared_host: Host, answer: dict[str, object]
) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")

    reply = shared_host.http("POST", f"/api/questions/{request_id}/answer", {"answers": [answer]})

    assert reply.status == 422
    assert shared_host.question(request_id)["state"] == "open"
