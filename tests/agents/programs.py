"""The real agent programs at pinned versions, in a cache outside the tree.

`python -m tests.agents.programs` installs from the npm registry what is not there yet.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pynchy-agents"

_INSTALL_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Program:
    """One version of an agent program. `agent` is the name of its core."""

    agent: str
    package: str
    version: str

    @property
    def id(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def name(self) -> str:
        """What its package is called where it is no program of a core of ours."""
        command = self.package.rpartition("/")[2]
        return command if command.endswith("-acp") else self.agent

    @property
    def folder(self) -> Path:
        return CACHE / self.id

    @property
    def bin(self) -> Path:
        return self.folder / "node_modules" / ".bin"

    @property
    def is_installed(self) -> bool:
        return (self.folder / "installed").exists()


# Two of Claude Code: the first drops the question from a killed session's history, the second
# keeps it with an error.
PROGRAMS = (
    Program("claude", "@anthropic-ai/claude-code", "2.1.197"),
    Program("claude", "@anthropic-ai/claude-code", "2.1.325"),
    Program("codex", "@openai/codex", "0.166.0"),
    Program("opencode", "opencode-ai", "1.18.33"),
)
# Where this is set, both versions of Claude Code do everything, and people take minutes to answer;
# else what is the same in both is tried with the newest.
IS_THOROUGH = bool(os.environ.get("PYNCHY_TEST_LONG_WAITS"))
CLAUDES = [program for program in PROGRAMS if program.agent == "claude"]
TRIED_CLAUDES = CLAUDES if IS_THOROUGH else CLAUDES[-1:]
TRIED = [one for one in PROGRAMS if one not in CLAUDES or one in TRIED_CLAUDES]
# The same programs behind adapters that speak ACP; `agent` says whose settings they read.
ACP_ADAPTERS = (
    Program("claude", "@agentclientprotocol/claude-agent-acp", "0.99.1"),
    Program("codex", "@zed-industries/codex-acp", "0.16.0"),
)
# The last that does not know how to put off a call; it takes part in the test of that alone.
OLD_CLAUDE = Program("claude", "@anthropic-ai/claude-code", "2.1.88")


def install(program: Program, say: Callable[[str], object] = print) -> None:
    """Install the program unless it is there. Raise CalledProcessError."""
    if program.is_installed:
        return
    say(f"installing {program.package}@{program.version} into {program.folder} …")
    shutil.rmtree(program.folder, ignore_errors=True)
    program.folder.mkdir(parents=True)
    (program.folder / "package.json").write_text(json.dumps({"private": True}))
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
    subprocess.run(
        [*command, f"{program.package}@{program.version}"],
        cwd=program.folder,
        check=True,
        timeout=_INSTALL_SECONDS,
    )
    # npm may be told to run no scripts; the one that puts the native part in place is run by hand.
    script = program.folder / "node_modules" / program.package / "install.cjs"
    if script.exists():
        subprocess.run(["node", script], cwd=script.parent, check=True, timeout=_INSTALL_SECONDS)
    (program.folder / "installed").touch()


def main() -> int:
    if shutil.which("npm") is None:
        print("make test-agents needs Node.js with npm", file=sys.stderr)  # noqa: T201 - a script
        return 1
    for program in (*PROGRAMS, OLD_CLAUDE, *(ACP_ADAPTERS if IS_THOROUGH else ())):
        install(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
