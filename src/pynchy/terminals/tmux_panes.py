"""The commands that read the panes of a tmux server, and that type into one of them.

What is typed goes by a buffer of our own: keys that are sent go to all panes of a window whose
panes are synchronized, and into the copy mode; what is pasted goes to one pane's program alone.

Looking whether a pane still is as it was, writing down that something is typed, and pasting it are
one line of commands, which tmux runs without a break. The line arrives whole or not at all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pynchy.terminals.foreground import Foreground
from pynchy.terminals.output import MAX_STRING
from pynchy.terminals.tmux_control import quote

TYPED, CHANGED = "typed", "changed"

_MARK = "@pynchy_typed"
_EXPECTED = "@pynchy_expected"
_BUFFER = "pynchy"
_FLAGS = "#{?pane_dead,1,0}#{?pane_in_mode,1,0}#{?pane_input_off,1,0}"
# Titles that ask nothing change often, and what is too long is none that could be asked.
_ASKS = f"#{{?#{{m:phux-ask*,#{{pane_title}}}},#{{e|<=|:#{{n:pane_title}},{MAX_STRING}}},0}}"
_TITLE = f"#{{?{_ASKS},#{{pane_title}},}}"
_HEAD = f"#{{pane_id}} #{{pane_pid}} {_FLAGS} [#{{{_MARK}}}]"
_LINE = f"P {_HEAD} #{{pane_tty}} #{{session_name}}:#{{window_index}}.#{{pane_index}}:{_TITLE}"
# The name of a session holds no colon, and all in front of it is tmux's own.
_READ = re.compile(
    r"P (?P<id>%\d+) (?P<pid>\d+) (?P<flags>[01]{3}) \[(?P<mark>[^\]]*)\] (?P<tty>\S*)"
    r" (?P<place>[^:]*:\d+\.\d+):(?P<title>.*)\Z",
    re.DOTALL,
)
_IN_MODE = "the pane is in a mode of tmux"
_INPUT_OFF = "the pane's input is switched off"

LIST_PANES = f"list-panes -a -F {quote(_LINE)}"
SUBSCRIBE = "refresh-client -B " + quote(
    "pynchy::#{S:#{?destroy-unattached,#{session_attached},}"
    f"#{{W:#{{P:#{{?{_ASKS},#{{pane_id}}{_FLAGS}#{{pane_title}},}}}}}}}}"
)


@dataclass(frozen=True, slots=True)
class PaneSeen:
    """A pane as tmux has shown it. The title is empty if it asks nothing."""

    id: str
    pid: int
    flags: str
    mark: str
    tty: str
    place: str
    title: str

    @property
    def is_dead(self) -> bool:
        """True if its program has ended, and the pane was kept."""
        return self.flags[0] == "1"

    @property
    def why_not_now(self) -> str:
        """Say why nothing can be typed just now; empty if it can be."""
        return _IN_MODE if self.flags[1] == "1" else _INPUT_OFF if self.flags[2] == "1" else ""

    @property
    def comparable(self) -> str:
        """What tmux compares before it types: see `_HEAD`."""
        return f"{self.id} {self.pid} {self.flags} [{self.mark}] {self.title}"


def read_panes(lines: Iterable[str]) -> dict[str, PaneSeen]:
    """Return the panes by their ids: one that is linked to several sessions is listed for each."""
    found: dict[str, PaneSeen] = {}
    for line in lines:
        if read := _READ.match(line):
            name, pid, *more = read.groups()
            found.setdefault(name, PaneSeen(name, int(pid), *more))
    return found


def mark_of(pane: PaneSeen, asker: Foreground) -> str:
    """Return what is written down before something is typed for this very ask."""
    told = f"{pane.pid} {asker.group} {asker.started} {pane.title}"
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()


def forget_mark(pane_id: str) -> str:
    """Return the command for a title that has changed: the same one counts anew."""
    return f"set-option -p -u -t {pane_id} {_MARK}"


def type_text(pane: PaneSeen, mark: str, text: str) -> str:
    """Return the commands that write the mark down and type the text, unless the pane has changed.

    They print TYPED or CHANGED. Of two that type the same, the second finds the mark.
    """
    then = f"set-option -p -t {pane.id} {_MARK} {mark} ; {_paste(pane.id, '-p')}"
    return _unless_changed(pane, text, then)


def type_enter(pane: PaneSeen, mark: str) -> str:
    """Return the commands that press Enter behind the text, unless the pane has changed."""
    return _unless_changed(replace(pane, mark=mark), "\r", _paste(pane.id, "-r"))


def _paste(pane_id: str, how: str) -> str:
    return f"paste-buffer {how} -d -b {_BUFFER} -t {pane_id}"


def _unless_changed(pane: PaneSeen, text: str, then: str) -> str:
    # The values are compared as they are: nothing in a title is read as a format again.
    is_same = f"#{{==:{_HEAD} #{{pane_title}},#{{{_EXPECTED}}}}}"
    forget = f"set-option -p -u -t {pane.id} {_EXPECTED}"
    yes = quote(f"{then} ; {forget} ; display-message -p {TYPED}")
    no = quote(f"delete-buffer -b {_BUFFER} ; {forget} ; display-message -p {CHANGED}")
    return " ; ".join(
        [
            # The first that fails ends the line: before anything is set if the pane is gone.
            f"set-option -p -t {pane.id} {_EXPECTED} {quote(pane.comparable)}",
            f"set-buffer -b {_BUFFER} -- {quote(text)}",
            f"if-shell -F -t {pane.id} {quote(is_same)} {yes} {no}",
        ]
    )
