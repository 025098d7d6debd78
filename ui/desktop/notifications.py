"""Which notification is shown for which conversation: one each, and only while it is unread.

Who asks to be let into a group is told of, too, until that is answered.

A burst becomes one notification that is updated once a second.  What was read, wherever, is
withdrawn, and what was edited or deleted is not shown as it was.  A muted conversation says nothing
but what mentions us; while the user does not want to be disturbed, nothing is said at all.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from PySide6.QtCore import QObject, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QPainter

from engine.core.ids import ConversationId, MessageId, Position
from engine.events import AnnotationView, ConversationView, MessageView
from engine.governance_views import AskingView
from ui.avatar import draw_avatar
from ui.conversation_words import is_group
from ui.desktop.notification_words import body_words, message_line, reaction_line, title_words
from ui.desktop.port import (
    ActionLabels,
    DesktopNotification,
    Dismissed,
    MarkedRead,
    NoNotifications,
    NotificationAnswer,
    NotificationPort,
    Opened,
    Replied,
)
from ui.governing_words import asking_title
from ui.icons import app_icon
from ui.people import avatar_id, cannot_write_words, is_blocked, picture_of
from ui.translate import tr

PACE_MS: Final = 1_000
MOST_SHOWN: Final = 20
"""Conversations; the one that was told of first gives way."""
_LINES: Final = 3
_NO_MESSAGE: Final = MessageId("")
_ASKS: Final = "ask:"
"""Before the id of a person, in place of a message's."""
_AVATAR: Final = 96


@dataclass(slots=True)
class Told:
    """What is told of one conversation and was not read yet."""

    conversation: ConversationView
    show_text: bool
    lines: deque[tuple[MessageId, str]] = field(default_factory=lambda: deque(maxlen=_LINES))
    """Each with the message or reaction that it is of, or with who asks."""
    messages: int = 0
    """Without reactions."""
    first: Position | None = None
    last: Position | None = None
    is_shown: bool = False

    def add_message(self, message: MessageView, *, show_text: bool) -> None:
        line = message_line(self.conversation, message, show_text=show_text)
        self._add(message.message_id, line, show_text)
        self.messages += 1
        self.first = message.position if self.first is None else self.first
        self.last = message.position if self.last is None else max(self.last, message.position)

    def add_reaction(self, annotation: AnnotationView, *, show_text: bool) -> None:
        line = reaction_line(annotation, show_text=show_text)
        self._add(annotation.message_id, line, show_text)

    def add_asking(self, one: AskingView, *, show_text: bool) -> None:
        self._add(_asked_by(one), asking_title((one,)), show_text)

    def keep_asking(self, asking: Sequence[AskingView]) -> bool:
        """Nobody else asks any more; whether a line is gone."""
        asked = {_asked_by(one) for one in asking}
        kept = [line for line in self.lines if not line[0].startswith(_ASKS) or line[0] in asked]
        if len(kept) == len(self.lines):
            return False
        self.lines.clear()
        self.lines.extend(kept)
        return True

    def change(self, message: MessageView) -> bool:
        """Whether a line says something else now."""
        line = message_line(self.conversation, message, show_text=self.show_text)
        for at, (message_id, before) in enumerate(self.lines):
            if message_id == message.message_id and line != before:
                self.lines[at] = (message_id, line)
                return True
        return False

    def remove(self, message_id: MessageId) -> bool:
        """Whether a line is gone."""
        kept = [line for line in self.lines if line[0] != message_id]
        if len(kept) == len(self.lines):
            return False
        self.lines.clear()
        self.lines.extend(kept)
        self.messages -= 1
        return True

    def _add(self, message_id: MessageId, line: str, show_text: bool) -> None:
        if show_text is not self.show_text:
            self.lines.clear()  # They may hold what was written.
        self.show_text = show_text
        self.lines.append((message_id, line))

    def is_read(self, conversation: ConversationView) -> bool:
        first_unread = conversation.first_unread
        if self.last is None:  # Nothing but reactions, which are in no count.
            return False
        return not conversation.unread or (first_unread is not None and first_unread > self.last)


