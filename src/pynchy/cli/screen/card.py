"""One question as a form: what is asked, what can be marked, where to write.

What is marked and written lives elsewhere; the card shows it and says what was pressed. Only an
ending or another question builds it again, so whoever types is never disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Click
from textual.events import Key as KeyPress
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Static, TextArea

from pynchy.cli.screen import markdown_text
from pynchy.cli.screen.answering import all_forms, narrower_forms
from pynchy.cli.screen.question_list import ListedQuestion
from pynchy.cli.screen.saved_state import DraftPart
from pynchy.cli.text import clean, duration, flat, moment, one_line
from pynchy.cli.views import HostEnding, HostQuestion
from pynchy.inbox.keys import Action, hint
from pynchy.model import Question

_DIGITS = 9
# What is drawn of one preview; a terminal would take seconds for what an agent may send.
_MAX_PREVIEW = 20_000
_MAX_NAME = 60
_OUTCOMES = {
    "answered": "Answered",
    "declined": "Declined",
    "defaulted": "Nobody answered: the agent's own default was used",
    "expired": "Expired without an answer",
    "withdrawn": "Withdrawn by the agent",
    "undeliverable": "Could not be shown",
    "cleared": "No longer asked",
}


class Folding(Static):
    """A text that shows its first lines, and all of it when it is asked to."""

    def __init__(self, text: Text, summary: str, head: int, *, is_long: bool) -> None:
        super().__init__(classes="folding")
        self._text = text
        self._summary = summary
        self._head = head
        self._folded = is_long
        self._is_long = is_long
        self.was_shown_whole = not is_long
        self.can_focus = is_long

    def on_mount(self) -> None:
        """Show the beginning."""
        self._show()

    def toggle(self) -> None:
        """Fold or unfold it."""
        if self._is_long:
            self._folded = not self._folded
            self.was_shown_whole = True
            self._show()

    def on_click(self, event: Click) -> None:
        """A click folds or unfolds."""
        if self._is_long:
            event.stop()
            self.toggle()

    def on_key(self, event: KeyPress) -> None:
        """So do Space and Enter."""
        if event.key in {"space", "enter"}:
            event.stop()
            self.toggle()

    def _show(self) -> None:
        if not self._folded:
            shown = self._text.copy()
            if self._is_long:
                shown.append("\n▾ fold (f)", markdown_text.QUIET)
        else:
            shown = Text("\n").join(self._text[: markdown_text.LONG_TEXT].split("\n")[: self._head])
            shown.append(("\n" if self._head else "") + f"▸ {self._summary} (f)", "bold")
        self.update(shown)


class Choice(Static, can_focus=True):
    """One option of a question; `numbers` are its own and those of its narrower forms.

    It is shown from the first if `shown_with` is empty, else while one of those numbers is marked.
    """

    class Pressed(Message):
        """Somebody chose it, by a click or by the space bar."""

        def __init__(self, question: int, number: int, *, clicked: bool) -> None:
            super().__init__()
            self.question = question
            self.number = number
            self.clicked = clicked

    def __init__(self, at: int, number: int, question: Question) -> None:
        super().__init__(classes="choice")
        option, multi = question.options[number - 1], question.multi_select
        self.question = at
        self.number = number
        self.numbers = {number, *narrower_forms(question, option)}
        self.shown_with = frozenset(all_forms(question, option) if option.narrows else ())
        self.display = not self.shown_with
        self._signs = ("[x]", "[ ]") if multi else ("(•)", "( )")
        self._drawn: tuple[bool, bool] | None = None
        # Made once: it is drawn often, and may be long.
        self._words = Text(flat(option.label), "bold")
        if option.description.strip():
            for row in clean(option.description).strip().split("\n"):
                self._words.append(f"\n        {row}", f"not bold {markdown_text.QUIET}")

    def draw(self, *, marked: bool, hinted: bool) -> None:
        """Show whether it is marked, and its number where the number keys go."""
        if self._drawn == (marked, hinted):
            return
        self._drawn = (marked, hinted)
        digit = str(self.number) if self.number <= _DIGITS else " "
        line = Text().append(f" {digit} " if hinted else "   ", "reverse" if hinted else "")
        line.append(" " + self._signs[0 if marked else 1] + " ", "bold green" if marked else "")
        self.set_class(marked, "marked")
        self.update(line.append_text(self._words))

    def on_click(self, event: Click) -> None:
        """Tell that it was clicked."""
        event.stop()
        self.post_message(self.Pressed(self.question, self.number, clicked=True))

    def on_key(self, event: KeyPress) -> None:
        """Tell that the space bar was pressed on it."""
        if event.key == "space":
            event.stop()
            self.post_message(self.Pressed(self.question, self.number, clicked=False))


class OwnWords(TextArea):
    """Where one's own words go."""

    def __init__(self, question: int, text: str) -> None:
        super().__init__(text, soft_wrap=True, tab_behavior="focus", compact=True, classes="own")
        self.question = question


