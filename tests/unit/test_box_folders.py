"""The folders of a box: none is reached through what an agent could have changed."""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.exchanges import Exchange

import agent_runner
from pynchy.config import Settings
from pynchy.errors import DeliveryFailed
from pynchy.launchers.base import Launch
from pynchy.launchers.jobs import JobLauncher, Program
from pynchy.launchers.kinds import LauncherContext, make_launcher
from pynchy.model import GroupName, RequestId, SessionId

GROUP = GroupName("team")
Ask = Callable[..., Program]


@pytest.fixture(params=["bubblewrap", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return tools(tmp_path / "programs")


def tools(folder: Path) -> Path:
    """Put programs that make boxes into a folder."""
    folder.mkdir(parents=True)
    for name in ("bwrap", "docker"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def ask(tmp_path: Path, programs: Path, kind: str) -> Ask:
    """Return what asks for a box with these settings."""
    mailbox = tmp_path / "data" / "ipc" / GROUP
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True)
    initial = mailbox / "input" / "q1" / "initial.json"
    launch = Launch(GROUP, SessionId("s1"), "q1", 1, initial, mailbox, RequestId("q1"))

    def program(
        *,
        search: str = str(programs),
        others: Any = None,
        began: dict[str, str] | None = None,
        **settings: Any,
    ) -> Program:
        told = {"kind": kind, "agent": "claude"}
        tables = {GROUP: settings, **({} if others is None else {"other": others})}
        every = Settings.model_validate(
            {"groups": {name: {"launcher": told | table} for name, table in tables.items()}}
        )
        context = LauncherContext(tmp_path / "data", GROUP, None, every.launchers())
        environ = {"PATH": search, "HOME": str(tmp_path)}
        launcher = make_launcher(context, every.group(GROUP), environ)
        assert isinstance(launcher, JobLauncher)
        return launcher.program(replace(launch, **(began or {})))

    return program


@pytest.mark.parametrize(("outer", "inner"), [("home", "workspace"), ("workspace", "home")])
def test_a_place_in_another_one_is_made_there_and_needs_no_mount_of_its_own(
    tmp_path: Path, kind: str, ask: Ask, outer: str, inner: str
) -> None:
    around = tmp_path / "around"

    program = ask(**{outer: str(around), inner: str(around / "a" / "b")})

    assert (around / "a" / "b").is_dir()
    assert program.folders == (str(around), str(tmp_path / "data" / "ipc" / GROUP / "tasks"))
    words = " ".join(program.argv)
    assert f"--bind {around}/a" not in words
    if kind == "docker":
        assert f"source={around}/a" not in words
        inside = {"home": "/home/agent", "workspace": "/workspace"}[outer]
        told = {"home": f"HOME={inside}/a/b", "workspace": f"--workdir {inside}/a/b"}
        assert told[inner] in words


@pytest.mark.parametrize(
    ("name", "target"), [("a", "../victim"), ("a/b", "../../victim"), ("a", "/")]
)
def test_a_place_in_another_one_that_became_a_link_is_not_followed(
    tmp_path: Path, ask: Ask, name: str, target: str
) -> None:
    around, victim = tmp_path / "around", tmp_path / "victim"
    victim.mkdir()
    (around / name).parent.mkdir(parents=True)
    (around / name).symlink_to(target)

    with pytest.raises(DeliveryFailed, match="remove the link, or name another folder"):
        ask(home=str(around), workspace=str(around / "a" / "b"))

    assert list(victim.iterdir()) == []


def folder_and_link(around: Path, victim: Path) -> Exchange:
    """Return how an agent swaps a folder `project` for a link to a folder that is not its own."""
    for folder in (around / "project", victim):
        folder.mkdir(parents=True)
    (around / "link").symlink_to(victim)
    return Exchange(around / "project", around / "link")


@pytest.mark.parametrize("begins_as", ["a folder", "a link"])
@pytest.mark.parametrize(("outer", "inner"), [("home", "workspace"), ("workspace", "home")])
def test_a_link_that_came_while_a_box_was_made_gave_a_folder_of_the_host_away(
    tmp_path: Path, ask: Ask, outer: str, inner: str, begins_as: str
) -> None:
    around, victim = tmp_path / "around", tmp_path / "victim"
    exchange = folder_and_link(around, victim)
    if begins_as == "a link":
        exchange.now()
    places = {outer: str(around), inner: str(around / "project")}
    began = {"home": places["home"], "cwd": places["workspace"]}
    made, refused = 0, 0

    for look in count():
        with exchange.before(look) as is_done:
            try:
                program = ask(began=began, **places)
            except DeliveryFailed:
                refused += 1
            else:
                made += 1
                assert str(victim) not in " ".join((*program.argv, *program.folders)), look
        if not is_done():
            break
        exchange.now()

    assert list(victim.iterdir()) == []
    assert refused
    assert made


def test_links_in_a_circle_where_the_workspace_was_are_told_of(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "around").mkdir()
    (tmp_path / "around" / "a").symlink_to("a")

    with pytest.raises(DeliveryFailed, match="remove what is in its place"):
        ask(home=str(tmp_path / "around"), workspace=str(tmp_path / "around" / "a"))


@pytest.mark.parametrize("how", ["home", "workspace", "read", "write"])
def test_a_link_that_another_groups_agent_put_there_gave_a_folder_of_the_host_away(
    tmp_path: Path, ask: Ask, how: str
) -> None:
    work, victim = tmp_path / "work", tmp_path / "victim"
    for folder in (work / "ours", victim):
        folder.mkdir(parents=True)
    told: dict[str, Any] = {
        how: [str(work / "ours")] if how in {"read", "write"} else str(work / "ours")
    }
    others = {"workspace": str(work)}

    ask(others=others, **told)
    (work / "ours").rmdir()
    (work / "ours").symlink_to(victim)

    with pytest.raises(DeliveryFailed, match="agents of another group may write: remove the link"):
        ask(others=others, **told)


def test_a_workspace_was_made_where_another_groups_agent_led_to_meanwhile(
    tmp_path: Path, ask: Ask
) -> None:
    work, victim = tmp_path / "work", tmp_path / "victim"
    exchange = folder_and_link(work, victim)

    for look in count():
        with exchange.before(look) as is_done, suppress(DeliveryFailed):
            ask(workspace=str(work / "project" / "deep"), others={"workspace": str(work)})
        if not is_done():
            break
        exchange.now()
        with suppress(FileNotFoundError):
            (work / "project" / "deep").rmdir()

    assert list(victim.iterdir()) == []
    assert (work / "project" / "deep").is_dir()


@pytest.mark.parametrize("how", ["read", "write", "python"])
def test_what_is_reached_by_a_link_that_the_agent_may_change_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, how: str
) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for folder in (work, elsewhere):
        folder.mkdir()
    (work / "link").symlink_to(elsewhere)
    settings: dict[str, Any] = {how: [str(work / "link")]}
    if how == "python":
        # As in a virtual environment that the project has a link to.
        (elsewhere / "python").symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(work / "link" / "python"))
        settings = {}

    with pytest.raises(DeliveryFailed, match=r"where the agent may write"):
        ask(workspace=str(work), **settings)


