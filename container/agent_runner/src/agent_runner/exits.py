"""How a run ended, as the exit code of `agent_runner`."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes. Only FINISHED says that all is well."""

    FINISHED = 0
    FAILED = 1
    USAGE = 2
    BAD_INITIAL = 3
    NO_MAILBOX = 4
    NO_PROGRAM = 5
    NO_SERVER = 6
    NO_SESSION = 7
    STOPPED = 143
