"""Scrolling moves what is painted, and leaves the same picture as painting everything."""

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QRect
from PySide6.QtGui import QImage, QPaintEvent

from engine.core.ids import DeliveryState, MessageId
from engine.events import MessageView
from tests.ui.driving import move_mouse
from tests.ui.timeline.timeline_stage import (
    NOW,
    MemoryPages,
    chatter,
    delivery,
    message,
    opened_view,
    run,
    settled,
)
from ui.timeline.rows import MessageRow
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")


class Painted(QObject):
    """Which lines of the viewport its paint events were about."""

    def __init__(self, view: TimelineView) -> None:
        super().__init__(view)
        self.lines: set[int] = set()
        self._whole = view.viewport().rect()
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            region, width = event.region(), self._whole.width()
            height = range(self._whole.height())
            self.lines |= {y for y in height if region.intersects(QRect(0, y, width, 1))}
        return super().eventFilter(watched, event)


def on_screen(view: TimelineView) -> QImage:
    """What stands on the screen, once everything that was asked for is painted."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.UpdateRequest.value)
    whole = view.screen().grabWindow(view.window().winId()).toImage()
    return whole.convertToFormat(QImage.Format.Format_RGB32)


def painted_anew(view: TimelineView) -> QImage:
    view.window().update()
    view.viewport().repaint()
    return on_screen(view)


def assert_same(view: TimelineView, what: object) -> None:
    moved = on_screen(view)
    assert moved == painted_anew(view), what


@pytest.mark.parametrize("height", [640, 331])
def test_whatever_is_scrolled_the_picture_is_that_of_painting_everything(height: int) -> None:
    source = MemoryPages(chatter(400))

    async def scenario() -> None:
        async with opened_view(source, height=height) as view:
            on_screen(view)
            for down in (160, 160, 7, 0.4, 33.6, 300, -5, -64, 1, 900, -250, 2_000, 160, -40):
                view.canvas.scroll_by(down)
                assert_same(view, down)
                await settled(view)
                assert_same(view, (down, "and the page"))
            for _ in range(40):
                view.canvas.scroll_by(-400)
            await settled(view)
            assert_same(view, "the newest")
            view.navigation.go_to_beginning()
            await settled(view)
            for down in (-30, 20, 20, 20):
                view.canvas.scroll_by(down)
                assert_same(view, ("the beginning", down))

    run(scenario)


def test_scrolling_paints_what_comes_into_view() -> None:
    source = MemoryPages(chatter(400))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(500)
            on_screen(view)
            painted, most = Painted(view), view.viewport().height() * 0.4
            view.canvas.scroll_by(60)
            on_screen(view)
            assert 0 < len(painted.lines) < most
            painted.lines.clear()
            view.navigation.reload()
            await settled(view)
            on_screen(view)
            assert len(painted.lines) < most, "a page with the same messages changes nothing"

    run(scenario)


def test_what_stands_over_the_rows_does_not_move_with_them() -> None:
    """Chip and button, the bar at the message under the mouse, a long run's name."""
    source = MemoryPages([message(n, "Maya", f"number {n}") for n in range(10, 300)])

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(3_000)
            await settled(view)
            late = replace(message(600, "Luc", "late"), late=True)
            view.add(replace(late, position=replace(late.position, lamport_timestamp=299)))
            await move_mouse(view.viewport(), QPoint(300, 300))
            for down in (20, 20, -35, 90, 3):
                view.canvas.scroll_by(down)
                assert_same(view, down)
            view.enter_at(message(299, "Maya").position)
            for down in (-3, 20, 40, -300, 260):
                view.canvas.scroll_by(down)
                assert_same(view, ("with the keys at a message", down))

    run(scenario)


@pytest.mark.parametrize("up", [0, 3_000])
def test_what_comes_leaves_the_same_picture_as_painting_everything(up: int) -> None:
    """Below what one reads it paints next to nothing."""
    source = MemoryPages([message(n, "Maya", f"number {n}") for n in range(10, 300)])

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(up)
            await settled(view)
            on_screen(view)
            painted = Painted(view)
            for number in range(300, 340, 2):
                view.add(message(number, "Luc", "one"), message(number + 1, "Maya", "another"))
                view.updates.show_changes()
                on_screen(view)
                assert not up or len(painted.lines) < view.viewport().height() * 0.4
                assert_same(view, number)
                painted.lines.clear()
            first = view.scene.placed[1].row
            assert isinstance(first, MessageRow)
            place = replace(first.message.position, message_id=MessageId("late"))
            view.add(replace(message(900, "Luc", "late"), late=True, position=place))
            view.updates.show_changes()
            assert_same(view, "between others")

    run(scenario)


def test_what_is_sent_and_answered_paints_only_the_newest_rows() -> None:
    """A run goes on, and its last row looks different then: it is not all there is to paint."""
    source = MemoryPages([message(n, "Maya", f"number {n}") for n in range(10, 300)])

    async def scenario() -> None:
        async with opened_view(source) as view:
            painted, most = Painted(view), view.viewport().height() * 0.5
            for number in range(300, 310, 2):
                own = message(number, "Ines", "mine", delivery=delivery(DeliveryState.SAVED))
                sent = replace(own, delivery=delivery(DeliveryState.SENT, 2))
                answer = message(number + 1, "Maya", "yours")
                for say in (view.add, own), (view.change, sent), (view.add, answer):
                    on_screen(view)
                    painted.lines.clear()
                    _tell(view, *say)
                    on_screen(view)
                    assert 0 < len(painted.lines) < most, say
                    assert_same(view, say)

    run(scenario)


@pytest.mark.parametrize("up", [0, 700])
def test_what_changes_leaves_the_same_picture_as_painting_everything(up: int) -> None:
    """A text grows, shrinks or goes, in view or not, at the mouse, with the keys or chosen."""
    source = MemoryPages(chatter(60))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(up)
            await settled(view)
            await move_mouse(view.viewport(), QPoint(300, 300))
            chance = random.Random(up)
            view.enter_at(source.messages[-3].position)
            for turn in range(80):
                one = chance.choice(source.messages[-30:])
                text = "word " * chance.randrange(1, 60)
                changed = replace(one, text=text, spans=(), edited_ms=chance.choice((None, NOW)))
                _tell(view, view.change, changed)
                assert_same(view, (turn, one.message_id))
                if turn % 20 == 0:
                    view.remove(chance.choice(source.messages[-30:]).message_id)
                    view.updates.show_changes()
                    assert_same(view, (turn, "one less"))

    run(scenario)


def _tell(view: TimelineView, tell: Callable[[MessageView], None], told: MessageView) -> None:
    tell(told)
    view.updates.show_changes()
