"""A program that asks by its title, while its host or its `pynchy watch` is killed at a step.

What it has read is in a file of its own: no line may be there twice, or other than it was answered.
"""

import contextlib
import http.client
import json
import sys
from pathlib import Path

from tests.acceptance.support import PYNCHY, Json
from tests.crash.dying import CHILD, HOST
from tests.crash.telling import Step, Story
from tests.screen import Screen
from tests.waiting import until

GROUP = "team"
SETTINGS = '[groups.team]\nchannels = ["chat"]\n'
_ASKS = r"""
printf '\033]2;phux-ask[q1]:Deploy??s=Yes|No\007ready>'
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$1"
  printf '\033]2;working\007'
done
"""

_FIRST = frozenset({Step("before titled", 1), Step("after titled", 1)})


class TerminalStory(Story):
    """One ask; the host dies at each of the given steps, one after another."""

    channel = "chat"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.configure(SETTINGS)
        self._read = base / "read"
        self._screen: Screen | None = None

    async def tell(self, *steps: Step) -> list[Step]:
        """See Story."""
        left = list(steps)
        await self.start(left.pop(0) if left else None)
        self._run([str(PYNCHY), "watch"])
        ended: Json | None = None
        first: list[Step] | None = None
        while ended is None:
            if self.is_dead():
                first = first or self.passed()
                self.deaths += 1
                await self.start(left.pop(0) if left else None)
            ended = await self._answered()
        if self.deaths < len(steps):  # at what it does when all is over
            await self.dies()
        self._check(ended)
        assert self.lines == ["Yes"], ended
        return first or self.passed()

    def _run(self, watch: list[str]) -> None:
        options = ["--group", GROUP, "--data-dir", str(self.base / "data"), "--"]
        program = ["sh", "-c", _ASKS, "agent", str(self._read)]
        self._screen = Screen([*watch, *options, *program])

    @property
    def lines(self) -> list[str]:
        """What the program has read."""
        return self._read.read_text().splitlines() if self._read.exists() else []

    async def _answered(self) -> Json | None:
        """Answer what is open. Return the question when it is closed, None if the host dies."""

        def look() -> Json | str | None:
            # OSError and a broken reply: it dies just now.
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                for pending in self.person.pending():
                    if pending["state"] == "open":
                        self.person.answer(pending["request_id"], "Yes")
                closed = [one for one in self.person.history() if one["source"] == "terminal"]
                if closed:
                    return closed[0]
            return "dead" if self.is_dead() else None

        found = await until(look, "the end of the question")
        return None if found == "dead" else dict(found)

    def _check(self, ended: Json) -> None:
        """Hold what the card says against what was read."""
        said = str(ended.get("delivery_error") or "")
        assert len(self.lines) <= 1, self.lines
        assert set(self.lines) <= {"Yes"}
        if ended["delivered"] == "live" and ended["ending"]["outcome"] == "answered":
            assert self.lines == ["Yes"]
        elif "was not typed" in said or ended["ending"]["outcome"] == "cleared":
            assert self.lines == [], ended
        else:
            assert "may have been typed" in said, ended

    async def close(self) -> None:
        """See Story."""
        if self._screen is not None:
            self._screen.close()
        await super().close()


class DyingWatch(TerminalStory):
    """One ask whose `pynchy watch` dies at a step; the host lives."""

    victim, code = HOST, -9
    # Where nothing is asked yet.
    before_asking = frozenset({*_FIRST, Step("before send", 1)})

    async def tell(self, *steps: Step) -> list[Step]:
        """See Story."""
        await self.start()
        order = {"notes": str(self.base / "watch-points"), "step": steps[0] if steps else None}
        order["victim"] = self.victim
        dying = "from tests.crash.dying_watch import main; main()"
        self._run([sys.executable, "-c", dying, json.dumps(order), "watch"])
        if not set(steps) & self.before_asking:
            ended = await self._answered()
            assert ended is not None
        if steps:
            assert self._screen is not None
            assert await self._screen.ends() == self.code
            self.deaths += 1
        else:
            await until(lambda: self.lines == ["Yes"], "the answer")
        if set(steps) & self.before_asking:
            assert self.lines == self.person.pending() == self.person.history() == []
        else:
            self._check(ended)
        lines = (self.base / "watch-points").read_text().splitlines()
        return [Step(what, number) for what, number, _ in map(json.loads, lines)]


class DyingProgram(DyingWatch):
    """One ask whose program dies at a step of its `pynchy watch`; that and the host live."""

    victim, code = CHILD, 128 + 9
    before_asking = _FIRST
