"""Keys, clicks, menu, tooltips and reading aloud: what one does with the rows that are shown.

Every message has the same four ways to its actions: buttons in the row, the context menu by mouse,
the same menu by keyboard on the focused row, and the screen reader through that focus.
"""
# ruff: noqa: N815 - signals are spelt as Qt spells its own.

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from engine.core.ids import ParticipantId, UnixMs
from engine.events import DeliveryView, MessageView
from engine.history_views import HistoryReason, HistoryState
from ui.controls import plain_tip
from ui.glyphs import delivery_words
from ui.timeline.accessible import Announcer
from ui.timeline.canvas import TimelineCanvas
from ui.timeline.menu import MessageMenu, Wishes
from ui.timeline.parts import Part
from ui.timeline.rows import (
    DayRow,
    EarlierRow,
    LostRow,
    Row,
    RowKey,
    UnreadRow,
    message_in,
    row_key,
)
from ui.timeline.scene import Hit
from ui.timeline.selection import quoted
from ui.timeline.words import link_words, moment_words, spoken_row

_PAGE_KEEPS = 48
"""Pixels of the page before that stay in view."""


class TimelineInteraction(TimelineCanvas):
    linkActivated = Signal(str)
    fetchRequested = Signal()
    lostRequested = Signal(tuple)
    """What was given up and is wanted all the same: ``LostRow.names``."""
    earlierRequested = Signal()
    """What was said before the beginning that is here."""
    storesRequested = Signal()
    resendRequested = Signal(str)
    """A message id, as in all signals about one message."""
    discardRequested = Signal(str)
    deleteRequested = Signal(str)
    holdersRequested = Signal(str)
    copyDone = Signal()

    def __init__(
        self,
        *,
        names: Callable[[ParticipantId], str],
        now_ms: Callable[[], UnixMs],
        parent: QWidget | None,
    ) -> None:
        super().__init__(now_ms=now_ms, parent=parent)
        self.names = names
        self.others: tuple[ParticipantId, ...] = ()
        self._menu: MessageMenu | None = None
        self.setAccessibleName("Messages")
        self.announcer = Announcer(self, self)
        self.destroyed.connect(self.announcer.close)

    # mouse ----------------------------------------------------------------------------------------

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        hit = self.pointer.released(event.position())
        self.viewport().update()
        if hit is None:
            return
        if hit.part is not None:
            self._press(hit.part, hit.message, hit.key)
        elif hit.link is not None:
            self.linkActivated.emit(hit.link)

    def _press(self, part: Part, message: MessageView | None, key: RowKey) -> None:
        match part:
            case Part.FETCH:
                self.fetchRequested.emit()
            case Part.TRY_AGAIN:
                self._ask_for_lost(key)
            case Part.EARLIER:
                self.earlierRequested.emit()
            case Part.STORES:
                self.storesRequested.emit()
            case Part.GAP_DETAILS:
                self.scene.explain(key)
                self.refresh()
            case Part.HELD_ALL | Part.HELD_FEWER:
                self.scene.loaded.fold_held()
                self.announcer.rows_changed()
                self.refresh()
            case Part.RESEND if message is not None:
                self.resendRequested.emit(message.message_id)
            case Part.DISCARD if message is not None:
                self.discardRequested.emit(message.message_id)
            case Part.UNFOLD if message is not None:
                self.scene.unfold(message.message_id)
                self.refresh()
            case _:
                pass

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            hit = self.scene.hit(event.pos().toPointF())
            words = "" if hit is None else self._tip(hit)
            if words:
                QToolTip.showText(event.globalPos(), plain_tip(words), self.viewport())
            else:
                QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def _tip(self, hit: Hit) -> str:
        """The full words behind the small marks: ticks and time; a link's real target."""
        if hit.link is not None:
            return link_words(hit.link)
        if hit.message is None or not hit.over_meta:
            return ""
        parts = [moment_words(hit.message.sent_ms)]
        if hit.message.delivery is not None:
            parts.append(self._delivery(hit.message.delivery))
        if hit.message.held:
            parts.append("Held: its time has not come.")
        if hit.message.waiting:
            parts.append("Waiting for earlier messages.")
        if hit.message.late:
            parts.append("Arrived late.")
        return ". ".join([parts[0], " ".join(parts[1:])]).rstrip(" .") + "."

    def _delivery(self, delivery: DeliveryView) -> str:
        return delivery_words(delivery, self.others, self.names, pair=self.scene.is_pair)

    def scroll_by(self, down: float) -> None:
        """Who goes on past the beginning asks for what was said before it."""
        was_there = down > 0 and self._beginning_is_in_view()
        super().scroll_by(down)
        if was_there and not self.scene.placing.sticks and self._may_ask_earlier():
            self.earlierRequested.emit()

    def _beginning_is_in_view(self) -> bool:
        placed = self.scene.placed
        return bool(placed) and isinstance(placed[0].row, EarlierRow) and placed[0].y >= 0

    def _may_ask_earlier(self) -> bool:
        """By scrolling alone only while that brings something; the button works always."""
        history = self.scene.loaded.history
        if history is None or history.reason not in {HistoryReason.EARLIER, HistoryReason.USER}:
            return True
        return history.state is HistoryState.DONE and history.arrived > 0

    # menu -----------------------------------------------------------------------------------------

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() is QContextMenuEvent.Reason.Keyboard:
            self._menu_for_focus()
            return
        hit = self.scene.hit(event.pos().toPointF())
        if hit is not None and hit.message is not None:
            self.open_menu(hit.message, event.globalPos(), link=hit.link)

    def _menu_for_focus(self) -> None:
        if self.focus_key is None:
            self._focus_on(self._focusable_in_view(last=True))
        index = None if self.focus_key is None else self.scene.loaded.row_index(self.focus_key)
        rect = None if self.focus_key is None else self.scene.rect(self.focus_key)
        message = None if index is None else message_in(self.scene.loaded.rows[index])
        if message is not None and rect is not None:
            below = rect.bottomLeft().toPoint() + QPoint(12, 0)
            self.open_menu(message, self.viewport().mapToGlobal(below), link=None)

    def open_menu(self, message: MessageView, at: QPoint, *, link: str | None) -> None:
        """What can be done with a message; the only menu at a time."""
        if self._menu is not None:
            return
        message_id = message.message_id
        wishes = Wishes(
            copy=self.copy_selection,
            copy_message=lambda: self._copy(quoted(message)),
            copy_link=lambda: self._copy(link or ""),
            holders=lambda: self.holdersRequested.emit(message_id),
            resend=lambda: self.resendRequested.emit(message_id),
            discard=lambda: self.discardRequested.emit(message_id),
            delete=lambda: self.deleteRequested.emit(message_id),
        )
        chosen = bool(self.selection.ranges(self.scene.loaded.messages))
        self._menu = MessageMenu(
            self,
            message,
            has_selection=chosen,
            link=link,
            wishes=wishes,
            pair=self.scene.is_pair,
        )
        self._menu.aboutToHide.connect(self._menu_gone)
        self._menu.popup(at)

    @property
    def menu(self) -> MessageMenu | None:
        """The open menu, if there is one."""
        return self._menu

    def _menu_gone(self) -> None:
        self._menu = None

    # copying --------------------------------------------------------------------------------------

    def copy_selection(self) -> None:
        """What is selected, else the focused message."""
        text = self.selection.copied(self.scene.loaded.messages)
        if not text and self.focus_key is not None:
            index = self.scene.loaded.row_index(self.focus_key)
            message = None if index is None else message_in(self.scene.loaded.rows[index])
            text = "" if message is None else quoted(message)
        self._copy(text)

    def _copy(self, text: str) -> None:
        if text:
            QGuiApplication.clipboard().setText(text)
            self.copyDone.emit()

    # keys -----------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, shift = event.key(), event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_selection()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.selection.select_all(self.scene.loaded.messages)
            self.viewport().update()
        elif key == Qt.Key.Key_Menu or (key == Qt.Key.Key_F10 and shift):
            self._menu_for_focus()
        elif not self._moved_by(Qt.Key(key)):
            event.ignore()

    def _moved_by(self, key: Qt.Key) -> bool:
        page = max(self.scene.height - _PAGE_KEEPS, self.scene.height / 2)
        match key:
            case Qt.Key.Key_Up:
                self._step_focus(-1)
            case Qt.Key.Key_Down:
                self._step_focus(1)
            case Qt.Key.Key_PageUp:
                self.scroll_by(page)
            case Qt.Key.Key_PageDown:
                self.scroll_by(-page)
            case Qt.Key.Key_Home:
                self.go_to_beginning()
            case Qt.Key.Key_End:
                self.go_to_newest()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if self.focus_key is not None:
                self._press_focused()
            case Qt.Key.Key_Escape if self.focus_key is not None or not self.selection.is_empty:
                self.selection.clear()
                self.focus_key = None
                self.viewport().update()
            case _:
                return False
        return True

    def _ask_for_lost(self, key: RowKey) -> None:
        index = self.scene.loaded.row_index(key)
        row = None if index is None else self.scene.loaded.rows[index]
        if isinstance(row, LostRow):
            self.lostRequested.emit(row.names)

    def _press_focused(self) -> None:
        """Enter does what the row wants most: fetch, resend, unfold, or open its only link."""
        index = None if self.focus_key is None else self.scene.loaded.row_index(self.focus_key)
        if index is None:
            return
        row = self.scene.loaded.rows[index]
        parts = [part for part, _rect in getattr(self.scene.box(row), "parts", ())]
        message = message_in(row)
        if parts:
            self._press(parts[-1], message, row_key(row))
        elif message is not None and len(message.spans) == 1:
            self.linkActivated.emit(message.spans[0].target)

    def _step_focus(self, step: int) -> None:
        rows = self.scene.loaded.rows
        index = None if self.focus_key is None else self.scene.loaded.row_index(self.focus_key)
        if index is None or self.scene.rect(row_key(rows[index])) is None:
            self._focus_on(self._focusable_in_view(last=step < 0))
            return
        index += step
        while 0 <= index < len(rows):
            if not isinstance(rows[index], DayRow | UnreadRow):
                self._focus_on(rows[index])
                return
            index += step
        self.scroll_by(-step * _PAGE_KEEPS)

    def _focusable_in_view(self, *, last: bool) -> Row | None:
        rows = [p.row for p in self.scene.placed if p.y >= 0 and p.bottom <= self.scene.height]
        rows = [r for r in rows if not isinstance(r, DayRow | UnreadRow)]
        return None if not rows else rows[-1 if last else 0]

    def _focus_on(self, row: Row | None) -> None:
        if row is None:
            return
        self.focus_key = row_key(row)
        self.reveal(self.focus_key)
        self.viewport().update()
        self.announcer.focus_moved(self.focus_key)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        by_key = event.reason() in {
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
        }
        if by_key and self.focus_key is None:
            self._focus_on(self._focusable_in_view(last=True))
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    # reading aloud --------------------------------------------------------------------------------

    def spoken_rows(self) -> list[Row]:
        return self.scene.loaded.rows

    def spoken_index(self, key: RowKey) -> int | None:
        return self.scene.loaded.row_index(key)

    def spoken_words(self, row: Row) -> str:
        now_ms = self.scene.now_ms()
        pair = self.scene.is_pair
        return spoken_row(row, others=self.others, names=self.names, now_ms=now_ms, pair=pair)

    def spoken_rect(self, key: RowKey) -> QRect | None:
        rect = self.scene.rect(key)
        return None if rect is None else rect.toAlignedRect().translated(self.viewport().pos())

    def spoken_focus(self) -> RowKey | None:
        return self.focus_key if self.hasFocus() else None

    def floating_children(self) -> list[QWidget]:
        return [w for w in (self.late_chip, self.jump_button) if w.isVisible()]
