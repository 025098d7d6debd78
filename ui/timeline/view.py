"""The timeline of one conversation, as the window uses it: open it, tell it events, listen to it.

It decides when pages are fetched (``paging``), keeps what one reads in place while messages come in
(``placing``), reports what was seen, and turns clicks and keys into signals.  It changes nothing by
itself: resend, delete, fetch and links are wishes that the window fulfils.
"""
# ruff: noqa: N815 - signals are spelt as Qt spells its own.

from collections.abc import Callable

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QWidget

from engine.api import Page
from engine.core.types import MessageId, ParticipantId, Position, UnixMs
from engine.events import ConversationView, GapView, MessageView
from ui.timeline.canvas import wall_clock_ms
from ui.timeline.interaction import TimelineInteraction
from ui.timeline.loaded import Placement
from ui.timeline.paging import Load, Pager, PageSource
from ui.timeline.reading import Reading
from ui.timeline.rows import message_key, message_of

_PAGE_AHEAD = 50
"""Rows left on a side when the next page is fetched."""
_SEEN_AFTER_MS = 150
_MAX_WAITING_EVENTS = 5000
_TARGET_SHARE = 0.3


class TimelineView(TimelineInteraction):
    visibleUpTo = Signal(Position)
    """Everything up to here was on screen in an active window."""
    pageShown = Signal()
    """A page came and stands in the view."""
    loadFailed = Signal(str)
    """A page could not be read; the text is for the user."""

    def __init__(
        self,
        source: PageSource,
        *,
        names: Callable[[ParticipantId], str],
        parent: QWidget | None = None,
        now_ms: Callable[[], UnixMs] = wall_clock_ms,
    ) -> None:
        super().__init__(names=names, now_ms=now_ms, parent=parent)
        self._conversation: ConversationView | None = None
        self._reading = Reading()
        self._pager = Pager(source, applied=self._apply, failed=self._page_failed)
        self._waiting_events: list[Callable[[], None]] = []
        self._target: Position | float | None = None
        self._seen_soon = self._timer(self.note_seen, single=True)
        self.late_chip.clicked.connect(self.go_to_late)
        self.late_chip.dismissed.connect(self._dismiss_late)
        self.jump_button.clicked.connect(self.go_to_newest)

    # what the window calls --------------------------------------------------------------------

    def open(self, conversation: ConversationView) -> None:
        """Show a conversation, at the first unread message or else at the newest."""
        self._start(conversation)
        self._pager.open(conversation.conversation_id)
        self.scene.loaded.set_first_unread(
            conversation.first_unread if conversation.unread else None
        )
        if conversation.unread and conversation.first_unread is not None:
            self._target = conversation.first_unread
            self._pager.around(conversation.first_unread)
        else:
            self._pager.latest()

    def clear(self) -> None:
        """Show nothing."""
        self._start(None)
        self._pager.open(None)

    def _start(self, conversation: ConversationView | None) -> None:
        self._conversation = conversation
        self.focus_key, self._target = None, None
        self._waiting_events.clear()
        self.selection.clear()
        self.pointer.reset()
        self.scene.start()
        if conversation is not None:
            self.update_conversation(conversation)
            self._reading.open(conversation)
        self._changed()

    def update_conversation(self, conversation: ConversationView) -> None:
        """Members changed: who does not hold a message yet is said by their names."""
        if self._is_shown(conversation):
            self.others = tuple(
                m.participant_id for m in conversation.members if not m.is_self and not m.has_left
            )

    def _is_shown(self, thing: ConversationView | MessageView | GapView) -> bool:
        shown = self._conversation
        return shown is not None and shown.conversation_id == thing.conversation_id

    def add(self, message: MessageView) -> None:
        """A row that was not there.  One's own brings the newest into view."""
        if self._is_shown(message) and not self._later(lambda: self._add(message)):
            self._add(message)

    def _add(self, message: MessageView) -> None:
        anchor = self.scene.placing.anchor
        placement = self.scene.loaded.add(message, keep=None if anchor is None else anchor[0])
        self._reading.added(message, placement)
        if message.is_own and placement is not Placement.REPLACED:
            if placement is Placement.BEYOND_NEWER:
                self.go_to_newest()
                return
            self.scene.placing.stick()
        self._changed()

    def change(self, message: MessageView) -> None:
        """The same message id: delivery, or a waiting row that found its place."""
        if not self._is_shown(message) or self._later(lambda: self.change(message)):
            return
        old = self.scene.loaded.get(message.message_id)
        if old is None:
            return
        self.scene.loaded.replace(message)
        if old.waiting and not message.waiting:
            self._reading.added(message, Placement.INSERTED)
            self._changed()
        else:
            self.announcer.row_changed(message_key(message.message_id))
            self.refresh()

    def remove(self, message_id: MessageId) -> None:
        if self._later(lambda: self.remove(message_id)):
            return
        self._reading.removed(message_id)
        if self.scene.loaded.remove(message_id):
            self._changed()

    def set_gap(self, gap: GapView | None) -> None:
        """What is missing in the open conversation; None once everything arrived."""
        if gap is None or self._is_shown(gap):
            self.scene.loaded.set_gap(gap)
            self._changed()

    def _later(self, replay: Callable[[], None]) -> bool:
        """While a page is read, events wait: the page may tell of a time before or after them."""
        if not self._pager.busy:
            return False
        self._waiting_events.append(replay)
        if len(self._waiting_events) > _MAX_WAITING_EVENTS:
            self._waiting_events.clear()
            self.go_to_newest()  # Reads what was dropped here.
        return True

    # pages ------------------------------------------------------------------------------------

    def _apply(self, load: Load, page: Page) -> None:
        loaded, placing = self.scene.loaded, self.scene.placing
        match load:
            case Load.OLDER:
                loaded.extend_older(page)
            case Load.NEWER:
                loaded.extend_newer(page)
            case Load.LATEST:
                loaded.reset(page)
                placing.stick()
            case Load.FIRST:
                loaded.reset(page)
                if page.messages:
                    placing.anchor_at(page.messages[0].message_id, self.scene.height)
            case Load.AROUND | Load.ORDINAL:
                loaded.reset(page)
                self._show_target()
        self._deliver_waiting()
        self._changed()
        self.pageShown.emit()

    @property
    def loading(self) -> bool:
        """Whether a page is under way."""
        return self._pager.busy

    def _page_failed(self, why: str) -> None:
        self._deliver_waiting()
        self.loadFailed.emit(why)

    def _deliver_waiting(self) -> None:
        waiting, self._waiting_events = self._waiting_events, []
        for event in waiting:
            event()

    def _show_target(self) -> None:
        """Put what was sought into view, or what is nearest to it."""
        loaded, target = self.scene.loaded, self._target
        if not loaded.messages or target is None:
            return
        if isinstance(target, Position):
            index = min(loaded.index_at_or_after(target), len(loaded) - 1)
            self.scene.placing.anchor_at(
                loaded.messages[index].message_id, self.scene.height * _TARGET_SHARE
            )
        else:
            self._anchor_ordinal(target)

    def _anchor_ordinal(self, ordinal: float) -> None:
        loaded = self.scene.loaded
        index = min(max(int(ordinal) - loaded.older_count, 0), len(loaded) - 1)
        message = loaded.messages[index]
        row_index = loaded.message_row_index(message.message_id)
        if row_index is not None:
            height = self.scene.box(loaded.rows[row_index]).height
            self.scene.placing.anchor_at(message.message_id, -(ordinal % 1) * height)

    def go_to_newest(self) -> None:
        if self.scene.loaded.has_newer or not len(self.scene.loaded):
            self._pager.latest()
            return
        self.scene.placing.stick()
        self.refresh()

    def go_to_beginning(self) -> None:
        if self.scene.loaded.has_older:
            self._pager.first()
        elif self.scene.loaded.messages:
            self.show_message(self.scene.loaded.messages[0].message_id, share=1, band=False)

    def go_to_ordinal(self, ordinal: float) -> None:
        loaded = self.scene.loaded
        if loaded.older_count <= ordinal < loaded.older_count + len(loaded):
            self._anchor_ordinal(ordinal)
            self.refresh()
        else:
            self._target = ordinal
            self._pager.seek(int(ordinal), loaded.total)

    def go_to(self, position: Position) -> None:
        """Lead to a message, wherever it is, and mark it for a moment."""
        index = self.scene.loaded.index_at_or_after(position)
        messages = self.scene.loaded.messages
        if index < len(messages) and messages[index].position == position:
            self.show_message(messages[index].message_id)
        else:
            self._target = position
            self._pager.around(position)

    def go_to_late(self) -> None:
        position = self._reading.first_late()
        if position is not None:
            self.go_to(position)

    def _dismiss_late(self) -> None:
        self._reading.dismiss_late()
        self.refresh()

    def _late_count(self) -> int:
        return self._reading.late

    # what was shown -----------------------------------------------------------------------------

    def _changed(self) -> None:
        self.announcer.rows_changed()
        self.refresh()

    def _rows_shown(self) -> None:
        loaded, placed = self.scene.loaded, self.scene.placed
        if placed and self._conversation is not None:
            first = self.scene.message_index(placed[0])
            last = self.scene.message_index(placed[-1])
            oldest, newest = loaded.first_placed, loaded.last_placed
            if loaded.has_older and oldest is not None and first < _PAGE_AHEAD:
                self._pager.older_than(oldest.position)
            elif loaded.has_newer and newest is not None and len(loaded) - last <= _PAGE_AHEAD:
                self._pager.newer_than(newest.position)
        self.jump_button.show_unread(self._reading.unread)
        if not self._seen_soon.isActive():
            self._seen_soon.start(_SEEN_AFTER_MS)

    def is_watched(self) -> bool:
        """Whether somebody can be looking: visible, in an active window that is not minimised."""
        window = self.window()
        return self.isVisible() and window.isActiveWindow() and not window.isMinimized()

    def note_seen(self) -> None:
        """Report what is in view; called by itself a moment after rows came into view."""
        if not self.is_watched():
            return
        limit = self.scene.height + 1
        whole = [
            message
            for p in self.scene.placed
            if p.bottom <= limit and (message := message_of(p.row)) is not None
        ]
        before = self._reading.late, self._reading.unread
        marker = self._reading.seen(whole, self.scene.loaded)
        if self.scene.placing.sticks:
            self._reading.caught_up()
        if before != (self._reading.late, self._reading.unread):
            self._place_floating()
            self.jump_button.show_unread(self._reading.unread)
        if marker is not None:
            self.visibleUpTo.emit(marker)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.ActivationChange:
            self._seen_soon.start(_SEEN_AFTER_MS)
