"""The panel about a person: a contact, or a member of a group with whom one does not talk alone.

What nobody proved is said as such: a name is what they call themselves, and only a number compared
by another way makes somebody verified.
"""

from collections.abc import Callable, Container, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout

from engine.core.ids import ConversationId, ParticipantId
from engine.events import ConversationView, MemberView
from ui.controls import Pill, Text
from ui.dialogs.group import selectable
from ui.foreign_text import one_line
from ui.governing_acts import MemberAct, act_words, icon_of
from ui.people import face_of, is_blocked, person_line, write_words
from ui.side.group import PanelHead, verified_mark
from ui.side.panel import SidePanel, WhoRow
from ui.side.shared import SharedFiles
from ui.side.words import Activity, member_words, seal_words
from ui.translate import tr


class Somebody(Struct, frozen=True, kw_only=True):
    """At least one of the two is known."""

    participant_id: ParticipantId
    conversation: ConversationView | None = None
    """The one with them, if there is one."""
    member: MemberView | None = None
    """In the group from which one came."""
    activity: Activity = Activity()
    is_verified: bool = False
    groups: Sequence[ConversationView] = ()
    """In which both are."""
    acts: tuple[MemberAct, ...] = ()
    """What we can do about them in the group from which one came."""
    cannot_ask: str = ""
    """Why they cannot be asked to talk from that group."""

    @property
    def name(self) -> str:
        if self.conversation is not None:
            return one_line(self.conversation.name, 120) or "?"
        return one_line(self.member.name, 120) if self.member is not None else "?"

    @property
    def fingerprint(self) -> str:
        if self.conversation is not None and self.conversation.contact is not None:
            return self.conversation.contact.fingerprint
        return self.member.fingerprint if self.member is not None else ""

    @property
    def picture(self) -> bytes:
        contact = None if self.conversation is None else self.conversation.contact
        return b"" if contact is None else face_of(contact)

    @property
    def is_self(self) -> bool:
        return self.member is not None and self.member.is_self

    def line(self, now: datetime) -> str:
        if self.conversation is not None and self.conversation.contact is not None:
            return person_line(self.conversation, self.conversation.contact, now)
        return "" if self.member is None else member_words(self.member, None, self.activity, now)


