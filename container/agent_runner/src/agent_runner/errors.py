"""What can go wrong on the agent's side, by what the caller can do about it, and the exit codes."""

from enum import IntEnum


class AgentRunnerError(Exception):
    """The root of all errors that this package raises on purpose."""


class MailboxMissing(AgentRunnerError):
    """The mailbox, or one of its folders, is not there."""


class BadArguments(AgentRunnerError):
    """A question is not put in a way that can be asked; the message names the field."""


class BadFile(AgentRunnerError):
    """A file that the host wrote is not what the contract says."""


class ProgramMissing(AgentRunnerError):
    """The agent program is not installed, or cannot be started."""


class SessionUnknown(AgentRunnerError):
    """There is nothing that says which of the program's sessions this is."""


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
