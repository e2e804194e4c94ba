"""Both sides of the mailbox speak one language: what one writes, the other reads in full."""

import json
from datetime import timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_runner import asking
from agent_runner.asking import wire as agent_wire
from agent_runner.initial import acknowledge, load_initial
from pynchy import wire
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailbox
from pynchy.model import Answer, Ending, GroupName, Option, OutcomeKind, Question, RequestId, State
from pynchy.outcome_text import resume_prompt
from pynchy.testing import NOON, make_pending

# What JSON can carry and neither side strips: no lone surrogates, no blanks at the ends.
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=40
)
LABELS = st.lists(TEXT, min_size=1, max_size=5, unique_by=str.casefold)


@st.composite
def asked(draw: st.DrawFn) -> asking.Question:
    labels = draw(LABELS)
    options = tuple(
        asking.Option(label, draw(st.just("") | TEXT), draw(st.just("") | TEXT)) for label in labels
    )
    return asking.Question(
        draw(TEXT),
        draw(st.just("") | TEXT),
        options,
        multi_select=draw(st.booleans()),
        default=draw(st.none() | st.sampled_from(labels)),
    )


@given(
    questions=st.lists(asked(), min_size=1, max_size=4),
    title=st.just("") | TEXT,
    urgency=st.sampled_from(asking.Urgency),
    wait_seconds=st.none() | st.integers(1, 10_000),
)
def test_the_host_reads_every_request_that_the_agent_writes(
    questions: list[asking.Question],
    title: str,
    urgency: asking.Urgency,
    wait_seconds: int | None,
) -> None:
    request = asking.Request(
        tuple(questions), title=title, urgency=urgency, wait_seconds=wait_seconds
    )
    data = agent_wire.encode_request(request, session_id="s1", lease="l1")

    read = wire.read_request(wire.read_envelope(data, "x"))

    assert isinstance(read, wire.AskRequest)
    assert (read.request_id, read.session_id, read.lease) == (request.request_id, "s1", "l1")
    assert (read.title or "", read.urgency, read.wait_seconds) == (title, urgency, wait_seconds)
    for theirs, ours in zip(questions, read.questions, strict=True):
        model = ours.to_model()
        assert (model.text, model.header) == (theirs.question, theirs.header)
        assert model.multi_select == theirs.multi_select
        assert model.default == ((theirs.default,) if theirs.default else ())
        assert [(o.label, o.description, o.preview) for o in model.options] == [
            (o.label, o.description, o.preview) for o in theirs.options
        ]


def test_the_host_reads_cancels_and_withdrawals() -> None:
    for kind, model in (
        (agent_wire.TYPE_CANCEL, wire.CancelRequest),
        (agent_wire.TYPE_WITHDRAW, wire.WithdrawRequest),
    ):
        data = agent_wire.encode_about(kind, asking.fresh_request_id())
        assert isinstance(wire.read_request(wire.read_envelope(data, "x")), model)


@given(by=TEXT, selected=st.lists(TEXT, max_size=3), text=st.none() | TEXT)
def test_the_host_reads_what_was_answered_at_the_desk(
    by: str, selected: list[str], text: str | None
) -> None:
    given = [asking.Answer("Which?", tuple(selected), text)] * 2
    data = agent_wire.encode_desk_answer(asking.RequestId("q1"), by, given)

    read = wire.read_desk_answer(wire.read_envelope(data, "q1.desk_answer"))

    assert (read.request_id, read.by) == ("q1", by)
    assert [(one.selected, one.text) for one in read.answers] == [(selected, text)] * 2