def _asked_by(one: AskingView) -> MessageId:
    return MessageId(f"{_ASKS}{one.participant_id}")


class Notifications(QObject):
    opened = Signal(str, object)
    """Conversation id, and the ``Position`` of the first message that was told of, or None."""
    replied = Signal(str, str)
    """Conversation id and what was written."""
    marked_read = Signal(str, object)
    """Conversation id, and the ``Position`` of the last message that was told of."""
    told = Signal()
    """Something that the user should notice."""

    def __init__(
        self,
        parent: QObject | None = None,
        *,
        is_quiet: Callable[[], bool] = lambda: False,
        is_locked: Callable[[], bool] = lambda: False,
        pace_ms: int = PACE_MS,
    ) -> None:
        super().__init__(parent)
        self._is_quiet = is_quiet
        self._is_locked = is_locked
        self._port: NotificationPort = NoNotifications()
        self._told: dict[str, Told] = {}
        self._due: set[str] = set()
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(pace_ms)
        self._pause.timeout.connect(self._show_due)

    def use(self, port: NotificationPort) -> None:
        """From now on; what waits to be read is shown there."""
        self._port.close()
        self._port = port
        port.listen(self._answered)
        for key in self._told:
            self._show(key)

    # --- what happens -----------------------------------------------------------------------------

    def tell(
        self, conversation: ConversationView, message: MessageView, *, show_text: bool
    ) -> None:
        """Of a muted conversation only what mentions us is told."""
        is_silent = self._is_quiet() or is_blocked(conversation)
        if is_silent or (conversation.muted and not message.mentions_me):
            return
        told = self._of(conversation, show_text=show_text)
        told.add_message(message, show_text=show_text)
        self._tell(conversation.conversation_id)

    def tell_reaction(
        self, conversation: ConversationView, annotation: AnnotationView, *, show_text: bool
    ) -> None:
        if self._is_quiet() or conversation.muted or is_blocked(conversation):
            return
        told = self._of(conversation, show_text=show_text)
        told.add_reaction(annotation, show_text=show_text)
        self._tell(conversation.conversation_id)

    def tell_asking(
        self, conversation: ConversationView, new: Sequence[AskingView], *, show_text: bool
    ) -> None:
        """``new``: who asks to be let in, and did not before."""
        if self._is_quiet() or conversation.muted:
            return
        told = self._of(conversation, show_text=show_text)
        for one in new:
            told.add_asking(one, show_text=show_text)
        self._tell(conversation.conversation_id)

    def asking_changed(self, conversation_id: ConversationId, asking: Sequence[AskingView]) -> None:
        """``asking``: all who ask to be let in now."""
        told = self._told.get(conversation_id)
        if told is not None and told.keep_asking(asking):
            self._show_rest(told)

    def changed(self, conversation: ConversationView) -> None:
        """It may have been read, here or in another way, or muted, or the person blocked."""
        told = self._told.get(conversation.conversation_id)
        if told is None:
            return
        is_muted_now = conversation.muted and not told.conversation.muted
        told.conversation = conversation
        if told.is_read(conversation) or is_muted_now or is_blocked(conversation):
            self.withdraw(conversation.conversation_id)

    def message_changed(self, message: MessageView) -> None:
        """It may have been edited, or deleted for all."""
        told = self._told.get(message.conversation_id)
        if told is not None and told.change(message):
            self._tell(message.conversation_id)

    def message_removed(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        told = self._told.get(conversation_id)
        if told is not None and told.remove(message_id):
            self._show_rest(told)

    def _show_rest(self, told: Told) -> None:
        conversation_id = told.conversation.conversation_id
        if told.lines:
            self._tell(conversation_id)
        else:
            self.withdraw(conversation_id)

    def withdraw(self, conversation_id: str) -> None:
        if self._told.pop(conversation_id, None) is not None:
            self._due.discard(conversation_id)
            self._port.withdraw(conversation_id)

    def withdraw_all(self) -> None:
        for key in tuple(self._told):
            self.withdraw(key)

    def hide_texts(self) -> None:
        """The user wants none in notifications any more, not even in those that are shown."""
        for key, told in self._told.items():
            if told.show_text:
                told.show_text = False
                told.lines.clear()
                words = tr("%n new messages", "%n new message", max(told.messages, 1))
                told.lines.append((_NO_MESSAGE, words))
                if told.is_shown:
                    self._show(key)

    def conceal(self) -> None:
        """The window is locked: what is shown says no more than that something came."""
        for key, told in self._told.items():
            if told.is_shown:
                self._show(key)

    def close(self) -> None:
        self._pause.stop()
        self._told.clear()
        self._due.clear()
        self._port.close()
        self._port = NoNotifications()

    # --- showing ----------------------------------------------------------------------------------

    def _of(self, conversation: ConversationView, *, show_text: bool) -> Told:
        key = conversation.conversation_id
        told = self._told.get(key)
        if told is None:
            while len(self._told) >= MOST_SHOWN:
                self.withdraw(next(iter(self._told)))
            told = self._told[key] = Told(conversation, show_text)
        told.conversation = conversation
        return told

    def _tell(self, key: str) -> None:
        if self._pause.isActive():
            self._due.add(key)
            return
        self._show(key)
        self._pause.start()
        self.told.emit()

    def _show_due(self) -> None:
        if not self._due:
            return
        due, self._due = self._due, set()
        for key in [key for key in self._told if key in due]:
            self._show(key)
        self._pause.start()
        self.told.emit()

    def _show(self, key: str) -> None:
        told = self._told[key]
        conversation = told.conversation
        wanted = _without_content(key, told) if self._is_locked() else None
        self._port.show(
            wanted
            or DesktopNotification(
                key=key,
                title=title_words(conversation, told.messages),
                body=body_words(
                    tuple(line for _, line in told.lines), told.messages, show_text=told.show_text
                ),
                picture=_face(conversation),
                labels=ActionLabels(
                    open=tr("Open"), reply=tr("Reply"), mark_read=tr("Mark as read")
                ),
                can_reply=not cannot_write_words(conversation),
                can_mark_read=told.last is not None,
                is_update=told.is_shown,
            )
        )
        told.is_shown = True

    # --- what the user does with them -------------------------------------------------------------

    def _answered(self, answer: NotificationAnswer) -> None:
        told = self._told.get(answer.key)
        first, last = (None, None) if told is None else (told.first, told.last)
        match answer:
            case Opened(key):
                self.withdraw(key)
                self.opened.emit(key, first)
            case Replied(key, text):
                # Who answers has read what was told, but not what else may be unread before it.
                if told is not None and told.conversation.unread <= told.messages:
                    self.marked_read.emit(key, last)
                self.withdraw(key)
                self.replied.emit(key, text)
            case MarkedRead(key):
                self.withdraw(key)
                self.marked_read.emit(key, last)
            case Dismissed(key):
                self._told.pop(key, None)
                self._due.discard(key)
            case _:
                assert_never(answer)


def _without_content(key: str, told: Told) -> DesktopNotification:
    """Of which one learns neither who wrote nor where; it leads to the page that unlocks."""
    number = max(told.messages, 1)
    return DesktopNotification(
        key=key,
        title="Causerie",
        body=tr("%n new messages", "%n new message", number),
        picture=app_icon().pixmap(_AVATAR, _AVATAR).toImage(),
        labels=ActionLabels(open=tr("Open"), reply=tr("Reply"), mark_read=tr("Mark as read")),
        can_reply=False,
        can_mark_read=False,
        is_update=told.is_shown,
    )


def _face(conversation: ConversationView) -> QImage:
    image = QImage(_AVATAR, _AVATAR, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    draw_avatar(
        painter,
        QRectF(image.rect()),
        stable_id=avatar_id(conversation),
        name=conversation.name,
        is_group=is_group(conversation),
        picture=picture_of(conversation),
    )
    painter.end()
    return image
