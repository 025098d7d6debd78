"""One run of a sweep: its parameters, what came of it, and both as columns.

Two flat dataclasses are the whole interface between a driver, Spark's workers and a local process.
A run follows from its ``Case`` alone, seed included, so it does not matter where it is made.
Nothing here knows Spark or the simulator.
"""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields
from heapq import heappop, heappush
from typing import Final, TypeAlias, TypeVar

NEVER_MS: Final = float("inf")
"""What has not happened when a run ended.  It counts in every percentile."""
HOUR_MS: Final = 3_600_000
CONFIGS: Final = ("ours", "reference")
SDS, MVDS, BOTH = "SDS", "MVDS", "both"
Scalar: TypeAlias = str | int | float | bool | None
Value = TypeVar("Value", str, int, float, bool)
_LONGEST_NAME: Final = 180
"""A directory is named after a run."""
_PROMPT_MEMBERS: Final = 16
_SETTLED_MS: Final = 150_000
"""A larger group is quiet again after about so long."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.,=_-]*", re.ASCII)
_OTHER: Final = re.compile(r"[^A-Za-z0-9,=_-]", re.ASCII)


def _parameter(default: Value, means: str, of: str = BOTH) -> Value:
    """``of``: the protocol that knows it; the other one ignores it."""
    made: Value = field(default=default, metadata={"means": means, "of": of})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Parameters; shares are from 0 to 1."""

    sweep: str = _parameter("own", "a name for runs that belong together")
    protocol: str = _parameter("sds", "sds: a group; mvds: people who write to each other")
    seed: int = _parameter(1, "all that is left to chance follows from it")
    config: str = _parameter(
        "ours", "ours, or reference: js-waku's defaults of SDS, the MVDS reference's back-off"
    )
    members: int = _parameter(8, "people in the group", SDS)
    messages: int = _parameter(100, "messages in all (SDS), of each person (MVDS)")
    gap_ms: int = _parameter(2_000, "time between two messages (MVDS: of one), on average")
    size_bytes: int = _parameter(200, "content of a message")
    loss: float = _parameter(0.0, "share lost of all transmissions to each receiver, independently")
    latency_ms: int = _parameter(50, "every transmission takes at least so long")
    jitter_ms: int = _parameter(350, "and up to so much longer")
    duplication: float = _parameter(0.0, "share of transmissions that arrive twice")
    reorder: float = _parameter(0.0, "share that is held back, so that others overtake it")
    offline: float = _parameter(0.0, "share of the time that each is offline")
    churn: float = _parameter(
        6.0, "how often each goes offline in an hour of being online; counts if offline > 0"
    )
    crashes: int = _parameter(0, "how many members die and come back", SDS)
    partitions: int = _parameter(0, "how often the network falls apart into three", SDS)
    back_off_first_ms: int = _parameter(
        0, "wait before a message is first sent again, doubling; 0: as the config has it"
    )
    back_off_longest_ms: int = _parameter(0, "where the doubling ends; 0: as the config has it")
    people: int = _parameter(2, "who write to each other, at most 26", MVDS)
    store_copies: bool = _parameter(False, "a Store keeps copies for who is offline", MVDS)
    presence: bool = _parameter(False, "people hint that they are there", MVDS)
    mode: str = _parameter("mixed", "batch, interactive or mixed", MVDS)
    history: int = _parameter(0, "entries of the causal history; 0: as the config has it", SDS)
    bloom_capacity: int = _parameter(
        0, "ids that a filter is made for; 0: as the config has it", SDS
    )
    sync_interval_ms: int = _parameter(0, "interval of sync messages; 0: as the config has it", SDS)
    sealed: bool = _parameter(
        True, "members say what they hold, for certain; else filters are all there is", SDS
    )
    prompt: bool = _parameter(True, "small groups acknowledge at once; else at the interval", SDS)
    heal_ms: int = _parameter(600_000, "time after the last message, at most", SDS)

    @property
    def run(self) -> str:
        """A name that no other case has, fit for a file's."""
        differing = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.name != "sweep" and getattr(self, field.name) != field.default
        ]
        name = ",".join([self.sweep, *differing])
        if len(name) <= _LONGEST_NAME and _PLAIN.fullmatch(name):
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        return f"{_OTHER.sub('_', name)[:_LONGEST_NAME]}~{digest}"

    @property
    def session_ms(self) -> float:
        """How long each is online at a time, on average, if anybody ever goes offline."""
        return HOUR_MS / self.churn

    def check(self) -> None:
        """Raises ValueError for what cannot be; what the simulator refuses is not looked at."""
        least = {"members": 2, "people": 2, "messages": 1, "size_bytes": 1}
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not value >= least.get(one.name, 0):
                raise ValueError(f"{one.name} is {least.get(one.name, 0)} or more, not {value}")
        if self.config not in CONFIGS:
            raise ValueError(f"config is one of {', '.join(CONFIGS)}, not {self.config!r}")
        if not self.offline < 1:
            raise ValueError(f"offline is less than 1, not {self.offline}")
        if not 0 < self.churn < NEVER_MS:
            raise ValueError(f"churn is more than 0, not {self.churn}")
        if 0 < self.back_off_longest_ms < self.back_off_first_ms:
            raise ValueError("back_off_longest_ms is less than back_off_first_ms")

    @property
    def work_s(self) -> float:
        """About how long it takes, to be dealt out evenly.  Nothing else follows from it.

        As measured: what a message costs grows with all that hear it and with all that say so.
        """
        again = 1 / max(1 - self.loss, 0.05)
        if self.protocol == "mvds":
            pairs = self.people * (self.people - 1) / 2
            return pairs * self.messages * (0.0005 + 0.0025 * self.offline + 0.001 * (again - 1))
        each_s = 6e-5 * math.pow(self.members, 2.3)
        if self.members > _PROMPT_MEMBERS or not self.prompt:
            each_s *= 0.6 * min(1.0, self.heal_ms / _SETTLED_MS)
        return 0.02 + self.messages * each_s * again


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
    ack_p50_ms: float
    ack_p95_ms: float
    known_p95_ms: float
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
    """Broadcasts or payloads that hold no message."""
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
    return float(ordered[max(0, math.ceil(len(ordered) * share) - 1)])


def deal(cases: Sequence[Case], hands: int) -> list[int]:
    """For each case the hand that gets it: the heaviest first, to the one that has least.

    Hands are numbered by their load, the heaviest is 0: a worker who takes them in this order has
    the small ones left when the others end.
    """
    loads = [(0.0, hand) for hand in range(hands)]
    dealt = [0] * len(cases)
    for number in sorted(range(len(cases)), key=lambda i: (-cases[i].work_s, i)):
        load, hand = heappop(loads)
        dealt[number] = hand
        heappush(loads, (load + cases[number].work_s, hand))
    ranks = {hand: rank for rank, (_, hand) in enumerate(sorted(loads, key=lambda one: -one[0]))}
    return [ranks[hand] for hand in dealt]
