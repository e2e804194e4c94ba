"""The file of the rules that were made or used, and of leave for single calls.

It is read whole or not at all: a file that cannot be understood is left as it is, and told of.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pynchy import wire
from pynchy.errors import RuleRefused
from pynchy.permissions.patterns import read_pattern
from pynchy.rule import Grant, Rule
from pynchy.safe_folder import Folder, UnsafeFile

FILE_NAME = "rules.json"
_CAP = 64 * 1024 * 1024


class UnreadableRules(Exception):
    """The file cannot be used; the text says why, and quotes nothing of it."""


class RuleFile:
    """`rules.json` in the data folder."""

    def __init__(self, data: Path) -> None:
        self._folder = Folder(data)
        self.path = data / FILE_NAME

    def read(self) -> tuple[list[Rule], list[Grant]]:
        """Return what is in it; nothing where there is none. Raise UnreadableRules."""
        try:
            found, grants = wire.read_rules(self._folder.read(FILE_NAME, _CAP))
            for rule in found:
                read_pattern(rule.pattern)
        except FileNotFoundError:
            return [], []
        except (OSError, ValueError, UnsafeFile, ImportError) as exc:
            raise UnreadableRules(_why_unreadable(exc)) from exc
        return found, grants

    def write(self, rules: Iterable[Rule], grants: Iterable[Grant]) -> None:
        """Put these in its place. Raise OSError, or RuleRefused where they are too many."""
        data = wire.rules_json(list(rules), list(grants))
        if len(data) > _CAP:
            raise RuleRefused("there are too many rules: revoke some (pynchy rules)")
        self._folder.replace(FILE_NAME, data)


def _why_unreadable(exc: Exception) -> str:
    match exc:
        case OSError():
            return exc.strerror or type(exc).__name__
        case ImportError():
            return f"the parser of commands cannot be loaded: {exc}"
    # Only the kind: the error's own text would quote what the file says.
    return "it is damaged, or of a later pynchy"
