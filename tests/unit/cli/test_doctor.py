"""What doctor finds, and what it advises."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.support import Host, Run

from pynchy.cli.doctor.command import check_clock, check_inotify, check_python
from pynchy.cli.doctor.settings import check_groups
from pynchy.config import ChannelSettings, HttpSettings, Settings
from pynchy.config.loading import read_settings
from pynchy.data_dir import DataFolder, SettingsSource
from pynchy.findings import Finding, Status


def examine(run: Run, *arguments: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    result = run("doctor", "--json", *arguments)
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in json.loads(result.stdout):
        assert set(finding) == {"check", "status", "detail", "fix"}
        assert bool(finding["fix"]) == (finding["status"] != "ok")
        found.setdefault(finding["check"], []).append(finding)
    return result.exit_code, found


def status(findings: list[dict[str, Any]]) -> str:
    return str(findings[0]["status"])


@pytest.mark.usefixtures("host")
def test_a_running_host_without_complaints_is_well(run: Run) -> None:
    code, found = examine(run)

    assert code == 0
    assert status(found["host"]) == "ok"
    assert status(found["data folder"]) == status(found["token"]) == "ok"
    assert run("doctor").stdout.splitlines()[0].startswith("ok       python: ")


def test_no_host_is_a_problem_with_its_fix(run: Run) -> None:
    code, found = examine(run)

    assert code == 1
    assert status(found["host"]) == "problem"
    assert found["host"][0]["fix"] == "pynchy serve"
    assert status(found["data folder"]) == "warning"


def test_files_that_others_can_read_are_problems(host: Host, run: Run) -> None:
    host.data.path.chmod(0o755)
    (host.data.path / "token").chmod(0o644)

    code, found = examine(run)

    assert code == 1
    assert found["data folder"][0]["fix"] == f"chmod 700 {host.data.path}"
    assert "chmod 600" in found["token"][0]["fix"]


def test_wrong_settings_are_shown_with_their_place(tmp_path: Path, run: Run) -> None:
    (tmp_path / "pynchy.toml").write_text("wait_timout = 3\n")

    _, found = examine(run)
    _, missing = examine(run, "--config", "nowhere.toml")

    assert status(found["settings"]) == "problem"
    assert "pynchy.toml:1" in found["settings"][0]["detail"]
    assert status(missing["settings"]) == "problem"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[Path | None], None]]:
    """Start a host with the settings of that file, or with the defaults."""
    hosts = []

    def start(path: Path | None) -> None:
        origin = SettingsSource.of(path)
        settings = read_settings(path).model_copy(update={"http": HttpSettings(port=0)})
        hosts.append(Host(tmp_path / "data", settings, origin))
        hosts[-1].start()

    yield start
    for host in hosts:
        host.stop()


def write_settings(folder: Path, *groups: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "pynchy.toml"
    file.write_text("".join(f"[groups.{name}]\n" for name in groups))
    return file


def test_the_settings_are_those_of_the_host_whatever_the_folder(
    tmp_path: Path, run: Run, started: Callable[[Path | None], None]
) -> None:
    file = write_settings(tmp_path / "elsewhere", "boxed")
    write_settings(tmp_path, "other")
    started(file)

    _, found = examine(run)

    assert [f["detail"] for f in found["settings"]] == [
        f"{file} is valid",
        f"the host runs with {file}",
    ]
    assert "group boxed" in found
    assert "group other" not in found


def test_settings_that_changed_since_the_host_started_are_a_warning(
    tmp_path: Path, run: Run, started: Callable[[Path | None], None]
) -> None:
    file = write_settings(tmp_path / "elsewhere", "boxed")
    started(file)
    write_settings(tmp_path / "elsewhere", "boxed", "newone")

    _, found = examine(run)
    file.unlink()
    code, gone = examine(run)

    assert [f["status"] for f in found["settings"]] == ["ok", "warning"]
    assert "has changed" in found["settings"][1]["detail"]
    assert found["settings"][1]["fix"] == "restart pynchy serve"
    assert code == 1
    assert [f["status"] for f in gone["settings"]] == ["problem", "warning"]


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_named_file_that_the_host_does_not_run_with_is_read_with_a_warning(
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    started: Callable[[Path | None], None],
    *,
    by_variable: bool,
) -> None:
    file = write_settings(tmp_path / "elsewhere", "boxed")
    other = write_settings(tmp_path, "other")
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    started(file)

    if by_variable:
        monkeypatch.setenv("PYNCHY_CONFIG", str(other))
    _, found = examine(run, *(() if by_variable else ("--config", str(other))))
    _, same = examine(run, "--config", str(link))

    assert "group other" in found
    assert [f["status"] for f in found["settings"]] == ["ok", "warning"]
    assert f"the host runs with {file}, not" in found["settings"][1]["detail"]
    assert [f["status"] for f in same["settings"]] == ["ok", "ok"]


def test_a_file_that_was_made_after_the_host_started_is_a_warning(
    tmp_path: Path, run: Run, started: Callable[[Path | None], None]
) -> None:
    started(None)

    _, none = examine(run)
    write_settings(tmp_path, "newone")
    _, found = examine(run)

    assert [f["status"] for f in none["settings"]] == ["ok", "ok"]
    assert [f["status"] for f in found["settings"]] == ["ok", "warning"]
    assert "group newone" not in found


@pytest.mark.usefixtures("host")
def test_a_host_that_does_not_say_what_it_has_read_is_a_warning(run: Run) -> None:
    _, found = examine(run)

    assert [f["status"] for f in found["settings"]] == ["ok", "warning"]


def test_what_a_killed_host_left_behind_is_a_warning(tmp_path: Path, run: Run) -> None:
    data = DataFolder(tmp_path / "data")
    data.make()
    data.announce("http://127.0.0.1:1")

    _, found = examine(run)

    assert status(found["last host"]) == "warning"


def test_each_complaint_of_the_host_is_a_problem(host: Host, run: Run) -> None:
    folder = host.data.ipc / "web-team" / "pending_questions"
    host.ask("Why?")
    host.stop()
    (folder / "broken.json").write_text("{")
    host.start()

    code, found = examine(run)

    assert code == 1
    assert "damaged" in found["host"][1]["detail"]


def test_what_a_found_server_does_is_a_warning(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "OpenCode at http://127.0.0.1:4096: it floods its event stream"
    host.stop()
    monkeypatch.setattr("pynchy.host.RunningSources.warnings", lambda _: [told])
    host.start()

    code, found = examine(run)

    assert code == 0
    assert (found["host"][1]["status"], found["host"][1]["detail"]) == ("warning", told)


def groups(tmp_path: Path, **group: Any) -> list[Finding]:
    settings = Settings.model_validate(
        {"channels": {"slack": ChannelSettings()}, "groups": {"web": group}}
    )
    problems = ("slack: not connected",) if group.get("channels") == ["slack", "local"] else ()
    return list(check_groups(settings, DataFolder(tmp_path), problems))


def only(findings: list[Finding], word: str) -> Finding:
    return next(finding for finding in findings if word in finding.detail)


@pytest.mark.parametrize(
    ("group", "word", "expected"),
    [
        ({}, "asks in local", Status.OK),
        ({}, "pynchy does not start this agent; one that runs as your user could", Status.OK),
        ({"agent_uid": 4242}, "runs as user", Status.OK),
        ({"agent_uid": 0}, "could answer itself", Status.OK),
        ({"launcher": {"command": ["sh"]}}, "could answer itself", Status.WARNING),
        (
            {"launcher": {"command": ["sh"]}, "agent_uid": 0},
            "could answer itself",
            Status.WARNING,
        ),
        (
            {"launcher": {"kind": "process", "agent": "claude"}},
            "could answer itself",
            Status.WARNING,
        ),
        ({"launcher": {"command": ["docker", "{initial}"]}}, "sandbox (docker)", Status.OK),
        ({"launcher": {"command": ["sh", "{initial}"]}}, "resumed by", Status.OK),
        ({"launcher": {"command": ["no-such", "{initial}"]}}, "no-such", Status.PROBLEM),
        ({"launcher": {"command": ["sh"], "cwd": "/no/such"}}, "/no/such", Status.PROBLEM),
        ({"channels": ["slack"]}, "nobody may answer", Status.PROBLEM),
        ({"channels": ["slack", "local"]}, "nobody may answer", Status.WARNING),
        (
            {
                "channels": ["slack", "local"],
                "allowed_users": {"slack": ["U1"]},
                "approvers": {"slack": []},
            },
            "nobody may approve or allow in slack",
            Status.WARNING,
        ),
        (
            {"allowed_users": {"local": ["ana"]}, "approvers": {"local": ["ana"]}},
            "approvers.local has no effect",
            Status.WARNING,
        ),
        ({"channels": ["slack", "local"]}, "is down: slack", Status.WARNING),
        (
            {"channels": ["slack"], "allowed_users": {"slack": ["U1"]}},
            "asks in slack",
            Status.OK,
        ),
    ],
)
def test_groups(tmp_path: Path, group: dict[str, Any], word: str, expected: Status) -> None:
    assert only(groups(tmp_path, **group), word).status is expected


def test_a_box_is_advised_only_as_what_it_is_for_the_launcher(tmp_path: Path) -> None:
    process = groups(tmp_path, launcher={"kind": "process", "agent": "claude"})
    command = groups(tmp_path, launcher={"command": ["sh"]})

    assert only(process, "could answer").fix.startswith('a box for it: kind = "bubblewrap" in')
    assert "if it runs claude, codex, opencode:" in only(command, "could answer").fix


@pytest.mark.parametrize(
    ("there", "word", "expected"),
    [
        (("claude", "agent_runner"), "started and resumed as claude", Status.OK),
        (("agent_runner",), "its agent program claude is not on the PATH", Status.PROBLEM),
        (("claude",), "is not an executable", Status.PROBLEM),
    ],
)
def test_a_known_agent_must_be_there_with_what_runs_it(
    tmp_path: Path, there: tuple[str, ...], word: str, expected: Status
) -> None:
    for name in there:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    launcher = {
        "kind": "process",
        "agent": "claude",
        "runner": str(tmp_path / "agent_runner"),
        "env": {"PATH": str(tmp_path)},
    }

    found = groups(tmp_path, launcher=launcher)

    assert only(found, word).status is expected
    assert (expected is Status.OK) == (not [f for f in found if f.status is Status.PROBLEM])


def test_a_program_that_speaks_acp_must_be_there(tmp_path: Path) -> None:
    for name in ("agent_runner", "gemini"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    runner, env = str(tmp_path / "agent_runner"), {"PATH": str(tmp_path)}
    launcher = {"kind": "process", "agent": "acp", "runner": runner, "env": env}

    there = groups(tmp_path, launcher={**launcher, "acp_command": ["gemini", "--acp"]})
    missing = groups(tmp_path, launcher={**launcher, "acp_command": ["goose", "acp"]})

    assert only(there, "started and resumed as gemini").status is Status.OK
    assert only(missing, "agent program goose is not on the PATH").status is Status.PROBLEM


def box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *programs: str, **told: Any
) -> list[Finding]:
    """Return what is found of a group in a box, where only these programs are there and work."""
    for name in programs:
        (tmp_path / name).write_text(f"#!/bin/sh\n{PROGRAMS.get(name, '')}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    data = tmp_path / "data"
    data.mkdir()
    return groups(data, launcher={"agent": "claude", **told})


# A bwrap that may not, and an engine without the image.
PROGRAMS = {
    "bwrap": "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
    "docker": '[ "$1" = version ]',
}


@pytest.mark.parametrize(
    ("kind", "programs", "word"),
    [
        ("bubblewrap", (), "bwrap is not on the PATH"),
        ("bubblewrap", ("bwrap",), "cannot make a box here: bwrap: setting up uid map: Permission"),
        ("docker", (), "docker is not on the PATH"),
        ("docker", ("docker",), "docker has no image pynchy-agent"),
    ],
)
def test_a_box_that_cannot_be_made_is_a_problem(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    programs: tuple[str, ...],
    word: str,
) -> None:
    found = box(tmp_path, monkeypatch, *programs, kind=kind)

    assert only(found, word).status is Status.PROBLEM
    assert only(found, "isolation: in a").status is Status.OK


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ({"workspace": "around/ours"}, 1),
        ({"read": "around/ours"}, 1),
        ({"home": "around", "workspace": "around/ours"}, 0),  # the outer one alone is bound
        ({"workspace": "elsewhere"}, 0),
    ],
)
def test_a_folder_that_another_groups_agent_can_replace_is_warned_of(
    tmp_path: Path, ours: dict[str, str], expected: int
) -> None:
    (tmp_path / "around" / "ours").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    box = {"kind": "docker", "agent": "claude"}
    places: dict[str, Any] = {name: str(tmp_path / path) for name, path in ours.items()}
    if "read" in places:
        places["read"] = [places["read"]]
    tables = {"web": box | places, "other": box | {"workspace": str(tmp_path / "around")}}
    settings = Settings.model_validate(
        {"groups": {name: {"launcher": table} for name, table in tables.items()}}
    )

    found = check_groups(settings, DataFolder(tmp_path / "data"), ())

    warned = [f for f in found if "the agent of group other may write" in f.detail]
    assert len(warned) == expected
    for finding in warned:
        assert (finding.check, finding.status) == ("group web", Status.WARNING)
        assert finding.detail.startswith(f"{tmp_path}/around/ours lies in {tmp_path}/around, ")


# Both start another program, which they look for on the PATH.
STARTERS = {
    "bubblewrap": ("bwrap", 'while [ $# -gt 1 ]; do shift; done; env "$1"', "true"),
    "docker": ("docker", "helper", "helper"),
}


@pytest.mark.parametrize("kind", STARTERS)
def test_doctor_ran_a_program_that_an_agent_had_put_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    name, code, other = STARTERS[kind]
    work, programs, data = (tmp_path / part for part in ("work", "programs", "data"))
    planted = f"touch {tmp_path}/run-outside"
    for path, does in (
        (programs / name, code),
        (programs / other, ":"),
        (work / "bin" / name, planted),
        (work / "bin" / other, planted),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o700)
    data.mkdir()
    monkeypatch.setenv("PATH", f"{work}/bin:{programs}:{os.environ['PATH']}")

    found = groups(data, launcher={"kind": kind, "agent": "claude", "workspace": str(work)})

    assert not (tmp_path / "run-outside").exists()
    words = {"bubblewrap": "bwrap makes boxes here", "docker": "has the image"}
    assert only(found, words[kind]).status is Status.OK


def test_a_box_that_would_give_the_data_folder_away_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = box(tmp_path, monkeypatch, kind="docker", write=[str(tmp_path)])

    assert only(found, "holds pynchy's data folder").status is Status.PROBLEM


def test_a_pipe_in_a_folder_to_read_which_a_box_can_write_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, elsewhere = tmp_path / "shown" / "inner", tmp_path / "elsewhere"
    shown.mkdir(parents=True)
    elsewhere.mkdir()
    os.mkfifo(shown / "control")
    os.mkfifo(elsewhere / "not-shown")
    (shown / "link").symlink_to(elsewhere)

    found = box(tmp_path, monkeypatch, kind="docker", read=[str(tmp_path / "shown")])

    finding = only(found, "named pipe")
    assert finding.status is Status.WARNING
    assert str(shown / "control") in finding.detail
    assert "not-shown" not in finding.detail


def test_a_group_with_people_to_answer_has_nothing_said_of_them(tmp_path: Path) -> None:
    found = groups(tmp_path, channels=["slack"], allowed_users={"slack": ["U1"]})

    assert not [finding for finding in found if "nobody" in finding.detail]


def test_an_old_python_is_a_problem() -> None:
    assert next(check_python((3, 10, 1))).status is Status.PROBLEM


def test_inotify_limits_are_compared_with_what_is_used(tmp_path: Path) -> None:
    limits = tmp_path / "sys/fs/inotify"
    limits.mkdir(parents=True)
    (limits / "max_user_instances").write_text("1\n")
    (limits / "max_user_watches").write_text("1000\n")
    for folder in ("fd", "fdinfo"):
        (tmp_path / "42" / folder).mkdir(parents=True)
    (tmp_path / "42/fd/3").symlink_to("anon_inode:inotify")
    (tmp_path / "42/fdinfo/3").write_text("inotify wd:1\ninotify wd:2\n")

    instances, watches = check_inotify(tmp_path)

    assert instances.status is Status.WARNING
    assert "max_user_instances=4" in instances.fix
    assert watches.detail == "about 2 of 1000 watches used by this user"


def test_a_machine_without_inotify_is_fine(tmp_path: Path) -> None:
    assert [finding.status for finding in check_inotify(tmp_path)] == [Status.OK]


def test_a_clock_that_went_back_is_noticed(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    data.audit.mkdir()
    now = datetime.now(UTC)
    line = {"seq": 1, "type": "asked", "at": (now + timedelta(hours=2)).isoformat()}
    (data.audit / "events.jsonl").write_text(json.dumps(line) + "\n")

    assert next(check_clock(data, now)).status is Status.WARNING
    assert next(check_clock(data, now + timedelta(hours=3))).status is Status.OK
    assert next(check_clock(data, datetime(1970, 1, 1, tzinfo=UTC))).status is Status.PROBLEM


def test_a_host_that_starts_or_stops_is_not_called_gone(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.cli.doctor.command._TIMEOUT_SECONDS", 0.0)
    data = DataFolder(tmp_path / "data")
    data.make()
    data.token()

    with data.locked():
        code, found = examine(run)

    assert code == 0
    assert [(f["status"], f["detail"]) for f in found["host"]] == [
        ("warning", "it is starting or stopping just now")
    ]


def test_doctor_looks_again_where_the_host_went_meanwhile(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = DataFolder(tmp_path / "data")
    data.make()
    seen = iter([True, False])
    monkeypatch.setattr("pynchy.cli.doctor.command.wait_for_host", lambda _: next(seen))

    _, found = examine(run)

    assert [f["status"] for f in found["host"]] == ["problem"]
    assert len(found["python"]) == 1
