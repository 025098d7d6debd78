"""The panel about a group: who is in it and what they have, what was shared, and what can be done.

It stays as it is while messages come; a change of the group changes only the words and rows that
say something else, so that the keys stay where they are.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.core.admin_log.acts import MAX_TOPIC_CHARACTERS, Role
from engine.core.ids import ParticipantId
from engine.events import ConversationView, MemberView
from engine.governance_views import GovernanceView
from ui.avatar import Avatar
from ui.controls import Button, ColourRole, IconButton, Text
from ui.conversation_words import present_members
from ui.foreign_text import one_line
from ui.governing_acts import MemberAct, act_words, acts_on, is_made_by_us
from ui.governing_words import is_out, role_words
from ui.menu import Menu
from ui.mute_entries import MuteChoice, durations, mute_words
from ui.people import face_of, may_be_asked, we_left, write_words
from ui.side.governed import GovernedSection
from ui.side.panel import SidePanel, WhoRow
from ui.side.shared import SharedFiles
from ui.side.words import Activity, member_words
from ui.translate import tr

Marks = tuple[tuple[str, ColourRole, ColourRole], ...]
_AVATAR = 64
_FIRST_SHOWN = 100
"""Members; a row for each of thousands would keep the window from opening the panel."""


def verified_mark() -> tuple[str, ColourRole, ColourRole]:
    return (tr("verified"), "accentInk", "accentSoft")


class PanelHead(QWidget):
    """Picture, name and a line, in the middle."""

    def __init__(self, *, is_group: bool) -> None:
        super().__init__()
        self.avatar = Avatar(_AVATAR, is_group=is_group)
        self.name = Text(face="title", strong=True, wrap=True)
        self.line = Text(face="label", colour="ink2", wrap=True)
        self.marks = QHBoxLayout()
        self.marks.setSpacing(4)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 4)
        column.setSpacing(4)
        column.addWidget(self.avatar, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(4)
        for text in (self.name, self.line):
            text.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column.addWidget(text)
        column.addLayout(self.marks)

    def say(self, name: str, line: str) -> None:
        self.name.setText(name)
        self.line.setText(line)
        self.line.setVisible(bool(line))
        self.setAccessibleName(f"{name}. {line}")


class MemberRow(WhoRow):
    """Of a group's member; by the right button, the menu key or its own button: what can be done.

    The button is for the mouse alone: the keys have the menu key, and all of it is in the panel
    about the person, which Enter opens.
    """

    act_requested = Signal(object)
    """A ``MemberAct``."""
    write_requested = Signal()
    """To them alone."""

    def __init__(self) -> None:
        super().__init__()
        self._acts: tuple[MemberAct, ...] = ()
        self._writing = ""
        self.more = IconButton("more", tr("What can be done"), side=26)
        self.more.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.more.clicked.connect(lambda _checked=False: self._offer_below())
        self.row.addWidget(self.more)
        self.menu: Menu | None = None

    def allow(self, acts: tuple[MemberAct, ...], *, writing: str) -> None:
        """``writing``: what the entry says that leads to writing to them alone, if there is one."""
        self._acts, self._writing = acts, writing
        self.more.setVisible(bool(acts or writing))

    def _offer_below(self) -> None:
        self._offer(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self._acts or self._writing:
            self._offer(event.globalPos())

    def _offer(self, at: QPoint) -> None:
        self.menu = Menu(self)
        self.menu.setAccessibleName(self.accessibleName())
        if self._writing:
            self.menu.addAction(self._writing, self.write_requested.emit)
        for act in self._acts:
            action = self.menu.addAction(act_words(act))
            action.triggered.connect(partial(self._choose, act))
        self.menu.aboutToHide.connect(self.menu.deleteLater)
        self.menu.popup(at)

    def _choose(self, act: MemberAct, _checked: bool = False) -> None:
        self.act_requested.emit(act)


class GroupPanel(SidePanel):
    member_chosen = Signal(str)
    """A participant id."""
    act_requested = Signal(str, object)
    """On a member, by the participant id: a ``MemberAct``."""
    write_requested = Signal(str)
    """To this member alone."""
    invite_requested = Signal()
    mute_requested = Signal(object)
    """A ``MuteChoice``."""
    leave_requested = Signal()

    def __init__(self, shared: SharedFiles, now: Callable[[], datetime]) -> None:
        super().__init__(tr("About this group"))
        self._now = now
        self._muted = False
        self._most = _FIRST_SHOWN
        self._again: Callable[[], None] = lambda: None
        self._view: GovernanceView | None = None
        self._we_left = False
        self._is_ours = False
        """Anyone with the link is in, and we made the group."""
        self.rows: dict[ParticipantId, MemberRow] = {}
        self.head = PanelHead(is_group=True)
        self.body.addWidget(self.head)
        self.governed = GovernedSection(now)
        self.body.addWidget(self.governed.requests)
        self.invite = self.add_action(tr("Invite people"), "join", self.invite_requested.emit)
        self.mute = self.add_action(tr("Mute"), "bell-off", self._ask_mute)
        self.mute_menu = Menu(self)
        self.mute_menu.setAccessibleName(tr("Mute"))
        for words, for_ms in durations():
            action = self.mute_menu.addAction(words)
            choice = MuteChoice(muted=True, for_ms=for_ms)
            action.triggered.connect(partial(self._choose_mute, choice))
        self.body.addWidget(self.governed)
        self.members_title = self.add_section("")
        self._members = QVBoxLayout()
        self._members.setSpacing(0)
        self.body.addLayout(self._members)
        self.show_all = Button(tr("Show all"), kind="ghost")
        self.show_all.clicked.connect(self._show_all)
        self.body.addWidget(self.show_all)
        self.add_section(tr("Pictures and files"))
        self.shared = shared
        self.body.addWidget(shared)
        self.body.addSpacing(12)
        self.leave = self.add_action(
            tr("Leave group…"), "leave", self.leave_requested.emit, danger=True
        )
        self.body.addStretch(1)

    def show_group(
        self,
        group: ConversationView,
        *,
        contacts: Mapping[ParticipantId, ConversationView],
        verified: frozenset[ParticipantId],
        activity: Mapping[ParticipantId, Activity],
        view: GovernanceView | None = None,
    ) -> None:
        """``contacts``: conversations with those whom one talks to one to one.

        ``view``: None for a group that anybody with its link is in.
        """
        self._again = partial(
            self.show_group,
            group,
            contacts=contacts,
            verified=verified,
            activity=activity,
            view=view,
        )
        self._view, self._we_left = view, we_left(group)
        self._is_ours = view is None and not group.key_is_lost and is_made_by_us(group)
        names = {member.participant_id: member.name for member in group.members}
        self.governed.show_view(view, names=names, knows=not group.key_is_lost)
        self.invite.setVisible(view is None or view.may_invite)
        self.leave.rename(tr("Remove…") if is_out(view) else tr("Leave group…"))
        name = one_line(group.name, 120)
        here = present_members(group)
        picture = b"" if view is None else view.picture
        self.head.avatar.show_identity(group.conversation_id, name, is_group=True, picture=picture)
        topic = "" if view is None else one_line(view.topic, MAX_TOPIC_CHARACTERS)
        self.head.say(name, topic or tr("%n members", "%n member", len(here)))
        self._muted = group.muted
        muted = mute_words(group, self._now())
        self.mute.rename(tr("Unmute ({muted})").format(muted=muted) if muted else tr("Mute"))
        gone = [member for member in group.members if member.has_left]
        title = tr("%n members", "%n member", len(here))
        if gone:
            title = tr("{members}, {number} former").format(members=title, number=len(gone))
        self.members_title.setText(title)
        wanted = [*here, *gone]
        self.show_all.setVisible(len(wanted) > self._most)
        wanted = wanted[: self._most]
        self._keep_only({member.participant_id for member in wanted})
        for place, member in enumerate(wanted):
            conversation = contacts.get(member.participant_id)
            row = self._row_of(member.participant_id, place)
            self._show_member(row, member, conversation, verified, activity)

    def _show_all(self) -> None:
        self._most = sys.maxsize
        self._again()

    def _keep_only(self, ids: set[ParticipantId]) -> None:
        for who in [who for who in self.rows if who not in ids]:
            self.rows.pop(who).deleteLater()

    def _row_of(self, who: ParticipantId, place: int) -> MemberRow:
        row = self.rows.get(who)
        if row is None:
            row = self.rows[who] = MemberRow()
            row.act_requested.connect(lambda act: self.act_requested.emit(who, act))
            row.write_requested.connect(lambda: self.write_requested.emit(who))
            row.clicked.connect(lambda _checked=False: self.member_chosen.emit(who))
            row.focused.connect(self.reveal)
        if self._members.indexOf(row) != place:
            self._members.insertWidget(place, row)
        return row

    def _show_member(
        self,
        row: MemberRow,
        member: MemberView,
        conversation: ConversationView | None,
        verified: frozenset[ParticipantId],
        activity: Mapping[ParticipantId, Activity],
    ) -> None:
        contact = None if conversation is None else conversation.contact
        name = one_line(member.name, 60)
        picture = b"" if contact is None else face_of(contact)
        present = True if contact is not None and contact.is_online else None
        row.avatar.show_identity(member.participant_id, name, present=present, picture=picture)
        marks: list[tuple[str, ColourRole, ColourRole]] = []
        if member.is_self:
            marks.append((tr("you"), "accentInk", "accentSoft"))
        if role := self._role_of(member):
            marks.append((role, "ink2", "surface2"))
        if member.participant_id in verified:
            marks.append(verified_mark())
        if member.is_muted:
            marks.append((tr("muted"), "ink3", "surface2"))
        if member.has_left:
            marks.append((tr("former"), "ink3", "surface2"))
        what = activity.get(member.participant_id, Activity())
        words = "" if member.has_left else member_words(member, contact, what, self._now())
        row.show_words(name, words, tuple(marks))
        is_ours = self._is_ours and not member.has_left
        acts = acts_on(self._view, member.participant_id, is_self=member.is_self, is_ours=is_ours)
        row.allow(acts, writing=self._writing_to(member, conversation))

    def _writing_to(self, member: MemberView, conversation: ConversationView | None) -> str:
        """What the entry in their menu says; "" if there is none."""
        asks = conversation is None
        cannot = member.is_self or (asks and (self._we_left or not may_be_asked(member)))
        return "" if cannot else write_words(asks=asks)

    def _role_of(self, member: MemberView) -> str:
        """Nobody has one in a group that anybody with its link is in."""
        roles = {} if self._view is None else self._view.roles
        return role_words(roles.get(member.participant_id, Role.NOBODY))

    def _ask_mute(self) -> None:
        if self._muted:
            self.mute_requested.emit(MuteChoice(muted=False))
        else:
            self.mute_menu.popup(self.mute.mapToGlobal(self.mute.rect().bottomLeft()))

    def _choose_mute(self, choice: MuteChoice, _checked: bool = False) -> None:
        self.mute_requested.emit(choice)
