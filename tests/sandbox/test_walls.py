"""What an agent in a bubblewrap box can see, write and reach: its own, and nothing else."""

import json
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.acceptance.support import MailboxAgent
from tests.sandbox.support import Boxes
from tests.waiting import until

from pynchy.launchers import job_runner

WRITES = """
for name in ("tasks", "responses", "input", "pending_questions"):
    report[name] = write(ipc / name / "forged.json")
report["swap"] = attempt(lambda: os.rename(ipc / "responses", ipc / "old"))
report["remove"] = attempt(lambda: os.unlink(ipc / "input" / "host.json"))
report["mailbox"] = write(ipc / "x")
report["other group"] = write(ipc.parent / "other" / "tasks" / "x.json")
for path in ("/etc/x", "/usr/x", "/home/x", "/dev/x", "/proc/sys/kernel/core_pattern"):
    report[path] = write(path)
report["workspace"] = write("mine")
report["home"] = write(pathlib.Path.home() / "mine")
report["temporary"] = write("/tmp/mine")
"""


async def test_it_can_write_its_tasks_its_home_and_its_workspace_and_nothing_else(
    boxes: Boxes,
) -> None:
    await boxes.open(WRITES)

    report = await boxes.visit()

    writable = {name for name, how in report.items() if how == "done"}
    assert writable == {"tasks", "workspace", "home", "temporary"}
    assert report["responses"] == report["input"] == report["remove"] == "EROFS"
    assert (boxes.home / "mine").exists()
    assert not Path("/tmp/mine").exists()  # noqa: S108 - that of the box was its own


SIGHT = """
def files(top):
    for folder, folders, names in os.walk(top):
        # The Python that runs this may lie in somebody's home.
        ours = {sys.prefix, sys.base_prefix}
        folders[:] = [n for n in folders if os.path.join(folder, n) not in ours]
        yield from (os.path.join(folder, name) for name in names)

data = ipc.parents[1]
report["data"] = sorted(str(p.relative_to(data)) for p in data.rglob("*"))
for path in ("/home", "/root", "/run", os.environ["OWNER_HOME"]):
    report[path] = list(files(path))
report["settings"] = os.path.exists(os.environ["SETTINGS"])
report["hidden"] = attempt(lambda: pathlib.Path(os.environ["HIDDEN"]).read_text())
report["processes"] = len([n for n in os.listdir("/proc") if n.isdecimal()])
def is_open(number):
    return int(number) > 2 and os.path.lexists(f"/proc/self/fd/{number}")

# What listed them is closed by now.
numbers = [n for n in os.listdir("/proc/self/fd") if is_open(n)]
report["fds"] = [os.readlink(f"/proc/self/fd/{n}") for n in numbers]
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
report["status"] = {name: status[name].strip() for name in ("NoNewPrivs", "CapEff", "CapBnd")}
report["environ"] = sorted(os.environ)
report["home"], report["cwd"] = os.environ["HOME"], os.getcwd()
"""


async def test_it_sees_neither_other_groups_nor_questions_nor_the_token_nor_its_owner(
    boxes: Boxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "shown" / "hidden"
    hidden.parent.mkdir()
    hidden.write_text("hush")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-passed")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not for agents")
    env = {"OWNER_HOME": str(Path.home()), "HIDDEN": str(hidden)}
    env["SETTINGS"] = str(tmp_path / "pynchy.toml")
    told = {"read": [str(hidden.parent)], "hide": [str(hidden)]}
    await boxes.open(SIGHT, env=env, pass_env=["ANTHROPIC_API_KEY"], **told)
    agents = [MailboxAgent(boxes.host.group(name)) for name in ("team", "other")]
    for agent in agents:
        agent.ask()
    await boxes.host.listed(2)

    report = await boxes.visit()

    assert (boxes.host.data / "token").exists()
    seen = {path.split("/")[2] for path in report["data"] if path.count("/") > 1}
    assert seen == {"tasks", "responses", "input"}
    assert not [path for path in report["data"] if not "ipc/team".startswith(path[:8])]
    for place in ("/home", "/root", "/run", env["OWNER_HOME"]):
        assert report[place] == [], place
    assert not report["settings"]
    assert report["hidden"] == "ENOENT"
    assert report["processes"] < 5
    assert report["fds"] == []
    assert report["status"] == {"NoNewPrivs": "1", "CapEff": "0" * 16, "CapBnd": "0" * 16}
    assert (report["home"], report["cwd"]) == (str(boxes.home), str(boxes.work))
    assert "ANTHROPIC_API_KEY" in report["environ"]
    assert not {"AWS_SECRET_ACCESS_KEY", "PYNCHY_DATA_DIR"} & {*report["environ"]}


