"""Recording that begins and ends while real engines talk: what is in the log, and what is not."""

import os
from pathlib import Path

from engine.core.fault_bench import FaultRule, FaultTarget
from engine.core.faults import FaultSpec
from engine.core.ids import ConversationId, MessageId
from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, Kind, Table
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.network.memory import MemoryNetwork
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_fault_bench import group_of
from tests.runtime.test_engine_pairs_bad_networks import shows


def recorder_in(logs: Path, owner: Person) -> Recorder:
    return Recorder(
        RecorderSettings(
            directory=logs, key=bytes(32), app_version="1", network="test", linger_ms=1
        ),
        now_ms=owner.now_ms,
        random_bytes=os.urandom,
    )


def rows(path: Path, table: Table, *columns: str) -> list[tuple[object, ...]]:
    with LogReader(path) as log:
        return [row for batch in log.batches(table, columns) for row in batch]


async def said(alice: Person, bob: Person, group: ConversationId, text: str) -> MessageId:
    message_id = await alice.engine.timeline.send_text(group, text)
    await bob.until(shows(text))
    return message_id


async def test_the_log_holds_what_happened_while_it_was_on_and_nothing_else(
    person: MakePerson, tmp_path: Path
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group, logs = await group_of(alice, bob), tmp_path / "logs"
    before = await said(alice, bob, group, "before")
    await alice.engine.record(recorder_in(logs, alice))
    while_on = await said(alice, bob, group, "while it is on")
    await alice.engine.record(None)
    (first,) = find_logs(logs)
    kinds = [kind for kind, _ in rows(first, DELIVERY_EVENT, "kind", "message_id")]
    assert kinds[0] == Kind.STARTED.value
    assert Kind.ONLINE.value in kinds
    assert kinds[-1] == Kind.STOPPED.value
    after = await said(alice, bob, group, "after")
    sent = {
        message_id
        for kind, message_id in rows(first, DELIVERY_EVENT, "kind", "message_id")
        if kind == Kind.SENT.value
    }
    assert while_on in sent
    assert not {before, after} & sent
    # Its final order has all that was there, so an audit does not take "before" for lost.
    placed = {row[0] for row in rows(first, LOG_SNAPSHOT, "message_id")}
    assert {before, while_on} <= placed
    assert after not in placed


async def test_it_can_be_switched_on_again_under_another_key(
    person: MakePerson, tmp_path: Path
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group, logs = await group_of(alice, bob), tmp_path / "logs"
    alice.engine.faults.set(
        FaultTarget(conversation_id=group), FaultRule(spec=FaultSpec(dup=0.5, seed=1))
    )
    await alice.engine.record(recorder_in(logs, alice))
    await said(alice, bob, group, "first")
    again = recorder_in(logs / "again", alice)
    await alice.engine.record(again)
    await alice.engine.record(again)  # Harmless.
    second = await said(alice, bob, group, "second")
    (log,) = find_logs(logs / "again")
    await alice.engine.stop()
    events = rows(log, DELIVERY_EVENT, "kind", "message_id", "detail")
    assert (Kind.FAULT.value, None, "begun") in events  # It was on when this log began.
    assert second in {row[1] for row in events}


async def test_before_there_is_an_identity_it_waits_for_one(
    tmp_path: Path,
) -> None:
    alice, logs = Person("Alice", tmp_path, MemoryNetwork()), tmp_path / "logs"
    await alice.engine.start()
    await alice.engine.record(recorder_in(logs, alice))
    assert not logs.exists()
    await alice.engine.create_identity("Alice")
    await alice.engine.groups.create("Tide")
    await alice.engine.stop()
    (log,) = find_logs(logs)
    kinds = [kind for (kind,) in rows(log, DELIVERY_EVENT, "kind")]
    assert kinds[0] == Kind.STARTED.value
    assert kinds[-1] == Kind.STOPPED.value
