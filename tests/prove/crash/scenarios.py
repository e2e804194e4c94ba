"""What the host is in the midst of when it is hit.

Each scenario sets the stage without a fault, then acts while the fault is aimed; whatever happens
to the host in between, `goal` is where a host that was not killed must arrive by itself.
"""

import asyncio
import contextlib
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from tests import waiting
from tests.acceptance.support import MailboxAgent
from tests.prove.crash.stage import (
    GROUP,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    REQUEST_ID,
    RUNNER,
    Click,
    Json,
    Stage,
    until,
)

from agent_runner.asking import (
    Answer,
    Approval,
    Asker,
    Option,
    Outcome,
    Permission,
    Question,
    Request,
    RequestId,
    Result,
)

SESSION = "session-1"
LONG_SECONDS = 600.0
YES_NO = (Option("Yes"), Option("No"))


class Scenario:
    """One question, asked by an agent that lives and waits."""

    channels: ClassVar[tuple[str, ...]] = ("chat", "local")
    launcher: ClassVar[str | None] = None
    attempts: ClassVar[int] = 5
    answer_ttl: ClassVar[str] = "7d"
    show_patience: ClassVar[str] = "5m"
    questions: ClassVar[tuple[Question, ...]] = (Question("Deploy?", options=YES_NO),)
    approval: ClassVar[Approval | None] = None
    permission: ClassVar[Permission | None] = None
    approvals_needed: ClassVar[int] = 1
    # What is chosen by whoever answers, as its label.
    choice: ClassVar[str] = "Yes"
    # Somebody's rule may answer in their place.
    has_rule: ClassVar[bool] = False
    wait_seconds: ClassVar[float] = LONG_SECONDS
    # How it ends, and how that arrives.
    outcome: ClassVar[str] = "answered"
    delivered: ClassVar[str] = "live"
    # Asked through the mailbox, so that an agent takes the answer there.
    by_mailbox: ClassVar[bool] = True
    # The fault is aimed at the host's very first steps.
    from_start: ClassVar[bool] = False

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.asker: Asker | None = None
        self.dead: MailboxAgent | None = None
        self.call: asyncio.Task[Result] | None = None

    @classmethod
    def settings(cls, base: str) -> Json:
        group: Json = {"channels": list(cls.channels), "approvals_needed": cls.approvals_needed}
        if cls.launcher:
            program = cls.program([sys.executable, str(RUNNER), cls.launcher, f"{base}/runs.jsonl"])
            group["launcher"] = {**program, "attempts": cls.attempts, "backoff": "10ms"}
        return {
            "http": {"port": 0},
            "answer_ttl": cls.answer_ttl,
            "show_patience": cls.show_patience,
            "receipt_grace": "1s",
            "groups": {GROUP: group},
        }

    @classmethod
    def program(cls, command: list[str]) -> Json:
        """Return the launcher's settings for the command."""
        return {"command": [*command, "{initial}", "{session_id}"]}

    @classmethod
    def ends_by_itself(cls) -> bool:
        """True if nobody needs to answer."""
        return cls.outcome != "answered"

    async def set_up(self) -> None:
        """Bring the host to where the fault is aimed."""
        await self.start_and_join()

    async def act(self) -> None:
        """Do what makes the host work; it may be gone in the midst of it."""
        raise NotImplementedError

    def goal(self) -> bool:
        """True when a host has done all that the act makes it do."""
        return self.stage.is_closed()

    def rests(self) -> bool:
        """True when a host can do no more before somebody answers or agents act."""
        if self.stage.is_over():
            return self.stage.is_closed() or self.stage.state() in {"held", "undelivered"}
        return self.is_open() or self.goal()

    async def finish(self) -> None:
        """Do what else is needed until the question is closed."""
        await until(self.stage.is_closed, "the question to be closed")

    def look_at_the_dead(self) -> None:
        """Judge what a host that was killed has left."""

    async def look_at_the_end(self, *, faultless: bool) -> None:
        """Judge what only this scenario knows of; `faultless` if nothing was hit."""

    async def tear_down(self) -> None:
        if self.call is not None:
            self.call.cancel()
            await asyncio.wait([self.call])
        if self.asker is not None:
            await self.asker.__aexit__(None, None, None)
        if self.dead is not None:
            self.dead.die()

    # Steps that several of them share.

    def make_mailbox(self) -> None:
        for name in ("tasks", "responses", "input"):
            (self.stage.mailbox / name).mkdir(parents=True, exist_ok=True)

    async def start_and_join(self) -> None:
        self.make_mailbox()
        await self.stage.start()
        joined = (self.stage.mailbox / "input" / "host.json").exists
        await until(joined, "the host to take up the group")

    def ask(self) -> None:
        """Ask as a living agent, which waits."""
        self.asker = Asker(self.stage.mailbox, session_id=SESSION)
        request = Request(
            self.questions,
            request_id=RequestId(REQUEST_ID),
            wait_seconds=self.wait_seconds,
            approval=self.approval,
            permission=self.permission,
        )
        self.call = asyncio.create_task(_ask(self.asker, request))

    def ask_and_die(self) -> None:
        self.dead = MailboxAgent(self.stage.mailbox, SESSION)
        self.dead.ask("Deploy?", request_id=REQUEST_ID)
        self.dead.die()

    def is_open(self) -> bool:
        return (
            self.stage.state() == "open"
            and not (self.stage.mailbox / "tasks" / f"{REQUEST_ID}.json").exists()
        )

    async def reach(self, look: Callable[[], bool], what: str) -> bool:
        """Wait for that, or for the host's end. Return whether the host lives."""
        await until(lambda: look() or self.stage.is_dead(), what)
        return not self.stage.is_dead()

    async def set_up_open(self) -> None:
        await self.start_and_join()
        self.ask()
        await until(self.is_open, "the question to be shown")

    async def set_up_open_and_dead(self) -> None:
        await self.start_and_join()
        self.ask_and_die()
        await until(self.is_open, "the question to be shown")


