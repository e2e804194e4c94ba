"""One browser for all tests of a worker, a host for each, and nothing left behind.

Whatever a test does, its pages may ask no other host for anything and may not fail inside.
"""

import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright
from tests.acceptance.support import Host
from tests.browser.support import FLAGS, Window

GetBrowser = Callable[..., Awaitable[Browser]]
StartHost = Callable[..., Awaitable[Host]]
OpenWindow = Callable[..., Awaitable[Window]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def get_browser() -> AsyncIterator[GetBrowser]:
    """Chromium without a window, or the whole of it, which takes more time but can notify."""
    async with async_playwright() as playwright:
        launched: dict[str, Browser] = {}

        async def get(*, notifies: bool = False) -> Browser:
            shell = None if notifies else shutil.which("chromium-headless-shell")
            path = shell or shutil.which("chromium")
            assert path, "Chromium is not installed; make test-browser installs it where it may"
            if path not in launched:
                launched[path] = await playwright.chromium.launch(executable_path=path, args=FLAGS)
            return launched[path]

        yield get
        for browser in launched.values():
            await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(get_browser: GetBrowser) -> Browser:
    return await get_browser()


@pytest_asyncio.fixture(loop_scope="session")
async def start_host(tmp_path: Path) -> AsyncIterator[StartHost]:
    """Start a host with the settings given as TOML; the test may kill and restart it."""
    hosts: list[Host] = []

    async def start(settings: str = "") -> Host:
        host = Host(tmp_path / "data", settings)
        hosts.append(host)
        return await host.start()

    yield start
    for host in hosts:
        host.kill()


@pytest_asyncio.fixture(loop_scope="session")
async def host(start_host: StartHost) -> Host:
    return await start_host()


@pytest_asyncio.fixture(loop_scope="session")
async def open_window(get_browser: GetBrowser) -> AsyncIterator[OpenWindow]:
    """Sign a new browser profile in to a host, and show a page of it."""
    windows: list[Window] = []

    async def open_(
        host: Host,
        path: str = "/",
        *,
        clock: bool = False,
        notifies: bool = False,
        **options: object,
    ) -> Window:
        browser = await get_browser(notifies=notifies)
        context = await browser.new_context(
            **({"viewport": {"width": 1000, "height": 800}} | options)
        )
        if clock:
            await context.clock.install()
        window = Window(host, await context.new_page())
        windows.append(window)
        await window.sign_in(path)
        return window

    yield open_
    for window in windows:
        await window.page.context.close()
    for window in windows:
        assert window.errors == []
        foreign = [
            url for url in window.requested if not re.match(r"http://127\.0\.0\.1:\d+/", url)
        ]
        assert foreign == []
