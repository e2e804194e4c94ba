"""What rules say of a call, and which rule a person is offered with "Allow always…".

Deny beats ask beats allow. A command line is allowed only if every simple command in it is, and
what cannot be understood is never allowed by a rule. The rule that is offered is a narrow one, or
none: it covers the very call that it is offered for, and no code that the agent may have changed
since.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from pynchy.calls import BASH, FILE_TOOLS, WEB_FETCH, ToolCall
from pynchy.permissions import files
from pynchy.permissions.commands import Doubt, Words, parse
from pynchy.permissions.files import NOTHING, Protected
from pynchy.permissions.guards import guards_of, why_refused
from pynchy.permissions.inner_words import acts_for_people, is_fed_to_a_program
from pynchy.permissions.judged_call import JudgedCall
from pynchy.permissions.links import TooManySteps
from pynchy.permissions.never_offered import is_never_offered, runs_a_file_of
from pynchy.permissions.offers import offered_length, why_not_offered
from pynchy.permissions.patterns import (
    MAX_PATTERN,
    CommandPattern,
    Pattern,
    PatternProblem,
    ToolPattern,
    as_text,
    read_pattern,
)
from pynchy.permissions.programs import names, other_spelling
from pynchy.rule import Because, Effect, Origin, Rule

_Known = tuple[Rule, Pattern]

_SAYS = {
    Effect.ALLOW: "a rule of the group allows it",
    Effect.ASK: "a rule of the group wants it asked each time",
    Effect.DENY: "a rule of the group denies it",
}
_REFUSES = {Effect.ASK: "wants asked each time", Effect.DENY: "denies"}

NO_ALLOW_RULE = Because("the group has no rule that allows anything")
# Names that are given on a machine or in a network, and by nobody in public.
_NEARBY = names(
    "localhost localdomain local internal intranet private corp home lan arpa test invalid"
)
# What they do is the same in every folder; others read settings, or code, of the one they are in.
_FOLDERLESS = names("docker podman kubectl pip pip3 systemctl gh")


@dataclass(frozen=True, slots=True)
class Decided:
    """What the rules say, and why; `rules` are all that were needed to say it."""

    effect: Effect
    rules: tuple[Rule, ...]
    because: Because

    @classmethod
    def to_ask(cls, because: Because) -> Self:
        """Return that no rule speaks, and so a person is asked."""
        return cls(Effect.ASK, (), because)


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
    known = [(rule, _pattern_of(rule)) for rule in rules if rule.applies_to(session_id, now)]
    if not known:
        return Decided.to_ask(NO_ALLOW_RULE)
    by_effect = {e: [pair for pair in known if pair[0].effect is e] for e in Effect}
    judged = JudgedCall(call, protected)
    if call.tool == BASH:
        return _judge_command(by_effect, judged)
    for effect in (Effect.DENY, Effect.ASK):
        for rule, pattern in by_effect[effect]:
            if not isinstance(pattern, CommandPattern) and pattern.hits(judged):
                return _said_by(rule)
    for rule, pattern in by_effect[Effect.ALLOW]:
        if not isinstance(pattern, CommandPattern) and pattern.covers(judged):
            return _said_by(rule)
    return Decided.to_ask(_why_uncovered(judged) if by_effect[Effect.ALLOW] else NO_ALLOW_RULE)


def _pattern_of(rule: Rule) -> Pattern:
    """Return what the rule covers: a `*` in the settings is a person's own, and wider."""
    return _read_as(rule.pattern, rule.origin)


def _read_as(text: str, origin: Origin) -> Pattern:
    pattern = read_pattern(text)
    if isinstance(pattern, CommandPattern) and origin is Origin.CARD:
        return replace(pattern, offered=True)
    return pattern


def describe(pattern: str, effect: Effect = Effect.ALLOW, origin: Origin = Origin.SETTINGS) -> str:
    """Say in plain words what the pattern covers in such a rule. Raise PatternProblem."""
    read = _read_as(pattern, origin)
    if isinstance(read, CommandPattern):
        return read.describe(allows=effect is Effect.ALLOW)
    return read.describe()


