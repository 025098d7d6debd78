"""The timeline of one conversation, as the window uses it: open it, tell it events, listen to it.

It decides when pages are fetched (``paging``), keeps what one reads in place while messages come in
(``placing``), reports what was seen, and turns clicks and keys into signals.  It changes nothing by
itself: resend, delete, fetch and links are wishes that the window fulfils.
"""
# ruff: noqa: N815 - signals are spelt as Qt spells its own.

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtGui import QMoveEvent
from PySide6.QtWidgets import QWidget

from engine.answers import TimelinePage
from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.events import ConversationView, GapView, HeldView, MessageView
from engine.history_views import HistoryView
from ui.timeline.canvas import wall_clock_ms
from ui.timeline.loaded import Placement
from ui.timeline.paging import Load, Pager, PageSource
from ui.timeline.rows import is_system, message_key, message_of
from ui.timeline.watching import TimelineWatching
from ui.timeline.words import held_title, spoken_message

_PAGE_AHEAD = 50
"""Rows left on a side when the next page is fetched."""
_FRAME_MS = 16
_BURST_MS = 100
"""Between pictures while changes keep coming, as they do when history is fetched."""
_MOST_SAID = 3
"""More messages at once are not read out: nobody could follow."""
_MAX_WAITING_EVENTS = 5000
_TARGET_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Kept:
    """A place that is read again and must stay where it is."""

    position: Position
    offset: float


