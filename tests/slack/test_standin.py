"""The stand-in takes from the real client what Slack takes, and refuses what Slack refuses."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from tests.acceptance.support import Json
from tests.standins.slack import BOT_USER, OTHER_TEAM, TEAM, Fault, Message, SlackStandIn, look
from tests.standins.slack.sockets import REASONS
from tests.waiting import until


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1", "U1", "U2")
        yield slack


@pytest.fixture
def client(slack: SlackStandIn) -> AsyncWebClient:
    return AsyncWebClient(slack.bot_token, base_url=slack.url)


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def section(text: str, **more: Any) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


def button(text: str = "Yes", **more: Any) -> Json:
    return {"type": "button", "text": plain(text), "action_id": "yes", **more}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "block_id": "b", "elements": list(elements)}


def preformatted(text: str) -> Json:
    part = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [part]}


def option(number: int, **more: Any) -> Json:
    return {"text": plain(f"Option {number}"), "value": f"o{number}", **more}


def choices(kind: str, count: int, **more: Any) -> Json:
    return {"type": kind, "action_id": kind, "options": [option(n) for n in range(count)], **more}


def text_input(**more: Any) -> Json:
    element = {"type": "plain_text_input", "action_id": "text", **more}
    return {"type": "input", "block_id": "i", "label": plain("Other"), "element": element}


GOOD: dict[str, list[Json]] = {
    "50 blocks": [section(f"{n}") for n in range(50)],
    "a section of 3000": [section("x" * 3000)],
    "a header of 150": [{"type": "header", "text": plain("x" * 150)}],
    "25 buttons": [actions(*(button(action_id=f"a{n}") for n in range(25)))],
    "a button beside a text": [section("Yes", accessory=button("x" * 75, value="v" * 2000))],
    "10 radio buttons": [actions(choices("radio_buttons", 10))],
    "10 checkboxes": [section("Which?", accessory=choices("checkboxes", 10))],
    "100 to select from": [actions(choices("static_select", 100))],
    "many of 100": [section("Which?", accessory=choices("multi_static_select", 100))],
    "an input": [text_input(max_length=3000, placeholder=plain("x" * 150))],
    "context": [{"type": "context", "elements": [plain("x")] * 10}],
    "a divider": [{"type": "divider"}],
}

BAD: dict[str, tuple[list[Json], str]] = {
    "51 blocks": ([section("x")] * 51, "no more than 50"),
    "a long section": ([section("x" * 3001)], "less than 3001"),
    "an empty section": ([section(" ")], "more than 0"),
    "a section of nothing": ([{"type": "section"}], "needs text"),
    "a long field": ([{"type": "section", "fields": [plain("x" * 2001)]}], "less than 2001"),
    "a long header": ([{"type": "header", "text": plain("x" * 151)}], "less than 151"),
    "a header that formats": (
        [{"type": "header", "text": {"type": "mrkdwn", "text": "*x*"}}],
        "mrkdwn",
    ),
    "11 context elements": (
        [{"type": "context", "elements": [plain("x")] * 11}],
        "no more than 10",
    ),
    "26 buttons": ([actions(*(button(action_id=f"a{n}") for n in range(26)))], "no more than 25"),
    "no buttons": ([actions()], "no fewer than 1"),
    "a long button": ([actions(button("x" * 76))], "less than 76"),
    "a long value": ([actions(button(value="v" * 2001))], "less than 2001"),
    "a long url": ([actions(button(url="https://" + "u" * 3000))], "less than 3001"),
    "a url of another kind": ([actions(button(url="file:///etc"))], "not an address"),
    "long rich text": ([preformatted("x" * 3001)], "less than 3001"),
    "a long action_id": ([actions(button(action_id="a" * 256))], "less than 256"),
    "a long block_id": ([section("x", block_id="b" * 256)], "less than 256"),
    "a block_id twice": ([section("x", block_id="b"), section("y", block_id="b")], "twice"),
    "an action_id twice": ([actions(button(), button())], "unique"),
    "a long option": (
        [actions({**choices("radio_buttons", 1), "options": [option(1, text=plain("x" * 76))]})],
        "less than 76",
    ),
    "a long option value": (
        [actions({**choices("radio_buttons", 1), "options": [option(1, value="v" * 76)]})],
        "less than 76",
    ),
    "a long description": (
        [
            actions(
                {**choices("checkboxes", 1), "options": [option(1, description=plain("x" * 76))]}
            )
        ],
        "less than 76",
    ),
    "11 radio buttons": ([actions(choices("radio_buttons", 11))], "no more than 10"),
    "11 checkboxes": ([actions(choices("checkboxes", 11))], "no more than 10"),
    "101 to select from": ([actions(choices("static_select", 101))], "no more than 100"),
    "no options": ([actions(choices("checkboxes", 0))], "no fewer than 1"),
    "options with one value": (
        [actions({**choices("checkboxes", 1), "options": [option(1), option(1)]})],
        "same value",
    ),
    "an initial option of another list": (
        [actions(choices("radio_buttons", 2, initial_option=option(7)))],
        "initial option",
    ),
    "a multi select among actions": ([actions(choices("multi_static_select", 2))], "unsupported"),
    "an input among actions": (
        [actions({"type": "plain_text_input", "action_id": "t"})],
        "unsupported",
    ),
    "a button as an input": (
        [{"type": "input", "label": plain("x"), "element": button()}],
        "unsupported",
    ),
    "an input without a label": (
        [{"type": "input", "element": {"type": "plain_text_input"}}],
        "missing",
    ),
    "a long input": ([text_input(max_length=3001)], "max_length"),
    "a long placeholder": ([text_input(placeholder=plain("x" * 151))], "less than 151"),
    "an unknown block": ([{"type": "poem"}], "unsupported type"),
    "an unknown property": ([section("x", colour="red")], "additional property"),
}


@pytest.mark.parametrize("what", GOOD)
async def test_what_is_within_the_limits_is_taken(client: AsyncWebClient, what: str) -> None:
    posted = await client.chat_postMessage(channel="C1", text="fallback", blocks=GOOD[what])

    assert posted["ok"]


@pytest.mark.parametrize("what", BAD)
async def test_what_breaks_a_limit_is_refused_with_the_reason(
    slack: SlackStandIn, client: AsyncWebClient, what: str
) -> None:
    blocks, reason = BAD[what]

    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel="C1", text="fallback", blocks=blocks)

    assert refused.value.response["error"] == "invalid_blocks"
    assert reason in " ".join(refused.value.response["response_metadata"]["messages"])
    assert slack.messages("C1") == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": "C9", "text": "x"}, "channel_not_found"),
        ({"channel": "C2", "text": "x"}, "not_in_channel"),
        ({"channel": "G1", "text": "x"}, "channel_not_found"),
        ({"channel": "C3", "text": "x"}, "is_archived"),
        ({"channel": "C1"}, "no_text"),
        ({"channel": "C1", "text": "x" * 4001}, "msg_too_long"),
        ({"channel": "C1", "text": "x", "parse": "full"}, "invalid_arguments"),
        ({"channel": "C1", "text": "x", "link_names": True}, "invalid_arguments"),
        ({"channel": "C1", "text": "x", "colour": "red"}, "invalid_arguments"),
        ({"channel": "C1", "text": "x", "thread_ts": "1.0"}, "thread_not_found"),
        ({"channel": "C1", "text": "x", "blocks": "nonsense"}, "invalid_blocks_format"),
        ({"channel": "C1", "text": "x", "blocks": {}}, "invalid_blocks_format"),
        (
            {"channel": "C1", "text": "x", "blocks": [section("x" * 2900)] * 5},
            "msg_blocks_too_long",
        ),
        (
            {"channel": "C1", "text": "x", "metadata": {"event_type": "a"}},
            "invalid_metadata_format",
        ),
        (
            {"channel": "C1", "text": "x", "metadata": {"event_type": "a", "event_payload": "b"}},
            "invalid_metadata_format",
        ),
        (
            {
                "channel": "C1",
                "text": "x",
                "metadata": {"event_type": "a", "event_payload": {"x": "x" * 8000}},
            },
            "metadata_too_large",
        ),
    ],
)
async def test_a_message_that_slack_would_not_take_is_refused(
    slack: SlackStandIn, client: AsyncWebClient, arguments: Json, error: str
) -> None:
    slack.workspace.add_channel("C2", "U1", with_bot=False)
    slack.workspace.add_channel("G1", "U1", private=True, with_bot=False)
    slack.workspace.add_channel("C3", "U1").archived = True

    with pytest.raises(SlackApiError) as refused:
        await client.api_call("chat.postMessage", json=arguments)

    assert refused.value.response["error"] == error


async def test_tokens_are_told_apart(slack: SlackStandIn) -> None:
    async def error(token: str | None, method: str) -> str:
        with pytest.raises(SlackApiError) as refused:
            await AsyncWebClient(token, base_url=slack.url).api_call(method)
        return str(refused.value.response["error"])

    assert await error("xoxb-wrong", "auth.test") == "invalid_auth"
    assert await error(None, "auth.test") == "not_authed"
    assert await error(slack.app_token, "auth.test") == "not_allowed_token_type"
    assert await error(slack.bot_token, "apps.connections.open") == "not_allowed_token_type"
    assert await error(slack.bot_token, "chat.sing") == "unknown_method"


async def test_scopes_are_told_and_needed(slack: SlackStandIn, client: AsyncWebClient) -> None:
    told = await client.auth_test()
    slack.workspace.scopes.discard("chat:write")

    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel="C1", text="x")

    assert "chat:write" in told.headers["x-oauth-scopes"]
    assert refused.value.response["error"] == "missing_scope"
    assert refused.value.response["needed"] == "chat:write"


async def test_a_message_is_updated_and_what_is_left_out_stays(
    slack: SlackStandIn, client: AsyncWebClient
) -> None:
    metadata = {"event_type": "question", "event_payload": {"request_id": "q1"}}
    posted = await client.chat_postMessage(
        channel="C1", text="x", blocks=[section("x"), actions(button())], metadata=metadata
    )
    [message] = slack.messages("C1")
    assert message.is_open

    await client.chat_update(channel="C1", ts=posted["ts"], text="y", blocks=[section("y")])
    found = await client.conversations_history(channel="C1", include_all_metadata=True)

    assert not message.is_open
    assert look(message).text == "y"
    assert found["messages"][0]["metadata"] == metadata
    assert "metadata" not in (await client.conversations_history(channel="C1"))["messages"][0]
    with pytest.raises(SlackApiError, match="message_not_found"):
        await client.chat_update(channel="C1", ts="1.000000", text="z")


async def test_only_ones_own_message_can_be_updated(
    slack: SlackStandIn, client: AsyncWebClient
) -> None:
    slack.person("U1").say("C1", "hello")
    [message] = slack.messages("C1")

    with pytest.raises(SlackApiError, match="cant_update_message"):
        await client.chat_update(channel="C1", ts=message.ts, text="z")


async def test_history_and_replies_come_in_pages(
    slack: SlackStandIn, client: AsyncWebClient
) -> None:
    first = await client.chat_postMessage(channel="C1", text="0")
    for number in range(1, 5):
        await client.chat_postMessage(channel="C1", text=f"{number}", thread_ts=first["ts"])
    await client.chat_postMessage(channel="C1", text="last")

    history = await client.conversations_history(channel="C1", limit=1)
    thread = [
        message["text"]
        async for page in await client.conversations_replies(channel="C1", ts=first["ts"], limit=2)
        for message in page["messages"]
    ]

    assert [m["text"] for m in history["messages"]] == ["last"]
    assert history["has_more"]
    assert thread == ["0", "1", "2", "3", "4"]
    since = await client.conversations_history(channel="C1", oldest=first["ts"])
    assert [m["text"] for m in since["messages"]] == ["last"]
    assert len(slack.messages("C1")) == 2


async def test_people_and_channels_are_described(
    slack: SlackStandIn, client: AsyncWebClient
) -> None:
    slack.workspace.add_user("U7", "Guest", OTHER_TEAM)

    info = await client.conversations_info(channel="C1")
    members = await client.conversations_members(channel="C1")
    guest = await client.users_info(user="U7")
    direct = await client.conversations_open(users="U1")
    posted = await client.chat_postMessage(channel=direct["channel"]["id"], text="x")
    await client.reactions_add(channel=posted["channel"], timestamp=posted["ts"], name="eyes")

    assert info["channel"]["is_member"]
    assert set(members["members"]) == {"U1", "U2", BOT_USER}
    assert guest["user"]["team_id"] == OTHER_TEAM
    with pytest.raises(SlackApiError, match="user_not_found"):
        await client.users_info(user="U9")
    with pytest.raises(SlackApiError, match="already_reacted"):
        await client.reactions_add(channel=posted["channel"], timestamp=posted["ts"], name="eyes")


async def test_an_ephemeral_is_seen_by_one_member_alone(
    slack: SlackStandIn, client: AsyncWebClient
) -> None:
    await client.chat_postEphemeral(channel="C1", user="U1", text="psst")

    assert [e.text for e in slack.person("U1").told] == ["psst"]
    assert slack.person("U2").told == []
    assert slack.messages("C1") == []
    with pytest.raises(SlackApiError, match="user_not_in_channel"):
        await client.chat_postEphemeral(channel="C1", user="U9", text="psst")


async def test_form_bodies_are_read_like_json(slack: SlackStandIn) -> None:
    form = {"token": slack.bot_token, "channel": "C1", "text": "x"}
    form["blocks"] = json.dumps([section("x")])
    async with aiohttp.ClientSession() as session:
        reply = await session.post(slack.url + "chat.postMessage", data=form)
        body = await reply.json()
        in_json = {"token": slack.bot_token, "channel": "C1", "text": "x"}
        refused = await session.post(slack.url + "chat.postMessage", json=in_json)

        assert body["ok"]
        assert (await refused.json())["error"] == "not_authed"


async def test_a_channel_takes_so_many_messages_a_second(
    slack: SlackStandIn, client: AsyncWebClient
) -> None:
    slack.workspace.add_channel("C2", "U1")
    slack.limit_rate(1)

    await client.chat_postMessage(channel="C1", text="1")
    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel="C1", text="2")
    await client.chat_postMessage(channel="C2", text="another channel")

    assert refused.value.response.status_code == 429
    assert refused.value.response.headers["Retry-After"] == "1"
    [message] = slack.messages("C1")
    await client.chat_update(channel="C1", ts=message.ts, text="3")
    with pytest.raises(SlackApiError, match="429"):
        await client.chat_update(channel="C1", ts=message.ts, text="4")
    assert message.text == "3"


async def test_history_tells_of_teams_of_reactions_and_of_who_began_a_thread(
    slack: SlackStandIn, client: AsyncWebClient
) -> None:
    posted = await client.chat_postMessage(channel="C1", text="a card")
    guest = slack.person("U2")
    guest.user = type(guest.user)("U2", "Guest", OTHER_TEAM)
    for person in (slack.person("U1"), guest):
        person.say("C1", "yes", thread_ts=posted["ts"])
    first = slack.workspace.thread("C1", posted["ts"])[0]
    await client.reactions_add(channel="C1", timestamp=first.ts, name="white_check_mark")

    read = await client.conversations_replies(channel="C1", ts=posted["ts"])

    _, ours, theirs = read["messages"]
    assert (ours["team"], theirs["team"], theirs["user_team"]) == (TEAM, OTHER_TEAM, OTHER_TEAM)
    assert {message["parent_user_id"] for message in (ours, theirs)} == {BOT_USER}
    assert ours["reactions"] == [{"name": "white_check_mark", "users": [BOT_USER], "count": 1}]
    assert "reactions" not in theirs
    assert "user_team" not in ours


async def test_any_refusal_can_be_ordered(slack: SlackStandIn, client: AsyncWebClient) -> None:
    slack.fail("chat.postMessage", Fault(error="missing_scope"))

    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel="C1", text="x")

    assert refused.value.response["error"] == "missing_scope"


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        ("on staging.example.com", "on <http://staging.example.com|staging.example.com>"),
        ("https://h.example/a?b&c", "<https://h.example/a?b&amp;c>"),
        ("a@b.example", "<mailto:a@b.example|a@b.example>"),
        ("release 2.1 of app.py", "release 2.1 of app.py"),
    ],
)
def test_typed_addresses_become_links(slack: SlackStandIn, typed: str, sent: str) -> None:
    slack.person("U1").say("C1", typed)

    [message] = slack.messages("C1")
    assert message.text == sent


async def test_faults_happen_as_ordered(slack: SlackStandIn) -> None:
    client = AsyncWebClient(slack.bot_token, base_url=slack.url, retry_handlers=[])
    slack.fail("chat.postMessage", Fault(drop=True))
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel="C1", text="done, reply lost")
    slack.fail("chat.postMessage", Fault(before=True))
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel="C1", text="never done")
    slack.fail("chat.postMessage", Fault(status=503))
    with pytest.raises((SlackApiError, AttributeError)):
        await client.chat_postMessage(channel="C1", text="never done")
    slack.fail("*", Fault(error="internal_error"))
    with pytest.raises(SlackApiError, match="internal_error"):
        await client.auth_test()
    slack.fail("chat.postMessage", Fault(status=429, retry_after_seconds=7))
    with pytest.raises(SlackApiError) as limited:
        await client.chat_postMessage(channel="C1", text="never done")

    assert [m.text for m in slack.messages("C1")] == ["done, reply lost"]
    assert limited.value.response.headers["Retry-After"] == "7"


class Bolt:
    """The real Bolt app with a listener that notes what comes."""

    def __init__(self, slack: SlackStandIn) -> None:
        client = AsyncWebClient(slack.bot_token, base_url=slack.url)
        self.app = AsyncApp(client=client)
        self.client = client
        self.clicks: list[Json] = []
        self.events: list[Json] = []
        self.handler = AsyncSocketModeHandler(self.app, slack.app_token, ping_interval=0.2)
        self.app.action("yes")(self._click)
        self.app.action("radio_buttons")(self._click)
        self.app.event("message")(self._event)

    async def _click(self, ack: Any, body: Json) -> None:
        await ack()
        self.clicks.append(body)

    async def _event(self, event: Json) -> None:
        self.events.append(event)


@pytest.fixture
async def bolt(slack: SlackStandIn) -> AsyncIterator[Bolt]:
    bolt = Bolt(slack)
    await bolt.handler.connect_async()
    await until(lambda: slack.sockets.count == 1, "the socket")
    yield bolt
    await bolt.handler.close_async()


async def post(slack: SlackStandIn, bolt: Bolt, *blocks: Json) -> Message:
    await bolt.client.chat_postMessage(channel="C1", text="x", blocks=list(blocks))
    return slack.messages("C1")[-1]


async def press_until_heard(slack: SlackStandIn, bolt: Bolt, card: Message) -> None:
    """The client may still replace its socket: what went to the old one is lost, as in life."""

    def look() -> bool:
        if not bolt.clicks:
            slack.person("U1").press(card, "Yes")
        return bool(bolt.clicks)

    await until(look, "a click that is heard")


async def test_a_click_reaches_the_listener_with_the_whole_state(
    slack: SlackStandIn, bolt: Bolt
) -> None:
    radio, text = actions(choices("radio_buttons", 2)), text_input()
    second = actions(button(value="v")) | {"block_id": "c"}
    card = await post(slack, bolt, section("Which?"), radio, text, second)
    person = slack.person("U1")

    person.choose(card, "Option 1")
    person.type(card, "words")
    delivery = person.press(card, "Yes")
    await until(lambda: len(bolt.clicks) == 2, "both actions")

    body = bolt.clicks[-1]
    assert await asyncio.to_thread(delivery.wait)
    assert body["actions"][0]["value"] == "v"
    assert body["container"] == {
        "type": "message",
        "message_ts": card.ts,
        "channel_id": "C1",
        "is_ephemeral": False,
    }
    assert body["user"]["id"] == "U1"
    chosen = body["state"]["values"]["b"]["radio_buttons"]["selected_option"]
    assert chosen["value"] == "o1"
    assert body["state"]["values"]["i"]["text"] == {"type": "plain_text_input", "value": "words"}


async def test_a_click_that_nobody_listens_for_is_never_acknowledged(
    slack: SlackStandIn, bolt: Bolt
) -> None:
    card = await post(slack, bolt, actions(button(action_id="unheard")))

    delivery = slack.person("U1").press(card, "Yes")

    assert not await asyncio.to_thread(delivery.wait)
    assert len(delivery.sent_at) == 1


async def test_a_thread_reply_arrives_escaped_and_the_bots_own_words_too(
    slack: SlackStandIn, bolt: Bolt
) -> None:
    card = await post(slack, bolt, section("x"))

    delivery = slack.person("U1").reply(card, "a < b & c")
    await until(lambda: bolt.events, "the event")

    assert await asyncio.to_thread(delivery.wait)
    [event] = bolt.events
    assert event["text"] == "a &lt; b &amp; c"
    assert event["thread_ts"] == card.ts
    assert event["user"] == "U1"


async def test_an_envelope_is_delivered_twice_and_in_another_order(
    slack: SlackStandIn, bolt: Bolt
) -> None:
    card = await post(slack, bolt, actions(button()))
    with slack.holding() as held:
        slack.person("U1").press(card, "Yes")
        slack.person("U2").press(card, "Yes")
        held.reverse()
    await until(lambda: len(bolt.clicks) == 2, "both clicks")
    slack.redeliver(held[0])
    await until(lambda: len(bolt.clicks) == 3, "the repeated click")

    assert [click["user"]["id"] for click in bolt.clicks] == ["U2", "U1", "U2"]


@pytest.mark.parametrize("reason", REASONS)
async def test_a_client_that_is_sent_away_comes_back(
    slack: SlackStandIn, bolt: Bolt, reason: str
) -> None:
    card = await post(slack, bolt, actions(button()))

    slack.disconnect(reason)
    await until(lambda: slack.sockets.opened > 1 and slack.sockets.count, "a new socket")

    await press_until_heard(slack, bolt, card)


async def test_slack_goes_away_and_comes_back_with_what_was_said(
    slack: SlackStandIn, bolt: Bolt
) -> None:
    card = await post(slack, bolt, actions(button()))

    slack.go_away()
    with pytest.raises(aiohttp.ClientError):
        await bolt.client.auth_test()
    lost = slack.person("U1").press(card, "Yes")
    slack.come_back()
    await until(lambda: slack.sockets.count, "a new socket")
    await press_until_heard(slack, bolt, card)

    assert lost.sent_at == []
    assert lost.acked_at is None
    assert (await bolt.client.conversations_history(channel="C1"))["messages"][0]["ts"] == card.ts


async def test_a_ticket_opens_one_socket(slack: SlackStandIn) -> None:
    client = AsyncWebClient(base_url=slack.url)
    opened = await client.apps_connections_open(app_token=slack.app_token)
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(opened["url"])
        hello = await socket.receive_json()
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(opened["url"])
        await socket.close()

    assert hello["type"] == "hello"
    assert hello["num_connections"] == 1


def test_what_slack_makes_of_a_text_is_seen() -> None:
    nasty = "<!channel> <@U1> <#C1> <https://a.b|c> *bold* https://d.e &lt;ok&gt;"
    shown = look(Message("C1", "1", "U1", "", [section(nasty)]))
    quiet = look(Message("C1", "1", "U1", "", [{"type": "section", "text": plain(nasty)}]))

    assert shown.mentions == ("!channel", "@U1", "#C1")
    assert shown.links == ("https://a.b|c", "https://d.e")
    assert shown.text == "!channel @U1 #C1 c bold https://d.e <ok>"
    assert (quiet.text, quiet.mentions, quiet.links) == (nasty, (), ())


def test_it_runs_as_a_process() -> None:
    command = [sys.executable, "-m", "tests.standins.slack"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        about = json.loads(process.stdout.readline())
        client = AsyncWebClient(about["bot_token"], base_url=about["url"])
        asyncio.run(client.chat_postMessage(channel="C1", text="hello"))
        process.stdin.write('{"do": "messages", "channel": "C1"}\n{"do": "sing", "user": "U1"}\n')
        process.stdin.close()
        messages, error = map(json.loads, process.stdout.readlines())

    assert [message["seen"] for message in messages] == ["hello"]
    assert "error" in error
