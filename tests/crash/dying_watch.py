"""A real `pynchy watch` that kills itself or its program (-9) at a step of what it does."""

import json
import sys
from pathlib import Path

from tests.crash.dying import Death

from agent_runner.asking.mailbox import Mailbox
from pynchy.__main__ import main as run_command
from pynchy.terminals.foreground import Foreground
from pynchy.terminals.pump import Pump
from pynchy.terminals.watching import TitleWatch

_STEPS = (
    (TitleWatch, "titled"),
    (Mailbox, "send"),
    (Mailbox, "claim"),
    (Pump, "type_line"),
    (Mailbox, "passed_on"),
)


def main() -> None:
    """Run the command that follows the order."""
    order = json.loads(sys.argv.pop(1))
    step = (order["step"][0], order["step"][1]) if order["step"] else None
    death = Death(Path(order["notes"]), step, order["victim"])
    _know_the_program(death)
    for owner, name in _STEPS:
        death.around(owner, name)
    death.within_create()
    run_command()


def _know_the_program(death: Death) -> None:
    """Learn from the first title which process asks."""
    titled = TitleWatch.titled

    def noted(watch: TitleWatch, title: str, asker: Foreground) -> None:
        death.child = asker.group
        titled(watch, title, asker)

    TitleWatch.titled = noted  # type: ignore[method-assign]
