"""What an agent may not do: people learn of it, and nothing of it passes for a clean finish."""

import asyncio
import json
import os
import signal
import time

import pytest
from tests.acceptance.support import Json
from tests.agents.programs import CLAUDES, IS_THOROUGH, PROGRAMS, TRIED_CLAUDES
from tests.agents.support import GROUP, Stage, marked
from tests.agents.test_agents import ASK, DONE, PROMPT, QUESTION
from tests.agents.test_parking import parks, results
from tests.standins.models import CallTool, Exchange, Say
from tests.waiting import until

OPENCODE = [program for program in PROGRAMS if program.agent == "opencode"]
CODEX = [program for program in PROGRAMS if program.agent == "codex"]
claude = pytest.mark.parametrize("program", TRIED_CLAUDES, ids=lambda p: p.id, indirect=True)
newest_claude = pytest.mark.parametrize("program", CLAUDES[-1:], ids=lambda p: p.id, indirect=True)
# Longer than any program waits by itself.
WAIT_SECONDS = 240.0 if IS_THOROUGH else 5.0
every_asking = pytest.mark.parametrize(
    "program", [*CLAUDES, *CODEX, *OPENCODE], ids=lambda p: p.id, indirect=True
)


@pytest.fixture(autouse=True)
def asks_people(stage: Stage) -> None:
    """Codex asks nobody unless it is told to; the others do."""
    if stage.program.agent == "codex":
        stage.launcher["args"] = ["--", "-c", "approval_policy=on-request"]


def making(stage: Stage) -> CallTool:
    """Return the call of a command whose effect can be seen, and that needs a permission."""
    command = f"touch {stage.home}/made"
    if stage.program.agent == "codex":
        outside = {"sandbox_permissions": "require_escalated", "justification": "Make it"}
        return CallTool("exec_command", {"cmd": command, **outside})
    tool = "Bash" if stage.program.agent == "claude" else "bash"
    return CallTool(tool, {"command": command, "description": "Make it"})


async def began(stage: Stage) -> tuple[str, Json]:
    """Start a session as a person does, and return its id and what it asks a permission for."""
    code, out, err = await stage.host.cli("run", GROUP, "Make the file.", "--json")
    assert code == 0, err
    [asked] = await stage.asked()
    assert asked["kind"] == "permission"
    return json.loads(out)["session_id"], asked


def told(request: Exchange) -> str:
    """Return the last result of a tool that the model was sent."""
    return results(request)[-1]


def last(request: Exchange) -> str:
    """Return the last message that the model was sent."""
    messages = request.body.get("messages") or request.body["input"]
    return json.dumps(messages[-1], ensure_ascii=False)


@every_asking
async def test_what_is_allowed_runs_once(stage: Stage) -> None:
    await stage.open([making(stage)], [Say("Made.")])
    session_id, asked = await began(stage)

    [question] = asked["questions"]
    assert f"touch {stage.home}/made" in question["question"]
    assert not (stage.home / "made").exists()
    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(2)

    assert (stage.home / "made").exists()
    ended = await stage.session(session_id, "ended")
    assert (ended["detail"], ended["denied"]) == ("finished", [])


@every_asking
async def test_the_model_reads_why_it_was_denied_and_it_is_no_clean_finish(stage: Stage) -> None:
    await stage.open([making(stage)], [Say("I could not.")])
    following = asyncio.create_task(
        stage.host.cli("run", GROUP, "Make the file.", "--follow", "--json")
    )
    [asked] = await stage.asked()

    stage.host.answer(asked["short_id"], "deny: not in “my” home, please")
    _, second = await stage.requests(2)

    assert "not in “my” home, please" in json.dumps(second.body, ensure_ascii=False)
    code, out, err = await following
    assert code == 7, err
    events = [json.loads(line) for line in out.splitlines()]
    (denied,) = [event for event in events if event["type"] == "session_denied"]
    ended = await stage.session(denied["session_id"], "ended")
    assert ended["detail"] == f"finished: 1 call was not allowed: Bash: touch {stage.home}/made"
    assert not (stage.home / "made").exists()


