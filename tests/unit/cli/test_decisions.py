"""approve, deny and `ask --approve` against a real host."""

import json
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.support import Host, Run, in_thread, start_pynchy, until

from pynchy.cli.question_text import question_sheet
from pynchy.cli.views import read_question
from pynchy.config import Settings
from pynchy.http.hook_keys import STARTED_VARIABLE

Editor = Callable[[str], Path]
DEPLOY: dict[str, Any] = {"approval": {"action": "Deploy 2.1?", "risk": "high"}}
_CALL = {"program": "claude", "tool": "Bash", "input": {"command": "git status"}, "cwd": "/srv"}
BASH: dict[str, Any] = {"permission": _CALL}
PAIR = {"http": {"port": 0}, "groups": {"web-team": {"approvals_needed": 2}}}


EDITABLE: dict[str, Any] = {"permission": {**_CALL, "editable": True}}
JIRA = {"program": "claude", "tool": "mcp__jira__close", "input": {"key": "A-1"}, "editable": True}


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """Let $EDITOR be a script that sees the file as $1; return where to look what it was given."""

    def make(script: str) -> Path:
        seen, path = tmp_path / "seen", tmp_path / "editor"
        path.write_text(f'#!/bin/sh\ncat "$1" >> {seen}\n{script}\n')
        path.chmod(0o755)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", str(path))
        return seen

    return make


def wanted(host: Host, asked: dict[str, Any] = DEPLOY) -> str:
    return host.ask(questions=[], **asked)


@pytest.mark.parametrize(("asked", "label"), [(DEPLOY, "Approve"), (BASH, "Allow once")])
def test_approve_says_yes_with_a_note(
    host: Host, run: Run, asked: dict[str, Any], label: str
) -> None:
    short_id = wanted(host, asked)

    result = run("approve", short_id, "--note", "after six")

    assert (result.exit_code, result.stdout) == (0, f"{short_id} approved\n")
    [answer] = host.client.question(short_id)["ending"]["answers"]
    assert (answer["selected"], answer["values"], answer["text"]) == (
        [label],
        ["approve"],
        "after six",
    )


def test_a_command_is_edited_as_it_is_typed(host: Host, run: Run, editor: Editor) -> None:
    short_id = wanted(host, EDITABLE)
    seen = editor("""echo 'git log "-1"' > "$1" """)

    result = run("approve", short_id, "--edit", "--note", "so")

    assert (result.exit_code, result.stdout) == (0, f"{short_id} approved, edited\n")
    assert seen.read_text() == "git status\n"
    ending = host.client.question(short_id)["ending"]
    assert ending["edited"] == {"command": 'git log "-1"'}
    assert ending["answers"][0]["text"] == "so"
    assert 'edited   {"command": "git log \\"-1\\""}' in run("show", short_id).stdout


def test_other_calls_are_edited_as_json(host: Host, run: Run, editor: Editor) -> None:
    short_id = wanted(host, {"permission": JIRA})
    seen = editor("""echo '{"key": "B-2", "note": "ü"}' > "$1" """)

    result = run("approve", short_id, "--edit", "--json")

    assert result.exit_code == 0
    assert json.loads(seen.read_text()) == {"key": "A-1"}
    assert json.loads(result.stdout)["ending"]["edited"] == {"key": "B-2", "note": "ü"}


def test_what_is_no_json_can_be_edited_again(host: Host, run: Run, editor: Editor) -> None:
    short_id = wanted(host, {"permission": JIRA})
    seen = editor("""if grep -q half "$1"; then echo '{"key": "B"}'; else echo half; fi > "$1.new"
mv "$1.new" "$1" """)

    again = run("approve", short_id, "--edit", typed="y\n")

    assert again.exit_code == 0, again.stderr
    assert "this is no JSON" in again.stderr
    assert seen.read_text().endswith("half\n")
    assert host.client.question(short_id)["ending"]["edited"] == {"key": "B"}


