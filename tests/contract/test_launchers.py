"""Every launcher keeps the same promises; a new one joins by the fixture."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from tests.contract.engine import Engine
from tests.waiting import until

from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.launchers.base import Launch, Launcher, Runner
from pynchy.launchers.bubblewrap import BubblewrapLauncher
from pynchy.launchers.command import CommandLauncher
from pynchy.launchers.docker import DockerLauncher
from pynchy.launchers.process import ProcessLauncher
from pynchy.launchers.sandbox import SandboxLauncher
from pynchy.model import GroupName, RequestId, SessionId
from pynchy.testing import FakeLauncher, FakeRunner

GROUP = GroupName("g1")
SESSION = SessionId("s1")

# Waits until it is told how to end, so that a test decides when.
SCRIPT = """
import os, pathlib, sys, time
order = pathlib.Path(sys.argv[1])
while not order.exists():
    time.sleep(0.01)
sys.exit(int(order.read_text()))
"""


class Bench(Protocol):
    """A launcher, and a way to let its runner end."""

    launcher: Launcher

    def end(self, runner: Runner, code: int) -> None: ...

    def restarted(self) -> Launcher: ...


class CommandBench:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._order = folder / "order"
        self.launcher = self.restarted()

    def restarted(self) -> Launcher:
        command = (sys.executable, "-c", SCRIPT, str(self._order))
        settings = LauncherSettings(command=command)
        return CommandLauncher(self._folder, GROUP, settings, dict(os.environ))

    def _put(self, program: Path) -> None:
        """Put the script there whole: a shell that is just starting may be about to read it."""
        partial = program.with_suffix(".part")
        partial.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{SCRIPT}' {self._order} \"$@\"\n")
        partial.chmod(0o700)
        partial.rename(program)

    def end(self, runner: Runner, code: int) -> None:
        del runner
        partial = self._order.with_suffix(".part")
        partial.write_text(str(code))
        partial.rename(self._order)


class ProcessBench(CommandBench):
    """The runner program is a script that speaks no more of the contract than is needed here."""

    def restarted(self) -> Launcher:
        program = self._folder / "agent_runner"
        self._put(program)
        settings = LauncherSettings(kind="process", agent="claude", runner=str(program))
        return ProcessLauncher(self._folder, GROUP, settings, dict(os.environ))


class BoxBench(CommandBench):
    """A box: what the runner needs lies in its workspace."""

    kind = "bubblewrap"
    launcher_class: type[SandboxLauncher] = BubblewrapLauncher
    inside = ""

    def restarted(self) -> Launcher:
        workspace = self._folder / "boxes" / GROUP / "workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        self._order = workspace / "order"
        program = workspace / "agent_runner"
        self._put(program)
        runner = f"{self.inside or workspace}/agent_runner"
        settings = LauncherSettings(kind=self.kind, agent="claude", runner=runner)
        return self.launcher_class(self._folder, GROUP, settings, self.environ())

    def environ(self) -> dict[str, str]:
        return dict(os.environ)


class DockerBench(BoxBench):
    kind = "docker"
    launcher_class = DockerLauncher
    inside = "/workspace"

    def __init__(self, folder: Path) -> None:
        self.engine = Engine(folder)
        super().__init__(folder)

    def environ(self) -> dict[str, str]:
        return self.engine.environ()


class FakeBench:
    def __init__(self) -> None:
        self.launcher = FakeLauncher()

    def restarted(self) -> Launcher:
        return self.launcher

    def end(self, runner: Runner, code: int) -> None:
        assert isinstance(runner, FakeRunner)
        runner.finish(f"exit code {code}" if code else None)


BENCHES: dict[str, Callable[[Path], Bench]] = {
    "command": CommandBench,
    "process": ProcessBench,
    "docker": DockerBench,
    "fake": lambda _: FakeBench(),
}
if os.environ.get("PYNCHY_TEST_SANDBOX"):  # make test-sandbox, which installs it
    BENCHES["bubblewrap"] = BoxBench


@pytest.fixture(params=BENCHES)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    made = BENCHES[request.param](tmp_path)
    yield made
    await made.launcher.close()
    if isinstance(made, DockerBench):
        made.engine.stop()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    mailbox = tmp_path / "ipc" / GROUP
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True)
    initial = mailbox / "input" / "initial.json"
    return Launch(GROUP, SESSION, "q1", 1, initial, mailbox, RequestId("q1"))


async def test_a_runner_that_ends_well_has_no_error(bench: Bench, launch: Launch) -> None:
    runner = await bench.launcher.start(launch)
    assert bench.launcher.runner_on(GROUP, SESSION)

    bench.end(runner, 0)

    assert (await runner.ended()).error is None
    await until(lambda: not bench.launcher.runner_on(GROUP, SESSION))


async def test_a_runner_that_fails_says_so(bench: Bench, launch: Launch) -> None:
    runner = await bench.launcher.start(launch)

    bench.end(runner, 3)

    assert (await runner.ended()).error == "exit code 3"


async def test_several_may_wait_for_the_end_and_one_may_stop_waiting(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)
    patient = asyncio.ensure_future(runner.ended())
    impatient = asyncio.ensure_future(runner.ended())
    await asyncio.sleep(0)

    impatient.cancel()
    bench.end(runner, 0)

    assert (await patient).error is None


async def test_another_session_is_not_live(bench: Bench, launch: Launch) -> None:
    runner = await bench.launcher.start(launch)

    assert not bench.launcher.runner_on(GROUP, SessionId("s2"))
    bench.end(runner, 0)
    await runner.ended()


async def test_an_attempt_that_was_never_made_is_not_found(bench: Bench, launch: Launch) -> None:
    assert await bench.launcher.find(launch.stem) is None


async def test_a_living_runner_is_found_again_after_a_restart_of_the_host(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)

    again = bench.restarted()
    await again.adopt()
    found = await again.find(launch.stem)

    assert found is not None
    assert again.runner_on(GROUP, SESSION)
    bench.end(runner, 3)
    assert (await found.ended()).error == "exit code 3"
    await runner.ended()
    await again.close()


async def test_how_a_runner_ended_is_known_after_a_restart_of_the_host(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)
    bench.end(runner, 0)
    await runner.ended()

    again = bench.restarted()
    await again.adopt()
    found = await again.find(launch.stem)

    assert found is not None
    assert (await found.ended()).error is None
    assert await again.find(replace(launch, attempt=2).stem) is None
    await again.close()


@pytest.mark.parametrize("asker", [SESSION, SessionId("s2")], ids=["its own", "another"])
async def test_a_first_prompts_runner_passed_for_that_of_an_answer_with_its_id(
    bench: Bench, launch: Launch, asker: SessionId
) -> None:
    first = replace(launch, name=SESSION, request_id=None)
    answer = replace(first, session_id=asker, request_id=RequestId(SESSION))
    runner = await bench.launcher.start(first)
    bench.end(runner, 0)
    await runner.ended()

    again = bench.restarted()

    assert await again.find(first.stem) is not None
    assert await again.find(answer.stem, answer.request_id) is None


async def test_the_answer_of_a_question_with_its_sessions_id_has_a_runner_of_its_own(
    bench: Bench, launch: Launch
) -> None:
    first = replace(launch, name=SESSION, request_id=None)
    answer = replace(first, request_id=RequestId(SESSION))
    for each in (first, answer):
        runner = await bench.launcher.start(each)
        bench.end(runner, 0)
        await runner.ended()

    again = bench.restarted()

    assert await again.find(answer.stem, answer.request_id) is not None
    assert first.stem != answer.stem


async def test_an_answer_with_the_id_of_another_session_does_not_take_its_files(
    bench: Bench, launch: Launch
) -> None:
    first = replace(launch, name=SESSION, request_id=None)
    answer = replace(first, session_id=SessionId("s2"), request_id=RequestId(SESSION))
    runner = await bench.launcher.start(first)
    bench.end(runner, 0)
    await runner.ended()

    with pytest.raises(DeliveryFailed, match="another runner"):
        await bench.launcher.start(answer)
    second = await bench.launcher.start(replace(answer, attempt=2))
    bench.end(second, 0)

    assert (await second.ended()).error is None


async def test_a_session_never_has_two_runners(bench: Bench, launch: Launch) -> None:
    runner = await bench.launcher.start(launch)

    with pytest.raises(DeliveryFailed, match="already"):
        await bench.launcher.start(replace(launch, name="q2"))
    bench.end(runner, 0)
    await runner.ended()

    await until(lambda: not bench.launcher.runner_on(GROUP, SESSION))
    again = await bench.launcher.start(replace(launch, name="q2"))
    bench.end(again, 0)
    await again.ended()


async def test_of_two_that_start_at_once_on_a_session_one_is_refused(
    bench: Bench, launch: Launch
) -> None:
    started = await asyncio.gather(
        bench.launcher.start(launch),
        bench.launcher.start(replace(launch, name="q2")),
        return_exceptions=True,
    )

    runners = [found for found in started if not isinstance(found, BaseException)]
    assert len(runners) == 1
    bench.end(runners[0], 0)
    await runners[0].ended()


async def test_two_sessions_may_have_a_runner_each(bench: Bench, launch: Launch) -> None:
    other = replace(launch, name="q2", session_id=SessionId("s2"))

    runners = [await bench.launcher.start(launch), await bench.launcher.start(other)]

    assert bench.launcher.runner_on(GROUP, SESSION)
    assert bench.launcher.runner_on(GROUP, SessionId("s2"))
    for runner in runners:
        bench.end(runner, 0)
        await runner.ended()


async def test_a_runner_that_is_stopped_ends_and_says_that_it_was_stopped(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)

    await runner.stop()

    end = await runner.ended()
    assert end.stopped
    assert end.error == "stopped"


async def test_a_runner_can_be_stopped_after_a_restart_of_the_host(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)
    again = bench.restarted()
    await again.adopt()

    found = again.runner_on(GROUP, SESSION)
    assert found is not None
    await found.stop()

    assert (await found.ended()).stopped
    await runner.ended()
    await again.close()


async def test_a_runner_that_has_ended_is_found_but_not_taken_for_living(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)
    bench.end(runner, 3)
    await runner.ended()

    again = bench.restarted()
    await again.adopt()
    found = await again.find(launch.stem)

    assert found is not None
    assert again.runner_on(GROUP, SESSION) is None
    assert (await found.ended()).error
    await again.close()


def process_launcher(tmp_path: Path, script: str, **settings: object) -> ProcessLauncher:
    program = tmp_path / "a_runner"
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(0o700)
    made = LauncherSettings.model_validate(
        {"kind": "process", "agent": "claude", "runner": str(program), **settings}
    )
    return ProcessLauncher(tmp_path, GROUP, made, {"PATH": os.environ["PATH"], "HOME": "/now"})


TELL = """
import json, os, pathlib, sys
told = {name: os.environ.get(name) for name in
        ("HOME", "PYNCHY_IPC_DIR", "PYNCHY_SESSION_ID", "PYNCHY_AGENT", "PYNCHY_TASK")}
