"""Real programs under `pynchy watch` in a real tmux: they look, act and leave as without it.

Each is also run in a bare terminal with the same keys, and must have written the same bytes.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.screen import Screen
from tests.terminal.test_tmux import Stage, until
from tests.waiting import until as later

PYNCHY = str(Path(sys.executable).with_name("pynchy"))
Keys = tuple[tuple[str, str], ...]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    stage.start_host()
    yield stage
    stage.close()


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("".join(f"line {number} of the text\n" for number in range(1, 201)))
    return path


def shows(stage: Stage, *texts: str) -> None:
    until(lambda: all(one in stage.tmux.screen for one in texts), lambda: stage.tmux.screen)


def under_watch(command: str) -> str:
    return f"{PYNCHY} watch -- {command}"


def test_an_editor_edits_and_leaves_the_screen_as_it_was(stage: Stage, text: Path) -> None:
    stage.tmux.start(f"echo before; {under_watch(f'vim -u NONE -N {text}')}")
    shows(stage, "line 1 of the text", "line 20 of the text")
    stage.tmux.type("ihello ")
    shows(stage, "hello line 1")
    stage.tmux.resize(60, 15)
    until(lambda: "line 16 " not in stage.tmux.screen, lambda: stage.tmux.screen)
    stage.tmux.press("Escape")
    stage.tmux.type(":wq")
    stage.tmux.press("Enter")

    shows(stage, "before", "left with 0")
    assert text.read_text().startswith("hello line 1 of the text\n")
    assert "line 3 of the text" not in stage.tmux.screen


def test_a_pager_pages(stage: Stage, text: Path) -> None:
    stage.tmux.start(under_watch(f"less {text}"))
    shows(stage, "line 31 of the text")
    stage.tmux.type("G")
    shows(stage, "line 200 of the text", "(END)")
    stage.tmux.type("/line 7 ")
    stage.tmux.type("g")
    stage.tmux.press("Enter")
    stage.tmux.type("g")
    shows(stage, "line 1 of the text")
    stage.tmux.type("q")

    shows(stage, "left with 0")


def test_a_screen_that_draws_itself_again_and_again(stage: Stage) -> None:
    stage.tmux.start(under_watch("top -d 0.3"))
    shows(stage, "load average", "COMMAND")
    stage.tmux.type("q")

    shows(stage, "left with 0")


def test_a_shell_keeps_its_jobs(stage: Stage) -> None:
    stage.tmux.start("PS1='in> ' " + under_watch("bash --norc"))
    shows(stage, "in>")
    # A key that stops takes what was typed and not read with it, so each is waited for.
    stage.tmux.type("echo sl''eeps; sleep 1000")
    stage.tmux.press("Enter")
    shows(stage, "sleeps")
    stage.tmux.press("C-z")
    shows(stage, "Stopped")
    stage.tmux.type("bg; jobs")
    stage.tmux.press("Enter")
    shows(stage, "Running")
    before = stage.tmux.screen.count("sleep 1000")
    stage.tmux.type("fg")
    stage.tmux.press("Enter")
    until(lambda: stage.tmux.screen.count("sleep 1000") > before, lambda: stage.tmux.screen)
    prompts = stage.tmux.screen.count("in>")
    stage.tmux.press("C-c")
    until(lambda: stage.tmux.screen.count("in>") > prompts, lambda: stage.tmux.screen)
    stage.tmux.type("echo [$?]; exit 4")
    stage.tmux.press("Enter")

    shows(stage, "[130]", "left with 4")


def test_an_agent_asks_by_its_title_and_prints_the_answer(stage: Stage, tmp_path: Path) -> None:
    agent = tmp_path / "agent.sh"
    asks = "printf '\\033]2;phux-ask[q1]:Deploy??s=Yes|No\\033\\\\'; read -r a"
    agent.write_text(f"{asks}; printf '\\033]2;\\033\\\\'; echo answered: $a\n")
    stage.tmux.start(under_watch(f"sh {agent}"))
    [asked] = until(stage.pending, lambda: stage.tmux.screen)

    stage.run("answer", asked["short_id"], "No")

    shows(stage, "answered: No", "left with 0")


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("vim -u NONE -N text", (("line 1 of", "ihello "), ("hello ", "\x1b:q!\r"))),
        ("less text", (("line 20", "G"), ("(END)", "q"))),
        ("bash --norc -i", (("in> ", "ls\r"), ("text", "exit\r"))),
    ],
    ids=["vim", "less", "bash"],
)
async def test_the_bytes_are_those_that_a_bare_terminal_gets(
    stage: Stage, text: Path, command: str, keys: Keys
) -> None:
    env = stage.env | {"PS1": "in> ", "HISTFILE": "", "HOME": str(text.parent)}
    env |= {"LESSHISTFILE": "-", "TERM": "xterm"}

    async def written_by(line: str) -> bytes:
        screen = Screen(line.split(), env=env, cwd=text.parent)
        try:
            for wanted, typed in keys:
                await screen.shows(wanted)
                screen.type(typed)
            assert await screen.ends() == 0
            await later(lambda: screen.has_ended, "all of the output")
        finally:
            screen.close()
        return bytes(screen.output)

    assert await written_by(under_watch(command)) == await written_by(command)
