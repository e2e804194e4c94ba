"""Cards look as they did when a person last looked at them, and Slack would take each."""

import json
from typing import Any

import pytest
from slack_sdk.models.blocks import Block
from tests.unit.slack.cards import SAMPLES
from tests.unit.slack.gallery import GOLDEN, golden_of, page

from pynchy.channels.slack.blocks import escape
from pynchy.channels.slack.limits import violations


def read(name: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(
        (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    )
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_a_card_looks_as_before(name: str) -> None:
    # After a change that is meant: .venv/bin/python -m tests.unit.slack.gallery --write
    assert golden_of(SAMPLES[name]) == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_slack_would_take_every_message(name: str) -> None:
    messages = [message for kind in read(name).values() for message in kind]

    assert messages
    for message in messages:
        assert violations(message["text"], message["blocks"]) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_slacks_own_models_take_every_block(name: str) -> None:
    blocks = [b for kind in read(name).values() for message in kind for b in message["blocks"]]

    for block in blocks:
        parsed = Block.parse(block)
        assert parsed is not None
        parsed.validate_json()
        assert parsed.to_dict()["type"] == block["type"]


@pytest.mark.parametrize("name", ["attack", "attack_in_a_batch"])
def test_agent_text_neither_mentions_nor_links_nor_formats(name: str) -> None:
    golden = read(name)

    for message in [message for kind in golden.values() for message in kind]:
        assert message["text"] == escape(
            message["text"].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        )
        for written in _mrkdwn(message["blocks"]):
            assert "evil" not in written
            assert "channel" not in written


def _mrkdwn(value: Any) -> list[str]:
    match value:
        case {"type": "mrkdwn", "text": text}:
            return [text]
        case dict():
            return [found for part in value.values() for found in _mrkdwn(part)]
        case list():
            return [found for part in value for found in _mrkdwn(part)]
        case _:
            return []


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(SAMPLES)


def test_the_gallery_shows_every_card() -> None:
    posted = page()

    assert all(f"<h2>{name.replace('_', ' ')}</h2>" in posted for name in SAMPLES)
    assert "<!channel>" not in posted
