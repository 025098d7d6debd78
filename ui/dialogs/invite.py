"""The sheet that invites to a group with roles: how many people, for how long, what they may read.

A new invitation is shown as a code and as a link.  Below are those that are out, with who came by
them, and each can be revoked.  The link holds no key: the inviter's device lets people in.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

from msgspec import Struct
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QTextOption
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from engine.core.admin_log.acts import EntryId
from engine.core.errors import ChatError
from engine.events import ConversationView
from engine.governance_views import EarlierMessages, GovernanceView, InvitationView
from ui.choice import Choice
from ui.controls import Button, ColourRole, Text
from ui.dialogs.group import selectable
from ui.dialogs.sheet import ScrolledPart, Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.governing_words import allowed_words, came_words, invitation_title, own_device_words
from ui.lines_field import LinesField
from ui.qr import QrCode
from ui.switch import Switch
from ui.tasks import Tasks
from ui.times import days_words
from ui.translate import tr

_SAID_COPIED_MS = 2500
_QR_SIDE = 232
_USES = (1, 2, 5, 10, 25, 100)
_DAYS = (1, 3, 7, 30)
_USUAL_DAYS = 2
"""Its place among them."""
_EARLIER = (EarlierMessages.NONE, EarlierMessages.DAYS_30, EarlierMessages.ALL)


class Wanted(Struct, frozen=True, kw_only=True):
    """What a new invitation should allow."""

    uses: int
    days: int
    needs_approval: bool
    earlier: EarlierMessages


def _earlier_words(earlier: EarlierMessages) -> str:
    return {
        EarlierMessages.NONE: tr("Only what comes after"),
        EarlierMessages.DAYS_30: tr("From 30 days ago on"),
        EarlierMessages.ALL: tr("Everything from the start"),
    }[earlier]


class InviteForm(QWidget):
    """What the next invitation allows."""

    def __init__(self) -> None:
        super().__init__()
        self.uses, self.days, self.earlier = Choice(), Choice(), Choice()
        for number in _USES:
            self.uses.addItem(tr("%n people", "%n person", number))
        for number in _DAYS:
            self.days.addItem(days_words(number))
        self.days.setCurrentIndex(_USUAL_DAYS)
        for each in _EARLIER:
            self.earlier.addItem(_earlier_words(each))
        self.approval = Switch(tr("I decide about each person"))
        rows = QGridLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setVerticalSpacing(8)
        rows.setHorizontalSpacing(12)
        rows.setColumnStretch(1, 1)
        for words, field in (
            (tr("For how many"), self.uses),
            (tr("Valid for"), self.days),
            (tr("They can read"), self.earlier),
        ):
            row = rows.rowCount()
            rows.addWidget(field_label(words, field), row, 0)
            rows.addWidget(field, row, 1)
        row = rows.rowCount()
        rows.addWidget(field_label(tr("I decide about each person"), self.approval), row, 0, 1, 2)
        rows.addWidget(self.approval, row, 1, Qt.AlignmentFlag.AlignRight)

    def wanted(self) -> Wanted:
        return Wanted(
            uses=_USES[self.uses.currentIndex()],
            days=_DAYS[self.days.currentIndex()],
            needs_approval=self.approval.isChecked(),
            earlier=_EARLIER[self.earlier.currentIndex()],
        )


class InvitationRow(QWidget):
    """One that is out, or was: what it allows, who came, and what can be done."""

    def __init__(
        self,
        invitation: InvitationView,
        now: datetime,
        *,
        show: Callable[[str], None],
        revoke: Callable[[EntryId], None],
    ) -> None:
        super().__init__()
        title = invitation_title(invitation, now)
        line = came_words(invitation)
        self.setAccessibleName(f"{title}. {line}")
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addStretch(1)
        colour: ColourRole = "ink" if invitation.is_open else "ink3"
        words.addWidget(Text(title, face="label", strong=True, wrap=True))
        words.addWidget(Text(line, face="caption", colour=colour, wrap=True))
        words.addStretch(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 4, 0, 4)
        row.setSpacing(6)
        row.addLayout(words, 1)
        self.show_button = Button(tr("Show"), size="small")
        self.revoke_button = Button(tr("Revoke"), kind="danger", size="small")
        row.addWidget(self.show_button)
        row.addWidget(self.revoke_button)
        self.show_button.setVisible(invitation.link is not None)
        self.revoke_button.setVisible(invitation.may_revoke and invitation.is_open)
        self.show_button.setAccessibleDescription(title)
        self.revoke_button.setAccessibleDescription(title)
        link = invitation.link or ""
        self.show_button.clicked.connect(lambda _checked=False: show(link))
        self.revoke_button.clicked.connect(lambda _checked=False: revoke(invitation.invitation_id))


class Invite(Sheet):
    def __init__(  # noqa: PLR0913 - what it shows and does
        self,
        conversation: ConversationView,
        view: GovernanceView,
        tasks: Tasks,
        parent: QWidget | None = None,
        *,
        make: Callable[[Wanted], Awaitable[str]],
        revoke: Callable[[EntryId], Awaitable[None]],
        now: Callable[[], datetime],
    ) -> None:
        self._name = one_line(conversation.name, 60)
        title = tr("Invite to {name}").format(name=self._name)
        super().__init__(title, own_device_words(), parent=parent)
        self._conversation = conversation
        self._view = view
        self._tasks = tasks
        self._make = make
        self._revoke = revoke
        self._now = now
        self.link = ""
        """The one that is shown; "" while the next is being chosen."""
        self.form = InviteForm()
        self.made = QWidget()
        self._made = QVBoxLayout(self.made)
        self._made.setContentsMargins(0, 0, 0, 0)
        self._made.setSpacing(8)
        self.allowed = Text(face="caption", colour="ink2", wrap=True)
        self.allowed.setContentsMargins(0, 0, 0, 6)
        self.problem = problem_line()
        self.out_title = Text(tr("Invitations"), face="small", colour="ink2", strong=True)
        self._out = QWidget()
        self._rows = QVBoxLayout(self._out)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(2)
        self.rows: dict[EntryId, InvitationRow] = {}
        self.out = ScrolledPart(self._out, tr("Invitations"))
        for part in (self.form, self.allowed, self.made, self.problem):
            self.body.addWidget(part)
        self.body.addSpacing(8)
        self.body.addWidget(self.out_title)
        self.body.addWidget(self.out)
        close = self.add_button(tr("Close"), left=True, kind="ghost")
        close.clicked.connect(self.reject)
        self.another = self.add_button(tr("Another one"))
        self.another.clicked.connect(lambda _checked=False: self._show_form())
        self.confirm = self.add_button(tr("Make invitation"), kind="primary")
        self.confirm.setDefault(True)
        self.confirm.clicked.connect(self._confirmed)
        self.show_view(view)
        self._show_form()

    # --- what it shows ----------------------------------------------------------------------------

    def show_view(self, view: GovernanceView) -> None:
        """Those that are out, now; one that is shown and open no more gives way to the form."""
        before, self._view = self._view.invitations, view
        invitations = view.invitations
        self._show_out()
        self._say_allowed()
        if invitations == before and self.rows:
            return
        for row in self.rows.values():
            row.hide()
            row.deleteLater()
        self.rows.clear()
        for invitation in invitations:
            row = InvitationRow(
                invitation, self._now(), show=self.show_link, revoke=self._start_revoking
            )
            self.rows[invitation.invitation_id] = row
            self._rows.addWidget(row)
        self.out.spare(0)
        if self.link and all(one.link != self.link for one in invitations):
            self._show_form()

    def show_link(self, link: str) -> None:
        """An invitation as a code and as text."""
        self.link = link
        while (item := self._made.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        words = tr("Code of the invitation to {name}, to be scanned").format(name=self._name)
        self._made.addWidget(QrCode(link, words, side=_QR_SIDE), 0, Qt.AlignmentFlag.AlignHCenter)
        field = LinesField(3, link)
        field.setReadOnly(True)
        field.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self._made.addWidget(field_label(tr("Invitation link"), field))
        self._made.addWidget(field)
        own = next((m for m in self._conversation.members if m.is_self), None)
        if own is not None:
            title = tr("Your fingerprint, to compare")
            self._made.addWidget(Text(title, face="caption", colour="ink3"))
            self._made.addWidget(selectable(own.fingerprint))
        self._change(shows_link=True)
        self.confirm.rename(tr("Copy link"))
        self.confirm.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_form(self) -> None:
        self.link = ""
        self._change(shows_link=False)
        self.confirm.rename(tr("Make invitation"))
        self.confirm.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_out(self) -> None:
        """While one is being handed over, it alone."""
        shown = bool(self._view.invitations) and not self.link
        self.out_title.setVisible(shown)
        self.out.setVisible(shown)

    def _say_allowed(self) -> None:
        """A new one may be told of a moment after its link."""
        shown = (one for one in self._view.invitations if self.link and one.link == self.link)
        words = next((allowed_words(one, self._now()) for one in shown), "")
        self.allowed.setText(words)
        self.allowed.setVisible(bool(words))

    def _change(self, *, shows_link: bool) -> None:
        self.form.setVisible(not shows_link)
        self._say_allowed()
        self.made.setVisible(shows_link)
        self.another.setVisible(shows_link)
        self._show_out()
        say_problem(self.problem, "")
        if self.isVisible():
            self.fit()

    # --- what it does -----------------------------------------------------------------------------

    def _confirmed(self) -> None:
        if self.link:
            QGuiApplication.clipboard().setText(self.link)
            self.confirm.rename(tr("Copied"))
            QTimer.singleShot(_SAID_COPIED_MS, self.confirm, self._offer_again)
            return
        self.confirm.setEnabled(False)
        self._tasks.spawn(self._begin, purpose=tr("make an invitation"), retry=False)

    def _offer_again(self) -> None:
        self.confirm.rename(tr("Copy link") if self.link else tr("Make invitation"))

    async def _begin(self) -> None:
        try:
            link = await self._make(self.form.wanted())
        except ChatError as error:
            say_problem(self.problem, error_words(error))
        else:
            self.show_link(link)
        finally:
            self.confirm.setEnabled(True)
            self.confirm.setFocus(Qt.FocusReason.OtherFocusReason)

    def _start_revoking(self, invitation_id: EntryId) -> None:
        async def work() -> None:
            try:
                await self._revoke(invitation_id)
            except ChatError as error:
                say_problem(self.problem, error_words(error))

        self._tasks.spawn(work, purpose=tr("revoke the invitation"), retry=False)
