"""The people of the scripted engine: contacts that ask, answer, come and go as a test says.

A part of ``ScriptedEngine`` in a file of its own.  A link is ``causerie:contact/<name>``; what is
wrong with other links is said as the engine says it.
"""

from msgspec.structs import replace
from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QColor, QImage

from engine.answers import ContactPreview
from engine.core.contacts import CONTACT_PREFIX, ContactState
from engine.core.errors import InviteError, LinkFlaw, LinkKind
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.events import (
    ContactView,
    ConversationAdded,
    ConversationChanged,
    ConversationRemoved,
    ConversationView,
    EngineEvent,
    IdentityView,
    MemberView,
    MessageAdded,
    MessageKind,
    MessageView,
)

PERSON_FINGERPRINT = "86217 67354 66728 48559 95479 59417"
SAFETY_NUMBER = " ".join(f"{number:05}" for number in range(10_111, 10_123))
MY_LINK = f"{CONTACT_PREFIX}Ines"


def picture_bytes(colour: str = "#a03a84", side: int = 64, format_: str = "PNG") -> bytes:
    """A picture of one colour, as an image program would write it."""
    image = QImage(side, side, QImage.Format.Format_RGB32)
    image.fill(QColor(colour))
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    assert image.save(buffer, format_)  # type: ignore[call-overload]
    return bytes(data.data())


def person_id(name: str) -> ParticipantId:
    return ParticipantId(name.lower().ljust(32, "0")[:32])


def pair_id(name: str) -> ConversationId:
    return ConversationId(f"pair-{name}")


