"""Which group or tool somebody meant who wrote another name."""

import pytest

from pynchy.misspelling import similar_group, similar_tool


@pytest.mark.parametrize("written", ["web-taem", "webteam", "web_team", "wb-team", "web-teams"])
def test_a_name_with_a_slip_is_taken_for_the_similar_one(written: str) -> None:
    assert similar_group(written, ["web-team", "nightly"]) == "web-team"


@pytest.mark.parametrize(
    ("name", "other"),
    [("team-a", "team-b"), ("agent-1", "agent-12"), ("job7", "job8"), ("cli", "web-team")],
)
def test_names_of_a_series_are_not_taken_for_each_other(name: str, other: str) -> None:
    assert similar_group(name, [other]) == ""


def test_a_name_that_is_known_is_never_doubted() -> None:
    assert similar_group("web-team", ["web-team", "web-teams"]) == ""


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("bash", "Bash"),
        ("Bassh", "Bash"),
        ("webfetch", "WebFetch"),
        ("Wirte", "Write"),
        ("mcp_jira__create", "mcp__jira__create"),
        ("mcp-jira", "mcp__jira"),
        ("MCP__jira", "mcp__jira"),
    ],
)
def test_a_tool_with_a_slip_is_taken_for_the_similar_one(written: str, meant: str) -> None:
    assert similar_tool(written) == meant


@pytest.mark.parametrize(
    "name", ["Bash", "BashOutput", "NotebookRead", "mcp__jira", "mcp__jira__bash", "Deploy", "mcp"]
)
def test_a_tool_that_is_known_or_like_no_other_is_not_doubted(name: str) -> None:
    assert similar_tool(name) == ""
