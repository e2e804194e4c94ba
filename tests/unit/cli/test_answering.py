"""pending, show, answer, decline, retry, history and sweep against a real host."""

import json

import pytest
from tests.unit.cli.support import Host, Run, until

from pynchy.cli.events import read_events
from pynchy.config import Settings

DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}
COLOURS = {"question": "Colours?", "options": ["Red", "Green", "Blue"], "multiSelect": True}


@pytest.mark.usefixtures("host")
def test_nothing_pending_is_an_empty_list(run: Run) -> None:
    assert run("pending", "--json").output == "[]\n"
    assert 'pynchy ask "Deploy?"' in run("pending").output


def test_pending_lists_one_plain_line_without_a_terminal(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY, agent="claude")

    line = run("pending").output

    fields = line.rstrip("\n").split("\t")
    assert fields[:4] == [short_id, "web-team/claude", "Deploy?", "Yes / No"]
    assert fields[6] == "open"
    assert "\x1b" not in line


def test_pending_json_is_what_the_host_lists(host: Host, run: Run) -> None:
    host.ask(DEPLOY)
    host.ask("Why?" + " really" * 100)

    listed = json.loads(run("pending", "--json").output)

    assert listed == host.client.pending()
    assert [view["request_id"] for view in listed] == ["q001", "q002"]
    wanted = "request_id short_id group agent state questions channel_name timestamp expires_at"
    assert set(wanted.split()) <= set(listed[0])
    assert [view["kind"] for view in listed] == ["question", "question"]


@pytest.mark.parametrize("value", ["1", "Yes", "yes"])
def test_the_answer_that_wins_exits_with_0(host: Host, run: Run, value: str) -> None:
    short_id = host.ask(DEPLOY)

    result = run("answer", short_id, value)

    assert (result.exit_code, result.stdout) == (0, f"{short_id} answered: Yes\n")
    ending = host.client.question("q001")["ending"]
    assert (ending["answered_by"], ending["answers"][0]["selected"]) == ("ana", ["Yes"])


def test_second_answer_is_told_how_the_question_ended(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)
    run("answer", short_id, "Yes", "--by", "ben")

    for late in (run("answer", short_id, "No"), run("decline", short_id)):
        assert late.exit_code == 4
        assert "already over: answered by ben (local): Yes" in late.stderr
        assert late.stdout == ""


def test_with_json_the_question_tells_what_won_whoever_won(host: Host, run: Run) -> None:
    short_id, other = host.ask(DEPLOY), host.ask(DEPLOY)

    won = run("answer", short_id, "Yes", "--by", "ben", "--json")
    late = run("answer", short_id, "No", "--json")
    refused = run("decline", other, "--reason", "no", "--json")
    too_late = run("decline", other, "--json")

    assert [r.exit_code for r in (won, late, refused, too_late)] == [0, 4, 0, 4]
    for result in (won, late):
        ending = json.loads(result.stdout)["ending"]
        assert (ending["answered_by"], ending["answers"][0]["selected"]) == ("ben", ["Yes"])
    for result in (refused, too_late):
        assert json.loads(result.stdout)["ending"]["outcome"] == "declined"
    assert "already over" in late.stderr


def test_with_json_a_part_of_the_answers_still_exits_with_6(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY, DEPLOY)

    part = run("answer", short_id, "--question", "1", "Yes", "--json")
    nothing = run("answer", short_id, "--json")

    assert part.exit_code == 6
    assert json.loads(part.stdout)["ending"] is None
    assert nothing.exit_code == 2