@claude
async def test_what_a_person_has_edited_runs_in_its_place_and_the_model_is_told(
    stage: Stage,
) -> None:
    await stage.open([making(stage)], [Say("Made.")])
    session_id, asked = await began(stage)
    assert asked["editable"]
    assert asked["input"]["command"] == f"touch {stage.home}/made"

    edited = {**asked["input"], "command": f"touch {stage.home}/edited"}
    reply = stage.host.answer(asked["short_id"], "approve: “my” way", edited=edited)
    assert reply.status == 200, reply.body
    _, second = await stage.requests(2)

    assert (stage.home / "edited").exists()
    assert not (stage.home / "made").exists()
    said = second.text
    assert "ana changed this call before they allowed it" in said
    assert f"command: touch {stage.home}/edited" in said
    assert f"You had: touch {stage.home}/made" in said
    assert "They say: “my” way" in said
    ended = await stage.session(session_id, "ended")
    assert (ended["detail"], ended["denied"]) == ("finished", [])
    closed = await stage.host.closed(asked["request_id"])
    assert closed["ending"]["edited"] == edited


@claude
async def test_an_edit_is_told_where_a_tool_of_ours_asks_for_permissions_too(stage: Stage) -> None:
    await stage.open(
        [making(stage)],
        [making(stage)],
        [Say("Made.")],
        settings=f'[groups.{GROUP}]\nask_with = "AskUserQuestion"\n',
    )
    _, asked = await began(stage)

    edited = {**asked["input"], "command": f"touch {stage.home}/edited; exit 3"}
    stage.host.answer(asked["short_id"], "approve: “my” way", edited=edited)
    _, second = await stage.requests(2)
    [again] = await stage.asked()
    stage.host.answer(again["short_id"], "approve: now then")
    *_, third = await stage.requests(3)

    assert (stage.home / "edited").exists()
    assert f"command: touch {stage.home}/edited" in second.text
    assert "They say: “my” way" in second.text
    assert "ana allowed this call. They say: now then" in third.text
    assert third.text.count("They say: “my” way") == 1


@claude
async def test_the_model_reads_what_a_person_says_beside_a_yes(stage: Stage) -> None:
    # A call that fails is told of in another way than one that goes well.
    command = f"touch {stage.home}/made; exit 3"
    await stage.open([CallTool("Bash", {"command": command})], [Say("Made.")])
    _, asked = await began(stage)

    stage.host.answer(asked["short_id"], "approve: but “no” further, please")
    _, second = await stage.requests(2)

    assert (stage.home / "made").exists()
    assert "ana allowed this call. They say: but “no” further, please" in second.text


@claude
async def test_an_edit_that_comes_after_the_agent_died_is_good_for_the_edited_call_alone(
    stage: Stage,
) -> None:
    edited = CallTool("Bash", {"command": f"touch {stage.home}/edited", "description": "Again"})
    await stage.open([making(stage)], [edited], [making(stage)], [Say("Thank you.")])
    _, asked = await began(stage)
    await stage.resumable()

    stage.kill_agents()
    stage.host.answer(asked["short_id"], "approve", edited=dict(edited.arguments))
    _, second, _ = await stage.requests(3)

    assert "They have changed it" in last(second)
    assert f"touch {stage.home}/edited" in last(second)
    assert (stage.home / "edited").exists()
    assert not (stage.home / "made").exists()
    [again] = await stage.asked()
    assert again["input"]["command"] == f"touch {stage.home}/made"


@every_asking
async def test_allowed_always_the_next_call_needs_nobody(stage: Stage) -> None:
    call, env = making(stage), {}
    if stage.program.agent == "opencode":  # what leads out of its folder is covered by no rule
        call = CallTool("bash", {"command": "touch made", "description": "Make it"})
        env["OPENCODE_CONFIG_CONTENT"] = json.dumps({"permission": {"bash": "ask"}})
    await stage.open([call], [call], [Say("Made, twice.")], **env)
    session_id, asked = await began(stage)

    assert stage.host.answer(asked["short_id"], "always").status == 200
    await stage.requests(3)

    ended = await stage.session(session_id, "ended")
    assert (ended["detail"], ended["denied"]) == ("finished", [])
    second, first = stage.host.history()
    assert first["request_id"] == asked["request_id"]
    assert second["ending"]["channel"] == "rule"
    assert "shown" not in stage.host.kinds(second["request_id"])
    assert "rule_used" in stage.host.kinds(second["request_id"])