@pytest.mark.parametrize(
    ("done", "told"),
    [
        ((': > "$1"', ""), "nothing was sent"),
        ((":", "n\n"), "Allow it as it is?"),
        ((":", ""), "Allow it as it is?"),
        (("exit 1", "y\n"), "Editing failed"),
    ],
)
def test_what_was_not_edited_is_not_sent(
    host: Host, run: Run, editor: Editor, done: tuple[str, str], told: str
) -> None:
    short_id, (script, typed) = wanted(host, EDITABLE), done
    editor(script)

    result = run("approve", short_id, "--edit", typed=typed)

    assert result.exit_code == 1
    assert told in result.stderr
    assert host.client.question(short_id)["ending"] is None


def test_who_changed_nothing_may_allow_it_as_it_is(host: Host, run: Run, editor: Editor) -> None:
    short_id = wanted(host, EDITABLE)
    editor(":")

    result = run("approve", short_id, "--edit", typed="y\n")

    assert (result.exit_code, result.stdout) == (0, f"{short_id} approved\n")
    assert "edited" not in host.client.question(short_id)["ending"]


def test_a_command_can_be_given_without_an_editor(host: Host, run: Run) -> None:
    short_id = wanted(host, EDITABLE)

    result = run("approve", short_id, "--command", "git log")

    assert (result.exit_code, result.stdout) == (0, f"{short_id} approved, edited\n")
    assert host.client.question(short_id)["ending"]["edited"] == {"command": "git log"}
    over = run("approve", short_id, "--edit")
    assert (over.exit_code, "Allow once, edited" in over.stderr) == (4, True)


@pytest.mark.parametrize(
    ("asked", "flags", "told"),
    [
        (BASH, ["--edit"], "cannot be edited"),
        (DEPLOY, ["--edit"], "cannot be edited"),
        ({"permission": JIRA}, ["--command", "ls"], "is no shell command: use --edit"),
        (EDITABLE, ["--command", " "], "needs a command"),
    ],
)
def test_what_cannot_be_edited_is_said(
    host: Host, run: Run, asked: dict[str, Any], flags: list[str], told: str
) -> None:
    short_id = wanted(host, asked)

    result = run("approve", short_id, *flags)

    assert result.exit_code == 1
    assert told in result.stderr
    assert host.client.question(short_id)["ending"] is None


def test_deny_says_no_with_the_reason(host: Host, run: Run) -> None:
    short_id = wanted(host)

    result = run("deny", short_id, "--reason", "not on a Friday", "--by", "ben", "--json")

    told = json.loads(result.stdout)["ending"]
    assert (result.exit_code, told["outcome"], told["answered_by"]) == (0, "answered", "ben")
    assert (told["answers"][0]["values"], told["answers"][0]["text"]) == (
        ["deny"],
        "not on a Friday",
    )


def test_who_comes_second_is_told_what_was_decided(host: Host, run: Run) -> None:
    short_id = wanted(host)
    run("deny", short_id, "--by", "ben")

    late, listed = run("approve", short_id), run("approve", short_id, "--json")

    assert (late.exit_code, listed.exit_code) == (4, 4)
    assert "already over: answered by ben (local): Deny" in late.stderr
    assert json.loads(listed.stdout)["ending"]["answered_by"] == "ben"


@pytest.mark.parametrize("command", ["approve", "deny"])
def test_a_plain_question_is_neither_approved_nor_denied(
    host: Host, run: Run, command: str
) -> None:
    short_id = host.ask({"question": "Deploy?", "options": ["Yes", "No"]})

    result = run(command, short_id)

    assert result.exit_code == 1
    assert f"answer it with: pynchy answer {short_id} VALUE" in result.stderr
    assert host.client.question(short_id)["ending"] is None


@pytest.mark.parametrize("flag", [["--always"], ["--for", "8h"]])
def test_no_rule_is_made_where_none_is_offered(host: Host, run: Run, flag: list[str]) -> None:
    short_id = wanted(host)

    result = run("approve", short_id, *flag)

    assert result.exit_code == 1
    assert f"no rule can be made of {short_id}: approve it once" in result.stderr
    assert host.client.question(short_id)["ending"] is None


