"""What is known of programs: which run others, or files, and which have two spellings.

What a `*` in a rule does not let in for each of them is in guards.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise


def names(text: str) -> frozenset[str]:
    """Return the names in a text."""
    return frozenset(text.split())


_RUNS = "it runs another command"
_SHELL = "it is a shell"
SHELLS = names("sh bash dash zsh ksh mksh ash csh tcsh fish rbash elvish nu pwsh powershell xonsh")
# They run what their arguments, or their input, say. What that is cannot be told from the words.
WRAPPERS: dict[str, str] = {
    **dict.fromkeys(SHELLS, _SHELL),
    **dict.fromkeys(
        names(
            "env sudo sudoedit doas su runuser pkexec run0 xargs parallel nohup nice ionice chrt "
            "taskset timeout time stdbuf unbuffer setsid script watch entr chroot unshare nsenter "
            "flock setpriv capsh prlimit numactl firejail bwrap systemd-run dbus-run-session "
            "start-stop-daemon strace ltrace gdb lldb perf valgrind rr busybox toybox expect "
            "xvfb-run faketime fakeroot proot torsocks proxychains proxychains4 caffeinate "
            "ssh-agent direnv nix-shell nix flatpak-spawn distrobox toolbox"
        ),
        _RUNS,
    ),
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


# They run a file or a module that is named first, and hand the other words on to it.
SCRIPT_RUNNERS = names(
    "python python2 python3 pypy pypy3 ipython node nodejs deno bun perl ruby php lua luajit "
    "tclsh osascript Rscript julia swift"
)
MODULE = "-m"
# What an agent may do with pynchy: ask, and look.
_ASKING = names("ask mcp status pending show history events sessions log docs")
_GIT_DASH = "git-"
_GIT_ALIAS = re.compile(
    r"(?:-c|--config-env)[ =]?(?:alias\.|include\.path|includeif\.)", re.IGNORECASE
)


def base_name(program: str) -> str:
    """Return the program without its folder."""
    return program.rpartition("/")[2]


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


def acts_for_people(words: Sequence[str]) -> bool:
    """True if the command may answer, revoke or start something in a person's place."""
    words, _ = script_of(words, len(words))
    asks_or_looks = len(words) > 1 and words[1] in _ASKING
    return base_name(words[0]) == "pynchy" and not asks_or_looks


def script_of(words: Sequence[str], known: int) -> tuple[Sequence[str], int]:
    """Return the command as that of the script or module that an interpreter surely runs."""
    if base_name(words[0]) not in SCRIPT_RUNNERS:
        return words, known
    named = words[1:known]
    is_module = bool(named) and named[0] == MODULE
    skipped = 2 if is_module else 1
    if len(named) < skipped or (named[0].startswith("-") and not is_module):
        return words, known
    return words[skipped:], known - skipped
