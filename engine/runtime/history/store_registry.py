"""The Stores of a profile: those the user named, in order, and those found among peers.

While a Store of the user's is enabled, only the user's are asked.  Otherwise every connected peer
that serves the Store protocol is asked, so a local network needs no settings.  A Store that failed
within the last minute is asked after the others but never skipped.

Health lasts as long as the program runs; statistics are kept in the profile.  The node's own
archive is not asked: the node has passed on what it relayed already, and its archive would report
nothing missing after the device was offline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.core.errors import ConfigError
from engine.core.history.queries import (
    Candidate,
    End,
    StoreEnded,
    StoreNote,
    StoreRef,
)
from engine.core.history.saved import MAX_STORES, StoreRecord
from engine.core.ids import UnixMs
from engine.history_views import StoreHealth, StoreOrigin, StoreTestView, StoreView
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.stores.port import FoundStore, StoreNetwork
from engine.runtime.history.store_problems import doubt_of, problem_of

FAILED_LAST_MS: Final = 60_000
TELLING_MESSAGES: Final = 50
"""A query with at least this many messages is evidence about a Store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    state: StoreHealth = StoreHealth.UNKNOWN
    problem: str = ""
    version: str = ""
    failed_ms: UnixMs | None = None
    round_trip_ms: int | None = None


