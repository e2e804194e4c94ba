"""What a text says to one question: options of it, own words, or nothing that is clear.

A number means the position that is shown, and what could be one option's number and another's label
is asked back, as is what is nearly a label. A number is never taken for own words where there are
options, and nothing is chosen that the text does not name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeAlias

from pynchy.channels.numbered import vocabulary
from pynchy.channels.numbered.normalize import FAR_OUT, Numbers, count, fold, fold_said, is_blank
from pynchy.choices import (
    LINE,
    MAX_NEAR_LENGTH,
    SEPARATOR,
    ask_back,
    cut_notes,
    did_you_mean,
    near_labels,
    no_words,
    read_quoted,
)
from pynchy.model import Question

_REMARK = re.compile(r"\s*[(\[（][^()\[\]（）]*[)\]）]\Z")
_AND = "|".join(map(re.escape, map(fold, vocabulary.AND)))
_BETWEEN = re.compile(rf" ?[,;/&+、،]+(?: (?:{_AND}) | ?)| (?:(?:{_AND}) )?")
_NUMBER = re.compile(r"[0-9]{1,4}")
# What is longer is nobody's list, and would take long to read.
_MAX_LIST_LENGTH = 4_000
_MIN_START_LENGTH = 2
_MAX_START_LENGTH = 500
_MAX_LABEL_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class Picked:
    """Options of the question, by their labels; `certain` if given as exact labels or digits.

    `note` is what the person wrote beside them.
    """

    labels: tuple[str, ...]
    certain: bool = True
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The person's own words."""

    text: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """Nothing that can be taken; `why` is for the person, `numeric` if numbers were given.

    `says_how`: it says itself what to type instead.
    """

    why: str
    numeric: bool = False
    says_how: bool = False


Choice: TypeAlias = Picked | Written | Unclear


def choose(choices: LabelIndex, text: str, lead: str = "") -> Choice:
    """Return what the text says to the question; `lead` is typed before an answer to it."""
    match found := _read(choices, text.strip()):
        case _Clash(labels):
            why = ask_back(choices.question.labels, labels, lead, choices.meant)
            return Unclear(why, numeric=True, says_how=True)
        case _NearMiss(labels):
            why = did_you_mean(choices.question, labels, lead, choices.meant)
            return Unclear(why, says_how=True)
        case Written(own) if not choices.question.takes_words_alone:
            noted = _noted(choices, own) if choices.question.takes_words else None
            return noted or Unclear(no_words(choices.question, lead), says_how=True)
        case _:
            return found


@dataclass(frozen=True, slots=True)
class _Clash:
    """The text could mean each of these options."""

    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class _NearMiss:
    """The text is nearly each of these options."""

    labels: tuple[str, ...]


def _noted(choices: LabelIndex, text: str) -> Picked | None:
    """Read “1: but slowly”: a choice, and what goes along with it."""
    for head, note in cut_notes(text):
        found = _read(choices, head)
        if isinstance(found, Picked) and found.certain:
            return Picked(found.labels, certain=False, note=note)
    return None


