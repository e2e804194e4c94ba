"""Asking without MCP: the order of what happens on disk, and who has the answer."""

import asyncio
import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.agent.conftest import Mailbox
from tests.waiting import until

from agent_runner.asking import (
    Asker,
    Outcome,
    Question,
    Request,
    RequestId,
    Result,
    _asker,
    _heartbeat,
    ask,
)
from agent_runner.asking._model import safe_wait
from agent_runner.asking._waiter import Observing, Waiter
from agent_runner.errors import BadArguments, MailboxMissing


def a_request(**fields: object) -> Request:
    question = Question("Deploy?")
    return Request((question,), **{"wait_seconds": 30.0, **fields})  # type: ignore[arg-type]


async def test_a_question_asked_and_answered(mailbox: Mailbox) -> None:
    request = a_request()
    asking = asyncio.create_task(ask(mailbox.path, request, session_id="s"))
    await until(lambda: mailbox.names("*.json"))

    mailbox.respond(request.request_id, "go")
    result = await asking

    assert result.outcome is Outcome.ANSWERED
    assert result.answers[0].text == "go"
    assert (result.answered_by, result.channel) == ("Ana", "local")
    assert mailbox.names("*.received") == [f"{request.request_id}.received"]
    assert mailbox.names("*.lease") == []
    assert mailbox.names(".*") == []


async def test_a_response_that_was_there_first_is_taken_at_once(mailbox: Mailbox) -> None:
    request = a_request(wait_seconds=0.01)
    mailbox.respond(request.request_id)

    result = await ask(mailbox.path, request)

    assert result.outcome is Outcome.ANSWERED


async def test_an_answer_that_the_session_was_resumed_for_needs_no_receipt(
    mailbox: Mailbox,
) -> None:
    request = a_request()
    mailbox.respond(request.request_id)
    (mailbox.tasks / f"{request.request_id}.received").touch()

    async with Asker(mailbox.path, granted=request.request_id) as asker:
        result = await asker.ask(request)
        again = await asker.check(request.request_id)

    assert (result.outcome, result.repeated) == (Outcome.ANSWERED, False)
    assert again.repeated
    assert mailbox.names("*.json") == []
    other = await ask(mailbox.path, request)
    assert other.outcome is Outcome.ELSEWHERE


async def test_the_lease_is_held_before_the_question_is_seen(mailbox: Mailbox) -> None:
    request = a_request()
    asking = asyncio.create_task(ask(mailbox.path, request, session_id="s"))
    path = mailbox.tasks / f"{request.request_id}.json"
    await until(path.exists)

    lease = mailbox.tasks / f"{json.loads(path.read_bytes())['lease']}.lease"
    content = json.loads(lease.read_bytes())
    with lease.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    mailbox.respond(request.request_id)
    await asking

    assert content["v"] == 1
    assert content["session_id"] == "s"
    assert "boot_id" in content


