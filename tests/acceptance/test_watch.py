"""`pynchy watch -- COMMAND`: a program in a real terminal asks by its title, and is answered."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.acceptance.support import PYNCHY, Host, Json, agent_of
from tests.screen import Screen
from tests.waiting import until

Watch = Callable[..., Screen]
GROUP = "team"
# What asks, reads a line, and says what it has read. $1 is the title's text.
AGENT = """
ask() { printf '\\033]2;%s\\007' "$1"; }
ask "$1"
printf 'ready>'
while IFS= read -r line; do
  printf 'got<%s>' "$line"
done
"""
DEPLOY = "phux-ask[q1]:Deploy now??s=Yes|No"


@pytest.fixture
async def host(host: Host) -> Host:
    return host


@pytest.fixture
async def watch(host: Host, tmp_path: Path) -> AsyncIterator[Watch]:
    """Run a command under `pynchy watch` in a terminal."""
    screens: list[Screen] = []

    def run(*command: str | Path, **more: object) -> Screen:
        options = ["--group", GROUP, "--data-dir", host.data, "--"]
        screen = Screen([PYNCHY, "watch", *options, *command], cwd=tmp_path, **more)  # type: ignore[arg-type]
        screens.append(screen)
        return screen

    yield run
    for screen in screens:
        screen.close()


def agent(title: str = DEPLOY, script: str = AGENT) -> tuple[str, ...]:
    return ("sh", "-c", script, "agent", title)


async def asked(host: Host, count: int = 1) -> Json:
    """Wait until something is asked, and return it."""
    return (await host.listed(count))[-1]


def hostile_file(folder: Path) -> Path:
    """Return a file that asks by a title when it is shown, and wants a shell to run the answer."""
    path = folder / "evil"
    path.write_bytes(b"\x1b]2;phux-ask[e]:Go on??s=touch caught|No\x07")
    return path


async def only_this_is_asked(host: Host, screen: Screen) -> None:
    """Ask in the shell that is in front, and see that nothing else was asked before."""
    screen.type("sh -c 'printf \"\\033]2;phux-ask:Honest?\\007\"; read x'\r")
    question = await asked(host)
    assert question["questions"][0]["question"] == "Honest?"
    assert [event["type"] for event in host.events()].count("asked") == 1


async def test_a_title_becomes_a_question_and_its_answer_is_typed(host: Host, watch: Watch) -> None:
    screen = watch(*agent())
    question = await asked(host)

    assert question["group"] == GROUP
    assert question["agent"] == "sh"
    assert question["questions"][0]["question"] == "Deploy now?"
    assert [o["label"] for o in question["questions"][0]["options"]] == ["Yes", "No"]
    assert question["source"] == "terminal"

    assert host.answer(question["request_id"], "Yes").status == 200
    await screen.shows("got<Yes>")
    closed = await host.closed(question["request_id"])
    assert closed["delivered"] == "live"
    screen.type(b"\x04")
    assert await screen.ends() == 0
    assert screen.text.count("got<") == 1


async def test_people_can_write_what_is_no_suggestion(host: Host, watch: Watch) -> None:
    screen = watch(*agent())
    question = await asked(host)

    assert host.answer(question["request_id"], "Only to staging, please").status == 200

    await screen.shows("got<Only to staging, please>")


async def test_what_is_typed_is_one_line_without_control_characters(
    host: Host, watch: Watch
) -> None:
    screen = watch(*agent("phux-ask:Name?"))
    question = await asked(host)

    host.answer(question["request_id"], "one\ntwo\x1b[201~\x03three\r\nrm -rf x")

    await screen.shows("got<one twothree rm -rf x>")
    screen.type(b"\x04")
    await screen.ends()
    assert screen.text.count("got<") == 1


async def test_a_program_that_wants_to_know_of_pastes_gets_brackets(
    host: Host, watch: Watch
) -> None:
    reads = r"""
