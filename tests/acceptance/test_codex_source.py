"""May I, in Codex's terminal, as its daemon meets the host.

The daemon is played here: what it really does is in tests/agents/test_codex_terminal.py.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json
from tests.standins.codex import CHANGE, INPUT, CodexStandIn
from tests.waiting import until

GROUP = "team"
COLOUR = {
    "id": "colour",
    "header": "Colour",
    "question": "Which colour?",
    "isOther": True,
    "isSecret": False,
    "options": [{"label": "Blue", "description": ""}, {"label": "Red", "description": ""}],
}


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[CodexStandIn]:
    daemon = CodexStandIn(tmp_path / "codex")
    await daemon.start()
    yield daemon
    await daemon.remove()
    assert daemon.refused == []


@pytest.fixture
async def host(start_host: StartHost, daemon: CodexStandIn) -> Host:
    host = await start_host(settings(daemon))
    await until(lambda: daemon.connected, "the host to join")
    return host


def settings(daemon: CodexStandIn, more: str = "") -> str:
    home = json.dumps(str(daemon.link.parents[1]))
    return f'[groups.{GROUP}]\n[sources.codex]\ngroup = "{GROUP}"\nhome = {home}\n{more}'


async def answered(daemon: CodexStandIn, number: int) -> Json:
    await until(lambda: number in daemon.answered, "an answer")
    return daemon.answered[number]


async def test_what_is_allowed_on_the_phone_is_allowed_in_the_terminal(
    host: Host, daemon: CodexStandIn
) -> None:
    number = await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    assert (asked["kind"], asked["agent"], asked["session_id"]) == ("permission", "codex", "t1")
    [question] = asked["questions"]
    assert "```sh\ntouch made\n```" in question["question"]
    assert "`/srv/app`" in question["question"]
    host.answer(asked["short_id"], "approve")

    assert await answered(daemon, number) == {"decision": "accept"}
    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")
    assert daemon.steered == []


@pytest.mark.parametrize("how", ["deny", "decline"])
async def test_the_reason_of_a_no_is_told_before_it(
    host: Host, daemon: CodexStandIn, how: str
) -> None:
    number = await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    if how == "deny":
        host.answer(asked["short_id"], "deny: not in “my” home, please")
    else:
        body = {"by": "ana", "reason": "not in “my” home, please"}
        host.http("POST", f"/api/questions/{asked['short_id']}/decline", body)

    assert await answered(daemon, number) == {"decision": "decline"}
    [steered] = daemon.steered
    assert (steered["threadId"], steered["expectedTurnId"]) == ("t1", "turn1")
    [said] = steered["input"]
    assert said["text"] == "ana did not allow this. They say: not in “my” home, please"


async def test_a_no_counts_also_where_its_reason_cannot_be_told(
    host: Host, daemon: CodexStandIn
) -> None:
    daemon.instead["turn/steer"] = lambda asked: {
        "id": asked["id"],
        "error": {"code": -32600, "message": "no active turn to steer"},
    }
    number = await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    host.answer(asked["short_id"], "deny: not now")

    assert await answered(daemon, number) == {"decision": "decline"}


async def test_allow_always_makes_our_rule_and_never_one_of_codex(
    host: Host, daemon: CodexStandIn
) -> None:
    first = await daemon.ask_command("git status")
    [asked] = await host.listed(1, GROUP)
    host.answer(asked["short_id"], "always")
    assert await answered(daemon, first) == {"decision": "accept"}

    second = await daemon.ask_command("git status")

    assert await answered(daemon, second) == {"decision": "accept"}
    await until(lambda: len(host.history()) == 2, "the history")
    assert {one["ending"]["channel"] for one in host.history()} == {"local", "rule"}


@pytest.mark.parametrize(("effect", "decision"), [("allow", "accept"), ("deny", "decline")])
async def test_a_rule_answers_the_dialog_before_a_person_is_asked(
    start_host: StartHost, daemon: CodexStandIn, effect: str, decision: str
) -> None:
    rules = f'[groups.{GROUP}.permissions]\n{effect} = ["Bash(touch made)"]\n'
    host = await start_host(settings(daemon, rules))

    number = await daemon.ask_command()

    assert await answered(daemon, number) == {"decision": decision}
    [over] = await until(host.history, "the history")
    assert (over["cards"], over["delivered"]) == ([], "live")
    assert over["ending"]["channel"] == "rule"


async def test_no_rule_for_a_command_covers_a_program_that_is_called_like_a_shell(
    start_host: StartHost, daemon: CodexStandIn
) -> None:
    rules = f'[groups.{GROUP}.permissions]\nallow = ["Bash(git status *)"]\n'
    host = await start_host(settings(daemon, rules))

    await daemon.ask(command="/srv/app/.build/bash -lc 'git status'", cwd="/srv/app")
    [asked] = await host.listed(1, GROUP)

    [question] = asked["questions"]
    assert "\n/srv/app/.build/bash -lc 'git status'\n" in question["question"]
    assert [option["value"] for option in question["options"]] == ["approve", "deny"]


@pytest.mark.parametrize("command", [None, " "])
async def test_what_codex_does_not_describe_stays_in_the_terminal(
    host: Host, daemon: CodexStandIn, command: str | None
) -> None:
    await daemon.ask(command=command, cwd="/srv/app", availableDecisions=["accept"])
    await daemon.ask_command()

    [asked] = await host.listed(1, GROUP)

    assert "touch made" in asked["questions"][0]["question"]


async def test_no_rule_for_a_command_covers_the_rights_that_come_with_it(
    start_host: StartHost, daemon: CodexStandIn
) -> None:
    rules = f'[groups.{GROUP}.permissions]\nallow = ["Bash(touch made)"]\n'
    host = await start_host(settings(daemon, rules))

    await daemon.ask_command(additionalPermissions={"fileSystem": {"write": ["/etc"]}})

    [asked] = await host.listed(1, GROUP)
    assert '"/etc"' in asked["questions"][0]["question"]


async def test_what_is_decided_in_the_terminal_clears_the_card(
    host: Host, daemon: CodexStandIn
) -> None:
    number = await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    await daemon.resolve(number)

    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["ending"]["reason"]) == (
        "cleared",
        "decided in the terminal",
    )
    assert host.answer(asked["short_id"], "approve").status == 409
    assert daemon.answered == {}
    await until(lambda: daemon.followers() == 0, "the host to leave the thread")


async def test_a_thread_that_is_closed_takes_its_cards_with_it(
    host: Host, daemon: CodexStandIn
) -> None:
    await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    await daemon.close_thread("t1")

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["outcome"] == "cleared"


async def test_a_daemon_that_has_ended_takes_its_cards_with_it(
    host: Host, daemon: CodexStandIn
) -> None:
    await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    await daemon.stop()

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["reason"] == "Codex's background server has ended"
    await daemon.start()
    await daemon.ask_command("touch again")
    [again] = await host.listed(1, GROUP)
    assert "touch again" in again["questions"][0]["question"]


async def test_requests_of_several_threads_are_told_apart(host: Host, daemon: CodexStandIn) -> None:
    numbers = [await daemon.ask_command("touch made", thread=f"t{n}") for n in range(3)]
    numbers.append(await daemon.ask_command("touch made", thread="t0"))
    asked = await host.listed(4, GROUP)
    assert len({one["request_id"] for one in asked}) == 4
    [one] = [one for one in asked if one["session_id"] == "t1"]

    host.answer(one["short_id"], "approve")

    assert await answered(daemon, numbers[1]) == {"decision": "accept"}
    assert list(daemon.answered) == [numbers[1]]
    assert len(await host.listed(3, GROUP)) == 3


async def test_a_restarted_host_finds_open_requests_again_and_shows_nothing_twice(
    host: Host, daemon: CodexStandIn
) -> None:
    number = await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    host.kill()
    await host.start()
    [again] = await host.listed(1, GROUP)
    host.answer(again["short_id"], "approve")

    assert await answered(daemon, number) == {"decision": "accept"}
    assert again["request_id"] == asked["request_id"]
    await host.closed(asked["request_id"])
    assert len(host.history()) == 1


async def test_what_was_decided_while_no_host_ran_is_cleared(
    host: Host, daemon: CodexStandIn
) -> None:
    decided = await daemon.ask_command("touch one")
    await daemon.ask_command("touch two", thread="t2")
    asked = await host.listed(2, GROUP)
    [one] = [one for one in asked if one["session_id"] == "t1"]

    host.kill()
    await daemon.resolve(decided)
    await host.start()

    closed = await host.closed(one["request_id"])
    assert closed["ending"]["reason"] == "Codex does not ask for it any more"
    [left] = await host.listed(1, GROUP)
    assert left["session_id"] == "t2"


async def test_of_two_in_one_thread_the_one_that_was_decided_meanwhile_is_cleared(
    host: Host, daemon: CodexStandIn
) -> None:
    decided = await daemon.ask_command("touch one")
    await daemon.ask_command("touch two")
    asked = await host.listed(2, GROUP)
    [one] = [one for one in asked if "touch one" in one["questions"][0]["question"]]

    host.kill()
    await daemon.resolve(decided)
    await host.start()

    await host.closed(one["request_id"])
    [left] = await host.listed(1, GROUP)
    assert "touch two" in left["questions"][0]["question"]


async def test_an_answer_that_the_daemon_did_not_get_is_told_when_it_is_found_again(
    host: Host, daemon: CodexStandIn
) -> None:
    number = await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)
    stuck: list[Json] = []
    daemon.instead["turn/steer"] = stuck.append

    host.answer(asked["short_id"], "deny: not now")
    await until(lambda: stuck, "the host to begin to tell")
    host.kill()
    daemon.instead.clear()
    await host.start()

    assert await answered(daemon, number) == {"decision": "decline"}
    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")


async def test_an_answer_for_a_daemon_that_ended_meanwhile_is_not_kept_for_ever(
    host: Host, daemon: CodexStandIn
) -> None:
    await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)
    stuck: list[Json] = []
    daemon.instead["turn/steer"] = stuck.append
    host.answer(asked["short_id"], "deny: not now")
    await until(lambda: stuck, "the host to begin to tell")

    await daemon.stop()

    closed = await host.closed(asked["request_id"])
    assert closed["delivered"] == "dismissed"


async def test_the_change_of_a_file_is_on_the_card(host: Host, daemon: CodexStandIn) -> None:
    change = {"path": "/srv/app/a.txt", "kind": {"type": "update"}, "diff": "-one\n+1\n"}
    daemon.begin_item({"type": "fileChange", "id": "edit", "changes": [change]})

    number = await daemon.ask(method=CHANGE, itemId="edit")

    [asked] = await host.listed(1, GROUP)
    assert "Codex wants to change the file `/srv/app/a.txt`" in asked["questions"][0]["question"]
    assert "-one\n+1\n" in asked["questions"][0]["question"]
    host.answer(asked["short_id"], "approve")
    assert await answered(daemon, number) == {"decision": "accept"}


async def test_a_question_of_codex_is_answered_with_what_was_chosen(
    host: Host, daemon: CodexStandIn
) -> None:
    number = await daemon.ask(method=INPUT, questions=[COLOUR], isBlocking=True)
    [asked] = await host.listed(1, GROUP)
    assert asked["kind"] == "question"

    host.answer(asked["short_id"], "2")

    assert await answered(daemon, number) == {"answers": {"colour": {"answers": ["Red"]}}}


ALONE: dict[str, Json] = {
    "a secret": {"method": INPUT, "questions": [{**COLOUR, "isSecret": True}]},
    "no question at all": {"method": INPUT, "questions": []},
    "twins among the options": {
        "method": INPUT,
        "questions": [{**COLOUR, "options": [{"label": "a"}, {"label": "A"}]}],
    },
    "only for good": {"command": "ls", "availableDecisions": ["acceptForSession", "cancel"]},
    "a change that is not shown": {"method": CHANGE, "itemId": "unknown"},
    "a thread without a usable id": {"command": "ls", "thread": "-rf /"},
    "an item that is no text": {"command": "ls", "itemId": ["x"]},
    "not for people": {"method": "item/tool/call", "tool": "x", "arguments": {}},
    "not for people either": {"method": "account/chatgptAuthTokens/refresh"},
    "too deep": {"command": "ls", "more": json.loads("[" * 60 + "]" * 60)},
}


@pytest.mark.parametrize("params", ALONE.values(), ids=ALONE.keys())
async def test_what_cannot_be_asked_elsewhere_stays_in_the_terminal_alone(
    host: Host, daemon: CodexStandIn, params: dict[str, Any]
) -> None:
    alone = await daemon.ask(**params)

    number = await daemon.ask_command(thread="t2")
    [asked] = await host.listed(1, GROUP)
    host.answer(asked["short_id"], "approve")

    assert await answered(daemon, number) == {"decision": "accept"}
    assert alone not in daemon.answered


@pytest.mark.parametrize(
    ("forward", "kind"), [("permission", "permission"), ("question", "question")]
)
async def test_only_what_the_settings_forward_is_asked(
    start_host: StartHost, daemon: CodexStandIn, forward: str, kind: str
) -> None:
    host = await start_host(settings(daemon, f'forward = ["{forward}"]\n'))

    await daemon.ask(method=INPUT, questions=[COLOUR])
    await daemon.ask_command(thread="t2")

    [asked] = await host.listed(1, GROUP)
    assert asked["kind"] == kind


async def test_without_the_table_nobody_joins_and_old_cards_are_cleared(
    host: Host, daemon: CodexStandIn
) -> None:
    await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)

    host.kill()
    host.configure(f"[groups.{GROUP}]\n")
    await host.start()

    closed = await host.closed(asked["request_id"])
    assert "[sources.codex] is not in the settings" in closed["ending"]["reason"]
    assert daemon.connected == []


async def test_a_host_that_begins_before_codex_joins_it_later(
    start_host: StartHost, tmp_path: Path
) -> None:
    daemon = CodexStandIn(tmp_path / "codex")
    host = await start_host(settings(daemon))

    await daemon.start()
    await daemon.ask_command()

    assert len(await host.listed(1, GROUP)) == 1
    await daemon.remove()


async def test_a_daemon_that_must_not_be_spoken_to_is_told_in_the_hosts_health(
    start_host: StartHost, daemon: CodexStandIn
) -> None:
    daemon.link.parent.chmod(0o777)
    host = await start_host(settings(daemon))

    def told() -> list[str]:
        problems: list[str] = host.http("GET", "/healthz").body["problems"]
        return [problem for problem in problems if problem.startswith("Codex: ")]

    [problem] = await until(told, "the problem")
    assert "others can write into this folder" in problem
    daemon.link.parent.chmod(0o700)
    await daemon.ask_command()
    await host.listed(1, GROUP)
    assert told() == []


async def test_a_request_right_after_another_was_decided_has_its_own_card(
    host: Host, daemon: CodexStandIn
) -> None:
    for turn in range(20):
        number = await daemon.ask_command(f"touch {turn}")
        [asked] = await until(lambda: host.pending() or None, "the card")
        assert f"touch {turn}\n" in asked["questions"][0]["question"]

        await daemon.resolve(number)
        following = await daemon.ask_command(f"touch {turn} again")

        await host.closed(asked["request_id"])
        [again] = await host.listed(1, GROUP)
        assert f"touch {turn} again" in again["questions"][0]["question"]
        host.answer(again["short_id"], "approve")
        assert await answered(daemon, following) == {"decision": "accept"}
        await host.closed(again["request_id"])


async def test_a_daemon_that_fails_again_and_again_is_told_and_costs_little(
    host: Host, daemon: CodexStandIn
) -> None:
    lists: list[Json] = []

    def refuse(asked: Json) -> Json:
        lists.append(asked)
        return {"id": asked["id"], "error": {"message": "out of order"}}

    await daemon.ask_command()
    [asked] = await host.listed(1, GROUP)
    daemon.instead["thread/loaded/list"] = refuse
    for connection in list(daemon.connected):
        await connection.socket.close()

    def told() -> list[str]:
        problems: list[str] = host.http("GET", "/healthz").body["problems"]
        return [problem for problem in problems if problem.startswith("Codex: ")]

    [problem] = await until(told, "the problem")
    assert "out of order" in problem
    assert [one["request_id"] for one in host.pending()] == [asked["request_id"]]
    daemon.instead.clear()
    host.answer(asked["short_id"], "approve")
    await host.closed(asked["request_id"])
    assert told() == []
