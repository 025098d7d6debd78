"""The left panel: own name and connection, what can be started, search, and the list.

In its narrow form, the rail, only avatars with their badges remain, and the way into the archive;
everything else is still reachable by the menu and the keyboard.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    Qt,
    Signal,
    SignalInstance,
)
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QListView,
    QMenu,
    QVBoxLayout,
    QWidget,
)

from engine.core.ids import ConversationId
from engine.events import ConnectionLevel, ConnectionView, IdentityView
from engine.governance_views import JoinView
from ui.avatar import AvatarButton
from ui.connection_words import connection_word
from ui.controls import Area, Button, ButtonKind, ElidedText, IconButton, Text
from ui.foreign_text import one_line
from ui.list.delegate import ConversationDelegate
from ui.list.model import ConversationModel, Listed
from ui.list.row_menu import RowCommands, RowMarks, RowMenu
from ui.list.search import SearchField
from ui.list.start_menu import StartMenu
from ui.list.waiting import WaitingRows
from ui.pictures import FACES
from ui.segments import Segments
from ui.speaking import tell_row
from ui.theme import current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr

_HEADER, _COMPACT_HEADER = 58, 48
_SHORT = 20
_FEW = 4
"""Fewer conversations than this are seen at one glance and need no choice of which to show."""


class ConversationList(QListView):
    """The rows alone; selecting one opens it."""

    def __init__(self, model: ConversationModel, delegate: ConversationDelegate) -> None:
        super().__init__()
        self.setModel(model)
        self.setItemDelegate(delegate)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(tr("Conversations"))
        self.setMouseTracking(True)
        self.setUniformItemSizes(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.viewport().setAutoFillBackground(False)
        self.setViewportMargins(8, 0, 8, 0)
        theme_changed.connect(self._dress)
        FACES.changed.connect(self.viewport().update)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """The right button asks what can be done with a row and opens nothing."""
        if event.button() is not Qt.MouseButton.RightButton:
            super().mousePressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        tell_row(self)

    def _dress(self) -> None:
        self.scheduleDelayedItemsLayout()
        self.viewport().update()


class LeftPanel(Area):
    opened = Signal(str)
    """A conversation id that the user chose; the keys stay where they are."""
    entered = Signal(str)
    """One that was clicked or confirmed: now one wants to write."""
    new_group_requested = Signal()
    join_requested = Signal()
    open_channel_requested = Signal()
    key_channel_requested = Signal()
    add_person_requested = Signal()
    profile_requested = Signal()
    pin_requested = Signal(str, bool)
    archive_requested = Signal(str, bool)
    mark_unread_requested = Signal(str, bool)
    mute_requested = Signal(str, object)
    waiting_chosen = Signal(str)
    """A group that one asked to be let into: the id that the conversation would have."""
    messages_requested = Signal(str)
    """To search messages for what was typed."""

    def __init__(self, model: ConversationModel, now: Callable[[], datetime]) -> None:
        super().__init__("panel")
        self._model = model
        self._now = now
        self._delegate = ConversationDelegate(now)
        self._settled: ConversationId | None = None
        self._is_alone = False
        self.avatar = AvatarButton(36)
        self._name = ElidedText(face="body", strong=True)
        self._connection = ElidedText(face="caption", colour="ink3")
        self.start = IconButton("compose", tr("Start a conversation"))
        self._more = IconButton("more", tr("Menu"))
        self.search = SearchField()
        self.find_messages = Button("", kind="ghost", icon_name="search")
        self.rows = ConversationList(model, self._delegate)
        self.waiting = WaitingRows(now)
        self.listed = Segments(tr("Show"), [tr("All"), tr("Unread"), tr("Groups"), tr("People")])
        self.archive = Button("", kind="ghost", size="small", icon_name="archive")
        self.archive_in_rail = IconButton("archive", "")
        self._nothing = Text(face="label", colour="ink3", wrap=True)
        self._lay_out()
        self._connect()
        self._say_nothing()

    # --- building ---------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        self._me = QWidget()
        names = QVBoxLayout(self._me)
        names.setContentsMargins(0, 0, 0, 0)
        names.setSpacing(0)
        names.addStretch(1)
        names.addWidget(self._name)
        names.addWidget(self._connection)
        names.addStretch(1)
        self._head = QWidget()
        self._head_layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._head)
        for widget in (self.avatar, self._me, self.start, self._more, self.archive_in_rail):
            self._head_layout.addWidget(widget, int(widget is self._me))
        self._search_box = QWidget()
        search_layout = QVBoxLayout(self._search_box)
        search_layout.setContentsMargins(12, 0, 12, 10)
        search_layout.addWidget(self.search)
        search_layout.addWidget(self.find_messages)
        self._listed_box = QWidget()
        listed_layout = QHBoxLayout(self._listed_box)
        listed_layout.setContentsMargins(12, 0, 12, 8)
        listed_layout.addWidget(self.listed)
        self._archive_box = QWidget()
        archive_layout = QHBoxLayout(self._archive_box)
        archive_layout.setContentsMargins(12, 0, 12, 6)
        archive_layout.addWidget(self.archive)
        archive_layout.addStretch(1)
        self._nothing.setContentsMargins(22, 22, 22, 0)
        self._begin = self._ways_to_begin()
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self._head)
        whole.addWidget(self._search_box)
        whole.addWidget(self._listed_box)
        whole.addWidget(self._archive_box)
        whole.addWidget(self.waiting)
        whole.addWidget(self._nothing)
        whole.addWidget(self._begin)
        whole.addWidget(self.rows, 1)
        whole.addStretch(0)
        theme_changed.connect(self._dress)
        self._dress()

    def _ways_to_begin(self) -> QWidget:
        """For a list in which nobody is yet."""
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(22, 18, 22, 0)
        column.setSpacing(10)
        starts: tuple[tuple[str, str, SignalInstance, ButtonKind], ...] = (
            (tr("Add a person"), "person-add", self.add_person_requested, "primary"),
            (tr("New group"), "plus", self.new_group_requested, "plain"),
            (tr("Join with an invitation"), "join", self.join_requested, "plain"),
        )
        for words, icon_name, start, kind in starts:
            button = Button(words, kind=kind, size="big", icon_name=icon_name)
            button.clicked.connect(start)
            column.addWidget(button)
        return box

    def _connect(self) -> None:
        self.start.setMenu(
            StartMenu(
                self,
                add_person=self.add_person_requested.emit,
                new_group=self.new_group_requested.emit,
                join=self.join_requested.emit,
                open_channel=self.open_channel_requested.emit,
                key_channel=self.key_channel_requested.emit,
            )
        )
        self.avatar.clicked.connect(self.profile_requested)
        self.search.textChanged.connect(self._filter)
        self.search.left_downward.connect(self._enter_rows)
        self.search.confirmed.connect(self._enter_first)
        self.waiting.chosen.connect(self.waiting_chosen)
        self.find_messages.clicked.connect(self._ask_for_messages)
        self.rows.selectionModel().selectionChanged.connect(self._selected)
        self.rows.clicked.connect(self._enter)
        self.rows.activated.connect(self._enter)
        self.rows.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.rows.customContextMenuRequested.connect(self._offer_commands)
        for button in (self.archive, self.archive_in_rail):
            button.clicked.connect(lambda: self.show_archive(not self._model.shows_archive))
        self.listed.choose(Listed.ALL)
        self.listed.chosen.connect(self._choose_listed)
        self._model.modelReset.connect(self._restore_selection)
        self._model.rowsInserted.connect(self._restore_selection)
        self._model.rowsRemoved.connect(self._restore_selection)
        self._model.totals_changed.connect(self._say_nothing)

    def set_menu(self, menu: QMenu) -> None:
        self._more.setMenu(menu)

    # --- what it shows ----------------------------------------------------------------------------

    def show_identity(self, identity: IdentityView | None, connection: ConnectionView) -> None:
        name = "" if identity is None else one_line(identity.name)
        self._name.setText(name)
        online = connection.level is not ConnectionLevel.OFFLINE
        stable_id = "" if identity is None else identity.participant_id
        word = connection_word(connection)
        picture = b"" if identity is None else identity.picture
        present = online if self.is_rail else None
        self.avatar.show_identity(stable_id, name, present=present, picture=picture)
        self.avatar.setEnabled(identity is not None)
        set_tip(self.avatar, tr("{name}, {word}. Your profile").format(name=name, word=word))
        self.avatar.setAccessibleName(
            tr("You: {name}, {word}. Your profile").format(name=name, word=word)
        )
        self._connection.setText(word)

    def show_joins(self, joins: Sequence[JoinView]) -> None:
        self.waiting.show_joins(joins)
        self._say_nothing()

    @property
    def is_rail(self) -> bool:
        return self._delegate.is_rail

    def set_rail(self, is_rail: bool) -> None:
        if is_rail == self._delegate.is_rail:
            return
        self._delegate.is_rail = is_rail
        self.waiting.set_rail(is_rail)
        for widget in (self._me, self.start, self._search_box):
            widget.setVisible(not is_rail)
        self.rows.setViewportMargins(*((4, 0, 4, 0) if is_rail else (8, 0, 8, 0)))
        self.rows.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAlwaysOff
            if is_rail
            else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        )
        self.rows.scheduleDelayedItemsLayout()
        # Nothing in the rail would say that some are left out.
        self._choose_listed(Listed.ALL if is_rail else self.listed.chosen_number)
        self.show_archive(False)
        self._dress()

    def set_alone(self, is_alone: bool) -> None:
        """No page stands beside it, so it offers itself what to begin with."""
        self._is_alone = is_alone
        self._say_nothing()

    def select(self, conversation_id: ConversationId | None) -> None:
        """Mark it as the open one; emits nothing."""
        self._settled = conversation_id
        self._restore_selection()
        index = self._model.index_of(conversation_id)
        if index.isValid():
            self.rows.scrollTo(index)

    def show_archive(self, shown: bool) -> None:
        """Only what is archived; Escape leads back."""
        self._model.show_archive(shown)
        self._say_nothing()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._model.shows_archive:
            self.show_archive(False)
            self.rows.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            super().keyPressEvent(event)

    def step(self, rows: int) -> None:
        """Open the conversation so many rows below (or above) the open one."""
        total = self._model.rowCount()
        if total == 0:
            return
        current = self._model.index_of(self._settled).row()
        start = current if current >= 0 else (-1 if rows > 0 else total)
        chosen = self._model.at(max(0, min(total - 1, start + rows)))
        if chosen is not None:
            self._open(chosen.conversation_id)

    # --- reactions --------------------------------------------------------------------------------

    def _dress(self) -> None:
        metrics = current_theme().metrics
        if self.is_rail:
            self._head_layout.setDirection(QBoxLayout.Direction.TopToBottom)
            self._head_layout.setContentsMargins(0, metrics.gap(11), 0, metrics.gap(6))
            self._head.setMinimumHeight(0)
            self._head.setMaximumHeight(16_777_215)
        else:
            self._head_layout.setDirection(QBoxLayout.Direction.LeftToRight)
            self._head_layout.setContentsMargins(metrics.gap(16), 0, metrics.gap(10), 0)
            self._head.setFixedHeight(metrics.scaled(metrics.dense(_HEADER, _COMPACT_HEADER)))
        for widget in (self.avatar, self._more, self.archive_in_rail):
            self._head_layout.setAlignment(widget, Qt.AlignmentFlag.AlignCenter)
        self._head_layout.setSpacing(metrics.gap(4 if self.is_rail else 2))
        self._me.setContentsMargins(0 if self.is_rail else metrics.gap(8), 0, 0, 0)

    def _filter(self, text: str) -> None:
        self._model.set_filter(text)
        self._say_nothing()

    def _ask_for_messages(self) -> None:
        text = self.search.text()
        self.search.clear()
        self.messages_requested.emit(text)

    def _choose_listed(self, number: int) -> None:
        self._model.set_listed(Listed(number))
        self._say_nothing()

    def _offer_commands(self, at: QPoint) -> None:
        """At the pointer; by the menu key, which Qt places at the row with the focus."""
        index = self.rows.indexAt(at)
        conversation = self._model.at(index.row() if index.isValid() else -1)
        if conversation is None:
            return
        commands = RowCommands(
            open=self._enter_id,
            pin=self.pin_requested.emit,
            mute=self.mute_requested.emit,
            archive=self.archive_requested.emit,
            mark_unread=self.mark_unread_requested.emit,
        )
        this, model = conversation.conversation_id, self._model
        marks = RowMarks(
            pinned=model.is_pinned(this),
            archived=model.is_archived(this),
            unread=model.is_marked_unread(this),
        )
        self.row_menu = RowMenu(conversation, commands, self, marks=marks, now=self._now())
        self.row_menu.aboutToHide.connect(self.row_menu.deleteLater)
        self.row_menu.popup(self.rows.viewport().mapToGlobal(at))

    def _say_nothing(self) -> None:
        empty = self._model.rowCount() == 0
        self._say_archive()
        typed = self.search.text().strip()
        words = tr("Search messages for “{text}”")
        self.find_messages.rename(words.format(text=one_line(typed, _SHORT)))
        self.find_messages.setVisible(bool(typed))
        all_shown = len(self._model.conversations())
        has_choice = all_shown >= _FEW or self._model.listed is not Listed.ALL
        has_choice = has_choice and not self._model.shows_archive
        self._listed_box.setVisible(has_choice and not self.is_rail)
        if empty and self._model.filter_text():
            self._nothing.setText(
                tr("Nobody and no group is called “{name}”.").format(
                    name=self.search.text().strip()
                )
            )
        elif empty and self._model.listed is not Listed.ALL:
            self._nothing.setText(
                {
                    Listed.UNREAD: tr("What is not read yet is in the archive.")
                    if self._model.unread_in_archive()
                    else tr("Everything is read."),
                    Listed.GROUPS: tr("You are in no group yet."),
                    Listed.PEOPLE: tr("You talk to nobody one to one yet."),
                }[self._model.listed]
            )
        elif self.waiting.is_wanted:
            empty = False  # What waits is not nothing.
        elif empty:
            self._nothing.setText(
                tr("Groups and people appear here, newest first. Nothing is waiting for you.")
            )
        self._nothing.setVisible(empty and not self.is_rail)
        self._begin.setVisible(not all_shown and self._is_alone and not self._model.filter_text())

    def _say_archive(self) -> None:
        number, shown = self._model.archived_count(), self._model.shows_archive
        self._archive_box.setVisible(bool(number) and not self.is_rail)
        self.archive_in_rail.setVisible(bool(number) and self.is_rail)
        unread = self._model.unread_in_archive()
        if shown:
            words = tr("Back from the archive")
        elif unread:
            words = tr("Archived: {number}, {unread} unread").format(number=number, unread=unread)
        else:
            words = tr("Archived: {number}").format(number=number)
        self.archive.rename(words)
        self.archive_in_rail.rename(words, "back" if shown else "archive")

    def _enter_rows(self) -> None:
        """The first match, and on from there with the arrow keys."""
        first = self._model.at(0)
        if first is not None:
            self.rows.setFocus(Qt.FocusReason.TabFocusReason)
            self._open(first.conversation_id)

    def _enter_first(self) -> None:
        first = self._model.at(0)
        if first is None and self.search.text().strip():
            self._ask_for_messages()
        elif first is not None:
            self.search.clear()
            self.select(first.conversation_id)
            self.entered.emit(first.conversation_id)

    def _restore_selection(self) -> None:
        selection = self.rows.selectionModel()
        index = self._model.index_of(self._settled)
        selection.blockSignals(True)
        if index.isValid():
            selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        else:
            selection.clear()
        selection.blockSignals(False)
        self.rows.viewport().update()

    def _selected(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        del deselected
        if self._model.is_removing:
            return
        for index in selected.indexes():
            chosen = self._model.at(index.row())
            if chosen is not None:
                self._open(chosen.conversation_id)

    def _enter(self, index: QModelIndex) -> None:
        chosen = self._model.at(index.row())
        if chosen is not None:
            self._enter_id(chosen.conversation_id)

    def _enter_id(self, conversation_id: ConversationId) -> None:
        self.select(conversation_id)
        self.entered.emit(conversation_id)

    def _open(self, conversation_id: ConversationId) -> None:
        self.select(conversation_id)
        self.opened.emit(conversation_id)
