"""Every agent is listed once, by what is most pressing about it."""

from datetime import timedelta

from pynchy.inbox.agents import AgentStatus, LiveRunner, agent_views
from pynchy.inbox.keys import BINDINGS, SNOOZES, Action, hint
from pynchy.model import DeliveryPath, Ending, GroupName, Late, OutcomeKind, SessionId, State
from pynchy.testing import NOON, make_pending

ENDED = Ending(OutcomeKind.ANSWERED, NOON)


def runner(lease: str, agent: str = "", session_id: str = "") -> LiveRunner:
    return LiveRunner(GroupName("g1"), lease, SessionId(session_id or f"s-{lease}"), agent)


def test_agents_are_listed_by_what_presses_most() -> None:
    pending = [
        make_pending("a", agent="waits", lease="l1"),
        make_pending(
            "b", agent="lost", state=State.UNDELIVERED, ending=ENDED, late=Late(error="exit 3")
        ),
        make_pending("c", agent="back", state=State.RESUMING, ending=ENDED, lease="l3"),
        make_pending("p", agent="parked", lease="l4", parked=True),
        make_pending("d", agent="done", ending=ENDED, delivered=DeliveryPath.LIVE),
    ]

    views = agent_views([runner("l1"), runner("l9", "there")], pending)

    assert [(v.name, v.status, v.lives) for v in views] == [
        ("lost", AgentStatus.UNDELIVERED, None),
        ("waits", AgentStatus.WAITING, True),
        ("parked", AgentStatus.PARKED, False),
        ("back", AgentStatus.RESUMING, False),
        ("there", AgentStatus.IDLE, True),
    ]
    assert views[0].items[0].error == "exit 3"
    assert views[4].items == ()


def test_several_questions_of_one_session_are_one_agent_most_urgent_first() -> None:
    session = SessionId("s1")
    late = make_pending("late", session_id=session, expires_at=NOON + timedelta(days=9))
    soon = make_pending("soon", session_id=session, expires_at=NOON + timedelta(days=1))
    other = make_pending("other", session_id=SessionId("s2"))

    views = agent_views([], [late, other, soon])

    assert [[item.short_id for item in view.items] for view in views] == [
        ["ssoon", "slate"],
        ["sother"],
    ]


def test_a_session_is_one_agent_whatever_its_questions_call_it_and_wherever_they_come_from() -> (
    None
):
    session = SessionId("s1")
    here = make_pending("here", session_id=session, agent="main", lease="l1")
    there = make_pending("there", session_id=session, agent="claude", source="claude-terminal")
    apart = make_pending("apart", session_id=SessionId("s2"), source="claude-terminal")
    live = [runner("l1", session_id="s1"), runner("l2", session_id="s1")]

    views = agent_views(live, [here, there, apart])

    assert [(v.session_id, v.source, v.lives, len(v.asks)) for v in views] == [
        ("s2", "claude-terminal", None, 1),
        ("s1", "pynchy", True, 2),
    ]


def test_a_question_is_of_the_process_that_asked_it_before_it_knew_its_session() -> None:
    early = make_pending("early", lease="l1")
    late = make_pending("late", lease="l1", session_id=SessionId("s1"))

    views = agent_views([runner("l1", session_id="s1")], [early, late])

    assert [view.lives for view in views] == [True, True]


def test_agents_without_lease_and_session_are_told_apart_by_their_names() -> None:
    views = agent_views([], [make_pending(name, agent=name) for name in ("a", "b")])

    assert [view.name for view in views] == ["a", "b"]


def test_no_key_means_two_things_and_every_action_has_one() -> None:
    keys = [key for binding in BINDINGS for key in binding.keys]

    assert len(keys) == len(set(keys))
    assert {binding.action for binding in BINDINGS} == set(Action)
    assert hint(Action.CHOOSE) == "1-9"
    assert all((s.length is None) != (s.until_hour is None) for s in SNOOZES)
