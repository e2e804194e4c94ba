"""An answer for whom nobody waits any more: what the commands and doctor say of it."""

import json

import pytest
from tests.unit.cli.support import Host, Run, until

from pynchy.config import Settings


@pytest.fixture
def settings() -> Settings:
    return Settings.model_validate({"http": {"port": 0}, "receipt_grace": 0})


def given_up(run: Run, host: Host) -> str:
    """Ask, stop waiting, and return the id of the question that stays open."""
    run("ask", "Deploy?", "-o", "Yes", "-o", "No", "--timeout", "0.01")
    [view] = until(host.client.pending)
    until(lambda: not host.client.question(view["short_id"])["call_waits"])
    return str(view["short_id"])


def test_an_answer_after_ask_gave_up_is_said_to_reach_nobody(host: Host, run: Run) -> None:
    short_id = given_up(run, host)

    answered = run("answer", short_id, "Yes")

    assert answered.exit_code == 0
    assert "Nobody waits for this answer any more" in answered.stderr
    assert "It is kept" in answered.stderr


def test_a_remedy_that_cannot_work_is_not_offered(host: Host, run: Run) -> None:
    short_id = given_up(run, host)
    run("answer", short_id, "Yes")
    until(lambda: host.client.question(short_id)["state"] == "undelivered")

    shown = run("pending").stdout, run("show", short_id).stdout
    doctor = json.loads(run("doctor", "--json").stdout)
    retried = run("retry", short_id)
    dismissed = run("dismiss", short_id)

    assert not any("pynchy retry" in text for text in shown)
    assert all(f"pynchy dismiss {short_id}" in text for text in shown[1:])
    found = [f for f in doctor if f["check"] == "host" and f["status"] != "ok"]
    assert [(f["status"], "retry" in f["fix"]) for f in found] == [("warning", False)]
    assert (retried.exit_code, dismissed.exit_code) == (1, 0)
    assert "no launcher" in retried.stderr


def test_an_answer_that_was_never_delivered_is_marked_in_history(host: Host, run: Run) -> None:
    short_id = given_up(run, host)
    run("answer", short_id, "Yes")
    until(lambda: host.client.question(short_id)["state"] == "undelivered")
    run("dismiss", short_id)
    until(lambda: host.client.question(short_id)["state"] == "closed")

    [line] = run("history").stdout.splitlines()

    assert line.split("\t")[3] == "answered"
    assert line.endswith("\tnot delivered")


def test_dismissing_an_open_question_points_to_decline(host: Host, run: Run) -> None:
    short_id = host.ask("Why?")

    refused = run("dismiss", short_id)

    assert refused.exit_code == 1
    assert f"pynchy decline {short_id}" in refused.stderr
    assert host.client.question(short_id)["state"] == "open"


def test_an_answer_for_a_call_that_waits_needs_no_remark(host: Host, run: Run) -> None:
    assert "Nobody waits" not in run("answer", host.ask("Why?"), "So").stderr


def test_status_does_not_say_that_an_agent_works_that_waits(host: Host, run: Run) -> None:
    (host.data.ipc / "web-team" / "tasks").mkdir(parents=True, mode=0o700, exist_ok=True)
    (host.data.ipc / "web-team" / "tasks" / "a1.lease").write_text("{}")
    host.ask("Why?", lease="a1")

    said = until(lambda: (text := run("status").stdout) and "1 waiting for you" in text and text)

    assert "agents       1 waiting for you" in said
    assert "at work" not in said
    assert json.loads(run("status", "--json").stdout)["agents"] == 1
