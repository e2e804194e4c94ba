"""What programs ask in terminals of phux, as its program meets the host.

phux is played here: it takes what the real program takes, and nothing else.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent, agent_of
from tests.standins.phux import UNKNOWN, PhuxStandIn, refusal
from tests.waiting import until

GROUP = "team"
PANE = "@9"


@pytest.fixture
async def phux(tmp_path: Path) -> AsyncIterator[PhuxStandIn]:
    phux = PhuxStandIn(tmp_path / "phux")
    phux.start(PANE)
    yield phux
    assert phux.refused() == ""


@pytest.fixture
async def host(start_host: StartHost, phux: PhuxStandIn) -> Host:
    host = await start_host(settings(phux))
    await followed(phux)
    return host


def settings(phux: PhuxStandIn, more: str = "") -> str:
    command = json.dumps(str(phux.command))
    return f'{more}\n[groups.{GROUP}]\n[sources.phux]\ngroup = "{GROUP}"\ncommand = {command}\n'


async def followed(phux: PhuxStandIn, terminal: str = PANE) -> None:
    await until(lambda: phux.watchers(terminal), "the host to follow the terminal")
    await until(lambda: phux.calls(f"snapshot --json {terminal}"), "a look at the title")


async def restart(host: Host, phux: PhuxStandIn) -> None:
    """Kill the host, and wait until another one follows the terminal."""
    host.kill()
    await until(lambda: not phux.watchers(PANE), "the end of the host's phux")
    before = len(phux.calls("snapshot"))
    await host.start()
    await until(lambda: len(phux.calls("snapshot")) > before, "a look at the title")
    await followed(phux)


async def asked(host: Host, phux: PhuxStandIn, question: str = "Deploy?", **more: Any) -> Json:
    """Let the terminal ask with options, and return what people are asked."""
    phux.ask(PANE, question, "Yes", "No", **{"id": "q1", **more})
    [found] = await host.listed(1, GROUP)
    return found


async def ended(host: Host, question: Json) -> tuple[str, str | None, str]:
    """Return how a question ended, why, and what its card says of the answer."""
    over = await host.closed(question["request_id"])
    return over["ending"]["outcome"], over["ending"].get("reason"), note(over)


def note(over: Json) -> str:
    return f"{over['delivered']}: {over['delivery_error'] or ''}"


def typed(phux: PhuxStandIn) -> list[list[str]]:
    return phux.calls("agent answer")


async def test_what_a_terminal_asks_is_a_card_and_its_answer_is_typed_once(
    host: Host, phux: PhuxStandIn
) -> None:
    phux.set_title(PANE, "make deploy")
    question = await asked(host, phux)
    [only] = question["questions"]

    assert (question["agent"], question["title"]) == ("terminal @9", "make deploy")
    assert (only["question"], [o["label"] for o in only["options"]]) == ("Deploy?", ["Yes", "No"])
    host.answer(question["short_id"], "Yes")

    assert await ended(host, question) == ("answered", None, "live: ")
    answer = ["agent", "answer", "--id=q1", "--text=Yes", "--json", PANE]
    assert phux.calls() == [answer]


async def test_own_words_are_typed_in_one_line_without_controls(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux)

    host.answer(question["short_id"], "-later,\nplease\x1b[201~\x07; rm")

    await host.closed(question["request_id"])
    [call] = typed(phux)
    assert call[3:5] == ["--text=-later, please; rm", "--allow-unlisted"]


async def test_the_same_ask_again_changes_nothing(host: Host, phux: PhuxStandIn) -> None:
    question = await asked(host, phux)

    phux.report(PANE, "Deploy?", "Yes", "No", id="q1")
    phux.tell(PANE, event="bell")
    phux.open("@10")
    await followed(phux, "@10")
    phux.ask("@10", "Another?")
    found = await host.listed(2, GROUP)

    assert question["request_id"] in [one["request_id"] for one in found]
    assert len(host.pending()) == 2


async def test_another_ask_clears_the_older_one(host: Host, phux: PhuxStandIn) -> None:
    older = await asked(host, phux)

    phux.ask(PANE, "Really deploy?", id="q2")

    outcome = await ended(host, older)
    assert outcome == ("cleared", "the program asks something else", "none: ")
    [newer] = await host.listed(1, GROUP)
    assert newer["questions"][0]["question"] == "Really deploy?"


async def test_a_title_that_asks_nothing_clears_the_card(host: Host, phux: PhuxStandIn) -> None:
    question = await asked(host, phux)

    phux.set_title(PANE, "bash")

    outcome = await ended(host, question)
    assert outcome == ("cleared", "the program asks it no more", "none: ")
    assert host.answer(question["short_id"], "Yes").status == 409
    assert typed(phux) == []


async def test_what_is_asked_anew_in_the_same_words_is_another_question(
    host: Host, phux: PhuxStandIn
) -> None:
    first = await asked(host, phux)
    host.answer(first["short_id"], "Yes")
    await host.closed(first["request_id"])
    phux.set_title(PANE, "bash")

    second = await asked(host, phux)
    host.answer(second["short_id"], "No")

    assert await ended(host, second) == ("answered", None, "live: ")
    assert [call[3] for call in typed(phux)] == ["--text=Yes", "--text=No"]


async def test_a_closed_terminal_takes_its_card_with_it(host: Host, phux: PhuxStandIn) -> None:
    question = await asked(host, phux)

    phux.close(PANE)

    assert await ended(host, question) == ("cleared", "its terminal is closed", "none: ")


async def test_a_server_that_ends_takes_its_cards_with_it_and_may_come_back(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux)

    phux.stop()
    assert (await ended(host, question))[:2] == ("cleared", "phux's server has ended")
    await until(lambda: not phux.watchers(PANE), "the end of phux")
    phux.start(PANE)
    await followed(phux)

    again = await asked(host, phux)
    assert again["request_id"] != question["request_id"]
    assert host.http("GET", "/healthz").body["problems"] == []


async def test_a_restarted_host_asks_nothing_twice_and_types_the_answer(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux)

    await restart(host, phux)
    [again] = await host.listed(1, GROUP)
    phux.report(PANE, "Deploy?", "Yes", "No", id="q1")
    host.answer(again["short_id"], "No")

    assert again["request_id"] == question["request_id"]
    assert await ended(host, again) == ("answered", None, "live: ")
    assert len(host.history()) == 1


async def test_an_older_phux_checks_the_answer_to_what_was_asked_before_a_restart(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux)
    phux.hide_title(PANE)

    await restart(host, phux)
    host.answer(question["short_id"], "No")

    outcome = await ended(host, question)
    assert outcome == ("answered", None, "dismissed: was not typed: the program asks it no more")


async def test_what_asks_no_more_after_a_restart_is_cleared(host: Host, phux: PhuxStandIn) -> None:
    question = await asked(host, phux)
    host.kill()

    phux.set_title(PANE, "bash")
    await host.start()

    assert (await ended(host, question))[:2] == ("cleared", "the program asks it no more")


async def test_what_was_asked_before_the_host_began_is_found(
    start_host: StartHost, phux: PhuxStandIn
) -> None:
    phux.ask(PANE, "Deploy?", "Yes", id="q1")

    host = await start_host(settings(phux))

    [question] = await host.listed(1, GROUP)
    assert question["questions"][0]["question"] == "Deploy?"


async def test_a_title_that_stays_after_the_answer_is_not_asked_again_by_the_next_host(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux)
    host.answer(question["short_id"], "Yes")
    await host.closed(question["request_id"])

    await restart(host, phux)
    phux.open("@10")
    await followed(phux, "@10")
    phux.ask("@10", "Another?")
    [other] = await host.listed(1, GROUP)

    assert other["agent"] == "terminal @10"
    assert len(typed(phux)) == 1


async def test_an_ask_without_an_id_is_pasted_while_it_stands(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux, id="")

    host.answer(question["short_id"], "-y, please")

    assert await ended(host, question) == ("answered", None, "live: ")
    assert phux.calls() == [["paste", "--", PANE, "-y, please"], ["send-keys", PANE, "Enter"]]


async def test_a_phux_that_cannot_answer_pastes(host: Host, phux: PhuxStandIn) -> None:
    phux.instead("agent answer", UNKNOWN)
    question = await asked(host, phux)

    host.answer(question["short_id"], "Yes")

    assert await ended(host, question) == ("answered", None, "live: ")
    assert phux.calls()[1:] == [["paste", "--", PANE, "Yes"], ["send-keys", PANE, "Enter"]]


async def test_nothing_is_pasted_for_what_was_only_heard_before_a_restart(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux, id="")
    phux.hide_title(PANE)

    await restart(host, phux)
    phux.tell(PANE, event="bell")
    host.answer(question["short_id"], "Yes")

    _, _, said = await ended(host, question)
    assert said == "dismissed: was not typed: nobody can tell whether the program still asks it"
    assert phux.calls() == []


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (refusal("ask_stale"), "was not typed: the program asks something else"),
        (refusal("no_active_ask"), "was not typed: the program asks it no more"),
        (refusal("answer_refused", "busy.", 1), "was not typed: phux says: busy"),
        (refusal("answer_delivery_unknown", "hm", 3), "may have been typed: phux says: hm"),
        (refusal("delivery_unknown", "hm", 1), "may have been typed: phux says: hm"),
        ({"exit": 1, "err": "phux: odd\nmore"}, "may have been typed: phux says: phux: odd"),
        ({"exit": 3}, "may have been typed: phux says: exit code 3"),
    ],
)
async def test_the_card_says_what_phux_says_of_the_answer(
    host: Host, phux: PhuxStandIn, does: Json, said: str
) -> None:
    phux.instead("agent answer", does)
    question = await asked(host, phux)

    host.answer(question["short_id"], "Yes")

    assert await ended(host, question) == ("answered", None, f"dismissed: {said}")
    [card] = (await host.closed(question["request_id"]))["cards"]
    assert card["delivery"] == f"The answer {said}."
    assert len(phux.calls()) == 1


async def test_a_host_that_dies_while_it_types_does_not_type_again(
    host: Host, phux: PhuxStandIn
) -> None:
    phux.instead("agent answer", {"hangs": True})
    question = await asked(host, phux)
    host.answer(question["short_id"], "Yes")
    await until(lambda: typed(phux), "the answer to be typed")

    phux.instead("agent answer", None)
    await restart(host, phux)

    said = "may have been typed: pynchy ended while it was being typed"
    assert await ended(host, question) == ("answered", None, f"dismissed: {said}")
    assert len(typed(phux)) == 1


async def test_nothing_is_typed_for_a_question_that_is_declined(
    host: Host, phux: PhuxStandIn
) -> None:
    question = await asked(host, phux)

    host.decline(question["short_id"])

    assert await ended(host, question) == ("declined", None, "none: ")
    assert phux.calls() == []


async def test_lines_that_cannot_be_read_are_skipped(host: Host, phux: PhuxStandIn) -> None:
    for rubbish in (b"rubbish", b"[1]", b'{"event": 7}', b"\xff", b"x" * 200_000, b"[" * 5_000):
        phux.tell_raw(PANE, rubbish)
    phux.tell(PANE, event="asked", id="q0", question="  ", suggestions=[])
    phux.tell("@7", event="asked", id="q0", question="Of another?", suggestions=[])

    question = await asked(host, phux)

    assert question["questions"][0]["question"] == "Deploy?"
    assert host.log.read_text().count("phux.unreadable") == 1


async def test_a_missing_program_is_a_problem(start_host: StartHost, tmp_path: Path) -> None:
    table = f'[groups.{GROUP}]\n[sources.phux]\ngroup = "{GROUP}"\n'
    host = await start_host(f'{table}command = "{tmp_path}/none"\n')

    def problems() -> list[str]:
        found: list[str] = host.http("GET", "/healthz").body["problems"]
        return found

    [problem] = await until(problems, "the problem")
    code, out, _ = await host.cli("doctor", "--config", str(host.config))

    assert problem == f"phux: there is no program {tmp_path}/none here"
    assert code == 1
    assert "command in [sources.phux]" in out


async def test_doctor_counts_the_terminals(host: Host, phux: PhuxStandIn) -> None:
    phux.open("@10")

    _, out, _ = await host.cli("doctor", "--config", str(host.config))

    assert "2 terminals" in out


async def test_a_program_that_keeps_failing_is_a_problem(host: Host, phux: PhuxStandIn) -> None:
    question = await asked(host, phux)

    phux.instead("ls", {"exit": 1, "err": "phux: odd\n"})

    problems = await until(lambda: host.http("GET", "/healthz").body["problems"], "a problem")
    assert problems == ["phux: phux ls fails: phux: odd"]
    assert [one["request_id"] for one in host.pending()] == [question["request_id"]]


async def test_what_pynchy_itself_reported_is_no_question_of_its_own(
    host: Host, phux: PhuxStandIn
) -> None:
    agent = MailboxAgent(host.group(GROUP))
    request_id = agent.ask("Deploy?")
    await host.listed(1, GROUP)

    phux.report(PANE, "Deploy?", "Yes", "No", id=f"pynchy:{GROUP}:{request_id}")
    phux.open("@10")
    await followed(phux, "@10")
    phux.ask("@10", "Another?")
    found = await host.listed(2, GROUP)

    assert {one["agent"] for one in found} == {"", "terminal @10"}
    agent.leave()


async def test_a_report_that_comes_before_its_question_is_no_question_either(
    host: Host, phux: PhuxStandIn
) -> None:
    phux.report(PANE, "Deploy?", id=f"pynchy:{GROUP}:late-one#2")
    agent = MailboxAgent(host.group(GROUP))
    agent.ask("Deploy?", request_id="late-one")
    await host.listed(1, GROUP)

    phux.ask(PANE, "Another?")
    found = await host.listed(2, GROUP)

    assert {one["agent"] for one in found} == {"", "terminal @9"}
    assert host.kinds("late-one")[0] == "asked"
    agent.leave()


async def test_what_an_agent_asks_itself_is_one_card(host: Host, phux: PhuxStandIn) -> None:
    question = await asked(host, phux, id="deploy-1")

    agent = MailboxAgent(host.group(GROUP))
    agent.ask("Deploy?", request_id="deploy-1")

    outcome = await ended(host, question)
    assert outcome[:2] == ("cleared", "the agent has asked it in another way")
    [left] = await host.listed(1, GROUP)
    assert left["request_id"] == "deploy-1"
    agent.leave()


async def test_a_table_that_is_taken_away_ends_its_questions(host: Host, phux: PhuxStandIn) -> None:
    question = await asked(host, phux)

    await host.stop()
    host.configure(f"[groups.{GROUP}]\n")
    await host.start()

    reason = "[sources.phux] is not in the settings any more"
    assert (await ended(host, question))[:2] == ("cleared", reason)
    assert not phux.watchers(PANE)


async def test_an_agent_in_a_terminal_of_phux_is_reported_and_not_asked_twice(
    host: Host, phux: PhuxStandIn
) -> None:
    path = f"{phux.folder}:/usr/bin:/bin"
    in_phux = {"PHUX_TERMINAL_ID": "9", "PATH": path}
    async with agent_of(host, GROUP, **in_phux) as agent:
        asking = agent.asking("Ship it?")
        [question] = await host.listed(1, GROUP)
        [report] = await until(lambda: phux.calls("ask"), "the report")

        name = f"pynchy:{GROUP}:{question['request_id']}"
        suggested = ["--suggest=Yes", "--suggest=No"]
        assert report == ["ask", f"--id={name}", *suggested, "--", PANE, "Ship it?"]
        phux.report(PANE, "Ship it?", "Yes", "No", id=name)
        host.answer(question["short_id"], "Yes")
        assert "Yes" in await asking

    assert len(host.history()) == 1


async def test_nothing_is_reported_where_the_settings_say_so(
    start_host: StartHost, phux: PhuxStandIn
) -> None:
    host = await start_host(settings(phux, "report_to_phux = false"))
    in_phux = {"PHUX_TERMINAL_ID": "9", "PATH": f"{phux.folder}:/usr/bin:/bin"}

    async with agent_of(host, GROUP, **in_phux) as agent:
        asking = agent.asking("Ship it?")
        [question] = await host.listed(1, GROUP)
        host.answer(question["short_id"], "Yes")
        assert "Yes" in await asking

    assert phux.calls("ask") == []
