"""Beside a reference nothing stays unacknowledged, in any mode, though it ignores some OFFERs."""

from heapq import heappop, heappush
from itertools import count

import pytest
from msgspec.structs import replace

from engine.codec.mvds import decode_payload, encode_payload
from engine.core.faults import SeededRandom
from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.vocabulary import (
    AppendMessage,
    DeadlineReached,
    MvdsTransition,
    Payload,
    PayloadReceived,
    WireGeneration,
)
from engine.session.pair.factory import PAIR_CONFIG
from tests.core.mvds.mvds_bench import BOB, NOW, Bench, payloads, text
from tests.core.mvds.reference_peer import ReferencePeer

MESSAGES = 100
EVERY_MS = 300
DELAY_MS = 60
PATIENCE_MS = 60_000
SMALL, LARGE = 1_000, 6_000


class Link:
    """Ours and a reference on a link that loses payloads both ways, on virtual time."""

    def __init__(
        self,
        config: MvdsConfig,
        reference: ReferencePeer,
        generation: WireGeneration,
        *,
        seed: int,
        loss: float,
    ) -> None:
        self.ours = Bench(config=replace(config, generation=generation))
        self.reference = reference
        self.sizes: dict[int, int] = {}
        self._random = SeededRandom(seed, "link")
        self._loss = loss
        self._events: list[tuple[int, int, bytes | None, bool]] = []
        """(time, serial, a payload, whether it is for us); None: an epoch of theirs ends."""
        self._serial = count()
        self._push(NOW + 500, None, for_us=False)

    def say(self, number: int, size: int) -> None:
        self.sizes[number] = size
        message = text(number, size)
        self._carry(self.ours.handle(AppendMessage(message=message, peer_ids=(BOB,))))

    def run_until(self, end_ms: int) -> None:
        while True:
            deadline_ms = self.ours.node.next_deadline()
            at_ms = self._events[0][0]
            if deadline_ms is not None and deadline_ms < min(at_ms, end_ms):
                self.ours.now_ms = max(self.ours.now_ms, deadline_ms)
                self._carry(self.ours.handle(DeadlineReached()))
                continue
            if at_ms >= end_ms:
                self.ours.now_ms = end_ms
                return
            self.ours.now_ms = max(self.ours.now_ms, at_ms)
            self._happen(*heappop(self._events))

    def _happen(self, at_ms: int, _serial: int, data: bytes | None, for_us: bool) -> None:
        if data is None:
            sent = self.reference.end_epoch()
            if sent is not None:
                self._transmit(sent, for_us=True)
            self._push(at_ms + 1_000, None, for_us=False)
        elif for_us:
            payload, generation = decode_payload(data)
            received = PayloadReceived(peer_id=BOB, payload=payload, generation=generation)
            self._carry(self.ours.handle(received))
        else:
            self.reference.receive(data)

    def _carry(self, transition: MvdsTransition) -> None:
        for send in payloads(transition):
            bodies = (self.ours.store.bodies[message_id] for message_id in send.message_ids)
            payload = Payload(send.acks, send.offers, send.requests, tuple(bodies))
            self._transmit(encode_payload(payload, send.generation), for_us=False)

    def _transmit(self, data: bytes, *, for_us: bool) -> None:
        if self._random() >= self._loss:
            self._push(self.ours.now_ms + DELAY_MS, data, for_us=for_us)

    def _push(self, at_ms: int, data: bytes | None, *, for_us: bool) -> None:
        heappush(self._events, (at_ms, next(self._serial), data, for_us))


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("offers", [False, True], ids=["their batch", "their interactive"])
@pytest.mark.parametrize("generation", list(WireGeneration))
@pytest.mark.parametrize("mode", list(Mode))
def test_after_a_minute_nothing_is_unacknowledged(
    mode: Mode, generation: WireGeneration, offers: bool, size: int
) -> None:
    for seed in range(1, 6):
        reference = ReferencePeer(generation, offers=offers)
        link = Link(replace(PAIR_CONFIG, mode=mode), reference, generation, seed=seed, loss=0.2)
        for number in range(MESSAGES):
            link.run_until(NOW + number * EVERY_MS)
            link.say(number, size)
            if number % 2:
                reference.append(text(1_000 + number))
        link.run_until(NOW + MESSAGES * EVERY_MS + PATIENCE_MS)
        unacknowledged = [
            record for record in link.ours.store.records.values() if record.body_bytes
        ]
        assert len(reference.held) == MESSAGES + MESSAGES // 2, seed
        assert unacknowledged == [], seed
        link.run_until(NOW + MESSAGES * EVERY_MS + 5 * PATIENCE_MS)
        assert reference.unacknowledged == set(), f"{seed}: with its own back-off"
