"""What can go wrong, branched by what the caller can do about it, and the exit codes.

PynchyError
├── ConfigError              fix the settings file
├── PluginBroken             reinstall a channel's package, or remove it
├── HostError                start or stop a host
│   ├── DataFolderBusy         another host holds the data folder
│   └── NoHost                 no host is running
├── MalformedRequest         tell the agent
├── DuplicateRequest         the id is taken; drop the copy
├── ReplyRejected            tell the person
│   ├── UnknownQuestion        nothing has that id
│   ├── AmbiguousQuestion      several have it
│   ├── AlreadyOver            it has ended; says how
│   ├── QuestionOver           the same, as a running host tells a command
│   ├── PartTaken              another person has answered that part; says who and what
│   ├── NotAllowed             this person may not answer it
│   ├── InvalidReply           it fits none of what was asked
│   ├── NotUndelivered         no delivery has failed
│   ├── UnknownSession         no session, or no group, has that name
│   ├── SessionOver            the session has ended already
│   ├── NotStarted             a session cannot be started; says why
│   │   └── NotStopped           its runner cannot be ended; says why
│   ├── UnknownGroup           no group has that name
│   ├── GroupKept              the group cannot be removed; says why
│   ├── UnknownRule            no rule has that id
│   └── RuleRefused            the rule cannot be made or revoked; says why
├── ChannelUnavailable       try another channel, retry later; a card may be there all the same
│   └── NotShown               the same, but no card is there
│       └── CannotShow           trying again cannot help as things are set up
│           └── AskingUnsupported  this channel cannot ask at all
├── DeliveryFailed           keep the answer, retry
└── IllegalTransition        a bug: the life cycle has no such step

0  done              4  already over
1  refused, failed   5  no host is running
2  declined, usage   6  partly answered
3  nobody answered   7  ended, but calls of tools were not allowed
                     64 usage (of `ask`, where 2 has a meaning of its own)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pynchy.model import Ending


EXIT_FAILED = 1
EXIT_DECLINED = 2
EXIT_UNANSWERED = 3
EXIT_OVER = 4
EXIT_NO_HOST = 5
EXIT_PARTLY = 6
EXIT_DENIED = 7
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130


class PynchyError(Exception):
    """Any failure that pynchy itself reports. Its text is for the person or agent concerned."""


class ConfigError(PynchyError):
    """The settings cannot be used; the text says where and why."""


class PluginBroken(PynchyError):
    """What an installed package brings as a channel cannot be used; the text says why."""


class HostError(PynchyError):
    """The host cannot run here."""


class DataFolderBusy(HostError):
    """Another host holds the data folder."""


class NoHost(HostError):
    """No host is running for the data folder."""


class MalformedRequest(PynchyError):
    """A request that cannot be understood.

    `request_id` is the id to answer to, where the request had a usable one.
    """

    def __init__(self, reason: str, request_id: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.request_id = request_id


class DuplicateRequest(PynchyError):
    """The request id is known already."""


class ReplyRejected(PynchyError):
    """A person's reply was not taken; the text says why."""


class UnknownQuestion(ReplyRejected):
    """No question, open or over, has that id."""


class AmbiguousQuestion(ReplyRejected):
    """The id fits more than one question."""


class AlreadyOver(ReplyRejected):
    """The question has ended; `ending` says how."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.describe())
        self.ending = ending


class QuestionOver(ReplyRejected):
    """The host says that the question has ended; the text says how."""


class PartTaken(ReplyRejected):
    """Another person has answered this part of the question."""


class NotAllowed(ReplyRejected):
    """The person may not answer the question."""


class InvalidReply(ReplyRejected):
    """The reply fits none of what was asked; the question stays open."""


class NotUndelivered(ReplyRejected):
    """The question has no failed delivery."""


class UnknownSession(ReplyRejected):
    """No session has that id, or no group that name."""


class SessionOver(ReplyRejected):
    """The session has ended already; the text says how."""


class NotStarted(ReplyRejected):
    """The session cannot be started."""


class NotStopped(NotStarted):
    """The session's runner does not end, or is not one of ours to end."""


class UnknownGroup(ReplyRejected):
    """No group has that name."""


class GroupKept(ReplyRejected):
    """The group cannot be removed as things are; the text says why, and what to do."""


class UnknownRule(ReplyRejected):
    """No rule has that id."""


class RuleRefused(ReplyRejected):
    """The rule cannot be made or revoked; the text says why, and what to do."""


class ChannelUnavailable(PynchyError):
    """The channel could not show or settle a card; `maybe_shown` if one may be there."""

    maybe_shown = True


class NotShown(ChannelUnavailable):
    """The channel could not show a card now, and surely none is there."""

    maybe_shown = False


class CannotShow(NotShown):
    """The channel cannot show a card in that chat until somebody fixes what the text says."""


class AskingUnsupported(CannotShow):
    """The channel has no way to ask."""


class DeliveryFailed(PynchyError):
    """The answer did not reach the agent; it is kept."""


class IllegalTransition(PynchyError):
    """The life cycle does not allow this step from this state."""


def exit_code(exc: PynchyError) -> int:
    """Return the exit code that tells a script what went wrong."""
    match exc:
        case AlreadyOver() | QuestionOver() | SessionOver():
            return EXIT_OVER
        case NoHost():
            return EXIT_NO_HOST
        case _:
            return EXIT_FAILED
