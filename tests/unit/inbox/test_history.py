"""The page of what is over: made beside the host's work, and of no more than it shows."""

import json
import re
import threading
import urllib.request
from html import unescape

import pytest
from tests.unit.cli.support import Host

from pynchy.http import pages
from pynchy.inbox import markdown
from pynchy.inbox.views import RowView, row_view
from pynchy.model import Ending, PendingQuestion


def read(host: Host, path: str) -> str:
    address = host.data.host()
    request = urllib.request.Request(  # noqa: S310 - our own host
        address.url + path, headers={"Authorization": f"Bearer {address.token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - the same
        return str(reply.read().decode())


def end(host: Host, question: str, answer: str) -> None:
    """Ask it, answer it, and let its agent take the answer."""
    host.take(host.reply(host.ask(question), "answer", "ana", values=[answer]))


def test_what_was_answered_last_comes_first_also_if_its_agent_took_it_first(host: Host) -> None:
    asked = [host.ask(question) for question in ("The earlier?", "The later?")]
    earlier, later = (host.reply(short_id, "answer", "ana", values=["yes"]) for short_id in asked)
    host.take(later)
    host.take(earlier)

    html = read(host, "/history")

    assert html.index("The later?") < html.index("The earlier?")
    assert [v["short_id"] for v in host.client.history(50, None, None)] == asked[::-1]


def test_a_search_of_the_history_finds_also_what_is_older_than_thousands(host: Host) -> None:
    end(host, "Shall the oldest be found?", "yes")
    kept = host.data.ipc / "web-team" / "history"
    oldest = next(kept.iterdir())
    later = json.loads(oldest.read_text())
    later["questions"][0]["question"] = "Another one?"
    for number in range(2_100):
        (kept / f"z{number}.json").write_text(json.dumps(later | {"request_id": f"z{number}"}))

    html = read(host, "/history?q=oldest")

    assert "Another one?" in read(host, "/history?q=another")
    assert html.count("Shall the oldest be found?") == 1


def test_older_pages_of_the_history_show_each_question_once(host: Host) -> None:
    end(host, "Deploy 0?", "yes")
    kept = host.data.ipc / "web-team" / "history"
    oldest = json.loads(next(kept.iterdir()).read_text())
    for number in range(1, 120):
        oldest["questions"][0]["question"] = f"Deploy {number}?"
        (kept / f"z{number}.json").write_text(json.dumps(oldest | {"request_id": f"z{number}"}))

    path, seen = "/history", []
    while path:
        html = read(host, path)
        seen.append(set(re.findall(r"Deploy \d+\?", html)))
        more = re.search(r'href="(/history\?[^"]*after=[^"]*)"', html)
        path = unescape(more[1]) if more else ""

    assert [len(page) for page in seen] == [50, 50, 20]
    assert len(set.union(*seen)) == 120
    for nonsense in ("-1", "x", "9" * 50):
        assert "Deploy" in read(host, f"/history?after={nonsense}")


def test_the_history_reads_no_markdown_and_is_made_beside_the_hosts_work(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(host, "**Deploy** <a@b.c>?", "at night")
    rendered: list[str] = []
    made_in: list[str] = []

    def make_row(pending: PendingQuestion, ending: Ending) -> RowView:
        made_in.append(threading.current_thread().name)
        return row_view(pending, ending)

    monkeypatch.setattr(markdown, "render", rendered.append)
    monkeypatch.setattr(pages, "row_view", make_row)

    html = read(host, "/history")

    assert "**Deploy** &lt;a@b.c&gt;?" in html
    assert "at night" in html
    assert "by <bdi>ana</bdi>" in html
    assert rendered == []
    assert [name.startswith("asyncio_") for name in made_in] == [True]
