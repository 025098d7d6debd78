"""What a user does in the timeline: mouse, wheel, scrollbar, keys, the menu of a message, copying.

Every message has the same four ways to its actions: buttons in the row, the context menu by mouse,
the same menu by keyboard on the focused row, and the screen reader through that focus.
"""

from PySide6.QtCore import QPoint, QRectF, Qt, QTimer
from PySide6.QtGui import (
    QContextMenuEvent,
    QCursor,
    QFocusEvent,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QAbstractSlider, QApplication

from engine.core.ids import MessageId
from engine.events import MessageView
from engine.history_views import HistoryReason, HistoryState
from engine.text_spans import SpanKind
from ui.marked_text import code_blocks, utf16_slice
from ui.menu import Menu
from ui.timeline.abilities import Abilities, abilities_of
from ui.timeline.accessible import Announcer, Speech
from ui.timeline.boxes import BubbleBox
from ui.timeline.bubble_parts import MORE_CHIP
from ui.timeline.buttons import FileButton, RowButton
from ui.timeline.canvas import SCROLL_UNITS, TimelineCanvas
from ui.timeline.cards import CardBox
from ui.timeline.hover_bar import HoverBar
from ui.timeline.link_card import own_link
from ui.timeline.menu import MessageMenu, QuickReactions
from ui.timeline.navigation import TimelineNavigation
from ui.timeline.pointer import Pointer
from ui.timeline.quotes import Quotes
from ui.timeline.requests import TimelineRequests
from ui.timeline.rows import (
    DayRow,
    LostRow,
    Row,
    RowKey,
    UnreadRow,
    message_in,
    message_key,
    row_key,
)
from ui.timeline.scene import Hit, Scene
from ui.timeline.selection import bare
from ui.tips import show_tip
from ui.translate import tr

_WHEEL_NOTCH = 120
_LINE = 20
_PAGE_KEEPS = 48
"""Pixels of the page before that stay in view."""


class TimelineInteraction:
    """Turns Qt's input events into scrolling, focus, selection and requests."""

    def __init__(  # noqa: PLR0913, PLR0917 - input reaches all that a user can act on
        self,
        area: QAbstractScrollArea,
        scene: Scene,
        canvas: TimelineCanvas,
        navigation: TimelineNavigation,
        announcer: Announcer,
        speech: Speech,
        requests: TimelineRequests,
    ) -> None:
        self._area = area
        self._scene = scene
        self._canvas = canvas
        self._navigation = navigation
        self._announcer = announcer
        self._speech = speech
        self._requests = requests
        self._pointer = Pointer(area.viewport(), scene, canvas, hovered=self._show_hover_bar)
        self._quotes = Quotes(
            scene, canvas, navigation, announcer, requests, tell_focus=self._tell_focus
        )
        self._menu: Menu | None = None
        self.hover_bar = HoverBar(area.viewport())
        self._untold = False
        """Whether a screen reader has not heard yet which row has the focus."""
        navigation.page_shown.connect(self._page_shown)
        self.hover_bar.reply_pressed.connect(self._bar_reply)
        self.hover_bar.react_pressed.connect(self._bar_react)
        self.hover_bar.more_pressed.connect(self._bar_more)
        self.hover_bar.left.connect(self._pointer.look_again)
        area.verticalScrollBar().actionTriggered.connect(self._on_scrollbar)
        canvas.scrolled_past_beginning.connect(self._ask_earlier)
        canvas.scrolled.connect(self._keep_bar_beside)
        canvas.rows_placed.connect(self._keep_bar_beside)

    def reset(self) -> None:
        """Another conversation is shown."""
        self._pointer.reset()
        self.hover_bar.hide_now()

    # mouse --------------------------------------------------------------------------------------

    def mouse_pressed(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._pointer.press(event)
            self._scene.focus_key = None
            self._canvas.repaint()

    def mouse_moved(self, event: QMouseEvent) -> None:
        self._pointer.move(event)

    def mouse_released(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        hit = self._pointer.release(event)
        self._canvas.repaint()
        if hit is None:
            return
        if hit.button is not None:
            self._press(hit.button, hit.key, hit.message)
        elif hit.code is not None and hit.message is not None:
            self._copy_code(hit.message, hit.code)
        elif hit.link is not None:
            self._requests.open_link(hit.link)
        elif hit.message is not None:
            self._press_part(hit, hit.message)

    def _press_part(self, hit: Hit, message: MessageView) -> None:
        if hit.chip:
            self._press_chip(message, hit.chip)
        elif hit.over_file:
            self._requests.open_file(message)
        elif hit.over_quote:
            self._quotes.go_to_quoted(message)
        elif hit.over_sender:
            self._requests.show_person(message.sender_id)
        elif hit.over_meta and self._abilities(message).info:
            self._requests.inspect(message.message_id)
        else:
            self._requests.choose(message.message_id)

    def mouse_double_clicked(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._pointer.double_click(event)
            self._canvas.repaint()

    def mouse_left(self) -> None:
        if not self.hover_bar.underMouse():
            self._pointer.leave()

    def show_tooltip(self, event: QHelpEvent) -> None:
        hit = self._scene.hit(event.pos().toPointF())
        words = "" if hit is None else self._speech.tip(hit)
        show_tip(event.globalPos(), words, self._area.viewport())

    # about messages -----------------------------------------------------------------------------

    def _abilities(self, message: MessageView) -> Abilities:
        scene, leaving = self._scene, message.message_id in self._scene.leaving
        can_write, below = scene.can_write, scene.outranked
        return abilities_of(message, can_write=can_write, leaving=leaving, outranked=below)

    def last_editable(self) -> MessageView | None:
        newest_first = reversed(self._scene.loaded.messages)
        return next((m for m in newest_first if m.is_own and self._abilities(m).edit), None)

    def _show_hover_bar(self) -> None:
        hover = self._scene.hover
        rect = None if hover is None else self._scene.rect(hover.key)
        self._put_bar(None if hover is None else hover.message, rect)

    def _put_bar(self, message: MessageView | None, rect: QRectF | None) -> None:
        can = None if message is None else self._abilities(message)
        if message is None or rect is None or can is None or not can.info or can.keep:
            self.hover_bar.hide_now()
        else:
            room, on_it = self._area.viewport().rect(), self._scene.is_in_album(message.message_id)
            self.hover_bar.show_for(message, can, rect, QRectF(room), on_it=on_it)

    def _keep_bar_beside(self) -> None:
        """It goes with its row and what that says, or to the one that came under the mouse."""
        if self.hover_bar.message is None:
            return
        key = message_key(self.hover_bar.message.message_id)
        if (rect := self._scene.rect(key)) == self.hover_bar.bubble:
            self._put_bar(self._scene.message(key), rect)
        else:
            self.hover_bar.hide_now()
            self._pointer.look_again()
            self._show_hover_bar()

    def _bar_reply(self) -> None:
        if self.hover_bar.message is not None:
            self._requests.reply(self.hover_bar.message)

    def _bar_react(self) -> None:
        if (message := self.hover_bar.message) is not None:
            place = self.hover_bar.react_place()
            self._open(QuickReactions(self._area, message, self._requests), place)

    def _bar_more(self) -> None:
        if self.hover_bar.message is not None:
            self.open_menu(self.hover_bar.message, self.hover_bar.more_place(), link=None)

    def _press_chip(self, message: MessageView, emoji: str) -> None:
        if emoji == MORE_CHIP:
            self._requests.show_reactions(message.message_id)
        elif self._abilities(message).react:
            self._requests.react(message, emoji)

    # scrolling ----------------------------------------------------------------------------------

    def wheel_turned(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # The window changes the text size with it.
            return
        if self._turned_sideways(event):
            event.accept()
            return
        down = float(event.pixelDelta().y())
        if not down:
            lines = event.angleDelta().y() / _WHEEL_NOTCH * QApplication.wheelScrollLines()
            down = lines * _LINE * self._scene.theme.metrics.factor
        if down:
            self._canvas.scroll_by(down)
        event.accept()

    def _turned_sideways(self, event: QWheelEvent) -> bool:
        """Code scrolls by a wheel that turns sideways, or with Shift."""
        pixels, angle = event.pixelDelta(), event.angleDelta()
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        sideways = shift or abs(angle.x()) > abs(angle.y())
        code = self._scene.code_at(event.position()) if sideways else None
        if code is None:
            return False
        right = -float(pixels.x() or (pixels.y() if shift else 0))
        if not right:
            turned = angle.x() or angle.y()
            right = -turned / _WHEEL_NOTCH * QApplication.wheelScrollLines() * _LINE
        if code.scroll_by(right):
            self._canvas.repaint()
        return True

    def _on_scrollbar(self, action: int) -> None:
        bar, kind = self._area.verticalScrollBar(), QAbstractSlider.SliderAction
        page = self._scene.height * 0.9
        match kind(action):
            case kind.SliderSingleStepAdd:
                self._canvas.scroll_by(-3 * _LINE)
            case kind.SliderSingleStepSub:
                self._canvas.scroll_by(3 * _LINE)
            case kind.SliderPageStepAdd:
                self._canvas.scroll_by(-page)
            case kind.SliderPageStepSub:
                self._canvas.scroll_by(page)
            case kind.SliderToMinimum:
                self._navigation.go_to_beginning()
            case kind.SliderToMaximum:
                self._navigation.go_to_newest()
            case kind.SliderMove:
                self._canvas.show_day_pill()
                if bar.sliderPosition() >= bar.maximum():
                    self._navigation.go_to_newest()
                else:
                    self._navigation.go_to_ordinal(bar.sliderPosition() / SCROLL_UNITS)
                return
            case _:
                return
        bar.setSliderPosition(bar.value())

    def _ask_earlier(self) -> None:
        """By scrolling alone only while that brings something; the button works always."""
        history = self._scene.loaded.history
        if not self._scene.loaded.can_have_earlier:
            return
        if history is not None and history.reason in {HistoryReason.EARLIER, HistoryReason.USER}:
            brought_some = history.state is HistoryState.DONE and history.arrived > 0
            if not brought_some:
                return
        self._requests.fetch_earlier()

    # buttons in rows ----------------------------------------------------------------------------

    def _press(  # noqa: C901 - one case per button
        self, button: RowButton, key: RowKey, message: MessageView | None
    ) -> None:
        match button:
            case RowButton.FETCH:
                self._requests.fetch_missing()
            case RowButton.TRY_AGAIN:
                self._fetch_lost(self._scene.row(key))
            case RowButton.EARLIER:
                self._requests.fetch_earlier()
            case RowButton.STORES:
                self._requests.show_stores()
            case RowButton.GAP_DETAILS:
                self._scene.explain(key)
                self._canvas.refresh()
            case RowButton.HELD_ALL | RowButton.HELD_FEWER:
                self._scene.loaded.fold_held()
                self._announcer.rows_changed()
                self._canvas.refresh()
            case RowButton.RESEND | RowButton.DISCARD | RowButton.KEEP if message is not None:
                self._ask_about(button, message)
            case RowButton.UNFOLD if message is not None:
                self._scene.unfold(message.message_id)
                self._canvas.refresh()
            case RowButton.JOIN_GROUP | RowButton.ADD_PERSON:
                self._open_own_link(message)
            case RowButton.RESEND | RowButton.DISCARD | RowButton.KEEP | RowButton.UNFOLD:
                pass  # The message has gone.
            case _:
                self._act_on_file(button, message)

    def _ask_about(self, button: RowButton, message: MessageView) -> None:
        requests = self._requests
        wanted = {RowButton.RESEND: requests.resend, RowButton.DISCARD: requests.discard}
        wanted.get(button, requests.keep)(message.message_id)

    def _open_own_link(self, message: MessageView | None) -> None:
        target = None if message is None else own_link(message)
        if target is not None:
            self._requests.open_link(target)

    def _act_on_file(self, button: FileButton, message: MessageView | None) -> None:
        if message is not None:
            self._requests.act_on_file(message, button)

    def _copy_code(self, message: MessageView, start: int | None) -> None:
        """One block, or all of them."""
        found = [
            utf16_slice(message.text, begin, end)
            for _, begin, end in code_blocks(message)
            if start is None or begin == start
        ]
        _copy("\n".join(found))
        copied = tr("Code copied")
        show_tip(QCursor.pos(), copied, self._area.viewport())
        self._announcer.arrived(copied)

    def _fetch_lost(self, row: Row | None) -> None:
        if isinstance(row, LostRow):
            self._requests.fetch_lost(row.names)

    # menu ---------------------------------------------------------------------------------------

    @property
    def menu(self) -> Menu | None:
        """The open menu, if there is one."""
        return self._menu

    def menu_asked(self, event: QContextMenuEvent) -> None:
        if event.reason() is QContextMenuEvent.Reason.Keyboard:
            self._open_menu_at_focus()
            return
        hit = self._scene.hit(event.pos().toPointF())
        if hit is not None and hit.message is not None:
            self.open_menu(hit.message, event.globalPos(), link=hit.link)

    def _open_menu_at_focus(self) -> None:
        if self._scene.focus_key is None:
            self._focus_on(self._focusable_in_view(last=True))
        message = self._focused_message()
        if message is not None:
            self.open_menu(message, self._place_below_focus(), link=None)

    def open_menu(self, message: MessageView, at: QPoint, *, link: str | None) -> None:
        """What can be done with a message; the only menu at a time."""
        if self._menu is not None:
            return
        selected = bool(self._scene.selection.ranges(self._scene.loaded.messages))
        menu = MessageMenu(
            self._area,
            message,
            self._abilities(message),
            self._requests,
            copy_message=(lambda: _copy(said)) if (said := bare(message)) else None,
            copy_selection=self.copy_selection if selected else None,
            copy_link=None if link is None else lambda: _copy(link),
            copy_code=lambda: self._copy_code(message, None),
            pair=self._scene.is_pair,
            about_sender=message.sender_id in self._scene.others,
        )
        self._open(menu, at)

    def _open(self, menu: Menu, at: QPoint) -> None:
        if self._menu is None:
            self._menu = menu
            menu.aboutToHide.connect(self._menu_closed)
            menu.popup(at)

    def _menu_closed(self) -> None:
        self._menu = None

    def copy_selection(self) -> None:
        """Copy what is selected, else the focused message."""
        text = self._scene.selection.copied(self._scene.loaded.messages)
        message = self._focused_message()
        if not text and message is not None:
            text = bare(message)
        _copy(text)

    # keys and focus -----------------------------------------------------------------------------

    def key_pressed(self, event: QKeyEvent) -> None:
        key, shift = event.key(), event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_selection()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self._scene.selection.select_all(self._scene.loaded.messages)
            self._canvas.repaint()
        elif key == Qt.Key.Key_Menu or (key == Qt.Key.Key_F10 and shift):
            self._open_menu_at_focus()
        elif not self._handles(Qt.Key(key)) and not self._acts(Qt.Key(key), event.modifiers()):
            event.ignore()

    def _acts(self, key: Qt.Key, modifiers: Qt.KeyboardModifier) -> bool:
        """The keys of the focused message, as its menu names them."""
        message = self._focused_message()
        if message is None or modifiers & ~Qt.KeyboardModifier.ShiftModifier:
            return False
        can, requests = self._abilities(message), self._requests
        match key:
            case Qt.Key.Key_R if can.reply:
                requests.reply(message)
            case Qt.Key.Key_E if can.edit:
                requests.edit(message)
            case Qt.Key.Key_Plus if can.react:
                requests.pick_reaction(message)
            case Qt.Key.Key_I if can.info:
                requests.show_info(message.message_id)
            case Qt.Key.Key_Delete if can.delete:
                requests.delete(message)
            case Qt.Key.Key_Q if message.quote is not None:
                self._quotes.follow(message, message.quote)
            case _:
                return False
        return True

    def _place_below_focus(self) -> QPoint:
        key = self._scene.focus_key
        rect = None if key is None else self._scene.rect(key)
        below = QPoint() if rect is None else rect.bottomLeft().toPoint()
        return self._area.viewport().mapToGlobal(below + QPoint(12, 0))

    def _handles(self, key: Qt.Key) -> bool:
        scene = self._scene
        page = max(scene.height - _PAGE_KEEPS, scene.height / 2)
        match key:
            case Qt.Key.Key_Up:
                self._step_focus(-1)
            case Qt.Key.Key_Down:
                self._step_focus(1)
            case Qt.Key.Key_Left | Qt.Key.Key_Right if self._scroll_code(key):
                self._canvas.repaint()
            case Qt.Key.Key_PageUp:
                self._canvas.scroll_by(page)
            case Qt.Key.Key_PageDown:
                self._canvas.scroll_by(-page)
            case Qt.Key.Key_Home:
                self._navigation.go_to_beginning()
            case Qt.Key.Key_End:
                self._navigation.go_to_newest()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if scene.focus_key is not None:
                self._press_focused()
            case Qt.Key.Key_Escape if scene.focus_key is not None or not scene.selection.is_empty:
                scene.selection.clear()
                scene.focus_key = None
                self._canvas.repaint()
            case _:
                return False
        return True

    def _scroll_code(self, key: Qt.Key) -> bool:
        """Whether the focused message has code that scrolls."""
        row = self._scene.row(self._scene.focus_key)
        box = None if row is None else self._scene.box(row)
        if not isinstance(box, BubbleBox):
            return False
        step = 3 * _LINE if key is Qt.Key.Key_Right else -3 * _LINE
        wide = [code for code in box.body.code_blocks if code.overflow]
        for code in wide:
            code.scroll_by(step)
        return bool(wide)

    def _focused_message(self) -> MessageView | None:
        return self._scene.message(self._scene.focus_key)

    def _press_focused(self) -> None:
        """Enter does what the row wants most: fetch, resend, unfold, or open its only link."""
        row = self._scene.row(self._scene.focus_key)
        if row is None:
            return
        box, message = self._scene.box(row), message_in(row)
        if isinstance(box, BubbleBox | CardBox) and box.buttons:
            button, _rect = box.buttons[-1]
            self._press(button, row_key(row), message)
        elif message is not None and message.file is not None:
            self._requests.open_file(message)
        elif message is not None:
            links = [span.target for span in message.spans if span.kind is SpanKind.LINK]
            if len(links) == 1:
                self._requests.open_link(links[0])

    def _step_focus(self, step: int) -> None:
        rows, key = self._scene.loaded.rows, self._scene.focus_key
        index = None if key is None else self._scene.loaded.row_index(key)
        if index is None or self._scene.rect(row_key(rows[index])) is None:
            self._focus_on(self._focusable_in_view(last=step < 0))
            return
        index += step
        while 0 <= index < len(rows):
            if not isinstance(rows[index], DayRow | UnreadRow):
                self._focus_on(rows[index])
                return
            index += step
        self._canvas.scroll_by(-step * _PAGE_KEEPS)

    def _focusable_in_view(self, *, last: bool) -> Row | None:
        rows = [p.row for p in self._scene.placed if p.y >= 0 and p.bottom <= self._scene.height]
        rows = [r for r in rows if not isinstance(r, DayRow | UnreadRow)]
        return None if not rows else rows[-1 if last else 0]

    def _focus_on(self, row: Row | None) -> None:
        if row is None:
            return
        key = self._scene.focus_key = row_key(row)
        self._canvas.reveal(key)
        self._canvas.repaint()
        self._tell_focus()
        if (message := message_in(row)) is not None:
            self._requests.choose(message.message_id)

    def leave(self, message_id: MessageId) -> None:
        """It goes: the keys that are about it go on to the row below, or to the one above."""
        key = message_key(message_id)
        for step in (1, -1):
            if self._scene.focus_key == key:
                self._step_focus(step)

    def chosen(self) -> MessageView | None:
        """The message that keys are about, or else the newest one in view."""
        in_view = (message_in(each.row) for each in self._scene.placed[::-1])
        return self._focused_message() or next(filter(None, in_view), None)

    def _tell_focus(self) -> None:
        """Of a row that is still being read from the disk once it is there."""
        key = self._scene.focus_key
        self._untold = key is not None and self._scene.row(key) is None
        if key is not None and not self._untold and self._area.hasFocus():
            self._announcer.focus_moved(key)

    def _page_shown(self) -> None:
        if self._untold:
            self._tell_focus()

    def focus_came(self, event: QFocusEvent) -> None:
        """By a key a row gets the focus, too; by mouse the one that had it loses it."""
        if event.reason() is Qt.FocusReason.MouseFocusReason:
            self._scene.focus_key = None
        by_key = event.reason() in {
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
            Qt.FocusReason.ShortcutFocusReason,
        }
        if by_key and self._scene.focus_key is None:
            self._focus_on(self._focusable_in_view(last=True))
        # Qt tells that the list has the focus when this is over, and the row comes after that.
        QTimer.singleShot(0, self._area, self._tell_focus)
        self._canvas.repaint()


def _copy(text: str) -> None:
    if text:
        QGuiApplication.clipboard().setText(text)
