"""The rules that there are: those of the settings, and those that people made on cards.

What allows must be written down first: where the file cannot be read, or a use cannot be written,
nothing is allowed by a rule. A file that cannot be understood is left as it is, and told of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

from pynchy.aio import FairSemaphore
from pynchy.calls import ToolCall
from pynchy.config import Settings
from pynchy.errors import RuleRefused, UnknownRule
from pynchy.events import Event, EventKind
from pynchy.model import GroupName, RequestId
from pynchy.permissions.files import Protected
from pynchy.permissions.judging import NOT_JUDGED, Judges
from pynchy.permissions.origins import RuleFile, UnreadableRules, check_pattern, settings_rules
from pynchy.permissions.patterns import PatternProblem
from pynchy.permissions.rules import Decided
from pynchy.rule import Because, Effect, Grant, Origin, Rule

log = logging.getLogger(__name__)

T = TypeVar("T")
_Key = tuple[GroupName, str]

MAX_RULES = 500
# A rule for one session, and the memory that one was revoked.
MAX_SESSION_RULE = timedelta(days=30)
_UNUSABLE = Because("no rule can allow anything just now (pynchy doctor says why)")
_CHANGED = Because("a rule that allowed it was revoked in this moment")


class EventLog(Protocol):
    """Where uses are written down; see `AuditLog`."""

    problem: str | None

    def publish(self, event: Event) -> None:
        """Write the event down and pass it on."""


class RuleBook:
    """All rules, and how often each was used."""

    def __init__(
        self,
        settings: Settings,
        events: EventLog,
        now: Callable[[], datetime],
        data: Path,
        settings_file: Path | None = None,
    ) -> None:
        self._file = RuleFile(data)
        self._events = events
        self._now = now
        # The host's own files are covered by no pattern that does not name them.
        self._judges = Judges(Protected.of_host(data, settings_file))
        self._settings = {_key(rule): rule for rule in settings_rules(settings, now())}
        # None while the file has not been read, or cannot be.
        self._kept: dict[_Key, Rule] | None = None
        self._grants: dict[_Key, Grant] = {}
        self._problem: str | None = None
        self._turns = FairSemaphore(1)
        # Held in threads: one goes on when whoever waits for it is cancelled.
        self._writing = Lock()

    async def load(self) -> None:
        """Read the file. What is wrong with it is told by `problem`."""
        if self._kept is None:
            await self._in_thread(lambda: None)

    def problem(self) -> str | None:
        """Say why no rule allows anything just now, in words for a person."""
        return self._problem

    async def look(self) -> str | None:
        """Find out whether what was wrong with the file still is, and say so as `problem` does."""
        if self._problem is not None:
            with suppress(OSError, RuleRefused):
                await self._in_thread(lambda: self._write(()) if self._problem else None)
        return self._problem

    def rules(self, group: str | None = None) -> list[Rule]:
        """Return the rules that count now, of that group or of all: those of the settings first."""
        now = self._now()
        listed = [
            rule
            for rule in self._all()
            if group in {None, rule.group} and rule.applies_to(rule.session_id, now)
        ]
        return sorted(listed, key=lambda rule: (rule.origin is Origin.CARD, rule.group))

    async def decide(
        self, call: ToolCall, group: str, session_id: str, request_id: RequestId | None = None
    ) -> Decided | None:
        """Return what the group's rules say of the call, and count that; None means: ask."""
        said = await self.weigh(call, group, session_id, request_id)
        return said if said.rules else None

    async def weigh(
        self, call: ToolCall, group: str, session_id: str, request_id: RequestId | None = None
    ) -> Decided:
        """Return what the group's rules say of the call and why, and count that; by none: ask."""
        try:
            found = await self._judge(call, group, session_id)
            if not found.rules:
                return self._if_usable(found)
            decided = await self._in_thread(lambda: self._count(found, session_id), group)
        except Exception:
            log.exception("rules.failed", extra={"group": group})
            return Decided.to_ask(NOT_JUDGED)  # whatever fails, a person is asked
        for rule in decided.rules:
            self._publish(EventKind.RULE_USED, rule, f"rule {rule.short_id}", request_id)
        is_written = decided.effect is not Effect.ALLOW or not self._events.problem
        return decided if is_written else Decided.to_ask(_UNUSABLE)

    async def foresee(self, call: ToolCall, group: str, session_id: str) -> Decided:
        """Return what the group's rules say of the call and why, and count nothing."""
        return self._if_usable(await self._judge(call, group, session_id))

    async def offer(self, call: ToolCall, group: str) -> str | None:
        """Return the pattern of the rule to offer for calls like this one, if there is one."""
        return await self._judges.offer(call, group)

    async def _judge(self, call: ToolCall, group: str, session_id: str) -> Decided:
        await self.load()
        # Not in turn: a call that takes long to judge must not hold up the others.
        return await self._judges.judge(
            call, group, session_id, lambda: self._of_group(group), self._now()
        )

    def _if_usable(self, said: Decided) -> Decided:
        if said.because == NOT_JUDGED:
            return said
        unwritten = said.effect is Effect.ALLOW and self._events.problem
        if (self._problem or unwritten) and said.effect is not Effect.DENY:
            return Decided.to_ask(_UNUSABLE)
        return said

    async def add(self, rule: Rule) -> Rule:
        """Keep the rule, and return it as it is kept; one of that id is returned as it is.

        Raise RuleRefused, or OSError if it cannot be written.
        """
        kept, is_new = await self._in_thread(lambda: self._add(rule))
        if is_new:
            self._publish(EventKind.RULE_MADE, kept, kept.made_by, RequestId(kept.id))
        return kept

    async def revoke(self, target: str, by: str = "") -> Rule:
        """Let the rule with that id, short or long, count no more. Return it as it was.

        Raise UnknownRule, RuleRefused for a rule of the settings, or OSError.
        """
        rule = await self._in_thread(lambda: self._revoke(target, by))
        self._publish(EventKind.RULE_REVOKED, rule, by)
        return rule

    async def forget_group(
        self, group: str, by: str, remove: Callable[[], bool] = lambda: True
    ) -> bool:
        """Revoke every rule that was made for the group, and `remove` it, which may say no.

        Then all is as it was, and it is False. Meanwhile no rule is used. Raise RuleRefused if the
        rules cannot be read: they would be back once they can.
        """
        made = await self._in_thread(lambda: self._forget(group, by, remove))
        for rule in made or ():
            self._publish(EventKind.RULE_REVOKED, rule, by)
        return made is not None

    async def add_grant(self, grant: Grant) -> None:
        """Keep the grant, unless there is one of that request. Raise RuleRefused, or OSError."""

        def add() -> None:
            if _grant_key(grant) not in self._grants:
                self._write(grants=[grant])

        await self._in_thread(add)

    async def use_grant(self, wanted: Grant, newest: Iterable[Grant] = ()) -> Grant | None:
        """Return the permission for the call of the session that is wanted: from now on it is used.

        It is one of those that are kept, or of the `newest`, which may not be yet. None means: ask.
        """
        try:
            return await self._in_thread(lambda: self._use_grant(wanted, newest))
        except (OSError, RuleRefused) as exc:
            log.warning("rules.use_not_written", extra={"why": str(exc)})
            return None

    def unspent_grants(self) -> list[Grant]:
        """Return those that a request has used whose yes may not be recorded yet."""
        return [grant for grant in self._grants.values() if grant.user]

    async def spend_grants(self, user: _Key) -> None:
        """Let the request not have again what it has used: its yes is recorded."""

        def spend() -> None:
            spent = [replace(g, is_spent=True) for g in self.unspent_grants() if g.user == user]
            # Before it is written: where that fails, the next write has it.
            self._grants |= {_grant_key(grant): grant for grant in spent}
            if spent:
                self._write()

        try:
            await self._in_thread(spend)
        except (OSError, RuleRefused) as exc:
            log.warning("rules.use_not_written", extra={"why": str(exc)})

    async def _in_thread(self, work: Callable[[], T], group: str = "") -> T:
        def alone() -> T:
            with self._writing:
                self._read()
                return work()

        async with self._turns.turn(GroupName(group)):
            return await asyncio.to_thread(alone)

    def _read(self) -> None:
        if self._kept is not None:
            return
        path = self._file.path
        try:
            found, grants = self._file.read()
        except UnreadableRules as exc:
            why = str(exc)
            if self._problem is None:
                log.warning("rules.unreadable", extra={"path": str(path), "why": why})
            self._problem = (
                f"{path} cannot be used ({why}), so that no rule allows anything: everything is "
                "asked. Fix the file, or move it away; it is left as it is until then"
            )
            return
        self._kept = {_key(rule): rule for rule in found}
        self._grants = {_grant_key(grant): grant for grant in grants}
        self._problem = None

    def _write(self, changed: Iterable[Rule] = (), grants: Iterable[Grant] = ()) -> None:
        """Write all down, with these as they are now. Raise OSError, or RuleRefused."""
        if self._kept is None:
            raise RuleRefused(self._problem or "the rules have not been read")
        now = self._now()
        kept = self._kept | {_key(rule): rule for rule in changed}
        kept = {key: rule for key, rule in kept.items() if self._is_needed(rule, now)}
        granted = self._grants | {_grant_key(grant): grant for grant in grants}
        granted = {key: grant for key, grant in granted.items() if grant.expires_at > now}
        try:
            self._file.write(kept.values(), granted.values())
        except OSError as exc:
            self._problem = (
                f"{self._file.path} cannot be written ({exc.strerror}), so that no "
                "rule allows anything: everything is asked"
            )
            raise
        self._kept, self._grants, self._problem = kept, granted, None

    def _is_needed(self, rule: Rule, now: datetime) -> bool:
        if rule.origin is Origin.SETTINGS:
            return _key(rule) in self._settings
        until = rule.expires_at
        if until is None and rule.revoked_at is not None:
            until = rule.revoked_at + MAX_SESSION_RULE
        return until is None or until > now

    def _all(self) -> list[Rule]:
        kept = self._kept or {}
        used = [_with_uses(rule, kept.get(key)) for key, rule in self._settings.items()]
        return [*used, *(rule for rule in kept.values() if rule.origin is Origin.CARD)]

    def _of_group(self, group: str) -> list[Rule]:
        return [rule for rule in self._all() if rule.group == group]

    def _count(self, decided: Decided, session_id: str) -> Decided:
        """Write down that the rules were used, if they still count; ask if what allows does not."""
        now, keys = self._now(), {_key(rule) for rule in decided.rules}
        current = [rule for rule in self._all() if _key(rule) in keys]
        used = [
            replace(rule, uses=rule.uses + 1, last_used=now)
            for rule in current
            if rule.applies_to(session_id, now)
        ]
        try:
            self._write(used)
        except (OSError, RuleRefused) as exc:
            log.warning("rules.use_not_written", extra={"why": str(exc)})
            return Decided.to_ask(_UNUSABLE) if decided.effect is Effect.ALLOW else decided
        if len(used) < len(keys):
            return Decided.to_ask(_CHANGED)
        return replace(decided, rules=tuple(used))

    def _use_grant(self, wanted: Grant, newest: Iterable[Grant]) -> Grant | None:
        now, user = self._now(), wanted.request_id
        for grant in ({_grant_key(grant): grant for grant in newest} | self._grants).values():
            # Agents choose the ids of requests: one that is forgotten may come again.
            is_free = grant.can_be_used_by(user) and grant.expires_at > now
            if is_free and grant.is_for(wanted):
                self._write(grants=[replace(grant, used_by=user)])
                return grant
        return None

    def _add(self, rule: Rule) -> tuple[Rule, bool]:
        if self._kept is None:
            raise RuleRefused(self._problem or "the rules have not been read")
        if known := self._kept.get(_key(rule)):
            return known, False
        try:
            check_pattern(rule.effect, rule.pattern)
        except PatternProblem as exc:
            raise RuleRefused(f"the pattern {exc}") from exc
        if sum(r.origin is Origin.CARD for r in self.rules(rule.group)) >= MAX_RULES:
            raise RuleRefused(
                f"group {rule.group} has {MAX_RULES} rules already: revoke some (pynchy rules)"
            )
        # An agent chooses the id, and could look for one that makes rules hard to tell apart.
        if any(rule.is_like(other) for other in self.rules()):
            raise RuleRefused("another rule has its short id: say it again at the next such call")
        if rule.session_id:
            last = rule.made_at + MAX_SESSION_RULE
            rule = replace(rule, expires_at=min(rule.expires_at or last, last))
        rule = replace(rule, origin=Origin.CARD, uses=0, last_used=None)
        self._write([rule])
        return rule, True

    def _revoke(self, target: str, by: str) -> Rule:
        named = target.removeprefix("#")
        fitting = [rule for rule in self.rules() if rule.is_called(named)]
        if not fitting:
            why = self._problem or "see which there are with: pynchy rules"
            raise UnknownRule(f"no rule has the id {target}; {why}")
        if len(fitting) > 1:
            ids = " or ".join(sorted({f"{rule.group}/{rule.id}" for rule in fitting}))
            raise RuleRefused(f"several rules have the id {target}; say which: {ids}")
        [rule] = fitting
        if rule.origin is Origin.SETTINGS:
            table = f"[groups.{rule.group}.permissions]"
            raise RuleRefused(
                f"rule {rule.short_id} is in the settings: take {rule.pattern} out of "
                f"{rule.effect} in {table}, and restart pynchy serve"
            )
        self._write([replace(rule, revoked_at=self._now(), revoked_by=by)])
        return rule

    def _forget(self, group: str, by: str, remove: Callable[[], bool]) -> list[Rule] | None:
        if self._kept is None:
            raise RuleRefused(self._problem or "the rules have not been read")
        made = [rule for rule in self.rules(group) if rule.origin is Origin.CARD]
        granted = [grant for grant in self._grants.values() if grant.group == group]
        if made or granted:
            now = self._now()
            revoked = [replace(rule, revoked_at=now, revoked_by=by) for rule in made]
            self._write(revoked, [replace(grant, expires_at=now) for grant in granted])
        removed = False
        try:
            removed = remove()
        finally:
            if not removed and (made or granted):
                self._write(made, granted)
        return made if removed else None

    def _publish(
        self, kind: EventKind, rule: Rule, by: str, request_id: RequestId | None = None
    ) -> None:
        self._events.publish(
            Event(
                kind,
                self._now(),
                rule.group,
                request_id,
                by=by or None,
                detail=f"{rule.effect} {rule.pattern} (rule {rule.short_id})",
                session_id=rule.session_id or None,
            )
        )


def _with_uses(rule: Rule, known: Rule | None) -> Rule:
    """Return the rule with how often it was used before."""
    return replace(rule, uses=known.uses, last_used=known.last_used) if known else rule


def _key(rule: Rule) -> _Key:
    return rule.group, rule.id


def _grant_key(grant: Grant) -> _Key:
    return grant.group, grant.request_id