stty raw -echo; printf '\033[?2004h\033]2;%s\033\\' "$1"
head -c 16 | od -c -An -w40; stty sane
"""
    screen = watch(*agent(DEPLOY, reads))
    question = await asked(host)

    host.answer(question["request_id"], "Yes")

    await screen.shows("[   2   0   0   ~   Y   e   s 033   [   2   0   1   ~  \\r")


async def test_a_marker_that_is_set_again_asks_nothing_new(host: Host, watch: Watch) -> None:
    script = AGENT.replace("printf 'ready>'", 'ask "$1"; ask "$1"; printf "ready>"')
    screen = watch(*agent(DEPLOY, script))
    question = await asked(host)
    await screen.shows("ready>")

    host.answer(question["request_id"], "Yes")
    await host.closed(question["request_id"])

    assert [e["type"] for e in host.events() if e["type"] == "asked"] == ["asked"]


async def test_another_title_clears_the_question_and_the_same_counts_anew(
    host: Host, watch: Watch
) -> None:
    steps = """
ask() { printf '\\033]2;%s\\007' "$1"; }
for title in "$1" "working" "$1" "phux-ask[q2]:And now?"; do ask "$title"; read -r _; done
"""
    screen = watch(*agent(DEPLOY, steps))
    first = await asked(host)
    screen.type("\r")
    ended = await host.closed(first["request_id"])
    assert ended["ending"]["outcome"] == "cleared"
    assert "says something else" in ended["ending"]["reason"]

    screen.type("\r")
    again = await asked(host)
    assert again["request_id"] != first["request_id"]
    screen.type("\r")
    await host.closed(again["request_id"])
    other = await asked(host)
    assert other["questions"][0]["question"] == "And now?"


async def test_a_question_is_cleared_when_its_program_ends(host: Host, watch: Watch) -> None:
    screen = watch(*agent(DEPLOY, 'printf "\\033]2;%s\\007" "$1"; read -r _'))
    question = await asked(host)

    screen.type("\r")

    assert await screen.ends() == 0
    ended = await host.closed(question["request_id"])
    assert ended["ending"]["outcome"] == "cleared"


@pytest.mark.parametrize("shell", ["bash --norc", "sh", "dash"])
async def test_a_hostile_file_that_is_shown_in_a_shell_asks_nothing(
    host: Host, watch: Watch, tmp_path: Path, shell: str
) -> None:
    evil = hostile_file(tmp_path)
    screen = watch(*shell.split(), "-i", env={"PS1": "prompt>", "ENV": "", "HISTFILE": ""})
    await screen.shows("prompt>")

    screen.type(f"cat {evil}; echo do''ne\r")
    await screen.shows("done")
    await only_this_is_asked(host, screen)
    assert not (tmp_path / "caught").exists()


async def test_an_answer_never_reaches_the_shell_behind_the_program_that_asked(
    host: Host, watch: Watch, tmp_path: Path
) -> None:
    evil = hostile_file(tmp_path)
    screen = watch("bash", "--norc", "-i", env={"PS1": "prompt>", "HISTFILE": ""})
    await screen.shows("prompt>")
    screen.type(f"cat {evil} -\r")
    question = await asked(host)

    screen.type(b"\x1a")  # cat is stopped, and the shell is in front
    await screen.shows("Stopped")
    host.answer(question["request_id"], "touch caught")
    screen.type("echo still he''re\r")
    await screen.shows("still here")
    screen.type("kill %1; wait; echo en''ded\r")
    await screen.shows("ended")

    ended = await host.closed(question["request_id"])
    assert ended["ending"]["outcome"] == "answered"
    assert ended["delivered"] == "dismissed"
    assert "was not typed" in ended["delivery_error"]
    assert not (tmp_path / "caught").exists()
    assert "touch caught" not in screen.text.replace("?s=touch caught", "")


async def test_an_answer_waits_until_the_program_is_in_front_again(
    host: Host, watch: Watch, tmp_path: Path
) -> None:
    (tmp_path / "agent").write_text(f"#!/bin/sh\n{AGENT}")
    screen = watch("bash", "--norc", "-i", env={"PS1": "prompt>", "HISTFILE": ""})
    await screen.shows("prompt>")
    screen.type(f"sh agent '{DEPLOY}'\r")
    question = await asked(host)
    await screen.shows("ready>")
    screen.type(b"\x1a")
    await screen.shows("Stopped")

    host.answer(question["request_id"], "Yes")
    screen.type("echo still he''re\r")
    await screen.shows("still here")
    assert "got<" not in screen.text
    screen.type("fg\r")

    await screen.shows("got<Yes>")


async def test_a_program_that_shows_another_terminal_is_not_typed_into(
    host: Host, watch: Watch, tmp_path: Path
) -> None:
    """What `ssh` shows may be a shell on another machine."""
    shutil.copy(Path("/bin/cat").resolve(), tmp_path / "ssh")
    (tmp_path / "title").write_bytes(b"\x1b]2;phux-ask:Which??s=a|b\x07")
    screen = watch("bash", "--norc", "-i", env={"PS1": "prompt>", "HISTFILE": ""})
    await screen.shows("prompt>")
    screen.type("./ssh title -\r")
    await screen.shows("phux-ask:Which")
    screen.type("hello\r")
    await screen.shows("hello", times=2)
    screen.type(b"\x04")
    await screen.shows("prompt>", times=2)
    await only_this_is_asked(host, screen)


async def test_an_answer_does_not_mix_with_a_line_that_somebody_has_begun(
    host: Host, watch: Watch
) -> None:
    screen = watch(*agent())
    question = await asked(host)
    await screen.shows("ready>")
    # A terminal says where its cursor is, and what its colours are: nobody has typed that.
    screen.type(b"N\x1b[6;1R\x1b]11;rgb:0000/0000/0000\x07\x1b[M !!")

    host.answer(question["request_id"], "Yes")
    await host.state(question["request_id"], "held", "delivering")
    screen.type("o\r")
    await screen.shows("got<N")
    await screen.shows("got<Yes>")


async def test_notifications_are_told_and_are_no_questions(host: Host, watch: Watch) -> None:
    script = (
        "printf '\\033]9;Build done\\007\\033]777;notify;Tests;3 failed\\007\\033]9;4;1;50\\007'"
    )
    screen = watch("sh", "-c", script)
    await screen.ends()

    def told() -> list[Json]:
        return [event for event in host.events() if event["type"] == "announced"]

    await until(lambda: len(told()) == 2, "two notifications")
    assert [(e["title"], e.get("detail", "")) for e in told()] == [
        ("Build done", ""),
        ("Tests", "3 failed"),
    ]
    assert host.pending() == []


async def test_what_the_agent_asks_itself_under_the_same_id_is_one_question(
    host: Host, watch: Watch
) -> None:
    watch(*agent())
    title = await asked(host)
    request = {"v": 1, "type": "ask_user:ask", "request_id": "q1"}
    request |= {"questions": [{"question": "Deploy now?", "options": ["Yes", "No"]}]}
    tasks = host.group(GROUP) / "tasks"
    (tasks / ".tmp-q1").write_text(json.dumps(request))
    (tasks / ".tmp-q1").rename(tasks / "q1.json")

    cleared = await host.closed(title["request_id"])

    assert cleared["ending"]["outcome"] == "cleared"
    assert [p["request_id"] for p in host.pending()] == ["q1"]


async def test_a_title_does_not_ask_what_the_agent_has_asked_itself(
    host: Host, watch: Watch
) -> None:
    async with agent_of(host, GROUP) as program:
        call = program.asking("Deploy now?")
        own = await asked(host)
        other = 'ask "$1"; printf "ready>"; read -r _; ask "phux-ask:Another?"; read -r _'
        script = AGENT[: AGENT.index('ask "$1"')] + other
        screen = watch(*agent(f"phux-ask[{own['request_id']}]:Deploy now?", script))
        await screen.shows("ready>")
        await until(lambda: [e for e in host.events() if e["type"] == "rejected"], "the refusal")
        screen.type("\r")
        await host.listed(2)
        assert [e["type"] for e in host.events()].count("asked") == 2
        host.answer(own["request_id"], "Yes")
        assert "Yes" in await call


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("sh", "-c", "exit 41"), 41),
        (("sh", "-c", "kill -9 $$"), 128 + 9),
        (("sh", "-c", "kill -TERM $$"), 128 + 15),
        (("no-such-program-here",), 127),
        (("/",), 126),
    ],
)
async def test_the_exit_code_is_that_of_the_program(
    watch: Watch, command: tuple[str, ...], code: int
) -> None:
    screen = watch(*command)

    assert await screen.ends() == code
    if code in {126, 127}:
        assert f"pynchy: {command[0]}: " in screen.text


async def test_signals_are_passed_on(watch: Watch) -> None:
    script = "trap 'echo caught TERM; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    screen = watch("sh", "-c", script)
    await screen.shows("ready")

    screen.signal(signal.SIGTERM)

    await screen.shows("caught TERM")
    assert await screen.ends() == 5


async def test_the_program_has_the_size_of_the_terminal(watch: Watch) -> None:
    script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done"
    screen = watch("sh", "-c", script, size=(30, 100))
    await screen.shows("30 100")

    screen.resize(41, 132)

    await screen.shows("41 132")


async def test_a_stopped_program_stops_us_too_and_goes_on_with_us(
    host: Host, tmp_path: Path
) -> None:
    """In a shell with job control, as a person has it."""
    del tmp_path
    screen = Screen(["bash", "--norc", "-i"], env={"PS1": "outer>", "HISTFILE": ""})
    try:
        await screen.shows("outer>")
        line = f"{PYNCHY} watch --data-dir {host.data} -- sh -c 'echo be''gun; cat'"
        screen.type(f"{line}\r")
        await screen.shows("begun")
        screen.type(b"one\r")
        await screen.shows("one", times=2)
        screen.type(b"\x1a")
        await screen.shows("Stopped")
        screen.type("echo out''side\r")
        await screen.shows("outside")
        screen.type("fg\r")
        await until(lambda: screen.is_raw, "the terminal to be the program's again")
        screen.type(b"two\r")
        await screen.shows("two", times=2)
        prompts = screen.text.count("outer>")
        screen.type(b"\x04")
        await screen.shows("outer>", times=prompts + 1)
        screen.type("echo left $?\r")
        await screen.shows("left 0")
    finally:
        screen.close()


async def test_a_terminal_whose_watch_is_killed_is_given_back_as_it_was(
    host: Host,
) -> None:
    screen = Screen(["bash", "--norc", "-i"], env={"PS1": "outer>", "HISTFILE": ""})
    try:
        await screen.shows("outer>")
        full = "printf '\\033[?1049h\\033[?2004h'; echo dra''wn; cat"
        screen.type(f'{PYNCHY} watch --data-dir {host.data} -- sh -c "{full}"\r')
        await screen.shows("drawn")
        children = Path(f"/proc/{screen.pid}/task/{screen.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)

        await screen.shows("Killed")
        await until(lambda: "\x1b[?1049l" in screen.text, "the usual screen")
        assert "\x1b[?2004l" in screen.text
        screen.type("echo us''able; stty -a | tr ';' '\\n' | grep -o -- '-*icanon'\r")
        await screen.shows("usable")
        await until(lambda: "\ricanon" in screen.text.replace("\n", ""), "lines as before")
    finally:
        screen.close()


async def test_a_question_of_a_watch_that_was_killed_is_cleared(host: Host, watch: Watch) -> None:
    screen = watch(*agent())
    question = await asked(host)

    screen.signal(signal.SIGKILL)

    ended = await host.closed(question["request_id"])
    assert ended["ending"]["outcome"] == "cleared"
    assert "its terminal is gone" in ended["ending"]["reason"]


async def test_the_bytes_are_the_same_with_and_without_us(watch: Watch, tmp_path: Path) -> None:
    script = r"""
