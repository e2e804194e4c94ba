"""The event log: in order, never losing its place, never holding anybody up."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import DEADLINE_SECONDS

from pynchy.audit import AuditLog
from pynchy.bridge.step_events import MAX_ASKED, asked_event
from pynchy.events import Event, EventKind
from pynchy.model import GroupName, Question, RequestId
from pynchy.testing import NOON, make_pending
from pynchy.wire import event_json


def event(number: int) -> Event:
    return Event(EventKind.SHOWN, NOON, GroupName("g1"), RequestId(f"q{number}"))


def open_log(path: Path, *, max_bytes: int = 10**6, max_files: int = 3) -> AuditLog:
    log = AuditLog(path, max_bytes=max_bytes, max_files=max_files)
    log.open()
    return log


async def read(log: AuditLog, after: int, count: int) -> list[int]:
    seen: list[int] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for line in log.stream(after):
            seen.append(line.sequence)
            if len(seen) == count:
                break
    return seen


def test_the_log_goes_on_counting_after_a_restart(tmp_path: Path) -> None:
    first = open_log(tmp_path)
    for number in range(3):
        first.publish(event(number))
    first.close()

    second = open_log(tmp_path)
    second.publish(event(3))
    second.close()

    assert second.sequence == 4
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(text)["seq"] for text in lines] == [1, 2, 3, 4]


def test_a_half_written_line_costs_itself_alone(tmp_path: Path) -> None:
    first = open_log(tmp_path)
    first.publish(event(0))
    first.close()
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"seq": 2, "ty')

    second = open_log(tmp_path)
    second.publish(event(1))
    assert second.sequence == 2
    second.close()

    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 3


async def test_a_reader_gets_what_it_missed_and_then_what_happens(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(5):
        log.publish(event(number))
    reading = asyncio.create_task(read(log, after=2, count=5))
    await asyncio.sleep(0)

    for number in range(5, 7):
        log.publish(event(number))

    assert await reading == [3, 4, 5, 6, 7]
    log.close()


async def test_rotation_keeps_the_newest_and_readers_cross_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_bytes=400, max_files=3)
    for number in range(12):
        log.publish(event(number))
    log.close()

    files = sorted(path.name for path in tmp_path.iterdir())
    oldest = json.loads((tmp_path / "events.jsonl.2").read_text().splitlines()[0])["seq"]
    seen = await read(log, after=0, count=12 - oldest + 1)

    assert files == ["events.jsonl", "events.jsonl.1", "events.jsonl.2"]
    assert seen == list(range(oldest, 13))


async def test_a_reader_that_does_not_keep_up_is_sent_home(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    stream = log.stream(None)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)

    for number in range(1_500):
        log.publish(event(number))
    got = [await first] + [line async for line in stream]

    assert [line.sequence for line in got] == list(range(1, len(got) + 1))
    assert len(got) <= 1_001
    log.close()


def test_a_disk_that_cannot_be_written_is_reported_and_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    with monkeypatch.context() as patched:

        def full(*_args: object) -> int:
            raise OSError(28, "No space left on device")

        patched.setattr("os.write", full)
        log.publish(event(0))
        problem = log.problem

    log.publish(event(1))
    assert problem == "the event log cannot be written: No space left on device"
    assert log.problem is None
    log.close()


def test_an_event_of_a_very_long_question_filled_the_log() -> None:
    long = make_pending(questions=(Question("x" * 200_000),))

    body = json.loads(event_json(7, asked_event(long, NOON)))

    assert len(body["question"]) == len(body["questions"][0]["question"]) == MAX_ASKED
    assert body["question"].endswith("x…")


def test_the_asked_event_tells_id_question_suggestions_group_agent_and_elapsed() -> None:
    body = json.loads(event_json(7, asked_event(make_pending(agent="claude"), NOON)))

    assert body["type"] == "asked"
    assert body["id"] == "q1"
    assert body["question"] == "Deploy?"
    assert body["suggestions"] == ["Yes", "No"]
    assert (body["group"], body["agent"], body["elapsed_seconds"]) == ("g1", "claude", 0.0)


async def test_a_reader_who_resumes_misses_nothing_that_was_written_before_what_it_saw(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    reading = asyncio.create_task(read(log, after=0, count=2))
    await asyncio.sleep(0)

    with log.publishing([event(1)]):
        log.publish(event(2))
        told_too_soon = log.sequence
        newcomer = asyncio.create_task(read(log, after=told_too_soon, count=2))
        await asyncio.sleep(0)

    assert told_too_soon == 0
    assert await reading == [1, 2]
    assert await newcomer == [1, 2]
    log.close()


async def test_a_step_that_fails_holds_up_nobody_who_reads(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(OSError, match="full"), log.publishing([event(1)]):
        raise OSError("full")
    log.publish(event(2))

    assert await read(log, after=0, count=2) == [1, 2]
    log.close()


def test_the_log_goes_on_counting_after_a_line_of_any_length(tmp_path: Path) -> None:
    first = open_log(tmp_path)
    long = make_pending(questions=tuple(Question("x" * 20_000) for _ in range(4)))
    first.publish(event(0))
    first.publish(asked_event(long, NOON))
    first.close()

    second = open_log(tmp_path)

    assert second.sequence == 2
    second.close()


def test_the_log_goes_on_counting_when_the_newest_file_is_damaged(tmp_path: Path) -> None:
    first = open_log(tmp_path, max_bytes=200)
    for number in range(3):
        first.publish(event(number))
    first.close()
    (tmp_path / "events.jsonl").write_bytes(b"\0" * 100)

    second = open_log(tmp_path)

    assert second.sequence == 2
    second.close()


async def test_an_event_that_cannot_be_written_as_text_holds_up_nobody_who_reads(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    unwritable = replace(event(2), detail="\ud800")

    with pytest.raises(ValueError, match="surrogate"), log.publishing([event(1), unwritable]):
        pytest.fail("nothing may be done that cannot be told")
    log.publish(event(3))

    assert await read(log, after=0, count=2) == [1, 2]
    log.close()


def test_no_control_character_of_an_agent_is_ever_a_byte_of_the_file(tmp_path: Path) -> None:
    controls = "".join(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)))
    asked = make_pending("q1", questions=(Question(f"Deploy{controls}?"),), agent=f"a{controls}")
    log = open_log(tmp_path)
    log.publish(asked_event(asked, NOON))
    log.publish(replace(event(2), detail=controls, by=f"ana{controls}"))
    log.close()

    data = (tmp_path / "events.jsonl").read_bytes()

    assert {c for c in data.decode() if c != "\n" and c in controls} == set()
    assert data.count(b"\n") == 2
    first, second = (json.loads(line) for line in data.splitlines())
    assert (first["question"], first["agent"]) == (f"Deploy{controls}?", f"a{controls}")
    assert (second["detail"], second["by"]) == (controls, f"ana{controls}")


async def test_a_group_with_many_events_erased_those_of_all_others(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_bytes=2_000, max_files=3)
    log.publish(event(0))
    for number in range(500):
        log.publish(replace(event(number), group=GroupName("noisy")))
        if number == 250:
            log.publish(event(1))
    log.close()

    files = sorted(tmp_path.iterdir())
    lines = [json.loads(line) for path in files for line in path.read_bytes().splitlines()]
    kept = [line["id"] for line in lines if line["group"] == "g1"]
    numbers = sorted(line["seq"] for line in lines)
    seen = await read(log, after=0, count=len(lines))

    assert [path.name for path in files] == ["events.jsonl", "events.jsonl.1", "events.jsonl.2"]
    assert all(path.stat().st_size <= 2_000 for path in files)
    assert kept == ["q0", "q1"]
    assert seen == numbers
    assert numbers[-20:] == list(range(483, 503))


def test_groups_that_need_little_leave_their_share_of_the_oldest_events_to_others(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path, max_bytes=4_000, max_files=2)
    for number in range(200):
        for name in ("one", "two"):
            log.publish(replace(event(number), group=GroupName(name)))
        if number < 2:
            log.publish(replace(event(number), group=GroupName("quiet")))
    log.close()

    lines = (tmp_path / "events.jsonl.1").read_bytes().splitlines()
    sizes = Counter[str]()
    for line in lines:
        sizes[json.loads(line)["group"]] += len(line) + 1

    assert sizes["quiet"] < 300
    assert all(1_700 < sizes[name] < 2_000 for name in ("one", "two"))


@pytest.mark.parametrize("step", ["before the merge", "after the merge"])
async def test_a_rotation_that_a_crash_interrupted_tells_nothing_twice(
    tmp_path: Path, step: str
) -> None:
    first = open_log(tmp_path, max_bytes=400, max_files=3)
    for number in range(12):
        first.publish(event(number))
    first.close()
    too_many, oldest = (tmp_path / f"events.jsonl.{number}" for number in (3, 2))
    before = [json.loads(line)["seq"] for line in oldest.read_bytes().splitlines()]
    too_many.write_bytes(oldest.read_bytes())
    if step == "before the merge":
        oldest.unlink()

    second = open_log(tmp_path, max_bytes=400, max_files=3)
    during = await read(second, after=0, count=12 - before[0] + 1)
    second.close()
    after = await read(second, after=0, count=12 - before[0] + 1)

    assert during == after == list(range(before[0], 13))
    assert not too_many.exists()
    assert [json.loads(line)["seq"] for line in oldest.read_bytes().splitlines()] == before
