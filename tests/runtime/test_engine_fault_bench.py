"""Bad networks made on purpose, on real engines: they get over them, and nothing of it is kept."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.core.errors import CommandError, InputError
from engine.core.fault_bench import EVERYTHING, MAX_WAITING_COPIES, FaultRule, FaultTarget, Preset
from engine.core.faults import FaultSpec
from engine.core.ids import ConversationId, ParticipantId
from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.events import ClockJudged, EngineEvent, MessageAdded
from engine.fault_views import FaultsChanged
from engine.network.memory import MemoryNetwork
from engine.runtime.engine import Engine
from engine.runtime.fault_bench import MAX_CUT_OFF, MAX_PEER_ID
from engine.runtime.job_queue import INBOX_SIZE
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_pairs_bad_networks import all_delivered, friends, shows, texts

PARTITION_MS = 30_000
COUNT = 6


def ended(event: EngineEvent) -> bool:
    return isinstance(event, FaultsChanged) and not event.faults.is_on


async def group_of(alice: Person, bob: Person) -> ConversationId:
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.engine.timeline.send_text(group, "hello")
    await bob.until(shows("hello"))
    return group


def pass_time(*people: Person, ms: int) -> None:
    for one in people:
        one.passed_ms += ms
        one.engine.faults.view()  # It looks at the clock.
        one.engine.own_clock()


async def test_with_30_percent_lost_everything_arrives_in_the_end(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await friends(alice, bob)
    bad = FaultRule(spec=FaultSpec(loss=0.3, dup=0.2, reorder=0.3, delay_ms=(1, 20), seed=5))
    alice.engine.faults.set(FaultTarget(conversation_id=pair), bad)
    for number in range(COUNT):
        await alice.engine.timeline.send_text(pair, f"a{number}")
        await bob.engine.timeline.send_text(pair, f"b{number}")
    await alice.until_in_time(all_delivered(COUNT), pair, bob)
    await bob.until_in_time(all_delivered(COUNT), pair, alice)
    hers, his = await texts(alice, pair), await texts(bob, pair)
    assert hers == his
    assert len(hers) == 2 * COUNT
    counts = alice.engine.faults.view().counts
    assert counts["lost_out"] + counts.get("lost_in", 0) >= 1
    assert not bob.engine.faults.view().is_on


async def test_a_partition_of_30_seconds_ends_by_itself_and_heals(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await group_of(alice, bob)
    alice.engine.faults.start(EVERYTHING, Preset.PARTITION)
    await alice.engine.timeline.send_text(group, "from behind the wall")
    await bob.engine.timeline.send_text(group, "to behind the wall")
    await alice.until_counted("faults.lost", 2)
    assert not any(shows("from behind the wall")(event) for event in bob.told)
    pass_time(alice, bob, ms=PARTITION_MS - 1_000)
    assert alice.engine.faults.view().is_on
    pass_time(alice, bob, ms=1_001)
    await alice.until(ended)
    pass_time(alice, bob, ms=600_000)  # Whatever they wait for is due.
    await bob.until(shows("from behind the wall"))
    await alice.until(shows("to behind the wall"))


async def test_a_pause_holds_both_ways_and_stopping_lets_go(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await group_of(alice, bob)
    alice.engine.faults.set(FaultTarget(conversation_id=group), FaultRule(paused=True))
    await alice.engine.timeline.send_text(group, "held out")
    await bob.engine.timeline.send_text(group, "held in")
    await alice.until_counted("faults.held", 2)
    assert alice.engine.faults.view().waiting >= 2
    assert not any(isinstance(e, MessageAdded) and e.message.text == "held in" for e in alice.told)
    alice.engine.faults.stop_all()
    assert alice.engine.faults.view().waiting == 0
    await alice.until(shows("held in"))
    await bob.until(shows("held out"))


async def test_a_fault_of_one_conversation_leaves_others_alone(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    bad, good = await group_of(alice, bob), await alice.engine.groups.create("Ebb")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(good))
    alice.engine.faults.set(FaultTarget(conversation_id=bad), FaultRule(spec=FaultSpec(loss=1.0)))
    await alice.engine.timeline.send_text(bad, "nowhere")
    await alice.engine.timeline.send_text(good, "everywhere")
    await bob.until(shows("everywhere"))
    assert not any(shows("nowhere")(event) for event in bob.told)


async def test_a_skewed_clock_is_noticed_as_a_wrong_one(person: MakePerson) -> None:
    alice, bob, cleo = await person("Alice"), await person("Bob"), await person("Cleo")
    group = await group_of(alice, bob)
    await cleo.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    alice.engine.faults.skew(-3_600_000)
    for name, other in (("b", bob), ("c", cleo)):
        await alice.engine.timeline.send_text(group, f"for {name}")
        await other.until(shows(f"for {name}"))
        await other.engine.timeline.send_text(group, f"from {name}")
    # What comes from them is held aside until the clocks agree.
    told = await alice.until(lambda e: isinstance(e, ClockJudged) and e.clock is not None)
    assert isinstance(told, ClockJudged)
    assert told.clock is not None
    assert told.clock.behind_ms > 3_000_000
    with pytest.raises(InputError):
        alice.engine.faults.skew(25 * 3_600_000)


async def test_a_skewed_clock_changes_nothing_of_how_long_ago_something_happened(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    await bob.engine.timeline.send_text(await group_of(alice, bob), "hello again")
    await alice.until(shows("hello again"))
    right = alice.engine.network()
    for skew_ms in (-3_600_000, 3_600_000):
        alice.engine.faults.skew(skew_ms)
        view = alice.engine.network()
        # Connections are dated by the system's time.
        assert view.at_ms - right.at_ms < 3_000_000
        assert view.at_ms >= right.at_ms
        (heard,) = view.people
        assert heard.heard_ms is not None
        assert 0 <= view.at_ms - heard.heard_ms < 3_000_000


async def test_after_a_restart_there_are_no_faults(tmp_path: Path) -> None:
    alice = await Person("Alice", tmp_path, MemoryNetwork()).start()
    group = await alice.engine.groups.create("Tide")
    alice.engine.faults.set(FaultTarget(conversation_id=group), FaultRule(paused=True))
    alice.engine.faults.start(EVERYTHING, Preset.TRAIN)
    alice.engine.faults.skew(60_000)
    await alice.engine.stop()
    again = Engine(replace(alice.parts, make_transport=lambda _seed: MemoryNetwork().attach("A")))
    await again.start()
    try:
        assert not again.faults.view().is_on
        assert again.own_clock() is None
    finally:
        await again.stop()


async def test_what_is_not_there_has_no_faults(person: MakePerson) -> None:
    alice = await person("Alice")
    with pytest.raises(CommandError):
        alice.engine.faults.start(
            FaultTarget(conversation_id=ConversationId("nowhere")), Preset.HOTEL
        )
    group = await alice.engine.groups.create("Tide")
    alice.engine.faults.start(FaultTarget(conversation_id=group), Preset.HOTEL)
    await alice.engine.groups.leave(group)
    assert not alice.engine.faults.view().is_on


async def test_what_was_done_on_purpose_stands_in_the_delivery_log(tmp_path: Path) -> None:
    network, logs = MemoryNetwork(), tmp_path / "logs"
    alice, bob = Person("Alice", tmp_path, network), Person("Bob", tmp_path, network)
    recorder = Recorder(
        RecorderSettings(
            directory=logs, key=bytes(32), app_version="1", network="test", linger_ms=1
        ),
        now_ms=alice.now_ms,
        random_bytes=os.urandom,
    )
    alice.engine = Engine(replace(alice.parts, recorder=recorder))
    await alice.start()
    await bob.start()
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    alice.engine.faults.set(FaultTarget(conversation_id=group), FaultRule(spec=FaultSpec(loss=1.0)))
    said = await alice.engine.timeline.send_text(group, "nowhere")
    await alice.until_counted("faults.lost", 1)
    alice.engine.faults.stop_all()
    await alice.engine.stop()
    await bob.engine.stop()
    (path,) = find_logs(logs)
    with LogReader(path) as log:
        columns = ("kind", "channel", "message_id", "detail", "wire_bytes")
        rows = [row for batch in log.batches(DELIVERY_EVENT, columns) for row in batch]
    faults = [row for row in rows if row[0] == Kind.FAULT.value]
    assert [row[3] for row in faults if row[1] is None] == ["begun", "ended"]
    lost = [row for row in faults if row[3] == "lost_out" and row[2] == said]
    assert lost
    assert all(row[4] for row in lost)


def test_a_conversation_has_room_for_all_that_a_pause_held() -> None:
    assert MAX_WAITING_COPIES < INBOX_SIZE


async def test_what_one_member_sends_is_lost_and_comes_by_others(person: MakePerson) -> None:
    alice, bob, cleo = await person("Alice"), await person("Bob"), await person("Cleo")
    group = await group_of(alice, bob)
    await cleo.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await cleo.until(shows("hello"))
    bobs_id = bob.engine.identity()
    assert bobs_id is not None
    lost = FaultRule(spec=FaultSpec(loss=1.0))
    of_bob = FaultTarget(conversation_id=group, participant_id=bobs_id.participant_id)
    alice.engine.faults.set(of_bob, lost)
    await bob.engine.timeline.send_text(group, "from Bob")
    await cleo.until(shows("from Bob"))
    await cleo.engine.timeline.send_text(group, "from Cleo, who has it")
    await alice.until_counted("faults.lost", 1)
    # Cleo's own copy was not touched; it names Bob's, which Cleo repairs when it is asked for.
    for _ in range(40):
        if any(shows("from Bob")(event) for event in alice.told):
            break
        pass_time(alice, bob, cleo, ms=60_000)
        await alice.engine.timeline.send_text(group, "on it goes")
    await alice.until(shows("from Bob"))
    await alice.until(shows("from Cleo, who has it"))
    counts = alice.engine.faults.view().counts
    assert counts["lost_in"] >= 1
    assert "lost_out" not in counts, "what goes out goes to everybody"


async def test_a_fault_needs_a_member_of_a_group(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group, stranger = await group_of(alice, bob), ParticipantId("f" * 32)
    rule = FaultRule(paused=True)
    with pytest.raises(CommandError):
        alice.engine.faults.set(FaultTarget(conversation_id=group, participant_id=stranger), rule)
    bobs_id = bob.engine.identity()
    assert bobs_id is not None
    with pytest.raises(CommandError):
        alice.engine.faults.set(FaultTarget(participant_id=bobs_id.participant_id), rule)
    alice.engine.faults.set(FaultTarget(conversation_id=group), FaultRule(spec=FaultSpec(loss=1.0)))
    bobs = FaultTarget(conversation_id=group, participant_id=bobs_id.participant_id)
    alice.engine.faults.start(bobs, Preset.PARTITION)
    own, of_bob = alice.engine.faults.view().about(group)
    assert (own.target.participant_id, of_bob.target) == (None, bobs)
    alice.engine.faults.stop(FaultTarget(conversation_id=group))
    assert [each.target for each in alice.engine.faults.view().faults] == [bobs]
    pass_time(alice, ms=PARTITION_MS + 1)
    assert not alice.engine.faults.view().is_on


async def test_peers_are_cut_off_within_bounds_and_for_a_while(person: MakePerson) -> None:
    alice = await person("Alice")
    faults = alice.engine.faults
    faults.cut_off("peer", PARTITION_MS)
    assert [each.peer_id for each in faults.view().cut_off] == ["peer"]
    assert faults.view().is_on
    pass_time(alice, ms=PARTITION_MS + 1)
    assert not faults.view().is_on
    with pytest.raises(InputError):
        faults.cut_off("p" * (MAX_PEER_ID + 1))
    for number in range(MAX_CUT_OFF):
        faults.cut_off(f"peer {number}")
    with pytest.raises(CommandError):
        faults.cut_off("one too many")
    faults.stop_all()
    assert not faults.view().is_on
