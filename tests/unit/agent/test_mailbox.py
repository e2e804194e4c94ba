"""The files: whole or not there, taken once, and never trusted."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.conftest import Mailbox as Folders

from agent_runner.asking import Mailbox, Option, Outcome, Question, Request, RequestId, wire
from agent_runner.asking.mailbox import create_once, read_small, write_whole
from agent_runner.errors import BadFile

Q1 = RequestId("q1")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def test_of_many_claims_one_wins(mailbox: Folders) -> None:
    files = Mailbox(mailbox.path)

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda _: files.claim(Q1), range(8)))

    assert won.count(True) == 1
    assert not files.claim(Q1)


def test_a_receipt_has_the_shape_of_the_contract(mailbox: Folders) -> None:
    Mailbox(mailbox.path).claim(Q1)

    receipt = json.loads((mailbox.tasks / "q1.received").read_bytes())

    assert set(receipt) == {"v", "by", "at"}
    assert (receipt["v"], receipt["by"]) == (1, "waiter")
    assert receipt["at"].endswith("Z")


def test_a_claim_whose_content_cannot_be_written_is_still_ours(
    mailbox: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)

    assert Mailbox(mailbox.path).claim(Q1)
    assert not Mailbox(mailbox.path).claim(Q1)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="no space"):
        write_whole(tmp_path / "a.json", b"{}")
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_place_of_a_receipt_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "q1.received").symlink_to(target)

    assert not create_once(tmp_path / "q1.received", b"{}")
    assert not target.exists()


def test_only_small_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "big").write_bytes(b"x" * 11)
    (tmp_path / "link").symlink_to(tmp_path / "big")

    with pytest.raises(BadFile, match="regular"):
        read_small(tmp_path / "fifo", 10)
    with pytest.raises(BadFile, match="larger"):
        read_small(tmp_path / "big", 10)
    with pytest.raises(OSError, match="symbolic"):
        read_small(tmp_path / "link", 10)


def test_a_folder_in_the_place_of_a_response_is_a_bad_file(mailbox: Folders) -> None:
    (mailbox.responses / "q1.json").mkdir()

    with pytest.raises(BadFile):
        Mailbox(mailbox.path).read_response(Q1)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_response_or_a_bad_file(data: bytes) -> None:
    try:
        result = wire.decode_response(data, Q1)
    except BadFile:
        return
    assert result.request_id == Q1


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("outcome", "answers", "answered_by", "channel", "answered_at", "error", "reason"),
            json_values,
        ),
    )
)
def test_any_fields_are_a_response_or_a_bad_file(fields: dict[str, object]) -> None:
    data = json.dumps({"v": 1, "request_id": "q1", **fields}).encode()

    try:
        result = wire.decode_response(data, Q1)
    except BadFile:
        return
    assert isinstance(result.outcome, Outcome)


def test_an_undeliverable_response_has_its_error() -> None:
    data = b'{"v": 1, "request_id": "q1", "outcome": "undeliverable", "error": "no channel"}'

    result = wire.decode_response(data, Q1)

    assert (result.outcome, result.error) == (Outcome.UNDELIVERABLE, "no channel")


def test_a_request_leaves_out_what_is_empty() -> None:
    question = Question("Which?", options=(Option("a", preview="p"), Option("b")))

    fields = json.loads(
        wire.encode_request(Request((question,), request_id=Q1), session_id="", lease="l")
    )

    assert fields == {
        "v": 1,
        "type": "ask_user:ask",
        "request_id": "q1",
        "questions": [
            {
                "question": "Which?",
                "options": [{"label": "a", "preview": "p"}, {"label": "b"}],
                "multiSelect": False,
            }
        ],
        "urgency": "normal",
        "lease": "l",
    }


def test_that_only_options_count_is_written_and_read() -> None:
    question = Question("Which?", options=(Option("a"),), options_only=True)

    fields = json.loads(
        wire.encode_request(Request((question,), request_id=Q1), session_id="", lease="l")
    )
    [read] = wire.decode_questions(
        [{"question": "Which?", "options": [{"label": "a"}], "accepts_text": "no"}]
    )

    assert fields["questions"][0]["options_only"] is True
    assert read == question


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{",
        '{"v": 2, "wait_seconds": 5}',
        '{"v": 1}',
        '{"v": 1, "wait_seconds": "5"}',
        '{"v": 1, "wait_seconds": -1}',
        '{"v": 1, "wait_seconds": true}',
    ],
)
def test_without_a_usable_setting_a_call_blocks_for_half_an_hour(
    mailbox: Folders, content: str | None
) -> None:
    if content is not None:
        (mailbox.input / "host.json").write_text(content)

    assert Mailbox(mailbox.path).wait_seconds() == 1800
