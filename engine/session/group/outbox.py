"""Turns what SDS sends in a group into sealed Waku messages, in the right epoch.

What was said is sealed in the epoch that it was signed in, however often it is sent.  In a governed
group that has no epoch to write in at the moment, what says only who holds what, or who is typing,
is not sent, since it is not worth a fresh key; what people said waits for one.
"""

from typing import assert_never

from engine.core.counters import Counters
from engine.core.ids import MessageId, UnixMs
from engine.core.sds.vocabulary import AskStore, Broadcast, BroadcastRepair, Send, SendPurpose
from engine.crypto.sealed import SealedGroup
from engine.session.clock import SessionClock
from engine.session.group.governed import GovernedPart
from engine.session.group.people import GroupPeople
from engine.session.group.wire import GroupWire
from engine.session.transitions import LoadForRepair, Publish, SessionSend


class GroupOutbox:
    def __init__(
        self,
        wire: GroupWire,
        people: GroupPeople,
        clock: SessionClock,
        counters: Counters,
        governed: GovernedPart | None,
    ) -> None:
        self._wire = wire
        self._people = people
        self._clock = clock
        self._counters = counters
        self.governed = governed

    def _may_seal_in(self, epoch_id: bytes) -> bool:
        return self.governed is None or self.governed.keys.is_good(epoch_id)

    def outgoing(self, send: Send, *, now_ms: UnixMs) -> SessionSend | None:
        match send:
            case BroadcastRepair():
                return LoadForRepair(message_id=send.message_id)
            case Broadcast():
                return self._broadcast(send, now_ms=now_ms)
            case AskStore():
                return send
            case _:
                assert_never(send)

    def _broadcast(self, send: Broadcast, *, now_ms: UnixMs) -> Publish | None:
        tracked = send.purpose in {SendPurpose.CONTENT, SendPurpose.RETRANSMISSION}
        if not tracked and not self._may_seal_in(SealedGroup.epoch_of(send.raw)):
            self._counters.add("group.no_epoch_to_write_in")
            return None
        if tracked and self._holds_back(send.message_id, send.raw):
            return None
        return self._wire.publish(
            send.raw,
            send.purpose,
            statements=self._people.statements(self._people.own_id),
            clock_ms=self._clock.at(now_ms),
            message_id=send.message_id if tracked else None,
        )

    def _holds_back(self, message_id: MessageId, raw: bytes) -> bool:
        return self.governed is not None and self.governed.holds_back(message_id, raw)

    def repair(self, message_id: MessageId, raw: bytes, *, now_ms: UnixMs) -> Publish | None:
        """Wrap a signed part, another member's as a rule, as we hold it, in our own signature.

        None for what waits to be signed anew: it is sent then.
        """
        if self._holds_back(message_id, raw):
            return None
        clock_ms = self._clock.at(now_ms)
        signed, author = self._wire.wrap_repair(raw, clock_ms=clock_ms)
        return self._wire.publish(
            signed,
            SendPurpose.RETRANSMISSION,
            statements=self._people.statements(self._people.own_id, author),
            clock_ms=clock_ms,
        )
