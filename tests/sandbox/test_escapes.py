"""What an agent in a box leaves behind for the next one, or holds on to, leads nowhere."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from tests.acceptance.support import Host
from tests.exchanges import Exchange
from tests.sandbox.support import GROUP, Boxes
from tests.waiting import until

from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.launchers import syscall_filter
from pynchy.launchers.base import Launch
from pynchy.launchers.bubblewrap import BubblewrapLauncher
from pynchy.launchers.jobs import Program
from pynchy.model import GroupName, SessionId

# The workspace lies in the home, and the agent may move all that lies there.
SWAP = """
home, work, victim = pathlib.Path.home(), pathlib.Path.cwd(), os.environ["VICTIM"]
report["cwd"] = os.getcwd()
report["written"] = write("mine")
top = home / work.relative_to(home).parts[0]
report["moved"] = attempt(lambda: os.rename(top, home / "moved"))
report["made"] = attempt(lambda: os.makedirs(work.parent, exist_ok=True))
report["linked"] = attempt(lambda: os.symlink(victim, work))
"""


@pytest.mark.parametrize("inner", ["src/project", "project"])
async def test_a_workspace_in_the_home_that_became_a_link_gives_no_folder_of_the_host_away(
    boxes: Boxes, tmp_path: Path, inner: str
) -> None:
    victim, visitor = tmp_path / "victim", tmp_path / "visitor"
    boxes.work = boxes.home / inner
    for folder in (victim, boxes.work):
        folder.mkdir(parents=True)
    told = {"runner": str(visitor), "read": [str(visitor)], "env": {"VICTIM": str(victim)}}
    await boxes.open(SWAP, **told)

    await boxes.host.session_is(boxes.host.run(GROUP), "ended")
    code, _, err = await boxes.host.cli("run", GROUP, "again")

    moved = boxes.home / "moved" / Path(*Path(inner).parts[1:])
    done = dict.fromkeys(("written", "moved", "made", "linked"), "done")
    assert json.loads((moved / "report.json").read_text()) == {"cwd": str(boxes.work), **done}
    assert list(victim.iterdir()) == []
    assert code != 0
    assert "remove the link" in err


PLANTS = """
import os
print(os.getcwd(), flush=True)
open("planted", "w").close()
"""


@pytest.mark.parametrize("uid", [None, 54321])
def test_a_workspace_that_became_a_link_while_a_box_was_made_gave_a_folder_away(
    tmp_path: Path, uid: int | None
) -> None:
    if uid and os.getuid():
        pytest.skip("only root can start an agent as another user")
    home, victim, visitor = (tmp_path / name for name in ("home", "victim", "visitor"))
    work, link = home / "project", home / "link"
    for folder in (work, victim):
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    visitor.write_text(f"#!{sys.executable}\n{PLANTS}")
    visitor.chmod(0o755)
    exchange = Exchange(work, link)
    made: dict[str, Program] = {}

    link.symlink_to(victim)
    for look in count():
        with exchange.before(look) as is_done:
            try:
                program = nested_box(home, work, visitor, uid)
                made[json.dumps(program.argv)] = program
            except DeliveryFailed:
                pass
        if not is_done():
            break
        exchange.now()
    exchange.now()
    as_a_link = [run(program) for program in made.values()]
    exchange.now()
    as_a_folder = [run(program) for program in made.values()]

    assert list(victim.iterdir()) == []
    assert as_a_link == ["refused"] * len(made)
    assert as_a_folder == [str(work)] * len(made)
    assert (work / "planted").exists()


def nested_box(home: Path, work: Path, visitor: Path, uid: int | None) -> Program:
    """Return what makes a box with the workspace in the home."""
    data = home.parent / "data"
    mailbox = data / "ipc" / GROUP
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True, exist_ok=True)
    told = {"kind": "bubblewrap", "agent": "claude", "runner": str(visitor)}
    folders = {"home": str(home), "workspace": str(work), "read": [str(visitor)]}
    settings = LauncherSettings.model_validate(told | folders)
    launcher = BubblewrapLauncher(data, GroupName(GROUP), settings, dict(os.environ), uid)
    initial = mailbox / "input" / "s1" / "initial.json"
    launch = Launch(GroupName(GROUP), SessionId("s1"), "s1", 1, initial, mailbox)
    return launcher.program(replace(launch, home=str(home), cwd=str(work)))


def run(program: Program) -> str:
    """Make the box. Return where the agent in it worked."""
    done = subprocess.run(
        program.argv, env=program.env, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else "refused"


# All calls that make a user namespace, in which the agent could undo the box's mounts.
NAMESPACES = """
import ctypes, signal, subprocess
libc = ctypes.CDLL(None, use_errno=True)
NEW_USER, CLONE3 = 0x10000000, 435
CLONE, CLONE_FLAGS_AT = json.loads(os.environ["CLONE"])

