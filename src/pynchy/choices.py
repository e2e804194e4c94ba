"""Which option a typed text means: one rule for every place where people type.

A number means the position that is shown. A text that could mean two options, such as the number
of one that is the label of another, is never guessed, and one that is nearly a label is never taken
for own words: the person is told what to type instead. In quotation marks it is own words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from pynchy.errors import InvalidReply
from pynchy.model import AcceptsText, Answer, Question

# A line of a card, such as “2. Blue” or “2) 7”. Neither “1.5” nor “1:30” is one.
LINE = re.compile(r"([0-9]{1,3})\s*[.):](?:\s+|(?=\D))(\S.*)\Z", re.DOTALL)
SEPARATOR = re.compile(r"[,;]\s*")
_NOTED = re.compile(r"\s*[:\n—–]\s*|\s+-\s+")
_QUOTED = re.compile(r"[\"'“”„‘«‹「『](.+)[\"'“”’»›」』]\Z", re.DOTALL)
_MARKS = frozenset('"“”„«»「」『』')
_DIGITS = re.compile(r"[0-9]{1,3}\Z")
# What may stand around a number, a keycap's box included.
_AROUND = " .()[]\ufe0f\u20e3"
_BETWEEN_NUMBERS = re.compile(r"[\s,;]+")
# So many letters a label has where one is easily wrong, and where two are.
_ONE_WRONG, _TWO_WRONG = 3, 8
# What a person does who means just what they typed; a shell takes the marks away.
OWN_WORDS = "or put your own words in quotation marks"
# Longer than any label, and no slip of the finger: to compare it would take long.
MAX_NEAR_LENGTH = 600
_MAX_NOTE_CUTS = 20
_BEFORE_NOTE = " \t\r\n:,;.—–-"
_SETS_OFF = frozenset("\r\n:,;.—–-")
_MAX_NEAR = 3
_BRIEF = 60


def read_number(text: str) -> int | None:
    """Return the number that the text is, in whatever digits and brackets; None if it is none."""
    plain = unicodedata.normalize("NFKC", text).strip(_AROUND)
    return int(plain) if plain.isascii() and _DIGITS.match(plain) else None


def read_quoted(text: str) -> str | None:
    """Return what stands in quotation marks, where that is the whole text; None otherwise."""
    quoted = _QUOTED.match(text)
    own = quoted[1].strip() if quoted else ""
    return own if own and _MARKS.isdisjoint(own) else None


def ask_back(
    labels: tuple[str, ...], meant: Collection[str], lead: str, means: Callable[[str], object]
) -> str:
    """Say what to type for each option that a text could mean, after `lead`.

    `means` returns the set of the labels that a text means.
    """
    return f"that could mean several options; say {_ways(labels, meant, lead, means)}"


def did_you_mean(
    question: Question, near: Sequence[str], lead: str, means: Callable[[str], object]
) -> str:
    """Say what to type for each option that a text is nearly, and for just the text."""
    asked = " or ".join(f"“{_brief(label)}”" for label in near)
    words = f", {OWN_WORDS}" if question.takes_words_alone else ""
    return f"did you mean {asked}? Say {_ways(question.labels, near, lead, means)}{words}"


def no_words(question: Question, lead: str = "") -> str:
    """Say that own words are no answer to the question, and what is."""
    if question.needs_word:
        return f"this is answered by its word alone: say {_words_of(question)}"
    most = len(question.options)
    numbers = "1" if most == 1 else f"1 to {most}"
    if question.accepts_text is AcceptsText.NO:
        return f"this question takes only its options, not your own words: choose {numbers}"
    example = f"such as “{lead}1: not now”"
    return f"words alone are no answer here: choose {numbers}; words can go along, {example}"


def _words_of(question: Question) -> str:
    return " or ".join(f"“{option.value}”" for option in question.options)


def read_word(question: Question, short_id: str, typed: str, *, is_aimed: bool) -> Answer:
    """Return the choice that “approve ab2c, but slowly” makes in a chat: a word, an id, a note.

    `is_aimed`: the text is known to be for this question, so it need not name it. A yes is then
    its word alone, and beside an id its note is set off: a sentence that begins with “always” is
    none, nor is “always ab2c, in this session”, with another option's word. Raise InvalidReply for
    anything else.
    """
    word, rest = [*typed.split(None, 1), "", ""][:2]
    named = {option.value.casefold(): option for option in question.options}
    option = named.get(word.casefold().rstrip(":,."))
    given = re.match(rf"(?i)#?{re.escape(short_id)}(?!\w)", rest)
    if option is None or not (given or is_aimed):
        raise InvalidReply(say_word(question, short_id))
    said = rest[given.end() :].lstrip(" \t") if given else rest
    note = said.strip(_BEFORE_NOTE).strip() or None
    is_set_off = bool(given) and said[:1] in _SETS_OFF
    others = named.keys() - {option.value.casefold()}
    is_torn = bool(option.confirm) and not others.isdisjoint(re.findall(r"\w+", said.casefold()))
    if note and option.needs_sight and (is_torn or not is_set_off):
        raise InvalidReply(say_word(question, short_id))
    return Answer((option.label,), note)


def say_word(question: Question, short_id: str) -> str:
    """Say what to type for each option of a question that needs its word and id."""
    ways = [f"“{option.value} {short_id}”" for option in question.options]
    note = ", and words behind a comma if you like" if question.takes_words else ""
    return f"to be sure that it is meant for this, say {' or '.join(ways)}{note}"


def approved_so_far(people: Sequence[str], needed: int) -> str:
    """Say who has approved, and how many more people must."""
    left = needed - len(people)
    more = "one more person is" if left == 1 else f"{left} more people are"
    return f"{', '.join(people)} approved; {more} needed"


def near_labels(typed: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels, at most a few, that the text is nearly: a letter or two are wrong."""
    if len(typed) > MAX_NEAR_LENGTH:
        return ()
    text = _fold(typed)
    return tuple(label for label in labels if _is_near(text, _fold(label)))[:_MAX_NEAR]


