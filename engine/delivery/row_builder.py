"""Turns the recorder's calls into rows, with one ``ChannelRows`` per conversation.

One thread uses it.  Of the sessions' writes it reads only ids, times and positions; texts and names
never reach a row.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.core.ids import (
    ConversationId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
    WakuHash,
)
from engine.core.ports import PutAnnotation, PutMember, PutMessage, StoreWrite
from engine.core.records import LoggedMessage, MemberRecord
from engine.core.sds.vocabulary import SendPurpose
from engine.delivery.channel_rows import ChannelRows
from engine.delivery.contract import Kind, Protocol, Via
from engine.delivery.mvds_rows import add_mvds
from engine.delivery.order import Order
from engine.delivery.pseudonym import Pseudonyms, mid_of
from engine.delivery.rows import EventRow, MembershipRow, Rows, SnapshotRow
from engine.delivery.sds_rows import add_sds
from engine.delivery.steps import Arrived, MvdsStep, Refused, SdsStep, Step


class Which(NamedTuple):
    """A conversation and its protocol."""

    conversation_id: ConversationId
    protocol: Protocol
    own_id: ParticipantId | None = None
    """Our sender_id in an open channel; None: it is the log owner's id."""


class Copy(NamedTuple):
    """What to record about a copy handed to the network."""

    purpose: SendPurpose
    message_ids: tuple[MessageId, ...]
    repairs: MessageId | None
    waku_hash: WakuHash
    wire_bytes: int
    peers: int | None
    """How many took it; None if unknown."""
    to: ParticipantId | None = None
    """The recipient; None if the copy is for all."""