class QuestionBox(Vertical):
    """One question of a card."""

    def __init__(self, at: int, view: HostQuestion, part: DraftPart) -> None:
        super().__init__(classes="asked")
        self.at = at
        self._count = len(view.questions)
        self._short_id = view.short_id
        self._question = view.questions[at]
        self._part = part

    def compose(self) -> ComposeResult:
        """Lay it out."""
        question = self._question
        if self._count > 1 or question.header:
            yield Static(self._header(is_current=False), classes="header")
        lines = markdown_text.count_lines(question.text)
        is_long = lines > markdown_text.LONG_LINES or len(question.text) > markdown_text.LONG_TEXT
        summary = f"all of it, {_lines(lines)}"
        yield Folding(
            markdown_text.markdown(question.text),
            summary,
            markdown_text.LONG_LINES,
            is_long=is_long,
        )
        yield from self._choices()
        if question.default:
            said = ", ".join(flat(label) for label in question.default)
            yield Static(Text(f"If nobody answers in time, the agent goes on with: {said}", "dim"))
        if question.takes_words:
            label = Text(f"{_field_name(question)} ").append(f" {hint(Action.WRITE)} ", "reverse")
            yield Static(label, classes="lab")
            yield OwnWords(self.at, self._part.text)

    def show_current(self, *, is_current: bool) -> None:
        """Show whether keys go to this question."""
        for header in self.query(".header").results(Static):
            put(header, self._header(is_current=is_current))

    @property
    def is_unread(self) -> bool:
        """True if a part of what is asked was never shown."""
        return not self.query(Folding).first().was_shown_whole

    def _header(self, *, is_current: bool) -> Text:
        nth = f"{self.at + 1} of {self._count}" if self._count > 1 else ""
        header = "  ".join(filter(None, (nth, flat(self._question.header))))
        is_marked = is_current and self._count > 1
        return Text(
            f"▸ {header}" if is_marked else header, "bold yellow" if is_marked else "bold cyan"
        )

    def _choices(self) -> Iterator[Widget]:
        question = self._question
        for number, option in enumerate(question.options, 1):
            yield Choice(self.at, number, question)
            if option.preview.strip():
                yield _preview(option.preview, self._short_id)
        if question.options and question.multi_select:
            yield Static(Text("   one or more", "dim"))


class CardPane(VerticalScroll, can_focus=True):
    """The question that is being looked at."""

    def __init__(self) -> None:
        super().__init__(id="card")
        self.entry: ListedQuestion | None = None

    @property
    def asked(self) -> list[QuestionBox]:
        """The questions of the card."""
        return list(self.query(QuestionBox))

    async def build(self, entry: ListedQuestion, parts: Sequence[DraftPart], unsent: str) -> None:
        """Show the question from its beginning."""
        self.entry = entry
        await self._replace(*_card(entry.view, parts, unsent))
        self.scroll_home(animate=False)

    async def clear(self, text: Text) -> None:
        """Show no question but a text."""
        self.entry = None
        await self._replace(Static(text, classes="nothing"))

    async def _replace(self, *widgets: Widget) -> None:
        async with self.batch():
            await self.remove_children()
            # Whoever leaves meanwhile takes the pane down, and nothing can be put into it.
            if self.is_attached:
                await self.mount(*widgets)

    def tick(
        self, now: datetime, status: Text, parts: Sequence[DraftPart], here: int | None
    ) -> None:
        """Show what has changed: the time, what is marked, and what the number keys go to."""
        if self.entry is None or not self.query("#head"):
            return
        put(self.query_one("#head", Static), head(self.entry.view, now))
        put(self.query_one("#status", Static), status)
        for asked in self.asked:
            asked.show_current(is_current=asked.at == here)
        for choice in self.query(Choice):
            marked = parts[choice.question].options
            choice.display = not choice.shown_with or not choice.shown_with.isdisjoint(marked)
            choice.draw(marked=choice.number in marked, hinted=choice.question == here)

    def scroll_to_question(self, at: int) -> None:
        """Show one question of the card from its beginning."""
        self.asked[at].scroll_visible(animate=False, top=True)

    @property
    def unread(self) -> int | None:
        """The first question of which a part was never shown, if any."""
        return next((asked.at for asked in self.asked if asked.is_unread), None)

    def unfold(self) -> None:
        """Fold or unfold everything that is long."""
        for folding in self.query(Folding):
            folding.toggle()


def put(static: Static, text: Text) -> None:
    """Show the text, unless it is shown already: a terminal may be far away."""
    if static.content != text:
        static.update(text)