stty -echo
printf 'line\nwith \033[1;31mcolours\033[0m, \033]0;titles\007, caf\303\251 \360\237\246\200\r\n'
printf '\033[?1049h\033[2J\033[5;10Hmiddle\033[?1049l\033P+q544e\033\\'
printf '\033]8;;http://x\033\\link\033]8;;\033\\'
i=0; while [ $i -lt 2000 ]; do printf 'row %s \033[K\n' $i; i=$((i+1)); done
printf 'end'
"""
    bare = Screen(["sh", "-c", script], cwd=tmp_path)
    try:
        await bare.shows("row 1999")
        await bare.ends()
        await bare.shows("end")
    finally:
        bare.close()
    screen = watch("sh", "-c", script)
    await screen.ends()
    await screen.shows("end")

    assert bytes(screen.output) == bytes(bare.output)


@pytest.mark.parametrize("given", [b"", b"hello\n", b"no end of line", b"two\nlines"])
async def test_input_that_is_no_terminal_is_passed_on_to_its_end(host: Host, given: bytes) -> None:
    process = await asyncio.create_subprocess_exec(
        PYNCHY,
        "watch",
        "--data-dir",
        host.data,
        "--",
        "cat",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate(given)

    assert out.replace(b"\r\n", b"\n") == given
    assert process.returncode == 0


async def test_a_program_whose_reader_is_gone_ends(host: Host) -> None:
    line = f"{PYNCHY} watch --data-dir {host.data} -- yes </dev/null | head -1"
    process = await asyncio.create_subprocess_shell(line, stdout=asyncio.subprocess.PIPE)

    out, _ = await asyncio.wait_for(process.communicate(), 60)

    assert out == b"y\r\n"


async def test_what_is_asked_without_a_host_waits_for_one(host: Host, watch: Watch) -> None:
    await host.stop()
    screen = watch(*agent())
    await screen.shows("ready>")
    assert "no host is running" in screen.text

    await host.start()
    question = await asked(host)
    host.answer(question["request_id"], "No")

    await screen.shows("got<No>")


async def test_of_a_flood_of_titles_only_what_stands_is_asked(host: Host, watch: Watch) -> None:
    flood = r"""
