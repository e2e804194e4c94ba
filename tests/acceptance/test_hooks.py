"""May I, in Claude Code's terminal, as its HTTP hook meets the host.

The program is played here: what it really does is in tests/agents/test_terminal_permissions.py.
"""

import asyncio
import http.client
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent
from tests.waiting import until

from pynchy.data_dir import DataFolder
from pynchy.http.hook_keys import WAITING_FILE, HookKeys

GROUP = "team"
PATH = "/hooks/claude"
TOUCH = {"command": "touch made", "description": "Make it"}
SAID = "hookSpecificOutput"
DEEP: Json = {"a": json.loads("[" * 40 + "]" * 40)}


def key_of(host: Host, group: str = GROUP) -> str:
    return HookKeys(DataFolder(host.data)).make(group)


def event(name: str, session: str = "s1", given: Json | None = None, **more: Any) -> Json:
    tool = {"tool_name": "Bash", "tool_input": given or TOUCH}
    common = {"session_id": session, "cwd": "/srv/app", "hook_event_name": name}
    return {**common, **tool, **more}


class Terminal:
    """Claude Code's end of a connection."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._key = key_of(host)
        self._open: list[http.client.HTTPConnection] = []

    def ask(self, **more: Any) -> http.client.HTTPConnection:
        """Show the dialog: the request is left hanging until somebody decides."""
        return self._post(event("PermissionRequest", **more))

    def tell(self, name: str, **more: Any) -> Json:
        return said(self._post(event(name, **more)))

    def ask_unattended(self) -> Json:
        return said(self._post(event("PermissionRequest"), {"Pynchy-Entrypoint": "sdk-cli"}))

    def _post(self, body: Json, more: dict[str, str] | None = None) -> http.client.HTTPConnection:
        address = urlsplit(self._host.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        headers = {"Authorization": f"Bearer {self._key}", **(more or {})}
        connection.request("POST", PATH, json.dumps(body).encode(), headers)
        self._open.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._open:
            connection.close()


def said(connection: http.client.HTTPConnection) -> Json:
    """Wait for the response and return what it says."""
    response = connection.getresponse()
    body: Json = json.loads(response.read())
    assert response.status == 200, body
    return body


def decided(connection: http.client.HTTPConnection) -> Json:
    output = said(connection)[SAID]
    assert output["hookEventName"] == "PermissionRequest"
    decision: Json = output["decision"]
    return decision


@pytest.fixture
def terminal(host: Host) -> Iterator[Terminal]:
    terminal = Terminal(host)
    yield terminal
    terminal.close()


async def test_what_is_allowed_on_the_phone_is_allowed_in_the_terminal(
    host: Host, terminal: Terminal
) -> None:
    waiting = terminal.ask()
    [asked] = await host.listed(1, GROUP)

    assert (asked["kind"], asked["agent"], asked["session_id"]) == ("permission", "claude", "s1")
    [question] = asked["questions"]
    assert "touch made" in question["question"]
    assert "`/srv/app`" in question["question"]
    host.answer(asked["short_id"], "approve")

    assert decided(waiting) == {"behavior": "allow"}
    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")


EDITED = {**TOUCH, "command": "touch edited"}


@pytest.mark.parametrize("end", ["PostToolUse", "PostToolUseFailure"])
async def test_what_was_edited_is_run_and_told_with_its_result_once(
    host: Host, terminal: Terminal, end: str
) -> None:
    waiting = terminal.ask()
    [asked] = await host.listed(1, GROUP)
    assert asked["editable"]

    host.answer(asked["short_id"], "approve: “my” way", edited=EDITED)

    assert decided(waiting) == {"behavior": "allow", "updatedInput": EDITED}
    # Until the model is told, a call that ends costs a process: it must be known of.
    assert (host.data / WAITING_FILE).exists()
    assert terminal.tell(end) == {}
    told = terminal.tell(end, given=EDITED)[SAID]
    assert told["hookEventName"] == end
    assert "command: touch edited\nYou had: touch made" in told["additionalContext"]
    assert told["additionalContext"].endswith("They say: “my” way")
    assert terminal.tell(end, given=EDITED) == {}
    await until(lambda: not (host.data / WAITING_FILE).exists(), "the mark to go")


async def test_what_a_person_says_beside_a_yes_is_told_with_the_result(
    host: Host, terminal: Terminal
) -> None:
    waiting = terminal.ask()
    [asked] = await host.listed(1, GROUP)

    host.answer(asked["short_id"], "approve: but slowly")

    assert decided(waiting) == {"behavior": "allow"}
    told = terminal.tell("PostToolUse")[SAID]
    assert told["additionalContext"] == "ana allowed this call. They say: but slowly"


async def test_a_call_that_was_edited_into_another_does_not_settle_that_ones_card(
    host: Host, terminal: Terminal
) -> None:
    first = terminal.ask()
    [asked] = await host.listed(1, GROUP)
    terminal.ask(given=EDITED)
    await host.listed(2, GROUP)

    host.answer(asked["short_id"], "approve", edited=EDITED)
    decided(first)
    terminal.tell("PostToolUse", given=EDITED)

    [other] = await host.listed(1, GROUP)
    assert other["request_id"] != asked["request_id"]


@pytest.mark.parametrize("how", ["deny", "decline"])
async def test_the_reason_of_a_no_is_told_word_for_word(
    host: Host, terminal: Terminal, how: str
) -> None:
    waiting = terminal.ask()
    [asked] = await host.listed(1, GROUP)

    if how == "deny":
        host.answer(asked["short_id"], "deny: not in “my” home, please")
    else:
        body = {"by": "ana", "reason": "not in “my” home, please"}
        host.http("POST", f"/api/questions/{asked['short_id']}/decline", body)

    decision = decided(waiting)
    assert decision["behavior"] == "deny"
    assert decision["message"].startswith("ana did not allow this.")
    assert decision["message"].endswith("not in “my” home, please")


async def test_whose_dialog_is_one_too_many_was_not_told_what_to_do(
    host: Host, terminal: Terminal
) -> None:
    for number in range(64):
        terminal.ask(session=f"s{number}")
    await host.listed(64, GROUP)

    response = terminal.ask(session="one more").getresponse()

    error = json.loads(response.read())["error"]
    assert response.status == 422
    assert "answer this one in the terminal" in error
    assert "pynchy approve ID" in error


@pytest.mark.parametrize("effect", ["allow", "deny"])
async def test_a_rule_answers_the_dialog_before_a_person_is_asked(
    start_host: StartHost, effect: str
) -> None:
    host = await start_host(f'[groups.{GROUP}.permissions]\n{effect} = ["Bash(touch made)"]\n')
    terminal = Terminal(host)

    decision = decided(terminal.ask())

    assert decision["behavior"] == effect
    if effect == "deny":
        [rule] = host.http("GET", "/api/rules").body
        words = f"A rule of the group denies this (rule {rule['short_id']}); nobody was asked."
        assert decision["message"] == words
    [over] = await until(host.history, "the history")
    assert (over["cards"], over["delivered"]) == ([], "live")
    assert over["ending"]["channel"] == "rule"
    terminal.close()


async def test_allowed_always_the_next_dialog_is_answered_by_the_rule(
    host: Host, terminal: Terminal
) -> None:
    looks = {"given": {"command": "git status"}}
    first = terminal.ask(**looks)
    [asked] = await host.listed(1, GROUP)

    host.answer(asked["short_id"], "always")

    assert decided(first) == {"behavior": "allow"}
    assert decided(terminal.ask(**looks)) == {"behavior": "allow"}
    assert host.pending() == []


@pytest.mark.parametrize(
    ("suggestions", "told"),
    [
        (
            [
                {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow"},
                {"type": "addDirectories", "directories": ["/etc"]},
                {"type": "setMode", "mode": "acceptEdits"},
            ],
            "`Bash`, `the folder /etc`, `its mode acceptEdits`",
        ),
        ([{"type": "new"}, 3], '`{"type": "new"}`'),
        ("none", ""),
    ],
)
async def test_the_card_of_a_dialog_did_not_say_what_the_program_suggests(
    host: Host, terminal: Terminal, suggestions: Any, told: str
) -> None:
    terminal.ask(permission_suggestions=suggestions, blocked_path="/etc", decision_reason=4)
    [asked] = await host.listed(1, GROUP)

    text = asked["questions"][0]["question"]
    assert "stopped because it leaves the folder: `/etc`" in text
    assert text.partition("shown only, never used): ")[2] == told


async def test_a_yes_in_the_terminal_settles_the_card_and_is_no_answer(
    host: Host, terminal: Terminal
) -> None:
    waiting = terminal.ask()
    [asked] = await host.listed(1, GROUP)

    terminal.tell("PostToolUse", tool_use_id="toolu_1")

    assert said(waiting) == {}
    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["ending"]["reason"]) == (
        "cleared",
        "allowed in the terminal",
    )
    assert host.answer(asked["short_id"], "approve").status == 409


async def test_a_connection_that_is_closed_settles_the_card(host: Host, terminal: Terminal) -> None:
    waiting = terminal.ask()
    [asked] = await host.listed(1, GROUP)

    waiting.close()

    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["ending"]["reason"]) == (
        "cleared",
        "closed in the terminal",
    )


@pytest.mark.parametrize(
    "other",
    [
        {"given": {"command": "touch other"}},
        {"session": "s2"},
        {"tool_name": "Write"},
        {"agent_id": "a1"},
    ],
    ids=["input", "session", "tool", "subagent"],
)
async def test_another_call_settles_nothing(host: Host, terminal: Terminal, other: Json) -> None:
    terminal.ask()
    [asked] = await host.listed(1, GROUP)

    terminal.tell("PostToolUse", **other)
    terminal.tell("PostToolUse", **other)

    assert host.question(asked["request_id"])["state"] == "open"
    terminal.tell("PostToolUse")
    await host.closed(asked["request_id"])


async def test_of_twins_none_is_settled_by_guess(host: Host, terminal: Terminal) -> None:
    terminal.ask()
    terminal.ask()
    twins = await host.listed(2, GROUP)

    terminal.tell("PostToolUse", tool_use_id="toolu_1")
    states = [host.question(twin["request_id"])["state"] for twin in twins]
    terminal.tell("PostToolUse", tool_use_id="toolu_2")

    assert states == ["open", "open"]
    for twin in twins:
        assert (await host.closed(twin["request_id"]))["ending"]["outcome"] == "cleared"


async def test_a_twin_that_was_allowed_here_does_not_settle_the_other(
    host: Host, terminal: Terminal
) -> None:
    first, second = terminal.ask(), terminal.ask()
    one, other = await host.listed(2, GROUP)
    host.answer(one["short_id"], "approve")
    await host.closed(one["request_id"])

    terminal.tell("PostToolUse", tool_use_id="toolu_1")

    assert host.question(other["request_id"])["state"] == "open"
    host.answer(other["short_id"], "deny")
    assert {decided(c)["behavior"] for c in (first, second)} == {"allow", "deny"}


async def test_a_call_that_was_allowed_and_runs_does_not_settle_a_later_twin(
    host: Host, terminal: Terminal
) -> None:
    first = terminal.ask()
    [one] = await host.listed(1, GROUP)
    host.answer(one["short_id"], "approve")
    assert decided(first) == {"behavior": "allow"}
    await host.closed(one["request_id"])
    terminal.ask()
    [other] = await host.listed(1, GROUP)

    terminal.tell("PostToolUse", tool_use_id="toolu_1")
    state = host.question(other["request_id"])["state"]
    terminal.tell("PostToolUse", tool_use_id="toolu_2")

    assert state == "open"
    assert (await host.closed(other["request_id"]))["ending"]["outcome"] == "cleared"


@pytest.mark.parametrize("typed", ["1", "2", "1. Allow once", "(1)", "1: but slowly"])
async def test_a_number_allows_nothing_from_the_command_line_either(
    host: Host, terminal: Terminal, typed: str
) -> None:
    terminal.ask()
    [asked] = await host.listed(1, GROUP)

    told = host.answer(asked["short_id"], typed)

    assert told.status == 422
    assert "“approve”" in told.body["error"]
    assert host.question(asked["request_id"])["state"] == "open"


async def test_the_end_of_a_turn_settles_what_its_main_agent_asked(
    host: Host, terminal: Terminal
) -> None:
    whose: list[Json] = [{}, {}, {"session": "s2"}, {"agent_id": "a1"}]
    for count, more in enumerate(whose, start=1):  # one after the other: they come in this order
        terminal.ask(**more)
        asked = await host.listed(count, GROUP)

    terminal.tell("Stop")

    for twin in asked[:2]:
        await host.closed(twin["request_id"])
    assert [host.question(one["request_id"])["state"] for one in asked[2:]] == ["open", "open"]


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
async def test_a_dialog_that_is_no_yes_or_no_stays_in_the_terminal(
    host: Host, terminal: Terminal, tool: str
) -> None:
    assert said(terminal.ask(tool_name=tool)) == {}

    assert host.pending() == []


async def test_a_program_without_a_terminal_is_left_alone(host: Host, terminal: Terminal) -> None:
    assert terminal.ask_unattended() == {}

    assert host.pending() == []


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_a_host_that_comes_back_clears_what_only_the_terminal_can_answer(
    host: Host, terminal: Terminal, how: str
) -> None:
    waiting = terminal.ask()
    [asked] = await host.listed(1, GROUP)

    if how == "kill":
        host.kill()
    else:
        assert await host.stop() == 0
        assert said(waiting) == {}
    await host.start()

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["outcome"] == "cleared"
    assert "restarted" in closed["ending"]["reason"]
    assert not (host.data / "terminal-waits").exists()


async def test_a_card_that_expires_decides_nothing_and_the_dialog_stays(
    start_host: StartHost,
) -> None:
    host = await start_host('answer_ttl = "500ms"\nwait_timeout = "500ms"')
    terminal = Terminal(host)

    told = await asyncio.to_thread(said, terminal.ask())
    terminal.close()

    assert told == {}
    [over] = await until(host.history, "the history")
    assert over["ending"]["outcome"] == "expired"


async def test_the_hook_beside_the_terminal_knows_whether_anybody_waits(
    host: Host, terminal: Terminal
) -> None:
    waits = host.data / "terminal-waits"
    before = waits.exists()

    terminal.ask()
    [asked] = await host.listed(1, GROUP)
    meanwhile = waits.exists()
    host.answer(asked["short_id"], "approve")
    await host.closed(asked["request_id"])

    assert (before, meanwhile) == (False, True)
    while_it_runs = waits.exists()
    terminal.tell("PostToolUse", tool_use_id="toolu_1")
    assert while_it_runs
    await until(lambda: not waits.exists(), "the file to go")


async def test_a_key_is_good_for_the_hooks_of_its_group_and_nothing_else(host: Host) -> None:
    request_id = MailboxAgent(host.group("other")).ask()
    await host.state(request_id, "open")
    hook = {"Authorization": f"Bearer {key_of(host)}"}

    paths = ["/api/pending", "/api/history", "/api/events", f"/api/questions/{request_id}", "/"]
    seen = [host.http("GET", path, headers=hook) for path in paths]
    answer = {"values": ["1"], "by": "mallory"}
    seen.append(host.http("POST", f"/api/questions/{request_id}/answer", answer, hook))
    host.http("POST", PATH, event("Stop"), hook)

    assert {reply.status for reply in seen} == {401}
    assert host.question(request_id)["state"] == "open"


@pytest.mark.parametrize("kind", ["none", "wrong", "token", "void", "basic"])
async def test_without_a_key_nothing_is_asked(host: Host, kind: str) -> None:
    keys = HookKeys(DataFolder(host.data))
    key = keys.make(GROUP)
    if kind == "void":
        assert host.http("POST", PATH, event("Stop"), {"Authorization": f"Bearer {key}"}).body == {}
        keys.drop(GROUP)
    sent = {
        "none": {},
        "wrong": {"Authorization": f"Bearer {key[:-1]}x"},
        "token": {"Authorization": f"Bearer {host.token()}"},
        "void": {"Authorization": f"Bearer {key}"},
        "basic": {"Authorization": f"Basic {key}"},
    }[kind]

    reply = host.http("POST", PATH, event("PermissionRequest"), sent)

    assert reply.status == 401
    assert "pynchy connect" in reply.body["error"]
    assert host.pending() == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        json.dumps(event("PermissionRequest", session="")).encode(),
        json.dumps(event("PermissionRequest") | {"tool_input": "ls"}).encode(),
        json.dumps(event("PermissionRequest", given=DEEP)).encode(),
        json.dumps({"hook_event_name": "PermissionRequest"}).encode(),
    ],
)
async def test_what_is_no_event_is_refused_and_asks_nobody(shared_host: Host, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {key_of(shared_host)}"}

    reply = shared_host.http("POST", PATH, body, headers)

    assert reply.status == 422
    assert reply.body["error"]


async def test_events_that_are_none_of_ours_are_passed(terminal: Terminal) -> None:
    assert terminal.tell("PreToolUse") == {}
    assert terminal.tell("PostToolUse") == {}
    assert terminal.tell("SomethingNew") == {}


async def test_a_full_group_leaves_the_dialog_to_the_terminal(start_host: StartHost) -> None:
    host = await start_host("max_open_per_group = 1\n")
    terminal = Terminal(host)
    terminal.ask()
    await host.listed(1, GROUP)

    second = terminal.ask(given={"command": "ls"}).getresponse()

    assert second.status == 422
    assert "open" in json.loads(second.read())["error"]
    assert len(host.pending()) == 1
    terminal.close()


async def test_a_group_cannot_take_all_connections_of_the_host(
    host: Host, terminal: Terminal
) -> None:
    for number in range(64):
        terminal.ask(given={"command": f"ls {number}"})
    await host.listed(64, GROUP)

    one_more = terminal.ask(given={"command": "ls"}).getresponse()

    assert one_more.status == 422
    assert "wait already" in json.loads(one_more.read())["error"]


async def test_a_flood_of_events_is_refused_and_others_are_served(start_host: StartHost) -> None:
    host = await start_host("requests_per_second = 1\nrequest_burst = 5\n")
    headers = {"Authorization": f"Bearer {key_of(host)}"}
    others = {"Authorization": f"Bearer {key_of(host, 'other')}"}

    statuses = [host.http("POST", PATH, event("Stop"), headers).status for _ in range(20)]

    assert 429 in statuses
    assert host.http("POST", PATH, event("Stop"), others).status == 200


async def test_the_card_says_in_which_repository_and_branch(
    host: Host, terminal: Terminal, tmp_path: Path
) -> None:
    inside = tmp_path / "shop" / "src"
    inside.mkdir(parents=True)
    (tmp_path / "shop" / ".git").mkdir()
    (tmp_path / "shop" / ".git" / "HEAD").write_text("ref: refs/heads/fix/cart\n")

    terminal.ask(cwd=str(inside))
    [asked] = await host.listed(1, GROUP)

    assert asked["task"] == "shop @ fix/cart"


async def test_a_pipe_in_place_of_the_branch_holds_nobody_up(
    host: Host, terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")

    terminal.ask(cwd=str(tmp_path))
    [asked] = await host.listed(1, GROUP)

    assert asked["task"] == tmp_path.name


async def test_the_answer_and_the_closing_of_the_connection_race_to_one_end(host: Host) -> None:
    for _ in range(10):
        terminal = Terminal(host)
        waiting = terminal.ask()
        [asked] = await host.listed(1, GROUP)
        answering = asyncio.to_thread(host.answer, asked["short_id"], "approve")
        _, reply = await asyncio.gather(asyncio.to_thread(waiting.close), answering)
        closed = await host.closed(asked["request_id"])
        is_cleared = closed["ending"]["outcome"] == "cleared"
        assert (reply.status == 409) == is_cleared
        assert is_cleared or closed["delivered"] in {"live", "dismissed"}
        terminal.close()
