"""What a rule covers, as it is written: Bash(git status *), Edit(src/**), mcp__jira__*.

Each kind of pattern answers two questions. Does it surely cover this call? That is what allows.
May it mean this call? That is what denies or asks, and it forgives more.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pynchy.calls import BASH, EDITING, FILE_TOOLS, READ, WEB_FETCH
from pynchy.permissions import files
from pynchy.permissions.commands import Doubt, Words, words_of
from pynchy.permissions.guards import is_guarded, why_no_star, why_refused
from pynchy.permissions.inner_words import with_inner_words
from pynchy.permissions.judged_call import HOST, JudgedCall
from pynchy.permissions.offers import why_not_offered
from pynchy.permissions.programs import (
    WRAPPERS,
    base_name,
    known_as,
    renames_subcommands,
    wrapper_run_by,
)

MAX_PATTERN = 1_000
# A folder has no bracket: what ends in one has no folder, whatever is in the command.
_FORM = re.compile(r"([A-Za-z_][A-Za-z0-9_.:/-]{0,199})(?:\((.*)\)(?: in (/[^()]*))?)?", re.DOTALL)
_SERVER = re.compile(r"mcp__[A-Za-z0-9_.-]+\*")
_WHOLE_SERVER = re.compile(r"mcp__(?:(?!__)[A-Za-z0-9_.-])+")
_MCP_TOOL = re.compile(r"mcp__(.+?)__(.+)")
_DOMAIN = "domain:"
_MAX_HOST = 253
_EXAMPLES = (
    'such as "Bash(git status *)", "Edit(src/**)", "Read", "WebFetch(domain:docs.python.org)" or '
    '"mcp__jira__*"'
)
_VERBS = {READ: "reading", WEB_FETCH: "fetching", **dict.fromkeys(EDITING, "changing")}


class PatternProblem(ValueError):
    """The pattern cannot be used; the text says why, and what is right."""


@dataclass(frozen=True, slots=True)
class ToolPattern:
    """Every call of a tool, or of all tools whose names begin so."""

    name: str
    is_prefix: bool = False

    def covers(self, call: JudgedCall) -> bool:
        """True if it surely covers the call."""
        begins = self.is_prefix and bool(self.name) and call.tool.startswith(self.name)
        if (call.tool != self.name and not begins) or not call.is_plain:
            return False
        if call.tool in FILE_TOOLS:
            places = call.places
            return bool(places) and all(files.is_open(one, call.protected) for one in places)
        return call.tool != WEB_FETCH or call.host is not None

    def hits(self, call: JudgedCall) -> bool:
        """True if it may mean the call."""
        # What a program tells people of a call stands in quotes, and may name what is denied.
        told = call.tool.strip("“”")
        tools = {told, *(EDITING if told in EDITING else ())}
        return any(self._names(tool.casefold()) for tool in tools)

    def _names(self, tool: str) -> bool:
        name = self.name.casefold()
        return tool == name or (self.is_prefix and tool.startswith(name))

    def describe(self) -> str:
        """Say what it covers."""
        if self.is_prefix:
            return (
                f"every call of tools that begin with: {self.name}" if self.name else "everything"
            )
        if found := _MCP_TOOL.fullmatch(self.name):
            return f"every call of the tool {found[2]} of the MCP server {found[1]}"
        if self.name == BASH:
            return "shell commands of which it can be told what they run"
        return f"every call of {self.name}"


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One simple command: exactly these words, or these and any that follow.

    With `ending`, the last of the words may go on. With a `folder`, it is good there and below.
    `offered`: the host derived it for a card, so that of options it lets in known ones alone.
    """

    words: Words
    further: bool
    ending: bool = False
    folder: str = ""
    offered: bool = False

    def covers_command(self, words: Words, cwd: str) -> bool:
        """True if it surely covers the simple command, run in that folder."""
        return self.hits_command(words) and not self.why_not(words, cwd)

    def why_not(self, words: Words, cwd: str) -> str:
        """Say why it does not cover a simple command that is so; empty if it does, or is not so."""
        if not self.hits_command(words):
            return ""
        if self.folder and not files.is_below(cwd, self.folder):
            return "a rule allows it in another folder"
        if not self.further:
            return ""
        known = len(self.whole_words)
        if not cwd.startswith("/") and any(map(files.may_be_relative, words[known or 1 :])):
            return "a word of it may be a file, and the agent's folder is not known"
        why = why_refused(words, known) if known else _why_hidden(words)
        if why is None and self.offered:
            why = why_not_offered(words, known)
        return f"a rule for such commands leaves this one out ({why})" if why else ""

    @property
    def whole_words(self) -> Words:
        """Those of its words that are known to their end."""
        return self.words[:-1] if self.ending else self.words

    def hits_command(self, words: Words) -> bool:
        """True if the simple command is so."""
        known = len(self.words)
        begins = words[:known] == self.words or (self.ending and self._ends(words[:known]))
        return begins and (self.further or len(words) == known)

    def _ends(self, words: Words) -> bool:
        same = len(words) == len(self.words) and words[:-1] == self.words[:-1]
        return same and words[-1].startswith(self.words[-1])

    def may_hit(self, words: Words, *, is_fed: bool = False) -> bool:
        """True if its words are there in this order, with others before and between.

        They may also be in a text, unless nothing runs it. `is_fed`: another command may.
        """
        if not self.words:
            return True
        return any(map(self._are_among, {words, with_inner_words(words, is_fed=is_fed)}))

    def _are_among(self, words: Words) -> bool:
        programs = {*known_as(self.words[0])}
        starts = [at for at, word in enumerate(words) if programs & {*known_as(word)}]
        if "git" in programs and starts and renames_subcommands(words):
            return True
        return bool(starts) and self._follow(words[starts[0] + 1 :])

    def _follow(self, words: Words) -> bool:
        rest = iter(words)
        return all(
            any(word == known or (self.ending and word.startswith(known)) for word in rest)
            for known in self.words[1:]
        )

    def describe(self, *, allows: bool = True) -> str:
        """Say what it covers. Only what `allows` leaves something out."""
        where = f"; in the folder {self.folder}" if self.folder else ""
        return f"{self._describe_words(allows=allows)}{where}"

    def _describe_words(self, *, allows: bool) -> str:
        said = shlex.join(self.words)
        if not self.words:
            return ToolPattern(BASH).describe()
        if not self.further:
            return f"exactly this shell command: {said}"
        end = "…" if self.ending else ""
        return f"shell commands that begin with: {said}{end}{self._narrowed() if allows else ''}"

    def _narrowed(self) -> str:
        if self.offered:
            return " (with options that are known to be harmless)"
        is_narrowed = is_guarded(self.words[0])
        return " (but no options that run or write something else)" if is_narrowed else ""


