"""The rules that there are: kept, counted, revoked, and of no use without their file."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import DEADLINE_SECONDS

from pynchy.calls import ToolCall
from pynchy.channels.loading import load_settings
from pynchy.config import Settings
from pynchy.errors import ConfigError, RuleRefused, UnknownRule
from pynchy.events import Event, EventKind
from pynchy.model import GroupName, SessionId
from pynchy.permissions.patterns import read_pattern
from pynchy.permissions.rulebook import MAX_RULES, RuleBook
from pynchy.permissions.rules import Decided, judge
from pynchy.rule import Effect, Origin, Rule
from pynchy.testing import FakeClock

STATUS = ToolCall("claude", "Bash", {"command": "git status"}, "/srv/app")
PUSH = ToolCall("codex", "Bash", {"command": "git push"}, "/srv/app")


class Events:
    """Remembers what is published."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self.told: list[Event] = []

    def publish(self, event: Event) -> None:
        self.told.append(event)


class World:
    """A data folder, and rule books that are opened on it one after another."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.file = data / "rules.json"
        self.clock = FakeClock()
        self.events = Events()

    def book(self, **permissions: list[str]) -> RuleBook:
        groups = {"team": {"permissions": permissions}}
        settings = Settings.model_validate({"groups": groups})
        return RuleBook(settings, self.events, self.clock.now, self.data)

    def rule(self, pattern: str = "Bash(git status *)", **more: Any) -> Rule:
        now = self.clock.now()
        known = {"id": "r1", "effect": Effect.ALLOW, "group": GroupName("team"), "made_by": "ana"}
        dates = {"made_at": now, "expires_at": now + timedelta(days=30)}
        return Rule(pattern=pattern, **(known | dates | more))

    @property
    def kinds(self) -> list[EventKind]:
        return [event.kind for event in self.events.told]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def said(book: RuleBook, call: ToolCall = STATUS, group: str = "team") -> str | None:
    decided = await book.decide(call, group, "s1")
    return decided.effect.value if decided else None


async def test_a_rule_made_on_a_card_holds_after_a_restart_and_counts_its_uses(
    world: World,
) -> None:
    await world.book().add(world.rule())

    book = world.book()
    assert [await said(book), await said(book)] == ["allow", "allow"]

    [kept] = (await reopened(world)).rules()
    assert (kept.uses, kept.last_used, kept.made_by) == (2, world.clock.now(), "ana")


async def reopened(world: World, **permissions: list[str]) -> RuleBook:
    book = world.book(**permissions)
    await book.load()
    return book


async def test_a_rule_holds_for_its_group_alone(world: World) -> None:
    book = world.book()
    await book.add(world.rule())

    assert await said(book, group="other") is None
    assert book.rules("other") == []


async def test_rules_of_the_settings_hold_and_count_their_uses(world: World) -> None:
    book = world.book(allow=["Bash(git *)"], deny=["Bash(git push *)"])

    assert await said(book) == "allow"
    assert await said(book, PUSH) == "deny"

    again = await reopened(world, allow=["Bash(git *)"], deny=["Bash(git push *)"])
    assert {rule.pattern: rule.uses for rule in again.rules()} == {
        "Bash(git *)": 1,
        "Bash(git push *)": 1,
    }
    assert {rule.origin for rule in again.rules()} == {Origin.SETTINGS}


async def test_a_rule_that_left_the_settings_is_gone(world: World) -> None:
    assert await said(world.book(allow=["Bash(git *)"])) == "allow"

    book = await reopened(world)
    assert await said(book) is None
    assert book.rules() == []


async def test_a_revoked_rule_counts_no_more_at_once_and_after_a_restart(world: World) -> None:
    book = world.book()
    kept = await book.add(world.rule())

    revoked = await book.revoke(kept.short_id, "ben")

    assert revoked.id == "r1"
    assert await said(book) is None
    assert await said(await reopened(world)) is None
    assert book.rules() == []


async def test_a_rule_that_is_revoked_while_it_is_looked_at_allows_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = world.book()
    await book.add(world.rule())
    looked_at, go_on = threading.Event(), threading.Event()

    def slowly(*given: Any) -> Decided:
        decided = judge(*given)
        looked_at.set()
        go_on.wait(DEADLINE_SECONDS)
        return decided

    monkeypatch.setattr("pynchy.permissions.judging.judge", slowly)
    deciding = asyncio.create_task(said(book))
    await asyncio.to_thread(looked_at.wait, DEADLINE_SECONDS)

    await book.revoke("r1", "ben")
    go_on.set()

    assert await deciding is None
    assert EventKind.RULE_USED not in world.kinds


async def test_a_request_that_is_handled_again_does_not_make_a_revoked_rule_anew(
    world: World,
) -> None:
    book = world.book()
    await book.add(world.rule())
    await book.revoke("r1", "ben")

    again = await reopened(world)
    await again.add(world.rule())

    assert await said(again) is None


async def test_adding_twice_makes_one_rule_and_one_event(world: World) -> None:
    book = world.book()
    first, second = await asyncio.gather(book.add(world.rule()), book.add(world.rule()))

    assert first == second
    assert len(book.rules()) == 1
    assert world.kinds == [EventKind.RULE_MADE]


async def test_every_rule_that_is_made_used_or_revoked_is_an_event(world: World) -> None:
    book = world.book()
    kept = await book.add(world.rule())
    await said(book)
    await book.revoke("r1", "ben")

    assert world.kinds == [EventKind.RULE_MADE, EventKind.RULE_USED, EventKind.RULE_REVOKED]
    made, used, revoked = world.events.told
    assert (made.by, made.request_id) == ("ana", "r1")
    assert used.by == f"rule {kept.short_id}"
    assert revoked.by == "ben"
    assert all(event.group == "team" for event in world.events.told)


async def test_the_event_of_a_use_says_nothing_of_the_command(world: World) -> None:
    book = world.book(allow=["Bash(git status *)"])
    secret = ToolCall("claude", "Bash", {"command": "git status hunter2"}, "/work")

    assert await said(book, secret) == "allow"

    assert "hunter2" not in repr(world.events.told)
    assert "hunter2" not in world.file.read_text()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(b"{"),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b'{"v": 2, "rules": []}'),
        lambda file: file.write_text(file.read_text().replace("Bash(", "Bash;(")),
        lambda file: file.write_text(file.read_text().replace('"allow"', '"perhaps"')),
        lambda file: (file.unlink(), file.symlink_to("elsewhere")),
        lambda file: (file.unlink(), file.mkdir()),
    ],
)
async def test_without_its_file_no_rule_allows_anything_and_the_file_is_left_alone(
    world: World, spoil: Callable[[Path], object]
) -> None:
    await world.book().add(world.rule())
    spoil(world.file)
    before = os.lstat(world.file)

    book = await reopened(world, allow=["Bash(git *)"], deny=["Bash(git push *)"])

    assert "rules.json" in (book.problem() or "")
    assert await said(book) is None
    assert await said(book, PUSH) == "deny"
    with pytest.raises(RuleRefused, match=r"rules\.json"):
        await book.add(world.rule(id="r2"))
    after = os.lstat(world.file)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


async def test_without_the_parser_of_commands_a_host_starts_and_everything_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.book().add(world.rule("Bash(git status --kept-without-parser)"))
    read_pattern.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)

    book = world.book()
    await book.load()

    assert "the parser of commands cannot be loaded" in (book.problem() or "")
    assert await said(book) is None
    assert await book.offer(STATUS, "team") is None


async def test_a_file_that_was_fixed_counts_without_a_restart(world: World) -> None:
    await world.book().add(world.rule())
    good = world.file.read_bytes()
    world.file.write_bytes(good[:-5])
    book = await reopened(world)
    assert await said(book) is None

    world.file.write_bytes(good)

    assert await said(book) == "allow"
    assert book.problem() is None


async def test_a_use_that_cannot_be_written_allows_nothing(world: World) -> None:
    book = world.book(allow=["Bash(git *)"], deny=["Bash(git push *)"])
    await book.load()
    away = world.data.rename(world.data.with_name("away"))

    assert await said(book) is None
    assert world.kinds == []
    assert await said(book, PUSH) == "deny"
    assert "cannot be written" in (book.problem() or "")

    away.rename(world.data)
    assert await said(book) == "allow"
    assert book.problem() is None


async def test_a_problem_that_has_passed_is_told_no_more_though_no_rule_was_used_since(
    world: World,
) -> None:
    book = world.book(allow=["Bash(git *)"])
    await book.load()
    away = world.data.rename(world.data.with_name("away"))
    assert await said(book) is None
    assert "cannot be written" in (await book.look() or "")

    away.rename(world.data)

    assert await book.look() is None
    assert book.problem() is None


async def test_a_damaged_file_is_left_alone_by_who_looks(world: World) -> None:
    await world.book().add(world.rule())
    damaged = world.file.read_bytes()[:-5]
    world.file.write_bytes(damaged)
    book = await reopened(world)

    assert "damaged" in (await book.look() or "")
    assert world.file.read_bytes() == damaged


async def test_a_use_that_is_not_in_the_event_log_allows_nothing(world: World) -> None:
    book = world.book(allow=["Bash(git *)"])
    world.events.problem = "the event log cannot be written"

    assert await said(book) is None


async def test_whatever_fails_while_a_rule_is_looked_for_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = world.book(allow=["Bash"])

    def broken(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("pynchy.permissions.judging.judge", broken)

    assert await said(book) is None


async def test_a_cancelled_change_leaves_memory_and_disk_the_same(world: World) -> None:
    book = world.book()
    await book.load()
    adding = asyncio.create_task(book.add(world.rule()))
    await asyncio.sleep(0)
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding

    await book.add(world.rule(id="r2", pattern="Bash(git log *)"))

    assert book.rules() == (await reopened(world)).rules()


async def test_expired_rules_are_dropped(world: World) -> None:
    book = world.book()
    await book.add(world.rule())
    world.clock.move(timedelta(days=31))

    assert await said(book) is None
    assert book.rules() == []
    await book.add(world.rule(id="r2"))
    assert [rule["id"] for rule in json.loads(world.file.read_text())["rules"]] == ["r2"]


async def test_a_rule_of_a_session_lasts_thirty_days_at_most(world: World) -> None:
    book = world.book()
    now = world.clock.now()
    kept = await book.add(world.rule(session_id=SessionId("s1"), expires_at=None))

    assert kept.expires_at == now + timedelta(days=30)
    assert await said(book) == "allow"
    assert await book.decide(STATUS, "team", "s2") is None


async def test_a_group_has_so_many_rules_and_no_more(world: World) -> None:
    book = world.book()
    await book.load()
    many = [world.rule(id=f"r{n}", pattern=f"Bash(tool {n})") for n in range(MAX_RULES)]
    book._write(many)  # noqa: SLF001 - one write instead of hundreds

    with pytest.raises(RuleRefused, match="revoke some"):
        await book.add(world.rule(id="more"))
    await book.add(world.rule(id="more", group=GroupName("other")))


@pytest.mark.parametrize("pattern", ["Bash(sudo *)", "Bash(python *)", "*", "nonsense(", "Edit(~)"])
async def test_a_rule_that_could_allow_nothing_or_all_is_refused(
    world: World, pattern: str
) -> None:
    with pytest.raises(RuleRefused, match="the pattern"):
        await world.book().add(world.rule(pattern))


async def test_what_cannot_be_revoked_is_told(world: World) -> None:
    book = await reopened(world, allow=["Bash(git *)"])
    [own] = book.rules()

    with pytest.raises(UnknownRule, match="pynchy rules"):
        await book.revoke("zzzzzz", "ben")
    with pytest.raises(RuleRefused, match=r"groups\.team\.permissions"):
        await book.revoke(own.short_id, "ben")


async def test_the_same_request_id_in_two_groups_makes_two_rules(world: World) -> None:
    book = world.book()
    one = await book.add(world.rule())
    two = await book.add(replace(world.rule(), group=GroupName("other")))

    assert one.short_id != two.short_id
    with pytest.raises(RuleRefused, match="several"):
        await book.revoke("r1", "ben")
    assert (await book.revoke(two.short_id, "ben")).group == "other"


async def test_a_rule_whose_short_id_is_another_s_can_be_revoked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = world.book()
    one = await book.add(world.rule())
    await book.add(replace(world.rule(), id="r2", pattern="Bash(git log *)"))
    monkeypatch.setattr(type(one), "short_id", "abc234")

    with pytest.raises(RuleRefused, match="say which: team/r1 or team/r2"):
        await book.revoke("abc234", "ben")
    assert (await book.revoke("team/r2", "ben")).id == "r2"


@pytest.mark.parametrize("how", ["short id", "id"])
async def test_an_agent_chose_an_id_that_made_two_rules_hard_to_tell_apart(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    book = world.book()
    one = await book.add(world.rule())
    other = replace(world.rule(), id="r2", group=GroupName("other"), pattern="Bash(git log *)")
    if how == "id":
        other = replace(other, id=one.short_id)
    else:
        monkeypatch.setattr(type(one), "short_id", "abc234")

    with pytest.raises(RuleRefused, match="another rule has its short id"):
        await book.add(other)

    assert book.rules() == [one]
    assert await book.revoke(one.short_id, "ben") == one


async def test_a_group_whose_rules_cannot_be_read_is_not_removed(world: World) -> None:
    await world.book().add(world.rule())
    good = world.file.read_bytes()
    world.file.write_bytes(b"{")
    book, removed = world.book(), []

    with pytest.raises(RuleRefused, match="Fix the file"):
        await book.forget_group("team", "ben", lambda: bool(removed.append(1)))

    assert removed == []
    world.file.write_bytes(good)
    assert await book.forget_group("team", "ben")
    assert await said(await reopened(world)) is None


async def test_a_group_that_is_kept_after_all_keeps_its_rules(world: World) -> None:
    book = world.book()
    await book.add(world.rule())

    assert not await book.forget_group("team", "ben", lambda: False)

    assert await said(book) == "allow"
    assert await said(await reopened(world)) == "allow"
    assert EventKind.RULE_REVOKED not in world.kinds


async def test_no_rule_is_used_while_its_group_is_removed(world: World) -> None:
    book = world.book()
    await book.add(world.rule())
    asked: list[Future[str | None]] = []
    loop = asyncio.get_running_loop()

    def remove() -> bool:
        asked.append(asyncio.run_coroutine_threadsafe(said(book), loop))
        return True

    assert await book.forget_group("team", "ben", remove)
    assert await asyncio.wrap_future(asked[0]) is None


async def test_what_is_forgotten_with_a_group_stays_forgotten(world: World) -> None:
    book = world.book()
    await book.add(world.rule())
    await book.add(world.rule(group=GroupName("other")))

    assert await book.forget_group("team", "ben")
    assert await said(book) is None
    assert await said(await reopened(world)) is None
    assert await said(book, group="other") == "allow"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('allow = ["Bash(git status; ls)"]', "more than one command"),
        ('allow = ["Read", "Bash(sudo *)"]', "sudo"),
        ('allow = ["Bash(sed *)"]', "its arguments are a program"),
        ('allow = ["Bash(python -m pytest*)"]', "its arguments are a program"),
        ('allow = ["Bash(git -C *)"]', "an option before the subcommand"),
        ('allow = ["*"]', "would allow everything"),
        ('deny = ["git push"]', "TOOL(WHAT)"),
        ('ask = ["Edit(~/x)"]', "write the whole path"),
        ('allow = "Read"', "a list of patterns"),
        ('rule_ttl = "soon"', "a duration above 0"),
        ("allows = []", 'did you mean "allow"?'),
    ],
)
def test_a_pattern_in_the_settings_that_cannot_be_used_is_shown_with_what_is_right(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "pynchy.toml"
    file.write_text(f"[groups.team.permissions]\n{text}\n")

    with pytest.raises(ConfigError) as error:
        load_settings(file)

    said_of_it = " ".join(str(error.value).split())
    assert told in said_of_it
    assert text.partition(" ")[0] in said_of_it
    assert "pynchy.toml:2:" in said_of_it


def test_patterns_that_deny_may_name_what_no_rule_can_allow(tmp_path: Path) -> None:
    file = tmp_path / "pynchy.toml"
    file.write_text('[groups.team.permissions]\ndeny = ["Bash(sudo *)", "Bash(sed *)", "*"]\n')

    assert load_settings(file).group("team").permissions.rule_ttl == timedelta(days=30)
