"""A real host with the Slack channel that kills itself (-9) at a chosen point.

The points are those of tests/acceptance/dying_host.py, and before and after each call that shows
or settles a card, and each arrival of an envelope. It reads its orders in the same way.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from tests.acceptance import dying_host
from tests.acceptance.dying_host import Death

from pynchy import safe_folder
from pynchy.config import load_settings
from pynchy.data_dir import DataFolder
from pynchy.host import running_host


def serve(order: dict[str, Any]) -> None:
    """Run a host as ordered until it is killed, by itself or from outside."""
    base = Path(order["base"])
    os.environ |= order["environ"]
    death = Death(base / "points", order["point"])
    for name in ("create", "replace", "remove"):
        death.around(safe_folder.Folder, name)
    death.within_create()
    death.around(AsyncWebClient, "chat_postMessage")
    death.around(AsyncWebClient, "chat_update")
    death.around(AsyncApp, "async_dispatch")
    asyncio.run(_serve(base))


async def _serve(base: Path) -> None:
    async with running_host(load_settings(base / "pynchy.toml"), DataFolder(base / "data")):
        await asyncio.Event().wait()


if __name__ == "__main__":
    dying_host.serve = serve
    dying_host.main()
