"""Start the MCP server as the environment says."""

import os
import sys
from pathlib import Path

from agent_runner.agent_tools import complain, main_as_told


def _main() -> int:
    ipc_dir = os.environ.get("PYNCHY_IPC_DIR")
    if not ipc_dir:
        return complain(
            "PYNCHY_IPC_DIR is not set. Set it to the group's mailbox, the folder that holds"
            " tasks, responses and input."
        )
    return main_as_told(Path(ipc_dir), os.environ)


if __name__ == "__main__":
    sys.exit(_main())
