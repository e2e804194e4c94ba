"""What `pynchy serve` says when it starts: its settings, its port, and what is exposed."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.support import Run

from pynchy.config import HttpSettings
from pynchy.data_dir import DataFolder, SettingsSource
from pynchy.http.context import listen

COMMAND = (sys.executable, "-c", "from pynchy.cli import main; main()")
PORT = "[http]\nport = 0\n"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a person whose home is the folder."""
    env = {**os.environ, "HOME": str(folder), "PYNCHY_DATA_DIR": str(folder / "data")}
    env.pop("XDG_CONFIG_HOME", None)
    return env


def run_in(folder: Path, *arguments: str) -> str:
    """Run a command in the folder and return what it says."""
    command, env = [*COMMAND, *arguments], environment(folder)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def serve(folder: Path, *options: str, **environ: str) -> tuple[str, str]:
    """Start a host in the folder, stop it when it is ready, and return what it printed."""
    command = [*COMMAND, "serve", *options]
    env = environment(folder) | environ
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        printed = ""
        while line := process.stdout.readline():
            printed += line
            if line.startswith("pynchy is ready"):
                break
        process.terminate()
        _, errors = process.communicate(timeout=30)
    return printed, errors


def test_a_chosen_port_that_is_taken_is_an_error_and_not_another_port(
    tmp_path: Path, taken: int
) -> None:
    (tmp_path / "mine.toml").write_text(f"[http]\nport = {taken}\n")

    by_settings = serve(tmp_path, "--config", "mine.toml")
    by_option = serve(tmp_path, "--port", str(taken))

    for printed, errors in (by_settings, by_option):
        assert printed == ""
        assert f"port {taken} of 127.0.0.1 is taken" in errors
        assert "--port" in errors


def test_the_default_port_gives_way_if_it_is_taken(taken: int) -> None:
    unchosen = HttpSettings.model_construct(_fields_set=set(), port=taken)

    with listen(unchosen) as sock:
        assert sock.getsockname()[1] not in {taken, 0}


def test_serve_says_which_settings_it_has_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(PORT)

    printed, errors = serve(tmp_path, "--config", "mine.toml")
    _, without = serve(tmp_path, "--port", "0")

    assert printed.count("\n") == 1
    assert f'event=host.settings file="{path}"' in errors
    assert "Warning" not in errors
    assert 'event=host.settings file="no file' in without


def test_settings_that_lie_in_the_folder_by_chance_are_said_loudly(tmp_path: Path) -> None:
    path = tmp_path / "pynchy.toml"
    path.write_text(f'{PORT}[groups.nightly.launcher]\ncommand = ["true"]\n')

    _, found = serve(tmp_path)
    _, named = serve(tmp_path, "--config", "pynchy.toml")
    _, by_variable = serve(tmp_path, PYNCHY_CONFIG="pynchy.toml")

    assert f"Warning: the settings are those of {path}" in found
    assert "it starts programs for: nightly" in found
    assert "Warning" not in named + by_variable


def test_settings_that_an_agent_left_in_its_workspace_won_over_those_of_the_person(
    tmp_path: Path,
) -> None:
    own = tmp_path / ".config/pynchy/pynchy.toml"
    own.parent.mkdir(parents=True)
    own.write_text(PORT)
    _, first = serve(tmp_path)
    planted = tmp_path / "pynchy.toml"
    planted.write_text(f'{PORT}[groups.team.launcher]\ncommand = ["true"]\n')

    refused, why = serve(tmp_path)
    doctor = run_in(tmp_path, "doctor")
    _, own_again = serve(tmp_path, "--config", str(own))
    _, named = serve(tmp_path, "--config", "pynchy.toml")
    _, known = serve(tmp_path)

    assert f'file="{own}"' in first + own_again
    assert refused == ""
    assert f"the host last ran with {own}" in why
    assert f"--config {planted}" in why
    assert f"the host last ran with {own}" in doctor
    assert f'file="{planted}"' in named
    assert f"Warning: the settings are those of {planted}" in known


