"""What a screen reader hears: the timeline is a list, each row reads "sender, text, time, state".

Rows have no widget, so their interfaces are Python objects registered with Qt one by one.  Four
rules keep that safe: every interface is registered, because Qt registers unknown ones by itself and
would then hold a pointer that Python may free; so the owner deletes through Qt, never by
letting go; Qt gets a new list each time it asks for one, because it deletes each that it got; and
nothing here touches a widget without asking first whether it still exists.
"""

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QAccessibleInterface,
    QWindow,
)
from PySide6.QtWidgets import QAbstractScrollArea, QAccessibleWidget, QWidget
from shiboken6 import isValid

from engine.core.ids import ParticipantId
from engine.events import DeliveryView, MessageView
from ui.conversation_words import sender_words
from ui.file_words import cancel_words
from ui.glyphs import delivery_words
from ui.speaking import announce
from ui.timeline.bubble_parts import MORE_CHIP, reaction_words
from ui.timeline.buttons import RowButton
from ui.timeline.link_card import own_link, spoken_card
from ui.timeline.row_words import copied_time, link_words, spoken_message, spoken_row
from ui.timeline.rows import (
    MessageRow,
    Row,
    RowKey,
    SystemRow,
    is_system,
    message_key,
    message_of,
    row_key,
)
from ui.timeline.scene import Hit, Scene
from ui.translate import tr

_MOST_NAMED = 8
"""Of those who hold a message, in a tool tip."""


class Speech:
    """Puts what the scene shows into words, people by their names."""

    def __init__(self, scene: Scene, names: Callable[[ParticipantId], str]) -> None:
        self._scene = scene
        self._names = names

    def row(self, row: Row) -> str:
        scene, message = self._scene, message_of(row)
        if isinstance(row, MessageRow):
            said = self._said(row.message, self._place_in_album(row))
        else:
            said = spoken_row(row, now_ms=scene.now_ms(), pair=scene.is_pair)
        return said if message is None else self._with_state(said, message)

    def _said(self, message: MessageView, in_album: tuple[int, int] | None = None) -> str:
        scene = self._scene
        return spoken_message(
            message, scene.others, self._names, pair=scene.is_pair, in_album=in_album
        )

    def _place_in_album(self, row: MessageRow) -> tuple[int, int] | None:
        """Which of how many pictures it is; the first of them keeps them all."""
        first = row if row.album_of is None else self._scene.row(message_key(row.album_of))
        album = first.album if isinstance(first, MessageRow) else ()
        ids = [one.message_id for one in album]
        message_id = row.message.message_id
        return (ids.index(message_id) + 1, len(ids)) if message_id in ids else None

    def message(self, message: MessageView) -> str:
        if is_system(message):
            return self.row(SystemRow(message=message))
        return self._with_card(self._said(message), message)

    def _with_state(self, said: str, message: MessageView) -> str:
        if message.message_id in self._scene.leaving:
            state = tr("being deleted for everybody")
            said = f"{said}, {state}"
        return self._with_card(said, message)

    def _with_card(self, said: str, message: MessageView) -> str:
        """Sender, text, time and state first; then the card that one may press."""
        target = own_link(message)
        link = None if target is None else self._scene.describe(target)
        return said if link is None else f"{said}. {spoken_card(link)}"

    def delivery(self, delivery: DeliveryView) -> str:
        return delivery_words(delivery, self._scene.others, self._names, pair=self._scene.is_pair)

    def holders(self, delivery: DeliveryView) -> str:
        """Who surely has it, by name; of two, the words say it already."""
        if self._scene.is_pair or not delivery.held_by:
            return ""
        named = [self._names(who) for who in delivery.held_by[:_MOST_NAMED]]
        words = tr("It is with {names}.")
        if more := len(delivery.held_by) - len(named):
            words = tr("It is with {names} and %n more.", "It is with {names} and %n more.", more)
        return words.format(names=", ".join(named))

    def tip(self, hit: Hit) -> str:
        """The full words behind the small marks: ticks and time; a link's real target.

        Of a button what it does, where that may surprise.
        """
        if hit.link is not None or hit.code is not None or hit.button is not None:
            return _deed_words(hit)
        if hit.message is not None and hit.chip:
            return "\n".join(
                reaction_words(reaction)
                for reaction in hit.message.reactions
                if hit.chip in {reaction.emoji, MORE_CHIP}
            )
        if hit.message is not None and hit.over_sender:
            return tr("About {name}").format(name=sender_words(hit.message))
        if hit.message is None or not hit.over_meta:
            return ""
        parts = []
        if hit.message.delivery is not None:
            parts.append(self.delivery(hit.message.delivery))
            parts.append(self.holders(hit.message.delivery))
        if hit.message.held:
            parts.append(tr("Held: its time has not come."))
        if hit.message.waiting:
            parts.append(tr("Waiting for earlier messages."))
        if hit.message.late:
            parts.append(tr("Arrived late."))
        return (
            ". ".join([copied_time(hit.message.sent_ms), " ".join(filter(None, parts))]).rstrip(
                " ."
            )
            + "."
        )


