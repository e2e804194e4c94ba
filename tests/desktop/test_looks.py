"""The picture in docs/desktop.md: a real popup on a real screen.

PYNCHY_PICTURES=docs/images make test-desktop PYTEST_ARGS="-k picture" takes it again.
"""

import os
from pathlib import Path

from tests.acceptance.support import agent_of
from tests.desktop.conftest import StartHost
from tests.desktop.support import Desktop
from tests.waiting import until

ASKED = {
    "title": "Release 2.4",
    "questions": [
        {
            "question": "All tests pass. Merge `checkout` into main?",
            "options": [
                {"label": "Merge", "description": "squash, and delete the branch"},
                {"label": "Wait", "description": "I look at it first"},
            ],
        }
    ],
}


async def test_a_picture_of_a_popup_can_be_taken(
    desktop: Desktop, start_host: StartHost, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("PYNCHY_PICTURES") or tmp_path)
    blank, picture = tmp_path / "blank.png", folder / "desktop.png"
    desktop.picture(blank)
    host = await start_host(desktop)
    async with agent_of(host, PYNCHY_AGENT="claude", PYNCHY_TASK="shop @ checkout") as agent:
        call = agent.calling("ask_user", ASKED)
        await desktop.sees("Merge")

        def is_drawn() -> bool:
            desktop.picture(picture)
            return picture.read_bytes() != blank.read_bytes()

        await until(is_drawn, "the popup on the screen")
        await desktop.choose("Merge")
        await call