def _read(choices: LabelIndex, text: str) -> Choice | _Clash | _NearMiss:
    question = choices.question
    if is_blank(text):
        return Unclear("an answer is missing")
    if not question.options:
        return Written(text)
    is_terse = len(text) <= _MAX_LIST_LENGTH
    numbers = count(text)
    label = choices.exact(text)
    exact = Picked((label,)) if label else None
    # Numbers line by line are a list, whatever the labels are.
    copied = _copied(choices, text) if is_terse and not (numbers and "\n" in text) else None
    by_number = _by_number(choices, text, numbers) if numbers else None
    # A line that is copied says its number itself.
    readings = [exact, copied, None if isinstance(copied, Picked) else by_number]
    if isinstance(by_number, _Clash) and not copied:
        return by_number
    meant = {reading.labels for reading in readings if isinstance(reading, Picked)}
    if len(meant) > 1:
        return _Clash(frozenset(label for labels in meant for label in labels))
    certain = exact or copied or by_number
    if certain is not None:
        return certain
    for find in (_quoted, *((_listed, _nearly, _begun, _missed) if is_terse else ())):
        if found := find(choices, text):
            return _checked(question, found)
    return Written(text)


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """A question whose labels are ready to be compared; None where several are the same then.

    `known` is what stands for labels within a list, the longest first: for more than one where a
    number is also the label of another option.
    """

    question: Question
    folded: dict[str, str | None]
    nearly: dict[str, str | None]
    known: dict[str, frozenset[str]]

    @classmethod
    def of(cls, question: Question) -> Self:
        """Return the question with its labels made ready, once for however many replies."""
        labels = question.labels
        folded = _unique((fold_said(label), label) for label in labels)
        nearly = _unique((core, label) for label in labels for core in _cores(label))
        known: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for place, label in enumerate(labels, 1):
            key = fold_said(label)
            ways = {str(place), *((key, f"{place}. {key}") if key and folded[key] else ())}
            if (number := _lone_number(key)) is not None:
                ways.add(str(number))
            for way in ways:
                known[way] |= {label}
        by_length = sorted(known.items(), key=lambda item: -len(item[0]))
        return cls(question, folded, nearly, dict(by_length))

    def exact(self, text: str) -> str | None:
        """Return the label that the text is, whatever its case and width."""
        text = text.strip()
        if len(text) > _MAX_LABEL_LENGTH:
            return None
        return text if text in self.question.labels else self.folded.get(fold_said(text))

    def meant(self, text: str) -> frozenset[str]:
        """Return the labels of the options that the text names."""
        found = _read(self, text)
        return frozenset(found.labels if isinstance(found, Picked | _Clash) else ())


def _lone_number(text: str) -> int | None:
    numbers = count(text) if len(text) <= _MAX_LABEL_LENGTH else None
    if numbers is None or numbers.unsure or len(numbers.numbers) != 1:
        return None
    return numbers.numbers[0]


def _by_number(choices: LabelIndex, text: str, numbers: Numbers) -> Choice | _Clash:
    found = _at_places(choices, numbers)
    # Lines such as “1. 2” are numbers, too.
    may_be_lines = choices.question.multi_select and len(text) <= _MAX_LIST_LENGTH
    listed = _listed(choices, text) if may_be_lines else None
    if not isinstance(listed, Picked) or numbers.unsure:
        return found
    if isinstance(found, Picked) and set(found.labels) != set(listed.labels):
        return _Clash(frozenset(found.labels + listed.labels))
    return found if isinstance(found, Picked) else listed


def _at_places(choices: LabelIndex, numbers: Numbers) -> Choice | _Clash:
    question = choices.question
    wrong = [number for number in numbers.numbers if not 1 <= number <= len(question.options)]
    if wrong and not (len(numbers.numbers) == 1 and str(wrong[0]) in choices.known):
        return Unclear(f"there is no option {_shown(wrong[0])}", numeric=True)
    if len(numbers.numbers) > 1 and not question.multi_select:
        return Unclear("only one can be chosen", numeric=True)
    if numbers.unsure:
        return Unclear("that is not clear", numeric=True)
    meant = [choices.known[str(number)] for number in numbers.numbers]
    labels = tuple(label for each in meant for label in each)
    if any(len(each) > 1 for each in meant):
        return _Clash(frozenset(labels))
    return Picked(labels, certain=not numbers.spelled)


def _checked(question: Question, found: Choice | _Clash | _NearMiss) -> Choice | _Clash | _NearMiss:
    if isinstance(found, Picked) and len(found.labels) > 1 and not question.multi_select:
        return Unclear("only one can be chosen")
    return found