def _why_hidden(words: Words) -> str | None:
    """Say why a rule for every command does not cover one: find -exec sh -c is as sh -c."""
    wrapper = wrapper_run_by(words)
    return f"it runs {wrapper}: {WRAPPERS[wrapper]}" if wrapper else None


@dataclass(frozen=True, slots=True)
class FilePattern:
    """Calls of one tool that are about files which a glob means."""

    tool: str
    glob: str

    def covers(self, call: JudgedCall) -> bool:
        """True if it surely covers the call."""
        if call.tool != self.tool or not call.is_plain or not call.places:
            return False
        return all(files.covers(self.glob, place, call.protected) for place in call.places)

    def hits(self, call: JudgedCall) -> bool:
        """True if it may mean the call: whoever may not edit may not write either."""
        if call.tool != self.tool and not {call.tool, self.tool} <= EDITING:
            return False
        return any(files.hits(self.glob, place) for place in call.all_places)

    def describe(self) -> str:
        """Say what it covers."""
        return f"{_VERBS[self.tool]} files: {self.glob} ({self.tool})"


@dataclass(frozen=True, slots=True)
class DomainPattern:
    """Pages of one host, or of all hosts below it."""

    host: str
    below: bool = False

    def covers(self, call: JudgedCall) -> bool:
        """True if it surely covers the call."""
        is_meant = call.tool == WEB_FETCH and call.is_plain
        return is_meant and call.host is not None and self._is(call.host)

    def hits(self, call: JudgedCall) -> bool:
        """True if it may mean the call."""
        return call.tool == WEB_FETCH and self._is(call.told_host)

    def _is(self, host: str) -> bool:
        return host.endswith(f".{self.host}") if self.below else host == self.host

    def describe(self) -> str:
        """Say what it covers."""
        return f"fetching pages of {'hosts below ' if self.below else ''}{self.host}"


# A command line is judged command by command; what the others cover is a whole call.
Pattern = ToolPattern | CommandPattern | FilePattern | DomainPattern


