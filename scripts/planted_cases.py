"""Five faults planted in one profile, to try whether the window alone says what is wrong.

Real engines with encrypted stores, a network in memory that can fall silent, and three Stores of
which one leaves messages out.  ``xvfb-run -a python -m scripts.planted_cases`` opens the window of
Ines until it is closed; with ``--own-network`` nothing reaches her any more, as in the fourth case.
What the window says of each case stands in docs/testing-delivery.md.
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from chat_app.qt_loop import run_on_qt
from engine.core.errors import CommandError
from engine.core.history.progress import StoreRef
from engine.core.history.queries import (
    Ask,
    Failed,
    FailureKind,
    HistoryMessage,
    Outcome,
    Page,
    StoreVersion,
)
from engine.core.ids import ContentTopic, ConversationId, MessageId, PubsubTopic, UnixMs
from engine.core.waku import WakuMessage
from engine.core.waku_store import StoreQueryRequest
from engine.history_views import HistoryState
from engine.inspection_views import Whereabouts
from engine.network.memory import MemoryNetwork, MemoryTransport
from engine.network.stores.port import FoundStore, TestedStore
from engine.network.transport import Receipt
from engine.network_views import NetworkFacts, PeerView, RelayView, ScoreView
from scripts.release import version
from scripts.scene import Cast, until
from scripts.screenshots import PEER
from scripts.taking_pictures import SIZE
from ui.app import build_window
from ui.settings import UiSettings
from ui.window.window_context import WindowContext

HONEST: Final = (f"/dns4/quay.example/tcp/443/wss{PEER}", f"/dns4/pier.example/tcp/443/wss{PEER}")
LOSSY: Final = f"/dns4/lantern.example/tcp/443/wss{PEER}"
EVERY_OTHER: Final = 3
"""The third Store leaves out one of so many messages."""
HEARD_AGO_MS: Final = 2_000
"""When each peer was last heard, while the network is well."""
_SCORE: Final = ScoreView(time_in_mesh=3.6, first_deliveries=8.0)


class PlantedStores:
    """Three Stores that keep all that was published; the last one answers without some of it."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._kept: dict[bytes, HistoryMessage] = {}
        self.listening = True
        self.answering = True

    def keep(self, message: WakuMessage, receipt: Receipt) -> None:
        if not self.listening:
            return
        topic = self.pubsub_topic(message.content_topic)
        kept = HistoryMessage(receipt.waku_hash, message, topic)
        self._kept.setdefault(receipt.waku_hash, kept)

    def pubsub_topic(self, content_topic: ContentTopic, /) -> PubsubTopic:
        return self._network.sharding.pubsub_topic(content_topic)

    def found(self) -> tuple[FoundStore, ...]:
        return ()

    def versions(self, _store: StoreRef, /) -> tuple[StoreVersion, ...]:
        return (StoreVersion.V3,)

    async def perform(self, ask: Ask, /) -> Outcome:
        if not self.answering:
            return Failed(FailureKind.TIMEOUT)
        request = ask.request
        if not isinstance(request, StoreQueryRequest):
            return Page()
        kept = [each for place, each in enumerate(self._kept.values()) if _has(ask.store, place)]
        found = [each for each in kept if _is_asked_for(each, request)]
        found.sort(key=lambda each: (each.message.timestamp_ns or 0, each.message_hash))
        begin = 0
        if request.pagination_cursor is not None:
            hashes = [each.message_hash for each in found]
            begin = hashes.index(request.pagination_cursor) + 1
        page = found[begin : begin + (request.pagination_limit or 100)]
        more = begin + len(page) < len(found)
        return Page(messages=tuple(page), cursor=page[-1].message_hash if more else None)

    async def test(
        self,
        _multiaddr: str,
        _topics: Sequence[ContentTopic],
        /,
        *,
        timeout_s: float,  # noqa: ARG002 - all are at hand
    ) -> TestedStore:
        return TestedStore(problem=None, reachable=True, versions=(StoreVersion.V3,))


def _has(store: StoreRef, place: int) -> bool:
    return store != LOSSY or place % EVERY_OTHER != 0


def _is_asked_for(kept: HistoryMessage, request: StoreQueryRequest) -> bool:
    if request.message_hashes:
        return kept.message_hash in request.message_hashes
    at_ns = kept.message.timestamp_ns or 0
    begin_ns, end_ns = request.time_start_ns or 0, request.time_end_ns
    in_time = begin_ns <= at_ns and (end_ns is None or at_ns <= end_ns)
    return in_time and kept.message.content_topic in request.content_topics


