"""What is known of programs: which run others, and what a `*` in a rule must not let in.

Each entry says why. A program that is not here gets no rule with a `*` from the host; a person who
writes one by hand is taken at their word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile


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


@dataclass(frozen=True, slots=True)
class Guard:
    """What the `*` of a pattern does not cover, and why.

    `short` are letters, alone or in a bundle; `long` are options with two dashes (any beginning of
    one counts) or with one (as `find` has them); `first` are words right after the program;
    `within` are texts that must not be in any word; `outside`: no path out of the folder may be.
    `only`: of options, these alone are let in. `everything`: no `*` is of use at all.
    """

    why: str
    short: str = ""
    long: str = ""
    first: str = ""
    within: str = ""
    outside: bool = False
    only: str = ""
    everything: bool = False

    def refuses(self, words: Sequence[str], *, at_first: bool) -> bool:
        """True if one of the words is so; the first may stand right after the program."""
        if self.everything:
            return True
        if at_first and words and words[0] in self.first.split():
            return True
        if self.only and not self._knows_options(words):
            return True
        return any(self._refuses(word) for word in words)

    def _knows_options(self, words: Sequence[str]) -> bool:
        """True if only options are given that are let in; what follows `--` is the script's."""
        own = takewhile(lambda word: word != "--", words)
        names = {word.partition("=")[0] for word in own if word.startswith("-")}
        return names <= set(self.only.split())

    def _refuses(self, word: str) -> bool:
        if any(text in word for text in self.within.split()):
            return True
        if self.outside and _leads_outside(word):
            return True
        if not word.startswith("-") or word in {"-", "--"}:
            return False
        name = word.partition("=")[0]
        if any(_is_option(name, option) for option in self.long.split()):
            return True
        return not word.startswith("--") and any(letter in word for letter in self.short)


def _leads_outside(word: str) -> bool:
    """True if a word, or what an option in it is given, is a path out of the folder."""
    path = word.partition("=")[2] if word.startswith("-") else word
    return path.startswith("/") or ".." in path.split("/")


def _is_option(name: str, option: str) -> bool:
    if option.startswith("--"):
        return name.startswith("--") and option.startswith(name)
    return name.lstrip("-") == option.removeprefix("-")


def _all(why: str, names: str) -> dict[str, tuple[Guard, ...]]:
    return dict.fromkeys(names.split(), (Guard(why, everything=True),))


