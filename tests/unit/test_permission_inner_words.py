"""Commands inside of the words of other commands: found by deny rules, whatever the program is."""

import time
from datetime import UTC, datetime

import click
import pytest

from pynchy.calls import ToolCall
from pynchy.cli import cli
from pynchy.model import GroupName
from pynchy.permissions.inner_words import ACTING, ASKING
from pynchy.permissions.rules import derive, judge
from pynchy.rule import Effect, Origin, Rule

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
# @ is the command that the program runs. Of each, the option or the text holds all of it.
TEXTS = (
    "tar xf a.tar --to-command='@'",
    "tar cf x y --checkpoint=1 --checkpoint-action=exec='@'",
    "tar cf x y -I'@'",
    "ssh -oProxyCommand='@' h",
    "ssh -o 'ProxyCommand=@' h",
    "ssh -o LocalCommand='@' h",
    "rsync --rsh='@' a b:c",
    "rsync -e'@' a b:c",
    "rsync -ave'@' a b:c",
    "npm exec --call='@'",
    "rg --pre='@' x",
    "fd --exec='@'",
    "go test -exec='@'",
    "go build -toolexec='@' x",
    "sort --compress-program='@' x",
    "man --pager='@' x",
    "git grep --open-files-in-pager='@' x",
    "git -c core.pager='@' log",
    "sed '1e@' f",
    "sed '1e @' f",
    "sed '$e@' f",
    "sed '/x/e@' f",
    "sed 's/x/@/e' f",
    "sed 's,x,@,e' f",
    "sed 's.x.@.e' f",
    "vim '+!@' x",
    "less '+!@' x",
    "psql -c '\\!@'",
    "socat TCP:h:1 EXEC:'@'",
    "socat TCP:h:1 SYSTEM:'cd x; @'",
    "hyperfine '@'",
    "hyperfine --prepare='@' ls",
    "xterm -e '@'",
    "konsole -e '@'",
    "pm2 start '@'",
    "cargo watch -s '@'",
    "mytool '@'",
    "mytool --run='@'",
    "mytool --run='cd x && @'",
    "mytool 'a: [\"@\"]'",
    "mytool 'X=1 @'",
    "mytool '(@)'",
    "mytool '/usr/bin/@'",
    "docker exec x --y='@'",
    "make X='@'",
    "echo '@' | at now",
    "echo '@' | ssh h",
    "printf '!@' | ed",
    "echo '@' | sed e",
)
# Its words are words of the command, and the program of it is glued to an option.
GLUED = (
    "docker run --entrypoint={0} x {1}",
    "docker run --entrypoint=/usr/bin/{0} x {1}",
    "mytool --program={0} {1}",
    "mytool -x={0} {1}",
    "mytool -x{0} {1}",
    "mytool --args=--program={0} {1}",
)
# To a shell this is the same word.
QUOTED = ("hyperfine {0}", "ssh h {0}", "mytool --run={0}", "tmux new-session {0}")


def bash(line: str) -> ToolCall:
    return ToolCall("claude", "Bash", {"command": line}, "/no/such/app")


def said(line: str, *allowed: str, deny: str = "", ask: str = "") -> str:
    patterns = [(Effect.ALLOW, pattern) for pattern in allowed]
    patterns += [(Effect.DENY, deny)] * bool(deny) + [(Effect.ASK, ask)] * bool(ask)
    rules = [
        Rule(f"{n}", effect, text, GroupName("team"), "ana", NOW, origin=Origin.SETTINGS)
        for n, (effect, text) in enumerate(patterns)
    ]
    return judge(rules, bash(line), "s1", NOW).effect.value


@pytest.mark.parametrize("text", TEXTS)
def test_a_denied_command_in_the_value_of_an_option_was_allowed(text: str) -> None:
    line = text.replace("@", "git push")

    assert said(line, "Bash") in {"allow", "ask"}
    assert said(line, "Bash", deny="Bash(git push *)") in {"ask", "deny"}
    assert said(line, "Bash", ask="Bash(git push *)") == "ask"


@pytest.mark.parametrize("text", GLUED)
def test_a_denied_program_that_is_glued_to_an_option_was_allowed(text: str) -> None:
    assert said(text.format("git", "push"), "Bash", deny="Bash(git push *)") == "ask"
    assert said(text.format("pynchy", "approve"), "Bash") == "ask"


