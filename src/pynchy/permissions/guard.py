"""A guard: what the `*` of a rule does not let in for one program, and why.

The guards of each program are in guards.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile

from pynchy.permissions.programs import is_one_of

# A cluster of letters, which may end in an option that has its value right behind it: -F/etc/x.
_LETTERS = re.compile(r"-[A-Za-z]*")
_BUNDLE = re.compile(r"-([A-Za-z]+)[0-9]*")


@dataclass(frozen=True, slots=True)
class Guard:
    """What the `*` of a pattern does not cover, and why.

    `short` are letters, alone or in a bundle; `long` are options with two dashes (any beginning of
    one counts) or with one (as `find` has them); `first` are globs of the words that say what the
    program does, and `looks` the only such words that are let in; `second` are the only words that
    are let in right behind them; `within` is a regular expression that must not be found in any
    word, `folded` however their letters are written; `outside`: no path out of the folder may be.
    `only`: of options, these alone are let in. `everything`: no `*` is of use at all. `when`: it is
    about these subcommands alone. `star`: it does not speak of whole commands.
    """

    why: str
    short: str = ""
    long: str = ""
    first: str = ""
    looks: str = ""
    second: str = ""
    within: str = ""
    folded: bool = False
    outside: bool = False
    only: str = ""
    everything: bool = False
    when: str = ""
    star: bool = False

    def speaks_of(self, words: Sequence[str]) -> bool:
        """True if it is about such commands of the program."""
        return not self.when or bool({*words[1:2]} & {*self.when.split()})

    def refuses(self, words: Sequence[str], known: int, *, whole: bool = False) -> bool:
        """True if one of the words after the first `known` ones is so.

        Of a `whole` command it does not matter what the program does, but how.
        """
        if not self.speaks_of(words) or (whole and self.star):
            return False
        if self.everything:
            return True
        if not whole and self._refuses_subcommand(words, known):
            return True
        if self.only and not self._knows_options(words[known:]):
            return True
        return any(self._refuses(word) for word in words[known:])

    def _refuses_subcommand(self, words: Sequence[str], known: int) -> bool:
        # An option before the second word would leave it unknown which one that is.
        second = words[max(known, 2) : 3] if self.second else ()
        is_other = any(word not in self.second.split() for word in second)
        return is_other or any(map(self._refuses_first, _subcommands(words, known)))

    def _refuses_first(self, word: str) -> bool:
        is_unknown = bool(self.looks) and word not in self.looks.split()
        return is_unknown or any(fnmatchcase(word, glob) for glob in self.first.split())

    def _knows_options(self, words: Sequence[str]) -> bool:
        """True if only options are given that are let in; what follows `--` is the script's."""
        own = takewhile(lambda word: word != "--", words)
        return all(map(self._knows, (word for word in own if word.startswith("-"))))

    def _knows(self, option: str) -> bool:
        """True if the option is let in; of a bundle, each letter must be."""
        only = self.only.split()
        if option.partition("=")[0] in only:
            return True
        bundle = _BUNDLE.fullmatch(option)
        return bundle is not None and all(f"-{letter}" in only for letter in bundle[1])

    def _refuses(self, word: str) -> bool:
        text = word.casefold() if self.folded else word
        if self.within and re.search(self.within, text):
            return True
        if self.outside and _leads_outside(word):
            return True
        if not word.startswith("-") or word in {"-", "--"}:
            return False
        name = word.partition("=")[0]
        if any(_is_option(name, option) for option in self.long.split()):
            return True
        return not word.startswith("--") and any(letter in word for letter in self.short)


def _subcommands(words: Sequence[str], known: int) -> Iterator[str]:
    """Yield the words after the known ones that may say what the program does.

    That is the first one that is no option (nor cargo's +toolchain). Behind an option it may be the
    value of that, and then it is the next one.
    """
    is_value, skipped = False, {"-", "+"} if is_one_of({"cargo"}, words[0]) else {"-"}
    for at in range(1, len(words)):
        if words[at][:1] in skipped:
            is_value = words[at][:1] == "-"
            continue
        if at >= known:
            yield words[at]
        if not is_value:
            return
        is_value = False


def _leads_outside(word: str) -> bool:
    """True if a word, or what an option in it is given, is a path out of the folder."""
    paths = [word]
    if word.startswith("-"):
        paths = [word.partition("=")[2], _LETTERS.sub("", word, count=1)]
    return any(path.startswith("/") or ".." in path.split("/") for path in paths)


def _is_option(name: str, option: str) -> bool:
    if option.startswith("--"):
        return name.startswith("--") and option.startswith(name)
    return name.lstrip("-") == option.removeprefix("-")