class PlantedTransport(MemoryTransport):
    """In the network in memory, with the facts that a node would tell of its connections."""

    def __init__(self, cast: "PlantedCast", name: str) -> None:
        super().__init__(cast.network, name)
        self._cast = cast
        self.store_network = cast.stores
        self.deaf_since_ms: UnixMs | None = None
        """From when on nothing comes from any peer, although they are connected."""

    async def publish(self, message: WakuMessage, /) -> Receipt:
        receipt = await super().publish(message)
        if receipt.peers:
            self._cast.stores.keep(message, receipt)
        return receipt

    def arrive(self, data: bytes) -> None:
        if self.deaf_since_ms is None:
            super().arrive(data)

    def facts(self) -> NetworkFacts:
        others = self._cast.network.others_online(self) if self.is_online else []
        return NetworkFacts(peers=tuple(self._peer(other.name) for other in others))

    def _peer(self, name: str) -> PeerView:
        since_ms, silent_ms = self.deaf_since_ms, HEARD_AGO_MS
        if since_ms is not None:
            silent_ms = self._cast.clock.now_ms() - since_ms
        return PeerView(
            peer_id=f"16Uiu2HAm{name}",
            agent="causerie/0.1.0",
            protocols=("/vac/waku/relay/2.0.0",),
            address=f"/dns4/{name.lower()}.example/tcp/60000",
            outbound=True,
            is_kept=True,
            since_ms=UnixMs(self._cast.began_ms),
            silent_ms=silent_ms,
            bytes_in=48_000,
            bytes_out=51_000,
            connections=1,
            round_trip_ms=31.0,
            measured_ago_ms=silent_ms,
            relay=RelayView(topics=1, meshed=1, of_topics=1, score=_SCORE, is_slow=False),
        )