@pytest.mark.parametrize("text", QUOTED)
@pytest.mark.parametrize("inner", ['g"i"t push', "g\\it push", "'git' \"push\"", 'git pu""sh'])
def test_a_denied_command_with_quotes_inside_of_a_text_was_allowed(text: str, inner: str) -> None:
    quoted = "'" + inner.replace("'", "'\\''") + "'"

    assert said(text.format(quoted), "Bash", deny="Bash(git push *)") == "ask"


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "command", ["approve ab2c", "desktop", "--data-dir x deny ab2c", "unheard"]
)
def test_an_agent_approved_itself_through_an_option_of_another_program(
    text: str, command: str
) -> None:
    line = text.replace("@", f"pynchy {command}")

    assert said(line, "Bash", "Bash(*)", "Bash(mytool *)") == "ask"
    assert derive(bash(line)) is None


@pytest.mark.parametrize(
    "line",
    [
        *("uv run pynchy desktop", "pipx run pynchy desktop", "uvx pynchy desktop"),
        *("uv run pynchy email send", "mytool pynchy {}", "mytool pynchy -h approve ab2c"),
        *("uv run python -mpynchy desktop", "find . -name x -exec pynchy desktop ';'"),
        "mytool 'pynchy pending; pynchy approve ab2c'",
        "mytool pynchy ./x approve ab2c",
    ],
)
def test_a_command_of_pynchy_that_nobody_had_listed_was_allowed(line: str) -> None:
    assert said(line, "Bash") == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "git commit -m 'Say when to @'",
        "git commit -am 'Say when to @'",
        "git commit --message='Say when to @'",
        "git tag -a v1 -m 'how to @'",
        "git log --grep='@'",
        "git log -S '@'",
        "git commit -m 'Say when to @' sh python",
        "gh pr create --title 'how to @' --body='first @, then wait'",
        "gh pr create -t 'how to @' -b 'first @'",
        "gh issue comment 3 --body 'do not @'",
        "echo 'how to @'",
        "echo how to '@'",
        "printf '%s' 'how to @'",
        "grep -rn '@' .",
        "grep --regexp='@' x",
        "rg '@' docs",
        "rg --glob='*.md' '@' docs",
        "ls 'notes on @'",
        "cat 'notes on @ .txt'",
        "pytest -k 'not @'",
        "python3 -m pytest -k 'not @'",
        "docker ps --filter='name=@'",
        "echo 'how to @' | grep x",
    ],
)
def test_a_text_that_no_program_runs_is_no_nuisance(line: str) -> None:
    own = "pynchy approve"
    assert said(line.replace("@", "git push"), "Bash", deny="Bash(git push *)") == "allow"
    assert said(line.replace("@", own), "Bash", deny="Bash(git push *)") == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "pynchy ask 'May I git push, or will you approve another way?'",
        "uv run pynchy ask 'Will you approve?'",
        "uv run pynchy pending",
        "mytool 'pynchy pending'",
        "cp -r src/pynchy other",
        "mytool src/pynchy",
        "mytool src/pynchy docs/x README.md",
        "mytool --folder=/home/ana/pynchy",
        "pip install pynchy",
        "docker build -t pynchy .",
    ],
)
def test_who_asks_or_names_a_folder_does_not_answer_for_people(line: str) -> None:
    assert said(line, "Bash") == "allow"


def test_pynchy_ask_may_speak_of_what_is_denied() -> None:
    assert said("pynchy ask 'May I git push?'", "Bash", deny="Bash(git push *)") == "allow"


def test_every_command_of_pynchy_is_known_as_one_that_acts_or_asks() -> None:
    commands = {*cli.list_commands(click.Context(cli))}

    assert len(commands) > 20
    assert not ACTING & ASKING
    assert commands == ACTING | ASKING


@pytest.mark.parametrize(
    "line",
    [
        "mytool '" + "a=" * 2_400 + "'",
        "mytool " + "-abcdefg " * 540,
        "mytool '" + 'a"' * 2_400 + "'",
        "sed '" + "e1e" * 1_600 + "'",
        "mytool " + "pynchy=" * 700,
        "mytool '" + "pynchy ask " * 440 + "'",
    ],
)
def test_a_line_full_of_odd_words_takes_no_time(line: str) -> None:
    started = time.process_time()

    said(line, "Bash", deny="Bash(git push *)")

    assert time.process_time() - started < 1
