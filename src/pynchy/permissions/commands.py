"""A shell command line as the simple commands that it runs, or a doubt.

tree-sitter says how the line is built. Whatever is not on the short list of what is understood here
is a doubt, and every word and gap is read once more by itself: a line that is returned runs these
programs with these arguments, and nothing else happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from pynchy.permissions.programs import (
    EVALUATORS,
    SHELLS,
    STATE_CHANGERS,
    WRAPPERS,
    base_name,
    wrapper_name,
)
from pynchy.unicode_safety import CONTROLS, HIDDEN, SURROGATES

if TYPE_CHECKING:
    from tree_sitter import Language, Node

Words = tuple[str, ...]

MAX_LENGTH = 5_000
# More of these take the parser longer than it may hold up others: of the first anywhere, of all but
# plain words outside of quotes, where each may be an error that it tries to repair.
_MARKS = re.compile(r"[|<({`$\[]")
_NO_MARKS = re.compile(
    r"""[A-Za-z0-9_@%+=:,./^~\ \t-]+ | \\. | '[^']*' | "(?:[^"\\$`]|\\.)*\"""", re.VERBOSE
)
_MAX_MARKS = 200
_MAX_COMMANDS = 50
_MAX_DEPTH = 3
# More are not looked for in a line that is asked about anyway: wrappers can be piled up.
_MAX_SURE = 200
# Stands for a word that only the shell could tell. No word of a pattern is equal to it.
UNKNOWN_WORD = "\0"

_STRUCTURE = frozenset({"program", "list", "pipeline", "redirected_statement"})
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_JOINTS = frozenset({";", "&&", "||", "|"})
# The one redirection that names no file.
_ERRORS_TO_OUTPUT = b"2>&1"
_REASONS = {
    "command_substitution": "it runs a command inside of another ($(…) or `…`)",
    "process_substitution": "it runs a command inside of another (<(…) or >(…))",
    "simple_expansion": "a word is only known to the shell ($…)",
    "expansion": "a word is only known to the shell (${…})",
    "arithmetic_expansion": "a word is only known to the shell ($((…)))",
    "file_redirect": "it redirects to or from a file",
    "heredoc_redirect": "it has a here-document",
    "herestring_redirect": "it has a here-string",
    "variable_assignment": "it sets a variable for a command",
    "variable_assignments": "it sets variables",
    "declaration_command": "it changes the shell's variables",
    "unset_command": "it changes the shell's variables",
    "function_definition": "it defines a function",
    "negated_command": "it negates a command (!)",
    "comment": "it has a comment",
    "&": "it runs something in the background",
    "|&": "it redirects errors into a pipe (|&)",
    "$": 'a word is quoted with $"…"',
    "ansi_c_string": "a word is quoted with $'…'",
    "brace_expression": "it has braces",
}
_PIECE = re.compile(
    r"""(?P<plain>[A-Za-z0-9_@%+=:,./^~-]+)
    | \\(?P<escaped>[\x21-\x7e\x20])
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\$`]|\\[^\n])*)\"""",
    re.VERBOSE,
)
_ODD_TILDE = re.compile(r"(?<![A-Za-z0-9_^~])~")
_ESCAPED = re.compile(r"\\([$`\"\\])")
_HISTORY = re.compile(r"![^\s\"=]")
_NAME = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*")
_UNSEEN = re.compile(f"[{CONTROLS}{HIDDEN}{SURROGATES}]")
_EVALUATED = re.compile(r"[\[$`]")
_BLANKS = re.compile(rb"[ \t]+")
_BLANKS_OR_NOTHING = re.compile(rb"[ \t]*")
_WHITE = re.compile(rb"[ \t\n]*")
_LINE_END = re.compile(rb"[ \t]*\n[ \t\n]*")
_WHY_NOT_PLAIN = {
    **dict.fromkeys("$`", "a word is only known to the shell"),
    **dict.fromkeys("*?[]", "a word stands for file names (*, ? or […])"),
    **dict.fromkeys("{}", "it has braces"),
    **dict.fromkeys("<>", "it redirects to or from a file"),
    "!": "it may repeat an earlier command (!)",
    "#": "it has a comment",
    "\\": "a line is continued with a backslash",
}