class PlantedCast(Cast):
    """The people of the five cases, and the Stores."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.stores = PlantedStores(self.network)
        self.began_ms = self.clock.now_ms()
        self.planted: dict[str, PlantedTransport] = {}

    def transport(self, name: str) -> PlantedTransport:
        made = self.planted[name] = PlantedTransport(self, name)
        self.network.join(made)
        return made

    async def tell(
        self,
        name: str,
        group: ConversationId,
        text: str,
        *,
        after: float = 1,
        to: Sequence[str] = (),
    ) -> MessageId:
        """Say it ``after`` minutes, and wait until it came to those."""
        self.clock.forward(after)
        said = await self.engines[name].timeline.send_text(group, text)

        async def has_come() -> bool:
            places = [await self.whereabouts(other, group, said) for other in to]
            return all(each in {Whereabouts.LOGGED, Whereabouts.WAITING} for each in places)

        await until(has_come)
        return said

    async def whereabouts(
        self, name: str, group: ConversationId, message: MessageId
    ) -> Whereabouts | None:
        """None: nothing is known of it."""
        try:
            found = await self.engines[name].inspection.message(group, message)
        except CommandError:
            return None
        return found.whereabouts


class Planted(Struct, frozen=True, kw_only=True):
    """Where each case lies."""

    kitchen: ConversationId
    lacked: MessageId
    """In the kitchen, and Luc lacks it."""
    lacked_since: tuple[UnixMs, UnixMs]
    """When it was sent: between these times."""
    tide: ConversationId
    repaired: MessageId
    """It came late, by a repair."""
    waited: MessageId
    """It was here, and waited for the one above."""
    books: ConversationId
    """Tomas was last heard there, 12 minutes ago."""


async def plant(cast: PlantedCast) -> Planted:
    for name in ("Ines", "Maya", "Jonas", "Luc", "Tomas"):
        await cast.enter(name)
    kitchen, books, tide = await asyncio.gather(
        cast.group("Sunday Kitchen", "Ines", "Luc", "Maya"),
        cast.group("Book Circle", "Maya", "Ines", "Tomas"),
        cast.group("Tide Gauge", "Ines", "Jonas", "Maya"),
    )
    await _stores_of(cast, "Ines")
    lacked, lacked_since = await lacking(cast, kitchen)
    await cast.tell("Tomas", books, "Chapter nine broke me.", to=("Ines", "Maya"))
    repaired, waited = await late(cast, tide)
    await silent(cast, books)
    await cast.engines["Ines"].history.fetch(kitchen, days=1)
    await until(lambda: _fetched(cast, kitchen))
    return Planted(
        kitchen=kitchen,
        lacked=lacked,
        lacked_since=lacked_since,
        tide=tide,
        repaired=repaired,
        waited=waited,
        books=books,
    )


async def lacking(
    cast: PlantedCast, kitchen: ConversationId
) -> tuple[MessageId, tuple[UnixMs, UnixMs]]:
    """Luc goes away and lacks one message of Ines since then; Maya has it."""
    await cast.tell("Luc", kitchen, "Who brings the big pot?", to=("Ines", "Maya"))
    await cast.tell("Ines", kitchen, "I can bring it, and the ladle.", to=("Luc", "Maya"))
    await cast.tell("Luc", kitchen, "Good.", to=("Ines", "Maya"))
    cast.online("Luc", online=False)
    cast.clock.forward(2)
    before_ms = cast.clock.now_ms()
    lacked = await cast.tell("Ines", kitchen, "At six, not at five!", after=0, to=("Maya",))
    since = before_ms, cast.clock.now_ms()
    # Before it is due again: a jump of the clock would send it again beside the answer.
    await cast.tell("Maya", kitchen, "Six is fine.", after=0, to=("Ines",))
    return lacked, since


async def late(cast: PlantedCast, tide: ConversationId) -> tuple[MessageId, MessageId]:
    """Ines lacks a message that the next one depends on, and so do the Stores.

    Maya repairs it minutes later.
    """
    await cast.tell("Jonas", tide, "New sensor is on the pier.", to=("Ines", "Maya"))
    cast.online("Ines", online=False)
    cast.stores.listening = False
    repaired = await cast.tell("Jonas", tide, "Battery is at 3.92 V.", to=("Maya",))
    for name in ("Jonas", "Tomas"):
        cast.online(name, online=False)
    cast.online("Ines", online=True)
    waited = await cast.tell("Maya", tide, "That is low, I take the spare.", to=("Ines",))
    cast.online("Maya", online=False)
    await cast.tell("Ines", tide, "Who is at the pier?")
    cast.clock.forward(3)
    cast.online("Maya", online=True)
    await until(lambda: _is_repaired(cast, tide, waited))
    for name in ("Jonas", "Tomas"):
        cast.online(name, online=True)
    cast.stores.listening = True
    return repaired, waited


async def silent(cast: PlantedCast, books: ConversationId) -> None:
    """Tomas is not heard any more, all others are."""
    cast.online("Tomas", online=False)
    cast.clock.forward(7)
    await cast.tell("Maya", books, "Same time on Thursday?", to=("Ines",))
    await cast.tell("Ines", books, "Yes.", to=("Maya",))
    await cast.tell("Maya", books, "Tomas?", after=0, to=("Ines",))


def silence_everybody(cast: PlantedCast) -> None:
    """The fourth case: connected, and nothing comes any more."""
    cast.planted["Ines"].deaf_since_ms = cast.clock.now_ms()
    cast.stores.answering = False
    cast.clock.forward(0.7)


async def _stores_of(cast: PlantedCast, name: str) -> None:
    for address in (*HONEST, LOSSY):
        await cast.engines[name].history.add_store(address)


async def _is_repaired(cast: PlantedCast, group: ConversationId, waited: MessageId) -> bool:
    """Whether it waits no more; until then time goes by, and typing wakes who would repair it."""
    cast.clock.forward(0.1)
    for name in ("Ines", "Maya"):
        await cast.engines[name].timeline.set_typing(group, active=True)
    return await cast.whereabouts("Ines", group, waited) is Whereabouts.LOGGED


async def _fetched(cast: Cast, group: ConversationId) -> bool:
    view = cast.engines["Ines"].history.view(group)
    return view is not None and view.state is HistoryState.DONE


async def show() -> int:
    with tempfile.TemporaryDirectory(prefix="causerie-planted-") as place:
        cast = PlantedCast(Path(place))
        planted = await plant(cast)
        if "--own-network" in sys.argv:
            silence_everybody(cast)
        context = WindowContext(version=version, now=cast.clock.now)
        window = build_window(cast.engines["Ines"], UiSettings(), context)
        window.resize(*SIZE)
        window.show()
        await window.start()
        window.open_conversation(planted.kitchen)
        while window.isVisible():  # noqa: ASYNC110 - a person looks
            await asyncio.sleep(0.5)
        await window.shutdown()
        for engine in cast.engines.values():
            await engine.stop()
    return 0


if __name__ == "__main__":
    sys.exit(run_on_qt(show))
