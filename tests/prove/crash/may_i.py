"""Permissions and approvals in the sweep: what is said yes to, by whom, and how often it counts."""

import asyncio
import http.client
import json
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from tests.acceptance.support import MailboxAgent
from tests.prove.crash.checks import require
from tests.prove.crash.scenarios import SESSION, Late, Live, Scenario
from tests.prove.crash.stage import (
    GROUP,
    REQUEST_ID,
    Json,
    Stage,
    until,
)

from agent_runner.asking import Approval, Permission
from pynchy.data_dir import DataFolder
from pynchy.http.hook_keys import HOOK_PATH, HookKeys

COMMAND = "git status"
CALL = {"program": "claude", "tool": "Bash", "input": {"command": COMMAND}, "cwd": "/srv/app"}
ALLOW, ALWAYS, DENY = "Allow once", "Allow always…", "Deny"


class Approve(Live):
    """Two people approve, one after the other."""

    questions = ()
    approval = Approval("Deploy?")
    approvals_needed = 2
    choice = "Approve"

    async def act(self) -> None:
        first = await self.stage.click("ana", self.choice)
        if first.status == 202:
            await self.stage.click("ben", self.choice)


class Allow(Live):
    """Somebody allows the call of a tool once: no rule comes of it."""

    questions = ()
    permission = Permission("claude", "Bash", {"command": COMMAND}, "/srv/app")
    choice = ALLOW

    async def act(self) -> None:
        await self.stage.click("ana", self.choice)

    def rules(self) -> list[Json]:
        """Return the rules that are on the disk, those that were used and those that were made."""
        path = self.stage.data / "rules.json"
        found: list[Json] = json.loads(path.read_bytes())["rules"] if path.exists() else []
        return found

    async def look_at_the_end(self, *, faultless: bool) -> None:
        del faultless
        require(not self.rules(), "a rule is made only by who chooses one", self.rules())


class Deny(Allow):
    """Somebody does not allow it."""

    choice = DENY


class EditCall(Allow):
    """Somebody changes the call of a tool, and allows it so."""

    permission = Permission("claude", "Bash", {"command": COMMAND}, "/srv/app", editable=True)

    async def act(self) -> None:
        await self.stage.click("ana", self.choice, edited={"command": "git fetch"})


class Always(Allow):
    """Somebody allows it always: the answer is recorded, and a rule made of it."""

    choice = ALWAYS

    def look_at_the_dead(self) -> None:
        """There is no rule of which nobody has said yes, at no step."""
        for rule in self.rules():
            require(self.stage.is_over(), "no rule comes before its yes", rule)
            self._check_rule(rule)

    async def look_at_the_end(self, *, faultless: bool) -> None:
        made = self.rules()
        require(len(made) <= 1, "one yes makes one rule", made)
        for rule in made:
            self._check_rule(rule)
        untold = not any(e["type"] == "rule_not_made" for e in self.stage.events())
        if faultless or untold:
            require(made, "whoever said always has made a rule, or is told why not")

    def _check_rule(self, rule: Json) -> None:
        outcome = json.loads(self.stage.file("outcomes").read_bytes())
        require(rule["made_by"] == outcome["by"], "a rule is made by who said yes", rule, outcome)
        [answer] = outcome["answers"]
        require(answer["selected"] == [ALWAYS], "a rule is made by who said always", rule, outcome)


class AlwaysForOthers(Always):
    """The rule that somebody makes covers another open card, which it answers, once."""

    other: ClassVar[str] = "q2"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.waiting: MailboxAgent | None = None

    async def set_up(self) -> None:
        await self.set_up_open()
        self.waiting = MailboxAgent(self.stage.mailbox, "session-2")
        self.waiting.ask(request_id=self.other, questions=[], permission=CALL)
        await until(self._is_shown, "the other card to be shown")

    def _is_shown(self) -> bool:
        record = self.stage.mailbox / "pending_questions" / f"{self.other}.json"
        return record.exists() and b'"open"' in record.read_bytes()

    async def finish(self) -> None:
        await super().finish()
        agent = self.waiting
        assert agent
        if not self._outcome().exists():
            body = {"values": ["deny"], "by": "cy", "group": GROUP}
            await self.stage.http("POST", f"/api/questions/{self.other}/answer", body)
        await until(lambda: agent.response(self.other), "the response to the other")
        require(agent.take(self.other), "the agent takes it")
        history = self.stage.mailbox / "history" / f"{self.other}.json"
        await until(history.exists, "the other to be closed")

    def _outcome(self) -> Path:
        return self.stage.mailbox / "outcomes" / f"{self.other}.json"

    async def look_at_the_end(self, *, faultless: bool) -> None:
        await super().look_at_the_end(faultless=faultless)
        history = self.stage.mailbox / "history" / f"{self.other}.json"
        ending = json.loads(history.read_bytes())["ending"]
        if ending["channel"] != "rule":
            # A write that failed leaves it to a person; a host that died goes on where it was.
            require(not faultless and self.stage.hosts == 1, "the rule answers it", ending)
            return
        [rule] = self.rules()
        require(rule["uses"] >= 1, "what a rule allows is counted", rule)
        require(rule["uses"] == 1 or not faultless, "a use is counted once", rule)
        used = [e["id"] for e in self.stage.events() if e["type"] == "rule_used"]
        require(self.other in used, "what a rule allows is told", used)

    def look_at_the_dead(self) -> None:
        """An answer of the rule is there only if the rule and its use are."""
        super().look_at_the_dead()
        if self._outcome().exists():
            require([r for r in self.rules() if r["uses"]], "a use is written before it counts")


