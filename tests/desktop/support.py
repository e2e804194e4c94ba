"""A desktop of a test's own: a private bus, a screen without a monitor, dunst, and a person."""

import asyncio
import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection
from tests.waiting import until

SERVICE = "org.freedesktop.Notifications"
_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={path}</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
_DUNST = """[global]
    width = 420
    height = 300
    origin = top-left
    offset = 0x0
    notification_limit = 8
    idle_threshold = 0
    font = Sans 11
    markup = full
    format = "<b>%s</b>\\n%b"
    show_indicators = yes
    dmenu = {pick}
    mouse_left_click = do_action
    mouse_middle_click = context
    mouse_right_click = close_current
[urgency_low]
    timeout = {timeout}
[urgency_normal]
    timeout = {timeout}
[urgency_critical]
    timeout = 0
[record]
    summary = "*"
    script = {record}
"""
# dunst tells of each popup that it shows, in its environment.
_RECORD = """#!/bin/sh
printf '%s\\0%s\\0%s\\0%s\\1' "$DUNST_ID" "$DUNST_URGENCY" "$DUNST_SUMMARY" "$DUNST_BODY" \\
  >> {folder}/shown
"""
# Its menu of actions: a person picks the line that has these words.
_PICK = """#!/bin/sh
tee -a {folder}/menu | grep -F -- "$(cat {folder}/choice)" | head -n 1
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A popup as dunst showed it."""

    number: int
    urgency: str
    title: str
    body: str


