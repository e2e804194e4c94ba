"""`pynchy watch --tmux`: programs in the panes of a real tmux ask, and are answered."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from tests.acceptance.support import PYNCHY, Host, Json
from tests.screen import Screen
from tests.terminal.panes import DEPLOY, GROUP, Panes, Watch
from tests.waiting import until

ROUNDS = int(os.environ.get("PYNCHY_ROUNDS", "3"))
# The host may see that watch is gone before it reads why.
LEFT = "its terminal is gone"
HOSTILE = [
    "phux-ask[a,b}]:#{pane_id} #(touch caught) #[fg=red] , } %H %% $HOME ;?s=A",
    "phux-ask:\"quotes\" 'single' \\101 \\\\ \\n {brace} ~?s=`x`|$(y)",
    "phux-ask:Größe 日本 🙂 é?s=ja|нет",
    "phux-ask:%end 1 2 1",
    "phux-ask:" + "x" * 10_000,
]


async def asked(host: Host, count: int = 1) -> Json:
    return (await host.listed(count))[-1]


async def cleared(host: Host, question: Json) -> str:
    """Wait until the question was cleared, and return why."""
    ended = (await host.closed(question["request_id"]))["ending"]
    assert ended["outcome"] == "cleared"
    return str(ended["reason"])


async def not_typed(host: Host, question: Json) -> str:
    """Wait until it is known that the answer was not typed (for sure), and return why."""
    ended = await host.closed(question["request_id"])
    assert ended["ending"]["outcome"] == "answered"
    assert ended["delivered"] == "dismissed"
    return str(ended["delivery_error"])


def asked_events(host: Host) -> list[Json]:
    return [event for event in host.events() if event["type"] == "asked"]


async def test_a_pane_asks_by_its_title_and_the_answer_is_typed_there(
    host: Host, panes: Panes
) -> None:
    watch = panes.watch(host.data)
    panes.ask("one")
    panes.ask("two", "working")
    question = await asked(host)

    assert (question["group"], question["agent"]) == (GROUP, "agent")
    assert question["task"].endswith("(tmux idle:1.0)")
    assert question["questions"][0]["question"] == "Deploy now?"
    assert [o["label"] for o in question["questions"][0]["options"]] == ["Yes", "No"]
    assert host.answer(question["request_id"], "Yes").status == 200

    await panes.has_got("Yes")
    assert (await host.closed(question["request_id"]))["delivered"] == "live"
    await watch.says("idle:1.0  typed")
    assert watch.text.count("watching all panes of tmux") == 1
    assert "idle:1.0  agent asks: Deploy now?" in watch.text
    assert panes.got("two") == []
    assert panes.tmux.do("list-buffers") == ""


async def test_what_stood_before_we_came_is_asked(host: Host, panes: Panes) -> None:
    await panes.title_is(panes.ask("one"), DEPLOY)
    await panes.title_is(panes.ask("two", "phux-ask:Which??s=a|b"), "phux-ask:Which??s=a|b")
    panes.watch(host.data)

    listed = {q["questions"][0]["question"]: q for q in await host.listed(2)}
    host.answer(listed["Which?"]["request_id"], "b")
    await panes.has_got("b", word="two")

    host.answer(listed["Deploy now?"]["request_id"], "No")
    await panes.has_got("No")


async def test_another_title_clears_the_question_and_the_same_counts_anew(
    host: Host, panes: Panes
) -> None:
    watch = panes.watch(host.data)
    pane = panes.ask("one")
    first = await asked(host)
    panes.retitle(pane, "one", DEPLOY)
    panes.retitle(pane, "one", "phux-ask[q2]:And now?")

    assert "says something else" in await cleared(host, first)
    second = await asked(host)
    assert second["questions"][0]["question"] == "And now?"
    panes.retitle(pane, "one", "working")
    assert "says something else" in await cleared(host, second)
    panes.retitle(pane, "one", DEPLOY)
    third = await asked(host)

    host.answer(third["request_id"], "Yes")
    await panes.has_got("Yes")
    await watch.says("cleared: its terminal says something else now", 2)
    # Answered, asked otherwise, and asked once more: it counts anew.
    panes.retitle(pane, "one", "working")
    await until(lambda: not mark(panes, pane), "what was written down to be forgotten")
    panes.retitle(pane, "one", DEPLOY)
    fourth = await asked(host)
    host.answer(fourth["request_id"], "No")
    await panes.has_got("Yes", "No")
    assert len(asked_events(host)) == 4


def mark(panes: Panes, pane: str) -> str:
    return panes.tmux.do("show-options", "-pqv", "-t", pane, "@pynchy_typed").strip()


async def test_a_question_is_cleared_when_its_pane_or_its_program_is_gone(
    host: Host, panes: Panes
) -> None:
    panes.watch(host.data)
    pane = panes.ask("one")
    first = await asked(host)
    panes.tmux.do("kill-pane", "-t", pane)
    assert await cleared(host, first) == "its pane is gone"

    panes.prepare("two", DEPLOY)
    shell = panes.run("bash --norc -i")
    await panes.shows(shell, "prompt>")
    panes.type(shell, "./agent two")
    second = await asked(host)
    panes.tmux.do("send-keys", "-t", shell, "C-c")
    assert await cleared(host, second) == "the program has ended"

    panes.tmux.do("set-option", "-g", "remain-on-exit", "on")
    dead = panes.ask("three")
    third = await asked(host)
    panes.tmux.do("send-keys", "-t", dead, "C-c")
    assert await cleared(host, third) == "the program has ended"
    panes.tmux.do("respawn-pane", "-t", dead, "exec ./agent three")
    await asked(host)
    assert len(asked_events(host)) == 4


@pytest.mark.parametrize("shell", ["bash --norc -i", "sh -i"])
async def test_a_shell_asks_nothing_whoever_sets_its_title(
    host: Host, panes: Panes, shell: str
) -> None:
    evil = panes.folder / "evil"
    evil.write_bytes(b"\x1b]2;phux-ask[e]:Go on??s=touch caught|No\x07")
    shutil.copy(Path("/bin/cat").resolve(), panes.folder / "ssh")
    watch = panes.watch(host.data)
    pane = panes.run(shell)
    await panes.shows(pane, "prompt>")

    panes.type(pane, "cat evil")
    await watch.says("is a shell, which would run it")
    # Another program in front does not make that title its own.
    panes.type(pane, "cat")
    carrier = panes.run("exec ./ssh evil -")
    await watch.says("shows another terminal, where a shell may read it")
    panes.ask("one")
    question = await asked(host)

    assert question["questions"][0]["question"] == "Deploy now?"
    assert len(asked_events(host)) == 1
    assert carrier != pane


async def test_an_answer_waits_while_something_else_would_read_it(host: Host, panes: Panes) -> None:
    watch = panes.watch(host.data)
    panes.prepare("one", DEPLOY)
    pane = panes.run("bash --norc -i")
    await panes.shows(pane, "prompt>")
    panes.type(pane, "./agent one")
    question = await asked(host)
    panes.tmux.do("copy-mode", "-t", pane)

    host.answer(question["request_id"], "Yes")
    await watch.says("the answer waits: the pane is in a mode of tmux")
    panes.tmux.do("select-pane", "-d", "-t", pane)
    panes.tmux.do("copy-mode", "-q", "-t", pane)
    await watch.says("the answer waits: the pane's input is switched off")
    panes.tmux.do("select-pane", "-e", "-t", pane)

    await panes.has_got("Yes")


async def test_an_answer_waits_for_the_program_that_asked_and_not_for_its_shell(
    host: Host, panes: Panes
) -> None:
    watch = panes.watch(host.data)
    panes.prepare("one", "phux-ask:Go on??s=touch caught|No")
    pane = panes.run("bash --norc -i")
    await panes.shows(pane, "prompt>")
    panes.type(pane, "./agent one")
    first = await asked(host)
    panes.tmux.do("send-keys", "-t", pane, "C-z")
    await panes.shows(pane, "Stopped")

    host.answer(first["request_id"], "touch caught")
    await watch.says("the answer waits: another program is in front of the pane")
    panes.type(pane, "fg")
    await panes.has_got("touch caught")
    assert (await host.closed(first["request_id"]))["delivered"] == "live"

    panes.retitle(pane, "one", "phux-ask:And now??s=touch caught|No")
    second = await asked(host)
    panes.tmux.do("send-keys", "-t", pane, "C-z")
    await until(lambda: panes.screen(pane).count("Stopped") >= 2, "the program to be stopped")
    host.answer(second["request_id"], "touch caught")
    await watch.says("the answer waits", 2)
    panes.type(pane, "kill -9 %1")

    assert "was not typed" in await not_typed(host, second)
    assert not (panes.folder / "caught").exists()
    assert panes.got() == ["touch caught"]


async def test_synchronized_panes_do_not_get_each_others_answers(host: Host, panes: Panes) -> None:
    panes.watch(host.data)
    pane = panes.ask("one")
    question = await asked(host)
    panes.prepare("two", "working")
    panes.tmux.do("split-window", "-d", "-t", pane, "exec ./agent two")
    panes.tmux.do("set-option", "-w", "-t", pane, "synchronize-panes", "on")

    host.answer(question["request_id"], "Yes")
    await panes.has_got("Yes")
    await host.closed(question["request_id"])

    # Keys go to both: what the other pane read before them would be there.
    panes.type(pane, "end")
    await panes.has_got("Yes", "end")
    await panes.has_got("end", word="two")


async def test_a_program_that_wants_to_know_of_pastes_gets_brackets(
    host: Host, panes: Panes
) -> None:
    script = panes.folder / "raw"
    title = f"\\033[?2004h\\033]2;{DEPLOY}\\007"
    script.write_text(f"#!/bin/sh\nstty raw -echo; printf '{title}'\nhead -c 16 > keys\n")
    script.chmod(0o700)
    panes.watch(host.data)
    panes.run("exec ./raw")
    question = await asked(host)

    host.answer(question["request_id"], "Yes")

    keys = panes.folder / "keys"
    await until(lambda: keys.exists() and len(keys.read_bytes()) == 16, "the keys")
    assert keys.read_bytes() == b"\x1b[200~Yes\x1b[201~\r"


async def test_hostile_titles_are_asked_as_they_are_and_answered_exactly(
    host: Host, panes: Panes
) -> None:
    panes.watch(host.data)
    for number, title in enumerate(HOSTILE):
        await panes.title_is(panes.ask(str(number), title), title)
    listed = {q["questions"][0]["question"]: q for q in await host.listed(len(HOSTILE))}

    for number, title in enumerate(HOSTILE):
        question = listed[title.partition(":")[2].partition("?s=")[0]]
        answer = f"-{number} '\"\\ $HOME `x` ; #{{pane_id}} #(x) {{}} ~ é日"
        host.answer(question["request_id"], answer)
        await panes.has_got(answer, word=str(number))

    assert not (panes.folder / "caught").exists()


async def test_what_tmux_would_not_show_whole_is_no_question(host: Host, panes: Panes) -> None:
    panes.watch(host.data)
    long = "phux-ask:" + "x" * 20_000
    await panes.title_is(panes.ask("one", long), long)
    panes.ask("two", "phux-ask:New\nline\x01?")

    question = await asked(host)

    assert question["questions"][0]["question"] == "Newline?"
    assert len(asked_events(host)) == 1


async def test_a_window_that_is_linked_to_two_sessions_asks_once(host: Host, panes: Panes) -> None:
    panes.tmux.do("new-session", "-d", "-s", "second", "cat")
    pane = panes.ask("one", DEPLOY, "-t", "idle:")
    panes.tmux.do("link-window", "-s", pane, "-t", "second:")
    panes.watch(host.data)
    question = await asked(host)

    host.answer(question["request_id"], "Yes")
    await panes.has_got("Yes")

    assert len(asked_events(host)) == 1


async def test_ctrl_c_takes_back_what_is_open(host: Host, panes: Panes) -> None:
    watch = panes.watch(host.data)
    pane = panes.ask("one")
    question = await asked(host)

    watch.signal(signal.SIGINT)

    assert await watch.ends() == 0
    assert await cleared(host, question) in {"pynchy watch was ended", LEFT}
    assert "cleared: pynchy watch was ended" in watch.text
    assert panes.tmux.do("show-options", "-sqv", "@pynchy_watch") == ""
    await until(lambda: not panes.tmux.do("list-clients"), "the client to be gone")
    panes.watch(host.data)
    await asked(host)
    assert mark(panes, pane) == ""


async def test_it_ends_with_tmux(host: Host, panes: Panes) -> None:
    watch = panes.watch(host.data)
    panes.ask("one")
    question = await asked(host)

    panes.tmux.do("kill-server")

    assert await watch.ends() == 0
    assert "the tmux server has ended" in watch.text
    assert await cleared(host, question) in {"the tmux server has ended", LEFT}


async def test_other_sessions_are_watched_on_when_ours_ends(host: Host, panes: Panes) -> None:
    watch = panes.watch(host.data)
    panes.ask("one")
    question = await asked(host)
    held = panes.tmux.do("list-clients", "-F", "#{session_name}").strip()
    assert held == "idle"
    panes.tmux.do("new-session", "-d", "-s", "other", "cat")
    panes.tmux.do("move-window", "-s", "idle:1", "-t", "other:")

    panes.tmux.do("kill-session", "-t", "idle")
    await until(
        lambda: panes.tmux.do("list-clients", "-F", "#{session_name}").strip() == "other",
        "the other session to be attached to",
    )

    host.answer(question["request_id"], "Yes")
    await panes.has_got("Yes")
    assert len(asked_events(host)) == 1
    assert "ended" not in watch.text


async def test_nobody_else_is_disturbed(host: Host, panes: Panes) -> None:
    panes.ask("one")
    person = Screen(
        ["tmux", "-S", panes.socket, "attach", "-t", "idle"], {"TMUX": ""}, None, (40, 123)
    )
    try:
        shown = ["list-windows", "-F", "#{window_width}x#{window_height} #{window_active}"]
        await until(lambda: "123x39 1" in panes.tmux.do(*shown), "the person's size")
        before = panes.tmux.do(*shown)
        panes.watch(host.data)
        question = await asked(host)
        host.answer(question["request_id"], "Yes")
        await panes.has_got("Yes")
        await host.closed(question["request_id"])

        assert panes.tmux.do(*shown) == before
        person.type(b"\x02d")
        assert await person.ends() == 0
    finally:
        person.close()


async def test_a_session_that_is_to_end_with_its_last_client_does(host: Host, panes: Panes) -> None:
    panes.tmux.do("new-session", "-d", "-s", "main", "cat")
    panes.tmux.do("kill-session", "-t", "idle")
    person = Screen(["tmux", "-S", panes.socket, "attach", "-t", "main"], {"TMUX": ""})
    try:
        attached = ["list-clients", "-t", "main", "-F", "#{client_control_mode}"]
        await until(lambda: panes.tmux.do(*attached) == "0\n", "the person to be attached")
        panes.tmux.do("set-option", "-g", "destroy-unattached", "on")
        watch = panes.watch(host.data)
        await until(lambda: "1" in panes.tmux.do(*attached), "us to be attached")

        person.type(b"\x02d")

        assert await person.ends() == 0
        assert await watch.ends() == 0
        assert "the tmux server has ended" in watch.text
    finally:
        person.close()


async def test_one_server_is_watched_once(host: Host, panes: Panes) -> None:
    first = panes.watch(host.data)
    panes.ask("one")
    await asked(host)

    second = panes.watch(host.data)

    assert await second.ends() == 1
    assert "watches this tmux server already" in second.text
    first.kill()
    panes.watch(host.data)
    await until(lambda: len(asked_events(host)) == 2, "the third to ask in its place")


# A tmux that is none: what it says of itself, and what it does when it is attached to.
NEW = "case $* in *-V*) echo tmux 3.4; exit;; esac;"
ATTACH = "echo $* | grep -q attach-session &&"
LIST = "echo '1 $0 0 0 1'"


@pytest.mark.parametrize(
    ("tmux", "said"),
    [
        ("", "there is no tmux on this machine"),
        ("echo tmux 3.1c", "tmux 3.1c is too old; install tmux 3.2 or newer"),
        (f"{NEW} echo nope >&2; exit 1", "no tmux server is running (nope); start tmux first"),
        (f"{NEW} {ATTACH} exit 1; {LIST}", "tmux lets nobody attach in control mode"),
        (f"{NEW} {ATTACH} {{ echo hello; exec cat; }}; {LIST}", "is no word of control mode"),
    ],
    ids=["none", "old", "no server", "no control mode", "no tmux at all"],
)
async def test_without_a_tmux_that_can_be_watched_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmux: str, said: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "grep"):
        (programs / name).symlink_to(shutil.which(name) or "")
    if tmux:
        (programs / "tmux").write_text(f"#!/bin/sh\n{tmux}\n")
        (programs / "tmux").chmod(0o700)
    monkeypatch.setenv("PATH", str(programs))

    watch = Watch([PYNCHY, "watch", "--tmux", "--data-dir", tmp_path / "data"], tmp_path / "log")

    assert await watch.ends() == 1
    assert said in watch.text
    assert "Traceback" not in watch.text


# Where watch is killed; whether the answer was typed, and whether the standing title is asked anew.
STEPS = [
    ("before ask", "", True),
    ("after ask", "", True),
    ("before answer", "", True),
    ("before claim", "", True),
    ("after claim", "", True),
    ("before text", "", True),
    ("after text", "unsent", False),
    ("before enter", "unsent", False),
    ("after enter", "sent", False),
    ("before pass on", "sent", False),
    ("after pass on", "sent", False),
]


@pytest.mark.parametrize(("step", "typed", "is_asked_again"), STEPS, ids=[s[0] for s in STEPS])
async def test_killed_at_any_step_nothing_is_typed_twice_or_elsewhere(
    host: Host, panes: Panes, step: str, typed: str, *, is_asked_again: bool
) -> None:
    dying = panes.watch(host.data, dies=step)
    pane = panes.ask("one")
    panes.ask("other", "working")
    question = None
    if step != "before ask":
        question = await asked(host)
        if step != "after ask":
            host.answer(question["request_id"], "first")
    assert await dying.ends() == -signal.SIGKILL

    if question is not None:
        await check_card(host, question, step)
    watch = panes.watch(host.data)
    if is_asked_again:
        again = await asked(host)
        assert panes.got() == []
        host.answer(again["request_id"], "second")
        await panes.has_got("second")
    else:
        await watch.says("not asked: an answer may have been typed already")
        panes.type(pane, " and end")
        await panes.has_got(*(["first", " and end"] if typed == "sent" else ["first and end"]))
        panes.retitle(pane, "one", "phux-ask[q2]:And now?")
        again = await asked(host)
        host.answer(again["request_id"], "last")
        await until(lambda: panes.got()[-1] == "last", "the next answer")
    assert panes.got("other") == []
    assert panes.tmux.do("list-buffers") == ""


async def check_card(host: Host, question: Json, step: str) -> None:
    """What people read is what is known."""
    if step == "after ask":
        assert "gone" in await cleared(host, question)
    elif step in {"before answer", "before claim"}:
        assert "was not typed" in await not_typed(host, question)
    elif step == "after pass on":
        assert (await host.closed(question["request_id"]))["delivered"] == "live"
    else:
        assert "may have been typed" in await not_typed(host, question)


async def test_a_title_becomes_a_question_in_about_a_second(host: Host, panes: Panes) -> None:
    panes.watch(host.data)
    pane = panes.ask("one", "working")
    await panes.title_is(pane, "working")
    panes.retitle(pane, "one", DEPLOY)
    await asked(host)
    taken = []
    for number in range(ROUNDS):
        began = time.monotonic()
        panes.retitle(pane, "one", f"phux-ask:Number {number}?")
        await until(lambda n=number: len(asked_events(host)) == n + 2, "the question")
        taken.append(time.monotonic() - began)

    print("\nseconds from title to question:", [f"{one:.2f}" for one in sorted(taken)])  # noqa: T201 - a figure
    # tmux looks once a second; the rest is for a machine that has other things to do.
    assert min(taken) < 2.5
