"""Approvals and permissions: who may say yes, and how many must."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.core import make_core, start
from tests.prove.world import Tasks
from tests.waiting import until

from pynchy import wire
from pynchy.calls import RuleScope
from pynchy.channels.base import LocalChannel, WebChannel
from pynchy.channels.numbered import noted as noted_in_numbers
from pynchy.channels.text import noted
from pynchy.config import ChannelSettings, Settings
from pynchy.core import Core
from pynchy.errors import AlreadyOver, InvalidReply, NotAllowed, ReplyRejected
from pynchy.inbox.views import card_view
from pynchy.model import Answer, GroupName, Kind, PendingQuestion, Reply, RequestId
from pynchy.permissions.card import approval_question
from pynchy.testing import FakeChannel, FakeClock, make_pending

APPROVAL = {"approval": {"action": "Deploy 2.1?", "risk": "high"}}
PERMISSION = {
    "permission": {"program": "claude", "tool": "Bash", "input": {"command": "ls"}, "cwd": "/srv"}
}
QUESTION = {"questions": [{"question": "Which?", "options": ["approve", "deny"]}]}
PAIR, ALONE, NARROWED = "pair", "alone", "narrowed"
_CHAT = {"channels": ["local", "chat"], "chat": {"chat": "room"}}
PEOPLE = {"allowed_users": {"chat": ["U1", "U2", "U3"]}}
SETTINGS = Settings.model_validate(
    {
        "channels": {"chat": ChannelSettings()},
        "groups": {
            PAIR: {**_CHAT, **PEOPLE, "approvals_needed": 2},
            ALONE: {**_CHAT, **PEOPLE},
            NARROWED: {**_CHAT, **PEOPLE, "approvers": {"chat": ["U1"]}},
        },
    }
)


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    (tmp_path / "ipc").mkdir()
    async with running(tmp_path) as core:
        yield core


class running:  # noqa: N801 - reads as what it is
    """A host's core on the folder, until the end of the block as by a crash."""

    def __init__(self, folder: Path) -> None:
        channels = {"local": LocalChannel(), "web": WebChannel(), "chat": FakeChannel("chat")}
        self._core = make_core(folder, FakeClock(), SETTINGS, channels)
        self._tasks = Tasks()

    async def __aenter__(self) -> Core:
        for group in (PAIR, ALONE, NARROWED):
            self._core.mailboxes.of(GroupName(group)).prepare(wire.host_json(1800))
        await start(self._core, self._tasks)
        return self._core

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.cancel()
        self._core.audit.close()


async def ask(core: Core, group: str, asked: dict[str, Any]) -> PendingQuestion:
    body = {"v": 1, "type": "ask_user:ask", "request_id": "q1", **asked}
    envelope = wire.read_envelope(json.dumps(body).encode(), "q1")
    await core.ask_handler.handle(GroupName(group), envelope)
    return core.ledger.get((GroupName(group), RequestId("q1")))


def reply(by: str, value: str, **where: Any) -> Reply:
    """Return what somebody says; with a `user_id` in the chat, else with the token."""
    if "user_id" in where:
        where = {"channel": "chat", "chat": "room", **where}
        word, colon, note = value.partition(":")
        values: tuple[str, ...] = (f"{word} {where.pop('short_id')}{colon}{note}",)
    else:
        values = (value,)
    return Reply("q1", by, where.pop("channel", "local"), values, **where)


async def say(core: Core, by: str, value: str, **where: Any) -> PendingQuestion:
    if "user_id" in where:
        [pending] = core.ledger.index.with_request_id(RequestId("q1"))
        where["short_id"] = pending.short_id
    return await core.answers.answer(reply(by, value, **where))


async def test_two_people_approve_and_the_second_ends_it(core: Core) -> None:
    asked = await ask(core, PAIR, APPROVAL)
    first = await say(core, "ana", "approve")
    second = await say(core, "ben", "approve")

    assert asked.approvals_needed == 2
    assert first.ending is None
    assert noted(first) == "Noted. ana approved; one more person is needed."
    assert second.ending is not None
    assert (second.ending.outcome, second.ending.by) == ("answered", "ana, ben")
    assert second.ending.answers == (Answer(("Approve",)),)