def call(what, *arguments):
    result = what(*map(ctypes.c_long, arguments))
    if result == 0:
        os._exit(0)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else "done"

flags = NEW_USER | signal.SIGCHLD
flags = (0, flags) if CLONE_FLAGS_AT else (flags, 0)
report["clone"] = call(libc.syscall, CLONE, *flags, 0, 0, 0)
report["clone3"] = call(libc.syscall, CLONE3, 0, 0)
report["with others"] = attempt(lambda: subprocess.run(["unshare", "-Urm", "true"]).returncode)
result = libc.unshare(NEW_USER)
report["unshare"] = errno.errorcode[ctypes.get_errno()] if result < 0 else "done"
import threading
threads = [threading.Thread(target=report.__setitem__, args=("thread", "done"))]
threads[0].start(), threads[0].join()
report["process"] = os.popen("echo hi").read()
"""


@pytest.mark.parametrize("more", ["", "[groups.team]\nagent_uid = 54321\n"])
async def test_no_user_namespace_can_be_made_in_it(boxes: Boxes, more: str) -> None:
    if more and os.getuid():
        pytest.skip("only root can start an agent as another user")
    abi = syscall_filter.own_abi()
    boxes.work.chmod(0o777)
    await boxes.open(NAMESPACES, more, env={"CLONE": json.dumps([abi.clone, abi.clone_flags_at])})

    assert await boxes.visit() == {
        "clone": "EPERM",
        "clone3": "ENOSYS",
        "unshare": "EPERM",
        "with others": 1,
        "thread": "done",
        "process": "hi\n",
    }


async def test_user_namespaces_can_be_made_in_it_if_they_are_allowed(boxes: Boxes) -> None:
    abi = syscall_filter.own_abi()
    env = {"CLONE": json.dumps([abi.clone, abi.clone_flags_at])}
    await boxes.open(NAMESPACES, env=env, user_namespaces=True)

    report = await boxes.visit()

    assert (report["clone"], report["unshare"]) == ("done", "done")


# Looks before and after what is hidden from it was replaced outside.
LOOK = """
shown = pathlib.Path(os.environ["SHOWN"])
def told():
    texts = {p: attempt(pathlib.Path(p).read_text) for p in json.loads(os.environ["PATHS"])}
    # The log of the host lies there as well.
    names = lambda p: sorted(n for n in os.listdir(p) if not n.startswith("host"))
    return [texts, {str(p): names(p) for p in (shown, shown / "deep")}]

report["before"] = told()
pathlib.Path("here").touch()
while not os.path.exists("go"):
    time.sleep(0.05)
report["after"] = told()
report["write"] = write(shown / "x")
"""


async def test_what_is_hidden_stays_so_when_it_is_replaced_outside(
    boxes: Boxes, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    (shown / "deep").mkdir(parents=True)
    boxes.host = Host(shown / "data")
    secrets = [shown / "secret", shown / "deep" / "secret", shown / "pynchy.toml"]
    open_to_all = [shown / "public", shown / "deep" / "public", shown / "link"]
    for path in (*secrets[:2], *open_to_all[:2]):
        path.write_text(f"first {path.name}")
    open_to_all[2].symlink_to("public")
    token = shown / "data" / "token"
    env = {"SHOWN": str(shown)}
    env["PATHS"] = json.dumps([str(path) for path in (*secrets, token, *open_to_all)])
    hide = [str(path) for path in secrets[:2]]
    await boxes.open(LOOK, read=[str(shown)], hide=hide, env=env)
    session_id = boxes.host.run(GROUP)
    await until((boxes.work / "here").exists, "the visitor")

    for path in secrets:
        (tmp_path / "new").write_bytes(path.read_bytes())
        (tmp_path / "new").replace(path)
    (boxes.work / "go").touch()
    await boxes.host.session_is(session_id, "ended")

    report = boxes.report()
    hidden = dict.fromkeys(map(str, (*secrets, token)), "ENOENT")
    public = dict.fromkeys(map(str, open_to_all), "first public")
    names = {str(shown): ["data", "deep", "link", "public"], str(shown / "deep"): ["public"]}
    assert report["before"] == report["after"] == [{**hidden, **public}, names]
    assert report["write"] == "EROFS"


PLANT = """
program = pathlib.Path("bin/bwrap")
program.parent.mkdir(exist_ok=True)
program.write_text(f"#!/bin/sh\\ntouch {os.environ['OUTSIDE']}\\nexec /usr/bin/bwrap \\"$@\\"\\n")
program.chmod(0o755)
"""


async def test_a_bwrap_that_it_leaves_on_the_hosts_path_is_never_run(
    boxes: Boxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    monkeypatch.setenv("PATH", f"{boxes.work / 'bin'}:{os.environ['PATH']}")
    boxes.host.by_command = True
    await boxes.open(PLANT, env={"OUTSIDE": str(outside)})

    await boxes.visit()
    await boxes.visit()
    await boxes.host.cli("doctor")

    assert (boxes.work / "bin" / "bwrap").exists()
    assert not outside.exists()


# Descriptors on their way between sockets are counted for the user, whatever box they are in.
IN_FLIGHT = """
import array, resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
some = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))]
kept = []

