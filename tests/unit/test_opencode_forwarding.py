"""Foreign agents: what OpenCode asks is asked of people, also where a disk is full for a while."""

from collections.abc import AsyncIterator

import pytest
from tests.standins.opencode import OpenCodeStandIn
from tests.unit.opencode_support import Asked, QuietRoute, following
from tests.waiting import until

from pynchy.model import GroupName, PendingQuestion, RequestId
from pynchy.pending.index import PendingIndex
from pynchy.sources import running
from pynchy.sources.base import OPENCODE, AgentState, SourceQuestion, end
from pynchy.sources.opencode.requests import server_mark
from pynchy.testing import make_pending

GROUP = GroupName("opencode")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_RETRY_SECONDS", 0.01)


@pytest.fixture
async def server() -> AsyncIterator[OpenCodeStandIn]:
    async with OpenCodeStandIn() as server:
        yield server


class FullDisk(Asked):
    """A handler that can write nothing down so many times."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    async def asked(self, source: str, question: SourceQuestion) -> None:
        self._fail()
        await super().asked(source, question)

    async def cleared(
        self, source: str, group: GroupName, request_id: RequestId, reason: str
    ) -> None:
        self._fail()
        await super().cleared(source, group, request_id, reason)

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no space left on device")


def left_open(url: str) -> PendingQuestion:
    """Return what an earlier host has asked for the server at the address."""
    return make_pending(f"{server_mark(url)}{'0' * 30}", group=GROUP, source=OPENCODE)


def index_of(*pending: PendingQuestion) -> PendingIndex:
    index = PendingIndex()
    for one in pending:
        index.put(one)
    return index


async def test_a_full_disk_at_the_start_ended_the_source(server: OpenCodeStandIn) -> None:
    server.session("Mend it")
    handler = FullDisk(2)
    unknown = left_open("http://127.0.0.1:1")

    async with following(server, handler=handler, index=index_of(unknown)) as look:
        await look.agent(AgentState.IDLE)
        await until(lambda: handler.cleared_ones, "it to be cleared")
        assert not look.task.done()

    assert handler.cleared_ones == [
        (unknown.request_id, "its OpenCode server is not in the settings any more")
    ]


async def test_a_full_disk_left_what_is_asked_no_more_open_for_ever(
    server: OpenCodeStandIn,
) -> None:
    handler = FullDisk(2)
    asked = left_open(server.url)

    index = index_of(asked)
    async with following(server, handler=handler, index=index, forward=("permission",)) as look:
        await until(lambda: handler.cleared_ones, "it to be cleared")
        assert not look.task.done()

    assert handler.cleared_ones == [(asked.request_id, "OpenCode does not ask it any more")]


async def test_what_could_not_be_recorded_was_never_asked(server: OpenCodeStandIn) -> None:
    handler = FullDisk(3)
    server.ask_permission(server.session(), "rm x")

    async with following(server, handler=handler, forward=("permission",)):
        await until(lambda: handler.questions, "it to be asked")

    assert len(handler.questions) == 1


async def test_what_could_not_be_cleared_stayed_open(server: OpenCodeStandIn) -> None:
    index, handler = index_of(), FullDisk(0)
    asked_id = server.ask_permission(server.session(), "rm x")

    async with following(server, handler=handler, index=index, forward=("permission",)):
        await until(lambda: handler.questions, "it to be asked")
        [question] = handler.questions
        index.put(make_pending(question.request_id, group=GROUP, source=OPENCODE))
        handler.failures = 2
        del server.permissions[asked_id]
        await until(lambda: handler.cleared_ones, "it to be cleared")

    assert handler.cleared_ones == [(question.request_id, "OpenCode does not ask it any more")]


async def test_an_answer_that_came_while_its_question_was_cleared_waited_for_ever() -> None:
    route, asked = QuietRoute(), left_open("http://127.0.0.1:1")

    await end(route, Asked(), asked, "gone")  # it finds the question answered, and leaves it

    assert route.lost == [asked.key]


async def test_a_discovery_that_fails_costs_no_server_of_the_settings(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[str]:
        raise RuntimeError("/proc cannot be read")

    monkeypatch.setattr("pynchy.sources.opencode.source.find_servers", fail)
    monkeypatch.setattr("pynchy.sources.opencode.source._DISCOVER_SECONDS", 0.01)
    session = server.session()

    async with following(server, discover=True) as look:
        await look.agent(AgentState.IDLE)
        server.ask_permission(session, "rm x")
        await look.agent(AgentState.PERMISSION)
        assert not look.task.done()
