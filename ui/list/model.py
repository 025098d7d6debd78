"""The conversations as a Qt model: pinned ones first, then by last activity, filtered.

A person is found by the name given here and by the name they gave themselves.

Rows are the engine's own read models.  One change moves or repaints one row, so that the selection
and the scroll position survive whatever arrives.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from enum import IntEnum

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal

from engine.core.ids import ConversationId, ParticipantId
from engine.core.search_text import folded
from engine.events import ConversationView
from engine.governance_views import GovernanceView
from ui.foreign_text import one_line
from ui.list.preview import row_sentence
from ui.people import is_request, picture_of, seen_words, state_words
from ui.translate import tr

_Index = QModelIndex | QPersistentModelIndex
CONVERSATION_ROLE = int(Qt.ItemDataRole.UserRole)


class Listed(IntEnum):
    """Which conversations the list shows."""

    ALL = 0
    UNREAD = 1
    GROUPS = 2
    PEOPLE = 3


def counted_unread(conversation: ConversationView) -> int:
    """What a badge counts: of a muted conversation only what mentions us."""
    return conversation.mentions if conversation.muted else conversation.unread


def _is_listed(conversation: ConversationView, listed: Listed, *, marked: bool) -> bool:
    match listed:
        case Listed.ALL:
            return True
        case Listed.UNREAD:
            return marked or bool(conversation.unread) or is_request(conversation)
        case Listed.GROUPS:
            return conversation.contact is None
        case Listed.PEOPLE:
            return conversation.contact is not None


def _activity(conversation: ConversationView) -> tuple[int, str]:
    moment = max(conversation.last_said_ms, conversation.created_ms)
    return (-moment, conversation.conversation_id)


def _searched(conversation: ConversationView) -> str:
    contact = conversation.contact
    if contact is None:
        return one_line(conversation.name)
    return f"{one_line(conversation.name)}\n{one_line(contact.name)}"


def _tip(conversation: ConversationView, now: datetime) -> str:
    """What the dot beside a person means, and when there is none."""
    contact = conversation.contact
    if contact is None:
        return ""
    name = one_line(conversation.name)
    words = state_words(conversation) or seen_words(contact, now)
    return f"{name}: {words[:1].lower()}{words[1:]}"


class ConversationModel(QAbstractListModel):
    totals_changed = Signal()
    open_changed = Signal()
    """Another conversation is open, or none."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self._all: dict[ConversationId, ConversationView] = {}
        self._typing: dict[ConversationId, tuple[str, ...]] = {}
        self._open: ConversationId | None = None
        self._filter = ""
        self._listed = Listed.ALL
        self._pinned: frozenset[str] = frozenset()
        self._archived: frozenset[str] = frozenset()
        self._marked_unread: frozenset[str] = frozenset()
        self._verified: frozenset[ParticipantId] = frozenset()
        self._governance: dict[ConversationId, GovernanceView] = {}
        self._shows_archive = False
        self._is_removing = False
        self._shown: list[ConversationView] = []

    # --- Qt's questions ---------------------------------------------------------------------------

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._shown)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or not 0 <= index.row() < len(self._shown):
            return None
        conversation = self._shown[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return one_line(conversation.name)
        if role == CONVERSATION_ROLE:
            return conversation
        if role == Qt.ItemDataRole.AccessibleTextRole:
            said = row_sentence(
                conversation,
                self._now(),
                typing=self.typing(conversation.conversation_id),
                is_open=self.is_open(conversation.conversation_id),
                marked_unread=self.is_marked_unread(conversation.conversation_id),
            )
            if self.is_verified(conversation):
                said = tr("{row}, verified").format(row=said)
            if asking := self.asking(conversation.conversation_id):
                words = tr("{row}, %n ask to be let in", "{row}, %n asks to be let in", asking)
                said = words.format(row=said)
            pinned = self.is_pinned(conversation.conversation_id)
            return tr("{row}, pinned").format(row=said) if pinned else said
        if role == Qt.ItemDataRole.ToolTipRole:
            return _tip(conversation, self._now())
        return None

    # --- the window's questions -------------------------------------------------------------------

    def conversation(self, conversation_id: ConversationId) -> ConversationView | None:
        return self._all.get(conversation_id)

    def conversations(self) -> tuple[ConversationView, ...]:
        return tuple(self._all.values())

    def ids(self) -> frozenset[str]:
        return frozenset(self._all)

    def typing(self, conversation_id: ConversationId) -> tuple[str, ...]:
        return self._typing.get(conversation_id, ())

    def is_open(self, conversation_id: ConversationId) -> bool:
        return conversation_id == self._open

    def is_pinned(self, conversation_id: ConversationId) -> bool:
        return conversation_id in self._pinned

    def is_archived(self, conversation_id: ConversationId) -> bool:
        return conversation_id in self._archived

    def is_marked_unread(self, conversation_id: ConversationId) -> bool:
        return conversation_id in self._marked_unread

    def is_verified(self, conversation: ConversationView) -> bool:
        """Whether it is with a person whose key the user compared."""
        contact = conversation.contact
        return contact is not None and contact.participant_id in self._verified

    def asking(self, conversation_id: ConversationId) -> int:
        """How many ask us to be let into the group."""
        view = self._governance.get(conversation_id)
        return 0 if view is None else len(view.asking)

    def picture(self, conversation: ConversationView) -> bytes:
        """Of the other person, or of a group that has one."""
        view = self._governance.get(conversation.conversation_id)
        return picture_of(conversation) if view is None else view.picture

    def archived_count(self) -> int:
        return sum(1 for each in self._all if each in self._archived)

    def unread_in_archive(self) -> int:
        """What the badge of the program counts, and the list does not show."""
        archived = (view for each, view in self._all.items() if each in self._archived)
        return sum(map(counted_unread, archived))

    @property
    def shows_archive(self) -> bool:
        """Only what is archived, instead of all else."""
        return self._shows_archive

    def at(self, row: int) -> ConversationView | None:
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def index_of(self, conversation_id: ConversationId | None) -> QModelIndex:
        for row, conversation in enumerate(self._shown):
            if conversation.conversation_id == conversation_id:
                return self.index(row)
        return QModelIndex()

    def filter_text(self) -> str:
        return self._filter

    # --- changes ----------------------------------------------------------------------------------

    def reset(self, conversations: Iterable[ConversationView]) -> None:
        self.beginResetModel()
        self._all = {view.conversation_id: view for view in conversations}
        self._shown = self._sorted()
        self.endResetModel()
        self.totals_changed.emit()

    def set_filter(self, text: str) -> None:
        wanted = folded(text.strip())
        if wanted != self._filter:
            self._filter = wanted
            self._sort_anew()

    @property
    def listed(self) -> Listed:
        return self._listed

    def set_listed(self, listed: Listed) -> None:
        if listed is not self._listed:
            self._listed = listed
            self._sort_anew()

    def set_pinned(self, pinned: frozenset[str]) -> None:
        if pinned != self._pinned:
            self._pinned = pinned
            self._sort_anew()

    def set_archived(self, archived: frozenset[str]) -> None:
        if archived != self._archived:
            self._archived = archived
            self._shows_archive = self._shows_archive and bool(self.archived_count())
            self._sort_anew()
            self.totals_changed.emit()

    def set_marked_unread(self, marked: frozenset[str]) -> None:
        changed, self._marked_unread = marked ^ self._marked_unread, marked
        for conversation_id in changed & self.ids():
            self._place(ConversationId(conversation_id))
        if changed:
            self.totals_changed.emit()

    def set_verified(self, verified: frozenset[ParticipantId]) -> None:
        if verified != self._verified:
            self._verified = verified
            if self._shown:
                self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))

    def governance(self, conversation_id: ConversationId) -> GovernanceView | None:
        """As it was said last; None if it is not governed, or nothing was said yet."""
        return self._governance.get(conversation_id)

    def set_governance(self, view: GovernanceView) -> None:
        self._governance[view.conversation_id] = view
        self._repaint(view.conversation_id)
        self.totals_changed.emit()

    def show_archive(self, shown: bool) -> None:
        if shown is not self._shows_archive:
            self._shows_archive = shown
            self._sort_anew()

    def _sort_anew(self) -> None:
        self.beginResetModel()
        self._shown = self._sorted()
        self.endResetModel()

    def put(self, conversation: ConversationView) -> None:
        """Add it, or take its new state and place, if that is news."""
        if self._all.get(conversation.conversation_id) == conversation:
            return  # At a start, when each log has been read.
        self._all[conversation.conversation_id] = conversation
        self._place(conversation.conversation_id)
        self.totals_changed.emit()

    def _place(self, conversation_id: ConversationId) -> None:
        """Put its row where it belongs now, which may be nowhere."""
        old = self.index_of(conversation_id).row()
        target = self._sorted()
        ids = [view.conversation_id for view in target]
        new = ids.index(conversation_id) if conversation_id in ids else -1
        if old < 0 <= new:
            self.beginInsertRows(QModelIndex(), new, new)
            self._shown = target
            self.endInsertRows()
        elif new < 0 <= old:
            self._take_out(old, target)
        elif old >= 0:
            self._move(old, new, target)

    def _take_out(self, row: int, target: list[ConversationView]) -> None:
        self._is_removing = True
        self.beginRemoveRows(QModelIndex(), row, row)
        self._shown = target
        self.endRemoveRows()
        self._is_removing = False

    @property
    def is_removing(self) -> bool:
        """A view selects a neighbour of what goes; nobody chose that."""
        return self._is_removing

    def remove(self, conversation_id: ConversationId) -> None:
        self._all.pop(conversation_id, None)
        self._typing.pop(conversation_id, None)
        self._governance.pop(conversation_id, None)
        row = self.index_of(conversation_id).row()
        if row >= 0:
            self._take_out(row, self._shown[:row] + self._shown[row + 1 :])
        self.totals_changed.emit()

    def set_typing(self, conversation_id: ConversationId, names: tuple[str, ...]) -> None:
        if names:
            self._typing[conversation_id] = names
        else:
            self._typing.pop(conversation_id, None)
        self._repaint(conversation_id)

    def set_open(self, conversation_id: ConversationId | None) -> None:
        """The one that was open may leave the list, and the other come into it."""
        if conversation_id == self._open:
            return
        before, self._open = self._open, None
        for each, is_open in ((before, None), (conversation_id, conversation_id)):
            self._open = is_open
            if each is not None:
                self._place(each)
        self.open_changed.emit()

    def _move(self, old: int, new: int, target: list[ConversationView]) -> None:
        if old != new:
            # Qt counts the destination before the row is taken out.
            self.beginMoveRows(QModelIndex(), old, old, QModelIndex(), new + (new > old))
            self._shown = target
            self.endMoveRows()
        else:
            self._shown = target
        changed = self.index(new)
        self.dataChanged.emit(changed, changed)

    def _repaint(self, conversation_id: ConversationId | None) -> None:
        index = self.index_of(conversation_id)
        if index.isValid():
            self.dataChanged.emit(index, index)

    def _sorted(self) -> list[ConversationView]:
        """The open one stays while it is read; a search looks through all."""
        listed = Listed.ALL if self._filter else self._listed
        matching = (
            view
            for view in self._all.values()
            if (not self._filter or self._filter in folded(_searched(view)))
            and self._has_place(view)
            and (self._is_listed(view, listed) or self.is_open(view.conversation_id))
        )
        return sorted(
            matching, key=lambda view: (not self.is_pinned(view.conversation_id), *_activity(view))
        )

    def _has_place(self, view: ConversationView) -> bool:
        """In the archive or outside it; a search looks through both."""
        archived = self.is_archived(view.conversation_id)
        return bool(self._filter) or archived is self._shows_archive

    def _is_listed(self, view: ConversationView, listed: Listed) -> bool:
        listed = Listed.ALL if self._shows_archive else listed
        return _is_listed(view, listed, marked=self.is_marked_unread(view.conversation_id))
