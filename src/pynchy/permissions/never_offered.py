"""Commands that no rule is offered for: harmful ones, and those that run what an agent can rewrite.

A person reads a line and presses "allow always"; what the line runs must not be another thing
tomorrow. Of a program that is not known, any word may name what it runs. Only what builds and tests
a project runs its code in the open: which target, and not which file, is what such a line says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pynchy.permissions import files
from pynchy.permissions.guards import guards_of
from pynchy.permissions.inner_words import runs_none_of_its_words
from pynchy.permissions.links import LinkReader, LostTrack
from pynchy.permissions.programs import (
    INTERPRETERS,
    Script,
    base_name,
    is_one_of,
    known_as,
    look_up,
    names,
    script_within,
)

# A rule for one of these would be used for harm sooner than for work.
_NEVER_OFFERED = names(
    "rm rmdir dd shred mkfs fdisk parted mount umount chmod chown chgrp chattr setfacl ln mv "
    "kill pkill killall reboot shutdown halt poweroff init curl wget ssh scp sftp rsync nc ncat "
    "netcat socat telnet ftp crontab at batch iptables nft ufw useradd usermod userdel passwd "
    "visudo insmod modprobe sysctl tee truncate install cd tmux screen gpg openssl vi vim nvim ed "
    "ex emacs nano less more man psql mysql sqlite3 redis-cli npx bunx pnpx uvx pipx pynchy java"
)
_NEVER_OFFERED_PAIRS = {
    # Exactly as they are they may do no harm; what they leave behind may.
    "git": names("config"),
    "npm": names("config exec x"),
    "gh": names("alias"),
    # They run a file that is named, or fetch what they run.
    **dict.fromkeys(("pnpm", "yarn"), names("exec dlx")),
    "bun": names("x"),
    **dict.fromkeys(("mise", "asdf"), names("x")),
    "cargo": names("r watch"),
}
# They run a file, a package or the code of the folder. Of some, it is a script with a name, or what
# runs in a container.
_RUNNING = names("run exec dlx")
_RUN_BY_NAME = names("npm pnpm yarn make gmake just rake docker podman kubectl gh pre-commit")
# Their words are targets, or say what is done with all of a project.
_BUILDING = names("make gmake ninja just rake ant meson bazel cmake tox nox mvn gradle")
_BUILDING_BY = {
    "dotnet": names("build test restore"),
    "pre-commit": names("run"),
    **dict.fromkeys(("terraform", "tofu"), names("plan validate fmt")),
    **dict.fromkeys(("uv", "poetry"), names("sync lock install check")),
    **dict.fromkeys(("bundle", "composer"), names("install")),
    **dict.fromkeys(("hg", "svn", "jj"), names("status log diff")),
}
# They run the folder's own code, as a test does; other modules may be another thing there.
_TESTING_MODULES = names("pytest unittest tox nox")
# They serve or work for code that is named like a module, which is one of the agent's folder.
_LOADING = names(
    "uvicorn gunicorn hypercorn daphne granian uwsgi waitress-serve sanic flask quart fastapi "
    "django-admin celery rq dramatiq huey_consumer arq faust twistd locust streamlit gradio "
    "chainlit alembic airflow prefect dagster luigi snakemake scrapy mod_wsgi-express puma "
    "unicorn thin rackup rails sidekiq torchrun accelerate deepspeed ray mpirun mpiexec srun"
)
_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*(?:\(.*\))?")
_PIECE = re.compile(r"[\w./-]+")
_GLUED = re.compile(r"-[A-Za-z](?=[./])")
_HERE = re.compile(r"\.\.?/")
_CODE = re.compile(
    r".\.(?:[cm]?[jt]sx?|py[cwz]?|sh|bash|zsh|fish|ps1|bat|cmd|pl|pm|rb|php|lua|tcl|jl|r|exs?|erl|clj"
    r"|groovy|kts?|gradle|scala|sc|swift|go|rs|zig|nim|cr|dart|d|v|hs|ml|c|cc|cpp|java|jar|war|class"
    r"|dll|so|dylib|exe|wasm|out|bin|run|appimage|cmake|mk|ipynb)$",
    re.IGNORECASE,
)


def is_never_offered(words: Sequence[str]) -> bool:
    """True if a rule for the command would be used for harm, or run what is not in it."""
    # Also mkfs.ext4.
    spelled = {*known_as(words[0]), base_name(words[0]).partition(".")[0]}
    pairs = (_NEVER_OFFERED_PAIRS.get(name, frozenset()) for name in spelled)
    first = next((word for word in words[1:] if word[:1] not in {"-", "+"}), "")
    if spelled & _NEVER_OFFERED or any({first, *words[1:2]} & pair for pair in pairs):
        return True
    return first in _RUNNING and not spelled & _RUN_BY_NAME


def runs_a_file_of(words: Sequence[str], folder: str) -> bool:
    """True if it may run a file that the agent can change, or what is in its own words."""
    links = LinkReader()
    while is_one_of(INTERPRETERS, words[0]):
        script = script_within(words, len(words))
        if script is None or _is_own_code(script, folder, links):
            return True
        words = script.words
    if is_one_of(_LOADING, words[0]):
        return True
    if "/" in words[0] and _is_at_hand(words[0], folder, links):
        return True
    if runs_none_of_its_words(words):
        return False
    if _runs_its_operands(words):
        return True
    # What has guards is known, and takes names with slashes for packages, images or branches.
    is_known = bool(guards_of(words[0]))
    if not is_known and any(map(_ENTRY_POINT.fullmatch, words[1:])):
        return True
    pieces = (piece for word in words[1:] for piece in _pieces(word))
    return any(_is_file(piece, folder, links, is_known=is_known) for piece in pieces)


def _is_own_code(script: Script, folder: str, links: LinkReader) -> bool:
    """True if it is a file at hand, or a module: one of that name in the folder comes first."""
    if script.is_file:
        return _is_at_hand(script.words[0], folder, links)
    return script.words[0] not in _TESTING_MODULES


def _runs_its_operands(words: Sequence[str]) -> bool:
    """True if the program is known to run what it is told to, and is told something."""
    operands = [word for word in words[1:] if not word.startswith("-")]
    is_told = any(guard.everything and guard.speaks_of(words) for guard in guards_of(words[0]))
    if not operands or not is_told or is_one_of(_BUILDING, words[0]):
        return False
    return operands[0] not in (look_up(_BUILDING_BY, words[0]) or frozenset())


def _pieces(word: str) -> Iterator[str]:
    """Yield what may be a path in a word: all of it, what an option is given, what is glued on."""
    yield from filter(None, (word, word.partition("=")[2]))
    for piece in _PIECE.findall(word):
        yield from {piece, _GLUED.sub("", piece)}


def _is_file(piece: str, folder: str, links: LinkReader, *, is_known: bool) -> bool:
    """True if it may be a file that the agent can change, and that is run."""
    if _CODE.search(piece) or _HERE.match(piece):
        return True
    before, slash, rest = piece.partition("/")
    if slash and _PIECE.fullmatch(before) and not is_known:
        return True
    return bool(slash) and _is_at_hand(slash + rest, folder, links)


def _is_at_hand(path: str, folder: str, links: LinkReader) -> bool:
    """True if the agent may be able to change the file, by whichever links it is reached."""
    if not path.startswith("/") or not folder.startswith("/"):
        return True
    try:
        folders = (files.normal(folder), links.real(folder))
        return any(files.may_be_in(one, folders) for one in (files.normal(path), links.real(path)))
    except LostTrack:
        return True
