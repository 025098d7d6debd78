"""The pictures of what happens now and then in a conversation: one window, in light and in dark.

Real engines say what people can say; what would take a bad network or two devices behind routers is
told to the window as the engine would tell it.  A part of ``scripts.everyday_pictures``.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial

from msgspec.structs import replace

from engine.core.ids import ConversationId, MessageId, Position, UnixMs
from engine.core.problems import FileFault, FileProblem
from engine.events import (
    MessageAdded,
    MessageKind,
    MessageView,
    QuoteView,
    TimelineChanged,
    TypingChanged,
)
from engine.file_views import FetchView, FileState, FileView
from scripts.governing_pictures import until
from scripts.painted_pictures import pier_photo
from scripts.scene import Cast
from scripts.taking_pictures import SIZE, keep, picture, settled
from ui.settings import Appearance
from ui.timeline.rows import message_in
from ui.window.main_window import MainWindow

MIB = 1024 * 1024
_HIGH = (SIZE[0], 890)
"""So that all that can be of a file is seen at once."""
_BOTH = {"light": Appearance.LIGHT, "dark": Appearance.DARK}


def texts_in(window: MainWindow) -> list[MessageView]:
    """The texts of the open conversation, oldest first."""
    rows = map(message_in, window.pane.timeline.scene.loaded.rows)
    said = [row for row in rows if row is not None and row.kind is MessageKind.TEXT]
    return [row for row in said if not row.retracted]


def _plain(row: MessageView) -> MessageView:
    return replace(row, quote=None, reactions=(), mentions_me=False, spans=(), edited_ms=None)


def _after(last: MessageView, rows: list[MessageView]) -> list[MessageView]:
    """The same, a minute each after the last one."""
    return [
        replace(
            row,
            sent_ms=UnixMs(last.sent_ms + 60_000 * number),
            position=Position(
                last.position.lamport_timestamp + number, MessageId(f"later {number}")
            ),
        )
        for number, row in enumerate(rows, start=1)
    ]


_FILM = FileView(
    name="pier-timelapse.mp4",
    media_type="video/mp4",
    size=48 * MIB,
    state=FileState.RUNNING,
    done_bytes=19 * MIB,
    rate=3 * MIB,
)
_LOGS = FileView(
    name="logs-2026-11.zip",
    media_type="application/zip",
    size=24 * MIB,
    state=FileState.WAITING,
    done_bytes=5 * MIB,
)


def _files(window: MainWindow, theirs: list[FileView], ours: list[FileView]) -> list[MessageView]:
    said = texts_in(window)
    from_them = _plain(next(row for row in reversed(said) if not row.is_own))
    from_us = _plain(next(row for row in reversed(said) if row.is_own))
    found = [replace(from_them, kind=MessageKind.FILE, text="", file=file) for file in theirs]
    found += [replace(from_us, kind=MessageKind.FILE, text="", file=file) for file in ours]
    return _after(said[-1], found)


def files_that_come(window: MainWindow) -> list[MessageView]:
    """Beyond 96 KiB: on its way, paused, cancelled, here, and two of our own that go out."""
    others = [row.sender_id for row in texts_in(window) if not row.is_own]
    holder = next(each for each in others if each != others[-1])  # Besides who sends it.
    whole = replace(_LOGS, state=FileState.COMPLETE, done_bytes=0)
    theirs = [
        _FILM,
        replace(_FILM, name="pier-by-night.mp4", state=FileState.PAUSED, rate=0),
        replace(whole, name="map.zip", state=FileState.OFFERED, thrown_away_bytes=5 * MIB),
        replace(whole, name="chart.pdf", held_whole_by=(holder,)),
    ]
    sending = replace(_FILM, name="calibration.zip", is_upload=True, done_bytes=30 * MIB)
    mine = replace(_FILM, name="pier.mov", state=FileState.COMPLETE, rate=0, is_upload=True)
    fetch = FetchView(peers=1, done_bytes=34 * MIB, rate=3 * MIB)
    return _files(window, theirs, [sending, replace(mine, fetch=fetch)])


def files_that_wait(window: MainWindow) -> list[MessageView]:
    """They cannot come just now, or never will: each says why."""
    asked = FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=3, nodes=1)
    alone = FileProblem(fault=FileFault.NEEDS_SERVICE_NODE)
    lies = FileProblem(fault=FileFault.NOT_AS_SAID)
    theirs = [
        replace(_LOGS, problem=asked),
        replace(_LOGS, name="logs-2026-10.zip", done_bytes=0, problem=alone),
        replace(_LOGS, name="fonts.zip", state=FileState.FAILED, done_bytes=0, problem=lies),
    ]
    mine = replace(_FILM, name="calibration.zip", state=FileState.COMPLETE, rate=0)
    kept_by_nobody = FileProblem(fault=FileFault.NOBODY_KEEPS_IT)
    return _files(window, theirs, [replace(mine, is_upload=True, problem=kept_by_nobody)])


def answers(window: MainWindow) -> list[MessageView]:
    """Answers to a message that is missing, and to one from before we were let in."""
    said = texts_in(window)
    others = list({row.sender_id: row for row in said if not row.is_own}.values())
    missing = QuoteView(message_id=MessageId("M" * 22))
    before = QuoteView(message_id=MessageId("B" * 22), from_before=True)
    return _after(
        said[-1],
        [
            replace(_plain(others[0]), text="Yes, that one. I'll print it.", quote=missing),
            replace(_plain(others[-1]), text="As we said in spring, then.", quote=before),
        ],
    )


class Rarer:
    def __init__(self, cast: Cast, window: MainWindow, group: ConversationId) -> None:
        self._cast = cast
        self._window = window
        self._group = group

    async def draw(self, elsewhere: ConversationId) -> None:
        """``elsewhere``: a conversation to look at while somebody writes in this one."""
        await self._told(answers, self._answers)
        self._window.resize(*_HIGH)
        await self._told(files_that_come, partial(self._both, "files"))
        self._window.resize(*SIZE)
        await self._told(files_that_wait, partial(self._both, "files-waiting"))
        await self._away(elsewhere)
        sender = next(row for row in texts_in(self._window) if not row.is_own).sender_id
        self._window.side.show_person(sender)
        await self._both("about-member")
        self._window.side.close()

    async def _both(self, name: str) -> None:
        for which, appearance in _BOTH.items():
            await picture(self._window, appearance, f"{name}-{which}.png")

    async def _told(
        self,
        make: Callable[[MainWindow], list[MessageView]],
        draw: Callable[[], Coroutine[object, object, None]],
    ) -> None:
        """Draw it with these rows below the others, which go again."""
        await until(lambda: any(row.is_own for row in texts_in(self._window)))
        for row in make(self._window):
            self._window.bridge.publish(MessageAdded(message=row, notify=False))
        await asyncio.sleep(0.5)
        self._window.pane.timeline.go_to_newest()
        await draw()
        self._window.bridge.publish(TimelineChanged(conversation_id=self._group))
        await until(lambda: any(row.is_own for row in texts_in(self._window)))
        self._window.pane.timeline.go_to_newest()

    async def _answers(self) -> None:
        """While one's own text is about to be deleted for everybody."""
        mine = next(row for row in reversed(texts_in(self._window)) if row.is_own)
        deletions = self._window.about.deletions
        for which, appearance in _BOTH.items():
            self._window.looks.choose(appearance)
            await settled(self._window)
            deletions.begin(mine)  # It can be undone for ten seconds.
            await until(self._window.undo_bar.isVisible)
            await asyncio.sleep(0.5)
            self._window.pane.timeline.go_to_newest()
            keep(self._window, f"answers-{which}.png")
            deletions.undo_last()

    async def _away(self, elsewhere: ConversationId) -> None:
        """Somebody sends an album while we look at something else, and goes on writing."""
        window, engine = self._window, self._cast.engines["Jonas"]
        window.open_conversation(elsewhere)
        await asyncio.sleep(0.5)
        for number, size in enumerate(((560, 250), (420, 300), (300, 400))):
            await engine.timeline.send_file(
                self._group,
                name=f"walk-{number}.jpg",
                media_type="image/jpeg",
                data=pier_photo(*size),
                caption="From the way back" if number == 0 else "",
                width=size[0],
                height=size[1],
            )
        await self._cast.say("Jonas", self._group, "Nine it is. I'll bring the map without coffee.")
        await asyncio.sleep(1)
        window.open_conversation(self._group)
        await asyncio.sleep(1)
        names = ("Luc", "Maya")
        window.bridge.publish(TypingChanged(conversation_id=self._group, names=names))
        await self._both("album")
