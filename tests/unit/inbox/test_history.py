"""The page of what is over: made beside the host's work, and of no more than it shows."""

import json
import threading
import urllib.request

import pytest
from tests.unit.cli.support import Host, until

from pynchy.http import inbox as pages
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
    short_id = host.ask(question)
    view = host.client.answer(short_id, (answer,), "ana")[0]
    mailbox, request_id = host.data.ipc / "web-team", view["request_id"]
    until((mailbox / "responses" / f"{request_id}.json").exists)
    taken = {"v": 1, "by": "waiter", "at": "2026-11-16T09:30:00Z"}
    (mailbox / "tasks" / f"{request_id}.received").write_text(json.dumps(taken))
    until(lambda: host.client.question(short_id)["state"] == "closed")


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
