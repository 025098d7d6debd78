"""People who are online in sessions and write to each other: bytes and latency of a mode.

Session lengths are exponentially distributed.  The writer is online, the others only by chance.
All begin at a random point of their rhythm.  Every payload counts ``ENVELOPE_BYTES``
besides its own.  Presence hints, one at the start of a session and one every minute, are counted
separately: their number follows from the sessions, not from the messages.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.vocabulary import GroupId
from engine.sim.mvds.participant import MvdsParticipant
from engine.sim.mvds.world import PRESENCE_BYTES, START_MS, MvdsWorld
from engine.sim.sessions import absence_ms, exponential

_NAMES: Final = "abcdefghijklmnopqrstuvwxyz"
MOST_PEOPLE: Final = len(_NAMES)
GROUP: Final = GroupId(b"two people and their own session")
_MINUTE_MS: Final = 60_000
PRESENCE_MS: Final = _MINUTE_MS
_DAY_MS: Final = 24 * 60 * _MINUTE_MS
_LONGEST_MS: Final = 25 * _DAY_MS
"""Limit from the last message until all are acknowledged."""


class Rhythm(Struct, frozen=True, kw_only=True):
    """How people and the network behave."""

    people: int = 2
    """Two to ``MOST_PEOPLE``; every message is for all others."""
    offline: float = 0.0
    """Share of the time that each person is offline."""
    loss: float = 0.0
    delay_ms: tuple[int, int] = (20, 120)
    duplication: float = 0.0
    reorder: float = 0.0
    session_ms: float = 10 * _MINUTE_MS
    """Mean length of a session."""
    per_session: float = 2.0
    """Messages that each person writes in one, on average."""
    messages: int = 200
    """Per person."""
    size: int = 1_000
    store_copies: bool = False
    presence: bool = True


class Cost(Struct, frozen=True, kw_only=True):
    """The result; times in ms from writing to delivery."""

    delivered: int
    """To a receiver each."""
    unfinished: int
    bytes_per_message: float
    copies_per_message: float
    payloads_per_message: float
    presence_bytes_per_message: float
    latencies_ms: tuple[int, ...]


def cost(
    config: MvdsConfig,
    rhythm: Rhythm,
    *,
    seed: int,
    watch: Callable[[MvdsWorld], None] | None = None,
) -> Cost:
    """Run it; the same seed gives the same figures.  ``watch`` gets the world before it runs.

    Raises ValueError for fewer or more people than there can be.
    """
    if not 2 <= rhythm.people <= MOST_PEOPLE:  # noqa: PLR2004 - it takes two to talk
        raise ValueError(f"people is 2 to {MOST_PEOPLE}, not {rhythm.people}")
    names = [ParticipantId(name) for name in _NAMES[: rhythm.people]]
    people = {
        name: MvdsParticipant(
            name,
            groups={GROUP: frozenset(names)},
            config=config,
            seed=seed,
            now_ms=START_MS,
        )
        for name in names
    }
    world = MvdsWorld(
        people=people,
        faults=FaultSpec(
            loss=rhythm.loss,
            delay_ms=rhythm.delay_ms,
            dup=rhythm.duplication,
            reorder=rhythm.reorder,
            seed=seed,
        ),
        store_copies=rhythm.store_copies,
        presence=rhythm.presence and rhythm.offline > 0,
    )
    if watch is not None:
        watch(world)
    end_ms = max(_plan(world, name, rhythm, seed) for name in names)
    world.run_until(end_ms)
    world.run_until(end_ms + _LONGEST_MS, stop=lambda: _settled(world))
    return _count(world, rhythm.people * rhythm.messages)


def _plan(world: MvdsWorld, name: ParticipantId, rhythm: Rhythm, seed: int) -> UnixMs:
    """Plan sessions far beyond the last message; return when that is written."""
    random = SeededRandom(seed, f"rhythm of {name}")
    off_ms = absence_ms(rhythm.offline, rhythm.session_ms)
    others = [other for other in world.people if other != name]
    written, at_ms = 0, float(START_MS)
    if random() < rhythm.offline:
        world.set_online(name, online=False)
        at_ms += exponential(off_ms, random)
    last_ms = at_ms
    while at_ms < last_ms + (_LONGEST_MS if rhythm.offline else 0) or written < rhythm.messages:
        world.at(int(at_ms), lambda: world.set_online(name, online=True))
        length_ms = exponential(rhythm.session_ms, random)
        if world.presence:
            for hello_ms in range(int(at_ms) + PRESENCE_MS, int(at_ms + length_ms), PRESENCE_MS):
                world.at(hello_ms, lambda: world.say_hello(name, answer=False))
        gap_ms = rhythm.session_ms / rhythm.per_session
        write_ms = at_ms + exponential(gap_ms, random)
        while write_ms < at_ms + length_ms and written < rhythm.messages:
            world.at(int(write_ms), lambda: world.say(name, others, rhythm.size))
            written, last_ms = written + 1, write_ms
            write_ms += exponential(gap_ms, random)
        at_ms += length_ms
        if rhythm.offline:
            world.at(int(at_ms), lambda: world.set_online(name, online=False))
            at_ms += exponential(off_ms, random)
    return UnixMs(int(last_ms))


def _settled(world: MvdsWorld) -> bool:
    return not any(person.store.records for person in world.people.values())


def _count(world: MvdsWorld, messages: int) -> Cost:
    traffic, people = world.traffic, world.people.values()
    written_ms = {item: at_ms for one in people for item, at_ms in one.appended_ms.items()}
    latencies = [
        at_ms - written_ms[item] for one in people for item, at_ms in one.delivered_ms.items()
    ]
    return Cost(
        delivered=len(latencies),
        unfinished=sum(len(person.store.records) for person in people),
        bytes_per_message=traffic.bytes / messages,
        copies_per_message=traffic.message_copies / messages,
        payloads_per_message=traffic.payloads / messages,
        presence_bytes_per_message=traffic.presences * PRESENCE_BYTES / messages,
        latencies_ms=tuple(sorted(latencies)),
    )