async def test_who_could_not_allow_it_here_was_not_told_how_to_allow_it(core: Core) -> None:
    long = {"approval": {"action": "Deploy 2.1?", "details": "x" * 9_000}}
    asked = await ask(core, ALONE, long)

    with pytest.raises(InvalidReply, match=f"allow it with pynchy approve {asked.short_id}"):
        await say(core, "ana", "approve", **ANA)


async def test_what_each_wrote_beside_their_approval_is_told_with_their_name(core: Core) -> None:
    await ask(core, PAIR, APPROVAL)
    await say(core, "ana", "approve: but slowly")
    ended = await say(core, "ben", "approve: after six")

    assert ended.ending is not None
    assert ended.ending.answers == (Answer(("Approve",), "ana: but slowly\nben: after six"),)


@pytest.mark.parametrize("first", ["approve", None])
async def test_one_who_denies_ends_it_at_once(core: Core, first: str | None) -> None:
    await ask(core, PAIR, APPROVAL)
    if first:
        await say(core, "ana", first)
    ended = await say(core, "ben", "deny: too risky")

    assert ended.ending is not None
    assert (ended.ending.outcome, ended.ending.by) == ("answered", "ben")
    assert ended.ending.answers == (Answer(("Deny",), "too risky"),)
    with pytest.raises(AlreadyOver):
        await say(core, "cy", "approve")


@pytest.mark.parametrize("name", ["Ana\u200b", "A\u00adna", " ANA ", "\uff21na", "An\u2060a\u200d"])
async def test_one_person_counted_as_two_by_a_name_that_looks_the_same(
    core: Core, name: str
) -> None:
    await ask(core, PAIR, APPROVAL)
    await say(core, "Ana", "approve")
    again = await say(core, name, "approve")

    assert again.ending is None
    assert len(again.drafts) == 1


async def test_who_has_approved_may_still_deny(core: Core) -> None:
    await ask(core, PAIR, APPROVAL)
    await say(core, "ana", "approve")
    ended = await say(core, "ana", "deny")

    assert ended.ending is not None
    assert ended.ending.answers[0].selected == ("Deny",)


ANA, BEN = {"user_id": "U1"}, {"user_id": "U2"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ana", {}), ("ana", {})),
        (("ana", {}), (" Ana ", {})),
        (("ana", {}), ("ana", {"channel": "web"})),
        (("Ana", ANA), ("Ana", ANA)),
        (("Ana", ANA), ("Anna, renamed", ANA)),
        (("Ana", ANA), ("ana", {})),
        (("ana", {"channel": "web"}), ("Ana", ANA)),
    ],
)
async def test_nobody_approves_twice(core: Core, first: Any, second: Any) -> None:
    await ask(core, PAIR, APPROVAL)
    await say(core, first[0], "approve", **first[1])
    again = await say(core, second[0], "approve", **second[1])

    assert again.ending is None
    assert len(again.drafts) == 1
    assert (await say(core, "cy", "approve", user_id="U3")).ending is not None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ana", {}), ("ben", {})),
        (("Alex", ANA), ("Alex", BEN)),
        (("Ana", ANA), ("ben", {"channel": "web"})),
    ],
)
async def test_two_people_are_told_apart(core: Core, first: Any, second: Any) -> None:
    await ask(core, PAIR, APPROVAL)
    await say(core, first[0], "approve", **first[1])

    assert (await say(core, second[0], "approve", **second[1])).ending is not None


@pytest.mark.parametrize(("group", "asked"), [(PAIR, PERMISSION), (ALONE, APPROVAL)])
async def test_one_yes_is_enough_elsewhere(core: Core, group: str, asked: Any) -> None:
    pending = await ask(core, group, asked)

    assert pending.approvals_needed == 1
    assert (await say(core, "ana", "approve")).ending is not None


async def test_a_question_of_the_same_group_needs_one_answer(core: Core) -> None:
    await ask(core, PAIR, QUESTION)

    assert (await say(core, "ana", "approve")).ending is not None


async def test_a_first_approval_survives_a_crash(tmp_path: Path) -> None:
    (tmp_path / "ipc").mkdir()
    async with running(tmp_path) as core:
        await ask(core, PAIR, APPROVAL)
        await say(core, "ana", "approve: slowly", user_id="U1")
    async with running(tmp_path) as core:
        again = await say(core, "ana", "approve: fast", user_id="U1")
        ended = await say(core, "ben", "approve", user_id="U2")

    assert [draft.answer.text for draft in again.drafts] == ["fast"]
    assert ended.ending is not None
    assert ended.ending.by == "ana, ben"


