"""Where one writes: grows with the text, sends with Enter, and never loses a word.

A text over the limit stays as it is and says by how much it is over.  Drafts are handed out a
moment after the last key, and at once when the conversation changes.  Layout and limits are
counted cheaply, so that a very large paste does not hold up the window.
"""

import math
import re

from PySide6.QtCore import QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QTextOption,
)
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
)

from engine.api import MAX_TEXT_BYTES
from ui.attachments import dropped_files
from ui.completion import CompletionPopup
from ui.controls import Area, ColourRole, IconButton, Text
from ui.foreign_text import one_line
from ui.regional import decimal
from ui.theme import current_theme, theme_changed
from ui.translate import tr
from ui.window.marking import MarkingKeys

MAX_PASTE_CHARACTERS = 4 * MAX_TEXT_BYTES
"""More than this is refused as a whole: it stays in the clipboard."""
_BOX = 38
_OUTLINE = 1
_MAX_HEIGHT_SHARE = 0.4
_DRAFT_AFTER_MS = 400
_TYPING_AGAIN_AFTER_MS = 3000
_MOST_BYTES_PER_CHARACTER = 4
"""Of UTF-8: below limit / 4 characters nothing needs counting."""
_KIB = 1024
_ENDLESS_WORD = 2_000
_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
"""At the beginning.  What the first line with words is indented by stays."""


def bytes_over_limit(text: str) -> int:
    if len(text) * _MOST_BYTES_PER_CHARACTER <= MAX_TEXT_BYTES:
        return 0
    return max(0, len(text.encode("utf-8", "surrogatepass")) - MAX_TEXT_BYTES)


