"""The timeline of one conversation, as the window uses it: open it, tell it changes, listen to it.

The view receives Qt's events and hands them on.  Three parts work on one ``Scene``: ``canvas`` lays
it out, scrolls and paints it; ``interaction`` takes input; and ``updates`` keeps it current, with
``navigation`` reading pages and ``read_tracker`` watching what is seen.  The view changes nothing
by itself: resending, deleting, fetching and links are signals for the window.
"""
# ruff: noqa: N815 - signals are spelt as Qt spells its own.

from collections.abc import Callable
from datetime import date

from PySide6.QtCore import QEvent, QRect, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QMoveEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QScrollBar, QWidget

from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.events import ConversationView, GapView, HeldView, MessageView
from engine.file_views import FileView
from engine.history_views import HistoryView
from ui.theme import current_theme
from ui.timeline.accessible import Announcer, Speech
from ui.timeline.buttons import RowButton
from ui.timeline.canvas import TimelineCanvas
from ui.timeline.interaction import TimelineInteraction
from ui.timeline.link_card import Describe
from ui.timeline.navigation import TimelineNavigation
from ui.timeline.paging import PageSource
from ui.timeline.reading import ReadState, ReadTracker
from ui.timeline.requests import TimelineRequests
from ui.timeline.rows import Withheld, local_day, message_key, message_of
from ui.timeline.scene import Scene
from ui.timeline.updates import TimelineUpdates
from ui.translate import tr


class _QuietBar(QScrollBar):
    """Keeps its place while there is nothing to scroll, so that no row moves when it appears."""

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), current_theme().canvas)
        if self.maximum() > self.minimum():
            super().paintEvent(event)