class PersonPanel(SidePanel):
    compare_requested = Signal()
    unverify_requested = Signal()
    write_requested = Signal()
    link_requested = Signal()
    """To give them a contact link, or use theirs."""
    rename_requested = Signal()
    block_requested = Signal()
    unblock_requested = Signal()
    remove_requested = Signal()
    mute_member_requested = Signal(bool)
    act_requested = Signal(object)
    """A ``MemberAct``."""
    group_chosen = Signal(str)

    def __init__(
        self, shared: SharedFiles | None, now: Callable[[], datetime], *, back: str = ""
    ) -> None:
        """``shared``: what was shared in the conversation with them, if there is one."""
        super().__init__(tr("About this person"), back=back)
        self._now = now
        self._somebody: Somebody | None = None
        self.rows: dict[ConversationId, WhoRow] = {}
        self.head = PanelHead(is_group=False)
        self.head.marks.addStretch(1)
        self.verified_pill = Pill(verified_mark()[0], ink="accentInk", fill="accentSoft")
        self.head.marks.addWidget(self.verified_pill)
        self.head.marks.addStretch(1)
        self.body.addWidget(self.head)
        self.write = self.add_action("", "compose", self.write_requested.emit)
        self.how = Text(face="caption", colour="ink2", wrap=True)
        """Why they cannot be asked to talk, and the other way to it."""
        self.body.addWidget(self.how)
        self.link = self.add_action(tr("Contact link…"), "person-add", self.link_requested.emit)
        self.add_section(tr("Their fingerprint"))
        self.fingerprint = selectable("")
        self.body.addWidget(self.fingerprint)
        self.proof = Text(face="caption", colour="ink2", wrap=True)
        self.body.addWidget(self.proof)
        self.compare = self.add_action("", "key", self._compare)
        self.seal_title = self.add_section(tr("Your messages to each other"))
        self.seal = Text(face="caption", colour="ink2", wrap=True)
        self.body.addWidget(self.seal)
        self.add_section(tr("Groups in common"))
        self.no_groups = Text(tr("You share no group."), face="label", colour="ink2", wrap=True)
        self.body.addWidget(self.no_groups)
        self._groups = QVBoxLayout()
        self._groups.setSpacing(0)
        self.body.addLayout(self._groups)
        self.shared = shared
        if shared is not None:
            self.add_section(tr("Pictures and files"))
            self.body.addWidget(shared)
        self._add_acts()
        self.body.addStretch(1)

    def _add_acts(self) -> None:
        self.body.addSpacing(12)
        self.acts = {
            act: self.add_action(
                act_words(act),
                icon_of(act),
                partial(self.act_requested.emit, act),
                danger=act in {MemberAct.REMOVE, MemberAct.END_LINK},
            )
            for act in MemberAct
        }
        self.mute_member = self.add_action("", "bell-off", self._toggle_mute)
        self.rename = self.add_action(tr("Rename…"), "rename", self.rename_requested.emit)
        self.block = self.add_action("", "block", self._toggle_block)
        self.remove = self.add_action(
            tr("Remove…"), "leave", self.remove_requested.emit, danger=True
        )

    @property
    def somebody(self) -> Somebody | None:
        return self._somebody

    def show_somebody(self, somebody: Somebody) -> None:
        self._somebody = somebody
        conversation, member = somebody.conversation, somebody.member
        name, is_contact = somebody.name, conversation is not None
        self.head.avatar.show_identity(somebody.participant_id, name, picture=somebody.picture)
        self.head.say(name, somebody.line(self._now()))
        self.verified_pill.setVisible(somebody.is_verified)
        self.fingerprint.setText(somebody.fingerprint)
        self._say_proof(somebody)
        self._say_seal(conversation)
        self._offer_writing(somebody)
        self.rename.setVisible(is_contact)
        self.block.setVisible(is_contact)
        self.remove.setVisible(is_contact)
        if conversation is not None:
            self.block.rename(tr("Unblock") if is_blocked(conversation) else tr("Block…"))
        self._offer_acts(somebody.acts)
        in_group = member is not None and not member.is_self and not is_contact
        self.mute_member.setVisible(in_group)
        if member is not None:
            self.mute_member.rename(
                tr("Show their messages") if member.is_muted else tr("Hide their messages")
            )
        self._show_groups(somebody)

    def _offer_writing(self, somebody: Somebody) -> None:
        """To a member of a group; who is asked first, or cannot be, is told apart by words."""
        from_group, talks = somebody.member is not None, somebody.conversation is not None
        reason = "" if talks or somebody.is_self else somebody.cannot_ask
        self.write.rename(write_words(asks=not talks))
        self.write.setVisible(from_group and not somebody.is_self and not reason)
        self.how.setText(reason)
        self.how.setVisible(bool(reason))
        self.link.setVisible(bool(reason))

    def _offer_acts(self, acts: Container[MemberAct]) -> None:
        """What was just done is offered no more, and had the focus: it goes to what is now."""
        gone = [button for act, button in self.acts.items() if act not in acts]
        for act, button in self.acts.items():
            if act in acts:
                button.show()
        if self.window().focusWidget() in gone:
            first = next((each for act, each in self.acts.items() if act in acts), self.compare)
            first.setFocus(Qt.FocusReason.OtherFocusReason)
        for button in gone:
            button.hide()

    def _say_proof(self, somebody: Somebody) -> None:
        """Of ourselves there is nothing to compare."""
        self.proof.setVisible(not somebody.is_self)
        self.compare.setVisible(not somebody.is_self)
        if somebody.is_verified:
            self.proof.setText(tr("You compared the safety number: nobody is in between."))
            self.compare.rename(tr("Not verified any more"))
        else:
            self.proof.setText(
                tr(
                    "Anyone can take any name. Compare the safety number by another way: whoever"
                    " has the same is who they say."
                )
            )
            self.compare.rename(tr("Compare…"))

    def _say_seal(self, conversation: ConversationView | None) -> None:
        contact = None if conversation is None else conversation.contact
        words = "" if contact is None else seal_words(contact)
        self.seal_title.setVisible(bool(words))
        self.seal.setVisible(bool(words))
        self.seal.setText(words)

    def _show_groups(self, somebody: Somebody) -> None:
        ids = {group.conversation_id for group in somebody.groups}
        for gone in [each for each in self.rows if each not in ids]:
            self.rows.pop(gone).deleteLater()
        for group in somebody.groups:
            row = self.rows.get(group.conversation_id)
            if row is None:
                row = self.rows[group.conversation_id] = WhoRow(is_group=True)
                chosen = group.conversation_id
                row.clicked.connect(lambda _checked=False, c=chosen: self.group_chosen.emit(c))
                row.focused.connect(self.reveal)
                self._groups.addWidget(row)
            name = one_line(group.name, 60)
            row.avatar.show_identity(group.conversation_id, name, is_group=True)
            row.show_words(name, "")
        self.no_groups.setVisible(not somebody.groups)

    def _compare(self) -> None:
        if self._somebody is not None and self._somebody.is_verified:
            self.unverify_requested.emit()
        else:
            self.compare_requested.emit()

    def _toggle_mute(self) -> None:
        member = None if self._somebody is None else self._somebody.member
        if member is not None:
            self.mute_member_requested.emit(not member.is_muted)

    def _toggle_block(self) -> None:
        conversation = None if self._somebody is None else self._somebody.conversation
        if conversation is not None and is_blocked(conversation):
            self.unblock_requested.emit()
        else:
            self.block_requested.emit()