def send_without_end():
    while True:
        kept.append(socket.socketpair())
        try:
            for _ in range(200):
                kept[-1][0].sendmsg([b"x"], some, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass

report["sent"] = attempt(send_without_end)
with socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 5) as line:
    line.sendall(b"hello")
    line.shutdown(socket.SHUT_WR)
    report["echoed"] = b"".join(iter(lambda: line.recv(9), b"")).decode()
"""


async def test_descriptors_on_their_way_cut_no_box_off_from_its_proxy(
    boxes: Boxes, servers: dict[str, int]
) -> None:
    port = str(servers["proxy"])
    told = {"network": "proxy", "proxy": f"127.0.0.1:{port}", "env": {"PORT": port}}
    await boxes.open(IN_FLIGHT, **told)

    assert await boxes.visit() == {"sent": "ETOOMANYREFS", "echoed": "hello"}


AMONG_PROGRAMS = """
shown = pathlib.Path(os.environ["SHOWN"])
report["names"] = attempt(lambda: sorted(os.listdir(shown)))
report["closed"] = attempt(lambda: os.listdir(shown / "closed"))
for name in ("secret", "public", "closed/public"):
    report[name] = attempt((shown / name).read_text)
report["services"] = os.path.exists("/etc/services")
report["group"] = os.path.exists("/etc/group")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can put something among programs")
async def test_what_is_hidden_among_programs_is_left_out_and_nothing_else_is_opened(
    boxes: Boxes,
) -> None:
    boxes.work.chmod(0o777)
    with tempfile.TemporaryDirectory(prefix="pynchy-", dir="/usr/local/share") as folder:
        shown = Path(folder)
        (shown / "closed").mkdir()
        for name in ("secret", "public", "closed/secret", "closed/public"):
            (shown / name).write_text(name)
        shown.chmod(0o755)
        (shown / "closed").chmod(0o700)
        hide = [str(shown / "secret"), str(shown / "closed" / "secret"), "/etc/group"]
        more = "[groups.team]\nagent_uid = 54321\n"
        await boxes.open(AMONG_PROGRAMS, more, hide=hide, env={"SHOWN": folder})
        report = await boxes.visit()

    assert report == {
        "names": ["closed", "public"],
        "closed": "EACCES",
        "secret": "ENOENT",
        "public": "public",
        "closed/public": "EACCES",
        "services": Path("/etc/services").exists(),
        "group": False,
    }


# To the mode that it has: a box that may do that leaves nothing changed.
DEVICES = """
import stat
names = ("null", "zero", "full", "random", "urandom", "tty")
for name in names:
    path = f"/dev/{name}"
    mode = stat.S_IMODE(os.stat(path).st_mode)
    report[name] = attempt(lambda: os.chmod(path, mode))
report["write"] = attempt(lambda: pathlib.Path("/dev/null").write_text("x") and None)
report["read"] = len(open("/dev/urandom", "rb").read(8))
report["full"] = [report["full"], attempt(lambda: pathlib.Path("/dev/full").write_text("x"))]
"""


async def test_a_box_changed_the_device_files_of_the_machine(boxes: Boxes) -> None:
    await boxes.open(DEVICES)

    report = await boxes.visit()

    chmod, write = report.pop("full")
    assert write == "ENOSPC"  # a device it still is
    assert (report.pop("write"), report.pop("read")) == ("done", 8)
    assert {chmod, *report.values()} <= {"EROFS", "EPERM"}


TRACES = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
report["traced"] = libc.ptrace(16, 1, None, None)  # PTRACE_ATTACH
deadline = time.monotonic() + 20
while report["traced"] == 0 and time.monotonic() < deadline:
    if pathlib.Path("/proc/1/stat").read_text().rpartition(") ")[2][0] in "tT":
        break
"""


async def test_a_box_whose_first_process_was_traced_by_the_agent_never_ended(boxes: Boxes) -> None:
    await boxes.open(TRACES)

    await boxes.visit()

    assert not boxes.pids()