class ByRule(Allow):
    """A rule answers; where its use cannot be written down, a person is asked."""

    has_rule = True

    @classmethod
    def settings(cls, base: str) -> Json:
        settings = super().settings(base)
        settings["groups"][GROUP]["permissions"] = {"allow": ["Bash(git status *)"]}
        return settings

    async def set_up(self) -> None:
        await self.start_and_join()

    async def act(self) -> None:
        self.ask()

    def goal(self) -> bool:
        return self.stage.is_closed() or self.is_open()

    async def look_at_the_end(self, *, faultless: bool) -> None:
        outcome = json.loads(self.stage.file("outcomes").read_bytes())
        if outcome["channel"] != "rule":
            require(not faultless, "a rule answers where nothing is wrong", outcome)
            return
        [rule] = self.rules()
        require(rule["uses"] >= 1, "what a rule allows is counted", rule)
        require(rule["uses"] == 1 or not faultless, "a use is counted once", rule)
        used = [e for e in self.stage.events() if e["type"] == "rule_used"]
        require(any(e["id"] == REQUEST_ID for e in used), "what a rule allows is told", used)

    def look_at_the_dead(self) -> None:
        """An answer of a rule is there only if its use is."""
        if self.stage.is_over():
            require(self.rules(), "a use is written before it counts", self.rules())


class GrantedLate(Late):
    """The resumed session may make the call that was allowed, once, whatever is hit."""

    questions = ()
    permission = Allow.permission
    choice = ALLOW
    # The very call, twice; and once more after whatever happened.
    again: ClassVar[tuple[str, ...]] = ("q2", "q3")
    after: ClassVar[str] = "q4"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.agents: dict[str, MailboxAgent] = {}
        self.granted: list[str] = []

    def ask_and_die(self) -> None:
        self.dead = self._may_i(REQUEST_ID)
        self.dead.die()

    async def act(self) -> None:
        await self.stage.click("ana", self.choice)
        if self.stage.is_over() and await self.reach(self._is_delivered, "the session to be told"):
            self.agents = {one: self._may_i(one) for one in self.again}

    def goal(self) -> bool:
        return self._is_delivered() and all(map(self._is_seen, self.agents))

    def rests(self) -> bool:
        return self.stage.state() in {"open", "undelivered"} or self.goal()

    def _may_i(self, request_id: str) -> MailboxAgent:
        agent = MailboxAgent(self.stage.mailbox, SESSION)
        agent.ask(request_id=request_id, questions=[], permission=CALL)
        return agent

    def _is_delivered(self) -> bool:
        return (self.stage.record() or {}).get("delivered") is not None

    def _is_seen(self, request_id: str) -> bool:
        """True if it was allowed, or a person is asked."""
        if (self.stage.mailbox / "outcomes" / f"{request_id}.json").exists():
            return True
        record = self.stage.mailbox / "pending_questions" / f"{request_id}.json"
        return record.exists() and b'"open"' in record.read_bytes()

    async def finish(self) -> None:
        await super().finish()
        self.agents[self.after] = self._may_i(self.after)
        for request_id, agent in self.agents.items():
            await self._see_through(request_id, agent)

    async def _see_through(self, request_id: str, agent: MailboxAgent) -> None:
        """Deny the call if somebody is asked, and let it end."""
        await until(lambda: self._is_seen(request_id), f"{request_id} to be allowed or asked")
        if (self.stage.mailbox / "outcomes" / f"{request_id}.json").exists():
            self.granted.append(request_id)
        else:
            body = {"values": ["deny"], "by": "cy", "group": GROUP}
            await self.stage.http("POST", f"/api/questions/{request_id}/answer", body)
        await until(lambda: agent.response(request_id), f"the response to {request_id}")
        require(agent.take(request_id), "the agent takes it")
        history = self.stage.mailbox / "history" / f"{request_id}.json"
        await until(history.exists, f"{request_id} to be closed")

    async def look_at_the_end(self, *, faultless: bool) -> None:
        require(len(self.granted) <= 1, "a late yes is good for one call", self.granted)
        require(self.granted or not faultless, "a late yes is good for a call", self.granted)


