"""One real window for ``use``: it talks, sends pictures, opens what people open, and says its size.

It begins like the program does, desktop session included, and is driven through its own widgets.
Prints JSON lines: ``{"link": …}``, then after each phase, once the window was left alone for a
moment, ``{"phase": name, "rss": …, "pss": …, "private": …}`` in MiB.  A line on standard input
begins the next phase, so that all windows are in the same one.
"""

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QDialog

from chat_app.compose import build_engine
from chat_app.interrupts import Interrupts
from chat_app.network_control import NetworkControl
from chat_app.paths import profile_paths
from chat_app.settings import Settings, StorageSettings
from chat_app.settings_control import SettingsControl
from chat_app.window import WindowOptions, make_window, show_until_closed
from chat_app.window_memory import WindowMemory
from chat_app.window_settings import WindowSettings
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine
from ui.window.main_window import MainWindow

PICTURES = "pictures"
"""A directory beside the profile's files."""
TEXTS = 40
REST_S = 2.5
WORDS = ("tide", "harbour", "net", "rope", "gull", "wind", "lamp", "oar", "salt", "quay", "buoy")
EMOJI = ("👍", "❤️", "😂", "🎉", "🌊", "⛵", "🐟", "🌧️", "🧭", "☕")
Step = Callable[[], Awaitable[None]]


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def memory_mib() -> dict[str, float]:
    """Of this process: resident, its share of it, and what nobody else has."""
    lines = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    private = kib["Private_Clean"] + kib["Private_Dirty"]
    return {"rss": kib["Rss"] / 1024, "pss": kib["Pss"] / 1024, "private": private / 1024}


class Use:
    """What one person does with the window."""

    def __init__(self, window: MainWindow, engine: Engine, name: str, place: Path) -> None:
        self.window, self.engine, self.name, self.place = window, engine, name, place
        self.random = random.Random(name)  # noqa: S311 - what is said, nothing else

    def phases(self) -> dict[str, Step]:
        return {
            "started": _nothing,
            "texts": self.texts,
            "pictures": self.pictures,
            "GIFs": self.gifs,
            "large pictures": self.large_pictures,
            "scrolled through": self.scrolled,
            "emoji picker": self.picker,
            "viewer": self.viewer,
            "search and settings": self.sheets,
            "texts again": self.texts,
        }

    async def meet(self, link: str) -> None:
        if link:
            group = await self.engine.groups.join(link)
        else:
            group = await self.engine.groups.create("Harbour")
            tell(link=await self.engine.groups.make_invite_link(group))
        await asyncio.sleep(0.5)
        self.window.open_conversation(group)

    async def texts(self) -> None:
        for _ in range(TEXTS):
            words = self.random.choices(WORDS, k=self.random.randint(2, 40))
            if self.random.random() < 0.3:
                words.append(self.random.choice(EMOJI))
            await self._enter(" ".join(words))

    async def _enter(self, text: str) -> None:
        box = self.window.pane.composer.box
        box.setPlainText(text)
        QTest.keyClick(box, Qt.Key.Key_Return)
        await asyncio.sleep(0.15)

    async def pictures(self) -> None:
        for path in self._files("small-*.jpg"):
            await self._attach(path, original=False)

    async def large_pictures(self) -> None:
        for path in self._files("large-*.jpg"):
            await self._attach(path, original=True)

    async def gifs(self) -> None:
        for path in self._files("*.gif"):
            await self._attach(path, original=False)

    def _files(self, pattern: str) -> list[Path]:
        return sorted((self.place / PICTURES).glob(pattern))

    async def _attach(self, path: Path, *, original: bool) -> None:
        attaching = self.window.pane.attaching
        attaching.take_files([path])
        await _until(lambda: bool(attaching.files))
        if original:
            bar = self.window.pane.attachment_bar
            bar.original_wanted.emit(0, True)
            await _until(lambda: attaching.files[0].small is not None, most_s=20)
        await self._enter(path.stem)
        await _until(lambda: not attaching.files)
        await asyncio.sleep(0.5)

    async def scrolled(self) -> None:
        """From the newest to the oldest, and back."""
        bar = self.window.pane.timeline.verticalScrollBar()
        for up in (True, False):
            for _ in range(60):
                bar.setValue(bar.value() + (-1 if up else 1) * bar.pageStep() // 2)
                await asyncio.sleep(0.05)

    async def picker(self) -> None:
        self.window.pane.ask_emoji()
        await asyncio.sleep(0.5)
        for area in self.window.findChildren(QAbstractScrollArea):
            if type(area).__name__ == "EmojiGrid" and area.isVisible():
                bar = area.verticalScrollBar()
                for value in range(bar.minimum(), bar.maximum(), max(1, bar.pageStep() // 2)):
                    bar.setValue(value)
                    await asyncio.sleep(0.03)
        self.window.pane.ask_emoji()

    async def viewer(self) -> None:
        loaded = self.window.pane.timeline.scene.loaded.messages
        for message in [each for each in loaded if each.file is not None][:8]:
            self.window.pane.files.open(message)
            await asyncio.sleep(0.6)
            for dialog in self.window.findChildren(QDialog):
                if dialog.isVisible():
                    dialog.close()
            await asyncio.sleep(0.1)

    async def sheets(self) -> None:
        for open_ in (self.window.search.open, self.window.settings.open):
            open_()
            await asyncio.sleep(1.0)
            focused = QApplication.focusWidget()
            if focused is not None:
                QTest.keyClicks(focused, "tide")
                await asyncio.sleep(1.0)
                QTest.keyClick(focused, Qt.Key.Key_Escape)
                await asyncio.sleep(0.3)


async def _nothing() -> None:
    pass


async def _until(holds: Callable[[], bool], *, most_s: float = 10.0) -> None:
    for _ in range(int(most_s / 0.05)):
        if holds():
            return
        await asyncio.sleep(0.05)


async def main(directory: Path, name: str, link: str) -> int:
    settings = Settings(storage=StorageSettings(key="file"))
    paths = profile_paths(directory=directory)
    profile = open_profile_directory(directory)
    control = NetworkControl(settings.network)
    engine = build_engine(profile, settings, control=control)
    kept = SettingsControl(paths.settings_file, settings, control)
    memory = WindowMemory(WindowSettings(kept), directory / "window.json")
    await engine.start()
    with Interrupts() as interrupts:
        window = make_window(engine, memory)
        window.resize(1100, 800)
        use = Use(window, engine, name, directory)
        living = asyncio.create_task(_live(use, link))
        await show_until_closed(window, engine, WindowOptions(), interrupts, directory)
        await living
    await engine.stop()
    return 0


async def _live(use: Use, link: str) -> None:
    await asyncio.sleep(1.0)
    await use.meet(link)
    for phase, step in use.phases().items():
        await step()
        await asyncio.sleep(REST_S)
        tell(phase=phase, **memory_mib())
        await asyncio.to_thread(sys.stdin.readline)
    use.window.close_at_once()


async def make_profile(directory: Path, name: str) -> None:
    """In another process: it may import what a start of an existing profile does not."""
    engine = build_engine(
        open_profile_directory(directory), Settings(storage=StorageSettings(key="file"))
    )
    await engine.start()
    await engine.create_identity(name)
    await engine.stop()