class Doubt(Exception):
    """What the line runs cannot be told for sure.

    `commands` are simple commands that surely are in it, with UNKNOWN_WORD where a word is not
    known.
    """

    def __init__(self, reason: str, commands: Sequence[Words] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.commands = tuple(commands)


def parse(command: str) -> tuple[Words, ...]:
    """Return the simple commands of the line, in their order. Raise Doubt."""
    return _parse(command, 0)


def words_of(command: str) -> Words:
    """Return the words of one simple command, whatever it runs. Raise Doubt."""
    found = _simple_commands(_tree(command), command.encode())
    if len(found) != 1:
        raise Doubt("it is more than one command")
    return found[0]


def _parse(command: str, depth: int) -> tuple[Words, ...]:
    root = _tree(command)
    try:
        found = _simple_commands(root, command.encode())
        _judge(found)
        _check_escapes(root)
    except Doubt as doubt:
        sure = islice(_sure_commands(root, depth), _MAX_SURE)
        raise Doubt(doubt.reason, list(sure)) from None
    return found


def _tree(command: str) -> Node:
    """Return the tree of a line that can be looked at. Raise Doubt."""
    if len(command) > MAX_LENGTH:
        raise Doubt(f"it is longer than {MAX_LENGTH} characters")
    if len(_MARKS.findall(command)) > _MAX_MARKS or _count_odd(command) > _MAX_MARKS:
        raise Doubt("it has too many special characters")
    if _UNSEEN.search(command):
        raise Doubt("it has hidden or control characters")
    from tree_sitter import Parser  # noqa: PLC0415 - a host without rules need not load it

    root = Parser(_language()).parse(command.encode()).root_node
    if root.has_error:
        raise Doubt("it cannot be parsed")
    return root


def _count_odd(command: str) -> int:
    """Return how many characters are neither of plain words nor quoted."""
    return len(_NO_MARKS.sub("", command))


@cache
def _language() -> Language:
    import tree_sitter_bash  # noqa: PLC0415 - the same
    from tree_sitter import Language  # noqa: PLC0415 - the same

    return Language(tree_sitter_bash.language())


class _Part(NamedTuple):
    """A command, what joins two, or the one redirection that is allowed."""

    node: Node
    is_command: bool
    is_joint: bool


def _simple_commands(root: Node, source: bytes) -> tuple[Words, ...]:
    parts = list(_parts(root))
    commands = [part.node for part in parts if part.is_command]
    if not commands:
        raise Doubt("there is no command in it")
    if len(commands) > _MAX_COMMANDS:
        raise Doubt(f"it has more than {_MAX_COMMANDS} commands")
    _check_gaps(parts, source)
    return tuple(tuple(_decode(text) for text in _word_texts(node)) for node in commands)


def _parts(root: Node) -> Iterator[_Part]:
    """Yield what the line is made of, in its order."""
    left = [root]
    while left:
        node = left.pop()
        if node.is_missing or node.is_error:
            raise Doubt("it cannot be parsed")
        if node.type in _STRUCTURE and node.is_named:
            left.extend(reversed(node.children))
        elif node.type == "file_redirect" and node.text == _ERRORS_TO_OUTPUT:
            yield _Part(node, is_command=False, is_joint=False)
        elif node.type == "command":
            yield _Part(node, is_command=True, is_joint=False)
        elif node.type in _JOINTS and not node.is_named:
            yield _Part(node, is_command=False, is_joint=True)
        else:
            raise _not_understood(node)


def _not_understood(node: Node) -> Doubt:
    return Doubt(_REASONS.get(node.type, f"it has what no rule can judge ({node.type[:30]})"))


def _check_gaps(parts: list[_Part], source: bytes) -> None:
    """Raise Doubt unless all between the parts is white, and parts commands where it must."""
    first, last = parts[0], parts[-1]
    if not first.is_command or (last.is_joint and last.node.type != ";"):
        raise Doubt("it begins or ends in an odd way")
    around = source[: first.node.start_byte] + source[last.node.end_byte :]
    if not _WHITE.fullmatch(around):
        raise Doubt("it begins or ends in an odd way")
    for one, two in pairwise(parts):
        gap = source[one.node.end_byte : two.node.start_byte]
        if not _gap_between(one, two).fullmatch(gap) or (one.is_joint and not two.is_command):
            raise Doubt("its commands are joined in an odd way")


def _gap_between(one: _Part, two: _Part) -> re.Pattern[bytes]:
    if one.is_joint:
        return _WHITE
    if two.is_joint:
        return _BLANKS_OR_NOTHING
    return _LINE_END if two.is_command else _BLANKS


def _word_texts(command: Node) -> list[str]:
    """Return the words of the command as they are written. Raise Doubt."""
    texts: list[str] = []
    end = -1
    for child in command.children:
        node = child
        if child.type == "command_name" and len(child.children) == 1:
            node = child.children[0]
        if node.type not in _WORDS or not node.is_named:
            raise _not_understood(node)
        source, start = command.text or b"", command.start_byte
        if end >= 0 and not _BLANKS.fullmatch(source[end - start : node.start_byte - start]):
            raise Doubt("a line is continued, or words are joined in an odd way")
        end = node.end_byte
        texts.append((node.text or b"").decode())
    return texts


def _decode(text: str) -> str:
    """Return the word that the shell makes of what is written. Raise Doubt."""
    word, at = "", 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise Doubt(_why_not_plain(text[at]))
        word += _meaning(piece)
        at = piece.end()
    if text.startswith("=") or any(_is_odd_tilde(text, piece) for piece in _PIECE.finditer(text)):
        raise Doubt("a word is only known to the shell (~ or =)")
    return word


def _meaning(piece: re.Match[str]) -> str:
    match piece.lastgroup:
        case "double":
            if _HISTORY.search(piece["double"]):
                raise Doubt(_WHY_NOT_PLAIN["!"])
            return _ESCAPED.sub(r"\1", piece["double"])
        case "single" if piece["single"].endswith("\\"):
            # Some shells, such as fish, let the string go on here.
            raise Doubt("a quoted word ends in a backslash")
        case kind:
            return piece[kind or 0]


def _check_escapes(root: Node) -> None:
    """Raise Doubt for an escaped letter: bash takes it for itself, fish may make a dash of it."""
    texts = (text for part in _parts(root) if part.is_command for text in _word_texts(part.node))
    for text in texts:
        if any((piece["escaped"] or "").isalnum() for piece in _PIECE.finditer(text)):
            raise Doubt("a letter or digit has a backslash before it")


def _is_odd_tilde(text: str, piece: re.Match[str]) -> bool:
    return piece.lastgroup == "plain" and bool(_ODD_TILDE.search(text, *piece.span()))


def _why_not_plain(character: str) -> str:
    if not character.isascii():
        return "it has letters outside of quotes that are not ASCII"
    return _WHY_NOT_PLAIN.get(character, "a word is written in an odd way")


def _judge(commands: Sequence[Words]) -> None:
    """Raise Doubt for what runs other commands, or changes what the following ones mean."""
    for place, words in enumerate(commands, start=1):
        name = base_name(words[0])
        if not _NAME.fullmatch(words[0]):
            raise Doubt("the name of a program is written in an odd way")
        if wrapper := wrapper_name(words[0]):
            raise Doubt(f"{name}: {WRAPPERS[wrapper]}")
        if name in STATE_CHANGERS or (name == "printf" and words[1:2] and words[1][:2] == "-v"):
            raise Doubt(f"{name} changes what other commands mean")
        if name in EVALUATORS and any(_EVALUATED.search(word) for word in words):
            raise Doubt(f"{name} may run a command inside of a word")
        if name == "cd" and place < len(commands):
            raise Doubt("cd changes the folder of the commands after it")


def _sure_commands(root: Node, depth: int) -> Iterator[Words]:
    """Yield every command of the tree, and those that wrappers run, as far as they are known."""
    left = [root]
    while left:
        node = left.pop()
        left.extend(reversed(node.children))
        if node.type == "command":
            words = tuple(_known_words(node))
            if words:
                yield words
                yield from _wrapped(words, depth)


def _known_words(command: Node) -> Iterator[str]:
    for child in command.children:
        if child.type in {"variable_assignment", "file_redirect", "herestring_redirect"}:
            continue
        try:
            yield _decode((child.text or b"").decode())
        except Doubt:
            yield UNKNOWN_WORD


def _wrapped(words: Words, depth: int) -> Iterator[Words]:
    """Yield what a wrapper runs: the first word that is no option, or the one after it."""
    name = wrapper_name(words[0])
    if depth >= _MAX_DEPTH or not name:
        return
    if name == "eval":
        yield from _inner(" ".join(words[1:]), depth + 1)
        return
    if name in SHELLS:
        for option, text in pairwise(words):
            if option.startswith("-") and "c" in option:
                yield from _inner(text, depth + 1)
        return
    after_option = False
    for at in range(1, len(words)):
        word = words[at]
        if word.startswith("-") or "=" in word or word[:1].isdigit():
            after_option = True
            continue
        yield words[at:]
        yield from _wrapped(words[at:], depth + 1)
        if not after_option:
            return
        after_option = False


def _inner(text: str, depth: int) -> Sequence[Words]:
    try:
        return _parse(text, depth)
    except Doubt as doubt:
        return doubt.commands
