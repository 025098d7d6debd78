"""Markup in the timeline, by mouse, keyboard and screen reader: what is shown, copied and said."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import (
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QGuiApplication,
    QImage,
    QPainter,
    QWheelEvent,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.events import MessageView
from engine.text_spans import SpanKind, TextSpan
from tests.ui.driving import move_mouse
from tests.ui.seeing import spoken_rows
from tests.ui.timeline.test_timeline_interaction import (
    bubble,
    choose,
    click,
    copied,
    drag,
    entries,
    open_menu_by_mouse,
    text_point,
    with_rows,
)
from tests.ui.timeline.timeline_stage import at, message
from ui.theme import current_theme
from ui.timeline.bodies import BodyLayouts
from ui.timeline.code_block import CodeBlock
from ui.timeline.rows import message_key
from ui.timeline.text_block import TextBlock
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")

SENTENCE = message(10, "Maya", "see **bold words** at _https://a.example/b_", sent_ms=at(13, 0))
LONG_LINE = "x = " + " + ".join(f"tide{number:03}" for number in range(30))
CODE = message(20, "Jonas", f"look:\n```python\n{LONG_LINE}\nreturn x\n```", sent_ms=at(13, 1))
TWO = message(21, "Jonas", "```\none\n```\nand\n```\ntwo\n```", sent_ms=at(13, 1))
LIST = message(30, "Luc", "- a\n  - b\n> " + "quote " * 60, sent_ms=at(13, 2))
ENDLESS = message(
    40, "Luc", "```\n" + "\n".join(f"line {n:5}" for n in range(5_000)) + "\n```", sent_ms=at(13, 3)
)


def code_block(view: TimelineView, shown: MessageView, number: int = 0) -> CodeBlock:
    return bubble(view, shown)[0].body.code_blocks[number]


def on_screen(view: TimelineView, shown: MessageView, point: QPointF) -> QPoint:
    """``point`` of a message's body, in the viewport."""
    box, y = bubble(view, shown)
    return (box.body_at + point + QPointF(0, y)).toPoint()


