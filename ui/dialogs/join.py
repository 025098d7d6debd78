"""Joining: the link is read while one types, and everything it says is shown before consent."""

import re
from collections.abc import Awaitable, Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextOption
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from engine.api import InvitePreview
from engine.core.errors import ChatError, InviteError
from ui.avatar import Avatar
from ui.controls import Card, ElidedText, Text
from ui.dialogs.group import selectable
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.people import JOIN_PREFIX, misplaced_link_words
from ui.tasks import Tasks
from ui.theme import current_theme
from ui.words import count, one_line

MAX_LINK_CHARACTERS = 16 * 1024
_ADDRESSES_SHOWN = 4
_SCHEME = "causerie:"
_LINK = re.compile(rf"{_SCHEME}(?:contact|join)/[\w-]+", re.ASCII)


class InviteCard(Card):
    """Group, inviter, the admin's fingerprint and the addresses that would be contacted."""

    def __init__(self) -> None:
        super().__init__("accentSoft", "ownLine", radius=13)
        self._avatar = Avatar(46, is_group=True)
        self._group = ElidedText(face="body", strong=True)
        self._inviter = Text(face="label", colour="ink2", wrap=True)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addStretch(1)
        words.addWidget(self._group)
        words.addWidget(self._inviter)
        words.addStretch(1)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self._avatar)
        head.addLayout(words, 1)
        self._details = QVBoxLayout()
        self._details.setSpacing(2)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(12, 12, 12, 12)
        whole.setSpacing(10)
        whole.addLayout(head)
        whole.addLayout(self._details)

    def show_preview(self, preview: InvitePreview) -> None:
        group = one_line(preview.group_name, 60)
        self._avatar.show_identity(preview.conversation_id, group)
        self._group.setText(group)
        inviter = f"From {one_line(preview.inviter_name, 60)}."
        if preview.already_joined:
            inviter += " You are in this group already."
        self._inviter.setText(inviter)
        while (item := self._details.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        self._details.addWidget(
            Text(
                "Fingerprint of its admin, compare it if you can",
                face="caption",
                colour="ink2",
                wrap=True,
            )
        )
        self._details.addWidget(selectable(preview.admin_fingerprint))
        addresses = preview.node_addresses
        title = f"Joining contacts {count(len(addresses), 'address', 'addresses')}"
        self._details.addSpacing(6)
        self._details.addWidget(Text(title, face="caption", colour="ink2", wrap=True))
        for address in addresses[:_ADDRESSES_SHOWN]:
            self._details.addWidget(selectable(address))
        hidden = len(addresses) - _ADDRESSES_SHOWN
        if hidden > 0:
            self._details.addWidget(Text(f"and {hidden} more", face="caption", colour="ink2"))
        self.setAccessibleName(f"Invitation to {group}. {inviter}")


class LinkField(QPlainTextEdit):
    """Several lines high, but a link has only one: Enter means done."""

    entered = Signal()

    def links(self) -> tuple[str, ...]:
        """What may be the link: all of it, broken into lines or not, or what is among words."""
        whole = "".join(self.toPlainText().split())
        among = _LINK.search(self.toPlainText())
        if among is None or among[0] == whole:
            return (whole,) if whole else ()
        return (among[0], whole) if whole.startswith(_SCHEME) else (whole, among[0])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.entered.emit()
        else:
            super().keyPressEvent(event)


class JoinForm(QWidget):
    """The field with its live answer; used by the sheet and by the first start."""

    judged = Signal()

    def __init__(self, preview: Callable[[str], InvitePreview]) -> None:
        super().__init__()
        self._preview = preview
        self._link = ""
        self.invite: InvitePreview | None = None
        self.field = LinkField()
        self.field.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self.field.setProperty("kind", "field")
        self.field.setTabChangesFocus(True)
        self.field.setPlaceholderText("Paste the link you were given")
        self.field.setFixedHeight(current_theme().metrics.scaled(72))
        self.field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.problem = problem_line()
        self.card = InviteCard()
        self.card.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(field_label("Invitation", self.field))
        layout.addWidget(self.field)
        layout.addWidget(self.problem)
        layout.addWidget(self.card)
        self.field.textChanged.connect(self._judge)

    def link(self) -> str:
        """The one that could be read; "" if none could."""
        return self._link

    def say(self, problem: str) -> None:
        say_problem(self.problem, problem)

    def action_words(self) -> str:
        if self.invite is None:
            return "Join"
        verb = "Open" if self.invite.already_joined else "Join"
        return f"{verb} {one_line(self.invite.group_name, 30)}"

    def _judge(self) -> None:
        self.invite, self._link, problem = self._read()
        self.say(problem)
        self.card.setVisible(self.invite is not None)
        if self.invite is not None:
            self.card.show_preview(self.invite)
        self.judged.emit()

    def _read(self) -> tuple[InvitePreview | None, str, str]:
        """The first link that holds; otherwise what is wrong with the last."""
        if self.field.document().characterCount() > MAX_LINK_CHARACTERS:
            return None, "", "This is far too long for an invitation."
        problem = ""
        for link in self.field.links():
            problem = misplaced_link_words(link, wanted=JOIN_PREFIX)
            if problem:
                continue
            try:
                return self._preview(link), link, ""
            except InviteError as error:
                problem = str(error)
        return None, "", problem


class Join(Sheet):
    def __init__(
        self,
        preview: Callable[[str], InvitePreview],
        join: Callable[[str], Awaitable[None]],
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            "Join with an invitation",
            "Nothing is contacted before you agree.",
            parent=parent,
        )
        self._join = join
        self._tasks = tasks
        self.form = JoinForm(preview)
        self.body.addWidget(self.form)
        cancel = self.add_button("Cancel", left=True, kind="ghost")
        cancel.clicked.connect(self.reject)
        self.confirm = self.add_button("Join", kind="primary")
        self.confirm.setDefault(True)
        self.confirm.clicked.connect(self._submit)
        self.form.field.entered.connect(self.confirm.click)
        self.form.judged.connect(self._judged)
        self._judged()
        self.form.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _judged(self) -> None:
        self.confirm.rename(self.form.action_words())
        self.confirm.setEnabled(self.form.invite is not None)

    def _submit(self) -> None:
        if self.form.invite is None:
            return
        self.confirm.setEnabled(False)
        self.confirm.rename("Joining…")
        self._tasks.spawn(self._agree, purpose="join the group", retry=False)

    async def _agree(self) -> None:
        try:
            await self._join(self.form.link())
        except ChatError as error:
            self._judged()
            self.form.say(str(error))
        else:
            self.accept()
