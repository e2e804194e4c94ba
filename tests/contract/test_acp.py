"""`agent = "acp"` with an agent that the official package of the protocol speaks for."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_support import HostStandIn

AGENT = Path(__file__).with_name("acp_agent.py")


class Run:
    """The runner with that agent, and what the agent has written down."""

    def __init__(self, folder: Path) -> None:
        self.host = HostStandIn(folder / "ipc")
        self.env: dict[str, str] = {}
        self._folder = folder

    @property
    def told(self) -> dict[str, Any]:
        """What the agent has learned, the last of each kind."""
        lines = (self._folder / "told").read_text().splitlines()
        return {name: value for line in lines for name, value in json.loads(line).items()}

    async def start(self, prompt: str, **fields: Any) -> asyncio.subprocess.Process:
        initial = self._folder / "initial.json"
        initial.write_text(json.dumps({"v": 1, "session_id": "s1", "prompt": prompt, **fields}))
        runner = [sys.executable, "-m", "agent_runner", "--initial", str(initial)]
        env = {
            **os.environ,
            "HOME": str(self._folder),
            "PYNCHY_IPC_DIR": str(self.host.ipc_dir),
            "ACP_LOG": str(self._folder / "told"),
            **self.env,
        }
        command = [*runner, "--agent", "acp", "--", sys.executable, str(AGENT)]
        return await asyncio.create_subprocess_exec(*command, env=env, cwd=self._folder)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


async def answered(run: Run, *, value: str, text: str | None = None) -> dict[str, Any]:
    request = await run.host.request()
    answer = {"question": "", "selected": [value], "values": [value], "text": text}
    run.host.respond(request["request_id"], answers=[answer])
    return request


@pytest.mark.parametrize("value", ["approve", "always", "session"])
async def test_a_permission_reaches_a_person_and_a_yes_is_for_once(run: Run, value: str) -> None:
    process = await run.start("Ask for a permission.")

    request = await answered(run, value=value)

    assert await process.wait() == 0
    asked = request["permission"]
    assert (asked["tool"], asked["input"]) == ("Bash", {"command": "make all"})
    assert asked["program"] == Path(sys.executable).name
    assert run.told["outcome"]["option_id"] == "yes"
    assert run.told["capabilities"]["elicitation"]["form"] is not None
    assert run.told["server"]["serverInfo"]["name"] == "pynchy"


async def test_a_no_is_told_with_the_persons_words(run: Run) -> None:
    process = await run.start("Ask for a permission.")

    await answered(run, value="deny", text="on Friday")

    assert await process.wait() == 0
    assert run.told["outcome"]["option_id"] == "no"
    assert "Bash: make all" in run.told["prompt"]
    assert "They say: on Friday" in run.told["prompt"]


async def test_a_form_is_asked_as_a_question_and_filled_in(run: Run) -> None:
    process = await run.start("Show a form.")

    request = await answered(run, value="Green")

    assert await process.wait() == 0
    [question] = request["questions"]
    assert question["question"] == "Paint it."
    assert [option["label"] for option in question["options"]] == ["Blue", "Green"]
    assert run.told["form"]["action"] == "accept"
    assert run.told["form"]["content"] == {"colour": "g"}


async def test_an_agent_that_does_not_end_by_itself_is_stopped_and_has_finished(
    run: Run, tmp_path: Path
) -> None:
    soon = "from agent_runner.cores import base\nbase.STOP_AFTER_SECONDS = 0.2\n"
    (tmp_path / "sitecustomize.py").write_text(soon)
    run.env = {"ACP_LINGERS": "1", "PYTHONPATH": str(tmp_path)}

    process = await run.start("Begin.")

    assert await process.wait() == 0


async def test_an_agent_that_goes_on_trying_what_is_denied_is_stopped(
    run: Run, tmp_path: Path
) -> None:
    few = "from agent_runner import running\nrunning.MAX_DENIED = 3\n"
    (tmp_path / "sitecustomize.py").write_text(few)
    run.env = {"PYTHONPATH": str(tmp_path)}
    process = await run.start("Ask for a permission.")

    for _ in range(3):
        await answered(run, value="deny", text="Ask for another permission.")

    assert await process.wait() == 1
    [failed] = [event for event in run.host.events() if event["event"] == "failed"]
    assert "3 calls were not allowed, and it goes on: Bash: make all" in failed["detail"]


async def test_a_session_is_loaded_to_go_on(run: Run) -> None:
    assert await (await run.start("Begin.")).wait() == 0

    process = await run.start("Answer: yes", request_id="r1")

    assert await process.wait() == 0
    assert run.told["session"] == "load"
    assert run.told["prompt"] == "Answer: yes"
    assert (run.host.tasks / "r1.resumed").exists()


async def test_a_session_that_it_has_lost_is_not_begun_anew(run: Run) -> None:
    assert await (await run.start("Begin.")).wait() == 0
    [book] = (run.host.ipc_dir.parent / ".local/state/agent_runner/acp").glob("*.json")
    book.write_text(book.read_text().replace("the-session", "another"))

    process = await run.start("Answer: yes", request_id="r1")

    assert await process.wait() == 7
    assert run.told["session"] == "new"


async def test_a_question_that_the_agent_can_no_longer_hear_stays_open(run: Run) -> None:
    process = await run.start("Ask for a permission.")
    request = await run.host.request()

    process.terminate()

    assert await process.wait() == 143
    assert not run.host.files(f"{request['request_id']}.withdraw.json")
