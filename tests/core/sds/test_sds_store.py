"""When Stores are asked: for what lacks, on js-waku's interval; for everything, on connecting."""

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import (
    DeadlineReached,
    HastenStoreQuery,
    RetrieveLostRequested,
    RetrieveRequested,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
    WindowAnswered,
)
from engine.core.sds.vocabulary import (
    AskStore,
    GapChanged,
    HistoryEntry,
    MissingEntry,
    MissingState,
    RepairRequested,
    StoresSaid,
)
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    BOB,
    NOW,
    SMALL,
    after,
    content,
    log_of,
    member,
    opened,
    said,
    sync,
)

DAY_MS = 86_400_000
MINUTE_MS = 60_000
X = content(BOB, "x", lamport=NOW)
HINTED = HistoryEntry(X.message.message_id, b"h" * 32, BOB)
WAITS = content(BOB, "waits", lamport=NOW + 1, history=[HINTED])


def _asked(alice: ChannelParticipant) -> list[AskStore]:
    asked, alice.asked_stores = alice.asked_stores, []
    return asked


def _with_store(config: SdsConfig = SMALL) -> ChannelParticipant:
    """A Store is there and has just answered."""
    alice = member(config=config)
    alice.handle(StoreChanged(reachable=True), now_ms=NOW)
    alice.handle(StoreAnswered(through_ms=NOW), now_ms=NOW)
    _asked(alice)
    return alice


def _times_asked(alice: ChannelParticipant, end_ms: int) -> list[int]:
    """At which times dependencies are asked for, in ms after NOW."""
    times: list[int] = []
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= NOW + end_ms:
        alice.handle(DeadlineReached(), now_ms=deadline_ms)
        times += [deadline_ms - NOW for ask in _asked(alice) if ask.missing]
    return times


def test_what_lacks_is_asked_for_by_its_hint_after_ten_seconds() -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(9_999))
    assert not _asked(alice)
    alice.handle(DeadlineReached(), now_ms=after(10_000))
    assert _asked(alice) == [AskStore(missing=(HINTED,))]