@pytest.mark.parametrize(
    ("flags", "seconds"), [(["--always"], 30 * 86_400), (["--for", "8h"], 8 * 3_600)]
)
def test_a_rule_is_made_for_as_long_as_is_said(
    host: Host, run: Run, flags: list[str], seconds: int
) -> None:
    short_id = wanted(host, BASH)

    result = run("approve", short_id, *flags)
    host.take(host.client.question(short_id))

    done, covered = result.stdout.splitlines()
    assert (result.exit_code, done) == (0, f"{short_id} approved, and a rule was made of it")
    [rule] = json.loads(run("rules", "--json").stdout)
    assert rule["covers"] in covered
    assert covered.endswith(f"pynchy rules revoke {rule['short_id']}")
    made, ends = (datetime.fromisoformat(rule[name]) for name in ("made_at", "expires_at"))
    assert (ends - made).total_seconds() == seconds


@pytest.mark.parametrize("flags", [["--always"], ["--for", "8h"]])
def test_a_rule_is_made_for_the_session_alone(host: Host, run: Run, flags: list[str]) -> None:
    short_id = wanted(host, BASH | {"session_id": "one"})

    result = run("approve", short_id, *flags, "--session")
    host.take(host.client.question(short_id))

    said = f"{short_id} approved, and a rule was made of it for this session\n"
    assert (result.exit_code, result.stdout.startswith(said)) == (0, True)
    assert [rule["session_id"] for rule in json.loads(run("rules", "--json").stdout)] == ["one"]


def test_no_rule_is_made_for_a_session_that_is_not_known(host: Host, run: Run) -> None:
    short_id = wanted(host, BASH)

    result = run("approve", short_id, "--always", "--session")

    assert result.exit_code == 1
    assert f"{short_id} is of no session that a rule could be for" in result.stderr
    assert host.client.question(short_id)["ending"] is None


