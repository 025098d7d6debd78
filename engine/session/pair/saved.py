"""What a pair's session starts from: the contact, and what the profile keeps about it."""

from dataclasses import dataclass, field

from msgspec import Struct

from engine.core.agreement import Agreement
from engine.core.contacts import ContactState
from engine.core.content import NOBODY
from engine.core.ids import InstanceId, ParticipantId, UnixMs
from engine.core.mvds.vocabulary import MvdsId
from engine.core.records import ContactRecord, MemberRecord
from engine.crypto.identity import Identity
from engine.session.pair.channel import SavedChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProfile:
    """Our own name and picture; ``picture`` is b"" if there is none."""

    name: str
    picture: bytes = field(default=b"", repr=False)


class KeptAgreement(Struct, frozen=True, kw_only=True):
    """What the profile stores of an agreement besides its state, as one line of text."""

    round: int = 0
    peer_instance: InstanceId = NOBODY
    passed_over: int = 0
    statement: MvdsId | None = None
    """Our latest request or answer."""

    def text(self) -> str:
        peer, statement = self.peer_instance.hex(), (self.statement or b"").hex()
        return f"{self.round}:{peer}:{self.passed_over}:{statement}"

    @classmethod
    def of_text(cls, text: str) -> "KeptAgreement":
        """Parse the result of ``text``; "" gives the initial value."""
        if not text:
            return cls()
        round_, peer, passed_over, statement = text.split(":")
        return cls(
            round=int(round_),
            peer_instance=InstanceId(bytes.fromhex(peer)),
            passed_over=int(passed_over),
            statement=MvdsId(bytes.fromhex(statement)) if statement else None,
        )


class SavedPair(Struct, frozen=True, kw_only=True):
    """The start of a session: a new contact, or one loaded from the store."""

    contact: ContactRecord
    identity: Identity
    channel: SavedChannel
    kept: KeptAgreement
    declined_ms: UnixMs | None = None
    before_block: ContactState | None = None
    files_held: str = ""
    """What we said that we have as a whole."""

    def agreement(self) -> Agreement:
        """The agreement; for a blocked peer, as it was before the block."""
        state = self.contact.state
        if state is ContactState.BLOCKED:
            state = self.before_block or ContactState.DECLINED
        return Agreement(
            state=state,
            round=self.kept.round,
            peer_instance=self.kept.peer_instance,
            passed_over=self.kept.passed_over,
        )


def agreement_key(contact: ContactRecord) -> str:
    """The profile's key for a ``KeptAgreement``."""
    return f"pair.agreement/{contact.conversation_id}"


def declined_key(contact: ContactRecord) -> str:
    """The profile's key for the time when we last declined them."""
    return f"pair.declined_ms/{contact.conversation_id}"


def before_block_key(contact: ContactRecord) -> str:
    """The profile's key for the contact state before the block."""
    return f"pair.before_block/{contact.conversation_id}"


def files_held_key(contact: ContactRecord) -> str:
    """The profile's key for the messages whose files we said that we have, one a line."""
    return f"pair.files_held/{contact.conversation_id}"


def both(
    contact: ContactRecord, own: Identity, *, own_name: str
) -> dict[ParticipantId, MemberRecord]:
    """Both people, as members of their conversation."""
    people = (
        (own.participant_id, own.public_key, own.encryption_public_key, own_name),
        (
            contact.participant_id,
            contact.public_key,
            contact.encryption_key,
            contact.local_name or contact.name,
        ),
    )
    return {
        participant_id: MemberRecord(
            conversation_id=contact.conversation_id,
            participant_id=participant_id,
            public_key=public_key,
            encryption_key=encryption_key,
            name=name,
            is_admin=False,
            joined_ms=contact.created_ms,
        )
        for participant_id, public_key, encryption_key, name in people
    }