@pytest.mark.parametrize("kind", ["bubblewrap"])
@pytest.mark.parametrize("secret", ["secret", "deep/secret"])
def test_what_lies_where_the_agent_may_write_is_not_said_to_be_hidden(
    tmp_path: Path, ask: Ask, secret: str
) -> None:
    (tmp_path / "work" / "deep").mkdir(parents=True)
    (tmp_path / "work" / secret).touch()

    with pytest.raises(DeliveryFailed, match=r"cannot be hidden: it lies in .*/work, where"):
        ask(workspace=str(tmp_path / "work"), hide=[str(tmp_path / "work" / secret)])


@pytest.mark.parametrize("whose", ["its own", "another group's"])
@pytest.mark.parametrize("how", ["in it", "by a link in it", "by a link to it"])
def test_a_program_that_an_agent_may_have_put_on_the_path_is_not_run(
    tmp_path: Path, programs: Path, ask: Ask, whose: str, how: str
) -> None:
    work = tmp_path / "work"
    planted = tools(work / "bin")
    if how == "by a link in it":
        (work / "venv").symlink_to(tools(tmp_path / "elsewhere"))
        planted = work / "venv"
    elif how == "by a link to it":
        (tmp_path / "link").symlink_to(planted)
        planted = tmp_path / "link"
    settings = {"workspace": str(work)} if whose == "its own" else {}
    others = None if whose == "its own" else {"workspace": str(work)}

    program = ask(search=f"{planted}:relative:{programs}", others=others, **settings)

    assert any(word.startswith(f"{programs}/") for word in program.argv)
    assert not any(word.startswith(f"{planted}/") for word in (*program.argv, *program.after))
    with pytest.raises(DeliveryFailed, match="is not run, since an agent may have put it there"):
        ask(search=str(planted), others=others, **settings)


