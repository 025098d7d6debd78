"""Live changes to the open conversation: messages, gaps, what is held, and who takes part.

Changes are shown at once, but a burst of them at most once a frame.  While a page is being read
they wait, because the page may be older or newer than they are.
"""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer

from engine.core.ids import MessageId, ParticipantId
from engine.events import ConversationView, GapView, HeldView, MessageView
from engine.file_views import FileView
from engine.history_views import HistoryView
from ui.timeline.accessible import Announcer
from ui.timeline.canvas import TimelineCanvas
from ui.timeline.loaded import Placement
from ui.timeline.navigation import TimelineNavigation
from ui.timeline.reading import ReadTracker
from ui.timeline.row_words import held_title
from ui.timeline.rows import Withheld, is_system, message_key, message_of
from ui.timeline.scene import Scene

_FRAME_MS = 16
_BURST_MS = 100
"""Between pictures while changes keep coming, as they do when history is fetched."""
_MOST_SAID = 3
"""More messages at once are not read out: nobody could follow."""
_MAX_POSTPONED = 5000


class TimelineUpdates(QObject):
    """Applies changes to the scene and has them shown, counted and read out."""

    def __init__(
        self,
        scene: Scene,
        canvas: TimelineCanvas,
        navigation: TimelineNavigation,
        tracker: ReadTracker,
        announcer: Announcer,
    ) -> None:
        super().__init__(canvas)
        self._scene = scene
        self._canvas = canvas
        self._navigation = navigation
        self._tracker = tracker
        self._announcer = announcer
        self._conversation: ConversationView | None = None
        self._arrived: list[tuple[MessageView, Placement]] = []
        self._postponed: list[Callable[[], None]] = []
        self._told: ConversationView | None = None
        """What the conversation counts as unread, kept until the same messages are shown here."""
        self._unshown = False
        self._only_rows = True
        """What is unshown are rows that came or changed, and nothing that is in no row."""
        self._frame_timer = QTimer(self)
        self._frame_timer.setSingleShot(True)
        self._frame_timer.timeout.connect(self._next_frame)
        navigation.page_shown.connect(self._show_page)
        navigation.page_failed.connect(self._apply_postponed)

    # the conversation ---------------------------------------------------------------------------

    def open(self, conversation: ConversationView) -> None:
        """Show a conversation at the first unread message, or else at the newest."""
        self._show_nothing()
        self._conversation = conversation
        self._scene.show_people(conversation)
        self._tracker.open(conversation)
        self._show_all()
        first_unread = conversation.first_unread if conversation.unread else None
        self._scene.loaded.set_first_unread(first_unread)
        self._navigation.open(conversation.conversation_id, first_unread)

    def clear(self) -> None:
        """Show nothing."""
        self._show_nothing()
        self._show_all()

    def _show_nothing(self) -> None:
        self._conversation = None
        self._navigation.close()
        self._postponed.clear()
        self._arrived.clear()
        self._told = None
        self._tracker.clear()
        self._scene.clear()

    def change_conversation(self, conversation: ConversationView) -> None:
        """Names, members or pictures changed, or what is unread."""
        if not self._is_shown(conversation):
            return
        changed = self._scene.show_people(conversation)
        if self._arrived or self._navigation.loading:
            self._told = conversation  # It counts them already; here they are counted once shown.
        else:
            changed |= self._tracker.told(conversation)
        if changed:
            self._changed()

    def show_verified(self, verified: frozenset[ParticipantId]) -> None:
        if verified != self._scene.verified:
            self._scene.verified = verified
            self._scene.forget_boxes()
            self._changed()

    def show_leaving(self, leaving: frozenset[MessageId]) -> None:
        changed, self._scene.leaving = leaving ^ self._scene.leaving, leaving
        if changed:
            self._scene.forget_boxes()
            for message_id in changed:
                self._announcer.row_changed(message_key(message_id))
            self._changed()

    def _is_shown(self, thing: ConversationView | MessageView | GapView | HeldView) -> bool:
        shown = self._conversation
        return shown is not None and shown.conversation_id == thing.conversation_id

    # changes ------------------------------------------------------------------------------------

    def add(self, *messages: MessageView) -> None:
        """Insert new messages.  One's own brings the newest into view."""
        has_changed = False
        for message in messages:
            if self._is_shown(message) and not self._postpone(partial(self.add, message)):
                has_changed |= self._add(message)
        if has_changed:
            self._changed(only_rows=True)

    def _add(self, message: MessageView) -> bool:
        """Whether there is something else to see now."""
        loaded, layout = self._scene.loaded, self._scene.layout
        placement = loaded.add(message, keep=None if layout.anchor is None else layout.anchor[0])
        if placement is Placement.REPLACED:
            return True
        if message.is_own and not is_system(message):
            loaded.set_first_unread(None)  # Who answers has read what was new.
        if message.is_own and placement is Placement.BEYOND_NEWER:
            self._navigation.go_to_newest()
            return False
        if not message.is_own:
            self._arrived.append((message, placement))
        elif placement is Placement.APPENDED:
            layout.stick()
        return True

    def change(self, message: MessageView) -> None:
        """Replace a message: its delivery changed, or it found its place."""
        if not self._is_shown(message) or self._postpone(lambda: self.change(message)):
            return
        if self._scene.loaded.replace(message):
            self._announcer.row_changed(message_key(message.message_id))
            self._changed(only_rows=True)

    def progress(self, message_id: MessageId, file: FileView) -> None:
        """As ``change``, but it happens several times a second: it is not read out."""
        loaded = self._scene.loaded
        index = loaded.row_index(message_key(message_id))
        message = None if index is None else message_of(loaded.rows[index])
        if self._navigation.loading or message is None:
            return  # The next one comes soon.
        if loaded.replace(replace(message, file=file)):
            self._changed(only_rows=True)

    def remove(self, message_id: MessageId) -> None:
        if self._postpone(lambda: self.remove(message_id)):
            return
        self._tracker.state.removed(message_id)
        if self._scene.loaded.remove(message_id):
            self._changed()

    def set_gap(self, gap: GapView | None) -> None:
        """What is missing; None once everything arrived."""
        if gap is None or self._is_shown(gap):
            self._scene.loaded.set_gap(gap)
            self._changed()

    def set_held(self, held: HeldView | None) -> None:
        """What is held aside; None once everything took its place."""
        if held is None or self._is_shown(held):
            is_news = held is not None and self._scene.loaded.held is None
            self._scene.loaded.set_held(held)
            self._changed()
            if held is not None and is_news and self._tracker.is_watched():
                self._announcer.arrived(held_title(held))

    def offer_earlier(self, history: HistoryView | None) -> None:
        """Offer what was said before the beginning; ``history``: how fetching it goes."""
        self._scene.loaded.offer_earlier(history)
        self._changed()

    def withhold_earlier(self, withheld: Withheld | None) -> None:
        """What was said before the beginning could not be read here; None: it could."""
        if self._scene.loaded.withheld != withheld:
            self._scene.loaded.withhold_earlier(withheld)
            self._changed()

    def _postpone(self, change: Callable[[], None]) -> bool:
        """While a page is read: keep ``change`` until it is there."""
        if not self._navigation.loading:
            return False
        self._postponed.append(change)
        if len(self._postponed) > _MAX_POSTPONED:
            self._postponed.clear()
            self._navigation.reload()  # Reads what was dropped here.
        return True

    def _apply_postponed(self) -> None:
        postponed, self._postponed = self._postponed, []
        for change in postponed:
            change()

    # showing ------------------------------------------------------------------------------------

    def _show_page(self) -> None:
        self._apply_postponed()
        self._unshown = True
        self.show_changes()

    def _show_all(self) -> None:
        self._unshown, self._only_rows = True, False
        self.show_changes()

    def _changed(self, *, only_rows: bool = False) -> None:
        """``only_rows``: all that looks different is in rows that came, went or changed."""
        self._unshown = True
        self._only_rows = self._only_rows and only_rows
        if not self._frame_timer.isActive():
            self._frame_timer.start(_FRAME_MS)
            self.show_changes()

    def _next_frame(self) -> None:
        if self._unshown:
            self._frame_timer.start(_BURST_MS)
            self.show_changes()

    def show_changes(self) -> None:
        """Bring the view up to date without waiting for the next frame."""
        if not self._unshown:
            return
        only_rows, self._unshown, self._only_rows = self._only_rows, False, True
        followed = self._scene.layout.sticks
        self._announcer.rows_changed()
        if only_rows:
            self._canvas.follow()
        else:
            self._canvas.refresh()
        arrived, self._arrived = self._arrived, []
        state = self._tracker.state
        late_before = state.late
        for message, placement in arrived:
            self._tracker.count(message, placement)
        told, self._told = self._told, None
        moved = told is not None and self._tracker.told(told)
        if moved:
            self._announcer.rows_changed()
        if (followed and self._stop_at_unread()) or moved or state.late != late_before:
            self._canvas.refresh()
        elif arrived:
            self._canvas.place_buttons()
        if len(arrived) <= _MOST_SAID and self._tracker.is_watched():
            for message, _placement in arrived:
                self._announcer.message_arrived(message)

    def _stop_at_unread(self) -> bool:
        """Follow the newest only as far as nothing unread leaves the view at the top.

        The newest may be beyond what is loaded by now: many came at once.
        """
        first, scene = self._tracker.state.first_unread(), self._scene
        loaded, layout, placed = scene.loaded, scene.layout, scene.placed
        index = None if first is None else loaded.message_row_index(first)
        if first is None or index is None or not placed:
            return False
        if index > placed[0].index or (index == placed[0].index and placed[0].y >= 0):
            return False
        top = layout.padding + layout.covered
        while index > 0 and message_of(loaded.rows[index - 1]) is None:
            index -= 1
            top += scene.box(loaded.rows[index]).height
        layout.anchor_at(first, min(top, scene.height / 2))
        return True
