"""May I: rules that answer for people, through a real host and its mailbox."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent
from tests.acceptance.test_codex_source import settings as codex_settings
from tests.acceptance.test_opencode_source import replied
from tests.acceptance.test_opencode_source import settings as opencode_settings
from tests.standins.codex import CodexStandIn
from tests.standins.opencode import OpenCodeStandIn
from tests.waiting import until

RULES = """
[groups.team.permissions]
allow = ["Bash(git log *)"]
ask = ["Bash(npm publish *)"]
deny = ["Bash(git push *)"]
"""

CALL = {"program": "claude", "tool": "Bash", "cwd": "/srv/app"}


def may_i(agent: MailboxAgent, given: str | Json, **more: Any) -> str:
    """Ask for a command, or for a call of Bash with that input."""
    who = {name: more.pop(name) for name in ("session_id",) if name in more}
    call: Json = {**CALL, **more}
    call["input"] = {"command": given} if isinstance(given, str) else given
    return agent.ask(questions=[], permission=call, **who)


async def asked(host: Host, request_id: str) -> Json:
    """Return the question once a person can see it."""
    [found] = [q for q in await host.listed(1, "team") if q["request_id"] == request_id]
    return found


def values(response: Json) -> list[str]:
    [answer] = response["answers"]
    found: list[str] = answer["values"]
    return found


async def rules(host: Host) -> list[Json]:
    code, out, err = await host.cli("rules", "--json")
    assert code == 0, err
    found: list[Json] = json.loads(out)
    return found


async def test_a_rule_that_a_person_made_answers_the_next_call_until_it_is_revoked(
    host: Host,
) -> None:
    agent = MailboxAgent(host.group("team"))
    first = may_i(agent, "git status")
    question = await asked(host, first)
    [always] = [o for o in question["questions"][0]["options"] if o.get("value") == "always"]
    assert "git status" in always["confirm"]

    host.answer(question["short_id"], "always")
    assert values(await agent.receive(first)) == ["always"]
    [rule] = await rules(host)
    assert (rule["group"], rule["made_by"], rule["uses"]) == ("team", "ana", 0)

    second = may_i(agent, "git status --short")
    assert values(await agent.receive(second)) == ["approve"]
    closed = await host.closed(second)
    assert closed["ending"]["answered_by"] == f"rule {rule['short_id']}"
    assert "shown" not in host.kinds(second)
    assert "rule_used" in host.kinds(second)
    assert [r["uses"] for r in await rules(host)] == [1]

    code, _, err = await host.cli("rules", "revoke", rule["short_id"])
    assert code == 0, err
    await asked(host, may_i(agent, "git status --short"))


async def allow_always(host: Host, command: str, cwd: str) -> Json:
    """Let a person make the rule on a card of Claude Code's. Return it."""
    agent = MailboxAgent(host.group("team"))
    first = may_i(agent, command, cwd=cwd)
    host.answer((await asked(host, first))["short_id"], "always")
    await agent.receive(first)
    [rule] = await rules(host)
    return rule


async def is_used(host: Host, rule: Json, program: str) -> None:
    """The last call was that program's, and that rule has answered it."""
    await until(lambda: len(host.history()) == 2, "the history")
    [over] = [one for one in host.history() if one["agent"] == program]
    assert over["ending"]["answered_by"] == f"rule {rule['short_id']}"
    assert host.pending() == []
    assert [r["uses"] for r in await rules(host)] == [1]


async def test_a_rule_of_a_card_of_claude_code_is_used_by_codex(
    start_host: StartHost, tmp_path: Path
) -> None:
    daemon = CodexStandIn(tmp_path / "codex")
    await daemon.start()
    try:
        host = await start_host(codex_settings(daemon))
        await until(lambda: daemon.connected, "the host to join")
        rule = await allow_always(host, "git status", "/srv/app")

        number = await daemon.ask_command("git status")

        await until(lambda: number in daemon.answered, "an answer")
        assert daemon.answered[number] == {"decision": "accept"}
        await is_used(host, rule, "codex")
    finally:
        await daemon.remove()


