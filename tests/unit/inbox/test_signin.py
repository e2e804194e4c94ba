"""Links work once and for a while; browsers stay until they are signed out."""

import asyncio
import hashlib
import hmac
import json
from datetime import timedelta
from pathlib import Path

import pytest

from pynchy.inbox.sign_in import FILE_NAME, PageSignature, SignIn, forget_all, holds_key
from pynchy.safe_folder import Folder
from pynchy.testing import FakeClock

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def sign_in_of(path: Path, clock: FakeClock) -> SignIn:
    return SignIn(Folder(path), clock.now, link_ttl=HOUR, browser_ttl=10 * DAY)


async def test_of_many_who_spend_a_link_at_once_one_gets_in(
    tmp_path: Path, clock: FakeClock
) -> None:
    sign_in = sign_in_of(tmp_path, clock)
    key, _ = await sign_in.make_link()

    tokens = await asyncio.gather(*(sign_in.spend(key, f"p{n}") for n in range(10)))

    assert sum(token is not None for token in tokens) == 1


async def test_a_link_does_not_outlive_its_time(tmp_path: Path, clock: FakeClock) -> None:
    sign_in = sign_in_of(tmp_path, clock)
    key, until = await sign_in.make_link()
    clock.move(HOUR - timedelta(seconds=1))
    assert sign_in.is_good(key)
    assert until == clock.now() + timedelta(seconds=1)

    clock.move(timedelta(seconds=1))

    assert not sign_in.is_good(key)
    assert await sign_in.spend(key, "ana") is None


async def test_links_and_browsers_survive_a_restart_and_no_secret_is_on_the_disk(
    tmp_path: Path, clock: FakeClock
) -> None:
    sign_in = sign_in_of(tmp_path, clock)
    first, _ = await sign_in.make_link()
    second, _ = await sign_in.make_link()
    entry = await sign_in.spend(first, "ana")
    assert entry is not None

    again = sign_in_of(tmp_path, clock)

    kept = (tmp_path / FILE_NAME).read_text()
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert not any(secret in kept for secret in (first, second, entry.token, entry.page_key))
    assert again.is_good(second)
    assert not again.is_good(first)
    browser = again.browser(entry.token)
    assert browser is not None
    assert browser.by == "ana"
    assert holds_key(browser, entry.page_key)
    assert not holds_key(browser, entry.token)


async def test_a_browser_that_is_used_stays_and_one_that_is_not_is_forgotten(
    tmp_path: Path, clock: FakeClock
) -> None:
    sign_in = sign_in_of(tmp_path, clock)
    used, idle = [await sign_in.spend((await sign_in.make_link())[0], "ana") for _ in range(2)]
    assert used is not None
    assert idle is not None

    for _ in range(15):
        clock.move(DAY)
        browser = sign_in.browser(used.token)
        assert browser is not None
        assert await sign_in.renew(browser)
        fresh = sign_in.browser(used.token)
        assert fresh is not None
        assert holds_key(fresh, used.page_key)
        assert not await sign_in.renew(fresh)

    assert sign_in.browser(idle.token) is None


async def test_signing_out_ends_one_browser_or_all_of_them_and_every_link(
    tmp_path: Path, clock: FakeClock
) -> None:
    sign_in = sign_in_of(tmp_path, clock)
    entries = [await sign_in.spend((await sign_in.make_link())[0], "ana") for _ in range(3)]
    tokens = [entry.token for entry in entries if entry]
    key, _ = await sign_in.make_link()
    first = sign_in.browser(tokens[0])
    assert first is not None

    await sign_in.sign_out(first)
    assert [bool(sign_in.browser(token)) for token in tokens] == [False, True, True]
    assert await sign_in.sign_out_all() == 2

    assert not any(sign_in.browser(token) for token in tokens)
    assert not sign_in.is_good(key)
    assert not sign_in_of(tmp_path, clock).is_good(key)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"browsers": [{"hash": 1}]}', "\0"])
async def test_a_damaged_file_signs_everybody_out_and_stops_nothing(
    tmp_path: Path, clock: FakeClock, content: str
) -> None:
    (tmp_path / FILE_NAME).write_text(content)

    sign_in = sign_in_of(tmp_path, clock)

    key, _ = await sign_in.make_link()
    assert sign_in.is_good(key)
    assert json.loads((tmp_path / FILE_NAME).read_text())["browsers"] == []


async def test_without_a_host_the_file_is_removed(tmp_path: Path, clock: FakeClock) -> None:
    sign_in = sign_in_of(tmp_path, clock)
    await sign_in.spend((await sign_in.make_link())[0], "ana")

    forget_all(Folder(tmp_path))

    assert not (tmp_path / FILE_NAME).exists()
    assert forget_all(Folder(tmp_path)) == 0


async def test_a_browser_from_before_there_were_page_keys_holds_none(
    tmp_path: Path, clock: FakeClock
) -> None:
    sign_in = sign_in_of(tmp_path, clock)
    entry = await sign_in.spend((await sign_in.make_link())[0], "ana")
    assert entry is not None
    kept = json.loads((tmp_path / FILE_NAME).read_text())
    del kept["browsers"][0]["key_hash"]
    (tmp_path / FILE_NAME).write_text(json.dumps(kept))

    browser = sign_in_of(tmp_path, clock).browser(entry.token)

    assert browser is not None
    assert not any(holds_key(browser, key) for key in ("", entry.page_key))
    scope = {"method": "GET", "raw_path": b"/", "query_string": b""}
    signed = "request\nnonce\nchallenge\nGET\n/\nhash"
    mac = hmac.new(b"", signed.encode(), hashlib.sha256).hexdigest()
    signature = PageSignature("nonce", "challenge", "hash", mac)
    assert not signature.fits(scope, browser.key_hash, "nonce")
