"""What doctor says of OpenCode's servers."""

import asyncio
import re
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from tests.standins.opencode import OpenCodeStandIn

from pynchy.cli.doctor.programs import check_sources
from pynchy.config import OpenCodeSourceSettings, Settings
from pynchy.config.models import SourcesSettings
from pynchy.findings import Finding, Status

PASSWORD = "s3cret"  # noqa: S105 - of a server that is played here


@pytest.fixture(params=[False, True], ids=["today", "older"])
def server(request: pytest.FixtureRequest) -> Iterator[OpenCodeStandIn]:
    """A server in a thread of its own, as doctor has a loop of its own."""
    server = OpenCodeStandIn(is_older=request.param, password=PASSWORD)
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    yield server
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def look_at(url: str, environ: dict[str, str], **more: Any) -> Finding:
    opencode = OpenCodeSourceSettings(group="opencode", urls=(url,), discover=False, **more)
    [finding] = check_sources(Settings(sources=SourcesSettings(opencode=opencode)), environ)
    return finding


def test_a_server_is_said_to_be_exact_or_guessed_at(server: OpenCodeStandIn) -> None:
    found = look_at(server.url, {"OPENCODE_SERVER_PASSWORD": PASSWORD})

    assert (found.check, found.status) == (f"opencode {server.url}", Status.OK)
    assert ("guessed" in found.detail) == server.is_older
    assert "asked in group opencode" in found.detail


def test_a_password_that_is_missing_is_told(server: OpenCodeStandIn) -> None:
    found = look_at(server.url, {})

    assert found.status is Status.WARNING
    assert "password_env" in found.detail


def test_a_server_that_does_not_run_is_told() -> None:
    found = look_at("http://127.0.0.1:9", {})

    assert found.status is Status.WARNING
    assert re.search("opencode serve", found.fix or "")
