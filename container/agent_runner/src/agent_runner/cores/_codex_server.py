"""`codex app-server`: a thread, and the turns that one prompt needs, by JSON-RPC without a version.

    initialize ─► initialized ─► thread/start or thread/resume ─► turn/start ─► … ─► turn/completed

A "no" has no words in this protocol: the turn is told them beside it, or the next turn is.
"""

from collections.abc import Iterator
from pathlib import Path

from agent_runner.asking import Option, Outcome, Question
from agent_runner.asking import Result as Asked
from agent_runner.codex_calls import (
    CHANGE,
    COMMAND,
    INPUT,
    RESOLVED,
    RIGHTS,
    decide,
    is_described,
    read_call,
)
from agent_runner.cores._forms import ask_form
from agent_runner.cores._json_rpc import ErrorReply, JsonRpc, Result, RpcRequest
from agent_runner.cores.base import (
    APPROVAL_TOOL,
    ASK_TOOL,
    SERVER_NAME,
    AgentEvent,
    Asking,
    Denied,
    Failed,
    Fields,
    Named,
    NoServer,
    NoSession,
    PermissionWanted,
    PromptAccepted,
    QuestionWanted,
    RequestDropped,
    Said,
    Send,
    Verdict,
    denied,
    fields_of,
    items_of,
    text_of,
    turn_ended,
    turn_failed,
)

_NO_SERVER = "required MCP servers failed to initialize"
_NO_SESSION = "no rollout found for thread"
_NOT_THE_MODEL = frozenset({"", "userMessage", "hookPrompt", "contextCompaction", "error"})
_MAX_CHANGES = 1_000


def lack(text: str) -> NoServer | NoSession | None:
    """Return what Codex says it lacks, if that is what a text says."""
    if _NO_SERVER in text:
        return NoServer(text)
    return NoSession(text) if _NO_SESSION in text else None