@newest_claude
async def test_an_approval_is_the_result_of_the_call_that_asked_for_it(stage: Stage) -> None:
    wanted = {"action": "Deploy 2.1?", "details": "To all customers.", "risk": "high"}
    await stage.open([CallTool("request_approval", wanted)], [Say("Deployed.")])
    code, _, err = await stage.host.cli("run", GROUP, "Deploy it.")
    assert code == 0, err
    [asked] = await stage.asked()

    stage.host.answer(asked["short_id"], "approve: but not before six")
    _, second = await stage.requests(2)

    assert asked["kind"] == "approval"
    assert "Deploy 2.1?" in asked["questions"][0]["question"]
    for part in ("Approve", "but not before six"):
        assert part in told(second)


@newest_claude
async def test_agent_and_host_killed_right_after_the_answer_lose_nothing(stage: Stage) -> None:
    await stage.open([making(stage)], [making(stage)], [Say("Made.")])
    _, asked = await began(stage)
    await stage.resumable()

    # Stopped, so that it dies before it takes the answer, and not while it does.
    for pid in marked(stage.mark):
        os.kill(pid, signal.SIGSTOP)
    stage.host.answer(asked["short_id"], "approve")
    stage.host.kill()
    stage.kill_agents()
    await stage.host.start()
    _, second, _ = await stage.requests(3)

    assert "You may do this now" in last(second)
    assert (stage.home / "made").exists()
    assert (await stage.host.closed(asked["request_id"]))["delivered"] == "late"


@newest_claude
async def test_a_permission_waits_for_as_long_as_a_person_needs(stage: Stage) -> None:
    await stage.open([making(stage)], [Say("Made.")])
    _, asked = await began(stage)
    since = time.monotonic()

    await until(lambda: time.monotonic() - since > WAIT_SECONDS, seconds=2 * WAIT_SECONDS)
    assert len(stage.model.requests) == 1
    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(2)

    assert (stage.home / "made").exists()


@every_asking
async def test_a_permission_that_comes_after_the_agent_died_is_told_and_good_for_one_call(
    stage: Stage,
) -> None:
    script = [making(stage)], [making(stage)], [making(stage)], [Say("Thank you.")]
    await stage.open(*script)
    _, asked = await began(stage)
    await stage.resumable()

    stage.kill_agents()
    assert not (stage.home / "made").exists()
    stage.host.answer(asked["short_id"], "approve")
    _, second, _ = await stage.requests(3)

    assert "You may do this now" in last(second)
    # The model did it, once; to do it again it must ask.
    assert (stage.home / "made").exists()
    [again] = await stage.asked()
    assert again["request_id"] != asked["request_id"]


@claude
async def test_a_permission_outlives_the_host(stage: Stage) -> None:
    await stage.open([making(stage)], [Say("Made.")])
    _, asked = await began(stage)

    stage.host.kill()
    await stage.host.start()
    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(2)

    assert (stage.home / "made").exists()


@claude
async def test_nobody_in_time_is_a_no_for_now_and_a_later_yes_is_told(stage: Stage) -> None:
    script = [making(stage)], [Say("I go on without.")], [Say("Thank you.")]
    await stage.open(*script, settings='wait_timeout = "2s"')
    session_id, asked = await began(stage)

    _, second = await stage.requests(2)
    assert "Nobody has answered in time" in told(second)
    waiting = await stage.session(session_id, "waiting")
    assert len(waiting["denied"]) == 1
    assert stage.host.question(asked["request_id"])["ending"] is None

    stage.host.answer(asked["short_id"], "approve")
    *_, third = await stage.requests(3)
    assert "You may do this now" in last(third)
    assert not (stage.home / "made").exists()


@claude
async def test_a_resumed_session_does_what_was_allowed_late_without_asking_again(
    stage: Stage,
) -> None:
    again = making(stage)
    script = [making(stage)], [Say("I go on without.")], [again], [Say("Made.")]
    await stage.open(*script, settings='wait_timeout = "2s"')
    session_id, asked = await began(stage)
    await stage.requests(2)
    await stage.session(session_id, "waiting")

    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(4)

    assert (stage.home / "made").exists()

    def by_grant() -> list[Json]:
        return [q for q in stage.host.history() if q["ending"]["channel"] == "earlier-yes"]

    [used] = await until(by_grant, "the call that the earlier yes has allowed")
    assert asked["request_id"] in used["ending"]["reason"]


