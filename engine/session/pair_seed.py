"""What a pair's session starts from, and under which names the profile keeps parts of it."""

from dataclasses import dataclass, field

from engine.core.contacts import ContactState
from engine.core.ports import ContactRecord
from engine.core.types import UnixMs
from engine.crypto.identity import Identity
from engine.session.pair_channel import ChannelSeed


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProfile:
    """How we call ourselves; ``picture`` is b"" if there is none."""

    name: str
    picture: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSeed:
    """What a session starts from: a new contact, or what the store gives back."""

    contact: ContactRecord
    identity: Identity
    channel: ChannelSeed
    declined_ms: UnixMs | None = None
    before_block: ContactState | None = None


def declined_key(contact: ContactRecord) -> str:
    """Under which the profile keeps when we declined them last."""
    return f"pair.declined_ms/{contact.conversation_id}"


def before_block_key(contact: ContactRecord) -> str:
    """Under which the profile keeps how far we had come before they were blocked."""
    return f"pair.before_block/{contact.conversation_id}"
