"""Channels that fail in every way: the agent never hangs, and the person answers where they are.

The host runs in this process, in a thread with a loop of its own, so that channels made here can
be plugged in. All else is seen from outside as ever.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Json, MailboxAgent, Person, agent_of
from tests.waiting import DEADLINE_SECONDS, until

from pynchy.bridge import cards
from pynchy.channels import loading
from pynchy.channels.base import Channel, ReplyHandler
from pynchy.cli.doctor.settings import check_groups
from pynchy.config import Settings
from pynchy.data_dir import DataFolder
from pynchy.errors import AlreadyOver, CannotShow, ChannelUnavailable, NotAllowed, NotShown
from pynchy.host import running_host
from pynchy.model import PendingQuestion, Reply

NOWHERE = "?"
FAILURES: dict[str, BaseException] = {
    "is closed": ChannelUnavailable("the service is down"),
    "is down": ChannelUnavailable("the service is down"),
    "is away": NotShown("the service cannot be reached"),
    "does not know the chat": CannotShow("the bot is not in the chat"),
    "raises": ZeroDivisionError("a bug"),
    "is cancelled": asyncio.CancelledError(),
}


class Chat(Channel):
    """A chat that does as told, and remembers its cards."""

    def __init__(self, name: str, send: str = "shows", settle_failures: int = 0) -> None:
        self.name = name
        self.send = send
        self.settle_failures = settle_failures
        self.cards: list[Any] = []
        self.settled: list[Any] = []
        self.settled_ids: list[str] = []
        self.trouble: str | None = None
        self.looks = 0
        self._handler: ReplyHandler | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self, handler: ReplyHandler) -> None:
        self._handler, self._loop = handler, asyncio.get_running_loop()
        if self.send == "is closed":
            raise ChannelUnavailable("it is closed")
        await self._break("opening")

    async def close(self) -> None:
        await self._break("closing")

    async def _break(self, doing: str) -> None:
        if self.send == f"raises while {doing}":
            raise ZeroDivisionError("a bug")
        if self.send == f"hangs while {doing}":
            await asyncio.Event().wait()
        if self.send == f"is cancelled while {doing}":
            raise asyncio.CancelledError

    async def send_ask_user(self, jid: str, request_id: Any, questions: Any, *, card: Any) -> str:
        if jid == NOWHERE:  # also when the host before died while it was sending there
            raise ChannelUnavailable("there is no such chat")
        if self.send in FAILURES:
            raise FAILURES[self.send]
        match self.send:
            case "cannot ask":
                return await super().send_ask_user(jid, request_id, questions, card=card)
            case "hangs":
                await asyncio.Event().wait()
            case "gives no id":
                return ""
            case "gives nonsense":
                return None  # type: ignore[return-value]
        self.cards.append(card)
        return f"{self.name}-{len(self.cards)}"

    async def settle_card(
        self, jid: str, message_id: str, request_id: Any, questions: Any, *, card: Any
    ) -> None:
        del jid, request_id, questions
        self.settled_ids.append(message_id)
        if self.settle_failures:
            self.settle_failures -= 1
            raise ChannelUnavailable("the service is down")
        self.settled.append(card)

    def problem(self) -> str | None:
        self.looks += 1
        return self.trouble

    def reply(
        self, target: str, value: str, *, user: str | None, chat: str = "room"
    ) -> PendingQuestion:
        """Pass on what a person of the chat says; raise what is said to that."""
        reply = Reply(
            target, by=f"{user}'s name", channel=self.name, values=(value,), user_id=user, chat=chat
        )
        assert self._handler
        assert self._loop
        answering: Future[PendingQuestion] = asyncio.run_coroutine_threadsafe(
            self._handler.answer(reply),  # type: ignore[arg-type]
            self._loop,
        )
        return answering.result(DEADLINE_SECONDS)


class HostThread:
    """A host with extra channels, in a loop of its own."""

    def __init__(self, data: Path, settings: Json, channels: list[Chat]) -> None:
        self.person = Person(data)
        self._settings = Settings.model_validate({"http": {"port": 0}} | settings)
        self._channels = channels
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self) -> Person:
        self._thread.start()
        assert self._ready.wait(DEADLINE_SECONDS)
        return self.person

    def stop(self) -> None:
        self._stop()
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()

    async def _run(self) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        channels = {channel.name: channel for channel in self._channels}
        async with running_host(self._settings, DataFolder(self.person.data), channels) as host:
            self.person.url = host.url
            self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
            self._ready.set()
            await stopped.wait()


StartWith = Callable[..., Person]


@pytest.fixture
def start_with(tmp_path: Path) -> Iterator[StartWith]:
    """Start a host whose group `team` is routed to these channels, in the chat `room`."""
    hosts: list[HostThread] = []

    def start(*channels: Chat, **settings: Any) -> Person:
        team = {
            "channels": [channel.name for channel in channels],
            "chat": {channel.name: "room" for channel in channels},
            "allowed_users": {channel.name: ["U1"] for channel in channels},
        }
        own = {"team": team} if settings.pop("in_settings", True) else {}
        groups = {**own, **settings.pop("groups", {})}
        body = {"send_timeout": 0.3, "groups": groups, **settings}
        while hosts:  # a second one is the first one restarted
            hosts.pop().stop()
        hosts.append(HostThread(tmp_path / "data", body, list(channels)))
        return hosts[-1].start()

    yield start
    for host in hosts:
        host.stop()


BROKEN = [
    "cannot ask",
    "does not know the chat",
    "is closed",
    "is down",
    "is away",
    "raises",
    "hangs",
    "gives no id",
    "gives nonsense",
    "is cancelled",
]


HOPELESS = ["cannot ask", "does not know the chat"]


@pytest.mark.parametrize("how", BROKEN)
async def test_with_no_channel_and_no_patience_left_the_agent_gets_an_error_at_once(
    start_with: StartWith, how: str
) -> None:
    patience = {} if how in HOPELESS else {"show_patience": 0}
    host = start_with(Chat("first", how), Chat("second", how), **patience)

    async with agent_of(host) as agent:
        result = await agent.client.call_tool("ask_user", {"question": "Deploy?"})

    assert result.is_error
    text = result.content[0].text  # type: ignore[union-attr]
    assert "could not be shown" in text
    assert "first" in text
    assert "second" in text
    [closed] = await until(host.history, "the end")
    assert closed["ending"]["outcome"] == "undeliverable"
    assert host.pending() == []


@pytest.mark.parametrize("how", BROKEN)
async def test_a_broken_channel_leaves_the_question_to_the_next(
    start_with: StartWith, how: str
) -> None:
    good = Chat("good")
    host = start_with(Chat("broken", how), good)
    agent = MailboxAgent(host.group("team"))

    request_id = agent.ask()
    await until(lambda: good.cards, "the card")
    wanted = {"broken": "failed", "good": "shown"}
    await until(lambda: host.card_states(request_id) == wanted, "one card of two")
    ended = good.reply(request_id, "1", user="U1")
    response = await agent.receive(request_id)

    assert ended.ending is not None
    assert response["answered_by"] == "U1's name"
    assert response["channel"] == "good"
    await host.closed(request_id)
    assert "show_failed" in host.kinds(request_id)


SURELY_NOT_SHOWN = [*HOPELESS, "is away"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", [how for how in BROKEN if how not in HOPELESS])
async def test_a_lone_channel_gets_a_second_chance(start_with: StartWith, how: str) -> None:
    chat = Chat("chat", how)
    host = start_with(chat)
    agent = MailboxAgent(host.group("team"))

    request_id = agent.ask()
    note = agent.mailbox / "responses" / f"{request_id}.unseen.json"
    await until(note.exists, "the agent to be told that nobody has seen it")
    assert "chat: " in json.loads(note.read_text())["why"]
    assert host.question(request_id)["state"] == "recorded"
    chat.send = "shows"
    await until(lambda: host.card_states(request_id)["chat"] == "shown", "the card")
    chat.reply(request_id, "1", user="U1")

    assert (await agent.receive(request_id))["outcome"] == "answered"
    assert [card.repeated for card in chat.cards] == [how not in SURELY_NOT_SHOWN]
    assert not note.exists()
    await host.closed(request_id)


@pytest.mark.usefixtures("impatient")
async def test_a_restarted_host_has_patience_with_what_nobody_has_seen(
    start_with: StartWith,
) -> None:
    chat = Chat("chat", "is away")
    host = start_with(chat)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: host.kinds(request_id).count("show_failed"), "the failure")

    # Another one: the first host could still show it, and would stop before it knows.
    chat = Chat("chat")
    host = start_with(chat)
    await until(lambda: chat.cards, "the card")

    assert [card.repeated for card in chat.cards] == [False]
    await until(lambda: host.question(request_id)["state"] == "open", "it to be noted")


@pytest.mark.usefixtures("impatient")
async def test_a_card_that_failed_and_may_be_there_is_settled_with_the_others(
    start_with: StartWith,
) -> None:
    lost, away, good = Chat("lost", "is down"), Chat("away", "is away"), Chat("good")
    host = start_with(lost, away, good)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: good.cards, "the card")
    wanted = {"lost": "failed", "away": "failed", "good": "shown"}
    await until(lambda: host.card_states(request_id) == wanted, "one card of three")

    good.reply(request_id, "1", user="U1")
    await agent.receive(request_id)
    await host.closed(request_id)

    assert lost.settled_ids == [""] * len(lost.settled_ids)
    assert lost.settled[-1].ending == good.settled[-1].ending
    assert away.settled == []


def problems_of(host: Person) -> list[str]:
    """Return what the host says is wrong."""
    problems: list[str] = host.http("GET", "/healthz").body.get("problems", [])
    return problems


class Fragile(Chat):
    """A chat whose job can be made to fail."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.opened = 0
        self._fail = asyncio.Event()

    async def open(self, handler: ReplyHandler) -> None:
        await super().open(handler)
        self.opened += 1
        self._fail = asyncio.Event()
        self.start_jobs(self._listen)

    async def close(self) -> None:
        await self.stop_jobs()

    def fail(self) -> None:
        assert self._loop
        self._loop.call_soon_threadsafe(self._fail.set)

    async def _listen(self) -> None:
        await self._fail.wait()
        raise ZeroDivisionError("a bug")