TRAP = """
trap = "import os, pathlib; pathlib.Path(os.environ.get('OUTSIDE', '/nowhere')).write_text('hello')"
minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
for folder in (pathlib.Path(), pathlib.Path.home() / ".local/lib" / minor / "site-packages"):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("sitecustomize.py", "usercustomize.py", "agent_runner.py", "pynchy.py"):
        (folder / name).write_text(trap)
    (folder / "trap.pth").write_text(trap)

"""


async def test_what_it_leaves_for_the_next_python_is_never_run_outside(
    boxes: Boxes, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    env = {"PYTHONPATH": str(boxes.work), "TMPDIR": str(boxes.work), "OUTSIDE": str(outside)}
    await boxes.open(TRAP, env=env)

    await boxes.visit()
    await boxes.visit()

    assert (boxes.home / ".local").exists()
    assert not outside.exists()


NETWORK = """
ports = json.loads(pathlib.Path("ports.json").read_text())
for name, port in ports.items():
    report[name] = reach(port)
report["elsewhere"] = attempt(lambda: socket.create_connection(("192.0.2.1", 80), 5).close())
if report["proxy"] == "done":
    with socket.create_connection(("127.0.0.1", ports["proxy"]), 5) as line:
        line.sendall(b"x" * 300_000)
        line.shutdown(socket.SHUT_WR)
        report["echoed"] = sum(map(len, iter(lambda: line.recv(65536), b"")))
"""


async def open_near(boxes: Boxes, ports: dict[str, int], **settings: object) -> None:
    await boxes.open(NETWORK, **settings)
    ports = {**ports, "host": urlsplit(boxes.host.url).port or 0}
    (boxes.work / "ports.json").write_text(json.dumps(ports))


async def test_it_reaches_nothing_unless_that_is_allowed(
    boxes: Boxes, servers: dict[str, int]
) -> None:
    await open_near(boxes, servers)

    report = await boxes.visit()

    assert report["host"] == report["proxy"] == report["other"] == "ECONNREFUSED"
    assert report["elsewhere"] == "ENETUNREACH"


async def test_with_a_proxy_it_reaches_that_address_and_nothing_else(
    boxes: Boxes, servers: dict[str, int]
) -> None:
    proxy = f"127.0.0.1:{servers['proxy']}"
    await open_near(boxes, servers, network="proxy", proxy=proxy)

    report = await boxes.visit()

    assert report == {
        "proxy": "done",
        "echoed": 300_000,
        "other": "ECONNREFUSED",
        "host": "ECONNREFUSED",
        "elsewhere": "ENETUNREACH",
    }


async def test_a_proxy_that_is_down_ends_the_connection_and_not_the_agent(
    boxes: Boxes, servers: dict[str, int]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    await open_near(boxes, {**servers, "proxy": port}, network="proxy", proxy=f"127.0.0.1:{port}")

    assert (await boxes.visit())["echoed"] == 0


async def test_the_network_of_the_machine_is_there_if_it_is_allowed(
    boxes: Boxes, servers: dict[str, int]
) -> None:
    await open_near(boxes, servers, network="host")

    report = await boxes.visit()

    assert report["proxy"] == report["other"] == report["host"] == "done"


MEMORY = """
held = []
while True:
    held.append(bytearray(b"x") * 4_000_000)
    time.sleep(0.01)
"""
PROCESSES = """
while True:
    if os.fork() == 0:
        time.sleep(600)
"""


@pytest.mark.parametrize(
    ("code", "limits", "words"),
    [
        (MEMORY, {"memory": "200MiB"}, "MiB of memory of 200 MiB"),
        (PROCESSES, {"pids": 40}, "processes and threads of 40"),
    ],
    ids=["memory", "processes"],
)
async def test_a_box_that_takes_more_than_it_may_is_ended_as_a_whole(
    boxes: Boxes, code: str, limits: dict[str, object], words: str
) -> None:
    await boxes.open(code, **limits)

    ended = await boxes.host.session_is(boxes.host.run("team"), "ended")

    assert ended["failed"]
    assert words in boxes.log() or "Resource temporarily unavailable" in boxes.log()
    assert boxes.pids() == []


FILES = """
pathlib.Path("files").mkdir()
while True:
    pathlib.Path("files", os.urandom(8).hex()).write_bytes(bytes(1_000_000))
    time.sleep(0.01)
"""
NAMES = """
pathlib.Path.home().joinpath("names").mkdir()
while True:
    pathlib.Path.home().joinpath("names", os.urandom(8).hex()).touch()
"""

DEEP = """
for _ in range(300):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
while True:
    with open(os.urandom(8).hex(), "wb") as file:
        file.write(bytes(1_000_000))
    time.sleep(0.01)
"""


@pytest.mark.parametrize("code", [FILES, NAMES, DEEP], ids=["large", "many", "deep"])
async def test_a_box_that_fills_the_disk_is_ended_and_that_is_said(boxes: Boxes, code: str) -> None:
    await boxes.open(code, disk="20MiB")

    ended = await boxes.host.session_is(boxes.host.run("team"), "ended")

    assert "ended: it took more than 20 MiB of the disk" in ended["detail"]
    assert boxes.pids() == []


async def test_a_box_cannot_make_a_single_file_longer_than_the_limit_for_the_disk(
    boxes: Boxes,
) -> None:
    code = """
def write_much():
    with open("large", "wb", buffering=0) as file:
        for _ in range(3):
            file.write(bytes(1024 * 1024))
report["large"] = attempt(write_much)
"""
    await boxes.open(code, disk="2MiB")

    assert (await boxes.visit())["large"] == "EFBIG"
    assert (boxes.work / "large").stat().st_size == 2 * 1024**2


async def test_a_box_ends_with_its_supervisor_also_when_that_is_killed(boxes: Boxes) -> None:
    await boxes.open("pathlib.Path('here').touch(); time.sleep(600)")
    session_id = boxes.host.run("team")
    await until((boxes.work / "here").exists, "the visitor")
    inside = boxes.pids()

    for pid in supervisors_of(boxes):
        os.kill(pid, signal.SIGKILL)
    ended = await boxes.host.session_is(session_id, "ended")

    assert inside
    assert "vanished" in ended["detail"]
    await until(lambda: not boxes.pids(), "the end of the box")


def supervisors_of(boxes: Boxes) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode().split("\0")
            if job_runner.__file__ in words and str(boxes.host.data) in words[-2]:
                found.append(int(path.parts[2]))
    return found


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start an agent as another user")
async def test_an_agent_of_another_user_starts_in_the_workspace_that_pynchy_makes(
    boxes: Boxes, tmp_path: Path
) -> None:
    program = tmp_path / "programs" / "visitor"
    program.parent.mkdir()
    settings = boxes.settings(WRITES + "report['uid'] = os.getuid()", read=[str(program.parent)])
    (boxes.work / "visitor").rename(program)
    lines = [line for line in settings.splitlines() if not line.startswith(("workspace", "home"))]
    told = "\n".join(lines).replace(str(boxes.work / "visitor"), str(program))
    boxes.host.configure(f"{told}\n[groups.team]\nagent_uid = 54321\n")
    await boxes.host.start()

    await boxes.host.session_is(boxes.host.run("team"), "ended")

    own = boxes.host.data / "boxes" / "team"
    assert (own / "workspace" / "report.json").exists(), boxes.log()
    report = json.loads((own / "workspace" / "report.json").read_text())
    assert report["uid"] == 54321
    assert {report[name] for name in ("tasks", "workspace", "home", "temporary")} == {"done"}
    assert (own / "workspace" / "mine").stat().st_uid == (own / "home").stat().st_uid == 54321


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start an agent as another user")
async def test_a_host_that_is_root_can_give_the_box_to_another_user(boxes: Boxes) -> None:
    boxes.work.chmod(0o777)
    code = WRITES + "report['uid'], report['groups'] = os.getresuid(), os.getgroups()"
    await boxes.open(code, more="[groups.team]\nagent_uid = 54321\n")

    report = await boxes.visit()

    assert (report["uid"], report["groups"]) == ([54321, 54321, 54321], [])
    writable = {name for name, how in report.items() if how == "done"}
    assert writable == {"tasks", "workspace", "home", "temporary"}
    assert report["responses"] == "EROFS"
