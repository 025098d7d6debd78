"""The picture viewer, which lies on the window: its keys, its zoom and its focus."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from engine.core.ids import ConversationId, MessageId
from engine.events import MessageKind, MessageView
from engine.file_views import FileView
from tests.ui.driving import Key, Stage, group_stage, play, turn, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.scripted_people import picture_bytes
from ui.dialogs.picture_viewer import PictureCanvas, PictureViewer

pytestmark = pytest.mark.usefixtures("qapp")


def with_picture(
    engine: ScriptedEngine, group: ConversationId, side: int, words: str = ""
) -> MessageView:
    data = picture_bytes(side=side)
    file = FileView(
        name=f"{side}.png", media_type="image/png", size=len(data), width=side, height=side
    )
    row = replace(engine.row(group, member("Maya"), words), kind=MessageKind.FILE, file=file)
    engine.file_bytes[row.message_id] = data
    engine.arrive(row, notify=False)
    return row


@asynccontextmanager
async def looking(*sides: int) -> AsyncIterator[tuple[Stage, PictureViewer, list[MessageView]]]:
    """Pictures so large each, and the viewer open at the first, from the composer."""
    async with group_stage() as (it, engine, group):
        rows = [with_picture(engine, group, side) for side in sides]
        it.window.pane.composer.box.setFocus()
        it.window.pane.files.open(rows[0])
        await until(lambda: it.window.findChild(PictureViewer) is not None)
        viewer = it.window.findChild(PictureViewer)
        assert viewer is not None
        await until(lambda: viewer.message is not None)
        yield it, viewer, rows
        if it.window.findChild(PictureViewer) is not None:
            viewer.reject()


def picture(width: int, height: int) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.darkCyan)
    return image


def test_a_closed_viewer_keeps_no_picture() -> None:
    """Whoever still knows the viewer, as the garbage collector does for minutes."""

    async def scenario() -> None:
        async with looking(40) as (_, viewer, _):
            canvas = viewer.canvas
            assert not canvas.shown().isEmpty()
            viewer.reject()
            assert canvas.shown().isEmpty(), "there is a picture to be painted"

    play(scenario)


def test_to_a_screen_reader_it_is_a_picture_with_its_sender() -> None:
    async def scenario() -> None:
        async with looking(40, 60) as (it, viewer, rows):
            spoken = spoken_of(viewer)
            it.press(Key.Key_Right, on=viewer)
            await until(lambda: shown_in(viewer) == rows[1].message_id)
            assert spoken_of(viewer) == spoken, "it is the same for the next picture"
            own = replace(rows[1], is_own=True)
            viewer.show_picture(own, picture(9, 9), b"", before=True, after=False)
            assert viewer.windowTitle().startswith("Your photo, ")
            assert own.file is not None
            moving = replace(own, file=replace(own.file, media_type="image/gif"))
            viewer.show_picture(moving, picture(9, 9), b"", before=True, after=False)
            assert viewer.windowTitle().startswith("Your GIF, ")
            assert spoken.text(QAccessible.Text.Name).startswith("Your GIF, ")
            theirs = replace(moving, is_own=False)
            viewer.show_picture(theirs, picture(9, 9), b"", before=True, after=False)
            assert spoken.text(QAccessible.Text.Name).startswith("GIF from Maya, ")
            known_as = QAccessible.uniqueId(spoken)
            viewer.reject()
            await until(lambda: not isValid(viewer))
            assert not isValid(spoken), "Qt deleted it with its canvas"
            assert QAccessible.accessibleInterface(known_as) is None

    play(scenario)


def spoken_of(viewer: PictureViewer) -> QAccessibleInterface:
    spoken = QAccessible.queryAccessibleInterface(viewer.canvas)
    assert spoken.role() == QAccessible.Role.Graphic
    assert spoken.text(QAccessible.Text.Name).startswith("Photo from Maya")
    assert spoken.rect().size() == viewer.canvas.size()
    return spoken


def shown_in(viewer: PictureViewer) -> MessageId | None:
    return None if viewer.message is None else viewer.message.message_id


def inside(viewer: QWidget, window: QWidget) -> bool:
    corner = viewer.mapTo(window, QPoint(0, 0))
    return window.rect().contains(viewer.rect().translated(corner))


def test_it_lies_in_the_window_and_follows_its_size() -> None:
    async def scenario() -> None:
        async with looking(200) as (it, viewer, _rows):
            assert viewer.window() is it.window
            for size in ((1280, 820), (420, 640), (900, 700)):
                it.window.resize(*size)
                await until(lambda size=size: it.window.width() == size[0])  # type: ignore[misc]
                await until(lambda: inside(viewer, it.window))
                assert viewer.width() > it.window.width() * 0.9
                buttons = (viewer.before, viewer.after, viewer.smaller, viewer.larger, viewer.keep)
                assert all(inside(button, viewer) for button in (*buttons, viewer.shut))

    play(scenario)


def test_keys_work_whatever_has_the_focus_and_escape_gives_it_back() -> None:
    async def scenario() -> None:
        async with looking(20, 40, 60) as (it, viewer, rows):
            focused = set[QWidget | None]()
            at, step = 0, 1
            for _each in range(12):
                focused.add(QApplication.focusWidget())
                if not 0 <= at + step < len(rows):
                    step = -step
                at += step
                it.press(Key.Key_Right if step > 0 else Key.Key_Left)
                wanted = rows[at].message_id
                await until(lambda wanted=wanted: shown_in(viewer) == wanted)  # type: ignore[misc]
                before = viewer.canvas.zoom
                it.press(Key.Key_Plus)
                assert viewer.canvas.zoom > before
                it.press(Key.Key_0)
                assert viewer.canvas.zoom == 1
                it.press(Key.Key_Tab)
            assert {viewer.canvas, viewer.keep, viewer.shut, viewer.larger} <= focused
            assert all(viewer.isAncestorOf(each) for each in focused if each is not None)
            it.press(Key.Key_Escape)
            await until(lambda: it.window.findChild(PictureViewer) is None)
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


def test_keys_that_come_faster_than_pictures_lead_as_far_as_they_were_pressed() -> None:
    async def scenario() -> None:
        async with looking(20, 40, 60, 80) as (it, viewer, rows):
            seen = list[MessageId | None]()
            viewer.canvas.zoomed.connect(lambda: seen.append(shown_in(viewer)))
            for _each in range(3):
                it.press(Key.Key_Right, on=viewer)
            await until(lambda: shown_in(viewer) == rows[3].message_id)
            await it.window.tasks.settle()
            assert shown_in(viewer) == rows[3].message_id
            assert set(seen) == {rows[3].message_id}, "those between are not decoded to be shown"
            it.press(Key.Key_Left, on=viewer)
            await until(lambda: shown_in(viewer) == rows[2].message_id)

    play(scenario)


def test_what_was_written_with_a_picture_stands_apart_from_its_time() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = [with_picture(engine, group, 20, words) for words in ("", "Low water")]
            it.window.pane.files.open(rows[0])
            await until(lambda: it.window.findChild(PictureViewer) is not None)
            viewer = it.window.findChild(PictureViewer)
            assert viewer is not None
            await until(lambda: shown_in(viewer) == rows[0].message_id)
            assert viewer.canvas.accessibleName() == viewer.accessibleName()
            it.press(Key.Key_Right)
            await until(lambda: shown_in(viewer) == rows[1].message_id)
            assert viewer.canvas.accessibleName() == f"{viewer.accessibleName()} · Low water"
            viewer.reject()

    play(scenario)


def test_no_key_of_the_window_below_does_anything() -> None:
    async def scenario() -> None:
        async with looking(20) as (it, viewer, _rows):
            it.press(Key.Key_N, Qt.KeyboardModifier.ControlModifier)
            await turn()
            assert it.window.flows.sheet is None
            assert viewer.isVisible()

    play(scenario)


def test_what_is_under_the_pointer_stays_there_while_one_zooms() -> None:
    canvas = PictureCanvas()
    canvas.resize(400, 300)
    canvas.show_image(picture(800, 600))
    at = QPointF(100, 100)

    def under() -> tuple[float, float]:
        shown = canvas.shown()
        return (at.x() - shown.x()) / shown.width(), (at.y() - shown.y()) / shown.height()

    before = under()
    for _notch in range(4):
        wheel(canvas, at, 120)
    assert canvas.zoom > 2
    assert under() == pytest.approx(before)
    assert canvas.percent() == round(100 * canvas.shown().width() / 800)


def wheel(canvas: QWidget, at: QPointF, turned: int) -> None:
    no_keys, phase = Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(
        at, at, QPoint(), QPoint(0, turned), Qt.MouseButton.NoButton, no_keys, phase, False
    )
    QApplication.sendEvent(canvas, event)


def test_a_picture_that_is_near_is_dragged_no_further_than_its_edge() -> None:
    canvas = PictureCanvas()
    canvas.resize(400, 300)
    canvas.show_image(picture(800, 600))
    canvas.zoom_by(3)
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(10, 10))
    QTest.mouseMove(canvas, QPoint(5000, 4000))
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(390, 290))
    assert (canvas.shown().x(), canvas.shown().y()) == (0, 0)
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(200, 150))
    assert canvas.shown() == canvas.rect()