class ScriptedPeople:
    """Commands about people, and what tests do to them."""

    views: dict[ConversationId, ConversationView]
    rows: dict[ConversationId, dict[MessageId, MessageView]]
    own: IdentityView | None
    compared: frozenset[ParticipantId] = frozenset()
    """Those whose key the user compared."""

    def _enter(self, method: str, argument: object) -> None:
        raise NotImplementedError

    def tell(self, event: EngineEvent) -> None:
        raise NotImplementedError

    def row(
        self, conversation_id: ConversationId, sender: MemberView, text: str, minute: int = 0
    ) -> MessageView:
        raise NotImplementedError

    # --- what a test does -------------------------------------------------------------------------

    def add_person(  # noqa: PLR0913 - keyword-only: what is seen of somebody
        self,
        name: str,
        state: ContactState = ContactState.ACCEPTED,
        *,
        online: bool = False,
        last_seen_ms: UnixMs | None = None,
        picture: bytes = b"",
        forward_secret_ms: UnixMs | None = None,
        below_olm_ms: UnixMs | None = None,
    ) -> ConversationId:
        conversation_id = pair_id(name)
        contact = ContactView(
            participant_id=person_id(name),
            name=name,
            local_name="",
            state=state,
            fingerprint=PERSON_FINGERPRINT,
            safety_number=SAFETY_NUMBER,
            picture=picture,
            last_seen_ms=last_seen_ms,
            is_online=online,
            forward_secret_ms=forward_secret_ms,
            below_olm_ms=below_olm_ms,
        )
        self.views[conversation_id] = ConversationView(
            conversation_id=conversation_id,
            name=name,
            members=(self._member("Ines", is_self=True), self._member(name)),
            unread=0,
            first_unread=None,
            muted=False,
            last_message=None,
            missing=0,
            waiting_to_send=0,
            failed=0,
            created_ms=UnixMs(1_795_000_000_000 + len(self.views)),
            draft="",
            contact=contact,
        )
        self.rows[conversation_id] = {}
        self.tell(ConversationAdded(conversation=self.views[conversation_id]))
        if state is not ContactState.ACCEPTED:
            own = state is not ContactState.ASKING
            self.narrate(conversation_id, MessageKind.ASKED, own=own)
        return conversation_id

    def set_contact(self, conversation_id: ConversationId, contact: ContactView) -> None:
        shown = contact.local_name or contact.name
        view = replace(self.views[conversation_id], contact=contact, name=shown)
        self.views[conversation_id] = view
        self.tell(ConversationChanged(conversation=view))

    def set_state(self, conversation_id: ConversationId, state: ContactState) -> None:
        self.set_contact(conversation_id, replace(self.contact(conversation_id), state=state))

    def contact(self, conversation_id: ConversationId) -> ContactView:
        contact = self.views[conversation_id].contact
        assert contact is not None
        return contact

    def narrate(self, conversation_id: ConversationId, kind: MessageKind, *, own: bool) -> None:
        """A row that says how far two have come."""
        view = self.views[conversation_id]
        sender = view.members[0] if own else view.members[1]
        row = replace(self.row(conversation_id, sender, ""), kind=kind)
        self.rows[conversation_id][row.message_id] = row
        self.tell(MessageAdded(message=row, notify=not own))
        self.views[conversation_id] = replace(self.views[conversation_id], last_message=row)
        self.tell(ConversationChanged(conversation=self.views[conversation_id]))

    # --- ChatEngine: people -----------------------------------------------------------------------

    async def make_contact_link(self) -> str:
        self._enter("make_contact_link", None)
        return MY_LINK

    def preview_contact(self, link: str) -> ContactPreview:
        if not link.startswith(CONTACT_PREFIX):
            raise InviteError(LinkFlaw.FOREIGN, LinkKind.CONTACT)
        if link == MY_LINK:
            raise InviteError(LinkFlaw.OWN, LinkKind.CONTACT)
        name = link.removeprefix(CONTACT_PREFIX)
        if name == "old":
            expired_ms = 1_777_800_000_000
            raise InviteError(LinkFlaw.EXPIRED, LinkKind.CONTACT, expired_ms=expired_ms)
        if not name.isalpha():
            raise InviteError(LinkFlaw.CUT_OFF, LinkKind.CONTACT)
        known = self.views.get(pair_id(name))
        return ContactPreview(
            conversation_id=pair_id(name),
            participant_id=person_id(name),
            name=name,
            fingerprint=PERSON_FINGERPRINT,
            node_addresses=("/dns4/quay.harbour.example/tcp/443/wss",),
            known=None if known is None or known.contact is None else known.contact.state,
        )

    async def add(self, link: str) -> ConversationId:
        self._enter("add_contact", link)
        preview = self.preview_contact(link)
        if preview.known is ContactState.ASKING:
            self.set_state(preview.conversation_id, ContactState.ACCEPTED)
        elif preview.known is None:
            self.add_person(preview.name, ContactState.ASKED)
        else:
            self.set_state(preview.conversation_id, ContactState.ASKED)
        return preview.conversation_id

    async def ask_member(
        self, group_id: ConversationId, participant_id: ParticipantId
    ) -> ConversationId:
        self._enter("ask_member", (group_id, participant_id))
        members = self.views[group_id].members
        name = next(each.name for each in members if each.participant_id == participant_id)
        return self.add_person(name, ContactState.ASKED)

    async def accept(self, conversation_id: ConversationId) -> None:
        self._enter("accept_contact", conversation_id)
        asks = self.contact(conversation_id).state is ContactState.DECLINED
        kind = MessageKind.ASKED if asks else MessageKind.ACCEPTED
        self.narrate(conversation_id, kind, own=True)
        state = ContactState.ASKED if asks else ContactState.ACCEPTED
        self.set_state(conversation_id, state)

    async def decline(self, conversation_id: ConversationId) -> None:
        self._enter("decline_contact", conversation_id)
        self.narrate(conversation_id, MessageKind.DECLINED, own=True)
        self.set_state(conversation_id, ContactState.DECLINED)

    async def withdraw(self, conversation_id: ConversationId) -> None:
        self._enter("withdraw_contact", conversation_id)
        self.narrate(conversation_id, MessageKind.WITHDRAWN, own=True)
        self.set_state(conversation_id, ContactState.DECLINED)

    async def set_blocked(self, conversation_id: ConversationId, *, blocked: bool) -> None:
        self._enter("set_blocked", blocked)
        state = ContactState.BLOCKED if blocked else ContactState.ACCEPTED
        self.set_state(conversation_id, state)

    def verified(self) -> frozenset[ParticipantId]:
        return self.compared

    async def set_verified(self, participant_id: ParticipantId, *, verified: bool) -> None:
        self._enter("set_verified", (participant_id, verified))
        this = frozenset((participant_id,))
        self.compared = self.compared | this if verified else self.compared - this

    async def remove(self, conversation_id: ConversationId) -> None:
        self._enter("remove_contact", conversation_id)
        del self.views[conversation_id]
        del self.rows[conversation_id]
        self.tell(ConversationRemoved(conversation_id=conversation_id))

    async def rename(self, conversation_id: ConversationId, name: str) -> None:
        self._enter("rename_contact", name)
        contact = replace(self.contact(conversation_id), local_name=name)
        self.set_contact(conversation_id, contact)

    async def set_profile(self, *, name: str, picture: bytes) -> IdentityView:
        self._enter("set_profile", (name, picture))
        assert self.own is not None
        self.own = replace(self.own, name=name, picture=picture)
        return self.own

    def _member(self, name: str, *, is_self: bool = False) -> MemberView:
        return MemberView(
            participant_id=ParticipantId("a" * 32) if is_self else person_id(name),
            name=name,
            is_self=is_self,
            is_admin=False,
            has_left=False,
            fingerprint=PERSON_FINGERPRINT,
        )
