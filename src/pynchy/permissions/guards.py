"""What the `*` of a rule does not let in, for each program, and why.

This holds for every rule. A program that is not here gets no rule with a `*` from the host; a
person who writes one by hand is taken at their word. Rules that are made on cards let in less:
offers.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile

from pynchy.permissions.programs import WRAPPERS, base_name, names, script_of

# A cluster of letters, which may end in an option that has its value right behind it: -F/etc/x.
_LETTERS = re.compile(r"-[A-Za-z]*")


@dataclass(frozen=True, slots=True)
class Guard:
    """What the `*` of a pattern does not cover, and why.

    `short` are letters, alone or in a bundle; `long` are options with two dashes (any beginning of
    one counts) or with one (as `find` has them); `first` are globs of the words that say what the
    program does, and `looks` the only such words that are let in; `within` is a regular expression
    that must not be found in any word, `folded` however their letters are written; `outside`: no
    path out of the folder may be. `only`: of options, these alone are let in. `everything`: no `*`
    is of use at all. `when`: it is about these subcommands alone.
    """

    why: str
    short: str = ""
    long: str = ""
    first: str = ""
    looks: str = ""
    within: str = ""
    folded: bool = False
    outside: bool = False
    only: str = ""
    everything: bool = False
    when: str = ""

    def refuses(self, words: Sequence[str], known: int, *, whole: bool = False) -> bool:
        """True if one of the words after the first `known` ones is so.

        Of a `whole` command it does not matter what the program does, but how.
        """
        if self.everything:
            return True
        if self.when and not {*words[1:2]} & {*self.when.split()}:
            return False
        if not whole and any(map(self._refuses_first, _subcommands(words, known))):
            return True
        if self.only and not self._knows_options(words[known:]):
            return True
        return any(self._refuses(word) for word in words[known:])

    def _refuses_first(self, word: str) -> bool:
        is_unknown = bool(self.looks) and word not in self.looks.split()
        return is_unknown or any(fnmatchcase(word, glob) for glob in self.first.split())

    def _knows_options(self, words: Sequence[str]) -> bool:
        """True if only options are given that are let in; what follows `--` is the script's."""
        own = takewhile(lambda word: word != "--", words)
        names = {word.partition("=")[0] for word in own if word.startswith("-")}
        return names <= set(self.only.split())

    def _refuses(self, word: str) -> bool:
        text = word.casefold() if self.folded else word
        if self.within and re.search(self.within, text):
            return True
        if self.outside and _leads_outside(word):
            return True
        if not word.startswith("-") or word in {"-", "--"}:
            return False
        name = word.partition("=")[0]
        if any(_is_option(name, option) for option in self.long.split()):
            return True
        return not word.startswith("--") and any(letter in word for letter in self.short)


def _subcommands(words: Sequence[str], known: int) -> Iterator[str]:
    """Yield the words after the known ones that may say what the program does.

    That is the first one that is no option (nor cargo's +toolchain). Behind an option it may be the
    value of that, and then it is the next one.
    """
    is_value = False
    for at in range(1, len(words)):
        if words[at][:1] in {"-", "+"}:
            is_value = words[at][:1] == "-"
            continue
        if at >= known:
            yield words[at]
        if not is_value:
            return
        is_value = False


