"""The context menu of a message, for mouse and keyboard alike."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from engine.events import MessageView
from engine.text_spans import SpanKind
from ui.controls import literal
from ui.conversation_words import sender_words
from ui.file_words import cancel_words
from ui.file_words import is_here as has_all_of
from ui.glyphs import Glyph, glyph_of
from ui.menu import Menu
from ui.timeline.abilities import Abilities
from ui.timeline.buttons import RowButton, button_words
from ui.timeline.file_box import acts_of
from ui.timeline.reaction_row import ReactionRow
from ui.timeline.requests import TimelineRequests
from ui.translate import tr


class MessageMenu(Menu):
    """Leaves out what makes no sense for a message.

    What copies is None where there is nothing to copy: no text, no selection, no link.  ``pair``:
    the conversation is one-to-one; ``about_sender``: its sender is known and somebody else.
    """

    def __init__(  # noqa: PLR0913 - what the entries depend on
        self,
        parent: QWidget,
        message: MessageView,
        abilities: Abilities,
        requests: TimelineRequests,
        *,
        copy_message: Callable[[], None] | None,
        copy_selection: Callable[[], None] | None,
        copy_link: Callable[[], None] | None,
        copy_code: Callable[[], None],
        pair: bool,
        about_sender: bool,
    ) -> None:
        super().__init__(parent)
        self._about_sender = about_sender
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._message = message
        self._can = abilities
        self._requests = requests
        self._add_answers()
        if copy_selection is not None:
            self._with_key(tr("Copy"), QKeySequence.StandardKey.Copy, copy_selection)
        self._add_file()
        if copy_message is not None:
            self.addAction(tr("Copy message"), copy_message)
        if copy_link is not None:
            self.addAction(tr("Copy link"), copy_link)
        if any(span.kind is SpanKind.CODE_BLOCK for span in message.spans):
            self.addAction(tr("Copy code"), copy_code)
        self._add_delivery(pair=pair)
        self._add_ends()

    def _add_file(self) -> None:
        message, requests = self._message, self._requests
        acts = acts_of(message)
        file = message.file
        for act in acts:
            more = cancel_words(file) if file and act is RowButton.FILE_CANCEL else ""
            words = more or button_words(act)
            self.addAction(words, partial(requests.act_on_file, message, act))
        is_here = file is not None and has_all_of(file)
        if is_here and RowButton.FILE_SAVE not in acts:
            self.addAction(tr("Save as…"), lambda: requests.save_file(message))

    def _with_key(
        self, words: str, key: QKeySequence.StandardKey | Qt.Key, run: Callable[[], None]
    ) -> None:
        """The timeline itself listens for the key; the menu only tells of it."""
        action = self.addAction(words, run)
        action.setShortcut(QKeySequence(key))
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)

    def _add_answers(self) -> None:
        message, can, requests = self._message, self._can, self._requests
        if can.keep:
            self.addAction(tr("Undo deleting"), lambda: requests.keep(message.message_id))
        if can.react:
            self.addAction(ReactionRow(self, message, requests))
        if can.reply:
            self._with_key(tr("Reply"), Qt.Key.Key_R, lambda: requests.reply(message))
        if message.reactions:
            show = partial(requests.show_reactions, message.message_id)
            self.addAction(tr("Who reacted…"), show)
        if can.edit:
            self._with_key(tr("Edit"), Qt.Key.Key_E, lambda: requests.edit(message))
        if can.forward:
            self.addAction(tr("Forward…"), lambda: requests.forward(message))
        if not self.isEmpty():
            self.addSeparator()

    def _add_delivery(self, *, pair: bool) -> None:
        message, requests = self._message, self._requests
        delivery, message_id = message.delivery, message.message_id
        if self._can.info or delivery is not None:
            self.addSeparator()
        if self._can.info:
            self._with_key(
                tr("Message info…"), Qt.Key.Key_I, lambda: requests.show_info(message_id)
            )
            self.addAction(tr("Inspect"), lambda: requests.inspect(message_id))
        if self._about_sender:
            name, who = sender_words(message), message.sender_id
            words = tr("About {name}").format(name=name)
            self.addAction(literal(words), lambda: requests.show_person(who))
            if not pair:
                words = tr("Write to {name}").format(name=name)
                self.addAction(literal(words), lambda: requests.write_to(who))
        if message.edited_ms is not None and not message.retracted:
            self.addAction(tr("Earlier versions…"), lambda: requests.show_versions(message_id))
        if delivery is None:
            return
        if not pair:  # Of two, the other one has it or not: the ticks say that.
            self.addAction(tr("Who holds it…"), lambda: requests.show_holders(message_id))
        if glyph_of(delivery) is Glyph.FAILED:
            self.addAction(tr("Resend"), lambda: requests.resend(message_id))
            self.addAction(tr("Discard…"), lambda: requests.discard(message_id))

    def _add_ends(self) -> None:
        if self._can.delete:
            self.addSeparator()
            for_all = self._can.retract or self._can.delete_as_admin
            words = tr("Delete…") if for_all else tr("Delete here…")
            self._with_key(words, Qt.Key.Key_Delete, lambda: self._requests.delete(self._message))


class QuickReactions(Menu):
    """Those that are given most, for the button beside a message; the picker is behind the last."""

    def __init__(self, parent: QWidget, message: MessageView, requests: TimelineRequests) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(tr("React"))
        self.addAction(ReactionRow(self, message, requests))
