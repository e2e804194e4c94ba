"""A person connects each program with `pynchy connect`, runs it by hand, and it asks."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.agents.programs import Program
from tests.agents.support import GROUP
from tests.agents.terminal import Terminal
from tests.standins.models import AskUser, CheckAnswer, Say

QUESTION = "Release to everyone or to the staff first?"
PROMPT = "Release the new version."
SCRIPT = ([AskUser(QUESTION, "Everyone", "Staff")], [Say("Staff it is.")])


@pytest.fixture
async def terminal(program: Program, tmp_path: Path) -> AsyncIterator[Terminal]:
    terminal = Terminal(program, tmp_path)
    terminal.model.start()
    yield terminal
    terminal.close()


@pytest.mark.parametrize("scope", ["user", "project"])
async def test_a_connected_program_lists_the_server_calls_it_and_gets_the_answer(
    terminal: Terminal, scope: str
) -> None:
    terminal.prepare(*SCRIPT)
    terminal.connect("--scope", scope)
    await terminal.host.start()

    listed = terminal.listed()
    runner = terminal.begin(PROMPT)
    [question] = await terminal.asked()
    terminal.host.answer(question["short_id"], "2")
    _, second = await terminal.requests(2)

    assert await runner.ended() == 0, runner.text()
    assert "pynchy" in listed
    assert "Answer: Staff" in second.text
    assert (question["agent"], question["task"]) == (terminal.program.agent, "work")
    tells = terminal.program.agent != "opencode"
    assert question["session_id"] == (terminal.session_of(runner) if tells else "")
    finding = terminal.doctor()[0]
    assert finding["status"] == "ok"
    assert "ask_user" in finding["detail"]


async def test_a_late_answer_resumes_the_session_where_the_person_chose_so(
    terminal: Terminal,
) -> None:
    terminal.prepare(*SCRIPT)
    if terminal.program.agent == "opencode":  # it does not tell its session
        refused = terminal.pynchy("connect", "opencode", "--scope", "project", "--resume", "--yes")
        assert refused.returncode == 2
        assert "does not tell" in refused.stderr
        return
    terminal.connect("--scope", "project", "--resume")
    env = [f"{name} = {json.dumps(value)}" for name, value in terminal.env.items()]
    with terminal.config.open("a") as file:
        file.write("\n".join(["", f"[groups.{GROUP}.launcher.env]", *env, ""]))
    await terminal.host.start()
    runner = terminal.begin(PROMPT)
    [question] = await terminal.asked()
    await terminal.resumable()

    runner.kill()
    terminal.host.answer(question["short_id"], "2")
    _, second = await terminal.requests(2)

    for part in (PROMPT, QUESTION, "Everyone", "Answer: Staff"):
        assert part in second.text
    closed = await terminal.host.closed(question["request_id"])
    assert closed["delivered"] == "late"


async def test_without_that_choice_the_answer_is_kept_until_the_agent_asks_for_it(
    terminal: Terminal,
) -> None:
    terminal.prepare(SCRIPT[0])
    terminal.connect()
    await terminal.host.start()
    runner = terminal.begin(PROMPT)
    [question] = await terminal.asked()
    target = question["request_id"]
    await terminal.resumable()

    runner.kill()
    terminal.host.answer(target, "2")
    await terminal.host.state(target, "undelivered")
    assert len(terminal.model.requests) == 1
    terminal.model.add([CheckAnswer(target)], [Say("Staff it is.")])
    again = terminal.begin("What did they say?")
    *_, last = await terminal.requests(3)

    assert await again.ended() == 0, again.text()
    assert "Answer: Staff" in last.text
    await terminal.host.closed(target)


async def test_an_agent_that_pynchy_starts_asks_for_its_own_group_all_the_same(
    terminal: Terminal,
) -> None:
    terminal.prepare(*SCRIPT)
    connected = terminal.pynchy("connect", terminal.program.agent, "--group", "mine", "--yes")
    terminal.configure()
    await terminal.host.start()

    _, out, _ = await terminal.host.cli("run", GROUP, PROMPT, "--json")
    [question] = await terminal.asked()
    terminal.host.answer(question["short_id"], "2")
    _, second = await terminal.requests(2)

    assert connected.returncode == 0, connected.stderr
    assert question["session_id"] == json.loads(out)["session_id"]
    assert "Answer: Staff" in second.text
