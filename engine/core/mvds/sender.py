"""Decides when a payload is sent and what is in it: 2/MVDS, Flow and Retransmission.

At most one regular payload per peer and epoch holds all that waits: acknowledgements, new records,
those due again, those brought forward.  A few payloads with only new things may go ahead of the
next epoch, so that a quick exchange does not wait for the clock.  Every send raises ``send_count``
and ``send_epoch``.  Offline, nothing is sent and nothing counts as an attempt.
"""

from collections import deque
from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from engine.core.entropy import RandomUnit
from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.packing import ID_ENTRY_BYTES, Packing
from engine.core.mvds.peer import UNSENT, Live, Peer
from engine.core.mvds.records import Records
from engine.core.mvds.step import MvdsStep
from engine.core.mvds.vocabulary import (
    NEVER,
    Epoch,
    GivenUp,
    MvdsId,
    PutPendingAck,
    Record,
    RecordType,
    RemovePendingAck,
)


class Sender:
    """Sends to the peers for which something waits."""

    def __init__(self, records: Records, *, config: MvdsConfig, random_unit: RandomUnit) -> None:
        self._records = records
        self._config = config
        self._random_unit = random_unit
        self._waiting: dict[Peer, None] = {}
        self._new_acks: list[tuple[Peer, MvdsId]] = []

    # --- waiting records ---

    def first_type(self, body_bytes: int) -> RecordType:
        """The record type with which a message of ours starts."""
        match self._config.mode:
            case Mode.BATCH:
                return RecordType.MESSAGE
            case Mode.INTERACTIVE:
                return RecordType.OFFER
            case Mode.MIXED:
                small = body_bytes <= self._config.batch_up_to_bytes
                return RecordType.MESSAGE if small else RecordType.OFFER
            case _:
                assert_never(self._config.mode)

    def send_fresh(self, peer: Peer, record: Record, step: MvdsStep) -> None:
        """Send a record never sent with its present type: at once, or with the next epoch."""
        peer.due.pop(record.message_id, None)
        peer.fresh[record.message_id] = None
        self._note(peer, step.epoch)

    def send_again(self, peer: Peer, live: Live) -> None:
        """Repeat a record early, with the next regular payload."""
        if live.record.message_id not in peer.fresh:
            peer.due[live.record.message_id] = None
            self._waiting[peer] = None

    def acknowledge(self, peer: Peer, message_id: MvdsId, step: MvdsStep) -> None:
        if message_id not in peer.acks:
            peer.acks[message_id] = False
            self._new_acks.append((peer, message_id))
            self._note(peer, step.epoch)

    def bring_forward(self, peer: Peer) -> None:
        """Send early all that waits for a peer that is online now, in order of creation."""
        peer.forward = deque(peer.live)
        peer.forwarding = bool(peer.forward) or not self._records.complete
        self._waiting[peer] = None

    def clock_set_back(self, peers: Iterable[Peer], epoch: Epoch) -> None:
        """Notes about future epochs are meaningless now, so everything is sent once more."""
        for peer in peers:
            peer.open_epoch = min(peer.open_epoch, Epoch(epoch + 1))
            for live in peer.live.values():
                live.sent_epoch = live.message_epoch = UNSENT
            self.bring_forward(peer)

    def restore(self, peer: Peer) -> None:
        """Acknowledgements that waited before a restart wait no longer."""
        self._waiting[peer] = None

    def _note(self, peer: Peer, epoch: Epoch) -> None:
        if peer not in self._waiting:
            self._waiting[peer] = None
            peer.open_epoch = max(peer.open_epoch, Epoch(epoch + 1))

    @property
    def hungry(self) -> bool:
        """Whether a peer that was seen has nothing left in memory, but perhaps on disk."""
        return any(peer.forwarding and not peer.forward for peer in self._waiting)

    def next_epoch(self) -> Epoch | None:
        epochs = [peer.open_epoch for peer in self._waiting if peer.waiting]
        scheduled = self._records.schedule.next_epoch()
        if scheduled is not None:
            epochs.append(scheduled)
        return min(epochs, default=None)

    # --- sending ---

    def flush(self, step: MvdsStep) -> None:
        """Send all that may go now."""
        for peer, message_id in self._records.schedule.take_due(step.epoch):
            live = peer.live[message_id]
            place = peer.due if live.record.send_count else peer.fresh
            place[message_id] = None
            self._waiting[peer] = None
        for peer in tuple(self._waiting):
            self._flush_peer(peer, step)

    def settle(self, step: MvdsStep) -> None:
        """Write acknowledgements that did not go with this step's payloads."""
        for peer, message_id in self._new_acks:
            if peer.acks.get(message_id) is False:
                peer.acks[message_id] = True
                step.notes.append(PutPendingAck(peer.peer_id, message_id))
        self._new_acks.clear()

    def _flush_peer(self, peer: Peer, step: MvdsStep) -> None:
        if peer.waiting:
            if peer.open_epoch <= step.epoch:
                self._send(peer, step, only_new=False)
            elif (peer.fresh or peer.acks) and peer.take_at_once(
                step.epoch, self._config.at_once_per_epoch
            ):
                self._send(peer, step, only_new=True)
        if self._records.complete and not peer.forward:
            peer.forwarding = False
        if not peer.waiting and not peer.forwarding:
            del self._waiting[peer]

    def _send(self, peer: Peer, step: MvdsStep, *, only_new: bool) -> None:
        packing = Packing(self._config.max_payload_bytes)
        spare = min(len(peer.acks), self._config.acks_beside_records) * ID_ENTRY_BYTES
        self._pack(peer, peer.fresh, packing, step, spare)
        if not only_new:
            self._pack(peer, peer.due, packing, step, spare)
            self._pack_forward(peer, packing, step, spare)
        _pack_acks(peer, packing, step)
        payload = packing.payload(peer)
        if payload is not None:
            step.sends.append(payload)
        if not only_new:
            peer.open_epoch = Epoch(step.epoch + 1)

    def _pack(
        self,
        peer: Peer,
        waiting: dict[MvdsId, None],
        packing: Packing,
        step: MvdsStep,
        spare: int,
    ) -> None:
        sent, expired = [], []
        is_heard = self._is_heard(peer, step)
        config = self._config
        patience = config.give_up_after_ms // config.epoch_ms
        for message_id in waiting:
            live = peer.live[message_id]
            record = live.record
            if record.waited_epochs >= patience and live.sent_epoch != UNSENT:
                expired.append(live)  # Tried for too long, and at least once in this run.
                continue
            if self._goes_whole(record, is_heard=is_heard):
                record = replace(record, type=RecordType.MESSAGE)
            if not packing.take(record, spare):
                break
            is_prompt = is_heard and record.send_count < config.heard_repeats
            at_most = config.heard_retry_epochs if is_prompt else None
            self._note_sent(peer, live, record, step, at_most=at_most)
            sent.append(message_id)
        for message_id in sent:
            del waiting[message_id]
        for live in expired:
            self._give_up(peer, live, step)

    def _is_heard(self, peer: Peer, step: MvdsStep) -> bool:
        """Whether the peer seems to be online."""
        heard_ms = peer.heard_ms
        return heard_ms is not None and step.now_ms - heard_ms <= self._config.heard_lately_ms

    def _goes_whole(self, record: Record, *, is_heard: bool) -> bool:
        """Whether to send the message where its repeat would be an OFFER.

        A small one to a peer that is online costs about the same, and two trips less.  Any other
        goes after some OFFERs that were not answered.
        """
        config, sends = self._config, record.send_count
        if record.type is not RecordType.OFFER or not sends:
            return False
        is_small = record.body_bytes <= config.batch_up_to_bytes
        if is_heard and is_small and config.mode is Mode.MIXED and sends <= config.heard_repeats:
            return True
        offers = config.offers_unanswered[0 if is_heard else 1]
        rounds, left = divmod(sends, offers + 1)
        return bool(offers) and not left and (is_heard or rounds.bit_count() == 1)

    def _pack_forward(self, peer: Peer, packing: Packing, step: MvdsStep, spare: int) -> None:
        config, forward = self._config, peer.forward
        while forward:
            live = peer.live.get(forward[0])
            if live is None or live.record.given_up or self._is_spared(live, step.epoch):
                forward.popleft()
            elif packing.take(live.record, spare):
                peer.due.pop(forward.popleft(), None)
                self._note_sent(peer, live, live.record, step, at_most=config.seen_retry_epochs)
            else:
                return

    def _is_spared(self, live: Live, epoch: Epoch) -> bool:
        return live.sent_epoch != UNSENT and (
            live.sent_epoch + self._config.seen_spares_epochs >= epoch
        )

    def _note_sent(
        self,
        peer: Peer,
        live: Live,
        record: Record,
        step: MvdsStep,
        at_most: int | None = None,
    ) -> None:
        """Schedule the next attempt of a record just sent; ``record`` says as what."""
        count, kind = record.send_count + 1, live.record.type
        wait = self._config.backoff(count, self._random_unit)
        if at_most is not None:
            wait = min(wait, at_most)
        live.sent_epoch = step.epoch
        if record.type is RecordType.MESSAGE:
            live.message_epoch = step.epoch
            if self._config.mode is Mode.MIXED:
                kind = RecordType.OFFER  # Repeats are offers, until a REQUEST.
        changed = Record(
            record.peer_id,
            record.message_id,
            kind,
            count,
            Epoch(step.epoch + wait),
            record.body_bytes,
            record.created_ms,
            record.waited_until(step.epoch) + wait,
        )
        self._records.replace(live, changed, step)
        self._records.schedule.add(peer, changed)

    # --- giving up ---

    def _give_up(self, peer: Peer, live: Live, step: MvdsStep) -> None:
        record = live.record
        if record.type is RecordType.REQUEST:
            self._records.remove(peer, record.message_id, step)
            return
        peer.fresh.pop(record.message_id, None)
        peer.due.pop(record.message_id, None)
        self._records.replace(live, replace(record, send_epoch=NEVER), step)
        step.events.append(GivenUp(peer.peer_id, record.message_id))


def _pack_acks(peer: Peer, packing: Packing, step: MvdsStep) -> None:
    sent = []
    for message_id in peer.acks:
        if not packing.take_ack(message_id):
            break
        sent.append(message_id)
    for message_id in sent:
        if peer.acks.pop(message_id):
            step.notes.append(RemovePendingAck(peer.peer_id, message_id))
