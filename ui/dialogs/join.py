"""Joining: the link is read while one types, and everything it says is shown before consent."""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.answers import InvitePreview
from engine.core.errors import ChatError
from ui.avatar import Avatar
from ui.controls import Card, ElidedText, Text
from ui.dialogs.group import selectable
from ui.dialogs.pasted_link import LinkWords, PastedLink
from ui.dialogs.sheet import Sheet
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.people import JOIN_PREFIX
from ui.tasks import Tasks
from ui.times import date_words, moment
from ui.translate import tr

_ADDRESSES_SHOWN = 4


def _words() -> LinkWords:
    return LinkWords(
        label=tr("Invitation"),
        placeholder=tr("Paste the link you were given"),
        too_long=tr("This is far too long for an invitation."),
        prefix=JOIN_PREFIX,
    )


def _asking_words(preview: InvitePreview) -> tuple[str, ...]:
    """What it takes to come in."""
    name = one_line(preview.inviter_name, 60)
    device = tr("{name}'s device lets you in, and has to be online once.").format(name=name)
    if preview.expires_ms is None:
        return (device,)
    until = date_words(moment(preview.expires_ms).date())
    return device, tr("The invitation is valid until {date}.").format(date=until)


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
        inviter = tr("From {name}.").format(name=one_line(preview.inviter_name, 60))
        if preview.already_joined:
            already = tr("You are in this group already.")
            inviter = f"{inviter} {already}"
        elif preview.is_over:
            over = tr("Its link ended when somebody was removed, and lets nobody in any more.")
            inviter = f"{inviter} {over}"
        self._inviter.setText(inviter)
        while (item := self._details.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        title = tr("Fingerprint of its admin, compare it if you can")
        if preview.asks_first:
            for words in _asking_words(preview):
                self._details.addWidget(Text(words, face="label", wrap=True))
            self._details.addSpacing(6)
            title = tr("Fingerprint of who invites you, compare it if you can")
        self._details.addWidget(Text(title, face="caption", colour="ink2", wrap=True))
        self._details.addWidget(selectable(preview.admin_fingerprint))
        self._show_addresses(preview)
        self.setAccessibleName(
            tr("Invitation to {group}. {inviter}").format(group=group, inviter=inviter)
        )

    def _show_addresses(self, preview: InvitePreview) -> None:
        addresses = preview.node_addresses
        title = tr("Joining contacts %n addresses", "Joining contacts %n address", len(addresses))
        self._details.addSpacing(6)
        self._details.addWidget(Text(title, face="caption", colour="ink2", wrap=True))
        for address in addresses[:_ADDRESSES_SHOWN]:
            self._details.addWidget(selectable(address))
        hidden = len(addresses) - _ADDRESSES_SHOWN
        if hidden > 0:
            self._details.addWidget(
                Text(tr("and {number} more").format(number=hidden), face="caption", colour="ink2")
            )
        nodes = len(preview.service_nodes)
        if nodes:
            said = tr(
                "and %n service nodes of the group", "and %n service node of the group", nodes
            )
            self._details.addWidget(Text(said, face="caption", colour="ink2", wrap=True))
            for node in preview.service_nodes:
                self._details.addWidget(selectable(node))


class JoinForm(PastedLink[InvitePreview]):
    """Used by the sheet and by the first start."""

    def __init__(self, preview: Callable[[str], InvitePreview]) -> None:
        card = InviteCard()
        super().__init__(_words(), preview, card, card)

    def action_words(self) -> str:
        if self.found is None:
            return tr("Join")
        words = tr("Ask to join {group}") if self.found.asks_first else tr("Join {group}")
        if self.found.already_joined or self.found.is_over:
            words = tr("Open {group}")
        return words.format(group=one_line(self.found.group_name, 30))


class Join(Sheet):
    def __init__(
        self,
        preview: Callable[[str], InvitePreview],
        join: Callable[[str], Awaitable[None]],
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            tr("Join with an invitation"),
            tr("No address in it is contacted before you agree."),
            parent=parent,
        )
        self._join = join
        self._tasks = tasks
        self.form = JoinForm(preview)
        self.body.addWidget(self.form)
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.cancel.clicked.connect(self.reject)
        self.confirm = self.add_button(tr("Join"), kind="primary")
        self.confirm.setDefault(True)
        self.confirm.clicked.connect(self._submit)
        self.form.field.entered.connect(self.confirm.click)
        self.form.judged.connect(self._judged)
        self._judged()
        self.form.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_link(self, link: str) -> None:
        """One that was clicked in a message.  Enter must not join by accident: it closes."""
        self.form.field.setPlainText(link)
        self.cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    def _judged(self) -> None:
        self.confirm.rename(self.form.action_words())
        self.confirm.setEnabled(self.form.found is not None)

    def _submit(self) -> None:
        if self.form.found is None:
            return
        self.confirm.setEnabled(False)
        self.confirm.rename(tr("Joining…"))
        self._tasks.spawn(self._agree, purpose=tr("join the group"), retry=False)

    async def _agree(self) -> None:
        try:
            await self._join(self.form.link())
        except ChatError as error:
            self._judged()
            self.form.say(error_words(error))
        else:
            self.accept()
