"""What can go wrong on the agent's side, by what the caller can do about it.

AgentRunnerError
├── MailboxMissing        fix the mount or the variable
├── BadArguments          tell the model which field to correct
├── BadFile               a file of the host's cannot be used: look again, or give up
├── ProgramMissing        install the agent program, or mend PATH
└── SessionUnknown        the agent program has no such session to go on with
"""


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
