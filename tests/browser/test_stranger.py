"""A program that takes the port of a host that is down: an open page gives it nothing of use."""

import asyncio
import hashlib
import hmac
import http.client
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from playwright.async_api import expect
from tests.acceptance.support import Host
from tests.browser.conftest import OpenWindow, StartHost
from tests.browser.support import Window, ask
from tests.waiting import until

# What would make a page believe that it is connected, and what would make it load itself anew.
STREAM = (
    'event: sync\ndata: {"now": 1, "open": [["team/evil", "0", "1"]]}\n\n'
    'event: beat\ndata: {"now": 1}\n\n'
)


class Stranger:
    """Hears what is sent to the host's port, and replies as it likes."""

    def __init__(self, host: Host) -> None:
        self.port = urlsplit(host.url).port or 0
        self.heard: list[tuple[str, str, dict[str, str]]] = []
        self.refuses = False

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.heard]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._hear, "127.0.0.1", self.port):
            yield

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            writer.close()
            return
        first, *rows = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        self.heard.append((method, path, dict(row.split(": ", 1) for row in rows)))
        body = (STREAM if path == "/inbox/stream" else '{"cards": []}').encode()
        status = "401 Unauthorized\r\nPynchy-Nonce: evil" if self.refuses else "200 OK"
        told = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(told.encode() + body)
        await writer.drain()
        writer.close()


def replay(host: Host, method: str, path: str, headers: dict[str, str], body: str = "") -> int:
    address = urlsplit(host.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    kept = {name: value for name, value in headers.items() if name.lower() != "content-length"}
    kept["Accept"] = "*/*"
    try:
        connection.request(method, path, body or None, kept | {"Host": f"127.0.0.1:{address.port}"})
        return connection.getresponse().status
    finally:
        connection.close()


async def key_of(window: Window) -> str:
    return str(await window.page.evaluate("Object.values(localStorage).find(v => v.length > 40)"))


async def robbed(host: Host) -> Stranger:
    """Kill the host, and let a stranger hear what the open page sends by itself."""
    stranger = Stranger(host)
    host.kill()
    async with stranger.listening():
        await until(lambda: stranger.paths().count("/inbox/stream") > 1, "the page")
        stranger.refuses = True
        await until(lambda: "/inbox/cards" in stranger.paths(), "the page's question")
        heard = len(stranger.heard)
        await until(lambda: len(stranger.heard) > heard + 2, "the page, once refused")
        stranger.refuses = False
        seen = stranger.paths().count("/inbox/stream")
        await until(lambda: stranger.paths().count("/inbox/stream") > seen, "the page again")
    return stranger


async def test_an_open_tab_gives_whoever_takes_the_hosts_port_nothing_of_use(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host()
    request_id = ask(host, "May I delete the backups?")
    window = await open_window(host)
    await window.shown(request_id)
    key = await key_of(window)

    stranger = await robbed(host)
    await host.start("--port", str(stranger.port))

    told = json.dumps(stranger.heard)
    assert re.search(r"pynchy-[0-9a-f]{8}=", told), "the cookie, which goes to every port"
    assert key not in told
    assert hashlib.sha256(key.encode()).hexdigest() not in told
    for method, path, headers in stranger.heard:
        assert replay(host, method, path, headers) == 401, path
        answer = json.dumps({"group": "team", "values": ["Yes"]})
        where = f"/api/questions/{request_id}/answer"
        own = headers | {"Content-Type": "application/json", "Origin": host.url}
        assert replay(host, "POST", where, own, answer) == 401
    assert host.question(request_id)["state"] == "open"


async def test_an_open_tab_takes_nothing_from_whoever_takes_the_hosts_port(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host()
    window = await open_window(host)

    stranger = await robbed(host)

    # It has loaded no page from there, and believes neither that it is connected nor what is open.
    assert set(stranger.paths()) <= {"/inbox/stream", "/inbox/cards"}
    await expect(window.page.locator("[data-link=live]")).to_have_count(0)
    await host.start("--port", str(stranger.port))
    await window.live()
    request_id = ask(host, "Are you there?")
    await window.shown(request_id)


async def test_the_host_is_not_that_browsers_at_another_port(
    start_host: StartHost, open_window: OpenWindow
) -> None:
    host = await start_host()
    window = await open_window(host)
    key = await key_of(window)
    [cookie] = await window.page.context.cookies()
    own = {"Cookie": f"{cookie['name']}={cookie['value']}", "Pynchy-Page-Key": key}
    assert replay(host, "GET", "/inbox/cards", own) == 200

    await host.restart()

    assert urlsplit(host.url).port != urlsplit(window.page.url).port
    assert replay(host, "GET", "/inbox/cards", own) == 401


async def test_the_page_signs_as_everybody_does(host: Host, open_window: OpenWindow) -> None:
    window = await open_window(host)
    texts = ["ä€😀" * 7 + "x" * length for length in range(140)]
    key = hashlib.sha256(b"a secret").hexdigest()
    script = """async ([key, texts]) => {
      const src = document.querySelector("script[src*=bootstrap]").src;
      const { hashText, signText } = await import(src.replace("bootstrap", "page-signature"));
      return texts.map((text) => [hashText(text), signText(key, text)]);
    }"""

    made = await window.page.evaluate(script, [key, texts])

    assert made == [
        [
            hashlib.sha256(text.encode()).hexdigest(),
            hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest(),
        ]
        for text in texts
    ]
