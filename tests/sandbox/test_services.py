"""What an agent in a box cannot reach: services by their sockets, keys, files of groups."""

import ctypes
import json
import os
import platform
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.sandbox.support import Boxes
from tests.waiting import until

from pynchy.launchers import syscall_filter

# Where services put their sockets, and where an administrator might.
PLACES = ("/etc", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/usr/local")
PLACES += ("/tmp", "/var", "/var/lib", "/var/run", "/var/tmp", "/dev/shm")  # noqa: S108 - looked at

# What each visitor does with a list of sockets: it tries every way that there is.
KNOCK = """
def knock(kind, path):
    with socket.socket(socket.AF_UNIX, kind) as line:
        line.connect(path.replace("@", "\\0"))
        if kind == socket.SOCK_DGRAM:
            line.send(b"x")

def knock_by_a_pair(path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.sendto(b"x", path.replace("@", "\\0"))

def knock_everywhere():
    for place in json.loads(pathlib.Path("places.json").read_text()):
        report[place["stream"]] = attempt(lambda: knock(socket.SOCK_STREAM, place["stream"]))
        report[place["datagram"]] = attempt(lambda: knock(socket.SOCK_DGRAM, place["datagram"]))
        report["pair " + place["datagram"]] = attempt(lambda: knock_by_a_pair(place["datagram"]))

knock_everywhere()
"""


class Service:
    """A service that listens at a stream and at a datagram socket, and remembers its callers."""

    def __init__(self, where: str, name: str = "") -> None:
        name = name or f"{where}/"
        self.stream, self.datagram = f"{name}s", f"{name}d"
        self.called: list[str] = []
        self._sockets = [socket.socket(socket.AF_UNIX, kind) for kind in _KINDS]
        for line, path in zip(self._sockets, (self.stream, self.datagram), strict=True):
            line.bind(path.replace("@", "\0"))
            if not path.startswith("@"):
                Path(path).chmod(0o777)
        self._sockets[0].listen()
        for listen in (self._accept, self._receive):
            threading.Thread(target=listen, daemon=True).start()

    def view(self) -> dict[str, str]:
        return {"stream": self.stream, "datagram": self.datagram}

    def close(self) -> None:
        for line in self._sockets:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._sockets[0].accept()[0].close()
                self.called.append(self.stream)

    def _receive(self) -> None:
        with suppress(OSError):
            while self._sockets[1].recv(9):
                self.called.append(self.datagram)


_KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def serve(stack: ExitStack, place: str | Path) -> Service:
    """Let a service listen in a folder of its own in that place, open to everybody."""
    folder = tempfile.mkdtemp(prefix="pynchy-", dir=place)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    Path(folder).chmod(0o755)
    service = Service(folder)
    stack.callback(service.close)
    return service


def tell(boxes: Boxes, services: list[Service]) -> None:
    (boxes.work / "places.json").write_text(json.dumps([s.view() for s in services]))


@pytest.mark.parametrize("network", ["none", "proxy"])
async def test_it_reaches_no_service_by_its_socket_wherever_that_lies(
    boxes: Boxes, stack: ExitStack, servers: dict[str, int], tmp_path: Path, network: str
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    boxes.home.mkdir()
    places = [place for place in PLACES if os.access(place, os.W_OK)]
    own = [boxes.work, boxes.home, shown]
    services = [serve(stack, place) for place in (*places, *own)]
    services.append(Service("", f"@pynchy-{os.getpid()}-"))
    stack.callback(services[-1].close)
    tell(boxes, services)
    settings = {"network": network, "read": [str(shown)]}
    if network == "proxy":
        settings["proxy"] = f"127.0.0.1:{servers['proxy']}"
    await boxes.open(KNOCK, **settings)

    report = await boxes.visit()

    assert len(report) == 3 * len(services)
    assert {place: how for place, how in report.items() if how == "done"} == {}
    assert [service.called for service in services if service.called] == []


async def test_with_unix_sockets_it_has_its_own_and_those_in_folders_that_it_is_shown_alone(
    boxes: Boxes, stack: ExitStack
) -> None:
    services = {name: serve(stack, name) for name in PLACES if os.access(name, os.W_OK)}
    among_programs = [services.pop(name, None) for name in ("/opt", "/usr/local")]
    mine = serve(stack, boxes.work)
    tell(boxes, [mine, *services.values()])
    await boxes.open(KNOCK, unix_sockets=True)

    report = await boxes.visit()

    assert {how for place, how in report.items() if place.startswith(str(boxes.work))} == {"done"}
    assert all(s.called == [] for s in (*services.values(), *filter(None, among_programs)))
    await until(lambda: {mine.stream, mine.datagram} <= {*mine.called}, "its own service")


# Sockets without `socket`, and families that know no namespaces.
OTHER_WAYS = """
import ctypes, mmap, platform
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    result = libc.syscall(number, *map(ctypes.c_long, arguments))
    return errno.errorcode[ctypes.get_errno()] if result < 0 else "done"

report["ring"] = call(425, 8, id(ctypes.create_string_buffer(256)))
for name, family in {"vsock": 40, "alg": 38, "qipcrtr": 42, "packet": 17}.items():
    report[name] = attempt(lambda: socket.socket(family, socket.SOCK_STREAM).close())
if platform.machine() == "x86_64":
    report["x32"] = call(0x40000000 + 41, 1, 1, 0)
    # socket(AF_UNIX, SOCK_STREAM, 0) as 32-bit programs call it: with other numbers.
    code = bytes.fromhex("53 b8 67010000 bb 01000000 b9 01000000 31d2 cd80 5b c3")
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    report["32 bits"] = errno.errorcode[-result] if result < 0 else "done"
"""


async def test_no_other_call_or_kind_of_socket_leads_out_of_it(boxes: Boxes) -> None:
    await boxes.open(OTHER_WAYS)

    report = await boxes.visit()

    assert report.pop("ring") == "EPERM"
    if platform.machine() == "x86_64":
        assert report.pop("x32") == report.pop("32 bits") == "ENOSYS"
    assert {*report.values()} == {"EAFNOSUPPORT"}


async def test_its_own_network_and_pairs_of_sockets_work_in_it(boxes: Boxes) -> None:
    code = """
ours, theirs = socket.socketpair()
ours.send(b"hello")
report["pair"] = theirs.recv(9).decode()
with socket.create_server(("127.0.0.1", 0)) as server:
    report["loopback"] = reach(server.getsockname()[1])
import asyncio
report["asyncio"] = asyncio.run(asyncio.sleep(0, "done"))
"""
    await boxes.open(code)

    report = await boxes.visit()

    assert report == {"pair": "hello", "loopback": "done", "asyncio": "done"}


SESSION_KEYRING, USER_KEYRING = -3, -4

KEYS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
ADD, REQUEST, KEYCTL = json.loads(os.environ["CALLS"])
SEARCH, READ, DESCRIBE = 10, 11, 6

def call(number, *arguments):
    words = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(number, *words)
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]

name = os.environ["KEY"].encode()
rings = {"session": -3, "user": -4, "user session": -5}
for place, ring in rings.items():
    report["search " + place] = call(KEYCTL, SEARCH, ring, b"user", name, 0)
    report["other " + place] = call(KEYCTL, SEARCH, ring, b"user", name + b"-other", 0)
    report["add " + place] = call(ADD, b"user", name + b"-other", b"hush", 4, ring)
report["request"] = call(REQUEST, b"user", name, 0, 0)
report["read"] = call(KEYCTL, READ, int(os.environ["NUMBER"]), 0, 0)
report["join"] = call(KEYCTL, 1, 0)
for path in ("/proc/keys", "/proc/key-users"):
    report[path] = attempt(lambda: pathlib.Path(path).read_text())
# With namespaces of its own it could take a cover away that was not locked.
for how in ("-Urpf --mount-proc cat /proc/keys", "-Urm sh -c 'umount /proc/keys; cat /proc/keys'"):
    report["told"] = report.get("told", "") + os.popen(f"unshare {how} 2>&1").read()
"""


def call_kernel(number: int, *arguments: bytes | int) -> int:
    words = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *words))


@pytest.fixture
def key() -> Iterator[tuple[str, int]]:
    """A key of the user who runs the host, in the login's keyring and in the user's."""
    add, _, keyctl = syscall_filter.own_abi().keys
    name = f"pynchy-test-{os.getpid()}"
    made = {
        ring: call_kernel(add, b"user", name.encode(), b"hush", 4, ring)
        for ring in (USER_KEYRING, SESSION_KEYRING)
    }
    if min(made.values()) < 0:
        pytest.skip("this kernel has no key store")
    yield name, made[SESSION_KEYRING]
    unlink = 9
    for ring, number in made.items():
        call_kernel(keyctl, unlink, number, ring)


@pytest.mark.parametrize("network", ["none", "host"])
async def test_neither_its_owners_keys_nor_those_of_another_box_can_be_used_in_it(
    boxes: Boxes, key: tuple[str, int], network: str
) -> None:
    name, number = key
    calls = json.dumps(syscall_filter.own_abi().keys)
    env = {"KEY": name, "NUMBER": str(number), "CALLS": calls}
    boxes.host.by_command = True
    await boxes.open(KEYS, network=network, env=env)

    for report in (await boxes.visit(), await boxes.visit()):
        listed = {report.pop("/proc/keys"), report.pop("/proc/key-users")}
        assert listed <= {"EACCES", "ENOENT"}
        assert name not in report.pop("told")
        assert {*report.values()} == {"EPERM"}


GROUPS = """
report["groups"] = os.getgroups()
for path in json.loads(pathlib.Path("paths.json").read_text()):
    report[path] = attempt(lambda: pathlib.Path(path).read_text())
"""
GROUP = 54_399


@pytest.fixture
def in_a_group() -> Iterator[int]:
    """Let this process, and all that it starts, be in another group."""
    before = os.getgroups()
    os.setgroups([*before, GROUP])
    yield GROUP
    os.setgroups(before)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can join and leave groups")
async def test_it_is_in_none_of_the_groups_that_the_host_is_in(
    boxes: Boxes, in_a_group: int, stack: ExitStack
) -> None:
    paths = [boxes.work / "shared", *_files_in(stack, ("/srv", "/var", "/etc"))]
    for path in paths:
        path.write_text("hush")
        # Nobody's but the group's: root without capabilities is like everybody else.
        os.chown(path, 54_321, in_a_group)
        path.chmod(0o060)
    (boxes.work / "paths.json").write_text(json.dumps([str(path) for path in paths]))
    boxes.host.by_command = True
    await boxes.open(GROUPS)

    report = await boxes.visit()

    assert report.pop("groups") == []
    assert report.pop(str(boxes.work / "shared")) == "EACCES"
    assert {*report.values()} == {"ENOENT"}


def _files_in(stack: ExitStack, places: tuple[str, ...]) -> Iterator[Path]:
    for place in places:
        folder = tempfile.mkdtemp(prefix="pynchy-", dir=place)
        stack.callback(shutil.rmtree, folder)
        Path(folder).chmod(0o755)
        yield Path(folder, "file")


async def test_of_the_machine_it_sees_programs_and_what_they_look_up_alone(boxes: Boxes) -> None:
    code = """
report["root"] = sorted(os.listdir("/"))
report["etc"] = sorted(os.listdir("/etc"))
report["name"] = __import__("pwd").getpwuid(0).pw_name
report["shell"] = os.popen("echo hi").read()
for path in ("/x", "/etc/x", "/usr/x", "/proc/x"):
    report[path] = write(path)
"""
    await boxes.open(code)

    report = await boxes.visit()

    links = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}
    own = {path.parts[1] for path in (boxes.work, Path(os.sys.prefix), Path(os.sys.base_prefix))}
    expected = {"usr", "opt", "nix", "gnu", "sys", "etc", "dev", "proc", "tmp", *links, *own}
    assert {*report["root"]} <= expected
    assert not {"shadow", "gshadow", "ssh", "sudoers", "fstab"} & {*report["etc"]}
    assert (report["name"], report["shell"]) == ("root", "hi\n")
    assert {report[path] for path in ("/x", "/etc/x", "/usr/x")} == {"EROFS"}
