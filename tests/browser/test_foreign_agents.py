"""The Agents page shows agents that pynchy did not start, live, and says what is a guess."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser.conftest import OpenWindow
from tests.browser.test_looks import serious
from tests.seen_agents import (
    LONG_SECONDS,
    SOURCE,
    SeeingHost,
    permission,
    question,
    seeing_host,
    seen,
    tool,
)

from pynchy.sources.base import AgentState
from pynchy.testing import make_pending

HOSTILE = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>\u202e"


class PageHost:
    """The host as a window needs it."""

    def __init__(self, host: SeeingHost) -> None:
        self._host = host
        self.url = host.data.host().url

    async def cli(self, *_: str) -> tuple[int, str, str]:
        """Make a link to sign in with, as `pynchy inbox --open` prints it."""
        return 0, f"Open this link: {self._host.client.make_link()}\n", ""


@pytest.fixture
def seeing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeeingHost]:
    with seeing_host(tmp_path / "data", monkeypatch) as host:
        yield host


def everybody() -> list[object]:
    long_ago = datetime.now(UTC) - timedelta(seconds=LONG_SECONDS)
    guessed = (tool(may_need_permission=True), tool("cat notes", None))
    return [
        seen("fixer", AgentState.PERMISSION, asks=(permission(since=long_ago),)),
        seen("asker", AgentState.WAITING, asks=(question(),)),
        seen("builder", tools=(tool(),), title="Mend the build", since=long_ago, open_todos=3),
        seen("old one", AgentState.PERMISSION, guessed=True, tools=guessed),
        seen("idler", AgentState.IDLE),
    ]


async def test_every_agent_is_there_with_what_is_known_and_what_is_guessed(
    seeing: SeeingHost, open_window: OpenWindow
) -> None:
    seeing.ask("Deploy?", agent="release")
    seeing.agents = everybody()  # type: ignore[assignment]
    window = await open_window(PageHost(seeing), "/agents")

    rows = window.page.locator(".agents > li")
    await expect(rows).to_have_count(6)
    texts = [" ".join(text.split()) for text in await rows.all_inner_texts()]

    assert "waiting on you" in texts[0]
    assert await window.page.locator("h2.source").all_inner_texts() == [SOURCE]
    found = {
        name: text
        for text in texts
        for name in re.findall(r"fixer|asker|builder|old one|idler", text)
    }
    assert "needs a permission" in found["fixer"]
    assert "bash: git push" in found["fixer"]
    assert "answer it at its own screen" in found["asker"]
    assert re.search(r"^working .*Mend the build for 1h 5m 3 open todos", found["builder"])
    assert re.search(r"bash: make test running 1h 5m", found["builder"])
    assert found["old one"].startswith("may need permission (a guess)")
    assert re.search(r"may need permission, running 1h 5m \(a guess\)", found["old one"])
    assert found["idler"].startswith("idle")
    await expect(window.page.get_by_text("What is marked as a guess")).to_be_visible()


async def test_a_change_that_has_no_event_shows_by_itself_and_keeps_the_focus(
    seeing: SeeingHost, open_window: OpenWindow
) -> None:
    seeing.ask("Deploy?", agent="release")
    window = await open_window(PageHost(seeing), "/agents")
    link = window.page.locator(".agents .item a")
    await link.focus()

    seeing.agents = [seen("builder", tools=(tool(),))]
    await expect(window.page.locator(".running")).to_contain_text("make test")

    assert await link.evaluate("link => link === document.activeElement")
    seeing.agents = [seen("builder", AgentState.IDLE)]
    await expect(window.page.locator(".agents > li.idle")).to_contain_text("builder")


async def test_a_page_that_knows_all_costs_the_host_no_list(
    seeing: SeeingHost, open_window: OpenWindow
) -> None:
    seeing.agents = [seen("builder")]
    window = await open_window(PageHost(seeing), "/agents")
    statuses: list[int] = []
    window.page.on("response", lambda r: "known=" in r.url and statuses.append(r.status))

    await window.page.wait_for_event("response", lambda r: "known=" in r.url)
    await window.page.wait_for_event("response", lambda r: "known=" in r.url)

    assert set(statuses) == {204}


async def test_a_hidden_page_asks_for_nothing_and_looks_when_it_is_shown_again(
    seeing: SeeingHost, open_window: OpenWindow
) -> None:
    window = await open_window(PageHost(seeing), "/agents", clock=True)
    hide = "Object.defineProperty(document, 'hidden', {value: true, configurable: true})"
    await window.page.evaluate(hide)
    before = len(window.requested)

    await window.page.clock.run_for(60_000)
    during = [url for url in window.requested[before:] if "/inbox/agents?known=" in url]
    seeing.agents = [seen("builder")]
    await window.page.evaluate(hide.replace("true", "false", 1))
    await window.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    await expect(window.page.locator(".agents > li")).to_contain_text("builder")
    assert during == []


async def test_a_question_asked_in_an_agents_place_is_one_row_that_leads_to_it(
    seeing: SeeingHost, open_window: OpenWindow
) -> None:
    pending = make_pending("may", source=SOURCE, session_id="ses_builder", title="Push?")
    seeing.context.ledger.index.put(pending)
    ask = question(key=pending.key)
    seeing.agents = [seen("builder", AgentState.WAITING, asks=(ask,))]
    window = await open_window(PageHost(seeing), "/agents")

    rows = window.page.locator(".agents > li")
    await expect(rows).to_have_count(1)
    await expect(rows.locator("a")).to_have_attribute("href", "/q/g1/may")
    await expect(rows).not_to_contain_text("own screen")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_everybody_can_use_the_page_and_hostile_text_does_nothing(
    seeing: SeeingHost, open_window: OpenWindow, scheme: str
) -> None:
    told = {"title": HOSTILE, "task": HOSTILE, "tools": (tool(HOSTILE * 50),)}
    evil = seen(HOSTILE, AgentState.WAITING, asks=(question(HOSTILE),), **told)
    seeing.agents = [*everybody(), evil]  # type: ignore[list-item]
    window = await open_window(PageHost(seeing), "/agents", color_scheme=scheme)
    await expect(window.page.locator(".agents > li")).to_have_count(6)

    found = await serious(window)
    narrow = {"width": 320, "height": 700}
    await window.page.set_viewport_size(narrow)  # type: ignore[arg-type]

    assert found == []
    assert await window.page.evaluate("window.pwned") is None
    assert await window.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert "\u202e" not in await window.page.locator("#agents").inner_text()
