"""Rows of the inspector: what is painted when more becomes known, and what has no room."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtWidgets import QApplication, QWidget

from engine.core.ids import UnixMs
from engine.events import (
    MessageChanged,
)
from engine.inspection_views import Occasion
from tests.ui.driving import NOW, heard, turn, until
from tests.ui.driving import play as played
from tests.ui.inspector_stage import holders_named, looking, opened
from tests.ui.scripted_inspection import SENT_MS, copy
from ui.dialogs.holders import HolderRow
from ui.foreign_text import one_line
from ui.inspector.panel import InspectorPanel
from ui.inspector.parts import StepRow
from ui.times import spoken_time

pytestmark = pytest.mark.usefixtures("qapp")


class PaintedRows(QObject):
    """Which rows of the panel were painted from now on, and whether each had the room it needs."""

    def __init__(self, panel: InspectorPanel) -> None:
        super().__init__(panel)
        self.rows: list[QWidget] = []
        self.squeezed: list[str] = []
        app = QApplication.instance()
        assert app is not None
        app.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint and isinstance(watched, StepRow | HolderRow):
            self.rows.append(watched)
            needed = watched.heightForWidth(watched.width())
            if watched.height() < max(needed, watched.minimumHeight()):
                self.squeezed.append(watched.accessibleName())
        return False


def test_a_holder_without_a_time_leaves_no_room_for_one() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):
            engine.inspected.change = lambda found: replace(found, is_own=False)
            panel = await opened(it)
            (tomas,) = holders_named(panel, "Tomas: no sign")
            assert tomas.mark_box.right() == tomas.width()
            (luc,) = holders_named(panel, "Luc: holds it")
            assert luc.mark_box.right() < luc.width()

    played(scenario)


def test_a_new_step_moves_those_below_it_without_squeezing_or_painting_them() -> None:
    """Else each look at a message on its way is seen as a jerk, and costs two frames' time."""

    async def scenario() -> None:
        async with looking() as (it, engine, _group, own):
            panel = await opened(it)
            await turn()
            luc = holders_named(panel, "Luc")[0]
            before = luc.mapTo(panel, QPoint(0, 0)).y()
            engine.inspected.change = lambda found: replace(
                found,
                copies=(*found.copies, copy(3, Occasion.UNACKNOWLEDGED, after_ms=30_000)),
            )
            painted = PaintedRows(panel)
            shown = heard(it.window.inspector.shown)
            engine.tell(MessageChanged(message=own))
            await shown
            await until(lambda: bool(painted.rows))
            await turn()
            assert luc.mapTo(panel, QPoint(0, 0)).y() > before
            assert painted.squeezed == []
            assert luc not in painted.rows

    played(scenario)


def test_what_is_cut_off_of_a_holder_is_in_its_tip() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):
            name = "Somebody with a name that nobody has room for beside a mark and a time"
            engine.inspected.change = lambda found: replace(
                found, holders=(replace(found.holders[0], name=name), found.holders[2])
            )
            panel = await opened(it)
            (cut,) = holders_named(panel, "Somebody")
            assert cut.tip_at(QPoint(60, 4)) == one_line(name, 60)
            assert cut.tip_at(QPoint(60, cut.height() - 4)) == "", "it has room"
            (tomas,) = holders_named(panel, "Tomas")
            assert tomas.tip_at(tomas.rect().center()) == ""

    played(scenario)


def test_of_days_ago_a_holder_bears_the_day_and_the_tip_the_time() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):
            long_ago = UnixMs(SENT_MS - 3 * 86_400_000)
            engine.inspected.change = lambda found: replace(
                found, holders=(replace(found.holders[0], since_ms=long_ago),)
            )
            (luc,) = holders_named(await opened(it), "Luc: holds it")
            at_the_end = QPoint(luc.width() - 4, luc.height() // 2)
            assert luc.tip_at(at_the_end) == spoken_time(long_ago, NOW)
            assert luc.accessibleName().endswith(spoken_time(long_ago, NOW))
            assert luc.mark_box.left() > luc.width() / 2, "so that the name has room"

    played(scenario)