def cut_notes(typed: str) -> Iterator[tuple[str, str]]:
    """Yield how the text can be cut into a choice and a note, the longest choice first."""
    for cut in reversed(list(_NOTED.finditer(typed))[:_MAX_NOTE_CUTS]):
        head, note = typed[: cut.start()].strip(), typed[cut.end() :].strip()
        if head and note:
            yield head, note


def read_typed(
    question: Question, values: Sequence[str], lead: str = "", *, asks_back: bool = True
) -> Answer:
    """Return what the typed values say to the question, whether or not it accepts that.

    `lead` goes before an answer to this question where several were asked. Raise InvalidReply for
    what fits nothing and what could be several; with `asks_back`, also for what is nearly a label.
    """
    cleaned = [value.strip() for value in values if value.strip()]
    if not cleaned:
        raise InvalidReply("an answer is missing")
    if not question.options:
        return Answer(text=" ".join(cleaned))
    return Choices.of(question, lead, asks_back=asks_back).read(cleaned)


def _ways(
    labels: tuple[str, ...], meant: Collection[str], lead: str, means: Callable[[str], object]
) -> str:
    said = []
    for place, label in enumerate(labels, 1):
        if label in meant:
            ways = (str(place), f"{place}. {label}", label)
            way = next((way for way in ways if means(way) == {label}), None)
            said.append(f"“{lead}{way}” for number {place}" if way else f"{place} only by a click")
    return ", ".join(said)


def _is_near(text: str, label: str) -> bool:
    edits = (len(label) >= _ONE_WRONG) + (len(label) >= _TWO_WRONG)
    if abs(len(text) - len(label)) > edits or (" " in text and " " not in label):
        return False
    return _is_within(text, label, edits)


def _is_within(text: str, label: str, edits: int) -> bool:
    """True if so many letters put in, left out, changed or swapped make one of the other."""
    same = next((at for at, (a, b) in enumerate(zip(text, label, strict=False)) if a != b), None)
    if same is None:
        return abs(len(text) - len(label)) <= edits
    text, label = text[same:], label[same:]
    if not edits:
        return False
    changed = [(text[1:], label), (text, label[1:]), (text[1:], label[1:])]
    if text[:2] == label[1::-1]:
        changed.append((text[2:], label[2:]))
    return any(_is_within(*pair, edits - 1) for pair in changed)


@lru_cache(maxsize=1024)
def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _brief(label: str) -> str:
    line = " ".join(label.split())
    return line if len(line) <= _BRIEF else line[: _BRIEF - 1] + "…"