pathlib.Path(sys.argv[2]).with_name("told").write_text(
    json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), **told}))
"""


async def test_the_runner_program_is_told_what_to_run_and_where_the_session_lives(
    tmp_path: Path, launch: Launch
) -> None:
    launcher = process_launcher(tmp_path, TELL, args=["--fast"], cwd="/")
    home = tmp_path / "home"
    home.mkdir()
    launch = replace(launch, home=str(home), cwd=str(home), agent="claude", task="Mend it")

    end = await (await launcher.start(launch)).ended()

    assert end.error is None
    assert json.loads(launch.initial.with_name("told").read_text()) == {
        "argv": [
            "--initial",
            str(launch.initial),
            "--agent",
            "claude",
            "--session",
            "s1",
            "--fast",
        ],
        "cwd": str(home),
        "HOME": str(home),
        "PYNCHY_IPC_DIR": str(launch.ipc_dir),
        "PYNCHY_SESSION_ID": "s1",
        "PYNCHY_AGENT": "claude",
        "PYNCHY_TASK": "Mend it",
    }
    await launcher.close()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], ["--", "gemini", "--acp"]),
        (["--", "--model", "x"], ["--", "gemini", "--acp", "--model", "x"]),
        (["--fast"], ["--fast", "--", "gemini", "--acp"]),
    ],
)
async def test_the_runner_of_a_program_that_speaks_acp_is_told_its_command(
    tmp_path: Path, launch: Launch, args: list[str], told: list[str]
) -> None:
    command = ["gemini", "--acp"]
    launcher = process_launcher(tmp_path, TELL, agent="acp", acp_command=command, args=args)

    await (await launcher.start(launch)).ended()

    argv = json.loads(launch.initial.with_name("told").read_text())["argv"]
    assert argv[argv.index("--session") + 2 :] == told
    await launcher.close()


@pytest.mark.parametrize("launcher_class", [ProcessLauncher, BubblewrapLauncher])
async def test_acp_without_a_program_is_said_before_anything_is_started(
    tmp_path: Path, launch: Launch, launcher_class: type[ProcessLauncher | BubblewrapLauncher]
) -> None:
    kind = "process" if launcher_class is ProcessLauncher else "bubblewrap"
    settings = LauncherSettings.model_validate({"kind": kind, "agent": "claude"})
    launcher = launcher_class(tmp_path, GROUP, settings, dict(os.environ))
    # As with `pynchy run --agent acp`.
    launch = replace(launch, cwd=str(tmp_path), chosen="acp")

    with pytest.raises(DeliveryFailed, match=f"set acp_command in .groups.{GROUP}.launcher"):
        await launcher.start(launch)


async def test_a_runner_is_started_though_its_task_has_a_nul_in_it(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(replace(launch, agent="cl\0de", task="Mend\0it"))

    bench.end(runner, 0)

    assert (await runner.ended()).error is None


async def test_what_a_variable_cannot_hold_is_told_as_well_as_it_can_be(
    tmp_path: Path, launch: Launch
) -> None:
    launcher = process_launcher(tmp_path, TELL, cwd="/")

    await (await launcher.start(replace(launch, agent="cl\0de", task="Mend\0it"))).ended()

    told = json.loads(launch.initial.with_name("told").read_text())
    assert (told["PYNCHY_AGENT"], told["PYNCHY_TASK"]) == ("cl\ufffdde", "Mend\ufffdit")
    await launcher.close()


async def test_a_person_may_choose_another_agent_and_an_unknown_place_is_the_launchers_own(
    tmp_path: Path, launch: Launch
) -> None:
    launcher = process_launcher(tmp_path, TELL, cwd=str(tmp_path))

    await (await launcher.start(replace(launch, chosen="codex"))).ended()

    told = json.loads(launch.initial.with_name("told").read_text())
    assert told["argv"][2:4] == ["--agent", "codex"]
    assert (told["cwd"], told["HOME"], told["PYNCHY_AGENT"]) == (str(tmp_path), "/now", "codex")
    await launcher.close()


async def test_a_stubborn_runner_is_killed_when_it_is_stopped(
    tmp_path: Path, launch: Launch
) -> None:
    stubborn = (
        "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "pathlib.Path(sys.argv[2]).with_name('ready').touch(); time.sleep(60)"
    )
    launcher = process_launcher(tmp_path, stubborn, term_grace=0.2)
    runner = await launcher.start(launch)
    await until(launch.initial.with_name("ready").exists)

    await runner.stop()

    assert (await runner.ended()).error == "stopped (killed after 0.2 s)"
    await launcher.close()


def command_launcher(tmp_path: Path, *command: str, **settings: object) -> CommandLauncher:
    made = LauncherSettings.model_validate({"command": command, **settings})
    return CommandLauncher(tmp_path, GROUP, made, {"PATH": os.environ["PATH"], "SECRET": "x"})


async def test_a_command_is_given_its_arguments_and_environment_without_a_shell(
    tmp_path: Path, launch: Launch
) -> None:
    told = tmp_path / "told"
    script = (
        "import os, sys, pathlib; "
        "pathlib.Path(sys.argv[1]).write_text("
        "'|'.join([*sys.argv[2:], os.environ['PYNCHY_SESSION_ID'],"
        " os.environ['PYNCHY_IPC_DIR'], os.environ['EXTRA'], os.getcwd()]))"
    )
    launcher = command_launcher(
        tmp_path,
        sys.executable, "-c", script, str(told), "{initial}", "{session_id}", "$HOME; {{x}}",
        env={"EXTRA": "yes"},
        cwd=str(tmp_path),
    )  # fmt: skip

    end = await (await launcher.start(launch)).ended()

    assert end.error is None
    expected = [launch.initial, "s1", "$HOME; {x}", "s1", launch.ipc_dir, "yes", tmp_path]
    assert told.read_text().split("|") == [str(part) for part in expected]
    await launcher.close()


async def test_a_command_that_is_not_there_is_reported(tmp_path: Path, launch: Launch) -> None:
    launcher = command_launcher(tmp_path, "/no/such/program")

    with pytest.raises(DeliveryFailed, match="could not start /no/such/program: No such file or"):
        await launcher.start(launch)

    assert launcher.runner_on(GROUP, SESSION) is None
    found = await launcher.find(launch.stem)
    assert found is not None
    assert "could not start" in str((await found.ended()).error)
    await launcher.close()


async def test_a_command_is_ended_at_its_cap_even_if_it_ignores_the_request(
    tmp_path: Path, launch: Launch
) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    launcher = command_launcher(
        tmp_path, sys.executable, "-c", stubborn, timeout=0.3, term_grace=0.1
    )

    end = await (await launcher.start(launch)).ended()

    assert end.error is not None
    assert end.error.startswith("ended at its cap of 0.3 s")
    await launcher.close()


# Starts a child that is deaf to requests, in a session of its own if told so, and then goes on.
PARENT = """
import os, pathlib, signal, subprocess, sys, time
child = pathlib.Path(sys.argv[1])
deaf = "import signal,sys,pathlib,time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
deaf += "pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
ready = child.with_suffix(".ready")
own = sys.argv[2] == "own session"
started = subprocess.Popen([sys.executable, "-c", deaf, ready], start_new_session=own)
while not ready.exists():
    time.sleep(0.01)
