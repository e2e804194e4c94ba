"""The plot. Every step is checked against what really happened; one that fails ends the demo.

live   the agent asks and waits, a person answers, the waiting call returns the answer
late   the agent asks and is killed, a person answers, the host resumes it with the answer
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pynchy.client import EventStream, HostClient
from pynchy.data_dir import DataFolder
from pynchy.demo.console import Voices
from pynchy.demo.person import Person, WaitingQuestion, submit
from pynchy.demo.processes import Stage
from pynchy.demo.script import (
    ALLOWED,
    DENIED,
    LATE,
    LIVE_SCENES,
    Act,
    DemoFailed,
    Scene,
    Utterance,
)
from pynchy.events import EventKind
from pynchy.model import DeliveryPath

ENDED = (EventKind.ANSWERED, EventKind.DECLINED)
_TROUBLE = frozenset(
    {
        EventKind.REJECTED,
        EventKind.SHOW_FAILED,
        EventKind.UNDELIVERABLE,
        EventKind.RESUME_FAILED,
        EventKind.UNDELIVERED,
        EventKind.EXPIRED,
        EventKind.WITHDRAWN,
    }
)

STEP_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One thing that happened, as far as the story needs it."""

    kind: EventKind
    group: str
    request_id: str
    short_id: str
    by: str
    detail: str


@dataclass(frozen=True, slots=True)
class DemoEnding:
    """How the host says that a question ended: its outcome, and what was chosen and written."""

    outcome: str
    words: tuple[str, ...]


class HostWatch:
    """The host's events, in order, none left out."""

    def __init__(self, client: HostClient) -> None:
        self._client = client
        self._events: asyncio.Queue[HostEvent | None] = asyncio.Queue()
        self._passed: list[HostEvent] = []

    @classmethod
    @asynccontextmanager
    async def of(cls, data: DataFolder) -> AsyncIterator[HostWatch]:
        """Watch the folder's host for as long as the context lasts."""
        client = HostClient.of(data)
        watch = cls(client)
        stream = await asyncio.to_thread(client.events, 0)
        reading = asyncio.create_task(
            asyncio.to_thread(watch.read, stream, asyncio.get_running_loop())
        )
        try:
            yield watch
        finally:
            stream.stop()
            await asyncio.wait([reading])

    async def until(self, *kinds: EventKind) -> HostEvent:
        """Return the next event of these kinds. Raise DemoFailed if trouble comes first.

        Others are kept for whoever asks next: one question may be shown before the last is
        known to have arrived.
        """
        for passed in self._passed:
            if passed.kind in kinds:
                self._passed.remove(passed)
                return passed
        while (event := await self._events.get()) is not None:
            if event.kind in kinds:
                return event
            self._passed.append(event)
            if event.kind in _TROUBLE:
                raise DemoFailed(f"the host says {event.kind} of {event.short_id}: {event.detail}")
        raise DemoFailed("the host has stopped telling what happens")

    async def ending(self, event: HostEvent) -> DemoEnding:
        """Return how the event's question ended, as the host has it on record."""
        view = await asyncio.to_thread(self._client.question_of, event.group, event.request_id)
        ending = view["ending"]
        words = [[*answer["selected"], answer["text"]] for answer in ending["answers"]]
        return DemoEnding(ending["outcome"], tuple(word for some in words for word in some if word))

    def read(self, stream: EventStream, loop: asyncio.AbstractEventLoop) -> None:
        """Run in a thread: hand every event to the loop, and None when the stream has ended."""
        try:
            for message in stream:
                loop.call_soon_threadsafe(self._events.put_nowait, _event(message.data))
        finally:
            stream.close()
            loop.call_soon_threadsafe(self._events.put_nowait, None)


def _event(fields: dict[str, object]) -> HostEvent:
    return HostEvent(
        EventKind(str(fields["type"])),
        str(fields.get("group") or ""),
        str(fields.get("id") or ""),
        str(fields.get("short_id", "")),
        str(fields.get("by", "")),
        str(fields.get("detail", "")),
    )


async def tell(
    stage: Stage,
    person: Person,
    voices: Voices,
    open_in_browser: Callable[[str], bool] = lambda _: False,
) -> None:
    """Tell the whole story. Raise DemoFailed at the first step that goes wrong.

    `open_in_browser` is given the link to the inbox, and returns whether it could show it.
    """
    async with stage:
        await stage.start_host()
        voices.pynchy(f"The host is ready. Its data is in {stage.data.path}")
        link = await asyncio.to_thread(HostClient.of(stage.data).make_link)
        if await asyncio.to_thread(open_in_browser, link):
            voices.pynchy("The inbox is open in your browser: answer there, or here.")
        else:
            voices.pynchy(f"The same questions are in the inbox, for a browser here:\n  {link}")
        async with HostWatch.of(stage.data) as watch:
            story = _Story(stage, person, voices, watch)
            await stage.start_agent()
            for number, scene in enumerate(LIVE_SCENES, start=1):
                await story.live(number, scene)
            await story.late(len(LIVE_SCENES) + 1, LATE)


