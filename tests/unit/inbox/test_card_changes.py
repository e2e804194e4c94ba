"""What an open page hears first, while one group asks and withdraws as fast as it may."""

import json
from collections.abc import Iterator
from itertools import count

from pynchy.audit import AuditLine
from pynchy.events import EventKind
from pynchy.http.card_changes import MAX_ANNOUNCEMENTS, CardChanges

NUMBERS = count(1)


def line(kind: EventKind, group: str, request_id: str) -> AuditLine:
    data = json.dumps({"event": kind, "group": group, "id": request_id}).encode()
    return AuditLine(next(NUMBERS), kind, data)


def told(changes: CardChanges) -> Iterator[tuple[str, str, str]]:
    while (one := changes.next()) is not None:
        value = json.loads(one.data)
        yield value["event"], value["group"], value["id"]


def test_a_page_heard_of_every_question_that_was_over_already() -> None:
    changes = CardChanges()
    for number in range(100):
        changes.add([line(EventKind.ASKED, "evil", f"e{number}")])
        changes.add([line(EventKind.SHOWN, "evil", f"e{number}")])
    changes.add([line(EventKind.ASKED, "good", "g1")])
    for number in range(100):
        for kind in (EventKind.WITHDRAWN, EventKind.CARD_SETTLED, EventKind.CLOSED):
            changes.add([line(kind, "evil", f"e{number}")])

    assert list(told(changes)) == [("asked", "good", "g1")]


def test_a_page_heard_of_another_group_behind_all_cards_of_the_first() -> None:
    changes = CardChanges()
    changes.add(line(EventKind.ASKED, "evil", f"e{number}") for number in range(100))
    changes.add([line(EventKind.ASKED, "good", "g1"), line(EventKind.ASKED, "good", "g2")])

    order = [request_id for _, _, request_id in told(changes)]

    assert order[:5] == ["e0", "g1", "e1", "g2", "e2"]
    assert len(order) == 102


def test_many_changes_of_one_card_are_one() -> None:
    changes = CardChanges()
    kinds = [EventKind.ASKED, EventKind.SHOWN, EventKind.PARTLY_ANSWERED]
    changes.add(line(kind, "team", "q1") for kind in kinds)

    assert list(told(changes)) == [("partly_answered", "team", "q1")]


def test_the_end_of_what_a_page_knows_is_told() -> None:
    changes = CardChanges()
    changes.add([line(EventKind.ASKED, "team", "q1")])
    list(told(changes))
    changes.told(("team", "q1"))
    changes.add([line(EventKind.ANSWERED, "team", "q1"), line(EventKind.EXPIRED, "team", "old")])

    assert [kind for kind, _, _ in told(changes)] == ["answered", "expired"]


def test_what_could_not_be_delivered_is_told_to_a_page_that_never_saw_it() -> None:
    changes = CardChanges()
    kinds = [EventKind.ASKED, EventKind.ANSWERED, EventKind.UNDELIVERED]
    changes.add(line(kind, "team", "q1") for kind in kinds)

    assert list(told(changes)) == [("undelivered", "team", "q1")]


def test_announcements_that_wait_are_bounded() -> None:
    changes = CardChanges()
    changes.add(line(EventKind.ANNOUNCED, "evil", f"a{number}") for number in range(100))
    changes.add([line(EventKind.ANNOUNCED, "good", "g1")])

    order = [request_id for _, _, request_id in told(changes)]

    assert order[:2] == ["a80", "g1"]
    assert len(order) == MAX_ANNOUNCEMENTS + 1
