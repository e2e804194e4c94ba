"""Every agent is listed once, by what is most pressing about it."""

from datetime import timedelta

from pynchy.inbox.agents import AgentStatus, LiveRunner, agent_views
from pynchy.inbox.keys import BINDINGS, SNOOZES, Action, hint
from pynchy.model import DeliveryPath, Ending, GroupName, Late, OutcomeKind, SessionId, State
from pynchy.testing import NOON, make_pending

ENDED = Ending(OutcomeKind.ANSWERED, NOON)


def runner(lease: str, group: str = "g1") -> LiveRunner:
    return LiveRunner(GroupName(group), lease, SessionId(f"s-{lease}"))


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

    views = agent_views([runner("l1"), runner("l9")], pending, {(GroupName("g1"), "l9"): "busy"})

    assert [(v.name, v.status, v.lives) for v in views] == [
        ("lost", AgentStatus.UNDELIVERED, None),
        ("waits", AgentStatus.WAITING, True),
        ("parked", AgentStatus.PARKED, False),
        ("back", AgentStatus.RESUMING, False),
        ("busy", AgentStatus.WORKING, True),
    ]
    assert views[0].items[0].error == "exit 3"
    assert views[4].items == ()


def test_several_questions_of_one_session_are_one_agent_most_urgent_first() -> None:
    session = SessionId("s1")
    late = make_pending("late", session_id=session, expires_at=NOON + timedelta(days=9))
    soon = make_pending("soon", session_id=session, expires_at=NOON + timedelta(days=1))
    other = make_pending("other", session_id=SessionId("s2"))

    views = agent_views([], [late, other, soon], {})

    assert [[item.short_id for item in view.items] for view in views] == [
        ["ssoon", "slate"],
        ["sother"],
    ]


def test_no_key_means_two_things_and_every_action_has_one() -> None:
    keys = [key for binding in BINDINGS for key in binding.keys]

    assert len(keys) == len(set(keys))
    assert {binding.action for binding in BINDINGS} == set(Action)
    assert hint(Action.CHOOSE) == "1-9"
    assert all((s.length is None) != (s.until_hour is None) for s in SNOOZES)