child.write_text(str(started.pid))
if sys.argv[3] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
elif sys.argv[3] == "fails":
    sys.exit(3)
elif sys.argv[3] == "lives":
    time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("where", ["same session", "own session"])
@pytest.mark.parametrize(
    ("how", "error"), [("lives", "ended at its cap"), ("dies", "exit code -9"), ("fails", "exit")]
)
async def test_what_a_command_started_ends_with_it(
    tmp_path: Path, launch: Launch, where: str, how: str, error: str
) -> None:
    child = tmp_path / "child"
    command = (sys.executable, "-c", PARENT, str(child), where, how)
    timeout = 3 if how == "lives" else 60
    launcher = command_launcher(tmp_path, *command, timeout=timeout, term_grace=0.2)

    end = await (await launcher.start(launch)).ended()

    assert str(end.error).startswith(error)
    assert not is_alive(int(child.read_text()))
    await launcher.close()


async def test_what_an_agent_left_behind_ends_though_it_ended_well(
    tmp_path: Path, launch: Launch
) -> None:
    child = tmp_path / "child"
    script = f"import sys; sys.argv[1:] = [{str(child)!r}, 'own session', 'ends']\n{PARENT}"
    launcher = process_launcher(tmp_path, script, term_grace=0.2)

    end = await (await launcher.start(launch)).ended()

    assert end.error is None
    assert not is_alive(int(child.read_text()))
    await launcher.close()


