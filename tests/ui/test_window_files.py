"""Pictures and files: pasted, dropped or chosen, shown in the timeline, opened and kept."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QSize, Qt, QUrl
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from engine.api import MAX_FILE_BYTES
from engine.core.errors import StorageError
from engine.core.ids import ConversationId
from engine.events import MessageKind, MessageView
from engine.file_views import FileView
from tests.ui.driving import Key, Stage, group_stage, play, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import seen_words, spoken_rows
from ui.attachments import decode_received, prepare_file, prepare_picture
from ui.dialogs.picture_viewer import PictureViewer
from ui.list.preview import preview_of
from ui.pictures import PictureError
from ui.timeline.boxes import BubbleBox
from ui.timeline.rows import message_key

pytestmark = pytest.mark.usefixtures("qapp")


def noise(side: int) -> QImage:
    """A picture that no format makes small."""
    image = QImage(side, side, QImage.Format.Format_RGB32)
    state = 1
    for y in range(side):
        for x in range(side):
            state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
            image.setPixel(x, y, 0xFF000000 | (state & 0xFFFFFF))
    return image


def test_a_large_picture_is_made_small_enough_and_keeps_its_shape() -> None:
    picture = noise(600).scaled(2400, 1200)
    prepared = prepare_picture(picture, "pier")
    assert len(prepared.data) <= MAX_FILE_BYTES
    assert (prepared.name, prepared.media_type) == ("pier.jpg", "image/jpeg")
    assert abs(prepared.width / prepared.height - 2) < 0.02
    shown = decode_received(prepared.data, QSize(4096, 4096))
    assert shown is not None
    assert (shown.width(), shown.height()) == (prepared.width, prepared.height)


def test_nothing_but_its_pixels_travels(tmp_path: Path) -> None:
    image = QImage(64, 64, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.darkCyan)
    image.setText("Location", "53.55 N, 9.99 E")
    path = tmp_path / "secret.png"
    assert image.save(str(path), "PNG")  # type: ignore[call-overload]
    assert b"53.55" in path.read_bytes()
    assert b"53.55" not in prepare_file(path).data


def test_another_file_travels_as_it_is_if_it_is_small_enough(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"low water 10:52")
    prepared = prepare_file(path)
    assert (prepared.name, prepared.media_type, prepared.data) == (
        "notes.txt",
        "text/plain",
        b"low water 10:52",
    )
    path.write_bytes(bytes(MAX_FILE_BYTES + 1))
    with pytest.raises(PictureError, match="96 KiB"):
        prepare_file(path)
    path.write_bytes(b"")
    with pytest.raises(PictureError, match="empty"):
        prepare_file(path)
    with pytest.raises(PictureError, match="cannot be read"):
        prepare_file(tmp_path / "gone.txt")


@pytest.mark.parametrize(
    "data",
    [b"", b"GIF89a" + bytes(40), b"\x89PNG\r\n\x1a\n" + bytes(60), picture_bytes()[:80]],
)
def test_what_is_no_picture_is_not_shown(data: bytes) -> None:
    assert decode_received(data, QSize(100, 100)) is None


async def paste(it: Stage, source: QMimeData) -> None:
    box = it.window.pane.composer.box
    assert box.canInsertFromMimeData(source)
    box.insertFromMimeData(source)
    await until(it.window.pane.attachment_bar.isVisible)


def test_a_pasted_picture_goes_out_with_its_caption() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            source = QMimeData()
            source.setImageData(noise(80))
            await paste(it, source)
            it.write("the pier", on=it.window.pane.composer.box)
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: bool(engine.called("send_file")))
            sent = engine.called("send_file")[0]
            assert isinstance(sent, tuple)
            name, media_type, size, caption = sent
            assert (name, media_type, caption) == ("picture.jpg", "image/jpeg", "the pier")
            assert 0 < size <= MAX_FILE_BYTES
            assert not it.window.pane.attachment_bar.isVisible()
            await until(lambda: "Photo: the pier" in preview_of(it.listed(group)).text)
            row = list(engine.rows[group].values())[-1]
            await until(lambda: it.window.pane.timeline.scene.pictures.picture(row) is not None)

    play(scenario)


def test_a_dropped_file_needs_no_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"low water 10:52")

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            source = QMimeData()
            source.setUrls([QUrl.fromLocalFile(str(path))])
            await paste(it, source)
            assert seen_words(it.window.pane.attachment_bar) == ["notes.txt", "15 bytes"]
            assert it.window.pane.composer.send.isEnabled()
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: bool(engine.called("send_file")))
            assert engine.called("send_file") == [("notes.txt", "text/plain", 15, "")]
            await until(lambda: "File notes.txt" in spoken_rows(it.window.pane.timeline)[-1])

    play(scenario)


def test_a_long_text_follows_the_file_instead_of_being_its_caption() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            it.window.pane.attaching.take_image(noise(40))
            await until(it.window.pane.attachment_bar.isVisible)
            it.window.pane.composer.box.setPlainText("word " * 400)
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: len(engine.called("send_text")) > 1)
            sent = engine.called("send_file")[0]
            assert isinstance(sent, tuple)
            assert sent[3] == ""
            assert engine.called("send_text")[-1] == "word " * 400

    play(scenario)


def test_what_cannot_be_sent_says_why_where_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "film.bin"
    path.write_bytes(bytes(MAX_FILE_BYTES + 1))

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            it.window.pane.attaching.take_file(path)
            composer = it.window.pane.composer
            await until(lambda: any("96 KiB" in words for words in seen_words(composer)))
            assert not it.window.pane.attachment_bar.isVisible()
            assert not composer.send.isEnabled()
            assert engine.called("send_file") == []

    play(scenario)


def test_a_file_that_could_not_be_saved_comes_back_with_its_text() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            engine.fail("send_file", StorageError("The disk is full."))
            it.window.pane.attaching.take_image(noise(40))
            await until(it.window.pane.attachment_bar.isVisible)
            it.write("the pier", on=it.window.pane.composer.box)
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: it.window.pane.composer.text() == "the pier")
            assert it.window.pane.attachment_bar.isVisible()

    play(scenario)


def test_the_cross_lets_go_of_the_file() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            it.window.pane.attaching.take_image(noise(40))
            await until(it.window.pane.attachment_bar.isVisible)
            it.window.pane.attachment_bar.remove.click()
            assert not it.window.pane.attachment_bar.isVisible()
            await it.send("only words")
            assert engine.called("send_file") == []

    play(scenario)


def with_file(
    engine: ScriptedEngine, group: ConversationId, data: bytes, file: FileView
) -> MessageView:
    row = engine.row(group, member("Maya"), "")
    row = replace(row, kind=MessageKind.FILE, file=file)
    engine.file_bytes[row.message_id] = data
    engine.arrive(row)
    return row


def file_rect(it: Stage, row: MessageView) -> BubbleBox:
    scene = it.window.pane.timeline.scene
    placed = next(p for p in scene.placed if getattr(p.row, "message", None) == row)
    box = scene.box(placed.row)
    assert isinstance(box, BubbleBox)
    assert box.file is not None
    QTest.mouseClick(
        it.window.pane.timeline.viewport(),
        Qt.MouseButton.LeftButton,
        pos=box.file.rect.translated(0, placed.y).center().toPoint(),
    )
    return box


def test_a_click_on_a_picture_shows_it_large_and_escape_closes_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            data = picture_bytes(side=200)
            view = FileView(
                name="pier.png", media_type="image/png", size=len(data), width=200, height=200
            )
            row = with_file(engine, group, data, view)
            timeline = it.window.pane.timeline
            await until(lambda: timeline.scene.rect(message_key(row.message_id)) is not None)
            file_rect(it, row)
            await until(lambda: it.window.findChild(PictureViewer) is not None)
            viewer = it.window.findChild(PictureViewer)
            assert viewer is not None
            before = viewer.canvas.shown().width()
            QTest.keyClick(viewer, Key.Key_Plus)
            assert viewer.canvas.shown().width() > before
            QTest.keyClick(viewer, Key.Key_Escape)
            await until(lambda: not viewer.isVisible())

    play(scenario)


def test_a_picture_that_lies_becomes_a_card() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            view = FileView(name="pier.png", media_type="image/png", size=9, width=4000, height=3)
            row = with_file(engine, group, b"no, not a", view)
            scene = it.window.pane.timeline.scene
            await until(lambda: scene.pictures.is_broken(row.message_id))
            await until(lambda: not file_rect(it, row).file.is_picture)  # type: ignore[union-attr]

    play(scenario)


def test_a_file_is_kept_where_one_wants(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            view = FileView(name="notes.txt", media_type="text/plain", size=3)
            row = with_file(engine, group, b"abc", view)
            target = tmp_path / "kept.txt"
            it.window.pane.files.write(row, target)
            await until(target.exists)
            assert target.read_bytes() == b"abc"
            it.window.pane.files.write(row, tmp_path / "gone" / "kept.txt")
            await until(
                lambda: any("save the file" in words for words in seen_words(it.window.notices))
            )

    play(scenario)


def test_in_the_list_our_own_file_has_its_state_as_a_text_has() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, group):
            it.window.pane.attaching.take_image(noise(40))
            await until(it.window.pane.attachment_bar.isVisible)
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: preview_of(it.listed(group)).text == "Photo")
            preview = preview_of(it.listed(group))
            assert (preview.prefix, preview.glyph) == ("You: ", "saved")

    play(scenario)
