"""Scrolls the real timeline over one large message and prints what each frame cost, as JSON.

A process of its own: it needs an application of Qt's, and its memory is that of the timeline alone.
A frame is scrolling by 80 pixels, layout and painting, in CPU time of the thread.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import qasync
from PySide6.QtWidgets import QApplication

from benchmarks.network_load import resident_bytes
from engine.answers import TimelinePage
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.markup import find_spans
from engine.events import ConversationView, MessageKind, MessageView, SpanKind, TextSpan
from ui.theme import ThemeMode, set_theme
from ui.timeline.view import TimelineView

CONVERSATION = ConversationId("benchmark")
STEPS = 150
STEP = 80
SIZE = (968, 820)
AROUND = 60
"""Short messages before the large one; three follow it."""
MOST = 65_000
"""Characters of the large message."""
_START_MS = 1_795_000_000_000

TEXTS: dict[str, str] = {
    "short messages": "tide",
    "code of 5 000 lines": "```python\n"
    + "\n".join(f"x{n} = f(a)" for n in range(5_000))[:MOST]
    + "\n```",
    "code in one line": "```js\n" + ("a=1," * MOST)[:MOST] + "\n```",
    "list of 5 000 entries": "\n".join(f"- *i* {n}" for n in range(5_000))[:MOST],
    "quote of 5 000 lines": "\n".join(f"> **q** {n}" for n in range(5_000))[:MOST],
    "one paragraph": ("tide gauge " * MOST)[:MOST],
    "marks and nothing else": ("*a* " * MOST)[:MOST],
}


class Pages:
    """All messages are one page."""

    def __init__(self, messages: Sequence[MessageView]) -> None:
        self._messages = tuple(messages)

    async def latest_page(self, conversation_id: ConversationId, /) -> TimelinePage:
        del conversation_id
        return TimelinePage(
            messages=self._messages,
            has_older=False,
            has_newer=False,
            older_count=0,
            total=len(self._messages),
        )

    async def page_before(
        self, conversation_id: ConversationId, position: Position, /
    ) -> TimelinePage:
        del position
        return await self.latest_page(conversation_id)

    page_after = page_around = page_before


def _message(number: int, text: str) -> MessageView:
    spans = find_spans(text)
    return MessageView(
        conversation_id=CONVERSATION,
        position=Position(lamport_timestamp=number, message_id=MessageId(f"m{number:05}")),
        sender_id=ParticipantId(f"{number % 5:032x}"),
        sender_name=f"Member {number % 5}",
        is_own=False,
        kind=MessageKind.TEXT,
        text=text,
        spans=tuple(
            TextSpan(kind=SpanKind(s.kind), start=s.start, length=s.length, target=s.target)
            for s in spans
        ),
        sent_ms=UnixMs(_START_MS + number * 60_000),
        delivery=None,
    )


def _conversation() -> ConversationView:
    return ConversationView(
        conversation_id=CONVERSATION,
        name="Benchmark",
        members=(),
        unread=0,
        first_unread=None,
        muted=False,
        last_message=None,
        missing=0,
        waiting_to_send=0,
        failed=0,
        created_ms=UnixMs(_START_MS),
        draft="",
    )


def _cpu_ms(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1_000


def _scrolled(view: TimelineView) -> list[float]:
    def frame(step: int) -> None:
        view.canvas.scroll_by(step)
        view.viewport().repaint()

    steps = [STEP] * STEPS + [-STEP] * STEPS
    return [_cpu_ms(partial(frame, step)) for step in steps]


async def measure(text: str) -> dict[str, object]:
    """CPU milliseconds of parsing, unfolding and each frame, folded and unfolded; MiB taken."""
    parse_ms = _cpu_ms(lambda: find_spans(text))
    large = _message(AROUND + 1, text)
    before = [_message(number, f"message {number} " * (number % 7)) for number in range(1, AROUND)]
    after = [_message(AROUND + 1 + number, "after it") for number in (1, 2, 3)]
    pages = Pages([*before, large, *after])
    view = TimelineView(lambda: pages, names=str, now_ms=lambda: UnixMs(_START_MS))
    view.resize(*SIZE)
    view.show()
    shown = asyncio.Event()
    view.pageShown.connect(shown.set)
    view.open(_conversation())
    await shown.wait()
    view.viewport().repaint()
    folded_ms = _scrolled(view)
    resident = resident_bytes()

    def unfold() -> None:
        view.scene.unfold(large.message_id)
        view.canvas.refresh()
        view.viewport().repaint()

    unfold_ms = _cpu_ms(unfold)
    unfolded_ms = _scrolled(view)
    taken = (resident_bytes() - resident) / 2**20
    view.close()
    view.deleteLater()
    return {
        "parse_ms": parse_ms,
        "folded_ms": folded_ms,
        "unfold_ms": unfold_ms,
        "unfolded_ms": unfolded_ms,
        "taken_mib": taken,
    }


async def _all() -> None:
    print(json.dumps({name: await measure(text) for name, text in TEXTS.items()}))


def main() -> None:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication(sys.argv[:1])
    set_theme(app, ThemeMode.LIGHT)
    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        runner.run(_all())


if __name__ == "__main__":
    main()
