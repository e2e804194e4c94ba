"""The order of `pynchy pending`, and its titles."""

import json

from tests.unit.cli.support import Host, Run


def test_pending_lists_the_urgent_and_then_the_newest_with_their_titles(
    host: Host, run: Run
) -> None:
    first = host.ask("One?", title="Release 5")
    second = host.ask("Two?")
    urgent = host.ask("Three?", urgency="high")
    host.ask("Four?", urgency="low")

    lines = [line.split("\t") for line in run("pending").stdout.splitlines()]

    assert [line[0] for line in lines][:3] == [urgent, second, first]
    assert [line[-1] for line in lines] == ["", "", "Release 5", ""]
    listed = json.loads(run("pending", "--json").stdout)
    assert [view["short_id"] for view in listed][:3] == [first, second, urgent]