class RowBuilder:
    """The writer of the log takes ``rows`` and replaces it."""

    def __init__(
        self, pseudonyms: Pseudonyms, own_id: ParticipantId, *, from_nothing: bool = False
    ) -> None:
        """``from_nothing``: all conversations start empty, and nodes are bare."""
        self._pseudonyms = pseudonyms
        self._own_id = own_id
        self._from_nothing = from_nothing
        self._begins_empty = from_nothing
        self._channels: dict[Which, ChannelRows] = {}
        self.rows = Rows()

    def take_rows(self) -> Rows:
        taken, self.rows = self.rows, Rows()
        for channel in self._channels.values():
            channel.write_to(self.rows)
        return taken

    # --- what happened ------------------------------------------------------------------------

    def took(
        self,
        which: Which,
        steps: Iterable[Step],
        writes: Sequence[StoreWrite],
        *,
        mono_ns: int,
        via: Via,
    ) -> None:
        """Add the steps of a session and its writes, in order."""
        channel = self._channel(which)
        channel.mono_ns, channel.via, channel.arrived = mono_ns, via, None
        placed = [w.message for w in writes if isinstance(w, PutMessage) and not w.message.waiting]
        sent_ms = {row.position.message_id: row.sent_ms for row in placed}
        annotations = [w.annotation for w in writes if isinstance(w, PutAnnotation)]
        sent_ms |= {each.position.message_id: each.sent_ms for each in annotations}
        at_ms = UnixMs(0)
        for step in steps:
            at_ms = step.at_ms
            match step:
                case Arrived():
                    channel.arrived = step
                case Refused():
                    channel.refused(step.at_ms, step.reason)
                case SdsStep():
                    add_sds(channel, step, sent_ms, bare=self._from_nothing)
                case MvdsStep():
                    add_mvds(channel, step, bare=self._from_nothing)
        if which.protocol is Protocol.MVDS:
            for row in placed:
                message_id, lamport = row.position.message_id, row.position.lamport_timestamp
                if channel.place(at_ms or row.received_ms, message_id, lamport, row.sender_id):
                    channel.add_message(message_id, lamport, row.sender_id, sent_ms=row.sent_ms)
        members = [write.member for write in writes if isinstance(write, PutMember)]
        if members:
            self.members(which, members)

    def published(self, which: Which, copy: Copy, *, at_ms: UnixMs, mono_ns: int, via: Via) -> None:
        channel = self._channel(which)
        channel.mono_ns = mono_ns
        channel.published(
            at_ms,
            copy.purpose,
            message_ids=copy.message_ids,
            repairs=copy.repairs,
            waku_hash=copy.waku_hash,
            wire_bytes=copy.wire_bytes,
            peers=copy.peers,
            to=copy.to,
            via=via,
        )

    def asks(self, which: Which, query: int | None) -> None:
        """Store results that follow belong to this query; None: no more of them."""
        self._channel(which).query = query

    def asked(  # noqa: PLR0913 - keyword-only: all that is known of a query
        self,
        which: Which,
        query: int,
        *,
        hashes: int,
        end: str,
        at_ms: UnixMs,
        mono_ns: int,
    ) -> None:
        """A Store query is over."""
        channel = self._channel(which)
        channel.mono_ns = mono_ns
        channel.add(Kind.STORE_QUERY, at_ms, attempt=query, amount=hashes, detail=end)

    def fault(  # noqa: PLR0913 - keyword-only: all that is known of it
        self,
        which: Which,
        what: str,
        *,
        message_id: MessageId | None,
        waku_hash: WakuHash | None,
        wire_bytes: int | None,
        amount: int | None,
        at_ms: UnixMs,
        mono_ns: int,
    ) -> None:
        """Something was done to a copy on purpose."""
        channel = self._channel(which)
        channel.mono_ns = mono_ns
        channel.add(
            Kind.FAULT,
            at_ms,
            message_id,
            waku_hash=waku_hash,
            wire_bytes=wire_bytes,
            amount=amount,
            detail=what,
        )

    def note(  # noqa: PLR0913 - keyword-only: all that is known of it
        self,
        kind: Kind,
        *,
        at_ms: int,
        mono_ns: int,
        waku_hash: WakuHash | None = None,
        wire_bytes: int | None = None,
        amount: int | None = None,
        detail: str | None = None,
    ) -> None:
        """Add a row about the whole profile."""
        self.rows.events.append(
            EventRow(
                kind=kind.value,
                at_ms=at_ms,
                mono_ns=mono_ns,
                waku_hash=waku_hash,
                wire_bytes=wire_bytes,
                amount=amount,
                detail=detail,
            )
        )

    def note_first(self, kind: Kind, *, at_ms: int, amount: int) -> None:
        """Add a row before all rows not taken yet."""
        first = self.rows.events[0].mono_ns if self.rows.events else 0
        row = EventRow(kind=kind.value, at_ms=at_ms, mono_ns=first, amount=amount)
        self.rows.events.insert(0, row)

    # --- snapshots ----------------------------------------------------------------------------

    def begin(self, which: Which, before: Iterable[LoggedMessage]) -> None:
        """Take the messages from before the recording."""
        self._channel(which).order.begin(logged.position for logged in before)

    def all_begun(self) -> None:
        """Conversations that appear from now on start empty."""
        self._begins_empty = True

    def snapshot(
        self, which: Which, logged: Sequence[LoggedMessage], *, at_ms: UnixMs, mono_ns: int
    ) -> None:
        """Add a conversation in its final order."""
        places = [one.position for one in logged]
        self.snapshot_rows(which, places, at_ms=at_ms, mono_ns=mono_ns)
        channel = self._channel(which)
        for one in logged:
            lamport, message_id = one.position.lamport_timestamp, one.position.message_id
            channel.add_message(message_id, lamport, one.sender_id, sent_ms=one.sent_ms)

    def snapshot_rows(
        self, which: Which, places: Sequence[Position], *, at_ms: UnixMs, mono_ns: int
    ) -> None:
        channel = self._channel(which)
        channel.mono_ns = mono_ns
        for number, (lamport, message_id) in enumerate(map(_parts_of, places)):
            mid = mid_of(message_id)
            self.rows.snapshots.append(
                SnapshotRow(
                    channel.channel, channel.protocol, at_ms, number, message_id, mid, lamport
                )
            )
        channel.add(Kind.SNAPSHOT, at_ms, amount=len(places))

    def members(self, which: Which, members: Iterable[MemberRecord]) -> None:
        self.member_rows(which, ((m.participant_id, m.joined_ms, m.left_ms) for m in members))

    def member_rows(
        self, which: Which, members: Iterable[tuple[ParticipantId, int, int | None]]
    ) -> None:
        """Add members: id, time of joining, and time of leaving or None."""
        channel = self._channel(which)
        for participant_id, joined_ms, left_ms in members:
            self.rows.memberships.append(
                MembershipRow(
                    channel.channel,
                    channel.protocol,
                    self._pseudonyms.participant(participant_id),
                    max(joined_ms, 0),
                    left_ms,
                )
            )

    def _channel(self, which: Which) -> ChannelRows:
        channel = self._channels.get(which)
        if channel is None:
            channel = self._channels[which] = ChannelRows(
                which.conversation_id,
                which.protocol,
                pseudonyms=self._pseudonyms,
                own_id=which.own_id or self._own_id,
                order=Order(is_known=self._begins_empty),
                rows=self.rows,
            )
        return channel


def _parts_of(position: Position) -> tuple[int, MessageId]:
    return position.lamport_timestamp, position.message_id
