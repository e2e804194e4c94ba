"""`pynchy demo`: see it work, in a temporary folder that is gone afterwards."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Coroutine
from functools import partial
from pathlib import Path

import click

from pynchy.cli.inbox import open_in_browser
from pynchy.data_dir import DataFolder
from pynchy.demo.console import Screen, Voices
from pynchy.demo.person import ScriptedPerson, TypingPerson
from pynchy.demo.processes import Stage
from pynchy.demo.story import tell
from pynchy.errors import EXIT_INTERRUPTED
from pynchy.own_program import own_call, own_command


@click.command("demo", short_help="See it work.")
@click.option("--auto", is_flag=True, help="Play the person too.")
@click.option("--no-browser", is_flag=True, help="Do not open the inbox in a browser.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="An empty folder to use, and to keep.  [default: a temporary one]",
)
def demo_command(*, auto: bool, no_browser: bool, data_dir: Path | None) -> None:
    r"""Watch an agent ask, answer it, and see the answer arrive, also when the agent has died.

    Everything is real: the host, the MCP server, the agent's processes, the kill. Only the model
    is a script. Answer here, or in the inbox, which opens where there is a browser. It needs no
    settings and touches no other host. Exit code 0 means that every answer arrived.

    \b
    Example:
      pynchy demo
      pynchy demo --auto
    """
    if data_dir is not None and data_dir.exists() and any(data_dir.iterdir()):
        raise click.BadParameter("the folder is not empty", param_hint="--data-dir")
    voices = Voices(Screen(highlight=False))
    voices.headline("pynchy demo: an agent asks, you answer, and the answer arrives.")
    if not auto and not (sys.stdin.isatty() and sys.stdout.isatty()):
        voices.narrate("There is no terminal to type at, so your part is played (--auto).")
        auto = True
    voices.narrate("")
    with tempfile.TemporaryDirectory(prefix="pynchy-demo-") as scratch:
        data = DataFolder(data_dir or Path(scratch, "data"))
        person = ScriptedPerson(voices) if auto else TypingPerson(voices)
        telling = tell(
            Stage(data, Path(scratch)),
            person,
            voices,
            _do_not_open if auto or no_browser else partial(open_in_browser, folder=data.folder),
        )
        stopped = asyncio.run(_run(telling))
    if stopped:
        voices.narrate("", "Stopped. Nothing of the demo is left running.")
        sys.exit(EXIT_INTERRUPTED)
    _say_what_next(voices, data_dir)


def _do_not_open(_link: str) -> bool:
    return False


async def _run(story: Coroutine[None, None, None]) -> bool:
    """Tell the story. Return True if it was stopped by a signal."""
    telling = asyncio.create_task(story)
    loop = asyncio.get_running_loop()
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

    def stop() -> None:
        # Once: a second Ctrl-C must not cut the clean-up short.
        for number in signals:
            loop.add_signal_handler(number, lambda: None)
        telling.cancel()

    for number in signals:
        loop.add_signal_handler(number, stop)
    await asyncio.wait([telling])
    if telling.cancelled():
        return True
    telling.result()
    return False


def _say_what_next(voices: Voices, data_dir: Path | None) -> None:
    voices.headline("Every answer arrived: in the waiting call, and in the resumed session.")
    command, *arguments = own_command()
    pynchy = own_call()
    settings = {"command": command, "args": [*arguments, "mcp", "--group", "my-agent"]}
    voices.narrate(
        "",
        "What to do next:",
        f"  {pynchy} serve                     run the host",
        f"  {pynchy} inbox --open              answer in a browser",
        f'  {pynchy} ask "Deploy?" -o Yes -o No   ask something yourself',
        "and give an agent these MCP settings:",
        f"  {json.dumps(settings)}",
    )
    if data_dir is not None:
        voices.narrate("", f"What the demo wrote is in {data_dir.absolute()}")
