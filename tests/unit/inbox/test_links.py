"""Cards in other channels lead to the question's own page, where people can reach it."""

from pynchy.bridge.cards import card_of
from pynchy.testing import make_pending


def test_a_card_links_to_the_page_of_its_question() -> None:
    card = card_of(make_pending("q7"), "https://inbox.example.org")

    assert card.link == "https://inbox.example.org/q/g1/q7"


def test_without_a_public_address_there_is_no_link() -> None:
    assert card_of(make_pending()).link is None
