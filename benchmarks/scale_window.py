"""The window on a long profile: ``… scale_window fling DIR GROUP`` or ``… wait DIR GROUP N PEER``.

``fling``: towards the oldest message, in ten parts of the conversation from end to end; prints the
p99 of each part of what a frame cost the window's thread, with the reading of pages.  ``wait``: a
start while N messages wait at a Store; prints how long after the start of this process they were
shown.  Both print one line of JSON.
"""

import asyncio
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent

from benchmarks.report import percentile
from benchmarks.scale_profile import STEP_MS
from chat_app.compose import build_engine
from chat_app.qt_loop import run_on_qt
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.ids import ConversationId, MessageId, Position
from engine.events import EngineEvent, MessageAdded, MessagesAdded
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine
from ui.app import build_window
from ui.settings import UiSettings
from ui.timeline.view import TimelineView
from ui.window.main_window import MainWindow

BEGAN: Final = time.monotonic() - time.process_time()
PARTS: Final = 10
FRAMES: Final = 2_000
STEP: Final = 160
"""Pixels a frame; some 10 000 a second.  Messages go by faster than anybody reads."""
PATIENCE_S: Final = 600


def engine_on(place: Path, peers: tuple[str, ...] = ()) -> Engine:
    return build_engine(
        open_profile_directory(place),
        Settings(
            storage=StorageSettings(key="file"),
            network=NetworkSettings(listen_host="127.0.0.1", discovery=False, peers=peers),
        ),
    )


async def opened(engine: Engine, group: ConversationId) -> MainWindow:
    def load(key: str) -> str | None:
        return {"conversation": group}.get(key)

    window = build_window(engine, UiSettings(load=load, save=lambda _key, _value: None))
    window.show()
    await window.start()
    return window


async def ended(engine: Engine, window: MainWindow) -> None:
    window.close_at_once()
    await window.shutdown()
    window.deleteLater()
    await engine.stop()


async def fling(place: Path, group: ConversationId) -> int:
    engine = engine_on(place)
    await engine.start()
    window = await opened(engine, group)
    await engine.loaded()
    view = window.pane.timeline
    page = await engine.timeline.latest_page(group)
    newest = page.messages[-1].position.lamport_timestamp
    p99_ms = []
    for part in range(PARTS):
        at = Position(newest - part * page.total * STEP_MS // PARTS, MessageId(""))
        frames_ms = await flung(view, at)
        p99_ms.append(percentile(frames_ms, 0.99))
    print(json.dumps({"p99_ms": p99_ms}), flush=True)
    await ended(engine, window)
    return 0


async def flung(view: TimelineView, at: Position) -> list[float]:
    """Where a page is not there yet, its coming belongs to the frame."""
    frames_ms: list[float] = []
    shown = asyncio.Event()
    view.pageShown.connect(shown.set)
    while not view.scene.placed:
        await shown.wait()
    shown.clear()
    view.go_to(at)
    await shown.wait()
    while len(frames_ms) < FRAMES and (view.scene.loaded.has_older or view.scene.placed[0].index):
        began = time.thread_time()
        view.canvas.scroll_by(STEP)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.UpdateRequest)
        shown.clear()
        await asyncio.sleep(0)
        if view.scene.placed[0].index == 0 and view.navigation.loading:
            await shown.wait()
        frames_ms.append(1_000 * (time.thread_time() - began))
    return frames_ms


async def wait(place: Path, group: ConversationId, count: int, peer: str) -> int:
    engine = engine_on(place, (peer,))
    arrived = 0
    all_here = asyncio.Event()

    def hear(event: EngineEvent) -> None:
        nonlocal arrived
        match event:
            case MessageAdded():
                arrived += 1
            case MessagesAdded(messages=messages):
                arrived += len(messages)
            case _:
                return
        if arrived >= count:
            all_here.set()

    engine.subscribe(hear)
    await engine.start()
    window = await opened(engine, group)
    painted_s, start_loop_s = time.monotonic() - BEGAN, time.thread_time()
    async with asyncio.timeout(PATIENCE_S):
        await all_here.wait()
    window.pane.timeline.viewport().repaint()
    told = {
        "painted_s": painted_s,
        "shown_s": time.monotonic() - BEGAN,
        "processor_s": time.process_time(),
        "start_loop_s": start_loop_s,
        "loop_s": time.thread_time(),
    }
    await ended(engine, window)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    told["opening_s"] = used.ru_utime + used.ru_stime
    print(json.dumps({name: [seconds] for name, seconds in told.items()}), flush=True)
    return 0


def main(work: str, place: Path, group: ConversationId, *more: str) -> int:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if work == "fling":
        return run_on_qt(lambda: fling(place, group))
    return run_on_qt(lambda: wait(place, group, int(more[0]), more[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), ConversationId(sys.argv[3]), *sys.argv[4:]))
