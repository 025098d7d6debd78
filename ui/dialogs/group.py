"""Sheets about one group: making it, and the link of one that anybody with the link can join.

Invitations to groups with roles have a sheet of their own (``ui.dialogs.invite``).
"""

from collections.abc import Awaitable, Callable
from enum import IntEnum

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QKeySequence, QTextOption
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from engine.core.errors import ChatError
from engine.events import ConversationView
from ui.controls import Text
from ui.dialogs.sheet import Sheet, field_label, limit_name, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.lines_field import LinesField
from ui.menu import Menu
from ui.qr import QrCode
from ui.segments import Segments
from ui.tasks import Tasks
from ui.translate import tr

_SAID_COPIED_MS = 2500
_QR_SIDE = 232
_BREAK = "\u200b"
"""Where a line may end, without width."""


class GroupKind(IntEnum):
    """Who can come into a new group."""

    GOVERNED = 0
    """Whom somebody in it lets in.  It has roles, and members can be removed."""
    OPEN_LINK = 1
    """Anybody with its link."""


class CreateGroup(Sheet):
    """Asks for a name and who can come in.

    ``create`` may refuse the name, and then the reason stands under the field.
    """

    def __init__(
        self,
        create: Callable[[str, GroupKind], Awaitable[None]],
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            tr("New group"),
            tr("Give it a name. You can invite people as soon as it is there."),
            parent=parent,
        )
        self._create = create
        self._tasks = tasks
        self.name = QLineEdit()
        self.name.setPlaceholderText(tr("For example Tide Gauge"))
        self.problem = problem_line()
        limit_name(self.name, self.problem)
        self.body.addWidget(field_label(tr("Name of the group"), self.name))
        self.body.addWidget(self.name)
        self.body.addWidget(self.problem)
        self.body.addSpacing(6)
        question = tr("Who can come in")
        self.body.addWidget(Text(question, face="small", colour="ink2", strong=True, wrap=True))
        kinds = (tr("People who are let in"), tr("Anyone with the link"))
        self.kinds = Segments(question, kinds, stacks=True)
        self.body.addWidget(self.kinds)
        self.meaning = Text(face="caption", colour="ink2", wrap=True)
        self.body.addWidget(self.meaning)
        self.kinds.chosen.connect(self._say_meaning)
        self.kinds.choose(GroupKind.GOVERNED)
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Create group"), kind="primary")
        self.confirm.setDefault(True)
        cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self._submit)
        self.name.textChanged.connect(self._judge)
        self._judge()
        self.name.setFocus()

    @property
    def kind(self) -> GroupKind:
        return GroupKind(self.kinds.chosen_number)

    def _say_meaning(self) -> None:
        words = {
            GroupKind.GOVERNED: tr(
                "You invite people and can make some of them admins. Who is removed cannot"
                " read what others write once they have heard of it."
            ),
            GroupKind.OPEN_LINK: tr(
                "Whoever has the link can read along, and nobody has a role. That ends for good"
                " when you remove somebody; what was written before stays readable for them."
            ),
        }[self.kind]
        self.meaning.setText(words)
        self.kinds.setAccessibleDescription(words)

    def _judge(self) -> None:
        say_problem(self.problem, "")
        self.confirm.setEnabled(bool(self.name.text().strip()))

    def _submit(self) -> None:
        self.confirm.setEnabled(False)
        self._tasks.spawn(self._make, purpose=tr("create the group"), retry=False)

    async def _make(self) -> None:
        try:
            await self._create(self.name.text().strip(), self.kind)
        except ChatError as error:
            say_problem(self.problem, error_words(error))
            self.confirm.setEnabled(True)
            self.name.setFocus()
        else:
            self.accept()


class InviteLink(Sheet):
    """The invitation as a code and as text, with what it gives away said beside it."""

    def __init__(
        self, conversation: ConversationView, link: str, parent: QWidget | None = None
    ) -> None:
        name = one_line(conversation.name, 60)
        super().__init__(
            tr("Invite to {name}").format(name=name),
            tr("Let it be scanned, or send the link over a channel you trust."),
            parent=parent,
        )
        words = tr("Code of the invitation to {name}, to be scanned").format(name=name)
        self.code = QrCode(link, words, side=_QR_SIDE)
        self.body.addWidget(self.code, 0, Qt.AlignmentFlag.AlignHCenter)
        self.link = LinesField(4, link)
        self.link.setReadOnly(True)
        self.link.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self.body.addWidget(field_label(tr("Invitation link"), self.link))
        self.body.addWidget(self.link)
        warning = Text(
            tr("Anyone with this link can read this group"),
            face="label",
            colour="warn",
            strong=True,
        )
        warning.setWordWrap(True)
        self.body.addWidget(warning)
        ends = tr(
            "It does not expire. It lets nobody in any more once whoever made the group has removed"
            " somebody."
        )
        self.body.addWidget(Text(ends, face="caption", colour="ink2", wrap=True))
        self.body.addWidget(_fingerprints(conversation))
        close = self.add_button(tr("Close"), left=True, kind="ghost")
        close.clicked.connect(self.reject)
        self.copy_button = self.add_button(tr("Copy link"), kind="primary")
        self.copy_button.setDefault(True)
        self.copy_button.clicked.connect(self._copy)
        self.copy_button.setFocus()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.link.toPlainText())
        self.copy_button.rename(tr("Copied"))
        QTimer.singleShot(_SAID_COPIED_MS, self.copy_button, self._offer_again)

    def _offer_again(self) -> None:
        self.copy_button.rename(tr("Copy link"))


def _fingerprints(conversation: ConversationView) -> QWidget:
    """Of the admins: what the invited person can compare."""
    box = QWidget()
    layout = QVBoxLayout(box)
    layout.setContentsMargins(0, 4, 0, 0)
    layout.setSpacing(2)
    for member in conversation.members:
        if member.is_admin:
            words = tr("{name}'s fingerprint, to compare")
            if member.is_self:
                words = tr("Your fingerprint, to compare")
            words = words.format(name=one_line(member.name, 40))
            layout.addWidget(Text(words, face="caption", colour="ink3"))
            layout.addWidget(selectable(member.fingerprint))
    return box


class Breakable(Text):
    """Letters without spaces, which break where the line ends and are copied as they were."""

    def __init__(self, text: str) -> None:
        super().__init__(text, face="code", colour="ink", wrap=True)

    def setText(self, text: str) -> None:
        self._plain = text
        self.setAccessibleName(text)
        super().setText(text if " " in text else _BREAK.join(text))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) and self.hasSelectedText():
            QGuiApplication.clipboard().setText(self.selectedText().replace(_BREAK, ""))
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Copy"), lambda: QGuiApplication.clipboard().setText(self._plain))
        menu.popup(event.globalPos())


def selectable(text: str) -> Text:
    """A fingerprint or an address, in fixed-width letters, that can be copied."""
    shown = Breakable(one_line(text, 200))
    shown.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    shown.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # Qt would leave it out of the round of Tab.
    return shown
