"""What one group may have open, and what is told of questions whose agent is gone."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.prove.world import KEPT, WAIT, World

from pynchy.bridge.lifecycle import PartlyAnswered
from pynchy.config import Settings
from pynchy.errors import InvalidReply, MalformedRequest, PartTaken
from pynchy.model import Answer, Draft, GroupName, Reply, RequestId
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
    world.settings = Settings(max_open_per_group=3, max_open_size_per_group=5_000)
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
    await world.take(KEPT, "q0", ask("q0", "x" * 2_500))

    with pytest.raises(MalformedRequest, match="too large together"):
        await world.take(KEPT, "q1", ask("q1", "x" * 2_500))


async def test_a_permission_counted_by_its_request_and_not_by_its_longer_card(
    world: World,
) -> None:
    call = {"program": "claude", "tool": "mcp__x__y", "input": {"a": ["b"] * 100}}
    body = {"v": 1, "type": "ask_user:ask", "request_id": "p0", "permission": call}
    data = json.dumps(body, separators=(",", ":")).encode()

    await world.take(KEPT, "p0", data)

    kept = world.ledger.get((GroupName(KEPT), RequestId("p0")))
    assert kept.size_bytes > 2 * len(data)
    with pytest.raises(MalformedRequest, match="too large together"):
        await world.take(KEPT, "q1", ask("q1", "x" * 3_000))


async def test_an_orphan_is_told_of(world: World) -> None:
    await world.take(KEPT, "q0", ask("q0", lease="gone"))

    await world.expiry.report_orphans()

    lines = (world.folder / "audit/events.jsonl").read_text().splitlines()
    told = json.loads(lines[-1])
    assert (told["type"], told["id"], told["group"]) == ("orphaned", "q0", GroupName(KEPT))
    assert "no launcher" in told["detail"]


async def test_a_part_that_is_changed_while_the_last_one_comes_counts_as_changed(
    world: World,
) -> None:
    await world.take(KEPT, "q0", two_questions())
    await world.answers.answer(part(1, "a", by="ana"))

    noted, ended = await asyncio.gather(
        world.answers.answer(part(1, "changed", by="ana")),
        world.answers.answer(part(2, "b", by="bo")),
    )

    assert noted.ending is None
    assert ended.ending is not None
    assert [answer.text for answer in ended.ending.answers] == ["changed", "b"]


async def test_a_part_that_somebody_has_answered_is_taken_from_nobody_else(world: World) -> None:
    await world.take(KEPT, "q0", two_questions())
    await world.answers.answer(part(1, "yes", by="ana"))

    with pytest.raises(PartTaken, match="question 1 was answered by ana already: yes"):
        await world.answers.answer(part(1, "no", by="bo"))
    with pytest.raises(PartTaken, match="by ana"):
        await world.answers.answer(Reply("q0", "bo", "local", values=("no", "b")))
    ended = await world.answers.answer(part(2, "b", by="bo"))

    assert ended.ending is not None
    assert [answer.text for answer in ended.ending.answers] == ["yes", "b"]
    assert ended.ending.by == "ana, bo"


async def test_two_people_of_the_same_name_never_overwrite_each_others_part(world: World) -> None:
    await world.take(KEPT, "q0", two_questions())
    first = replace(part(1, "yes", by="Ana"), user_id="U1")
    await world.answers.answer(first)

    with pytest.raises(PartTaken):
        await world.answers.answer(replace(first, values=("no",), user_id="U2"))
    with pytest.raises(PartTaken):
        await world.answers.answer(part(1, "no", by="Ana"))

    [draft] = world.ledger.get((GroupName(KEPT), RequestId("q0"))).drafts
    assert draft.answer.text == "yes"


async def test_a_name_that_changes_locks_nobody_out_of_their_own_part(world: World) -> None:
    await world.take(KEPT, "q0", two_questions())
    first = replace(part(1, "yes", by="Ana"), user_id="U1")
    await world.answers.answer(first)

    await world.answers.answer(replace(first, values=("no",), by="Ana B."))
    ended = await world.answers.answer(replace(part(2, "b", by="Ana C."), user_id="U1"))

    assert ended.ending is not None
    assert [answer.text for answer in ended.ending.answers] == ["no", "b"]
    assert (ended.ending.channel, ended.ending.user_id) == ("local", "U1")


async def test_a_part_of_version_0_1_belongs_to_whoever_has_its_name(world: World) -> None:
    await world.take(KEPT, "q0", two_questions())
    await world.ledger.apply(
        (GroupName(KEPT), RequestId("q0")), PartlyAnswered(Draft(0, Answer(text="yes"), "Ana"))
    )
    mine = replace(part(1, "no", by="Ana"), user_id="U1")

    with pytest.raises(PartTaken):
        await world.answers.answer(replace(mine, by="Bo"))
    changed = await world.answers.answer(mine)

    assert [draft.answer.text for draft in changed.drafts] == ["no"]


async def test_a_part_that_is_left_empty_stays_as_somebody_has_answered_it(world: World) -> None:
    await world.take(KEPT, "q0", two_questions())
    both = Reply("q0", "bo", "local", answers=(Answer(), Answer(text="b")))

    with pytest.raises(InvalidReply, match="an answer is missing"):
        await world.answers.answer(both)
    await world.answers.answer(part(1, "yes", by="ana"))
    with pytest.raises(InvalidReply, match="an answer is missing"):
        await world.answers.answer(replace(both, answers=(Answer(), Answer())))
    ended = await world.answers.answer(both)

    assert ended.ending is not None
    assert [answer.text for answer in ended.ending.answers] == ["yes", "b"]


async def test_a_default_that_is_due_while_somebody_begins_to_answer_does_not_count(
    world: World,
) -> None:
    await world.take(KEPT, "q0", two_questions(default="no"))
    world.clock.move(WAIT)

    await asyncio.gather(
        world.answers.answer(part(1, "a", by="ana")),
        world.expiry.end_due(),
    )

    assert world.ledger.get((GroupName(KEPT), RequestId("q0"))).ending is None


def two_questions(**each: str) -> bytes:
    body = json.loads(ask("q0"))
    body["questions"] = [{"question": "One?", **each}, {"question": "Two?", **each}]
    return json.dumps(body).encode()


def part(number: int, text: str, *, by: str) -> Reply:
    group = GroupName(KEPT)
    return Reply("q0", by, "local", values=(text,), question=number, group=group)
