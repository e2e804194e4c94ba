"""A stand-in for Slack, to test against without an account.

    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1", "U1")
        ...                                   # let the host ask, with api_url = slack.url
        [card] = slack.messages("C1")
        slack.person("U1").press(card, "Yes")

It takes nothing that Slack would refuse. `python -m tests.standins.slack` runs it by itself.
"""

from tests.standins.slack.faults import Fault
from tests.standins.slack.limits import Refusal
from tests.standins.slack.person import NothingThere, Person
from tests.standins.slack.server import SlackStandIn
from tests.standins.slack.sockets import Delivery
from tests.standins.slack.workspace import (
    BOT_USER,
    OTHER_TEAM,
    TEAM,
    Ephemeral,
    Message,
    Sight,
    look,
)

__all__ = [
    "BOT_USER",
    "OTHER_TEAM",
    "TEAM",
    "Delivery",
    "Ephemeral",
    "Fault",
    "Message",
    "NothingThere",
    "Person",
    "Refusal",
    "Sight",
    "SlackStandIn",
    "look",
]
