"""People who are online now and then, as one row of figures: MVDS, by the simulator's sessions.

Both modes of the specification and ours, with its reference's back-off or ours; hints that a peer
is there and a Store that keeps copies can be had besides.
"""

from collections import Counter
from math import ceil
from pathlib import Path

from msgspec.structs import replace

from engine.core.mvds.config import FIRST_BACK_OFF, UPPER_BACK_OFF, Mode, MvdsConfig
from engine.sim.back_off import doubling
from engine.sim.mvds.sessions import Cost, Rhythm, cost
from engine.sim.mvds.world import PRESENCE_BYTES, START_MS, MvdsWorld
from pipeline.simulate.case import NEVER_MS, Case, Outcome, share_ms


def config_of(case: Case) -> MvdsConfig:
    """Raises ValueError for a mode that there is not."""
    mode = Mode(case.mode)
    if case.config == "reference":
        config = MvdsConfig.spec_model(mode)
    else:
        config = replace(MvdsConfig(), mode=mode)
    if case.back_off_first_ms or case.back_off_longest_ms:
        first, longest = (
            ceil(wait_ms / config.epoch_ms)
            for wait_ms in (case.back_off_first_ms, case.back_off_longest_ms)
        )
        first = first or min(FIRST_BACK_OFF, longest)
        config = replace(config, backoff=doubling(first, longest or max(first, UPPER_BACK_OFF)))
    return config


def run_mvds(case: Case, logs: Path | None = None) -> Outcome:
    """``logs``: where what happened is recorded."""
    worlds: list[MvdsWorld] = []

    def watch(world: MvdsWorld) -> None:
        worlds.append(world)
        if logs is not None:
            for name in sorted(world.people):
                world.people[name].record(case.run, now_ms=START_MS)

    found = cost(config_of(case), _rhythm(case), seed=case.seed, watch=watch)
    (world,) = worlds
    if logs is not None:
        _write(world, logs)
    return _outcome(case, found, world)


def _rhythm(case: Case) -> Rhythm:
    return Rhythm(
        people=case.people,
        offline=case.offline,
        loss=case.loss,
        delay_ms=(case.latency_ms, case.latency_ms + case.jitter_ms),
        duplication=case.duplication,
        reorder=case.reorder,
        session_ms=case.session_ms,
        per_session=case.session_ms / max(case.gap_ms, 1),
        messages=case.messages,
        size=case.size_bytes,
        store_copies=case.store_copies,
        presence=case.presence,
    )


def _outcome(case: Case, found: Cost, world: MvdsWorld) -> Outcome:
    said = case.people * case.messages
    expected = said * (case.people - 1)
    delays = [*found.latencies_ms, *([NEVER_MS] * (expected - found.delivered))]
    acks = [
        at_ms - person.appended_ms[message_id]
        for person in world.people.values()
        for (_, message_id), at_ms in person.acknowledged_ms.items()
    ]
    acked = len(acks)
    waits = [*acks, *([NEVER_MS] * (expected - acked))]
    appended = max(at for one in world.people.values() for at in one.appended_ms.values())
    wire = world.traffic.bytes + world.traffic.presences * PRESENCE_BYTES
    content = said * case.size_bytes
    return Outcome(
        run=case.run,
        messages=said,
        expected=expected,
        delivered=found.delivered,
        delivered_share=found.delivered / expected,
        delivery_p50_ms=share_ms(delays, 0.5),
        delivery_p95_ms=share_ms(delays, 0.95),
        delivery_p99_ms=share_ms(delays, 0.99),
        acked_share=acked / expected,
        ack_p50_ms=share_ms(waits, 0.5),
        ack_p95_ms=share_ms(waits, 0.95),
        known_p95_ms=share_ms(waits, 0.95),
        held_by_all_share=_held_by_all(world) / said,
        content_bytes=content,
        wire_bytes=wire,
        bytes_per_message=wire / said,
        overhead=wire / max(content, 1) - 1,
        copies_per_message=found.copies_per_message,
        syncs_per_message=world.traffic.syncs / said,
        repairs=0,
        retransmissions=world.traffic.message_copies - expected,
        false_acks=_false_acks(world),
        maybe_acks=0,
        false_maybe_acks=0,
        converged=found.delivered == expected and not found.unfinished,
        causal_violations=0,
        virtual_ms=world.now_ms - appended,
    )


def _write(world: MvdsWorld, logs: Path) -> None:
    for name in sorted(world.people):
        person = world.people[name]
        person.finish_recording(START_MS, now_ms=world.now_ms)
        if person.recording is not None:
            person.recording.write(logs)


def _held_by_all(world: MvdsWorld) -> int:
    """Messages that every other member acknowledged."""
    acks = Counter(
        message_id
        for person in world.people.values()
        for _, message_id in person.acknowledged
        if message_id in person.appended_ms
    )
    return sum(count == len(world.people) - 1 for count in acks.values())


def _false_acks(world: MvdsWorld) -> int:
    """Acknowledged by one to whom it was not delivered."""
    return sum(
        message_id not in world.people[peer_id].delivered
        for person in world.people.values()
        for peer_id, message_id in person.acknowledged
    )