i=0
while [ $i -lt 20000 ]; do
  printf '\033]2;phux-ask[q%s]:Which %s?\007\033]9;n%s\007' $i $i $i; i=$((i+1))
done
printf 'ready>'; read -r line; printf 'got<%s>' "$line"
"""
    screen = watch("sh", "-c", flood)
    question = await asked(host)
    assert question["questions"][0]["question"] == "Which 19999?"

    host.answer(question["request_id"], "that")

    await screen.shows("got<that>")
    kinds = [event["type"] for event in host.events()]
    # On a busy machine the flood may pause for as long as a title has to stand.
    assert kinds.count("asked") <= 10
    assert kinds.count("announced") <= 20


async def test_an_answer_that_its_program_does_not_read_is_not_left_for_the_shell(
    host: Host, watch: Watch, tmp_path: Path
) -> None:
    evil = hostile_file(tmp_path)
    screen = watch("bash", "--norc", "-i", env={"PS1": "prompt>", "HISTFILE": ""})
    await screen.shows("prompt>")
    screen.type(f"sh -c 'cat {evil}; while ! test -e go; do sleep 0.1; done'\r")
    question = await asked(host)

    host.answer(question["request_id"], "touch caught")
    await host.state(question["request_id"], "held", "closed")
    (tmp_path / "go").touch()
    await screen.shows("prompt>", times=2)
    ended = await host.closed(question["request_id"])
    screen.type("echo al''ive\r")
    await screen.shows("alive")

    assert "was not typed" in ended["delivery_error"]
    assert not (tmp_path / "caught").exists()


async def test_an_answer_is_not_typed_at_another_question_that_is_not_seen_yet(
    host: Host, watch: Watch, tmp_path: Path
) -> None:
    """The person's terminal is slow, so that what the program writes is read late."""
    script = """
ask() { printf '\\033]2;%s\\007' "$1"; }
ask "phux-ask[q1]:Run the tests?"; while ! test -e go; do sleep 0.05; done
head -c 300000 /dev/zero | tr '\\0' x; ask "phux-ask[q2]:Delete it all?"
read -r line; echo "$line" > read
"""
    screen = watch("sh", "-c", script)
    first = await asked(host)
    with screen.paused():
        (tmp_path / "go").touch()
        host.answer(first["request_id"], "Yes")
        await host.state(first["request_id"], "held")
    second = await asked(host)

    assert second["questions"][0]["question"] == "Delete it all?"
    assert "was not typed" in (await host.closed(first["request_id"]))["delivery_error"]
    assert not (tmp_path / "read").exists()
    host.answer(second["request_id"], "No")
    await until((tmp_path / "read").exists, "the answer")
    assert (tmp_path / "read").read_text() == "No\n"


async def test_writing_that_goes_on_behind_the_program_is_not_waited_for(watch: Watch) -> None:
    stays = "(trap '' HUP; while sleep 0.05; do echo on; done) & exit 6"
    screen = watch("sh", "-c", stays)

    assert await screen.ends() == 6
