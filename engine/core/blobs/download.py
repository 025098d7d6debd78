"""Downloads one blob: which chunks are missing, and which source is asked for which.

A source is a connected peer.  Each is asked what it holds, and again later, because others are
getting the same blob; then for a few chunks at a time, several sources at once.  A request that
fails lets its source rest, twice as long each time, and its chunks are asked elsewhere.  A source
that sent wrong chunks twice is asked for none of this blob any more.

The list of names comes first: it is the chunk whose name is the root.  Bytes are handled by the
caller, who reports a chunk when it is verified and durable.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NewType, TypeAlias, assert_never

from msgspec import Struct

from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import Holdings

SourceId = NewType("SourceId", str)
"""A peer id."""
_MAX_DOUBLINGS = 20


class DownloadConfig(Struct, frozen=True, kw_only=True):
    max_sources: int = 64
    names_per_request: int = 4
    requests_per_source: int = 2
    requests: int = 8
    """At once, of all sources."""
    holdings_again_ms: int = 1_000
    """After an answer that named not all; doubled while nothing new is named."""
    holdings_again_cap_ms: int = 30_000
    rest_first_ms: int = 250
    rest_cap_ms: int = 30_000
    busy_ms: int = 1_000
    """The first rest of a source that has no time."""
    most_forged: int = 2


class SourcesChanged(Struct, frozen=True):
    """All that can be asked now, the preferred ones first."""

    sources: tuple[SourceId, ...]


class HoldingsCame(Struct, frozen=True):
    want: "WantHoldings"
    holdings: Holdings


class HoldingsFailed(Struct, frozen=True):
    want: "WantHoldings"


class ListOpened(Struct, frozen=True, kw_only=True):
    """The names of all chunks, and those of them that are here already."""

    names: tuple[ChunkName, ...]
    here: frozenset[ChunkName] = frozenset()


class ChunkCame(Struct, frozen=True):
    source: SourceId
    name: ChunkName


class ChunkMissing(Struct, frozen=True):
    """The source does not have it, whatever it said before."""

    source: SourceId
    name: ChunkName


class ChunkForged(Struct, frozen=True):
    """The source sent other bytes."""

    source: SourceId
    name: ChunkName


class ChunksEnded(Struct, frozen=True, kw_only=True):
    """A request is over; what did not come is asked again.

    ``failed``: it broke off.  ``busy``: the source has no time, or gave all that it gives for now.
    """

    want: "WantChunks"
    failed: bool = False
    busy: bool = False


class HolderTold(Struct, frozen=True):
    """Somebody says that they have all of it: one of the sources may be theirs."""


class TimePassed(Struct, frozen=True):
    """Nothing but the time, for ``next_deadline``."""


DownloadInput: TypeAlias = (
    SourcesChanged
    | HoldingsCame
    | HoldingsFailed
    | ListOpened
    | ChunkCame
    | ChunkMissing
    | ChunkForged
    | ChunksEnded
    | HolderTold
    | TimePassed
)


class WantHoldings(Struct, frozen=True):
    source: SourceId
    names: tuple[ChunkName, ...]
    """The root first, whether it is missing or not: it tells which file they belong to."""


class WantChunks(Struct, frozen=True):
    source: SourceId
    names: tuple[ChunkName, ...]


Want: TypeAlias = WantHoldings | WantChunks


class Asked(Struct, frozen=True, kw_only=True):
    """Who said what they hold, and how many of these can be believed to have what is missing."""

    peers: int = 0
    keepers: int = 0
    useful: int = 0
    pending: int = 0
    """Connected, and not answered yet."""


@dataclass(slots=True)
class _Source:
    held: set[ChunkName] = field(default_factory=set)
    is_keeper: bool = False
    answered: bool = False
    asking: bool = False
    """What it holds was asked, and it has not answered."""
    ask_at_ms: int = 0
    idle_answers: int = 0
    """Answers in a row that named nothing new."""
    requests: int = 0
    failures: int = 0
    rests_until_ms: int = 0
    forged: int = 0


class BlobDownload:
    def __init__(
        self,
        root: ChunkName,
        *,
        shuffle: Callable[[list[ChunkName]], None],
        config: DownloadConfig | None = None,
    ) -> None:
        """``shuffle``: in which order chunks are asked for, so that receivers can help another."""
        self._root = root
        self._shuffle = shuffle
        self._config = config or DownloadConfig()
        self._missing: dict[ChunkName, None] = {root: None}
        self._here: set[ChunkName] = set()
        self._is_listed = False
        self._asked: dict[ChunkName, SourceId] = {}
        self._sources: dict[SourceId, _Source] = {}

    # --- what is known --------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        return self._is_listed and not self._missing

    @property
    def here(self) -> frozenset[ChunkName]:
        """The chunks that came or were here, without the list."""
        return frozenset(self._here)

    @property
    def is_running(self) -> bool:
        """Chunks are asked for, or the list that came is being opened."""
        return bool(self._asked) or not (self._missing or self._is_listed)

    def asked(self) -> Asked:
        sources = self._sources.values()
        answered = [each for each in sources if each.answered]
        return Asked(
            peers=sum(not each.is_keeper for each in answered),
            keepers=sum(each.is_keeper for each in answered),
            useful=sum(
                not self._is_distrusted(each) and not each.held.isdisjoint(self._missing)
                for each in answered
            ),
            pending=len(sources) - len(answered),
        )

    def next_deadline(self) -> int | None:
        """When ``TimePassed`` is due; always later than the last ``now_ms``."""
        if not self._missing:
            return None
        waits = [
            max(source.rests_until_ms, source.ask_at_ms)
            for source in self._sources.values()
            if not source.asking and not self._is_distrusted(source)
        ]
        waits += [
            source.rests_until_ms
            for source in self._sources.values()
            if source.rests_until_ms and not self._is_distrusted(source)
        ]
        return min(waits, default=None)

    # --- steps ----------------------------------------------------------------------------------

    def handle(  # noqa: C901, PLR0912 - one case per kind of input
        self, given: DownloadInput, *, now_ms: int
    ) -> tuple[Want, ...]:
        """What to ask now.  ``now_ms``: of a clock that cannot be set."""
        match given:
            case SourcesChanged(sources=sources):
                self._meet(sources)
            case HoldingsCame(want=want, holdings=holdings):
                self._learn(want, holdings, now_ms)
            case HoldingsFailed(want=want):
                if (source := self._sources.get(want.source)) is not None:
                    source.asking = False
                    self._rest(source, self._config.rest_first_ms, now_ms)
            case ListOpened(names=names, here=here):
                self._list(names, here)
            case ChunkCame(source=source_id, name=name):
                self._took(source_id, name)
            case ChunkMissing(source=source_id, name=name):
                self._forget(source_id, name)
            case ChunkForged(source=source_id, name=name):
                self._forget(source_id, name)
                if (source := self._sources.get(source_id)) is not None:
                    source.forged += 1
            case ChunksEnded():
                self._ended(given, now_ms)
            case HolderTold():
                for source in self._sources.values():
                    soon_ms = now_ms + self._config.holdings_again_ms
                    source.ask_at_ms = min(source.ask_at_ms, soon_ms)
                    source.idle_answers = 0
            case TimePassed():
                pass
            case _:
                assert_never(given)
        for rested in self._sources.values():
            if rested.rests_until_ms <= now_ms:
                rested.rests_until_ms = 0
        if not self._missing:  # It is complete, or its list is being opened.
            return ()
        return (*self._holdings_due(now_ms), *self._chunks_due(now_ms))

    def _meet(self, sources: Sequence[SourceId]) -> None:
        known = self._sources
        kept = sources[: self._config.max_sources]
        self._sources = {each: known.get(each) or _Source() for each in kept}
        self._asked = {name: who for name, who in self._asked.items() if who in self._sources}

    def _learn(self, want: WantHoldings, holdings: Holdings, now_ms: int) -> None:
        source = self._sources.get(want.source)
        if source is None:
            return
        named = {name for name, held in zip(want.names, holdings.held, strict=True) if held}
        source.asking, source.answered = False, True
        source.is_keeper = holdings.is_keeper
        source.idle_answers = 0 if named - source.held else source.idle_answers + 1
        source.held = named
        again_ms = self._config.holdings_again_ms << min(source.idle_answers, _MAX_DOUBLINGS)
        source.ask_at_ms = now_ms + min(again_ms, self._config.holdings_again_cap_ms)

    def _list(self, names: Sequence[ChunkName], here: Iterable[ChunkName]) -> None:
        self._is_listed = True
        self._here = set(here)
        missing = [name for name in names if name not in self._here]
        self._shuffle(missing)
        self._missing = dict.fromkeys(missing)
        self._asked.clear()
        for source in self._sources.values():
            source.ask_at_ms, source.idle_answers = 0, 0
            source.answered = False

    def _took(self, source_id: SourceId, name: ChunkName) -> None:
        if (source := self._sources.get(source_id)) is not None:
            source.failures = 0
        self._asked.pop(name, None)
        if name in self._missing:
            del self._missing[name]
            if name != self._root:
                self._here.add(name)

    def _forget(self, source_id: SourceId, name: ChunkName) -> None:
        if (source := self._sources.get(source_id)) is not None:
            source.held.discard(name)
        if self._asked.get(name) == source_id:
            del self._asked[name]

    def _ended(self, ended: ChunksEnded, now_ms: int) -> None:
        for name in ended.want.names:
            if self._asked.get(name) == ended.want.source:
                del self._asked[name]
        source = self._sources.get(ended.want.source)
        if source is None:
            return
        source.requests = max(source.requests - 1, 0)
        if ended.failed or ended.busy:
            first_ms = self._config.busy_ms if ended.busy else self._config.rest_first_ms
            self._rest(source, first_ms, now_ms)

    def _rest(self, source: _Source, first_ms: int, now_ms: int) -> None:
        if source.rests_until_ms <= now_ms:  # Failures at the same time count once.
            rest_ms = first_ms << min(source.failures, _MAX_DOUBLINGS)
            source.failures += 1
            source.rests_until_ms = now_ms + min(rest_ms, self._config.rest_cap_ms)

    # --- what is due ----------------------------------------------------------------------------

    def _holdings_due(self, now_ms: int) -> list[Want]:
        due: list[Want] = []
        for source_id, source in self._sources.items():
            waits = source.asking or source.ask_at_ms > now_ms
            if waits or not self._may_be_asked(source, now_ms):
                continue
            missing = [name for name in self._missing if name not in source.held]
            if missing or not source.answered:
                source.asking = True
                # Also what it has: the answer replaces what is known.
                names = dict.fromkeys((self._root, *self._missing))
                due.append(WantHoldings(source_id, tuple(names)))
            else:
                source.ask_at_ms = now_ms + self._config.holdings_again_cap_ms
        return due

    def _chunks_due(self, now_ms: int) -> list[Want]:
        config, due = self._config, list[Want]()
        running = sum(source.requests for source in self._sources.values())
        found = True
        while found:
            found = False
            for source_id, source in self._sources.items():
                is_free = source.requests < config.requests_per_source
                if running >= config.requests or not is_free:
                    continue
                names = self._next_for(source) if self._may_be_asked(source, now_ms) else ()
                if names:
                    found = True
                    running += 1
                    source.requests += 1
                    self._asked.update(dict.fromkeys(names, source_id))
                    due.append(WantChunks(source_id, names))
        return due

    def _next_for(self, source: _Source) -> tuple[ChunkName, ...]:
        names: list[ChunkName] = []
        for name in self._missing:
            if name in source.held and name not in self._asked:
                names.append(name)
                if len(names) == self._config.names_per_request:
                    break
        return tuple(names)

    def _may_be_asked(self, source: _Source, now_ms: int) -> bool:
        return source.rests_until_ms <= now_ms and not self._is_distrusted(source)

    def _is_distrusted(self, source: _Source) -> bool:
        return source.forged >= self._config.most_forged
