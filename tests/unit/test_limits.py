"""What one group may have open, and what is told of questions whose agent is gone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.prove.world import KEPT, World

from pynchy.bridge.lifecycle import PartlyAnswered
from pynchy.config import Settings
from pynchy.errors import MalformedRequest
from pynchy.model import Answer, Draft, GroupName, RequestId
from pynchy.testing import FakeClock, FakeLauncher


def ask(request_id: str, text: str = "Deploy?", lease: str = "") -> bytes:
    body = {
        "v": 1,
        "type": "ask_user:ask",
        "request_id": request_id,
        "questions": [{"question": text}],
    }
    return json.dumps(body | ({"lease": lease} if lease else {})).encode()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    (tmp_path / "ipc").mkdir()
    world = World(tmp_path, FakeLauncher(), FakeClock())
    world.settings = Settings(max_open_per_group=3, max_open_size_per_group=2_000)
    await world.start()
    yield world
    await world.stop()


async def test_a_group_with_as_many_open_questions_as_it_may_have_is_told_so(world: World) -> None:
    for number in range(3):
        await world.take(KEPT, f"q{number}", ask(f"q{number}"))

    with pytest.raises(MalformedRequest, match="3 questions of this group are open") as refused:
        await world.take(KEPT, "q3", ask("q3"))

    assert refused.value.request_id == "q3"
    await world.take("resumable", "q3", ask("q3"))


async def test_a_group_whose_open_questions_are_too_large_together_is_told_so(
    world: World,
) -> None:
    await world.take(KEPT, "q0", ask("q0", "x" * 1_500))

    with pytest.raises(MalformedRequest, match="too large together"):
        await world.take(KEPT, "q1", ask("q1", "x" * 1_500))


async def test_an_orphan_is_told_of(world: World) -> None:
    await world.take(KEPT, "q0", ask("q0", lease="gone"))

    await world.expiry.report_orphans()

    lines = (world.folder / "audit/events.jsonl").read_text().splitlines()
    told = json.loads(lines[-1])
    assert (told["type"], told["id"], told["group"]) == ("orphaned", "q0", GroupName(KEPT))
    assert "no launcher" in told["detail"]


async def test_parts_that_were_all_kept_before_a_crash_end_the_question(world: World) -> None:
    body = json.loads(ask("q0"))
    body["questions"] = [{"question": "One?"}, {"question": "Two?"}]
    await world.take(KEPT, "q0", json.dumps(body).encode())
    key = (GroupName(KEPT), RequestId("q0"))
    drafts = [Draft(n, Answer(text=text), "ana") for n, text in enumerate(["a", "b"])]
    await world.desk.take(key, *map(PartlyAnswered, drafts))
    await world.stop()

    await world.start()
    while world.desk.get(key).ending is None:
        await world.desk.changed(key, world.desk.version(key), 1)

    ending = world.desk.get(key).ending
    assert ending is not None
    assert [answer.text for answer in ending.answers] == ["a", "b"]
    assert ending.by == "ana"
