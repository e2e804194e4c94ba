"""What an operator reads: a stable event word and fields, never what people or agents say."""

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import DEADLINE_SECONDS

from pynchy.events import AskedQuestion, Event, EventKind
from pynchy.logs import JsonFormatter, RepeatFilter, TextFormatter, log_event
from pynchy.model import GroupName, RequestId, ShortId
from pynchy.testing import NOON

SOURCES = Path(__file__).parents[2] / "src" / "pynchy"
ASKED = Event(
    EventKind.ASKED,
    NOON,
    GroupName("g1"),
    RequestId("q1"),
    ShortId("ab2c"),
    asked=(AskedQuestion("Is the launch code 1234?"),),
)


@pytest.fixture
def written() -> Iterator[tuple[logging.Handler, io.StringIO]]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("pynchy")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler, stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_a_line_has_an_event_word_and_fields(
    written: tuple[logging.Handler, io.StringIO],
) -> None:
    handler, stream = written
    handler.setFormatter(TextFormatter())

    log_event(ASKED)

    assert "INFO event=question.asked id=ab2c request=q1 group=g1\n" in stream.getvalue()
    assert "launch" not in stream.getvalue()


def test_a_line_can_be_one_json_object(written: tuple[logging.Handler, io.StringIO]) -> None:
    handler, stream = written
    handler.setFormatter(JsonFormatter())

    log_event(Event(EventKind.RESUME_FAILED, NOON, GroupName("g1"), detail="it printed a secret"))
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        logging.getLogger("pynchy.x").exception("x.failed", extra={"why": "so"})

    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["level"], first["event"], first["group"]) == (
        "WARNING",
        "question.resume_failed",
        "g1",
    )
    assert "secret" not in stream.getvalue()
    assert (second["event"], second["why"]) == ("x.failed", "so")
    assert "ZeroDivisionError" in second["exception"]


def test_what_a_library_says_is_told_with_its_name() -> None:
    record = logging.makeLogRecord(
        {"name": "uvicorn.error", "msg": "it broke", "levelname": "ERROR"}
    )

    assert 'ERROR event=uvicorn.error message="it broke"' in TextFormatter().format(record)


def test_every_log_call_has_an_event_word() -> None:
    calls = re.compile(
        r"\blog\.(?:debug|info|warning|error|exception|log)\(\s*(?:level, )?\"([^\"]*)\""
    )
    words = [w for path in SOURCES.rglob("*.py") for w in calls.findall(path.read_text())]

    assert len(words) > 60
    assert [word for word in words if not re.fullmatch(r"[a-z_]+\.[a-z_%]+", word)] == []


SERVE_TO_NOBODY = """
import logging, sys
from pynchy.logs import set_up_logging
set_up_logging("info")
log = logging.getLogger("pynchy.test")
for number in range(50_000):
    log.info("line.of_many", extra={"number": number, "padding": "x" * 100})
print("done", flush=True)
"""


def test_a_log_that_nobody_reads_holds_nothing_up() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE_TO_NOBODY], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"done\n"
        assert process.wait(DEADLINE_SECONDS) == 0


def test_lines_that_were_dropped_are_counted_for_a_reader_who_comes_back() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{SERVE_TO_NOBODY}\nsys.stdin.readline()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"done\n"
        assert process.stderr
        for line in process.stderr:
            if found := re.search(rb"event=log.dropped lines=(\d+)", line):
                break
        assert int(found[1]) > 10_000
        process.kill()


def test_the_same_trouble_again_and_again_is_told_a_few_times() -> None:
    told = RepeatFilter()
    records = []
    for number in range(100):
        error = OSError(24, f"Too many open files, {number}")
        raised = (OSError, error, None)
        at = (__file__, 1, "accept failed", (), raised)
        records.append(logging.LogRecord("asyncio", logging.ERROR, *at))

    assert sum(map(told.filter, records)) == 5
    assert told.filter(logging.makeLogRecord({"msg": "another", "exc_info": None}))
