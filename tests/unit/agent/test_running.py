"""`agent_runner` with a program that does as it is told."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.conftest import Mailbox
from tests.waiting import until

FAKE = Path(__file__).with_name("fake_claude.py")
CONNECTED = [{"name": "pynchy", "status": "connected"}]
PARKED: dict[str, Any] = {"v": 1, "request_id": "r1", "session_id": "s1", "parked": True}
PARKED["prompt"] = "You asked. Answer: yes."
ANSWER = {"v": 1, "request_id": "r1", "session_id": "s1", "prompt": "You asked. Answer: yes."}


def init(servers: Any = CONNECTED) -> str:
    fields = {"type": "system", "subtype": "init", "session_id": "abc", "mcp_servers": servers}
    return f"print {json.dumps(fields)}"


def spoken(model: str = "some-model", *blocks: Any) -> str:
    message = {"model": model, "content": list(blocks)}
    return f"print {json.dumps({'type': 'assistant', 'message': message})}"


def result(*, is_error: bool = False) -> str:
    fields = {"type": "result", "subtype": "success", "is_error": is_error, "result": "API Error"}
    return f"print {json.dumps(fields)}"


class Runs:
    """Starts the runner in a world where `claude` is the fake."""

    def __init__(self, folder: Path, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.prompt = folder / "prompt"
        self.sign = folder / "sign"
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []
        program = folder / "bin" / "claude"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
        program.chmod(0o755)

    def start(
        self, script: list[str], initial: Any = ANSWER, *options: str, **env: str
    ) -> subprocess.Popen[str]:
        (self._folder / "script").write_text("\n".join(script))
        path = self._folder / "initial.json"
        path.write_text(initial if isinstance(initial, str) else json.dumps(initial))
        environ = {
            "PATH": str(self._folder / "bin"),
            "HOME": str(self._folder),
            "PYNCHY_IPC_DIR": str(self.mailbox.path),
            "FAKE_SCRIPT": str(self._folder / "script"),
            "FAKE_PROMPT": str(self.prompt),
            **env,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_runner", "--initial", str(path), *options],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        return process

    def run(
        self, script: list[str], initial: Any = ANSWER, *options: str, **env: str
    ) -> tuple[int, str]:
        process = self.start(script, initial, *options, **env)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    def patched(self, code: str) -> str:
        """Return a PYTHONPATH with which the runner does this before anything else."""
        folder = self._folder / "patch"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(code)
        return str(folder)

    def events(self) -> list[dict[str, Any]]:
        found = [json.loads(path.read_bytes()) for path in self.mailbox.tasks.glob("*.json")]
        order = ["started", "waiting", "denied", "parked", "finished", "failed"]
        return sorted(found, key=lambda event: order.index(event["event"]))

    @property
    def has_receipt(self) -> bool:
        return (self.mailbox.tasks / "r1.resumed").exists()

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture
def runs(tmp_path: Path, mailbox: Mailbox) -> Iterator[Runs]:
    runs = Runs(tmp_path, mailbox)
    yield runs
    runs.end()


def test_a_run_that_ends_well_is_told_from_start_to_finish(runs: Runs) -> None:
    asking = {"type": "tool_use", "name": "mcp__pynchy__ask_user"}
    script = ["lease", init(), spoken("m", asking), spoken("m"), result()]

    code, output = runs.run(script)

    assert code == 0, output
    assert [event["event"] for event in runs.events()] == ["started", "waiting", "finished"]
    for event in runs.events():
        assert (event["type"], event["session_id"]) == ("session:event", "s1")
        assert (event["v"], event["agent"]) == (1, "claude")
    assert len({event["request_id"] for event in runs.events()}) == 3
    assert runs.prompt.read_text() == ANSWER["prompt"]
    assert runs.mailbox.names("r1.*") == ["r1.resumed"]


def test_a_run_in_which_a_tool_was_denied_is_no_clean_finish(runs: Runs) -> None:
    denied = {"tool_name": "Bash", "tool_use_id": "t1"}
    said = {"type": "system", "subtype": "permission_denied", **denied}
    ended = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "permission_denials": [{**denied, "tool_input": {"command": "rm -r x"}}],
    }
    script = [
        "lease",
        init(),
        spoken("m"),
        f"print {json.dumps(said)}",
        f"print {json.dumps(ended)}",
    ]

    code, output = runs.run(script)

    assert code == 0, output
    assert [(e["event"], e.get("detail")) for e in runs.events()] == [
        ("started", None),
        ("denied", "Bash"),
        ("finished", "1 call was not allowed: Bash: rm -r x"),
    ]


def deferred(stop_reason: str = "tool_deferred", *, is_error: bool = False) -> str:
    fields = {"type": "result", "subtype": "success", "is_error": is_error}
    return f"print {json.dumps(fields | {'stop_reason': stop_reason})}"


def test_a_program_that_puts_its_call_off_is_told_as_parked_and_ends_well(runs: Runs) -> None:
    code, output = runs.run(["lease", init(), spoken("m"), deferred()])

    assert code == 0, output
    assert [event["event"] for event in runs.events()] == ["started", "parked"]


def test_the_call_that_a_parked_program_makes_again_is_no_word_of_the_model(runs: Runs) -> None:
    script = ["lease", "bare call", "bare exit 0", init(), spoken("m"), result()]

    code, output = runs.run(script, PARKED)

    assert code == 0, output
    assert runs.prompt.read_text() == PARKED["prompt"]


def test_a_parked_program_that_makes_its_call_has_the_answer_when_the_model_speaks(
    runs: Runs,
) -> None:
    code, output = runs.run(["lease", "call", init(), spoken("m"), result()], PARKED)

    assert code == 0, output
    assert runs.prompt.read_text() == ""
    assert runs.has_receipt
    assert [event["event"] for event in runs.events()] == ["started", "finished"]


@pytest.mark.parametrize(
    "lacking",
    [
        ["bare complain Error: No deferred tool marker found in it.", "bare exit 1"],
        [f"bare {deferred('tool_deferred_unavailable', is_error=True)}", "bare exit 1"],
        [f"bare {deferred()}", "bare exit 0"],
        ["bare exit 0"],
    ],
)
def test_a_program_that_has_no_call_to_make_is_given_the_prompt(
    runs: Runs, lacking: list[str]
) -> None:
    code, output = runs.run(["lease", *lacking, init(), spoken("m"), result()], PARKED)

    assert code == 0, output
    assert runs.prompt.read_text() == PARKED["prompt"]
    assert runs.has_receipt
    assert [event["event"] for event in runs.events()][-1] == "finished"
    assert "failed" not in {event["event"] for event in runs.events()}


def test_a_parked_program_whose_api_fails_is_not_given_the_prompt_at_once(runs: Runs) -> None:
    script = ["lease", init(), f"bare {result(is_error=True)}", "bare exit 1", spoken("m")]

    code, output = runs.run(script, PARKED)

    assert code == 1, output
    assert runs.prompt.read_text() == ""
    assert not runs.has_receipt


async def test_the_receipt_is_written_when_the_model_has_answered_and_not_before(
    runs: Runs,
) -> None:
    going_on = runs.sign.with_name("going-on")
    script = ["lease", init(), f"wait {runs.sign}", spoken("m"), f"wait {going_on}", result()]
    process = runs.start(script)
    await until(lambda: runs.prompt.exists() and runs.mailbox.names("*.lease"))
    await until(lambda: list(runs.sign.parent.glob(".local/state/agent_runner/claude/*.json")))

    assert not runs.has_receipt
    runs.sign.touch()
    await until(lambda: runs.has_receipt)

    assert process.poll() is None
    going_on.touch()
    assert process.wait(60) == 0


def test_what_the_program_says_itself_is_not_taken_for_the_model(runs: Runs) -> None:
    script = ["lease", init(), spoken("<synthetic>"), result(is_error=True)]

    code, output = runs.run(script)

    assert code == 1
    assert "API Error" in output
    assert not runs.has_receipt
    assert [event["event"] for event in runs.events()] == ["started", "failed"]
    assert runs.events()[1]["detail"] == "API Error"


def test_a_program_that_ends_well_without_a_word_of_the_model_has_failed(runs: Runs) -> None:
    code, _ = runs.run(["lease", init()])

    assert code == 1
    assert not runs.has_receipt


def test_a_program_that_ends_badly_after_the_answer_has_failed_with_the_answer(
    runs: Runs,
) -> None:
    code, _ = runs.run(["lease", init(), spoken("m"), "exit 9"])

    assert code == 1
    assert runs.has_receipt
    assert "exit code 9" in runs.events()[-1]["detail"]


@pytest.mark.parametrize("servers", [[], [{"name": "pynchy", "status": "failed"}], "odd"])
def test_a_program_without_our_server_is_stopped(runs: Runs, servers: Any) -> None:
    code, output = runs.run([init(servers), f"wait {runs.sign}", spoken("m")])

    assert code == 6, output
    assert not runs.has_receipt


def test_a_program_that_claims_a_server_which_is_not_there_is_stopped(runs: Runs) -> None:
    code, output = runs.run([init(), spoken("m"), f"wait {runs.sign}"])

    assert code == 6, output
    assert not runs.has_receipt


async def test_a_call_of_a_tool_proves_that_the_model_has_answered(runs: Runs) -> None:
    """As with OpenCode, which says nothing of a call before it is over."""
    process = runs.start(["lease", init(), "call", f"wait {runs.sign}", "exit 9"])
    await until(lambda: runs.has_receipt)

    runs.sign.touch()

    assert process.wait(60) == 1
    assert list(runs.mailbox.tasks.glob(".tmp-*")) == []


def test_a_call_right_before_the_end_is_not_missed(runs: Runs) -> None:
    code, output = runs.run(["lease", init(), "call"])

    assert code == 0, output
    assert runs.has_receipt


def test_a_runner_that_cannot_lease_the_session_sees_the_server_all_the_same(runs: Runs) -> None:
    unable = (
        "from agent_runner.asking import lease\n"
        "def take(self):\n"
        "    raise OSError('no space')\n"
        "lease.Lease.take = take\n"
    )
    script = ["lease", init(), spoken("m"), result()]

    code, output = runs.run(script, ANSWER, PYTHONPATH=runs.patched(unable))

    assert code == 0, output
    assert "the session cannot be leased: no space" in output


def test_a_receipt_that_cannot_be_written_is_named_as_what_failed(runs: Runs) -> None:
    unable = (
        "from agent_runner import initial\n"
        "def acknowledge(*_):\n"
        "    raise OSError('no space')\n"
        "initial.acknowledge = acknowledge\n"
    )
    script = ["lease", init(), spoken("m"), result()]

    code, output = runs.run(script, ANSWER, PYTHONPATH=runs.patched(unable))

    assert code == 1, output
    assert runs.events()[-1]["detail"] == "the receipt cannot be written: no space"


@pytest.mark.parametrize(
    "line", ["", "{", "[]", '{"type": "assistant", "message": []}', '{"type": {}}', "{}" * 9]
)
def test_an_odd_line_is_passed_over(runs: Runs, line: str) -> None:
    code, output = runs.run(["lease", f"print {line}", init(), spoken("m"), result()])

    assert code == 0, output


def test_a_first_prompt_begins_a_session_and_a_second_goes_on_with_it(runs: Runs) -> None:
    first = {"v": 1, "session_id": "s1", "prompt": "Begin."}
    script = ["lease", init(), spoken("m"), result()]

    code, _ = runs.run(script, first)
    state = runs.sign.parent / ".local" / "state" / "agent_runner" / "claude"
    [entry] = [json.loads(path.read_bytes()) for path in state.glob("*.json")]

    assert code == 0
    assert runs.prompt.read_text() == "Begin."
    assert (entry["session_id"], entry["program_id"]) == ("s1", "abc")


@pytest.mark.parametrize(
    "initial",
    [
        "",
        "[]",
        '{"v": 2, "prompt": "x"}',
        '{"v": 1, "prompt": " "}',
        '{"v": 1, "prompt": 7}',
        '{"v": 1, "request_id": "../x", "prompt": "x"}',
        '{"v": 1, "session_id": "s\\u0000", "prompt": "x"}',
    ],
)
def test_an_initial_that_cannot_be_used_is_refused(runs: Runs, initial: str) -> None:
    code, output = runs.run([], initial)

    assert code == 3, output
    assert "Traceback" not in output
    assert runs.events() == []


def test_what_else_is_wrong_has_its_own_exit_code(runs: Runs) -> None:
    assert runs.run([], ANSWER, "--agent", "nobody")[0] == 2
    assert runs.run([], ANSWER, PYNCHY_MAX_WAIT="soon")[0] == 2
    # More milliseconds than 32 bits hold: the programs would not wait at all.
    assert runs.run([], ANSWER, PYNCHY_MAX_WAIT="2147484")[0] == 2
    assert runs.run([], ANSWER, PYNCHY_IPC_DIR="/nowhere")[0] == 4
    code, output = runs.run([], ANSWER, PATH="/nowhere")
    assert (code, "claude" in output) == (5, True)
    code, output = runs.run([], ANSWER, "--agent", "codex")
    assert (code, "s1" in output) == (7, True)


async def test_a_signal_ends_the_program_and_gives_the_lease_back(runs: Runs) -> None:
    process = runs.start(["lease", init(), spoken("m"), f"wait {runs.sign}"])
    await until(lambda: runs.has_receipt)

    process.send_signal(signal.SIGTERM)
    code = process.wait(60)

    assert code == 143
    # The fake is not asked to tidy up: only the runner's own is gone.
    assert len(runs.mailbox.names("*.lease")) == 1


UNKNOWN = "No conversation found with session ID: abc"


@pytest.mark.parametrize("word", ["print", "complain"])
def test_words_of_a_lost_session_are_believed_before_the_model_has_answered(
    runs: Runs, word: str
) -> None:
    code, output = runs.run([f"{word} {UNKNOWN}", f"wait {runs.sign}"])

    assert code == 7, output


@pytest.mark.parametrize("word", ["print", "complain"])
def test_words_of_a_lost_session_in_what_an_agent_reads_do_not_stop_it(
    runs: Runs, word: str
) -> None:
    # Only then is it known that the answer was seen before the words: they may come another way.
    seen = f"wait {runs.mailbox.tasks / 'r1.resumed'}"
    code, output = runs.run(["lease", init(), spoken("m"), seen, f"{word} {UNKNOWN}", result()])

    assert code == 0, output
    assert UNKNOWN in output


def test_a_failure_with_the_words_of_a_lost_session_is_a_failure_after_the_answer(
    runs: Runs,
) -> None:
    ended = {"type": "result", "is_error": True, "result": UNKNOWN}

    code, output = runs.run(["lease", init(), spoken("m"), f"print {json.dumps(ended)}"])

    assert code == 1, output


def test_an_event_among_the_errors_is_not_taken_for_the_models_answer(runs: Runs) -> None:
    said = spoken("m").removeprefix("print ")

    code, output = runs.run(["lease", init(), f"complain {said}"])

    assert code == 1, output
    assert not runs.has_receipt


HALF = "half \ud83d"


@pytest.mark.parametrize(
    ("text", "encoding"), [(HALF, "utf-8"), ("→ staff", "ascii")], ids=["half", "arrow"]
)
def test_what_cannot_be_printed_does_not_end_the_run(runs: Runs, text: str, encoding: str) -> None:
    said = spoken("m", {"type": "text", "text": text})

    code, output = runs.run(
        ["lease", init(), said, result()], ANSWER, PYTHONIOENCODING=encoding, PYTHONUTF8="0"
    )

    assert code == 0, output
    assert "says: " in output


def test_a_failure_is_told_whatever_its_words_hold(runs: Runs) -> None:
    ended = {"type": "result", "subtype": "success", "is_error": True, "result": HALF}

    code, output = runs.run(["lease", init(), spoken("m"), f"print {json.dumps(ended)}"])

    assert code == 1, output
    assert runs.events()[-1]["detail"] == "half \ufffd"


def test_a_prompt_and_a_session_with_half_a_character_reach_the_program(runs: Runs) -> None:
    first = {"v": 1, "session_id": HALF, "prompt": f"{HALF} of it"}

    code, output = runs.run(["lease", init(), spoken("m"), result()], first)

    assert code == 0, output
    assert runs.prompt.read_text() == "half \ufffd of it"


def test_a_runner_that_breaks_down_takes_its_program_with_it(runs: Runs) -> None:
    breaking = "from agent_runner.cores import claude; claude.Claude.read = None"
    pid = runs.sign.with_name("pid")

    code, output = runs.run(
        [f"pid {pid}", init(), f"wait {runs.sign}"], ANSWER, PYTHONPATH=runs.patched(breaking)
    )

    assert code == 1, output
    assert runs.events()[-1]["event"] == "failed"
    assert not Path(f"/proc/{pid.read_text()}").exists()


async def test_a_program_that_ignores_the_signal_is_gone_before_the_host_loses_patience(
    runs: Runs,
) -> None:
    pid = runs.sign.with_name("pid")
    process = runs.start(["deaf", f"pid {pid}", "lease", init(), spoken("m"), f"wait {runs.sign}"])
    await until(lambda: runs.has_receipt)

    process.send_signal(signal.SIGTERM)

    # What a launcher of kind `process` waits before it kills the runner itself.
    assert process.wait(10) == 143
    assert not Path(f"/proc/{pid.read_text()}").exists()


def test_a_signal_while_the_program_is_being_started_ends_it(runs: Runs) -> None:
    # The signal comes when the program is there and nobody holds it yet.
    early = (
        "import os, signal, subprocess\n"
        "begin = subprocess.Popen.__init__\n"
        "def begin_and_be_stopped(*args, **kwargs):\n"
        "    begin(*args, **kwargs)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "subprocess.Popen.__init__ = begin_and_be_stopped\n"
    )

    code, output = runs.run([f"wait {runs.sign}"], ANSWER, PYTHONPATH=runs.patched(early))

    assert code == 143, output
    assert runs.events()[-1]["event"] == "failed"


async def test_the_session_is_leased_before_the_program_has_a_server(runs: Runs) -> None:
    runs.start([init(), f"wait {runs.sign}"])

    [name] = await until(lambda: runs.mailbox.names("*.lease"))

    lease = json.loads((runs.mailbox.tasks / name).read_bytes())
    assert lease["session_id"] == "s1"


def test_what_the_agent_works_on_is_on_no_command_line(runs: Runs) -> None:
    program = runs.sign.parent / "bin" / "claude"
    show = "import os, sys; print(os.environ['PYNCHY_TASK'], 'secret' in str(sys.argv))"
    program.write_text(f"#!{sys.executable}\n{show}\n")

    _, output = runs.run([], ANSWER, PYNCHY_TASK="a secret plan")

    assert "a secret plan False" in output


@pytest.mark.parametrize("variable", ["PYNCHY_STATE_DIR", "XDG_STATE_HOME"])
def test_the_server_keeps_its_notes_where_the_runner_does(runs: Runs, variable: str) -> None:
    program = runs.sign.parent / "bin" / "claude"
    config = "json.loads(sys.argv[sys.argv.index('--mcp-config') + 1])"
    show = f"print({config}['mcpServers']['pynchy']['env']['PYNCHY_STATE_DIR'])"
    program.write_text(f"#!{sys.executable}\nimport json, sys; {show}\n")

    _, output = runs.run([], ANSWER, **{variable: "/elsewhere"})

    assert "agent_runner: /elsewhere" in output


def test_the_program_is_told_the_folder_that_it_runs_in(runs: Runs) -> None:
    shown = runs.sign
    program = runs.sign.parent / "bin" / "claude"
    show = f"import os; open({str(shown)!r}, 'w').write(os.environ['PWD'])"
    program.write_text(f"#!{sys.executable}\n{show}\n")

    runs.run([], ANSWER, PWD="/somewhere/else")  # noqa: S106 - a folder

    assert shown.read_text() == os.path.realpath(Path.cwd())


def test_acp_without_a_program_says_how_to_name_one(runs: Runs) -> None:
    code, output = runs.run([], ANSWER, "--agent", "acp")

    assert code == 2
    assert "-- gemini --acp" in output
