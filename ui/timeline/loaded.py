"""The loaded stretch of a conversation: at most 300 messages, a window on a log of any length.

It knows the window's place (``older_count`` of ``total``) but not where pages come from: ``paging``
fetches them, ``view`` decides when.  What arrives outside of the window is only counted, because
scrolling there loads it anyway.  Rows are derived from it (``rows``), lazily, once for each change.
"""

from bisect import bisect_left
from collections.abc import Mapping
from enum import Enum, auto
from operator import itemgetter

from msgspec.structs import replace

from engine.answers import TimelinePage
from engine.core.ids import MessageId, ParticipantId, Position
from engine.events import GapView, HeldView, MessageView
from engine.history_views import HistoryView
from ui.timeline.rows import (
    EarlierRow,
    HeldRow,
    MessageRow,
    Row,
    RowKey,
    SystemRow,
    Withheld,
    derive_rows,
    earlier_row,
    held_rows,
    message_id_of,
    order,
    row_key,
)

MAX_LOADED = 300
"""Three pages: what is in view, and one ahead on each side.  Each page derives all rows anew."""


class Placement(Enum):
    """Where a message went."""

    APPENDED = auto()
    INSERTED = auto()
    REPLACED = auto()
    BEYOND_OLDER = auto()
    """Before the window: counted, not loaded."""
    BEYOND_NEWER = auto()


