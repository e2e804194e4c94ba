"""Open questions to measure with."""

from datetime import UTC, datetime, timedelta

from pynchy.model import (
    CardRef,
    CardState,
    GroupName,
    Option,
    PendingQuestion,
    Question,
    RequestId,
    ShortId,
    State,
)

_ASKED = datetime.now(UTC)
_QUESTION = Question(
    "Which database shall the new service use?",
    header="Database",
    options=(Option("PostgreSQL", "as everywhere else"), Option("SQLite", "a file, no server")),
)


def open_question(number: int, groups: int = 50) -> PendingQuestion:
    """Return a question that is shown in the local channel and waits for a person."""
    return PendingQuestion(
        request_id=RequestId(f"{number:08x}{number * 7919:024x}"),
        short_id=ShortId(f"q{number:05}"),
        group=GroupName(f"group-{number % groups}"),
        questions=(_QUESTION,),
        timestamp=_ASKED,
        wait_until=_ASKED + timedelta(minutes=30),
        expires_at=_ASKED + timedelta(days=7),
        digest=f"{number:064x}",
        state=State.OPEN,
        agent="bench",
        cards=(CardRef("local", message_id=f"m{number}", state=CardState.SHOWN),),
    )