async def test_the_record_and_the_listing_know_who_approved(core: Core) -> None:
    pending = await ask(core, PAIR, APPROVAL)
    await say(core, "ana", "approve")
    record = wire.read_pending(wire.pending_json(core.ledger.get(pending.key)))

    assert record.drafts == core.ledger.get(pending.key).drafts
    assert (record.kind, record.approvals_needed) == (Kind.APPROVAL, 2)
    assert wire.pending_view(record)["drafts"] == [{"question": 0, "by": "ana"}]
    assert wire.pending_view(record)["approvals_needed"] == 2


@pytest.mark.parametrize("asked", [APPROVAL, PERMISSION])
async def test_approvers_alone_allow_and_deny_and_decline(core: Core, asked: Any) -> None:
    pending = await ask(core, NARROWED, asked)
    where = {"user_id": "U2", "short_id": pending.short_id}

    for value in ("approve", "deny"):
        with pytest.raises(NotAllowed, match="not on the list of people who may approve this"):
            await core.answers.answer(reply("ben", value, **where))
    with pytest.raises(NotAllowed, match="approve"):
        await core.answers.decline(reply("ben", "", **where))
    assert (await say(core, "ana", "approve", **ANA)).ending is not None


@pytest.mark.parametrize("value", ["always", "session"])
async def test_only_those_who_may_approve_make_rules(core: Core, value: str) -> None:
    await ask(core, NARROWED, {**PERMISSION, "session_id": "s1"})

    with pytest.raises(NotAllowed, match="not on the list of people who may approve this"):
        await say(core, "ben", value, **BEN)
    made_by_ben = core.rules.rules()
    ended = await say(core, "ana", value, **ANA)
    [rule] = await until(core.rules.rules)

    assert made_by_ben == []
    assert ended.ending is not None
    assert (rule.group, rule.made_by, rule.session_id) == (
        *(NARROWED, "ana"),
        "s1" if value == "session" else "",
    )


async def test_whoever_may_answer_answers_questions_where_there_are_approvers(core: Core) -> None:
    await ask(core, NARROWED, QUESTION)

    assert (await say(core, "ben", "approve", **BEN)).ending is not None


async def test_who_holds_the_token_may_approve_whoever_is_listed(core: Core) -> None:
    await ask(core, NARROWED, APPROVAL)

    assert (await say(core, "ben", "approve")).ending is not None


async def test_a_stranger_approves_nothing(core: Core) -> None:
    await ask(core, ALONE, APPROVAL)

    with pytest.raises(ReplyRejected, match="not on the list"):
        await say(core, "eve", "approve", user_id="U9")


async def test_how_long_a_rule_holds_is_said_only_of_a_choice_that_makes_one(core: Core) -> None:
    await ask(core, ALONE, PERMISSION)

    with pytest.raises(InvalidReply, match="how long a rule holds"):
        await core.answers.answer(replace(reply("ana", "approve"), rule_seconds=60.0))
    for scope in RuleScope:
        with pytest.raises(InvalidReply, match="how long a rule holds, and for whom"):
            await core.answers.answer(replace(reply("ana", "approve"), rule_scope=scope))


async def test_a_rule_for_the_session_is_not_made_one_for_the_group(core: Core) -> None:
    await ask(core, ALONE, PERMISSION | {"session_id": "one"})

    with pytest.raises(InvalidReply, match="a rule for the session"):
        await core.answers.answer(
            replace(reply("ana", "session"), rule_scope=RuleScope.GROUP, rule_seconds=60.0)
        )


def test_the_cards_say_who_came_first() -> None:
    question = approval_question("Deploy?", "", "", "")
    pending = make_pending(questions=(question,), kind=Kind.APPROVAL, approvals_needed=3)
    draft = {"question": 0, "answer": {"selected": ["Approve"]}, "by": "Ana\u202e", "channel": "x"}
    record = json.loads(wire.pending_json(pending)) | {"drafts": [draft]}
    pending = wire.read_pending(json.dumps(record).encode())

    assert noted_in_numbers(pending).startswith("Noted. Ana")
    assert "approved; 2 more people are needed. #" in noted_in_numbers(pending)
    assert "Next is question" not in noted_in_numbers(pending)
    [shown] = card_view(pending).questions
    assert "approved; 2 more people are needed" in str(shown.approved)
    assert "\u202e" not in str(shown.approved)
    assert shown.answered_by is None
