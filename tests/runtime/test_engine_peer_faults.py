"""A bad line to one peer, made on purpose, between engines on real nodes; and its end."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.core.errors import InputError
from engine.core.fault_bench import FaultRule, FaultTarget, Preset
from engine.core.faults import FaultSpec
from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.runtime.engine import Engine
from engine.runtime.fault_bench import MAX_PEER_ID
from tests.runtime.blob_people import FilePerson, people
from tests.runtime.conftest import MakePerson
from tests.runtime.test_engine_pairs_bad_networks import shows


async def test_a_bad_line_to_one_peer_loses_what_goes_over_it_and_is_recorded(
    tmp_path: Path,
) -> None:
    logs = tmp_path / "logs"
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    settings = RecorderSettings(
        directory=logs, key=bytes(32), app_version="1", network="test", linger_ms=1
    )
    recorder = Recorder(settings, now_ms=alice.now_ms, random_bytes=os.urandom)
    alice.parts = replace(alice.parts, recorder=recorder)
    alice.engine = Engine(alice.parts)
    async with people(alice, bob) as group:
        bobs_peer = FaultTarget(peer_id=bob.addresses()[0].rpartition("/")[2])
        faults = alice.engine.faults
        faults.set(bobs_peer, FaultRule(spec=FaultSpec(loss=1.0)))
        assert faults.view().about(group) == ()
        assert [each.target for each in faults.view().of_peers] == [bobs_peer]
        await alice.engine.timeline.send_text(group, "nowhere")
        await alice.until_counted("faults.lost", 1)
        assert not any(shows("nowhere")(event) for event in bob.told)
        assert set(faults.view().counts) <= {"lost_in", "lost_out"}
        faults.set(bobs_peer, FaultRule(paused=True))
        await alice.engine.timeline.send_text(group, "held")
        await alice.until_counted("faults.held", 1)
        assert not any(shows("held")(event) for event in bob.told)
        faults.stop(bobs_peer)
        assert not faults.view().is_on
        await bob.until(shows("held"))
    (path,) = find_logs(logs)
    columns = ("kind", "channel", "detail", "waku_hash", "wire_bytes", "peer")
    with LogReader(path) as log:
        rows = [row for batch in log.batches(DELIVERY_EVENT, columns) for row in batch]
    ways = ("peer_lost_in", "peer_lost_out")
    lost = [row for row in rows if row[0] == Kind.FAULT.value and row[2] in ways]
    assert lost
    assert all(row[1] is None and row[3] and row[4] and row[5] is None for row in lost)


async def test_a_peer_has_faults_within_bounds_and_a_preset_for_it_ends(
    person: MakePerson,
) -> None:
    alice = await person("Alice")
    faults = alice.engine.faults
    for peer_id in ("", "p" * (MAX_PEER_ID + 1)):
        with pytest.raises(InputError):
            faults.set(FaultTarget(peer_id=peer_id), FaultRule(paused=True))
    faults.start(FaultTarget(peer_id="peer"), Preset.PARTITION)
    assert len(faults.view().of_peers) == 1
    alice.passed_ms += 30_001
    assert not faults.view().is_on
