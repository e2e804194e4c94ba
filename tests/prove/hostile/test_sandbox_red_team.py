"""Enemies in real boxes, judged from outside: they read, change and reach nothing but their own."""

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Host, Json, MailboxAgent
from tests.prove.conftest import IS_SAMPLE, SEED, Proof
from tests.prove.hostile import attempts, outsider, sandbox_red_team
from tests.prove.hostile.surroundings_of_boxes import (
    CALLS,
    GROUP,
    IS_ROOT,
    PLACES,
    SYSTEM,
    Outside,
    Shape,
    new_secret,
)
from tests.prove.hostile.watching import files_below
from tests.waiting import until

PARTS = (attempts, outsider, sandbox_red_team)
START = "from tests.prove.hostile.sandbox_red_team import main\n\nmain()\n"

IS_SANDBOX_RUN = bool(os.environ.get("PYNCHY_TEST_SANDBOX"))
pytestmark = [
    pytest.mark.skipif(
        IS_SAMPLE and not IS_SANDBOX_RUN, reason="make test-sandbox runs the sample of this"
    ),
    pytest.mark.skipif(
        shutil.which("bwrap") is None and not IS_SANDBOX_RUN,
        reason="needs bubblewrap (Debian: apt-get install bubblewrap)",
    ),
]


