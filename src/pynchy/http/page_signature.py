"""What our pages sign with the page key, and the proof that it is this host that replies.

Neither side sends the key. Whoever takes the port of a host that is down hears requests which the
next host refuses, since each start has a nonce of its own, and can reply nothing that a page takes.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from starlette.types import Scope

# Headers: of a request, of a refusal to one that has not got this start's nonce, and of a reply.
SIGNATURE = "pynchy-signature"
NONCE = "pynchy-nonce"
PROOF = "pynchy-proof"
_FIELDS = 4


@dataclass(frozen=True, slots=True)
class PageSignature:
    """What a page says of its request; `challenge` is what the reply has to prove."""

    nonce: str
    challenge: str
    body_hash: str
    mac: str

    def fits(self, scope: Scope, key: str, nonce: str) -> bool:
        """True if the request was signed with the key, for the host's start with that nonce."""
        if not key or not hmac.compare_digest(self.nonce, nonce):
            return False
        query = scope["query_string"].decode("latin-1")
        address = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        signed = (self.nonce, self.challenge, scope["method"], address, self.body_hash)
        return hmac.compare_digest(self.mac, _mac(key, "request", *signed))

    def proof(self, key: str) -> str:
        """Return what only a host can reply that knows the browser."""
        return _mac(key, "reply", self.challenge)


def read_signature(header: str) -> PageSignature | None:
    """Return what the header says; None if it is not one of ours."""
    fields = header.split(" ")
    if len(fields) != _FIELDS or not header.isascii():
        return None
    return PageSignature(*fields)


def _mac(key: str, *parts: str) -> str:
    # No part has a line break in it: they are parts of a request's head.
    return hmac.new(key.encode(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()
