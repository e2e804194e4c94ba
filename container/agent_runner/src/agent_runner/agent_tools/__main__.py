"""Start the MCP server as the environment says."""

import os
import sys
from pathlib import Path

from agent_runner.agent_tools import complain, main


def _main() -> int:
    ipc_dir = os.environ.get("PYNCHY_IPC_DIR")
    if not ipc_dir:
        return complain(
            "PYNCHY_IPC_DIR is not set. Set it to the group's mailbox, the folder that holds"
            " tasks, responses and input."
        )
    max_wait = _seconds(os.environ.get("PYNCHY_MAX_WAIT", ""))
    if max_wait is not None and not max_wait > 0:
        return complain("PYNCHY_MAX_WAIT must be a number of seconds, such as 300.")
    return main(
        Path(ipc_dir),
        session_id=os.environ.get("PYNCHY_SESSION_ID", ""),
        agent=os.environ.get("PYNCHY_AGENT", ""),
        task=os.environ.get("PYNCHY_TASK", ""),
        max_wait=max_wait,
    )


def _seconds(text: str) -> float | None:
    """Return the number; None where none is given, and nan for what is not a number."""
    try:
        return float(text) if text else None
    except ValueError:
        return float("nan")


if __name__ == "__main__":
    sys.exit(_main())
