"""Names that people type and programs import: none has gone, none means something else."""

import pytest
from tests.pins import still
from tests.pins.shapes import assert_still_there, lost, read_snapshot
from tests.pins.take import STILL, plain

_READ = sorted(set(STILL) - {"names", "exit-codes"})


@pytest.mark.parametrize("name", _READ)
def test_everything_that_was_there_is_still_there(name: str) -> None:
    assert_still_there(name, plain(STILL[name]()))


def test_everything_that_could_be_imported_still_can_be() -> None:
    pinned = read_snapshot("names")
    assert_still_there("names", plain(still.public_names(pinned)))


def test_every_exit_code_is_the_same_number() -> None:
    assert still.exit_codes() == read_snapshot("exit-codes")


@pytest.mark.parametrize(
    ("pinned", "now"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": "1"}),
        ({"a": {"b": "null"}}, {"a": {"b": "string"}}),
        (["GET", "POST"], ["GET"]),
        ({"a": {}}, {"a": "[]"}),
    ],
)
def test_what_goes_or_changes_is_found(pinned: object, now: object) -> None:
    assert list(lost(pinned, now))


def test_what_is_new_is_welcome() -> None:
    pinned, now = {"a": {"b": 1}, "c": [1]}, {"a": {"b": 1, "x": 2}, "c": [2, 1], "d": 1}
    assert not list(lost(pinned, now))
