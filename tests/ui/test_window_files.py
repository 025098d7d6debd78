"""Pictures and files: pasted, dropped or chosen, shown in the timeline, opened and kept."""

import struct
import zlib
from pathlib import Path
from zlib import crc32

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QPointF, QSize, QSizeF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.api import MAX_FILE_BYTES, MAX_READ_BYTES
from engine.core.errors import StorageError
from engine.core.ids import ConversationId
from engine.events import MessageKind, MessageView
from engine.file_views import FileView
from tests.ui.driving import Key, Stage, group_stage, play, until
from tests.ui.on_messages import ask_by_menu, in_view, last_row, notice_button
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import seen_words, sheet_of, spoken_rows, words_of
from ui.attachments import decode_received, moves, prepare_file, prepare_picture
from ui.dialogs.forward import Forward
from ui.dialogs.picture_viewer import PictureViewer
from ui.list.preview import preview_of
from ui.pictures import MAX_FILE_PIXELS, PictureError
from ui.timeline.boxes import BubbleBox
from ui.timeline.rows import message_key
from ui.window.attaching import MAX_TOGETHER

pytestmark = pytest.mark.usefixtures("qapp")
LEFT = Qt.MouseButton.LeftButton
ROOM = QSizeF(340, 260)
NO_KEYS = Qt.KeyboardModifier.NoModifier


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


def test_a_picture_of_a_screen_loses_nothing_and_one_of_a_camera_is_smaller() -> None:
    screen = QImage(400, 300, QImage.Format.Format_RGB32)
    screen.fill(Qt.GlobalColor.white)
    for x in range(20, 380, 3):
        for y in range(100, 110):
            screen.setPixel(x, y, 0xFF202020)
    prepared = prepare_picture(screen, "shot")
    assert (prepared.name, prepared.media_type) == ("shot.png", "image/png")
    shown = decode_received(prepared.data, QSize(4096, 4096))
    assert shown is not None
    assert shown.convertToFormat(screen.format()) == screen
    screen.setText("Location", "53.55 N, 9.99 E")
    assert prepare_picture(screen, "shot").data == prepared.data
    assert prepare_picture(noise(100), "pier").media_type == "image/jpeg"


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
    with pytest.raises(PictureError, match="96 kB"):
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


