"""What one group can cost those who look at a list: bytes of a page, and work for a line."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime
from io import StringIO

import pytest
from rich.console import Console
from tests.unit.cli.support import Host
from tests.unit.inbox.test_history import read

from pynchy.cli.screen import markdown_text
from pynchy.cli.tables import pending_screen
from pynchy.cli.text import clean, one_line
from pynchy.cli.views import read_question
from pynchy.inbox import markdown
from pynchy.inbox.render import Renderer
from pynchy.inbox.views import MAX_LISTED_HTML, CardView, card_view, revision_of
from pynchy.model import PendingQuestion, Question
from pynchy.testing import make_pending
from pynchy.unicode_safety import name_all
from pynchy.wire import MAX_REQUEST_BYTES

NOW = datetime.fromisoformat("2026-11-16T10:00:00Z")
# Each is written in few bytes and takes many to be shown.
HIDDEN = {
    "one character": "\u200b",
    "two in turn": "\u200b\u200c",
    "one between letters": "a\x7f",
    "escapes": "\x1b]0;",
    "signs of HTML": "&<",
    "lines": "+\n",
    "tags": "\U000e0041\U000e0042",
}


def hidden_text(pattern: str, length: int) -> str:
    return (pattern * length)[:length]


def ask_much(host: Host, pattern: str, group: str = "web-team") -> str:
    """Ask with as much as a request may hold of what costs most to show."""
    fits = MAX_REQUEST_BYTES * 0.9 * len(pattern) / len(json.dumps(pattern))
    preview = hidden_text(pattern, min(int(fits) - 19_000, 60_000))
    question = {
        "question": hidden_text(pattern, 19_000) + "?",
        "options": [{"label": "Yes", "preview": preview}, {"label": "No"}],
    }
    return host.ask(question, group=group, urgency="high")


@pytest.mark.parametrize("pattern", HIDDEN.values(), ids=HIDDEN)
def test_no_card_takes_megabytes_of_the_page_and_the_whole_is_a_link_away(
    host: Host, pattern: str
) -> None:
    short_ids = [ask_much(host, pattern) for _ in range(3)]

    page = read(host, "/")

    assert len(page.encode()) < 3 * MAX_LISTED_HTML * 1.1 + 40_000
    assert all(f"#{short_id}" in page for short_id in short_ids)
    whole = read(host, f"/q/web-team/{host.client.question(short_ids[0])['request_id']}")
    assert 'data-option="1"' in whole


def test_a_flood_of_urgent_ones_leaves_another_group_its_place_on_every_list(host: Host) -> None:
    for number in range(12):
        host.ask(f"Urgent {number}?", group="flood", urgency="high")
    host.ask("Quiet one?", group="team", urgency="low")

    page = read(host, "/")
    views = [read_question(view) for view in host.client.pending()]
    file = StringIO()
    Console(file=file, width=120).print(*pending_screen(views, NOW, 10))

    before = page[: page.index('data-brief="Quiet one?"')]
    assert before.count('data-brief="Urgent') == 5
    assert "Quiet one?" in file.getvalue()
    assert "and 3 more: 3 of flood. All of them: pynchy pending --all" in file.getvalue()


def least_seconds(work: Callable[[], object]) -> float:
    def once() -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    return min(once() for _ in range(3))


def grows_no_faster(short: Callable[[], object], long: Callable[[], object], most: float) -> bool:
    """A busy machine may spoil one look, but not five."""
    return any(least_seconds(long) < most * least_seconds(short) + 0.005 for _ in range(5))


@pytest.mark.parametrize("show", [name_all, clean, markdown.plain, markdown.code, markdown.render])
@pytest.mark.parametrize("pattern", HIDDEN.values(), ids=HIDDEN)
def test_four_times_the_hidden_text_takes_about_four_times_as_long(
    show: Callable[[str], object], pattern: str
) -> None:
    short, long = hidden_text(pattern, 5_000), hidden_text(pattern, 20_000)

    assert grows_no_faster(lambda: show(short), lambda: show(long), 10)


@pytest.mark.parametrize("pattern", HIDDEN.values(), ids=HIDDEN)
def test_a_line_of_a_list_takes_no_longer_for_a_long_text(pattern: str) -> None:
    short, long = hidden_text(pattern, 2_000), hidden_text(pattern, 200_000)

    assert len(one_line(long)) <= 500
    assert grows_no_faster(lambda: one_line(short), lambda: one_line(long), 3)


@pytest.mark.parametrize("pattern", HIDDEN.values(), ids=HIDDEN)
def test_markdown_in_a_terminal_gives_up_where_there_are_too_many_marks(pattern: str) -> None:
    text = markdown_text.markdown("*a_`" * 5_000 + pattern).plain

    assert "*a_`*a_`" in text


def test_many_different_hidden_characters_in_a_row_are_named_once_with_their_counts() -> None:
    named = name_all("a" + "\u200b\u200c" * 2_500 + "b")

    assert named == "a⟨5000 hidden characters: U+200B x2500, U+200C x2500⟩b"
    assert str(markdown.plain(named)).count("<span") == 1


def test_a_card_that_is_too_long_was_rendered_whole_to_find_that_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = Question("a\u200b" * 5_990)
    whole: list[bool] = []

    def note(pending: PendingQuestion, *, is_excerpt: bool) -> CardView:
        whole.append(not is_excerpt)
        return card_view(pending, is_excerpt=is_excerpt)

    monkeypatch.setattr("pynchy.inbox.render.card_view", note)
    card = Renderer().card(make_pending(questions=(long,) * 4))

    assert "Cut here" in card.html
    assert whole == [False]


def test_the_json_of_the_list_is_whole(host: Host) -> None:
    asked = ask_much(host, "a\x7f")

    (view,) = host.client.pending()

    assert view["short_id"] == asked
    assert len(json.loads(json.dumps(view))["questions"][0]["question"]) == 19_001


def test_a_card_was_rendered_anew_for_every_page_that_is_open(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[tuple[str, str]] = []

    def note(pending: PendingQuestion, *, is_excerpt: bool) -> CardView:
        rendered.append((pending.request_id, revision_of(pending)))
        return card_view(pending, is_excerpt=is_excerpt)

    address = host.data.host()
    request = urllib.request.Request(  # noqa: S310 - our own host
        f"{address.url}/inbox/stream", headers={"Authorization": f"Bearer {address.token}"}
    )
    with ExitStack() as stack:
        streams = [
            stack.enter_context(urllib.request.urlopen(request, timeout=30))  # noqa: S310 - the same
            for _ in range(5)
        ]
        for stream in streams:
            assert stream.readline() == b"event: sync\n"
        monkeypatch.setattr("pynchy.inbox.render.card_view", note)
        for number in range(3):
            host.ask({"question": f"Question {number}?", "options": [{"label": "Yes"}]})
        told = [_until_last_card(stream) for stream in streams]

    assert all(each == told[0] for each in told)
    assert len(rendered) == len(set(rendered))


def _until_last_card(stream: Iterable[bytes]) -> list[bytes]:
    """Return what a page is told until the third card."""
    told, kind = [], b""
    for line in stream:
        if line.startswith(b"event: "):
            kind = line
        elif line.startswith(b"data: ") and kind in {b"event: card\n", b"event: over\n"}:
            told.append(kind + line)
            if b"Question 2?" in line:
                break
    return told