@dataclass(frozen=True, slots=True)
class Choices:
    """The labels of one question, folded once however many texts are compared with them.

    `lead` goes before an answer to this question where several were asked; with `asks_back`, what
    is nearly a label is refused.
    """

    question: Question
    labels: tuple[str, ...]
    folded: Mapping[str, str]
    numbered: Mapping[int, frozenset[str]]
    lead: str = ""
    asks_back: bool = True

    @classmethod
    def of(cls, question: Question, lead: str = "", *, asks_back: bool = True) -> Self:
        """Return the labels of the question, ready to be compared."""
        labels = question.labels
        numbered: dict[int, frozenset[str]] = {
            place: frozenset([label]) for place, label in enumerate(labels, 1)
        }
        for label in labels:
            if (number := read_number(label)) is not None:
                numbered[number] = numbered.get(number, frozenset()) | {label}
        named = {option.value.casefold(): option.label for option in question.options}
        folded = named | {label.casefold(): label for label in labels}
        return cls(question, labels, folded, numbered, lead, asks_back)

    def read(self, values: Sequence[str]) -> Answer:
        """Return what the values say: options, own words, or own words beside options.

        Raise InvalidReply as `find` does.
        """
        whole = " ".join(values)
        quoted = read_quoted(whole) if self.asks_back and not self.meant(whole) else None
        if quoted is not None:
            label = self.folded.get(quoted.casefold()) if read_number(quoted) is None else None
            return Answer((label,)) if label else Answer(text=quoted)
        answer = self._several(values) if self.question.multi_select else self._single(values)
        if answer.selected or self.question.takes_words_alone:
            return answer
        return self._with_note(whole) or answer

    def find(self, typed: str) -> str | None:
        """Return the label of the option that is meant; None if the text names none.

        Raise InvalidReply for a number that no option has, for what could be several, and for what
        is nearly a label.
        """
        meant = self.meant(typed)
        if len(meant) > 1:
            raise self._unclear(meant)
        if meant:
            return next(iter(meant))
        if self.question.needs_word and (read_number(typed) is not None or LINE.match(typed)):
            raise InvalidReply(f"a number is no answer here: say {_words_of(self.question)}")
        if (number := read_number(typed)) is not None:
            raise InvalidReply(f"there is no option {number}: choose 1 to {len(self.labels)}")
        if (line := LINE.match(typed)) and (label := self.folded.get(line[2].casefold())):
            raise InvalidReply(f"“{label}” is not number {line[1]}")
        if near := self._near(typed):
            raise InvalidReply(did_you_mean(self.question, near, self.lead, self.meant))
        return None

    def meant(self, typed: str) -> frozenset[str]:
        """Return the labels of the options that the text names by number, label or line.

        What needs its word is named by that, or by its label.
        """
        if self.question.needs_word:
            label = self.folded.get(typed.casefold())
            return frozenset([label]) if label else frozenset()
        named = {self.folded.get(typed.casefold()), self._on_line(typed)} - {None}
        number = read_number(typed)
        by_number = self.numbered.get(number, frozenset()) if number is not None else frozenset()
        return by_number | frozenset(label for label in named if label)

    def find_several(self, values: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Return the labels that the values name, also several with commas, and what is left over.

        Raise InvalidReply as `find` does.
        """
        parts = [part for value in values for part in self._parts(value)]
        label = self.folded.get(" ".join(values).casefold())
        if label and len(parts) > 1:
            raise self._unclear({label}.union(*map(self.meant, parts)))
        found = [(part, self.find(part)) for part in parts]
        chosen = dict.fromkeys(label for _, label in found if label is not None)
        return tuple(chosen), " ".join(part for part, label in found if label is None)

    def _single(self, values: Sequence[str]) -> Answer:
        whole = " ".join(values)
        if label := self.find(whole):
            return Answer((label,))
        # One choice and several words: prose, unless every word is a choice of its own.
        numbers = _BETWEEN_NUMBERS.split(whole)
        are_numbers = self.asks_back and all(read_number(word) is not None for word in numbers)
        for words in (values, *([numbers] if are_numbers else [])):
            if all(self.meant(word) for word in words):
                labels = [self.find(word) for word in words]
                return Answer(tuple(label for label in labels if label))
        return Answer(text=whole)

    def _several(self, values: Sequence[str]) -> Answer:
        chosen, rest = self.find_several(values)
        return Answer(chosen, rest or None)

    def _with_note(self, typed: str) -> Answer | None:
        """Read “1: but slowly”: a choice, and what goes along with it."""
        for head, note in cut_notes(typed):
            parts = SEPARATOR.split(head) if self.question.multi_select else [head]
            meant = [self.meant(part) for part in parts]
            if all(len(labels) == 1 for labels in meant):
                return Answer(tuple(dict.fromkeys(min(labels) for labels in meant)), note)
        return None

    def _parts(self, value: str) -> list[str]:
        """Return `1, 3` as two values; a text with commas stays one."""
        parts = SEPARATOR.split(value)
        is_option = self._is_option if len(value) > MAX_NEAR_LENGTH else self._is_nearly_option
        return parts if all(map(is_option, parts)) else [value]

    def _is_option(self, part: str) -> bool:
        """True if the text can be nothing but an option, be it a wrong one."""
        return bool(self.meant(part)) or read_number(part) is not None

    def _is_nearly_option(self, part: str) -> bool:
        return self._is_option(part) or bool(self._near(part))

    def _near(self, typed: str) -> tuple[str, ...]:
        return near_labels(typed, self.labels) if self.asks_back else ()

    def _unclear(self, meant: Collection[str]) -> InvalidReply:
        return InvalidReply(ask_back(self.labels, meant, self.lead, self.meant))

    def _on_line(self, typed: str) -> str | None:
        line = LINE.match(typed)
        label = self.folded.get(line[2].casefold()) if line else None
        return label if line and label and self.labels.index(label) + 1 == int(line[1]) else None
