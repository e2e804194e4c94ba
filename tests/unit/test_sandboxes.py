"""Boxes as they are asked for: what is bound, hidden, told and refused. Nothing is run."""

import json
import os
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent_runner import boxed
from pynchy.config import GroupSettings, LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.launchers.base import Launch
from pynchy.launchers.bubblewrap import BubblewrapLauncher
from pynchy.launchers.docker import DockerLauncher
from pynchy.launchers.jobs import Program
from pynchy.launchers.kinds import isolation_of
from pynchy.model import GroupName, RequestId, SessionId

GROUP = GroupName("team")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def launch(data: Path) -> Launch:
    mailbox = data / "ipc" / GROUP
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True)
    initial = mailbox / "input" / "q1" / "initial.json"
    return Launch(GROUP, SessionId("s1"), "q1", 1, initial, mailbox, RequestId("q1"))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bwrap", "docker", "podman"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    return {"PATH": str(programs), "HOME": str(tmp_path), "LANG": "C", "API_KEY": "sk-hidden"}


def settings_of(kind: str, **settings: Any) -> LauncherSettings:
    fields = {"kind": kind, "agent": "claude", **settings}
    return LauncherSettings.model_validate(fields)


def bubblewrap(data: Path, environ: dict[str, str], **settings: Any) -> BubblewrapLauncher:
    return BubblewrapLauncher(data, GROUP, settings_of("bubblewrap", **settings), environ)


def docker(
    data: Path, environ: dict[str, str], uid: int | None = None, **settings: Any
) -> DockerLauncher:
    return DockerLauncher(data, GROUP, settings_of("docker", **settings), environ, uid)


def told(program: Program) -> dict[str, str]:
    """Return the environment of an agent in bubblewrap."""
    env: dict[str, str] = json.loads(program.env[boxed.ENVIRONMENT])
    return env


def values_of(argv: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(argv) if name == option]


