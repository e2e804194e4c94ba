"""The postbox with the people who read and write in it, for the promises of every channel."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from pynchy_postbox.channel import PostboxChannel

from pynchy.testing import Ability, ChannelWorld, SeenCard


class PostboxWorld(ChannelWorld):
    chat = "team"
    first, second, stranger = "ana", "ben", "eve"
    cannot: Mapping[Ability, str] = {
        Ability.LOSE_REPLIES: "a file is there or it is not",
    }

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "postbox"
        self._folder.mkdir()
        self._away = folder / "away"
        self._replies: list[tuple[Path, str]] = []
        self.channel = PostboxChannel(self._folder)

    async def restart(self) -> None:
        await self.channel.close()
        self.channel = PostboxChannel(self._folder)

    def cards(self) -> list[SeenCard]:
        paths = (self._folder / self.chat / "cards").glob("*.txt")
        shown = sorted(paths, key=lambda path: path.stat().st_mtime_ns)
        return [SeenCard(p.read_text(), "Reply" in p.read_text(), p.name, ()) for p in shown]

    def told(self, user: str) -> list[str]:
        return [path.read_text() for path in (self._home(user) / "told").glob("*.txt")]

    async def choose(self, user: str, card: SeenCard, *labels: str) -> None:
        await self.write(user, card, ", ".join(labels))

    async def write(self, user: str, card: SeenCard, text: str) -> None:
        self._home(user).mkdir(parents=True, exist_ok=True)
        path = self._home(user) / f"{len(self._replies)}.txt"
        self._replies.append((path, f"Re: {card.handle}\n{text}\n"))
        await self.repeat()

    async def choose_part(self, user: str, card: SeenCard, number: int, label: str) -> None:
        await self.write(user, card, f"{number}: {label}")

    async def decline(self, user: str, card: SeenCard) -> None:
        await self.write(user, card, "cancel")

    async def repeat(self) -> None:
        path, text = self._replies[-1]
        path.with_suffix(".draft").write_text(text)
        path.with_suffix(".draft").replace(path)

    async def remove(self, card: SeenCard) -> None:
        (self._folder / self.chat / "cards" / str(card.handle)).unlink()

    async def go_down(self) -> None:
        shutil.move(self._folder, self._away)

    async def come_back(self) -> None:
        shutil.move(self._away, self._folder)

    def _home(self, user: str) -> Path:
        return self._folder / self.chat / "people" / user