@claude
async def test_an_agent_is_parked_while_nobody_says_whether_it_may(stage: Stage) -> None:
    again = making(stage)
    await stage.open([making(stage)], [again], [Say("Made.")], settings=parks())
    session_id, asked = await began(stage)
    parked = await stage.session(session_id, "parked")

    assert parked["denied"] == []
    assert stage.host.question(asked["request_id"])["ending"] is None
    stage.host.answer(asked["short_id"], "approve")
    _, second, _ = await stage.requests(3)

    assert "You may do this now" in last(second)
    assert (stage.home / "made").exists()
    ended = await stage.session(session_id, "ended")
    assert (ended["detail"], ended["denied"]) == ("finished", [])


@pytest.mark.parametrize("program", CODEX, ids=lambda p: p.id, indirect=True)
async def test_codex_that_asks_for_permissions_is_killed_and_comes_back_with_an_answer(
    stage: Stage,
) -> None:
    await stage.open([ASK], DONE)
    code, out, err = await stage.host.cli("run", GROUP, PROMPT)
    assert code == 0, err
    [question] = await stage.asked()
    await stage.resumable()

    stage.kill_agents()
    stage.host.answer(question["short_id"], "2")
    _, second = await stage.requests(2)
    ended = await stage.session(out.strip(), "ended")

    for part in (PROMPT, QUESTION, "Everyone", "Answer: Staff"):
        assert part in second.text
    assert not ended["failed"], stage.logs()


@pytest.mark.parametrize("program", CODEX, ids=lambda p: p.id, indirect=True)
async def test_a_person_sees_the_change_of_a_file_that_codex_wants_to_make(stage: Stage) -> None:
    file = stage.work / "a.txt"
    file.write_text("zero\none\ntwo\n")
    patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n-one\n+1\n*** End Patch"
    change = CallTool("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"})
    await stage.open([change], [Say("Made.")])
    _, asked = await began(stage)

    [question] = asked["questions"]
    assert f"Codex wants to change the file `{file}`" in question["question"]
    assert "-one\n+1\n" in question["question"]
    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(2)

    assert file.read_text() == "zero\n1\ntwo\n"


@pytest.mark.parametrize("program", CODEX, ids=lambda p: p.id, indirect=True)
async def test_a_shell_that_codex_finds_in_an_odd_place_is_on_the_card(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Codex asks the PATH for a shell that is not the user's own.
    folder = stage.home / "bin"
    folder.mkdir()
    shell = folder / "zsh"
    shell.write_text(f"#!/bin/sh\ntouch {stage.home}/other\n")
    shell.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    call = making(stage)
    chosen = CallTool(call.tool, {**call.arguments, "shell": "zsh"})
    await stage.open([chosen], [Say("Made.")])

    _, asked = await began(stage)

    [question] = asked["questions"]
    assert f"{shell} -lc 'touch {stage.home}/made'" in question["question"]
    stage.host.answer(asked["short_id"], "approve")
    await stage.requests(2)
    assert (stage.home / "other").exists()


@pytest.mark.parametrize("program", OPENCODE, ids=lambda p: p.id, indirect=True)
async def test_what_opencode_rejects_by_itself_is_told(stage: Stage) -> None:
    # An option of `opencode run` alone, which asks nobody.
    stage.launcher["args"] = ["--", "--thinking"]
    await stage.open([making(stage)], [Say("I could not.")])

    code, out, err = await stage.host.cli("run", GROUP, "Make the file.", "--follow", "--json")

    assert code == 7, err
    told = [json.loads(line) for line in out.splitlines()]
    (denied,) = [event for event in told if event["type"] == "session_denied"]
    assert denied["detail"] == f"external_directory ({stage.home}/*)"
    assert not (stage.home / "made").exists()


@claude
async def test_the_card_says_why_claude_code_stopped(stage: Stage) -> None:
    outside = CallTool("Bash", {"command": "cat /etc/hostname", "description": "Look"})
    await stage.open([outside], [Say("Seen.")])
    _, asked = await began(stage)

    [question] = asked["questions"]
    call, _, why = question["question"].partition("\n\nFolder: ")
    assert "cat /etc/hostname" in call
    assert "Claude Code stopped because it leaves the folder: `/etc/hostname`" in why
    assert "It would allow from then on (shown only, never used): `" in why
    stage.host.answer(asked["short_id"], "deny")
    await stage.requests(2)
