"""Replies that came while nobody listened are read, whatever is wrong with another card."""

import asyncio
from typing import Any

from tests.standins.slack import SlackStandIn
from tests.unit.slack.cards import YES_NO
from tests.unit.slack.test_replies import posted_card

from pynchy.channels.slack.card_index import CardIndex
from pynchy.channels.slack.inbound import CatchUp
from pynchy.channels.slack.web import Web


class Listener:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.something = asyncio.Event()

    async def said(self, event: dict[str, Any]) -> None:
        if event["text"] == "trouble":
            raise ZeroDivisionError
        if event.get("thread_ts") not in {None, event["ts"]}:
            self.heard.append(event["text"])
            self.something.set()


async def test_a_card_that_was_removed_does_not_keep_others_from_being_read() -> None:
    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1", "U1")
        web = Web(slack.bot_token, slack.url, pace_seconds=0)
        posted = await web.client.chat_postMessage(channel="C1", text="a card")
        slack.person("U1").say("C1", "yes", thread_ts=posted["ts"])
        index, listener = CardIndex(), Listener()
        index.put(posted_card(YES_NO, ts="1.000001"))
        index.put(posted_card(YES_NO, ts=posted["ts"]))
        catch_up = CatchUp(web, index, listener)  # type: ignore[arg-type]

        reading = asyncio.create_task(catch_up.run())
        catch_up.wanted()
        async with asyncio.timeout(20):
            await listener.something.wait()
        reading.cancel()

        assert listener.heard == ["yes"]


async def test_a_reply_that_cannot_be_read_does_not_keep_others_from_being_read() -> None:
    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1", "U1")
        web = Web(slack.bot_token, slack.url, pace_seconds=0)
        index, listener = CardIndex(), Listener()
        for text in ("trouble", "yes"):
            posted = await web.client.chat_postMessage(channel="C1", text="a card")
            slack.person("U1").say("C1", text, thread_ts=posted["ts"])
            index.put(posted_card(YES_NO, ts=posted["ts"]))
        catch_up = CatchUp(web, index, listener)  # type: ignore[arg-type]

        reading = asyncio.create_task(catch_up.run())
        for _ in range(2):
            listener.something.clear()
            catch_up.wanted()
            async with asyncio.timeout(20):
                await listener.something.wait()
        reading.cancel()

        assert listener.heard == ["yes", "yes"]
