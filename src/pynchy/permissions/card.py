"""Permissions and approvals as questions: what a person reads, and what they can choose.

All of a call is in the text: a person allows what they have read. What could hide a part of it,
such as line breaks, long gaps and control characters, is made visible.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby, islice, takewhile
from typing import Any

from pynchy import wire
from pynchy.calls import BASH, ToolCall, WhyAsked
from pynchy.errors import InvalidReply
from pynchy.fences import leaves_open
from pynchy.model import AcceptsText, Option, OutcomeKind, PendingQuestion, Question
from pynchy.permissions.files import is_below, normal
from pynchy.rule import Because

APPROVE = "approve"
ALWAYS = "always"
SESSION = "session"
DENY = "deny"
# The values of the options that make a rule, and of all that say yes.
MAKES_RULE = frozenset({ALWAYS, SESSION})
GRANTS = MAKES_RULE | {APPROVE}

MAX_EDITED_BYTES = 200_000
_MCP_TOOL = "mcp__"
_MAX_NAME = 40
_MAX_ABOUT = 200
_PROGRAMS = {"claude": "Claude Code", "codex": "Codex", "opencode": "OpenCode"}
_TICKS = re.compile(r"`+")
# White space that begins no new line.
_BLANKS = "\t \u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_BLANK = f"[{_BLANKS}]"
_MANY_BLANK_LINES = re.compile(rf"\n(?:{_BLANK}*\n){{3,}}")
_LONG_GAP = re.compile(rf"(^[+-]?)?({_BLANK}{{16,}})", re.MULTILINE)
_KINDS = {" ": "blank", "\t": "tab"}
# Lines of code begin with so many blanks at most.
_DEEPEST = 48
# So much of a card may be indentation, beside as much as the text itself.
_INDENTATION = 2_000
# Of so many kinds of blanks in a row each is named.
_MAX_RUNS = 50
_DIGEST = 16
_COMMAND = re.compile(r"[^\n]{1,200}:\n\n(`{3,})sh\n(.+?)\n\1(?:\n|\Z)", re.DOTALL)
_DENIED = "The agent is told so, with the words that you add."


def permission_question(
    call: ToolCall, offered: str = "", in_session: str = "", because: Because | None = None
) -> Question:
    """Return what a person is asked.

    `offered` says what the rule of "always" would cover, `in_session` that for one session,
    `because` why no rule has answered, where there are rules.
    """
    asked_for = f"\n\nAsked because {_tell_because(because)}" if because else ""
    always = Option(
        "Allow always…", offered, value=ALWAYS, confirm=f"Rule: {offered}", needs_sight=True
    )
    session = Option(
        "Allow in this session…",
        in_session,
        value=SESSION,
        confirm=f"Rule: {in_session}",
        narrows=ALWAYS,
        needs_sight=True,
    )
    return Question(
        text=f"{describe_call(call)}{_tell_why(call)}{asked_for}",
        header="Permission",
        options=(
            Option("Allow once", value=APPROVE, needs_sight=True),
            *([always] if offered else []),
            Option("Deny", _DENIED, value=DENY),
            *([session] if offered and in_session else []),
        ),
        accepts_text=AcceptsText.NOTE,
        needs_word=True,
    )


def approval_question(action: str, details: str, preview: str, risk: str) -> Question:
    """Return what a person is asked when an agent wants something of its own approved."""
    parts = [_enclosed(action), _enclosed(details), _fenced("", preview) if preview else ""]
    parts.append(f"Risk, as the agent sees it: {risk}" if risk else "")
    return Question(
        text="\n\n".join(part for part in parts if part),
        header="Approval",
        options=(
            Option("Approve", value=APPROVE, needs_sight=True),
            Option("Deny", _DENIED, value=DENY),
        ),
        accepts_text=AcceptsText.NOTE,
        needs_word=True,
    )


def is_granted(pending: PendingQuestion) -> bool:
    """True if a person, or a rule of theirs, has said yes."""
    ending = pending.ending
    if ending is None or ending.outcome is not OutcomeKind.ANSWERED:
        return False
    [question], [answer] = pending.questions, ending.answers
    values = {option.value for option in question.options if option.label in answer.selected}
    return bool(values) and values <= GRANTS


def brief_of(text: str) -> str:
    """Return what a list says of the text of a permission: its command, or what is wanted."""
    if command := _COMMAND.match(text):
        return command[2]
    first = text.partition("\n")[0]
    return first.partition(" wants to ")[2].removesuffix(":").replace("`", "") or first


def allowed_call(pending: PendingQuestion) -> ToolCall | None:
    """Return the call that may be made, as whoever allowed it has edited it; None for no call."""
    if pending.call is None or pending.ending is None:
        return pending.call
    edited = wire.edited_input(pending.ending)
    return pending.call if edited is None else replace(pending.call, input=edited)


def check_edited(call: ToolCall | None, edited: object) -> Mapping[str, Any] | None:
    """Return what the call is to be made with; None if nothing was changed. Raise InvalidReply."""
    if call is None or not call.editable:
        raise InvalidReply("this cannot be edited: whoever asks takes a yes or a no and no more")
    if not isinstance(edited, dict) or not all(isinstance(name, str) for name in edited):
        raise InvalidReply("edited: give all of the call's input, as a JSON object")
    try:
        size = len(json.dumps(edited, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise InvalidReply("edited: there is something in it that is no JSON") from None
    if size > MAX_EDITED_BYTES or wire.depth_of(edited) > wire.MAX_DEPTH:
        raise InvalidReply(
            f"edited: at most {MAX_EDITED_BYTES:,} bytes and {wire.MAX_DEPTH} levels are taken"
        )
    if not call.tool.startswith(_MCP_TOOL):
        _check_fields(call, edited)
    return None if edited == call.input else edited


def _check_fields(call: ToolCall, edited: Mapping[str, Any]) -> None:
    """Raise InvalidReply for what the program's own tool does not know, or cannot do without."""
    known = {*call.input, *(["command"] if call.tool == BASH else [])}
    if unknown := [name for name in edited if name not in known]:
        names = ", ".join(sorted(known))
        raise InvalidReply(f"edited: {_brief(unknown[0])} is no field of this call: it has {names}")
    command = edited.get("command")
    if call.tool == BASH and not (isinstance(command, str) and command.strip()):
        raise InvalidReply("edited: a shell command needs a command")


