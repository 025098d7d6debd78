"""One run of a sweep: its parameters, what came of it, and both as columns.

Two flat dataclasses are the whole interface between a driver, Spark's workers and a process pool.
A run follows from its ``Case`` alone, seed included, so it does not matter where it is made.
Nothing here knows Spark or the simulator.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from math import ceil
from typing import Final, TypeAlias

NEVER_MS: Final = float("inf")
"""What has not happened when a run ended.  It counts in every percentile."""
Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Parameters; shares are from 0 to 1.  What a protocol does not know it ignores."""

    sweep: str = "own"
    """Which study it belongs to."""
    protocol: str = "sds"
    seed: int = 1
    config: str = "ours"
    """``ours``, or ``reference``: js-waku's defaults of SDS, the reference's back-off of MVDS."""
    members: int = 8
    messages: int = 100
    """In all (SDS), of each of the two (MVDS)."""
    gap_ms: int = 2_000
    """Between messages, on average (SDS)."""
    size_bytes: int = 200
    """Of a message's content."""
    loss: float = 0.0
    """Of every transmission to every receiver, independently."""
    delay_low_ms: int = 50
    delay_high_ms: int = 400
    duplication: float = 0.0
    reorder: float = 0.0
    crashes: int = 0
    """Members that die and come back (SDS)."""
    partitions: int = 0
    """Times that the network falls apart into three (SDS)."""
    offline: float = 0.0
    """Share of the time that each of the two is offline (MVDS)."""
    store_copies: bool = False
    presence: bool = False
    mode: str = "mixed"
    history: int = 10
    """Entries of the causal history (SDS)."""
    bloom_capacity: int = 256
    sync_interval_ms: int = 30_000
    sealed: bool = True
    """Members say what they hold, for certain; else filters are all there is (SDS)."""
    prompt: bool = True
    """Small groups acknowledge at once (SDS); else by the sync interval alone."""
    heal_ms: int = 600_000
    """Virtual time after the last message, at most (SDS)."""

    @property
    def run(self) -> str:
        """A name that no other case has."""
        differing = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.name != "sweep" and getattr(self, field.name) != field.default
        ]
        return ",".join([self.sweep, *differing])

    @property
    def work_s(self) -> float:
        """About how long it takes, to be dealt out evenly.  Nothing else follows from it."""
        if self.protocol == "mvds":
            return self.messages * (0.0005 + 0.005 * self.offline)
        copies = 4 + 0.1 * self.members
        return 0.05 + self.messages * copies * self.members * 0.0002 / max(1 - self.loss, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Figures of a run.  Times are virtual, of the one clock that a simulation has."""

    run: str
    messages: int
    expected: int
    """Deliveries to others that there should be."""
    delivered: int
    delivered_share: float
    delivery_p50_ms: float
    delivery_p95_ms: float
    delivery_p99_ms: float
    acked_share: float
    """Of (message, other member), for certain."""
    ack_p50_ms: float | None
    ack_p95_ms: float | None
    """None: not measured."""
    known_p95_ms: float | None
    """As ``ack_p95_ms``, filters' words counted too."""
    held_by_all_share: float
    content_bytes: int
    """Of what users said, once."""
    wire_bytes: int
    """Of all broadcasts or payloads, each counted once as it was sent."""
    bytes_per_message: float
    overhead: float
    """``wire_bytes`` over ``content_bytes``, less 1."""
    copies_per_message: float
    """Broadcasts or payloads that hold it, repetitions and repairs included."""
    syncs_per_message: float
    """Of what holds no message."""
    repairs: int
    retransmissions: int
    false_acks: int
    """Certain ones that were wrong."""
    maybe_acks: int
    """(message, other member) that a filter named."""
    false_maybe_acks: int
    """Of these, how many did not hold it when they were first named."""
    converged: bool
    causal_violations: int
    virtual_ms: int
    """From the last message to the end of the run."""


def names(of: type[Case] | type[Outcome]) -> list[str]:
    return [field.name for field in fields(of)]


def values(one: Case | Outcome) -> tuple[Scalar, ...]:
    return astuple(one)


def ddl(of: type[Case] | type[Outcome]) -> str:
    """Columns as Spark's SQL has them."""
    kinds = {"str": "string", "int": "bigint", "float": "double", "bool": "boolean"}
    found = {field.name: str(getattr(field.type, "__name__", field.type)) for field in fields(of)}
    return ", ".join(f"{name} {kinds[kind.split(' ')[0]]}" for name, kind in found.items())


def share_ms(times_ms: Sequence[float], share: float) -> float:
    """The smallest that at least ``share`` of the times do not exceed; ``NEVER_MS`` of none."""
    if not times_ms:
        return NEVER_MS
    ordered = sorted(times_ms)
    return float(ordered[max(0, ceil(len(ordered) * share) - 1)])


def deal(cases: Sequence[Case], hands: int) -> list[int]:
    """For each case the hand that gets it: the heaviest first, to whoever has least."""
    loads = [0.0] * hands
    dealt = [0] * len(cases)
    for number in sorted(range(len(cases)), key=lambda i: (-cases[i].work_s, i)):
        hand = loads.index(min(loads))
        dealt[number] = hand
        loads[hand] += cases[number].work_s
    return dealt
