"""The one interface to whatever shows notifications on this desktop.

``chat_app`` has the one that speaks D-Bus, ``ui.desktop.tray`` the one that Qt offers elsewhere.
There is one notification for each ``key``; showing it again replaces what it said.  No method
waits, and none raises: a desktop that cannot show anything is no failure of the chat.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct
from PySide6.QtGui import QImage


class ActionLabels(Struct, frozen=True, kw_only=True):
    """What the buttons say, in the user's language."""

    open: str
    reply: str
    mark_read: str


class DesktopNotification(Struct, frozen=True, kw_only=True):
    """Plain texts: whoever shows them escapes what the desktop would take for markup."""

    key: str
    title: str
    body: str
    picture: QImage
    labels: ActionLabels
    can_reply: bool
    can_mark_read: bool
    is_update: bool = False
    """Of one that is shown; it need not draw attention again."""


class Opened(Struct, frozen=True):
    """It was clicked."""

    key: str


class Replied(Struct, frozen=True):
    key: str
    text: str


class MarkedRead(Struct, frozen=True):
    key: str


class Dismissed(Struct, frozen=True):
    """The user does not want to see it any more."""

    key: str


NotificationAnswer: TypeAlias = Opened | Replied | MarkedRead | Dismissed
Heard: TypeAlias = Callable[[NotificationAnswer], None]


class NotificationPort(Protocol):
    def listen(self, heard: Heard, /) -> None:
        """Tell ``heard`` what the user does with notifications."""

    def show(self, notification: DesktopNotification, /) -> None: ...

    def withdraw(self, key: str, /) -> None:
        """Harmless if it is not shown."""

    def close(self) -> None:
        """Withdraw all; nothing is shown any more."""


class NoNotifications:
    """Of a desktop that shows none, and until the one that does is reached."""

    def listen(self, heard: Heard, /) -> None:
        del heard

    def show(self, notification: DesktopNotification, /) -> None:
        del notification

    def withdraw(self, key: str, /) -> None:
        del key

    def close(self) -> None:
        pass
