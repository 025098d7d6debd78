"""Adding a person by a QR code or by a link in a message: file, clipboard, drop, screen, click."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QImage,
    QPixmap,
    QScreen,
)
from PySide6.QtWidgets import QApplication, QWidget

from engine.core.contacts import CONTACT_PREFIX
from engine.core.ids import ConversationId
from engine.core.markup import find_spans
from engine.text_spans import SpanKind, TextSpan
from tests.ui.code_pictures import blank, encoded, framed, shown_code, side_by_side
from tests.ui.driving import Key, Stage, play, stage, turn, until
from tests.ui.scripted_engine import GOOD_LINK, ScriptedEngine
from tests.ui.scripted_people import MY_LINK, pair_id
from tests.ui.seeing import S, add_person, sheet_of
from ui.dialogs.code_reader import CodeReader
from ui.dialogs.join import Join
from ui.dialogs.person import AddPerson
from ui.pictures import PictureError
from ui.screen import grab_screens, nothing_found_words

BOB = f"{CONTACT_PREFIX}Bob"
CTRL = Qt.KeyboardModifier.ControlModifier


async def done(reader: CodeReader) -> None:
    await until(lambda: not reader.is_busy)


def drop(on: QWidget, mime: QMimeData) -> bool:
    """As the desktop does it; False if it is not taken."""
    actions, buttons = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    keys = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(9, 9), actions, mime, buttons, keys)
    enter.ignore()
    QApplication.sendEvent(on, enter)
    if enter.isAccepted():
        QApplication.sendEvent(on, QDropEvent(QPointF(9, 9), actions, mime, buttons, keys))
    return enter.isAccepted()


def of_files(*files: Path) -> QMimeData:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
    return mime


def of_image(image: QImage) -> QMimeData:
    mime = QMimeData()
    mime.setImageData(image)
    return mime


def of_bytes(kind: str, data: bytes) -> QMimeData:
    mime = QMimeData()
    mime.setData(kind, data)
    return mime


# --- ways to a code -----------------------------------------------------------------------------


def test_a_chosen_file_shows_whose_link_it_is_and_asks_nobody(tmp_path: Path) -> None:
    file = tmp_path / "bob.png"
    file.write_bytes(encoded(shown_code(BOB)))
    answers: list[Path | None] = [None, file]

    async def choose_file(_parent: QWidget) -> Path | None:
        return answers.pop(0)

    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine, choose_picture=choose_file) as it:
            sheet = await add_person(it.window)
            sheet.reader.file.click()
            await done(sheet.reader)
            assert sheet.theirs.problem.text() == ""
            sheet.reader.file.setFocus()
            it.press(Key.Key_Return)
            await done(sheet.reader)
            assert sheet.theirs.link() == BOB
            assert sheet.theirs.card.isVisible()
            assert sheet.confirm.accessibleName() == "Ask Bob"
            assert sheet.theirs.field.hasFocus()
            await turn()
            assert engine.called("add_contact") == []
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(pair_id("Bob")))
            assert engine.called("add_contact") == [BOB]

    play(scenario)


@pytest.mark.parametrize(
    "copied",
    [
        lambda image, _place: of_image(image),
        lambda image, _place: of_bytes("image/png", encoded(image)),
        lambda image, _place: of_bytes("image/jpeg", encoded(image, "JPEG", 80)),
        lambda image, place: of_files(_saved(place, image)),
    ],
)
@pytest.mark.parametrize("way", ["field", "elsewhere", "button"])
def test_a_copied_picture_is_pasted(
    copied: Callable[[QImage, Path], QMimeData], way: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await add_person(it.window)
            QGuiApplication.clipboard().setMimeData(copied(shown_code(BOB), tmp_path))
            if way == "button":
                sheet.reader.paste.click()
            else:
                on = sheet.theirs.field if way == "field" else sheet.cancel
                it.press(Key.Key_V, CTRL, on=on)
            await done(sheet.reader)
            assert sheet.theirs.link() == BOB
            assert sheet.theirs.field.toPlainText() == BOB

    play(scenario)


def _saved(place: Path, image: QImage) -> Path:
    file = place / "code.png"
    file.write_bytes(encoded(image))
    return file


def test_copied_text_is_still_pasted_as_text_also_by_the_button() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await add_person(it.window)
            both = of_image(blank(shown_code(BOB).size()))
            both.setText(f"Here I am: {BOB}")
            QGuiApplication.clipboard().setMimeData(both)
            it.press(Key.Key_V, CTRL, on=sheet.theirs.field)
            assert sheet.theirs.link() == BOB
            sheet.theirs.field.clear()
            sheet.reader.paste.click()
            assert sheet.theirs.link() == BOB
            QGuiApplication.clipboard().clear()
            sheet.theirs.field.clear()
            sheet.reader.paste.click()
            assert sheet.theirs.problem.text() == "There is neither a picture nor a link to paste."

    play(scenario)


def test_a_picture_or_a_link_is_dropped_anywhere_on_the_dialog(tmp_path: Path) -> None:
    file = tmp_path / "code.png"

    async def scenario() -> None:
        code = shown_code(BOB)
        file.write_bytes(encoded(code))
        async with stage(ScriptedEngine()) as it:
            sheet = await add_person(it.window)
            link = QMimeData()
            link.setText(BOB)
            places = (sheet, sheet.theirs.field.viewport())
            for mime in (of_files(file), of_image(code), link):
                for place in places:
                    sheet.theirs.field.clear()
                    assert drop(place, mime)
                    await done(sheet.reader)
                    assert sheet.theirs.link() == BOB
            sheet.theirs.field.clear()
            sheet.ways.choose(1)
            assert drop(sheet, of_files(file))
            await done(sheet.reader)
            assert sheet.theirs.isVisible(), "what was dropped is shown"
            assert not drop(sheet, of_bytes("application/x-something", b"1"))

    play(scenario)


def test_pictures_from_the_web_and_several_files_are_answered_in_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await add_person(it.window)
            assert drop(sheet, of_files(tmp_path / "a.png", tmp_path / "b.png"))
            assert "several files" in sheet.theirs.problem.text()
            web = QMimeData()
            web.setUrls([QUrl("https://pictures.example/code.PNG")])
            assert drop(sheet, web)
            assert "fetches no picture from the web" in sheet.theirs.problem.text()
            assert sheet.theirs.problem.isVisible()

    play(scenario)


# --- the screen ---------------------------------------------------------------------------------


def test_the_screen_is_read_with_the_windows_where_they_are() -> None:
    seen: list[bool] = []

    async def scenario() -> None:
        def grab() -> list[QImage]:
            seen.append(QApplication.activeWindow() is not None)
            return [blank(code.size()), framed(code, 200)]

        code = shown_code(BOB)
        async with stage(ScriptedEngine(), grab_screens=grab) as it:
            sheet = await add_person(it.window)
            sheet.reader.screen_button.click()
            await done(sheet.reader)
            assert sheet.theirs.link() == BOB
            assert seen == [True], "nothing had to be hidden"

    play(scenario)


def test_a_code_behind_our_windows_is_found_and_they_come_back() -> None:
    hidden: list[tuple[bool, bool]] = []
    windows: list[QWidget] = []

    def grab() -> list[QImage]:
        window, sheet = windows
        hidden.append((sheet.isVisible(), window.isVisible()))
        code = shown_code(BOB)
        return [blank(code.size()) if sheet.isVisible() else framed(code, 60)]

    async def scenario() -> None:
        async with stage(ScriptedEngine(), grab_screens=grab) as it:
            sheet = await add_person(it.window)
            windows.extend((it.window, sheet))
            sheet.reader.screen_button.click()
            await done(sheet.reader)
            assert hidden == [(True, True), (False, False)]
            assert sheet.isVisible()
            assert it.window.isVisible()
            assert it.window.flows.sheet is sheet
            assert sheet.theirs.link() == BOB

    play(scenario)


@pytest.mark.parametrize("refused_later", [False, True])
def test_a_screen_that_is_refused_or_shows_nothing_is_said(refused_later: bool) -> None:
    asked = 0

    def grab() -> list[QImage]:
        nonlocal asked
        asked += 1
        if asked > 1 or not refused_later:
            raise PictureError("This desktop (Wayland) lets no program read the screen.")
        return [QImage(40, 40, QImage.Format.Format_Grayscale8)]

    async def scenario() -> None:
        async with stage(ScriptedEngine(), grab_screens=grab) as it:
            sheet = await add_person(it.window)
            sheet.reader.screen_button.click()
            await done(sheet.reader)
            wanted = "no QR code on the screen" if refused_later else "(Wayland)"
            assert wanted in sheet.theirs.problem.text()
            assert sheet.isVisible()

    play(scenario)


@pytest.mark.usefixtures("qapp")
def test_a_platform_that_shows_one_colour_or_is_wayland_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = QPixmap(300, 200)
    monkeypatch.setattr(QScreen, "grabWindow", lambda _screen, _window: shown)
    for colour in ("black", "white"):
        shown.fill(QColor(colour))
        with pytest.raises(PictureError, match="does not show Causerie"):
            grab_screens()
    shown = QPixmap()
    with pytest.raises(PictureError, match="does not show Causerie"):
        grab_screens()
    shown = QPixmap.fromImage(shown_code(BOB))
    assert [image.size() for image in grab_screens()] == [shown.size()]
    monkeypatch.setattr(QGuiApplication, "platformName", staticmethod(lambda: "wayland-egl"))
    with pytest.raises(PictureError, match=r"Wayland.*screenshot"):
        grab_screens()
    assert "Screen Recording" in nothing_found_words("darwin")
    assert "Screen Recording" not in nothing_found_words("linux")


# --- what a code may say ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ((), "There is no QR code in this picture that can be read."),
        (("https://example.org/\u202ex",), "not a Causerie link. It says: https://example.org/"),
        (("tel:1", "tel:2"), "There are 2 QR codes here, and none is a Causerie link."),
        ((BOB, f"{CONTACT_PREFIX}Nell"), "There are 2 codes with links here."),
        ((MY_LINK,), "This is your own contact link."),
        ((f"{CONTACT_PREFIX}old",), "This contact link expired on 3 May 2026."),
        ((f"{CONTACT_PREFIX}B0b",), "is cut off"),
        ((f"{GOOD_LINK}",), "This is an invitation to a group."),
        (("causerie:other/x",), "This is not a Causerie contact link"),
    ],
)
def test_what_cannot_be_used_is_said_in_the_dialog(texts: tuple[str, ...], words: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await add_person(it.window)
            codes = [shown_code(text) for text in texts]
            image = side_by_side(*codes) if codes else blank(shown_code("x").size())
            QGuiApplication.clipboard().setImage(image)
            sheet.reader.paste.click()
            await done(sheet.reader)
            assert words in sheet.theirs.problem.text()
            assert "\u202e" not in sheet.theirs.problem.text()
            assert sheet.theirs.problem.isVisible()
            assert not sheet.confirm.isEnabled()
            assert not it.window.notices.rows

    play(scenario)


@pytest.mark.parametrize("others", [("tel:1",), (MY_LINK,), (f"{CONTACT_PREFIX}old", "x"), (BOB,)])
def test_the_one_link_that_works_is_taken_from_among_others(others: tuple[str, ...]) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await add_person(it.window)
            codes = [shown_code(text) for text in (*others, BOB)]
            QGuiApplication.clipboard().setImage(side_by_side(*codes))
            sheet.reader.paste.click()
            await done(sheet.reader)
            assert sheet.theirs.link() == BOB

    play(scenario)


def test_a_broken_file_is_said_and_the_link_that_was_there_stays(tmp_path: Path) -> None:
    broken = tmp_path / "x.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))

    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await add_person(it.window)
            sheet.theirs.field.setPlainText(BOB)
            drop(sheet, of_files(broken))
            await done(sheet.reader)
            assert sheet.theirs.problem.text() == "The picture is damaged."
            assert sheet.theirs.link() == BOB
            assert sheet.confirm.isEnabled()

    play(scenario)


def test_a_dialog_that_is_closed_while_a_picture_is_read_hears_nothing_of_it() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await add_person(it.window)
            QGuiApplication.clipboard().setImage(shown_code(BOB))
            sheet.reader.paste.click()
            reader = sheet.reader
            assert reader.is_busy
            reader.paste.click()  # one at a time
            sheet.reject()
            await done(reader)
            assert it.window.flows.sheet is None
            assert not it.window.notices.rows

    play(scenario)


# --- links in messages --------------------------------------------------------------------------


def receive_with_links(engine: ScriptedEngine, group: ConversationId, text: str) -> None:
    """As the engine stores it."""
    row = engine.receive(group, "Maya", text)
    spans = tuple(
        TextSpan(kind=SpanKind.LINK, start=s.start, length=s.length, target=s.target)
        for s in find_spans(text)
    )
    engine.rows[group][row.message_id] = replace(row, spans=spans)


async def press_link(it: Stage, kind: type[S]) -> S:
    """The only link of the newest message, with the keys."""
    timeline = it.window.pane.timeline
    await until(lambda: bool(timeline.scene.placed))
    it.press(Key.Key_Up, on=timeline)
    it.press(Key.Key_Return, on=timeline)
    return await sheet_of(it.window, kind)


def test_a_contact_link_in_a_message_shows_whose_it_is_and_enter_asks_nobody() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide")
        receive_with_links(engine, group, f"Talk to him: {BOB}.")
        async with stage(engine, opening=group) as it:
            await turn()
            assert it.window.flows.sheet is None, "nothing opens by itself"
            sheet = await press_link(it, AddPerson)
            assert sheet.theirs.link() == BOB
            assert sheet.confirm.accessibleName() == "Ask Bob"
            assert sheet.cancel.hasFocus()
            it.press(Key.Key_Return)
            await until(lambda: it.window.flows.sheet is None)
            assert engine.called("add_contact") == []
            assert it.opened_urls == []

    play(scenario)


def test_an_invitation_in_a_message_shows_the_group_and_joins_only_when_told() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        receive_with_links(engine, luc, f"Come: {GOOD_LINK}")
        async with stage(engine, opening=luc) as it:
            sheet = await press_link(it, Join)
            assert sheet.form.link() == GOOD_LINK
            assert sheet.cancel.hasFocus()
            await turn()
            assert engine.called("join_group") == []
            sheet.confirm.click()
            await until(lambda: engine.called("join_group") == [GOOD_LINK])

    play(scenario)


def test_a_link_of_ours_that_is_broken_says_so_in_the_same_dialog() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide")
        receive_with_links(engine, group, f"{CONTACT_PREFIX}old")
        async with stage(engine, opening=group) as it:
            sheet = await press_link(it, AddPerson)
            assert "expired" in sheet.theirs.problem.text()
            assert not sheet.confirm.isEnabled()

    play(scenario)