@dataclass
class Enemy:
    """A group whose agent is an enemy, with its folders."""

    name: str
    folder: Path
    tasks: Path
    secret: str = field(default_factory=new_secret)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def prepare(self, shape: Shape) -> None:
        package = self.work / "tests" / "prove" / "hostile"
        package.mkdir(parents=True)
        self.home.mkdir()
        # The first of that name that Python finds, whatever else is installed.
        (self.work / "tests" / "__init__.py").touch()
        for part in PARTS:
            shutil.copy(part.__file__, package)
        (self.work / "enemy").write_text(f"#!/usr/bin/env {sys.executable}\n{START}")
        (self.work / "enemy").chmod(0o755)
        plan = {"secret": self.secret, "calls": CALLS, "sockets": [f"@{self.secret[:20]}"]}
        plan["segment_key"] = random.SystemRandom().getrandbits(30)
        (self.work / "start.json").write_text(json.dumps(plan))
        if shape.uid is not None:
            os.chown(self.work, shape.uid, shape.uid)
            os.chown(self.home, shape.uid, shape.uid)

    def settings(self, shape: Shape, **more: Any) -> str:
        told = {"kind": "bubblewrap", "agent": "claude", "runner": str(self.work / "enemy")}
        told |= {"workspace": str(self.work), "home": str(self.home), **shape.settings(), **more}
        lines = [
            f"[groups.{self.name}.launcher]",
            *(f"{k} = {json.dumps(v)}" for k, v in told.items()),
        ]
        if shape.uid is not None:
            lines += [f"[groups.{self.name}]", f"agent_uid = {shape.uid}"]
        return "\n".join([*lines, ""])

    def processes(self) -> list[int]:
        """What runs in its box, as it is numbered outside, the first ones first."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (path / "cwd").readlink() == self.work:
                    found.append(int(path.name))
        return sorted(found)

    def known(self) -> Json:
        """What others may know of it."""
        told: Json = json.loads((self.work / "here.json").read_text())
        return told | {"pid": self.processes()[-1]}

    def loot(self) -> list[Json]:
        path = self.work / "loot.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def written(self) -> Iterator[Path]:
        """All that it could write."""
        for folder in (self.work, self.home, self.tasks):
            yield from (Path(entry.path) for entry in files_below(folder))


@dataclass
class Siege:
    """Two enemies beside each other, and a host that has secrets as well."""

    host: Host
    outside: Outside
    enemies: list[Enemy]
    sessions: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        """Start everything, up to the enemies, who wait for a word."""
        outside, own = self.outside, [f for e in self.enemies for f in (e.work, e.home)]
        for enemy in self.enemies:
            enemy.prepare(outside.shape)
        if IS_ROOT:
            outside.add_closed_file()
        outside.start_program("early", *own)
        more = {"read": [str(outside.shown)], "hide": [str(outside.shown / "hidden")]}
        settings = "".join(enemy.settings(outside.shape, **more) for enemy in self.enemies)
        self.host.configure(f"{settings}# {outside.secret}-settings\n")
        self.host.by_command = True
        await self.host.start()
        self.sessions += [self.host.run(enemy.name) for enemy in self.enemies]
        for enemy, session_id in zip(self.enemies, self.sessions, strict=True):
            await until(lambda: self._is_there(enemy, session_id), enemy.name)  # noqa: B023 - used at once
        outside.start_program("late", *own)
        victims = self.host.group("victims")
        question = MailboxAgent(victims).ask(f"{outside.secret}-question")
        await self.host.state(question, "open")
        outside.files += [self.host.data / "token", self.host.config]
        outside.files += [victims / "pending_questions" / f"{question}.json"]
        outside.files += [self.host.group(e.name) / "input" / "host.json" for e in self.enemies]

    def _is_there(self, enemy: Enemy, session_id: str) -> bool:
        assert (self.host.session(session_id) or {}).get("state") != "ended", self.printed()
        return (enemy.work / "here.json").exists()

    def given(self) -> dict[int, list[str]]:
        """Which descriptors the enemies were given besides the usual ones, seen from outside."""
        found = {}
        for pid in (enemy.processes()[0] for enemy in self.enemies):
            numbers = [n for n in os.listdir(f"/proc/{pid}/fd") if int(n) > 2]
            # To its own neighbour in the box, by pipes.
            links = [str(Path(f"/proc/{pid}/fd", number).readlink()) for number in numbers]
            found[pid] = [link for link in links if not link.startswith("pipe:")]
        return found

    def let_loose(self, count: int, number: int) -> None:
        data, known = self.host.data, [enemy.known() for enemy in self.enemies]
        programs = [program.known for program in self.outside.programs]
        sockets = [path for program in programs for path in program["sockets"]]
        own = [self.host.group(enemy.name) for enemy in self.enemies]
        names = ("responses", "input", "pending_questions", "outcomes")
        folders = [*self.outside.folders, self.outside.shown, data, self.host.group("victims")]
        folders += [group / name for group in own for name in names]
        facts = {
            "attempts": count,
            "mark": self.outside.mark,
            "calls": CALLS,
            "group": GROUP,
            "handles": self.outside.handles(),
            "devices": [Path("/").stat().st_dev, data.stat().st_dev, os.makedev(1, 1)],
            "files": [str(path) for path in self.outside.targets()],
            "folders": [str(path) for path in (*folders, *SYSTEM, *PLACES)],
            "near": [path for path in sockets if path.startswith(str(self.host.data.parent))],
            "far": [path for path in sockets if not path.startswith(str(self.host.data.parent))],
            "ports": [port for program in programs for port in program["ports"]],
        }
        for enemy, neighbour in zip(self.enemies, reversed(known), strict=True):
            told = facts | {
                "others": [*programs, neighbour],
                "seed": f"{SEED}-{number}-{enemy.name}",
            }
            (enemy.work / "facts.part").write_text(json.dumps(told))
            (enemy.work / "facts.part").rename(enemy.work / "facts.json")

    def is_over(self) -> bool:
        found = [self.host.session(session_id) for session_id in self.sessions]
        return all(session is not None and session["state"] == "ended" for session in found)

    def secrets(self, enemy: Enemy) -> dict[str, str]:
        """What this enemy must not know, by what it is."""
        found = {"outside": self.outside.secret, "token": self.host.token()}
        found |= {f"program {p.known['pid']}": p.secret for p in self.outside.programs}
        return found | {e.name: e.secret for e in self.enemies if e is not enemy}

    def leaks(self) -> list[str]:
        """Which secrets have got to where an enemy writes, and how."""
        found = []
        for enemy in self.enemies:
            for path in enemy.written():
                if path in self.outside.files:
                    continue
                text = b"" if path.is_symlink() or not path.is_file() else path.read_bytes()
                for what, secret in self.secrets(enemy).items():
                    if secret.encode() in text:
                        tales = [json.dumps(t) for t in enemy.loot() if secret in json.dumps(t)]
                        found.append(f"{what} in {path}: {tales[:1]}")
        return found

    def claims(self) -> list[str]:
        shape = self.outside.shape
        loot = [tale for enemy in self.enemies for tale in enemy.loot()]
        found = {claim: tale for tale in loot for claim in tale.get("claims", [])}
        return [f"{c}: {tale}" for c, tale in found.items() if not shape.is_expected(c)]

    def printed(self) -> str:
        return "\n".join(
            p.read_text(errors="replace") for p in self.host.data.glob("runners/*/*.log")
        )


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
async def siege(
    stack: ExitStack, number: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Siege]:
    if IS_ROOT:
        stack.callback(os.setgroups, os.getgroups())
        os.setgroups([*os.getgroups(), GROUP])
    # Its name is short: the path of a socket has 107 bytes.
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pynchy-")))
    outside = Outside(stack, Shape.of_round(number), folder)
    monkeypatch.setenv("SECRET", f"{outside.secret}-environment")
    host = Host(folder / "data")
    tasks = {name: host.group(name) / "tasks" for name in ("left", "right")}
    siege = Siege(host, outside, [Enemy(name, folder / name, tasks[name]) for name in tasks])
    yield siege
    host.kill()
    for path in map(Path, outside.marked(host.data, [])):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


ROUNDS = range(2 if IS_SAMPLE else 100 if os.environ.get("PROVE") == "all" else 6)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", ROUNDS)
async def test_an_enemy_in_a_box_reads_changes_and_reaches_nothing_but_its_own(
    siege: Siege, proof: Proof, number: int
) -> None:
    outside, data = siege.outside, siege.host.data
    count = proof.choose(sample=300, prove=1500, everything=5000)
    await siege.begin()
    assert siege.given() == {enemy.processes()[0]: [] for enemy in siege.enemies}
    before = outside.state()

    siege.let_loose(count, number)
    await until(siege.is_over, "the enemies", seconds=60 + count / 5)

    why = f"PROVE_SEED={SEED}, round {number}, {outside.shape}"
    assert siege.leaks() == [], why
    assert siege.claims() == [], why
    assert outside.marked(data, [enemy.tasks for enemy in siege.enemies]) == [], why
    assert outside.state() == before, why
    done = [program.end() for program in outside.programs]
    assert done == [{"calls": [], "signals": [], "changed": []} for _ in done], why
    assert [len(enemy.loot()) for enemy in siege.enemies] == [count, count], siege.printed()
    proof.report(
        f"sandbox red team: round {number}", attempts=2 * count, ways=len(sandbox_red_team.WAYS)
    )
