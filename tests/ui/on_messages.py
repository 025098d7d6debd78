"""Messages in the open conversation: find them in view, walk to them, press what is on them."""

from msgspec.structs import replace
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QMenu

from engine.core.ids import ConversationId, DeliveryState
from engine.events import (
    DeliveryView,
    MessageView,
)
from tests.ui.driving import Key, Stage, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import spoken_rows
from ui.timeline.boxes import BubbleBox
from ui.timeline.rows import message_key


def bubble(it: Stage, message: MessageView) -> tuple[BubbleBox, float]:
    """A message's box and where its row begins in the viewport."""
    scene = it.window.pane.timeline.scene
    for placed in scene.placed:
        box = scene.box(placed.row)
        if isinstance(box, BubbleBox) and placed.row.message.message_id == message.message_id:  # type: ignore[union-attr]
            return box, placed.y
    raise AssertionError(f"{message.text} is not in view")


def click(it: Stage, point: QPointF, y: float) -> None:
    viewport = it.window.pane.timeline.viewport()
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=(point + QPointF(0, y)).toPoint())


def shown(engine: ScriptedEngine, group: ConversationId, message: MessageView) -> MessageView:
    return engine.rows[group][message.message_id]


async def focus(it: Stage, message: MessageView) -> None:
    """Walk to a message by the keyboard."""
    timeline = it.window.pane.timeline
    await until(lambda: timeline.scene.row(message_key(message.message_id)) is not None)
    timeline.setFocus()
    it.press(Key.Key_Escape, on=timeline)
    for _step in timeline.scene.loaded.rows:
        if timeline.scene.focus_key != message_key(message.message_id):
            it.press(Key.Key_Up, on=timeline)
    assert timeline.scene.focus_key == message_key(message.message_id)


def own_held(engine: ScriptedEngine, group: ConversationId, text: str) -> MessageView:
    """A message of ours that one other member holds."""
    row = engine.row(group, member("Ines", is_self=True), text)
    others = tuple(m.participant_id for m in engine.views[group].members if not m.is_self)
    delivery = DeliveryView(state=DeliveryState.HELD, held_by=others, of=len(others))
    row = replace(row, delivery=delivery)
    engine.arrive(row, notify=False)
    return row


def notice_button(it: Stage, words: str) -> QAbstractButton:
    buttons = [button for row in it.window.notices.rows for button in row.acts]
    return next(button for button in buttons if button.text() == words)


def spoken_rows_of(it: Stage) -> list[str]:
    return [row for row in spoken_rows(it.window.pane.timeline) if ", " in row]


def in_view(it: Stage, message: MessageView) -> bool:
    return it.window.pane.timeline.scene.rect(message_key(message.message_id)) is not None


def menu_of(it: Stage) -> QMenu:
    menu = it.window.pane.timeline.interaction.menu
    assert menu is not None
    return menu


def choose(menu: QMenu, words: str) -> None:
    action = next(a for a in menu.actions() if a.text() == words)
    menu.close()
    action.trigger()


def last_row(engine: ScriptedEngine, conversation_id: ConversationId) -> MessageView:
    return list(engine.rows[conversation_id].values())[-1]


async def ask_by_menu(it: Stage, message: MessageView, words: str) -> None:
    """Walk to a message and choose an entry of its menu."""
    await focus(it, message)
    it.press(Key.Key_Menu, on=it.window.pane.timeline)
    choose(menu_of(it), words)


async def rewrite(it: Stage, added: str) -> None:
    """Up in an empty box, a few letters more, Enter."""
    box = it.window.pane.composer.box
    it.press(Key.Key_Up, on=box)
    it.write(added, on=box)
    it.press(Key.Key_Return, on=box)