async def test_without_inotify_the_answer_still_comes(
    mailbox: Mailbox, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_inotify(_folder: Path, _on_name: Callable[[str], None]) -> Observing:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    request = a_request()
    waiter = Waiter(mailbox.responses, start_observer=no_inotify)
    async with Asker(mailbox.path, waiter=waiter) as asker:
        asking = asyncio.create_task(asker.ask(request))
        await until(lambda: mailbox.names("*.json"))
        mailbox.respond(request.request_id)
        result = await asking

    assert result.outcome is Outcome.ANSWERED
    assert "looking often" in capsys.readouterr().err


async def test_the_loser_of_the_receipt_gets_no_answer(mailbox: Mailbox) -> None:
    request = a_request()
    (mailbox.tasks / f"{request.request_id}.received").write_text('{"v": 1, "by": "host"}')
    mailbox.respond(request.request_id, "secret")

    result = await ask(mailbox.path, request)

    assert result.outcome is Outcome.ELSEWHERE
    assert result.answers == ()


async def test_a_cancelled_ask_tells_the_host_and_leaves_no_receipt(mailbox: Mailbox) -> None:
    request = a_request()
    async with Asker(mailbox.path) as asker:
        asking = asyncio.create_task(asker.ask(request))
        await until(lambda: mailbox.names("*.json"))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        cancels = mailbox.names("*.cancel.json")
        mailbox.respond(request.request_id, "later")
        late = asker.collect()

    assert cancels == [f"{request.request_id}.cancel.json"]
    assert [result.answers[0].text for result in late] == ["later"]


async def test_what_is_collected_is_collected_once(mailbox: Mailbox) -> None:
    async with Asker(mailbox.path) as asker:
        pending = await asker.ask(a_request(wait_seconds=0.01))
        nothing = asker.collect()
        mailbox.respond(pending.request_id)
        first, second = asker.collect(), asker.collect()
        again = await asker.check(pending.request_id)

    assert pending.outcome is Outcome.PENDING
    assert not pending.picked_up
    assert nothing == ()
    assert [result.outcome for result in first] == [Outcome.ANSWERED]
    assert second == ()
    assert again.repeated


async def test_what_a_resumed_session_got_is_not_collected(mailbox: Mailbox) -> None:
    async with Asker(mailbox.path) as asker:
        pending = await asker.ask(a_request(), wait=False)
        (mailbox.tasks / f"{pending.request_id}.received").touch()
        mailbox.respond(pending.request_id)

        assert asker.collect() == ()


def left_by_an_earlier_process(mailbox: Mailbox, request_id: str, session_id: str = "s1") -> None:
    """Have an answer lie there, long enough that no call waits for it."""
    mailbox.respond(request_id, session_id=session_id)
    os.utime(mailbox.responses / f"{request_id}.json", (0, 0))


async def test_one_file_that_could_not_be_opened_hid_an_answer_for_good(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_an_earlier_process(mailbox, "q1")

    def fail(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "too many open files")

    async with Asker(mailbox.path, session_id="s1") as asker:
        with monkeypatch.context() as patch:
            patch.setattr("agent_runner.asking.mailbox.read_small", fail)
            nothing = asker.collect()
        found = asker.collect()

    assert nothing == ()
    assert [result.request_id for result in found] == ["q1"]


async def test_an_answer_that_somebody_had_taken_was_hidden_when_its_receipt_was_taken_back(
    mailbox: Mailbox,
) -> None:
    left_by_an_earlier_process(mailbox, "q1")
    receipt = mailbox.tasks / "q1.received"
    receipt.write_text('{"v": 1, "by": "waiter", "lease": "dead"}')

    async with Asker(mailbox.path, session_id="s1") as asker:
        taken = asker.collect()
        receipt.unlink()
        found = asker.collect()

    assert taken == ()
    assert [result.request_id for result in found] == ["q1"]


async def test_an_answer_that_was_lost_to_a_taker_that_died_is_collected_after_all(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_an_earlier_process(mailbox, "q1")
    receipt = mailbox.tasks / "q1.received"
    read = _asker.Mailbox.read_response

    def taken_meanwhile(self: _asker.Mailbox, request_id: RequestId) -> Result | None:
        receipt.touch()
        return read(self, request_id)

    async with Asker(mailbox.path, session_id="s1") as asker:
        with monkeypatch.context() as patch:
            patch.setattr(_asker.Mailbox, "read_response", taken_meanwhile)
            lost = asker.collect()
        receipt.unlink()
        found = asker.collect()

    assert lost == ()
    assert [result.request_id for result in found] == ["q1"]


def test_what_another_session_asked_is_read_once(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_an_earlier_process(mailbox, "q1", "another")
    files, known = _asker.Mailbox(mailbox.path), set[str]()
    assert files.untaken("s1", known) == []

    monkeypatch.setattr("agent_runner.asking.mailbox.read_small", pytest.fail)

    assert files.untaken("s1", known) == []


async def test_no_other_call_takes_what_a_waiting_call_is_about_to_take(mailbox: Mailbox) -> None:
    request = a_request()
    async with Asker(mailbox.path) as asker:
        asking = asyncio.create_task(asker.ask(request))
        await until(lambda: mailbox.names("*.json"))
        mailbox.respond(request.request_id)
        collected = asker.collect()
        result = await asking

    assert collected == ()
    assert result.outcome is Outcome.ANSWERED


async def test_a_default_is_waited_for_a_little_longer(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_asker, "DEFAULT_GRACE_SECONDS", 20.0)
    request = Request((Question("Deploy?", default="no"),), wait_seconds=0.05)
    asking = asyncio.create_task(ask(mailbox.path, request))
    await until(lambda: mailbox.names("*.json"))
    await asyncio.wait([asking], timeout=0.1)

    mailbox.respond(request.request_id, "no", outcome="defaulted")
    result = await asking

    assert result.outcome is Outcome.DEFAULTED


@pytest.mark.parametrize(
    ("max_wait", "waits"), [(300, 270), (60, 54), (20, 15), (8, 4), (2, 1), (0.5, 0.25)]
)
def test_a_wait_ends_safely_before_the_clients_limit(max_wait: float, waits: float) -> None:
    assert safe_wait(max_wait) == pytest.approx(waits)


async def test_a_mailbox_that_cannot_be_written_is_an_error_not_a_hang(mailbox: Mailbox) -> None:
    async with Asker(mailbox.path) as asker:
        mailbox.tasks.rename(mailbox.path / "gone")
        result = await asker.ask(a_request())

    assert result.outcome is Outcome.ERROR
    assert "could not be written" in (result.error or "")


async def test_an_answer_whose_receipt_cannot_be_written_stays_for_later(
    mailbox: Mailbox,
) -> None:
    async with Asker(mailbox.path) as asker:
        pending = await asker.ask(a_request(), wait=False)
        mailbox.respond(pending.request_id, "kept")
        mailbox.tasks.rename(mailbox.path / "gone")
        refused = await asker.check(pending.request_id)
        (mailbox.path / "gone").rename(mailbox.tasks)
        late = asker.collect()

    assert refused.outcome is Outcome.ERROR
    assert refused.answers == ()
    assert [result.answers[0].text for result in late] == ["kept"]


async def test_questions_too_long_for_the_mailbox_are_refused(mailbox: Mailbox) -> None:
    request = Request((Question("x" * 300_000),))

    with pytest.raises(BadArguments, match="at most"):
        await ask(mailbox.path, request)
    assert mailbox.names("*.json") == []


async def test_there_must_be_a_mailbox(tmp_path: Path) -> None:
    with pytest.raises(MailboxMissing, match="tasks"):
        await ask(tmp_path, a_request())


async def test_a_withdrawal_that_nobody_confirms_is_pending(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_asker, "WITHDRAW_GRACE_SECONDS", 0.01)
    async with Asker(mailbox.path) as asker:
        result = await asker.withdraw(RequestId("q1"))

    assert result.outcome is Outcome.PENDING
    assert mailbox.names("*.json") == ["q1.withdraw.json"]


async def test_the_lease_is_renewed_and_put_back_when_swept_away(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_heartbeat, "RENEW_SECONDS", 0.01)
    async with Asker(mailbox.path) as asker:
        await asker.ask(a_request(), wait=False)
        lease = next(mailbox.tasks.glob("*.lease"))
        os.utime(lease, (1, 1))
        await until(lambda: lease.stat().st_mtime > 1)
        lease.unlink()
        await until(lease.exists)

    assert not lease.exists()
