"""What stands beside a message, and what is known of it: the bar under the mouse, focus, info."""

from collections.abc import Callable
from itertools import count, cycle

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtTest import QTest

from engine.core.ids import MessageId
from engine.events import MessageView
from tests.ui.driving import Key, group_stage, move_mouse, play, stage, until
from tests.ui.on_messages import (
    focus,
    in_view,
    own_held,
)
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import seen_words, sheet_of, words_of
from ui.dialogs.message_info import MessageInfoSheet
from ui.emoji.picker import EmojiPicker
from ui.timeline.abilities import QUICK_REACTIONS, abilities_of
from ui.timeline.hover_bar import HoverBar
from ui.timeline.reaction_row import ReactionButton
from ui.timeline.rows import message_key
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")


def hovers(timeline: TimelineView, message_id: MessageId) -> bool:
    """Whether the bar shows once the mouse is over the message, wherever that is by now.

    What has just come is not laid out yet, nor known to the bar.
    """
    rect = timeline.scene.rect(message_key(message_id))
    if rect is None:
        return False
    point = rect.center().toPoint()
    QTest.mouseMove(timeline.viewport(), point)
    QTest.mouseMove(timeline.viewport(), point + QPoint(1, 0))
    bar = timeline.interaction.hover_bar
    message = timeline.scene.loaded.get(message_id)
    return bar.isVisible() and message is not None and bar.message == message


async def once_hovered(
    timeline: TimelineView, message_id: MessageId, then: Callable[[], None]
) -> None:
    """Do it as soon as the bar shows, before the rows move again.

    Never in this task: while the mouse is moved, others have their turn.
    """
    looks = count()

    def is_done() -> bool:
        if next(looks) == 0:
            return False
        if not hovers(timeline, message_id):
            return False
        then()
        return True

    await until(is_done)


def test_the_bar_beside_the_message_under_the_mouse_answers_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await until(lambda: in_view(it, row))
            timeline = it.window.pane.timeline
            bar = timeline.interaction.hover_bar
            assert not bar.isVisible()
            beside: list[float] = []

            def answer() -> None:
                rect = timeline.scene.rect(message_key(row.message_id))
                beside.append(bar.geometry().left() - rect.right() if rect else 0)
                bar.reply_pressed.emit()

            await once_hovered(timeline, row.message_id, answer)
            assert beside[0] > 0
            assert seen_words(it.window.pane.composer_bar)[0] == "Reply to Maya"

    play(scenario)


def test_its_smiley_offers_the_usual_reactions_first_and_the_picker_behind_them() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await until(lambda: in_view(it, row))
            interaction = it.window.pane.timeline.interaction
            bar = interaction.hover_bar
            timeline = it.window.pane.timeline
            await once_hovered(timeline, row.message_id, bar.react_pressed.emit)
            menu = interaction.menu
            assert menu is not None
            assert it.window.findChild(EmojiPicker) is None
            row_of_them = menu.findChildren(ReactionButton)
            assert [b.emoji for b in row_of_them] == [*QUICK_REACTIONS, ""]
            assert row_of_them[-1].accessibleName() == "Other emoji…"
            row_of_them[-1].click()
            assert not menu.isVisible()
            assert it.window.findChild(EmojiPicker) is not None
            await until(lambda: interaction.menu is None)
            bar.message = row
            bar.react_pressed.emit()
            menu = interaction.menu
            assert menu is not None
            menu.findChildren(ReactionButton)[2].click()
            assert not menu.isVisible()
            await until(lambda: bool(engine.called("react")))
            assert engine.called("react") == [(row.message_id, QUICK_REACTIONS[2], True)]

    play(scenario)


def test_the_bar_that_was_hidden_comes_back_under_a_mouse_that_moves_on() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await until(lambda: in_view(it, row))
            timeline = it.window.pane.timeline
            bar, back = timeline.interaction.hover_bar, list[bool]()

            def hide() -> None:
                bar.hide_now()
                back.append(hovers(timeline, row.message_id))

            await once_hovered(timeline, row.message_id, hide)
            assert back == [True]

    play(scenario)


class LeftAsItHides(HoverBar):
    """The mouse leaves what is below while it goes, as Qt tells where windows come and go."""

    def hide(self) -> None:
        self.left.emit()
        super().hide()


def test_the_bar_hides_once_though_the_mouse_leaves_meanwhile() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            bar = LeftAsItHides(it.window)
            bar.left.connect(bar.hide_now)
            can = abilities_of(row, can_write=True)
            bar.show_for(row, can, QRectF(40, 40, 90, 30), QRectF(0, 0, 400, 300), on_it=False)
            assert (bar.isVisible(), bar.message) == (True, row)
            bar.hide_now()
            assert (bar.isVisible(), bar.message) == (False, None)

    play(scenario)