async def test_a_channel_whose_job_dies_is_opened_anew_and_told_of(
    start_with: StartWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(loading, "_REOPEN_SECONDS", 0.02)
    chat = Fragile("chat")
    host = start_with(chat)
    assert problems_of(host) == []

    chat.fail()
    await until(lambda: chat.opened > 1, "the channel to be opened again")

    [problem] = problems_of(host)
    assert "chat: stopped (ZeroDivisionError in it)" in problem
    assert "no channel is up: chat: stopped" in doctor_says(host)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: chat.cards, "the card")
    chat.reply(request_id, "1", user="U1")
    assert (await agent.receive(request_id))["outcome"] == "answered"


def doctor_says(host: Person) -> str:
    """Return what doctor finds about a group that asks in the chat alone."""
    settings = Settings.model_validate({"groups": {"team": {"channels": ["chat"]}}})
    found = check_groups(settings, DataFolder(host.data), tuple(problems_of(host)))
    return "\n".join(finding.detail for finding in found)


class Broken(Chat):
    """A chat that cannot even say what is wrong with it."""

    def problem(self) -> str | None:
        raise ZeroDivisionError("a bug")


class Crowded(Chat):
    """A chat in which cards wait long, and which is well otherwise."""

    def backlog(self) -> str | None:
        return "280 messages wait their turn"


