"""Two MVDS nodes in lockstep, epoch by epoch, as in the recorded traces and the model.

In every epoch both nodes send what they may; then what was not lost is received, and answers go in
the next epoch.  ``two_node`` repeats one message's life on a lossy link many times, for comparison
with the model's ``sim_two_node``.
"""

from collections.abc import Callable

from msgspec import Struct

from engine.core.faults import SeededRandom
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.node import MvdsNode
from engine.core.mvds.vocabulary import (
    AppendMessage,
    DeadlineReached,
    Epoch,
    GroupId,
    Input,
    MvdsDelivered,
    MvdsId,
    MvdsMessage,
    MvdsState,
    MvdsTransition,
    Payload,
    PayloadReceived,
    SendPayload,
)

A, B = ParticipantId("A"), ParticipantId("B")
GROUP = GroupId(b"two nodes, epoch by epoch: model")
LAST_EPOCH = 200_000
"""Where the model stopped counting."""

Lost = Callable[[ParticipantId, int], bool]
"""(sender, number of its payload from 1) → whether it is lost."""


class Lockstep:
    """A and B, their bodies, and what each received."""

    def __init__(self, config: MvdsConfig, id_of: Callable[[MvdsMessage], MvdsId]) -> None:
        self.config = config
        self.nodes = {
            name: MvdsNode(
                name,
                config=config,
                id_of=id_of,
                groups={GROUP: frozenset({A, B})},
                random_unit=lambda: 0.5,
                state=MvdsState(),
                online=True,
                now_ms=UnixMs(0),
            )
            for name in (A, B)
        }
        self._id_of = id_of
        self._bodies: dict[MvdsId, MvdsMessage] = {}

    def append(self, name: ParticipantId, body: bytes, epoch: int) -> None:
        message = MvdsMessage(GROUP, 0, body)
        self._bodies[self._id_of(message)] = message
        peer = B if name == A else A
        self._handle(name, AppendMessage(message=message, peer_ids=(peer,)), epoch)

    def send(self, epoch: int) -> list[SendPayload]:
        """What both send in this epoch, with the receiver's id."""
        return [
            send
            for name in (A, B)
            for send in self._handle(name, DeadlineReached(), epoch).sends
            if isinstance(send, SendPayload)
        ]

    def receive(self, send: SendPayload, epoch: int) -> list[MvdsId]:
        """Return what it delivers."""
        messages = tuple(self._bodies[message_id] for message_id in send.message_ids)
        payload = Payload(send.acks, send.offers, send.requests, messages)
        sender = B if send.peer_id == A else A
        received = PayloadReceived(peer_id=sender, payload=payload)
        events = self._handle(send.peer_id, received, epoch).events
        return [event.message_id for event in events if isinstance(event, MvdsDelivered)]

    def next_epoch(self) -> Epoch | None:
        deadlines = [node.next_deadline() for node in self.nodes.values()]
        first = min((at_ms for at_ms in deadlines if at_ms is not None), default=None)
        return None if first is None else Epoch(first // self.config.epoch_ms)

    def _handle(self, name: ParticipantId, input_: Input, epoch: int) -> MvdsTransition:
        return self.nodes[name].handle(input_, now_ms=UnixMs(epoch * self.config.epoch_ms))


class OneMessage(Struct, frozen=True, kw_only=True):
    """The life of one message; ``stop_epoch`` is None if it did not end in time."""

    receive_epoch: int | None
    stop_epoch: int | None
    message_copies: int
    payloads: int


def two_node(
    config: MvdsConfig, id_of: Callable[[MvdsMessage], MvdsId], *, loss: float, seed: int
) -> OneMessage:
    """Append in epoch 0; every payload is lost with the same probability, each way."""
    random = SeededRandom(seed, "two nodes")
    pair = Lockstep(config, id_of)
    pair.append(A, b"the message", 0)
    receive_epoch: int | None = None
    copies = payloads = 0
    epoch: int | None = 0
    while epoch is not None and epoch <= LAST_EPOCH:
        sends = pair.send(epoch)
        for send in sends:
            payloads += 1
            copies += len(send.message_ids)
            if random() >= loss and pair.receive(send, epoch) and receive_epoch is None:
                receive_epoch = epoch
        if not pair.nodes[A].snapshot().records:
            break
        epoch = pair.next_epoch()
    return OneMessage(
        receive_epoch=receive_epoch,
        stop_epoch=epoch if epoch is not None and epoch <= LAST_EPOCH else None,
        message_copies=copies,
        payloads=payloads,
    )
