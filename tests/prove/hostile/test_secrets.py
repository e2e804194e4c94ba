"""Secrets and permissions: what is told in confidence is found only where it belongs."""

import io
import json
import os
import re
import signal
import stat
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.acceptance.support import Host, MailboxAgent, Runs
from tests.prove.conftest import Proof
from tests.prove.hostile.conftest import StartHost
from tests.prove.hostile.intruder import ask, connect, head
from tests.waiting import until

ROOT = Path(__file__).parents[3]
AGENT_UID = 65_534 if os.geteuid() == 0 else None
AGENT_FOLDERS = ("tasks", "responses", "input")
HOST_FOLDERS = ("pending_questions", "outcomes", "history", "rejected")


def canary(what: str) -> str:
    return f"{what}-canary-{os.urandom(8).hex()}"


QUESTION, ANSWER, REASON = canary("question"), canary("answer"), canary("reason")
KEY, INHERITED = canary("key"), canary("inherited")
GUESS, REFUSED = canary("guess"), canary("refused")
SAID = {"answer": ANSWER, "reason": REASON, "key": KEY, "inherited": INHERITED, "guess": GUESS}


@pytest.fixture
def loose_umask() -> Iterator[None]:
    """Whatever the host makes has the rights that it asks for, and not fewer by luck."""
    before = os.umask(0)
    yield
    os.umask(before)


async def live_through_everything(start_host: StartHost, runs: Runs) -> Host:
    """Return a host, at its most talkative, after all that can be said to it was said."""
    owner = "" if AGENT_UID is None else f"[groups.team]\nagent_uid = {AGENT_UID}\n"
    launcher = runs.launcher("acknowledge", env={}, backoff="100ms", attempts=2)
    launcher = launcher.replace("env = {}", f'env = {{ API_KEY = "{KEY}" }}')
    host = await start_host(f'receipt_grace = "200ms"\n{owner}{launcher}', by_command=True)
    host.kill()
    await host.start("--port", "0", "--log-level", "debug")
    host.group("team").mkdir(mode=0o700)
    await until((host.group("team") / "input" / "host.json").exists, "the host's greeting")
    agent = MailboxAgent(host.group("team"))
    with connect(host) as reader:
        reader.sendall(head("GET /api/events?after=0", token=host.token()))
        await talk(host, agent, runs)
    return host


async def talk(host: Host, agent: MailboxAgent, runs: Runs) -> None:
    live, declined, late, partly = (agent.ask(QUESTION) for _ in range(4))
    several = [{"question": QUESTION}, {"question": QUESTION}]
    apart = agent.ask(questions=several)
    for request_id in (live, declined, late, partly, apart):
        await host.state(request_id, "open")
    assert host.answer(live, ANSWER, by="ana").status == 200
    await agent.receive(live)
    said = {"reason": REASON, "by": "ana"}
    assert host.http("POST", f"/api/questions/{declined}/decline", said).status == 200
    await agent.receive(declined)
    draft = {"values": [ANSWER], "question": 1, "by": "ana"}
    assert host.http("POST", f"/api/questions/{apart}/answer", draft).status == 202
    agent.write("bad.json", json.dumps({"v": 1, "type": REFUSED, "request_id": "bad"}).encode())
    await agent.responded("bad")
    be_rude(host, live)
    agent.die()
    assert host.answer(late, ANSWER, by="ana").status == 200
    await host.closed(late)
    runs.do("fail")
    assert host.answer(partly, ANSWER, by="ana").status == 200
    await host.state(partly, "undelivered")


def be_rude(host: Host, over: str) -> None:
    """Make every mistake that has a secret in it."""
    token = host.token()
    body = json.dumps({"values": [ANSWER], "surprise": ANSWER}).encode()
    answer = f"POST /api/questions/{over}/answer"
    statuses = [
        ask(host, "GET /api/pending", token=GUESS).status,
        ask(host, answer, body=body, token=token).status,
        ask(host, answer, body=ANSWER.encode(), token=token).status,
        ask(host, f"GET /api/history?limit={ANSWER}", token=token).status,
        host.answer(over, ANSWER).status,
        host.answer(ANSWER, ANSWER).status,
    ]
    assert statuses == [401, 422, 422, 400, 409, 404]


