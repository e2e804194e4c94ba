"""Make a data folder with the programs as they are: python -m tests.pins.old_data FOLDER.

`data-0.1` is what those of 0.1 made, and stays as it is: every later host must read it.
"""

import asyncio
import json
import re
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any

from tests.acceptance.support import Host, Json, MailboxAgent
from tests.pins.shapes import write_snapshot
from tests.pins.world import BATCH, DEFAULT, MULTI, SINGLE, TEXT
from tests.slack.support import group_table, people, tokens_of
from tests.slack.support import settings as with_slack
from tests.standins.slack import SlackStandIn
from tests.waiting import until

FOLDER = Path(__file__).with_name("data-0.1")
# When it was made: what a copy's times are counted from.
STAMP = "made-at"
# Secrets, and what is only there while a host runs.
_LEFT_OUT = ("token", "host.json", "host.lock", "inbox.json")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_SECRET = re.compile(r'"(claim|boot_id)": ?"[^"]+"')


async def make(folder: Path) -> Json:
    """Fill the folder with every sort of question; return what the host tells of it."""
    with tempfile.TemporaryDirectory() as scratch, SlackStandIn() as slack, tokens_of(slack):
        people(slack)
        host = Host(Path(scratch, "data"), 'answer_ttl = "300ms"\nwait_timeout = "300ms"')
        try:
            await _expire(host)
            host.configure(with_slack(slack, group_table("mute", "CNOWHERE")))
            await host.restart()
            await _end_in_every_way(host)
            alive = await _leave_open(host)
            told = _tell(host)
        finally:
            host.kill()
        alive.die()
        _keep(host.data, folder)
        return told


async def _ask(agent: MailboxAgent, host: Host, name: str, asked: list[Json], **more: Any) -> None:
    fields = {"questions": asked, "title": "A title", "agent": "claude", "task": "a task"}
    agent.ask(request_id=name, **(fields | more))
    await host.state(name, "open", "closed")


async def _expire(host: Host) -> None:
    await host.start()
    agent = MailboxAgent(host.group("web-team"), "web-0")
    await _ask(agent, host, "over-expired", SINGLE)
    await host.closed("over-expired")
    agent.leave()


async def _end_in_every_way(host: Host) -> None:
    agent = MailboxAgent(host.group("web-team"), "web-0")
    await _ask(agent, host, "over-answered", MULTI)
    host.answer("over-answered", "a", "b")
    await _ask(agent, host, "over-declined", SINGLE)
    body = {"by": "ben", "reason": "Not now."}
    host.http("POST", "/api/questions/over-declined/decline", body)
    await _ask(agent, host, "over-withdrawn", SINGLE)
    agent.tell("withdraw", "over-withdrawn")
    await _ask(agent, host, "over-defaulted", DEFAULT, wait_seconds=0.1)
    await _ask(MailboxAgent(host.group("mute"), "mute-0"), host, "over-undeliverable", SINGLE)
    for name in ("answered", "declined", "withdrawn", "defaulted"):
        await agent.receive(f"over-{name}")
        await host.closed(f"over-{name}")
    agent.leave()


async def _leave_open(host: Host) -> MailboxAgent:
    """Leave questions behind whose agents are gone; return the one that lives."""
    agents = {name: MailboxAgent(host.group(name), f"{name}-1") for name in ("web-team", "ops")}
    web, ops = agents.values()
    await _ask(web, host, "open-single", SINGLE, urgency="high")
    await _ask(web, host, "open-multi", MULTI)
    await _ask(web, host, "open-words", TEXT, urgency="low")
    await _ask(ops, host, "open-default", DEFAULT, wait_seconds=3 * 86_400)
    await _ask(ops, host, "open-batch", BATCH)
    for number, (value, by) in enumerate([("1", "ana"), ("Because.", "ben")], 1):
        part = {"values": [value], "question": number, "by": by}
        assert host.http("POST", "/api/questions/open-batch/answer", part).status == 202
    await _park(host)
    for agent in agents.values():
        agent.die()
    return await _lose(host)


async def _park(host: Host) -> None:
    agent = MailboxAgent(host.group("builder"), "builder-1")
    await _ask(agent, host, "open-parked", SINGLE)
    agent.tell("park", "open-parked")
    await until(lambda: host.question("open-parked")["parked"], "the call to be put off")
    agent.die()
    await host.session_is("builder-1", "parked")


async def _lose(host: Host) -> MailboxAgent:
    """Answer an agent that is gone, and one that does not wait; return that one, alive."""
    gone, busy = (MailboxAgent(host.group("nightly"), f"nightly-{n}") for n in (1, 2))
    await _ask(gone, host, "kept-undelivered", SINGLE)
    await _ask(busy, host, "kept-held", SINGLE)
    busy.tell("cancel", "kept-held")
    await until(lambda: not host.question("kept-held")["call_waits"], "the call to end")
    gone.die()
    host.answer("kept-undelivered", "1")
    host.answer("kept-held", "2")
    await host.state("kept-undelivered", "undelivered")
    await host.state("kept-held", "held")
    return busy


def _tell(host: Host) -> Json:
    kept = ("short_id", "group", "state", "drafts", "parked", "urgency")
    return {
        "pending": {p["request_id"]: {k: p[k] for k in kept} for p in host.pending()},
        "history": {p["request_id"]: p["ending"]["summary"] for p in host.history()},
        "last event": host.events()[-1]["seq"],
    }


def _keep(data: Path, folder: Path) -> None:
    """Copy what is kept, and make its secrets into what nobody takes for one."""
    for name in _LEFT_OUT:
        (data / name).unlink(missing_ok=True)
    for path in _files(data):
        path.write_text(_SECRET.sub(r'"\1":"not-a-real-one"', path.read_text()))
    walk = json.loads((data / "short_ids.json").read_bytes())
    (data / "short_ids.json").write_text(json.dumps(walk | {"key": "00" * 32}))
    (data / STAMP).write_text(datetime.now(UTC).isoformat())
    copytree(data, folder)


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def copy_of_today(folder: Path) -> None:
    """Copy the folder of 0.1 as if it had been made just now."""
    copytree(FOLDER, folder)
    made = datetime.fromisoformat((folder / STAMP).read_text())
    (folder / STAMP).unlink()
    passed = datetime.now(UTC) - made
    for path in _files(folder):
        path.write_text(_TIME.sub(lambda found: _later(found[0], passed), path.read_text()))


def _later(time: str, passed: timedelta) -> str:
    moved = (datetime.fromisoformat(time) + passed).isoformat()
    return moved.replace("+00:00", "Z") if time.endswith("Z") else moved


if __name__ == "__main__":
    write_snapshot("data-0.1", asyncio.run(make(Path(sys.argv[1]))))
