"""Simulated participants record by the same contract, and what they record is the truth."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.vocabulary import GroupId
from engine.delivery.check import problem_of
from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, LOG_TABLES, MEMBERSHIP, MESSAGE
from engine.delivery.sqlite_log import LogReader
from engine.sim.mvds.participant import MvdsParticipant
from engine.sim.mvds.world import START_MS, MvdsWorld
from engine.sim.recording import SimRecording
from engine.sim.world import World

MEMBERS = 4
MESSAGES = 60


@pytest.fixture(scope="module")
def world() -> World:
    """A bad network, a crash, one cut off, and at its end everybody holds everything."""
    world = World(seed=11, size=MEMBERS, loss=0.5)
    network = world.network
    for person in world.people.values():
        person.record("run-1", now_ms=network.now_ms)
    began_ms, end_ms = network.now_ms, world.talk(MESSAGES)
    world.crash("member-1", began_ms + 5_000, down_ms=4_000)
    alone, others = ["member-0"], [f"member-{number}" for number in range(1, MEMBERS)]
    network.at(UnixMs(began_ms + 10_000), lambda net: net.partition(alone, others))
    network.at(UnixMs(began_ms + 70_000), lambda net: net.heal())
    network.run_until(end_ms)
    assert network.run_until(UnixMs(end_ms + 3_600_000), stop=world.all_held) or world.all_held()
    for person in world.people.values():
        person.finish_recording(began_ms, now_ms=network.now_ms)
    return world


def _recordings(world: World) -> list[SimRecording]:
    found = [person.recording for person in world.people.values()]
    return [one for one in found if one is not None]


def _column(rows: list[tuple[object, ...]], name: str, kind: str | None = None) -> list[object]:
    at, kind_at = DELIVERY_EVENT.names.index(name), DELIVERY_EVENT.names.index("kind")
    return [row[at] for row in rows if kind is None or row[kind_at] == kind]


def test_all_logs_agree_with_what_was_simulated(world: World) -> None:
    orders = set()
    for person, recording in zip(world.people.values(), _recordings(world), strict=True):
        tables = recording.tables()
        events = tables[DELIVERY_EVENT]
        assert _column(events, "message_id", "sent") == person.seen.sent
        assert _column(events, "message_id", "delivered") == [
            one for one, _ in person.seen.deliveries
        ]
        assert _column(events, "seq") == list(range(1, len(events) + 1))
        assert len(_column(events, "mid", "acked")) >= len(person.seen.sent) * (MEMBERS - 1)
        snapshot = [row[LOG_SNAPSHOT.names.index("message_id")] for row in tables[LOG_SNAPSHOT]]
        assert snapshot == person.store.log_ids()
        orders.add(tuple(snapshot))
        assert len(tables[MESSAGE]) == MESSAGES
        assert len(tables[MEMBERSHIP]) == MEMBERS
    assert len(orders) == 1


def test_each_kind_of_trouble_is_told(world: World) -> None:
    kinds = Counter(
        kind for one in _recordings(world) for kind in _column(one.tables()[DELIVERY_EVENT], "kind")
    )
    wanted = {"missing", "repair_requested", "repair_sent", "retransmitted", "duplicate", "acked"}
    assert wanted | {"published", "sync_sent", "sync_received", "possibly_acked"} <= set(kinds)
    assert kinds["started"] == MEMBERS + 1, "one of them began twice"
    assert kinds["sent"] == MESSAGES
    assert kinds["delivered"] == kinds["sent"] * MEMBERS
    assert kinds["published"] == MESSAGES
    sends: Counter[str] = Counter()
    for person in world.people.values():
        sends.update(person.sends)
    assert kinds["published"] + kinds["retransmitted"] == sends["content"] + sends["retransmission"]
    assert (kinds["repair_sent"], kinds["sync_sent"]) == (sends["repair"], sends["sync"])


def test_a_copy_has_the_same_hash_where_it_left_and_where_it_came(world: World) -> None:
    left, came = set(), set()
    for one in _recordings(world):
        events = one.tables()[DELIVERY_EVENT]
        for kind in ("published", "retransmitted", "repair_sent"):
            left |= set(_column(events, "waku_hash", kind))
        for kind in ("received", "duplicate"):
            came |= set(_column(events, "waku_hash", kind))
    assert came
    assert came <= left


def test_as_a_file_it_is_the_same_and_keeps_to_the_contract(world: World, tmp_path: Path) -> None:
    for one in _recordings(world):
        tables = one.tables()
        with LogReader(one.write(tmp_path)) as log:
            assert log.header.log_id == one.log_id
            for table in LOG_TABLES:
                rows = [row for batch in log.batches(table) for row in batch]
                assert sorted(rows, key=str) == sorted(tables[table], key=str)
                assert [problem for _, problem in log.checked(table) if problem] == []


def test_one_seed_is_one_log() -> None:
    def run() -> object:
        world = World(seed=3, size=3, loss=0.2)
        for person in world.people.values():
            person.record("again", now_ms=world.network.now_ms)
        world.network.run_until(UnixMs(world.talk(10) + 60_000))
        return [one.tables() for one in _recordings(world)]

    assert run() == run()


def test_mvds_keeps_to_the_contract_too() -> None:
    group = GroupId(b"g" * 32)
    names = [ParticipantId(f"m{number}") for number in range(3)]
    people = {
        name: MvdsParticipant(
            name,
            groups={group: frozenset(names) - {name}},
            config=MvdsConfig(),
            seed=5,
            now_ms=START_MS,
        )
        for name in names
    }
    world = MvdsWorld(people, FaultSpec(loss=0.3, delay_ms=(20, 200), dup=0.1, seed=5))
    for person in people.values():
        person.record("mvds-1", now_ms=START_MS)
    random = SeededRandom(5, "talk")
    for _ in range(20):
        speaker = names[random.between(0, 2)]
        others = [name for name in names if name != speaker]
        at_ms = START_MS + random.between(0, 60_000)
        world.at(at_ms, partial(world.say, speaker, others, 80))
    world.run_until(START_MS + 3_600_000)
    kinds: Counter[object] = Counter()
    orders = set()
    for person in people.values():
        person.finish_recording(START_MS, now_ms=world.now_ms)
        assert person.recording is not None
        tables = person.recording.tables()
        for table in (DELIVERY_EVENT, LOG_SNAPSHOT, MEMBERSHIP):
            assert [problem_of(table, row) for row in tables[table] if problem_of(table, row)] == []
        kinds.update(_column(tables[DELIVERY_EVENT], "kind"))
        assert len(_column(tables[DELIVERY_EVENT], "mid", "delivered")) == 20
        orders.add(tuple(row[LOG_SNAPSHOT.names.index("mid")] for row in tables[LOG_SNAPSHOT]))
        assert len(tables[MEMBERSHIP]) == 3
    assert len(orders) == 1
    assert (kinds["sent"], kinds["delivered"], kinds["received"]) == (20, 60, 40)
    assert kinds["acked"] == 40
    assert kinds["retransmitted"]
    assert kinds["published"] >= 40