def blank_png(width: int, height: int, *, depth: int, kind: int, samples: int) -> bytes:
    """A few kilobytes that become very many pixels.  ``kind``: PNG's type of colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))

    row = bytes(1 + width * depth * samples // 8)
    packing = zlib.compressobj(1)
    packed = b"".join(packing.compress(row) for _ in range(height)) + packing.flush()
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def test_a_picture_of_more_pixels_than_may_be_shown_is_not_decoded() -> None:
    """One bit each: it would fit into the memory, and keep the processor busy."""
    shown = blank_png(800, 100, depth=1, kind=0, samples=1)
    assert decode_received(shown, QSize(100, 100)) is not None
    bomb = blank_png(8_000, MAX_FILE_PIXELS // 8_000 + 1, depth=1, kind=0, samples=1)
    assert len(bomb) < 100_000
    assert decode_received(bomb, QSize(100, 100)) is None


def test_a_picture_of_more_memory_than_may_be_used_is_not_decoded() -> None:
    """Eight bytes for each pixel, and no more pixels than may be shown."""
    bomb = blank_png(8_000, 3_500, depth=16, kind=6, samples=4)
    assert MAX_FILE_PIXELS > 8_000 * 3_500
    assert decode_received(bomb, QSize(100, 100)) is None


def test_a_picture_of_more_bytes_than_are_read_is_not_decoded() -> None:
    data = picture_bytes()
    assert decode_received(data, QSize(100, 100)) is not None
    assert decode_received(data + bytes(MAX_READ_BYTES), QSize(100, 100)) is None


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
            await until(
                lambda: it.window.pane.timeline.scene.pictures.pixmap(row, ROOM, 1.0) is not None
            )

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
    path.touch()

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            it.window.pane.attaching.take_files([path])
            composer = it.window.pane.composer
            await until(lambda: any("is empty" in words for words in seen_words(composer)))
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
            it.window.pane.attachment_bar.items[0].remove.click()
            assert not it.window.pane.attachment_bar.isVisible()
            await it.send("only words")
            assert engine.called("send_file") == []

    play(scenario)


def moving_gif(side: int = 40) -> bytes:
    """Two pictures, red and blue, one after the other for ever."""
    screen = side.to_bytes(2, "little") * 2
    colours = b"\xff\x00\x00" + b"\x00\x00\xff"
    loop = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
    data = b"GIF89a" + screen + b"\x80\x00\x00" + colours + loop
    for colour in (0, 1):
        codes = _lzw_of_one_colour(colour, side * side)
        data += b"\x21\xf9\x04\x00\x05\x00\x00\x00" + b"\x2c" + bytes(4) + screen + b"\x00\x02"
        for first in range(0, len(codes), 255):
            block = codes[first : first + 255]
            data += bytes([len(block)]) + block
        data += b"\x00"
    return data + b"\x3b"


def _lzw_of_one_colour(colour: int, pixels: int) -> bytes:
    """Codes of three bits, cleared before they would need a fourth; of an even number of pixels."""
    clear, end = 4, 5
    low_bit_first = {code: f"{code:03b}"[::-1] for code in (colour, clear, end)}
    two = "".join(low_bit_first[code] for code in (clear, colour, colour))
    bits = two * (pixels // 2) + low_bit_first[end]
    return int(bits[::-1], 2).to_bytes((len(bits) + 7) // 8, "little")


def with_file(
    engine: ScriptedEngine, group: ConversationId, data: bytes, file: FileView, text: str = ""
) -> MessageView:
    row = engine.row(group, member("Maya"), text)
    row = replace(row, kind=MessageKind.FILE, file=file)
    engine.file_bytes[row.message_id] = engine.blobs.data[row.message_id] = data
    engine.arrive(row)
    return row


def picture_view(data: bytes, side: int) -> FileView:
    return FileView(name="p.png", media_type="image/png", size=len(data), width=side, height=side)


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


def test_the_arrows_lead_through_the_pictures_of_the_conversation() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = []
            for side in (20, 40, 60):
                data = picture_bytes(side=side)
                rows.append(with_file(engine, group, data, picture_view(data, side)))
                engine.receive(group, "Maya", f"that was {side}")
            await until(lambda: in_view(it, rows[1]))
            file_rect(it, rows[1])
            await until(lambda: it.window.findChild(PictureViewer) is not None)
            viewer = it.window.findChild(PictureViewer)
            assert viewer is not None

            def shows(row: MessageView) -> bool:
                return viewer.message is not None and viewer.message.message_id == row.message_id

            await until(lambda: shows(rows[1]))
            it.press(Key.Key_Right, on=viewer)
            await until(lambda: shows(rows[2]))
            assert not viewer.after.isEnabled()
            it.press(Key.Key_Right, on=viewer)
            for row in (rows[1], rows[0]):
                it.press(Key.Key_Left, on=viewer)
                await until(lambda row=row: shows(row))  # type: ignore[misc]
            assert viewer.before.accessibleName() == "Picture before"
            assert not viewer.before.isEnabled()
            viewer.reject()

    play(scenario)


def test_a_gif_stands_still_until_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "wave.gif"
    path.write_bytes(moving_gif())
    prepared = prepare_file(path)
    assert (prepared.media_type, prepared.data) == ("image/gif", moving_gif())
    assert (prepared.width, prepared.height) == (40, 40)

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            view = FileView(
                name="wave.gif", media_type="image/gif", size=prepared.size, width=40, height=40
            )
            row = with_file(engine, group, prepared.data, view)
            pictures = it.window.pane.timeline.scene.pictures
            await until(lambda: pictures.pixmap(row, ROOM, 1.0) is not None)
            assert "GIF" in spoken_rows(it.window.pane.timeline)[-1]
            file_rect(it, row)
            await until(lambda: it.window.findChild(PictureViewer) is not None)
            viewer = it.window.findChild(PictureViewer)
            assert viewer is not None
            await until(lambda: viewer.canvas.moves)
            colours = set[int]()

            def both_were_shown() -> bool:
                colours.add(viewer.canvas.grab().toImage().pixel(viewer.canvas.rect().center()))
                return {0xFFFF0000, 0xFF0000FF} <= colours

            await until(both_were_shown)
            viewer.reject()
            assert not viewer.canvas.moves

    play(scenario)


def test_a_gif_that_is_damaged_or_too_large_does_not_move() -> None:
    assert moves(moving_gif())
    assert not moves(moving_gif()[:60])
    assert not moves(moving_gif(side=1200))
    assert not moves(b"GIF89a")


def test_several_files_go_out_one_after_another_and_one_can_be_left_out(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.txt" for name in ("a", "b", "c")]
    for path in paths:
        path.write_bytes(path.name.encode())

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            pane = it.window.pane
            source = QMimeData()
            source.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
            middle = QPointF(pane.timeline.rect().center())
            for event in (
                QDragEnterEvent(middle.toPoint(), Qt.DropAction.CopyAction, source, LEFT, NO_KEYS),
                QDropEvent(middle, Qt.DropAction.CopyAction, source, LEFT, NO_KEYS),
            ):
                QApplication.sendEvent(pane, event)
                assert event.isAccepted()
                assert pane.drop_hint.isVisible() is isinstance(event, QDragEnterEvent)
            await until(lambda: len(pane.attachment_bar.items) == len(paths))
            for item in pane.attachment_bar.items:
                assert item.visibleRegion().boundingRect().height() >= item.sizeHint().height()
            pane.attachment_bar.items[1].remove.click()
            it.write("both", on=pane.composer.box)
            it.press(Key.Key_Return, on=pane.composer.box)
            await until(lambda: len(engine.called("send_file")) > 1)
            assert engine.called("send_file") == [
                ("a.txt", "text/plain", 5, "both"),
                ("c.txt", "text/plain", 5, ""),
            ]
            assert pane.attaching.files == ()

    play(scenario)


def test_more_files_than_go_out_at_once_are_refused_in_words(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.txt" for number in range(MAX_TOGETHER + 2)]
    for path in paths:
        path.write_bytes(b"x")

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.pane.attaching.take_files(paths)
            composer = it.window.pane.composer
            await until(lambda: any("At most 10" in words for words in seen_words(composer)))
            assert len(it.window.pane.attaching.files) == MAX_TOGETHER

    play(scenario)


def test_a_file_is_forwarded_with_its_caption_and_never_to_an_open_channel() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            other = engine.add_group("Book Circle")
            data = picture_bytes(side=40)
            row = with_file(engine, group, data, picture_view(data, 40), "low water")
            await ask_by_menu(it, row, "Forward…")
            sheet = await sheet_of(it.window, Forward)
            assert "Photo: low water" in words_of(sheet)
            sheet.choose(other)
            sheet.confirm.click()
            await until(lambda: bool(engine.called("send_file")))
            assert engine.called("send_file") == [("p.png", "image/png", len(data), "low water")]
            await until(lambda: last_row(engine, other).file is not None)
            assert last_row(engine, other).forwarded

    play(scenario)


def test_a_picture_that_lies_becomes_a_card() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            view = FileView(name="pier.png", media_type="image/png", size=9, width=4000, height=3)
            row = with_file(engine, group, b"no, not a", view)
            scene = it.window.pane.timeline.scene
            await until(lambda: scene.pictures.is_broken(row))
            await until(lambda: not file_rect(it, row).file.is_picture)  # type: ignore[union-attr]

    play(scenario)


def test_a_file_is_kept_where_one_wants(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            view = FileView(name="notes.txt", media_type="text/plain", size=3)
            row = with_file(engine, group, b"abc", view)
            target = tmp_path / "kept.txt"
            it.window.pane.files.write(row, target)
            await until(lambda: target.exists() and target.read_bytes() == b"abc")
            await until(lambda: "Saved as kept.txt." in seen_words(it.window.notices))
            notice_button(it, "Open the folder").click()
            assert it.opened_urls == [f"file://{tmp_path}"]
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
