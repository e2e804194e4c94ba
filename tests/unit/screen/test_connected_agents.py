"""The terminal's inbox claims no more of a connected program than is known."""

import pytest
from tests.unit.cli.support import start_pynchy
from tests.unit.screen.support import Desk


async def test_the_screen_called_a_connected_program_idle_as_if_it_knew(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYNCHY_SESSION_ID", "s1")
    server = ("mcp", "--group", "web-team", "--client", "claude")

    with start_pynchy(desk.host, *server, stdin=-1, stdout=-1, stderr=-1) as connected:
        async with desk.sit_down() as person:
            await person.press("a")
            await person.see("connected ", "claude", "web-team", "what it does is not known")
        connected.kill()