def test_the_request_id_and_a_hash_sign_find_the_question_too(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    assert run("show", "q001").exit_code == 0
    assert run("answer", f"#{short_id.upper()}", "2").stdout == f"{short_id} answered: No\n"


def test_an_unknown_id_gets_near_ones_suggested(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    near = run("answer", short_id[:-1], "Yes")
    far = run("show", "0000000")
    path = run("decline", "../../healthz")

    assert near.exit_code == far.exit_code == path.exit_code == 1
    assert f"did you mean {short_id}?" in near.stderr
    assert "pynchy pending" in far.stderr


def test_a_value_that_fits_nothing_is_told_what_is_allowed(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    result = run("answer", short_id, "3")

    assert result.exit_code == 1
    assert "there is no option 3" in result.stderr
    assert "one of: 1. Yes, 2. No" in result.stderr
    assert host.client.question(short_id)["ending"] is None


def test_what_is_nearly_an_option_is_asked_back_and_can_be_said_as_text(
    host: Host, run: Run
) -> None:
    short_id = host.ask(DEPLOY)

    asked_back = run("answer", short_id, "yse")
    meant = run("answer", short_id, "--text", "yse")

    assert asked_back.exit_code == 1
    assert "did you mean “Yes”? Say “1” for number 1" in asked_back.stderr
    assert "or your own words with --text" in asked_back.stderr
    assert "quotation marks" not in asked_back.stderr
    assert (meant.exit_code, meant.stdout) == (0, f"{short_id} answered: yse\n")
    answers = host.client.question(short_id)["ending"]["answers"]
    assert (answers[0]["selected"], answers[0]["text"]) == ([], "yse")


def test_text_beside_a_value_goes_along_with_that_option(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    refused = run("answer", short_id, "maybe", "--text", "but slowly")
    taken = run("answer", short_id, "1", "--text", "but slowly")

    assert refused.exit_code == 1
    assert "beside --text only options can be named" in refused.stderr
    assert taken.stdout == f"{short_id} answered: Yes — but slowly\n"


def test_text_for_one_of_several_questions_needs_its_number(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY, "Why?")

    assert "--question N" in run("answer", short_id, "--text", "yse").stderr
    assert run("answer", short_id, "--text", "yse", "--question", "3").exit_code == 1
    assert run("answer", short_id, "--text", "yse", "--question", "1").exit_code == 6
    assert run("answer", short_id, "--text", "2", "--question", "2").exit_code == 0
    answers = host.client.question(short_id)["ending"]["answers"]
    assert [answer["text"] for answer in answers] == ["yse", "2"]


@pytest.mark.parametrize(
    "said", [["maybe"], ["--text", "maybe"], ["Yes", "--text", "maybe"]], ids=" ".join
)
def test_where_only_options_count_own_words_are_refused(
    host: Host, run: Run, said: list[str]
) -> None:
    short_id = host.ask({**DEPLOY, "options_only": True})

    result = run("answer", short_id, *said)

    assert result.exit_code == 1
    assert "takes only its options, not your own words: choose 1 to 2" in result.stderr
    assert "own words, with" not in result.stderr
    assert "(only these)" in run("show", short_id).output
    assert run("answer", short_id, "yes").exit_code == 0


def test_a_part_of_the_answers_exits_with_6_and_says_what_is_missing(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY, COLOURS)

    first = run("answer", short_id, "Yes", "--question", "1")
    second = run("answer", short_id, "1", "3", "--question", "2")

    assert first.exit_code == 6
    assert "2. Colours?" in first.stdout
    assert "1. Deploy?" not in first.stdout
    assert (second.exit_code, second.stdout) == (0, f"{short_id} answered: Yes; Red, Blue\n")


def test_one_value_for_several_questions_is_told_how_to_answer_one_of_them(
    host: Host, run: Run
) -> None:
    short_id = host.ask(DEPLOY, COLOURS)

    result = run("answer", short_id, "Yes")
    chosen = run("answer", short_id, "Yes", "--question", "1")

    assert result.exit_code == 1
    assert "2 questions were asked and 1 value given" in result.stderr
    assert f"pynchy answer {short_id} --question N VALUE" in result.stderr
    assert chosen.exit_code == 6


def test_a_question_that_is_not_there_is_refused(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    result = run("answer", short_id, "Yes", "--question", "2")

    assert result.exit_code == 1
    assert "there is no question 2" in result.stderr


def test_an_answer_is_needed_where_nobody_can_be_asked(host: Host, run: Run) -> None:
    result = run("answer", host.ask(DEPLOY))

    assert result.exit_code == 2
    assert "pynchy answer" in result.stderr


def test_declining_tells_the_agent_why(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    result = run("decline", short_id, "--reason", "not today")

    assert (result.exit_code, result.stdout) == (0, f"{short_id} declined\n")
    assert host.client.question(short_id)["ending"]["reason"] == "not today"


def test_retry_needs_a_delivery_that_failed(host: Host, run: Run) -> None:
    result = run("retry", host.ask(DEPLOY))

    assert result.exit_code == 1
    assert result.stderr.startswith("pynchy: ")


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return Settings.model_validate({"http": {"port": 0}} | getattr(request, "param", {}))


FAILING_LAUNCHER = {
    "groups": {"web-team": {"launcher": {"command": ["false", "{initial}"], "attempts": 1}}},
    "receipt_grace": "0s",
}


@pytest.mark.parametrize("settings", [FAILING_LAUNCHER], indirect=True)
def test_an_answer_that_did_not_arrive_is_listed_and_can_be_retried(host: Host, run: Run) -> None:
    short_id = host.ask(DEPLOY, session_id="s1", wait_seconds=0)
    run("answer", short_id, "Yes")
    until(lambda: host.client.question(short_id)["state"] == "undelivered")

    listed = run("pending").stdout
    swept = run("sweep", "--dry-run").stdout
    retried = run("retry", short_id)

    assert "undelivered" in listed
    assert f"pynchy retry {short_id}" in swept
    assert (retried.exit_code, retried.stderr) == (0, "")
    until(lambda: _count(host, "undelivered") == 2)


def test_a_question_is_shown_whole_and_its_text_is_harmless(host: Host, run: Run) -> None:
    option = {"label": "[red]Go\x1b[2J", "preview": "+ a\n- b", "description": "now"}
    long = {"label": "Stay\nand wipe the disk", "description": "later\n\nor never"}
    short_id = host.ask(
        {"question": "Turn \u202eback?\nReally?", "options": [option, long]}, title="T"
    )

    shown = run("show", short_id).stdout

    assert "Turn ⟨U+202E⟩back?\nReally?" in shown
    assert "   1  [red]Go⟨U+001B⟩[2J  now\n      │ + a\n      │ - b\n" in shown
    assert "   2  Stay ⏎ and wipe the disk\n      later\n      or never\n" in shown
    assert "card     local: shown" in shown
    assert f"pynchy answer {short_id}" in shown
    assert "\x1b" not in shown


def test_show_json_is_the_question(host: Host, run: Run) -> None:
    shown = json.loads(run("show", host.ask(DEPLOY), "--json").stdout)

    assert shown["questions"][0]["question"] == "Deploy?"


def test_history_filters_by_group_and_outcome(host: Host, run: Run) -> None:
    for group, verb in (("a", "answer"), ("b", "decline")):
        short_id = host.ask("Why?", group=group)
        assert run(verb, short_id, *(["because"] if verb == "answer" else [])).exit_code == 0
        # The agent takes what came, so that the question is over.
        (host.data.ipc / group / "tasks" / f"{_id_of(host, short_id)}.received").touch()
        until(lambda short_id=short_id: _is_closed(host, short_id))

    both = json.loads(run("history", "--json").stdout)
    answered = run("history", "--group", "a").stdout
    declined = json.loads(run("history", "--outcome", "declined", "--json").stdout)
    none = run("history", "--group", "nobody")

    assert [view["group"] for view in both] == ["b", "a"]
    assert answered.split("\t")[2:6] == ["Why?", "answered", "because", "ana"]
    assert [view["group"] for view in declined] == ["b"]
    assert (none.exit_code, none.stdout) == (0, "No closed question matches.\n")


def test_sweep_says_that_nothing_is_stale(host: Host, run: Run) -> None:
    host.ask(DEPLOY)

    assert run("sweep").stdout == "Nothing is stale.\n"
    assert json.loads(run("sweep", "--dry-run", "--json").stdout) == []


@pytest.mark.parametrize(
    "command",
    [
        ["pending", "--json"],
        ["pending", "--watch"],
        ["answer", "abcd", "1"],
        ["decline", "abcd"],
        ["retry", "abcd"],
        ["show", "abcd"],
        ["history"],
        ["sweep"],
        ["events", "--follow"],
        ["ask", "Deploy?"],
    ],
)
def test_without_a_host_the_exit_code_is_5_with_a_hint(run: Run, command: list[str]) -> None:
    result = run(*command)

    assert result.exit_code == 5
    assert "pynchy serve" in result.stderr
    assert result.stdout == ""


def _count(host: Host, kind: str) -> int:
    return sum(event["type"] == kind for event in read_events(host.data.audit))


def _id_of(host: Host, short_id: str) -> str:
    return str(host.client.question(short_id)["request_id"])


def _is_closed(host: Host, short_id: str) -> bool:
    return bool(host.client.question(short_id)["state"] == "closed")