def _deed_words(hit: Hit) -> str:
    """What a press there does, where its words and shape do not tell all of it."""
    if hit.link is not None:
        return link_words(hit.link)
    if hit.code is not None:
        return tr("Copy code")
    file = None if hit.message is None else hit.message.file
    return cancel_words(file) if file and hit.button is RowButton.FILE_CANCEL else ""


class RowAccessible(QAccessibleInterface):
    """One row; finds its words anew at each question, so it never tells an old state."""

    def __init__(self, timeline: "TimelineAccessible", key: RowKey) -> None:
        super().__init__()
        self._timeline = timeline
        self.key = key

    def _row(self) -> Row | None:
        return self._timeline.row(self.key)

    def isValid(self) -> bool:
        return self._row() is not None

    def object(self) -> QObject:
        return None  # type: ignore[return-value]  # Qt's own answer for what is no QObject

    def window(self) -> QWindow:
        return self._timeline.window()

    def parent(self) -> QAccessibleInterface:
        return self._timeline

    def child(self, index: int) -> QAccessibleInterface:
        return None  # type: ignore[return-value]  # it has none

    def childAt(self, x: int, y: int) -> QAccessibleInterface:
        return None  # type: ignore[return-value]  # it has none

    def childCount(self) -> int:
        return 0

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1

    def rect(self) -> QRect:
        return self._timeline.row_rect(self.key)

    def role(self) -> QAccessible.Role:
        return QAccessible.Role.ListItem

    def state(self) -> QAccessible.State:
        state = QAccessible.State()
        state.focusable = True
        state.readOnly = True
        state.focused = self._timeline.focused_key() == self.key
        state.offscreen = self._timeline.row_rect(self.key).isNull()
        return state

    def text(self, kind: QAccessible.Text) -> str:
        row = self._row()
        if row is None or kind is not QAccessible.Text.Name:
            return ""
        return self._timeline.words(row)

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Messages are not edited here."""


class TimelineAccessible(QAccessibleWidget):
    """The list: its rows first, then the buttons that float above them."""

    def __init__(
        self, area: QAbstractScrollArea, scene: Scene, speech: Speech, floating: Sequence[QWidget]
    ) -> None:
        super().__init__(area, QAccessible.Role.List, tr("Messages"))
        self._area = area
        self._scene = scene
        self._speech = speech
        self._floating = floating
        self._children: dict[RowKey, tuple[RowAccessible, int]] = {}

    @property
    def alive(self) -> bool:
        return isValid(self._area)

    def rows(self) -> list[Row]:
        return self._scene.loaded.rows if self.alive else []

    def row(self, key: RowKey) -> Row | None:
        return self._scene.row(key) if self.alive else None

    def words(self, row: Row) -> str:
        return self._speech.row(row) if self.alive else ""

    def row_rect(self, key: RowKey) -> QRect:
        """On the screen; null if out of view."""
        rect = self._scene.rect(key) if self.alive else None
        if rect is None:
            return QRect()
        inside = rect.toAlignedRect()
        return QRect(self._area.viewport().mapToGlobal(inside.topLeft()), inside.size())

    def focused_key(self) -> RowKey | None:
        return self._scene.focus_key if self.alive and self._area.hasFocus() else None

    def _buttons(self) -> list[QWidget]:
        return [button for button in self._floating if button.isVisible()] if self.alive else []

    def of_key(self, key: RowKey) -> RowAccessible:
        known = self._children.get(key)
        if known is None:
            child = RowAccessible(self, key)
            known = (child, QAccessible.registerAccessibleInterface(child))
            self._children[key] = known
        return known[0]

    def forget_gone(self) -> None:
        """Delete the interfaces of rows that are not loaded any more."""
        present = {row_key(row) for row in self.rows()}
        for key in [key for key in self._children if key not in present]:
            _child, identifier = self._children.pop(key)
            QAccessible.deleteAccessibleInterface(identifier)

    def forget_all(self) -> None:
        for _child, identifier in self._children.values():
            QAccessible.deleteAccessibleInterface(identifier)
        self._children.clear()

    def childCount(self) -> int:
        if not self.alive:
            return 0
        return len(self.rows()) + len(self._buttons())

    def child(self, index: int) -> QAccessibleInterface:
        rows = self.rows()
        if 0 <= index < len(rows):
            return self.of_key(row_key(rows[index]))
        buttons = self._buttons()
        if 0 <= index - len(rows) < len(buttons):
            return QAccessible.queryAccessibleInterface(buttons[index - len(rows)])
        return None  # type: ignore[return-value]  # Qt asks beyond the end and expects null

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        if not self.alive:
            return -1
        if isinstance(child, RowAccessible):
            index = self._scene.loaded.row_index(child.key)
            return -1 if index is None else index
        for index, button in enumerate(self._buttons()):
            if child.object() is button:
                return len(self.rows()) + index
        return -1

    def childAt(self, x: int, y: int) -> QAccessibleInterface:
        for row in self.rows():
            if self.row_rect(row_key(row)).contains(QPoint(x, y)):
                return self.of_key(row_key(row))
        return None  # type: ignore[return-value]  # nothing there

    def focusChild(self) -> QAccessibleInterface:
        key = self.focused_key()
        if key is None or self.row(key) is None:
            return None  # type: ignore[return-value]  # no row has the focus
        return self.of_key(key)


class Announcer:
    """Tells a screen reader of changes once one has asked; the view's attribute ``announcer``."""

    _installed = False

    def __init__(
        self, area: QAbstractScrollArea, scene: Scene, speech: Speech, floating: Sequence[QWidget]
    ) -> None:
        self._area = area
        self._scene = scene
        self._speech = speech
        self._floating = floating
        self._given: list[TimelineAccessible] = []
        """The newest last; Qt's to delete."""
        if not Announcer._installed:
            QAccessible.installFactory(_interface_for)
            Announcer._installed = True

    def new_interface(self) -> TimelineAccessible:
        """For Qt, which asks again when the view's meta-object has changed, and keeps the old one.

        One that it got a second time would be deleted a second time.
        """
        made = TimelineAccessible(self._area, self._scene, self._speech, self._floating)
        self._given.append(made)
        _kept[:] = [kept for kept in _kept if isValid(kept)]
        _kept.append(made)
        return made

    def _listening(self) -> TimelineAccessible | None:
        if not self._given or not QAccessible.isActive() or not isValid(self._given[-1]):
            return None
        return self._given[-1]

    def rows_changed(self) -> None:
        interface = self._listening()
        if interface is not None:
            for given in self._given:
                given.forget_gone()
            event = QAccessibleEvent(self._area, QAccessible.Event.ObjectReorder)
            QAccessible.updateAccessibility(event)

    def row_changed(self, key: RowKey) -> None:
        interface = self._listening()
        if interface is not None and interface.row(key) is not None:
            event = QAccessibleEvent(interface.of_key(key), QAccessible.Event.NameChanged)
            QAccessible.updateAccessibility(event)

    def focus_moved(self, key: RowKey) -> None:
        interface = self._listening()
        if interface is not None and interface.row(key) is not None:
            event = QAccessibleEvent(interface.of_key(key), QAccessible.Event.Focus)
            QAccessible.updateAccessibility(event)

    def message_arrived(self, message: MessageView) -> None:
        if self._listening() is not None:
            self.arrived(self._speech.message(message))

    def arrived(self, words: str) -> None:
        """Say what came in while one is here, after what is being said."""
        if self._listening() is not None:
            announce(self._area, words)

    def close(self) -> None:
        """The view goes, and Qt deletes its lists, before or after this; their rows go here."""
        for given in self._given:
            given.forget_all()


_kept: Final[list[TimelineAccessible]] = []
"""What Qt has: it outlives the view's Python object, which may go before Qt deletes the list."""


def _interface_for(name: str, target: object) -> QAccessibleInterface | None:
    """Qt's factory: an interface for what has an announcer, None for everybody else."""
    del name
    announcer = getattr(target, "announcer", None)
    return announcer.new_interface() if isinstance(announcer, Announcer) else None