class AtTheTerminal(Scenario):
    """Claude Code's terminal asks: its dialog and a person elsewhere, and the host is hit."""

    by_mailbox = False
    outcome = "cleared"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.dialog: asyncio.Task[Json | None] | None = None
        self.key = ""

    async def set_up(self) -> None:
        await self.start_and_join()
        self.key = HookKeys(DataFolder(self.stage.data)).make(GROUP)

    def show_dialog(self) -> None:
        """Let the program ask; its request hangs until somebody decides."""
        self.dialog = asyncio.create_task(self.tell("PermissionRequest"))

    async def tell(self, name: str) -> Json | None:
        """Send an event, and return what the program is told; None if that is nothing."""
        event = {"session_id": SESSION, "cwd": "/srv/app", "hook_event_name": name}
        body = {**event, "tool_name": "Bash", "tool_input": CALL["input"]}
        with suppress(OSError, http.client.HTTPException):
            status, told = await asyncio.to_thread(
                self.stage.request, "POST", HOOK_PATH, body, key=self.key
            )
            return told if status == 200 else None
        return None

    def is_open(self) -> bool:
        asked = list((self.stage.mailbox / "pending_questions").glob("[!.]*.json"))
        if asked:
            self.stage.request_id = asked[0].stem
        return self.stage.state() == "open"

    async def act(self) -> None:
        """The question is recorded and shown."""
        self.show_dialog()

    def goal(self) -> bool:
        # Where it could not be recorded the dialog is left alone.
        return self.is_open() or self.stage.is_closed() or self._has_ended()

    def _has_ended(self) -> bool:
        return self.dialog is not None and self.dialog.done()

    def rests(self) -> bool:
        return not list((self.stage.mailbox / "pending_questions").glob("[!.]*.json"))

    async def finish(self) -> None:
        """Somebody says yes in the dialog, which is still there."""
        await self.tell("PostToolUse")
        await until(self.rests, "the card to be settled by the dialog's own answer")
        assert self.dialog
        await until(self.dialog.done, "the request of the dialog to end")

    def look_at_the_dead(self) -> None:
        """Whoever was allowed to go on was so by an answer that is recorded."""
        if self._allowed():
            require(self.stage.is_over(), "what the terminal is told is on the disk")

    async def look_at_the_end(self, *, faultless: bool) -> None:
        stage = self.stage
        # A mark that could not be removed makes the next call's end be told, which removes it.
        await self.tell("PostToolUse")
        await until(lambda: not (stage.data / "terminal-waits").exists(), "the mark to go")
        if not stage.file("history").exists():
            require(not faultless and not stage.clicks, "what was asked is not lost")
            require(not self._allowed(), "nothing is allowed that nobody was asked for")
            return
        ending = json.loads(stage.file("history").read_bytes())["ending"]
        thanked = [click.by for click in stage.clicks if click.status == 200]
        if ending["outcome"] == "answered":
            require(thanked in ([], [ending["by"]]), "one answer wins", thanked, ending)
            alive = stage.hosts == 1
            require(self._allowed() or not alive, "the terminal is told the answer", ending)
        else:
            require(ending["outcome"] == "cleared", "what the terminal took back is cleared")
            require(not thanked, "an acknowledged answer survives", thanked, ending)
            require(not self._allowed(), "only a person allows it", ending)
        cards = [c for c in stage.cards() if c["request_id"] == stage.request_id]
        for last in cards[-1:]:
            right = last["what"] == "settled" and last["outcome"] == ending["outcome"]
            require(right, "no card stays wrong", cards)
        eve = await stage.click("eve", ALLOW)
        require(eve.status == 409, "whoever comes last is told that it is over", eve)

    def _allowed(self) -> bool:
        told = self.dialog.result() if self.dialog and self.dialog.done() else None
        said = (told or {}).get("hookSpecificOutput", {})
        return bool(said and said["decision"]["behavior"] == "allow")


class TerminalElsewhere(AtTheTerminal):
    """Somebody allows it elsewhere while the dialog waits."""

    async def set_up(self) -> None:
        await super().set_up()
        self.show_dialog()
        await until(self.is_open, "the question to be shown")

    async def act(self) -> None:
        await self.stage.click("ana", ALLOW)

    def goal(self) -> bool:
        return self.stage.is_closed()


class TerminalAgain(TerminalElsewhere):
    """A host starts where another has died: nobody but the terminal can answer."""

    from_start = True

    async def set_up(self) -> None:
        await super().set_up()
        await self.stage.kill()
        await self.stage.fork(gated=True)

    async def act(self) -> None:
        self.stage.open_gate()
        await self.stage.is_ready()


class TerminalYes(TerminalElsewhere):
    """Somebody says yes in the dialog, of which the end of the call tells."""

    async def act(self) -> None:
        await self.tell("PostToolUse")

    def goal(self) -> bool:
        return self.stage.is_closed()


MAY_I: dict[str, type[Scenario]] = {
    "approve": Approve,
    "allow": Allow,
    "always": Always,
    "always-for-others": AlwaysForOthers,
    "deny": Deny,
    "edit": EditCall,
    "by-rule": ByRule,
    "granted-late": GrantedLate,
    "terminal": AtTheTerminal,
    "terminal-elsewhere": TerminalElsewhere,
    "terminal-yes": TerminalYes,
    "terminal-again": TerminalAgain,
}
