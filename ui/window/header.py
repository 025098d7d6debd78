"""The header of a conversation: its name, its members, its gaps, and its menu."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QIcon,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from engine.core.ids import ParticipantId
from engine.events import ConnectionLevel, ConnectionView, ConversationView, MessageView
from engine.governance_views import GovernanceView
from ui.avatar import AvatarButton
from ui.badge import badge_text, draw_badge
from ui.beads import BeadStrip
from ui.controls import Area, Button, ElidedText, IconButton
from ui.conversation_words import (
    is_alone,
    is_group,
    members_line,
    open_channel_line,
    typing_line,
)
from ui.foreign_text import one_line
from ui.governing_words import is_out
from ui.history_words import choices
from ui.icons import draw_icon, icon
from ui.menu import Menu
from ui.mute_entries import MuteEntries, mute_words
from ui.people import avatar_id, is_blocked, is_online, person_line, picture_of, state_words
from ui.segments import Segments
from ui.theme import current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr

_HEIGHT, _COMPACT_HEIGHT = 58, 48
_BACK_WIDTH = 1.7
_MOST_UNREAD = 99
_SHORT_BELOW = 560
_NO_BEADS_BELOW = 300
_NO_VIEWS_BELOW = 500
"""Then the menu alone leads to the other view."""
_NO_SEARCH_BELOW = 620
"""Likewise to the search."""
_BESIDE_INVITE = 255
"""For a name, beads and buttons; whatever the button is called in a language."""
_LEAST_NAME = 76
"""Below that the name goes before the button of the invitation, which the menu has, too."""
_GOOD_NAME = 150
"""For less the beads give up their words."""
_ONLY_WORDS_BELOW = 260


def _sealed_words(*, group: bool) -> str:
    if group:
        return tr("Messages are sealed for the members of this group")
    return tr("Messages are sealed for the two of you")


class Sign(QWidget):
    """A small icon beside the name; its words are said by tool tip and screen reader."""

    def __init__(self, icon_name: str, words: str) -> None:
        super().__init__()
        self._icon_name = icon_name
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.say(words)
        theme_changed.connect(self.updateGeometry)

    def say(self, words: str) -> None:
        self.setAccessibleName(words)
        set_tip(self, words)

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(14)
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        draw_icon(painter, self._icon_name, QRectF(self.rect()), current_theme().ink3)


class BackButton(IconButton):
    """Carries the sum of unread elsewhere, because the list is hidden."""

    def __init__(self) -> None:
        self._unread = 0
        super().__init__("back", tr("Back to the conversations"))

    def show_unread(self, unread: int) -> None:
        self._unread = unread
        name = tr("Back to the conversations")
        self.setAccessibleName(
            tr("{name}, %n unread", "{name}, %n unread", unread).format(name=name)
            if unread
            else name
        )
        self._widen()
        self.update()

    def _dress(self) -> None:
        """Wider than high while there is a badge: the arrow stands left, and it is left free."""
        super()._dress()
        self.setIcon(QIcon())
        self._widen()

    def _widen(self) -> None:
        wide = _BACK_WIDTH if self._unread else 1
        self.setFixedSize(int(self.height() * wide), self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = theme.metrics.scaled(20)
        arrow = QRectF(4, (self.height() - side) / 2, side, side)
        draw_icon(painter, "back", arrow, theme.ink2)
        if self._unread:
            words = badge_text(self._unread, _MOST_UNREAD)
            at = QPointF(self.width(), theme.metrics.scaled(10))
            draw_badge(painter, at, words, muted=False)


class ConversationHeader(Area):
    back_requested = Signal()
    invite_requested = Signal()
    mute_requested = Signal(object)
    leave_requested = Signal()
    channel_requested = Signal()
    leave_channel_requested = Signal()
    rename_requested = Signal()
    safety_number_requested = Signal()
    block_requested = Signal()
    unblock_requested = Signal()
    remove_requested = Signal()
    date_requested = Signal()
    export_requested = Signal()
    about_requested = Signal()
    """The picture, the name or the line below it was clicked."""
    delivery_wished = Signal(bool)
    """The view of the delivery instead of the chat, or the chat again."""
    history_requested = Signal(object)
    """For so many days; None: for all there is."""
    search_requested = Signal()
    """In this conversation."""
    focus_left = Signal()
    """What had the focus is gone."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__("header", edges=("bottom",))
        self._now = now
        self._conversation: ConversationView | None = None
        self._typing: tuple[str, ...] = ()
        self._fetching = ""
        self._offline = False
        self._is_alone = False
        self._group_picture = b""
        self._is_out = False
        self.back = BackButton()
        self.about = AvatarButton(38, is_group=True, behind="header")
        self._name = ElidedText(face="heading", strong=True)
        self._line = ElidedText(face="small", colour="ink3")
        self.lock = Sign("lock", _sealed_words(group=True))
        self.verified = Sign("verified", tr("Verified: you compared this person's key."))
        self._compared: frozenset[ParticipantId] = frozenset()
        self.beads = BeadStrip()
        self.views = Segments(tr("View"), (tr("Chat"), tr("Delivery")))
        self.views.choose(0)
        self.views.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._view_actions: list[QAction] = []
        self.invite = Button(tr("Invite people"), icon_name="join")
        self.search = IconButton("search", tr("Search this conversation (Ctrl+F)"))
        self.search.clicked.connect(self.search_requested)
        self.more = IconButton("more", tr("Group menu"))
        self._group_menu = Menu(self)
        self._person_menu = Menu(self)
        self._channel_menu = Menu(self)
        self._icons: dict[QAction, str] = {}
        self._build_menus()
        self._lay_out()

    def _build_menus(self) -> None:
        group, person = self._group_menu, self._person_menu
        group.setAccessibleName(tr("Group menu"))
        person.setAccessibleName(tr("Menu of this person"))
        self._add(group, tr("About this group"), "info", self.about_requested.emit)
        self._invite_action = self._add(
            group, tr("Invitation link…"), "join", self.invite_requested.emit
        )
        self._add_search(group)
        self._add(group, tr("Go to date…"), "calendar", self.date_requested.emit)
        self._add_view(group)
        self._add_history(group)
        mute_group = MuteEntries(group, self.mute_requested.emit)
        self._add(group, tr("Export…"), "data", self.export_requested.emit)
        group.addSeparator()
        self._leave_action = self._add(
            group, tr("Leave group…"), "leave", self.leave_requested.emit
        )
        self._add(person, tr("About this person"), "info", self.about_requested.emit)
        self._add(person, tr("Safety number…"), "key", self.safety_number_requested.emit)
        self._add(person, tr("Rename…"), "rename", self.rename_requested.emit)
        self._add_search(person)
        self._add(person, tr("Go to date…"), "calendar", self.date_requested.emit)
        self._add_view(person)
        self._add_history(person)
        mute_person = MuteEntries(person, self.mute_requested.emit)
        self._add(person, tr("Export…"), "data", self.export_requested.emit)
        mute_channel = self._build_channel_menu(self._channel_menu)
        self.mutes = (mute_group, mute_person, mute_channel)
        self._block_action = self._add(person, tr("Block…"), "block", self._toggle_block)
        person.addSeparator()
        self._remove_action = self._add(person, tr("Remove…"), "leave", self.remove_requested.emit)
        self.more.setMenu(group)

    def _build_channel_menu(self, menu: Menu) -> MuteEntries:
        menu.setAccessibleName(tr("Menu of this channel"))
        self._add(menu, tr("About this channel…"), "info", self.channel_requested.emit)
        self._add_search(menu)
        self._add_view(menu)
        self._add_history(menu)
        mute = MuteEntries(menu, self.mute_requested.emit)
        menu.addSeparator()
        self._leave_channel_action = self._add(
            menu, tr("Leave channel…"), "leave", self.leave_channel_requested.emit
        )
        return mute

    def _add(self, menu: Menu, words: str, icon_name: str, run: Callable[[], None]) -> QAction:
        action = menu.addAction(words)
        action.triggered.connect(lambda _checked=False: run())
        self._icons[action] = icon_name
        return action

    def _add_search(self, menu: Menu) -> None:
        words = tr("Search this conversation")
        action = self._add(menu, words, "search", self.search_requested.emit)
        action.setShortcut(QKeySequence("Ctrl+F"))  # The window listens for it; this tells of it.
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)

    def _add_view(self, menu: Menu) -> None:
        action = self._add(menu, tr("Delivery view"), "data", self.switch_view)
        self._view_actions.append(action)

    def show_chat(self) -> None:
        """And not its delivery."""
        if self.views.chosen_number:
            self.views.choose(0)

    def switch_view(self) -> None:
        """From the chat to its delivery, or back."""
        self.views.choose(1 - self.views.chosen_number)

    def _view_chosen(self, number: int) -> None:
        words = tr("Back to the chat") if number else tr("Delivery view")
        for action in self._view_actions:
            action.setText(words)
        self.delivery_wished.emit(bool(number))

    def _add_history(self, menu: Menu) -> None:
        spans = menu.submenu(tr("Fetch history"))
        spans.setAccessibleName(tr("Fetch history from Stores"))
        self._icons[spans.menuAction()] = "again"
        for words, days in choices():
            action = spans.addAction(words)
            action.triggered.connect(partial(self._ask_history, days))

    def _ask_history(self, days: int | None, _checked: bool = False) -> None:
        self.history_requested.emit(days)

    def _lay_out(self) -> None:
        title = QHBoxLayout()
        title.setSpacing(6)
        title.addWidget(self._name)
        title.addWidget(self.verified)
        title.addWidget(self.lock)
        title.addStretch(1)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addStretch(1)
        words.addLayout(title)
        words.addWidget(self._line)
        words.addStretch(1)
        self._row = QHBoxLayout(self)
        self._row.addWidget(self.back)
        self._row.addWidget(self.about)
        self._row.addLayout(words, 1)
        self._row.addWidget(self.invite)
        self._row.addWidget(self.beads)
        self._row.addWidget(self.views)
        self._row.addWidget(self.search)
        self._row.addWidget(self.more)
        self.views.chosen.connect(self._view_chosen)
        self.about.clicked.connect(self.about_requested)
        self.back.clicked.connect(self.back_requested)
        self.invite.clicked.connect(self.invite_requested)
        theme_changed.connect(self._dress)
        self._dress()

    def show_conversation(
        self, conversation: ConversationView, messages: Sequence[MessageView]
    ) -> None:
        self._conversation = conversation
        name = one_line(conversation.name)
        self._name.setText(name)
        group = is_group(conversation)
        self.about.show_identity(
            avatar_id(conversation),
            name,
            present=True if is_online(conversation) else None,
            picture=self._group_picture or picture_of(conversation),
            is_group=group,
        )
        self._say_about(conversation, name)
        self.lock.say(_sealed_words(group=group))
        for mute in self.mutes:
            mute.show_muted(conversation, self._now())
        self._block_action.setText(tr("Unblock") if is_blocked(conversation) else tr("Block…"))
        self._show_menu(conversation)
        self._is_alone = is_alone(conversation) and not self._is_out
        if not self._is_alone and self.invite.hasFocus():
            self.focus_left.emit()  # Qt would give it to the group menu beside it.
        self.beads.show_health(conversation, messages)
        said = tr("{name}, group") if group else tr("{name}, person")
        if self._is_verified():
            said = tr("{name}, person, verified")
        if conversation.open_channel is not None:
            has_key = conversation.open_channel.has_key
            said = tr("{name}, open channel, not encrypted")
            if has_key:
                said = tr("{name}, channel with a shared key")
        self.setAccessibleName(said.format(name=name))
        self._fit()

    def show_governance(self, view: GovernanceView | None) -> None:
        """Of the conversation that is shown; None for a group without roles, and for a person."""
        self._group_picture = b"" if view is None else view.picture
        self._is_out = is_out(view)
        self._leave_action.setText(tr("Remove…") if self._is_out else tr("Leave group…"))
        self._invite_action.setVisible(not self._is_out)

    def _say_about(self, conversation: ConversationView, name: str) -> None:
        """An open channel has a page of its own, in its menu: nobody in it is known."""
        has_panel = conversation.open_channel is None
        words = tr("About {name}").format(name=name) if has_panel else name
        self.about.setAccessibleName(words)
        self.about.setEnabled(has_panel)
        set_tip(self.about, words if has_panel else "")
        shape = Qt.CursorShape.PointingHandCursor if has_panel else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)

    def _show_menu(self, conversation: ConversationView) -> None:
        menu = self._group_menu if is_group(conversation) else self._person_menu
        if conversation.open_channel is not None:
            menu = self._channel_menu
        if self.more.menu() is not menu:
            self.more.setMenu(menu)
            self.more.setAccessibleName(menu.accessibleName())
            set_tip(self.more, menu.accessibleName())

    def show_verified(self, verified: frozenset[ParticipantId]) -> None:
        """Those whose keys the user compared.  The conversation is shown anew after this."""
        self._compared = verified

    def _is_verified(self) -> bool:
        contact = None if self._conversation is None else self._conversation.contact
        return contact is not None and contact.participant_id in self._compared

    def show_typing(self, names: tuple[str, ...]) -> None:
        if names != self._typing:
            self._typing = names
            self._show_line()

    def show_connection(self, connection: ConnectionView) -> None:
        """While nobody is connected, nothing is fetched and nothing is known to be whole."""
        self._offline = connection.level is ConnectionLevel.OFFLINE
        self.beads.set_offline(self._offline)
        self._fit()

    def show_history(self, words: str) -> None:
        """One quiet line about what is fetched by itself; empty once it is over."""
        if words != self._fetching:
            self._fetching = words
            self._show_line()

    def set_back_visible(self, visible: bool) -> None:
        self.back.setVisible(visible)
        self._dress()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """All of it that is no button is for the mouse what the picture is for the keys."""
        inside = self.rect().contains(event.position().toPoint())
        if event.button() is Qt.MouseButton.LeftButton and inside and self.about.isEnabled():
            self.about_requested.emit()
        else:
            super().mouseReleaseEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = self.width() / current_theme().metrics.factor
        self.views.setVisible(room >= _NO_VIEWS_BELOW)
        self.search.setVisible(room >= _NO_SEARCH_BELOW)
        self.beads.setVisible(room >= _NO_BEADS_BELOW and self._has_health())
        self.about.setVisible(room >= _ONLY_WORDS_BELOW)
        self.beads.set_short(room < _SHORT_BELOW or not self._beads_leave_the_name())
        beside = room - self.invite.sizeHint().width() / current_theme().metrics.factor
        has_name = self._room_for_name(self.invite) >= current_theme().metrics.scaled(_LEAST_NAME)
        self.invite.setVisible(self._is_alone and beside >= _BESIDE_INVITE and has_name)
        sealed = self._conversation is None or self._conversation.open_channel is None
        self.lock.setVisible(sealed and room >= _ONLY_WORDS_BELOW)
        self.verified.setVisible(self._is_verified())
        self._show_line()

    def _beads_leave_the_name(self) -> bool:
        """With their words; a number and the tool tip say as much."""
        longer = self.beads.width_if(short=False) - self.beads.sizeHint().width()
        left = self._room_for_name() - (0 if self.beads.isHidden() else longer)
        need = self._name.sizeHint().width() + self._row.spacing() + self.lock.sizeHint().width()
        return left >= min(need, current_theme().metrics.scaled(_GOOD_NAME))

    def _room_for_name(self, *beside: QWidget) -> int:
        """What the name has beside all that is shown, and those."""
        parts = (self.back, self.about, self.beads, self.views, self.search, self.more)
        shown = [*beside, *(part for part in parts if not part.isHidden())]
        widths = (part.sizeHint().expandedTo(part.minimumSize()).width() for part in shown)
        margins = self._row.contentsMargins()
        gaps = margins.left() + margins.right() + self._row.spacing() * len(shown)
        return self.width() - gaps - sum(widths)

    def _has_health(self) -> bool:
        """Where nothing can be written yet there is nothing to be whole or not."""
        conversation = self._conversation
        talks = conversation is None or not state_words(conversation)
        return talks and self.beads.has_any()

    def _show_line(self) -> None:
        if self._typing:
            self._line.recolour("accentInk")
            self._line.setText(typing_line(self._typing))
        elif self._fetching and not self._offline:
            self._line.recolour("ink3")
            self._line.setText(self._fetching)
        elif self._conversation is not None:
            self._line.recolour("ink3")
            self._line.setText(self._standing_line(self._conversation))

    def _standing_line(self, conversation: ConversationView) -> str:
        line = self._who_line(conversation)
        if conversation.muted_until_ms is None:
            return line
        return " · ".join((line, mute_words(conversation, self._now())))

    def _who_line(self, conversation: ConversationView) -> str:
        if conversation.contact is not None:
            return person_line(conversation, conversation.contact, self._now())
        if conversation.open_channel is not None:
            return open_channel_line(conversation.open_channel)
        short = self.width() / current_theme().metrics.factor < _SHORT_BELOW
        return members_line(conversation, short=short)

    def _toggle_block(self) -> None:
        if self._conversation is not None and is_blocked(self._conversation):
            self.unblock_requested.emit()
        else:
            self.block_requested.emit()

    def _dress(self) -> None:
        theme = current_theme()
        metrics = theme.metrics
        left = 4 if self.back.isVisibleTo(self) else 20
        self._row.setContentsMargins(metrics.gap(left), 0, metrics.gap(12), 0)
        self._row.setSpacing(metrics.gap(12 if left > 4 else 8))  # noqa: PLR2004
        lines = theme.type.heading.line_height + theme.type.small.line_height
        least = metrics.scaled(metrics.dense(_HEIGHT, _COMPACT_HEIGHT))
        self.setFixedHeight(max(least, int(lines) + metrics.gap(metrics.dense(16, 8))))
        size = metrics.scaled(16)
        for action, name in self._icons.items():
            action.setIcon(icon(name, theme.ink2, size))
        for mute in self.mutes:
            mute.dress()
        leaving = (self._leave_action, self._leave_channel_action, self._remove_action)
        for action in leaving:
            action.setIcon(icon("leave", theme.danger, size))
        self._fit()