class MessageBox(QPlainTextEdit):
    submitted = Signal()
    paste_refused = Signal()
    up_pressed = Signal()
    """In an empty box."""
    escape_pressed = Signal()
    files_given = Signal(QMimeData)
    """A picture or files were pasted or dropped."""
    wrapped = Signal()
    """Its width has changed, and with it how many lines its text takes."""

    def __init__(self) -> None:
        super().__init__()
        self._hint = ""
        self.takes_files = True
        self.setProperty("kind", "message")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.fit_wrapping("")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)

    def fit_wrapping(self, text: str) -> None:
        """Looking for word boundaries in one endless word takes five times as long as not."""
        endless = any(len(word) >= _ENDLESS_WORD for word in text.split())
        modes = QTextOption.WrapMode
        mode = modes.WrapAnywhere if endless else modes.WrapAtWordBoundaryOrAnywhere
        if mode is not self.wordWrapMode():
            self.setWordWrapMode(mode)

    def show_hint(self, words: str) -> None:
        """What is said where nothing is written, in one line."""
        self._hint = words
        self.fit_hint()

    def fit_hint(self) -> None:
        """Qt would break it into lines, of which only the first is to be seen."""
        room, end = self.viewport().width(), Qt.TextElideMode.ElideRight
        self.setPlaceholderText(self.fontMetrics().elidedText(self._hint, end, room))
        self.viewport().update()  # Else the old one stays where it is to be seen.

    def text_height(self, most: int) -> int:
        """Of the lines as they are laid out, higher than the font says; exact up to ``most``."""
        height, block = 0.0, self.document().firstBlock()
        while block.isValid() and height <= most:
            height += self.blockBoundingRect(block).height()
            block = block.next()
        return math.ceil(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit_hint()
            self.wrapped.emit()
        now = self.viewport().size()
        if now.width() != event.size().width():
            # The scroll bar came or went because of it, and Qt did not wrap the text again.
            super().resizeEvent(QResizeEvent(now, event.size()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
            return
        if is_enter:
            self.insertPlainText("\n")
            self.ensureCursorVisible()
            return
        if event.key() == Qt.Key.Key_Up and self.document().isEmpty():
            self.up_pressed.emit()
            return
        if event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
            return
        super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files go to the conversation around it, which shows where they land."""
        if _has_files(event.mimeData()):
            event.ignore()
        else:
            super().dragEnterEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or (self.takes_files and _has_files(source))

    def insertFromMimeData(self, source: QMimeData) -> None:
        if self.takes_files and _has_files(source):
            self.files_given.emit(source)
            return
        text = source.text()
        if len(text) > MAX_PASTE_CHARACTERS:
            self.paste_refused.emit()
            return
        self.fit_wrapping(text)
        self.insertPlainText(text)
        self.ensureCursorVisible()


def _has_files(source: QMimeData) -> bool:
    """Text wins over a picture of it, which office programs put beside it."""
    return bool(dropped_files(source)) or (source.hasImage() and not source.hasText())


class Composer(Area):
    submitting = Signal()
    """The text is still in the box, and is about to be taken out."""
    submitted = Signal(str)
    draft_changed = Signal(str)
    typing_changed = Signal(bool)
    emoji_requested = Signal()
    attach_requested = Signal()
    edit_last_requested = Signal()
    """Up, in an empty box."""
    cancelled = Signal()
    """Escape."""

    def __init__(self) -> None:
        super().__init__("header", edges=("top",))
        self.box = MessageBox()
        self.completions = CompletionPopup(self.box)
        self.attach = IconButton("attach", tr("Send a picture or a file"), side=_BOX)
        self.attach.clicked.connect(self.attach_requested)
        self._attached = False
        self._waits = False
        """Files are being read that go out with the text."""
        self._goes_then = False
        """It was to go out meanwhile."""
        self.emoji = IconButton("emoji", tr("Emoji (Ctrl+E)"), side=_BOX)
        self.emoji.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves it where one writes
        MarkingKeys(self.box)
        self.send = IconButton("send", tr("Send (Enter)"), side=_BOX, colour="onAccent")
        self.send.setProperty("kind", "send")
        self.box.wrapped.connect(self.refit)
        self._foot = Text(face="caption", colour="danger", wrap=True)
        self._foot.setAccessibleName(tr("About the message"))
        self._over = 0
        self._blocked = ""
        self._room = 0
        self._draft_timer = QTimer(self, singleShot=True, interval=_DRAFT_AFTER_MS)
        self._typing_timer = QTimer(self, singleShot=True, interval=_TYPING_AGAIN_AFTER_MS)
        self._lay_out()
        self.box.textChanged.connect(self._edited)
        self.box.submitted.connect(self.submit)
        self.box.paste_refused.connect(self._refuse_paste)
        self.box.up_pressed.connect(self.edit_last_requested)
        self.box.escape_pressed.connect(self.cancelled)
        self.send.clicked.connect(self.submit)
        self.emoji.clicked.connect(self.emoji_requested)
        self._draft_timer.timeout.connect(self._tell_draft)
        theme_changed.connect(self._dress)
        self._dress()
        self.block(tr("Choose a conversation first"))

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.attach, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.box, 1)
        row.addWidget(self.emoji, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.send, 0, Qt.AlignmentFlag.AlignBottom)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(14, 8, 14, 8)
        whole.setSpacing(4)
        whole.addLayout(row)
        whole.addWidget(self._foot)
        self._foot.hide()

    # --- what the window tells it -----------------------------------------------------------------

    def text(self) -> str:
        return self.box.toPlainText()

    def write_key(self, event: QKeyEvent) -> bool:
        """Go on in the box with a letter or a paste meant for nothing else; False if not now."""
        if event.matches(QKeySequence.StandardKey.Paste) and self.box.isEnabled():
            self.box.setFocus()
            self.box.paste()
            return True
        held = event.modifiers() & ~(
            Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier
        )
        text = event.text()
        if held or not text.strip() or not text.isprintable() or not self.box.isEnabled():
            return False
        self.box.setFocus()
        return QApplication.sendEvent(self.box, event)

    def block(self, reason: str) -> None:
        """Nothing can be written now, and why."""
        self._blocked = reason
        self.box.setEnabled(False)
        self.box.show_hint(reason)
        self.box.setAccessibleName(tr("Message, not available: {reason}").format(reason=reason))
        self._judge()

    def open(self, name: str) -> None:
        """Take up another conversation, with nothing written yet."""
        self._draft_timer.stop()
        self.address(name)
        self.set_text("")

    def address(self, name: str) -> None:
        """Whom it goes to; what is written stays, and so does what is said about it."""
        shown = one_line(name, 60)
        was_blocked, self._blocked = bool(self._blocked), ""
        self.box.setEnabled(True)
        self.box.show_hint(tr("Message {name}").format(name=shown))
        self.box.setAccessibleName(tr("Message to {name}").format(name=shown))
        if was_blocked:
            self._judge()

    def set_text(self, text: str) -> None:
        """Does not report a draft: the caller knows the text."""
        self.completions.dismiss()
        self.box.blockSignals(True)
        self.box.fit_wrapping(text)
        self.box.setPlainText(text)
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)
        self.box.blockSignals(False)
        self._judge()
        self.refit()

    def insert(self, text: str) -> None:
        """At the caret, as if it had been typed."""
        self.box.insertPlainText(text)
        self.box.ensureCursorVisible()

    def allow_files(self, *, allowed: bool) -> None:
        """Otherwise pictures and files are neither chosen nor pasted."""
        self.attach.setVisible(allowed)
        self.box.takes_files = allowed

    def takes(self, source: QMimeData) -> bool:
        """Whether these are pictures or files that can go out now."""
        return self.box.isEnabled() and self.box.takes_files and _has_files(source)

    def has_attachment(self, attached: bool) -> None:
        """A file goes out with the text, so the text may be empty."""
        self._attached = attached
        self._judge()

    def wait_for_files(self, *, waits: bool, go_on: bool = True) -> None:
        """Files are read that go out with the text; ``go_on``: what was to go out meanwhile goes.

        Whoever writes on, or whose file is refused, sends it once more.
        """
        goes_now = self._goes_then and go_on and not waits
        self._goes_then = self._goes_then and go_on and waits
        if waits != self._waits:
            self._waits = waits
            self._judge_sending()
        if goes_now:
            self.submit()

    def complain(self, words: str) -> None:
        """Say what is wrong where one writes, until one writes on."""
        self._say(words)

    def flush_draft(self) -> None:
        if self._draft_timer.isActive():
            self._draft_timer.stop()
            self._tell_draft()

    def stop_typing(self) -> None:
        self._tell_typing(active=False)

    def set_room(self, height: int) -> None:
        """The height of the whole pane, of which it may take a share."""
        self._room = height
        self.refit()

    def submit(self) -> None:
        text = self.text()
        if self._blocked or not (text.strip() or self._attached or self._waits):
            return
        if self._over:
            self._judge()
            self.box.setFocus()
            return
        if self._waits:
            self._goes_then = True
            self._say(tr("It goes out as soon as what is attached has been read."), colour="ink2")
            return
        self._draft_timer.stop()
        was_typing = self._typing_timer.isActive()
        self._typing_timer.stop()
        self.submitting.emit()
        self.set_text("")
        self.submitted.emit(_EMPTY_LINES.sub("", text))
        if was_typing:  # Told after the text, which says as much: then nothing is sent for it.
            self.typing_changed.emit(False)
        self.box.setFocus()

    # --- reactions --------------------------------------------------------------------------------

    def _edited(self) -> None:
        self._goes_then = False
        self._judge()
        self.box.fit_wrapping(self.text())
        self.refit()
        self._draft_timer.start()
        self._tell_typing(active=not self.box.document().isEmpty())

    def _tell_draft(self) -> None:
        self.draft_changed.emit(self.text())

    def _tell_typing(self, *, active: bool) -> None:
        if active and self._typing_timer.isActive():
            return
        if active:
            self._typing_timer.start()
            self.typing_changed.emit(True)
        elif self._typing_timer.isActive():
            self._typing_timer.stop()
            self.typing_changed.emit(False)

    def _judge(self) -> None:
        text = self.text()
        self._over = bytes_over_limit(text)
        if self._over:
            self._say(
                tr(
                    "{over} kB too long: a message can hold {most} kB. Shorten it or "
                    "send it in parts."
                ).format(over=decimal(self._over / _KIB), most=MAX_TEXT_BYTES // _KIB)
            )
        elif not self._goes_then:
            self._say("")
        self.attach.setEnabled(not self._blocked)
        self.emoji.setEnabled(not self._blocked)
        self._judge_sending()

    def _judge_sending(self) -> None:
        has_content = bool(self.text().strip()) or self._attached or self._waits
        self.send.setEnabled(not self._blocked and not self._over and has_content)

    def _refuse_paste(self) -> None:
        self._say(
            tr(
                "That is far more than a message can hold ({most} kB). Nothing was pasted; "
                "it is still in the clipboard."
            ).format(most=MAX_TEXT_BYTES // _KIB)
        )

    def _say(self, text: str, *, colour: ColourRole = "danger") -> None:
        self._foot.recolour(colour)
        self._foot.setText(text)
        self._foot.setVisible(bool(text))

    def refit(self) -> None:
        """As high as its text, up to its share of the pane."""
        metrics = current_theme().metrics
        line = math.ceil(QFontMetricsF(self.box.font()).height())
        least = max(metrics.scaled(_BOX), line + metrics.gap(10))
        frame = least - line
        # A text that fills the box to its last pixel can be scrolled, and then hides a line.
        above = (frame - 1) // 2 - _OUTLINE
        self.box.setViewportMargins(metrics.gap(12), above, metrics.gap(4), above)
        whole_lines = (int(self._room * _MAX_HEIGHT_SHARE) - 16 - frame) // line
        most = max(least, whole_lines * line + frame)
        wanted = self.box.text_height(most) + frame
        fits = wanted <= most
        policy = Qt.ScrollBarPolicy
        self.box.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOff if fits else policy.ScrollBarAsNeeded
        )
        self.box.setFixedHeight(max(least, min(most, wanted)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.refit()

    def _dress(self) -> None:
        self.box.setFont(current_theme().type.body.font)
        self.box.fit_hint()
        self.refit()

    def minimumSizeHint(self) -> QSize:
        return QSize(200, super().minimumSizeHint().height())