class Desktop:
    """The bus, the screen and the service; each can end and come back."""

    def __init__(self, folder: Path, timeout: str = "0") -> None:
        self.folder = folder
        self.folder.mkdir()
        self._timeout = timeout
        self.address = f"unix:path={folder}/bus"
        self.display = ""
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._write("record", _RECORD.format(folder=folder), executable=True)
        self._write("pick", _PICK.format(folder=folder), executable=True)
        browser = f'#!/bin/sh\nprintf "%s\\n" "$1" >> {folder}/opened\n'
        self._write("browser", browser, executable=True)

    @property
    def environ(self) -> dict[str, str]:
        """What a program of this session has in its environment."""
        return {
            "DBUS_SESSION_BUS_ADDRESS": self.address,
            "DISPLAY": self.display,
            "BROWSER": f"{self.folder}/browser",
        }

    async def start(self, *, service: bool = True) -> Self:
        await self.start_screen()
        await self.start_bus()
        if service:
            await self.start_service()
        return self

    async def start_bus(self) -> None:
        config = self._write("bus.conf", _BUS.format(path=f"{self.folder}/bus"))
        self._start("bus", "dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile")
        await until(lambda: self._owner() is not None, "the bus")

    async def start_screen(self) -> None:
        read, write = os.pipe()
        self._start(
            "screen", "Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24", fds=[write]
        )
        os.close(write)
        with os.fdopen(read) as numbers:
            self.display = f":{(await asyncio.to_thread(numbers.readline)).strip()}"

    async def start_service(self) -> None:
        record, pick = self.folder / "record", self.folder / "pick"
        text = _DUNST.format(record=record, pick=pick, timeout=self._timeout)
        self._start("dunst", "dunst", "-config", self._write("dunstrc", text))
        await until(self._owner, "dunst")

    def end(self, name: str) -> None:
        """Kill a part, and wait until it is gone."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    async def end_service(self) -> None:
        self.end("dunst")
        await until(lambda: not self._owner(), "dunst to be gone")

    def close(self) -> None:
        for name in list(self._running)[::-1]:
            self.end(name)

    def seen(self, words: str = "") -> list[Seen]:
        """Return the popups that were shown so far and have these words, the oldest first."""
        with contextlib.suppress(FileNotFoundError):
            records = (self.folder / "shown").read_text().split("\1")[:-1]
            shown = [Seen(int(n), u, t, b) for n, u, t, b in (r.split("\0") for r in records)]
            return [popup for popup in shown if words in f"{popup.title}\n{popup.body}"]
        return []

    async def sees(self, words: str, count: int = 1) -> Seen:
        """Wait until so many popups with these words were shown, and return the last."""
        await until(lambda: len(self.seen(words)) >= count, f"{count} popups with {words!r}")
        await until(self.displayed, "a popup on the screen")
        return self.seen(words)[-1]

    def displayed(self) -> int:
        """Return how many popups are on the screen."""
        return int(self._dunstctl("count", "displayed"))

    async def displays(self, count: int) -> None:
        await until(lambda: self.displayed() == count, f"{count} popups on the screen")

    def click(self, button: int = 1) -> None:
        """Click the uppermost popup: 1 is left, 2 the middle, 3 right."""
        self._xdotool("mousemove", "60", "20", "click", str(button))

    async def choose(self, words: str) -> None:
        """Open dunst's menu of actions by a click, and pick the line with these words."""
        (self.folder / "choice").write_text(words)
        menu = self.folder / "menu"
        menu.unlink(missing_ok=True)

        def clicked() -> bool:
            # The window may come a moment after dunst says that it shows the popup.
            if not menu.exists():
                self.click(2)
            return menu.exists()

        await until(clicked, "dunst's menu")

    def choose_of_all(self, words: str) -> None:
        """Pick a line of the menu that has the actions of all popups."""
        (self.folder / "choice").write_text(words)
        self._dunstctl("context")

    def pause(self, *, on: bool) -> None:
        """Do not disturb."""
        self._dunstctl("set-paused", "true" if on else "false")

    def opened(self) -> list[str]:
        """Return the addresses that the browser was told to open."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "opened").read_text().split()
        return []

    def picture(self, path: Path) -> None:
        """Take a picture of the screen's upper left part, where the popups are."""
        command = ["import", "-window", "root", "-crop", "424x140+0+0", "+repage", str(path)]
        subprocess.run(command, env=self._env, check=True, timeout=60)

    def forge(self, member: str, signature: str, body: tuple[object, ...], to: str | None) -> None:
        """Send a signal as if it were the service's, from another program on the bus."""
        from jeepney import HeaderFields, new_signal  # noqa: PLC0415

        emitter = DBusAddress("/org/freedesktop/Notifications", interface=SERVICE)
        message = new_signal(emitter, member, signature, body)
        if to is not None:
            message.header.fields[HeaderFields.destination] = to
        with open_dbus_connection(self.address) as connection:
            connection.send(message)

    def clients(self) -> list[str]:
        """Return the unique names of all programs on the bus."""
        [names] = self._ask_bus("ListNames")
        return [name for name in names if name.startswith(":")]

    def _owner(self) -> str | None:
        """Return who owns the service's name; None if there is no bus."""
        try:
            return "yes" if self._ask_bus("NameHasOwner", "s", (SERVICE,))[0] else ""
        except (OSError, EOFError):
            return None

    def _ask_bus(
        self, name: str, signature: str | None = None, body: tuple[str, ...] = ()
    ) -> tuple:  # type: ignore[type-arg]
        bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
        with open_dbus_connection(self.address) as connection:
            return connection.send_and_get_reply(new_method_call(bus, name, signature, body)).body

    @property
    def _env(self) -> dict[str, str]:
        return {**os.environ, **self.environ}

    def _dunstctl(self, *words: str) -> str:
        ran = subprocess.run(
            ["dunstctl", *words], env=self._env, check=True, capture_output=True, timeout=60
        )
        return ran.stdout.decode()

    def _xdotool(self, *words: str) -> None:
        subprocess.run(["xdotool", *words], env=self._env, check=True, timeout=60)

    def _start(self, name: str, *command: str | Path, fds: list[int] | None = None) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                list(map(str, command)), env=self._env, stdout=log, stderr=log, pass_fds=fds or []
            )

    def _write(self, name: str, text: str, *, executable: bool = False) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755 if executable else 0o644)
        return path
