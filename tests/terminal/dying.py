"""`pynchy` that kills itself (-9) at a step of an ask: before or after something is done."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from agent_runner.asking import Asker
from pynchy.__main__ import main
from pynchy.terminals.asks import TitleAsk
from pynchy.terminals.tmux_control import ControlClient


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, step: str, picks: Callable[..., bool] = lambda *_: True) -> None:
    """Die before or after the owner's method is called with what is picked."""
    when, _, wanted = sys.argv[1].partition(" ")
    if wanted != step:
        return
    done = getattr(owner, name)

    async def dying(*args: Any, **named: Any) -> Any:
        if picks(*args) and when == "before":
            die()
        result = await done(*args, **named)
        if picks(*args) and when == "after":
            die()
        return result

    def dying_at_once(*args: Any, **named: Any) -> Any:
        if when == "before":
            die()
        result = done(*args, **named)
        if when == "after":
            die()
        return result

    is_async = owner.__dict__[name].__code__.co_flags & 0x80
    setattr(owner, name, dying if is_async else dying_at_once)


if __name__ == "__main__":
    around(Asker, "ask", "ask")
    around(Asker, "take_back", "take back")
    around(TitleAsk, "_answer", "answer")
    around(Asker, "claim", "claim")
    around(ControlClient, "do", "text", lambda _, line: "paste-buffer -p" in line)
    around(ControlClient, "do", "enter", lambda _, line: "paste-buffer -r" in line)
    around(Asker, "pass_on", "pass on")
    del sys.argv[1]
    main()