def test_a_rule_that_could_not_be_made_is_not_told_as_made(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_id = wanted(host, BASH)
    monkeypatch.setattr("pynchy.permissions.rulebook.MAX_RULES", 0)

    result = run("approve", short_id, "--always")

    assert result.exit_code == 0
    assert result.stdout == (
        f"{short_id} approved once; no rule was made: group web-team has 0 rules already: "
        "revoke some (pynchy rules)\n"
    )
    assert json.loads(run("rules", "--json").stdout) == []


@pytest.mark.parametrize(
    "flags",
    [
        ["--edit", "--command", "ls"],
        ["--always", "--edit"],
        ["--always", "--for", "8h"],
        ["--for", "soon"],
        ["--for", "0"],
        ["--reason", "x"],
        ["--session"],
    ],
)
def test_wrong_use_of_approve_exits_with_2(host: Host, run: Run, flags: list[str]) -> None:
    assert run("approve", wanted(host), *flags).exit_code == 2


@pytest.mark.parametrize("settings", [Settings.model_validate(PAIR)])
def test_a_first_of_two_approvals_is_noted_and_shown(host: Host, run: Run) -> None:
    short_id = wanted(host)

    first = run("approve", short_id, "--by", "ana")
    again = run("answer", short_id, "approve", "--by", "Ana")
    told = run("approve", short_id, "--by", "ana", "--json")
    shown = run("show", short_id)
    second = run("approve", short_id, "--by", "ben")

    assert (first.exit_code, again.exit_code, told.exit_code) == (6, 6, 6)
    assert first.stdout == f"{short_id}: noted. ana approved; one more person is needed\n"
    assert again.stdout == f"{short_id}: noted. Ana approved; one more person is needed\n"
    assert json.loads(told.stdout)["approvals_needed"] == 2
    assert "approved ana approved; one more person is needed" in shown.stdout
    assert (second.exit_code, second.stdout) == (0, f"{short_id} approved\n")
    assert host.client.question(short_id)["ending"]["answered_by"] == "ana, ben"


def test_listings_say_what_is_no_question(host: Host, run: Run) -> None:
    short_id, other = wanted(host), wanted(host, BASH)

    pending = run("pending").output
    shown = run("show", short_id).output
    rows = json.loads(run("pending", "--json").output)
    run("deny", short_id)
    host.take(host.client.question(short_id))
    history = run("history").output

    assert "\tapproval: Deploy 2.1?" in pending
    assert "\tpermission: git status\t" in pending
    assert f"Decide with: pynchy approve {short_id}, or: pynchy deny {short_id}" in shown
    assert {row["short_id"]: row["kind"] for row in rows} == {
        short_id: "approval",
        other: "permission",
    }
    assert "\tapproval: Deploy 2.1?" in history


def test_show_has_what_comes_and_goes_in_colours(host: Host) -> None:
    given = {"file_path": "a.py", "old_string": "same\n-- old", "new_string": "same\nnew"}
    call = {"program": "claude", "tool": "Edit", "input": given}
    short_id = wanted(host, {"permission": call})

    [shown] = [
        text
        for text in question_sheet(read_question(host.client.question(short_id)))
        if "wants to change" in text.plain
    ]

    styles = {shown.plain[span.start : span.end]: span.style for span in shown.spans}
    assert (styles["--- old"], styles["+new"]) == ("red", "green")
    assert " same" not in styles


def test_asked_events_say_what_kind_it_is(host: Host, run: Run) -> None:
    host.ask("Why?")
    wanted(host)
    wanted(host, BASH)

    lines = map(json.loads, run("events", "--json").output.splitlines())

    asked = [line for line in lines if line["type"] == "asked"]
    assert [line["kind"] for line in asked] == ["question", "approval", "permission"]


def decide(host: Host, value: str, text: str | None = None) -> None:
    short_id = until(host.client.pending)[0]["short_id"]
    host.reply(short_id, "answer", "ben", answers=[{"selected": [value], "text": text}])


def test_ask_approve_exits_with_0_when_it_is_approved(host: Host, run: Run, tmp_path: Path) -> None:
    diff = tmp_path / "changes.diff"
    diff.write_text("+ new")
    command = ["ask", "--approve", "Deploy 2.1?", "--details", "To all.", "--risk", "high"]

    with in_thread(lambda: decide(host, "Approve", "after six")):
        result = run(*command, "--preview-file", str(diff))

    assert (result.exit_code, result.stdout) == (0, "approved\nafter six\n")
    assert "pynchy approve" in result.stderr
    [view] = until(lambda: host.client.history(1, None, None))
    assert view["questions"][0]["question"] == (
        "Deploy 2.1?\n\nTo all.\n\n```\n+ new\n```\n\nRisk, as the agent sees it: high"
    )


def test_ask_approve_exits_with_2_when_it_is_denied(host: Host, run: Run) -> None:
    with in_thread(lambda: decide(host, "Deny", "not now")):
        result = run("ask", "--approve", "Deploy 2.1?")

    assert (result.exit_code, result.stdout) == (2, "denied\nnot now\n")


def test_ask_approve_exits_with_2_when_it_is_declined(host: Host, run: Run) -> None:
    def decline() -> None:
        host.reply(until(host.client.pending)[0]["short_id"], "decline", "ben")

    with in_thread(decline):
        result = run("ask", "--approve", "Deploy 2.1?", "--json")

    assert (result.exit_code, json.loads(result.stdout)["approved"]) == (2, False)


def test_ask_approve_exits_with_3_when_nobody_decides_in_time(host: Host, run: Run) -> None:
    result = run("ask", "--approve", "Deploy 2.1?", "--timeout", "0.2", "--json")

    told = json.loads(result.stdout)
    assert (result.exit_code, told["outcome"], told["approved"]) == (3, "pending", None)
    assert "pynchy approve" in result.stderr
    assert [view["kind"] for view in until(host.client.pending)] == ["approval"]


@pytest.mark.usefixtures("host")
def test_json_of_a_plain_ask_says_nothing_of_approvals(run: Run) -> None:
    result = run("ask", "Why?", "--timeout", "0.2", "--json")

    assert "approved" not in json.loads(result.stdout)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--approve", "-o", "Yes"], "-o has no place beside --approve"),
        (["--approve", "--multi"], "--multi has no place beside --approve"),
        (["--approve", "--options-only"], "--options-only has no place beside --approve"),
        (["--approve", "--default", ""], "--default has no place beside --approve"),
        (["--details", "x"], "--details needs --approve"),
        (["--risk", "low"], "--risk needs --approve"),
        (["--preview-file", "-"], "--preview-file needs --approve"),
        (["--approve", "--risk", "none"], "'none' is not one of 'low', 'medium', 'high'"),
        (["--approve", "--preview-file", "/none"], "No such file"),
        (["--approve", "--details", "x" * 20_001], "--details is too long: at most 20000"),
    ],
)
def test_wrong_use_of_ask_approve_exits_with_64(
    host: Host, run: Run, flags: list[str], complaint: str
) -> None:
    result = run("ask", "Deploy?", *flags)

    assert result.exit_code == 64
    assert complaint in result.stderr
    assert host.client.pending() == []


