"""Agents choose their request ids: no reply may reach another question by them."""

import json

import pytest
from tests.unit.cli.support import Host, Run
from tests.unit.cli.test_terminal import at_terminal

DEPLOY = {"question": "Deploy to production?", "options": ["Yes", "No"]}
COLOUR = {"question": "Which colour?", "options": ["Red", "Blue"]}
EVIL = "boxed"


def is_open(host: Host, group: str, request_id: str) -> bool:
    return host.client.question_of(group, request_id)["ending"] is None


def test_a_card_that_is_shown_is_answered_though_its_request_id_is_anothers_short_id(
    host: Host,
) -> None:
    theirs = host.ask(DEPLOY, request_id="deploy-7")
    lure = host.ask(COLOUR, group=EVIL, request_id=theirs)

    with at_terminal(host, "answer", lure) as (terminal, process):
        terminal.wait_for("Which colour?")
        terminal.wait_for("Answer (1-2 or text): ")
        terminal.type("1\n")
        terminal.wait_for(f"{lure} answered: Red")

    assert process.returncode == 0
    assert is_open(host, "web-team", "deploy-7")


@pytest.mark.parametrize("command", ["answer", "decline"])
def test_a_reply_to_a_closed_question_reaches_no_other_that_took_its_id(
    host: Host, run: Run, command: str
) -> None:
    closed = host.ask(COLOUR, request_id="colour-1")
    host.take(host.reply(closed, "answer", "ana", values=["Red"]))
    host.ask(DEPLOY, group=EVIL, request_id=closed)
    host.ask(DEPLOY, group=EVIL, request_id="colour-1")

    by_short_id = run(command, closed, *(["Yes"] if command == "answer" else []))
    by_request_id = run(command, "colour-1", *(["Yes"] if command == "answer" else []))

    assert by_short_id.exit_code == 4
    assert by_request_id.exit_code == 1
    assert f"{closed} (group web-team, answered)" in by_request_id.stderr
    assert is_open(host, EVIL, closed)
    assert is_open(host, EVIL, "colour-1")


@pytest.mark.parametrize("command", ["show", "retry", "dismiss"])
def test_an_id_means_the_question_that_the_host_gave_it_to(
    host: Host, run: Run, command: str
) -> None:
    closed = host.ask(COLOUR)
    host.take(host.reply(closed, "answer", "ana", values=["Red"]))
    lure = host.ask(DEPLOY, group=EVIL, request_id=closed)
    host.reply(lure, "answer", "ana", values=["No"])  # kept, undelivered: retry and dismiss fit it

    result = run(command, closed)

    assert "Deploy" not in result.output
    assert result.exit_code == (0 if command == "show" else 1)
    assert host.client.question_of(EVIL, closed)["delivered"] is None


def test_a_request_id_that_one_question_has_is_taken_and_said_to_be_one(
    host: Host, run: Run
) -> None:
    short_id = host.ask(DEPLOY, request_id="deploy-7")

    result = run("answer", "deploy-7", "No", "--json")

    assert json.loads(result.stdout)["ending"]["answers"][0]["selected"] == ["No"]
    assert f"deploy-7 is the request id of {short_id}, group web-team" in result.stderr


def test_a_request_id_that_several_groups_use_is_asked_back(host: Host, run: Run) -> None:
    mine = host.ask(DEPLOY, request_id="deploy-7")
    theirs = host.ask(COLOUR, group=EVIL, request_id="deploy-7")

    result = run("answer", "deploy-7", "1")

    assert result.exit_code == 1
    assert f"{mine} (group web-team, open)" in result.stderr
    assert f"{theirs} (group {EVIL}, open)" in result.stderr
    assert len(host.client.pending()) == 2
