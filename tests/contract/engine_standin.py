"""A container engine without containers: strict about its command line, and no parent's child.

As `docker`, it takes what pynchy uses of the real command line and refuses all else; as a daemon,
it runs what would be in the container as its own child, with the mounted paths put back to where
they come from. So, as with the real one, to kill the command that started a container does not end
the container.

    engine_standin.py serve SOCKET RECORD      engine_standin.py cli SOCKET …
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

IMAGE = "pynchy-agent"
_VALUES = ("--name", "--user", "--userns", "--network", "--memory", "--memory-swap", "--pids-limit")
_VALUES += ("--workdir", "--entrypoint", "--cpus")
_LISTS = ("--label", "--mount", "--env", "--cap-drop", "--security-opt", "--tmpfs", "--ulimit")
_SWITCHES = ("--rm", "--init", "--read-only")
_REFUSED = 125
_MESSAGE_BYTES = 1024 * 1024

Json = dict[str, Any]


class Refused(Exception):
    """The engine does not do that."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise Refused(message)


def run_options(arguments: list[str]) -> Json:
    parser = Parser(allow_abbrev=False)
    for name in _VALUES:
        parser.add_argument(name)
    for name in _LISTS:
        parser.add_argument(name, action="append", default=[])
    for name in _SWITCHES:
        parser.add_argument(name, action="store_true")
    parser.add_argument("image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return vars(parser.parse_args(arguments))


def mounts(options: Json) -> dict[str, Json]:
    """Return the mounts by where they are in the container."""
    found = {}
    for text in options["mount"]:
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        if (
            not {"type", "source", "target"}
            <= fields.keys()
            <= {"type", "source", "target", "readonly"}
        ):
            raise Refused(f"invalid mount: {text}")
        if not Path(fields["source"]).exists():
            raise Refused(f"bind source path does not exist: {fields['source']}")
        found[fields["target"]] = {"source": fields["source"], "readonly": "readonly" in fields}
    return found


class Daemon:
    """Has the containers, each a process of its own."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._running: dict[str, tuple[subprocess.Popen[bytes], Json]] = {}
        self._lock = threading.Lock()

    def serve(self, path: str) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._attend, args=(near,), daemon=True).start()

    def _attend(self, near: socket.socket) -> None:
        with near:
            data, fds, _, _ = socket.recv_fds(near, _MESSAGE_BYTES, 2)
            asked = json.loads(data)
            try:
                reply = getattr(self, f"do_{asked['verb']}")(near, asked, fds)
            except Refused as exc:
                reply = {"exit": _REFUSED, "error": str(exc)}
            finally:
                for fd in fds:
                    os.close(fd)
            with contextlib.suppress(OSError):
                near.sendall(json.dumps(reply).encode())
                near.shutdown(socket.SHUT_RDWR)

    def do_run(self, near: socket.socket, asked: Json, fds: list[int]) -> Json:
        options, name = asked["options"], asked["options"]["name"]
        with self._lock:
            if name in self._running:
                raise Refused(f"the container name {name} is already in use")
            process = self._start(asked, fds)
            self._running[name] = process, options
        with self._record.open("a") as record:
            record.write(json.dumps({**asked, "pid": process.pid}) + "\n")
        threading.Thread(target=self._pass_signals, args=(near, process), daemon=True).start()
        code = process.wait()
        with self._lock:
            del self._running[name]
        return {"exit": code if code >= 0 else 128 - code}

    def do_rm(self, _near: socket.socket, asked: Json, _fds: list[int]) -> Json:
        with self._lock:
            process = self._running.get(asked["name"], (None, {}))[0]
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return {"exit": 0}

    def do_ps(self, _near: socket.socket, asked: Json, _fds: list[int]) -> Json:
        with self._lock:
            running = {name: set(options["label"]) for name, (_, options) in self._running.items()}
        names = [name for name, labels in running.items() if set(asked["labels"]) <= labels]
        return {"exit": 0, "output": "".join(f"{json.dumps(name)}\n" for name in names)}

    def _start(self, asked: Json, fds: list[int]) -> subprocess.Popen[bytes]:
        outside = {target: mount["source"] for target, mount in mounts(asked["options"]).items()}

        def put_back(text: str) -> str:
            for target, source in outside.items():
                if text == target or text.startswith(f"{target}/"):
                    return source + text.removeprefix(target)
            return text

        env = {"PATH": os.environ["PATH"], **asked["env"]}
        return subprocess.Popen(
            [put_back(part) for part in asked["options"]["command"]],
            cwd=put_back(asked["options"]["workdir"]),
            env={name: put_back(value) for name, value in env.items()},
            stdin=subprocess.DEVNULL,
            stdout=fds[0],
            stderr=fds[1],
            start_new_session=True,
        )

    def _pass_signals(self, near: socket.socket, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError):
            while number := near.recv(1):
                process.send_signal(number[0])


def cli(path: str, arguments: list[str]) -> int:
    """Be the command line: ask the daemon, and end with the code that it says."""
    near = socket.socket(socket.AF_UNIX)
    try:
        near.connect(path)
        asked = read(arguments)
    except (OSError, Refused) as exc:
        sys.stderr.write(f"docker: {exc}\n")
        return _REFUSED
    signal.signal(signal.SIGTERM, lambda number, _: near.sendall(bytes([number])))
    socket.send_fds(near, [json.dumps(asked).encode()], [1, 2])
    reply = json.loads(near.makefile("rb").read() or b'{"exit": 125, "error": "no daemon"}')
    sys.stdout.write(reply.get("output", ""))
    sys.stderr.write(f"docker: {reply['error']}\n" if "error" in reply else "")
    return int(reply["exit"])


def read(arguments: list[str]) -> Json:
    """Return what is asked for."""
    match arguments:
        case ["run", *rest]:
            return _read_run(rest)
        case ["rm", "--force", name]:
            return {"verb": "rm", "name": name}
        case ["ps", "--all", "--filter", first, "--filter", second, "--format", "{{json .Names}}"]:
            return {
                "verb": "ps",
                "labels": [part.removeprefix("label=") for part in (first, second)],
            }
    raise Refused(f"unknown command: {arguments}")


def _read_run(arguments: list[str]) -> Json:
    options = run_options(arguments)
    if options["image"] != IMAGE:
        raise Refused(f"unable to find image {options['image']}")
    mounts(options)
    env = {}
    for text in options["env"]:
        name, equals, value = text.partition("=")
        if equals or name in os.environ:
            env[name] = value if equals else os.environ[name]
    return {"verb": "run", "options": options, "env": env, "argv": arguments}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        Daemon(Path(sys.argv[3])).serve(sys.argv[2])
    sys.exit(cli(sys.argv[2], sys.argv[3:]))