def test_the_wait_for_what_no_store_has_doubles_up_to_its_bound() -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    times = _times_asked(alice, 90 * MINUTE_MS)
    waits = [(b - a) // 1000 for a, b in zip([0, *times], times, strict=False)]
    assert waits[:7] == [10, 10, 20, 40, 80, 160, 320]
    assert set(waits[7:]) == {600}


def test_a_channel_like_js_wakus_asks_every_ten_seconds() -> None:
    alice = _with_store(replace(SdsConfig.js_defaults()))
    alice.handle(WAITS, now_ms=NOW)
    assert _times_asked(alice, 60_000) == [10_000, 20_000, 30_000, 40_000, 50_000, 60_000]


def test_it_is_asked_for_no_more_once_it_is_here() -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    alice.handle(X, now_ms=after(5_000))
    assert len(log_of(alice)) == 2
    assert _times_asked(alice, 10 * MINUTE_MS) == []


def test_without_a_hint_a_store_cannot_be_asked_until_somebody_tells_one() -> None:
    alice = _with_store()
    unhinted = HistoryEntry(HINTED.message_id)
    alice.handle(content(BOB, "waits", lamport=NOW + 1, history=[unhinted]), now_ms=NOW)
    assert _times_asked(alice, 30_000) == []
    more = content(BOB, "more", lamport=NOW + 2, history=[HINTED])
    alice.handle(more, now_ms=after(30_000))
    assert _times_asked(alice, 40_000) == [40_000]


def test_a_second_dependency_does_not_wait_for_the_first_ones_turn() -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    assert _times_asked(alice, 75_000) == [10_000, 20_000, 40_000]
    other = HistoryEntry(MessageId("y"), b"y" * 32)
    alice.handle(content(BOB, "z", lamport=NOW + 9, history=[other]), now_ms=after(75_000))
    alice.handle(DeadlineReached(), now_ms=after(85_000))
    assert [ask.missing for ask in _asked(alice)] == [(HINTED, other)]


def test_many_dependencies_are_one_question() -> None:
    alice = _with_store()
    history = [HistoryEntry(MessageId(f"m{n}"), bytes([n]) * 32) for n in range(200)]
    alice.handle(content(BOB, "waits", lamport=NOW + 1, history=history), now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(10_000))
    (ask,) = _asked(alice)
    assert set(ask.missing) == set(history)


def test_nothing_is_asked_while_no_store_or_no_network_is_there() -> None:
    alice = member()
    alice.handle(WAITS, now_ms=NOW)
    assert _times_asked(alice, MINUTE_MS) == []
    alice.set_online(False, now_ms=after(MINUTE_MS))
    alice.handle(StoreChanged(reachable=True), now_ms=after(MINUTE_MS))
    alice.handle(DeadlineReached(), now_ms=after(2 * MINUTE_MS))
    assert not _asked(alice)


def test_when_a_store_comes_what_lacks_is_asked_for_at_once() -> None:
    alice = member()
    alice.handle(WAITS, now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(MINUTE_MS))
    alice.handle(StoreChanged(reachable=True), now_ms=after(MINUTE_MS))
    alice.handle(DeadlineReached(), now_ms=after(MINUTE_MS))
    assert [ask.missing for ask in _asked(alice) if ask.missing] == [(HINTED,)]


def test_when_a_store_comes_back_it_is_asked_at_once_whatever_the_wait() -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    assert _times_asked(alice, 75_000)[-1] == 40_000
    for reachable in (False, True):
        alice.handle(StoreChanged(reachable=reachable), now_ms=after(76_000))
    alice.handle(DeadlineReached(), now_ms=after(76_000))
    assert [ask.missing for ask in _asked(alice) if ask.missing] == [(HINTED,)]


def test_the_users_wish_asks_at_once_whatever_the_wait() -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    assert _times_asked(alice, 75_000)[-1] == 40_000
    alice.handle(RetrieveRequested(), now_ms=after(76_000))
    alice.handle(DeadlineReached(), now_ms=after(76_000))
    assert [ask.missing for ask in _asked(alice)] == [(HINTED,)]


@pytest.mark.parametrize("back_ms", [DAY_MS, 400 * DAY_MS])
def test_a_clock_that_is_set_back_does_not_put_it_off(back_ms: int) -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    assert _times_asked(alice, 75_000)
    alice.handle(DeadlineReached(), now_ms=after(-back_ms))
    assert [ask.missing for ask in _asked(alice)] == [(HINTED,)]


# --- what no Store has --------------------------------------------------------------------------


def _lacks(alice: ChannelParticipant, *ids: MessageId, now_ms: UnixMs = NOW) -> None:
    """Stores have these neither by their hints nor by their times."""
    alice.handle(StoresMissing(message_ids=ids), now_ms=now_ms)
    _answer_windows(alice, now_ms=now_ms)


def _answer_windows(alice: ChannelParticipant, *, now_ms: UnixMs = NOW) -> None:
    for window in [window for ask in _asked(alice) for window in ask.windows]:
        alice.handle(WindowAnswered(window=window), now_ms=now_ms)


def test_what_no_store_has_of_long_ago_is_lost_at_once_so_that_what_followed_is_shown() -> None:
    alice = _with_store()
    old = content(BOB, "old", lamport=NOW - DAY_MS - 1, history=[HINTED])
    alice.handle(old, now_ms=NOW)
    assert log_of(alice) == []
    _lacks(alice, HINTED.message_id)
    assert log_of(alice) == [old.message.message_id]
    assert alice.seen.lost == {HINTED.message_id}
    assert said(alice, GapChanged) == [GapChanged(waiting=0)]
    assert _times_asked(alice, 60_000) == []


def test_if_it_turns_up_after_all_it_takes_its_place() -> None:
    alice = _with_store()
    first = content(BOB, "first", lamport=NOW - 2 * DAY_MS)
    entry = HistoryEntry(first.message.message_id, b"h" * 32, BOB)
    old = content(BOB, "old", lamport=NOW - DAY_MS - 1, history=[entry])
    alice.handle(old, now_ms=NOW)
    _lacks(alice, entry.message_id)
    alice.restart(now_ms=NOW)
    alice.handle(first, now_ms=NOW)
    assert log_of(alice) == [first.message.message_id, old.message.message_id]


def test_what_was_named_lately_may_still_be_with_its_members() -> None:
    alice = _with_store()
    alice.handle(content(BOB, "new", lamport=NOW - DAY_MS, history=[HINTED]), now_ms=NOW)
    _lacks(alice, HINTED.message_id)
    assert log_of(alice) == []
    assert not alice.seen.lost


def test_what_nobody_waits_for_or_looks_for_is_not_lost() -> None:
    alice = _with_store()
    mine = alice.store.log_ids()
    _lacks(alice, HINTED.message_id, MessageId("never heard of"))
    assert (log_of(alice), alice.seen.lost, alice.events) == (mine, set(), [])


def _entry(alice: ChannelParticipant) -> MissingEntry:
    (entry,) = (e for e in alice.channel.snapshot().missing if e.entry == HINTED)
    return entry


def test_who_answered_is_remembered_also_when_that_decides_nothing() -> None:
    alice = _with_store()
    old = content(BOB, "old", lamport=NOW - DAY_MS - 1, history=[HINTED])
    alice.handle(old, now_ms=NOW)
    undecided = StoresMissing(
        message_ids=(HINTED.message_id,), lacked=1, silent=("/dns4/silent",), decided=False
    )
    alice.handle(undecided, now_ms=NOW)
    assert log_of(alice) == []
    (window,) = (window for ask in _asked(alice) for window in ask.windows)
    assert _entry(alice).stores == StoresSaid(at_ms=NOW, lacked=1, silent=("/dns4/silent",))
    alice.handle(WindowAnswered(window=window, silent=undecided.silent), now_ms=NOW)
    assert log_of(alice) == []
    alice.handle(replace(undecided, decided=True), now_ms=after(MINUTE_MS))
    assert log_of(alice) == [old.message.message_id]
    alice.restart(now_ms=after(MINUTE_MS))
    said = _entry(alice).stores
    assert said is not None
    assert (_entry(alice).state, said.silent) == (MissingState.LOST, ("/dns4/silent",))


def _lost_and_then_asked_for(alice: ChannelParticipant) -> None:
    alice.handle(content(BOB, "old", lamport=NOW - DAY_MS - 1, history=[HINTED]), now_ms=NOW)
    _lacks(alice, HINTED.message_id)
    assert alice.seen.lost == {HINTED.message_id}
    _asked(alice)
    alice.handle(RetrieveLostRequested(message_ids=(HINTED.message_id,)), now_ms=NOW)


def test_a_lost_one_is_asked_for_once_more_and_nothing_waits_for_it() -> None:
    alice = _with_store()
    _lost_and_then_asked_for(alice)
    assert [ask.missing for ask in _asked(alice)] == [(HINTED,)]
    assert alice.channel.wants(HINTED.message_id)
    assert alice.channel.gaps() == ()
    later = content(BOB, "later", lamport=NOW - 10, history=[HINTED])
    alice.handle(later, now_ms=NOW)
    assert later.message.message_id in log_of(alice)


def test_members_are_asked_for_it_too_with_the_next_message() -> None:
    alice = _with_store()
    _lost_and_then_asked_for(alice)
    requested: list[object] = []
    for _ in range(10):
        alice.handle(DeadlineReached(), now_ms=alice.channel.next_deadline() or NOW)
        requested += said(alice, RepairRequested)
    assert requested == [RepairRequested(message_ids=(HINTED.message_id,))], "once"


def test_with_a_message_go_three_requests_and_no_more() -> None:
    alice = _with_store()
    _lost_and_then_asked_for(alice)
    names = [HistoryEntry(MessageId(f"{number}")) for number in range(10)]
    alice.handle(content(BOB, "more", lamport=NOW + 2, history=names), now_ms=NOW)
    (sent,) = opened(alice.send("mine", now_ms=after(MINUTE_MS)))
    requested = [entry.message_id for entry in sent.message.repair_request]
    assert requested[0] == HINTED.message_id
    assert len(requested) == SMALL.repair_requests_per_message


def test_hastened_it_is_asked_for_in_the_same_step() -> None:
    alice = _with_store()
    alice.handle(WAITS, now_ms=NOW)
    alice.handle(HastenStoreQuery(), now_ms=after(1))
    assert [ask.missing for ask in _asked(alice)] == [(HINTED,)]
    alice.handle(HastenStoreQuery(), now_ms=after(2))
    assert _asked(alice) == []  # It was asked for a moment ago.


def test_without_a_store_it_is_asked_for_when_there_is_one() -> None:
    alice = _with_store()
    alice.handle(content(BOB, "old", lamport=NOW - DAY_MS - 1, history=[HINTED]), now_ms=NOW)
    _lacks(alice, HINTED.message_id)
    alice.handle(StoreChanged(reachable=False), now_ms=NOW)
    _asked(alice)
    alice.handle(RetrieveLostRequested(message_ids=(HINTED.message_id,)), now_ms=NOW)
    assert _asked(alice) == []
    alice.handle(StoreChanged(reachable=True), now_ms=after(MINUTE_MS))
    assert [ask.missing for ask in _asked(alice) if ask.missing] == [(HINTED,)]


def test_what_nobody_lost_is_not_asked_for() -> None:
    alice = _with_store()
    alice.handle(RetrieveLostRequested(message_ids=(MessageId("never"),)), now_ms=NOW)
    assert (_asked(alice), alice.channel.wants(MessageId("never"))) == ([], False)


def test_each_gap_is_told_with_its_place_and_what_waits_behind_it() -> None:
    alice = _with_store()
    first = [HistoryEntry(MessageId(f"a{n}"), None) for n in range(3)]
    second = [HistoryEntry(MessageId("b"), None)]
    one = content(BOB, "one", lamport=NOW - 100, history=first)
    two = content(BOB, "two", lamport=NOW - 90, history=[HistoryEntry(one.message.message_id)])
    three = content(BOB, "three", lamport=NOW - 80, history=second)
    for received in (three, two, one):
        alice.handle(received, now_ms=NOW)
    places = [
        (gap.missing, gap.waiting, gap.before and gap.before.message_id)
        for gap in alice.channel.gaps()
    ]
    assert places == [(3, 2, one.message.message_id), (1, 1, three.message.message_id)]
    alice.restart(now_ms=NOW)
    assert [gap.missing for gap in alice.channel.gaps()] == [3, 1]


@pytest.mark.parametrize("unplaced", [False, True])
def test_of_very_many_gaps_the_last_are_told_as_one_and_nothing_is_uncounted(
    *, unplaced: bool
) -> None:
    alice, many = _with_store(replace(SMALL, max_gaps=5)), 12
    for number in range(many):
        entry = HistoryEntry(MessageId(f"d{number}"))
        waits = content(BOB, f"m{number}", lamport=NOW - 100 + number, history=[entry])
        alice.handle(waits, now_ms=NOW)
    if unplaced:
        alice.handle(sync(BOB, history=[HistoryEntry(MessageId("x"))]), now_ms=NOW)
    gaps = alice.channel.gaps()
    assert [gap.missing for gap in gaps] == [1, 1, 1, 1, many - 4, *([1] if unplaced else [])]
    assert [gap.waiting for gap in gaps] == [1, 1, 1, 1, many - 4, *([0] if unplaced else [])]
    assert [gap.before is None for gap in gaps] == [False] * 5 + [True] * unplaced


# --- on connect ---------------------------------------------------------------------------------


def _since(alice: ChannelParticipant) -> list[int]:
    """From when everything was asked for, in ms before NOW."""
    return [NOW - ask.since_ms for ask in _asked(alice) if ask.since_ms is not None]


def test_the_first_time_thirty_days_are_asked_for() -> None:
    alice = member()
    alice.handle(StoreChanged(reachable=True), now_ms=NOW)
    assert _since(alice) == [30 * DAY_MS]


def test_a_success_is_durable_and_the_next_query_starts_there() -> None:
    alice = _with_store()
    alice.restart(now_ms=after(MINUTE_MS))
    alice.handle(StoreChanged(reachable=True), now_ms=after(MINUTE_MS))
    assert _since(alice) == [0]


def test_a_query_that_did_not_succeed_is_asked_again_in_full() -> None:
    alice = member()
    for _ in range(2):
        alice.handle(StoreChanged(reachable=True), now_ms=NOW)
        assert _since(alice) == [30 * DAY_MS]
        alice.handle(StoreChanged(reachable=False), now_ms=NOW)


def test_what_was_said_while_offline_is_asked_for_on_coming_back() -> None:
    alice = _with_store()
    alice.set_online(False, now_ms=after(1_000))
    alice.set_online(True, now_ms=after(2_000))
    assert _since(alice) == [0]


def test_a_store_that_blinks_is_not_asked_again_within_five_minutes() -> None:
    alice = _with_store()
    for reachable in (False, True):
        alice.handle(StoreChanged(reachable=reachable), now_ms=after(5 * MINUTE_MS))
    assert _since(alice) == []
    for reachable in (False, True):
        alice.handle(StoreChanged(reachable=reachable), now_ms=after(5 * MINUTE_MS + 1))
    assert _since(alice) == [0]


def test_it_reaches_no_further_back_than_thirty_days() -> None:
    alice = _with_store()
    now_ms = after(45 * DAY_MS)
    alice.restart(now_ms=now_ms)
    alice.handle(StoreChanged(reachable=True), now_ms=now_ms)
    assert _since(alice) == [-15 * DAY_MS]


def test_a_success_that_lies_in_the_future_tells_nothing_and_is_put_right() -> None:
    alice = _with_store()
    alice.restart(now_ms=after(-DAY_MS))
    alice.handle(StoreChanged(reachable=True), now_ms=after(-DAY_MS))
    assert _since(alice) == [31 * DAY_MS]
    alice.handle(StoreAnswered(through_ms=after(-DAY_MS)), now_ms=after(-DAY_MS))
    assert alice.store.state().store_queried_ms == after(-DAY_MS)


def test_it_can_be_switched_off() -> None:
    alice = member(config=replace(SMALL, query_on_connect=False))
    alice.handle(StoreChanged(reachable=True), now_ms=NOW)
    assert not _asked(alice)


def test_a_clock_before_its_epoch_asks_from_the_beginning() -> None:
    alice = member()
    alice.handle(StoreChanged(reachable=True), now_ms=UnixMs(5))
    assert [ask.since_ms for ask in _asked(alice)] == [0]
