"""What the host does for OpenFlow's tools: a closed popup, and what is told without a question.

Closing is no answer. Only questions whose asker wants to know are touched at all.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.core import make_core, start
from tests.waiting import until

from pynchy import wire
from pynchy.bridge.announce import ANNOUNCE_PREFIX
from pynchy.config import Settings
from pynchy.core import Core
from pynchy.errors import AlreadyOver, MalformedRequest, NotAllowed
from pynchy.ipc.intake import Registry
from pynchy.model import CardRef, CardState, GroupName, Option, PendingQuestion, Question, Reply
from pynchy.testing import FakeChannel, FakeClock, make_pending

TEAM = GroupName("g1")
NAMES = ("desktop", "local", "web", "slack")
TWO = Question("Merge?", options=(Option("Merge"), Option("Later")))


class Standing:
    """A core with its channels and its clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, FakeClock()
        self.channels = {name: FakeChannel(name) for name in NAMES}
        settings = Settings(groups={TEAM: {"channels": ["desktop", "local"]}})
        self.core: Core = make_core(folder, self.clock, settings, self.channels)

    async def asked(self, *cards: CardRef, **fields: Any) -> PendingQuestion:
        pending = make_pending(
            questions=(TWO,), cards=cards, **{"hears_dismissal": True, "group": TEAM, **fields}
        )
        self.core.mailboxes.of(TEAM).make()
        await self.core.ledger.record(pending)
        await until(lambda: all(c.state is not CardState.SENDING for c in self.now(pending).cards))
        return pending

    def now(self, pending: PendingQuestion) -> PendingQuestion:
        return self.core.ledger.get(pending.key)

    async def dismiss(
        self, pending: PendingQuestion, channel: str = "desktop", **more: Any
    ) -> None:
        reply = Reply(pending.request_id, by="ana", channel=channel, group=TEAM)
        await self.core.answers.dismiss(reply, **more)

    def note(self, pending: PendingQuestion) -> Any:
        path = self.folder / "ipc" / TEAM / "responses" / f"{pending.request_id}.dismissed.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def outcome(self, pending: PendingQuestion) -> str:
        path = self.folder / "ipc" / TEAM / "outcomes" / f"{pending.request_id}.json"
        return str(json.loads(path.read_bytes())["outcome"]) if path.exists() else ""

    async def announce(self, **fields: Any) -> None:
        registry = Registry()
        registry.register_prefix(ANNOUNCE_PREFIX, self.core.announcements.handle)
        body = {"v": 1, "type": "announce:message", "request_id": "a1", "title": "Merged"}
        data = json.dumps(body | fields).encode()
        await registry.dispatch(TEAM, wire.read_envelope(data, "a1"))

    def announced(self) -> list[dict[str, Any]]:
        lines = (self.folder / "audit" / "events.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e["type"] == "announced"]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Standing]:
    (tmp_path / "ipc").mkdir()
    standing = Standing(tmp_path)
    async with asyncio.TaskGroup() as tasks:
        await start(standing.core, tasks)
        yield standing
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


async def test_it_stays_open_where_another_channel_shows_it_and_the_asker_reads_a_note(
    host: Standing,
) -> None:
    pending = await host.asked(CardRef("desktop"), CardRef("slack", "C1"))

    await host.dismiss(pending, implied_choice="Later")

    assert host.now(pending).ending is None
    told = {"v": 1, "request_id": pending.request_id, "by": "ana"}
    assert host.note(pending) == {**told, "open": True, "implied_choice": "Later"}


async def test_it_is_declined_where_the_desktop_is_its_only_channel(host: Standing) -> None:
    pending = await host.asked(CardRef("desktop"))

    await host.dismiss(pending)

    assert host.outcome(pending) == "declined"
    assert host.note(pending)["open"] is False


async def test_a_channel_that_can_never_show_it_is_no_other_place(host: Standing) -> None:
    hopeless = CardRef("slack", state=CardState.FAILED, hopeless=True)
    pending = await host.asked(CardRef("desktop"), hopeless)

    await host.dismiss(pending)

    assert host.outcome(pending) == "declined"


async def test_a_channel_that_is_away_and_may_come_back_is_another_place(host: Standing) -> None:
    host.channels["slack"].down = True
    pending = await host.asked(CardRef("desktop"), CardRef("slack"))

    await host.dismiss(pending)

    assert host.outcome(pending) == ""
    assert host.note(pending)["open"] is True


async def test_the_inbox_still_shows_what_was_closed_in_a_session_of_pynchy_desktop(
    host: Standing,
) -> None:
    pending = await host.asked(CardRef("web"))

    await host.dismiss(pending, channel="web")

    assert host.outcome(pending) == ""
    assert host.note(pending)["open"] is True


async def test_closing_the_popup_of_any_other_question_means_nothing(host: Standing) -> None:
    pending = await host.asked(CardRef("desktop"), hears_dismissal=False)

    await host.dismiss(pending)

    assert (host.outcome(pending), host.note(pending)) == ("", None)


async def test_who_may_not_answer_may_not_dismiss(host: Standing) -> None:
    pending = await host.asked(CardRef("desktop"))

    with pytest.raises(NotAllowed):
        await host.dismiss(pending, channel="slack")
    assert (host.outcome(pending), host.note(pending)) == ("", None)


async def test_what_is_over_cannot_be_dismissed(host: Standing) -> None:
    pending = await host.asked(CardRef("desktop"), CardRef("slack"))
    reply = Reply(pending.request_id, by="ben", channel="local", values=("Merge",), group=TEAM)
    await host.core.answers.answer(reply)

    with pytest.raises(AlreadyOver):
        await host.dismiss(pending)
    assert (host.outcome(pending), host.note(pending)) == ("answered", None)


async def test_an_announcement_is_recorded_and_shown_by_every_channel_of_the_group(
    host: Standing,
) -> None:
    host.channels["local"].down = True
    await host.announce(text="fix → main", agent="Ex", task="shop", urgency="low")
    [(_, told)] = await until(lambda: host.channels["desktop"].announced, "it to be shown")

    assert (told.group, told.title, told.text, told.agent) == (TEAM, "Merged", "fix → main", "Ex")
    assert host.channels["slack"].announced == []
    [event] = host.announced()
    assert (event["title"], event["detail"], event["task"]) == ("Merged", "fix → main", "shop")
    assert list(host.core.ledger.index) == []


async def test_an_announcement_of_long_ago_is_recorded_and_not_shown(host: Standing) -> None:
    long_ago = host.clock.now() - timedelta(hours=1)
    await host.announce(at=long_ago.isoformat())
    await host.announce(title="Fresh", at=host.clock.now().isoformat())
    await until(lambda: host.channels["desktop"].announced, "the fresh one")

    assert [told.title for _, told in host.channels["desktop"].announced] == ["Fresh"]
    assert [event["title"] for event in host.announced()] == ["Merged", "Fresh"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"title": " "}, "title"),
        ({"type": "announce:other"}, "type"),
        ({"urgency": "mild"}, "urgency"),
        ({"at": "noon"}, "at"),
        ({"v": 2}, "v:"),
    ],
)
async def test_a_malformed_announcement_is_refused(
    host: Standing, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(MalformedRequest, match=reason):
        await host.announce(**fields)
    assert host.announced() == []