def test_beside_what_is_about_to_be_deleted_stands_undo_and_no_bar() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "Low water is 10:25")
            await until(lambda: in_view(it, mine))
            timeline = it.window.pane.timeline
            bar = timeline.interaction.hover_bar
            seen = list[bool]()
            await once_hovered(timeline, mine.message_id, lambda: seen.append(bar.isVisible()))
            assert seen == [True]
            it.window.about.deletions.begin(mine)
            await until(lambda: mine.message_id in timeline.scene.leaving and not bar.isVisible())
            rect = timeline.scene.rect(message_key(mine.message_id))
            assert rect is not None
            QTest.mouseMove(timeline.viewport(), rect.topLeft().toPoint() - QPoint(40, -9))
            QTest.mouseMove(timeline.viewport(), rect.center().toPoint())
            assert not bar.isVisible()

    play(scenario)


def _words_in(bubble: QRectF) -> QRectF:
    """Where words may be: all but the edge of a bubble."""
    return bubble.adjusted(3, 3, -3, -3)


@pytest.mark.parametrize("density", ["comfortable", "compact"])
@pytest.mark.parametrize("width", [360, 480, 1280])
def test_the_bar_hides_no_words_however_narrow_the_window(width: int, density: str) -> None:
    long = "Low water is at 10:25, so we meet at the slipway at nine and walk out from there."

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Harbour")
        async with stage(
            engine, opening=group, size=(width, 800), stored={"density": density}
        ) as it:
            said = [
                engine.receive(group, "Maya", long),
                own_held(engine, group, long),
                engine.receive(group, "Maya", "Yes"),
                own_held(engine, group, "Good"),
                own_held(engine, group, long),
                engine.receive(group, "Maya", long),
                engine.receive(group, "Maya", "No"),
            ]
            await until(lambda: in_view(it, said[-1]))
            timeline = it.window.pane.timeline
            bar, hidden = timeline.interaction.hover_bar, list[str]()
            for row in said:

                def look(row: MessageView = row) -> None:
                    place = QRectF(bar.geometry())
                    for other in said:
                        rect = timeline.scene.rect(message_key(other.message_id))
                        if rect is not None and place.intersects(_words_in(rect)):
                            hidden.append(f"{row.text} hides {other.text}")

                await once_hovered(timeline, row.message_id, look)
            assert not hidden

    play(scenario)


def test_the_bar_goes_with_its_message_when_the_rows_move() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await until(lambda: in_view(it, row))
            timeline = it.window.pane.timeline
            bar = timeline.interaction.hover_bar

            def rect() -> QRectF:
                found = timeline.scene.rect(message_key(row.message_id))
                assert found is not None
                return found

            await move_mouse(timeline.viewport(), QPoint(1, 1))
            await move_mouse(timeline.viewport(), rect().center().toPoint())
            await until(bar.isVisible)
            height = timeline.viewport().height()
            bar.reply_pressed.emit()
            await until(lambda: timeline.viewport().height() != height)
            assert not bar.isVisible() or abs(bar.y() - rect().top()) <= 1

    play(scenario)


def test_the_bar_is_about_what_its_message_says_now_though_the_mouse_rests() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.row(group, member("Maya"), "Low water is at 10:52")
            row = replace(row, edited_ms=row.sent_ms)
            engine.arrive(row)
            await until(lambda: in_view(it, row))
            timeline = it.window.pane.timeline
            bar, key = timeline.interaction.hover_bar, message_key(row.message_id)
            places: list[object] = []
            texts = cycle(("Low water is at 10:25", "Low water is at 12:50"))

            def edit() -> None:
                places[:] = [timeline.scene.rect(key), bar.geometry()]
                engine.alter(replace(row, text=next(texts)))

            def said() -> MessageView:
                return engine.rows[group][row.message_id]

            # Rows may still move for another reason, and the bar goes with them, or away.
            while [bar.message, timeline.scene.rect(key), bar.geometry()] != [said(), *places]:
                await once_hovered(timeline, row.message_id, edit)
                await until(lambda: bar.message in {None, said()})
            bar.reply_pressed.emit()
            assert seen_words(it.window.pane.composer_bar)[1] == said().text

    play(scenario)


def test_by_mouse_the_row_that_the_keys_had_is_left() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await focus(it, row)
            timeline = it.window.pane.timeline
            it.window.pane.composer.box.setFocus()
            timeline.setFocus(Qt.FocusReason.MouseFocusReason)
            assert timeline.scene.focus_key is None

    play(scenario)


@pytest.mark.parametrize("who", ["Maya", "Ines"])
def test_message_info_is_there_for_every_message(who: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            is_own = who == "Ines"
            row = own_held(engine, group, "x") if is_own else engine.receive(group, who, "x")
            await focus(it, row)
            it.press(Key.Key_I)
            sheet = await sheet_of(it.window, MessageInfoSheet)
            words = words_of(sheet)
            assert "234 bytes" in words
            assert ("Written on this device" if is_own else "From a Store") in words
            sheet.reject()

    play(scenario)
