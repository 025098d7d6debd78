"""A node with its disk on the bench: what tests say to it and ask it, in few words."""

from collections.abc import Iterable

from msgspec.structs import replace

from engine.codec.mvds_id import mvds_id_of
from engine.core.counters import Counters
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.node import MvdsNode
from engine.core.mvds.vocabulary import (
    AppendMessage,
    ConnectivityChanged,
    DeadlineReached,
    GroupId,
    Input,
    LoadRecords,
    MvdsEvent,
    MvdsId,
    MvdsMessage,
    MvdsTransition,
    Payload,
    PayloadReceived,
    PeerSeen,
    Record,
    ResendRequested,
    SendPayload,
    WireGeneration,
)
from engine.sim.mvds.store import MvdsStore

ALICE, BOB, CAROL = (ParticipantId(name) for name in ("alice", "bob", "carol"))
GROUP = GroupId(b"G" * 32)
PAIR = {GROUP: frozenset({ALICE, BOB})}
TRIO = {GROUP: frozenset({ALICE, BOB, CAROL})}
NOW = UnixMs(1_760_000_000_000)
EVERYTHING = 10_000
STRICT = replace(MvdsConfig(), at_once_per_epoch=0)


def text(number: int, size: int = 10) -> MvdsMessage:
    return MvdsMessage(GROUP, 1_760_000_000, str(number).encode().ljust(size, b"."))


def id_of(number: int, size: int = 10) -> MvdsId:
    return mvds_id_of(text(number, size))


class Bench:
    """One node; every transition is written before it is looked at."""

    def __init__(  # noqa: PLR0913 - what tests vary
        self,
        own_id: ParticipantId = ALICE,
        *,
        config: MvdsConfig | None = None,
        groups: dict[GroupId, frozenset[ParticipantId]] | None = None,
        store: MvdsStore | None = None,
        online: bool = True,
        now_ms: int = NOW,
        limit: int = EVERYTHING,
    ) -> None:
        self.own_id = own_id
        self.config = config or MvdsConfig()
        self.groups = groups or PAIR
        self.store = store or MvdsStore()
        self.counters = Counters()
        self.now_ms = now_ms
        self.node = MvdsNode(
            own_id,
            config=self.config,
            id_of=mvds_id_of,
            groups=self.groups,
            random_unit=lambda: 0.5,
            state=self.store.state(limit=limit),
            online=online,
            now_ms=UnixMs(now_ms),
            counters=self.counters,
        )

    def handle(self, input_: Input) -> MvdsTransition:
        transition = self.node.handle(input_, now_ms=UnixMs(self.now_ms))
        self.store.apply(transition.writes)
        return transition

    def restarted(self, **changes: object) -> "Bench":
        """A node built from what was written."""
        given: dict[str, object] = {
            "config": self.config,
            "groups": self.groups,
            "store": self.store,
            "now_ms": self.now_ms,
        }
        return Bench(self.own_id, **(given | changes))  # type: ignore[arg-type]

    # --- inputs ---

    def append(
        self, number: int, *, size: int = 10, to: Iterable[ParticipantId] = (BOB,)
    ) -> list[SendPayload]:
        return payloads(self.handle(AppendMessage(message=text(number, size), peer_ids=tuple(to))))

    def receive(  # noqa: PLR0913 - the four lists of a payload
        self,
        sender: ParticipantId = BOB,
        *,
        acks: Iterable[MvdsId] = (),
        offers: Iterable[MvdsId] = (),
        requests: Iterable[MvdsId] = (),
        messages: Iterable[MvdsMessage] = (),
        generation: WireGeneration = WireGeneration.RFC,
    ) -> MvdsTransition:
        payload = Payload(tuple(acks), tuple(offers), tuple(requests), tuple(messages))
        return self.handle(PayloadReceived(peer_id=sender, payload=payload, generation=generation))

    def seen(self, peer_id: ParticipantId = BOB) -> list[SendPayload]:
        return payloads(self.handle(PeerSeen(peer_id=peer_id)))

    def set_online(self, online: bool) -> list[SendPayload]:
        return payloads(self.handle(ConnectivityChanged(online=online)))

    def resend(self, number: int) -> list[SendPayload]:
        return payloads(self.handle(ResendRequested(peer_id=BOB, message_id=id_of(number))))

    def wait(self, epochs: int = 1) -> list[SendPayload]:
        """Let time pass epoch by epoch, with a call in each."""
        sent = []
        for _ in range(epochs):
            self.now_ms += self.config.epoch_ms
            sent += payloads(self.handle(DeadlineReached()))
        return sent

    def next_sends(self) -> list[SendPayload]:
        """Whatever comes next by itself; nothing if nothing will."""
        while (deadline_ms := self.node.next_deadline()) is not None:
            self.now_ms = max(self.now_ms, deadline_ms)
            sends = payloads(self.handle(DeadlineReached()))
            if sends:
                return sends
        return []

    # --- questions ---

    @property
    def epoch(self) -> int:
        return self.now_ms // self.config.epoch_ms

    def record(self, number: int, peer_id: ParticipantId = BOB, size: int = 10) -> Record | None:
        return self.store.records.get((peer_id, id_of(number, size)))


def payloads(transition: MvdsTransition) -> list[SendPayload]:
    return [send for send in transition.sends if isinstance(send, SendPayload)]


def loads(transition: MvdsTransition) -> list[LoadRecords]:
    return [send for send in transition.sends if isinstance(send, LoadRecords)]


def kinds(events: Iterable[MvdsEvent]) -> list[str]:
    return [type(event).__name__ for event in events]
