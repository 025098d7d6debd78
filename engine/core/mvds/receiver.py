"""Applies a received payload to the state: 2/MVDS, the receiving halves of both modes.

Acknowledgements come first, then requests, offers, messages: an acknowledged message is not sent
again for a request in the same payload.  All checks precede any change, so a payload that breaks a
rule leaves no trace.  A message is delivered once and acknowledged as often as it arrives.  An
offer of a message that we hold is acknowledged.  An unknown id does not stop the rest.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ParticipantId
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.peer import Live, Peer
from engine.core.mvds.records import Records
from engine.core.mvds.sender import Sender
from engine.core.mvds.step import Key, MvdsStep
from engine.core.mvds.vocabulary import (
    Acknowledged,
    Epoch,
    GroupId,
    MvdsDelivered,
    MvdsId,
    MvdsMessage,
    NoteHeld,
    PayloadReceived,
    Record,
    RecordType,
)

IdOf: TypeAlias = Callable[[MvdsMessage], MvdsId]
"""Raises RemoteProtocolError for a message that has no id."""


class About(Enum):
    """Why to look up a record that is still on disk."""

    ACK = auto()
    REQUEST = auto()
    RESEND = auto()


class Receiver:
    """Handles the payloads of peers, and the user's requests to resend."""

    def __init__(  # noqa: PLR0913 - the parts of one machine
        self,
        records: Records,
        sender: Sender,
        *,
        peers: Mapping[ParticipantId, Peer],
        groups: Mapping[GroupId, frozenset[ParticipantId]],
        held: Iterable[MvdsId],
        id_of: IdOf,
        config: MvdsConfig,
        counters: Counters,
    ) -> None:
        self.held = set(held)
        self._records = records
        self._sender = sender
        self._peers = peers
        self._groups = groups
        self._id_of = id_of
        self._config = config
        self._counters = counters
        self._awaited: dict[Key, set[About]] = {}

    def receive(self, received: PayloadReceived, step: MvdsStep) -> None:
        """Take a payload.

        Raises RemoteProtocolError ``mvds_unknown_peer`` or ``mvds_foreign_group``.
        """
        peer, payload = self._peers.get(received.peer_id), received.payload
        if peer is None:
            raise RemoteProtocolError("mvds_unknown_peer")
        messages = [(self._checked_id(message, peer), message) for message in payload.messages]
        peer.heard_ms = step.now_ms
        if not (payload.acks or payload.requests or payload.offers or messages):
            self._counters.add("mvds.empty_payload")
            return
        peer.generation = received.generation
        for message_id in payload.acks:
            self._about(About.ACK, peer, message_id, step)
        for message_id in payload.requests:
            self._about(About.REQUEST, peer, message_id, step)
        for message_id in payload.offers:
            self._offered(peer, message_id, step)
        for message_id, message in messages:
            self._take(peer, message_id, message, step)

    def resend(self, peer: Peer, message_id: MvdsId, step: MvdsStep) -> bool:
        """Send one of our messages again; False if there is none, not even perhaps on disk."""
        return self._about(About.RESEND, peer, message_id, step)

    def loaded(self, asked: Iterable[Key], step: MvdsStep) -> None:
        """Records came from disk: apply what was waiting for them."""
        answered = set(asked)
        for key, abouts in tuple(self._awaited.items()):
            peer, message_id = self._peers[key[0]], key[1]
            found = message_id in peer.live
            if not found and key not in answered:
                continue
            del self._awaited[key]
            for about in sorted(abouts, key=lambda about: about.value):
                if found:
                    self._about(about, peer, message_id, step)
                else:
                    self._unknown(about)

    def _checked_id(self, message: MvdsMessage, peer: Peer) -> MvdsId:
        if peer.peer_id not in self._groups.get(message.group_id, frozenset()):
            raise RemoteProtocolError("mvds_foreign_group")
        return self._id_of(message)

    # --- about our messages ---

    def _about(self, about: About, peer: Peer, message_id: MvdsId, step: MvdsStep) -> bool:
        live = peer.live.get(message_id)
        if live is None:
            return self._await(about, peer, message_id)
        if live.record.type is RecordType.REQUEST:
            return False
        match about:
            case About.ACK:
                self._records.remove(peer, message_id, step)
                step.events.append(Acknowledged(peer.peer_id, message_id))
            case About.REQUEST:
                if _may_be_requested(live, step.epoch):
                    self._renew(peer, live, RecordType.MESSAGE, step)
            case About.RESEND:
                kind = self._sender.first_type(live.record.body_bytes)
                self._renew(peer, live, kind, step)
            case _:
                assert_never(about)
        return True

    def _await(self, about: About, peer: Peer, message_id: MvdsId) -> bool:
        key = (peer.peer_id, message_id)
        if message_id in self.held or not self._records.want(key):
            self._unknown(about)
            return False
        self._awaited.setdefault(key, set()).add(about)
        return True

    def _unknown(self, about: About) -> None:
        """Count an id that matches no record of ours, and ignore it."""
        self._counters.add(f"mvds.unknown_{about.name.lower()}")

    def _renew(self, peer: Peer, live: Live, kind: RecordType, step: MvdsStep) -> None:
        """Start a record over.  If it was given up, its waiting time starts over, too."""
        record = live.record
        given_up = record.given_up
        fresh = replace(
            record,
            type=kind,
            send_count=0,
            send_epoch=Epoch(step.epoch + 1),
            created_ms=step.now_ms if given_up else record.created_ms,
            waited_epochs=0 if given_up else record.waited_until(step.epoch),
        )
        self._records.replace(live, fresh, step)
        self._sender.send_fresh(peer, fresh, step)

    # --- about theirs ---

    def _offered(self, peer: Peer, message_id: MvdsId, step: MvdsStep) -> None:
        if message_id in self.held or self._records.is_own(message_id):
            self.acknowledge(peer, message_id, step)
            return
        live = peer.live.get(message_id)
        if live is None:
            if peer.requests >= self._config.max_requests_per_peer:
                self._counters.add("mvds.too_many_requests")
                return
            record = Record(
                peer.peer_id,
                message_id,
                RecordType.REQUEST,
                0,
                Epoch(step.epoch + 1),
                0,
                step.now_ms,
            )
            self._records.create(peer, record, step)
            self._sender.send_fresh(peer, record, step)
        elif self._config.request_again and live.sent_epoch != step.epoch:
            self._sender.send_again(peer, live)

    def _take(self, peer: Peer, message_id: MvdsId, message: MvdsMessage, step: MvdsStep) -> None:
        self.acknowledge(peer, message_id, step)
        if message_id in self.held or self._records.is_own(message_id):
            self._counters.add("mvds.duplicate")
            return
        self.held.add(message_id)
        step.notes.append(NoteHeld(message_id))
        step.events.append(MvdsDelivered(peer.peer_id, message_id, message))
        for other in self._peers.values():
            if message_id in other.live:  # Others who offered it need not send it.
                self._records.remove(other, message_id, step)
                self.acknowledge(other, message_id, step)

    def acknowledge(self, peer: Peer, message_id: MvdsId, step: MvdsStep) -> None:
        self._sender.acknowledge(peer, message_id, step)


def _may_be_requested(live: Live, epoch: Epoch) -> bool:
    """Whether to send on request: it was offered, and is not already on its way as a message."""
    record = live.record
    if record.type is RecordType.MESSAGE:
        return record.given_up
    return record.send_count > 0 and live.message_epoch != epoch
