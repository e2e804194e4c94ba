"""Where `pynchy` begins: a status bar is answered at once, all else by the command line."""

import os
import sys


def main() -> None:
    """Run what the words say."""
    if sys.argv[1:2] == ["status"] or "--line" in sys.argv:
        from pynchy import status_line  # noqa: PLC0415 - only for this

        if status_line.wants_line(sys.argv[1:]):
            status_line.show_line(sys.argv[1:], os.environ)
            return
    from pynchy.cli import main as run  # noqa: PLC0415 - slow to import

    run()


if __name__ == "__main__":
    main()
