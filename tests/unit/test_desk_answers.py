"""What is answered at the agent's own terminal: where it counts, and what it may never answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.core import make_core, start

from pynchy import wire
from pynchy.bridge.ask import PREFIX
from pynchy.config import GroupSettings, Settings
from pynchy.core import Core
from pynchy.errors import MalformedRequest
from pynchy.ipc.intake import Registry
from pynchy.model import (
    AcceptsText,
    Answer,
    GroupName,
    Kind,
    Option,
    OutcomeKind,
    PendingQuestion,
    Question,
    Reply,
)
from pynchy.permissions.card import approval_question
from pynchy.testing import FakeChannel, FakeClock, make_pending

DEPLOY = Question("Deploy?", options=(Option("Yes"), Option("No")))
STRICT = replace(DEPLOY, accepts_text=AcceptsText.NO)
REGIONS = Question("Where?", options=(Option("eu"), Option("us")), multi_select=True)
OPEN_GROUP, CLOSED_GROUP = GroupName("g1"), GroupName("g2")


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    settings = Settings(groups={OPEN_GROUP: GroupSettings(desk_answers=True)})
    (tmp_path / "ipc").mkdir()
    made = make_core(tmp_path, FakeClock(), settings, {"local": FakeChannel("local")})
    async with asyncio.TaskGroup() as tasks:
        await start(made, tasks)
        yield made
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


async def answer(core: Core, *answers: Any, group: GroupName = OPEN_GROUP, **fields: Any) -> None:
    """Let an agent of the group write that this was answered at its terminal."""
    body = {
        "v": 1,
        "type": "ask_user:desk_answer",
        "request_id": "q1",
        "by": "ana",
        "answers": list(answers),
        **fields,
    }
    registry = Registry()
    registry.register_prefix(PREFIX, core.ask_handler.handle)
    registry.register_prefix(wire.DESK_ANSWER, core.desk_answers.handle)
    data = json.dumps(body).encode()
    await registry.dispatch(group, wire.read_envelope(data, "q1.desk_answer"))


async def asked(core: Core, *questions: Question, **fields: Any) -> PendingQuestion:
    pending = make_pending(questions=questions or (DEPLOY,), **fields)
    core.mailboxes.of(pending.group).make()
    await core.ledger.record(pending)
    return pending


async def test_the_desk_answers_a_question_once_and_by_name(core: Core) -> None:
    pending = await asked(core)

    await answer(core, {"selected": ["Yes"]})
    await answer(core, {"selected": ["No"]}, by="ben")

    ending = (await core.answers.find("q1", OPEN_GROUP)).ending
    assert ending is not None
    assert ending.outcome is OutcomeKind.ANSWERED
    assert (ending.answers, ending.by, ending.channel) == ((Answer(("Yes",)),), "ana", "desk")
    assert pending.ending is None


async def test_a_phone_that_was_first_keeps_its_answer(core: Core) -> None:
    await asked(core)
    await core.answers.answer(Reply("q1", "ben", "local", values=("No",)))

    await answer(core, {"selected": ["Yes"]})

    ending = (await core.answers.find("q1", OPEN_GROUP)).ending
    assert ending is not None
    assert (ending.by, ending.channel) == ("ben", "local")


async def test_a_part_that_somebody_answered_before_stays_theirs(core: Core) -> None:
    await asked(core, DEPLOY, REGIONS)
    await core.answers.answer(Reply("q1", "ben", "local", values=("No",), question=1))

    await answer(core, {"selected": ["Yes"]}, {"selected": ["eu", "us"], "text": "slowly"})

    ending = (await core.answers.find("q1", OPEN_GROUP)).ending
    assert ending is not None
    assert ending.answers == (Answer(("No",)), Answer(("eu", "us"), "slowly"))
    assert ending.by == "ben, ana"


@pytest.mark.parametrize(
    ("questions", "answers", "words"),
    [
        ((DEPLOY,), [{"selected": ["Perhaps"]}], "no option 'Perhaps'"),
        ((DEPLOY,), [{"selected": ["Yes", "No"]}], "only one"),
        ((DEPLOY,), [{"text": "  "}], "an answer is missing"),
        ((STRICT,), [{"text": "yes, do it"}], "only its options"),
        ((DEPLOY,), [{"selected": ["Yes"]}] * 2, "1 answers are needed, 2 came"),
        ((DEPLOY, REGIONS), [{"selected": ["Yes"]}], "2 answers are needed, 1 came"),
        ((DEPLOY,), [], "answers"),
        ((DEPLOY,), [{"selected": "Yes"}], "selected"),
        ((DEPLOY,), [{"selected": ["Yes"], "text": 7}], "text"),
    ],
)
async def test_a_forged_answer_that_fits_nothing_leaves_the_question_open(
    core: Core, questions: tuple[Question, ...], answers: list[Any], words: str
) -> None:
    await asked(core, *questions)

    with pytest.raises(MalformedRequest, match=words):
        await answer(core, *answers)

    assert (await core.answers.find("q1", OPEN_GROUP)).ending is None


@pytest.mark.parametrize("kind", [Kind.APPROVAL, Kind.PERMISSION])
async def test_the_desk_never_approves_or_permits(core: Core, kind: Kind) -> None:
    await asked(core, approval_question("Deploy?", "", "", ""), kind=kind)

    with pytest.raises(MalformedRequest, match=f"of kind {kind}"):
        await answer(core, {"selected": ["Approve"]})

    assert (await core.answers.find("q1", OPEN_GROUP)).ending is None


async def test_without_the_setting_an_agent_cannot_answer_itself(core: Core) -> None:
    await asked(core, group=CLOSED_GROUP)

    with pytest.raises(MalformedRequest, match="desk_answers = true"):
        await answer(core, {"selected": ["Yes"]}, group=CLOSED_GROUP)

    assert (await core.answers.find("q1", CLOSED_GROUP)).ending is None


async def test_an_agent_cannot_answer_the_question_of_another_group(core: Core) -> None:
    await asked(core, group=CLOSED_GROUP)

    with pytest.raises(MalformedRequest, match="no question") as refused:
        await answer(core, {"selected": ["Yes"]})

    assert refused.value.request_id is None  # nobody is told, and the id is not used up
    assert (await core.answers.find("q1", CLOSED_GROUP)).ending is None


async def test_an_agent_cannot_answer_what_came_from_elsewhere(core: Core) -> None:
    await asked(core, source="opencode")

    with pytest.raises(MalformedRequest, match="from opencode"):
        await answer(core, {"selected": ["Yes"]})


@pytest.mark.parametrize(
    "fields", [{"by": " "}, {"by": None}, {"v": 2}, {"type": "ask_user:desk_answers"}]
)
async def test_a_malformed_desk_answer_is_refused(core: Core, fields: dict[str, Any]) -> None:
    await asked(core)

    with pytest.raises(MalformedRequest):
        await answer(core, {"selected": ["Yes"]}, **fields)


async def test_agents_are_told_whether_the_desk_may_answer(core: Core) -> None:
    told = []
    for group in (OPEN_GROUP, CLOSED_GROUP):
        await core.ask_handler.joined(group)
        greeting = core.mailboxes.of(group).path / "input" / "host.json"
        told.append(json.loads(greeting.read_text()).get("desk_answers"))

    assert told == [True, None]
