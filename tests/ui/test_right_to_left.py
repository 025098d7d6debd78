"""In a language that runs from right to left: what is painted, and what is under the mouse."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QImage, QPainter
from PySide6.QtWidgets import QApplication

from engine.events import MessageView
from tests.ui.driving import play, stage, until
from tests.ui.on_messages import bubble
from tests.ui.scripted_engine import ScriptedEngine, member
from ui import app
from ui.icons import pixmap
from ui.languages import speak
from ui.mirrored import draw_text, mirror, upright
from ui.theme import current_theme
from ui.timeline.rows import message_key


@pytest.fixture
def hebrew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(app, "speak", lambda _: speak("he"))
    speak("he")
    yield
    speak("en")


def blank() -> QImage:
    image = QImage(60, 20, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    return image


def dark_columns(image: QImage) -> list[int]:
    return [
        x
        for x in range(image.width())
        if any(image.pixelColor(x, y).lightness() < 128 for y in range(image.height()))
    ]


@pytest.mark.usefixtures("qapp")
def test_text_begins_on_the_other_side_and_can_be_read() -> None:
    flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    plain, turned = blank(), blank()
    font = QFont()
    # Letters of whole pixels look the same wherever they begin, whatever size other tests left.
    font.setPixelSize(16)
    font.setHintingPreference(QFont.HintingPreference.PreferFullHinting)
    for image in (plain, turned):
        painter = QPainter(image)
        painter.setFont(font)
        if image is turned:
            mirror(painter, QRectF(image.rect()))
        draw_text(painter, QRectF(image.rect()), flags, "LF")
        painter.end()
    left, right = dark_columns(plain), dark_columns(turned)
    assert left[0] < 4
    assert right[-1] > 54
    shift = right[0] - left[0]
    assert [column + shift for column in left] == right


@pytest.mark.usefixtures("qapp")
def test_upright_changes_nothing_where_nothing_is_mirrored() -> None:
    image = blank()
    painter = QPainter(image)
    with upright(painter, QRectF(0, 0, 10, 10)):
        assert painter.worldTransform().isIdentity()
    mirror(painter, QRectF(image.rect()))
    with upright(painter, QRectF(0, 0, 10, 10)):
        assert painter.worldTransform().m11() == 1
    assert painter.worldTransform().m11() == -1
    painter.end()


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize(("name", "turns"), [("send", True), ("emoji", False), ("copy", False)])
def test_only_signs_that_point_along_the_line_turn(name: str, turns: bool) -> None:
    ink = current_theme().ink
    before = pixmap(name, ink, 20, 1.0).toImage()
    QApplication.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    after = pixmap(name, ink, 20, 1.0).toImage()
    QApplication.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    assert (before != after) is turns


def test_the_timeline_is_mirrored_and_a_click_meets_what_is_seen(hebrew: None) -> None:
    del hebrew

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide", others=("Maya",))
        theirs = engine.receive(group, "Maya", "https://example.org/a and more of it")
        own = engine.row(group, member("Ines", is_self=True), "mine")
        engine.arrive(own, notify=False)
        async with stage(engine, opening=group) as it:
            scene, view = it.window.pane.timeline.scene, it.window.pane.timeline.viewport()
            await until(lambda: scene.rect(message_key(own.message_id)) is not None)

            def seen(message: MessageView) -> QRectF:
                rect = scene.rect(message_key(message.message_id))
                assert rect is not None
                return rect

            assert seen(own).right() < seen(theirs).left()
            assert it.window.panel.mapTo(it.window, it.window.panel.rect().center()).x() > 640
            image, inside = view.grab().toImage(), QPointF(8, 8)
            theme = current_theme()
            assert image.pixelColor((seen(own).topLeft() + inside).toPoint()) == theme.own
            assert image.pixelColor((seen(theirs).topLeft() + inside).toPoint()) == theme.surface
            box, y = bubble(it, theirs)
            begin = scene.geometry.seen(
                QRectF(box.body_at, box.body_at).adjusted(0, 0, box.body.width, box.body.height)
            ).translated(0, y)
            hit = scene.hit(begin.topLeft() + QPointF(12, begin.height() / 2))
            assert hit is not None
            assert hit.link == "https://example.org/a"
            far = scene.hit(begin.topRight() + QPointF(-6, begin.height() / 2))
            assert far is not None
            assert far.over_text
            assert far.link is None

    play(scenario)