def turn_wheel(
    view: TimelineView, point: QPoint, angle: QPoint, keys: Qt.KeyboardModifier
) -> QWheelEvent:
    viewport = view.viewport()
    where = QPointF(point)
    event = QWheelEvent(
        where,
        viewport.mapToGlobal(where),
        QPoint(),
        angle,
        Qt.MouseButton.NoButton,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(viewport, event)
    return event


def test_marks_take_no_room() -> None:
    plain = message(11, "Maya", "see bold words at https://a.example/b", sent_ms=at(13, 0))
    styled = message(12, "Maya", "see **bold words** at https://a.example/b", sent_ms=at(13, 0))
    bold = message(13, "Maya", "**see bold words at https://a.example/b**", sent_ms=at(13, 0))

    async def scenario(view: TimelineView) -> None:
        widths = [bubble(view, each)[0].body.width for each in (plain, styled, bold)]
        assert widths == sorted(widths)
        assert widths[2] < widths[0] * 1.3

    with_rows(scenario, [plain, styled, bold])


def test_bold_words_are_of_a_face_that_there_is_and_not_smeared() -> None:
    """Qt makes a weight that no face has by drawing the nearest one twice."""

    async def scenario(view: TimelineView) -> None:
        block = bubble(view, SENTENCE)[0].body.blocks[0]
        assert isinstance(block, TextBlock)
        font = block.shape.layout.font()
        family = font.families()[0]
        there = {QFontDatabase.weight(family, style) for style in QFontDatabase.styles(family)}
        used = {each.format.fontWeight() for each in block.shape.layout.formats()}
        assert max(used) > font.weight()
        assert used <= there

    with_rows(scenario, [SENTENCE])


def test_what_is_bold_and_italic_is_bolder_than_italic() -> None:
    """No face is both: at the weight of bold words Qt would draw the italic one as it is."""
    italic = message(50, "Luc", "*both of these words*", sent_ms=at(13, 4))
    both = message(51, "Luc", "***both of these words***", sent_ms=at(13, 5))
    inside = message(52, "Luc", "**both *of these* words**", sent_ms=at(13, 6))

    async def scenario(view: TimelineView) -> None:
        ink = {}
        for each in (italic, both):
            block = bubble(view, each)[0].body.blocks[0]
            assert isinstance(block, TextBlock)
            ink[each.message_id] = ink_of(block)
        assert ink[both.message_id] > 1.1 * ink[italic.message_id]
        block = bubble(view, inside)[0].body.blocks[0]
        assert isinstance(block, TextBlock)
        bolder = [
            f for f in block.shape.layout.formats() if f.format.fontWeight() == QFont.Weight.Bold
        ]
        assert [(f.start, f.length) for f in bolder] == [(7, 10)]

    with_rows(scenario, [italic, both, inside])


def ink_of(block: TextBlock) -> int:
    """How dark it is as a whole."""
    image = QImage(400, 60, QImage.Format.Format_Grayscale8)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    block.shape.layout.draw(painter, QPointF(0, 0))
    painter.end()
    return sum(255 - value for value in bytes(image.constBits()))


def test_a_selection_across_marks_copies_them_and_a_word_out_of_them_does_not() -> None:
    async def scenario(view: TimelineView) -> None:
        await drag(view, text_point(view, SENTENCE, 1), text_point(view, SENTENCE, 21))
        assert copied(view) == "ee **bold words** at"
        QTest.mouseDClick(
            view.viewport(),
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
            text_point(view, SENTENCE, 8),
        )
        assert copied(view) == "bold"

    with_rows(scenario, [SENTENCE])


def test_a_link_in_a_style_asks_for_its_address() -> None:
    async def scenario(view: TimelineView) -> None:
        found: list[str] = []
        view.linkActivated.connect(found.append)
        click(view, text_point(view, SENTENCE, 30))
        click(view, text_point(view, SENTENCE, 9))
        assert found == ["https://a.example/b"]

    with_rows(scenario, [SENTENCE])


def test_the_button_of_a_block_copies_its_code_and_says_so() -> None:
    async def scenario(view: TimelineView) -> None:
        for number, code in enumerate(("one", "two")):
            centre = code_block(view, TWO, number).copy_rect.center()
            await move_mouse(view.viewport(), on_screen(view, TWO, centre))
            assert view.viewport().cursor().shape() is Qt.CursorShape.PointingHandCursor
            click(view, on_screen(view, TWO, centre))
            assert QGuiApplication.clipboard().text() == code

    with_rows(scenario, [TWO])


def test_the_menu_copies_code_where_there_is_some() -> None:
    async def scenario(view: TimelineView) -> None:
        assert "Copy code" not in open_menu_by_mouse(view, SENTENCE)
        choose(view, "Copy message")
        assert QGuiApplication.clipboard().text().endswith(SENTENCE.text)
        view.scene.focus_key = message_key(CODE.message_id)
        QTest.keyClick(view, Qt.Key.Key_Menu)
        assert "Copy code" in entries(view)
        choose(view, "Copy code")
        assert QGuiApplication.clipboard().text() == f"{LONG_LINE}\nreturn x"

    with_rows(scenario, [SENTENCE, CODE])


def test_long_code_scrolls_sideways_by_wheel_and_keys() -> None:
    async def scenario(view: TimelineView) -> None:
        code = code_block(view, CODE)
        assert code.overflow > 0
        point = on_screen(view, CODE, code.inner.center())
        turn_wheel(view, point, QPoint(-120, 0), Qt.KeyboardModifier.NoModifier)
        by_wheel = code.scrolled
        assert by_wheel > 0
        turn_wheel(view, point, QPoint(0, -120), Qt.KeyboardModifier.ShiftModifier)
        assert code.scrolled == 2 * by_wheel
        for _ in range(100):
            turn_wheel(view, point, QPoint(0, 120), Qt.KeyboardModifier.ShiftModifier)
        assert code.scrolled == 0
        QTest.keyClick(view, Qt.Key.Key_Up)
        QTest.keyClick(view, Qt.Key.Key_Right)
        assert code_block(view, CODE).scrolled > 0
        for _ in range(100):
            QTest.keyClick(view, Qt.Key.Key_Right)
        assert code_block(view, CODE).scrolled == code.overflow
        QTest.keyClick(view, Qt.Key.Key_Left)
        assert 0 < code_block(view, CODE).scrolled < code.overflow

    with_rows(scenario, [CODE])


def test_code_stays_scrolled_when_all_is_shown_or_a_name_changes() -> None:
    lines = "\n".join([LONG_LINE, *map(str, range(200))])
    long = message(20, "Jonas", f"look @Luc:\n```\n{lines}\n```", sent_ms=at(13, 1))
    named = replace(long, text=long.text.replace("@Luc", "@Lucien"))
    named = replace(named, spans=message(20, "Jonas", named.text, sent_ms=at(13, 1)).spans)

    async def scenario(view: TimelineView) -> None:
        code_block(view, long).scroll_by(90)
        view.scene.unfold(long.message_id)
        view.canvas.refresh()
        assert code_block(view, long).scrolled == 90
        view.change(named)
        assert code_block(view, named).scrolled == 90

    with_rows(scenario, [long])


def test_the_bar_of_a_block_is_drawn_along_it() -> None:
    async def scenario(view: TimelineView) -> None:
        code = code_block(view, CODE)
        bar = code.bar
        assert bar is not None
        start = on_screen(view, CODE, bar.center())
        await drag(view, start, start + QPoint(60, 0))
        assert code.scrolled > 60
        assert view.scene.selection.is_empty
        await drag(view, start + QPoint(60, 0), start + QPoint(2_000, 0))
        assert code.scrolled == code.overflow

    with_rows(scenario, [CODE])


def test_code_is_selected_where_it_is_scrolled_to() -> None:
    async def scenario(view: TimelineView) -> None:
        code = code_block(view, CODE)
        code.scroll_by(code.overflow)
        view.canvas.repaint()
        inner = code.inner
        line = code.shape.line_height
        end = on_screen(view, CODE, QPointF(inner.right() - 40, inner.top() + line / 2))
        await drag(view, end - QPoint(60, 0), end)
        part = copied(view)
        assert part
        assert part in LONG_LINE[-40:]

    with_rows(scenario, [CODE])


def test_a_message_is_read_without_marks_and_code_as_code() -> None:
    async def scenario(view: TimelineView) -> None:
        read = spoken_rows(view)
        assert any(row.startswith("Maya, see bold words at https://a.example/b, ") for row in read)
        assert any("one, end of code" in row and "and" in row for row in read)
        assert any("• a\n• b\nquote: " in row for row in read)
        assert not any("**" in row or "```" in row for row in read)

    with_rows(scenario, [SENTENCE, TWO, LIST])


def test_entries_and_quotes_begin_further_in_and_their_lines_stand_below_each_other() -> None:
    async def scenario(view: TimelineView) -> None:
        text = bubble(view, LIST)[0].body.blocks[0]
        assert isinstance(text, TextBlock)
        lines = [text.shape.layout.lineAt(n) for n in range(text.lines)]
        assert lines[0].x() == 0
        assert lines[1].x() > 0
        assert text.lines > 3
        assert {line.x() for line in lines[2:]} == {lines[2].x()}
        [bar] = text.bars
        assert bar.height() == pytest.approx(text.height - 2 * text.shape.line_height)

    with_rows(scenario, [LIST])


def test_the_second_line_of_an_entry_stands_below_the_first_ones_text() -> None:
    entry = message(31, "Luc", "- " + "tide " * 60, sent_ms=at(13, 2))

    async def scenario(view: TimelineView) -> None:
        text = bubble(view, entry)[0].body.blocks[0]
        assert isinstance(text, TextBlock)
        first, second = (text.shape.layout.lineAt(n) for n in range(2))
        behind_marker = first.cursorToX(2)
        assert isinstance(behind_marker, tuple)
        assert first.x() == 0
        assert second.x() == pytest.approx(float(behind_marker[0]), abs=1)

    with_rows(scenario, [entry])


def test_a_mention_of_us_stands_on_a_round_pill_in_every_line_that_it_takes() -> None:
    words = "@Ines " * 20
    span = TextSpan(
        kind=SpanKind.MENTION, start=4, length=len(words) - 1, target=message(1, "Ines").sender_id
    )
    mention = message(50, "Maya", f"hey {words}come", spans=(span,), sent_ms=at(13, 4))

    async def scenario(view: TimelineView) -> None:
        box, y = bubble(view, mention)
        block = box.body.blocks[0]
        assert isinstance(block, TextBlock)
        layout = block.shape.layout
        ends = [
            line.textStart() + line.textLength()
            for line in map(layout.lineAt, range(9))
            if line.isValid()
        ]
        assert len(block.pills) == sum(end > span.start for end in ends) > 1
        before = layout.lineAt(0).cursorToX(len("hey"))
        assert isinstance(before, tuple)
        space = QFontMetricsF(layout.font()).horizontalAdvance(" ")
        assert block.pills[0].left() - float(before[0]) > space * 0.9, "it leaves the space"
        end = layout.lineAt(len(block.pills) - 1)
        after = end.cursorToX(span.start + span.length + 1)
        assert isinstance(after, tuple)
        assert float(after[0]) - block.pills[-1].right() > space * 0.9, "and the one behind it"
        pill = block.pills[0].translated(box.body_at + QPointF(0, block.y + y))
        shown = view.grab().toImage()
        edge = QPointF(pill.left() + 1.5, pill.center().y())
        corner = QPointF(pill.left() + 0.5, pill.top() + 0.5)
        assert shown.pixelColor(edge.toPoint()) == current_theme().accent
        assert shown.pixelColor(corner.toPoint()) != current_theme().accent

    with_rows(scenario, [mention])


def test_few_emoji_are_large() -> None:
    few = message(50, "Luc", "😀🎉", sent_ms=at(13, 4))
    many = message(51, "Luc", "😀🎉😀🎉", sent_ms=at(13, 4))

    async def scenario(view: TimelineView) -> None:
        heights = [bubble(view, each)[0].body.height for each in (few, many)]
        assert heights[0] > 1.5 * heights[1]

    with_rows(scenario, [few, many])


def test_of_endless_code_only_what_is_in_view_is_laid_out() -> None:
    """So a frame costs what the window is high, and not what the message is long."""

    async def scenario(view: TimelineView) -> None:
        view.viewport().repaint()
        folded = len(view.scene.bodies.code_lines)
        assert 0 < folded <= 40
        view.scene.unfold(ENDLESS.message_id)
        view.canvas.refresh()
        view.viewport().repaint()
        code = code_block(view, ENDLESS)
        assert code.rows == 5_000
        in_view = view.viewport().height() / code.shape.line_height + 2
        assert len(view.scene.bodies.code_lines) <= folded + in_view
        for _ in range(50):
            view.canvas.scroll_by(-400)
            view.viewport().repaint()
        assert folded + in_view < len(view.scene.bodies.code_lines) <= 1_000

    with_rows(scenario, [ENDLESS])


def test_what_is_unfolded_begins_where_it_began() -> None:
    """Not at its end, though the newest message was in view."""

    async def scenario(view: TimelineView) -> None:
        assert view.scene.layout.sticks
        _, folded_at = bubble(view, ENDLESS)
        view.scene.unfold(ENDLESS.message_id)
        view.canvas.refresh()
        view.viewport().repaint()
        box, at_y = bubble(view, ENDLESS)
        assert at_y == folded_at
        assert box.height > 10 * view.viewport().height()

    with_rows(scenario, [message(30, "Luc", "Look:"), ENDLESS])


def test_folded_code_is_copied_to_its_end() -> None:
    async def scenario(view: TimelineView) -> None:
        code = code_block(view, ENDLESS)
        assert code.rows < 5_000
        view.scene.focus_key = message_key(ENDLESS.message_id)
        QTest.keyClick(view, Qt.Key.Key_Menu)
        choose(view, "Copy code")
        assert QGuiApplication.clipboard().text().endswith("line  4999")

    with_rows(scenario, [ENDLESS])


def test_hebrew_hangs_on_the_right_edge_above_wide_code_too() -> None:
    both = message(60, "Luc", f"שבת\n```\n{LONG_LINE}\n```\nשבת **ארץ**", sent_ms=at(13, 5))

    async def scenario(view: TimelineView) -> None:
        body = bubble(view, both)[0].body
        texts = [block for block in body.blocks if isinstance(block, TextBlock)]
        assert len(texts) == 2
        for block in texts:
            rect = block.shape.layout.lineAt(0).naturalTextRect()
            assert rect.right() == pytest.approx(body.width, abs=2)
            assert rect.left() > body.width / 2

    with_rows(scenario, [both])


def test_texts_that_are_laid_out_are_bounded_together() -> None:
    layouts = BodyLayouts(limit=10, max_units=1_000)
    theme = current_theme()
    for number in range(20):
        layouts.body(message(number, text="tide " * 60), width=500, unfolded=False, theme=theme)
        assert len(layouts) <= 3
    huge = message(100, text="tide " * 600)
    layouts.body(huge, width=500, unfolded=False, theme=theme)
    assert len(layouts) == 1
    layouts.body(huge, width=400, unfolded=True, theme=theme)
    for number in range(200, 220):
        layouts.body(message(number, text="tide"), width=500, unfolded=False, theme=theme)
        assert len(layouts) <= 10


def test_an_edited_text_is_laid_out_anew_even_if_only_its_marks_changed() -> None:
    layouts = BodyLayouts()
    theme = current_theme()
    first = message(1, text="**tide**")
    plain = replace(first, spans=())
    widths = [
        layouts.body(each, width=500, unfolded=False, theme=theme).width for each in (first, plain)
    ]
    assert widths[0] != widths[1]
