"""The vocabulary of MVDS: payloads, records, inputs, writes, sends, events, saved state.

Shapes follow 2/MVDS.  A node keeps *records* per (peer, message): what it still has to offer,
request or send, how often it did, and in which epoch it may again.  Acknowledgements are never
records; they only wait for the next payload.

A transition's ``writes`` become durable in one transaction, then ``sends`` are performed, then
``events`` shown.  Bodies are not in memory: the sender of a payload looks them up.  Wire format,
seals and topics are handled elsewhere.
"""

from enum import StrEnum
from typing import Final, NewType, TypeAlias

from msgspec import Struct

from engine.core.ids import ParticipantId, UnixMs

MvdsId = NewType("MvdsId", bytes)
"""sha256("MESSAGE_ID" ‖ group id ‖ timestamp ‖ body), 32 bytes."""

GroupId = NewType("GroupId", bytes)
"""A synchronisation context, exactly 32 bytes; for a pair, derived from both identities."""

Epoch = NewType("Epoch", int)
"""Unix milliseconds // ``MvdsConfig.epoch_ms``: never set back by a restart."""

NEVER: Final = Epoch(2**62)
"""``send_epoch`` of a record that was given up: it is sent again only if the user asks."""


class MvdsMessage(Struct, frozen=True):
    """``timestamp`` is in whole seconds, as in the references; the body contains a nonce."""

    group_id: GroupId
    timestamp: int
    body: bytes


class Payload(Struct, frozen=True):
    """Everything for one peer in one epoch, as sent."""

    acks: tuple[MvdsId, ...] = ()
    offers: tuple[MvdsId, ...] = ()
    requests: tuple[MvdsId, ...] = ()
    messages: tuple[MvdsMessage, ...] = ()


class WireGeneration(StrEnum):
    """Two sets of field numbers with the same meaning; we answer in the one used last."""

    RFC = "rfc"
    """5001 … 5004, 6001 … 6003: the specification and status-im's fork."""
    DRAFT = "draft"
    """1 … 4, 1 … 3: draft 0.6 and vacp2p's reference."""


class RecordType(StrEnum):
    OFFER = "offer"
    REQUEST = "request"
    MESSAGE = "message"


class Record(Struct, frozen=True):
    """One thing that this peer still has to receive."""

    peer_id: ParticipantId
    message_id: MvdsId
    type: RecordType
    send_count: int
    send_epoch: Epoch
    body_bytes: int
    """0 for a REQUEST: we do not have the body."""
    created_ms: UnixMs
    waited_epochs: int = 0
    """All waits so far, including the one until ``send_epoch``; they decide when to give up.  Each
    counts with its planned length, so time asleep, away or skipped by a clock does not count."""

    @property
    def given_up(self) -> bool:
        return self.send_epoch == NEVER

    def waited_until(self, epoch: Epoch) -> int:
        """Like ``waited_epochs``, without the rest of the current wait."""
        return max(self.waited_epochs - max(self.send_epoch - epoch, 0), 0)


class MvdsState(Struct, frozen=True, kw_only=True):
    """What a node starts from.

    ``records`` are those due soonest; ``loaded_before`` is the first epoch of which some are not
    among them (None = these are all).
    """

    records: tuple[Record, ...] = ()
    loaded_before: Epoch | None = None
    pending_acks: tuple[tuple[ParticipantId, MvdsId], ...] = ()
    held: frozenset[MvdsId] = frozenset()
    """All messages ever received: a duplicate is acknowledged again but not delivered."""


# --- inputs -------------------------------------------------------------------------------------


class AppendMessage(Struct, frozen=True, kw_only=True):
    """A new message for these peers; each is in the message's group."""

    message: MvdsMessage
    peer_ids: tuple[ParticipantId, ...]


class PayloadReceived(Struct, frozen=True, kw_only=True):
    """A payload; its signature proves ``peer_id``."""

    peer_id: ParticipantId
    payload: Payload
    generation: WireGeneration = WireGeneration.RFC


