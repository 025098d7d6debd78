"""The MVDS node: 2/MVDS as a state machine, composed from its parts.

It takes inputs with the time and returns transitions.  A transition's writes must be durable before
its sends are performed and its events shown.  After a storage error the machine is ahead of the
disk: discard it and build it again from ``MvdsState``.  The node does not encode, seal or carry
payloads, holds no bodies, and does not order messages; that is the reader's task.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.errors import LocalProtocolError
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.peer import Peer
from engine.core.mvds.receiver import IdOf, Receiver
from engine.core.mvds.records import Records
from engine.core.mvds.sender import Sender
from engine.core.mvds.step import MvdsStep
from engine.core.mvds.vocabulary import (
    AppendMessage,
    ConnectivityChanged,
    DeadlineReached,
    Epoch,
    GroupId,
    Input,
    KeepMessage,
    MvdsId,
    MvdsState,
    MvdsTransition,
    PayloadReceived,
    PeerSeen,
    Record,
    RecordsLoaded,
    RecordType,
    ResendRequested,
)

SET_BACK_EPOCHS = 60
"""Occasional clock corrections are smaller than this."""


class MvdsNode:
    """One participant's side of its groups."""

    def __init__(  # noqa: PLR0913 - all that a sans-I/O machine may not fetch itself is handed in
        self,
        own_id: ParticipantId,
        *,
        config: MvdsConfig,
        id_of: IdOf,
        groups: Mapping[GroupId, frozenset[ParticipantId]],
        random_unit: RandomUnit,
        state: MvdsState,
        online: bool,
        now_ms: UnixMs,
        counters: Counters | None = None,
    ) -> None:
        """``groups`` maps each group to its members, with or without us."""
        counters = counters if counters is not None else Counters()
        peer_ids = frozenset[ParticipantId]().union(*groups.values()) - {own_id}
        self._config = config
        self._id_of = id_of
        self._groups = {group_id: members - {own_id} for group_id, members in groups.items()}
        self._peers = {peer_id: Peer(peer_id, config.generation) for peer_id in sorted(peer_ids)}
        self._online = online
        self._epoch = Epoch(now_ms // config.epoch_ms)
        self._records = Records(self._peers, config=config, state=state, counters=counters)
        self._sender = Sender(self._records, config=config, random_unit=random_unit)
        self._receiver = Receiver(
            self._records,
            self._sender,
            peers=self._peers,
            groups=self._groups,
            held=state.held,
            id_of=id_of,
            config=config,
            counters=counters,
        )
        self._answered = self._answered_requests(state.records)
        for peer_id, message_id in state.pending_acks:
            peer = self._peers.get(peer_id)
            if peer is not None:
                peer.acks[message_id] = True
                self._sender.restore(peer)

    # --- the entry points ---

    def handle(self, input_: Input, *, now_ms: UnixMs) -> MvdsTransition:
        """Take one input.

        Raises RemoteProtocolError for a payload to be dropped, having changed nothing.  Raises
        LocalProtocolError for a request that is not allowed.
        """
        before, self._epoch = self._epoch, Epoch(now_ms // self._config.epoch_ms)
        if self._epoch < before - SET_BACK_EPOCHS:
            self._sender.clock_set_back(self._peers.values(), self._epoch)
        step = MvdsStep(now_ms, self._epoch)
        match input_:
            case PayloadReceived():
                self._receiver.receive(input_, step)
            case AppendMessage():
                self._append(input_, step)
            case DeadlineReached():
                pass  # Every input sends what is due.
            case PeerSeen(peer_id=peer_id):
                self._seen(peer_id, step)
            case ConnectivityChanged(online=online):
                self._online = online
            case ResendRequested():
                self._resend(input_, step)
            case RecordsLoaded():
                self._loaded(input_, step)
            case _:
                assert_never(input_)
        self._drop_answered(step)
        if self._online:
            self._sender.flush(step)
        self._sender.settle(step)
        self._records.ask(step, hurry=self._online and self._sender.hungry)
        return step.transition()

    def next_deadline(self) -> UnixMs | None:
        """When ``DeadlineReached`` is due next; None if not before another input."""
        if not self._online:
            return None
        epochs = (self._sender.next_epoch(), self._records.next_load())
        epoch = min((epoch for epoch in epochs if epoch is not None), default=None)
        return None if epoch is None else UnixMs(epoch * self._config.epoch_ms)

    def is_held(self, message_id: MvdsId) -> bool:
        """Whether we ever received it."""
        return message_id in self._receiver.held

    @property
    def awaits(self) -> bool:
        """Whether any message of ours is unacknowledged, even if it is only on disk."""
        return self._records.has_own or not self._records.complete

    def is_awaited(self, message_id: MvdsId) -> bool:
        """Whether a message of ours is still being sent to a peer, judging by memory alone."""
        lives = (peer.live.get(message_id) for peer in self._peers.values())
        return self._records.is_own(message_id) and any(
            live is not None and not live.record.given_up for live in lives
        )

    @property
    def waiting(self) -> int:
        """Records in memory: what is still to be offered, requested or sent."""
        return len(self._records)

    def snapshot(self) -> MvdsState:
        """Everything durable that is in memory, for audits and tests; costs O(records)."""
        return MvdsState(
            records=tuple(
                live.record for peer in self._peers.values() for live in peer.live.values()
            ),
            loaded_before=self._records.loaded_before,
            pending_acks=tuple(
                (peer.peer_id, message_id)
                for peer in self._peers.values()
                for message_id in peer.acks
            ),
            held=frozenset(self._receiver.held),
        )

    # --- inputs ---

    def _append(self, input_: AppendMessage, step: MvdsStep) -> None:
        message, peer_ids = input_.message, dict.fromkeys(input_.peer_ids)
        members = self._groups.get(message.group_id)
        if members is None or not peer_ids or not members.issuperset(peer_ids):
            raise LocalProtocolError("a message goes to members of its group")
        if len(message.body) > self._config.max_body_bytes:
            raise LocalProtocolError("the body is larger than a payload may be")
        if len(self._records) + len(peer_ids) > self._config.max_live:
            raise LocalProtocolError("too many unacknowledged messages")
        message_id = self._id_of(message)
        if self._records.is_own(message_id) or message_id in self._receiver.held:
            raise LocalProtocolError("there is a message with this id already: bodies need a nonce")
        step.kept.append(KeepMessage(message_id, message))
        for peer_id in peer_ids:
            peer = self._peers[peer_id]
            record = Record(
                peer_id,
                message_id,
                self._sender.first_type(len(message.body)),
                0,
                Epoch(step.epoch + 1),
                len(message.body),
                step.now_ms,
            )
            self._records.create(peer, record, step)
            self._sender.send_fresh(peer, record, step)

    def _seen(self, peer_id: ParticipantId, step: MvdsStep) -> None:
        peer = self._peer(peer_id)
        again_ms = self._config.seen_again_ms
        if peer.seen_ms is None or not 0 <= step.now_ms - peer.seen_ms < again_ms:
            peer.seen_ms = step.now_ms
            self._sender.bring_forward(peer)

    def _resend(self, input_: ResendRequested, step: MvdsStep) -> None:
        peer = self._peer(input_.peer_id)
        if not self._receiver.resend(peer, input_.message_id, step):
            raise LocalProtocolError("there is no such unacknowledged message")

    def _loaded(self, input_: RecordsLoaded, step: MvdsStep) -> None:
        loaded = self._records.loaded(input_)
        self._answered += self._answered_requests(loaded)
        for record in loaded:
            peer = self._peers[record.peer_id]
            if peer.forwarding:
                peer.forward.append(record.message_id)
        self._receiver.loaded(input_.asked_ids, step)

    def _answered_requests(self, records: Sequence[Record]) -> list[Record]:
        """REQUESTs that were only on disk when their message arrived."""
        held = self._receiver.held
        return [
            record
            for record in records
            if record.type is RecordType.REQUEST and record.message_id in held
        ]

    def _drop_answered(self, step: MvdsStep) -> None:
        for record in self._answered:
            peer = self._peers.get(record.peer_id)
            if peer is not None and record.message_id in peer.live:
                self._records.remove(peer, record.message_id, step)
        self._answered.clear()

    def _peer(self, peer_id: ParticipantId) -> Peer:
        peer = self._peers.get(peer_id)
        if peer is None:
            raise LocalProtocolError("no such peer")
        return peer
