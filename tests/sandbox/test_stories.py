"""A question from a box, and its answer: to the call that waits, and to a session that has died."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.acceptance.support import ROOT, Runs
from tests.sandbox.support import GROUP, Boxes
from tests.waiting import until

# Asks as the agent's MCP server does, and tells how the answer was noticed.
ASK = """
import asyncio
from agent_runner.asking import Option, Question, Request
from agent_runner.asking import _asker, _waiter

told = []
start = _waiter.start_watchdog

def observe(folder, on_name):
    def noticed(name):
        told.append(name)
        on_name(name)
    return start(folder, noticed if DELIVERED else lambda _: None)

_waiter.Waiter.__init__.__kwdefaults__["start_observer"] = observe

async def main():
    async with _asker.Asker(ipc, session_id=os.environ["PYNCHY_SESSION_ID"]) as asker:
        request = Request((Question("Deploy?", options=(Option("Yes"), Option("No"))),))
        return await asker.ask(request)

result = asyncio.run(main())
report["answers"] = [list(answer.selected) for answer in result.answers]
report["told"] = len(told) > 0
"""


@pytest.mark.parametrize("way", ["inotify", "re-scan"])
async def test_an_answer_reaches_the_call_that_waits_in_a_box(boxes: Boxes, way: str) -> None:
    delivered = way == "inotify"
    await boxes.open(f"DELIVERED = {delivered}\n{ASK}")
    session_id = boxes.host.run(GROUP)
    [question] = await boxes.host.listed()

    boxes.host.answer(question["short_id"], "1")
    await boxes.host.session_is(session_id, "ended")

    report = boxes.report()
    assert report == {"answers": [["Yes"]], "told": delivered}


def scripted(boxes: Boxes, runs: Runs, mode: str) -> str:
    """Return the settings of a runner that does as a file tells it, in a box."""
    box = {"kind": "bubblewrap", "home": str(boxes.home), "workspace": str(boxes.work)}
    return runs.process(mode, read=[str(ROOT / "tests")], **box)


async def test_a_session_that_died_in_its_box_is_resumed_in_one_with_the_same_home(
    boxes: Boxes,
) -> None:
    runs = Runs(boxes.work)
    boxes.host.configure(scripted(boxes, runs, "ask"))
    await boxes.host.start()
    session_id = boxes.host.run(GROUP)
    [question] = await boxes.host.listed()
    await until(runs.started, "the runner")

    for pid in boxes.pids():
        os.kill(pid, signal.SIGKILL)
    runs.do("finish")
    boxes.host.answer(question["short_id"], "2")
    closed = await boxes.host.closed(question["request_id"])

    assert closed["delivered"] == "late"
    first, second = runs.started()
    assert first["session_id"] == second["session_id"] == session_id
    assert second["initial"]["answers"][0]["selected"] == ["No"]
    for run in (first, second):
        assert (run["environ"]["HOME"], run["cwd"]) == (str(boxes.home), str(boxes.work))


async def test_an_agent_in_a_box_is_asked_to_end_before_it_is_killed(boxes: Boxes) -> None:
    code = """
import signal
def end(*_):
    pathlib.Path("ended in order").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path("here").touch()
time.sleep(600)
"""
    await boxes.open(code)
    session_id = boxes.host.run(GROUP)
    await until((boxes.work / "here").exists, "the visitor")

    code, out, _ = await boxes.host.cli("stop", session_id)

    assert (code, out) == (0, f"{session_id}: stopped\n")
    assert (boxes.work / "ended in order").exists()
    assert boxes.pids() == []


async def test_a_program_that_the_box_hides_is_said_with_what_would_show_it(
    boxes: Boxes, tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "runner").write_text(f"#!{sys.executable}\n")
    (hidden / "runner").chmod(0o755)
    await boxes.open("", runner=str(hidden / "runner"))

    code, _, err = await boxes.host.cli("run", GROUP, "Mend it")

    assert code == 1
    assert (
        f'cannot be seen in its box, which hides {hidden}; show it with read = ["{hidden}"]' in err
    )


async def test_doctor_and_the_listings_say_how_isolated_a_boxed_agent_is(boxes: Boxes) -> None:
    await boxes.open("pathlib.Path('here').touch(); time.sleep(600)")
    session_id = boxes.host.run(GROUP)
    await until((boxes.work / "here").exists, "the visitor")

    _, listed, _ = await boxes.host.cli("sessions", "--json")
    config = boxes.host.data.parent / "pynchy.toml"
    _, found, _ = await boxes.host.cli("doctor", "--json", "--config", str(config))
    [agent] = boxes.host.http("GET", "/api/agents").body
    await boxes.host.cli("stop", session_id)

    words = json.loads(listed)[0]["isolation"]
    assert words.startswith("in a box (bubblewrap): sees this machine's programs, its mailbox, its")
    assert "; no network; " in words
    details = [finding["detail"] for finding in json.loads(found)]
    assert {"bwrap makes boxes here", f"isolation: {words}"} <= {*details}
    assert agent["isolation"] == words
