"""What is known of programs: which run others, or files, and under which names.

What a `*` in a rule does not let in for each of them is in guards.py.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def names(text: str) -> frozenset[str]:
    """Return the names in a text."""
    return frozenset(text.split())


_MAX_KEPT = 200
_RUNS = "it runs another command"
_SHELL = "it is a shell"
SHELLS = names(
    "sh bash dash zsh ksh mksh ash csh tcsh fish rbash rksh rzsh yash oksh elvish nu pwsh "
    "powershell xonsh cmd wsl"
)
# Programs that run what their arguments, or their input, say: what that is the words do not tell.
WRAPPING: dict[str, str] = {
    **dict.fromkeys(SHELLS, _SHELL),
    **dict.fromkeys(
        names(
            "env sudo sudoedit doas su runuser pkexec run0 xargs parallel nohup nice ionice chrt "
            "taskset timeout time stdbuf unbuffer setsid script watch entr chroot unshare nsenter "
            "flock setpriv capsh prlimit numactl firejail bwrap systemd-run dbus-run-session "
            "start-stop-daemon strace ltrace gdb lldb perf valgrind rr busybox toybox expect "
            "xvfb-run faketime fakeroot proot torsocks proxychains proxychains4 caffeinate "
            "ssh-agent direnv nix-shell nix flatpak-spawn distrobox toolbox setarch linux32 "
            "linux64 rlwrap chronic daemonize tini dumb-init catchsegv gosu su-exec chpst "
            "softlimit setuidgid eatmydata cgexec systemd-inhibit tsocks ld.so"
        ),
        _RUNS,
    ),
}
WRAPPERS: dict[str, str] = {
    **WRAPPING,
    **dict.fromkeys(
        names("eval exec source . command builtin trap coproc noglob nocorrect repeat jobs fc"),
        _RUNS,
    ),
    **dict.fromkeys(
        names(
            "if then elif else fi for while until do done case esac select in function foreach "
            "end always { } ! [[ ]]"
        ),
        "it is a word of the shell's grammar",
    ),
}
# Builtins after which the rest of the line, or the next line, means something else.
STATE_CHANGERS = names(
    "alias unalias export declare typeset local readonly unset set shopt setopt unsetopt hash "
    "enable disable read mapfile readarray let getopts pushd popd dirs umask ulimit exit "
    "return break continue shift wait disown bg fg suspend logout history bind complete "
    "compgen compopt zmodload autoload sched emulate vared functions float integer rehash "
    "print zle zstyle zparseopts zpty limit unlimit unhash chdir"
)
# Builtins that take some words for arithmetic, in which an index may hold a command: x[$(…)].
EVALUATORS = names("test printf")


_PYTHONS = names(
    "python python2 python3 py pypy pypy3 ipython bpython micropython jython graalpy coverage"
)
# They run a file or a module that is named first, and hand the other words on to it.
_SCRIPT_RUNNERS = _PYTHONS | names(
    "node nodejs tsx ts-node ts-node-esm vite-node zx deno bun perl ruby jruby php lua luajit "
    "tclsh wish osascript rscript julia swift raku elixir escript runghc runhaskell guile racket"
)
# Their arguments are a program, or name one in a way that is not known here.
INTERPRETERS = _SCRIPT_RUNNERS | names(
    "sed gsed awk gawk mawk nawk ptpython ts-node-dev coffee irb pry perl6 hhvm texlua luau r iex "
    "erl ghci scala groovy kotlin jshell clojure clj bb sbcl clisp ocaml utop crystal dart gjs qjs "
    "d8 octave gnuplot m4 bc dc ed ex vi vim rvim gvim nvim view rview vimdiff emacs nano pico "
    "micro joe kak hx psql mysql mariadb sqlite sqlite3 duckdb mongo mongosh redis-cli jupyter "
    "cscript wscript mshta"
)
# Of these the script follows a subcommand.
_BY_SUBCOMMAND = dict.fromkeys(("deno", "bun", "coverage"), "run")
_MODULE = "-m"
# Modules that run another one, or a file, or what they read.
_RUNNING_MODULES = names(
    "pdb runpy timeit trace cprofile profile code asyncio ipdb pudb debugpy idlelib doctest"
)
_GIT_DASH = "git-"
_GIT_ALIAS = re.compile(
    r"(?:-c|--config-env)[ =]?(?:alias\.|include\.path|includeif\.)", re.IGNORECASE
)
# What follows is a command; fd takes it glued on, too.
_FOR_EACH = {
    "find": re.compile(r"-(?:exec|execdir|ok|okdir)()"),
    **dict.fromkeys(("fd", "fdfind"), re.compile(r"(?:-[A-Za-wyz]*[xX]|--exec(?:-batch)?=?)(.*)")),
}
# As Windows, Debian and others call another build of the same program.
_BUILD = re.compile(
    r"(?:\.(?:exe|cmd|bat|com|basic|tiny|nox|gtk|gtk3|athena|motif|distrib|real|orig|appimage)"
    r"|-static|-dbg)+$"
)
# python3.11, node-20, perl5.36-x86_64-linux-gnu, python3.13t.
_VERSION = re.compile(r"(?<=[a-z+])(?:[-_.]v?)?[0-9][0-9.]*[a-z]{0,3}(?:[-.].*)?$")
# The loader of programs: /lib64/ld-linux-x86-64.so.2 ./program.
_LOADER = re.compile(r"ld(?:64|-linux|-musl|-elf|-[0-9.]+)?[^/]*\.so(?:\.[0-9]+)*$")
# GNU's programs where others have the plain name.
_GNU = re.compile(
    r"g(?=(?:find|xargs|timeout|nice|nohup|stdbuf|env|chroot|time|sort|date|split|csplit|tee|uniq"
    r"|tar|rm|rmdir|mv|ln|chmod|chown|chgrp|dd|shred|truncate|install|kill)$)"
)


def base_name(program: str) -> str:
    """Return the program without its folder."""
    return program.rpartition("/")[2]


def known_as(program: str) -> tuple[str, ...]:
    """Return the names that a program may be known by: Python3.11.exe as python, too."""
    # Agents name programs as they like: nothing long of theirs is kept.
    is_short = len(program) <= _MAX_KEPT
    return _known_as(program) if is_short else _known_as.__wrapped__(program)


@lru_cache(maxsize=4096)
def _known_as(program: str) -> tuple[str, ...]:
    name = base_name(program)
    low = name.casefold()  # some disks do not mind
    build = _BUILD.sub("", low)
    plain = _VERSION.sub("", build)
    loader = ("ld.so",) if _LOADER.match(low) else ()
    return tuple(dict.fromkeys((name, low, build, plain, _GNU.sub("", plain), *loader)))


def look_up(table: Mapping[str, T], program: str) -> T | None:
    """Return what the table has of the program, by whichever of its names."""
    return next((table[name] for name in known_as(program) if name in table), None)


def is_one_of(known: Container[str], program: str) -> bool:
    """True if the program is there by one of its names."""
    return any(name in known for name in known_as(program))


def wrapper_name(program: str) -> str:
    """Return which wrapper a program is; empty if it is none."""
    name = base_name(program)
    if name in WRAPPERS:
        return name
    # Words of the grammar, and builtins, have no other names.
    return next((one for one in known_as(program) if one in WRAPPING), "")


def wrapper_run_by(words: Sequence[str]) -> str:
    """Return which wrapper find runs for each file; empty if it is none, or another program."""
    running = look_up(_FOR_EACH, words[0])
    if running is None:
        return ""
    found = ((running.fullmatch(one), two) for one, two in pairwise((*words, "")))
    return next(filter(None, (wrapper_name(one[1] or two) for one, two in found if one)), "")


def other_spelling(words: Sequence[str]) -> tuple[str, ...]:
    """Return `git push x` for `git-push x`; a command that has no other spelling as it is."""
    folder, slash, name = words[0].rpartition("/")
    if not name.casefold().startswith(_GIT_DASH):
        return tuple(words)
    return (f"{folder}{slash}git", name[len(_GIT_DASH) :], *words[1:])


def renames_subcommands(words: Sequence[str]) -> bool:
    """True if options of git in it may give a subcommand another name."""
    # With a blank between two words: the setting may be either part of one, or the next one.
    return any(_GIT_ALIAS.match(f"{one} {two}") for one, two in pairwise((*words, "")))


@dataclass(frozen=True, slots=True)
class Script:
    """What an interpreter surely runs, as a command of its own; of a file, words[0] is the path."""

    words: Sequence[str]
    known: int
    is_file: bool


def script_within(words: Sequence[str], known: int) -> Script | None:
    """Return what an interpreter surely runs by its first `known` words; None if that is unsure."""
    start = _before_script(words)
    named = words[start:known]
    if not start or not named:
        return None
    if named[0] == _MODULE and is_one_of(_PYTHONS, words[0]):
        if len(named) == 1 or named[1].casefold() in _RUNNING_MODULES:
            return None
        return Script(words[start + 1 :], known - start - 1, is_file=False)
    return None if named[0].startswith("-") else Script(words[start:], known - start, is_file=True)


def _before_script(words: Sequence[str]) -> int:
    """Return how many words stand before the script; 0 if it takes none that way."""
    if not is_one_of(_SCRIPT_RUNNERS, words[0]):
        return 0
    subcommand = look_up(_BY_SUBCOMMAND, words[0])
    if subcommand is None:
        return 1
    following = words[1] if len(words) > 1 else ""
    if following == subcommand:
        return 2
    return 1 if {".", "/"} & set(following) and subcommand != "coverage" else 0


def script_of(words: Sequence[str], known: int) -> tuple[Sequence[str], int]:
    """Return the command as that of the script or module that interpreters surely run."""
    while (script := script_within(words, known)) is not None:
        words, known = script.words, script.known
    return words, known
