"""What a long life and hostile members leave behind is bounded, too."""

import pytest
from msgspec.structs import replace

from engine.core.ids import UnixMs
from engine.core.sds import missing
from engine.core.sds.vocabulary import DependencyLost
from tests.core.sds.sds_bench import (
    BOB,
    NOW,
    SMALL,
    after,
    content,
    entries,
    log_of,
    member,
    said,
    sync,
)

DAY = 86_400_000


def test_of_what_is_lost_the_newest_marks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "LOST_KEPT", 5)
    alice = member(config=replace(SMALL, lost_after_ms=1_000))
    lost = 0
    for number in range(20):
        now_ms = after(10_000 * number)
        alice.handle(sync(BOB, history=entries(f"phantom-{number}")), now_ms=now_ms)
        alice.advance(now_ms=UnixMs(now_ms + 5_000))
        lost += len(said(alice, DependencyLost))
    assert lost == 20
    kept = [entry.entry.message_id for entry in alice.channel.snapshot().missing]
    assert kept == [f"phantom-{number}" for number in range(15, 20)]
    assert alice.store.state().missing == alice.channel.snapshot().missing
    alice.handle(content(BOB, "free", history=entries("phantom-19")), now_ms=after(DAY))
    alice.handle(content(BOB, "waits", history=entries("phantom-0")), now_ms=after(DAY))
    assert len(log_of(alice)) == 1


def test_due_times_that_are_over_are_forgotten_though_an_early_one_is_not() -> None:
    alice = member()
    alice.handle(sync(BOB, history=entries("never")), now_ms=NOW)
    for number in range(2_000):
        message = content(BOB, str(number), lamport=NOW + number)
        history = entries(message.message.message_id)
        alice.handle(sync(BOB, lamport=NOW + number, history=history), now_ms=after(number))
        alice.handle(message, now_ms=after(number))
        requests = entries("never")
        alice.handle(sync(BOB, lamport=NOW + number, requests=requests), now_ms=after(number))
    table = alice.channel._parts.missing
    assert len(table) == 1
    queued = sum(len(namer.queue) for namer in table._turns._namers.values())
    assert max(len(table._losses), len(table._turns._turns), queued) < 200