@dataclass(frozen=True, slots=True)
class _Story:
    stage: Stage
    person: Person
    voices: Voices
    watch: HostWatch

    async def live(self, number: int, scene: Scene) -> None:
        """Answer while the call waits."""
        self.voices.headline(f"{number}. {scene.title}")
        shown = await self._asked(scene)
        ended = await self._answered(scene, shown)
        await self._delivered(DeliveryPath.LIVE)
        heard = await self._agent_until(Act.HEARS)
        self.voices.pynchy("The call was still waiting: it returns the answer.")
        self.voices.agent(heard.text)
        _check("the agent's call", [heard], ended if scene.call is None else _verdict(ended))

    async def late(self, number: int, scene: Scene) -> None:
        """Answer when the agent is dead."""
        self.voices.headline(f"{number}. {scene.title}")
        shown = await self._asked(scene)
        async with _step("the agent and its MCP server to die"):
            await self.stage.kill_agent()
        self.voices.narrate("", "The agent and its MCP server are killed (SIGKILL).", "")
        self.voices.pynchy("The question is still open. Nobody waits for it; answer all the same.")
        ended = await self._answered(scene, shown)
        async with _step("the host to resume the agent"):
            await self.watch.until(EventKind.RESUMING)
        self.voices.pynchy("The agent is gone, so its session is resumed with the answer.")
        await self._delivered(DeliveryPath.LATE)
        printed = self.stage.resumed(shown.request_id)
        for utterance in printed:
            self.voices.agent(utterance.text)
        _check("the resumed agent", printed, ended)

    async def _asked(self, scene: Scene) -> HostEvent:
        """Return the question once it is shown, having printed the card."""
        asked = await self._agent_until(Act.ASKS)
        tool = "ask_user" if scene.call is None else "permissions"
        self.voices.agent(f"{tool}: {asked.text}")
        async with _step("the host to show the question"):
            shown = await self.watch.until(EventKind.SHOWN)
        decide = [] if scene.call is None else ["  approve, or deny"]
        card = [f"#{shown.short_id} {asked.text}", *_options(scene.question), *decide]
        self.voices.pynchy("\n".join(card))
        return shown

    async def _answered(self, scene: Scene, event: HostEvent) -> DemoEnding:
        """Return how the question ended, here or from another terminal."""
        shown = WaitingQuestion(scene, event.short_id, self.stage.data.path)
        ending = asyncio.create_task(self.watch.until(*ENDED))
        try:
            while not ending.done() and (values := await self._reply(shown, ending)):
                refusal = await submit(shown, values)
                if refusal is None:
                    break
                self.person.refused(refusal)
            async with _step("the host to accept the answer"):
                over = await ending
        finally:
            ending.cancel()
            await asyncio.wait([ending])
        self.voices.pynchy(f"{over.kind.capitalize()} by {over.by}; that is on disk now.")
        return await self.watch.ending(event)

    async def _reply(
        self, shown: WaitingQuestion, ending: asyncio.Task[HostEvent]
    ) -> tuple[str, ...] | None:
        """Return what the person here says; None if the question is over before."""
        replying = asyncio.create_task(self.person.reply(shown))
        try:
            await asyncio.wait({replying, ending}, return_when=asyncio.FIRST_COMPLETED)
            return replying.result() if replying.done() else None
        finally:
            replying.cancel()
            await asyncio.wait([replying])

    async def _delivered(self, path: DeliveryPath) -> None:
        async with _step("the agent to have the answer"):
            delivered = await self.watch.until(EventKind.DELIVERED)
        if delivered.detail != path:
            raise DemoFailed(f"the answer should have gone {path} and went {delivered.detail}")

    async def _agent_until(self, act: Act) -> Utterance:
        async with _step("the agent"):
            while (utterance := await self.stage.utterance()).act is not act:
                self.voices.agent(utterance.text)
        return utterance


@asynccontextmanager
async def _step(what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(STEP_SECONDS):
            yield
    except TimeoutError as exc:
        raise DemoFailed(f"waited {STEP_SECONDS:g} s in vain for {what}") from exc


def _options(question: Mapping[str, object]) -> list[str]:
    options = question.get("options", [])
    if not isinstance(options, list):
        return []
    labels = [option if isinstance(option, str) else _described(option) for option in options]
    return [f"  {number}. {label}" for number, label in enumerate(labels, start=1)]


def _described(option: Mapping[str, str]) -> str:
    return f"{option['label']}: {option['description']}"


def _verdict(ended: DemoEnding) -> DemoEnding:
    """Return what the agent hears of a permission that ended so."""
    is_allowed = ended.words[0].startswith("Allow")
    return DemoEnding("", (ALLOWED if is_allowed else DENIED,))


def _check(who: str, utterances: list[Utterance], ended: DemoEnding) -> None:
    """Raise DemoFailed unless what was heard is what the host has on record."""
    heard = "\n".join(u.text for u in utterances if u.act is Act.HEARS)
    missing = [word for word in (ended.outcome.capitalize(), *ended.words) if word not in heard]
    if missing:
        raise DemoFailed(f"{who} should have heard {missing[0]!r} and heard {heard!r}")