class TimelineView(TimelineWatching):
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
        self.faces_of: Callable[[ConversationView], dict[ParticipantId, bytes]] = lambda _: {}
        """Of a group: those members' pictures that are known."""
        self._pager = Pager(source, applied=self._apply, failed=self._page_failed)
        self._arrived: list[tuple[MessageView, Placement]] = []
        self._unshown = False
        self._waiting_events: list[Callable[[], None]] = []
        self._target: Position | Kept | float | None = None
        self._frame = self._timer(self._next_frame, single=True)
        self.destroyed.connect(self._pager.close)
        self.late_chip.clicked.connect(self.go_to_late)
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
        self._arrived.clear()
        self._rings_seen.clear()
        self.ring_over.clear()
        self.selection.clear()
        self.pointer.reset()
        self.scene.start()
        if conversation is not None:
            self.update_conversation(conversation)
            self._reading.open(conversation)
        self._unshown = True
        self.show_changes()

    def update_conversation(self, conversation: ConversationView) -> None:
        """Members changed: who said a message, and who does not hold it yet, is said by name."""
        if self._is_shown(conversation):
            self.scene.show_contact(conversation.contact)
            if conversation.contact is None:
                self.scene.faces = self.faces_of(conversation)
            if self.scene.loaded.rename({m.participant_id: m.name for m in conversation.members}):
                self._changed()
            self.others = tuple(
                m.participant_id for m in conversation.members if not m.is_self and not m.has_left
            )

    def _is_shown(self, thing: ConversationView | MessageView | GapView | HeldView) -> bool:
        shown = self._conversation
        return shown is not None and shown.conversation_id == thing.conversation_id

    def add(self, message: MessageView) -> None:
        """A row that was not there.  One's own brings the newest into view."""
        if self._is_shown(message) and not self._later(lambda: self._add(message)):
            self._add(message)

    def _add(self, message: MessageView) -> None:
        anchor = self.scene.placing.anchor
        placement = self.scene.loaded.add(message, keep=None if anchor is None else anchor[0])
        if message.is_own and placement is not Placement.REPLACED and not is_system(message):
            self.scene.loaded.set_first_unread(None)  # Who answers has read what was new.
        if placement is Placement.REPLACED:
            self._changed()
        elif message.is_own and placement is Placement.BEYOND_NEWER:
            self.go_to_newest()
        elif message.is_own:
            if placement is Placement.APPENDED:
                self.scene.placing.stick()
            self._changed()
        else:
            self._draw_unread_line(message)
            self._arrived.append((message, placement))
            self._changed()

    def change(self, message: MessageView) -> None:
        """The same message id: delivery, or a waiting row that found its place."""
        if not self._is_shown(message) or self._later(lambda: self.change(message)):
            return
        old = self.scene.loaded.get(message.message_id)
        if old is None:
            return
        self.scene.loaded.replace(message)
        self.announcer.row_changed(message_key(message.message_id))
        self._changed()

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

    def set_held(self, held: HeldView | None) -> None:
        """What is held aside in the open conversation; None once everything took its place."""
        if held is None or self._is_shown(held):
            is_news = held is not None and self.scene.loaded.held is None
            self.scene.loaded.set_held(held)
            self._changed()
            if held is not None and is_news and self.is_watched():
                self.announcer.arrived(held_title(held))

    def offer_earlier(self, history: HistoryView | None) -> None:
        """What was said before the beginning can be had; ``history``: what is done about it."""
        self.scene.loaded.offer_earlier(history)
        self._changed()

    def moveEvent(self, event: QMoveEvent) -> None:
        """Something above came or went: what one reads stays where it is on the screen."""
        super().moveEvent(event)
        down = event.pos().y() - event.oldPos().y()
        if self.isVisible() and down and not self.scene.placing.sticks:
            self.scene.placing.scroll(-down)

    def _later(self, replay: Callable[[], None]) -> bool:
        """While a page is read, events wait: the page may tell of a time before or after them."""
        if not self._pager.busy:
            return False
        self._waiting_events.append(replay)
        if len(self._waiting_events) > _MAX_WAITING_EVENTS:
            self._waiting_events.clear()
            self._read_again()  # Reads what was dropped here.
        return True

    def _read_again(self) -> None:
        """From where one is, without moving it."""
        anchor = self.scene.placing.anchor
        message = None if anchor is None else self.scene.loaded.get(anchor[0])
        if self.scene.placing.sticks or message is None or anchor is None or message.waiting:
            self._pager.latest()
        else:
            self._target = Kept(message.position, anchor[1])
            self._pager.around(message.position)

    # pages ------------------------------------------------------------------------------------

    def _apply(self, load: Load, page: TimelinePage) -> None:
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
        self._unshown = True
        self.show_changes()
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
        if isinstance(target, Kept):
            index = min(loaded.index_at_or_after(target.position), len(loaded) - 1)
            self.scene.placing.anchor_at(loaded.messages[index].message_id, target.offset)
        elif isinstance(target, Position):
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
        elif not self.scene.placing.sticks:
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
            self._reading.followed_late()
            self.refresh()

    # what was shown -----------------------------------------------------------------------------

    def _changed(self) -> None:
        """Show changes at once, but no more often than frames: thousands may come in a row."""
        self._unshown = True
        if not self._frame.isActive():
            self._frame.start(_FRAME_MS)
            self.show_changes()

    def _next_frame(self) -> None:
        if self._unshown:
            self._frame.start(_BURST_MS)
            self.show_changes()

    def show_changes(self) -> None:
        """Bring the view up to date with everything it was told."""
        if not self._unshown:
            return
        self._unshown = False
        self.announcer.rows_changed()
        self.refresh()
        arrived, self._arrived = self._arrived, []
        late_before = self._reading.late
        for message, placement in arrived:
            self._notice(message, placement)
        if self._stops_at_unread() or self._reading.late != late_before:
            self.refresh()
        elif arrived:
            self.jump_button.show_unread(self._reading.unread)
        if len(arrived) <= _MOST_SAID and self.is_watched():
            for message, _placement in arrived:
                pair = self.scene.is_pair
                words = spoken_message(message, self.others, self.names, pair=pair)
                self.announcer.arrived(words)

    def _stops_at_unread(self) -> bool:
        """The newest is followed only as far as nothing unseen leaves the view above."""
        first, loaded, placed = self._reading.first_unread(), self.scene.loaded, self.scene.placed
        index = None if first is None else loaded.message_row_index(first)
        if first is None or index is None or not placed or not self.scene.placing.sticks:
            return False
        top = self.scene.placing.padding + self.scene.placing.covered
        if index > placed[0].index or (index == placed[0].index and placed[0].y >= 0):
            return False
        while index > 0 and message_of(loaded.rows[index - 1]) is None:
            index -= 1
            top += self.scene.box(loaded.rows[index]).height
        self.scene.placing.anchor_at(first, min(top, self.scene.height / 2))
        return True

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
        self._look_soon()