# Programs whose first word says what they do. Options before it change what that means.
WITH_SUBCOMMANDS = names(
    "git npm pnpm yarn bun cargo docker podman kubectl helm go pip pip3 uv poetry gh glab "
    "systemctl terraform tofu aws gcloud az brew apt apt-get dnf snap rustup gem bundle "
    "composer dotnet mvn gradle deno hg svn jj"
)
GUARDS: dict[str, tuple[Guard, ...]] = {
    "git": (
        Guard(
            "runs a program",
            short="xOc",
            long="--exec --upload-pack --receive-pack --ext-diff --textconv --config "
            "--config-env --open-files-in-pager --exec-path --template --extcmd --tool "
            "--show-signature --gpg-sign --filters --edit-description --recurse-submodules",
            within="::",
            first="bisect submodule filter-branch difftool mergetool rebase config alias daemon "
            "instaweb send-email credential hook clone init fast-import remote-ext gui citool "
            "http-backend shell upload-pack receive-pack upload-archive cvsserver p4 svn "
            "web--browse maintenance help am archive merge-index for-each-repo",
        ),
        Guard("writes a file", short="o", long="--output --output-directory --separate-git-dir"),
        # git diff A B shows any two files, once one of them is not of the repository.
        Guard(
            "reads any file",
            long="--no-index --contents --file --pathspec-from-file",
            outside=True,
        ),
    ),
    "find": (
        Guard("runs a program", long="-exec -execdir -ok -okdir"),
        Guard("removes or writes files", long="-delete -fprint -fprint0 -fprintf -fls"),
    ),
    **dict.fromkeys(
        ("fd", "fdfind"), (Guard("runs a program", short="xX", long="--exec --exec-batch"),)
    ),
    "rg": (
        Guard("runs a program", short="z", long="--pre --pre-glob --hostname-bin --search-zip"),
    ),
    "sort": (
        Guard("runs a program", long="--compress-program"),
        Guard("writes a file", short="oT", long="--output --temporary-directory"),
    ),
    "tree": (Guard("writes a file", short="oR", long="--output"),),
    "ip": (Guard("runs a program", first="netns vrf", short="b", long="-batch"),),
    **dict.fromkeys(("bat", "batcat"), (Guard("runs a program", long="--pager"),)),
    "date": (Guard("sets the clock", short="s", long="--set"),),
    "file": (Guard("writes a file or runs a program", short="Cz", long="--compile --uncompress"),),
    "man": (Guard("runs a program", short="PHp", long="--pager --html --preprocessor --browser"),),
    "pytest": (
        Guard(
            "loads code or settings of one's choice",
            short="pco",
            long="--pyargs --rootdir --confcutdir --config-file --override-ini --pdbcls "
            "--import-mode",
        ),
        Guard(
            "writes files",
            long="--basetemp --junitxml --junit-xml --log-file --debug --result-log --report-log "
            "--cov-report --cov-config",
        ),
    ),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun"),
        (
            Guard(
                "runs scripts of a package",
                first="run run-script exec x dlx start test t stop restart install i ci add "
                "install-test it rebuild publish pack link create init update up upgrade explore "
                "edit config c set prune dedupe uninstall un remove rm version node",
                # Any setting is an option, among them which programs are run.
                only="--json --depth --long --all --omit --include --prod --production --dev "
                "--global --parseable --silent --quiet --loglevel -g -a -l -s -q",
            ),
        ),
    ),
    "cargo": (
        Guard(
            "runs a program or code of one's choice",
            long="--config --manifest-path --fix --open --artifact-dir --out-dir",
            short="ZC",
            first="run r install install-update script publish init new",
        ),
        Guard("writes files", long="--target-dir"),
    ),
    "go": (
        Guard(
            "runs a program",
            long="-exec -toolexec -vettool -overlay -modfile -C -ldflags -gcflags -asmflags "
            "-gccgoflags -compiler -pkgdir",
            first="run generate tool install get env work mod",
        ),
        Guard(
            "writes files",
            long="-o -outputdir -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile "
            "-trace -c -test.coverprofile -test.cpuprofile -test.outputdir -test.memprofile "
            "-test.blockprofile -test.mutexprofile -test.trace -test.gocoverdir -test.testlogfile "
            "-test.fuzzcachedir -fuzzcachedir",
        ),
    ),
    **dict.fromkeys(
        ("docker", "podman"),
        (
            Guard(
                "starts or enters a container, or changes one",
                first="run exec create start build buildx compose cp commit load import plugin "
                "swarm service stack config context container image volume network system push "
                "pull login update export save rm rmi kill stop restart",
                long="--host --context --config --tlscacert",
                short="H",
            ),
        ),
    ),
    "kubectl": (
        Guard(
            "changes the cluster or runs a program",
            first="run exec attach cp apply create delete edit patch replace scale rollout set "
            "label annotate drain cordon taint proxy port-forward debug plugin config auth "
            "certificate expose autoscale kustomize alpha",
            long="--kubeconfig --server --token --as --output-directory --context --cluster --raw "
            "--cache-dir --profile-output --kustomize",
            short="sk",
        ),
        # A file says which objects to show, too.
        Guard("shows secrets", within="secret Secret SECRET", long="--filename", short="f"),
    ),
    **dict.fromkeys(
        ("pip", "pip3"),
        (
            Guard(
                "installs or runs code",
                first="install download wheel uninstall config cache lock",
                long="--python --log --proxy --cert --client-cert --report",
            ),
        ),
    ),
    "gh": (
        Guard(
            "runs a program or changes something",
            first="api alias extension ext config auth secret variable codespace cs ssh-key "
            "gpg-key",
            long="--web --editor --browser",
            short="we",
        ),
    ),
    "systemctl": (
        Guard(
            "changes a service",
            first="start stop restart reload enable disable mask unmask edit set-property kill "
            "isolate link revert daemon-reload daemon-reexec import-environment set-environment "
            "poweroff reboot halt kexec suspend hibernate",
            long="--host --machine --root --image",
            short="HM",
        ),
    ),
    **_all(
        "its arguments are a program",
        "sed gsed awk gawk mawk nawk perl ruby node nodejs deno bun php lua luajit tclsh wish "
        "osascript python python2 python3 pypy pypy3 ipython Rscript R julia ghci scala groovy "
        "jshell swift octave gnuplot m4 bc dc ed ex vi vim nvim view emacs nano psql mysql sqlite3 "
        "redis-cli",
    ),
    **_all(
        "its arguments make it run commands",
        "ssh scp sftp rsync tar bsdtar cpio zip unzip 7z ar socat nc ncat netcat nmap tcpdump less "
        "more most make gmake ninja just rake cmake ant meson bazel tox nox invoke fab ansible "
        "ansible-playbook vagrant tmux screen crontab at batch gcc g++ cc c++ clang clang++ ld "
        "rustc javac java npx bunx pnpx uvx pipx uv poetry hatch pre-commit openssl gpg split "
        "csplit logrotate run-parts dpkg rpm gem bundle composer dotnet mvn gradle terraform tofu "
        "helm rustup hg svn jj",
    ),
    **_all(
        "it fetches what others chose, writes files, or sends what it reads",
        "curl wget aria2c ftp telnet tee uniq",
    ),
}
# They run a file or a module that is named first, and hand the other words on to it.
SCRIPT_RUNNERS = names(
    "python python2 python3 pypy pypy3 ipython node nodejs deno bun perl ruby php lua luajit "
    "tclsh osascript Rscript julia swift"
)
MODULE = "-m"
# What an agent may do with pynchy: ask, and look.
_ASKING = names("ask mcp status pending show history events sessions log docs")
_EARLY_OPTION = "an option before the subcommand changes what that does"


