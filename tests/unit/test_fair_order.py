"""One group's flood leaves every other group a place among the first."""

from hypothesis import given
from hypothesis import strategies as st

from pynchy.fair_order import SHARE, fair_order, urgency_rank
from pynchy.model import Urgency

Item = tuple[str, int]


def ordered(items: list[Item]) -> list[Item]:
    return fair_order(items, lambda item: item[1], lambda item: item[0])


def test_every_urgency_has_its_own_rank_and_an_unknown_one_is_normal() -> None:
    assert sorted(Urgency, key=urgency_rank) == [Urgency.HIGH, Urgency.NORMAL, Urgency.LOW]
    assert len({urgency_rank(one) for one in Urgency}) == len(Urgency)
    assert urgency_rank("of another host") == urgency_rank(Urgency.NORMAL)


def test_a_flood_of_one_group_does_not_push_another_groups_question_down() -> None:
    flood = [("flood", number) for number in range(1_000)]

    listed = ordered([*flood, ("team", 5_000)])

    assert listed.index(("team", 5_000)) == SHARE


def test_where_nobody_floods_the_order_is_the_one_asked_for() -> None:
    items = [(group, number) for number in range(SHARE) for group in ("a", "b", "c")]

    assert ordered(items) == sorted(items, key=lambda item: item[1])


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 99)), unique=True))
def test_every_group_keeps_its_own_order_and_has_its_share_of_every_turn(items: list[Item]) -> None:
    listed = ordered(items)

    assert sorted(listed) == sorted(items)
    for group in "abcd":
        own = [item for item in listed if item[0] == group]
        assert own == sorted(own, key=lambda item: item[1])
        first = listed[: 4 * SHARE]
        assert len([i for i in first if i[0] == group]) >= min(SHARE, len(own))