@pytest.mark.usefixtures("impatient")
async def test_a_long_queue_of_cards_is_a_problem_and_no_channel_is_down(
    start_with: StartWith,
) -> None:
    chat = Crowded("chat", send="gives no id")
    host = start_with(chat)

    assert problems_of(host) == ["cards come late in chat: 280 messages wait their turn"]
    assert host.http("GET", "/healthz").body["status"] == "degraded"
    assert "asks in chat" in doctor_says(host)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: host.kinds(request_id).count("show_failed"), "the failure")
    chat.send = "shows"
    await until(lambda: chat.cards, "the card, which is tried again")


async def test_a_channel_that_fails_to_say_what_is_wrong_stops_nobody(
    start_with: StartWith,
) -> None:
    good = Chat("good")
    host = start_with(Broken("broken"), good)

    assert "broken: ZeroDivisionError in it" in problems_of(host)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: good.cards, "the card")
    good.reply(request_id, "1", user="U1")
    assert (await agent.receive(request_id))["outcome"] == "answered"


async def test_a_card_that_cannot_be_settled_holds_up_no_answer_whatever_its_channel_says(
    start_with: StartWith,
) -> None:
    broken, good = Broken("broken", settle_failures=10**9), Chat("good")
    host = start_with(broken, good)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: good.cards and broken.cards, "the cards")
    good.reply(request_id, "1", user="U1")
    await until(lambda: broken.settled_ids, "the first attempt to settle")

    await agent.receive(request_id)

    await until(lambda: host.question(request_id)["delivered"] == "live", "the receipt to be seen")
    assert host.kinds(request_id).count("delivered") == 1