class StoreRegistry:
    """The caller writes changed ``records`` to the database."""

    def __init__(self, network: StoreNetwork | None) -> None:
        self._network = network
        self._records: list[StoreRecord] = []
        self._found: tuple[FoundStore, ...] = ()
        self._found_records: dict[StoreRef, StoreRecord] = {}
        self._health: dict[StoreRef, Health] = {}
        self._tests: dict[str, StoreTestView] = {}

    # --- the list -------------------------------------------------------------------------------

    @property
    def records(self) -> Sequence[StoreRecord]:
        """The user's Stores, in order."""
        return self._records

    def load(self, records: Sequence[StoreRecord]) -> None:
        self._records = list(records)

    def add(self, multiaddr: str) -> StoreRecord:
        """Append a Store.  Raises ConfigError for a bad or known address, or a full list."""
        address = parse_multiaddr(multiaddr)
        if address.peer_id is None:
            raise ConfigError(f'address "{multiaddr}": it must end in /p2p/ and a peer id')
        store = StoreRef(str(address))
        if any(record.store == store for record in self._records):
            raise ConfigError("This Store is in the list already.")
        if len(self._records) >= MAX_STORES:
            raise ConfigError(f"There can be {MAX_STORES} Stores.")
        record = StoreRecord(store=store, place=len(self._records))
        self._records.append(record)
        return record

    def remove(self, multiaddr: str) -> StoreRecord:
        """Remove a Store.  Raises ConfigError if it is not in the list."""
        record = self._find(multiaddr)
        self._records.remove(record)
        self._number()
        return record

    def move(self, multiaddr: str, place: int) -> None:
        """Move a Store to ``place``, from 0.  Raises ConfigError if it is not in the list."""
        record = self._find(multiaddr)
        self._records.remove(record)
        self._records.insert(min(max(place, 0), len(self._records)), record)
        self._number()

    def enable(self, multiaddr: str, *, enabled: bool) -> None:
        """Enable or disable a Store.  Raises ConfigError if it is not in the list."""
        record = self._find(multiaddr)
        self._replace(replace(record, enabled=enabled))

    def tested(self, test: StoreTestView) -> None:
        """Record the result of a test and update the Store's health."""
        self._tests[test.multiaddr] = test
        failed = StoreHealth.FAILED if test.problem else StoreHealth.GOOD
        store = StoreRef(test.multiaddr)
        if test.problem or self.health(store).state is not StoreHealth.DOUBTFUL:
            health = replace(self.health(store), state=failed, problem=test.problem)
            self._health[store] = replace(health, failed_ms=None)

    def _find(self, multiaddr: str) -> StoreRecord:
        for record in self._records:
            if record.store == multiaddr:
                return record
        raise ConfigError("There is no such Store in the list.")

    def _number(self) -> None:
        self._records = [replace(record, place=place) for place, record in enumerate(self._records)]

    def _replace(self, record: StoreRecord) -> None:
        self._records = [record if one.store == record.store else one for one in self._records]

    # --- which Stores to ask --------------------------------------------------------------------

    def look_around(self) -> tuple[StoreRef, ...]:
        """Refresh the found Stores.  Returns new ones, or none while the user's are asked."""
        before = {found.store for found in self._found}
        self._found = () if self._network is None else self._network.found()
        if self.asks_own:
            return ()
        return tuple(found.store for found in self._found if found.store not in before)

    @property
    def asks_own(self) -> bool:
        return any(record.enabled for record in self._records)

    def candidates(self, now_ms: UnixMs) -> tuple[Candidate, ...]:
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
        stores.sort(key=lambda one: self._failed_lately(one.store, now_ms))
        return tuple(stores[:MAX_STORES])

    def _failed_lately(self, store: StoreRef, now_ms: UnixMs) -> bool:
        failed_ms = self.health(store).failed_ms
        return failed_ms is not None and 0 <= now_ms - failed_ms <= FAILED_LAST_MS

    # --- health and statistics ------------------------------------------------------------------

    def address_of(self, store: StoreRef) -> str:
        """The address in the settings, or where a found Store listens."""
        return next((one.address for one in self._found if one.store == store), store)

    def health(self, store: StoreRef) -> Health:
        return self._health.get(store, Health())

    def trouble(self, ended: StoreEnded, now_ms: UnixMs) -> bool:
        """A query gave up on this Store.  Returns whether its health changed."""
        problem = problem_of(ended.end, ended.reason)
        if not problem or ended.end is End.CANNOT:
            return False
        return self._set_health(
            ended.store, StoreHealth.FAILED, problem, ended.version, failed_ms=now_ms
        )

    def note(self, note: StoreNote, now_ms: UnixMs) -> StoreRecord | None:
        """Record a query's note.  Returns the record to be written if the Store is the user's."""
        statistics = note.statistics
        # An empty answer to another query right after a failure does not prove recovery.
        says_nothing = not statistics.messages and self._failed_lately(note.store, now_ms)
        if note.end is End.COMPLETE and not says_nothing:
            doubt = doubt_of(note) or self._lasting_doubt(note)
            state = StoreHealth.DOUBTFUL if doubt else StoreHealth.GOOD
            self._set_health(note.store, state, doubt, note.version, failed_ms=None)
        if statistics.pages:
            round_trip_ms = round(statistics.busy_ms / statistics.pages)
            self._health[note.store] = replace(self.health(note.store), round_trip_ms=round_trip_ms)
        own = next((one for one in self._records if one.store == note.store), None)
        before = own or self._found_records.get(note.store, StoreRecord(store=note.store, place=0))
        after = replace(
            before,
            queries=before.queries + 1,
            complete=before.complete + (note.end is End.COMPLETE),
            messages=before.messages + statistics.messages,
            new=before.new + statistics.new,
            omitted=before.omitted + (note.omitted or 0),
            asked_ms=now_ms,
        )
        if own is None:
            self._found_records[note.store] = after
            while len(self._found_records) > MAX_STORES:
                del self._found_records[next(iter(self._found_records))]
            return None
        self._replace(after)
        return after

    def _lasting_doubt(self, note: StoreNote) -> str:
        """Doubt stays after a hash lookup, or after a query too small to be evidence."""
        before = self.health(note.store)
        tells = note.omitted is not None and note.statistics.messages >= TELLING_MESSAGES
        return "" if tells or before.state is not StoreHealth.DOUBTFUL else before.problem

    def _set_health(
        self,
        store: StoreRef,
        state: StoreHealth,
        problem: str,
        version: str,
        *,
        failed_ms: UnixMs | None,
    ) -> bool:
        before = self.health(store)
        self._health[store] = replace(
            before, state=state, problem=problem, version=str(version), failed_ms=failed_ms
        )
        while len(self._health) > 4 * MAX_STORES:
            del self._health[next(iter(self._health))]
        return (before.state, before.problem) != (state, problem)

    # --- views ----------------------------------------------------------------------------------

    def views(self) -> tuple[StoreView, ...]:
        own = tuple(self._view(one, one.store, StoreOrigin.USER) for one in self._records)
        if self.asks_own:
            return own
        records: Mapping[StoreRef, StoreRecord] = self._found_records
        found = tuple(
            self._view(
                records.get(one.store, StoreRecord(store=one.store, place=0)),
                one.address,
                StoreOrigin.FOUND,
            )
            for one in self._found
        )
        return (*own, *found)

    def _view(self, record: StoreRecord, multiaddr: str, origin: StoreOrigin) -> StoreView:
        health = self.health(record.store)
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
