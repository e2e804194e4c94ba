"""A host takes up the data folder of 0.1: nothing is lost, everything can be answered."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.acceptance.support import Host
from tests.pins.old_data import copy_of_today
from tests.pins.shapes import read_snapshot

TakeUp = Callable[..., Awaitable[Host]]
# What each is answered with: a choice, several, words, the part that nobody has answered.
ANSWERS = {
    "open-single": {"values": ["1"]},
    "open-multi": {"values": ["a", "c"]},
    "open-words": {"values": ["So."]},
    "open-default": {"values": ["Yes"]},
    "open-batch": {"values": ["b"], "question": 3},
    "open-parked": {"values": ["No"]},
}


@pytest.fixture
async def take_up(tmp_path: Path) -> AsyncIterator[TakeUp]:
    """Start a host on a copy of the folder, which believes in old leases for so long."""
    copy_of_today(tmp_path / "data")
    host = Host(tmp_path / "data")

    async def start(lease_ttl: str = "1h") -> Host:
        host.configure(f'lease_ttl = "{lease_ttl}"')
        return await host.start()

    yield start
    host.kill()


async def test_a_folder_of_0_1_is_taken_up_whole(take_up: TakeUp) -> None:
    host = await take_up()
    pinned = read_snapshot("data-0.1")
    pending = {p["request_id"]: p for p in host.pending()}
    history = {p["request_id"]: p["ending"]["summary"] for p in host.history()}

    for name, known in pinned["pending"].items():
        assert {key: pending[name][key] for key in known} == known
    assert history == pinned["history"]
    assert host.http("GET", "/healthz").body["problems"] == []
    for name, known in pinned["pending"].items():
        assert host.question(known["short_id"])["request_id"] == name


async def test_every_open_question_of_0_1_can_be_answered(take_up: TakeUp) -> None:
    host = await take_up()
    pinned = read_snapshot("data-0.1")
    for name, body in ANSWERS.items():
        short_id = pinned["pending"][name]["short_id"]
        reply = host.http("POST", f"/api/questions/{short_id}/answer", {**body, "by": "cy"})
        assert (reply.status, reply.body["ending"]["outcome"]) == (200, "answered"), name

    said = host.question("open-batch")["ending"]["answers"]
    assert [a["selected"] or a["text"] for a in said] == [["Yes"], "Because.", ["b"]]
    assert host.outcome("ops", "open-default")["answers"][0]["selected"] == ["Yes"]
    numbers = [event["seq"] for event in host.events()]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > pinned["last event"]


async def test_an_answer_of_0_1_that_was_not_delivered_is_still_the_agents(take_up: TakeUp) -> None:
    host = await take_up(lease_ttl="100ms")
    for name in ("kept-undelivered", "kept-held"):
        await host.state(name, "undelivered")
        assert host.outcome("nightly", name)["outcome"] == "answered"
        dismissed = host.http("POST", f"/api/questions/{name}/dismiss", {"by": "ana"})
        assert dismissed.status == 200
        await host.closed(name)