@given(
    outcome=st.sampled_from(OutcomeKind),
    selected=st.lists(TEXT, max_size=3),
    text=st.none() | TEXT,
    by=st.none() | TEXT,
    reason=st.none() | TEXT,
)
def test_the_agent_reads_every_response_that_the_host_writes(
    outcome: OutcomeKind, selected: list[str], text: str | None, by: str | None, reason: str | None
) -> None:
    ending = Ending(outcome, NOON, (Answer(tuple(selected), text),), by, "local", reason)
    data = wire.response_json(make_pending(state=State.DELIVERING, ending=ending))

    read = agent_wire.decode_response(data, asking.RequestId("q1"))

    assert read.outcome == outcome.value
    [answer] = read.answers
    assert (answer.question, answer.selected, answer.text) == ("Deploy?", tuple(selected), text)
    assert (read.answered_by, read.channel) == (by, "local")
    assert read.answered_at == "2026-01-15T12:00:00.000Z"
    if outcome is OutcomeKind.UNDELIVERABLE:
        assert read.error
    else:
        assert read.reason == reason


def test_the_agent_reads_an_error_response() -> None:
    read = agent_wire.decode_response(
        wire.error_json(RequestId("q1"), "v: no"), asking.RequestId("q1")
    )

    assert (read.outcome, read.error) == ("error", "v: no")


def test_a_resumed_runner_reads_what_the_host_wrote_and_its_receipt_is_seen(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(wire.host_json(60))
    question = Question("Which?", "H", (Option("A", "first"), Option("B")), multi_select=True)
    ending = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("A",), "and more"),), "ana", "local")
    pending = make_pending(
        questions=(question,), session_id="s1", title="T", ending=ending, state=State.RESUMING
    )

    path = mailbox.write_initial(
        pending.request_id, wire.initial_json(pending, resume_prompt(pending))
    )
    initial = load_initial(path)

    assert (initial.session_id, initial.request_id) == ("s1", "q1")
    for told in ("T", "Which?", "- A: first", "- B", "A — and more", "ana", "several could be"):
        assert told in initial.prompt
    assert not mailbox.is_resumed(pending.request_id)
    assert acknowledge(initial, mailbox.path)
    assert mailbox.is_resumed(pending.request_id)


async def test_the_host_sees_the_lease_of_a_living_asker_and_its_end(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(wire.host_json(60))
    leases = Leases(30.0)
    request = asking.Request((asking.Question("Deploy?"),))

    async with asking.Asker(mailbox.path) as asker:
        await asker.ask(request, wait=False)
        (name,) = [n for n in mailbox.tasks.names() if n.endswith(".lease")]
        lease = name.removesuffix(".lease")
        written = json.loads((mailbox.path / f"tasks/{request.request_id}.json").read_text())
        alive = leases.is_live(mailbox, lease)

    assert written["lease"] == lease
    assert alive
    assert not leases.is_live(mailbox, lease)


def test_the_agent_is_parked_and_asks_as_the_host_tells(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(wire.host_json(60))
    blocks = asking.Mailbox.open(mailbox.path)
    before = (blocks.park_after_seconds(), blocks.asks_with())
    mailbox.prepare(wire.host_json(60, park_after_seconds=2.5, ask_with="AskUserQuestion"))

    assert before == (None, "")
    assert (blocks.park_after_seconds(), blocks.asks_with()) == (2.5, "AskUserQuestion")


def test_the_host_reads_that_a_call_is_put_off_and_the_runner_that_it_was(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(wire.host_json(60))
    asking.Mailbox.open(mailbox.path).send_about(agent_wire.TYPE_PARK, asking.RequestId("q1"))
    ending = Ending(OutcomeKind.EXPIRED, NOON)
    pending = make_pending(session_id="s1", ending=ending, state=State.RESUMING, parked=True)

    assert mailbox.is_being_parked(pending.request_id)
    [name] = mailbox.requests(10)
    read = wire.read_request(wire.read_envelope(mailbox.read_request(name), name))
    assert isinstance(read, wire.ParkRequest)
    assert read.request_id == "q1"
    for parked in (True, False):
        initial = wire.initial_json(pending, resume_prompt(pending), parked=parked)
        assert load_initial(mailbox.write_initial("q1", initial)).parked is parked


def test_the_agent_waits_as_long_as_the_host_tells(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, GroupName("g1"))
    mailbox.prepare(wire.host_json(timedelta(minutes=5).total_seconds()))

    assert asking.Mailbox.open(mailbox.path).wait_seconds() == 300
