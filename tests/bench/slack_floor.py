"""Bolt's own floor: a bare app whose listener notes when a click reaches it.

Arguments: the stand-in's address and the two tokens. Prints `ready` when it is connected, then the
moment of each click in nanoseconds of the clock that all processes share. Ends with its stdin.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient


async def main(url: str, bot_token: str, app_token: str) -> None:
    app = AsyncApp(client=AsyncWebClient(bot_token, base_url=url))

    @app.action("floor")
    async def clicked(ack: Callable[[], Awaitable[None]]) -> None:
        print(time.monotonic_ns(), flush=True)  # noqa: T201 - the driver reads our stdout
        await ack()

    handler = AsyncSocketModeHandler(app, app_token)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    print("ready", flush=True)  # noqa: T201 - the same
    await asyncio.to_thread(sys.stdin.read)
    await handler.close_async()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
