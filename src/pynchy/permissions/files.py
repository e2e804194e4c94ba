"""Which file a call is about, and which files a glob means.

A path is taken as it is written, without its `..`, and once more with its links resolved as far as
this machine has the same files. What covers a file must fit both; what denies it, one of them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Self

from pynchy.permissions.links import LinkReader
from pynchy.unicode_safety import CONTROLS, HIDDEN, SURROGATES

_UNSEEN = re.compile(f"[\t\n{CONTROLS}{HIDDEN}{SURROGATES}]")
_MAX_PATH = 4096
_MAX_PARTS = 100
_WILD = re.compile(r"[*?\[]")
ANY_DEPTH = "**"
# What runs later, or opens doors: only a pattern that names it covers it.
_SENSITIVE_NAMES = (
    ".git .gitconfig .gitmodules .gitattributes .claude .claude.json .mcp.json .codex .opencode "
    ".gemini .cursor .agents opencode.json opencode.jsonc claude.md agents.md gemini.md .vscode "
    ".idea .husky .github .gitlab-ci.yml .circleci .pre-commit-config.yaml .ssh .gnupg .aws .azure "
    ".kube .docker .netrc .npmrc .yarnrc .yarnrc.yml .pypirc .pip .gem .cargo .m2 .gradle .config "
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv "
    ".zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .inputrc .envrc .direnv .tool-versions "
    ".vimrc .exrc .nvimrc .emacs .emacs.d .tmux.conf .screenrc .gdbinit .pythonrc .pythonstartup "
    ".password-store .pgpass .my.cnf .vault-token .terraformrc .xinitrc .xprofile .xsession "
    ".git-credentials .curlrc .wgetrc .dockercfg .boto .s3cfg .htpasswd .authinfo .msmtprc "
    ".fetchmailrc .bash_history .zsh_history .sh_history .python_history .node_repl_history "
    ".psql_history .mysql_history .sqlite_history .rediscli_history .lesshst .viminfo _netrc "
    "claude.local.md agents.override.md .cursorrules .windsurfrules .clinerules .goosehints "
    ".windsurf .roo .kiro .qwen .continue .aider.conf.yml .copilot .devcontainer "
    ".devcontainer.json .local .oh-my-zsh .zsh .zsh_sessions .zinit .zim .bashrc.d "
    ".bash_it .bash_completion .login .logout .xsessionrc .xserverrc .pam_environment .lldbinit "
    ".pdbrc .pdbrc.py .ipython .jupyter .irbrc .pryrc .rprofile .renviron .psqlrc .sqliterc "
    ".ghci .lesskey .lessfilter .mailcap .forward .procmailrc .rhosts .shosts .hg .hgrc "
    ".subversion .jj .pnpmfile.cjs .pnpmfile.mjs .yarn .pnp.cjs .bundle .nvm .pyenv .rbenv .asdf "
    ".mise.toml mise.toml .sdkman .volta .rustup .deno .bun lefthook.yml .lefthook.yml "
    "launchagents launchdaemons .vim .gvimrc .ideavimrc .nvim .nanorc .p10k.zsh .zshrc.local "
    ".bashrc.local .zprezto .zpreztorc .zplug .antigen .fzf .fzf.bash .fzf.zsh .xonshrc .muttrc "
    "pynchy.toml credentials authorized_keys known_hosts crontab id_rsa id_dsa id_ecdsa "
    # A folder with such a file in it may be a repository to git, with programs in its settings.
    "id_ecdsa_sk id_ed25519 id_ed25519_sk head"
)
_SENSITIVE = frozenset(_SENSITIVE_NAMES.split())
# Of the system: settings, processes, devices. macOS has the first of them one level below.
_SYSTEM = frozenset({"etc", "proc", "sys", "dev", "boot"})
_BELOW_PRIVATE = ("private", "etc")


@dataclass(frozen=True, slots=True)
class Protected:
    """The host's own files and folders, and what lies in them that is the agents' own."""

    paths: tuple[str, ...] = ()
    open_within: tuple[str, ...] = ()

    @classmethod
    def of_host(cls, data: Path, settings: Path | None) -> Self:
        """Return what a host must keep to itself; what agents have in their boxes is theirs."""
        own = [data.absolute()] + ([settings.absolute()] if settings else [])
        real = [os.path.realpath(path) for path in own]
        boxes = (str(own[0] / "boxes"), f"{real[0]}/boxes")
        return cls((*map(str, own), *real), boxes)

    def has(self, path: str) -> bool:
        """True if the path is, or is in, what is protected."""
        return may_be_in(path, self.paths) and not may_be_in(path, self.open_within)


NOTHING = Protected()


@dataclass(frozen=True, slots=True)
class Place:
    """A file and the folder that relative patterns start from, both absolute and without `..`."""

    cwd: str
    path: str


def written_place(path: str, folder: str) -> Place | None:
    """Return the file of a call as it is written; None if it cannot be told which is meant."""
    if not _is_plain(path) or path.startswith("~"):
        return None
    cwd = usable(folder)
    if not path.startswith("/") and not cwd:
        return None
    return Place(normal(cwd) if cwd else "", normal(joined(path, cwd)))


def real_place(path: str, folder: str, links: LinkReader) -> Place:
    """Return the file, of which the written place is known, as links lead to it. Raise LostTrack.

    Not of the normal path: what `..` means depends on the links before it.
    """
    cwd = usable(folder)
    return Place(links.real(cwd) if cwd else "", links.real(path, cwd))


def usable(folder: str) -> str:
    """Return the folder if paths can start from it; empty if it is not known."""
    return folder if folder.startswith("/") and _is_plain(folder) else ""


def joined(path: str, folder: str) -> str:
    """Return the path, from the folder if it is relative."""
    return path if path.startswith("/") else f"{folder}/{path}"


def covers(glob: str, place: Place, protected: Protected) -> bool:
    """True if the glob surely means the file, and names what is sensitive about it."""
    segments = _segments(glob, place.cwd)
    if segments is None or (_is_wild(glob) and protected.has(place.path)):
        return False
    if not glob.startswith("/") and _has_sensitive(place.cwd):
        return False  # an agent says itself which folder it is in
    return _surely_fits(segments, tuple(place.path.split("/")[1:]))


def hits(glob: str, place: Place) -> bool:
    """True if the glob may mean the file, however its letters are written.

    A relative one does at any depth: an agent says itself which folder it is in.
    """
    anchored = glob.removeprefix("/") if glob.startswith("/") else f"{ANY_DEPTH}/{glob}"
    return _may_fit(anchored.casefold().split("/"), place.path.casefold().split("/")[1:])


def is_open(place: Place, protected: Protected) -> bool:
    """True if nothing about the file is sensitive."""
    return not protected.has(place.path) and not _has_sensitive(place.path)


def may_be_relative(word: str) -> bool:
    """True if a word of a command may name a file by a relative path."""
    is_switch = word.startswith("-") and not {"/", "="} & set(word)
    return not word.startswith("/") and not is_switch


def is_sensitive(name: str) -> bool:
    """True if a wildcard does not mean a file or folder of that name."""
    low = name.casefold()
    return low in _SENSITIVE or low.startswith(".env")


def _has_sensitive(path: str) -> bool:
    parts = tuple(path.split("/")[1:])
    return any(_is_sensitive_at(parts, at) for at in range(len(parts)))


def _is_sensitive_at(parts: tuple[str, ...], at: int) -> bool:
    """True if that part of an absolute path is: by its name, or as a folder of the system."""
    low = parts[at].casefold()
    is_system = at == 0 and low in _SYSTEM
    is_private = at == 1 and (parts[0].casefold(), low) == _BELOW_PRIVATE
    return is_system or is_private or is_sensitive(low)


def is_below(path: str, folder: str) -> bool:
    """True if the path is surely the folder, or in it; letters count as they are written."""
    if not path.startswith("/") or not _is_plain(path):
        return False
    return f"{normal(path)}/".startswith(f"{folder.rstrip('/')}/")


def is_literal(path: str) -> bool:
    """True if the path as a glob means itself alone."""
    return not _is_wild(path)


def why_no_glob(glob: str) -> str | None:
    """Say what is wrong with the glob."""
    if not glob or not _is_plain(glob):
        return "a path is needed"
    if glob.startswith("~"):
        return "~ means another folder for each user: write the whole path"
    if {"..", "."} & set(glob.split("/")):
        return "a path without . and .. is needed"
    if "//" in glob or (len(glob) > 1 and glob.endswith("/")):
        return "a path without // and without / at its end is needed (for all below: folder/**)"
    if any(ANY_DEPTH in part and part != ANY_DEPTH for part in glob.split("/")):
        return "** stands alone between two /"
    return None


def _is_plain(path: str) -> bool:
    too_long = len(path) > _MAX_PATH or path.count("/") > _MAX_PARTS
    return not too_long and not _UNSEEN.search(path)


def normal(path: str) -> str:
    """Return the path from the root, without its `..` and what means nothing."""
    return "/" + posixpath.normpath(path).lstrip("/")


def may_be_in(path: str, folders: Sequence[str]) -> bool:
    """True if the path is, or is in, one of the folders, however its letters are written."""
    below = f"{path.casefold()}/"
    return any(below.startswith(f"{folder.casefold().rstrip('/')}/") for folder in folders)


def _is_wild(glob: str) -> bool:
    return bool(_WILD.search(glob))


def _segments(glob: str, cwd: str) -> tuple[str, ...] | None:
    """Return the parts of the glob from the root on; None if it depends on an unknown folder."""
    if glob.startswith("/"):
        return tuple(glob.split("/")[1:])
    if not cwd:
        return None
    own = [_literally(part) for part in cwd.split("/")[1:] if part]
    return (*own, *glob.split("/"))


def _literally(part: str) -> str:
    return _WILD.sub(lambda found: f"[{found[0]}]", part)


def _surely_fits(glob: tuple[str, ...], path: tuple[str, ...]) -> bool:
    @cache
    def fits(g: int, p: int) -> bool:
        if g == len(glob):
            return p == len(path)
        if glob[g] == ANY_DEPTH:
            if fits(g + 1, p):
                return True
            return p < len(path) and not _is_sensitive_at(path, p) and fits(g, p + 1)
        return p < len(path) and _part_is_named(glob[g], path, p) and fits(g + 1, p + 1)

    return fits(0, 0)


def _part_is_named(part: str, path: tuple[str, ...], at: int) -> bool:
    if _is_wild(part) and _is_sensitive_at(path, at) and part != _literally(path[at]):
        return False
    return _part_fits(part, path[at])


def _may_fit(glob: Sequence[str], path: Sequence[str]) -> bool:
    """True if the parts fit. Only the last `**` is ever tried again, so that it takes no time."""
    g = p = 0
    after_any, tried = 0, 0
    while p < len(path):
        if g < len(glob) and glob[g] == ANY_DEPTH:
            g += 1
            after_any, tried = g, p
        elif g < len(glob) and _part_fits(glob[g], path[p]):
            g, p = g + 1, p + 1
        elif after_any:
            tried += 1
            g, p = after_any, tried
        else:
            return False
    return all(part == ANY_DEPTH for part in glob[g:])


def _part_fits(part: str, name: str) -> bool:
    return part == name or (_is_wild(part) and fnmatchcase(name, part))
