"""How long a click in Slack takes to the coroutine that waits, and a hundred questions to be shown.

Ours: the real host and the real waiter, each in a process of its own, with the stand-in Slack in
this one. The limit of a click, in the same run: the same click to a bare Bolt listener. The limit
of a hundred questions: what Slack's own rate limit leaves possible.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.figures import Line, Sample, Unit, line
from tests.standins.slack import Message, SlackStandIn
from tests.standins.slack.person import Person

USER = "U0BENCH"
ROUNDS = 40  # a message a second is the most that a channel takes
QUICK_ROUNDS = 3
WARM_UP = 3
SETTLE_SECONDS = 0.02
MAX_SECONDS = 60.0
SETTINGS = """
[http]
port = 0
[channels.slack]
api_url = "{url}"
"""
GROUP_SETTINGS = """
[groups.{group}]
channels = ["slack"]
chat = {{ slack = "{channel}" }}
allowed_users = {{ slack = ["{user}"] }}
"""
CHANNELS = 20
EACH = 5
QUICK_EACH = 1
# A little less than the host's own pace: some of its messages are refused, and must be repeated.
MESSAGES_PER_SECOND = 0.8


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    rounds = (QUICK_ROUNDS if quick else ROUNDS) + WARM_UP
    with SlackStandIn() as slack:
        floor = _floor(slack, rounds)
    with SlackStandIn() as slack:
        ours = _ours(slack, folder, rounds)
    each = QUICK_EACH if quick else EACH
    with SlackStandIn() as slack:
        burst = _burst(slack, folder, each)
    least = (each - 1) / MESSAGES_PER_SECOND * 1e3
    return [
        line(
            "e1",
            "click in Slack → waiting coroutine resumed",
            Unit.MILLISECONDS,
            Sample(ours[WARM_UP:]),
            Sample(floor[WARM_UP:]),
            at_most=10,
        ),
        line(
            "e2",
            f"{CHANNELS * each} questions at once in {CHANNELS} channels → all shown",
            Unit.MILLISECONDS,
            Sample([burst]),
            Sample([least]) if least else None,
            at_most_times=2,
        ),
    ]


def _floor(slack: SlackStandIn, rounds: int) -> list[float]:
    slack.workspace.add_channel("C0", USER)
    person = slack.person(USER)
    card = slack.workspace.post(
        Message("C0", slack.workspace.new_ts(), USER, "", [_button()], by_bot=True)
    )
    found = []
    with _process("slack_floor", slack.url, slack.bot_token, slack.app_token) as listener:
        _read(listener)
        _wait(lambda: slack.sockets.count > 0)
        for _ in range(rounds):
            time.sleep(SETTLE_SECONDS)
            clicked = time.monotonic_ns()
            person.press(card, "floor")
            found.append((int(_read(listener)) - clicked) / 1e6)
    return found


def _button() -> dict[str, object]:
    text = {"type": "plain_text", "text": "floor"}
    return {"type": "actions", "elements": [{"type": "button", "action_id": "floor", "text": text}]}


def _ours(slack: SlackStandIn, folder: Path, rounds: int) -> list[float]:
    with (
        _host(slack, folder / "clicks", 1) as [mailbox],
        _process("slack_agent", str(mailbox)) as agent,
    ):
        return [_round(slack, slack.person(USER), agent, number) for number in range(rounds)]


def _round(slack: SlackStandIn, person: Person, agent: subprocess.Popen[str], number: int) -> float:
    _write(agent, f"ask round-{number}")
    _wait(lambda: len(slack.messages("C0")) > number)
    # The host must have noted that the card is shown, as it has when a person gets to see it.
    time.sleep(SETTLE_SECONDS)
    clicked = time.monotonic_ns()
    person.press(slack.messages("C0")[-1], "Yes")
    return (int(_read(agent)) - clicked) / 1e6


def _burst(slack: SlackStandIn, folder: Path, each: int) -> float:
    """Return how many milliseconds passed until the last card was there."""
    slack.limit_rate(MESSAGES_PER_SECOND)
    with (
        _host(slack, folder / "burst", CHANNELS) as mailboxes,
        _process("slack_agent", *map(str, mailboxes)) as agent,
    ):
        _write(agent, f"many {each}")
        asked = int(_read(agent))
        _wait(lambda: len(_cards(slack)) == CHANNELS * each)
        shown = time.monotonic_ns()
        slack.limit_rate(None)
        for card in _cards(slack):
            slack.person(USER).press(card, "Yes")
        _read(agent)
        if len(_cards(slack)) != CHANNELS * each:
            raise RuntimeError("a question was shown twice")
    return (shown - asked) / 1e6


def _cards(slack: SlackStandIn) -> list[Message]:
    return [card for number in range(CHANNELS) for card in slack.messages(f"C{number}")]


@contextmanager
def _host(slack: SlackStandIn, folder: Path, groups: int) -> Iterator[list[Path]]:
    """Run a host whose groups each ask in a channel of their own. Yield their mailboxes."""
    folder.mkdir()
    config, data = folder / "pynchy.toml", folder / "data"
    tables = [SETTINGS.format(url=slack.url)]
    mailboxes = []
    for number in range(groups):
        group, channel = f"bench{number}", f"C{number}"
        slack.workspace.add_channel(channel, USER)
        tables.append(GROUP_SETTINGS.format(group=group, channel=channel, user=USER))
        mailboxes.append(data / "ipc" / group)
        for name in ("tasks", "responses", "input"):
            (mailboxes[-1] / name).mkdir(parents=True)
    config.write_text("".join(tables))
    tokens = {"SLACK_BOT_TOKEN": slack.bot_token, "SLACK_APP_TOKEN": slack.app_token}
    command = [str(Path(sys.executable).parent / "pynchy"), "serve"]
    with subprocess.Popen(
        [*command, "--config", config, "--data-dir", data],
        env={**os.environ, **tokens},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as host:
        try:
            _read(host)
            _wait(lambda: slack.sockets.count > 0)
            yield mailboxes
        finally:
            host.terminate()


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if sys.exc_info()[0] is not None:
                process.kill()


def _write(process: subprocess.Popen[str], command: str) -> None:
    assert process.stdin is not None
    process.stdin.write(command + "\n")
    process.stdin.flush()


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline()
    if not text:
        raise RuntimeError("a process of the benchmark has ended")
    return text


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError("a part of the benchmark does not come to an end")
        time.sleep(0.001)
