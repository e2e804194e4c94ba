"""Which group somebody meant who wrote another name."""

import pytest

from pynchy.misspelling import similar_group


@pytest.mark.parametrize("written", ["web-taem", "webteam", "web_team", "wb-team", "web-teams"])
def test_a_name_with_a_slip_is_taken_for_the_similar_one(written: str) -> None:
    assert similar_group(written, ["web-team", "nightly"]) == "web-team"


@pytest.mark.parametrize(
    ("name", "other"),
    [("team-a", "team-b"), ("agent-1", "agent-12"), ("job7", "job8"), ("cli", "web-team")],
)
def test_names_of_a_series_are_not_taken_for_each_other(name: str, other: str) -> None:
    assert similar_group(name, [other]) == ""


def test_a_name_that_is_known_is_never_doubted() -> None:
    assert similar_group("web-team", ["web-team", "web-teams"]) == ""