def _said_by(rule: Rule) -> Decided:
    return Decided(rule.effect, (rule,), Because(_SAYS[rule.effect], rule.pattern))


def _judge_command(known: dict[Effect, list[_Known]], judged: JudgedCall) -> Decided:
    call = judged.call
    try:
        commands = parse(call.text("command") or "")
        doubt = _why_not_plain(judged)
    except Doubt as exc:
        commands, doubt = exc.commands, Because(f"no rule can tell what it runs ({exc.reason})")
    spelled = {*commands, *map(other_spelling, commands)}
    for effect in (Effect.DENY, Effect.ASK):
        for rule, pattern in known[effect]:
            if _speaks_of(pattern, judged, spelled):
                return _said_by(rule)
    if doubt is not None:
        return Decided.to_ask(doubt if known[Effect.ALLOW] else NO_ALLOW_RULE)
    is_fed = is_fed_to_a_program(commands)
    for rule, pattern in known[Effect.DENY] + known[Effect.ASK]:
        # Its words with others between (git -C x push) or before (find -exec git push): a person
        # looks.
        if isinstance(pattern, CommandPattern) and any(
            pattern.may_hit(words, is_fed=is_fed) for words in spelled
        ):
            words = f"it may be what a rule of the group {_REFUSES[rule.effect]}"
            return Decided(Effect.ASK, (rule,), Because(words, rule.pattern))
    if not known[Effect.ALLOW]:
        return Decided.to_ask(NO_ALLOW_RULE)
    if why := judged.why_off_limits(commands):
        return Decided.to_ask(Because(why))
    return _allow(known[Effect.ALLOW], commands, call.cwd)


def _speaks_of(pattern: Pattern, call: JudgedCall, commands: Iterable[Words]) -> bool:
    if isinstance(pattern, CommandPattern):
        return not pattern.words or any(map(pattern.hits_command, commands))
    return pattern.hits(call)


def _allow(known: list[_Known], commands: tuple[Words, ...], cwd: str) -> Decided:
    """Return what allows every one of the commands, or why one is not allowed."""
    used: dict[str, Rule] = {}
    is_fed = is_fed_to_a_program(commands)
    for words in commands:
        acts = acts_for_people(words, is_fed=is_fed)
        able = _whole(known) if acts else known
        rule = next((rule for rule, pattern in able if _covers(pattern, words, cwd)), None)
        if rule is None:
            return Decided.to_ask(_why_uncovered_command(known, words, cwd, acts=acts))
        used.setdefault(rule.id, rule)
    rules = tuple(used.values())
    named = ", ".join(rule.pattern for rule in rules)
    return Decided(Effect.ALLOW, rules, Because(_SAYS[Effect.ALLOW], named))


def _why_uncovered_command(known: list[_Known], words: Words, cwd: str, *, acts: bool) -> Because:
    """Say why no rule allows the command; of rules that begin so, why the first does not."""
    if acts:
        return Because("pynchy itself is allowed only by a rule for exactly that line")
    for _, pattern in known:
        if isinstance(pattern, CommandPattern) and (why := pattern.why_not(words, cwd)):
            return Because(why)
    return Because("no rule allows this command", shlex.join(words))


def _whole(known: list[_Known]) -> list[_Known]:
    """Return those that are for one command line alone."""
    return [one for one in known if isinstance(one[1], CommandPattern) and not one[1].further]


def _covers(pattern: Pattern, words: Words, cwd: str) -> bool:
    if isinstance(pattern, CommandPattern):
        return pattern.covers_command(words, cwd)
    is_any = isinstance(pattern, ToolPattern) and pattern.name == BASH and not pattern.is_prefix
    return is_any and CommandPattern((), further=True).covers_command(words, cwd)


def _why_not_plain(judged: JudgedCall) -> Because | None:
    """Say what the call has that no rule looks at, if it has."""
    if judged.is_plain:
        return None
    odd = ", ".join(judged.call.odd_fields())
    return Because("the call has fields that no rule looks at", odd)