class TimelineView(QAbstractScrollArea):
    pageShown = Signal()
    """A page came and stands in the view."""
    loadFailed = Signal(str)
    """A page could not be read; the text is for the user."""
    visibleUpTo = Signal(Position)
    """Everything up to here was in view in an active window."""
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
    deleteRequested = Signal(MessageView)
    keepRequested = Signal(str)
    """It shall not be deleted for everybody after all."""
    holdersRequested = Signal(str)
    replyRequested = Signal(MessageView)
    editRequested = Signal(MessageView)
    forwardRequested = Signal(MessageView)
    reactionRequested = Signal(MessageView, str)
    """A second request with the same emoji takes the reaction back."""
    reactionPickRequested = Signal(MessageView)
    """Any emoji."""
    reactionsRequested = Signal(str)
    infoRequested = Signal(str)
    inspectRequested = Signal(str)
    messageChosen = Signal(str)
    """It was clicked, or the keys are about it now."""
    personRequested = Signal(str)
    """Who said it: a participant id."""
    writeRequested = Signal(str)
    """To who said it, alone: a participant id."""
    versionsRequested = Signal(str)
    fileOpened = Signal(MessageView)
    """Its picture is to be shown large, or its file kept."""
    fileSaveRequested = Signal(MessageView)
    fileActRequested = Signal(MessageView, RowButton)
    """Of a larger file: one of ``buttons.OF_FILES``."""
    quotedRequested = Signal(str)
    """What the message quotes is not here, and is wanted."""

    def __init__(  # noqa: PLR0913 - all that it knows of the world around it
        self,
        source: Callable[[], PageSource],
        *,
        names: Callable[[ParticipantId], str],
        now_ms: Callable[[], UnixMs],
        faces_of: Callable[[ConversationView], dict[ParticipantId, bytes]] = lambda _: {},
        describe: Describe = lambda _: None,
        parent: QWidget | None = None,
    ) -> None:
        """``faces_of``: the pictures of a group's members, as far as they are known.

        ``describe``: what an invitation or a contact link says.
        """
        super().__init__(parent)
        self.setAccessibleName(tr("Messages"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBar(_QuietBar())
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        read_state = ReadState()
        self.scene = Scene(now_ms, faces_of, describe)
        self.canvas = TimelineCanvas(self, self.scene, read_state)
        speech = Speech(self.scene, names)
        floating = (self.canvas.late_chip, self.canvas.jump_button)
        self.announcer = Announcer(self, self.scene, speech, floating)
        self.navigation = TimelineNavigation(source, self.scene, self.canvas)
        self.read_tracker = ReadTracker(self, self.scene, self.canvas, read_state)
        self.updates = TimelineUpdates(
            self.scene, self.canvas, self.navigation, self.read_tracker, self.announcer
        )
        self.interaction = TimelineInteraction(
            self, self.scene, self.canvas, self.navigation, self.announcer, speech, self._requests()
        )
        self.canvas.late_chip.clicked.connect(self._go_to_late)
        self.canvas.jump_button.clicked.connect(self.go_to_newest)
        self.navigation.page_shown.connect(self.pageShown)
        self.navigation.page_failed.connect(self.loadFailed)
        self.read_tracker.marker_moved.connect(self.visibleUpTo)
        self.destroyed.connect(self.announcer.close)

    def _requests(self) -> TimelineRequests:
        return TimelineRequests(
            open_link=self.linkActivated.emit,
            fetch_missing=self.fetchRequested.emit,
            fetch_lost=self.lostRequested.emit,
            fetch_earlier=self.earlierRequested.emit,
            show_stores=self.storesRequested.emit,
            show_holders=self.holdersRequested.emit,
            resend=self.resendRequested.emit,
            discard=self.discardRequested.emit,
            delete=self.deleteRequested.emit,
            keep=self.keepRequested.emit,
            open_file=self.fileOpened.emit,
            save_file=self.fileSaveRequested.emit,
            act_on_file=self.fileActRequested.emit,
            reply=self.replyRequested.emit,
            edit=self.editRequested.emit,
            forward=self.forwardRequested.emit,
            react=self.reactionRequested.emit,
            pick_reaction=self.reactionPickRequested.emit,
            show_reactions=self.reactionsRequested.emit,
            show_info=self.infoRequested.emit,
            inspect=self.inspectRequested.emit,
            choose=self.messageChosen.emit,
            show_person=self.personRequested.emit,
            write_to=self.writeRequested.emit,
            show_versions=self.versionsRequested.emit,
            fetch_quoted=self.quotedRequested.emit,
        )

    # what the window calls ----------------------------------------------------------------------

    def open(self, conversation: ConversationView) -> None:
        """Show a conversation at the first unread message, or else at the newest."""
        self.interaction.reset()
        self.updates.open(conversation)

    def clear(self) -> None:
        """Show nothing."""
        self.interaction.reset()
        self.updates.clear()

    def show_verified(self, verified: frozenset[ParticipantId]) -> None:
        """Whose names get the mark of a compared key."""
        self.updates.show_verified(verified)

    def show_leaving(self, leaving: frozenset[MessageId]) -> None:
        """Which messages are about to be deleted for everybody."""
        self.updates.show_leaving(leaving)

    def update_conversation(self, conversation: ConversationView) -> None:
        """Members changed: who said a message, and who does not hold it yet, is said by name.

        Or what is unread: its first message is where the line is drawn.
        """
        self.updates.change_conversation(conversation)

    def add(self, *messages: MessageView) -> None:
        """Show new messages.  One's own brings the newest into view."""
        self.updates.add(*messages)

    def change(self, message: MessageView) -> None:
        """The same message id: delivery, or a waiting row that found its place."""
        self.updates.change(message)

    def progress(self, message_id: MessageId, file: FileView) -> None:
        """More of a larger file is here, or with others."""
        self.updates.progress(message_id, file)

    def remove(self, message_id: MessageId) -> None:
        self.interaction.leave(message_id)
        self.updates.remove(message_id)

    def set_gap(self, gap: GapView | None) -> None:
        """What is missing in the open conversation; None once everything arrived."""
        self.updates.set_gap(gap)

    def set_held(self, held: HeldView | None) -> None:
        """What is held aside in the open conversation; None once everything took its place."""
        self.updates.set_held(held)

    def offer_earlier(self, history: HistoryView | None) -> None:
        """What was said before the beginning can be had; ``history``: how fetching it goes."""
        self.updates.offer_earlier(history)

    def withhold_earlier(self, withheld: Withheld | None) -> None:
        """What was said before the beginning could not be read here; None: it could."""
        self.updates.withhold_earlier(withheld)

    def outrank(self, members: frozenset[ParticipantId]) -> None:
        """Whose messages one may delete for everybody, beside one's own."""
        self.scene.outranked = members

    def allow_writing(self, allowed: bool) -> None:
        """Whether one can answer, react and edit here now."""
        self.scene.can_write = allowed
        self.interaction.hover_bar.hide_now()

    def last_own(self) -> MessageView | None:
        """Our newest message that can be edited, if it is loaded."""
        return self.interaction.last_editable()

    def chosen(self) -> MessageView | None:
        """The message that keys are about, or else the newest one in view."""
        return self.interaction.chosen()

    def place_of(self, message_id: MessageId) -> QRect:
        """What is seen of a message, on the screen; the lower edge if nothing is."""
        whole = self.viewport().rect()
        seen = self.scene.seen_of(message_id)
        place = QRect(whole.bottomLeft(), whole.bottomRight()) if seen is None else seen.toRect()
        return QRect(self.viewport().mapToGlobal(place.topLeft()), place.size())

    def go_to(self, position: Position) -> None:
        """Show a message, wherever it is, and mark it for a moment."""
        self.navigation.go_to(position)

    def show_found(self, position: Position) -> None:
        """``go_to``, and keep it marked until another is found, or ``leave_found``."""
        self.canvas.keep_marked(position.message_id)
        self.go_to(position)

    def leave_found(self) -> None:
        self.canvas.keep_marked(None)

    def mark_found(self, query: str) -> None:
        """Mark the words of a search in all messages; "" ends it."""
        self.canvas.mark_found(query)

    def enter_at(self, position: Position) -> None:
        """``go_to``, and the keys with it: the message is the one that keys are about."""
        self.go_to(position)
        self.scene.focus_key = message_key(position.message_id)
        self.setFocus()

    def go_to_newest(self) -> None:
        self.navigation.go_to_newest()

    def go_on_after_own(self) -> None:
        """One said something: on at the newest, and the keys are about no older row any more."""
        self.scene.focus_key = None
        self.go_to_newest()

    def day_in_view(self) -> date:
        """Of the topmost message; of today while there is none."""
        shown = next((m for p in self.scene.placed if (m := message_of(p.row)) is not None), None)
        return local_day(self.scene.now_ms() if shown is None else shown.sent_ms)

    def go_to_day(self, day: date) -> None:
        """Show the first message of this local day, or else the next one there is."""
        self.navigation.go_to_day(day)
        self.setFocus()

    async def days_with_messages(self, first: date, last: date) -> frozenset[date]:
        """Which of the local days from ``first`` to ``last`` have any."""
        return await self.navigation.days_with_messages(first, last)

    def _go_to_late(self) -> None:
        position = self.read_tracker.state.first_late()
        if position is not None:
            self.navigation.go_to(position)
            self.read_tracker.state.followed_late()
            self.canvas.refresh()

    # Qt's events --------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Of its window becoming active only the window itself hears as a change."""
        if event.type() == QEvent.Type.WindowActivate:
            self.read_tracker.look_again()
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            self.interaction.show_tooltip(event)
            return True
        if event.type() is QEvent.Type.Leave:
            self.interaction.mouse_left()
        return super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        self.canvas.paint(event.region())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.canvas.fit()

    def moveEvent(self, event: QMoveEvent) -> None:
        """Something above came or went."""
        super().moveEvent(event)
        self.canvas.compensate_move(event.pos().y() - event.oldPos().y())

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """The scrollbar follows the rows, not the other way round."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.interaction.wheel_turned(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.interaction.mouse_pressed(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.interaction.mouse_moved(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.interaction.mouse_released(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.interaction.mouse_double_clicked(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.interaction.menu_asked(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self.interaction.key_pressed(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.interaction.focus_came(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.canvas.repaint()
