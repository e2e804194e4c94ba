"""`pynchy inbox --open`: the way into a browser, which shows the link to nobody else."""

import re
import stat
import webbrowser
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.unit.cli.support import Host, Run

from pynchy.cli import inbox


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser is given to open."""
    given: list[str] = []
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.setattr(webbrowser, "get", lambda *_: None)
    monkeypatch.setattr(webbrowser, "open", lambda address: not given.append(address))
    return given


@pytest.mark.usefixtures("host")
def test_the_browser_is_given_a_file_for_its_owner_that_leads_to_the_link(
    run: Run, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "browser_is_shut_in", lambda: False)

    result = run("inbox", "--open")

    assert result.exit_code == 0
    assert "Opened in your browser." in result.output
    link = re.search(r"http://\S+/sign-in\?key=\S+", result.output)
    assert link
    (address,) = opened
    assert "key=" not in address
    file = Path(unquote(urlsplit(address).path))
    assert unescape(file.read_text()).count(link.group()) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.usefixtures("host")
def test_a_browser_that_cannot_read_our_files_is_given_the_link_itself(
    run: Run, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "browser_is_shut_in", lambda: True)

    run("inbox", "--open")

    (address,) = opened
    assert re.fullmatch(r"http://[^/]+/sign-in\?key=\S+", address)


def test_what_the_file_has_is_text_and_no_markup(
    host: Host, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "browser_is_shut_in", lambda: False)

    assert inbox.open_in_browser('http://h/?a="><script>', host.data.folder)

    assert "<script>" not in Path(unquote(urlsplit(opened[0]).path)).read_text()


@pytest.mark.parametrize(
    ("address", "reachable"),
    [
        ("http://127.0.0.1:8765", False),
        ("http://127.8.0.1:1", False),
        ("http://localhost:8765", False),
        ("http://[::1]:8765", False),
        ("http://0.0.0.0:8765", False),
        ("http://192.168.1.20:8765", True),
        ("https://inbox.example.org", True),
        ("http://[fd00::1]:8765", True),
    ],
)
def test_a_code_is_shown_only_where_another_device_reaches_it(
    address: str, *, reachable: bool
) -> None:
    assert inbox.is_reachable(f"{address}/sign-in?key=x") is reachable
