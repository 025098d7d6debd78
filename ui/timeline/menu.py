"""The context menu of a message: what can be done with it, in one place for mouse and keyboard."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from engine.events import MessageView, SpanKind
from ui.glyphs import Glyph, glyph_of
from ui.timeline.requests import TimelineRequests
from ui.timeline.rows import is_system
from ui.translate import tr


class MessageMenu(QMenu):
    """Leaves out what makes no sense for a message.

    ``copy_selection`` and ``copy_link`` are None without a selection and away from links; ``pair``:
    the conversation is one-to-one.
    """

    def __init__(  # noqa: PLR0913 - what the entries depend on
        self,
        parent: QWidget,
        message: MessageView,
        requests: TimelineRequests,
        *,
        copy_message: Callable[[], None],
        copy_selection: Callable[[], None] | None,
        copy_link: Callable[[], None] | None,
        copy_code: Callable[[], None],
        pair: bool,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        message_id = message.message_id
        if copy_selection is not None:
            copy = self.addAction(tr("Copy"), copy_selection)
            copy.setShortcut(QKeySequence(QKeySequence.StandardKey.Copy))
            copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.addAction(tr("Copy message"), copy_message)
        if copy_link is not None:
            self.addAction(tr("Copy link"), copy_link)
        if any(span.kind is SpanKind.CODE_BLOCK for span in message.spans):
            self.addAction(tr("Copy code"), copy_code)
        delivery = message.delivery
        if delivery is not None:
            self.addSeparator()
            if not pair:  # Of two, the other one has it or not: the ticks say that.
                self.addAction(tr("Who holds it…"), lambda: requests.show_holders(message_id))
            if glyph_of(delivery) is Glyph.FAILED:
                self.addAction(tr("Resend"), lambda: requests.resend(message_id))
                self.addAction(tr("Discard…"), lambda: requests.discard(message_id))
        if not is_system(message) and not message.held:
            self.addSeparator()
            self.addAction(tr("Delete here…"), lambda: requests.delete(message_id))