async def test_a_command_that_ended_well_may_leave_something_in_the_background(
    tmp_path: Path, launch: Launch
) -> None:
    child = tmp_path / "child"
    command = (sys.executable, "-c", PARENT, str(child), "same session", "ends")
    launcher = command_launcher(tmp_path, *command, term_grace=0.2)

    end = await (await launcher.start(launch)).ended()

    left = int(child.read_text())
    assert end.error is None
    assert is_alive(left)
    os.kill(left, signal.SIGKILL)
    await launcher.close()


async def test_what_a_failed_command_said_can_be_found(tmp_path: Path, launch: Launch) -> None:
    launcher = command_launcher(
        tmp_path, sys.executable, "-c", "print('oh no'); raise SystemExit(1)"
    )

    end = await (await launcher.start(launch)).ended()

    assert end.error is not None
    path = Path(end.error.removeprefix("exit code 1; its output is in "))
    assert path.read_text() == "oh no\n"
    await launcher.close()


@pytest.mark.parametrize(("session", "is_answer"), [("s1", True), ("q1", False)])
async def test_what_an_older_version_started_is_found_for_what_it_was(
    tmp_path: Path, launch: Launch, session: str, *, is_answer: bool
) -> None:
    launcher = CommandBench(tmp_path).launcher
    folder = tmp_path / "runners" / GROUP
    folder.mkdir(parents=True)
    # It did not say what a job was for: a first prompt had the name of its session.
    (folder / "q1.1.job").write_text(json.dumps({"session_id": session}))
    (folder / "q1.1.result").write_text(json.dumps({"exit_code": 0, "error": None}))

    found = await launcher.find(launch.stem, launch.request_id)

    assert (found is not None) is is_answer
    assert await launcher.find(launch.stem) is not None