def test_a_preview_that_is_no_text_is_wrong_use(host: Host, run: Run, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")

    result = run("ask", "--approve", "Deploy?", "--preview-file", str(tmp_path / "picture"))

    assert result.exit_code == 64
    assert "cannot be read as UTF-8 text" in result.stderr
    assert host.client.pending() == []


@pytest.mark.parametrize("asked", [DEPLOY, BASH])
def test_sessions_and_inbox_named_the_command_that_decides_nothing(
    host: Host, run: Run, asked: dict[str, Any]
) -> None:
    short_id = wanted(host, asked | {"session_id": "one"})
    until(lambda: [s["state"] for s in host.client.sessions()] == ["waiting"])

    listed = run("sessions").stdout.rstrip("\n").split("\t")
    inbox = run("inbox").stderr
    unsaid = run("answer", short_id)

    decide = f"pynchy approve {short_id}, or: pynchy deny {short_id}"
    assert listed[5] == decide
    assert inbox.startswith("Decide with: pynchy approve ID, or: pynchy deny ID")
    assert (unsaid.exit_code, decide in unsaid.stderr) == (2, True)
    host.ask("Why?")
    both = run("inbox").stderr
    assert "pynchy answer ID VALUE" in both
    assert "pynchy approve ID" in both


@pytest.mark.parametrize(
    ("lasts", "told"),
    [
        ("60d", "'60d' is too long: at most 30d"),
        ("0h", "'0h' is too short: more than 0"),
        ("8", "8 what? write 8h, 8d or 8m"),
        ("soon", "'soon' is not a duration; write 90, 90s, 30m, 2h or 7d, at most 30d"),
    ],
)
def test_a_rule_that_lasts_too_long_was_called_no_duration(run: Run, lasts: str, told: str) -> None:
    result = run("approve", "k7qm", "--for", lasts)

    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert "at most 30d" in run("approve", "--help").stdout


def test_the_hook_that_is_a_command_left_out_why_the_program_stopped(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(STARTED_VARIABLE, raising=False)
    told = {
        "decision_reason": "outside",
        "blocked_path": "/etc/hosts",
        "permission_suggestions": [{"type": "addDirectories", "directories": ["/etc"]}],
    }
    call = {"tool_name": "Bash", "tool_input": {"command": "cat /etc/hosts"}, "cwd": "/srv"}
    event = {"hook_event_name": "PermissionRequest", "session_id": "s1", **call, **told}
    process = start_pynchy(
        host,
        *("hook", "claude", "--group", "web-team"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(event))
    process.stdin.close()
    process.stdin = None
    [asked] = until(host.client.pending)

    host.reply(asked["short_id"], "answer", "ana", values=["deny"])
    out, _ = process.communicate(timeout=30)

    text = asked["questions"][0]["question"]
    assert "stopped because it leaves the folder: `/etc/hosts`" in text
    assert "says why it stopped: `outside`" in text
    assert "never used): `the folder /etc`" in text
    assert '"deny"' in out
