"""`pynchy desktop` beside a real host: what one group or a sign-out may not do to popups."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Host, MailboxAgent
from tests.standins.notifications import NotificationStandIn, StandInBackend
from tests.waiting import until

from pynchy.cli.desktop.following import PopupFollower
from pynchy.cli.desktop.session import HostSession, SignedOut, sign_in
from pynchy.desktop.popup_ids import PopupIds
from pynchy.safe_folder import Folder


class Desktop:
    """A session with popups, signed in at the host."""

    def __init__(self, host: Host, folder: Path) -> None:
        link = str(host.http("POST", "/api/inbox/link", {}).body["url"])
        self.service = NotificationStandIn()
        self.backend = StandInBackend(self.service)
        self.session = HostSession(sign_in(link, "ana"))
        ids = PopupIds(Folder(folder, "popups"))
        self.follower = PopupFollower(self.session, self.backend, ids)
        self.job: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.job = asyncio.create_task(self.follower.run())
        yield
        self.job.cancel()
        await asyncio.wait([self.job])

    async def sees(self, text: str) -> str:
        """Return the id of the popup that says so."""

        def look() -> str | None:
            shown = self.service.screen.items()
            return next((key for key, popup in shown if text in popup.body), None)

        return str(await until(look, f"{text!r} among {self.service.screen}"))


def huge_call(request_id: str) -> dict[str, Any]:
    value: Any = [0] * 60_000
    for _ in range(10):
        value = [value]
    call = {"program": "claude", "tool": "mcp__x__y", "input": {"a": value}, "cwd": "/srv"}
    return {"v": 1, "type": "ask_user:ask", "request_id": request_id, "permission": call}


async def test_large_requests_of_one_group_hid_what_others_ask(host: Host, tmp_path: Path) -> None:
    evil, good = MailboxAgent(host.group("evil")), MailboxAgent(host.group("good"))
    for number in range(6):
        evil.write_json(f"e{number}.json", huge_call(f"e{number}"))
    await host.listed(6)
    good.ask("Deploy?")
    await host.listed(7)
    desktop = Desktop(host, tmp_path)

    async with desktop.running():
        shown = await desktop.sees("Deploy?")
        desktop.backend.press(shown, "Yes")
        keys = [f"evil/e{number}" for number in range(6)]
        wanted = "&".join(f"key={key}" for key in keys)
        path = f"/inbox/questions?{wanted}"
        status, views = await asyncio.to_thread(desktop.session.call, "GET", path)

    assert status == 200
    assert [len(view["questions"][0]["question"]) <= 2_000 for view in views] == [True] * 6


async def test_an_answer_on_a_popup_was_dropped_in_silence_after_a_sign_out(
    host: Host, tmp_path: Path
) -> None:
    desktop = Desktop(host, tmp_path)
    request_id = MailboxAgent(host.group("team")).ask("Deploy?")

    async with desktop.running():
        shown = await desktop.sees("Deploy?")
        # The sign-out of a host whose stream has not told of it yet.
        desktop.session._cookie = "pynchy-1=gone"  # noqa: SLF001 - as a browser without it
        desktop.backend.press(shown, "Yes")
        await desktop.sees("Not sent")

    assert host.question(request_id)["state"] == "open"


async def test_who_is_signed_out_is_told_so_and_does_not_wait_for_ever(
    host: Host, tmp_path: Path
) -> None:
    desktop = Desktop(host, tmp_path)
    agent = MailboxAgent(host.group("team"))
    agent.ask("Deploy?")

    async with desktop.running():
        await desktop.sees("Deploy?")
        host.http("POST", "/api/inbox/sign-out-all", {})
        agent.ask("And now?")
        assert desktop.job is not None
        with pytest.raises(BaseExceptionGroup) as ended:
            async with asyncio.timeout(30):
                await desktop.job

    assert ended.group_contains(SignedOut)