async def _ask(asker: Asker, request: Request) -> Result:
    """Ask, and ask for the answer again if the time was over first, as agents do."""
    result = await asker.ask(request)
    if result.outcome is Outcome.PENDING:
        result = await asker.check(request.request_id, seconds=LONG_SECONDS)
    return result


class Ask(Scenario):
    """A question is recorded and listed."""

    channels = ("local",)

    async def act(self) -> None:
        self.ask()

    def goal(self) -> bool:
        return self.is_open()


class Show(Ask):
    """A question is posted in two channels."""

    channels = ("chat", "pager")

    def goal(self) -> bool:
        record = self.stage.record() or {"cards": []}
        done = all(card["state"] in {"shown", "failed"} for card in record["cards"])
        return self.is_open() and done


class ShowAround(Ask):
    """One of the channels is out of order."""

    channels = ("down", "chat", "local")


class ShowNowhere(Ask):
    """No channel can show the question."""

    channels = ("down",)
    show_patience = "0s"
    outcome = "undeliverable"
    delivered = "none"

    def goal(self) -> bool:
        return self.stage.is_closed()


class Refuse(Scenario):
    """A request cannot be understood."""

    outcome = "refused"

    async def act(self) -> None:
        self.dead = MailboxAgent(self.stage.mailbox, SESSION)
        body = {"v": 1, "type": "ask_user:ask", "request_id": REQUEST_ID, "questions": []}
        self.dead.write(f"{REQUEST_ID}.json", json.dumps(body).encode())

    def goal(self) -> bool:
        return not (self.stage.mailbox / "tasks" / f"{REQUEST_ID}.json").exists()

    async def finish(self) -> None:
        await until(self.goal, "the request to be refused")


class Live(Scenario):
    """A person answers, and the waiting agent takes the answer."""

    async def set_up(self) -> None:
        await self.set_up_open()

    async def act(self) -> None:
        await self.stage.click("ana", "Yes")


class LiveLocal(Live):
    """The same where no card needs to be settled."""

    channels = ("local",)


class Desk(Live):
    """The answer is given at the agent's own terminal, and comes through the mailbox."""

    @classmethod
    def settings(cls, base: str) -> Json:
        settings = super().settings(base)
        settings["groups"][GROUP]["desk_answers"] = True
        return settings

    async def act(self) -> None:
        assert self.asker
        # Nobody is thanked there: whoever answers learns how it ended from the call.
        self.stage.clicks.append(Click("ana", "Yes", 0, {}))
        answers = [Answer("Deploy?", ("Yes",))]
        await self.asker.answer_at_desk(RequestId(REQUEST_ID), "ana", answers)
        await self.reach(self.stage.is_over, "the answer to be taken")


