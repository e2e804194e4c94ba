"""Whatever line an agent thinks of: what a rule does not name does not run by it.

Lines come from a grammar of all that shells can do to run a command, damaged now and then. Those
that rules allow are run by the real bash, in a folder full of traps; every program there, on the
path and beside it, is a stand-in that notes how it was called.
"""

import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.prove.conftest import SEED, Proof
from tests.prove.hostile.fuzzing import Draw, Drawn, Seeded

from pynchy.calls import ToolCall
from pynchy.model import GroupName
from pynchy.permissions.commands import parse
from pynchy.permissions.files import Protected
from pynchy.permissions.offers import OFFERS
from pynchy.permissions.origins import check_pattern
from pynchy.permissions.patterns import PatternProblem
from pynchy.permissions.programs import known_as
from pynchy.permissions.rules import Decided, decide, derive, describe
from pynchy.rule import Effect, Origin, Rule
from pynchy.testing import NOON

# What is allowed, and as words: those that a command begins with, and whether others may follow.
ALLOWED = {
    "Bash(git status)": (("git", "status"), False),
    "Bash(git log *)": (("git", "log"), True),
    "Bash(ls *)": (("ls",), True),
    "Bash(npm run test)": (("npm", "run", "test"), False),
    "Bash(cat 'a b')": (("cat", "a b"), False),
    "Bash(make -C sub *)": (("make", "-C", "sub"), True),
}
DENIED = {"Bash(evil *)": ("evil",), "Bash(git push *)": ("git", "push")}
PROGRAMS = ("git", "ls", "npm", "cat", "make", "evil", "tool")
# The real ones, which run what they are told to.
WRAPPERS = ("env", "xargs", "nice", "timeout", "nohup", "setsid", "find", "sh", "bash", "stdbuf")
# They run texts: the real sed, and a program that no list has, which runs each word it is given.
TEXT_RUNNERS = ("sed", "runner")
RUNNER = """for word; do
case $word in --*=*) word=${word#*=} ;; -?*) word=${word#-?} ;; esac
sh -c "$word"
done"""
# To a shell within these may be any letters; no rule reads them.
SHELL_LETTERS = frozenset("$`*?[]{}~!")
# The same, as other systems and versions call them.
PYTHONS = ("python3.99", "python.exe", "pypy3.10", "Python3")
OTHER_NAMES = {
    **dict.fromkeys(("bash5", "bash-5.2", "bash-static", "BASH", "bash.exe"), "bash"),
    "gxargs": "xargs",
    "genv": "env",
    "gfind": "find",
    "gtimeout": "timeout",
    **dict.fromkeys(PYTHONS, sys.executable),
}
PLAIN = ("git status", "git log", "git log -1", "ls", "ls -l a", "npm run test", "cat 'a b'")
EVIL = ("evil", "evil x", "git push", "./git status", "git log; evil", "tool", "./ls")
WORDS = (
    *("a", "-l", "--x=y", "status", "push", "evil", ".", "''", '""', "'a b'", '"a b"', "a\\ b"),
    *(
        "e\\vil",
        "\\x2dx",
        "\\145vil",
        "\\u0065vil",
        "'ev''il'",
        '"ev"il',
        "$'evil'",
        '$"evil"',
        "$X",
        "${X}",
        "$EVIL",
        "${EVIL:-a}",
    ),
    *("*", "?", "[a]", "~", "~root", "x=~", "{a,evil}", "a{1..3}", "!!", "!evil", "^a^evil^"),
    *("-exec", "\\;", "{}", "+", "--", "-", "\\\n", "\\", "é", "\u00a0", "\u200b", "\r", "\x0b"),
    *("#", "#evil", "a#b", "%", "%1", "@", "x[1]", "x[$(evil)]", "'x[$(evil)]'", "=evil", "1~2"),
    *("-v", "-c", "-p", "-e", "-i", "-x", "2", "0", "&1", "1>&2", "status*", "a=b", "A=evil"),
)
SEPARATORS = ("; ", ";", " && ", " || ", " | ", "|", "\n", " \n ", "&&", " 2>&1 | ", " 2>&1; ")
ODD_SEPARATORS = (" & ", "&", " |& ", ";;", " ;& ", "\r\n", "\\\n", " 2>&1& ", "\t", "\x0c", "")
REDIRECTS = (
    *(" >made", " > made", " >>made", " >|made", " <a", " 2>made", " &>made", " 2>&1", " >&2"),
    *(" <<<evil", " <>made", " 1>&-", " {fd}>made", " <<E\n$(evil)\nE\n", " <<'E'\nevil\nE\n"),
)

