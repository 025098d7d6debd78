"""Pictures that were sent together: one grid, and each still a message of its own."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from engine.core.ids import ConversationId, MessageId, Position, UnixMs
from engine.events import MessageChanged, MessageView, ReactionView
from tests.ui.driving import Key, Stage, group_stage, play, until
from tests.ui.on_messages import bubble, focus
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import spoken_rows
from tests.ui.test_window_files import picture_view, with_file
from tests.ui.test_window_message_bar import once_hovered
from ui.dialogs.picture_viewer import PictureViewer
from ui.timeline.file_pictures import FilePictures
from ui.timeline.rows import message_key

pytestmark = pytest.mark.usefixtures("qapp")
LEFT = Qt.MouseButton.LeftButton


def sent_together(
    engine: ScriptedEngine, group: ConversationId, count: int, *, caption: str = ""
) -> list[MessageView]:
    data = picture_bytes(side=40)
    return [
        with_file(engine, group, data, picture_view(data, 40), caption if number == 0 else "")
        for number in range(count)
    ]


def tiles(it: Stage, rows: list[MessageView]) -> list[QRectF]:
    """Where each picture is drawn in the viewport; the rows are in one album."""
    found = [it.window.pane.timeline.scene.rect(message_key(row.message_id)) for row in rows]
    assert None not in found
    return [rect for rect in found if rect is not None]


async def shown(it: Stage, rows: list[MessageView], count: int) -> None:
    def in_album() -> bool:
        scene = it.window.pane.timeline.scene
        row = scene.row(message_key(rows[0].message_id))
        return row is not None and len(getattr(row, "album", ())) == count

    await until(in_album)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 10])
def test_pictures_stand_in_one_grid_that_fits_its_bubble(count: int) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, count)
            await shown(it, rows, count)
            places = tiles(it, rows)
            box, y = bubble(it, rows[0])
            whole = box.bubble.translated(0, y)
            assert all(whole.contains(place) for place in places)
            assert not any(
                one.intersects(other) for one in places for other in places if one is not other
            )
            assert max(place.right() for place in places[-2:]) == max(p.right() for p in places)
            spoken = [words for words in spoken_rows(it.window.pane.timeline) if "Photo" in words]
            told = [f"Photo, {number} of {count} in an album, " for number in range(1, count + 1)]
            assert all(words in said for words, said in zip(told, spoken, strict=True))

    play(scenario)


@pytest.mark.parametrize("size", [(1, 780), (1020, 1), (2, 2), (1020, 780), (1, 1)])
def test_a_picture_takes_no_more_than_its_place_whatever_its_shape(size: tuple[int, int]) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, 2)
            await shown(it, rows, 2)
            picture = QImage(*size, QImage.Format.Format_RGB32)
            picture.fill(Qt.GlobalColor.red)
            pictures = FilePictures()
            pictures.give(rows[0], picture)
            pixmap = pictures.pixmap(rows[0], QSizeF(70, 60), 2.0, cover=True)
            assert pixmap is not None
            assert pixmap.size() == QSize(140, 120)
            image = pixmap.toImage()
            corners = [(0, 0), (139, 0), (0, 119), (139, 119), (70, 60)]
            assert {image.pixelColor(*at).name() for at in corners} == {"#ff0000"}

    play(scenario)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_bar_stands_on_the_picture_under_the_mouse_and_on_no_other(count: int) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, count)
            await shown(it, rows, count)
            timeline = it.window.pane.timeline
            bar, key = timeline.interaction.hover_bar, message_key(rows[0].message_id)
            await until(lambda: timeline.scene.rect(key) is not None)
            for row in rows:
                places: list[QRectF] = []

                def look(row: MessageView = row, places: list[QRectF] = places) -> None:
                    rect = timeline.scene.rect(message_key(row.message_id))
                    places[:] = [QRectF(bar.geometry()), rect or QRectF()]

                await once_hovered(timeline, row.message_id, look)
                place, picture = places
                assert picture.contains(place)

    play(scenario)


def test_a_click_shows_the_picture_under_it_and_arrows_lead_through_the_album() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, 3, caption="low water")
            await shown(it, rows, 3)
            middle = tiles(it, rows)[1].center()
            viewport = it.window.pane.timeline.viewport()
            QTest.mouseClick(viewport, LEFT, pos=middle.toPoint())
            viewer = await viewer_of(it)
            assert viewer.message is not None
            assert viewer.message.message_id == rows[1].message_id
            it.press(Key.Key_Right, on=viewer)
            await until(
                lambda: (
                    viewer.message is not None and viewer.message.message_id == rows[2].message_id
                )
            )
            assert not viewer.after.isEnabled()
            viewer.close()

    play(scenario)


def test_a_viewer_that_is_closed_before_the_next_picture_is_there_stays_closed() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, 2)
            await shown(it, rows, 2)
            await focus(it, rows[0])
            it.press(Key.Key_Return, on=it.window.pane.timeline)
            viewer = await viewer_of(it)
            await until(lambda: viewer.message is not None)
            it.press(Key.Key_Right, on=viewer)
            it.press(Key.Key_Escape, on=viewer)
            await it.window.tasks.settle()
            assert not any(each.isVisible() for each in it.window.findChildren(PictureViewer))

    play(scenario)


async def viewer_of(it: Stage) -> PictureViewer:
    await until(lambda: bool(it.window.findChildren(PictureViewer)))
    return it.window.findChildren(PictureViewer)[0]


def test_keys_walk_from_picture_to_picture() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, 4)
            await shown(it, rows, 4)
            for row, place in zip(rows, tiles(it, rows), strict=True):
                await focus(it, row)
                scene = it.window.pane.timeline.scene
                assert scene.rect(scene.focus_key or "") == place

    play(scenario)


def test_what_is_reacted_to_or_said_later_stands_by_itself() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, 4)
            await shown(it, rows, 4)
            liked = replace(rows[1], reactions=(ReactionView(emoji="👍", count=1, names=("Luc",)),))
            engine.tell(MessageChanged(message=liked))
            await shown(it, rows[2:], 2)
            await until(lambda: bubble(it, liked)[0].file is not None)
            assert not bubble(it, liked)[0].album

    play(scenario)


def test_pictures_of_two_occasions_are_two_albums() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = sent_together(engine, group, 2)
            later = replace(
                rows[1],
                sent_ms=UnixMs(rows[1].sent_ms + 120_000),
                position=Position(rows[1].position.lamport_timestamp + 1, MessageId("later")),
            )
            engine.file_bytes[later.message_id] = engine.file_bytes[rows[1].message_id]
            engine.arrive(later, notify=False)
            await shown(it, rows, 2)
            box, _y = bubble(it, later)
            assert box.file is not None

    play(scenario)
