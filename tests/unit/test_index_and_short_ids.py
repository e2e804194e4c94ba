"""Finding questions without a search, and ids made for thumbs."""

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from pynchy.model import CardRef, GroupName, PendingQuestion, RequestId, ShortId
from pynchy.pending.base import SHORT_ID_ALPHABET, read_short_id
from pynchy.pending.index import PendingIndex, ShortIds, _scatter
from pynchy.safe_folder import Folder
from pynchy.testing import make_pending


@pytest.fixture
def index() -> PendingIndex:
    index = PendingIndex()
    index.put(make_pending("q1", short_id="ab2c"))
    index.put(make_pending("q2", short_id="xy3z", cards=(CardRef("slack", "C1"),)))
    return index


def found(index: PendingIndex, request_id: str) -> PendingQuestion:
    [question] = index.with_request_id(RequestId(request_id))
    return question


def test_a_question_is_found_by_every_id(index: PendingIndex) -> None:
    assert found(index, "q1").request_id == "q1"
    assert index.with_short_id(ShortId("ab2c")) == found(index, "q1")
    assert [p.request_id for p in index.in_group(GroupName("g1"))] == ["q1", "q2"]


def test_an_unknown_id_finds_nothing(index: PendingIndex) -> None:
    assert index.with_request_id(RequestId("q9")) == []
    assert index.with_short_id(ShortId("zzzz")) is None


def test_every_question_of_a_request_id_is_found(index: PendingIndex) -> None:
    index.put(make_pending("q1", group=GroupName("g2"), short_id="mn4p"))

    assert [p.short_id for p in index.with_request_id(RequestId("q1"))] == ["ab2c", "mn4p"]


def test_a_removed_question_leaves_no_trace(index: PendingIndex) -> None:
    index.remove((GroupName("g1"), found(index, "q2").request_id))

    assert len(index) == 1
    assert not index.has_short_id(ShortId("xy3z"))
    assert index.count_in_group(GroupName("g1")) == 1


def test_every_way_leads_to_the_question_as_it_was_put_last(index: PendingIndex) -> None:
    newest = replace(found(index, "q2"), title="again", cards=(CardRef("slack", "C9"),))

    index.put(newest)

    assert index.get(newest.key) is newest
    assert found(index, "q2") is index.with_short_id(ShortId("xy3z")) is newest
    assert index.in_group(newest.group)[-1] is newest


def test_short_ids_are_typeable_and_differ(tmp_path: Path) -> None:
    ids = ShortIds(Folder(tmp_path), lambda _: False)

    made = [ids.make() for _ in range(2_000)]

    assert len(set(made)) == 2_000
    assert all(len(i) == 4 and set(i) <= set(SHORT_ID_ALPHABET) and not i.isdigit() for i in made)
    assert not set("01ilou") & set(SHORT_ID_ALPHABET) - {"u"}


def test_short_ids_are_not_repeated_after_a_restart(tmp_path: Path) -> None:
    before = ShortIds(Folder(tmp_path), lambda _: False)
    first = {before.make() for _ in range(300)}

    after = ShortIds(Folder(tmp_path), lambda _: False)
    second = {after.make() for _ in range(300)}

    assert not first & second


def test_a_short_id_in_use_is_passed_over(tmp_path: Path) -> None:
    state = '{"next": 0, "key": "%s"}' % ("07" * 32)
    (tmp_path / "short_ids.json").write_text(state)
    first = ShortIds(Folder(tmp_path), lambda _: False).make()
    (tmp_path / "short_ids.json").write_text(state)

    made = ShortIds(Folder(tmp_path), lambda short_id: short_id == first).make()

    assert made != first


def test_every_short_id_is_made_once_before_one_comes_back() -> None:
    numbers = random.Random(7).sample(range(len(SHORT_ID_ALPHABET) ** 4), 20_000)  # noqa: S311 - no secret

    scattered = {_scatter(b"k" * 32, number) for number in numbers}

    assert len(scattered) == len(numbers)
    assert max(scattered) < len(SHORT_ID_ALPHABET) ** 4


def test_who_knows_some_short_ids_cannot_tell_the_next(tmp_path: Path) -> None:
    def walk(key: str) -> list[int]:
        (tmp_path / "short_ids.json").write_text(json.dumps({"next": 512, "key": key * 32}))
        ids = ShortIds(Folder(tmp_path), lambda _: False)
        return [_number(ids.make()) for _ in range(50)]

    one, other = walk("07"), walk("08")

    # The secret decides where it goes from the same place, and no step is like another.
    assert not set(one) & set(other)
    steps = {later - earlier for earlier, later in pairwise(one)}
    assert len(steps) == len(one) - 1


def test_each_host_makes_its_own_secret_and_keeps_it(tmp_path: Path) -> None:
    def secret(folder: Path) -> str:
        folder.mkdir(exist_ok=True)
        ShortIds(Folder(folder), lambda _: False).make()
        return str(json.loads((folder / "short_ids.json").read_text())["key"])

    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "short_ids.json").write_text('{"next": 512}')

    made = {secret(tmp_path / name) for name in ("old", "new", "newer")}

    assert len(made) == 3
    assert secret(tmp_path / "new") in made


@pytest.mark.parametrize(
    ("typed", "short_id"),
    [
        ("ab2c", "ab2c"),
        ("#AB2C", "ab2c"),
        ("q1", None),
        ("ab1c", None),
        ("ab2cd", None),
        ("##b2c", None),
        ("\u212ab2c", None),
        ("ab2c\n", None),
    ],
)
def test_what_has_the_shape_of_a_short_id_is_one(typed: str, short_id: str | None) -> None:
    assert read_short_id(typed) == short_id


def _number(short_id: str) -> int:
    return sum(
        SHORT_ID_ALPHABET.index(letter) * len(SHORT_ID_ALPHABET) ** n
        for n, letter in enumerate(short_id)
    )