def _leads_outside(word: str) -> bool:
    """True if a word, or what an option in it is given, is a path out of the folder."""
    paths = [word]
    if word.startswith("-"):
        paths = [word.partition("=")[2], _LETTERS.sub("", word, count=1)]
    return any(path.startswith("/") or ".." in path.split("/") for path in paths)


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
_PACKAGE_SCRIPTS = Guard(
    "runs scripts of a package",
    first="run run-script exec x dlx start test t stop restart install i ci add install-test it "
    "rebuild publish pack link create init update up upgrade explore edit config c set prune "
    "dedupe uninstall un remove rm version node",
    # Any setting is an option, among them which programs are run.
    only="--json --depth --long --all --omit --include --prod --production --dev --global "
    "--parseable --silent --quiet --loglevel -g -a -l -s -q",
)
GUARDS: dict[str, tuple[Guard, ...]] = {
    "git": (
        Guard(
            "runs a program",
            short="xOc",
            long="--exec --upload-pack --receive-pack --ext-diff --textconv --config "
            "--config-env --open-files-in-pager --exec-path --template --extcmd --tool "
            "--show-signature --gpg-sign --filters --edit-description --recurse-submodules",
            # Placeholders for signatures run gpg.program.
            within=r"::|%[-+ ]?G|%\(\*?signature",
            first="bisect* submodule* filter-* difftool* mergetool* rebase* config alias daemon "
            "instaweb send-email credential* hook clone init init-db fast-import remote-* gui "
            "citool http-backend shell upload-pack receive-pack upload-archive cvs* p4 svn "
            "web--browse maintenance help am archive merge-index for-each-repo imap-send "
            "request-pull quiltimport",
        ),
        Guard("runs a program", when="clone", short="u"),
        # A strategy x is the program git-merge-x.
        Guard("runs a program", long="--strategy"),
        Guard("runs a program", when="merge pull rebase", short="s"),
        Guard(
            "writes a file",
            short="o",
            long="--output --output-directory --separate-git-dir",
            first="bundle",
        ),
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
    # ip takes any beginning of a word.
    "ip": (Guard("runs a program", first="net netn netns v vr vrf", short="b", long="-batch"),),
    **dict.fromkeys(("bat", "batcat"), (Guard("runs a program", long="--pager"),)),
    "date": (Guard("sets the clock", short="s", long="--set"),),
    "file": (Guard("writes a file or runs a program", short="Cz", long="--compile --uncompress"),),
    "man": (
        Guard(
            "runs a program",
            short="PHpC",
            long="--pager --html --preprocessor --browser --config-file",
        ),
    ),
    "pytest": (
        Guard(
            "loads code or settings of one's choice",
            short="pco",
            long="--pyargs --rootdir --confcutdir --config-file --override-ini --pdbcls "
            "--import-mode",
            # A file with more options.
            within="^@",
        ),
        Guard(
            "writes files",
            long="--basetemp --junitxml --junit-xml --log-file --debug --result-log --report-log "
            "--cov-report --cov-config",
        ),
    ),
    "npm": (_PACKAGE_SCRIPTS,),
    # Any other word is the name of a script, if the package has one of that name.
    "pnpm": (
        _PACKAGE_SCRIPTS,
        Guard(_PACKAGE_SCRIPTS.why, looks="list ls why outdated audit licenses root bin view info"),
    ),
    "yarn": (_PACKAGE_SCRIPTS, Guard(_PACKAGE_SCRIPTS.why, looks="info why")),
    "cargo": (
        Guard(
            "runs a program or code of one's choice",
            long="--config --manifest-path --fix --open --artifact-dir --out-dir --codegen "
            "--config-path --sysroot --extern",
            short="ZC",
            first="run r install install-update script publish init new",
        ),
        # What follows -- is for rustfmt, rustc or the tests.
        Guard(
            "writes files",
            long="--target-dir --lockfile-path --print-config --emit --logfile",
            short="o",
        ),
    ),
    "go": (
        Guard(
            "runs a program",
            long="-exec -toolexec -vettool -fixtool -overlay -modfile -C -ldflags -gcflags "
            "-asmflags -gccgoflags -compiler -pkgdir",
            first="run generate tool install get env work mod",
        ),
        Guard(
            "writes files",
            long="-o -outputdir -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile "
            "-trace -c -test.coverprofile -test.cpuprofile -test.outputdir -test.memprofile "
            "-test.blockprofile -test.mutexprofile -test.trace -test.gocoverdir -test.testlogfile "
            "-test.fuzzcachedir -fuzzcachedir -debug-actiongraph -debug-trace "
            "-debug-runtime-trace",
        ),
    ),
    **dict.fromkeys(
        ("docker", "podman"),
        (
            Guard(
                "starts or enters a container, or changes one",
                # Any other word may be a plugin.
                looks="ps images logs inspect version info stats port diff history top events "
                "search wait",
                long="--host --context --config --tlscacert",
                short="H",
            ),
            # Of podman; they count behind the subcommand, too.
            Guard(
                "runs a program, or writes files",
                long="--runtime --runtime-flag --conmon --url --connection --identity --ssh "
                "--remote --storage-opt --storage-driver --root --runroot --imagestore --module "
                "--hooks-dir --network-cmd-path --network-config-dir --tmpdir --volumepath "
                "--cgroup-manager --events-backend --out --cpu-profile --memory-profile",
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
            "--cache-dir --profile-output --kustomize --kuberc --user --as-group --as-uid "
            "--as-user-extra --username --password --certificate-authority "
            "--insecure-skip-tls-verify --tls-server-name",
            short="sk",
            within="--client-",
        ),
        # A file says which objects to show, too. To kubectl, SeCrEtS are secrets.
        Guard("shows secrets", within="secret", folded=True, long="--filename", short="f"),
        Guard(
            "reads any file",
            within="template-file|templatefile|jsonpath-file|columns-file",
            folded=True,
        ),
    ),
    **dict.fromkeys(
        ("pip", "pip3"),
        (
            Guard(
                "installs or runs code",
                first="install download wheel uninstall config cache lock",
                long="--python --log --log-file --proxy --cert --client-cert --report --cache-dir "
                "--index-url --pypi-url --extra-index-url --find-links --trusted-host "
                "--keyring-provider --requirement",
                short="r",
                # Not as an option: --local is another one.
                within="--local-",
            ),
        ),
    ),
    "gh": (
        Guard(
            "runs a program or changes something",
            # Any other word may be an extension, or another name for a command.
            looks="pr issue run repo release workflow label search gist status project cache "
            "ruleset org attestation version",
            long="--web --editor --browser",
            short="we",
        ),
        Guard("hands options on to git", within="^--$"),
    ),
    "systemctl": (
        Guard(
            "changes a service",
            first="start stop restart reload enable disable mask unmask edit set-property kill "
            "isolate link revert daemon-reload daemon-reexec import-environment set-environment "
            "poweroff reboot halt kexec suspend hibernate try-* reload-or-* condrestart "
            "force-reload reenable preset* reset-failed clean freeze thaw bind mount-image add-* "
            "set-default default rescue emergency exit switch-root sleep hybrid-sleep "
            "suspend-then-hibernate soft-reboot unset-environment log-* service-* cancel",
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
_EARLY_OPTION = "an option before the subcommand changes what that does"


def why_refused(words: Sequence[str], known: int) -> str | None:
    """Say why a `*` does not cover the words of the command after the first `known` ones."""
    words, known = script_of(words, known)
    if _has_early_option(words):
        return _EARLY_OPTION
    for guard in GUARDS.get(base_name(words[0]), ()):
        if guard.refuses(words, known):
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


def is_guarded(program: str) -> bool:
    """True if a `*` does not cover everything for that program."""
    return base_name(program) in GUARDS