async def test_a_lone_channel_that_fails_to_say_what_is_wrong_is_given_up(
    start_with: StartWith,
) -> None:
    host = start_with(Broken("broken", "is away"), show_patience=0.1)
    agent = MailboxAgent(host.group("team"))

    assert (await agent.receive(agent.ask()))["outcome"] == "undeliverable"


async def test_a_group_is_removed_though_a_card_of_it_cannot_be_settled(
    start_with: StartWith,
) -> None:
    chat = Chat("chat", settle_failures=10**9)
    host = start_with(chat)
    agent = MailboxAgent(host.group("team"))
    delivered, kept = agent.ask("Deploy?"), agent.ask("Where to?")
    await until(lambda: len(chat.cards) == 2, "the cards")
    host = start_with(chat, in_settings=False)
    host.answer(delivered, "1")
    await agent.receive(delivered)
    await until(lambda: host.question(delivered)["delivered"] == "live", "the receipt to be seen")
    host.answer(kept, "1")
    agent.leave()
    await host.state(kept, "undelivered")

    refused = host.http("POST", "/api/groups/team/remove", {"by": "ana"})
    removed = host.http("POST", "/api/groups/team/remove", {"by": "ana", "force": True})

    assert "1 answer(s) that have not arrived" in refused.body["error"]
    assert (removed.status, removed.body["dismissed"]) == (200, 1)
    assert host.kinds(kept).count("dismissed") == 1


