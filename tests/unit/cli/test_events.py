"""events and pending --watch: recorded, live, and across a restart of the host."""

import io
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.cli.support import Host, Run, start_pynchy
from tests.waiting import DEADLINE_SECONDS

from pynchy.cli import events
from pynchy.phux import Asked, EventDecoder, Unknown


@contextmanager
def following(host: Host, *command: str) -> Iterator[subprocess.Popen[str]]:
    process = start_pynchy(host, *command, stdout=subprocess.PIPE)
    with process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE_SECONDS)
    assert process.returncode == 0


def test_recorded_events_are_listed_without_a_host(host: Host, run: Run) -> None:
    short_id = host.ask("Why \x1b[31mso?")
    run("decline", short_id)

    lines = run("events").stdout.splitlines()
    told = [json.loads(line) for line in run("events", "--json").stdout.splitlines()]

    assert lines[0].split()[3:] == ["asked", short_id, "web-team", "Why", "⟨U+001B⟩[31mso?"]
    assert [event["type"] for event in told][:3] == ["asked", "shown", "declined"]
    assert "\x1b" not in "".join(lines)


def test_events_after_a_number_leave_out_what_came_before(host: Host, run: Run) -> None:
    host.ask("Why?")

    told = [
        json.loads(line) for line in run("events", "--json", "--after", "1").stdout.splitlines()
    ]

    assert [event["seq"] for event in told] == [2]


def test_rotated_files_are_read_in_order_and_damage_is_skipped(tmp_path: Path, run: Run) -> None:
    audit = tmp_path / "data" / "audit"
    audit.mkdir(parents=True)
    for name, numbers in (
        ("events.jsonl.2", [1, 2]),
        ("events.jsonl.1", [3]),
        ("events.jsonl", [4]),
    ):
        text = "".join(f'{{"seq": {n}, "type": "asked"}}\n' for n in numbers)
        (audit / name).write_text(text + '{"seq": tor\n')

    told = [json.loads(line)["seq"] for line in run("events", "--json").stdout.splitlines()]

    assert told == [1, 2, 3, 4]


def test_no_events_are_no_failure(run: Run) -> None:
    assert (run("events").exit_code, run("events").stdout) == (0, "")


def test_following_misses_nothing_over_a_restart_of_the_host(host: Host) -> None:
    with following(host, "events", "--follow", "--json", "--after", "0") as process:
        assert process.stdout is not None
        first = host.ask("One?")
        seen = [json.loads(process.stdout.readline()) for _ in range(2)]
        host.stop()
        host.start()
        second = host.ask("Two?")
        while seen[-1].get("question") != "Two?":
            seen.append(json.loads(process.stdout.readline()))

    numbers = [event["seq"] for event in seen]
    assert numbers == list(range(1, len(numbers) + 1))
    assert seen[0]["short_id"] == first
    assert seen[-1]["short_id"] == second


def test_watching_prints_the_whole_list_at_each_change(host: Host) -> None:
    with following(host, "pending", "--watch", "--json") as process:
        assert process.stdout is not None
        before = json.loads(process.stdout.readline())
        host.ask("One?")
        after: list[object] = []
        while not after:
            after = json.loads(process.stdout.readline())

    assert before == []
    assert len(after) == 1


def test_what_is_asked_is_written_in_frames_of_phux_the_open_ones_first(host: Host) -> None:
    host.ask({"question": "Deploy?", "options": ["Yes", "No"]}, request_id="q1")
    decoder = EventDecoder()
    found: list[Asked | Unknown] = []
    with following(host, "events", "--format", "phux") as process:
        assert process.stdout is not None
        pipe = process.stdout.buffer  # type: ignore[attr-defined]
        while len(found) < 1:
            found += [asked for _, asked in decoder.feed(pipe.read1())]
        options = {"question": "Which one?", "options": ["a", "b"]}
        host.ask(options, "\u202eWhy?", request_id="q2")
        while len(found) < 3:
            found += [asked for _, asked in decoder.feed(pipe.read1())]

    asks = [one for one in found if isinstance(one, Asked)]
    assert [(one.id, one.question, one.suggestions) for one in asks] == [
        ("q1", "Deploy?", ("Yes", "No")),
        ("q2", "Which one?", ("a", "b")),
        ("q2#2", "⟨U+202E⟩Why?", ()),
    ]
    assert all(one.elapsed_seconds is not None for one in asks)


def test_frames_are_not_written_to_a_persons_terminal(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    del host
    monkeypatch.setattr(events, "sys", SimpleNamespace(stdout=Terminal()))

    told = run("events", "--format", "phux")

    assert told.exit_code == 2
    assert "pipe them" in told.output


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True
