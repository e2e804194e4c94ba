"""Slack in trouble, the host in trouble, the settings wrong: no question and no answer is lost."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from tests.acceptance import support
from tests.acceptance.support import PYNCHY, Host, Runs
from tests.slack.conftest import StartRoom
from tests.slack.support import ANA, BEN, DEPLOY, EVE, YES_NO, Asked, Room, group_table, settings
from tests.standins.slack import Fault, SlackStandIn, look
from tests.standins.slack.sockets import REASONS
from tests.waiting import until

from agent_runner.asking import Outcome, Question

ODD_HOST = Path(__file__).with_name("odd_host.py")


def problems(host: Host) -> str:
    return " ".join(host.http("GET", "/healthz").body["problems"])


@pytest.mark.parametrize(
    "fault",
    [Fault(drop=True), Fault(before=True), Fault(status=503), Fault(status=429), Fault(status=500)],
)
async def test_a_card_whose_posting_fails_for_a_moment_is_shown_once(
    troubled: Room, fault: Fault
) -> None:
    room = troubled
    room.slack.fail("chat.postMessage", fault)

    asked = await room.ask()
    card = await room.shown(asked)
    room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    assert len(room.cards()) == 1
    await room.settled(card, "Ana")


async def test_a_click_on_a_card_that_the_host_does_not_know_of_yet_counts(troubled: Room) -> None:
    troubled.slack.fail("chat.postMessage", Fault(late_seconds=0.5))

    asked = await troubled.ask()
    card = await troubled.card()
    click = troubled.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    assert await asyncio.to_thread(click.wait)
    await troubled.settled(card, "Ana")


async def test_a_slow_slack_is_waited_for(troubled: Room) -> None:
    troubled.slack.fail("*", Fault(slow_seconds=0.5), times=2)

    asked = await troubled.ask()
    troubled.ana.press(await troubled.shown(asked), "Yes")

    assert await asked.answer() == (("Yes",), None)
    assert len(troubled.cards()) == 1


async def test_a_failed_update_is_tried_again_and_never_undoes_the_answer(
    troubled: Room,
) -> None:
    room = troubled
    asked = await room.ask()
    card = await room.shown(asked)
    room.slack.fail("chat.update", Fault(drop=True))
    room.slack.fail("chat.update", Fault(error="internal_error"))

    room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    await room.settled(card, "Ana")
    await room.host.closed(asked.request_id)


async def test_a_failed_update_is_tried_again_after_a_restart(start_room: StartRoom) -> None:
    room = await start_room()
    asked = await room.ask()
    card = await room.shown(asked)
    room.slack.fail("chat.update", Fault(error="fatal_error"), times=100)

    room.ana.press(card, "Yes")
    assert await asked.answer() == (("Yes",), None)
    await until(lambda: room.slack.calls("chat.update", "fatal_error"), "a failed update")
    assert card.is_open
    await room.kill()
    room.slack.faults.clear()
    await room.start()

    await room.settled(card, "Answered", "Ana")
    await room.host.closed(asked.request_id)


async def test_a_click_after_a_restart_still_counts(start_room: StartRoom) -> None:
    room = await start_room()
    asked = await room.ask()
    card = await room.shown(asked)

    await room.restart()
    room.ana.press(card, "No")

    assert await asked.answer() == (("No",), None)
    assert len(room.cards()) == 1
    await room.settled(card, "Ana")


async def test_a_reply_typed_while_the_host_was_down_is_found(start_room: StartRoom) -> None:
    room = await start_room()
    asked = await room.ask()
    card = await room.shown(asked)

    await room.kill()
    room.eve.reply(card, "No")
    room.ana.reply(card, "Yes")
    await room.start()

    assert await asked.answer() == (("Yes",), None)
    assert (await asked.result()).answered_by == "Ana"
    await room.settled(card, "Ana")


async def test_with_slack_away_the_question_goes_to_the_next_channel(troubled_pair: Room) -> None:
    room = troubled_pair
    room.slack.go_away()

    asked = await room.ask()
    await room.host.state(asked.request_id, "open")
    assert room.host.answer(asked.request_id, "Yes").status == 200

    assert await asked.answer() == (("Yes",), None)
    await until(lambda: "slack" in problems(room.host), "the problem to be told")


async def test_a_question_that_was_asked_while_slack_was_away_appears_there_when_it_is_back(
    troubled_pair: Room,
) -> None:
    room = troubled_pair
    before = len(room.cards())
    room.slack.go_away()
    asked = await room.ask(Question("While you were away?", options=YES_NO))
    await room.host.state(asked.request_id, "open")
    await until(lambda: "failed" in room.host.card_states(asked.request_id).values(), "a failure")

    room.slack.come_back()
    await room.shown_here(asked)
    [card] = room.cards()[before:]
    room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    await room.settled(card, "While you were away?", "Answered", "Ana")
    assert len(room.cards()) == before + 1


async def test_a_question_for_slack_alone_waits_until_slack_is_back(troubled: Room) -> None:
    room = troubled
    room.slack.go_away()
    asked = await room.ask(Question("Only you?", options=YES_NO))
    await until(lambda: "failed" in states_of(room, asked), "a failure")

    room.slack.come_back()
    await room.shown_here(asked)
    [card] = room.cards()
    room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    assert "repeat" not in look(card).text


async def test_a_chat_that_slack_does_not_know_is_an_error_at_once(start_room: StartRoom) -> None:
    room = await start_room()
    room.slack.fail("chat.postMessage", Fault(error="not_in_channel"))

    asked = await room.ask()
    result = await asyncio.wait_for(asked.result(), 25)

    assert result.outcome is Outcome.UNDELIVERABLE
    assert "/invite" in str(result.error or result.reason)


async def test_a_card_that_failed_and_is_there_after_all_is_settled(start_room: StartRoom) -> None:
    room = await start_room(channels=("slack", "local"))
    room.slack.fail("chat.postMessage", Fault(drop=True))
    room.slack.fail("chat.postMessage", Fault(before=True), times=1_000)
    room.slack.fail("chat.delete", Fault(before=True), times=1_000)
    room.slack.fail("conversations.history", Fault(before=True), times=1_000)
    asked = await room.ask(DEPLOY)
    await until(lambda: "failed" in states_of(room, asked), "a failure")
    [card] = room.cards()

    room.slack.faults.clear("conversations.history")
    await room.host.cli("answer", asked.request_id, "Yes")

    assert await asked.answer() == (("Yes",), None)
    await room.settled(card, "Answered", "Yes")


def states_of(room: Room, asked: Asked) -> list[str]:
    """Return what became of the cards, as far as the question is known yet."""
    known = {question["request_id"] for question in room.host.pending()}
    return [*room.host.card_states(asked.request_id).values()] if asked.request_id in known else []


async def test_with_slack_away_and_no_other_channel_the_agent_gets_an_error_in_the_end(
    start_room: StartRoom,
) -> None:
    room = await start_room('show_patience = "0s"')
    room.slack.go_away()

    asked = await room.ask()
    result = await asyncio.wait_for(asked.result(), 25)

    assert result.outcome is Outcome.UNDELIVERABLE
    assert "slack" in str(result.error or result.reason).lower()


async def test_a_reply_typed_while_slack_was_out_of_reach_is_caught_up(
    troubled: Room,
) -> None:
    room = troubled
    asked = await room.ask()
    card = await room.shown(asked)

    room.slack.go_away()
    lost = room.ana.reply(card, "later, please")
    room.slack.come_back()

    assert await asked.answer() == ((), "later, please")
    assert lost.sent_at == []
    await room.settled(card, "Ana")
    await until(lambda: "slack" not in problems(room.host), "no problem any more")


async def test_every_kind_of_disconnect_is_survived(troubled: Room) -> None:
    room = troubled

    for number, reason in enumerate(REASONS, start=1):
        asked = await room.ask(Question(f"After {reason}?"))
        await room.host.state(asked.request_id, "open")
        card = await room.card(number)
        opened = room.slack.sockets.opened
        room.slack.disconnect(reason)
        room.ana.reply(card, reason)

        assert await asked.answer() == ((), reason)
        await until(lambda before=opened: room.slack.sockets.opened > before, "a new socket")
        await until(lambda: room.slack.sockets.count, "an open socket")
        await room.settled(card, reason)


async def test_retry_after_is_heeded(troubled: Room) -> None:
    room = troubled
    room.slack.fail("chat.postMessage", Fault(status=429, retry_after_seconds=2))

    asked = await room.ask()
    card = await room.card()
    refused = room.slack.calls("chat.postMessage", "429")[-1]

    assert float(card.ts) - refused.at >= 1.99
    room.ana.press(await room.shown(asked), "Yes")
    assert await asked.answer() == (("Yes",), None)
    assert len(room.cards()) == 1


async def test_a_click_is_acknowledged_in_time_though_the_disk_is_slow(
    start_room: StartRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    script = tmp_path / "odd-pynchy"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ODD_HOST}" "$@"\n')
    script.chmod(0o700)
    monkeypatch.setenv("PYNCHY_TEST_GATE", str(gate))
    monkeypatch.setattr(support, "PYNCHY", script)
    room = await start_room()
    asked = await room.ask()
    card = await room.shown(asked)

    click = room.ana.press(card, "Yes")
    reply = room.ben.reply(card, "No")
    assert await asyncio.to_thread(click.wait)
    assert await asyncio.to_thread(reply.wait)
    assert not asked.call.done()
    # Nobody is thanked for what can still vanish.
    assert "Answered" not in look(card).text
    gate.touch()

    result = await asked.result()
    assert result.answered_by in {"Ana", "Ben"}
    await room.settled(card, "Answered", str(result.answered_by))


async def test_a_late_answer_is_shown_as_resuming_and_then_as_delivered(
    start_room: StartRoom, tmp_path: Path
) -> None:
    runs = Runs(tmp_path)
    room = await start_room(runs.launcher("wait"), 'receipt_grace = "100ms"')
    asked = await room.ask()
    card = await room.shown(asked)
    asked.call.cancel()
    await room.close()

    room.ana.press(card, "Yes")
    await room.settled(card, "Answered", "Ana", "resuming")
    runs.do("acknowledge")

    await room.settled(card, "Answered", "Ana", "resumed and has the answer")
    await room.host.closed(asked.request_id)
    assert len(runs.succeeded()) == 1
    [started] = runs.started()
    assert started["initial"]["answers"][0]["selected"] == ["Yes"]


async def test_a_late_answer_that_cannot_be_delivered_says_why_not(
    start_room: StartRoom, tmp_path: Path
) -> None:
    runs = Runs(tmp_path)
    room = await start_room(runs.launcher("fail", attempts=1), 'receipt_grace = "100ms"')
    asked = await room.ask()
    card = await room.shown(asked)
    asked.call.cancel()
    await room.close()

    room.ana.press(card, "Yes")

    await room.settled(card, "Answered", "Ana", "Not delivered yet", "3")
    runs.do("acknowledge")
    assert room.host.retry(asked.request_id).status == 200
    await room.settled(card, "Answered", "Ana", "resumed and has the answer")


async def test_an_expired_question_says_so_and_late_clickers_are_told(
    start_room: StartRoom,
) -> None:
    room = await start_room('answer_ttl = "2s"\nwait_timeout = "2s"')
    asked = await room.ask()
    card = await room.shown(asked)
    with room.slack.holding():
        room.ana.press(card, "Yes")
        await room.settled(card, "Deploy?", "Expired")

    assert (await asked.result()).outcome is Outcome.EXPIRED
    await room.told(room.ana, "expired")


async def test_a_question_can_go_to_a_thread(start_room: StartRoom, slack: SlackStandIn) -> None:
    slack.person(ANA).say("C1", "the agents ask below")
    [top] = slack.messages("C1")
    room = await start_room(group_table("threaded", f"C1/{top.ts}"))
    threaded = Room(slack, room.host, "threaded", "C1")

    asked = await threaded.ask()
    await room.host.state(asked.request_id, "open")
    [card] = [m for m in slack.thread(top) if m.by_bot]
    threaded.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    await threaded.settled(card, "Ana")
    await threaded.close()


async def test_a_question_can_go_to_a_direct_message(
    start_room: StartRoom, slack: SlackStandIn
) -> None:
    room = await start_room(group_table("direct", ANA))
    direct = Room(slack, room.host, "direct", slack.workspace.direct(ANA).id)

    asked = await direct.ask()
    card = await direct.shown(asked)
    direct.ana.press(card, "Yes")
    assert await asked.answer() == (("Yes",), None)
    again = await direct.ask(Question("And now?"))
    await room.host.state(again.request_id, "open")
    direct.ana.reply(await direct.card(2), "tea")
    assert await again.answer() == ((), "tea")
    await direct.close()


@pytest.mark.parametrize("which", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"])
async def test_a_wrong_token_is_told_and_the_other_channels_go_on(
    start_room: StartRoom, tokens: pytest.MonkeyPatch, which: str
) -> None:
    wrong = {"SLACK_BOT_TOKEN": "xoxb-wrong", "SLACK_APP_TOKEN": "xapp-wrong"}[which]
    tokens.setenv(which, wrong)
    room = await start_room(channels=("slack", "local"), connected=False)

    # A start does not wait for Slack, so it may be unknown for a moment what is wrong.
    told = await until(
        lambda: wrong[:5] in problems(room.host) and problems(room.host), "the problem"
    )
    asked = await room.ask()
    await room.host.state(asked.request_id, "open")
    assert room.host.answer(asked.request_id, "Yes").status == 200
    code, out, err = await room.host.cli("doctor")

    assert await asked.answer() == (("Yes",), None)
    assert "slack" in told
    assert wrong not in told
    assert "slack" in (out + err).lower()
    assert code != 0
    assert wrong not in out + err
    assert wrong not in room.host.log.read_text()


async def test_missing_tokens_are_named_at_the_start(
    slack: SlackStandIn, tmp_path: Path, tokens: pytest.MonkeyPatch
) -> None:
    tokens.delenv("SLACK_BOT_TOKEN")
    config = tmp_path / "pynchy.toml"
    config.write_text(settings(slack, group_table("team", "C1")))

    process = await asyncio.create_subprocess_exec(
        PYNCHY,
        *("serve", "--port", "0", "--config", config, "--data-dir", tmp_path / "data"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await asyncio.wait_for(process.communicate(), 30)

    assert process.returncode != 0
    assert b"SLACK_BOT_TOKEN" in err
    assert b"Traceback" not in err


async def cli(config: Path, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        PYNCHY,
        *arguments,
        env={**os.environ, "PYNCHY_CONFIG": str(config)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_the_manifest_has_what_the_channel_needs(tmp_path: Path) -> None:
    code, out = await cli(tmp_path / "none.toml", "slack", "manifest", "--json")

    assert code == 0
    manifest = json.loads(out)
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    assert {"chat:write", "channels:history", "groups:history", "im:history"} <= scopes
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert {"message.channels", "message.groups", "message.im"} <= set(events)
    assert "app_mention" not in events
    assert manifest["settings"]["socket_mode_enabled"] is True


async def test_the_check_finds_what_is_wrong(
    slack: SlackStandIn, tmp_path: Path, tokens: pytest.MonkeyPatch
) -> None:
    slack.workspace.add_channel("C2", ANA, BEN, EVE, with_bot=False)
    config = tmp_path / "pynchy.toml"
    config.write_text(settings(slack, group_table("team", "C1")))
    code, said = await cli(config, "slack", "check", "--post")
    assert code == 0, said
    assert len(slack.messages("C1")) == 1

    places = {"team": "C1", "uninvited": "C2", "unknown": "C404"}
    config.write_text(settings(slack, *(group_table(*place) for place in places.items())))
    slack.workspace.scopes.discard("channels:history")
    code, said = await cli(config, "slack", "check")
    assert code != 0
    assert all(word in said for word in ("C2", "C404", "channels:history"))
    assert len(slack.messages("C1")) == 1

    tokens.setenv("SLACK_APP_TOKEN", "xapp-wrong")
    code, said = await cli(config, "slack", "check")
    assert code != 0
    assert "xapp" in said
    assert "xapp-wrong" not in said


async def test_a_hundred_questions_at_once_are_all_shown_once(
    slack: SlackStandIn, start_room: StartRoom
) -> None:
    # Slack's own limit, a message a second in each channel; twenty channels make it bearable.
    slack.limit_rate(1.0)
    places = {f"crew{number}": f"C9{number:02}" for number in range(20)}
    for channel in places.values():
        slack.workspace.add_channel(channel, ANA, BEN)
    room = await start_room(*(group_table(*place) for place in places.items()))
    rooms = [Room(slack, room.host, *place) for place in places.items()]

    # On a busy machine it takes a minute; what counts is that all of them are shown.
    asked = [
        (one, await one.ask(Question(f"{one.group} {number}?", options=YES_NO), wait_seconds=600.0))
        for one in rooms
        for number in range(5)
    ]
    await until(lambda: all(len(one.cards()) == 5 for one in rooms), "a hundred cards", 240)
    await room.host.listed(100)
    for one in rooms:
        for card in one.cards():
            one.ana.press(card, "Yes")
    results = [await each.answer() for _, each in asked]

    assert results == [(("Yes",), None)] * 100
    for one in rooms:
        texts = sorted(look(card).text for card in one.cards())
        assert len(texts) == 5
        for number in range(5):
            assert sum(f"{one.group} {number}?" in text for text in texts) == 1
        for card in one.cards():
            await one.settled(card, "Ana")
        await one.close()
