"""A newer release, in the bar of notices: what is new, and a page for the browser.

Nothing is said of one that the user wants to hear no more of.  The port asks, and only if the user
agreed (``chat_app.update_notice``).
"""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Signal

from engine.events import NoticeLevel
from ui.tasks import Tasks
from ui.translate import tr
from ui.update_port import UpdateState
from ui.update_words import release_words
from ui.window.notices import Notice, NoticesBar
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY = "update"


class UpdateFlows(QObject):
    changed = Signal()

    def __init__(
        self, context: WindowContext, tasks: Tasks, notices: NoticesBar, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._context = context
        self._tasks = tasks
        self._notices = notices
        self._said = ""
        """The version that the notice is about."""
        self._call_off: Callable[[], None] = lambda: None
        if context.updates is not None:
            self._call_off = context.updates.listen(self._heard)
            self._heard()

    def end(self) -> None:
        self._call_off()
        self._call_off = lambda: None

    def _heard(self) -> None:
        port = self._context.updates
        if port is None:
            return
        view = port.view()
        release = view.release
        is_news = view.state is UpdateState.NEWER and not view.is_dismissed
        version = release.version if release is not None and is_news else ""
        if version != self._said:
            self._said = version
            if release is not None and version:
                text = release_words(release, self._context.version())
                actions = ((tr("Open the page"), self._open), (tr("Not this one"), self._dismiss))
                self._notices.raise_notice(
                    Notice(key=_KEY, level=NoticeLevel.INFO, text=text, actions=actions)
                )
            else:
                self._notices.clear(_KEY)
        self.changed.emit()

    def _open(self) -> None:
        if self._context.updates is not None:
            self._context.open_url(QUrl(self._context.updates.page))

    def _dismiss(self) -> None:
        if self._context.updates is not None:
            self._tasks.spawn(self._context.updates.dismiss, purpose=tr("change a setting"))
