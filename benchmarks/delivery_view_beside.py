"""What stands beside the delivery view in its benchmark: a message looked into, and the network.

Everything that can change does so from one reading to the next, as where much happens.
"""

from types import SimpleNamespace
from typing import Final, cast

from engine.answers import Arrival, HolderView
from engine.api import ChatEngine
from engine.core.ids import ConversationId, HolderSource, MessageId, ParticipantId, UnixMs
from engine.core.problems import ConnectionReason
from engine.events import ConnectionLevel, ConnectionView
from engine.fault_views import FaultsView
from engine.inspection_views import (
    AgainView,
    CopyView,
    FilterView,
    LinkView,
    MessageInspection,
    Occasion,
    PartView,
    SdsView,
    SentBy,
    Whereabouts,
)
from engine.network_views import (
    NetworkFacts,
    NetworkView,
    PeerView,
    PersonHeard,
    RelayView,
    ScoreView,
)

PEERS: Final = 64
_NAMES = 20


def inspected(
    group: ConversationId, message_id: MessageId, *, members: int, reading: int, at_ms: int
) -> MessageInspection:
    """A message of ours that more and more members hold and name, and that is sent again."""
    known = min(members - 1, reading // 2)
    return MessageInspection(
        conversation_id=group,
        message_id=message_id,
        whereabouts=Whereabouts.LOGGED,
        is_open=False,
        looked_ms=UnixMs(at_ms + 500 * reading),
        message=None,
        sender_id=ParticipantId("0" * 32),
        sender_name="Member 0",
        is_own=True,
        saved_ms=UnixMs(at_ms),
        arrival=Arrival.WRITTEN_HERE,
        copies=tuple(_copy(number, at_ms) for number in range(1, 2 + reading // 20)),
        again=AgainView(
            state="unacknowledged", attempts=reading, next_ms=UnixMs(at_ms + 30_000), accepted=True
        ),
        holders=tuple(_holder(number, number < known, at_ms) for number in range(1, members)),
        names=tuple(_link(f"n{number}") for number in range(3)),
        named_by=tuple(_link(f"b{number}") for number in range(min(reading, _NAMES))),
        named_by_complete=False,
        sds=SdsView(
            sender_id=ParticipantId("0" * 32),
            message_id=message_id,
            channel_id="0",
            lamport_timestamp=at_ms,
            causal_history=(MessageId("n0"), MessageId("n1"), MessageId("n2")),
            bloom_filter=FilterView(
                size=1_200, bits=9_600, fill=0.28, about_ids=312, false_probability=3e-6
            ),
            repair_request=(),
            content_size=71,
            signed_ms=UnixMs(at_ms),
            group_key=7,
        ),
        parts=tuple(PartView(name=name, size=60) for name in ("causal_history", "content")),
    )


def _copy(number: int, at_ms: int) -> CopyView:
    return CopyView(
        number=number,
        at_ms=UnixMs(at_ms + 10_000 * number),
        occasion=Occasion.FIRST if number == 1 else Occasion.UNACKNOWLEDGED,
        sent_by=SentBy.RELAY,
        peers=6,
        size=164,
        waku_hash="ab" * 32,
    )


def _holder(number: int, has: bool, at_ms: int) -> HolderView:
    return HolderView(
        participant_id=ParticipantId(f"{number:032x}"),
        name=f"Member {number}",
        certain=has,
        source=HolderSource.CAUSAL if has else None,
        since_ms=UnixMs(at_ms + 1_000 * number) if has else None,
        false_probability=None,
    )


def _link(name: str) -> LinkView:
    return LinkView(
        message_id=MessageId(name),
        whereabouts=Whereabouts.LOGGED,
        sender_id=ParticipantId("1".zfill(32)),
        sender_name="Member 1",
        position=None,
        is_shown=True,
    )


class Network:
    """Of which every row has changed at each look."""

    def __init__(self, at_ms: int) -> None:
        self._at_ms = at_ms
        self._looks = 0

    def as_engine(self) -> ChatEngine:
        """What the sheet asks an engine for, and no more."""
        faults = SimpleNamespace(view=FaultsView)
        return cast("ChatEngine", SimpleNamespace(network=self.look, faults=faults))

    def look(self) -> NetworkView:
        self._looks += 1
        people = tuple(self._person(number) for number in range(PEERS))
        return NetworkView(
            at_ms=UnixMs(self._at_ms),
            connection=ConnectionView(
                level=ConnectionLevel.GOOD,
                peers=PEERS,
                reason=ConnectionReason.PEERS,
                bytes_in=self._looks * 90_000,
                bytes_out=self._looks * 70_000,
            ),
            facts=NetworkFacts(peers=tuple(self._peer(number) for number in range(PEERS))),
            addresses=("/ip4/192.0.2.60/tcp/41313",),
            stores=(),
            people=people,
        )

    def _person(self, number: int) -> PersonHeard:
        return PersonHeard(
            participant_id=ParticipantId(f"{number:032x}"),
            name=f"Member {number}",
            conversations=(),
            heard_ms=UnixMs(self._at_ms - 1_000 * number - 977 * self._looks),
        )

    def _peer(self, number: int) -> PeerView:
        looks = self._looks
        return PeerView(
            peer_id=f"12D3KooW{number:044}",
            agent="nwaku/v0.36.0",
            protocols=("/vac/waku/relay/2.0.0", "/vac/waku/store-query/3.0.0"),
            address=f"/ip4/192.0.2.{number}/tcp/60000",
            outbound=True,
            is_kept=True,
            since_ms=UnixMs(self._at_ms - 3_600_000),
            silent_ms=looks % 7 * 300,
            bytes_in=812_000 + 90_000 * looks,
            bytes_out=94_000 + 70_000 * looks,
            connections=1,
            round_trip_ms=20 + (looks + number) % 30,
            measured_ago_ms=4_000,
            relay=RelayView(
                topics=1,
                meshed=looks % 2,
                of_topics=1,
                score=ScoreView(time_in_mesh=3.6 + looks, first_deliveries=8.0 + number),
                is_slow=False,
            ),
        )
