"""Which rule a person is offered with "Allow always…": a narrow one, or none.

It covers the very call that it is offered for, and no code that the agent may have changed since.
"""

from __future__ import annotations

from collections.abc import Sequence

from pynchy.calls import BASH, FILE_TOOLS, WEB_FETCH, ToolCall
from pynchy.permissions import files
from pynchy.permissions.commands import Doubt, Words, parse
from pynchy.permissions.files import NOTHING, Protected
from pynchy.permissions.patterns import (
    MAX_PATTERN,
    PatternProblem,
    as_text,
    host_of,
    read_pattern,
)
from pynchy.permissions.programs import (
    GUARDS,
    MODULE,
    SCRIPT_RUNNERS,
    acts_for_people,
    base_name,
    names,
    script_of,
    why_refused,
)

# What the host offers a `*` for: what follows may only change what is shown, or is the very work.
_OFFERED: dict[str, str] = {
    "git": "status diff log show blame ls-files ls-tree rev-parse describe shortlog grep add "
    "commit cat-file merge-base name-rev rev-list whatchanged count-objects check-ignore",
    "npm": "ls list view outdated explain why",
    "cargo": "check build test clippy fmt tree metadata doc bench",
    "go": "vet list test build version",
    "docker": "ps images logs inspect version info stats top port diff history",
    "podman": "ps images logs inspect version info stats top port diff history",
    "kubectl": "get describe logs top version explain api-resources api-versions cluster-info",
    "pip": "list show freeze check",
    "pip3": "list show freeze check",
    "systemctl": "status list-units list-unit-files is-active is-enabled is-failed show cat",
}
# The same of programs that need two words to say what they do.
_OFFERED_PAIRS: dict[str, str] = {
    "gh": "pr:view pr:list pr:status pr:diff pr:checks issue:view issue:list issue:status run:view "
    "run:list repo:view release:list release:view",
}
# A rule for one of these would be used for harm sooner than for work.
_NEVER_OFFERED = names(
    "rm rmdir dd shred mkfs fdisk parted mount umount chmod chown chgrp chattr setfacl ln mv "
    "kill pkill killall reboot shutdown halt poweroff init curl wget ssh scp sftp rsync nc ncat "
    "netcat socat telnet ftp crontab at batch iptables nft ufw useradd usermod userdel passwd "
    "visudo insmod modprobe sysctl tee truncate install cd tmux screen gpg openssl vi vim nvim ed "
    "ex emacs nano less more man psql mysql sqlite3 redis-cli npx bunx pnpx uvx pipx pynchy java"
)
# What they do is the same in every folder; others read settings, or code, of the one they are in.
_FOLDERLESS = names("docker podman kubectl pip pip3 systemctl gh")
# Exactly as they are they may do no harm; what they leave behind may.
_NEVER_OFFERED_PAIRS = frozenset({("git", "config"), ("npm", "config"), ("gh", "alias")})
_EDITORS_OF_STREAMS = names("sed gsed awk gawk mawk nawk")


def derive(call: ToolCall, protected: Protected = NOTHING) -> str | None:
    """Return the narrow pattern to offer for calls like this one; None if there is none."""
    pattern = _derived(call, protected)
    if pattern is None or len(pattern) > MAX_PATTERN or not pattern.isprintable():
        return None
    try:
        read_pattern(pattern)
    except PatternProblem:
        return None
    return pattern


def _derived(call: ToolCall, protected: Protected) -> str | None:
    if not call.is_plain():
        return None  # the rule would not cover this very call
    if call.tool == BASH:
        return _derived_command(call)
    if call.tool in FILE_TOOLS:
        return _derived_file(call, protected)
    if call.tool == WEB_FETCH:
        host = host_of(call) or ""
        # Not this machine, nor a number: what answers there may be more than a page.
        is_public = "." in host and not host.rpartition(".")[2].isdigit()
        return f"{WEB_FETCH}(domain:{host})" if is_public else None
    is_mcp = call.tool.startswith("mcp__") and "*" not in call.tool
    return call.tool if is_mcp else None


def _derived_command(call: ToolCall) -> str | None:
    try:
        commands = parse(call.command() or "")
    except Doubt:
        return None
    patterns = {_offered_pattern(words, call.cwd) for words in commands}
    return patterns.pop() if len(patterns) == 1 else None


def _offered_pattern(words: Words, cwd: str) -> str | None:
    found = None if acts_for_people(words) else _offered(words, cwd)
    if found is None:
        return None
    known, further = found
    if not _needs_folder(known, further=further):
        return as_text(known, further=further)
    folder = files.normal(cwd) if cwd.startswith("/") else "/"
    # What cannot be written as a folder makes no pattern, which `derive` notices.
    return None if folder == "/" else as_text(known, further=further, folder=folder)


def _derived_file(call: ToolCall, protected: Protected) -> str | None:
    try:
        places = files.places_of(call)
    except files.UnclearFile:
        return None
    if len(places) > 1 or not files.is_open(places[0], protected):
        return None
    path = places[0].path
    return f"{call.tool}({path})" if files.is_literal(path) else None


def _offered(words: Sequence[str], folder: str) -> tuple[tuple[str, ...], bool] | None:
    """Return the words of the rule to offer, and whether any others may follow; None for none."""
    name = base_name(words[0])
    if name in _NEVER_OFFERED | _EDITORS_OF_STREAMS or tuple(words[:2]) in _NEVER_OFFERED_PAIRS:
        return None
    if _runs_a_file_of(words, folder):
        return None
    known = _offered_length(words)
    if known:
        return (tuple(words[:known]), True) if why_refused(words, known) is None else None
    optional = [guard for guard in GUARDS.get(name, ()) if not guard.everything]
    if any(guard.refuses(words[1:], at_first=False) for guard in optional):
        return None
    return tuple(words), False


def _needs_folder(words: Sequence[str], *, further: bool) -> bool:
    """True if a rule for the command is good for the folder alone that it was made in."""
    return not further or words[0] not in _FOLDERLESS


def _runs_a_file_of(words: Sequence[str], folder: str) -> bool:
    """True if it runs a file that the agent may change, or what is in its own words."""
    program = words[0]
    if base_name(program) not in SCRIPT_RUNNERS:
        return "/" in program and _is_at_hand(program, folder)
    script, _ = script_of(words, len(words))
    return script is words or (words[1] != MODULE and _is_at_hand(script[0], folder))


def _is_at_hand(path: str, folder: str) -> bool:
    is_below = bool(folder) and path.startswith(f"{folder.rstrip('/')}/")
    return not path.startswith("/") or is_below or "/../" in path


def _offered_length(words: Sequence[str]) -> int:
    """Return how many words say what the program does, if a `*` may follow them."""
    if len(words) > 1 and words[1] in _OFFERED.get(words[0], "").split():
        return 2
    pairs = _OFFERED_PAIRS.get(words[0], "").split()
    return 3 if ":".join(words[1:3]) in pairs else 0