async def test_a_rule_of_a_card_of_claude_code_is_used_by_opencode(start_host: StartHost) -> None:
    async with OpenCodeStandIn() as server:
        host = await start_host(opencode_settings(server))
        rule = await allow_always(host, "git status", "/srv/shop")

        server.ask_permission(server.session(), "git status")

        _, body = await replied(server)
        assert body == {"reply": "once"}
        await is_used(host, rule, "opencode")


async def test_a_rule_for_a_session_answers_that_session_alone(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    first = may_i(agent, "git status", session_id="one")
    question = await asked(host, first)
    [narrow] = [o for o in question["questions"][0]["options"] if o.get("value") == "session"]
    assert "in this session alone, for 30 days" in narrow["confirm"]

    host.answer(question["short_id"], "always", rule_scope="session")
    assert values(await agent.receive(first)) == ["session"]
    [rule] = await rules(host)
    assert rule["session_id"] == "one"

    assert values(await agent.receive(may_i(agent, "git status -s", session_id="one"))) == [
        "approve"
    ]
    await asked(host, may_i(agent, "git status -s", session_id="two"))


async def test_no_rule_is_offered_for_a_session_that_has_no_id(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    question = await asked(host, may_i(agent, "git status", session_id=""))

    offered = [option["value"] for option in question["questions"][0]["options"]]
    refused = host.answer(question["short_id"], "always", rule_scope="session")

    assert offered == ["approve", "always", "deny"]
    assert refused.status == 422
    assert "no rule can be made for this session alone" in refused.body["error"]
    assert host.question(question["request_id"])["ending"] is None


@pytest.mark.parametrize("command", ["git status; rm -r x", "git status > x", "git status $(x)"])
async def test_no_rule_covers_what_it_does_not_name(host: Host, command: str) -> None:
    agent = MailboxAgent(host.group("team"))
    first = may_i(agent, "git status")
    host.answer((await asked(host, first))["short_id"], "always")
    await agent.receive(first)

    await asked(host, may_i(agent, command))


async def test_the_settings_allow_ask_and_deny(start_host: StartHost) -> None:
    host = await start_host(RULES)
    agent = MailboxAgent(host.group("team"))

    assert values(await agent.receive(may_i(agent, "git log -1"))) == ["approve"]
    denied = await agent.receive(may_i(agent, "git push origin main"))
    assert values(denied) == ["deny"]
    assert denied["answers"][0]["text"] == "A rule of the group denies this."
    question = await asked(host, may_i(agent, "npm publish --tag next"))
    offered = [option.get("value") for option in question["questions"][0]["options"]]
    assert offered == ["approve", "deny"]


async def test_a_card_says_why_it_is_asked_in_a_group_with_rules(start_host: StartHost) -> None:
    host = await start_host(RULES)
    agent = MailboxAgent(host.group("team"))

    async def told(command: str, **more: Any) -> str:
        question = await asked(host, may_i(agent, command, **more))
        code, shown, _ = await host.cli("show", question["short_id"])
        host.answer(question["short_id"], "deny")
        await agent.receive(question["request_id"])
        assert (code, "Asked because" in shown) == (0, True)
        text: str = question["questions"][0]["question"]
        return text

    published = await told("npm publish --tag next")
    assert "Asked because a rule of the group wants it asked each time: `Bash(npm" in published
    assert "Asked because no rule can tell what it runs (it redir" in await told("git log > all")
    why = {"reason": "r" * 9_000, "blocked_path": "/etc/x", "suggestions": ["Bash(a)"] * 90}
    stopped = await told("git log --all | tee x", why=why)
    assert "Claude Code stopped because it leaves the folder: `/etc/x`" in stopped
    assert "Asked because no rule allows this command: `tee x`" in stopped
    assert len(stopped) < 1_000


async def test_a_call_that_is_asked_again_with_another_reason_is_the_same(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    first = may_i(agent, "touch x", why={"reason": "because"})
    question = await asked(host, first)

    agent.ask(request_id=first, questions=[], permission={**CALL, "input": {"command": "touch x"}})
    host.answer(question["short_id"], "approve")

    assert values(await agent.receive(first)) == ["approve"]


async def test_a_rule_outlives_the_host(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    first = may_i(agent, "git status")
    host.answer((await asked(host, first))["short_id"], "always")
    await agent.receive(first)

    host.kill()
    await host.start()

    assert values(await agent.receive(may_i(agent, "git status"))) == ["approve"]


EDITED = {"command": "git push origin dev", "timeout": 9}


async def test_a_person_edits_a_call_and_the_agent_is_given_what_they_allowed(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    given = {"command": "git push origin main", "timeout": 5}
    request_id = may_i(agent, given, editable=True)
    question = await asked(host, request_id)
    assert (question["editable"], question["input"]) == (True, given)

    reply = host.answer(question["short_id"], "approve: to dev", edited=EDITED)

    assert reply.status == 200, reply.body
    response = await agent.receive(request_id)
    assert (values(response), response["input"]) == (["approve"], EDITED)
    closed = await host.closed(request_id)
    ending = closed["ending"]
    assert (ending["edited"], ending["answered_by"]) == (EDITED, "ana")
    assert ending["summary"] == "answered by ana (local): Allow once, edited — to dev"
    [answered] = [e for e in host.events(request_id) if e["type"] == "answered"]
    assert (answered["detail"], answered["by"]) == ("edited", "ana")
    code, out, err = await host.cli("show", question["short_id"])
    assert code == 0, err
    assert "git push origin dev" in out


async def test_an_edited_call_outlives_the_host(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    request_id = may_i(agent, "git push", editable=True)
    question = await asked(host, request_id)
    host.answer(question["short_id"], "approve", edited={"command": "git fetch"})

    host.kill()
    await host.start()

    assert (await agent.receive(request_id))["input"] == {"command": "git fetch"}
    assert (await host.closed(request_id))["ending"]["edited"] == {"command": "git fetch"}


async def test_what_is_edited_into_itself_is_just_allowed(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    request_id = may_i(agent, "git fetch", editable=True)
    question = await asked(host, request_id)

    host.answer(question["short_id"], "approve", edited={"command": "git fetch"})

    assert "input" not in await agent.receive(request_id)
    assert "edited" not in (await host.closed(request_id))["ending"]


@pytest.mark.parametrize(
    ("value", "edited", "why"),
    [
        ("deny", {"command": "ls"}, "only what is allowed once can be edited"),
        ("always", {"command": "ls"}, "only what is allowed once can be edited"),
        ("approve", "ls", "as a JSON object"),
        ("approve", ["ls"], "as a JSON object"),
        ("approve", {"command": "ls", "sandbox": False}, "'sandbox' is no field of this call"),
        ("approve", {"command": " "}, "needs a command"),
        ("approve", {"command": ["ls"]}, "needs a command"),
        ("approve", {}, "needs a command"),
        ("approve", {"command": "x" * 200_000}, "at most 200,000 bytes"),
        ("approve", {"command": "echo a && git push -f"}, "a rule of the group denies this"),
    ],
)
async def test_an_edit_that_cannot_be_is_refused_and_the_question_stays(
    start_host: StartHost, value: str, edited: Any, why: str
) -> None:
    host = await start_host(RULES)
    agent = MailboxAgent(host.group("team"))
    question = await asked(host, may_i(agent, "git status", editable=True))

    refused = host.answer(question["short_id"], value, edited=edited)

    assert refused.status == 422
    assert why in refused.body["error"]
    assert host.question(question["request_id"])["ending"] is None


async def test_what_a_program_cannot_take_edited_is_not_edited(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    question = await asked(host, may_i(agent, "git status"))
    assert question["editable"] is False

    refused = host.answer(question["short_id"], "approve", edited={"command": "ls"})

    assert (refused.status, "this cannot be edited" in refused.body["error"]) == (422, True)


async def test_silence_and_words_allow_nothing(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    question = await asked(host, may_i(agent, "git push"))

    refused = host.answer(question["short_id"], "sure, go on")
    assert refused.status == 422
    assert "answered by its word alone" in refused.body["error"]
    assert host.question(question["request_id"])["ending"] is None