class Drafts(Live):
    """Two questions are answered one at a time."""

    questions = (Question("Deploy?", options=YES_NO), Question("Sure?", options=YES_NO))

    async def act(self) -> None:
        first = await self.stage.click("ana", "Yes", question=1)
        if first.status == 202:
            await self.stage.click("ana", "Yes", question=2)


class Held(Live):
    """The call was given up, the agent lives: it asks for the answer later."""

    async def act(self) -> None:
        assert self.call
        self.call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.call
        self.call = None
        await self.reach(lambda: bool(self._is_cancelled()), "the call's end to be known")
        await self.stage.click("ana", "Yes")
        if self.stage.is_over():
            await self.reach(lambda: self.stage.state() == "held", "the answer to be held")
        assert self.asker
        self.call = asyncio.create_task(
            self.asker.check(RequestId(REQUEST_ID), seconds=LONG_SECONDS)
        )

    def _is_cancelled(self) -> bool:
        return (self.stage.record() or {}).get("call_waits") is False


class Withdraw(Live):
    """The agent no longer needs an answer."""

    outcome = "withdrawn"
    delivered = "none"

    async def act(self) -> None:
        assert self.asker
        await self.asker.withdraw(RequestId(REQUEST_ID))


class Expire(Live):
    """Nobody answers."""

    answer_ttl = "700ms"
    outcome = "expired"
    delivered = "none"

    async def act(self) -> None:
        await self.reach(self.stage.is_over, "the question to expire")


class Default(Expire):
    """Nobody answers, and the asker has said what that means."""

    answer_ttl = "7d"
    questions = (Question("Deploy?", options=YES_NO, default="No"),)
    wait_seconds = 0.7
    outcome = "defaulted"
    delivered = "live"


class Late(Scenario):
    """The agent is dead: its session is resumed with the answer."""

    launcher = "acknowledge"
    delivered = "late"

    async def set_up(self) -> None:
        await self.set_up_open_and_dead()

    async def act(self) -> None:
        await self.stage.click("ana", "Yes")


class LateExit(Late):
    """The resumed command says nothing and ends well."""

    launcher = "exit-0"


class LateAgain(Late):
    """The first resumed runner fails."""

    launcher = "fail-first"


class LateProcess(Late):
    """The same with the launcher of agent programs."""

    @classmethod
    def program(cls, command: list[str]) -> Json:
        return as_runner(command)


class Park(Late):
    """The agent puts its call off and ends, and is resumed to make it."""

    async def set_up(self) -> None:
        await self.start_and_join()
        self.dead = MailboxAgent(self.stage.mailbox, SESSION)
        self.dead.ask("Deploy?", request_id=REQUEST_ID)
        await until(self.is_open, "the question to be shown")

    async def act(self) -> None:
        await self.park()
        await self.stage.click("ana", "Yes")

    async def park(self) -> None:
        assert self.dead
        self.dead.tell("park", REQUEST_ID)
        await self.reach(self.is_parked, "the call to be put off")
        self.dead.leave()

    def is_parked(self) -> bool:
        return bool((self.stage.record() or {}).get("parked"))


class ParkExpire(Park):
    """The same, and nobody answers."""

    answer_ttl = "2s"
    outcome = "expired"

    async def act(self) -> None:
        await self.park()
        await self.reach(self.stage.is_over, "the question to expire")


class LateRetry(Late):
    """The only attempt fails; a person starts it again."""

    launcher = "fail-first"
    attempts = 1
    verb: ClassVar[str] = "retry"

    async def act(self) -> None:
        await self.stage.click("ana", "Yes")
        if self.stage.is_over():
            await self.nudge()

    async def nudge(self) -> None:
        if await self.reach(self.is_stuck, "the delivery to be given up or done"):
            await self.stage.post(self.verb, {"by": "ana"})

    def is_stuck(self) -> bool:
        return self.stage.state() == "undelivered" or self.stage.is_closed()

    def goal(self) -> bool:
        # A nudge that met the fault was refused, and is repeated by the person.
        return self.is_stuck()

    async def finish(self) -> None:
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            while not self.stage.is_closed():
                await self.nudge()
                await asyncio.sleep(PAUSE_SECONDS)


