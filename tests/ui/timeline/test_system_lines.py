"""Lines that say what was done stand beside the thread, and say all of it at any width."""

import pytest
from msgspec.structs import replace

from engine.events import MessageKind, MessageView
from engine.governance_views import DeedKind, DeedView
from tests.ui.timeline.timeline_stage import MemoryPages, message, opened_view, run
from ui.conversation_words import kind_words
from ui.timeline.boxes import LineBox
from ui.timeline.rows import SystemRow
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")
THREAD_AND_BEAD = 6


def deed(number: int, kind: DeedKind, *, name: str = "Maya", text: str = "") -> MessageView:
    row = message(number, "Maya", "", kind=MessageKind.DEED, name=name)
    return replace(row, deed=DeedView(kind=kind, about=None, about_name="", text=text))


def lines_of(view: TimelineView) -> list[tuple[str, LineBox]]:
    found = []
    for placed in view.scene.placed:
        box = view.scene.box(placed.row)
        if isinstance(placed.row, SystemRow) and isinstance(box, LineBox):
            found.append((kind_words(placed.row.message), box))
    return found


@pytest.mark.parametrize("width", [300, 460, 492, 520, 968])
def test_what_was_done_is_whole_and_not_under_the_thread(width: int) -> None:
    rows = [
        deed(1, DeedKind.LINK_ENDED),
        deed(2, DeedKind.LINK_ENDED, name="Maximiliane von und zu Oberhausen"),
        deed(3, DeedKind.TOPIC_SET, text="walks " * 19),
        deed(4, DeedKind.TOPIC_SET, text="w" * 119),
    ]

    async def scenario() -> None:
        async with opened_view(MemoryPages(rows), width=width) as view:
            lines = lines_of(view)
            assert len(lines) == len(rows)
            geometry = view.scene.geometry
            for said, box in lines:
                assert "".join(box.words.split()).startswith("".join(said.split()))
                assert box.rect.left() >= geometry.thread_x + THREAD_AND_BEAD
                assert box.rect.right() <= geometry.right + 1
                assert box.height > box.rect.height()
            short, tall = lines[0][1], lines[2][1]
            if width < 500:
                assert tall.rect.height() > short.rect.height()
            placed = [one.y for one in view.scene.placed]
            assert placed == sorted(placed)

    run(scenario)
