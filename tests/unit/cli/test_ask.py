"""`pynchy ask` against a real host: the answer on stdout, the rest on stderr."""

import json
import signal
import subprocess

import pytest
from tests.unit.cli.support import Host, Run, in_thread, start_pynchy, until

from pynchy.errors import InvalidReply
from pynchy.own_program import own_call


def answer_first(host: Host, *values: str) -> None:
    pending = until(host.client.pending)
    host.reply(pending[0]["short_id"], "answer", "ben", values=list(values))


def test_the_answer_is_printed_alone(host: Host, run: Run) -> None:
    with in_thread(lambda: answer_first(host, "1")):
        result = run("ask", "Deploy?", "-o", "Yes", "-o", "No")

    assert (result.exit_code, result.stdout) == (0, "Yes\n")
    assert f"answer with: {own_call()} answer" in result.stderr


def test_several_choices_are_one_to_a_line(host: Host, run: Run) -> None:
    with in_thread(lambda: answer_first(host, "1", "3")):
        result = run("ask", "Which?", "-o", "a", "-o", "b", "-o", "c", "--multi")

    assert result.stdout == "a\nc\n"


def test_with_options_only_a_persons_own_words_are_no_answer(host: Host, run: Run) -> None:
    def answer() -> None:
        with pytest.raises(InvalidReply, match="takes only its options"):
            answer_first(host, "maybe")
        answer_first(host, "no")

    with in_thread(answer):
        result = run("ask", "Deploy?", "-o", "Yes", "-o", "No", "--options-only")

    assert (result.exit_code, result.stdout) == (0, "No\n")


def test_json_tells_everything(host: Host, run: Run) -> None:
    with in_thread(lambda: answer_first(host, "in my own words")):
        result = run("ask", "Why?", "--json", "--group", "scripts")

    told = json.loads(result.stdout)
    assert (told["outcome"], told["answered_by"]) == ("answered", "ben")
    assert told["answers"] == [{"question": "Why?", "selected": [], "text": "in my own words"}]
    assert host.client.question(told["request_id"])["group"] == "scripts"
    assert told["short_id"]


def test_declined_exits_with_2_and_says_why(host: Host, run: Run) -> None:
    def decline() -> None:
        host.reply(until(host.client.pending)[0]["short_id"], "decline", "ben", reason="no time")

    with in_thread(decline):
        result = run("ask", "Deploy?")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Declined by ben: no time" in result.stderr


def test_no_answer_in_time_exits_with_3_and_leaves_the_question_open(host: Host, run: Run) -> None:
    result = run("ask", "Deploy?", "--timeout", "0.2")

    pending = host.client.pending()
    assert (result.exit_code, result.stdout) == (3, "")
    assert "stays open" in result.stderr
    assert [view["state"] for view in pending] == ["open"]
    until(lambda: not host.client.pending()[0]["call_waits"])


@pytest.mark.usefixtures("host")
def test_a_default_is_printed_and_is_no_success(run: Run) -> None:
    result = run("ask", "Branch?", "--timeout", "0.2s", "--default", "main")

    assert (result.exit_code, result.stdout) == (3, "main\n")
    assert "Nobody answered" in result.stderr


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    "wrong",
    [
        ["no text: \udcff"],
        [""],
        ["Deploy?", "-o", "Yes", "-o", "yes"],
        ["Deploy?", "-o", " "],
        ["Deploy?", "-o", "\udcff"],
        [],
        ["Deploy?", "--multi"],
        ["Deploy?", "--options-only"],
        ["Deploy?", "-o", "Yes", "--default", "Perhaps"],
        ["Deploy?", "--timeout", "soon"],
        ["Deploy?", "--timeout", "0"],
        ["Deploy?", "--group", "../escape"],
        ["Deploy?", "--urgency", "extreme"],
    ],
)
def test_wrong_use_cannot_be_taken_for_a_declined_question(run: Run, wrong: list[str]) -> None:
    result = run("ask", *wrong)

    assert result.exit_code == 64
    assert "Error: " in result.stderr


@pytest.mark.usefixtures("host")
def test_a_default_has_to_be_one_of_the_options(run: Run) -> None:
    wrong = run("ask", "Deploy?", "-o", "Yes", "-o", "No", "--default", "Perhaps")
    right = run("ask", "Deploy?", "-o", "Yes", "-o", "No", "--default", "No", "--timeout", "0.2")

    assert "--default 'Perhaps' is not one of the options: Yes, No" in wrong.stderr
    assert (right.exit_code, right.stdout) == (3, "No\n")


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["x" * 20_001], "the question is too long: 20001 characters, at most 20000"),
        (["?", "-o", "x" * 501], "an option is too long: 501 characters, at most 500"),
        (["?", "--default", "x" * 501], "--default is too long: 501 characters, at most 500"),
        (["?", "--title", "x" * 501], "--title is too long: 501 characters, at most 500"),
        (
            ["?", *(word for n in range(101) for word in ("-o", str(n)))],
            "101 options are too many: at most 100",
        ),
    ],
)
def test_what_is_too_long_is_wrong_use(run: Run, wrong: list[str], told: str) -> None:
    result = run("ask", *wrong)

    assert result.exit_code == 64
    assert told in result.stderr


@pytest.mark.usefixtures("host")
def test_what_the_host_refuses_is_told_with_the_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYNCHY_TASK", "x" * 501)

    result = run("ask", "Deploy?")

    assert result.exit_code == 1
    assert "at most" in result.stderr


def test_ctrl_c_tells_the_host_that_nobody_waits(host: Host) -> None:
    process = start_pynchy(host, "ask", "Deploy?", stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert "Asked as" in process.stderr.readline()
    process.send_signal(signal.SIGINT)

    with process:
        rest = process.stderr.read()

    assert process.returncode == 130
    assert "stays open" in rest
    until(lambda: not host.client.pending()[0]["call_waits"])


def test_a_runner_asks_as_its_own_group(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYNCHY_IPC_DIR", str(host.data.ipc / "web-team"))
    with in_thread(lambda: answer_first(host, "yes")):
        result = run("ask", "Deploy?", "--json")

    assert host.client.question(json.loads(result.stdout)["request_id"])["group"] == "web-team"


def test_a_hint_names_a_folder_that_is_not_the_usual_one(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYNCHY_DATA_DIR")
    folder = f"--data-dir {host.data.path}"
    with in_thread(lambda: answer_first(host, "yes")):
        asked = run("ask", "Deploy?", "--data-dir", str(host.data.path))
    absent = run("pending", "--data-dir", "/nowhere at all")

    assert f"answer with: {own_call()} answer {folder} " in asked.stderr
    assert "pynchy serve --data-dir '/nowhere at all'" in absent.stderr
