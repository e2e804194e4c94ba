"""One group's agent is an enemy. Judged from outside: nothing escapes, nobody else is stopped."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from tests.acceptance.support import Host, Json, MailboxAgent
from tests.prove.conftest import IS_SAMPLE, Proof
from tests.prove.hostile import red_team
from tests.prove.hostile.conftest import StartHost
from tests.prove.hostile.watching import (
    Bystander,
    cpu_seconds,
    descriptors,
    disk_bytes,
    figures_are_told,
    files_below,
    resident_mib,
)
from tests.waiting import until

NOBODY = 65_534 if os.geteuid() == 0 else None
CANARY = f"canary-{os.urandom(12).hex()}"
PROGRAM = Path(red_team.__file__)
MIB = 2**20
SERVINGS = 8


@dataclass
class Siege:
    """A host, the enemy's group in it, and what must stay as it is."""

    host: Host
    outside: Path
    victim: str
    short_id: str
    enemy: Path

    def question(self) -> Json:
        """The victim, by its short id: the enemy may ask under the same request id."""
        return self.host.question(self.short_id)

    def start(self, attack: str, size: int, seconds: float) -> "subprocess.Popen[bytes]":
        """Let the enemy loose, with the descriptors of its three folders and no others."""
        with ExitStack() as stack:
            fds = {}
            for name in ("tasks", "responses", "input"):
                fds[name] = os.open(self.enemy / name, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, fds[name])
            facts = {
                **fds,
                "uid": NOBODY,
                "size": size,
                "seconds": seconds,
                "canary": str(self.outside / "canary.json"),
                "data": str(self.host.data),
                "victim": self.victim,
            }
            return subprocess.Popen(
                [sys.executable, PROGRAM, attack, json.dumps(facts)],
                stdout=subprocess.PIPE,
                pass_fds=list(fds.values()),
                cwd="/",
            )

    def others(self) -> dict[str, str]:
        """What is outside of the enemy's group and should not change, as hashes."""
        watched = [*files_below(self.outside), *files_below(self.host.group("victims"))]
        return {e.path: _digest(e) for e in watched if not e.name.endswith(".lease")}

    def canary_is_seen(self) -> list[str]:
        """Where the canary has got to, though nobody may have read it."""
        told = [self.host.log.read_bytes(), json.dumps(self.host.pending()).encode()]
        seen = ["the log or the list"] if any(CANARY.encode() in text for text in told) else []
        token = self.host.token().encode()
        for entry in files_below(self.host.data):
            text = _content(entry)
            if CANARY.encode() in text or (token in text and entry.name != "token"):
                seen.append(entry.path)
        return seen


def _digest(entry: "os.DirEntry[str]") -> str:
    return hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()


def _content(entry: "os.DirEntry[str]") -> bytes:
    """What a plain file holds; the enemy's largest are holes, and some go as we look."""
    try:
        info = entry.stat(follow_symlinks=False)
        plain = stat.S_ISREG(info.st_mode) and info.st_size < 8 * MIB
        return Path(entry.path).read_bytes() if plain else b""
    except OSError:
        return b""


async def besiege(start_host: StartHost, abyss: Path) -> Siege:
    uid = "" if NOBODY is None else f"[groups.enemy]\nagent_uid = {NOBODY}\n"
    host = await start_host(uid, str(abyss / "data"))
    outside = abyss / "outside"
    outside.mkdir(mode=0o700)
    ask = {"v": 1, "type": "ask_user:ask", "request_id": "trap", "title": CANARY}
    (outside / "canary.json").write_text(
        json.dumps(ask | {"questions": [{"question": CANARY}], "claim": CANARY, "boot_id": CANARY})
    )
    victim = MailboxAgent(host.group("victims")).ask()
    short_id = (await host.state(victim, "open"))["short_id"]
    enemy = host.group("enemy")
    enemy.mkdir(mode=0o700)
    await until((enemy / "input" / "host.json").exists, "the host to greet the enemy")
    return Siege(host, outside, victim, short_id, enemy)


@pytest.fixture
async def siege(start_host: StartHost, abyss: Path) -> AsyncIterator[Siege]:
    siege = await besiege(start_host, abyss)
    yield siege
    siege.host.kill()


