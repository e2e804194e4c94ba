"""What becomes of a yes: a rule, or a grant for one call of the session whose call had ended."""

import asyncio
import errno
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.core import make_core, start
from tests.prove.world import Tasks
from tests.waiting import until

from pynchy import wire
from pynchy.bridge.deliver import Delivery
from pynchy.bridge.lifecycle import CardSettled, Delivered, Resuming
from pynchy.channels.base import LocalChannel
from pynchy.config import Settings
from pynchy.core import Core
from pynchy.errors import AlreadyOver, DuplicateRequest, MalformedRequest
from pynchy.model import (
    DeliveryPath,
    GroupName,
    PendingQuestion,
    Question,
    Reply,
    RequestId,
    SessionId,
)
from pynchy.permissions.rulebook import RuleBook
from pynchy.safe_folder import Folder
from pynchy.sources.base import CODEX_TERMINAL, SourceQuestion
from pynchy.testing import FakeChannel, FakeClock

GROUP = GroupName("team")
PUSH = {"command": "git push"}


class Host:
    """A core on a folder, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.chat = FakeChannel("chat")

    async def start(self, **permissions: list[str]) -> None:
        group = {"channels": ["local", "chat"], "chat": {"chat": "room"}}
        settings = {
            "answer_ttl": "7d",
            "channels": {"chat": {}},
            "groups": {GROUP: {**group, "permissions": permissions}},
        }
        channels = {"local": LocalChannel(), "chat": self.chat}
        checked = Settings.model_validate(settings)
        self.core: Core = make_core(self.folder, self.clock, checked, channels)
        self._tasks = Tasks()
        self.core.mailboxes.of(GROUP).prepare(wire.host_json(1800))
        await start(self.core, self._tasks)

    async def kill(self) -> None:
        await self._tasks.cancel()
        self.core.audit.close()

    async def tell(self, kind: str, name: str, **fields: Any) -> None:
        body = {"v": 1, "type": f"ask_user:{kind}", "request_id": name, **fields}
        envelope = wire.read_envelope(json.dumps(body).encode(), name)
        await self.core.ask_handler.handle(GROUP, envelope)

    async def want(
        self, name: str, given: Any = None, session_id: str = "s1", tool: str = "Bash"
    ) -> PendingQuestion:
        """Return the question of a call that needs leave."""
        asked = {"program": "claude", "tool": tool, "input": given or PUSH, "cwd": "/srv"}
        await self.tell("ask", name, permission=asked, session_id=session_id)
        return await self.question(name)

    async def question(self, name: str) -> PendingQuestion:
        found = await self.core.ledger.find((GROUP, RequestId(name)))
        assert found is not None
        return found

    async def allow(self, name: str) -> None:
        await self.core.answers.answer(Reply(name, "Ana", "local", ("approve",)))

    async def say(self, name: str, value: str) -> None:
        await self.core.answers.answer(Reply(name, "Ana", "local", (value,)))

    async def settled(self, *names: str) -> None:
        """Return when each is shown no more."""
        for name in names:
            await until(lambda name=name: self._is_settled(name))

    def _is_settled(self, name: str) -> bool:
        pending = self.core.ledger.index.get((GROUP, RequestId(name)))
        return pending is None or pending.ending is not None

    def uses(self) -> list[int]:
        return [rule.uses for rule in self.core.rules.rules()]

    def used_by(self) -> list[str]:
        """Return for which requests a rule was used, as the event log has it."""
        lines = [
            json.loads(line)
            for file in sorted((self.folder / "audit").iterdir())
            for line in file.read_bytes().splitlines()
        ]
        return [line["id"] for line in lines if line["type"] == "rule_used"]

    async def is_asked(self, name: str, given: Any = None, session_id: str = "s1") -> bool:
        return (await self.want(name, given, session_id)).ending is None

    async def resumed(self, name: str) -> None:
        """Let the session be resumed with the answer."""
        key = (GROUP, RequestId(name))
        await self.core.ledger.apply(key, Resuming("c"))
        await self.core.ledger.apply(key, Delivered(DeliveryPath.LATE, self.clock.now()))

    async def closed(self, name: str) -> None:
        key = (GROUP, RequestId(name))
        await until(lambda: self.core.ledger.index.get(key) is None)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    (tmp_path / "ipc").mkdir()
    host = Host(tmp_path)
    await host.start()
    yield host
    await host.kill()


async def allowed_late(host: Host, given: Any = None, tool: str = "Bash") -> None:
    """A call ended without leave, which came later, and the session was told."""
    await host.want("first", given, tool=tool)
    await host.tell("cancel", "first")
    await host.allow("first")
    await host.resumed("first")
    await host.closed("first")


async def test_what_is_allowed_late_is_done_once_and_says_who_allowed_it_as_what(
    host: Host,
) -> None:
    await allowed_late(host)

    again = await host.want("second")

    assert again.ending is not None
    assert (again.ending.by, again.ending.channel) == ("Ana", "earlier-yes")
    assert again.ending.reason == "allowed before, as request first"
    assert await host.is_asked("third")


async def test_allow_once_is_not_used_twice_when_a_card_is_settled_later(host: Host) -> None:
    key = (GROUP, RequestId("first"))
    await host.want("first")
    await until(lambda: host.chat.shown)
    host.chat.down = True
    await host.tell("cancel", "first")
    await host.allow("first")
    await host.resumed("first")

    assert not await host.is_asked("second")
    await host.core.ledger.apply(key, CardSettled("chat", delivery="told"))
    assert await host.is_asked("third")


async def test_a_late_yes_is_still_known_after_a_restart_and_still_used_up(host: Host) -> None:
    await allowed_late(host)

    await host.kill()
    await host.start()
    assert not await host.is_asked("second")
    await host.kill()
    await host.start()
    assert await host.is_asked("third")


async def test_a_late_yes_holds_as_long_as_a_question_stays_open(host: Host) -> None:
    await allowed_late(host)

    host.clock.move(timedelta(days=7))

    assert await host.is_asked("second")


async def test_a_late_yes_is_not_renewed_by_the_call_that_used_it(host: Host) -> None:
    await allowed_late(host)
    await host.want("second")
    await host.tell("cancel", "second")
    await host.resumed("second")

    assert await host.is_asked("third")


async def test_a_session_that_is_faster_than_the_host_is_not_asked_again(host: Host) -> None:
    await host.want("first")
    await host.allow("first")
    await host.core.ledger.apply((GROUP, RequestId("first")), Resuming("c"))

    assert not await host.is_asked("second")
    await host.resumed("first")
    await host.closed("first")
    assert await host.is_asked("third")


async def test_a_yes_that_a_live_session_asks_for_later_is_used_by_its_next_call(
    host: Host,
) -> None:
    await host.want("first")
    await host.tell("cancel", "first")
    await host.allow("first")
    key = (GROUP, RequestId("first"))
    await host.core.ledger.apply(key, Delivered(DeliveryPath.LIVE, host.clock.now()))
    await host.closed("first")

    assert not await host.is_asked("second")
    assert await host.is_asked("third")


async def test_a_yes_that_the_call_itself_had_is_not_used_again(host: Host) -> None:
    key = (GROUP, RequestId("first"))
    await host.want("first")
    await until(lambda: host.chat.shown)
    host.chat.down = True
    await host.allow("first")
    await host.core.ledger.apply(key, Delivered(DeliveryPath.LIVE, host.clock.now()))
    await host.tell("cancel", "first")

    assert await host.is_asked("second")


@pytest.mark.parametrize(
    ("given", "session_id"),
    [
        ({"command": "git push -f"}, "s1"),
        ({"command": "git push", "run_in_background": True}, "s1"),
        ({"command": "git push", "sandbox": False}, "s1"),
        ({"command": "git push", "isolated": 0}, "s1"),
        (PUSH, "s2"),
        (PUSH, ""),
    ],
)
async def test_a_late_yes_is_for_that_call_of_that_session_alone(
    host: Host, given: Any, session_id: str
) -> None:
    await allowed_late(host)

    assert await host.is_asked("second", given, session_id)


@pytest.mark.parametrize("tool", ["mcp__ssh__exec", "“run it”", "Task", "NotebookEdit"])
async def test_a_late_yes_for_a_tool_with_a_command_was_good_for_its_other_fields_too(
    host: Host, tool: str
) -> None:
    staging = {"host": "staging", "command": "restart"}
    await allowed_late(host, staging, tool)

    other = await host.want("second", {**staging, "host": "production"}, tool=tool)
    same = await host.want("third", staging, tool=tool)

    assert other.ending is None
    assert same.ending is not None


async def test_a_late_yes_does_not_count_against_a_rule_that_denies(host: Host) -> None:
    await allowed_late(host)
    await host.kill()
    await host.start(deny=["Bash(git push *)"])

    again = await host.want("second")

    assert again.ending is not None
    assert again.ending.answers[0].selected == ("Deny",)


async def test_a_request_that_is_handled_again_after_a_crash_has_the_leave_that_it_had(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await allowed_late(host)

    async def crash(*_: object) -> None:
        raise OSError("the host is killed here")

    monkeypatch.setattr(host.core.store, "record", crash)
    with pytest.raises(OSError, match="killed here"):
        await host.want("second")
    await host.kill()
    await host.start()

    assert not await host.is_asked("second")
    assert await host.is_asked("third")


async def forget(host: Host, name: str) -> None:
    """Let nothing of a request be left but its grant, as after a while."""
    await host.core.ledger.apply(
        (GROUP, RequestId(name)), Delivered(DeliveryPath.LIVE, host.clock.now())
    )
    await host.closed(name)
    host.clock.move(timedelta(days=1))
    await host.core.ledger.history.prune(host.clock.now(), 0)
    (host.folder / "ipc" / GROUP / "responses" / f"{name}.json").unlink(missing_ok=True)
    assert await host.core.ledger.find((GROUP, RequestId(name))) is None


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_used_yes_was_good_again_for_the_same_id_once_history_was_pruned(
    host: Host, *, is_restarted: bool
) -> None:
    await allowed_late(host)
    assert not await host.is_asked("second")

    await forget(host, "second")
    if is_restarted:
        await host.kill()
        await host.start()

    assert await host.is_asked("second")


async def test_a_used_yes_stays_used_if_the_host_died_before_it_wrote_that_down(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await allowed_late(host)
    with monkeypatch.context() as patched:
        patched.setattr(RuleBook, "spend_grants", nothing)
        assert not await host.is_asked("second")
        await host.kill()

    await host.start()
    await forget(host, "second")

    assert await host.is_asked("second")


async def test_a_used_yes_stays_used_though_that_cannot_be_written_at_once(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await allowed_late(host)
    with monkeypatch.context() as patched:
        written: list[object] = []

        def full(folder: Folder, name: str, data: bytes) -> None:
            written.append(name)
            if len(written) > 1:
                raise OSError(errno.ENOSPC, "the disk is full")
            replace_file(folder, name, data)

        replace_file = Folder.replace
        patched.setattr("pynchy.permissions.origins.Folder.replace", full)
        assert not await host.is_asked("second")

    await forget(host, "second")

    assert await host.is_asked("second")


async def test_a_request_whose_yes_a_dying_host_did_not_write_has_it_from_the_next_one(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await allowed_late(host)
    with monkeypatch.context() as patched:
        patched.setattr(host.core.store, "end", forever)
        asking = asyncio.create_task(host.want("second"))
        await until(lambda: host.core.ledger.index.get((GROUP, RequestId("second"))))
        asking.cancel()
        await host.kill()

    await host.start()
    with suppress(DuplicateRequest):
        await host.want("second")

    again = await host.question("second")
    assert again.ending is not None
    assert again.ending.channel == "earlier-yes"
    assert await host.is_asked("third")


async def test_a_rule_that_denies_by_now_counts_for_the_yes_of_a_host_that_died(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await allowed_late(host)
    with monkeypatch.context() as patched:
        patched.setattr(host.core.store, "end", forever)
        asking = asyncio.create_task(host.want("second"))
        await until(lambda: host.core.ledger.index.get((GROUP, RequestId("second"))))
        asking.cancel()
        await host.kill()

    await host.start(deny=["Bash(git push *)"])
    with suppress(DuplicateRequest):
        await host.want("second")

    assert (await host.question("second")).ending is None


@pytest.mark.parametrize("kind", ["cancel", "withdraw", "park"])
async def test_an_agent_took_back_what_a_terminal_asks(host: Host, kind: str) -> None:
    asked = SourceQuestion(GROUP, RequestId("x1"), (Question("Go?"),), session_id=SessionId("s1"))
    await host.core.ask_handler.asked(CODEX_TERMINAL, asked)
    before = await host.question("x1")

    await host.tell(kind, "x1")

    after = await host.question("x1")
    assert (after.ending, after.parked, after.call_waits) == (None, False, before.call_waits)


async def test_an_agent_took_the_id_of_what_a_terminal_asks_next(host: Host) -> None:
    await host.want("x1")
    asked = SourceQuestion(GROUP, RequestId("x1"), (Question("Go?"),))

    with pytest.raises(MalformedRequest, match="another question has this id"):
        await host.core.ask_handler.asked(CODEX_TERMINAL, asked)

    assert (await host.question("x1")).source == ""


async def test_a_person_is_asked_where_no_rule_can_be_thought_of(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where it cannot be installed, or is of another ABI.
    monkeypatch.setitem(sys.modules, "tree_sitter", None)

    asked = await host.want("first", {"command": "git status --no-parser-yet"})

    assert asked.ending is None
    assert [option.value for option in asked.questions[0].options] == ["approve", "deny"]


@pytest.mark.parametrize("why", ["many", "disk"])
async def test_a_rule_that_could_not_be_made_is_told_on_the_card_and_as_an_event(
    host: Host, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    await host.want("first", {"command": "git status"})
    await until(lambda: host.chat.shown)
    if why == "many":
        monkeypatch.setattr("pynchy.permissions.rulebook.MAX_RULES", 0)
        told = "No rule was made: group team has 0 rules already: revoke some (pynchy rules)."
    else:
        (host.folder / "rules.json").mkdir()
        told = "No rule was made: "

    await host.core.answers.answer(Reply("first", "Ana", "local", ("always",)))
    [settled] = await until(lambda: host.chat.settled)

    assert settled.card.delivery.startswith(told)
    assert host.core.rules.rules() == []
    events = (host.folder / "audit").glob("*.jsonl")
    assert any('"type":"rule_not_made"' in file.read_text() for file in events)
    assert (await host.question("first")).rule_problem


STATUS = {"command": "git status"}


async def ask_four(host: Host) -> None:
    await host.want("first", STATUS)
    await host.want("similar", {"command": "git status --short"})
    await host.want("elsewhere", STATUS, "s2")
    await host.want("other", {"command": "git log > x"})


@pytest.mark.parametrize(
    ("value", "covered"), [("always", ["similar", "elsewhere"]), ("session", ["similar"])]
)
async def test_other_cards_stayed_open_though_a_rule_covered_them(
    host: Host, value: str, covered: list[str]
) -> None:
    await ask_four(host)

    await host.say("first", value)
    await host.settled(*covered)
    await until(lambda: len(host.used_by()) == len(covered))

    [rule] = host.core.rules.rules()
    for name in covered:
        ending = (await host.question(name)).ending
        assert ending is not None
        assert (ending.by, ending.channel) == (f"rule {rule.short_id}", "rule")
    for name in {"elsewhere", "other"} - set(covered):
        assert (await host.question(name)).ending is None
    assert rule.uses == len(covered)
    assert host.used_by() == covered


async def test_the_new_rule_is_named_where_another_one_was_needed_too(host: Host) -> None:
    await host.kill()
    await host.start(allow=["Bash(make)"])
    await host.want("first", STATUS)
    await host.want("similar", {"command": "make && git status"})

    await host.say("first", "always")
    await host.settled("similar")

    made = next(rule for rule in host.core.rules.rules() if rule.id == "first")
    ending = (await host.question("similar")).ending
    assert ending is not None
    assert ending.by == f"rule {made.short_id}"


async def test_a_rule_settles_the_other_cards_once_however_often_it_is_tried(host: Host) -> None:
    await ask_four(host)
    await host.say("first", "always")
    await host.settled("similar", "elsewhere")
    key = (GROUP, RequestId("first"))

    await asyncio.gather(*(host.core.delivery.settle_covered(key) for _ in range(5)))

    assert (host.uses(), host.used_by()) == ([2], ["similar", "elsewhere"])


async def test_a_host_that_died_before_it_settled_the_other_cards_does_so_later(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask_four(host)
    with monkeypatch.context() as patched:
        patched.setattr(Delivery, "settle_covered", forever)
        await host.say("first", "always")
        await until(host.uses)
        await host.kill()
    assert host.used_by() == []

    await host.start()
    await host.settled("similar", "elsewhere")

    assert (host.uses(), host.used_by()) == ([2], ["similar", "elsewhere"])
    assert (await host.question("other")).ending is None


async def test_a_rule_that_was_revoked_meanwhile_settles_no_other_card(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask_four(host)
    with monkeypatch.context() as patched:
        patched.setattr(Delivery, "settle_covered", forever)
        await host.say("first", "always")
        await until(host.uses)
        await host.core.rules.revoke("first")
        await host.kill()

    await host.start()
    await host.core.delivery.settle_covered((GROUP, RequestId("first")))

    assert (await host.question("similar")).ending is None
    assert host.used_by() == []


async def test_who_answers_another_card_at_the_same_time_wins_or_is_told(host: Host) -> None:
    await ask_four(host)

    await host.say("first", "always")
    with suppress(AlreadyOver):
        await host.say("similar", "deny")
    await host.settled("similar", "elsewhere")

    ending = (await host.question("similar")).ending
    assert ending is not None
    used = host.used_by()
    assert used.count("similar") == (1 if ending.channel == "rule" else 0)


async def test_a_call_that_was_judged_while_a_rule_was_made_is_answered_by_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await host.want("first", STATUS)
    judged, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(*_: object) -> str | None:
        judged.set()
        await go_on.wait()
        return None

    monkeypatch.setattr(RuleBook, "offer", slowly)
    asking = asyncio.create_task(host.want("similar", STATUS))
    await judged.wait()

    await host.say("first", "always")
    await until(host.uses)
    go_on.set()
    await asking
    await host.settled("similar")

    assert (host.uses(), host.used_by()) == ([1], ["similar"])


async def forever(*_: object) -> None:
    await asyncio.Event().wait()


async def nothing(*_: object) -> None:
    """Do nothing, as a host that has died does."""


async def asked_on_a_full_disk(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call has the leave of the first, and its yes cannot be written."""

    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    await allowed_late(host)
    with monkeypatch.context() as patched:
        patched.setattr(host.core.store, "end", full)
        assert await host.is_asked("second")


async def test_a_late_yes_that_could_not_be_written_was_lost(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked_on_a_full_disk(host, monkeypatch)

    with suppress(DuplicateRequest):
        await host.want("second")

    again = await host.question("second")
    assert again.ending is not None
    assert again.ending.channel == "earlier-yes"
    assert await host.is_asked("third")


async def test_a_call_whose_yes_could_not_be_written_is_shown(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked_on_a_full_disk(host, monkeypatch)

    await until(lambda: "second" in {sent.request_id for sent in host.chat.shown})


async def test_leave_that_a_person_was_faster_than_is_used_up(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked_on_a_full_disk(host, monkeypatch)
    await host.say("second", "deny")

    await forget(host, "second")

    assert await host.is_asked("second")
