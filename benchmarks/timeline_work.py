"""Scrolls the real timeline over large or much discussed messages and prints what frames cost.

A process of its own: it needs an application of Qt's, and its memory is that of the timeline alone.
A frame is scrolling by 80 pixels, layout and painting, in CPU time of the thread; where a message
changes before one's eyes, it is that and painting.  The answer is JSON.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import qasync
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from benchmarks.network_load import resident_bytes
from engine.answers import TimelinePage
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.markup import find_spans
from engine.events import (
    ConversationView,
    MemberView,
    MessageKind,
    MessageView,
    QuoteView,
    ReactionView,
)
from engine.text_spans import SpanKind, TextSpan
from ui.theme import ThemeMode, set_theme
from ui.timeline.view import TimelineView

CONVERSATION = ConversationId("benchmark")
STEPS = 150
STEP = 80
SIZE = (968, 820)
AROUND = 60
"""Short messages before the large one; three follow it."""
LOADED = 600
"""As many as a timeline keeps."""
SHOWN_EMOJI = 32
REACTED = 1_000
EDITED = 1_000
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
        self, conversation_id: ConversationId, position: Position, /, *, limit: int = 0
    ) -> TimelinePage:
        del position, limit
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


def _reactions(total: int) -> tuple[ReactionView, ...]:
    """As many emoji as a row shows, and as many names as each may have."""
    kinds = SHOWN_EMOJI
    return tuple(
        ReactionView(
            emoji=chr(0x1F400 + kind),
            count=total // kinds + (kind < total % kinds),
            names=tuple(f"Member {number}" for number in range(8)),
        )
        for kind in range(kinds)
    )


def _quoting(message: MessageView, quoted: MessageView) -> MessageView:
    quote = QuoteView(
        message_id=quoted.message_id,
        position=quoted.position,
        sender_id=quoted.sender_id,
        sender_name=quoted.sender_name,
        text=quoted.text,
    )
    return replace(message, quote=quote)


def conversation(
    conversation_id: ConversationId, members: tuple[MemberView, ...] = ()
) -> ConversationView:
    return ConversationView(
        conversation_id=conversation_id,
        name="Benchmark",
        members=members,
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


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1_000


def _scrolled(view: TimelineView) -> list[float]:
    def frame(step: int) -> None:
        view.canvas.scroll_by(step)
        view.viewport().repaint()

    steps = [STEP] * STEPS + [-STEP] * STEPS
    return [cpu_ms(partial(frame, step)) for step in steps]


async def _shown(messages: Sequence[MessageView]) -> TimelineView:
    pages = Pages(messages)
    view = TimelineView(lambda: pages, names=str, now_ms=lambda: UnixMs(_START_MS))
    view.resize(*SIZE)
    view.show()
    shown = asyncio.Event()
    view.pageShown.connect(shown.set)
    view.open(conversation(CONVERSATION))
    await shown.wait()
    view.viewport().repaint()
    return view


async def measure_discussed() -> dict[str, list[float]]:
    """CPU milliseconds of each frame over reactions and answers, and of each change of a row."""
    plain = [_message(number, f"message {number} " * (number % 7)) for number in range(1, LOADED)]
    frames: dict[str, list[float]] = {}
    for name, messages in {
        "600 messages with 100 reactions each": [
            replace(one, reactions=_reactions(100)) for one in plain
        ],
        "a chain of replies": [
            plain[0],
            *(_quoting(one, before) for before, one in itertools.pairwise(plain)),
        ],
    }.items():
        view = await _shown(messages)
        frames[f"{name}: frame p99"] = _scrolled(view)
        view.close()
        view.deleteLater()
    view = await _shown(plain)
    newest = plain[-1]

    def change(message: MessageView) -> None:
        view.change(message)
        view.viewport().repaint()

    reacted = (replace(newest, reactions=_reactions(n)) for n in range(REACTED))
    frames["one of 1 000 reactions to a message arrives"] = [
        cpu_ms(partial(change, one)) for one in reacted
    ]
    edited = (_message(LOADED - 1, f"edit {n}") for n in range(EDITED))
    frames["one of 1 000 edits of a message arrives"] = [
        cpu_ms(partial(change, one)) for one in edited
    ]
    view.close()
    view.deleteLater()
    return frames


async def measure(text: str) -> dict[str, object]:
    """CPU milliseconds of parsing, unfolding and each frame, folded and unfolded; MiB taken."""
    parse_ms = cpu_ms(lambda: find_spans(text))
    large = _message(AROUND + 1, text)
    before = [_message(number, f"message {number} " * (number % 7)) for number in range(1, AROUND)]
    after = [_message(AROUND + 1 + number, "after it") for number in (1, 2, 3)]
    view = await _shown([*before, large, *after])
    folded_ms = _scrolled(view)
    resident = resident_bytes()

    def unfold() -> None:
        view.scene.unfold(large.message_id)
        view.canvas.refresh()
        view.viewport().repaint()

    unfold_ms = cpu_ms(unfold)
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
    large = {name: await measure(text) for name, text in TEXTS.items()}
    print(json.dumps({"large": large, "discussed": await measure_discussed()}))


def main() -> None:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication(sys.argv[:1])
    set_theme(app, ThemeMode.LIGHT)
    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        runner.run(_all())


if __name__ == "__main__":
    main()