async def judge(siege: Siege, attacks: list[str], proof: Proof) -> dict[str, object]:
    """Let the attacks run beside a bystander, and look at what has become of everything."""
    host = siege.host
    other = Bystander(host)
    await other.greeted()
    usual = [await other.is_served() for _ in range(3)]
    usual_cost = await cost_of_serving(host, other)
    before, question = siege.others(), siege.question()
    rss, disk, log = resident_mib(host), disk_bytes(host.data), host.log.stat().st_size
    fds = descriptors(host)
    size = proof.choose(sample=1, prove=20, everything=50)
    seconds = proof.choose(sample=0.5, prove=4.0, everything=20.0)

    enemies = [siege.start(attack, size, seconds) for attack in attacks]
    served = [await other.is_served()]
    while any(enemy.poll() is None for enemy in enemies):
        served.append(await other.is_served())
        await is_told(host)
    escaped = [json.loads(enemy.communicate()[0]) for enemy in enemies]
    served += [await other.is_served() for _ in range(2)]
    cost = await cost_of_serving(host, other)

    assert escaped == [[] for _ in attacks]
    assert [enemy.returncode for enemy in enemies] == [0 for _ in attacks]
    assert host.http("POST", "/api/sweep", {"dry_run": False}).status == 200
    assert foreign_troubles(host) == []
    assert siege.others() == before
    assert siege.question() == question
    assert siege.canary_is_seen() == []
    # One more for the moment in which it is put there and the oldest is removed.
    assert len(list((siege.enemy / "rejected").iterdir())) <= 201
    own = disk_bytes(siege.enemy / "tasks")
    grown = {
        "rss_mib": round(resident_mib(host) - rss, 1),
        "disk_mib": round((disk_bytes(host.data) - disk - own) / MIB, 1),
        "log_kib": round((host.log.stat().st_size - log) / 1024, 1),
        "bystander_ms": round(median(served) * 1_000),
        "bystander_before_ms": round(median(usual) * 1_000),
        "descriptors": descriptors(host) - fds,
        "cpu_ratio": round(cost / usual_cost, 1),
    }
    assert grown["rss_mib"] < proof.choose(sample=60, prove=120, everything=200)
    assert grown["disk_mib"] < 60
    assert grown["log_kib"] < 200
    assert grown["descriptors"] < 50
    assert grown["cpu_ratio"] < 10  # 64 where every lease is looked at whenever anybody asks
    assert median(served) < max(2, 20 * median(usual))
    return grown


def foreign_troubles(host: Host) -> list[str]:
    """Return what the host complains of beside the enemy's own group, which has too many files."""
    told: list[str] = host.http("GET", "/healthz").body["problems"]
    return [trouble for trouble in told if not trouble.startswith(("group enemy ", "group enemy:"))]


async def is_told(host: Host) -> None:
    """Whoever looks at the host's figures gets them, also in a status bar."""
    assert host.http("GET", "/api/status").status == 200
    assert await figures_are_told(host)


async def cost_of_serving(host: Host, other: Bystander) -> float:
    """Return the processor time in which the other group is served and people look, each so often.

    It is the host's own time, beside that of the same work before: no speed is judged.
    """
    begun = cpu_seconds(host)
    for _ in range(SERVINGS):
        await other.is_served()
        assert host.http("GET", "/api/status").status == 200
    return cpu_seconds(host) - begun


async def restart_among_the_ruins(siege: Siege) -> None:
    """What the enemy has left behind does not keep a host from coming up and serving."""
    before = siege.question()

    await siege.host.restart()
    await Bystander(siege.host, "afterwards").is_served()

    after = siege.question()
    assert (after["state"], after["ending"]) == (before["state"], before["ending"])
    assert siege.canary_is_seen() == []
    assert foreign_troubles(siege.host) == []
    assert await siege.host.stop() == 0


# In the sample the enemy does everything at once; the longer runs take one thing after another.
EACH = [[name] for name in red_team.ATTACKS]
ROUNDS = [list(red_team.ATTACKS)] if IS_SAMPLE else EACH


@pytest.mark.timeout(600)
@pytest.mark.parametrize("attacks", ROUNDS, ids=lambda names: "-".join(names)[:20])
async def test_an_enemy_gets_out_of_nowhere_and_stops_nobody(
    siege: Siege, proof: Proof, attacks: list[str]
) -> None:
    grown = await judge(siege, attacks, proof)
    await restart_among_the_ruins(siege)

    name = attacks[0] if len(attacks) == 1 else f"all {len(attacks)} attacks at once"
    proof.report(f"red team: {name}", **grown)
