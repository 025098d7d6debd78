"""Uploads one blob's chunks to nodes that keep them for others, at most four of them.

Every connected peer is asked what it holds of the blob and whether it keeps anything; of those that
do, the first four get what they lack.  A node without room is left alone; one that has no time, or
whose disk refuses, is asked again later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from msgspec import Struct

from engine.core.blobs.download import (
    HoldingsCame,
    HoldingsFailed,
    SourceId,
    SourcesChanged,
    TimePassed,
    WantHoldings,
)
from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import PutStatus

_MAX_DOUBLINGS = 20


class UploadConfig(Struct, frozen=True, kw_only=True):
    max_peers: int = 64
    """Asked whether they keep anything."""
    max_nodes: int = 4
    puts_per_node: int = 2
    rest_first_ms: int = 500
    rest_cap_ms: int = 60_000
    most_failures: int = 8
    """In a row; then the node is left alone until it is connected anew."""


class WantPut(Struct, frozen=True):
    source: SourceId
    name: ChunkName


class PutEnded(Struct, frozen=True):
    """``status`` None: the request broke off."""

    want: WantPut
    status: PutStatus | None


UploadInput: TypeAlias = SourcesChanged | HoldingsCame | HoldingsFailed | PutEnded | TimePassed
UploadWant: TypeAlias = WantHoldings | WantPut


@dataclass(slots=True)
class _Node:
    lacks: dict[ChunkName, None] = field(default_factory=dict)
    is_keeper: bool = False
    answered: bool = False
    asking: bool = False
    gave_up: bool = False
    puts: set[ChunkName] = field(default_factory=set)
    failures: int = 0
    rests_until_ms: int = 0


class BlobUpload:
    def __init__(self, names: Sequence[ChunkName], config: UploadConfig | None = None) -> None:
        """``names``: of all chunks, the root too."""
        self._names = tuple(names)
        self._config = config or UploadConfig()
        self._nodes: dict[SourceId, _Node] = {}

    # --- what is known --------------------------------------------------------------------------

    def nodes(self) -> int:
        """Connected ones that keep for others and have not refused."""
        return len(self._chosen())

    @property
    def done(self) -> int:
        """Chunks at the node that has most of them."""
        return max((len(self._names) - len(each.lacks) for each in self._chosen()), default=0)

    @property
    def is_complete(self) -> bool:
        """There is a node, and none that still lacks something."""
        chosen = self._chosen()
        return bool(chosen) and all(not each.lacks for each in chosen)

    @property
    def is_running(self) -> bool:
        return any(each.puts for each in self._nodes.values())

    @property
    def is_asking(self) -> bool:
        """Some have not said yet whether they keep anything."""
        return any(not each.answered and not each.gave_up for each in self._nodes.values())

    def next_deadline(self) -> int | None:
        rests = [
            each.rests_until_ms
            for each in self._nodes.values()
            if each.rests_until_ms and not each.gave_up and not self._is_idle(each)
        ]
        return min(rests, default=None)

    def _chosen(self) -> list[_Node]:
        keepers = [each for each in self._nodes.values() if each.is_keeper and not each.gave_up]
        return keepers[: self._config.max_nodes]

    def _is_idle(self, node: _Node) -> bool:
        return node.answered and not (node.is_keeper and node.lacks)

    # --- steps ----------------------------------------------------------------------------------

    def handle(self, given: UploadInput, *, now_ms: int) -> tuple[UploadWant, ...]:
        match given:
            case SourcesChanged(sources=sources):
                known = self._nodes
                kept = sources[: self._config.max_peers]
                self._nodes = {each: known.get(each) or _Node() for each in kept}
            case HoldingsCame(want=want, holdings=holdings):
                if (node := self._nodes.get(want.source)) is not None:
                    node.asking, node.answered, node.failures = False, True, 0
                    node.is_keeper = holdings.is_keeper
                    pairs = zip(want.names, holdings.held, strict=True)
                    node.lacks = dict.fromkeys(name for name, held in pairs if not held)
            case HoldingsFailed(want=want):
                if (node := self._nodes.get(want.source)) is not None:
                    node.asking = False
                    self._failed(node, now_ms)
            case PutEnded():
                self._put_ended(given, now_ms)
            case TimePassed():
                pass
            case _:
                assert_never(given)
        for rested in self._nodes.values():
            if rested.rests_until_ms <= now_ms:
                rested.rests_until_ms = 0
        return tuple(self._due(now_ms))

    def _put_ended(self, ended: PutEnded, now_ms: int) -> None:
        node = self._nodes.get(ended.want.source)
        if node is None:
            return
        node.puts.discard(ended.want.name)
        match ended.status:
            case PutStatus.TAKEN:
                node.lacks.pop(ended.want.name, None)
                node.failures = 0
            case PutStatus.NO_KEEPER | PutStatus.FULL:
                node.gave_up = True
            case PutStatus.BUSY | PutStatus.TOO_MUCH | PutStatus.FAILED | None:
                self._failed(node, now_ms)
            case _:
                assert_never(ended.status)

    def _failed(self, node: _Node, now_ms: int) -> None:
        if node.rests_until_ms > now_ms:  # Failures at the same time count once.
            return
        rest_ms = self._config.rest_first_ms << min(node.failures, _MAX_DOUBLINGS)
        node.failures += 1
        node.gave_up = node.failures >= self._config.most_failures
        node.rests_until_ms = now_ms + min(rest_ms, self._config.rest_cap_ms)

    def _due(self, now_ms: int) -> list[UploadWant]:
        due: list[UploadWant] = []
        for source_id, node in self._nodes.items():
            waits = node.asking or node.answered or node.gave_up
            if not waits and node.rests_until_ms <= now_ms:
                node.asking = True
                due.append(WantHoldings(source_id, self._names))
        chosen = self._chosen()
        for source_id, node in self._nodes.items():
            if node not in chosen or node.rests_until_ms > now_ms:
                continue
            for name in node.lacks:
                if len(node.puts) >= self._config.puts_per_node:
                    break
                if name not in node.puts:
                    node.puts.add(name)
                    due.append(WantPut(source_id, name))
        return due