def texts(folder: Path) -> dict[str, str]:
    found = {}
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        with suppress(FileNotFoundError):  # the host is at work in there
            found[str(path.relative_to(folder))] = path.read_text("utf-8", "replace")
    return found


async def test_no_secret_is_found_where_it_does_not_belong(
    start_host: StartHost, runs: Runs, monkeypatch: pytest.MonkeyPatch, loose_umask: None
) -> None:
    del loose_umask
    monkeypatch.setenv("SOME_SERVICE_KEY", INHERITED)
    host = await live_through_everything(start_host, runs)
    assert host.process is not None
    command = Path(f"/proc/{host.process.pid}/cmdline").read_text()
    token, told = host.token(), host.log.read_text()
    kept = texts(host.data)

    for text in (told, command):
        assert [what for what, secret in SAID.items() if secret in text] == []
        assert token not in text
        assert QUESTION not in text
    assert [name for name, text in kept.items() if token in text] == ["token"]
    for name, text in kept.items():
        assert KEY not in text, name
        assert INHERITED not in text, name
        assert GUESS not in text, name
        if name.startswith(("audit/", "runners/")) or "/" not in name:
            assert ANSWER not in text, name
            assert REASON not in text, name
    assert any(QUESTION in text for name, text in kept.items() if name.startswith("audit/"))
    assert any(ANSWER in text for name, text in kept.items() if "/history/" in name)
    check_modes(host)
    host.process.send_signal(signal.SIGTERM)
    await until(lambda: host.process is None or host.process.poll() is not None, "the end")
    assert not (host.data / "host.json").exists()


def check_modes(host: Host) -> None:
    """Folders are 0700 and files 0600, and only what an agent sees is the agent's."""
    found = [host.data, *host.data.rglob("*")]
    for path in found:
        info = path.lstat()
        parts = path.relative_to(host.data).parts
        if len(parts) > 3 and parts[2] == "tasks":
            continue  # the agent's own files
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(info.st_mode) == expected, (path, oct(info.st_mode))
        seen = len(parts) > 2 and parts[0] == "ipc" and parts[2] in AGENT_FOLDERS
        owner = os.geteuid() if AGENT_UID is None or not seen else AGENT_UID
        assert info.st_uid == owner, path
    names = {path.name for path in (host.data / "ipc" / "team").iterdir()}
    assert names == {*AGENT_FOLDERS, *HOST_FOLDERS}


NOQA = re.compile(r"#\s*noqa(?P<codes>:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?(?P<rest>.*)")


def waivers() -> Iterator[tuple[str, str, str]]:
    """Yield the place, the codes and the reason of every noqa in the project."""
    for folder in ("src", "container", "tests", ".ci"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
                match = NOQA.search(token.string) if token.type == tokenize.COMMENT else None
                if match:
                    place = f"{path.relative_to(ROOT)}:{token.start[0]}"
                    yield place, (match["codes"] or "").strip(": "), match["rest"].strip(" -")


def test_every_waiver_of_a_security_rule_says_why(proof: Proof) -> None:
    found = list(waivers())
    security = [each for each in found if re.search(r"\bS[0-9]{3}\b", each[1])]

    assert [place for place, codes, _ in found if not codes] == []
    assert [place for place, _, reason in security if len(reason.split()) < 2] == []
    proof.report("waivers of security rules", **{p: f"{c} {r}" for p, c, r in security})


def test_every_security_rule_that_is_off_for_tests_says_why() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    off = [line for line in lines if re.match(r'\s*"S[0-9]*",', line)]

    assert off
    assert all("#" in line for line in off)
    assert 'select = ["ALL"]' in lines
