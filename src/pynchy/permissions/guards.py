"""What the `*` of a rule does not let in, for each program, and why.

This holds for every rule. A program that is not here gets no rule with a `*` from the host; a
person who writes one by hand is taken at their word. Rules that are made on cards let in less:
offers.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pynchy.permissions.build_tools import BUILD_TOOLS
from pynchy.permissions.guard import Guard
from pynchy.permissions.programs import (
    INTERPRETERS,
    WRAPPERS,
    is_one_of,
    look_up,
    names,
    script_of,
    wrapper_name,
)


def _all(why: str, programs: Iterable[str]) -> dict[str, tuple[Guard, ...]]:
    return dict.fromkeys(programs, (Guard(why, everything=True),))


# Programs whose first word says what they do. Options before it change what that means.
WITH_SUBCOMMANDS = names(
    "git npm pnpm yarn bun cargo docker podman kubectl helm go pip pip3 uv poetry gh glab "
    "systemctl terraform tofu aws gcloud az brew apt apt-get dnf snap rustup gem bundle "
    "composer dotnet mvn gradle deno hg svn jj"
)
# As a part of a path, in whatever stands before it: --prefix=.git/, HEAD:.git, :(top).git, x.git/.
_GIT_FOLDER = r"(?:^(?:-[a-z]+)?|[/=:,)!^])(?:\.git(?![\w-])|git~[0-9])|\.git/"
_GITHUB = "runs a program, sends or writes files, or changes something"
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
            # Any other word may be a program git-x of somebody's, or another name for a command.
            # Not checkout-index, merge-file, read-tree, symbolic-ref, update-index and update-ref:
            # they write what, and where, they are told to, hooks and settings of git among it.
            looks="add annotate apply blame branch cat-file check-attr check-ignore check-mailmap "
            "check-ref-format checkout cherry cherry-pick clean commit commit-graph commit-tree "
            "count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref "
            "format-patch fsck gc grep hash-object log ls-files ls-remote ls-tree merge merge-base "
            "merge-tree mv name-rev notes pack-refs prune pull push range-diff reflog remote "
            "repack rerere reset restore rev-list rev-parse revert rm shortlog show show-branch "
            "show-index show-ref sparse-checkout stash status stripspace switch tag var "
            "verify-pack version whatchanged worktree write-tree",
        ),
        Guard("runs a program", when="clone", short="u"),
        # What is in there runs: hooks, and programs that the settings name. On some disks .GIT and
        # git~1 are the same folder.
        Guard("names git's own folder", within=_GIT_FOLDER, folded=True),
        # A strategy x is the program git-merge-x.
        Guard("runs a program", long="--strategy"),
        Guard("runs a program", when="merge pull rebase", short="s"),
        Guard(
            "writes a file",
            short="o",
            long="--output --output-directory --separate-git-dir --prefix --index-output "
            "--unsafe-paths --build-fake-ancestor --filter-to --expire-to",
        ),
        # git diff A B shows any two files, once one of them is not of the repository.
        Guard(
            "reads any file",
            long="--no-index --contents --file --pathspec-from-file --signature-file",
            outside=True,
        ),
        # What becomes a message is shown by git log. Of others, -F and -t are something else.
        Guard("reads any file", when="commit commit-tree merge notes tag", short="F"),
        Guard("reads any file", when="commit", short="t"),
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
    **dict.fromkeys(("bat", "batcat"), (Guard("runs a program", long="--pager --lessopen"),)),
    "date": (Guard("sets the clock", short="s", long="--set", within="^[0-9.]+$"),),
    "file": (
        Guard(
            "writes a file or runs a program",
            short="CzZ",
            long="--compile --uncompress --uncompress-noreport",
        ),
    ),
    "man": (
        Guard(
            "runs a program",
            short="PHpCX",
            long="--pager --html --preprocessor --browser --config-file --gxditview",
        ),
    ),
    "pandoc": (
        Guard(
            "runs a program",
            short="FLd",
            long="--filter --lua-filter --pdf-engine --pdf-engine-opt --defaults --data-dir",
            # A reader or writer may have extensions: -t w.lua+smart.
            within=r"\.lua(?![\w.])",
            folded=True,
        ),
        Guard("writes a file", short="o", long="--output --extract-media --log"),
    ),
    **BUILD_TOOLS,
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
                short="cr",
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
            # Any other word may be a plugin.
            looks="get describe logs top version explain api-resources api-versions cluster-info "
            "events wait options",
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
    "gh": (
        Guard(
            _GITHUB,
            # Any other word may be an extension, or another name for a command.
            looks="pr issue run repo release workflow label search gist status project cache "
            "ruleset org version",
            long="--web --editor --browser --dir --output --body-file --notes-file --recover "
            "--field --input --template --clobber",
            short="weDOFT",
            outside=True,
        ),
        Guard("hands options on to git", within="^--$"),
        *(
            Guard(_GITHUB, when=about, second=verbs)
            for about, verbs in {
                "pr": "list view status checks diff create comment review edit close reopen ready "
                "merge",
                "issue": "list view status create comment edit close reopen pin unpin",
                "run": "list view watch rerun cancel",
                "repo gist release ruleset": "list view",
                "workflow": "list view run",
                "label": "list create edit",
                "search": "code commits issues prs repos",
                "project": "list view field-list item-list",
                "cache org": "list",
            }.items()
        ),
    ),
    "systemctl": (
        Guard(
            "changes a service",
            looks="status show cat list-units list-unit-files list-timers list-sockets list-jobs "
            "list-dependencies list-machines list-paths list-automounts is-active is-enabled "
            "is-failed is-system-running get-default show-environment whoami",
            long="--host --machine --root --image",
            short="HM",
        ),
    ),
    **_all("its arguments are a program", INTERPRETERS - {"bun", "deno", "coverage"}),
    **_all(
        "its arguments make it run commands",
        names(
            "ssh scp sftp rsync tar bsdtar cpio zip unzip 7z 7za 7zz 7zr ar socat nc ncat netcat "
            "nmap tcpdump less more most make gmake ninja just rake cmake ant meson bazel tox nox "
            "invoke fab ansible ansible-playbook vagrant tmux screen crontab at batch gcc g++ cc "
            "c++ clang clang++ ld rustc rustdoc rust-gdb rust-lldb clippy-driver cargo-clippy "
            "cargo-fmt cargo-miri javac java npx bunx pnpx uvx pipx uv poetry hatch pdm rye pixi "
            "pipenv conda mamba micromamba mise asdf volta fnm nvm rbenv pyenv rvm corepack devbox "
            "xcrun opam stack cabal sbt lein nodemon concurrently cross-env dotenv honcho foreman "
            "watchexec pre-commit openssl gpg split csplit logrotate run-parts dpkg rpm gem bundle "
            "composer dotnet mvn gradle terraform tofu helm rustup hg svn jj hyperfine pm2 forever "
            "zig xterm uxterm rxvt urxvt konsole gnome-terminal xfce4-terminal kitty alacritty "
            "wezterm x-terminal-emulator"
        ),
    ),
    **_all(
        "it fetches what others chose, writes files, or sends what it reads",
        names("curl wget aria2c ftp telnet tee uniq"),
    ),
}
_EARLY_OPTION = "an option before the subcommand changes what that does"


def guards_of(program: str) -> tuple[Guard, ...]:
    """Return the guards of the program, by whichever of its names."""
    return look_up(GUARDS, program) or ()


def why_refused(words: Sequence[str], known: int) -> str | None:
    """Say why a `*` does not cover the words of the command after the first `known` ones."""
    words, known = script_of(words, known)
    if _has_early_option(words):
        return _EARLY_OPTION
    for guard in guards_of(words[0]):
        if guard.refuses(words, known):
            return guard.why
    return None


def _has_early_option(words: Sequence[str]) -> bool:
    first = words[1] if len(words) > 1 else ""
    return is_one_of(WITH_SUBCOMMANDS, words[0]) and first.startswith("-")


def why_no_star(words: Sequence[str]) -> str | None:
    """Say why no `*` after these words can be of use, if that is so."""
    words, _ = script_of(words, len(words))
    if wrapper := wrapper_name(words[0]):
        return WRAPPERS[wrapper]
    if _has_early_option(words):
        return _EARLY_OPTION
    total = (guard for guard in guards_of(words[0]) if guard.everything and guard.speaks_of(words))
    return next((guard.why for guard in total), None)


def is_guarded(program: str) -> bool:
    """True if a `*` does not cover everything for that program."""
    return bool(guards_of(program))