class CodexTalk:
    """See Talk. `thread` is the one to go on with; None begins one."""

    def __init__(self, thread: str | None) -> None:
        self._resumed = thread
        self._rpc = JsonRpc(
            {
                COMMAND: self._wanted,
                CHANGE: self._wanted,
                RIGHTS: self._wanted,
                INPUT: self._input,
                "mcpServer/elicitation/request": self._form,
            },
            {
                "item/started": self._item_started,
                "item/completed": self._item_completed,
                "turn/completed": self._turn_completed,
                RESOLVED: self._resolved,
            },
            says_version=False,
        )
        self._cwd = str(Path.cwd())
        self._prompt = ""
        self._thread = ""
        self._turn = ""
        self._changes: dict[str, list[Fields]] = {}
        # Filled by whoever replies, in another thread, before the program reads the reply.
        self._denied: list[Denied] = []
        self._untold: list[str] = []

    def begin(self, prompt: str) -> str:
        """See Talk."""
        self._prompt = prompt
        told = {"clientInfo": {"name": SERVER_NAME, "title": "pynchy", "version": "1"}}
        return self._rpc.request("initialize", told, self._initialized)

    def say(self, text: str, then: str = "") -> str:
        """See Talk. `then` is sent when the turn has the text, or cannot have it."""

        def told(result: Result) -> Iterator[AgentEvent]:
            if isinstance(result, ErrorReply):
                self._untold.append(text)
            if then:
                yield Send(then)

        steer = {"threadId": self._thread, "expectedTurnId": self._turn, "input": _input(text)}
        return self._rpc.request("turn/steer", steer, told)

    def read(self, line: str) -> Iterator[AgentEvent]:
        """See Talk."""
        while self._denied:
            yield self._denied.pop(0)
        yield from self._rpc.read(line)

    def _initialized(self, result: Result) -> Iterator[AgentEvent]:
        if isinstance(result, ErrorReply):
            yield from turn_failed(result.told)
            return
        yield Send(self._rpc.notify("initialized"))
        place = {"cwd": self._cwd}
        if self._resumed:
            place["threadId"] = self._resumed
        method = "thread/resume" if self._resumed else "thread/start"
        yield Send(self._rpc.request(method, place, self._opened))

    def _opened(self, result: Result) -> Iterator[AgentEvent]:
        if isinstance(result, ErrorReply):
            yield lack(result.told) or Failed(result.told)
            yield turn_ended()
            return
        self._thread = text_of(fields_of(result, "thread"), "id")
        if not self._thread:
            yield from turn_failed("it has begun a thread without an id")
            return
        yield Named(self._thread)
        yield self._start_turn(self._prompt)

    def _start_turn(self, text: str) -> Send:
        turn = {"threadId": self._thread, "input": _input(text)}
        return Send(self._rpc.request("turn/start", turn, self._turn_started))

    def _turn_started(self, result: Result) -> Iterator[AgentEvent]:
        if isinstance(result, ErrorReply):
            yield from turn_failed(result.told)
        else:
            self._turn = text_of(fields_of(result, "turn"), "id")

    def _turn_completed(self, params: Fields) -> Iterator[AgentEvent]:
        if params.get("threadId") != self._thread:
            return
        turn = fields_of(params, "turn")
        if turn.get("status") == "completed" and self._untold:
            words, self._untold = self._untold, []
            yield self._start_turn("\n\n".join(words))
        elif turn.get("status") == "completed":
            yield turn_ended()
        else:
            error = text_of(fields_of(turn, "error"), "message")
            yield from turn_failed(error or f"the turn is {text_of(turn, 'status') or 'over'}")

    def _item_of(self, params: Fields) -> tuple[Fields, str]:
        """Return an item and its kind, which is empty where it is not of our thread."""
        item = fields_of(params, "item")
        return item, text_of(item, "type") if params.get("threadId") == self._thread else ""

    def _item_started(self, params: Fields) -> Iterator[AgentEvent]:
        item, kind = self._item_of(params)
        if kind in _NOT_THE_MODEL:
            return
        yield PromptAccepted()
        match kind:
            case "commandExecution":
                yield Said(f"runs {text_of(item, 'command')}")
            case "fileChange" if len(self._changes) < _MAX_CHANGES:
                self._changes[text_of(item, "id")] = items_of(item, "changes")
            case "mcpToolCall":
                yield Said(f"calls {text_of(item, 'server')}/{text_of(item, 'tool')}")
                waits = text_of(item, "tool") in {ASK_TOOL, APPROVAL_TOOL}
                if item.get("server") == SERVER_NAME and waits:
                    yield Asking()

    def _item_completed(self, params: Fields) -> Iterator[AgentEvent]:
        item, kind = self._item_of(params)
        if kind in _NOT_THE_MODEL:
            return
        self._changes.pop(text_of(item, "id"), None)
        yield PromptAccepted()
        if kind == "agentMessage":
            yield Said(f"says: {text_of(item, 'text')}")

    def _resolved(self, params: Fields) -> Iterator[AgentEvent]:
        yield RequestDropped(RpcRequest(params.get("requestId", ""), "", {}).key)

    def _wanted(self, request: RpcRequest) -> Iterator[AgentEvent]:
        """Ask for a command, a change of files or, for this turn, rights beyond the sandbox."""
        method, params = request.method, request.params
        changes = self._changes.get(text_of(params, "itemId"), [])
        tool, given = read_call(method, params, changes)
        call_id = text_of(request.params, "itemId") or request.key

        def reply(verdict: Verdict) -> str:
            told = decide(method, params, is_allowed=verdict.is_allowed)
            line = self._rpc.respond(request, told)
            sign = denied(call_id, tool, given)
            # The words first: the model is to read them with the outcome, not after it.
            if not verdict.is_allowed:
                self._denied.append(sign)
                return self.say(f"This was not allowed: {sign.detail}\n{verdict.words}", then=line)
            with_it = f"{sign.detail}\n{verdict.words}"
            return self.say(with_it, then=line) if verdict.words else line

        # Not the call's id: one call may need several permissions.
        cwd = text_of(params, "cwd")
        wanted = PermissionWanted(request.key, request.unique_key, tool, given, reply, cwd)
        yield wanted if is_described(method, params, changes) else _undescribed(wanted)

    def _input(self, request: RpcRequest) -> Iterator[AgentEvent]:
        asked = items_of(request.params, "questions")
        if not asked or any(one.get("isSecret") for one in asked):
            yield Said("wants a secret, which nobody is asked for in a chat")
            yield Send(self._rpc.respond(request, {"answers": {}}))
            return

        def reply(result: Asked) -> str:
            answers = result.answers if result.outcome is Outcome.ANSWERED else ()
            told = {
                text_of(one, "id"): {"answers": [*a.selected, *([a.text] if a.text else [])]}
                for one, a in zip(asked, answers, strict=False)
            }
            return self._rpc.respond(request, {"answers": told})

        yield QuestionWanted(request.key, tuple(_question(one) for one in asked), reply)

    def _form(self, request: RpcRequest) -> Iterator[AgentEvent]:
        return ask_form(request, lambda told: self._rpc.respond(request, {"content": None, **told}))


def _undescribed(wanted: PermissionWanted) -> Send:
    """Return the no to what nobody could be shown."""
    words = "Codex did not tell what it wants to do, so nobody could be asked."
    return Send(wanted.reply(Verdict(is_allowed=False, words=words)))


def _input(text: str) -> list[Fields]:
    return [{"type": "text", "text": text}]


def _question(asked: Fields) -> Question:
    options = [
        Option(text_of(one, "label"), text_of(one, "description"))
        for one in items_of(asked, "options")
    ]
    return Question(
        question=text_of(asked, "question"),
        header=text_of(asked, "header"),
        options=tuple(options),
        options_only=bool(options) and not asked.get("isOther"),
    )
