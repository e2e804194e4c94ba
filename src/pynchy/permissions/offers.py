"""What a `*` lets in that the host offers on a card: known words of known subcommands.

A person reads one command and presses "allow always"; the agent chooses all that follow. So this is
a list of what is known to be harmless. An option that is not in it, or written in another way
(shortened, with its value glued on, in a bundle that is not here), is asked about. What is not in
the list at all is offered as the exact command. The guards of guards.py count besides.

    --stat               this word
    --since=             with a value of any kind: --since=x or --since x
    -m=                  the same of a letter: -m x
    --color=auto|never   with one of these values
    --format=*           with a value of any kind, glued on: what follows --format is an operand
    -U<n>                digits in that place
    --                   operands follow, whatever they begin with
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pynchy.permissions.files import is_sensitive

_LETTER = len("-x")
_GLUED = "*"
_DIGITS = re.compile(r"[0-9]+")
# What the other words may be.
_NONE = re.compile(r"(?!)")
_INSIDE = re.compile(r"(?!/)(?!(?:.*/)?\.\.(?:/|$)).+", re.DOTALL)  # no path out of the folder
_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._:/,+-]*")
_PACKAGES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TESTS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_:]*")
# Neither a version of one's choice (x@latest is fetched) nor a file from elsewhere.
_GO_PACKAGES = re.compile(r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[A-Za-z0-9._/-]+")
# From the registry: no address, no folder, no archive.
_NPM_PACKAGES = re.compile(
    r"(?!.*\.(?i:tgz|tar|tar\.gz)$)(?:@[a-z0-9_-][a-z0-9._-]*/)?[a-zA-Z0-9_-][a-zA-Z0-9._-]*"
    r"(?:@(?!\.)[0-9a-z^~<>=.-]+)?"
)
# A second slash would be a host of one's choice, which is sent a token.
_OF_GITHUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._-]+)?")

# What git takes apart: HEAD:a/b, a..b, :(top)a.
_PARTS = re.compile(r"[:/)]|\.\.+")
# The one kind of glob of which it can be told that it is not made for a sensitive file: *.py
_WILD_ENDING = re.compile(r"[A-Za-z0-9_*-]+(\.[A-Za-z0-9]+)")

_SHOWN_AS = "--color --no-color --color=always|auto|never"
_DIFF = f"""
    -p -u -s --patch --no-patch -U<n> --unified=* --raw --stat --numstat --shortstat --summary
    --compact-summary --name-only --name-status --minimal --patience --histogram {_SHOWN_AS}
    --word-diff --word-diff=color|plain|porcelain|none --color-words --full-index --abbrev --check
    -M -B -D --find-renames --find-copies --no-renames --diff-filter= -S= -G= --pickaxe-all
    --pickaxe-regex -R -a -b -w -W --ignore-space-at-eol --ignore-cr-at-eol
    --ignore-space-change --ignore-all-space --ignore-blank-lines --function-context --no-prefix
    --no-ext-diff --no-textconv -z --"""
_COMMITS = """
    -<n> -n<n> -n= --max-count= --skip= --since= --until= --after= --before= --author= --committer=
    --grep= --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F
    --fixed-strings --all --branches --tags --remotes --merges --no-merges --first-parent --not
    --reverse --date-order --topo-order --author-date-order --ancestry-path --boundary
    --left-right --left-only --right-only --cherry --cherry-pick --cherry-mark --full-history
    --simplify-by-decoration --no-walk --"""
_LOG = f"""{_DIFF} {_COMMITS}
    --oneline --graph --decorate --no-decorate --decorate=short|full|auto|no --format=* --pretty
    --pretty=* --abbrev-commit --no-abbrev-commit --date= --relative-date --follow --cc -m -g
    --walk-reflogs --no-notes"""
_CARGO = """
    --workspace --all -p= --package= --exclude= --lib --bins --bin= --examples --example= --tests
    --test= --benches --bench= --all-targets --features= -F= --all-features --no-default-features
    --release -r --locked --offline --frozen --keep-going -j= -j<n> --jobs= -v -vv --verbose -q
    --quiet --message-format=human|short|json --color=always|auto|never"""
_GO = "-v -x -n -race -tags= -p= -trimpath -json"
_KUBECTL = "-n= --namespace= -A --all-namespaces -l= --selector= --no-headers"
_PIP = "-v --verbose -q --quiet --no-color --no-input --disable-pip-version-check"
_NPM = "--json --depth= --long --all --parseable --silent --quiet -g --global -a -l -s -q"
_CONTAINERS = "-a --all --filter= --format= --no-trunc -q --quiet"
_UNITS = """
    --user --system --no-pager -l --full -a --all -q --quiet --plain --no-legend --type= -t=
    --state= --failed"""
_GITHUB_LIST = "-L= --limit= --json= --state= -s= --author= --assignee= --label= -l= --search= -S="


@dataclass(frozen=True)
class Offer:
    """The options of one subcommand that are let in, and what its other words may be.

    `shows_files`: they name files whose content is shown, of which none may be sensitive;
    `finds`: but the first of them is what to look for, unless -e says that.
    """

    options: str = ""
    operands: re.Pattern[str] = _INSIDE
    shows_files: bool = False
    finds: bool = False

    def lets_in(self, words: Sequence[str]) -> bool:
        """True if all of the words are known to be harmless."""
        at, finds = 0, self.finds and "-e" not in words
        while at < len(words):
            if words[at] == "--":
                return "--" in self._plain and all(map(self._is_operand, words[at + 1 :]))
            if finds and not words[at].startswith("-"):
                taken, finds = int(bool(self.operands.fullmatch(words[at]))), False
            else:
                taken = self._taken(*words[at : at + 2])
            if not taken:
                return False
            at += taken
        return True

    def _taken(self, word: str, following: str = "-") -> int:
        """Return how many words an operand, or an option and its value, are; 0: not let in."""
        if not word.startswith("-"):
            return 1 if self._is_operand(word) else 0
        if word in self._plain or _DIGITS.sub("<n>", word) in self._plain:
            return 1
        name, is_glued, value = word.partition("=")
        if name not in self._with_value or (is_glued and len(name) == _LETTER):
            return 0
        value = value if is_glued else following
        known = self._with_value[name]
        is_any = not known or (is_glued and known == _GLUED)
        # A word that follows is never the value of an option that has it glued on.
        is_known = known != _GLUED and value in known.split("|")
        if value.startswith("-") or not (is_any or is_known):
            return 0
        return 1 if is_glued else 2

    def _is_operand(self, word: str) -> bool:
        if not self.operands.fullmatch(word):
            return False
        return not self.shows_files or not any(map(_may_be_sensitive, _PARTS.split(word)))

    @cached_property
    def _plain(self) -> frozenset[str]:
        return frozenset(option for option in self.options.split() if "=" not in option)

    @cached_property
    def _with_value(self) -> dict[str, str]:
        """The options that take a value, each with its values if not all are let in."""
        pairs = (option.partition("=") for option in self.options.split() if "=" in option)
        return {name: values for name, _, values in pairs}


def _may_be_sensitive(part: str) -> bool:
    """True if part of a path that git is given is, or may stand for, a sensitive name."""
    if part in {"", "HEAD", "*", "**"}:
        return False
    if set("*?[\\") & set(part):
        ending = _WILD_ENDING.fullmatch(part)
        return ending is None or is_sensitive(ending[1])
    return is_sensitive(part)


OFFERS: dict[str, Offer] = {
    "git status": Offer(
        """-s -b -sb -v -z --short --branch --long --verbose --porcelain --porcelain=v1|v2 --ignored
        -u --untracked-files --untracked-files=no|normal|all --show-stash --ahead-behind
        --no-ahead-behind --renames --no-renames --"""
    ),
    "git diff": Offer(
        f"{_DIFF} --staged --cached --merge-base --exit-code --quiet", shows_files=True
    ),
    "git log": Offer(_LOG, shows_files=True),
    "git show": Offer(_LOG, shows_files=True),
    "git whatchanged": Offer(_LOG, shows_files=True),
    "git shortlog": Offer(
        f"{_COMMITS} -s -e -sn -ns -sne -nse --summary --numbered --email --format=*"
    ),
    "git rev-list": Offer(f"{_COMMITS} --count --objects --parents --oneline --abbrev-commit"),
    "git blame": Offer(
        """-L= -L<n>,<n> -l -t -w -s -e -f -n -p -M --show-name --show-number --show-email --root
        --porcelain --line-porcelain --date= --reverse --first-parent --abbrev=* --""",
        shows_files=True,
    ),
    "git ls-files": Offer(
        """-d -m -i -s -u -k -t -v -z --cached --deleted --modified --others --ignored --stage
        --unmerged --killed --exclude-standard --full-name --error-unmatch --directory --eol
        --abbrev --"""
    ),
    "git ls-tree": Offer(
        "-r -t -d -l -z --long --name-only --name-status --full-name --full-tree --abbrev --"
    ),
    "git rev-parse": Offer(
        """--abbrev-ref --abbrev-ref=strict|loose --short --short=* --verify -q --quiet --symbolic
        --symbolic-full-name --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir
        --absolute-git-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository
        --is-shallow-repository --all --branches --tags --remotes"""
    ),
    "git describe": Offer(
        """--all --tags --always --long --dirty --contains --exact-match --first-parent --abbrev=*
        --match= --exclude= --candidates="""
    ),
    "git grep": Offer(
        f"""-n -i -l -L -w -v -E -F -P -G -h -H -I -a -q -p -r -W -in -ni -il -ln -nw -nE -rn -e=
        -A= -B= -C= -A<n> -B<n> -C<n> -<n> --line-number --ignore-case --files-with-matches
        --files-without-match --name-only --count --word-regexp --invert-match --extended-regexp
        --fixed-strings --perl-regexp --basic-regexp --only-matching --context= --after-context=
        --before-context= --show-function --function-context --heading --break --column --cached
        --untracked --quiet --full-name --max-depth= --all-match --and --or --not
        {_SHOWN_AS} --""",
        shows_files=True,
        finds=True,
    ),
    "git add": Offer(
        """-A -u -v -n -N --all --update --verbose --dry-run --intent-to-add --renormalize --""",
        # By git diff --cached.
        shows_files=True,
    ),
    # Not --no-verify: the hooks may be there because of agents.
    "git commit": Offer(
        """-m= -a -am= -s -q -v --message= --all --amend --no-edit --signoff --quiet --verbose
        --dry-run --allow-empty --short --porcelain --"""
    ),
    "git cat-file": Offer("-t -s -p -e", shows_files=True),
    "git merge-base": Offer("-a --all --is-ancestor --fork-point --octopus --independent"),
    "git name-rev": Offer("--tags --all --name-only --always --no-undefined"),
    "git count-objects": Offer("-v -H -vH --verbose --human-readable", _NONE),
    "git check-ignore": Offer("-v -n -q -z --verbose --non-matching --quiet --"),
    "npm ls": Offer(_NPM, _NPM_PACKAGES),
    "npm list": Offer(_NPM, _NPM_PACKAGES),
    "npm view": Offer(_NPM, _NPM_PACKAGES),
    "npm outdated": Offer(_NPM, _NPM_PACKAGES),
    "npm explain": Offer(_NPM, _NPM_PACKAGES),
    "npm why": Offer(_NPM, _NPM_PACKAGES),
    # Not --target: a file may be one, and name a linker. Not --: the rest is for another program.
    "cargo check": Offer(_CARGO, _NONE),
    "cargo build": Offer(_CARGO, _NONE),
    "cargo clippy": Offer(f"{_CARGO} --no-deps", _NONE),
    "cargo test": Offer(f"{_CARGO} --no-run --no-fail-fast --doc", _TESTS),
    "cargo bench": Offer(f"{_CARGO} --no-run --no-fail-fast", _TESTS),
    "cargo doc": Offer(f"{_CARGO} --no-deps --document-private-items", _NONE),
    "cargo fmt": Offer("--check --all -p= --package= -v --verbose -q --quiet", _NONE),
    "cargo tree": Offer(
        """--workspace -p= --package= --exclude= -i= --invert= --depth= -d --duplicates -e= --edges=
        --no-dedupe --prefix=depth|indent|none --charset=utf8|ascii --features= -F= --all-features
        --no-default-features --locked --offline --frozen -v --verbose -q --quiet""",
        _NONE,
    ),
    "cargo metadata": Offer(
        """--no-deps --format-version=1 --features= -F= --all-features --no-default-features
        --locked --offline --frozen -v --verbose -q --quiet""",
        _NONE,
    ),
    "go vet": Offer(_GO, _GO_PACKAGES),
    "go build": Offer(_GO, _GO_PACKAGES),
    "go test": Offer(
        f"""{_GO} -run= -skip= -list= -count= -short -cover -timeout= -failfast -bench= -benchmem
        -benchtime= -cpu= -parallel= -shuffle=""",
        _GO_PACKAGES,
    ),
    "go list": Offer("-json -deps -test -e -find -f=", _GO_PACKAGES),
    # Not top: it hands options on to ps. Not inspect: it shows the environment, with its secrets.
    **{
        f"{program} {subcommand}": offer
        for program in ("docker", "podman")
        for subcommand, offer in {
            "ps": Offer(f"{_CONTAINERS} -n= --last= --latest -l -s --size", _NONE),
            "images": Offer(f"{_CONTAINERS} --digests", _NAMES),
            "logs": Offer(
                "-f --follow -n= --tail= --since= --until= -t --timestamps --details", _NAMES
            ),
            "version": Offer("-f= --format=", _NONE),
            "info": Offer("-f= --format=", _NONE),
            "stats": Offer("-a --all --format= --no-stream --no-trunc", _NAMES),
            "port": Offer("", _NAMES),
            "diff": Offer("", _NAMES),
            "history": Offer("--format= --no-trunc -q --quiet", _NAMES),
        }.items()
    },
    # Not what chooses who asks, whom, or by which file. Templates are asked about, and so are whole
    # objects (yaml, json): they have the values of the environment in them.
    "kubectl get": Offer(
        f"""{_KUBECTL} -o=wide|name --show-labels
        --show-kind --sort-by= --field-selector= -L= --label-columns= --ignore-not-found -w --watch
        --chunk-size= -owide -oname""",
        _NAMES,
    ),
    "kubectl describe": Offer(f"{_KUBECTL} --show-events --show-events=true|false", _NAMES),
    "kubectl logs": Offer(
        f"""{_KUBECTL} -c= --container= --all-containers --all-pods --follow -p --previous --prefix
        --since= --since-time= --tail= --timestamps --limit-bytes= --max-log-requests=""",
        _NAMES,
    ),
    "kubectl top": Offer(
        f"{_KUBECTL} --containers --sort-by=cpu|memory --sum --use-protocol-buffers", _NAMES
    ),
    "kubectl version": Offer("--client -o=json|yaml", _NONE),
    "kubectl explain": Offer("--recursive --api-version=", _NAMES),
    "kubectl api-resources": Offer(
        """-o=wide|name --namespaced --namespaced=true|false --api-group=
        --verbs= --no-headers --sort-by=name|kind""",
        _NONE,
    ),
    "kubectl api-versions": Offer("", _NONE),
    **{
        f"{program} {subcommand}": offer
        for program in ("pip", "pip3")
        for subcommand, offer in {
            "list": Offer(
                f"""{_PIP} -o --outdated -u --uptodate -e --editable -l --local --user --pre
                --format=columns|freeze|json --not-required --exclude= --exclude-editable
                --include-editable""",
                _NONE,
            ),
            "show": Offer(f"{_PIP} -f --files", _PACKAGES),
            "freeze": Offer(f"{_PIP} -l --local --user --all --exclude= --exclude-editable", _NONE),
            "check": Offer(_PIP, _NONE),
        }.items()
    },
    # Not show and cat: they have the environment in them.
    "systemctl status": Offer(f"{_UNITS} -n= -n<n> --lines= --with-dependencies", _NAMES),
    "systemctl list-units": Offer(_UNITS, _NAMES),
    "systemctl list-unit-files": Offer(_UNITS, _NAMES),
    "systemctl is-active": Offer(_UNITS, _NAMES),
    "systemctl is-enabled": Offer(_UNITS, _NAMES),
    "systemctl is-failed": Offer(_UNITS, _NAMES),
    "gh pr view": Offer("-c --comments --json=", _OF_GITHUB),
    "gh pr list": Offer(f"{_GITHUB_LIST} -d --draft --base= -B= --head=", _NONE),
    "gh pr status": Offer("-c --conflict-status --json=", _NONE),
    "gh pr diff": Offer("--name-only --patch --color=always|auto|never", _OF_GITHUB),
    "gh pr checks": Offer("--required --watch --fail-fast -i= --interval= --json=", _OF_GITHUB),
    "gh issue view": Offer("-c --comments --json=", _OF_GITHUB),
    "gh issue list": Offer(f"{_GITHUB_LIST} --mention= --milestone= -m=", _NONE),
    "gh issue status": Offer("--json=", _NONE),
    "gh run view": Offer(
        "--log --log-failed -v --verbose -j= --job= --exit-status -a= --attempt= --json=",
        _OF_GITHUB,
    ),
    "gh run list": Offer(
        """-L= --limit= -b= --branch= --workflow= -s= --status= --event= -u= --user= --commit=
        --json=""",
        _NONE,
    ),
    "gh repo view": Offer("-b= --branch= --json=", _OF_GITHUB),
    "gh release list": Offer("-L= --limit= --exclude-drafts --exclude-pre-releases --json=", _NONE),
    "gh release view": Offer("--json=", _OF_GITHUB),
}
_BY_WORDS = {tuple(words.split()): offer for words, offer in OFFERS.items()}


def offered_length(words: Sequence[str]) -> int:
    """Return how many words say what the program does, if a `*` may be offered after them."""
    return next((n for n in (2, 3) if tuple(words[:n]) in _BY_WORDS), 0)


def why_not_offered(words: Sequence[str], known: int) -> str | None:
    """Say why a `*` behind the first `known` words, made on a card, does not cover the others."""
    offer = _BY_WORDS.get(tuple(words[:known]))
    if len(words) == known or (offer is not None and offer.lets_in(words[known:])):
        return None
    return "made on a card, it lets in only words that are known to be harmless"
