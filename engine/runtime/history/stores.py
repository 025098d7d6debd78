"""The Stores of a profile: those the user named, in order, and those found among peers.

While a Store of the user's is enabled, only the user's are asked.  Otherwise every connected peer
that serves the Store protocol is asked, so a local network needs no settings.  A Store that failed
within the last minute is asked after the others but never skipped.

Health lasts as long as the program runs; statistics are kept in the profile.  The node's own
archive is not asked: the node has passed on what it relayed already, and its archive would report
nothing missing after the device was offline.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.core.errors import (
    AddressError,
    AddressFlaw,
    ChatError,
    InputError,
    InputFlaw,
    LocalProtocolError,
)
from engine.core.history.progress import MAX_STORES, StoreRecord, StoreRef
from engine.core.history.queries import Candidate, End, StoreEnded, StoreNote
from engine.core.ids import ContentTopic, UnixMs, WakuHash
from engine.core.ports import ProfileStore, PutStore, RemoveStore, StoreWrite
from engine.core.problems import EntriesRefused, MessagesOmitted, QueryFailed, StoreProblem
from engine.events import EngineEvent
from engine.history_views import (
    StoreHealth,
    StoreOrigin,
    StoresChanged,
    StoreTestView,
    StoreView,
)
from engine.inspection_views import StoreReturned
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.stores.port import FoundStore, StoreNetwork
from engine.network_views import StorePast, StoreResult
from engine.persistence.storage_thread import StorageThread
from engine.runtime.own_clock import OwnClock

SAVE_EVERY_S: Final = 5.0
TEST_TIMEOUT_S: Final = 20.0
FAILED_LAST_MS: Final = 60_000
MOST_RETURNED: Final = 4_096
"""Copies of which is known who returned them; the oldest are forgotten."""
MOST_RESULTS: Final = 32
"""Of each Store."""
TELLING_MESSAGES: Final = 50
"""A query with at least this many messages is evidence about a Store."""

logger = logging.getLogger(__name__)


class Health(Struct, frozen=True, kw_only=True):
    state: StoreHealth = StoreHealth.UNKNOWN
    problem: StoreProblem | None = None
    version: str = ""
    failed_ms: UnixMs | None = None
    round_trip_ms: int | None = None


class StoreRegistry:
    def __init__(
        self,
        network: StoreNetwork | None,
        store: ProfileStore,
        storage: StorageThread,
        *,
        clock: OwnClock,
        publish: Callable[[EngineEvent], None],
    ) -> None:
        self._network = network
        self._store = store
        self._storage = storage
        self._clock_ms = clock.clock_ms
        self._system_ms = clock.system_ms
        """Dates results, which the network view compares with the system's time."""
        self._publish = publish
        self._records: list[StoreRecord] = []
        self._dirty: set[StoreRef] = set()
        self._found: tuple[FoundStore, ...] = ()
        self._found_records: dict[StoreRef, StoreRecord] = {}
        self._listened: dict[StoreRef, str] = {}
        """Where Stores that were found listened last."""
        self._health: dict[StoreRef, Health] = {}
        self._tests: dict[str, StoreTestView] = {}
        self._results: dict[StoreRef, deque[StoreResult]] = {}
        """Of the last queries and tests, since the program started."""
        self._returned: dict[bytes, dict[StoreRef, UnixMs]] = {}
        """Which Stores returned which copies, and when, by the copy's hash."""

    # --- on disk --------------------------------------------------------------------------------

    async def load(self) -> None:
        """Raises StorageError."""
        self._records = list(await self._storage.run(self._store.stores))

    async def keep_records(self) -> None:
        """Save changed statistics now and then, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            try:
                await self.save_records()
            except ChatError as error:
                logger.warning("Stores were not saved", extra={"error": type(error).__name__})

    async def save_records(self) -> None:
        dirty, self._dirty = self._dirty, set()
        writes = [PutStore(record=one) for one in self._records if one.store in dirty]
        if writes:
            await self._save(writes)

    async def _save_all(self, *writes: StoreWrite) -> None:
        await self._save([*writes, *(PutStore(record=record) for record in self._records)])

    async def _save(self, writes: Sequence[StoreWrite]) -> None:
        await self._storage.run(self._store.apply, writes)

    # --- the list.  All of these raise ConfigError and StorageError ------------------------------

    async def add(self, multiaddr: str) -> None:
        """Append a Store.  It must be new, its address name a peer, and the list have room."""
        address = parse_multiaddr(multiaddr)
        if address.peer_id is None:
            raise AddressError(AddressFlaw.PEER_NOT_NAMED, shown=str(address))
        store = StoreRef(str(address))
        if any(record.store == store for record in self._records):
            raise InputError(InputFlaw.STORE_LISTED)
        if len(self._records) >= MAX_STORES:
            raise InputError(InputFlaw.STORES_FULL, limit=MAX_STORES)
        record = StoreRecord(store=store, place=len(self._records))
        self._records.append(record)
        await self._save([PutStore(record=record)])

    async def remove(self, multiaddr: str) -> None:
        record = self._find(multiaddr)
        self._records.remove(record)
        self._number()
        await self._save_all(RemoveStore(store=record.store))

    async def move(self, multiaddr: str, *, place: int) -> None:
        """Move a Store to ``place``, from 0."""
        record = self._find(multiaddr)
        self._records.remove(record)
        self._records.insert(min(max(place, 0), len(self._records)), record)
        self._number()
        await self._save_all()

    async def enable(self, multiaddr: str, *, enabled: bool) -> None:
        self._replace(replace(self._find(multiaddr), enabled=enabled))
        await self._save_all()

    async def test(self, multiaddr: str, topics: Sequence[ContentTopic]) -> StoreTestView:
        """Whether the Store can be used for ``topics``.  Its health follows from the result."""
        if self._network is None:
            raise LocalProtocolError("there is no network to test a Store in")
        tested = await self._network.test(multiaddr, topics, timeout_s=TEST_TIMEOUT_S)
        view = StoreTestView(
            multiaddr=multiaddr,
            problem=tested.problem,
            reachable=tested.reachable,
            versions=tuple(version.value for version in tested.versions),
            cluster=tested.cluster,
            round_trip_ms=tested.round_trip_ms,
            clock_ahead_ms=tested.clock_ahead_ms,
            oldest_ms=tested.oldest_ms,
        )
        self._tests[multiaddr] = view
        store = StoreRef(multiaddr)
        result = StoreResult(
            at_ms=self._system_ms(),
            problem=view.problem,
            is_complete=view.problem is None,
            is_test=True,
            round_trip_ms=view.round_trip_ms,
        )
        self._keep_result(store, result)
        before = self._health_of(store)
        if view.problem or before.state is not StoreHealth.DOUBTFUL:
            state = StoreHealth.FAILED if view.problem else StoreHealth.GOOD
            self._health[store] = replace(before, state=state, problem=view.problem, failed_ms=None)
        self.tell()
        return view

    def _find(self, multiaddr: str) -> StoreRecord:
        for record in self._records:
            if record.store == multiaddr:
                return record
        raise InputError(InputFlaw.STORE_UNKNOWN)

    def _number(self) -> None:
        self._records = [replace(record, place=place) for place, record in enumerate(self._records)]

    def _replace(self, record: StoreRecord) -> None:
        self._records = [record if one.store == record.store else one for one in self._records]

    # --- which Stores to ask --------------------------------------------------------------------

    def look_around(self) -> tuple[StoreRef, ...]:
        """Refresh the found Stores.  Returns new ones, or none while the user's are asked."""
        before = {found.store for found in self._found}
        self._found = () if self._network is None else self._network.found()
        self._listened.update((found.store, found.address) for found in self._found)
        while len(self._listened) > 4 * MAX_STORES:
            del self._listened[next(iter(self._listened))]
        if self.asks_own:
            return ()
        return tuple(found.store for found in self._found if found.store not in before)

    @property
    def asks_own(self) -> bool:
        return any(record.enabled for record in self._records)

    def candidates(self) -> tuple[Candidate, ...]:
        """The Stores to ask, in order."""
        network = self._network
        if network is None:
            return ()
        if self.asks_own:
            stores = [
                Candidate(store=record.store, versions=network.versions(record.store))
                for record in self._records
                if record.enabled
            ]
        else:
            stores = [Candidate(store=one.store, versions=one.versions) for one in self._found]
        stores.sort(key=lambda one: self._failed_lately(one.store))
        return tuple(stores[:MAX_STORES])

    def _failed_lately(self, store: StoreRef) -> bool:
        failed_ms = self._health_of(store).failed_ms
        return failed_ms is not None and 0 <= self._clock_ms() - failed_ms <= FAILED_LAST_MS

    # --- health and statistics ------------------------------------------------------------------

    def address_of(self, store: StoreRef) -> str:
        """The address in the settings, or where a found Store listens."""
        return next((one.address for one in self._found if one.store == store), store)

    def _health_of(self, store: StoreRef) -> Health:
        return self._health.get(store, Health())

    def trouble(self, ended: StoreEnded) -> None:
        """A query gave up on this Store, if ``ended`` says so."""
        problem = _problem_of(ended.end, ended.reason)
        if problem is None or ended.end is End.CANNOT:
            return
        before = self._health_of(ended.store)
        self._set_health(
            ended.store, StoreHealth.FAILED, problem, ended.version, failed_ms=self._clock_ms()
        )
        if (before.state, before.problem) != (StoreHealth.FAILED, problem):
            logger.info(
                "a Store was left", extra={"reason": ended.reason or ended.end, "area": "history"}
            )
            self.tell()

    def note(self, notes: Sequence[StoreNote]) -> None:
        """Record what a query found out about Stores."""
        before = self.views()
        for note in notes:
            self._note(note)
        if self.views() != before:
            self.tell()

    def _note(self, note: StoreNote) -> None:
        statistics = note.statistics
        # An empty answer to another query right after a failure does not prove recovery.
        says_nothing = not statistics.messages and self._failed_lately(note.store)
        if note.end is End.COMPLETE and not says_nothing:
            doubt = _doubt_of(note) or self._lasting_doubt(note)
            state = StoreHealth.DOUBTFUL if doubt else StoreHealth.GOOD
            self._set_health(note.store, state, doubt, note.version, failed_ms=None)
        if statistics.pages:
            round_trip_ms = round(statistics.busy_ms / statistics.pages)
            health = replace(self._health_of(note.store), round_trip_ms=round_trip_ms)
            self._health[note.store] = health
        if note.end not in (End.CANCELLED, End.CANNOT):
            self._keep_result(note.store, self._result(note))
        own = next((one for one in self._records if one.store == note.store), None)
        before = own or self._found_record(note.store)
        after = replace(
            before,
            queries=before.queries + 1,
            complete=before.complete + (note.end is End.COMPLETE),
            messages=before.messages + statistics.messages,
            new=before.new + statistics.new,
            omitted=before.omitted + (note.omitted or 0),
            asked_ms=self._clock_ms(),
        )
        if own is not None:
            self._replace(after)
            self._dirty.add(note.store)
            return
        self._found_records[note.store] = after
        while len(self._found_records) > MAX_STORES:
            del self._found_records[next(iter(self._found_records))]

    def _result(self, note: StoreNote) -> StoreResult:
        statistics, is_complete = note.statistics, note.end is End.COMPLETE
        pages = statistics.pages
        return StoreResult(
            at_ms=self._system_ms(),
            problem=_doubt_of(note) if is_complete else QueryFailed(note.end, note.reason),
            is_complete=is_complete,
            messages=statistics.messages,
            round_trip_ms=round(statistics.busy_ms / pages) if pages else None,
        )

    def _keep_result(self, store: StoreRef, result: StoreResult) -> None:
        self._results.setdefault(store, deque(maxlen=MOST_RESULTS)).append(result)
        while len(self._results) > 4 * MAX_STORES:
            del self._results[next(iter(self._results))]

    def _found_record(self, store: StoreRef) -> StoreRecord:
        return self._found_records.get(store, StoreRecord(store=store, place=0))

    def _lasting_doubt(self, note: StoreNote) -> StoreProblem | None:
        """Doubt stays after a hash lookup, or after a query too small to be evidence."""
        before = self._health_of(note.store)
        tells = note.omitted is not None and note.statistics.messages >= TELLING_MESSAGES
        return None if tells or before.state is not StoreHealth.DOUBTFUL else before.problem

    def _set_health(
        self,
        store: StoreRef,
        state: StoreHealth,
        problem: StoreProblem | None,
        version: str,
        *,
        failed_ms: UnixMs | None,
    ) -> None:
        self._health[store] = replace(
            self._health_of(store),
            state=state,
            problem=problem,
            version=str(version),
            failed_ms=failed_ms,
        )
        while len(self._health) > 4 * MAX_STORES:
            del self._health[next(iter(self._health))]

    def returned(self, store: StoreRef, hashes: Iterable[WakuHash]) -> None:
        """The Store answered with copies that have these hashes."""
        now_ms, known = self._clock_ms(), self._returned
        for waku_hash in hashes:
            known.setdefault(waku_hash, {})[store] = now_ms
        while len(known) > MOST_RETURNED:
            del known[next(iter(known))]

    def returned_by(self, hashes: Iterable[bytes]) -> tuple[StoreReturned, ...]:
        """Who returned any of these copies."""
        last: dict[StoreRef, UnixMs] = {}
        for waku_hash in hashes:
            for store, at_ms in self._returned.get(waku_hash, {}).items():
                last[store] = max(at_ms, last.get(store, at_ms))
        return tuple(
            StoreReturned(address=self.address_of(store), at_ms=at_ms)
            for store, at_ms in last.items()
        )

    # --- views ----------------------------------------------------------------------------------

    def tell(self) -> None:
        self._publish(StoresChanged(stores=self.views()))

    def views(self) -> tuple[StoreView, ...]:
        return tuple(view for _store, view in self._shown())

    def past(self) -> tuple[StorePast, ...]:
        """The same, each with its last results; then those that were found and asked before."""
        shown = self._shown()
        listed = {store for store, _view in shown}
        before = [
            (store, self._view(self._found_record(store), self._listened[store], StoreOrigin.FOUND))
            for store in self._results
            if store in self._listened and store not in listed
        ]
        return tuple(
            StorePast(
                store=view,
                is_listed=store in listed,
                results=tuple(self._results.get(store, ())),
            )
            for store, view in [*shown, *before]
        )

    def _shown(self) -> list[tuple[StoreRef, StoreView]]:
        own = [(one.store, self._view(one, one.store, StoreOrigin.USER)) for one in self._records]
        if self.asks_own:
            return own
        found = [
            (one.store, self._view(self._found_record(one.store), one.address, StoreOrigin.FOUND))
            for one in self._found
        ]
        return [*own, *found]

    def _view(self, record: StoreRecord, multiaddr: str, origin: StoreOrigin) -> StoreView:
        health = self._health_of(record.store)
        return StoreView(
            multiaddr=multiaddr,
            origin=origin,
            enabled=record.enabled,
            health=health.state,
            problem=health.problem,
            version=health.version,
            queries=record.queries,
            complete=record.complete,
            messages=record.messages,
            new=record.new,
            omitted=record.omitted,
            asked_ms=record.asked_ms,
            round_trip_ms=health.round_trip_ms,
            test=self._tests.get(multiaddr),
        )


def _problem_of(end: End, reason: str) -> QueryFailed | None:
    """None if the query completed or was cancelled."""
    return None if end in (End.COMPLETE, End.CANCELLED) else QueryFailed(end, reason)


def _doubt_of(note: StoreNote) -> MessagesOmitted | EntriesRefused | None:
    """What was wrong with a complete answer; None if nothing was."""
    if note.omitted:
        return MessagesOmitted(note.omitted)
    if note.statistics.refused:
        return EntriesRefused(note.statistics.refused)
    return None
