"""What runners say of sessions is not trusted: bounded, about their own group, never decisive."""

import json
import os
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent
from tests.waiting import until


def say(agent: MailboxAgent, /, **fields: Any) -> str:
    request_id = os.urandom(8).hex()
    body = {"v": 1, "type": "session:event", "request_id": request_id, "event": "started"}
    agent.write_json(f"{request_id}.json", body | {"session_id": agent.session_id} | fields)
    return request_id


def told(host: Host, session_id: str) -> list[Json]:
    return [e for e in host.events() if e.get("session_id") == session_id]


async def taken(agent: MailboxAgent) -> None:
    await until(lambda: not list(agent.tasks.glob("*.json")), "the requests to be taken")


async def test_a_long_detail_is_cut_and_a_word_that_is_repeated_is_told_once(host: Host) -> None:
    agent = MailboxAgent(host.group("team"), "mine")

    for _ in range(5):
        say(agent, event="waiting", detail="x" * 100_000)
    await taken(agent)

    events = [e for e in told(host, "mine") if e["type"] == "session_waiting"]
    assert [len(e["detail"]) for e in events] == [500]


@pytest.mark.parametrize(
    "fields",
    [
        {"event": "won"},
        {"event": None},
        {"session_id": ""},
        {"session_id": "-rf"},
        {"session_id": 7},
        {"detail": ["x"]},
        {"type": "session:other"},
        {"v": 2},
    ],
)
async def test_nonsense_is_refused_with_a_reason(shared_host: Host, fields: Json) -> None:
    host = shared_host
    agent = MailboxAgent(host.group(f"group-{os.urandom(4).hex()}"), "mine")

    request_id = say(agent, **fields)

    response = await agent.responded(request_id)
    assert response["error"]
    assert host.session("mine") is None
    assert "mine" not in {s["session_id"] for s in host.http("GET", "/api/sessions").body}


async def test_a_group_speaks_of_its_own_sessions_alone(host: Host) -> None:
    theirs = MailboxAgent(host.group("theirs"), "shared")
    theirs.ask()
    await host.listed()
    before = await host.session_is("shared", "waiting")
    mine = MailboxAgent(host.group("mine"), "shared")

    say(mine, event="failed", detail="it is dead", agent="an impostor")
    await taken(mine)

    listed = {s["group"]: s for s in host.http("GET", "/api/sessions").body}
    assert listed["theirs"] == before
    assert listed["mine"]["agent"] == "an impostor"


async def test_a_word_alone_makes_nobody_live_or_dead(host: Host) -> None:
    dead = MailboxAgent(host.group("team"), "dead")
    dead.die()
    living = MailboxAgent(host.group("team"), "living")

    say(dead, event="started")
    say(living, event="finished")
    await taken(living)

    await host.session_is("dead", "ended")
    assert (await host.session_is("living", "working"))["state"] == "working"


async def test_a_flood_of_sessions_is_capped_and_costs_no_other_group_anything(
    start_host: StartHost,
) -> None:
    host = await start_host("[retention]\nsessions = 5\n")
    other = MailboxAgent(host.group("other"), "other")
    say(other, event="finished")
    other.die()
    await host.session_is("other", "ended")
    flooding = MailboxAgent(host.group("flood"), "flood")

    for number in range(60):
        say(flooding, session_id=f"flood-{number}/../x")
    await taken(flooding)

    def capped() -> bool:
        listed = host.http("GET", "/api/sessions").body
        groups = [s["group"] for s in listed if s["state"] == "ended"]
        return groups.count("flood") == 5 and groups.count("other") == 1

    await until(capped, "the flood to be forgotten")
    kept = list((host.data / "sessions" / "flood").iterdir())
    await until(lambda: len(list((host.data / "sessions" / "flood").iterdir())) <= 6, "the files")
    assert all(json.loads(path.read_bytes())["group"] == "flood" for path in kept if path.exists())
