"""What OpenFlow's plan asks of its tools, as a table: arguments, what a person does, the result.

The host is played by hand; tests/desktop/test_notify.py has the same with nothing played.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.agent.conftest import Mailbox
from tests.waiting import until

from agent_runner.agent_tools._ask_user import Identity, ToolCall, ToolResult, UnknownTool
from agent_runner.agent_tools._notify import NotifyTools
from agent_runner.asking import Asker
from agent_runner.asking.notifying import DEFAULT_SECONDS

Json = dict[str, Any]
ASKED = {"title": "Merge", "question": "Merge it?"}
TWO = ["Oui, merger", "Plus tard"]
WAITS = {"wait_for_response": True}


class NotifyClient:
    """An agent's client and the host that it reaches."""

    def __init__(self, tools: NotifyTools, mailbox: Mailbox) -> None:
        self._tools = tools
        self.mailbox = mailbox

    async def result(self, tool: str, arguments: Json) -> ToolResult:
        result = await self._tools.call(ToolCall(tool, arguments))
        assert isinstance(result, ToolResult)
        return result

    async def call(self, tool: str, **arguments: Any) -> Json:
        told: Json = json.loads((await self.result(tool, arguments)).text)
        return told

    def asking(self, **more: Any) -> "asyncio.Task[Json]":
        return asyncio.create_task(self.call("ask_user", **ASKED, **WAITS, **more))

    async def picked_up(self) -> Json:
        """Take the oldest request out of the mailbox, as a host does."""
        [name, *_] = await until(lambda: self.mailbox.names("[!.]*.json"), "the request")
        path = self.mailbox.tasks / name
        request: Json = json.loads(path.read_bytes())
        path.unlink()
        return request

    def answer(self, request: Json, label: str) -> None:
        answers = [{"question": "Merge it?", "selected": [label], "text": None}]
        self.mailbox.respond(request["request_id"], answers=answers)

    def decline(self, request: Json, **fields: Any) -> None:
        self.mailbox.respond(request["request_id"], outcome="declined", answers=[], **fields)

    def dismiss(self, request: Json, *, stays_open: bool = True, **fields: Any) -> None:
        """Say that a person has closed the popup."""
        body = {"v": 1, "request_id": request["request_id"], "by": "ana", "open": stays_open}
        path = self.mailbox.responses / f"{request['request_id']}.dismissed.json"
        temporary = path.with_name(f".{path.name}")
        temporary.write_text(json.dumps(body | fields))
        temporary.rename(path)


@pytest.fixture
async def client(mailbox: Mailbox) -> AsyncIterator[NotifyClient]:
    async with served(mailbox) as client:
        yield client


@asynccontextmanager
async def served(mailbox: Mailbox, **fields: str) -> AsyncIterator[NotifyClient]:
    async with Asker(mailbox.path) as asker, asyncio.TaskGroup() as tasks:
        yield NotifyClient(NotifyTools(asker, Identity(**fields), tasks), mailbox)


def _press(label: str) -> Callable[[NotifyClient, Json], None]:
    return lambda client, request: client.answer(request, label)


def _close(client: NotifyClient, request: Json) -> None:
    client.dismiss(request)


def _decline(client: NotifyClient, request: Json) -> None:
    client.decline(request)


def _close_alone(client: NotifyClient, request: Json) -> None:
    client.dismiss(request, stays_open=False)
    client.decline(request)


def _close_one_button(client: NotifyClient, request: Json) -> None:
    client.dismiss(request, implied_choice="Plus tard")


def _close_one_button_alone(client: NotifyClient, request: Json) -> None:
    client.dismiss(request, stays_open=False, implied_choice="Plus tard")
    client.decline(request)


CLOSED = {"response": "dismissed", "choice": None}


def _accepted(label: str) -> Json:
    return {"response": "accepted", "choice": label}


