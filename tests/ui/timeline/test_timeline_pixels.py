"""Where the ink really is: the timeline is drawn at the scales of real screens and measured."""

import pytest
from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from engine.core.ids import DeliveryState
from tests.ui.timeline.timeline_stage import (
    MemoryPages,
    at,
    delivery,
    message,
    opened_view,
    run,
)
from ui.theme import ThemeMode, current_theme, set_theme
from ui.timeline.boxes import BubbleBox
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")
SCALES = (1.0, 1.5, 2.0)
_FAINT = 60
"""Of 255: less of a difference is the soft edge of a letter."""


def drawn(view: TimelineView, scale: float) -> QImage:
    """The view as a screen of this scale shows it."""
    image = QImage(view.viewport().size() * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    painter = QPainter(image)
    view.viewport().render(painter, QPoint(0, 0))
    painter.end()
    return image


def lowest_ink(image: QImage, area: QRectF, ground: QColor) -> float:
    """The lower edge of what is drawn inside ``area`` on ``ground``, in logical pixels."""
    scale = image.devicePixelRatio()
    rows = range(int(area.top() * scale), int(area.bottom() * scale))
    columns = range(int(area.left() * scale), int(area.right() * scale))
    inked = [
        row
        for row in rows
        if any(_differs(image.pixelColor(column, row), ground) for column in columns)
    ]
    return (inked[-1] + 1) / scale


def _differs(colour: QColor, ground: QColor) -> bool:
    return abs(colour.lightness() - ground.lightness()) > _FAINT


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("percent", [100, 150])
def test_the_time_stands_on_the_line_of_the_text(
    qapp: QApplication, scale: float, percent: int
) -> None:
    own = message(
        10,
        "Ines",
        "LILI",
        sent_ms=at(14, 11),
        delivery=delivery(DeliveryState.HELD, 5),
    )

    async def scenario() -> None:
        set_theme(qapp, ThemeMode.LIGHT, text_percent=percent)
        try:
            async with opened_view(MemoryPages([own])) as view:
                placed = view.scene.placed[-1]
                box = view.scene.box(placed.row)
                assert isinstance(box, BubbleBox)
                image, theme = drawn(view, scale), current_theme()
                text = QRectF(box.body_at.x(), placed.y + box.body_at.y(), box.body.width, 0)
                text.setHeight(box.body.height)
                time = box.meta.rect.translated(0, placed.y)
                time.setRight(time.left() + 26)
                gap = lowest_ink(image, time, theme.own) - lowest_ink(image, text, theme.own)
                assert abs(gap) <= 1 / scale + 0.01
                assert time.left() > text.right()
        finally:
            set_theme(qapp, ThemeMode.LIGHT)

    run(scenario)


def test_a_bubble_of_one_line_is_as_high_as_its_line_padding_and_outline() -> None:
    async def scenario() -> None:
        async with opened_view(MemoryPages([message(10, "Ines", "one line")])) as view:
            box = view.scene.box(view.scene.placed[-1].row)
            assert isinstance(box, BubbleBox)
            image = drawn(view, 1.0)
            x = int(box.bubble.center().x()) - 3
            top = round(view.scene.placed[-1].y + box.bubble.top())
            rows = range(top - 8, image.height())
            canvas = current_theme().canvas
            high = sum(image.pixelColor(x, row) != canvas for row in rows)
            assert high == 34

    run(scenario)