def base_name(program: str) -> str:
    """Return the program without its folder."""
    return program.rpartition("/")[2]


def why_refused(words: Sequence[str], known: int) -> str | None:
    """Say why a `*` does not cover the words of the command after the first `known` ones."""
    words, known = script_of(words, known)
    if _has_early_option(words):
        return _EARLY_OPTION
    for guard in GUARDS.get(base_name(words[0]), ()):
        if guard.refuses(words[known:], at_first=known == 1):
            return guard.why
    return None


def _has_early_option(words: Sequence[str]) -> bool:
    first = words[1] if len(words) > 1 else ""
    return base_name(words[0]) in WITH_SUBCOMMANDS and first.startswith("-")


def why_no_star(words: Sequence[str]) -> str | None:
    """Say why no `*` after these words can be of use, if that is so."""
    words, _ = script_of(words, len(words))
    program = base_name(words[0])
    if program in WRAPPERS or _has_early_option(words):
        return WRAPPERS.get(program, _EARLY_OPTION)
    return next((guard.why for guard in GUARDS.get(program, ()) if guard.everything), None)


def acts_for_people(words: Sequence[str]) -> bool:
    """True if the command may answer, revoke or start something in a person's place."""
    words, _ = script_of(words, len(words))
    asks_or_looks = len(words) > 1 and words[1] in _ASKING
    return base_name(words[0]) == "pynchy" and not asks_or_looks


def is_guarded(program: str) -> bool:
    """True if a `*` does not cover everything for that program."""
    return base_name(program) in GUARDS


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
