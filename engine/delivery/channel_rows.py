"""Builds the rows of one channel, as far as both protocols have them in common.

``ChannelRows`` keeps the channel's pseudonym, the order of its messages, and the copy that arrived
last.  What a copy led to is told apart in ``sds_rows`` and ``mvds_rows``.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.sds.vocabulary import SendPurpose
from engine.delivery.contract import Kind, Protocol, Via
from engine.delivery.order import Order
from engine.delivery.pseudonym import Pseudonyms, mid_of
from engine.delivery.rows import EventRow, MessageRow, Rows, parents_of

if TYPE_CHECKING:
    from engine.delivery.steps import Arrived

MAX_ATTEMPTS_KEPT: Final = 20_000
HASH_BYTES: Final = 32
_MAX_DETAIL: Final = 64


class ChannelRows:
    """The caller sets ``mono_ns`` and ``via`` before each call: the time, and how copies come now.

    ``query`` is the Store query whose answers come now.
    """

    def __init__(  # noqa: PLR0913 - keyword-only: what all channels of a log share
        self,
        conversation_id: ConversationId,
        protocol: Protocol,
        *,
        pseudonyms: Pseudonyms,
        own_id: ParticipantId,
        order: Order,
        rows: Rows,
    ) -> None:
        self.channel = pseudonyms.channel(conversation_id)
        self.protocol = protocol.value
        self.own_id = own_id
        self.order = order
        self.mono_ns = 0
        self.via = Via.RELAY
        self.arrived: Arrived | None = None
        self.query: int | None = None
        self._name = pseudonyms.participant
        self._digest = partial(pseudonyms.content, conversation_id)
        self._rows = rows
        self._attempts: OrderedDict[tuple[MessageId, ParticipantId | None], int] = OrderedDict()

    # --- rows ---------------------------------------------------------------------------------

    def write_to(self, rows: Rows) -> None:
        """Append to ``rows`` from now on."""
        self._rows = rows

    def add(  # noqa: PLR0913 - keyword-only: the contract's columns
        self,
        kind: Kind,
        at_ms: int,
        message_id: MessageId | None = None,
        *,
        waku_hash: bytes | None = None,
        lamport: int | None = None,
        position: int | None = None,
        peer: ParticipantId | None = None,
        ack_source: str | None = None,
        bloom: tuple[int, int, int | None] = (0, 0, None),
        attempt: int | None = None,
        wire_bytes: int | None = None,
        via: Via | None = None,
        amount: int | None = None,
        detail: str | None = None,
    ) -> None:
        self._rows.events.append(
            EventRow(
                self.channel,
                self.protocol,
                kind.value,
                message_id,
                None if message_id is None else mid_of(message_id),
                waku_hash if waku_hash and len(waku_hash) == HASH_BYTES else None,
                lamport,
                position,
                at_ms,
                self.mono_ns,
                None if peer is None else self._name(peer),
                ack_source,
                bloom[0] or None,
                bloom[1] or None,
                bloom[2],
                attempt,
                wire_bytes,
                None if via is None else via.value,
                amount,
                detail,
            )
        )

    def add_message(  # noqa: PLR0913 - keyword-only: the contract's columns
        self,
        message_id: MessageId,
        lamport: int,
        sender: ParticipantId,
        *,
        sent_ms: int | None = None,
        parents: Sequence[MessageId] | None = None,
        content: bytes | None = None,
    ) -> None:
        ids, mids = (None, None) if parents is None else parents_of(parents)
        self._rows.messages.append(
            MessageRow(
                self.channel,
                self.protocol,
                message_id,
                mid_of(message_id),
                lamport,
                self._name(sender),
                sent_ms if sent_ms is not None and sent_ms >= 0 else None,
                ids,
                mids,
                None if content is None else self._digest(message_id, content),
            )
        )

    def place(self, at_ms: int, message_id: MessageId, lamport: int, sender: ParticipantId) -> bool:
        """Note that the message is in the log; False if it was before."""
        is_new, position = self.order.add(lamport, message_id)
        if is_new:
            if sender == self.own_id:
                if self.protocol == Protocol.MVDS.value:
                    self.note_attempt(message_id, 0)
                self.add(Kind.SENT, at_ms, message_id, lamport=lamport, peer=sender)
            self.add(
                Kind.DELIVERED, at_ms, message_id, lamport=lamport, position=position, peer=sender
            )
        return is_new

    def store_hit(self, at_ms: int, message_id: MessageId, waku_hash: bytes | None) -> None:
        """Add a row if the copy that arrived last came from a Store."""
        if self.arrived is not None and self.arrived.from_store:
            self.add(
                Kind.STORE_HIT,
                at_ms,
                message_id,
                waku_hash=waku_hash,
                attempt=self.query,
                via=Via.STORE,
            )

    def refused(self, at_ms: int, reason: str) -> None:
        arrived = self.arrived
        self.add(
            Kind.REJECTED,
            at_ms,
            waku_hash=arrived.waku_hash if arrived else None,
            wire_bytes=arrived.wire_bytes if arrived else None,
            via=self.copy_via(),
            detail=reason[:_MAX_DETAIL],
        )

    def copy_via(self, *, is_repair: bool = False) -> Via:
        """How the copy that arrived last came."""
        if self.arrived is not None and self.arrived.from_store:
            return Via.STORE
        return Via.REPAIR if is_repair else self.via

    def bytes_of(self, waku_hash: bytes | None) -> int | None:
        """The size of the copy with this hash, if it is the one that arrived last."""
        arrived = self.arrived
        if arrived is None or (waku_hash is not None and arrived.waku_hash != waku_hash):
            return None
        return arrived.wire_bytes

    # --- copies of ours -----------------------------------------------------------------------

    def note_attempt(
        self, message_id: MessageId, attempt: int, to: ParticipantId | None = None
    ) -> None:
        self._attempts[message_id, to] = attempt
        self._attempts.move_to_end((message_id, to))
        if len(self._attempts) > MAX_ATTEMPTS_KEPT:
            self._attempts.popitem(last=False)

    def published(  # noqa: PLR0913 - keyword-only: all that is known of a copy
        self,
        at_ms: UnixMs,
        purpose: SendPurpose,
        *,
        message_ids: Sequence[MessageId],
        repairs: MessageId | None,
        waku_hash: WakuHash,
        wire_bytes: int,
        peers: int | None,
        to: ParticipantId | None,
        via: Via,
    ) -> None:
        """Record a copy handed to the network.  Its bytes count once, with the first message."""
        ids: Sequence[MessageId | None] = message_ids
        kind = Kind.PUBLISHED
        if purpose is SendPurpose.SYNC:
            kind, ids = Kind.SYNC_SENT, [None]
        elif purpose is SendPurpose.EPHEMERAL:
            kind, ids = Kind.EPHEMERAL_SENT, [None]
        elif not message_ids:
            kind, ids = Kind.REPAIR_SENT, [repairs]
        counted: int | None = wire_bytes
        for message_id in ids:
            attempt = None
            if kind in {Kind.PUBLISHED, Kind.RETRANSMITTED} and message_id is not None:
                attempt = self._attempt(message_id, to)
                kind = Kind.PUBLISHED if attempt == 1 else Kind.RETRANSMITTED
            self.add(
                kind,
                at_ms,
                message_id,
                waku_hash=waku_hash,
                peer=to,
                attempt=attempt,
                wire_bytes=counted,
                via=via,
                amount=peers,
            )
            counted = None

    def _attempt(self, message_id: MessageId, to: ParticipantId | None) -> int:
        """The number of this copy.  MVDS copies are counted here, because MVDS counts offers too.

        A message from before the recording counts as sent once.
        """
        attempts = self._attempts
        if self.protocol == Protocol.SDS.value:
            return max(attempts.get((message_id, None), 1), 1)
        before = attempts.get((message_id, to), attempts.get((message_id, None), 1))
        self.note_attempt(message_id, before + 1, to)
        return before + 1