def _copied(choices: LabelIndex, text: str) -> Choice | None:
    """Read “2. Blue”, a line copied from the card: number and label must agree."""
    copied = LINE.match(fold_said(text))
    if copied is None or (label := choices.exact(copied[2])) is None:
        return None
    if choices.question.labels.index(label) + 1 == int(copied[1]):
        return Picked((label,))
    return Unclear(f"“{label}” is not number {int(copied[1])}", numeric=True)


def _listed(choices: LabelIndex, text: str) -> Choice | _Clash | None:
    """Read several labels and numbers in a row."""
    folded = fold_said(text)
    found: dict[str, None] = {}
    known = choices.known
    place = 0
    while place < len(folded):
        item = _item(known, folded, place)
        if item is None:
            return _missing(folded, place) if found else None
        labels = known[item]
        if len(labels) > 1:
            return _Clash(labels)
        found |= dict.fromkeys(labels)
        between = _BETWEEN.match(folded, place + len(item))
        place = between.end() if between else len(folded)
    return Picked(tuple(found))


def _item(known: Iterable[str], folded: str, place: int) -> str | None:
    """Return the longest of what is known that stands at this place, up to a separator."""
    return next(
        (k for k in known if folded.startswith(k, place) and _ends(folded, place + len(k))), None
    )


def _ends(folded: str, place: int) -> bool:
    return place == len(folded) or _BETWEEN.match(folded, place) is not None


def _missing(folded: str, place: int) -> Choice | None:
    number = _NUMBER.match(folded, place)
    if number is None or number.end() != len(folded):
        return None
    return Unclear(f"there is no option {number[0]}", numeric=True)


def _nearly(choices: LabelIndex, text: str) -> Choice | None:
    """Read a label without its emoji or its “(recommended)”."""
    core = _core(fold_said(text))
    if core not in choices.nearly:
        return None
    label = choices.nearly[core]
    return Picked((label,), certain=False) if label else Unclear("that could be several of them")


def _quoted(choices: LabelIndex, text: str) -> Choice | None:
    """Read what stands in quotation marks: own words, even if it is a number."""
    own = read_quoted(text)
    if own is None or is_blank(own):
        return None
    label = choices.exact(own) if count(own) is None else None
    return Picked((label,), certain=False) if label else Written(own)


def _missed(choices: LabelIndex, text: str) -> _NearMiss | None:
    """Ask back if the text is nearly a label, or a list in which one is."""
    labels = choices.question.labels
    if near := near_labels(text, labels):
        return _NearMiss(near)
    may_be_list = choices.question.multi_select and len(text) <= MAX_NEAR_LENGTH
    parts = SEPARATOR.split(text) if may_be_list else []
    for part in parts:
        if choices.exact(part) or count(part):
            continue
        found = near_labels(part, labels)
        if not found:
            return None
        near = near or found
    return _NearMiss(near) if near else None


def _begun(choices: LabelIndex, text: str) -> Choice | None:
    """Ask back if the text is how a label begins: “no” is not “No, delete it”."""
    start = fold_said(text)
    if not _MIN_START_LENGTH <= len(start) <= _MAX_START_LENGTH:
        return None
    labels = map(fold, choices.question.labels)
    numbers = [str(number) for number, label in enumerate(labels, 1) if _starts(label, start)]
    return Unclear(f"that is not clear (do you mean {' or '.join(numbers)}?)") if numbers else None


def _starts(label: str, start: str) -> bool:
    return label.startswith(start) and not label[len(start) : len(start) + 1].isalnum()


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for key, label in pairs:
        found[key] = label if found.get(key, label) == label else None
    return found


def _cores(label: str) -> set[str]:
    folded = fold_said(label)
    return {_core(folded), _core(_REMARK.sub("", folded))} - {""}


def _core(folded: str) -> str:
    """Return the text without emoji and marks around it."""
    letters = [place for place, sign in enumerate(folded) if sign.isalnum()]
    return folded[letters[0] : letters[-1] + 1] if letters else ""


def _shown(number: int) -> str:
    return "with that number" if number == FAR_OUT else str(number)
