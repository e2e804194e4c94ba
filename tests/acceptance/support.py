"""Real processes to test with: a host, agents, people, and the commands that resume a session.

Nothing here looks inside the product: what happened is read from results, HTTP, files and the
event log.
"""

import asyncio
import contextlib
import fcntl
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.forking import Forked, forker, run_forked
from tests.waiting import until

PYNCHY = Path(sys.executable).parent / "pynchy"
_INSTALLED = PYNCHY
HURRIED = "tests.hurry:main"
RUNNER = Path(__file__).with_name("runner.py")
SCRIPTED_RUNNER = Path(__file__).with_name("scripted_runner.py")
ROOT = Path(__file__).parents[2]

ERAS = ("legacy", "2026-07-28")
DEPLOY = {"questions": [{"question": "Deploy?", "options": ["Yes", "No"]}]}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: Any


class Person:
    """Whoever holds the data folder's token: talks HTTP to the host at `url`."""

    def __init__(self, data: Path, url: str = "") -> None:
        self.data = data
        self.url = url

    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    def page(self, path: str) -> str:
        """Return the page as somebody with the token gets it."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token()}"})
        reply = connection.getresponse()
        text = reply.read().decode()
        assert reply.status == http.client.OK, text
        connection.close()
        return text

    def http(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> HttpReply:
        """Make one request; the token is sent unless the headers say otherwise."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        sent = {"Authorization": f"Bearer {self.token()}"} if headers is None else headers
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, payload, sent)
            reply = connection.getresponse()
            return HttpReply(reply.status, json.loads(reply.read() or b"null"))
        finally:
            connection.close()

    def pending(self) -> list[Json]:
        listed: list[Json] = self._get("/api/pending")
        return listed

    def history(self) -> list[Json]:
        listed: list[Json] = self._get("/api/history")
        return listed

    def question(self, target: str) -> Json:
        found: Json = self._get(f"/api/questions/{target}")
        return found

    def card_states(self, target: str) -> dict[str, str]:
        """Return what became of the question's card in each channel."""
        return {card["channel"]: card["state"] for card in self.question(target)["cards"]}

    def answer(self, target: str, *values: str, by: str = "ana", **more: Any) -> HttpReply:
        body = {"values": list(values), "by": by, **more}
        return self.http("POST", f"/api/questions/{target}/answer", body)

    def decline(self, target: str, by: str = "ana") -> HttpReply:
        return self.http("POST", f"/api/questions/{target}/decline", {"by": by})

    def retry(self, target: str, by: str = "ana") -> HttpReply:
        return self.http("POST", f"/api/questions/{target}/retry", {"by": by})

    def run(self, group: str = "team", prompt: str = "Mend it", **fields: Any) -> str:
        """Start a session and return its id."""
        reply = self.http("POST", "/api/sessions", {"group": group, "prompt": prompt, **fields})
        assert reply.status == 201, reply
        return str(reply.body["session_id"])

    def session(self, session_id: str) -> Json | None:
        """Return the session, if the host knows it."""
        found = [s for s in self._get("/api/sessions") if s["session_id"] == session_id]
        return found[0] if found else None

    async def session_is(self, session_id: str, *states: str, detail: str = "") -> Json:
        """Wait until the session is in one of the states (with that detail), and return it."""

        def look() -> Json | None:
            found = self.session(session_id)
            is_so = found and found["state"] in states and detail in {"", found["detail"]}
            return found if is_so else None

        found: Json = await until(look, f"session {session_id} to be {' or '.join(states)}")
        return found

    async def listed(self, count: int = 1, group: str | None = None) -> list[Json]:
        """Wait until so many questions (of the group) are open to people, and return them."""

        def look() -> list[Json] | None:
            found = [p for p in self.pending() if p["state"] == "open"]
            found = [p for p in found if group in {None, p["group"]}]
            return found if len(found) >= count else None

        found: list[Json] = await until(look, f"{count} open questions")
        return found

    async def state(self, target: str, *states: str) -> Json:
        """Wait until the question is in one of the states, and return it."""

        def look() -> Json | None:
            reply = self.http("GET", f"/api/questions/{target}")
            return reply.body if reply.status == 200 and reply.body["state"] in states else None

        found: Json = await until(look, f"{target} to be {' or '.join(states)}")
        return found

    async def closed(self, target: str) -> Json:
        """Wait until the question is in history and nothing of it is pending."""
        found = await self.state(target, "closed")
        assert target not in {p["request_id"] for p in self.pending()}
        return found

    def events(self, target: str | None = None) -> list[Json]:
        """Return the event log, or what it says of one question."""
        lines = (self.data / "audit" / "events.jsonl").read_text().splitlines()
        events: list[Json] = [json.loads(line) for line in lines]
        return [e for e in events if target in {None, e["id"]}]

    def kinds(self, target: str) -> list[str]:
        return [event["type"] for event in self.events(target)]

    def group(self, name: str) -> Path:
        return self.data / "ipc" / name

    def outcome(self, group: str, target: str) -> Json:
        outcome: Json = json.loads((self.group(group) / "outcomes" / f"{target}.json").read_bytes())
        return outcome

    def _get(self, path: str) -> Any:
        reply = self.http("GET", path)
        assert reply.status == 200, reply
        return reply.body


