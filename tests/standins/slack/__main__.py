"""Run the stand-in as a process: print its address and tokens, then do as stdin says.

Each line of stdin is one JSON object, each answer one line of JSON:

    {"do": "messages", "channel": "C1"}
    {"do": "press", "user": "U1", "channel": "C1", "ts": "...", "button": "Yes"}
    {"do": "reply", "user": "U1", "channel": "C1", "ts": "...", "text": "tomorrow"}
    {"do": "told", "user": "U1"}

It ends with its stdin.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from tests.standins.slack.server import SlackStandIn
from tests.standins.slack.workspace import look


def main() -> int:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.standins.slack", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--channel", default="C1", help="the id of a channel to make")
    parser.add_argument("--user", default="U1", help="the id of a person in it")
    options = parser.parse_args()
    with SlackStandIn(options.port) as slack:
        slack.workspace.add_channel(options.channel, options.user)
        _say({"url": slack.url, "bot_token": slack.bot_token, "app_token": slack.app_token})
        for line in sys.stdin:
            try:
                _say(_do(slack, json.loads(line)))
            except (LookupError, ValueError) as exc:
                _say({"error": f"{type(exc).__name__}: {exc}"})
    return 0


def _do(slack: SlackStandIn, order: dict[str, Any]) -> object:
    match order["do"]:
        case "messages":
            found = slack.workspace.all_in(order["channel"])
            return [m.to_json(with_metadata=True) | {"seen": look(m).text} for m in found]
        case "told":
            return [look(ephemeral).text for ephemeral in slack.person(order["user"]).told]
    person = slack.person(order["user"])
    message = slack.workspace.message(order["channel"], order["ts"])
    match order["do"]:
        case "press":
            return {"in_time": person.press(message, order["button"]).wait()}
        case "choose":
            sent = person.choose(message, *order["labels"])
            return {"in_time": all(delivery.wait() for delivery in sent)}
        case "type":
            person.type(message, order["text"], number=order.get("number", 0))
            return {}
        case "reply":
            return {"in_time": person.reply(message, order["text"]).wait()}
    raise ValueError(f"there is nothing called {order['do']!r} to do")


def _say(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    sys.exit(main())
