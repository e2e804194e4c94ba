"""What the running programs say and write has the keys, types and words that it had."""

from pathlib import Path
from typing import Any

import pytest
from tests.pins.agents_side import tools_of_pynchy_mcp
from tests.pins.shapes import assert_still_there, read_snapshot
from tests.pins.shell import see_agent_runner

Seen = dict[str, Any]


def test_every_reply_over_http_has_its_status_and_shape(world: Seen) -> None:
    assert_still_there("http", world["http"])


def test_every_line_of_the_event_log_has_its_shape(world: Seen) -> None:
    assert_still_there("events", world["events"])


def test_the_live_stream_sends_the_lines_of_the_event_log(world: Seen) -> None:
    assert_still_there("stream", world["stream"])


def test_every_file_of_the_data_folder_has_its_name_and_shape(world: Seen) -> None:
    assert_still_there("files", world["files"])


@pytest.mark.parametrize("card", ["single", "multi", "text", "batch"])
def test_a_card_in_slack_carries_the_same_marks(world: Seen, card: str) -> None:
    """A card that was posted before an upgrade is answered after it."""
    pinned, now = read_snapshot("slack")[card], world["slack"][card]
    assert now["marks"] == pinned["marks"]
    assert_still_there("slack", world["slack"])


def test_commands_end_with_the_same_codes_and_print_the_same_json(world: Seen) -> None:
    assert_still_there("shell", world["shell"])


async def test_agent_runner_has_its_options_and_exit_codes(tmp_path: Path) -> None:
    assert_still_there("runner", await see_agent_runner(tmp_path))


def test_the_mcp_server_offers_exactly_the_same_tools(agents_side: Seen) -> None:
    assert agents_side["mcp"] == read_snapshot("agent-mcp")


async def test_pynchy_mcp_is_the_same_server(tmp_path: Path) -> None:
    assert await tools_of_pynchy_mcp(tmp_path) == read_snapshot("agent-mcp")


def test_the_tools_results_are_the_same(agents_side: Seen) -> None:
    assert agents_side["results"] == read_snapshot("agent-results")


def test_what_the_agents_side_writes_has_its_names_and_shapes(agents_side: Seen) -> None:
    assert_still_there("agent-files", agents_side["files"])
