"""Requests that our pages sign: only as they were signed, and only for this start of the host."""

import hashlib
import hmac
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from tests.acceptance.support import Host, MailboxAgent
from tests.acceptance.test_inbox import BROWSER, Reply, send, signed_in_browser


def mac(key: str, *parts: str) -> str:
    return hmac.new(key.encode(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()


@dataclass
class SigningPage:
    """A page of the inbox as its script works."""

    host: Host
    cookie: str
    key: str
    nonce: str = "-"

    @classmethod
    async def of(cls, host: Host) -> "SigningPage":
        own = await signed_in_browser(host)
        key = hashlib.sha256(own["Pynchy-Page-Key"].encode()).hexdigest()
        page = cls(host, own["Cookie"], key)
        page.nonce = page.send("GET", "/inbox/cards").headers["pynchy-nonce"]
        return page

    def sign(self, method: str, path: str, body: str = "") -> dict[str, str]:
        said = hashlib.sha256(body.encode()).hexdigest()
        made = mac(self.key, "request", self.nonce, "challenge", method, path, said)
        signature = f"{self.nonce} challenge {said} {made}"
        return BROWSER | {"Cookie": self.cookie, "Pynchy-Signature": signature}

    def send(self, method: str, path: str, body: str = "") -> Reply:
        return send(self.host, method, path, self.sign(method, path, body), body)


async def test_a_signed_request_is_let_in_and_the_reply_proves_that_it_is_the_hosts(
    shared_host: Host,
) -> None:
    page = await SigningPage.of(shared_host)

    replies = [page.send("GET", path) for path in ("/inbox/find?q=a%20b&x=+", "/nowhere/%ff")]

    assert [reply.status for reply in replies] == [200, 404]
    for reply in replies:
        assert reply.headers["pynchy-proof"] == mac(page.key, "reply", "challenge")


async def test_a_signature_is_good_for_nothing_but_what_was_signed(shared_host: Host) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")
    page = await SigningPage.of(shared_host)
    path, yes, no = (
        f"/api/questions/{request_id}/answer",
        *(json.dumps({"group": "team", "values": [value]}) for value in ("Yes", "No")),
    )

    signed = page.sign("POST", path, yes)
    other = send(shared_host, "POST", path.replace("answer", "decline"), signed, yes)
    read = send(shared_host, "GET", "/inbox/stream", signed)
    changed = send(shared_host, "POST", path, signed, no)

    assert [other.status, read.status, changed.status] == [401, 401, 400]
    assert "signed" in json.loads(changed.text)["error"]
    assert "pynchy-proof" not in other.headers
    assert shared_host.question(request_id)["state"] == "open"
    assert send(shared_host, "POST", path, signed, yes).status == 200


@pytest.mark.parametrize(
    "signature",
    ["", "x", "a b c", "{nonce} challenge hash ", "{nonce} challenge hash \xe9", "{nonce}   "],
)
async def test_no_signature_that_is_made_up_lets_anybody_in(
    shared_host: Host, signature: str
) -> None:
    page = await SigningPage.of(shared_host)
    headers = BROWSER | {"Cookie": page.cookie}
    headers["Pynchy-Signature"] = signature.format(nonce=page.nonce)

    assert send(shared_host, "GET", "/inbox/cards", headers).status == 401


async def test_what_was_signed_for_one_start_of_the_host_is_refused_by_the_next(
    host: Host,
) -> None:
    page = await SigningPage.of(host)
    signed = page.sign("GET", "/inbox/cards")
    assert send(host, "GET", "/inbox/cards", signed).status == 200

    host.kill()
    await host.start("--port", str(urlsplit(host.url).port))
    refused = send(host, "GET", "/inbox/cards", signed)

    assert refused.status == 401
    page.nonce = refused.headers["pynchy-nonce"]
    assert page.send("GET", "/inbox/cards").status == 200