class LateNever(LateRetry):
    """There is no launcher: a person is told, and dismisses the answer."""

    launcher = None
    delivered = "dismissed"
    verb = "dismiss"


class Run(Scenario):
    """A person starts a session."""

    launcher = "exit-0"
    outcome = "started"
    status = -1
    told: Json

    @classmethod
    def program(cls, command: list[str]) -> Json:
        return as_runner(command)

    async def act(self) -> None:
        wanted = {"group": GROUP, "prompt": "Deploy"}
        self.status, self.told = await self.stage.http("POST", "/api/sessions", wanted)

    def goal(self) -> bool:
        return self.status >= 0

    def rests(self) -> bool:
        return True

    async def finish(self) -> None:
        await waiting.until(self.have_ended, "the runners to end")

    async def have_ended(self) -> bool:
        return all(session["state"] == "ended" for session in await self.sessions())

    async def sessions(self) -> list[Json]:
        _, listed = await self.stage.http("GET", "/api/sessions")
        found: list[Json] = listed
        return found


def as_runner(command: list[str]) -> Json:
    """Return the settings of a launcher for agent programs whose runner is the command."""
    runner = Path(command[-1]).with_name("runner")
    runner.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$2" "$6"\n')
    runner.chmod(0o700)
    return {"kind": "process", "agent": "claude", "runner": str(runner)}


class FirstStart(Scenario):
    """A host starts for the first time, and a question waits already."""

    from_start = True

    async def set_up(self) -> None:
        self.stage.data.mkdir()
        self.make_mailbox()
        self.ask()
        await self.stage.fork(gated=True)

    async def act(self) -> None:
        self.stage.open_gate()
        await self.stage.is_ready()

    def goal(self) -> bool:
        return self.is_open()


class RestartOpen(Scenario):
    """A host starts where another has died, and the question is answered."""

    from_start = True

    async def set_up(self) -> None:
        await self.set_up_open()
        await self.stage.kill()
        await self.stage.fork(gated=True)

    async def act(self) -> None:
        self.stage.open_gate()
        if await self.stage.is_ready():
            await self.stage.click("ana", "Yes")


class RestartAnswered(RestartOpen):
    """The host that took the answer is gone, and the agent did not take it: it is resumed."""

    launcher = "acknowledge"
    delivered = "late"

    async def set_up(self) -> None:
        await self.start_and_join()
        self.dead = MailboxAgent(self.stage.mailbox, SESSION)
        self.dead.ask("Deploy?", request_id=REQUEST_ID)
        await until(self.is_open, "the question to be shown")
        await self.stage.click("ana", "Yes")
        await until(lambda: self.dead and self.dead.response(REQUEST_ID), "the response")
        await self.stage.kill()
        self.dead.die()
        await self.stage.fork(gated=True)

    async def act(self) -> None:
        self.stage.open_gate()
        await self.stage.is_ready()


class RestartLate(RestartAnswered):
    """The host is gone that has started a runner, and the runner goes on."""

    launcher = "wait"

    async def set_up(self) -> None:
        await self.set_up_open_and_dead()
        await self.stage.click("ana", "Yes")
        await until(lambda: self.stage.runs("started"), "the runner")
        await self.stage.kill()
        await self.stage.fork(gated=True)

    async def act(self) -> None:
        self.stage.open_gate()
        await self.stage.is_ready()
        (self.stage.base / "go").touch()


QUESTIONS: dict[str, type[Scenario]] = {
    "ask": Ask,
    "show": Show,
    "show-around": ShowAround,
    "show-nowhere": ShowNowhere,
    "refuse": Refuse,
    "answer": LiveLocal,
    "desk": Desk,
    "drafts": Drafts,
    "live": Live,
    "held": Held,
    "late": Late,
    "late-exit": LateExit,
    "late-again": LateAgain,
    "late-process": LateProcess,
    "park": Park,
    "park-expire": ParkExpire,
    "late-retry": LateRetry,
    "late-never": LateNever,
    "expire": Expire,
    "default": Default,
    "withdraw": Withdraw,
    "run": Run,
    "first-start": FirstStart,
    "restart-open": RestartOpen,
    "restart-answered": RestartAnswered,
    "restart-late": RestartLate,
}
