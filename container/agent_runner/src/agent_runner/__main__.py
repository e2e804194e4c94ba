"""`python -m agent_runner` is `agent_runner`."""

import sys

from agent_runner.cli import main

if __name__ == "__main__":
    sys.exit(main())
