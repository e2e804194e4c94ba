"""Judge one run by the promises, from outside only."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.prove.crash.scenarios import Scenario
from tests.prove.crash.stage import REQUEST_ID, Broken, Click, Json, Stage

from agent_runner.asking import Outcome, Result

# What the event log must have told by the end, beside how the question ended.
TOLD = {"asked", "closed"}
LATE_NOTES = {
    "The agent had stopped; it was resumed and has the answer.",
    "The agent was parked; it was resumed and has the answer.",
    "The agent was parked; it was resumed and knows how this ended.",
}


def require(kept: object, promise: str, *seen: Any) -> None:
    if not kept:
        raise Broken(f"{promise}; seen: {', '.join(map(repr, seen))}")


def check_question(scenario: Scenario, result: Result | None, *, hit: str, killed: bool) -> None:
    """Hold a question that is over to every promise."""
    stage = scenario.stage
    history = json.loads(stage.file("history").read_bytes())
    outcome = json.loads(stage.file("outcomes").read_bytes())
    check_record(scenario, history, outcome)
    check_clicks(stage, scenario, outcome)
    check_delivery(scenario, history, outcome, result)
    check_cards(scenario, history, outcome)
    if killed or "events.jsonl" not in hit:
        check_events(scenario, outcome)


def check_record(scenario: Scenario, history: Json, outcome: Json) -> None:
    asked = [question.question for question in scenario.questions]
    recorded = [question["question"] for question in history["questions"]]
    # What a person reads of a permission or an approval is the host's to write.
    is_kept = recorded == asked if asked else len(recorded) == 1
    require(is_kept, "a recorded question is not lost", recorded)
    require(history["state"] == "closed", "a question that is over is closed", history["state"])
    require(outcome["outcome"] == scenario.outcome, "it ends as it should", outcome)
    ending = history["ending"]
    require(ending["by"] == outcome["by"], "the record tells the outcome", ending, outcome)
    require(ending["answers"] == outcome["answers"], "the record tells the outcome", ending)


def check_clicks(stage: Stage, scenario: Scenario, outcome: Json) -> None:
    """Whoever was thanked has won; whoever came later was told who won, and what."""
    thanked = [click for click in stage.clicks if click.status == 200]
    require(len(thanked) <= 1, "exactly one answer wins", thanked)
    for click in thanked:
        require(outcome["by"].split(", ")[-1] == click.by, "an acknowledged answer survives", click)
        said = outcome["answers"][-1]["selected"]
        require(said == [click.value], "an acknowledged answer survives", click, said)
        kept = outcome["answers"][-1].get("edited") == click.edited
        require(kept, "an acknowledged change of a call survives", click, outcome)
    for click in stage.clicks:
        if click.status == 202:
            number = (click.question or 1) - 1
            said = outcome["answers"][number]["selected"]
            # Whoever answers the same question again while it is open may change it.
            require(said, "an acknowledged part of an answer survives", click, outcome)
        if click.status == 409 and "outcome" in click.body:
            _check_told(click, outcome)
        elif click.status == 409:
            _check_told_of_part(click, outcome)
        known = click.status in {0, 200, 202, 409, 503}
        require(known, "a person is thanked, told, or told to try again", click)
    last = stage.clicks[-1]
    require(last.status == 409, "whoever comes last is told that it is over", last)
    if scenario.outcome == "answered":
        clicked = {click.by for click in stage.clicks if click.status != 409}
        people = set(outcome["by"].split(", "))
        by_rule = scenario.has_rule and outcome["channel"] == "rule"
        require(people <= clicked or by_rule, "nobody is made to answer", outcome)
        enough = len(people) >= scenario.approvals_needed
        require(enough, "as many people approve as must", outcome)


def _check_told(click: Click, outcome: Json) -> None:
    told = (click.body["outcome"], click.body["answered_by"])
    require(told == (outcome["outcome"], outcome["by"]), "later answerers are told", click)
    for answer in outcome["answers"]:
        for label in answer["selected"]:
            require(label in click.body["summary"], "later answerers are told what won", click)


def _check_told_of_part(click: Click, outcome: Json) -> None:
    """Whoever answers a part that somebody else has answered is told by whom, and what."""
    [said] = outcome["answers"][(click.question or 1) - 1]["selected"]
    who = outcome["by"].split(", ")[0]
    told = f"answered by {who} already: {said}" in click.body["error"]
    require(told, "later answerers are told of the part that won", click)


def check_delivery(scenario: Scenario, history: Json, outcome: Json, result: Result | None) -> None:
    """The agent has it exactly once: the call that waits, or one resumed runner."""
    stage = scenario.stage
    answers = [answer["selected"] for answer in outcome["answers"]]
    path = history["delivered"]
    require(path == scenario.delivered, "it is delivered on the path that is there", path)
    response = json.loads(stage.file("responses").read_bytes())
    require(response["outcome"] == outcome["outcome"], "the response tells the outcome", response)
    said = [answer["selected"] for answer in response["answers"]]
    require(said == answers, "the response tells the answer", response)
    edited = next((a["edited"] for a in outcome["answers"] if "edited" in a), None)
    require(response.get("input") == edited, "the response tells what was edited", response)
    applied, started = stage.runs("applied"), stage.runs("started")
    if scenario.delivered != "late":
        require(not started, "no runner is started beside a living agent", started)
    else:
        require(len(applied) == 1, "the resumed session gets it once", applied, started)
        for run in started:
            told = [answer["selected"] for answer in run["initial"]["answers"]]
            right = told == answers and run["initial"]["request_id"] == REQUEST_ID
            require(right, "the resumed session gets the answer", run)
    if scenario.asker is not None:
        require(result is not None, "no agent hangs")
        assert result is not None
        right = (result.outcome, result.request_id) == (Outcome(outcome["outcome"]), REQUEST_ID)
        require(right, "the agent gets the outcome under its id", result, outcome)
        require(not result.repeated, "the agent gets it once", result)
        told = [list(answer.selected) for answer in result.answers]
        require(told == answers, "the agent gets the answer", result, outcome)
        require(result.input == edited, "the agent gets what was edited", result, outcome)


def check_cards(scenario: Scenario, history: Json, outcome: Json) -> None:
    """Shown; shown again only under the same id and saying so; and at last telling the truth."""
    stage = scenario.stage
    if outcome["channel"] == "rule" and not history["cards"]:
        require(not stage.cards(), "what a rule answers is shown nowhere", stage.cards())
        return
    for channel in {"chat", "pager"} & set(scenario.channels):
        mine = [card for card in stage.cards() if card["request_id"] == REQUEST_ID]
        cards = [card for card in mine if card["channel"] == channel]
        shown = [card for card in cards if card["what"] == "shown"]
        [ref] = [ref for ref in history["cards"] if ref["channel"] == channel]
        if ref["state"] == "failed" or not ref["message_id"]:
            # Somebody was first elsewhere: what may be there all the same is settled in vain.
            told = [e for e in stage.events() if e["type"] == "show_failed"]
            known = any(event["channel"] == channel and event["detail"] for event in told)
            require(known, "it is known why a card was not shown", ref)
            continue
        if not shown and not ref["message_id"] and outcome["channel"] != channel:
            # It failed, and somebody answered elsewhere before it was tried again.
            told = [e for e in stage.events() if e["type"] == "show_failed"]
            known = any(event["channel"] == channel and event["detail"] for event in told)
            require(known, "it is known why a card was not shown", ref)
            continue
        require(shown, "a question is shown", channel)
        require(all(c["repeated"] for c in shown[1:]), "a repeated card says so", shown)
        require(len({c["short_id"] for c in cards}) == 1, "a repeat has the same id", cards)
        require(ref["message_id"] == shown[-1]["message_id"], "the last card is known", ref, shown)
        mine = [card for card in cards if card["message_id"] == ref["message_id"]]
        told = mine[-1]
        right = told["what"] == "settled" and told["outcome"] == outcome["outcome"]
        require(right, "no card stays wrong", mine)
        require(told["by"] == outcome["by"], "a card tells who answered", told, outcome)
        said = [answer["selected"] for answer in outcome["answers"]]
        require(told["answers"] == said, "a card tells the answer", told, outcome)
        late = told["delivery"] in LATE_NOTES
        require(late == (scenario.delivered == "late"), "a card tells the way", told)
        dismissed = told["delivery"].startswith("Not delivered, and dismissed")
        require(dismissed == (scenario.delivered == "dismissed"), "a card tells the way", told)
        failed = any(event["type"] == "settle_failed" for event in stage.events())
        if scenario.launcher is None and scenario.dead is not None and not failed:
            notes = [card["delivery"] for card in mine if card["what"] == "settled"]
            require(any("no launcher" in n for n in notes), "the person is told why not", notes)


def check_events(scenario: Scenario, outcome: Json) -> None:
    """A crash may repeat a line but not hide a step, and no number is used twice."""
    events = [event for event in scenario.stage.events() if event["id"] == REQUEST_ID]
    kinds = {event["type"] for event in events}
    arrived = "dismissed" if scenario.delivered == "dismissed" else "delivered"
    expected = TOLD | {outcome["outcome"], arrived}
    if scenario.outcome != "undeliverable" and outcome["channel"] != "rule":
        expected |= {"shown"}
    require(kinds >= expected, "every step is in the event log", expected - kinds)
    numbers = Counter(event["seq"] for event in scenario.stage.events())
    require(max(numbers.values()) == 1, "no event's number is used twice", numbers)
    tellers = {event.get("by") for event in events if event["type"] == outcome["outcome"]}
    require(tellers == {outcome["by"]}, "the event log tells who", tellers, outcome)


def check_refusal(stage: Stage, *, hit: str, killed: bool) -> None:
    """What is malformed is answered, filed and told."""
    response = json.loads(stage.file("responses").read_bytes())
    require(response.get("error"), "the agent is told what was wrong", response)
    filed = list((stage.mailbox / "rejected").glob("[!.]*"))
    require(filed, "what is malformed is filed", filed)
    reasons = [json.loads(path.read_bytes()) for path in filed]
    require(all(reason["reason"] for reason in reasons), "with the reason", reasons)
    if killed or "events.jsonl" not in hit:
        kinds = [event["type"] for event in stage.events()]
        require("rejected" in kinds, "what is malformed is told", kinds)


def check_started(stage: Stage, status: int, told: Json, sessions: list[Json]) -> None:
    """What a person was told was started has run once; nothing runs that nobody can see."""
    known = {session["session_id"] for session in sessions}
    ran = [run["session_id"] for run in stage.runs("started")]
    require(set(ran) <= known, "a session that runs is known", ran, known)
    require(len(ran) == len(set(ran)), "a session is started once", ran)
    require(status in {0, 201} or status >= 400, "a person is told how it went", status, told)
    if status == 201:
        require(told["session_id"] in ran, "what was started has run", told, ran)


def check_rest(stage: Stage, health: Json, pending: list[Json]) -> None:
    """Nothing is left over, and the host is well."""
    require(pending == [], "nothing is pending at the end", pending)
    require(health["open"] == 0, "nothing is open at the end", health)
    left = [
        str(path.relative_to(stage.data))
        for path in stage.data.rglob("*")
        if (path.name.startswith(".tmp-") and not _is_forgotten_later(path))
        or path.match("ipc/*/tasks/*.json")
        or path.match("ipc/*/pending_questions/*")
    ]
    require(not left, "nothing is left lying about", left)


def _is_forgotten_later(path: Path) -> bool:
    """True for what goes when its question or session is past its retention."""
    return path.match("ipc/*/input/*/.tmp-*") or path.match("ipc/*/tasks/.tmp-*")
