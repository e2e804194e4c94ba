"""Finding questions without a search, and ids made for thumbs."""

from dataclasses import replace
from pathlib import Path

import pytest

from pynchy.errors import AmbiguousQuestion, UnknownQuestion
from pynchy.folder import Folder
from pynchy.model import CardRef, GroupName, ShortId
from pynchy.pending.index import PendingIndex
from pynchy.pending.short_ids import ALPHABET, ShortIds
from pynchy.testing import make_pending


@pytest.fixture
def index() -> PendingIndex:
    index = PendingIndex()
    index.put(make_pending("q1", short_id="ab2c"))
    index.put(make_pending("q2", short_id="xy3z", cards=(CardRef("slack", "C1"),)))
    return index


def test_a_question_is_found_by_every_id(index: PendingIndex) -> None:
    assert index.resolve("q1").request_id == "q1"
    assert index.resolve("ab2c").request_id == "q1"
    assert index.resolve("#AB2C").request_id == "q1"
    assert [p.request_id for p in index.in_chat("slack", "C1")] == ["q2"]
    assert [p.request_id for p in index.in_group(GroupName("g1"))] == ["q1", "q2"]


def test_an_unknown_id_is_said_to_be_unknown(index: PendingIndex) -> None:
    with pytest.raises(UnknownQuestion, match="no open question has the id q9"):
        index.resolve("q9")


def test_an_id_that_two_groups_share_is_not_guessed(index: PendingIndex) -> None:
    index.put(make_pending("q1", group=GroupName("g2"), short_id="mn4p"))

    with pytest.raises(AmbiguousQuestion, match="use the short id"):
        index.resolve("q1")
    assert index.resolve("mn4p").group == "g2"


def test_a_removed_question_leaves_no_trace(index: PendingIndex) -> None:
    index.remove((GroupName("g1"), index.resolve("q2").request_id))

    assert len(index) == 1
    assert index.in_chat("slack", "C1") == []
    assert not index.has_short_id(ShortId("xy3z"))
    assert index.count_in_group(GroupName("g1")) == 1


def test_a_card_added_later_is_found_by_its_chat(index: PendingIndex) -> None:
    question = index.resolve("q1")

    index.put(question.with_card(CardRef("slack", "C2")))

    assert [p.request_id for p in index.in_chat("slack", "C2")] == ["q1"]


def test_every_way_leads_to_the_question_as_it_was_put_last(index: PendingIndex) -> None:
    newest = replace(index.resolve("q2"), title="again", cards=(CardRef("slack", "C9"),))

    index.put(newest)

    assert index.get(newest.key) is newest
    assert index.resolve("q2") is index.resolve("xy3z") is newest
    assert index.in_group(newest.group)[-1] is newest
    assert index.in_chat("slack", "C9") == [newest]
    assert index.in_chat("slack", "C1") == []


def test_short_ids_are_typeable_and_differ(tmp_path: Path) -> None:
    ids = ShortIds(Folder(tmp_path), lambda _: False)

    made = [ids.make() for _ in range(2_000)]

    assert len(set(made)) == 2_000
    assert all(len(i) == 4 and set(i) <= set(ALPHABET) and not i.isdigit() for i in made)
    assert not set("01ilou") & set(ALPHABET) - {"u"}


def test_short_ids_are_not_repeated_after_a_restart(tmp_path: Path) -> None:
    before = ShortIds(Folder(tmp_path), lambda _: False)
    first = {before.make() for _ in range(300)}

    after = ShortIds(Folder(tmp_path), lambda _: False)
    second = {after.make() for _ in range(300)}

    assert not first & second


def test_a_short_id_in_use_is_passed_over(tmp_path: Path) -> None:
    probe = ShortIds(Folder(tmp_path), lambda _: False)
    taken = {probe.make() for _ in range(10)}
    (tmp_path / "short_ids.json").write_text('{"next": 0}')
    first = ShortIds(Folder(tmp_path), lambda _: False).make()
    (tmp_path / "short_ids.json").write_text('{"next": 0}')

    made = ShortIds(Folder(tmp_path), lambda short_id: short_id in {first, *taken}).make()

    assert made not in {first, *taken}