async def test_a_channel_that_could_not_be_opened_is_opened_later(
    start_with: StartWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(loading, "_REOPEN_SECONDS", 0.02)
    chat = Chat("chat", "raises while opening")
    host = start_with(chat)
    assert "chat: could not be opened: ZeroDivisionError" in problems_of(host)
    assert "no channel is up: chat: could not be opened" in doctor_says(host)

    chat.send = "shows"
    await until(lambda: problems_of(host) == [], "the channel to be opened")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let failed cards be tried again without much waiting."""
    monkeypatch.setattr(cards, "_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(cards, "_POLL_SECONDS", 0.02)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", [how for how in BROKEN if how != "cannot ask"])
async def test_a_channel_that_is_back_shows_what_is_still_open_once(
    start_with: StartWith, how: str
) -> None:
    chat, good = Chat("chat", how), Chat("good")
    host = start_with(chat, good)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: host.kinds(request_id).count("show_failed") > 1, "a second attempt")
    assert host.question(request_id)["state"] == "open"

    chat.send = "shows"
    await until(lambda: chat.cards, "the card")
    await until(lambda: host.card_states(request_id)["chat"] == "shown", "the card to be known")
    chat.reply(request_id, "2", user="U1")
    response = await agent.receive(request_id)
    await host.closed(request_id)

    assert response["answers"][0]["selected"] == ["No"]
    assert [card.repeated for card in chat.cards] == [how not in SURELY_NOT_SHOWN]
    assert len(good.cards) == 1
    assert chat.settled[-1].ending == good.settled[-1].ending


@pytest.mark.usefixtures("impatient")
async def test_a_channel_that_says_what_is_wrong_is_tried_when_nothing_is_any_more(
    start_with: StartWith,
) -> None:
    chat, good = Chat("chat", "is down"), Chat("good")
    chat.trouble = "the service is down"
    host = start_with(chat, good)
    agent = MailboxAgent(host.group("team"))
    first = agent.ask()
    await until(lambda: host.kinds(first).count("show_failed"), "the failure")
    looks = chat.looks
    await until(lambda: chat.looks > looks + 3, "some looks")

    assert host.kinds(first).count("show_failed") == 1
    chat.send, chat.trouble = "shows", None
    await until(lambda: chat.cards, "the card")


async def test_a_card_is_settled_as_soon_as_its_channel_is_back(
    start_with: StartWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "_WAIT_SECONDS", 3_600.0)
    monkeypatch.setattr(cards, "_POLL_SECONDS", 0.02)
    chat = Chat("chat", settle_failures=1)
    host = start_with(chat)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.state(request_id, "open")
    chat.trouble = "the service is down"
    chat.reply(request_id, "1", user="U1")
    await agent.receive(request_id)
    await until(lambda: "settle_failed" in host.kinds(request_id), "the failure")
    assert chat.settled == []
    looks = chat.looks
    await until(lambda: chat.looks > looks, "a look while it is away")

    chat.trouble = None

    await host.closed(request_id)
    assert len(chat.settled) == 1


async def test_a_channel_that_is_back_is_noticed_while_another_is_still_broken(
    start_with: StartWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "_WAIT_SECONDS", 3_600.0)
    monkeypatch.setattr(cards, "_POLL_SECONDS", 0.02)
    away, broken = Chat("away", "is down"), Chat("broken", "is down")
    away.trouble = "the service is down"
    host = start_with(away, broken, Chat("good"))
    request_id = MailboxAgent(host.group("team")).ask()
    await until(lambda: len(_failures(host, request_id)) == 2, "both failures")
    looks = away.looks
    await until(lambda: away.looks > looks + 3, "some looks")

    away.send, away.trouble = "shows", None

    await until(lambda: away.cards, "the card")


class SlowChat(Chat):
    """A chat that shows nothing before it is let go."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.may_show = asyncio.Event()

    async def send_ask_user(self, jid: str, request_id: Any, questions: Any, *, card: Any) -> str:
        await self.may_show.wait()
        return await super().send_ask_user(jid, request_id, questions, card=card)

    def let_go(self) -> None:
        assert self._loop
        self._loop.call_soon_threadsafe(self.may_show.set)


async def test_a_card_that_comes_late_is_settled_although_another_cannot_be(
    start_with: StartWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "_WAIT_SECONDS", 3_600.0)
    stuck, slow = Chat("stuck", settle_failures=1_000), SlowChat("slow")
    host = start_with(stuck, slow, send_timeout=DEADLINE_SECONDS)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.state(request_id, "open")
    stuck.reply(request_id, "1", user="U1")
    await agent.receive(request_id)
    await until(lambda: "settle_failed" in host.kinds(request_id), "the failure")

    slow.let_go()

    wanted = {"stuck": "shown", "slow": "settled"}
    await until(lambda: host.card_states(request_id) == wanted, "the late card to be settled")
    assert slow.settled


@pytest.mark.usefixtures("impatient")
async def test_neither_a_channel_that_cannot_ask_nor_a_question_that_is_over_is_tried_again(
    start_with: StartWith,
) -> None:
    good = Chat("good")
    host = start_with(Chat("mute", "cannot ask"), Chat("down", "is down"), good)
    agent = MailboxAgent(host.group("team"))
    first = agent.ask()
    await until(lambda: _failures(host, first).count("down") > 2, "some attempts")
    good.reply(first, "1", user="U1")
    await agent.receive(first)
    await host.closed(first)
    tried = _failures(host, first)

    second = agent.ask()
    await until(lambda: _failures(host, second).count("down") > 2, "some attempts")

    assert _failures(host, first) == tried
    assert tried.count("mute") == 1


def _failures(host: Person, request_id: str) -> list[str]:
    return [event["channel"] for event in host.events(request_id) if event["type"] == "show_failed"]


@pytest.mark.usefixtures("impatient")
async def test_a_restarted_host_shows_what_the_last_one_could_not_in_the_corrected_chat(
    tmp_path: Path,
) -> None:
    team = {"channels": ["chat", "good"], "allowed_users": {"chat": ["U1"]}}
    wrong, right = (
        {"groups": {"team": team | {"chat": {"chat": room}}}} for room in (NOWHERE, "room")
    )
    first = HostThread(tmp_path / "data", wrong, [Chat("chat", "is down"), Chat("good")])
    host = first.start()
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: _failures(host, request_id), "the failure")
    first.stop()

    chat, good = Chat("chat"), Chat("good")
    second = HostThread(tmp_path / "data", right, [chat, good])
    host = second.start()
    await until(lambda: host.card_states(request_id)["chat"] == "shown", "the card")
    chat.reply(request_id, "1", user="U1")
    await agent.receive(request_id)
    await host.closed(request_id)
    second.stop()

    assert [card.repeated for card in chat.cards] == [True]
    assert good.cards == []