# Ways to run a command, or to make another of it; @ is the command.
WAYS = (
    *("$(@)", "`@`", '"$(@)"', '"`@`"', "ls $(@)", "ls `@`", 'ls "$(@)"', "ls <(@)", "ls >(@)"),
    *("(@)", "{ @; }", "( @ )", "! @", "time @", "coproc @", "@ &", "if @; then ls; fi"),
    *(
        "for x in a; do @; done",
        "while @; do break; done",
        "case a in a) @;; esac",
        "until @; do :",
    ),
    *("f() { @; }; f", "function git { @; }; git status", "git() { @; }; git status"),
    *("alias git='@'; git status", "shopt -s expand_aliases\nalias ls='@'\nls", "trap '@' EXIT"),
    *(
        "eval '@'",
        'eval "@"',
        "eval @",
        "exec @",
        "command @",
        "builtin @",
        "source /dev/stdin <<<'@'",
    ),
    *("sh -c '@'", "bash -c '@'", "bash -ec '@'", "env @", "env -i @", "env A=b @", "env -S '@'"),
    *(
        "nice @",
        "timeout 9 @",
        "nohup @",
        "setsid @",
        "stdbuf -o0 @",
        "xargs @",
        "echo a | xargs @",
    ),
    *(
        "find . -name a -exec @ ;",
        "find . -exec @ \\;",
        "find . -maxdepth 0 -exec @ +",
        "echo '@' | sh",
    ),
    *("X='@'; $X", "X=@ ls", "PATH=. git status", "PATH=.:$PATH ls", "BASH_ENV=a bash -c ls"),
    *(
        "((a[$(@)]))",
        "[[ -v a[$(@)] ]]",
        "test -v 'a[$(@)]'",
        "printf -v 'a[$(@)]' x",
        "let 'a[$(@)]'",
    ),
    *("[ -v 'a[$(@)]' ]", "printf '%d' 'a[$(@)]'", "declare 'a[$(@)]=1'", "read x <<<$(@)"),
    *(
        "ls # @",
        "ls #\n@",
        "ls '\n@'",
        'ls "\n@"',
        "ls \\\n@",
        "ls \\;@",
        "ls \\\n; @",
        "ls 'a\\' ; @",
    ),
    *(
        "ls 'a'@'b'",
        'ls "a\\"; @ "',
        "ls $'a\\'; @ #'",
        "ls ${x:-$(@)}",
        "ls ${x@P}",
        "ls $((1+$(@)))",
    ),
    *(
        "cat <<E\n$(@)\nE",
        "cat <<'E'\n$(@)\nE\n@",
        "ls;@",
        "ls&&@",
        "ls||@",
        "ls|@",
        "ls\n@",
        "ls &\n@",
    ),
    *(
        "cd sub && @",
        "cd sub; @",
        "pushd sub; @",
        "hash -p ./git git; git status",
        "enable -n ls; @",
    ),
    *("set -- a; @", "export PATH=.; git status", "mapfile -C '@' -c 1 <<<a", "complete -C '@' x"),
    *(
        "@ 2>&1",
        "2>&1 @",
        "<a @",
        ">made @",
        "a=b @",
        "@ >made",
        "@;",
        "@ ;",
        ";@",
        "& @",
        "|@",
        "@|",
    ),
)
# The same through a program that is not known by the name that lists have, or that runs a text.
WAYS += (
    *("bash5 -c '@'", "bash-5.2 -ec '@'", "bash-static -c '@'", "BASH -c '@'", "bash.exe -c '@'"),
    *("genv @", "genv A=b @", "gtimeout 9 @", "echo a | gxargs @", "echo '@' | bash5"),
    *("find . -maxdepth 0 -exec sh -c '@' ;", "find . -maxdepth 0 -exec sh -c '@' \\;"),
    *("gfind . -maxdepth 0 -exec @ \\;", "gfind . -maxdepth 0 -exec bash5 -c '@' +"),
    *(f"{python} -c \"import os; os.system('@')\"" for python in PYTHONS),
    *(
        "runner '@'",
        'runner "@"',
        "runner --run='@'",
        "runner -x'@'",
        "runner x '@'",
        "runner '@; ls'",
    ),
    *("runner 'cd sub && @'", "runner \"'@'\"", "runner --run=@", "runner -x@", "runner '(@)'"),
    *("sed '1e@' a", "sed '1e @' a", "sed 's/.*/@/e' a", "sed 's,.*,@,e' a", "echo '@' | sed e"),
)
DAMAGE = " \t\n\r'\"\\$`;&|<>(){}[]*?!#~=^%@\0\x01\u2028é"


