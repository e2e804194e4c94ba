"""Commands that stand in the words of another one, for a shell or a program that it starts.

What they are is guessed: it makes a rule ask, and never allows. Every word of every program is
looked into, but for those that surely run none of their words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pynchy.permissions.guards import guards_of, why_refused
from pynchy.permissions.programs import (
    INTERPRETERS,
    base_name,
    is_one_of,
    known_as,
    look_up,
    names,
    script_of,
)

# What an agent may do with pynchy: ask, and look.
ASKING = names("ask mcp status pending show history events sessions log docs")
# What is left to people: to answer, and to say what agents may do.
ACTING = names(
    "agents answer approve completion connect decline demo deny desktop dismiss doctor groups hook "
    "inbox init retry rules run serve slack stop sweep watch whatsapp"
)
# With whichever options: to these a word is a text, or a file to be read or copied. What has
# guards (git, rg, pytest, …) is no less sure, as long as these refuse nothing.
_RUNS_NO_WORDS = names(
    "echo printf grep egrep fgrep jq ls cat head tail wc cut tr nl tac rev fold stat du df diff "
    "cmp comm basename dirname realpath readlink pwd true false test seq sleep mkdir touch cp "
    "md5sum sha1sum sha256sum sha512sum cksum base64 od xxd strings which whoami id uname ruff"
)
# They make links, or put a folder in the place of another.
_LINKING = names("ln mount mv")
_COPYING_LINKS = re.compile(r"-[A-Za-z]*[adlrsPR]|--(?:a|l|sy|no-d|pr|rec)")
# What is echoed into one of these may be run.
_RUNS_ITS_INPUT = INTERPRETERS | names("ssh at batch crontab make gmake tmux screen socat nc ncat")
# Of these subcommands, what follows is for people.
_MESSAGES = names("-m -am --message --body --title")
_WITH_MESSAGES = {"git": names("commit tag merge notes stash"), "gh": names("pr issue")}
_OURS = "pynchy"
_MENTIONED = re.compile(rf"{_OURS}(?![a-z0-9_])", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_./+@=-]+")
_QUOTES = re.compile(r"['\"\\]")
_SED = names("sed gsed ssed")
# In sed, any character may part a command from what is around it; 1e runs the rest of its line.
_PART_OF_SED = re.compile(r"[A-Za-z0-9-]+")
_SED_RUNS = re.compile(r"[0-9]*e(?=.)")
# A value that is glued to a letter, or to some: -egit, -avegit.
_LETTERS = re.compile(r"-[A-Za-z]{2,}")
_MOST_LETTERS = 6
_FILE = re.compile(r"[./]|.*/|.*\.[A-Za-z]+$")

# A word, and all that it may be read as.
Readings = tuple[str, ...]


def runs_none_of_its_words(words: Sequence[str]) -> bool:
    """True if to the program its words are surely texts, or files, and never a command."""
    own, _ = script_of(words, len(words))
    is_text = is_one_of(_RUNS_NO_WORDS, own[0]) or _only_asks(own)
    return (is_text or bool(guards_of(own[0]))) and why_refused(own, 1) is None


def _only_asks(words: Sequence[str]) -> bool:
    return _is_ours(words[0]) and bool({*words[1:2]} & ASKING)


def leads_paths_elsewhere(words: Sequence[str]) -> bool:
    """True if the command may make links, or what is in the place of a path another thing."""
    own, _ = script_of(words, len(words))
    if is_one_of({"cp"}, own[0]):
        return any(map(_COPYING_LINKS.match, own[1:]))
    if is_one_of({"link"}, own[0]):
        return True
    if runs_none_of_its_words(own):
        return False
    return any(is_one_of(_LINKING, one) for one in with_inner_words(tuple(own)))


def is_fed_to_a_program(commands: Sequence[Sequence[str]]) -> bool:
    """True if one of the commands may run what others write, so that no text is only a text."""
    programs = (script_of(words, len(words))[0][0] for words in commands)
    return len(commands) > 1 and any(is_one_of(_RUNS_ITS_INPUT, one) for one in programs)


def with_inner_words(words: tuple[str, ...], *, is_fed: bool = False) -> tuple[str, ...]:
    """Return the words, with those in their texts unless the program surely runs none of them."""
    if is_fed:
        return _flat(_read(words))
    own = without_messages(words)
    return own if runs_none_of_its_words(own) else _flat(_read(own))


def _flat(inner: tuple[Readings, ...]) -> tuple[str, ...]:
    return tuple(reading for readings in inner for reading in readings)


def without_messages(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without messages: `git commit -m 'Say when to git push'` runs none."""
    if not {*words[1:2]} & (look_up(_WITH_MESSAGES, words[0]) or frozenset()):
        return words
    texts = zip(("", *words), words, strict=False)
    is_message = (last in _MESSAGES or word.partition("=")[0] in _MESSAGES for last, word in texts)
    return tuple(word for word, is_text in zip(words, is_message, strict=True) if not is_text)


# For one judgement; what agents write is not kept for longer.
@lru_cache(maxsize=8)
def _read(words: tuple[str, ...]) -> tuple[Readings, ...]:
    is_sed = is_one_of(_SED, words[0])
    return tuple(
        tuple(dict.fromkeys(_readings(token, is_sed=is_sed)))
        for word in words
        for token in _tokens(word)
    )


def _tokens(word: str) -> Iterator[str]:
    """Yield the words in a text, and once more those that a shell makes of its quotes."""
    yield from _WORD.findall(word)
    if _QUOTES.search(word):
        yield from _WORD.findall(_QUOTES.sub("", word))


def _readings(token: str, *, is_sed: bool) -> Iterator[str]:
    """Yield the token, what an option in it is given, and what is glued to letters."""
    for part in dict.fromkeys((token, *token.split("="))):
        yield part
        if _LETTERS.match(part):
            yield from (part[at:] for at in range(2, min(len(part), _MOST_LETTERS + 2)))
        if is_sed:
            pieces = _PART_OF_SED.findall(part)
            yield from pieces
            yield from (_SED_RUNS.sub("", piece, count=1) for piece in pieces)


def acts_for_people(words: Sequence[str], *, is_fed: bool = False) -> bool:
    """True if the command may answer, revoke or start something in a person's place."""
    own, _ = script_of(words, len(words))
    if _is_ours(own[0]):
        return own[1:2] == () or own[1] not in ASKING
    if is_one_of(INTERPRETERS, own[0]):
        return any(map(_MENTIONED.search, own[1:]))
    own = own if is_fed else without_messages(tuple(own))
    if not is_fed and runs_none_of_its_words(own):
        return False
    inner = _read(tuple(own))
    acting = any(not ACTING.isdisjoint(readings) for readings in inner)
    follows = (inner[at + 1 : at + 2] for at, readings in enumerate(inner) if _names_us(readings))
    return any(_may_act(following, acting=acting) for following in follows)


def _names_us(readings: Readings) -> bool:
    return any(map(_is_ours, readings))


def _may_act(following: tuple[Readings, ...], *, acting: bool) -> bool:
    """True unless it is a command that asks, or no command: our name is that of a folder, too.

    `acting`: there is a word that acts, somewhere.
    """
    if not following or _FILE.match(following[0][0]):
        return acting
    return ASKING.isdisjoint(following[0])


def _is_ours(program: str) -> bool:
    """True if it is pynchy: the program, the module or a part of it, its folder as a script."""
    name = base_name(program).casefold()
    is_package = program.casefold().endswith(f"{_OURS}/__main__.py")
    return _OURS in known_as(program) or name.startswith(f"{_OURS}.") or is_package