@pytest.mark.parametrize(
    ("arguments", "buttons", "does", "result"),
    [
        pytest.param({}, ["OK"], _press("OK"), _accepted("OK"), id="no options: OK"),
        pytest.param(
            {"action_label": "Go"}, ["Go"], _press("Go"), _accepted("Go"), id="a label alone"
        ),
        pytest.param(
            {"options": TWO}, TWO, _press(TWO[0]), _accepted(TWO[0]), id="the first of two"
        ),
        pytest.param(
            {"options": TWO}, TWO, _press(TWO[1]), _accepted(TWO[1]), id="the second of two"
        ),
        pytest.param(
            {"options": ["yes", "no"], "action_label": "Ship"},
            ["Ship", "no"],
            _press("Ship"),
            _accepted("Ship"),
            id="the label is the first button's",
        ),
        pytest.param(
            {"options": TWO, "action_label": "plus tard"},
            TWO[::-1],
            _press(TWO[1]),
            _accepted(TWO[1]),
            id="the label of another option puts that first",
        ),
        pytest.param({"options": TWO}, TWO, _close, CLOSED, id="closed, others show it"),
        pytest.param({"options": TWO}, TWO, _close_alone, CLOSED, id="closed, nothing else"),
        pytest.param({"options": TWO}, TWO, _decline, CLOSED, id="declined elsewhere"),
        pytest.param(
            {"options": TWO},
            TWO,
            _close_one_button,
            CLOSED | {"implied_choice": TWO[1]},
            id="action and close only",
        ),
        pytest.param(
            {"options": TWO},
            TWO,
            _close_one_button_alone,
            CLOSED | {"implied_choice": TWO[1]},
            id="action and close only, nothing else",
        ),
    ],
)
async def test_what_a_waiting_call_returns(
    client: NotifyClient,
    arguments: Json,
    buttons: list[str],
    does: Callable[[NotifyClient, Json], None],
    result: Json,
) -> None:
    call = client.asking(**arguments, timeout=600)
    request = await client.picked_up()
    does(client, request)
    told = await call

    [question] = request["questions"]
    assert [option["label"] for option in question["options"]] == buttons
    assert question["options_only"] is True
    assert request["hears_dismissal"] is True
    told.pop("message", None)
    if "request_id" in told:
        assert told.pop("request_id") == request["request_id"]
    assert told == result


async def test_silence_is_a_timeout_with_the_id_by_which_the_answer_is_had_later(
    client: NotifyClient,
) -> None:
    told = await client.asking(options=TWO, timeout=0.05)
    request = await client.picked_up()
    client.answer(request, TWO[1])
    late = await client.call("check_answer", request_id=told["request_id"])

    assert (told["response"], told["choice"]) == ("timeout", None)
    assert told["request_id"] == request["request_id"]
    assert late == _accepted(TWO[1])


async def test_a_dismissed_question_can_be_answered_late(client: NotifyClient) -> None:
    call = client.asking(options=TWO, timeout=600)
    request = await client.picked_up()
    client.dismiss(request)
    told = await call
    still = await client.call("check_answer", request_id=told["request_id"])
    client.answer(request, TWO[0])
    late = await client.call("check_answer", request_id=told["request_id"])

    assert told["response"] == "dismissed"
    assert (still["response"], still["choice"]) == ("timeout", None)
    assert late == _accepted(TWO[0])
    # The host is told that nobody waits any more.
    assert client.mailbox.names("*.cancel.json") == [f"{told['request_id']}.cancel.json"]


async def test_a_call_waits_sixty_seconds_where_it_does_not_say(client: NotifyClient) -> None:
    call = client.asking()
    request = await client.picked_up()
    client.answer(request, "OK")
    await call

    assert request["wait_seconds"] == DEFAULT_SECONDS == 60


@pytest.mark.parametrize(
    ("urgency", "agent", "message"),
    [
        ("low", "Executeur", "\u2139\ufe0f Question sent [Executeur]: Merge"),
        ("normal", "", "⚠️ Question sent: Merge"),
        ("high", "", "🚨 Question sent: Merge"),
    ],
)
async def test_without_waiting_it_is_as_the_old_tool(
    client: NotifyClient, urgency: str, agent: str, message: str
) -> None:
    told = await client.call("ask_user", **ASKED, urgency=urgency, agent=agent)
    request = await client.picked_up()

    assert told == {"sent": True, "message": message, "request_id": request["request_id"]}
    assert request["urgency"] == urgency


async def test_several_at_once_get_each_their_own(client: NotifyClient) -> None:
    calls = []
    requests = []
    for label in ("a", "b", "c"):
        calls.append(client.asking(action_label=label, timeout=600))
        requests.append(await client.picked_up())
    client.answer(requests[2], "c")
    client.dismiss(requests[1])
    client.answer(requests[0], "a")

    assert [(await call)["choice"] for call in calls] == ["a", None, "c"]


@pytest.mark.parametrize(
    ("given", "task"),
    [
        ({"repo": "shop", "branch": "main"}, "shop @ main"),
        ({"repo": "shop"}, "shop"),
        ({"branch": "main", "task": "Plan-14"}, "main · Plan-14"),
        ({"repo": "shop", "branch": "main", "task": "Plan-14"}, "shop @ main · Plan-14"),
        ({}, "the release"),
    ],
)
async def test_repo_and_branch_are_the_task(mailbox: Mailbox, given: Json, task: str) -> None:
    async with served(mailbox, agent="opencode", task="the release") as client:
        await client.call("ask_user", **ASKED, **given)
        request = await client.picked_up()

    assert (request["task"], request["agent"]) == (task, "opencode")