async def test_a_runner_is_not_started_beside_itself(tmp_path: Path, launch: Launch) -> None:
    bench = CommandBench(tmp_path)
    runner = await bench.launcher.start(launch)

    with pytest.raises(DeliveryFailed):
        await bench.restarted().start(launch)

    bench.end(runner, 0)
    await runner.ended()


async def test_no_environment_is_written_to_the_disk(tmp_path: Path, launch: Launch) -> None:
    launcher = command_launcher(tmp_path, "true", env={"API_KEY": "sk-hidden"})
    await (await launcher.start(launch)).ended()

    written = b"".join(p.read_bytes() for p in (tmp_path / "runners").rglob("*") if p.is_file())

    assert b"sk-hidden" not in written
    await launcher.close()


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
@pytest.mark.parametrize("launcher_class", [ProcessLauncher, BubblewrapLauncher])
async def test_an_agent_program_that_is_missing_is_said_before_anything_is_started(
    tmp_path: Path,
    launch: Launch,
    launcher_class: type[ProcessLauncher | BubblewrapLauncher],
    agent: str,
) -> None:
    kind = "process" if launcher_class is ProcessLauncher else "bubblewrap"
    settings = LauncherSettings.model_validate(
        {"kind": kind, "agent": agent, "env": {"PATH": "/usr/none:bin"}}
    )
    launcher = launcher_class(tmp_path, GROUP, settings, dict(os.environ))
    launch = replace(launch, cwd=str(tmp_path))

    with pytest.raises(DeliveryFailed, match=f"{agent} is not on the PATH .*groups.{GROUP}.laun"):
        await launcher.start(launch)

    assert not list((tmp_path / "runners").rglob("*.job"))
    program = tmp_path / "bin" / agent
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    launcher.check(launch)