def head(view: HostQuestion, now: datetime) -> Text:
    """Return the first lines of a card: who asks, about what, since when, until when."""
    line = Text().append(view.group, "bold cyan")
    line.append(f"  {one_line(view.agent, _MAX_NAME) or 'An agent'}")
    if view.urgency == "high":
        line.append("  urgent", "bold red")
    elif view.urgency == "low":
        line.append("  no hurry", "dim")
    line.append(f"  #{view.short_id}", "bold")
    if view.task:
        line.append(f"\ntask: {flat(view.task)}", "dim")
    line.append(f"\nasked {duration((now - view.asked_at).total_seconds())} ago", "dim")
    if view.ending is None:
        if waits := view.agent_waits(now):
            line.append(" · the agent: ", "dim").append(waits)
        line.append(f" · {_left(view, now)}", "dim")
        if view.approved:
            line.append(f"\n{view.approved}", "yellow")
        for number, by in view.drafts if not view.approved else ():
            line.append(f"\n{_answered(view, number, by)}", "yellow")
    return line


def _answered(view: HostQuestion, number: int, by: str) -> str:
    which = f"{number + 1} of {len(view.questions)}"
    who = one_line(by, _MAX_NAME) or "somebody"
    return f"{which} is answered by {who}: only they can change it, leave it empty to keep it."


def ending_text(view: HostQuestion, ending: HostEnding) -> Text:
    """Return how it ended: who, where, what, and whether it arrived."""
    word = _OUTCOMES.get(ending.outcome, one_line(ending.outcome))
    good = ending.outcome in {"answered", "declined"}
    text = Text().append(word, "bold green" if good else "bold yellow")
    if ending.by:
        text.append(f" by {one_line(ending.by)}")
    if ending.channel:
        text.append(f" ({one_line(ending.channel)})", "dim")
    text.append(f"  {moment(ending.at)}", "dim")
    for answer in ending.answers:
        text.append(f"\n  {clean(answer.describe())}", "bold")
    if ending.reason:
        text.append(f"\n  Reason: {clean(ending.reason)}")
    if view.state == "undelivered":
        text.append(f"\nNot delivered yet: {one_line(view.delivery_error)}", "red")
        text.append("\n(a shows who is waiting, with a way to try again)", "dim")
    elif view.state in {"resuming", "held"}:
        text.append("\nOn its way to the agent.", "dim")
    elif view.delivered in {"live", "late"}:
        text.append("\nThe agent has it.", "dim")
    return text


def _left(view: HostQuestion, now: datetime) -> str:
    left = duration((view.due_at - now).total_seconds())
    then = "then its default counts" if view.defaults_at == view.due_at else "then it expires"
    return f"{left} left, {then}"


def _card(view: HostQuestion, parts: Sequence[DraftPart], unsent: str) -> Iterator[Widget]:
    yield Static(id="head")
    if view.title:
        yield Static(Text(flat(view.title), "bold"), classes="title")
    if view.ending is not None:
        yield from _over(view, view.ending, unsent)
        return
    for at, part in enumerate(parts):
        yield QuestionBox(at, view, part)
    yield Horizontal(
        _button("Send", Action.SEND),
        _button("Hide", Action.SNOOZE),
        # Who denies has declined: one way to say no is enough.
        *([] if view.needs_word else [_button("Decline", Action.DECLINE)]),
        classes="actions",
    )
    yield Static(id="status")


def _over(view: HostQuestion, ending: HostEnding, unsent: str) -> Iterator[Widget]:
    for question in view.questions:
        yield Static(markdown_text.markdown(question.text), classes="asked")
    yield Static(ending_text(view, ending), classes="ending")
    yield Static(id="status")
    if unsent:
        text = Text().append("You had begun to write (c copies it, x forgets it):\n", "dim")
        text.append(clean(unsent))
        yield Static(text, classes="unsent")


def _field_name(question: Question) -> str:
    if not question.options:
        return "Your answer"
    return "Or in your own words" if question.takes_words_alone else "A note beside your choice"


def _preview(text: str, short_id: str) -> Folding:
    lines = markdown_text.count_lines(text)
    kind = "Diff" if markdown_text.is_diff(text) else "Preview"
    is_long = lines > markdown_text.FOLD_LINES or len(text) > markdown_text.LONG_TEXT
    shown = markdown_text.code(text[:_MAX_PREVIEW])
    if len(text) > _MAX_PREVIEW:
        cut = f"Cut to its first {_MAX_PREVIEW:,} characters.\nThe whole: pynchy show {short_id}"
        shown = Text(f"{cut}\n", "bold yellow").append_text(shown)
    folding = Folding(shown, f"{kind}, {_lines(lines)}", 0, is_long=is_long)
    folding.add_class("preview")
    return folding


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _button(label: str, action: Action) -> Button:
    text = Text(f"{label} ").append(f" {hint(action)} ", "reverse")
    return Button(text, compact=True, id=f"do-{action.value}")