def test_settings_that_an_agent_left_were_taken_by_a_host_that_had_run_without_any(
    tmp_path: Path,
) -> None:
    _, first = serve(tmp_path, "--port", "0")
    planted = tmp_path / "pynchy.toml"
    planted.write_text(f'{PORT}[groups.team.launcher]\ncommand = ["true"]\n')

    refused, why = serve(tmp_path, "--port", "0")
    doctor = run_in(tmp_path, "doctor")
    _, named = serve(tmp_path, "--config", "pynchy.toml")
    _, known = serve(tmp_path)

    assert 'file="no file' in first
    assert refused == ""
    assert "the host last ran with no settings file" in why
    assert f"--config {planted}" in why
    assert "the host last ran with no settings file" in doctor
    assert f'file="{planted}"' in named + known


@pytest.mark.parametrize(
    "command",
    [
        "slack check",
        "whatsapp pair",
        "whatsapp status",
        "whatsapp groups",
        "whatsapp logout --force",
        "connect claude --resume --scope project --yes",
    ],
)
def test_settings_that_an_agent_left_in_its_workspace_were_read_by_other_commands(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    own, victim, planted = (tmp_path / n for n in ("own.toml", "victim", "pynchy.toml"))
    own.touch()
    victim.write_text("precious")
    data = DataFolder(tmp_path / "data")
    data.make()
    with data.locked():
        data.announce("http://127.0.0.1:1", SettingsSource.of(own))
        data.retract()
    with socket.create_server(("127.0.0.1", 0)) as agent:
        url = f"http://127.0.0.1:{agent.getsockname()[1]}/api/"
        tables = f'[channels.slack]\napi_url = "{url}"\n[channels.whatsapp]\nstore = "{victim}"\n'
        planted.write_text(tables)
        monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
        monkeypatch.setenv("SLACK_APP_TOKEN", "xapp-1")
        agent.setblocking(False)  # noqa: FBT003 - as it is called

        refused = run(*command.split())

        with pytest.raises(BlockingIOError):
            agent.accept()
    assert refused.exit_code == 1
    assert f"the host last ran with {own}" in refused.stderr
    assert f"--config {planted}" in refused.stderr
    assert victim.read_text() == "precious"
    assert planted.read_text() == tables


def test_settings_of_the_folder_count_once_those_of_the_last_host_are_gone(tmp_path: Path) -> None:
    own = tmp_path / ".config/pynchy/pynchy.toml"
    own.parent.mkdir(parents=True)
    own.write_text(PORT)
    serve(tmp_path)
    own.unlink()

    serve(tmp_path, "--port", "0")
    run_in(tmp_path, "init")
    printed, errors = serve(tmp_path, "--port", "0")

    assert "pynchy is ready" in printed
    assert f"Warning: the settings are those of {tmp_path / 'pynchy.toml'}" in errors


def test_an_address_that_others_reach_is_warned_of_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "open.toml").write_text('[http]\nhost = "0.0.0.0"\nport = 0\n')

    _, errors = serve(tmp_path, "--config", "open.toml")

    assert 'http.host = "0.0.0.0"' in errors
    assert "not encrypted" in errors


def test_warnings_are_json_lines_where_a_program_reads_the_log(tmp_path: Path) -> None:
    (tmp_path / "open.toml").write_text('[http]\nhost = "0.0.0.0"\nport = 0\n')

    _, errors = serve(tmp_path, "--config", "open.toml", "--log-format", "json")

    assert all(line.startswith("{") for line in errors.splitlines())
    assert "not encrypted" in errors


@pytest.mark.parametrize("address", ["192.0.2.1", "::", "box.example.org"])
def test_doctor_does_not_call_an_open_address_well(tmp_path: Path, run: Run, address: str) -> None:
    (tmp_path / "pynchy.toml").write_text(f'[http]\nhost = "{address}"\n')

    said = run("doctor").stdout

    assert f'warning  http: http.host = "{address}": others in the network' in said


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_doctor_says_nothing_of_an_address_of_this_machine_alone(
    tmp_path: Path, run: Run, address: str
) -> None:
    (tmp_path / "pynchy.toml").write_text(f'[http]\nhost = "{address}"\n')

    assert "others in the network" not in run("doctor").stdout


def test_a_group_in_which_nobody_may_answer_is_warned_of_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "mute.toml").write_text(
        f'{PORT}[channels.whatsapp]\n[groups.team]\nchannels = ["whatsapp"]\n'
        'chat = { whatsapp = "+49 170 1234567" }\n'
    )

    _, errors = serve(tmp_path, "--config", "mute.toml")

    assert "group team: nobody may answer in whatsapp" in errors