class PeerSeen(Struct, frozen=True, kw_only=True):
    """The peer is online now: bring forward what waits for it."""

    peer_id: ParticipantId


class ConnectivityChanged(Struct, frozen=True, kw_only=True):
    """Whether anyone can be reached.  Offline, nothing is sent and no attempt counts."""

    online: bool


class ResendRequested(Struct, frozen=True, kw_only=True):
    """The user wants the message sent again now, given up or not."""

    peer_id: ParticipantId
    message_id: MvdsId


class RecordsLoaded(Struct, frozen=True, kw_only=True):
    """The answer to ``LoadRecords``; ``loaded_before`` as in ``MvdsState``."""

    records: tuple[Record, ...]
    loaded_before: Epoch | None
    asked_ids: tuple[tuple[ParticipantId, MvdsId], ...] = ()


class DeadlineReached(Struct, frozen=True, kw_only=True):
    """The time that ``next_deadline`` named has come (early and late calls are harmless)."""


Input: TypeAlias = (
    AppendMessage
    | PayloadReceived
    | PeerSeen
    | ConnectivityChanged
    | ResendRequested
    | RecordsLoaded
    | DeadlineReached
)


# --- writes -------------------------------------------------------------------------------------


class KeepMessage(Struct, frozen=True):
    """Store the body of an own message until no peer needs it."""

    message_id: MvdsId
    message: MvdsMessage


class DropMessage(Struct, frozen=True):
    """No OFFER or MESSAGE needs this body, unless one of another peer is only on disk."""

    message_id: MvdsId


class PutRecord(Struct, frozen=True):
    """Insert, or replace the record of this peer and message, whatever its type."""

    record: Record


class RemoveRecord(Struct, frozen=True):
    peer_id: ParticipantId
    message_id: MvdsId


class NoteHeld(Struct, frozen=True):
    """Received and delivered, so never again."""

    message_id: MvdsId


class PutPendingAck(Struct, frozen=True):
    """Acknowledge with the next payload to this peer."""

    peer_id: ParticipantId
    message_id: MvdsId


class RemovePendingAck(Struct, frozen=True):
    peer_id: ParticipantId
    message_id: MvdsId


MvdsWrite: TypeAlias = (
    KeepMessage
    | DropMessage
    | PutRecord
    | RemoveRecord
    | NoteHeld
    | PutPendingAck
    | RemovePendingAck
)


# --- sends --------------------------------------------------------------------------------------


class SendPayload(Struct, frozen=True):
    """One payload for one peer, never empty.  Look the messages' bodies up by id."""

    peer_id: ParticipantId
    acks: tuple[MvdsId, ...]
    offers: tuple[MvdsId, ...]
    requests: tuple[MvdsId, ...]
    message_ids: tuple[MvdsId, ...]
    generation: WireGeneration


class LoadRecords(Struct, frozen=True):
    """Read more records from disk and return them as ``RecordsLoaded``.

    Read those from ``from_epoch`` on, and those named by id.
    """

    from_epoch: Epoch | None
    limit: int
    ids: tuple[tuple[ParticipantId, MvdsId], ...] = ()


MvdsSend: TypeAlias = SendPayload | LoadRecords


# --- events -------------------------------------------------------------------------------------


class MvdsDelivered(Struct, frozen=True):
    """A message that is new to us; in no order."""

    peer_id: ParticipantId
    message_id: MvdsId
    message: MvdsMessage


class Acknowledged(Struct, frozen=True):
    """The peer holds this message of ours."""

    peer_id: ParticipantId
    message_id: MvdsId


class GivenUp(Struct, frozen=True):
    """Tried for too long: nothing more is sent unless the user asks."""

    peer_id: ParticipantId
    message_id: MvdsId


MvdsEvent: TypeAlias = MvdsDelivered | Acknowledged | GivenUp


class MvdsTransition(Struct, frozen=True):
    """Perform ``writes`` first, in one transaction; then ``sends``; then ``events``."""

    writes: tuple[MvdsWrite, ...] = ()
    sends: tuple[MvdsSend, ...] = ()
    events: tuple[MvdsEvent, ...] = ()
