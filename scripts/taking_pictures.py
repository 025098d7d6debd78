"""How a picture for docs/images is taken of a window, once nothing moves in it any more."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtWidgets import QWidget

from chat_app.qt_loop import run_on_qt
from ui.settings import Appearance
from ui.window.main_window import MainWindow

OUT = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = (1280, 820)
NARROW = (420, 720)


def draw_all(pictures: Callable[[], Awaitable[None]]) -> int:
    """As a program of its own, with the times of day in UTC; returns its exit code."""

    async def draw() -> int:
        os.environ["TZ"] = "UTC"
        time.tzset()
        await pictures()
        return 0

    return run_on_qt(draw)


async def picture(window: MainWindow, appearance: Appearance, name: str) -> None:
    window.looks.choose(appearance)
    await settled(window)
    keep(window, name)


async def settled(widget: QWidget) -> None:
    """Until nothing moves in it any more, however busy the machine is; a caret blinks for ever."""
    before, same = widget.grab().toImage(), 0
    for _ in range(30):
        await asyncio.sleep(0.3)
        now = widget.grab().toImage()
        same = same + 1 if now == before else 0
        before = now
        if same == 3:  # noqa: PLR2004 - in a row
            return


def keep(widget: QWidget, name: str) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    if not widget.grab().save(str(OUT / name)):
        raise OSError(f"{OUT / name} cannot be written")
    print(f"docs/images/{name}")
