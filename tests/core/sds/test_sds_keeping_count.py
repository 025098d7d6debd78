"""What is counted, remembered and told again: shares of room, attempts, online time, claims."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import CopyAccepted, ResendRequested
from engine.core.sds.log import LogIndex
from engine.core.sds.vocabulary import (
    DependencyLost,
    HistoryEntry,
    LogEntry,
    MessageShownWaiting,
    OutgoingState,
    SendPurpose,
)
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    MEMBERS,
    NOW,
    SMALL,
    after,
    content,
    dep,
    entries,
    holds,
    id_of,
    log_of,
    member,
    run_until,
    said,
    sync,
    syncs,
)

HOUR = 3_600_000


# --- room ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [replace(SMALL, max_waiting_bytes=5_000), replace(SMALL, max_waiting_bytes_per_sender=5_000)],
)
def test_bytes_that_no_longer_wait_are_room_again(config: SdsConfig) -> None:
    alice = member(config=config)
    stays = content(BOB, "stays", lamport=NOW - 1, history=entries("never"))
    alice.handle(stays, now_ms=NOW)
    for round_ in range(5):
        first = content(BOB, f"first {round_}", lamport=NOW + 100 * round_)
        for number in range(10):
            text = f"{number}" + "x" * 1_000
            lamport = NOW + 100 * round_ + number + 1
            waiting = content(BOB, text, lamport=lamport, history=dep(first))
            alice.handle(waiting, now_ms=NOW)
        assert len(alice.channel.snapshot().incoming) == 1 + 4
        alice.handle(first, now_ms=NOW)
        assert [e.message for e in alice.channel.snapshot().incoming] == [stays.message]
    assert len(log_of(alice)) == 5 * 5


def test_all_senders_together_have_so_many_bytes() -> None:
    alice = member(config=replace(SMALL, max_waiting_bytes=5_000))
    for number in range(10):
        sender = ParticipantId(f"member-{number}")
        alice.handle(content(sender, "x" * 1_000, history=entries("y")), now_ms=NOW)
    assert len(alice.channel.snapshot().incoming) == 4


def test_all_senders_together_may_name_so_many_dependencies() -> None:
    alice = member(config=replace(SMALL, max_missing=5))
    for number in range(10):
        sender = ParticipantId(f"member-{number}")
        alice.handle(sync(sender, history=entries(f"x{number}")), now_ms=NOW)
    assert len(alice.channel.snapshot().missing) == 5


def test_what_is_found_is_no_longer_of_its_namers_share() -> None:
    alice = member(config=replace(SMALL, max_missing_per_sender=2))
    for number in range(10):
        found = content(CAROL, str(number), lamport=NOW + number)
        alice.handle(sync(BOB, lamport=NOW + number, history=dep(found)), now_ms=NOW)
        assert len(alice.channel.snapshot().missing) == 1
        alice.handle(found, now_ms=NOW)
    assert alice.counters["sds.missing_overflow"] == 0


def test_what_gave_way_is_looked_for_if_somebody_waits_for_it() -> None:
    alice = member(config=replace(SMALL, max_waiting_per_sender=1))
    newer = content(BOB, "newer", lamport=NOW + 2, history=entries("x"))
    alice.handle(newer, now_ms=NOW)
    alice.handle(content(CAROL, "waits", lamport=NOW + 3, history=dep(newer)), now_ms=NOW)
    alice.handle(content(BOB, "older", lamport=NOW + 1, history=entries("x")), now_ms=NOW)
    missing = {e.entry.message_id: e.entry for e in alice.channel.snapshot().missing}
    assert missing.keys() == {MessageId("x"), id_of(newer)}
    assert missing[id_of(newer)] == HistoryEntry(id_of(newer), newer.retrieval_hint, BOB)


# --- attempts -----------------------------------------------------------------------------------


def given_up() -> tuple[ChannelParticipant, MessageId]:
    alice = member()
    alice.send("x", now_ms=NOW)
    run_until(alice, NOW + 2 * HOUR)
    (entry,) = alice.channel.snapshot().outgoing
    assert entry.state is OutgoingState.FAILED
    return alice, entry.message_id


def test_a_copy_that_was_taken_after_all_revives_what_was_given_up() -> None:
    alice, message_id = given_up()
    before = alice.sends["retransmission"]
    alice.handle(CopyAccepted(message_id, 1), now_ms=after(2 * HOUR))
    (entry,) = alice.channel.snapshot().outgoing
    assert entry.state is OutgoingState.UNACKNOWLEDGED
    run_until(alice, NOW + 4 * HOUR)
    assert alice.sends["retransmission"] > before


def test_sent_again_by_the_user_it_has_all_its_attempts_again() -> None:
    alice, message_id = given_up()
    before = sum(alice.sends[kind] for kind in (SendPurpose.CONTENT, SendPurpose.RETRANSMISSION))
    alice.handle(ResendRequested(message_id=message_id), now_ms=after(2 * HOUR))
    run_until(alice, NOW + 4 * HOUR)
    now = sum(alice.sends[kind] for kind in (SendPurpose.CONTENT, SendPurpose.RETRANSMISSION))
    assert now - before == SMALL.fail_after_attempts


def test_copies_of_what_is_not_ours_are_no_news() -> None:
    alice = member()
    theirs = content(BOB, "x")
    alice.handle(theirs, now_ms=NOW)
    copy = CopyAccepted(id_of(theirs), 1, b"h" * 32)
    assert alice.channel.handle(copy, now_ms=NOW).writes == []


# --- time ---------------------------------------------------------------------------------------


def lost(alice: ChannelParticipant, start_ms: int, end_ms: int) -> list[UnixMs]:
    found, now_ms = [], UnixMs(start_ms)
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= end_ms:
        now_ms = max(deadline_ms, now_ms)
        alice.advance(now_ms=now_ms)
        found += [now_ms] * len(said(alice, DependencyLost))
    return found


LOST_SOON = replace(SMALL, lost_after_ms=100_000, repair_backoff_max_ms=2_000)


def test_offline_time_is_none_even_when_it_is_looked_at_often() -> None:
    alice = member(config=LOST_SOON)
    alice.handle(sync(BOB, history=entries("x")), now_ms=NOW)
    alice.set_online(False, now_ms=NOW)
    for minute in range(60):
        alice.advance(now_ms=after(60_000 * minute))
    alice.set_online(True, now_ms=after(HOUR))
    assert lost(alice, after(HOUR), after(HOUR + 99_999)) == []
    assert len(lost(alice, after(HOUR), after(HOUR + 100_000))) == 1


def test_the_time_that_was_searched_outlives_a_restart() -> None:
    alice = member(config=LOST_SOON)
    alice.handle(sync(BOB, history=entries("x")), now_ms=NOW)
    assert lost(alice, NOW, after(90_000)) == []
    alice.restart(now_ms=after(90_000))
    (at_ms,) = lost(alice, after(90_000), after(300_000))
    assert after(100_000) <= at_ms <= after(110_000)


def test_shown_once_is_not_shown_again_after_a_restart() -> None:
    alice = member()
    alice.handle(content(BOB, "waits", history=entries("x")), now_ms=NOW)
    run_until(alice, after(60_000))
    alice.restart(now_ms=after(61_000))
    shown = 0
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= after(200_000):
        alice.advance(now_ms=max(deadline_ms, after(61_000)))
        shown += len(said(alice, MessageShownWaiting))
    assert shown == 0


# --- what others told ---------------------------------------------------------------------------


def test_more_about_a_missing_message_is_learned_from_whoever_knows() -> None:
    alice = member()
    alice.handle(sync(BOB, history=entries("x")), now_ms=NOW)
    better = HistoryEntry(MessageId("x"), b"h" * 32, CAROL)
    alice.handle(sync(CAROL, history=(better,)), now_ms=NOW)
    assert [entry.entry for entry in alice.store.state().missing] == [better]


def level() -> ChannelParticipant:
    """Alice, whom nobody keeps talking."""
    alice = member(members=frozenset({ALICE, BOB}))
    alice.handle(content(BOB, "x", sequence=1), now_ms=NOW)
    alice.handle(sync(BOB, lamport=NOW + 1, holdings=holds((BOB, 1, 1))), now_ms=NOW)
    run_until(alice, after(HOUR))
    assert alice.next_deadline() is None
    return alice


@pytest.mark.parametrize("away", ["offline", "member"])
def test_what_was_claimed_before_is_claimed_no_longer(away: str) -> None:
    """So a member that came back goes on introducing itself until it is heard."""
    alice = level()
    if away == "offline":
        alice.set_online(False, now_ms=after(HOUR))
        alice.set_online(True, now_ms=after(HOUR))
    else:
        for members in (frozenset({ALICE, CAROL}), frozenset({ALICE, BOB})):
            alice.set_members(members, now_ms=after(HOUR))
    assert len(syncs(run_until(alice, after(2 * HOUR)))) > 3


def test_rounds_are_frequent_again_once_a_silent_member_says_something_new() -> None:
    alice = member()
    alice.handle(content(BOB, "x", sequence=1), now_ms=NOW)
    run_until(alice, after(24 * HOUR))
    slow = len(syncs(run_until(alice, after(25 * HOUR))))
    claim = sync(BOB, lamport=after(25 * HOUR), holdings=holds((BOB, 1, 1)))
    alice.handle(claim, now_ms=after(25 * HOUR))
    first = [at_ms for at_ms, _ in syncs(run_until(alice, after(26 * HOUR)))]
    assert len(first) > slow


def test_js_wakus_wait_after_an_own_sync_is_twice_its_interval() -> None:
    config = replace(SdsConfig.js_defaults(), sync_multiplier_start=1.0)
    alice = member(config=config, members=MEMBERS)
    alice.send("x", now_ms=NOW)
    times = [at_ms for at_ms, _ in syncs(run_until(alice, after(2 * HOUR)))]
    waits_ms = [later - at_ms for at_ms, later in pairwise(times)]
    assert config.sync_interval_ms * 1.5 < max(waits_ms) <= config.sync_interval_ms * 2


def test_a_log_is_loaded_in_order_though_equal_times_come_out_of_order() -> None:
    ids = ["b", "a", "d", "c"]
    loaded = LogIndex(
        LogEntry(Position(NOW + index // 2, MessageId(item)), BOB) for index, item in enumerate(ids)
    )
    assert loaded.newest_ids(4) == ["d", "c", "b", "a"]