def _why_uncovered(call: JudgedCall) -> Because:
    """Say why no rule allows a call that is no shell command."""
    if call.tool in FILE_TOOLS and call.names_too_much:
        return Because(str(TooManySteps()))
    if (odd := _why_not_plain(call)) is not None:
        return odd
    if call.tool == WEB_FETCH and call.host is None:
        return Because("no rule can tell which host the address leads to")
    if call.tool in FILE_TOOLS:
        if not call.places:
            return Because("no rule can tell which file it is about")
        if not all(files.is_open(place, call.protected) for place in call.places):
            return Because("the file is a sensitive one, and no rule names it")
    return Because("no rule allows it")


def derive(call: ToolCall, protected: Protected = NOTHING) -> str | None:
    """Return the narrow pattern to offer for calls like this one; None if there is none."""
    pattern = _derived(JudgedCall(call, protected))
    if pattern is None or len(pattern) > MAX_PATTERN or not pattern.isprintable():
        return None
    try:
        read_pattern(pattern)
    except PatternProblem:
        return None
    return pattern


def _derived(call: JudgedCall) -> str | None:
    if not call.is_plain:
        return None  # the rule would not cover this very call
    if call.tool == BASH:
        return _derived_command(call)
    if call.tool in FILE_TOOLS:
        return _derived_file(call)
    if call.tool == WEB_FETCH:
        return f"{WEB_FETCH}(domain:{call.host})" if _is_public(call.host or "") else None
    return call.tool if _is_one_mcp_tool(call.tool) else None


def _is_public(host: str) -> bool:
    """True unless it is this machine, one nearby or a number: more than a page may answer there."""
    _, dot, last = host.rpartition(".")
    is_number = last[:1].isdigit()  # also 0x7f
    return bool(dot) and not is_number and last not in _NEARBY


def _is_one_mcp_tool(tool: str) -> bool:
    """True if the name as a pattern means that tool; the name of a server means all of its."""
    try:
        return tool.startswith("mcp__") and read_pattern(tool) == ToolPattern(tool)
    except PatternProblem:
        return False


def _derived_command(call: JudgedCall) -> str | None:
    try:
        commands = parse(call.call.command() or "")
    except Doubt:
        return None
    if call.why_off_limits(commands):
        return None  # the same
    patterns = {_offered_pattern(words, call.call.cwd) for words in commands}
    return patterns.pop() if len(patterns) == 1 else None


def _offered_pattern(words: Words, cwd: str) -> str | None:
    found = None if acts_for_people(words) else _offered(words, cwd)
    if found is None:
        return None
    known, further = found
    if not _needs_folder(known, further=further):
        return as_text(known, further=further)
    folder = files.normal(cwd) if cwd.startswith("/") else "/"
    # What cannot be written as a folder makes no pattern, which `derive` notices.
    return None if folder == "/" else as_text(known, further=further, folder=folder)


def _derived_file(call: JudgedCall) -> str | None:
    if len(call.places) != 1 or not files.is_open(call.places[0], call.protected):
        return None
    path = call.places[0].path
    return f"{call.tool}({path})" if files.is_literal(path) else None


def _offered(words: Sequence[str], folder: str) -> tuple[tuple[str, ...], bool] | None:
    """Return the words of the rule to offer, and whether any others may follow; None for none."""
    if is_never_offered(words) or runs_a_file_of(words, folder):
        return None
    known = offered_length(words)
    if known and why_refused(words, known) is not None:
        return None
    if known and why_not_offered(words, known) is None:
        return tuple(words[:known]), True
    optional = [guard for guard in guards_of(words[0]) if not guard.everything]
    if any(guard.refuses(words, 1, whole=True) for guard in optional):
        return None
    return tuple(words), False


def _needs_folder(words: Sequence[str], *, further: bool) -> bool:
    """True if a rule for the command is good for the folder alone that it was made in."""
    return not further or words[0] not in _FOLDERLESS
