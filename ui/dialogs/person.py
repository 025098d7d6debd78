"""Adding a person: take the link or the code they gave, or give them one's own as both.

A link is read while one types, by the engine and without any network; everything it says is shown
before anybody is asked, wherever it came from: keys, a QR code, or a message.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QTextOption,
)
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.answers import ContactPreview
from engine.core.contacts import CONTACT_PREFIX
from engine.core.errors import ChatError
from ui.avatar import Avatar
from ui.controls import Button, Card, ElidedText, Text
from ui.dialogs.code_reader import CodeReader, PictureSources
from ui.dialogs.group import selectable
from ui.dialogs.pasted_link import MAX_LINK_CHARACTERS, LinkWords, PastedLink
from ui.dialogs.pasted_picture import holds_picture
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.lines_field import LinesField
from ui.people import adding_words, known_words, only_opens
from ui.qr import QrCode
from ui.segments import Segments
from ui.tasks import Tasks
from ui.translate import tr

_QR_SIDE = 264
_SAID_COPIED_MS = 2500
THEIRS, MINE = 0, 1


def _words() -> LinkWords:
    return LinkWords(
        label=tr("Their contact link"),
        placeholder=tr("Paste the link they gave you, or a picture of its code"),
        too_long=tr("This is far too long for a contact link."),
        prefix=CONTACT_PREFIX,
    )


class OwnLink(Struct, frozen=True, kw_only=True):
    """Either the link and until when it holds, or why there is none."""

    link: str = ""
    expires: str = ""
    problem: str = ""


class PersonCard(Card):
    """Name, fingerprint, how far one is with them, and who would be contacted."""

    def __init__(self) -> None:
        super().__init__("accentSoft", "ownLine", radius=13)
        self._avatar = Avatar(46, is_group=False)
        self._name = ElidedText(face="body", strong=True)
        self._known = Text(face="label", colour="ink2", wrap=True)
        self._fingerprint = selectable("")
        self._contacts = Text(face="caption", colour="ink2", wrap=True)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addStretch(1)
        words.addWidget(self._name)
        words.addWidget(self._known)
        words.addStretch(1)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self._avatar, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(12, 12, 12, 12)
        whole.setSpacing(2)
        whole.addLayout(head)
        whole.addSpacing(8)
        title = tr("Their fingerprint, compare it if you can")
        whole.addWidget(Text(title, face="caption", colour="ink2", wrap=True))
        whole.addWidget(self._fingerprint)
        whole.addWidget(self._contacts)

    def show_preview(self, preview: ContactPreview) -> None:
        name = one_line(preview.name, 60) or "?"
        self._avatar.show_identity(preview.participant_id, name)
        self._name.setText(name)
        self._known.setText(known_words(preview))
        self._fingerprint.setText(preview.fingerprint)
        addresses = preview.node_addresses
        self._contacts.setText(
            tr(
                "Asking contacts %n addresses of theirs.",
                "Asking contacts %n address of theirs.",
                len(addresses),
            )
        )
        self._contacts.setVisible(bool(addresses) and not only_opens(preview))
        self.setAccessibleName(
            tr("{name}, fingerprint {fingerprint}. {known}").format(
                name=name, fingerprint=preview.fingerprint, known=known_words(preview)
            )
        )


class TheirLink(PastedLink[ContactPreview]):
    def __init__(self, preview: Callable[[str], ContactPreview]) -> None:
        card = PersonCard()
        super().__init__(_words(), preview, card, card)


class MyLink(QWidget):
    """One's own contact link: a code to scan, the text, and how long it holds."""

    def __init__(self, own: OwnLink) -> None:
        super().__init__()
        self._own = own
        self.code: QrCode | None = None
        self.copy_button = Button(tr("Copy link"), icon_name="copy")
        self.text = LinesField(2, own.link)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        if not own.link:
            problem = problem_line()
            say_problem(problem, own.problem)
            layout.addWidget(problem)
            self.copy_button.setEnabled(False)
            return
        self.code = QrCode(own.link, tr("Code of your contact link, to be scanned"), side=_QR_SIDE)
        layout.addWidget(self.code, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(field_label(tr("Your contact link"), self.text))
        self.text.setReadOnly(True)
        self.text.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        layout.addWidget(self.text)
        words = tr(
            "Whoever has it can ask to talk to you; you decide. It expires on {expires}."
        ).format(expires=own.expires)
        foot = QHBoxLayout()
        foot.setSpacing(12)
        foot.addWidget(Text(words, face="caption", colour="ink2", wrap=True), 1)
        foot.addWidget(self.copy_button, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(foot)
        self.copy_button.clicked.connect(self._copy)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._own.link)
        self.copy_button.rename(tr("Copied"))
        QTimer.singleShot(_SAID_COPIED_MS, self.copy_button, self._offer_again)

    def _offer_again(self) -> None:
        self.copy_button.rename(tr("Copy link"))


class AddPerson(Sheet):
    """``add`` asks (or opens what is there) and may refuse; the reason stands in place."""

    def __init__(  # noqa: PLR0913 - what is shown, what can be done, and ways to pictures
        self,
        own: OwnLink,
        preview: Callable[[str], ContactPreview],
        add: Callable[[str], Awaitable[None]],
        tasks: Tasks,
        *,
        sources: PictureSources,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            tr("Add a person"),
            tr("One of you gives the other a contact link. Both must agree before you can write."),
            parent=parent,
        )
        self._add = add
        self._tasks = tasks
        self.ways = Segments(tr("Whose link"), (tr("Their link or code"), tr("Give them mine")))
        self.theirs = TheirLink(preview)
        self.reader = CodeReader(sources, self.theirs.would_do, tasks)
        self.mine = MyLink(own)
        self.theirs.put_above_card(self.reader)
        for part in (self.ways, self.theirs, self.mine):
            self.body.addWidget(part)
        cancel = self.add_button(tr("Close"), left=True, kind="ghost")
        cancel.clicked.connect(self.reject)
        self.cancel = cancel
        self.confirm = self.add_button(tr("Ask"), kind="primary")
        self.confirm.setDefault(True)
        self._wire()
        self.ways.choose(THEIRS)
        self._judged()
        self.theirs.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _wire(self) -> None:
        self.setAcceptDrops(True)
        self.confirm.clicked.connect(self._submit)
        self.theirs.field.entered.connect(self.confirm.click)
        self.theirs.field.takes_pictures = True
        self.theirs.field.picture_given.connect(self.reader.take)
        self.theirs.judged.connect(self._judged)
        self.reader.found.connect(self._take_link)
        self.reader.text_pasted.connect(self._take_link)
        self.reader.failed.connect(self.theirs.say)
        self.finished.connect(self.reader.close_down)
        self.ways.chosen.connect(self._turn_to)

    def show_link(self, link: str) -> None:
        """One that was clicked in a message.  Enter must not ask by accident: it closes."""
        self._take_link(link)
        self.cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    def _take_link(self, link: str) -> None:
        self.theirs.field.setPlainText(link[: MAX_LINK_CHARACTERS + 1])
        self.theirs.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _turn_to(self, way: int) -> None:
        self.theirs.setVisible(way == THEIRS)
        self.mine.setVisible(way == MINE)
        self.confirm.setVisible(way == THEIRS)

    # --- pasted and dropped wherever it is --------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Paste) and self.reader.isVisible():
            self.reader.paste_clipboard()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if holds_picture(event.mimeData()) or event.mimeData().hasText():
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.ways.choose(THEIRS)
        if holds_picture(event.mimeData()):
            self.reader.take(event.mimeData())
        else:
            self._take_link(event.mimeData().text())

    # --- agreeing ---------------------------------------------------------------------------------

    def _judged(self) -> None:
        self.confirm.rename(adding_words(self.theirs.found))
        self.confirm.setEnabled(self.theirs.found is not None)

    def _submit(self) -> None:
        if self.theirs.found is None:
            return
        self.confirm.setEnabled(False)
        self._tasks.spawn(self._agree, purpose=tr("add the person"), retry=False)

    async def _agree(self) -> None:
        try:
            await self._add(self.theirs.link())
        except ChatError as error:
            self._judged()
            self.theirs.say(error_words(error))
        else:
            self.accept()