@pytest.mark.parametrize("how", ["raises", "hangs", "is cancelled"])
@pytest.mark.parametrize("doing", ["opening", "closing"])
async def test_a_channel_that_breaks_while_it_is_opened_or_closed_stops_nobody(
    start_with: StartWith, how: str, doing: str
) -> None:
    host = start_with(Chat("broken", f"{how} while {doing}"), Chat("good"))
    agent = MailboxAgent(host.group("team"))

    request_id = agent.ask()
    await host.state(request_id, "open")
    assert host.answer(request_id, "1").status == 200
    await agent.receive(request_id)

    problems = host.http("GET", "/healthz").body["problems"]
    assert any("broken" in problem for problem in problems) == (doing == "opening")


async def test_the_first_answer_wins_and_the_other_card_is_settled(start_with: StartWith) -> None:
    first, second = Chat("first"), Chat("second")
    host = start_with(first, second)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await until(lambda: first.cards and second.cards, "both cards")

    second.reply(first.cards[0].short_id, "No", user="U1")
    with pytest.raises(AlreadyOver) as told:
        first.reply(request_id, "Yes", user="U1")
    response = await agent.receive(request_id)
    await host.closed(request_id)

    assert response["answers"][0]["selected"] == ["No"]
    assert told.value.ending.channel == "second"
    assert "No" in str(told.value)
    for chat in (first, second):
        assert chat.settled[-1].ending.answers[0].selected == ("No",)
        assert not chat.cards[0].repeated


async def test_the_answer_over_http_settles_every_card(start_with: StartWith) -> None:
    chats = [Chat("first"), Chat("second")]
    host = start_with(*chats)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.state(request_id, "open")

    assert host.answer(request_id, "1").status == 200
    await agent.receive(request_id)
    await host.closed(request_id)

    assert [chat.settled[-1].ending.by for chat in chats] == ["ana", "ana"]


