"""Desktop notifications through the system tray, where there is one.

They never replace the window: nothing is ever hidden in the tray.  A muted conversation says
nothing, and the text stays out when the user wishes so.
"""

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QSystemTrayIcon

from engine.events import AnnotationView, ConversationView, MessageView
from ui.conversation_words import annotation_words, is_group, kind_words
from ui.foreign_text import one_line
from ui.translate import tr

_SHOWN_MS = 8000
_LONGEST_BODY = 200


def notification_words(
    conversation: ConversationView, message: MessageView, *, show_text: bool
) -> tuple[str, str]:
    """Title and body.  Some desktops read markup in the body, so none can be in it."""
    sender = one_line(message.sender_name, 40)
    words = kind_words(message)
    if not is_group(conversation):  # The title says already who it is.
        body = words if show_text else tr("New message")
    else:
        body = (
            f"{sender}: {words}"
            if show_text
            else tr("New message from {sender}").format(sender=sender)
        )
    return _plain(conversation, body)


def reaction_notification(
    conversation: ConversationView, annotation: AnnotationView, *, show_text: bool
) -> tuple[str, str]:
    """Title and body for a reaction to a message of ours."""
    words = annotation_words(annotation)
    if not show_text:
        sender = one_line(annotation.sender_name, 40)
        words = tr("New reaction from {sender}").format(sender=sender)
    return _plain(conversation, words)


def _plain(conversation: ConversationView, body: str) -> tuple[str, str]:
    plain = str.maketrans({"<": "\u2039", ">": "\u203a", "&": "+"})
    title = one_line(conversation.name, 60)
    return title.translate(plain), one_line(body, _LONGEST_BODY).translate(plain)


class Notifications(QObject):
    activated = Signal(str)
    """The conversation whose notification was clicked."""

    def __init__(self, icon: QIcon, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._last = ""
        self._tray: QSystemTrayIcon | None = None
        if QSystemTrayIcon.isSystemTrayAvailable():
            self._tray = QSystemTrayIcon(icon, self)
            self._tray.setToolTip("Causerie")
            self._tray.messageClicked.connect(self._clicked)
            self._tray.activated.connect(self._clicked)
            self._tray.show()

    def tell(
        self, conversation: ConversationView, message: MessageView, *, show_text: bool
    ) -> None:
        """Of a muted conversation only what mentions us is told."""
        if not conversation.muted or message.mentions_me:
            self.show_words(
                conversation, notification_words(conversation, message, show_text=show_text)
            )

    def tell_reaction(
        self, conversation: ConversationView, annotation: AnnotationView, *, show_text: bool
    ) -> None:
        if not conversation.muted:
            words = reaction_notification(conversation, annotation, show_text=show_text)
            self.show_words(conversation, words)

    def show_words(self, conversation: ConversationView, words: tuple[str, str]) -> None:
        """Title and body; a click opens the conversation."""
        if self._tray is None or not self._tray.supportsMessages():
            return
        self._last = conversation.conversation_id
        icon = QSystemTrayIcon.MessageIcon.NoIcon
        self._tray.showMessage(*words, icon, _SHOWN_MS)

    def close(self) -> None:
        if self._tray is not None:
            self._tray.hide()

    def _clicked(self) -> None:
        self.activated.emit(self._last)
