"""The exit codes, and the error that only the command line knows.

0  done              4  already over
1  refused, failed   5  no host is running
2  declined, usage   6  partly answered
3  nobody answered   7  ended, but calls of tools were not allowed
                     64 usage (of `ask`, where 2 has a meaning of its own)
"""

from __future__ import annotations

from pynchy.errors import AlreadyOver, NoHost, PynchyError, ReplyRejected, SessionOver

EXIT_FAILED = 1
EXIT_DECLINED = 2
EXIT_UNANSWERED = 3
EXIT_OVER = 4
EXIT_NO_HOST = 5
EXIT_PARTLY = 6
EXIT_DENIED = 7
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130


class QuestionOver(ReplyRejected):
    """The host says that the question has ended; the text says how."""


def exit_code(exc: PynchyError) -> int:
    """Return the exit code that tells a script what went wrong."""
    match exc:
        case AlreadyOver() | QuestionOver() | SessionOver():
            return EXIT_OVER
        case NoHost():
            return EXIT_NO_HOST
        case _:
            return EXIT_FAILED