def _brief(name: str) -> str:
    return repr(name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…")


def describe_call(call: ToolCall) -> str:
    """Return what would happen, in plain words, with all of the call's input."""
    given = dict(call.input)
    who = _name_of(call)
    where = f"\n\nFolder: {_inline(call.cwd)}" if call.cwd else ""
    tell = _TOOLS.get(call.tool, _tell_any)
    return f"{who} {tell(call.tool, given)}{_tell_rest(given)}{where}"


def _name_of(call: ToolCall) -> str:
    return _PROGRAMS.get(call.program) or f"The program {_inline(call.program)}"


def _tell_why(call: ToolCall) -> str:
    """Return why the program stopped, as it says itself; it stands below all of the call."""
    why, who = call.why or WhyAsked(), _name_of(call)
    lines = []
    if why.blocked_path:
        is_known = call.cwd.startswith("/") and why.blocked_path.startswith("/")
        leaves = is_known and not is_below(why.blocked_path, normal(call.cwd))
        what = "it leaves the folder" if leaves else "of this path"
        lines.append(f"{who} stopped because {what}: {_inline(why.blocked_path)}")
    if why.reason:
        lines.append(f"{who} says why it stopped: {_inline(why.reason)}")
    if why.suggestions:
        suggested = ", ".join(map(_inline, why.suggestions))
        lines.append(f"It would allow from then on (shown only, never used): {suggested}")
    return "".join(f"\n\n{line}" for line in lines)


def _tell_because(because: Because) -> str:
    about = because.about if len(because.about) <= _MAX_ABOUT else f"{because.about[:_MAX_ABOUT]}…"
    told = because.words.replace("`", "'")
    return f"{told}: {_inline(about)}" if about else told


def _tell_bash(_tool: str, given: dict[str, Any]) -> str:
    command = _taken(given, "command")
    said = _taken(given, "description")
    words = f"\n\nIn the agent's words: {_inline(said)}" if said else ""
    return f"wants to run a shell command:\n\n{_fenced('sh', command, mark=' ⏎')}{words}"


def _tell_edit(_tool: str, given: dict[str, Any]) -> str:
    path = _taken(given, "file_path")
    edits = _edits(given)
    diffs = [
        _diff(_exact(_taken(one, "old_string")), _exact(_taken(one, "new_string")))
        for one in [given, *edits]
    ]
    if any(edits):
        given["edits"] = edits
    shown = "\n".join(diff for diff in diffs if diff) or _exact(_taken(given, "diff"))
    what = f"the file {_inline(path)}" if path else "files"
    if not shown:
        return f"wants to change {what}, and does not show what changes"
    return f"wants to change {what}:\n\n{_fenced('diff', shown)}"


def _tell_write(_tool: str, given: dict[str, Any]) -> str:
    path, content = _taken(given, "file_path"), _taken(given, "content")
    return f"wants to write the file {_inline(path)}:\n\n{_fenced('', content)}"


def _tell_read(_tool: str, given: dict[str, Any]) -> str:
    return f"wants to read the file {_inline(_taken(given, 'file_path'))}"


def _tell_fetch(_tool: str, given: dict[str, Any]) -> str:
    return f"wants to fetch {_inline(_taken(given, 'url'))}"


def _tell_any(tool: str, given: dict[str, Any]) -> str:
    told = f"wants to use the tool {_inline(tool)}"
    if given:
        told += f":\n\n{_fenced('json', _pretty(given))}"
        given.clear()
    return told


_TOOLS: Mapping[str, Callable[[str, dict[str, Any]], str]] = {
    "Bash": _tell_bash,
    "Edit": _tell_edit,
    "MultiEdit": _tell_edit,
    "Write": _tell_write,
    "Read": _tell_read,
    "WebFetch": _tell_fetch,
}


def _tell_rest(given: Mapping[str, Any]) -> str:
    """Return what no sentence has told: a person allows all of it."""
    left = {name: value for name, value in given.items() if value is not None}
    return f"\n\nWith:\n\n{_fenced('json', _pretty(left))}" if left else ""


def _taken(given: dict[str, Any], name: str) -> str:
    """Take a text out of the input; what is no text stays, and is told with the rest."""
    value = given.get(name)
    return given.pop(name) if isinstance(value, str) else ""


def _edits(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Take several changes of one file out of the input, where that is what they are."""
    edits = given.get("edits")
    if not isinstance(edits, list) or not all(isinstance(edit, dict) for edit in edits):
        return []
    return [dict(edit) for edit in given.pop("edits")]


def _diff(old: str, new: str) -> str:
    """Return the change line by line, with the lines around it that stay."""
    before, after = (text.split("\n") if text else [] for text in (old, new))
    above = _count_same(before, after)
    below = _count_same(before[above:][::-1], after[above:][::-1])
    return "\n".join(
        [
            *(f" {line}" for line in before[:above]),
            *(f"-{line}" for line in before[above : len(before) - below]),
            *(f"+{line}" for line in after[above : len(after) - below]),
            *(f" {line}" for line in before[len(before) - below :]),
        ]
    )


def _count_same(lines: list[str], others: list[str]) -> int:
    """Return with how many lines both begin."""
    pairs = zip(lines, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _pretty(value: object) -> str:
    """Return JSON with a line for each item, unless most of that would be indentation."""
    plain = json.dumps(value, ensure_ascii=False)
    room = 2 * len(plain) + _INDENTATION
    lines: list[str] = []
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        lines.append(piece)
        room -= len(piece)
        if room < 0:
            return plain
    return "".join(lines)


def _enclosed(text: str) -> str:
    """Return what an agent wrote so that no code in it goes on in what follows."""
    return _fenced("", text) if leaves_open(text) else text


def _visible(text: str) -> str:
    """Return the text with what could push a part of it out of sight made visible."""
    shown = text.replace("\r", "⟨U+000D⟩")
    shown = _MANY_BLANK_LINES.sub(lambda m: f"\n⟨{m[0].count(chr(10)) - 1} empty lines⟩\n", shown)
    return _LONG_GAP.sub(_name_gap, shown)


def _exact(text: str) -> str:
    """Return the text made visible, so that two texts that differ also look different."""
    shown = text.replace("\r", "⟨U+000D⟩")
    return _LONG_GAP.sub(_name_exactly, _MANY_BLANK_LINES.sub(_name_lines, shown))


def _name_lines(found: re.Match[str]) -> str:
    alike = [(line, len([*same])) for line, same in groupby(found[0].split("\n")[1:-1])]
    return f"\n⟨{', '.join(_name_line(line, count) for line, count in alike)}⟩\n"


def _name_line(line: str, count: int) -> str:
    if not line:
        return f"{count} empty line{'s' if count > 1 else ''}"
    return f"{count} line{'s' if count > 1 else ''} of {_kinds(line)}"


def _name_exactly(gap: re.Match[str]) -> str:
    named = _name_gap(gap)
    return named if named == gap[0] else f"{gap[1] or ''} ⟨{_kinds(gap[2])}⟩ "


def _kinds(blanks: str) -> str:
    """Name the blanks, each kind with how many there are in a row; of many, by their digest."""
    runs = groupby(blanks)
    named = [_kind(one, len([*same])) for one, same in islice(runs, _MAX_RUNS)]
    if next(runs, None) is not None:
        digest = hashlib.sha256(blanks.encode("utf-8", "surrogatepass")).hexdigest()
        named.append(f"… {len(blanks)} blanks in all, SHA-256 {digest[:_DIGEST]}")
    return ", ".join(named)


def _kind(blank: str, count: int) -> str:
    if name := _KINDS.get(blank):
        return f"{count} {name}{'s' if count > 1 else ''}"
    return f"U+{ord(blank):04X}{f' x{count}' if count > 1 else ''}"


def _name_gap(gap: re.Match[str]) -> str:
    begin, blanks = gap[1], gap[2]
    if begin is not None and len(blanks) <= _DEEPEST:
        return gap[0]
    return f"{begin or ''} ⟨{len(blanks)} blanks⟩ "


def _name_ends(text: str) -> str:
    """Return the text with the blanks at its ends named."""
    inner = text.strip(_BLANKS)
    if not inner:
        return _name_blanks(len(text))
    begins = len(text) - len(text.lstrip(_BLANKS))
    return f"{_name_blanks(begins)}{inner}{_name_blanks(len(text) - len(inner) - begins)}"


def _name_blanks(count: int) -> str:
    return f"⟨{count} blank{'s' if count > 1 else ''}⟩" if count else ""


def _fenced(language: str, text: str, mark: str = "") -> str:
    """Return the text as code; `mark` is put where a line ends and another follows."""
    shown = _visible(text).replace("\n", f"{mark}\n")
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _inline(text: str) -> str:
    """Return the text as code on one line, whatever it holds; pages and chats trim its ends."""
    flat = _visible(_name_ends(text)).replace("\n", "⏎")
    longest = max((len(run) for run in _TICKS.findall(flat)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"