def test_the_data_folder_is_hidden_after_what_may_hold_it_and_before_the_mailbox(
    data: Path, launch: Launch, environ: dict[str, str], tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    data = data.rename(shown / "data")
    mailbox = data / "ipc" / GROUP
    launch = replace(launch, ipc_dir=mailbox, initial=mailbox / "input" / "q1" / "initial.json")

    argv = bubblewrap(data, environ, read=[str(shown)]).program(launch).argv

    places = [
        next(i for i, part in enumerate(argv) if part == what and argv[i - 1] == how)
        for how, what in (
            ("--tmpfs", str(shown)),
            ("--tmpfs", str(data)),
            ("--bind", str(mailbox / "tasks")),
            ("--remount-ro", str(shown)),
            ("--remount-ro", str(data)),
        )
    ]
    assert places == sorted(places)
    assert str(mailbox / "responses") in values_of(argv, "--ro-bind")
    assert str(mailbox) not in [*values_of(argv, "--bind"), *values_of(argv, "--ro-bind")]


def test_an_agent_in_a_box_is_told_no_variable_that_was_not_meant_for_it(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    launcher = bubblewrap(data, environ, env={"A": "1", "HOME": "/elsewhere"})

    program = launcher.program(replace(launch, agent="claude", task="Mend it"))

    assert told(program) == {
        "A": "1",
        "HOME": str(data / "boxes" / GROUP / "home"),
        "LANG": "C",
        "PATH": environ["PATH"],
        "PYNCHY_AGENT": "claude",
        "PYNCHY_IPC_DIR": str(launch.ipc_dir),
        "PYNCHY_SESSION_ID": "s1",
        "PYNCHY_TASK": "Mend it",
    }
    passing = bubblewrap(data, environ, pass_env=["API_KEY", "MISSING"])
    assert told(passing.program(launch))["API_KEY"] == "sk-hidden"


def test_what_a_resumed_agent_calls_itself_is_not_taken_for_its_program(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    hidden = Path(environ["PATH"]) / "gremlin"
    hidden.write_text("#!/bin/sh\n")
    hidden.chmod(0o755)

    program = bubblewrap(data, environ).program(replace(launch, agent="gremlin"))

    assert told(program)["PYNCHY_AGENT"] == "gremlin"


def test_what_makes_a_box_heeds_no_variable_of_the_agents(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    env = {"LD_PRELOAD": "/srv/a.so", "PYTHONPATH": "/srv", "TMPDIR": "/srv"}

    box = bubblewrap(data, environ, env=env).program(launch)
    container = docker(data, environ, env=env, network="proxy", proxy="[::1]:8080").program(launch)

    assert {*box.env} == {"PATH", "LANG", boxed.ENVIRONMENT}
    assert not {"LD_PRELOAD", "TMPDIR"} & {*container.env}
    for program in (box, container):
        assert program.argv[1:3] == ["-I", "-S"]


def leaks(data: Path) -> dict[str, dict[str, Any]]:
    other, prefix = data / "ipc" / "other", Path(sys.prefix)
    return {
        "lies in pynchy's data folder": {"read": [str(other)]},
        "lies in pynchy's data": {"workspace": str(data / "ipc")},
        "holds pynchy's data folder": {"write": [str(data.parent)]},
        "where the agent may write": {"write": [str(prefix.parent)]},
        "is not there": {"hide": [str(data.parent / "missing")]},
    }


@pytest.mark.parametrize("words", leaks(Path("/")))
@pytest.mark.parametrize("make", [bubblewrap, docker])
def test_a_box_that_would_show_or_give_away_too_much_is_not_made(
    data: Path, launch: Launch, environ: dict[str, str], words: str, make: Any
) -> None:
    settings = leaks(data)[words]
    if make is docker and "hide" in settings:
        settings = {"read": settings["hide"]}

    with pytest.raises(DeliveryFailed, match=words):
        make(data, environ, **settings).program(launch)


def test_a_container_that_would_show_the_token_in_a_folder_to_read_is_not_made(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    with pytest.raises(DeliveryFailed, match="holds pynchy's data folder, which no agent may see"):
        docker(data, environ, read=[str(data.parent)]).program(launch)


def test_the_hosts_own_settings_are_hidden_or_the_box_is_not_made(
    data: Path, launch: Launch, environ: dict[str, str], tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "pynchy.toml").touch()
    covering = bubblewrap(data, environ, read=[str(shown)])
    covering.settings_file = shown / "pynchy.toml"
    (shown / "other").touch()
    argv = covering.program(launch).argv

    assert str(shown) in values_of(argv, "--tmpfs")
    assert str(shown / "other") in values_of(argv, "--ro-bind-try")
    assert not {str(shown), str(shown / "pynchy.toml")} & {*values_of(argv, "--ro-bind")}
    assert str(shown / "pynchy.toml") not in argv
    for launcher in (
        bubblewrap(data, environ, workspace=str(shown)),
        docker(data, environ, read=[str(shown)]),
    ):
        launcher.settings_file = shown / "pynchy.toml"
        with pytest.raises(DeliveryFailed, match="settings file"):
            launcher.program(launch)


def test_a_session_that_began_in_another_home_is_not_given_that_home(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    launcher = bubblewrap(data, environ)

    with pytest.raises(DeliveryFailed, match="began with the home /root, which is not"):
        launcher.program(replace(launch, home="/root"))
    with pytest.raises(DeliveryFailed, match="began in /srv, which its box does not show"):
        launcher.program(replace(launch, cwd="/srv"))


def test_without_bwrap_it_is_said_how_to_get_it(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    launcher = bubblewrap(data, {**environ, "PATH": "/nowhere"})

    with pytest.raises(DeliveryFailed, match="apt-get install bubblewrap"):
        launcher.program(launch)


def test_a_container_has_its_mounts_limits_labels_and_no_way_out(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    launcher = docker(data, environ, memory="1GiB", pids=64, env={"API_KEY": "sk-hidden"})

    program = launcher.program(launch)

    argv, home = program.argv, data / "boxes" / GROUP
    engine = str(Path(environ["PATH"], "docker"))
    assert argv[:4] == [engine, "run", "--rm", "--init"]
    assert values_of(argv, "--mount") == [
        f"type=bind,source={home}/home,target=/home/agent",
        f"type=bind,source={home}/workspace,target=/workspace",
        f"type=bind,source={launch.ipc_dir}/tasks,target=/ipc/tasks",
        f"type=bind,source={launch.ipc_dir}/responses,target=/ipc/responses,readonly",
        f"type=bind,source={launch.ipc_dir}/input,target=/ipc/input,readonly",
    ]
    expected = {
        "--network": "none",
        "--user": f"{os.getuid()}:{os.getgid()}",
        "--cap-drop": "ALL",
        "--security-opt": "no-new-privileges",
        "--memory": str(1024**3),
        "--memory-swap": str(1024**3),
        "--pids-limit": "64",
        "--ulimit": f"fsize={10 * 1024**3}",
        "--workdir": "/workspace",
    }
    assert {option: values_of(argv, option) for option in expected} == {
        option: [value] for option, value in expected.items()
    }
    assert "--read-only" in argv
    labels = dict(label.split("=") for label in values_of(argv, "--label"))
    assert (labels["pynchy.group"], labels["pynchy.session"]) == (GROUP, "s1")
    assert labels["pynchy.launch"] == launch.stem
    assert "HOME=/home/agent" in values_of(argv, "--env")
    assert "sk-hidden" not in " ".join(argv)
    assert program.env["API_KEY"] == "sk-hidden"
    assert program.env["HOME"] == environ["HOME"]
    command = argv[argv.index("pynchy-agent") + 1 :]
    assert command[:3] == ["agent_runner", "--initial", "/ipc/input/q1/initial.json"]
    assert program.after == (engine, "rm", "--force", launcher.name(launch.session_id))


def test_a_container_may_have_a_network_another_user_and_another_engine(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    told = {"engine": "podman", "network": "bridge", "options": ["--cpus", "2"], "image": "mine:1"}

    argv = docker(data, environ, uid=54321, **told).program(launch).argv

    assert argv[:2] == [str(Path(environ["PATH"], "podman")), "run"]
    assert values_of(argv, "--user") == ["54321:54321"]
    assert (values_of(argv, "--network"), values_of(argv, "--cpus")) == (["bridge"], ["2"])
    assert argv.index("--cpus") < argv.index("mine:1")


def test_a_container_with_a_proxy_has_a_socket_and_no_network(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    launcher = docker(data, environ, network="proxy", proxy="models.example.org:8080")

    argv = launcher.program(launch).argv

    assert values_of(argv, "--network") == ["none"]
    assert argv[argv.index("--proxy") + 1 :][:2] == ["models.example.org", "8080"]
    assert "type=bind,source={sockets}/proxy,target=/run/pynchy/proxy" in argv
    assert argv[argv.index("pynchy-agent") + 1 :][:4] == [
        *("python3", "-P", "-m", "agent_runner.boxed"),
    ]


def test_a_folder_that_cannot_be_said_to_the_engine_is_refused(
    tmp_path: Path, data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    odd = tmp_path / "a,readonly=false"
    odd.mkdir()

    with pytest.raises(DeliveryFailed, match="cannot be mounted"):
        docker(data, environ, read=[str(odd)]).program(launch)


@pytest.mark.parametrize(
    ("group", "words", "is_walled"),
    [
        ({}, "pynchy does not start this agent", False),
        ({"launcher": {"kind": "process", "agent": "claude"}}, "none: it runs as you", False),
        ({"launcher": {"kind": "bubblewrap", "agent": "claude"}}, "no network; at most 4096", True),
        (
            {"launcher": settings_of("bubblewrap", network="proxy", proxy="[::1]:8080")},
            "no network but [::1]:8080",
            True,
        ),
        (
            {"launcher": settings_of("docker", network="host", read=["/srv/x"])},
            "pynchy-agent): sees its mailbox, its home and its workspace, reads /srv/x; the whole",
            True,
        ),
        (
            {"launcher": settings_of("docker", options=["--volume", "/:/all", "--env=A=secret"])},
            "no network; with options of yours: --volume --env; at most",
            True,
        ),
        (
            {"launcher": settings_of("bubblewrap")},
            "threads, and 10240 MiB more on the disk than before",
            True,
        ),
        (
            {"launcher": settings_of("bubblewrap", unix_sockets=True)},
            "reaches sockets that lie in folders that it sees",
            True,
        ),
        (
            {"launcher": settings_of("bubblewrap", user_namespaces=True)},
            "may make user namespaces, and use up those of other boxes",
            True,
        ),
    ],
)
def test_how_isolated_an_agent_is_is_said_in_plain_words(
    group: dict[str, Any], words: str, *, is_walled: bool
) -> None:
    found = isolation_of(GroupSettings.model_validate(group))

    assert words in found.words
    assert found.is_walled is is_walled


def test_groups_that_a_box_cannot_leave_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    boxed_agent = GroupSettings.model_validate({"launcher": settings_of("bubblewrap")})
    monkeypatch.setattr(os, "getgroups", lambda: [os.getgid(), 54_399])

    monkeypatch.setattr(os, "getuid", lambda: 1000)
    as_a_user = isolation_of(boxed_agent).words
    monkeypatch.setattr(os, "getuid", lambda: 0)
    as_root = isolation_of(boxed_agent).words

    assert "keeps your groups for files that it sees (54399)" in as_a_user
    assert "groups" not in as_root


def test_sockets_in_a_box_are_refused_unless_they_are_allowed(
    data: Path, launch: Launch, environ: dict[str, str]
) -> None:
    for settings, is_allowed in (({}, False), ({"unix_sockets": True}, True)):
        argv = bubblewrap(data, environ, **settings).program(launch).argv
        assert ("--unix-sockets" in argv) is is_allowed
        assert values_of(argv, "--seccomp") == ["{filter}"]
    assert "--unix-sockets" in bubblewrap(data, environ, network="host").program(launch).argv


def test_user_namespaces_are_refused_unless_they_are_allowed(
    data: Path, launch: Launch, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    refused = bubblewrap(data, environ).program(launch).argv
    allowed = bubblewrap(data, environ, user_namespaces=True).program(launch).argv

    assert refused[refused.index("--unshare-user") + 1] == "--disable-userns"
    assert "--user-namespaces" not in refused
    assert "--disable-userns" not in allowed
    assert "--user-namespaces" in allowed


def test_a_box_is_not_made_where_its_filter_cannot_be(
    data: Path, launch: Launch, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = os.uname_result(("Linux", "here", "6.1", "1", "pdp11"))
    monkeypatch.setattr(os, "uname", lambda: kind)

    with pytest.raises(DeliveryFailed, match="a machine of the kind pdp11: use docker"):
        bubblewrap(data, environ).program(launch)
