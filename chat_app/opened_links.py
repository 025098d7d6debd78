"""Links that macOS opens: it sends them to the running program as an event, not as an argument.

The event goes to the application object, often before there is a window; a few are kept until one
says where they lead.  Never run on macOS; the event itself is Qt's, the same everywhere.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from engine.core.invite import MAX_LINK_CHARACTERS
from engine.core.links import OWN_SCHEME

MOST_WAITING: Final = 4


class LinkedApplication(QApplication):
    """Only what is sent to the application itself comes by here, so this costs nothing else."""

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self._waiting: deque[str] = deque(maxlen=MOST_WAITING)
        self._open: Callable[[str], None] | None = None

    def event(self, event: QEvent, /) -> bool:
        if not isinstance(event, QFileOpenEvent):
            return super().event(event)
        link = event.url().toString(QUrl.ComponentFormattingOption.FullyEncoded)
        if link.startswith(OWN_SCHEME):
            # One character more than is allowed tells the window that it is too long.
            self._take(link[: MAX_LINK_CHARACTERS + 1])
        return True

    def _take(self, link: str) -> None:
        if self._open is None:
            self._waiting.append(link)
        else:
            self._open(link)

    def lead_links_to(self, opens: Callable[[str], None] | None) -> None:
        """``None``: the window is closed; what comes now waits for the next."""
        self._open = opens
        while self._waiting and opens is not None:
            opens(self._waiting.popleft())


def lead_links_to(opens: Callable[[str], None] | None) -> None:
    """Where the application is one that is sent links, they lead there from now on."""
    application = QApplication.instance()
    if isinstance(application, LinkedApplication):
        application.lead_links_to(opens)
