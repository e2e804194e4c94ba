"""Wherever in its words a command hides another one, or a file: a rule does not let it through.

Words are put together from programs (known ones, and names that nobody has heard of), from the ways
in which options take a value, and from what can stand around a command or a path in a text.
"""

from datetime import UTC, datetime
from pathlib import Path

from tests.prove.conftest import SEED, Proof
from tests.prove.hostile.fuzzing import Draw, Seeded

from pynchy.calls import ToolCall
from pynchy.cli import COMMANDS
from pynchy.model import GroupName
from pynchy.permissions.files import NOTHING, Protected
from pynchy.permissions.inner_words import ASKING
from pynchy.permissions.rules import derive, judge
from pynchy.rule import Effect, Origin, Rule

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
RUNNERS = (
    *("tar xf a", "ssh h", "rsync a b:c", "npm exec", "docker run x", "make", "socat", "xterm"),
    *("hyperfine", "pm2 start", "uv run", "go test -exec", "rg --pre", "fd -x", "find . -exec"),
    *("sort --compress-program", "man -P", "git rebase -x", "git -c", "less", "openssl", "zip"),
)
# @ is the value: as a word of its own, glued to an option, after another option's name.
GLUES = ("@", "--x @", "--x=@", "-x @", "-x@", "-abx@", "-x=@", "-oX=@", "--x=y=@", "x=@", "-- @")
AROUND = (
    *("@", "cd x; @", "cd x && @", "@; x", "(@)", "{ @; }", "x | @", "@ | x", "X=1 @", "! @"),
    *(
        "a:@",
        "a,@",
        "[@]",
        "exec @",
        "/usr/bin/@",
        '"@"',
        "sh -c '@'",
        "if @",
        "@ x",
        "@ -n",
        "$(@)",
    ),
)
SPLITS = ("", "", '""', "\\", "''")


def draw_program(chance: Draw) -> str:
    """Return a program with what it may be told before: a known one, or one of any name."""
    if chance.below(2):
        return RUNNERS[chance.below(len(RUNNERS))]
    letters = "abcdefghijklmnopqrstuvwxyz"
    return "zq" + "".join(letters[chance.below(26)] for _ in range(2 + chance.below(6)))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def draw_hidden(chance: Draw, words: tuple[str, ...]) -> str:
    """Return a line with a command of these words in the value of an option, or in a text."""
    at = 1 + chance.below(len(words[0]) - 1)
    first = words[0][:at] + SPLITS[chance.below(len(SPLITS))] + words[0][at:]
    text = AROUND[chance.below(len(AROUND))].replace("@", " ".join((first, *words[1:])))
    glue = GLUES[chance.below(len(GLUES))]
    return f"{draw_program(chance)} {glue.replace('@', quoted(text))}"


def said(line: str, protected: Protected = NOTHING, cwd: str = "/srv/app") -> str:
    patterns = ((Effect.ALLOW, "Bash"), (Effect.DENY, "Bash(git push *)"))
    rules = [
        Rule(pattern, effect, pattern, GroupName("team"), "ana", NOON, origin=Origin.SETTINGS)
        for effect, pattern in patterns
    ]
    call = ToolCall("claude", "Bash", {"command": line}, cwd)
    return judge(rules, call, "s1", NOON, protected).effect.value


def test_no_word_hides_a_denied_command_or_an_answer(proof: Proof) -> None:
    count = proof.choose(sample=3_000, prove=40_000, everything=400_000)
    acting = sorted({*COMMANDS, "unheard"} - ASKING)

    for number in range(count):
        chance = Seeded(SEED * 49_979_687 + number)
        answer = ("pynchy", acting[chance.below(len(acting))], "ab2c")
        line = draw_hidden(chance, (("git", "push"), answer)[chance.below(2)])
        assert said(line) != "allow", line

    proof.report("fuzz: inner words", inputs=count, seed=SEED)


MARKS = (":", ",", ";", "=", " ", "'", '"', "(", ")", "|", "@", "<", "[", "\t", "#", "+")
BEFORE = ("", "x", "/a", "/opt/b", "-v", "--x", "a/b/c", "https://x/y", "../z", "-f")
AFTER = ("", "/token", "/x y", "/..a", "/a/b/../c")


def draw_path(chance: Draw, root: Path) -> str:
    """Return a path to the data folder: plain, crooked, through links or a process, or relative."""
    ways = (
        *(f"{root}/data", f"{root}/./data", f"/{root}//data", f"{root}/shop/../data", "../data"),
        *(f"{root}/shop/link", f"{root}/shop/a b", f"{root}/shop/./a:b", "./link", "link"),
        *(f"{root}/none/../data", f"{root}/data/boxes/../x", f"{root}/shop/sub/up/data"),
        *(f"{root}/DATA", f"/proc/self/root{root}/data", "/proc/self/cwd/../data", "/dev/fd/3"),
        *(
            "/proc/thread-self/cwd/../data",
            "/proc/4194304/cwd/../data",
            f"{root}/shop/here/../data",
        ),
    )
    return ways[chance.below(len(ways))] + AFTER[chance.below(len(AFTER))]


def test_no_word_hides_the_hosts_own_files(tmp_path: Path, proof: Proof) -> None:
    count = proof.choose(sample=3_000, prove=40_000, everything=400_000)
    root = tmp_path.resolve()
    (root / "data" / "boxes").mkdir(parents=True)
    (root / "shop" / "sub").mkdir(parents=True)
    (root / "shop" / "here").symlink_to("/proc/self/cwd")
    for link, target in {"link": "data", "a b": "data", "a:b": "data", "sub/up": "."}.items():
        (root / "shop" / link).symlink_to(root / target)
    own = Protected.of_host(root / "data", None)

    for number in range(count):
        chance = Seeded(SEED * 67_867_967 + number)
        before = BEFORE[chance.below(len(BEFORE))]
        first, last = (MARKS[chance.below(len(MARKS))] for _ in range(2))
        after = f"{last}/x" if chance.below(2) else ""
        word = f"{before}{first if before else ''}{draw_path(chance, root)}{after}"
        line = f"{draw_program(chance)} {quoted(word)}"
        assert said(line, own, f"{root}/shop") == "ask", line

    proof.report("fuzz: the host's files", inputs=count, seed=SEED)


def test_no_rule_is_offered_for_a_file_that_an_agent_can_rewrite(proof: Proof) -> None:
    count = proof.choose(sample=3_000, prove=40_000, everything=400_000)
    files = ("./x", "../x", "./x.sh", "/srv/app/x", "/srv//app/x", "/srv/./app/y.py", "./a/b")
    files += ("/proc/self/cwd/x", "/proc/1/cwd/y.py", "/dev/fd/3")

    for number in range(count):
        chance = Seeded(SEED * 86_028_121 + number)
        glue = GLUES[chance.below(len(GLUES))]
        file = files[chance.below(len(files))]
        text = file if chance.below(2) else quoted(f"x {file} y")
        # Not a bundle: whether a path is glued to one is for the program to say.
        line = f"{draw_program(chance)} {glue.replace('-abx', '-x').replace('@', text)}"
        offered = derive(ToolCall("claude", "Bash", {"command": line}, "/srv/app"))
        assert offered is None, f"{line!r} is offered {offered!r}"

    proof.report("fuzz: offered files", inputs=count, seed=SEED)