@pytest.mark.parametrize("outcome", ["undeliverable", "withdrawn", "expired"])
async def test_what_ends_without_a_person_is_never_accepted(
    client: NotifyClient, outcome: str
) -> None:
    call = client.asking(timeout=600)
    request = await client.picked_up()
    client.mailbox.respond(request["request_id"], outcome=outcome, answers=[], error=None)
    told = await call

    assert told["response"] == ("timeout" if outcome == "expired" else "unavailable")
    assert told["choice"] is None


async def test_earlier_answers_come_in_the_same_object_and_wait_for_one(
    client: NotifyClient,
) -> None:
    sent = await client.call("ask_user", **ASKED, options=TWO)
    client.answer(await client.picked_up(), TWO[0])
    wrong = await client.result("ask_user", {"title": "Merge"})
    told = await client.call("notify_commit", branch="main", message="Fix it", hash="ab12cd3")

    assert wrong.is_error
    assert "question: missing" in wrong.text
    assert told["message"] == "Commit notified: ab12cd3 on main"
    assert told["earlier"] == [{"request_id": sent["request_id"], **_accepted(TWO[0])}]


@pytest.mark.parametrize(
    ("tool", "arguments", "told", "message"),
    [
        (
            "notify_commit",
            {"branch": "fix", "message": "Mend it", "files": ["a.py", "b.py"], "agent": "Ex"},
            {
                "title": "Commit",
                "text": "Mend it\nFiles: a.py, b.py",
                "agent": "Ex",
                "task": "fix",
                "urgency": "low",
            },
            "Commit notified: on fix",
        ),
        (
            "notify_merge",
            {"source_branch": "fix", "commits_count": 3, "files_count": 5, "version": "v1"},
            {"title": "Merged v1", "text": "fix → main\n3 commits, 5 files", "urgency": "normal"},
            "Merge notified: fix → main",
        ),
        (
            "notify_sync",
            {"worktrees": ["a", "b"], "repo": "shop"},
            {
                "title": "Worktrees synchronised",
                "text": "2 worktrees updated from main\na, b",
                "task": "shop",
                "urgency": "low",
            },
            "Sync notified: 2 worktrees updated",
        ),
        (
            "notify_sync",
            {"worktrees": ["a"], "source": "dev", "conflicts": ["app.py"]},
            {
                "title": "Worktrees synchronised",
                "text": "1 worktrees updated from dev\na\nConflicts: app.py",
                "urgency": "normal",
            },
            "Sync notified: 1 worktrees updated",
        ),
    ],
)
async def test_what_happened_is_told_and_nobody_is_asked(
    client: NotifyClient, tool: str, arguments: Json, told: Json, message: str
) -> None:
    result = await client.call(tool, **arguments)
    request = await client.picked_up()

    assert result == {"sent": True, "message": message}
    assert request.pop("type") == "announce:message"
    kept = {name: value for name, value in request.items() if name not in {"v", "request_id", "at"}}
    assert kept == told


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        ("ask_user", {"title": "T", "question": " "}, "question: missing"),
        ("ask_user", {**ASKED, "wait": True}, "wait: unknown"),
        ("ask_user", {**ASKED, "options": ["a", "A"]}, "is there twice"),
        ("ask_user", {**ASKED, "timeout": 0}, "timeout"),
        ("notify_commit", {"branch": "b"}, "message: missing"),
        ("notify_merge", {"source_branch": "b", "commits_count": -1}, "commits_count"),
        ("notify_sync", {"worktrees": "main"}, "worktrees: must be a list"),
        ("notify_sync", {"worktrees": []}, "worktrees: missing"),
    ],
)
async def test_a_wrong_argument_is_named_and_nothing_is_sent(
    client: NotifyClient, tool: str, arguments: Json, complaint: str
) -> None:
    result = await client.result(tool, arguments)

    assert result.is_error
    assert complaint in result.text
    assert client.mailbox.names("*.json") == []


async def test_the_tools_of_the_other_profile_are_not_there(client: NotifyClient) -> None:
    with pytest.raises(UnknownTool):
        await client.result("request_approval", {"action": "Deploy"})


async def test_a_long_commit_message_and_path_were_refused(client: NotifyClient) -> None:
    files = ["a/" * 400]
    told = await client.call("notify_commit", branch="fix", message="x" * 30_000, files=files)

    assert told == {"sent": True, "message": "Commit notified: on fix"}
