"""Which calls of a terminal's program are remembered until they have ended."""

from pynchy.model import GroupName, RequestId
from pynchy.sources.terminals import CallKey, RunningCalls

MANY = 1_000


def key(group: str, number: int = 0) -> CallKey:
    return CallKey(GroupName(group), "s1", "", "Bash", f"{number}")


def allow(calls: RunningCalls, call: CallKey, words: str = "") -> None:
    request_id = RequestId(f"{call.group}{call.input_digest}")
    calls.begin(call, request_id)
    calls.decide(call, request_id, call, words)


def test_one_groups_calls_drove_out_those_of_another_that_still_ran() -> None:
    calls = RunningCalls()
    allow(calls, key("quiet"), "Ana says: slowly")

    for number in range(MANY):
        allow(calls, key("busy", number))

    assert calls.take_words(key("quiet")) == "Ana says: slowly"


def test_the_oldest_calls_of_a_group_are_forgotten_where_there_are_too_many() -> None:
    calls = RunningCalls()

    for number in range(MANY):
        allow(calls, key("busy", number), "words")

    assert calls.take_words(key("busy")) == ""
    assert calls.take_words(key("busy", MANY - 1)) == "words"
