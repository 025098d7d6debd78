"""The name of who wrote a long run stays in view with the picture, in a group."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, QSizeF

from engine.core.contacts import ContactState
from engine.core.ids import MessageId
from engine.events import ContactView, ConversationView, MessageKind
from engine.file_views import FileView
from tests.ui.timeline.timeline_stage import (
    IDS,
    MemoryPages,
    conversation,
    message,
    opened_view,
    run,
    settled,
    shown_view,
)
from ui.timeline.boxes import BubbleBox, LineBox
from ui.timeline.rows import message_key
from ui.timeline.scene import Hit
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")


def pair_with(who: str) -> ConversationView:
    contact = ContactView(
        participant_id=IDS[who],
        name=who,
        local_name="",
        state=ContactState.ACCEPTED,
        fingerprint="",
        safety_number="",
        picture=b"",
        last_seen_ms=None,
        is_online=False,
    )
    return replace(conversation(), members=(), contact=contact)


def test_the_senders_name_stays_in_view_during_a_long_run() -> None:
    source = MemoryPages([message(n, "Maya", f"number {n}") for n in range(10, 60)])

    async def scenario() -> None:
        async with opened_view(source, height=400) as view:
            scene, first = view.scene, message_key(MessageId("m0000010"))
            kept = scene.kept_sender()
            assert kept is not None
            assert kept.box.name == "Maya"
            strip = kept.strip
            assert strip.top() == scene.theme.metrics.gap(8)
            assert strip.bottom() < 2 * scene.geometry.avatar
            assert inks(view, strip) >= {scene.theme.sender_colour(IDS["Maya"]).name()}
            assert scene.hit(strip.center()) == Hit(first, kept.message, over_sender=True)
            below = scene.hit(QPointF(strip.center().x(), strip.bottom() + 30))
            assert below is not None
            assert not below.over_sender, "the messages below can be selected"
            view.navigation.go_to_beginning()
            row = scene.rect(first)
            assert row is not None
            name = kept.box.name_rect.top() - kept.box.bubble.top()
            view.canvas.scroll_by(-row.top() - name)
            named, moved = scene.kept_sender(), scene.rect(first)
            assert named is not None
            assert moved is not None
            assert named.strip.isEmpty(), "the name can be seen in its own place"
            own = kept.box.name_rect.translated(0, moved.top() - kept.box.bubble.top())
            assert inks(view, own) >= {scene.theme.sender_colour(IDS["Maya"]).name()}
            view.canvas.scroll_by(-1)
            kept = scene.kept_sender()
            assert kept is not None
            assert not kept.strip.isEmpty()

    run(scenario)


def test_no_name_hides_the_text_of_the_only_message_of_somebody() -> None:
    senders = ("Maya", "Priya", "Tomas")
    source = MemoryPages([message(n, senders[n % 3], f"number {n}") for n in range(10, 60)])

    async def scenario() -> None:
        async with opened_view(source, height=400) as view:
            view.navigation.go_to_beginning()
            kept_pictures = 0
            for _ in range(200):
                view.canvas.scroll_by(-3)
                kept = view.scene.kept_sender()
                if kept is not None:
                    kept_pictures += 1
                    assert kept.strip.isEmpty()
            assert kept_pictures > 50

    run(scenario)


def test_a_kept_name_covers_no_part_of_a_line_only() -> None:
    """The rest of it would be read as if it were all: "gull" for "no gull"."""
    words = "the gull came back, and stood on the pier as if it had never been away"
    rows = [message(n, "Maya", words if n % 2 else "yes") for n in range(10, 40)]
    photo = FileView(name="p.png", media_type="image/png", size=9, width=300, height=200)
    rows[5] = replace(rows[5], kind=MessageKind.FILE, file=photo, text="no gull")
    source = MemoryPages(rows)

    async def scenario() -> None:
        async with opened_view(source, height=400) as view:
            view.navigation.go_to_beginning()
            scene, narrow = view.scene, 0
            for _ in range(500):
                view.canvas.scroll_by(-2)
                kept = scene.kept_sender()
                if kept is None or kept.strip.isEmpty():
                    continue
                for placed in scene.placed:
                    box = scene.box(placed.row)
                    assert isinstance(box, BubbleBox | LineBox)
                    if isinstance(box, LineBox):
                        continue
                    text = QRectF(box.body_at, QSizeF(box.body.width, box.body.height))
                    if box.body.height and text.translated(0, placed.y).intersects(kept.strip):
                        assert kept.strip.right() >= box.bubble.right()
                    picture = QRectF() if box.file is None else box.file.rect
                    inside = picture.translated(0, placed.y)
                    if inside.top() < kept.strip.top() and kept.strip.bottom() < inside.bottom():
                        narrow += 1
                        assert kept.strip.right() < box.bubble.right(), "it hides no more than that"
            assert narrow > 10

    run(scenario)


def test_words_go_out_of_sight_below_a_kept_name_and_are_under_no_second_bubble() -> None:
    """With a fill and an outline of its own it looked like an empty bubble over another one."""
    words = "the gull came back, and stood on the pier as if it had never been away"
    source = MemoryPages([message(n, "Maya", words) for n in range(10, 40)])

    async def scenario() -> None:
        async with opened_view(source, height=400) as view:
            view.navigation.go_to_beginning()
            scene, kept_names = view.scene, 0
            for _ in range(60):
                view.canvas.scroll_by(-5)
                kept = scene.kept_sender()
                if kept is None or kept.strip.isEmpty():
                    continue
                kept_names += 1
                strip = kept.strip
                name = kept.box.name_rect.translated(
                    kept.strip.topLeft() - kept.box.bubble.topLeft()
                )
                beside = QRectF(name.right() + 8, 0, 100, strip.bottom())
                assert beside.right() < kept.strip.right()
                assert inks(view, beside) == {scene.theme.canvas.name()}
            assert kept_names > 20

    run(scenario)


def test_nobody_needs_a_name_over_a_run_in_a_pair() -> None:
    source = MemoryPages([message(n, "Maya", f"number {n}") for n in range(10, 60)])

    async def scenario() -> None:
        with shown_view(source, height=400) as view:
            view.open(pair_with("Maya"))
            await settled(view)
            kept = view.scene.kept_sender()
            assert kept is not None
            assert kept.strip.isEmpty()

    run(scenario)


def inks(view: TimelineView, rect: QRectF) -> set[str]:
    """The colours in a part of what one sees."""
    image = view.viewport().grab(rect.toRect()).toImage()
    return {
        image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())
    }
