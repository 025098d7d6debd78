"""Sheets about one person: the name for this device, the safety number, block and remove."""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from engine.api import MAX_NAME_CHARACTERS
from engine.core.errors import ChatError
from engine.events import ContactView, ConversationView, MemberView
from ui.controls import Card, Text
from ui.dialogs.confirm import Confirm, unsent_words
from ui.dialogs.group import selectable
from ui.dialogs.sheet import Sheet, field_label, limit_name, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.people import asking_member_words, digit_groups, short_name
from ui.qr import QrCode
from ui.tasks import Tasks
from ui.translate import tr

_COLUMNS = 4
_QR_SIDE = 150
_SAID_COPIED_MS = 2500


class SafetyNumber(Sheet):
    """Sixty digits in groups, and the same as a code."""

    def __init__(  # noqa: PLR0913 - what is shown of somebody
        self,
        name: str,
        safety_number: str,
        fingerprint: str,
        parent: QWidget | None = None,
        *,
        own_name: str = "",
        is_verified: bool = False,
    ) -> None:
        """``own_name``: the one they use, if they have another one here.

        Accepted: it was compared and is the same; or if that was so, it counts no more.
        """
        super().__init__(
            tr("Safety number with {name}").format(name=name),
            tr(
                "Compare it with {name} when you meet or talk. If it is the same on both "
                "devices, nobody is in between."
            ).format(name=name),
            parent=parent,
        )
        self.groups = digit_groups(safety_number)
        plain = "".join(self.groups)
        self.code = QrCode(
            plain, tr("Code of the safety number with {name}").format(name=name), side=_QR_SIDE
        )
        self.body.addWidget(self.code, 0, Qt.AlignmentFlag.AlignHCenter)
        self.body.addSpacing(4)
        self.body.addWidget(self._digits())
        words = tr("Fingerprint of {name}: {fingerprint}").format(
            name=one_line(own_name, 60) or name, fingerprint=fingerprint
        )
        self.body.addWidget(Text(words, face="caption", colour="ink2", wrap=True))
        self.copy_button = self.add_button(tr("Copy"), left=True, kind="ghost")
        self.copy_button.clicked.connect(self._copy)
        close = self.add_button(tr("Close"))
        close.clicked.connect(self.reject)
        close.setDefault(True)
        close.setFocus()
        self.verify = self.add_button(
            tr("Not verified any more") if is_verified else tr("It is the same"),
            kind="plain" if is_verified else "primary",
        )
        self.verify.clicked.connect(self.accept)

    def _digits(self) -> QWidget:
        box = Card("surface2", "line")
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        box.setAccessibleName(tr("Safety number: {digits}").format(digits=", ".join(self.groups)))
        grid = QGridLayout(box)
        grid.setContentsMargins(16, 14, 16, 14)
        grid.setVerticalSpacing(6)
        for place, group in enumerate(self.groups):
            digits = Text(group, face="heading")
            digits.setAlignment(Qt.AlignmentFlag.AlignCenter)
            grid.addWidget(digits, place // _COLUMNS, place % _COLUMNS)
        return box

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(" ".join(self.groups))
        self.copy_button.rename(tr("Copied"))
        QTimer.singleShot(_SAID_COPIED_MS, self.copy_button, self._offer_again)

    def _offer_again(self) -> None:
        self.copy_button.rename(tr("Copy"))


class RenamePerson(Sheet):
    """Only here; ``rename`` may refuse, and then the reason stands under the field."""

    def __init__(
        self,
        contact: ContactView,
        rename: Callable[[str], Awaitable[None]],
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        own_name = one_line(contact.name, 60) or "?"
        super().__init__(
            tr("Rename {name}").format(name=own_name),
            tr("Only you see this name. Leave it empty to see the name they gave themselves."),
            parent=parent,
        )
        self._rename = rename
        self._tasks = tasks
        self.name = QLineEdit(one_line(contact.local_name, MAX_NAME_CHARACTERS))
        self.name.setPlaceholderText(own_name)
        self.problem = problem_line()
        limit_name(self.name, self.problem)
        self.body.addWidget(field_label(tr("Name on this device"), self.name))
        self.body.addWidget(self.name)
        self.body.addWidget(self.problem)
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        cancel.clicked.connect(self.reject)
        self.confirm = self.add_button(tr("Rename"), kind="primary")
        self.confirm.setDefault(True)
        self.confirm.clicked.connect(self._submit)
        self.name.textChanged.connect(lambda _text: say_problem(self.problem, ""))
        self.name.selectAll()
        self.name.setFocus()

    def _submit(self) -> None:
        self._tasks.spawn(self._do, purpose=tr("rename the person"), retry=False)

    async def _do(self) -> None:
        try:
            await self._rename(self.name.text().strip())
        except ChatError as error:
            say_problem(self.problem, error_words(error))
            self.name.setFocus()
        else:
            self.accept()


def ask_confirm(member: MemberView, parent: QWidget) -> Confirm:
    """Before somebody of a group is asked to talk: they are told, and learn who asks."""
    name = one_line(member.name, 60) or "?"
    sheet = Confirm(
        tr("Ask {name} to talk?").format(name=name),
        asking_member_words(),
        yes=tr("Ask"),
        parent=parent,
    )
    title = tr("Their fingerprint, compare it if you can")
    sheet.body.addWidget(Text(title, face="caption", colour="ink2", wrap=True))
    sheet.body.addWidget(selectable(member.fingerprint))
    return sheet


def cannot_ask(member: MemberView, reason: str, parent: QWidget) -> Confirm:
    name = one_line(member.name, 60) or "?"
    title = tr("{name} cannot be asked from here").format(name=name)
    sheet = Confirm(title, reason, yes=tr("Close"), parent=parent)
    sheet.cancel.hide()
    sheet.confirm.setDefault(True)
    sheet.confirm.setFocus()
    return sheet


def block_confirm(conversation: ConversationView, parent: QWidget) -> Confirm:
    return Confirm(
        tr("Block {name}?").format(name=short_name(conversation)),
        tr("They are not told. Nothing of theirs is taken in or answered until you unblock them."),
        yes=tr("Block"),
        kind="danger",
        parent=parent,
    )


def remove_confirm(conversation: ConversationView, parent: QWidget) -> Confirm:
    name = short_name(conversation)
    words = tr(
        "They and all messages between you go from this device, and they are not told."
        " They keep what you wrote, and may ask to talk to you again."
    )
    if conversation.waiting_to_send or conversation.failed:
        unsent = conversation.waiting_to_send + conversation.failed
        words = f"{words} {unsent_words(unsent)}"
    return Confirm(
        tr("Remove {name}?").format(name=name),
        words,
        yes=tr("Remove"),
        kind="danger",
        parent=parent,
    )
