"""A host through its life: questions in every state, sessions, refusals; and what is seen of it.

Everything goes through the real programs: agents write into mailboxes, people talk HTTP, and what
is kept is read from the data folder.
"""

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.acceptance.support import Host, Json, MailboxAgent, Runs
from tests.pins.shapes import merged, shape_of
from tests.pins.shell import see_commands
from tests.slack.support import ANA, group_table, people, tokens_of
from tests.slack.support import settings as with_slack
from tests.standins.slack import SlackStandIn
from tests.waiting import until

SINGLE = [{"question": "Deploy?", "header": "Deploy", "options": ["Yes", "No"]}]
MULTI = [
    {
        "question": "Which?",
        "options": [{"label": "a", "description": "the first", "preview": "A"}, "b", "c"],
        "multiSelect": True,
    }
]
TEXT = [{"question": "Why?"}]
BATCH = [*SINGLE, *TEXT, *MULTI]
DEFAULT = [{"question": "Go on?", "options": ["Yes", "No"], "default": "No"}]
_GROUPS = ("early", "team", "gone", "back", "known", "chat", "mute", "cli")


class World:
    """One host, those who talk to it, and the shapes of what they saw."""

    def __init__(self, folder: Path) -> None:
        self.slack = SlackStandIn().start()
        people(self.slack)
        self.slack.workspace.add_channel("C1", ANA)
        self.runs = {name: Runs(_made(folder / name)) for name in ("gone", "back", "known")}
        self.host = Host(folder / "data", 'answer_ttl = "300ms"\nwait_timeout = "300ms"')
        self.agents: list[MailboxAgent] = []
        self.http: Json = {}
        self.files: dict[str, list[Any]] = {}

    def settings(self) -> str:
        """Return pynchy.toml for the main part of the life."""
        tables = [
            self.runs["gone"].launcher("fail", "gone", attempts=2, backoff="10ms"),
            self.runs["back"].launcher("acknowledge", "back"),
            self.runs["known"].process("finish", "known"),
            group_table("chat", "C1"),
            group_table("mute", "CNOWHERE"),
        ]
        return with_slack(self.slack, *tables)

    def agent(self, group: str, session: str) -> MailboxAgent:
        """Return an agent of the group that lives."""
        agent = MailboxAgent(self.host.group(group), session)
        self.agents.append(agent)
        return agent

    async def ask(self, agent: MailboxAgent, name: str, questions: list[Json], **more: Any) -> str:
        """Ask under that id, and wait until the question is open."""
        asked = {"questions": questions, "title": "A title", "agent": "claude", "task": "a task"}
        agent.ask(request_id=name, **(asked | more))
        await self.host.state(name, "open", "closed")
        return name

    def see(self, what: str, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Make the request and keep the shape of what came; return it."""
        reply = self.host.http(method, path, body, **options)
        self.http[what] = {"status": reply.status, "body": shape_of(reply.body)}
        return reply.body

    def see_question(self, what: str, name: str) -> Any:
        """Keep the shape of the question as it is now."""
        return self.see(f"question, {what}", "GET", f"/api/questions/{name}")

    def say(self, what: str, name: str, verb: str = "answer", **body: Any) -> Any:
        """Say something about the question, as a person."""
        return self.see(f"{verb}, {what}", "POST", f"/api/questions/{name}/{verb}", body)

    def see_files(self) -> None:
        """Keep the shapes of what the data folder has now."""
        for path in sorted(self.host.data.rglob("*")):
            name = plain_name(path.relative_to(self.host.data))
            if path.is_file() and name is not None:
                self.files.setdefault(name, []).extend(_contents(path))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


async def see_world(folder: Path) -> Json:
    """Let a host live its life in the folder; return what was seen, by snapshot."""
    world = World(folder)
    with tokens_of(world.slack):
        try:
            await _expire(world)
            world.host.configure(world.settings())
            await world.host.restart()
            await until(lambda: world.slack.sockets.count, "the host's socket")
            return await _live(world)
        finally:
            world.host.kill()
            world.slack.stop()


async def _live(world: World) -> Json:
    _see_refusals(world)
    await _see_open(world)
    await _see_answers(world)
    await _see_other_ends(world)
    await _see_undelivered(world)
    await _see_resumed(world)
    await _see_sessions(world)
    _see_lists(world)
    cards = await _see_cards(world)
    world.see_files()
    return {
        "http": world.http,
        "events": _by_type(world.host.events()),
        "stream": _see_stream(world.host),
        "files": {name: merged(shapes) for name, shapes in world.files.items()},
        "slack": cards,
        "shell": await see_commands(world.host),
    }


async def _expire(world: World) -> None:
    await world.host.start()
    agent = world.agent("early", "s-early")
    await world.ask(agent, "expired", SINGLE)
    await world.host.closed("expired")
    world.see_question("expired", "expired")
    world.say("too late", "expired", values=["1"], by="ana")
    agent.leave()


def _see_refusals(world: World) -> None:
    world.see("not signed in", "GET", "/api/pending", headers={})
    world.see("health, for everybody", "GET", "/healthz", headers={})
    world.see("health", "GET", "/healthz")
    world.see("no such page", "GET", "/api/nothing")
    world.see("wrong method", "POST", "/api/pending")
    world.see("no such question", "GET", "/api/questions/zzzz")
    world.see("no such session", "GET", "/api/sessions/nothing")
    world.see("history with a bad limit", "GET", "/api/history?limit=x")
    world.see("history with a bad outcome", "GET", "/api/history?outcome=x")
    world.see("events with a bad number", "GET", "/api/events?after=x")
    world.see("run, no such group", "POST", "/api/sessions", {"group": "no", "prompt": "Go"})
    world.see("run, no launcher", "POST", "/api/sessions", {"group": "chat", "prompt": "Go"})
    world.see("run, malformed", "POST", "/api/sessions", {"group": "chat"})


async def _see_open(world: World) -> None:
    """Have one of each sort open."""
    agent = world.agent("team", "s-team")
    asked = {"single": SINGLE, "multi": MULTI, "words": TEXT, "batch": BATCH, "default": DEFAULT}
    for name, questions in asked.items():
        await world.ask(agent, name, questions, urgency="high", wait_seconds=3600)
        world.see_question(f"open, {name}", name)
    world.see("pending", "GET", "/api/pending")
    world.see("agents", "GET", "/api/agents")
    world.see_files()


async def _see_answers(world: World) -> None:
    """Answer what is open, in every way."""
    [agent] = [a for a in world.agents if a.session_id == "s-team"]
    world.say("of no sense", "single", values=["1", "2"], by="ana")
    world.say("malformed", "single", values="1")
    world.say("single", "single", values=["1"], by="ana")
    world.say("a second time", "single", values=["2"], by="ben")
    ticked = [{"options": [1], "selected": ["b"], "text": "and so on"}]
    world.say("multi", "multi", answers=ticked, by="ana")
    world.say("words", "words", values=["Because."], by="ana")
    world.say("a part", "batch", values=["1"], question=1, by="ana")
    world.say("a part again", "batch", values=["2"], question=1, by="ben")
    world.say("another part", "batch", values=["Because."], question=2, by="ben")
    world.see_question("with drafts", "batch")
    world.see_files()
    world.say("the last part", "batch", values=["a", "b"], question=3, by="cy")
    world.say("default", "default", values=["Yes"], by="ana")
    for name in ("single", "multi", "words", "batch", "default"):
        await agent.receive(name)
        await world.host.closed(name)
        world.see_question(f"answered, {name}", name)


async def _see_other_ends(world: World) -> None:
    agent = world.agent("team", "s-ends")
    await world.ask(agent, "declined", SINGLE)
    world.say("with a reason", "declined", "decline", by="ana", reason="Not now.")
    await world.ask(agent, "withdrawn", SINGLE)
    agent.tell("withdraw", "withdrawn")
    await world.ask(agent, "defaulted", DEFAULT, wait_seconds=0.1)
    for name in ("declined", "withdrawn", "defaulted"):
        await agent.receive(name)
        await world.host.closed(name)
        world.see_question(name, name)
    await world.ask(world.agent("mute", "s-mute"), "undeliverable", SINGLE)
    world.see_question("undeliverable", "undeliverable")
    agent.write("bad.json", b'{"v": 1, "type": "ask_user:ask", "request_id": "bad"}')
    await agent.responded("bad")
    agent.write("odd.json", b'{"v": 1, "type": "nobody:knows", "request_id": "odd"}')
    await agent.responded("odd")
    for word in ("waiting", "parked", "failed"):
        said = {"session_id": "s-ends", "agent": "claude", "event": word, "detail": "so"}
        event = {"v": 1, "type": "session:event", "request_id": f"word-{word}", **said}
        agent.write_json(f"word-{word}.json", event)
        kind = f"session_{word}"
        await until(lambda kind=kind: kind in _kinds(world.host), kind)


async def _see_undelivered(world: World) -> None:
    """Answer agents that are gone and cannot be resumed, one that lives, and one parked."""
    killed, parked = world.agent("gone", "s-gone"), world.agent("gone", "s-parked")
    await world.ask(killed, "lost", SINGLE)
    await world.ask(parked, "parked", SINGLE, wait_seconds=3600)
    parked.tell("park", "parked")
    await until(lambda: world.host.question("parked")["parked"], "the call to be put off")
    world.say("of what is open", "parked", "retry", by="ana")
    killed.die()
    parked.die()
    await world.host.session_is("s-parked", "parked")
    world.see("session, parked", "GET", "/api/sessions/s-parked")
    world.see_question("parked", "parked")
    world.host.answer("lost", "1")
    await world.host.state("lost", "undelivered")
    world.see_question("undelivered", "lost")
    world.see("pending, undelivered", "GET", "/api/pending")
    world.see_files()
    world.say("failed", "lost", "retry", by="ana")
    await world.host.state("lost", "undelivered")
    world.say("failed", "lost", "dismiss", by="ana")
    await world.host.closed("lost")
    world.see_question("dismissed", "lost")
    await _see_held(world)


async def _see_held(world: World) -> None:
    agent = world.agent("team", "s-held")
    await world.ask(agent, "held", SINGLE)
    agent.tell("cancel", "held")
    await until(lambda: not world.host.question("held")["call_waits"], "the call to end")
    world.host.answer("held", "1")
    await world.host.state("held", "held")
    world.see_question("held", "held")


async def _see_resumed(world: World) -> None:
    killed, parked = world.agent("back", "s-back"), world.agent("back", "s-put-off")
    await world.ask(killed, "late", BATCH)
    await world.ask(parked, "late-parked", SINGLE)
    parked.tell("park", "late-parked")
    await until(lambda: world.host.question("late-parked")["parked"], "the call to be put off")
    killed.die()
    parked.die()
    world.say("late", "late", answers=[{"options": [1]}, {"text": "So."}, {"options": [2]}])
    await world.host.closed("late")
    world.host.answer("late-parked", "1")
    await world.host.closed("late-parked")
    world.see_question("answered late", "late")
    world.see_question("answered late to a parked agent", "late-parked")


async def _see_sessions(world: World) -> None:
    wanted = {"group": "known", "prompt": "Mend it"}
    finished = world.see("run", "POST", "/api/sessions", wanted)["session_id"]
    await world.host.session_is(finished, "ended")
    world.see("session, ended", "GET", f"/api/sessions/{finished}")
    world.see("log", "GET", f"/api/sessions/{finished}/log")
    world.see("log with a bad number", "GET", f"/api/sessions/{finished}/log?after=x")
    world.see("stop, over", "POST", f"/api/sessions/{finished}/stop", {})
    world.runs["known"].do("work")
    working = world.host.run("known")
    await until(lambda: len(world.runs["known"].started()) > 1, "the runner")
    world.see_files()
    world.see("stop", "POST", f"/api/sessions/{working}/stop", {"by": "ana"})
    await world.host.session_is(working, "ended")
    world.see("sessions", "GET", "/api/sessions")


def _see_lists(world: World) -> None:
    world.see("history", "GET", "/api/history")
    world.see("history of a group", "GET", "/api/history?group=team&outcome=declined&limit=5")
    world.see("status", "GET", "/api/status")
    world.see("inbox settings", "GET", "/api/inbox/settings")
    world.see("sign-in link", "POST", "/api/inbox/link")
    world.see_files()
    world.see("sign out", "POST", "/api/inbox/sign-out-all")
    world.see("sweep", "POST", "/api/sweep", {"dry_run": True})


async def _see_cards(world: World) -> Json:
    """Return what the cards in Slack carry to be found again and to be answered."""
    agent = world.agent("chat", "s-chat")
    found = {}
    for name, questions in {"single": SINGLE, "multi": MULTI, "text": TEXT, "batch": BATCH}.items():
        asked = await world.ask(agent, f"slack-{name}", questions)
        before = len(found)
        card = world.slack.messages("C1")[before]
        found[name] = _card(card.to_json(with_metadata=True), asked)
    pressed = world.slack.messages("C1")[0]
    world.slack.person(ANA).press(pressed, "Yes")
    await agent.receive("slack-single")
    world.see_question("answered in Slack", (await world.host.closed("slack-single"))["request_id"])
    return found


def _card(message: Json, request_id: str) -> Json:
    """Return the marks of a card; its words are not pinned."""
    marks = [json.loads(json.dumps(mark).replace(request_id, "<id>")) for mark in _marks(message)]
    metadata = message["metadata"]
    return {
        "marks": marks,
        "event_type": metadata["event_type"],
        "event_payload": shape_of(metadata["event_payload"]),
    }


def _marks(message: Json) -> Iterator[Json]:
    for block in message["blocks"]:
        elements = [*block.get("elements", ()), block.get("element"), block.get("accessory")]
        for element in elements:
            if element and "action_id" in element:
                yield {
                    "block": block["block_id"],
                    "action": element["action_id"],
                    "type": element["type"],
                    "value": element.get("value"),
                    "options": [option["value"] for option in element.get("options", ())],
                }


def _kinds(host: Host) -> set[str]:
    return {event["type"] for event in host.events()}


def _by_type(events: list[Json]) -> Json:
    """Return the shape of the lines of each type."""
    kinds = sorted({event["type"] for event in events})
    return {kind: merged(shape_of(e) for e in events if e["type"] == kind) for kind in kinds}


def _see_stream(host: Host) -> Json:
    """Return the fields of the live stream's messages, and whether they are the log's lines."""
    events = host.events()
    address = urlsplit(host.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    headers = {"Authorization": f"Bearer {host.token()}", "Last-Event-ID": "0"}
    connection.request("GET", "/api/events", headers=headers)
    reply = connection.getresponse()
    messages = [_message(reply) for _ in events]
    connection.close()
    assert [json.loads(message["data"]) for message in messages] == events
    assert [message["event"] for message in messages] == [event["type"] for event in events]
    assert [message["id"] for message in messages] == [str(event["seq"]) for event in events]
    return {"content-type": reply.headers["content-type"], "fields": sorted(messages[0])}


def _message(reply: http.client.HTTPResponse) -> dict[str, str]:
    fields = {}
    while line := reply.readline().decode().rstrip("\n"):
        name, _, value = line.partition(": ")
        fields[name] = value
    return fields


def plain_name(path: Path) -> str | None:
    """Return the path with what differs from host to host left out; None for what passes."""
    *folders, name = path.parts
    if name.startswith(".") or (folders[-1:] == ["tasks"] and name.endswith(".json")):
        return None
    below = [folder if folder not in _GROUPS else "<group>" for folder in folders]
    if below[:2] == ["ipc", "<group>"] and len(below) == 4:
        below[3] = "<id>"
    if below[:1] == ["ipc"] and name not in {"host.json", "initial.json"}:
        name = re.sub(r"^[^.]+", "<id>", name)
    if below[:1] in (["sessions"], ["runners"]):
        name = re.sub(r"^[^.]+", "<id>", name)
    return "/".join([*below, name])


def _contents(path: Path) -> list[Any]:
    """Return the shapes of what the file says: of JSON what is in it, else that it is text."""
    data = path.read_bytes()
    try:
        return [shape_of(json.loads(data))]
    except ValueError:
        return ["text"]
