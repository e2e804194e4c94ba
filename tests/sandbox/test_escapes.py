"""What an agent in a box leaves behind for the next one, or holds on to, leads nowhere."""

import json
from pathlib import Path

import pytest
from tests.sandbox.support import GROUP, Boxes

# The workspace lies in the home, and the agent may move all that lies there.
SWAP = """
home, work, victim = pathlib.Path.home(), pathlib.Path.cwd(), os.environ["VICTIM"]
report["cwd"] = os.getcwd()
report["written"] = write("mine")
top = home / work.relative_to(home).parts[0]
report["moved"] = attempt(lambda: os.rename(top, home / "moved"))
report["made"] = attempt(lambda: os.makedirs(work.parent, exist_ok=True))
report["linked"] = attempt(lambda: os.symlink(victim, work))
"""


@pytest.mark.parametrize("inner", ["src/project", "project"])
async def test_a_workspace_in_the_home_that_became_a_link_gives_no_folder_of_the_host_away(
    boxes: Boxes, tmp_path: Path, inner: str
) -> None:
    victim, visitor = tmp_path / "victim", tmp_path / "visitor"
    boxes.work = boxes.home / inner
    for folder in (victim, boxes.work):
        folder.mkdir(parents=True)
    told = {"runner": str(visitor), "read": [str(visitor)], "env": {"VICTIM": str(victim)}}
    await boxes.open(SWAP, **told)

    await boxes.host.session_is(boxes.host.run(GROUP), "ended")
    code, _, err = await boxes.host.cli("run", GROUP, "again")

    moved = boxes.home / "moved" / Path(*Path(inner).parts[1:])
    done = dict.fromkeys(("written", "moved", "made", "linked"), "done")
    assert json.loads((moved / "report.json").read_text()) == {"cwd": str(boxes.work), **done}
    assert list(victim.iterdir()) == []
    assert code != 0
    assert "remove the link" in err
