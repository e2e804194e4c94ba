"""What rules say of a call.

Deny beats ask beats allow. A command line is allowed only if every simple command in it is, and
what cannot be understood is never allowed by a rule.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pynchy.calls import BASH, FILE_TOOLS, WEB_FETCH, ToolCall
from pynchy.permissions import files
from pynchy.permissions.commands import Doubt, Words, parse
from pynchy.permissions.files import NOTHING, Protected
from pynchy.permissions.patterns import (
    CommandPattern,
    Pattern,
    ToolPattern,
    host_of,
    read_pattern,
)
from pynchy.permissions.programs import acts_for_people
from pynchy.rule import Because, Effect, Rule

_Known = tuple[Rule, Pattern]

_SAYS = {
    Effect.ALLOW: "a rule of the group allows it",
    Effect.ASK: "a rule of the group wants it asked each time",
    Effect.DENY: "a rule of the group denies it",
}
_REFUSES = {Effect.ASK: "wants asked each time", Effect.DENY: "denies"}

NO_ALLOW_RULE = Because("the group has no rule that allows anything")


@dataclass(frozen=True, slots=True)
class Decided:
    """What the rules say, and why; `rules` are all that were needed to say it."""

    effect: Effect
    rules: tuple[Rule, ...]
    because: Because


def decide(
    rules: Iterable[Rule],
    call: ToolCall,
    session_id: str,
    now: datetime,
    protected: Protected = NOTHING,
) -> Decided | None:
    """Return what the rules say of the call; None if none speaks, which means: ask.

    Links are looked up on the disk, so this is not for the event loop.
    """
    decided = judge(rules, call, session_id, now, protected)
    return decided if decided.rules else None


def judge(
    rules: Iterable[Rule],
    call: ToolCall,
    session_id: str,
    now: datetime,
    protected: Protected = NOTHING,
) -> Decided:
    """Return what the rules say of the call: ask, by no rule and with the reason, if none speaks.

    Not for the event loop either.
    """
    known = [
        (rule, read_pattern(rule.pattern)) for rule in rules if rule.applies_to(session_id, now)
    ]
    by_effect = {e: [pair for pair in known if pair[0].effect is e] for e in Effect}
    if call.tool == BASH:
        return _judge_command(by_effect, call, protected)
    for effect in (Effect.DENY, Effect.ASK):
        for rule, pattern in by_effect[effect]:
            if not isinstance(pattern, CommandPattern) and pattern.hits(call):
                return _said_by(rule)
    for rule, pattern in by_effect[Effect.ALLOW]:
        if not isinstance(pattern, CommandPattern) and pattern.covers(call, protected):
            return _said_by(rule)
    return _ask(_why_uncovered(call, protected) if by_effect[Effect.ALLOW] else NO_ALLOW_RULE)


def describe(pattern: str, effect: Effect = Effect.ALLOW) -> str:
    """Say in plain words what the pattern covers in such a rule. Raise PatternProblem."""
    read = read_pattern(pattern)
    if isinstance(read, CommandPattern):
        return read.describe(allows=effect is Effect.ALLOW)
    return read.describe()


def _said_by(rule: Rule) -> Decided:
    return Decided(rule.effect, (rule,), Because(_SAYS[rule.effect], rule.pattern))


def _ask(because: Because) -> Decided:
    return Decided(Effect.ASK, (), because)


def _judge_command(
    known: dict[Effect, list[_Known]], call: ToolCall, protected: Protected
) -> Decided:
    try:
        commands = parse(call.text("command") or "")
        doubt = _why_not_plain(call)
    except Doubt as exc:
        commands, doubt = exc.commands, Because(f"no rule can tell what it runs ({exc.reason})")
    for effect in (Effect.DENY, Effect.ASK):
        for rule, pattern in known[effect]:
            if _speaks_of(pattern, call, commands):
                return _said_by(rule)
    if doubt is not None:
        return _ask(doubt if known[Effect.ALLOW] else NO_ALLOW_RULE)
    for rule, pattern in known[Effect.DENY] + known[Effect.ASK]:
        # Its words with others between (git -C x push) or before (find -exec git push): a person
        # looks.
        if isinstance(pattern, CommandPattern) and any(map(pattern.may_hit, commands)):
            words = f"it may be what a rule of the group {_REFUSES[rule.effect]}"
            return Decided(Effect.ASK, (rule,), Because(words, rule.pattern))
    if not known[Effect.ALLOW]:
        return _ask(NO_ALLOW_RULE)
    if any(files.names_protected(words, call.cwd, protected) for words in commands):
        return _ask(Because("it names files of the host itself"))
    return _allow(known[Effect.ALLOW], commands, call.cwd)


def _speaks_of(pattern: Pattern, call: ToolCall, commands: Iterable[Words]) -> bool:
    if isinstance(pattern, CommandPattern):
        return not pattern.words or any(map(pattern.hits_command, commands))
    return pattern.hits(call)


def _allow(known: list[_Known], commands: tuple[Words, ...], cwd: str) -> Decided:
    """Return what allows every one of the commands, or why one is not allowed."""
    used: dict[str, Rule] = {}
    for words in commands:
        covering = (rule for rule, pattern in known if _covers(pattern, words, cwd))
        rule = next(covering, None)
        if rule is None:
            return _ask(_why_uncovered_command(known, words, cwd))
        used.setdefault(rule.id, rule)
    rules = tuple(used.values())
    named = ", ".join(rule.pattern for rule in rules)
    return Decided(Effect.ALLOW, rules, Because(_SAYS[Effect.ALLOW], named))


def _why_uncovered_command(known: list[_Known], words: Words, cwd: str) -> Because:
    """Say why no rule allows the command; of rules that begin so, why the first does not."""
    if acts_for_people(words):
        return Because("pynchy itself is allowed only by a rule for exactly that line")
    for _, pattern in known:
        if isinstance(pattern, CommandPattern) and (why := pattern.why_not(words, cwd)):
            return Because(why)
    return Because("no rule allows this command", shlex.join(words))


def _covers(pattern: Pattern, words: Words, cwd: str) -> bool:
    is_whole = isinstance(pattern, CommandPattern) and not pattern.further
    if acts_for_people(words) and not is_whole:
        return False
    if isinstance(pattern, CommandPattern):
        return pattern.covers_command(words, cwd)
    is_any = isinstance(pattern, ToolPattern) and pattern.name == BASH and not pattern.is_prefix
    return is_any and CommandPattern((), further=True).covers_command(words, cwd)


def _why_not_plain(call: ToolCall) -> Because | None:
    """Say what the call has that no rule looks at, if it has."""
    if call.is_plain():
        return None
    return Because("the call has fields that no rule looks at", ", ".join(call.odd_fields()))


def _why_uncovered(call: ToolCall, protected: Protected) -> Because:
    """Say why no rule allows a call that is no shell command."""
    if (odd := _why_not_plain(call)) is not None:
        return odd
    if call.tool == WEB_FETCH and host_of(call) is None:
        return Because("no rule can tell which host the address leads to")
    if call.tool in FILE_TOOLS:
        try:
            places = files.places_of(call)
        except files.UnclearFile:
            return Because("no rule can tell which file it is about")
        if not all(files.is_open(place, protected) for place in places):
            return Because("the file is a sensitive one, and no rule names it")
    return Because("no rule allows it")
