"""One group's mailbox: responses once, receipts decided once, refusals kept and capped."""

from datetime import timedelta
from pathlib import Path

import pytest

from pynchy import wire
from pynchy.errors import MalformedRequest
from pynchy.ipc.mailbox import Mailbox
from pynchy.model import GroupName, RequestId
from pynchy.testing import NOON

Q1 = RequestId("q1")


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(wire.host_json(60))
    return mailbox


def test_preparing_tells_agents_how_long_a_call_waits(mailbox: Mailbox) -> None:
    assert (mailbox.path / "input/host.json").read_text() == '{"v":1,"wait_seconds":60}'


def test_a_response_is_never_changed(mailbox: Mailbox) -> None:
    mailbox.respond(Q1, b"first")
    mailbox.respond(Q1, b"second")

    assert (mailbox.path / "responses/q1.json").read_bytes() == b"first"


def test_host_and_waiter_cannot_both_have_the_receipt(mailbox: Mailbox) -> None:
    (mailbox.path / "tasks/q1.received").write_text('{"v": 1, "by": "waiter"}')

    assert not mailbox.claim(Q1, "secret", NOON)
    assert not mailbox.is_ours(Q1, "secret")
    assert mailbox.is_received(Q1)


def test_the_host_knows_its_own_receipt_again_after_a_crash(mailbox: Mailbox) -> None:
    assert mailbox.claim(Q1, "secret", NOON)

    assert mailbox.claim(Q1, "secret", NOON)
    assert not mailbox.is_ours(Q1, "another")
    assert not mailbox.is_ours(Q1, "")


def test_a_released_receipt_is_free_for_check_answer(mailbox: Mailbox) -> None:
    mailbox.claim(Q1, "secret", NOON)

    mailbox.release(Q1, "another")
    assert mailbox.is_received(Q1)
    mailbox.release(Q1, "secret")
    assert not mailbox.is_received(Q1)


def test_an_unsafe_request_is_refused_under_the_id_in_its_name(mailbox: Mailbox) -> None:
    (mailbox.path / "tasks/q7.json").symlink_to("/etc/passwd")

    with pytest.raises(MalformedRequest, match="a symbolic link") as refused:
        mailbox.read_request("q7.json")

    assert refused.value.request_id == "q7"


def test_questions_are_read_before_what_ends_them(mailbox: Mailbox) -> None:
    for name in ("q1.cancel.json", "q2.json", "q1.json", "q1.received", ".tmp"):
        (mailbox.path / "tasks" / name).touch()

    names = mailbox.requests(100)

    assert set(names[:2]) == {"q1.json", "q2.json"}
    assert names[2:] == ["q1.cancel.json"]


def test_refused_requests_are_kept_with_their_reason_up_to_a_cap(mailbox: Mailbox) -> None:
    for number in range(5):
        (mailbox.path / "tasks/bad.json").write_bytes(b"{")
        at = NOON + timedelta(seconds=number)
        mailbox.reject("bad.json", f"reason {number}", at, b"{", keep=3)

    kept = sorted((mailbox.path / "rejected").iterdir())
    assert len(kept) == 3
    assert '"reason":"reason 4"' in kept[-1].read_text()
    assert not (mailbox.path / "tasks/bad.json").exists()


def test_tidying_forgets_old_responses_but_not_those_of_open_questions(mailbox: Mailbox) -> None:
    for request_id in ("open", "over"):
        mailbox.respond(RequestId(request_id), b"{}")
        mailbox.claim(RequestId(request_id), "secret", NOON)
        mailbox.note_dismissed(RequestId(request_id), b"{}")
    mailbox.write_initial(RequestId("over"), b"{}")
    future = NOON + timedelta(days=10_000)

    mailbox.tidy({RequestId("open")}, responses=future, rejected=future)

    left = sorted(
        str(path.relative_to(mailbox.path)) for path in mailbox.path.rglob("*") if path.is_file()
    )
    assert left == [
        "input/host.json",
        "responses/open.dismissed.json",
        "responses/open.json",
        "tasks/open.received",
    ]


def test_only_the_newest_responses_to_refused_requests_are_kept(mailbox: Mailbox) -> None:
    mailbox.respond(Q1, b"an answer")

    for number in range(5):
        mailbox.respond_refused(RequestId(f"bad-{number}"), b"{}", keep=2)

    kept = sorted(path.name for path in (mailbox.path / "responses").iterdir())
    assert kept == ["bad-3.json", "bad-4.json", "q1.json"]