def may_fork() -> bool:
    """Is a process that came from a fork as good as one that was started by its command?

    Not where the command is another one, and not in a whole proof, which measures processes.
    """
    return PYNCHY == _INSTALLED and os.environ.get("PROVE", "sample") == "sample"


class Host(Person):
    """`pynchy serve` on a folder of its own; may be killed, stopped and started again."""

    def __init__(self, data: Path, settings: str = "") -> None:
        super().__init__(data)
        self.process: subprocess.Popen[bytes] | Forked | None = None
        # For who looks at it in /proc: it is then started by its command, not forked.
        self.by_command = False
        self.log = data.parent / "host.log"
        # Where its log goes instead of that file: a descriptor of the test's own.
        self.log_to: int | None = None
        self._config = data.parent / "pynchy.toml"
        self._config.write_text(settings)

    @property
    def config(self) -> Path:
        """Where its settings are."""
        return self._config

    def configure(self, settings: str) -> None:
        self._config.write_text(settings)

    async def start(self, *arguments: str) -> Self:
        output = self.data.parent / f"host-{time.monotonic_ns()}.out"
        command = ["serve", "--data-dir", self.data, "--config", self._config]
        command += arguments or ("--port", "0")
        process: subprocess.Popen[bytes] | Forked
        with output.open("wb") as out, self.log.open("ab") as log:
            err = log.fileno() if self.log_to is None else self.log_to
            if may_fork() and not self.by_command:
                process = forker().start(HURRIED, command, stdout=out.fileno(), stderr=err)
            else:
                process = subprocess.Popen(  # noqa: ASYNC220 - only starts it
                    [PYNCHY, *command], stdout=out, stderr=err
                )
        self.process = process

        def ready() -> bool:
            assert process.poll() is None, self.log.read_text()
            return "\n" in output.read_text()

        await until(ready, "the host's ready line")
        self.url = output.read_text().partition("pynchy is ready: ")[2].split("/ ")[0]
        return self

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    async def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        await until(lambda: self.process is None or self.process.poll() is not None, "the end")
        return self.process.returncode

    async def restart(self) -> None:
        """Die at once, and come back on the same folder."""
        self.kill()
        await self.start()

    async def cli(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command on the host's folder; return its exit code and what it printed."""
        if may_fork():
            return await run_forked(HURRIED, *arguments, "--data-dir", self.data)
        process = await asyncio.create_subprocess_exec(
            PYNCHY,
            *arguments,
            "--data-dir",
            self.data,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()


class Agent:
    """An agent program: the official client on the pipes of `pynchy mcp`."""

    def __init__(self, client: Client, pid: int) -> None:
        self.client = client
        self.pid = pid

    async def call(self, tool: str, arguments: Json, **options: Any) -> str:
        """Call the tool and return the text of its result."""
        result = await self.client.call_tool(tool, arguments, **options)
        assert len(result.content) == 1
        return str(result.content[0].text)  # type: ignore[union-attr]

    def calling(self, tool: str, arguments: Json, **options: Any) -> "asyncio.Task[str]":
        return asyncio.create_task(self.call(tool, arguments, **options))

    def asking(self, question: str = "Deploy?", **fields: Any) -> "asyncio.Task[str]":
        """Ask with the options Yes and No; the task returns the text of the result."""
        asked = {"questions": [{"question": question, "options": ["Yes", "No"]}]}
        return self.calling("ask_user", asked | fields)

    def check(self, request_id: str, **fields: Any) -> "asyncio.Task[str]":
        return self.calling("check_answer", {"request_id": request_id, **fields})

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


@asynccontextmanager
async def agent_of(  # noqa: PLR0913 - all that an agent program may be
    person: Person,
    group: str = "team",
    era: str = "auto",
    at_desk: Any = None,
    *,
    client_program: str = "",
    profile: str = "",
    **environ: str,
) -> AsyncIterator[Agent]:
    """Start `pynchy mcp` as an agent program does, and connect to it.

    `at_desk` answers what the server asks whoever sits in front of the program.
    """
    pid_file = person.data.parent / f"agent-{time.monotonic_ns()}.pid"
    server = [str(PYNCHY), "mcp", "--group", group, "--data-dir", str(person.data)]
    server += ["--client", client_program] if client_program else []
    server += ["--profile", profile] if profile else []
    parameters = StdioServerParameters(
        command="/bin/sh",
        args=["-c", 'echo $$ > "$0"; exec "$@"', str(pid_file), *server],
        env={"PYNCHY_SESSION_ID": "session-1", **environ},
    )
    with pid_file.with_suffix(".log").open("w") as log:
        transport = stdio_client(parameters, errlog=log)
        async with Client(transport, mode=era, elicitation_callback=at_desk) as client:
            yield Agent(client, int(await until(lambda: _read(pid_file), "the agent's server")))


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def gone(call: "asyncio.Task[str]") -> None:
    """Wait for a call whose server has been killed; what it raises is the client's business."""
    with contextlib.suppress(Exception):
        await call


class MailboxAgent:
    """A runner that speaks docs/mailbox.md by hand: cheap enough to have many, and to misbehave."""

    def __init__(self, mailbox: Path, session_id: str = "session-1") -> None:
        self.mailbox = mailbox
        self.tasks = mailbox / "tasks"
        for name in ("tasks", "responses", "input"):
            (mailbox / name).mkdir(parents=True, exist_ok=True)
        self.session_id = session_id
        self.lease = os.urandom(8).hex()
        self._lock = self._take_lease()

    def ask(self, question: str = "Deploy?", **fields: Any) -> str:
        """Write a question and return its id."""
        request_id = fields.get("request_id") or os.urandom(8).hex()
        body = {
            "v": 1,
            "type": "ask_user:ask",
            "request_id": request_id,
            "questions": [{"question": question, "options": ["Yes", "No"]}],
            "session_id": self.session_id,
            "lease": self.lease,
        } | fields
        self.write(f"{request_id}.json", json.dumps(body).encode())
        return str(request_id)

    def tell(self, what: str, request_id: str) -> None:
        """Write a cancel or a withdraw."""
        body = {"v": 1, "type": f"ask_user:{what}", "request_id": request_id}
        self.write(f"{request_id}.{what}.json", json.dumps(body).encode())

    def write(self, name: str, data: bytes) -> None:
        temporary = self.tasks / f".{name}.tmp"
        temporary.write_bytes(data)
        temporary.rename(self.tasks / name)

    def write_json(self, name: str, body: Json) -> None:
        self.write(name, json.dumps(body).encode())

    def response(self, request_id: str) -> Json | None:
        with contextlib.suppress(FileNotFoundError):
            data = (self.mailbox / "responses" / f"{request_id}.json").read_bytes()
            response: Json = json.loads(data)
            return response
        return None

    async def responded(self, request_id: str) -> Json:
        """Wait for the response and leave it where it is."""

        def look() -> Json | None:
            self._renew()
            return self.response(request_id)

        response: Json = await until(look, f"a response to {request_id}")
        return response

    async def receive(self, request_id: str) -> Json:
        """Wait for the response and take it."""
        response = await self.responded(request_id)
        assert self.take(request_id), "somebody else has taken the answer"
        return response

    def take(self, request_id: str, **fields: str) -> bool:
        """Create the receipt, whole at once."""
        receipt = {"v": 1, "by": "waiter", "at": "2026-11-16T09:30:00Z", **fields}
        temporary = self.tasks / f".{request_id}.receipt.tmp"
        temporary.write_text(json.dumps(receipt))
        try:
            os.link(temporary, self.tasks / f"{request_id}.received")
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def leave(self) -> None:
        """End in order: the lease is removed, then the lock let go."""
        (self.tasks / f"{self.lease}.lease").unlink(missing_ok=True)
        self.die()

    def die(self) -> None:
        """Be killed: the lock is free, the file stays."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __del__(self) -> None:
        self.die()

    def _take_lease(self) -> int:
        path = self.tasks / f".{self.lease}.tmp"
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        path.write_text(json.dumps({"v": 1, "boot_id": boot_id, "session_id": self.session_id}))
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        path.rename(self.tasks / f"{self.lease}.lease")
        return lock

    def _renew(self) -> None:
        if self._lock >= 0:
            os.utime(self.tasks / f"{self.lease}.lease")


class Runs:
    """What the launcher's command has recorded, and what it is told to do."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.jsonl"
        self._mode = folder / "mode"

    def launcher(self, mode: str, group: str = "team", **settings: Any) -> str:
        """Return a [groups.NAME.launcher] table whose command is the recording runner."""
        self.do(mode)
        command = [sys.executable, str(RUNNER), str(self.path), str(self._mode)]
        command += ["{initial}", "{session_id}"]
        lines = [f"[groups.{group}.launcher]", f"command = {json.dumps(command)}"]
        return "\n".join([*lines, *(f"{k} = {json.dumps(v)}" for k, v in settings.items()), ""])

    def process(self, mode: str, group: str = "team", **settings: Any) -> str:
        """Return a [groups.NAME.launcher] table of a known agent, run by scripted_runner.py."""
        self.do(mode)
        program = self.path.with_name("agent_runner")
        command = f'{sys.executable} {SCRIPTED_RUNNER} {self.path} {self._mode} "$@"'
        program.write_text(f"#!/bin/sh\nPYTHONPATH={ROOT} exec {command}\n")
        program.chmod(0o700)
        told = {"kind": "process", "agent": "claude", "runner": str(program)} | settings
        lines = [f"[groups.{group}.launcher]", *(f"{k} = {json.dumps(v)}" for k, v in told.items())]
        return "\n".join([*lines, ""])

    def do(self, mode: str) -> None:
        """Say how the next runs go; see runner.py."""
        self._mode.write_text(mode)

    def lines(self, what: str) -> list[Json]:
        if not self.path.exists():
            return []
        found = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line for line in found if line["what"] == what]

    def started(self) -> list[Json]:
        return self.lines("started")

    def succeeded(self) -> list[Json]:
        return self.lines("succeeded")
