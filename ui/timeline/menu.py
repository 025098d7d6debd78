"""The context menu of a message: what can be done with it, in one place for mouse and keyboard."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from engine.events import MessageView
from ui.glyphs import Glyph, glyph_of
from ui.timeline.rows import is_system


class MessageMenu(QMenu):
    """``wishes`` says what the entries call; what makes no sense for a message is left out."""

    def __init__(  # noqa: PLR0913 - what the entries depend on
        self,
        parent: QWidget,
        message: MessageView,
        *,
        has_selection: bool,
        link: str | None,
        wishes: "Wishes",
        pair: bool = False,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if has_selection:
            copy = self.addAction("Copy", wishes.copy)
            copy.setShortcut(QKeySequence(QKeySequence.StandardKey.Copy))
            copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.addAction("Copy message", wishes.copy_message)
        if link is not None:
            self.addAction("Copy link", wishes.copy_link)
        delivery = message.delivery
        if delivery is not None:
            self.addSeparator()
            if not pair:  # Of two, the other one has it or not: the ticks say that.
                self.addAction("Who holds it…", wishes.holders)
            if glyph_of(delivery) is Glyph.FAILED:
                self.addAction("Resend", wishes.resend)
                self.addAction("Discard…", wishes.discard)
        if not is_system(message) and not message.held:
            self.addSeparator()
            self.addAction("Delete here…", wishes.delete)


class Wishes:
    """What the entries call."""

    def __init__(  # noqa: PLR0913 - one callable for each entry
        self,
        *,
        copy: Callable[[], object],
        copy_message: Callable[[], object],
        copy_link: Callable[[], object],
        holders: Callable[[], object],
        resend: Callable[[], object],
        discard: Callable[[], object],
        delete: Callable[[], object],
    ) -> None:
        self.copy = copy
        self.copy_message = copy_message
        self.copy_link = copy_link
        self.holders = holders
        self.resend = resend
        self.discard = discard
        self.delete = delete