@pytest.mark.parametrize("kind", ["docker"])
def test_an_engine_finds_no_helper_where_an_agent_may_write(
    tmp_path: Path, programs: Path, ask: Ask
) -> None:
    work = tmp_path / "work"

    program = ask(search=f"{work}/bin:{programs}", workspace=str(work))

    assert program.env["PATH"] == str(programs)


@pytest.mark.parametrize("kind", ["bubblewrap"])
def test_what_lies_among_too_many_others_to_be_left_out_is_told_of(
    tmp_path: Path, ask: Ask
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    for number in range(501):
        (shown / str(number)).touch()

    with pytest.raises(DeliveryFailed, match="has more than 500 other entries; move it to"):
        ask(read=[str(shown)], hide=[str(shown / "7")])


@pytest.mark.parametrize("kind", ["bubblewrap"])
def test_reading_twice_what_holds_something_hidden_shows_it_by_neither_way(
    tmp_path: Path, ask: Ask
) -> None:
    shown = tmp_path / "shown"
    (shown / "deep").mkdir(parents=True)
    for name in ("secret", "public"):
        (shown / "deep" / name).touch()

    argv = ask(
        read=[str(shown / "deep"), str(shown), str(shown / "deep" / "secret")],
        hide=[str(shown / "deep" / "secret")],
    ).argv

    assert str(shown / "deep" / "public") in argv
    assert str(shown / "deep" / "secret") not in argv
    assert argv.index(str(shown)) < argv.index(str(shown / "deep"))


@pytest.mark.parametrize("kind", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize("place", [".", "..", ".local"])
@pytest.mark.parametrize("is_venv", [True, False])
def test_a_box_showed_the_home_of_a_person_whose_python_is_installed_there(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, *, is_venv: bool
) -> None:
    home = tmp_path / "homes" / "ana"
    prefix = (home / place).resolve()
    for name in ("bin", "lib", "share"):
        (prefix / name).mkdir(parents=True)
    if is_venv and place != ".local":
        (prefix / "pyvenv.cfg").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "base_prefix", sys.base_prefix if is_venv else str(prefix))

    shown = shown_by(ask(runner="/usr/bin/env"))

    assert {str(prefix / "bin"), str(prefix / "lib")} <= shown
    assert not shown & {str(home), str(prefix), str(prefix / "share")}


@pytest.mark.parametrize("kind", ["bubblewrap"], indirect=True)
def test_a_box_showed_the_home_of_a_person_who_has_the_package_there(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ana" / "agent_runner"
    package.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(package.parent))
    monkeypatch.setattr(agent_runner, "__file__", str(package / "__init__.py"))

    shown = shown_by(ask(runner="/usr/bin/env"))

    assert str(package) in shown
    assert str(package.parent) not in shown


@pytest.mark.parametrize("kind", ["bubblewrap"], indirect=True)
def test_an_environment_that_holds_no_home_is_shown_whole(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "home" / "tools" / "venv"
    (prefix / "opt").mkdir(parents=True)
    (prefix / "pyvenv.cfg").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "prefix", str(prefix))

    assert str(prefix) in shown_by(ask(runner="/usr/bin/env"))


def shown_by(program: Program) -> set[str]:
    """Return what of the machine the box shows."""
    ways = {"--bind", "--ro-bind", "--ro-bind-try"}
    return {at for word, at in pairwise(program.argv) if word in ways}