@pytest.mark.parametrize("allowed", [{}, {"chat": []}, {"other": ["U1"]}, {"chat": ["U2"]}])
async def test_who_is_not_on_the_list_may_not_answer(
    start_with: StartWith, allowed: dict[str, list[str]]
) -> None:
    chat = Chat("chat")
    team = {"channels": ["chat"], "chat": {"chat": "room"}, "allowed_users": allowed}
    host = start_with(chat, groups={"team": team})
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.state(request_id, "open")

    for user in ("U1", "", None, "u2"):
        with pytest.raises(NotAllowed):
            chat.reply(request_id, "1", user=user)

    assert host.question(request_id)["state"] == "open"
    assert agent.response(request_id) is None


async def test_a_question_is_answered_only_in_the_chat_where_it_was_asked(
    start_with: StartWith,
) -> None:
    asked, other = Chat("asked"), Chat("other")
    groups = {"team": {"channels": ["asked"], "chat": {"asked": "room"}}}
    groups["team"]["allowed_users"] = {"asked": ["U1"], "other": ["U1"]}  # type: ignore[assignment]
    host = start_with(asked, other, groups=groups)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.state(request_id, "open")

    with pytest.raises(NotAllowed):
        asked.reply(request_id, "1", user="U1", chat="another room")
    with pytest.raises(NotAllowed):
        other.reply(request_id, "1", user="U1")

    assert asked.reply(request_id, "1", user="U1").ending is not None
    await agent.receive(request_id)


async def test_a_card_that_cannot_be_settled_is_tried_again(start_with: StartWith) -> None:
    chat = Chat("chat", settle_failures=1)
    host = start_with(chat)
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.state(request_id, "open")

    host.answer(request_id, "1")
    response = await agent.receive(request_id)
    await until(lambda: "delivered" in host.kinds(request_id), "the delivery")
    assert chat.settled == []
    await host.closed(request_id)

    assert response["outcome"] == "answered"
    assert chat.settled[-1].ending.by == "ana"
    assert host.kinds(request_id).count("settle_failed") == 1


async def test_a_slow_channel_of_one_group_does_not_delay_another(start_with: StartWith) -> None:
    slow = Chat("slow", "hangs")
    host = start_with(slow, send_timeout=3600)
    waiting = MailboxAgent(host.group("team"))
    stuck = [waiting.ask(f"Question {number}?") for number in range(20)]
    await until(lambda: len(host.pending()) == 20, "the stuck questions")

    other = MailboxAgent(host.group("others"))
    request_id = other.ask()
    await host.state(request_id, "open")
    host.answer(request_id, "1")
    await other.receive(request_id)

    # What is recorded can be answered even while its channel is stuck.
    assert {p["state"] for p in host.pending() if p["group"] == "team"} == {"recorded"}
    assert host.answer(stuck[0], "1").status == 200
    assert (await waiting.receive(stuck[0]))["outcome"] == "answered"


async def test_a_question_is_shown_again_after_a_restart_only_where_it_was_not(
    tmp_path: Path,
) -> None:
    team = {"channels": ["shown", "missed"], "chat": {}}
    settings = {"groups": {"team": team}, "send_timeout": 3600}
    before = [Chat("shown"), Chat("missed", "hangs")]
    host = HostThread(tmp_path / "data", settings, before)
    person = host.start()
    agent = MailboxAgent(person.group("team"))
    request_id = agent.ask()
    await until(lambda: before[0].cards, "the first card")
    await person.state(request_id, "open")
    host.stop()

    after = [Chat("shown"), Chat("missed")]
    host = HostThread(tmp_path / "data", settings, after)
    person = host.start()
    try:
        await until(lambda: after[1].cards, "the card that was missed")
        person.answer(request_id, "1")
        await agent.receive(request_id)
        await person.closed(request_id)
    finally:
        host.stop()

    assert after[0].cards == []
    assert after[1].cards[0].repeated
    assert after[1].cards[0].short_id == before[0].cards[0].short_id
    assert [chat.settled[-1].ending.by for chat in after] == ["ana", "ana"]
