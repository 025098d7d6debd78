"""What both Go references answer, as a model: what they do with OFFERs, duplicates and repeats.

Facts about vacp2p/mvds (d6b27d3) and status-im/mvds (7bdc695), as their nodes in memory behave:

- An OFFER of a message that is held is ignored; any other adds a REQUEST, however many there are.
- A MESSAGE is acknowledged as often as it comes, and ends the REQUESTs for it.
- A REQUEST adds a MESSAGE beside the OFFER, which stays; an ACK ends all of them.
- Every payload that comes is answered in the next epoch, even if there is nothing to say.
- An epoch sends what is due in one payload.  The wait after the n-th time is 2 n epochs.
- status-im's drops what it sent more than 14 times.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.codec.mvds import decode_payload, encode_payload
from engine.codec.mvds_id import mvds_id_of
from engine.core.mvds.vocabulary import MvdsId, MvdsMessage, Payload, RecordType, WireGeneration

FORK_SENDS = 14


@dataclass(slots=True)
class _State:
    message_id: MvdsId
    type: RecordType
    send_epoch: int
    send_count: int = 0


class ReferencePeer:
    """A node of a reference in a group of two.  Bytes go in and come out."""

    def __init__(self, generation: WireGeneration, *, offers: bool) -> None:
        """The draft's generation is vacp2p's, the RFC's is status-im's.  ``offers``: its mode."""
        self.held: dict[MvdsId, MvdsMessage] = {}
        self.own: set[MvdsId] = set()
        self._generation = generation
        self._first = RecordType.OFFER if offers else RecordType.MESSAGE
        self._epoch = 0
        self._states: list[_State] = []
        self._acks: list[MvdsId] = []
        self._answers = False

    @property
    def unacknowledged(self) -> set[MvdsId]:
        """Its own messages that it still sends."""
        return {state.message_id for state in self._states} & self.own

    def append(self, message: MvdsMessage) -> None:
        message_id = mvds_id_of(message)
        self.held[message_id] = message
        self.own.add(message_id)
        self._add(message_id, self._first)

    def receive(self, data: bytes) -> None:
        payload, _ = decode_payload(data)
        for message_id in payload.acks:
            self._remove(message_id)
        for message_id in payload.requests:
            if message_id in self.held:
                self._add(message_id, RecordType.MESSAGE)
        for message_id in payload.offers:
            if message_id not in self.held:
                self._add(message_id, RecordType.REQUEST)
        for message in payload.messages:
            message_id = mvds_id_of(message)
            self._remove(message_id)
            self.held[message_id] = message
            self._acks.append(message_id)
        self._answers = True

    def end_epoch(self) -> bytes | None:
        """Its payload, if there is one.  Nothing but acknowledgements may be nothing at all."""
        due = [state for state in self._states if state.send_epoch <= self._epoch]
        for state in due:
            state.send_count += 1
            state.send_epoch = self._epoch + 2 * state.send_count
        payload = Payload(
            tuple(self._acks),
            tuple(_ids(due, RecordType.OFFER)),
            tuple(_ids(due, RecordType.REQUEST)),
            tuple(self.held[message_id] for message_id in _ids(due, RecordType.MESSAGE)),
        )
        answers, self._answers, self._acks = self._answers, False, []
        if self._generation is WireGeneration.RFC:
            self._states = [one for one in self._states if one.send_count <= FORK_SENDS]
        self._epoch += 1
        return encode_payload(payload, self._generation) if due or answers else None

    def _add(self, message_id: MvdsId, type_: RecordType) -> None:
        self._states.append(_State(message_id, type_, self._epoch + 1))

    def _remove(self, message_id: MvdsId) -> None:
        self._states = [one for one in self._states if one.message_id != message_id]


def _ids(states: Iterable[_State], type_: RecordType) -> list[MvdsId]:
    return [state.message_id for state in states if state.type is type_]