@lru_cache(maxsize=4096)
def read_pattern(text: str) -> Pattern:
    """Return what the text means. Raise PatternProblem."""
    if len(text) > MAX_PATTERN:
        raise PatternProblem(f"is longer than {MAX_PATTERN} characters")
    if text == "*":
        return ToolPattern("", is_prefix=True)
    if _SERVER.fullmatch(text):
        return ToolPattern(text[:-1], is_prefix=True)
    if _WHOLE_SERVER.fullmatch(text):
        return ToolPattern(f"{text}__", is_prefix=True)  # as Claude Code reads it
    form = _FORM.fullmatch(text)
    if form is None:
        is_open = "(" in text and not text.rstrip().endswith(")")
        why = "has a bracket that is not closed" if is_open else "cannot be read"
        raise PatternProblem(f"{why}; write TOOL or TOOL(WHAT), {_EXAMPLES}")
    tool, body, folder = form[1], form[2], form[3] or ""
    return ToolPattern(tool) if body is None else _with_brackets(tool, body, folder)


def _with_brackets(tool: str, body: str, folder: str) -> Pattern:
    if tool == BASH or folder:
        return _command_pattern(tool, body, folder)
    if tool in FILE_TOOLS:
        if why := files.why_no_glob(body):
            raise PatternProblem(f"has no usable path: {why}")
        return FilePattern(tool, body)
    if tool == WEB_FETCH:
        return _domain_pattern(body)
    with_brackets = (BASH, *sorted(FILE_TOOLS), WEB_FETCH)
    meant = [name for name in with_brackets if name.casefold() == tool.casefold()]
    advice = f"did you mean {meant[0]}?" if meant else f"write {tool} alone for all its calls"
    raise PatternProblem(
        f"has something in brackets, which only {', '.join(with_brackets)} have; {advice}"
    )


def check_refusing(pattern: Pattern) -> None:
    """Raise PatternProblem for a pattern that would be no obstacle to whoever it is for."""
    if isinstance(pattern, CommandPattern) and pattern.folder:
        raise PatternProblem(
            "names a folder, which only an allow rule can: an agent says itself which folder it is "
            "in; write it without"
        )


def check_allowing(pattern: Pattern) -> None:
    """Raise PatternProblem for a pattern that could never allow anything, or allows all."""
    if isinstance(pattern, ToolPattern) and not pattern.name:
        raise PatternProblem("would allow everything: name the tools")
    if not isinstance(pattern, CommandPattern) or not pattern.words:
        return
    if pattern.further and (why := why_no_star(pattern.whole_words)):
        name = base_name(pattern.words[0])
        raise PatternProblem(
            f"ends in *, but for {name} no rule can tell what that lets in ({why}); "
            "write the whole command without *, or nothing: then you are asked"
        )


def _command_pattern(tool: str, body: str, folder: str) -> CommandPattern:
    if folder and (tool != BASH or files.why_no_glob(folder) or not files.is_literal(folder)):
        raise PatternProblem('names a folder wrongly; write "Bash(npm test) in /srv/app"')
    text, further, ending = body.strip(" "), False, False
    if text in {"*", ":*"}:
        return CommandPattern((), further=True, folder=folder)
    for tail in (" *", ":*", "*"):
        if text.endswith(tail):
            text, further, ending = text.removesuffix(tail), True, tail == "*"
            break
    try:
        words = words_of(text)
    except Doubt as doubt:
        raise PatternProblem(
            f"has a command that cannot be matched: {doubt.reason}; write one plain command, "
            'such as "Bash(git status *)", with * only at its end'
        ) from None
    if ending and len(words) == 1:
        raise PatternProblem('has a * right at the program\'s name; write "Bash(program *)"')
    return CommandPattern(words, further, ending, folder)


def _domain_pattern(body: str) -> DomainPattern:
    name = body.removeprefix(_DOMAIN).casefold()
    host = name.removeprefix("*.")
    if not body.startswith(_DOMAIN) or not HOST.fullmatch(host) or len(host) > _MAX_HOST:
        raise PatternProblem('has no usable host; write "WebFetch(domain:docs.python.org)"')
    return DomainPattern(host, below=name.startswith("*."))


def as_text(words: Sequence[str], *, further: bool, folder: str = "") -> str:
    """Return the pattern of these words."""
    where = f" in {folder}" if folder else ""
    return f"{BASH}({shlex.join(words)}{' *' if further else ''}){where}"