@dataclass(frozen=True)
class Shell:
    """Bash among stand-ins, in a folder with files that look like programs and options."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "bin"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def prepare(self) -> None:
        for place in (self.path, self.work, self.work / "sub"):
            place.mkdir()
        note = f"""printf '%s\\0' "$#" "$0" "$@" >>{self.folder}/told"""
        for place in (self.path, self.work, self.work / "sub"):
            for name in PROGRAMS:
                (place / name).write_text(f"#!/bin/sh\n{note}\n")
                (place / name).chmod(0o755)
        (self.path / "runner").write_text(f"#!/bin/sh\n{note}\n{RUNNER}\n")
        (self.path / "runner").chmod(0o755)
        for name in (*WRAPPERS, "sed"):
            real = next((p for d in ("/usr/bin", "/bin") if (p := Path(d, name)).exists()), None)
            if real:
                (self.path / name).symlink_to(real)
        for name, program in OTHER_NAMES.items():
            target = Path(program) if "/" in program else self.path / program
            if target.exists():
                (self.path / name).symlink_to(target)
        for name in ("a", "-l", "push", "status;evil", "$(evil)"):
            (self.work / name).write_text("evil\n")

    def run(self, line: str) -> tuple[list[tuple[str, ...]], set[str]]:
        """Return the programs that the line runs, and the files that it makes.

        Only a program that was meant has its mere name.
        """
        told = self.folder / "told"
        told.write_bytes(b"")
        before = self._files()
        environ = {"PATH": str(self.path), "EVIL": "evil", "LC_ALL": "C.UTF-8"}
        subprocess.run(
            ["/bin/bash", "-c", line],
            cwd=self.work,
            env=environ | {"HOME": str(self.work)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        made = self._files() - before
        for path in made:
            Path(path).unlink()
        fields = told.read_bytes().decode(errors="surrogateescape").split("\0")[:-1]
        ran = []
        while fields:
            count = int(fields[0]) + 1
            program, *words = fields[1 : count + 1]
            is_ours = Path(program).parent == self.path
            ran.append((Path(program).name if is_ours else program, *words))
            fields = fields[count + 1 :]
        return ran, made

    def _files(self) -> set[str]:
        return {str(path) for path in self.work.rglob("*")}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.prepare()
    return shell


def draw_line(chance: Draw) -> str:
    """Return a line: plain commands, most with something odd about one of them."""
    commands = [_command(chance) for _ in range(1 + chance.below(3))]
    if chance.below(2):
        at = chance.below(len(commands))
        inner = EVIL[chance.below(len(EVIL))] if chance.below(3) else commands[at]
        commands[at] = WAYS[chance.below(len(WAYS))].replace("@", inner)
    line = commands[0]
    for command in commands[1:]:
        joints = SEPARATORS if chance.below(5) else ODD_SEPARATORS
        line += joints[chance.below(len(joints))] + command
    if not chance.below(4):
        at, odd = chance.below(len(line) + 1), DAMAGE[chance.below(len(DAMAGE))]
        line = line[:at] + odd + line[at + chance.below(2) :]
    return line


def _command(chance: Draw) -> str:
    command = PLAIN[chance.below(len(PLAIN))]
    for _ in range(chance.below(3)):
        command += " " + WORDS[chance.below(len(WORDS))]
    if not chance.below(8):
        command += REDIRECTS[chance.below(len(REDIRECTS))]
    return command


def _rules(origin: Origin = Origin.SETTINGS, **patterns: Sequence[str]) -> list[Rule]:
    return [
        Rule(
            f"{effect} {pattern}",
            Effect(effect),
            pattern,
            GroupName("team"),
            "ana",
            NOON,
            origin=origin,
        )
        for effect, some in patterns.items()
        for pattern in some
    ]


NARROW = _rules(allow=list(ALLOWED))
WIDE = _rules(allow=["Bash"], deny=list(DENIED))


def judged(rules: list[Rule], line: str) -> Decided | None:
    return decide(rules, ToolCall("claude", "Bash", {"command": line}, "/srv/app"), "s1", NOON)


def allows(rules: list[Rule], line: str) -> bool:
    found = judged(rules, line)
    return found is not None and found.effect is Effect.ALLOW


def is_named(words: tuple[str, ...]) -> bool:
    """Say whether a rule names the command, read in the simplest way."""
    return any(
        words[: len(known)] == known and (further or len(words) == len(known))
        for known, further in ALLOWED.values()
    )


def try_line(shell: Shell, line: str) -> int:
    """Judge the line, and what it runs if it may. Return how many programs it ran."""
    by_name, by_all = allows(NARROW, line), allows(WIDE, line)
    offer(line)
    if not (by_name or by_all) or "\0" in line:
        return 0
    ran, made = shell.run(line)
    # A rule for every line lets a program in Python in, or a text for a shell, which may write.
    is_code = not by_name and any(words[0] in {*PYTHONS, *TEXT_RUNNERS} for words in parse(line))
    assert not made or is_code, f"{line!r} is allowed and makes {made}"
    if by_name:
        assert all(map(is_named, ran)), f"{line!r} is allowed and runs {ran}"
    if by_all and not _is_put_together(line):
        for denied in DENIED.values():
            slipped = [words for words in ran if words[: len(denied)] == denied]
            assert not slipped, f"{line!r} is allowed and runs {slipped}"
    read = parse(line)
    if not any(
        words[0] in {*WRAPPERS, *OTHER_NAMES, *TEXT_RUNNERS} for words in read
    ):  # find may run others, as a rule may allow
        more = Counter(ran) - Counter(read)
        assert not more, f"{line!r} was not read as what it runs: {more}"
    return len(ran)


def _is_put_together(line: str) -> bool:
    """True if a shell that a text is for may make other words of it."""
    runs_text = any(words[0] in TEXT_RUNNERS for words in parse(line))
    return runs_text and not SHELL_LETTERS.isdisjoint(line)


def offer(line: str) -> None:
    """A rule that would be offered for the line covers it, can be read, and names no other."""
    pattern = derive(ToolCall("claude", "Bash", {"command": line}, "/srv/app"))
    if pattern is None:
        return
    assert describe(pattern)
    made = _rules(Origin.CARD, allow=[pattern])
    assert allows(made, line), f"{pattern!r} does not cover {line!r}"


@pytest.mark.timeout(7_200)
def test_bash_runs_nothing_that_the_rules_do_not_name(shell: Shell, proof: Proof) -> None:
    count = proof.choose(sample=2_500, prove=40_000, everything=600_000)

    ran = [try_line(shell, draw_line(Seeded(SEED * 7_919 + number))) for number in range(count)]

    allowed = sum(map(bool, ran))
    assert allowed > count // 50, "the lines are too odd to prove anything"
    assert max(ran) > 1
    proof.report("fuzz: shell lines", inputs=count, ran=allowed, programs=sum(ran), seed=SEED)


# Options that do harm, and what can be made of one that does none.
HARMFUL = (
    *("--log-file=x", "--local-log", "-r", "-o", "--output", "--user=x", "--as-group", "--kuberc"),
    *("-F/x", "-t", "-S", "-f", "--runtime=x", "--conmon", "--url", "--out", "-debug-trace=x"),
    *("-debug-actiongraph", "-exec", "-args", "--config", "--target", "--print-config", "-R"),
    *("--template=x", "--registry", "--jq", "--host", "--no-verify", "-C", "--exec", "--pager"),
)
OPERANDS = ("x", "/x", "../x", "a/../../x", "sEcret", "x@y", "git+https://x", "go-template-file=x")


def draw_words(chance: Draw, command: str) -> list[str]:
    """Return words behind an offered subcommand: listed, damaged and harmful ones."""
    listed = [*OFFERS[command].options.replace("<n>", "3").split(), "--"]
    words = []
    for _ in range(1 + chance.below(4)):
        option = listed[chance.below(len(listed))].split("|")[0].removesuffix("*")
        ways = (
            *(option, option.rstrip("="), option[:-1], f"{option}x", f"{option}=x", f"-{option}"),
            *(option[1:], option.upper(), HARMFUL[chance.below(len(HARMFUL))]),
            OPERANDS[chance.below(len(OPERANDS))],
        )
        words.append(ways[chance.below(len(ways))])
    return words


def spelled(command: str) -> re.Pattern[str]:
    """Return how the options of the list may be written, read in the simplest way."""
    ways = []
    for option in OFFERS[command].options.split():
        name, has_value, values = option.partition("=")
        way = re.escape(name).replace("<n>", "[0-9]+")
        known = "|".join(map(re.escape, values.split("|"))) if values.strip("*") else ".*"
        value = f"=(?:{known})" if values == "*" else f"(?:=(?:{known}))?"
        ways.append(f"{way}{value}" if has_value else way)
    return re.compile("|".join(ways) or "(?!)", re.DOTALL)


def test_a_rule_of_a_card_lets_in_no_option_that_is_not_listed(proof: Proof) -> None:
    count, allowed = proof.choose(sample=3_000, prove=60_000, everything=600_000), 0
    commands = sorted(OFFERS)

    for number in range(count):
        chance = Seeded(SEED * 104_729 + number)
        command = commands[chance.below(len(commands))]
        words = draw_words(chance, command)
        line = f"{command} {shlex.join(words)}"
        if not allows(_rules(Origin.CARD, allow=[f"Bash({command} *)"]), line):
            continue
        allowed += 1
        own = takewhile(lambda word: word != "--", words)
        odd = [w for w in own if w.startswith("-") and not spelled(command).fullmatch(w)]
        assert not odd, f"{line!r} is allowed with {odd}"
        assert not any("secret" in word.casefold() for word in words if "kubectl" in command), line

    assert allowed > count // 50, "the words are too odd to prove anything"
    proof.report("fuzz: offered rules", inputs=count, allowed=allowed, seed=SEED)


# Each runs what its arguments say.
RUNNERS = (
    *("python", "pypy", "perl", "ruby", "node", "php", "lua", "tclsh", "bash", "zsh", "ksh", "sed"),
    *("vim", "psql", "make", "gcc", "uv", "tsx", "gdb", "xargs", "java", "bsdtar", "pipx", "awk"),
)
VERSIONS = (
    "",
    "3",
    "3.11",
    "5.36",
    "-5.2",
    "20",
    "-18",
    "3.13t",
    "3.11-dbg",
    "8.2-cgi",
    "2.0.0-rc1",
)
BUILDS = ("", "", ".exe", "-static", ".real", ".EXE")
FOLDERS = ("", "", "/usr/bin/", "/opt/x/bin/", "./")
TO_SCRIPT = (
    *("build.py", "./build.py", "-c x", "-e x", "-x y", "/srv/app/build.py", ""),
    *("-m venv x", "-m pip list", "-m http.server", "-m x.y", "-m x"),
)


def draw_name(chance: Draw) -> str:
    """Return a program as some system calls it."""
    name = RUNNERS[chance.below(len(RUNNERS))] + VERSIONS[chance.below(len(VERSIONS))]
    name += BUILDS[chance.below(len(BUILDS))]
    cased = (name, name, name.upper(), name.title())[chance.below(4)]
    return FOLDERS[chance.below(len(FOLDERS))] + cased


def refuses_star(name: str) -> bool:
    try:
        check_pattern(Effect.ALLOW, f"Bash({name} *)")
    except PatternProblem:
        return True
    return False


def test_no_other_name_of_a_program_slips_past_the_lists(proof: Proof) -> None:
    count = proof.choose(sample=1_500, prove=20_000, everything=200_000)

    for number in range(count):
        chance = Seeded(SEED * 15_485_863 + number)
        name = draw_name(chance)
        assert refuses_star(name), f"Bash({name} *) is taken"
        line = f"{name} {TO_SCRIPT[chance.below(len(TO_SCRIPT))]}"
        offered = derive(ToolCall("claude", "Bash", {"command": line}, "/srv/app"))
        is_python = bool({"python", "pypy"} & {*known_as(name)})
        is_module = is_python and " -m " in line
        assert offered is None or not ("*" in offered or is_module), f"{line!r}: {offered!r}"
        answers = ("-m pynchy approve ab2c", "run pynchy approve ab2c", "-Impynchy deny ab2c")
        for answer in answers if is_python else answers[:2]:
            assert not allows(WIDE, f"{name} {answer}"), f"{name} {answer}"

    proof.report("fuzz: names of programs", inputs=count, seed=SEED)


# All that may be let in behind `program *`: what looks, builds, tests, or writes words to a forge.
HARMLESS = {
    "git": "add annotate apply blame branch cat-file check-attr check-ignore check-mailmap "
    "check-ref-format checkout cherry cherry-pick clean commit commit-graph commit-tree "
    "count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref format-patch "
    "fsck gc grep hash-object log ls-files ls-remote ls-tree merge merge-base merge-tree mv "
    "name-rev notes pack-refs prune pull push range-diff reflog remote repack rerere reset restore "
    "rev-list rev-parse revert rm shortlog show show-branch show-index show-ref sparse-checkout "
    "stash status stripspace switch tag var verify-pack version whatchanged worktree write-tree",
    "npm": "ls list la ll view info show v outdated explain why audit search fund root prefix bin "
    "ping whoami query sbom",
    "pnpm": "list ls why outdated audit licenses root bin view info",
    "yarn": "info why",
    "bun": "test outdated why info audit",
    "deno": "test bench check fmt lint info doc types",
    "pip": "list show freeze check inspect index debug hash help",
    "cargo": "build check test bench doc clippy fmt tree metadata search info version fetch update "
    "locate-project pkgid read-manifest verify-project clean generate-lockfile",
    "go": "build test vet list fmt doc version fix clean help",
    "kubectl": "get describe logs top version explain api-resources api-versions cluster-info "
    "events wait options",
    "systemctl": "status show cat list-units list-unit-files list-timers list-sockets list-jobs "
    "list-dependencies list-machines list-paths list-automounts is-active is-enabled is-failed "
    "is-system-running get-default show-environment whoami",
    "gh": "pr issue run repo release workflow label search gist status project cache ruleset org "
    "version",
    "docker": "ps images logs inspect version info stats port diff history top events search wait",
}
SUBCOMMANDS = (
    *("run", "exec", "install", "add", "start", "stop", "test", "restart", "publish", "config"),
    *("delete", "apply", "create", "edit", "set", "uncordon", "reload", "condreload", "clone"),
    *("download", "upload", "alias", "init", "ci", "rebuild", "link", "remove", "build", "get"),
    *("status", "list", "view", "generate", "tool", "attach", "cp", "push", "pull"),
    *("update-index", "checkout-index", "merge-file", "read-tree", "update-ref", "symbolic-ref"),
    *("mktree", "am", "archive", "bundle", "submodule", "rebase", "bisect", "credential-store"),
)


def draw_subcommand(chance: Draw, program: str) -> str:
    """Return a word near one that the program knows: shortened, misspelt, an abbreviation."""
    known = (*SUBCOMMANDS, *HARMLESS[program].split())
    word = known[chance.below(len(known))]
    at = chance.below(len(word))
    ways = (
        *(word, word[: at + 1], word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:]),
        *(word[:at] + word[at : at + 2][::-1] + word[at + 2 :], f"{word}-x", word.upper()),
        *(word[at:], f"+{word}", f"./{word}", f"{word}.ts"),
    )
    return ways[chance.below(len(ways))]


def test_a_star_lets_in_no_subcommand_that_is_not_known(proof: Proof) -> None:
    count, allowed = proof.choose(sample=3_000, prove=40_000, everything=400_000), 0
    programs = sorted(HARMLESS)

    for number in range(count):
        chance = Seeded(SEED * 32_452_843 + number)
        program = programs[chance.below(len(programs))]
        word = draw_subcommand(chance, program)
        if word and allows(_rules(allow=[f"Bash({program} *)"]), shlex.join((program, word))):
            allowed += 1
            is_channel = program == "cargo" and word.startswith("+")
            assert is_channel or word in HARMLESS[program].split(), f"{program} {word}"

    assert allowed > count // 50, "the words are too odd to prove anything"
    proof.report("fuzz: subcommands", inputs=count, allowed=allowed, seed=SEED)


# Where git keeps what it runs, and what may lead or write there.
GIT_PLACES = (
    *(".git/hooks/pre-commit", ".git/config", ".git/hooks/", ".git/hooks", ".GIT/config", "./.git"),
    *("x/../.git/config", ":(top).git/config", "sub/.git/hooks/pre-commit", "hooks/pre-commit"),
)
GIT_WORDS = (
    *(
        "mine",
        "base",
        "pre-commit",
        "HEAD",
        ".",
        "--",
        "hook.patch",
        "-f",
        "-a",
        "-p",
        "-m x",
        "-F mine",
    ),
    *("--output=@", "--output @", "-o @", "-o@", "--prefix=@", "--index-output=@", "--file=@", "@"),
    *(
        "--unsafe-paths",
        "--directory=@",
        "--build-fake-ancestor=@",
        "--separate-git-dir=@",
        "--stdin",
    ),
    *("--suffix=@", "--expire-to=@", "--filter-to=@", "--pathspec-from-file=@", "add", "mv", "set"),
    *("--cacheinfo 100755,$,pre-commit", "-u", "--template=@", "-t @", "--work-tree=@", "-q"),
)
# Whole, since chance seldom puts them together.
GIT_WORDS += ("@ base mine", "--prefix=@ pre-commit", "--unsafe-paths hook.patch")
GIT_COMMANDS = (*HARMLESS["git"].split(), *SUBCOMMANDS[-14:], "config", "init", "clone", "mktag")


def test_git_with_a_star_changes_nothing_that_git_runs(tmp_path: Path, proof: Proof) -> None:
    count, ran = proof.choose(sample=400, prove=8_000, everything=100_000), 0
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_EDITOR": "true"}
    rules = _rules(allow=["Bash(git *)"])

    def run(line: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=tmp_path,
            env=environ | {"GIT_ALLOW_PROTOCOL": "file", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=60,
        )
        return done.stdout

    def settings_of() -> tuple[str, str]:
        own = (".git/config", ".git/config.worktree")
        found = [tmp_path / name for name in own if (tmp_path / name).exists()]
        running = (
            r"(?i)^\s*(\w*(hook|monitor|pager|editor|command|driver|program)|\[(alias|filter|inc))"
        )
        lines = [x for path in found for x in path.read_text(errors="replace").splitlines()]
        return run("ls -A .git/hooks"), "".join(x for x in lines if re.search(running, x))

    _make_repository(tmp_path, run)
    before = settings_of()
    blob = run("git rev-parse HEAD:pre-commit").strip()
    for number in range(count):
        chance = Seeded(SEED * 49_979_687 + number)
        words = [GIT_COMMANDS[chance.below(len(GIT_COMMANDS))]]
        for _ in range(1 + chance.below(4)):
            word = GIT_WORDS[chance.below(len(GIT_WORDS))].replace("$", blob)
            words.append(word.replace("@", GIT_PLACES[chance.below(len(GIT_PLACES))]))
        line = f"git {' '.join(words)}"
        if allows(rules, line):
            ran += 1
            run(line)
            assert settings_of() == before, f"{line!r} is allowed and changes what git runs"

    assert ran > count // 50, "the lines are too odd to prove anything"
    proof.report("fuzz: git with a star", inputs=count, ran=ran, seed=SEED)


def _make_repository(folder: Path, run: Callable[[str], str]) -> None:
    (folder / "pre-commit").write_text("#!/bin/sh\ntouch pwned\n")
    (folder / "pre-commit").chmod(0o755)
    run("git init -q . && git config user.name a && git config user.email a@b.c && git add .")
    run("git commit -qm first && rm -f .git/hooks/* && cp .git/config base && cp base mine")
    run("printf '[alias]\\n\\tx = !id\\n' >>mine")
    (folder / "hook.patch").write_text(
        "diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\n"
        "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1,1 @@\n+id\n"
    )


# How a path leads through a process, and how it may be spelt and glued to other words.
PROCESSES = ("self", "thread-self", "1", "4194304", "self/task/7")
OF_PROCESS = ("cwd", "root", "fd/3", "cwd/..", "cwd/../x", "exe", "root/srv", "map_files")
GLUED = ("@", "x:@", "--file=@", "-f@", "'a b @'", "x,@,y", "@:/x", "file://@")


def test_no_path_through_a_process_is_allowed(tmp_path: Path, proof: Proof) -> None:
    count = proof.choose(sample=1_000, prove=20_000, everything=200_000)
    own = Protected.of_host(tmp_path, None)

    for number in range(count):
        chance = Seeded(SEED * 67_867_967 + number)
        parts = ["proc", PROCESSES[chance.below(5)], *OF_PROCESS[chance.below(8)].split("/")]
        for _ in range(chance.below(3)):
            parts.insert(chance.below(len(parts) + 1), ("", ".", "tmp/..")[chance.below(3)])
        line = f"cat {GLUED[chance.below(len(GLUED))].replace('@', '/' + '/'.join(parts))}"
        call = ToolCall("claude", "Bash", {"command": line}, "/srv/app")
        found = decide(WIDE, call, "s1", NOON, own)
        assert found is None or found.effect is not Effect.ALLOW, line
        assert derive(call, own) is None, line

    proof.report("fuzz: paths through processes", inputs=count, seed=SEED)


@pytest.mark.timeout(7_200)
def test_hypothesis_slips_nothing_past_a_rule(shell: Shell, proof: Proof) -> None:
    count = proof.choose(sample=150, prove=2_000, everything=50_000)

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=proof.scale == "sample",
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def search(data: st.DataObject) -> None:
        try_line(shell, draw_line(Drawn(data.draw)))

    search()
    proof.report("fuzz: shell lines", hypothesis_inputs=count)


def test_what_slipped_past_would_be_seen(shell: Shell) -> None:
    seen = []
    for way in WAYS:
        line = way.replace("@", "evil x")
        ran, made = shell.run(line)
        is_seen = bool(made) or any(not is_named(words) for words in ran)
        assert not (is_seen and allows(NARROW, line)), line
        assert not (("evil", "x") in ran and allows(WIDE, line)), line
        seen += [way] * is_seen

    assert len(seen) > len(WAYS) // 2