class LoadedMessages:
    """Messages in ``order`` without duplicates, and the rows that they make."""

    def __init__(self) -> None:
        self.older_count = 0
        self._total = 0
        self.has_older = False
        self.has_newer = False
        self._messages: list[MessageView] = []
        self._keys: list[tuple[bool, int, str]] = []
        self._by_id: dict[MessageId, MessageView] = {}
        self._gap: GapView | None = None
        self._held: HeldView | None = None
        self._held_unfolded = False
        self._history: HistoryView | None = None
        self._offers_earlier = False
        self.withheld: Withheld | None = None
        """What was said before the beginning could not be read here."""
        self._first_unread: Position | None = None
        self._rows: list[Row] | None = None
        self._row_of_message: dict[MessageId, int] = {}
        self._row_of_key: dict[RowKey, int] = {}

    # what is loaded ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def total(self) -> int:
        """Rows of the whole conversation, as far as known."""
        known = self.older_count + len(self._messages)
        return max(known, self._total) if self.has_newer else known

    @property
    def messages(self) -> list[MessageView]:
        return self._messages

    def get(self, message_id: MessageId) -> MessageView | None:
        return self._by_id.get(message_id)

    def index_of(self, message: MessageView) -> int:
        """Index in ``messages`` of a loaded message."""
        return bisect_left(self._keys, order(message))

    def index_at_or_after(self, position: Position) -> int:
        return bisect_left(self._keys, (False, position.lamport_timestamp, position.message_id))

    @property
    def first_placed(self) -> MessageView | None:
        """The oldest message that has its final place: where the page before it starts."""
        first = self._messages[0] if self._messages else None
        return None if first is None or first.waiting else first

    @property
    def last_placed(self) -> MessageView | None:
        return next((m for m in reversed(self._messages) if not m.waiting), None)

    # rows -------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[Row]:
        if self._rows is None:
            self._rows = earlier_row(
                self._messages,
                self._history,
                offered=self._offers_earlier and not self.has_older,
                withheld=None if self.has_older else self.withheld,
            )
            self._rows += derive_rows(
                self._messages,
                gap=self._gap,
                first_unread=self._first_unread,
                starts_at_beginning=not self.has_older,
                reaches_end=not self.has_newer,
            )
            if not self.has_newer:
                self._rows += held_rows(
                    self._held, unfolded=self._held_unfolded, placed=self._by_id.keys()
                )
            self._index_rows(self._rows)
        return self._rows

    def _index_rows(self, rows: list[Row]) -> None:
        self._row_of_message, self._row_of_key = {}, {}
        for index, row in enumerate(rows):
            if isinstance(row, MessageRow | SystemRow):
                self._row_of_message[row.message.position.message_id] = index
            else:
                self._row_of_key[row_key(row)] = index
                if isinstance(row, HeldRow):  # The view may hold on to it, too.
                    self._row_of_message[row.message.message_id] = index

    def row_index(self, key: RowKey) -> int | None:
        """Index in ``rows`` of the row with this key, if it is loaded."""
        if self._rows is None:
            _ = self.rows
        message_id = message_id_of(key)
        if message_id is not None:
            return self._row_of_message.get(message_id)
        return self._row_of_key.get(key)

    def message_row_index(self, message_id: MessageId) -> int | None:
        if self._rows is None:
            _ = self.rows
        return self._row_of_message.get(message_id)

    @property
    def gap(self) -> GapView | None:
        return self._gap

    @property
    def first_unread(self) -> Position | None:
        return self._first_unread

    def set_gap(self, gap: GapView | None) -> None:
        self._gap = gap
        self._rows = None

    @property
    def held(self) -> HeldView | None:
        return self._held

    def set_held(self, held: HeldView | None) -> None:
        """What is held aside; it stands after the newest message and is not counted."""
        self._held = held
        self._held_unfolded = self._held_unfolded and held is not None
        self._rows = None

    def fold_held(self) -> None:
        """Show all that is held, or the first of it again."""
        self._held_unfolded = not self._held_unfolded
        self._rows = None

    @property
    def history(self) -> HistoryView | None:
        return self._history

    def offer_earlier(self, history: HistoryView | None) -> None:
        """What lies before the beginning can be fetched, or is being fetched."""
        self._offers_earlier, self._history = True, history
        if not self.has_older:
            self._rows = None

    @property
    def can_have_earlier(self) -> bool:
        """Something that could be read may be missing before the beginning."""
        return EarlierRow(history=self._history, withheld=self.withheld).can_have_more

    def withhold_earlier(self, withheld: Withheld | None) -> None:
        self.withheld = withheld
        self._rows = None

    def set_first_unread(self, position: Position | None) -> None:
        self._first_unread = position
        self._rows = None

    # changes ----------------------------------------------------------------------------------

    def reset(self, page: TimelinePage) -> None:
        """Start anew with ``page``."""
        self._replace_all(page.messages)
        self.older_count, self._total = page.older_count, page.total
        self.has_older, self.has_newer = page.has_older, page.has_newer

    def extend_older(self, page: TimelinePage) -> None:
        """Put the page before the first message in front; gives up the newest beyond the bound."""
        self._replace_all((*page.messages, *self._messages))
        self.older_count, self._total = page.older_count, page.total
        self.has_older = page.has_older
        self._drop_newest()

    def extend_newer(self, page: TimelinePage) -> None:
        self._replace_all((*self._messages, *page.messages))
        self.has_newer = page.has_newer
        self._total = page.total
        self._drop_oldest()

    def add(self, message: MessageView, *, keep: MessageId | None = None) -> Placement:
        """Put a message in its place; ``keep`` is a message that must stay loaded."""
        if message.message_id in self._by_id:
            self.replace(message)
            return Placement.REPLACED
        key = order(message)
        self._total = self.total + 1
        if self.has_older and self._keys and key < self._keys[0]:
            self.older_count += 1
            return Placement.BEYOND_OLDER
        if self.has_newer and (not self._keys or key > self._keys[-1]):
            return Placement.BEYOND_NEWER
        index = self._insert(message)
        placement = Placement.APPENDED if index == len(self._messages) - 1 else Placement.INSERTED
        self._drop_far_from(keep)
        return placement

    def replace(self, message: MessageView) -> bool:
        """A changed message, maybe at a new place; False if it is not loaded."""
        old = self._by_id.get(message.message_id)
        if old is None:
            return False
        if order(old) == order(message):
            index = self.index_of(old)
            self._messages[index] = message
            self._by_id[message.message_id] = message
            self._rows = None
        else:
            self._take_out(old)
            self._insert(message)
        return True

    def rename(self, names: Mapping[ParticipantId, str]) -> bool:
        """Who said something may be called otherwise by now; whether that changed anything."""
        changed = False
        for index, message in enumerate(self._messages):
            name = names.get(message.sender_id, message.sender_name)
            quote = message.quote
            if quote is not None and quote.sender_id is not None:
                quoted = names.get(quote.sender_id, quote.sender_name)
                quote = replace(quote, sender_name=quoted)
            if name != message.sender_name or quote != message.quote:
                renamed = replace(message, sender_name=name, quote=quote)
                self._messages[index] = self._by_id[message.message_id] = renamed
                self._rows, changed = None, True
        return changed

    def remove(self, message_id: MessageId) -> bool:
        old = self._by_id.get(message_id)
        if old is None:
            return False
        self._take_out(old)
        self._total = max(self.total - 1, 0)
        return True

    # inside -----------------------------------------------------------------------------------

    def _insert(self, message: MessageView) -> int:
        key = order(message)
        index = bisect_left(self._keys, key)
        self._messages.insert(index, message)
        self._keys.insert(index, key)
        self._by_id[message.message_id] = message
        self._rows = None
        return index

    def _take_out(self, message: MessageView) -> None:
        index = self.index_of(message)
        del self._messages[index]
        del self._keys[index]
        del self._by_id[message.message_id]
        self._rows = None

    def _replace_all(self, messages: tuple[MessageView, ...]) -> None:
        """Later duplicates win: a page is read before the events that follow it."""
        self._by_id = {m.message_id: m for m in messages}
        keyed = sorted(((order(m), m) for m in self._by_id.values()), key=itemgetter(0))
        self._keys = [key for key, _ in keyed]
        self._messages = [message for _, message in keyed]
        self._rows = None

    def _drop_far_from(self, keep: MessageId | None) -> None:
        if len(self._messages) <= MAX_LOADED:
            return
        kept = None if keep is None else self._by_id.get(keep)
        if kept is not None and self.index_of(kept) < MAX_LOADED // 2:
            self._drop_newest()
        else:
            self._drop_oldest()

    def _drop_newest(self) -> None:
        for message in self._messages[MAX_LOADED:]:
            del self._by_id[message.message_id]
            self.has_newer = True
        del self._messages[MAX_LOADED:], self._keys[MAX_LOADED:]
        self._rows = None

    def _drop_oldest(self) -> None:
        excess = max(len(self._messages) - MAX_LOADED, 0)
        for message in self._messages[:excess]:
            del self._by_id[message.message_id]
            self.has_older = True
        del self._messages[:excess], self._keys[:excess]
        self.older_count += excess
        self._rows = None
