"""What Stores do not find by its hint is asked for by time: where, how often, until when."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import (
    DeadlineReached,
    MessageReceived,
    RetrieveLostRequested,
    RetrieveRequested,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
    WindowAnswered,
)
from engine.core.sds.vocabulary import HistoryEntry, MissingState, StoreWindow
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    BOB,
    CAROL,
    NOW,
    SMALL,
    after,
    content,
    id_of,
    log_of,
    member,
    sync,
)

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
X = content(BOB, "x", lamport=NOW - 40 * SECOND)
PLAIN = HistoryEntry(id_of(X))
HINTED = HistoryEntry(id_of(X), b"h" * 32, BOB)


def alice_with_store(config: SdsConfig = SMALL) -> ChannelParticipant:
    alice = member(config=config)
    alice.handle(StoreChanged(reachable=True), now_ms=NOW)
    alice.handle(StoreAnswered(through_ms=NOW), now_ms=NOW)
    alice.asked_stores.clear()
    return alice


def asked(alice: ChannelParticipant) -> list[StoreWindow]:
    windows = [window for ask in alice.asked_stores for window in ask.windows]
    alice.asked_stores.clear()
    return windows


def entry(received: MessageReceived) -> HistoryEntry:
    return HistoryEntry(id_of(received))


def window(since_ms: int, until_ms: int) -> StoreWindow:
    return StoreWindow(since_ms=UnixMs(since_ms), until_ms=UnixMs(until_ms))


def wait_and_answer(
    alice: ChannelParticipant, end_ms: int, *, answer: bool = True
) -> list[tuple[int, StoreWindow]]:
    """Let time pass; Stores have nothing.  Returns when and for which windows they are asked."""
    times: list[tuple[int, StoreWindow]] = []
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= NOW + end_ms:
        alice.handle(DeadlineReached(), now_ms=deadline_ms)
        for each in asked(alice):
            times.append(((deadline_ms - NOW) // SECOND, each))
            if answer:
                alice.handle(WindowAnswered(window=each), now_ms=deadline_ms)
    return times


# --- where ----------------------------------------------------------------------------------------


def neighbours() -> tuple[MessageReceived, MessageReceived]:
    earlier = content(BOB, "earlier", lamport=NOW - 100 * SECOND)
    later = content(BOB, "later", lamport=NOW - 20 * SECOND)
    return earlier, later


def test_without_a_hint_the_time_between_the_neighbours_is_asked_for_after_ten_seconds() -> None:
    alice = alice_with_store()
    earlier, later = neighbours()
    for each in (earlier, later):
        alice.handle(each, now_ms=NOW)
    history = [entry(earlier), PLAIN, entry(later)]
    alice.handle(content(BOB, "waits", lamport=NOW, history=history), now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND - 1))
    assert asked(alice) == []
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    assert asked(alice) == [window(NOW - 160 * SECOND, NOW + 40 * SECOND)]


def test_a_hint_that_no_waku_hash_can_be_is_no_hint() -> None:
    alice = alice_with_store()
    odd = HistoryEntry(id_of(X), b"h" * 31)
    alice.handle(content(BOB, "waits", lamport=NOW, history=[odd]), now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    (ask,) = alice.asked_stores
    assert (ask.missing, len(ask.windows)) == ((), 1)


def test_a_hint_comes_first_and_the_time_as_soon_as_it_is_of_no_use() -> None:
    alice = alice_with_store()
    earlier, _ = neighbours()
    alice.handle(earlier, now_ms=NOW)
    waits = content(BOB, "waits", lamport=NOW, history=[entry(earlier), HINTED])
    alice.handle(waits, now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    assert [ask.missing for ask in alice.asked_stores] == [(HINTED,)]
    assert asked(alice) == []
    absent = StoresMissing(message_ids=(id_of(X),), decided=False)
    alice.handle(absent, now_ms=after(11 * SECOND))
    assert asked(alice) == [window(NOW - 160 * SECOND, NOW + MINUTE)]


def test_neighbours_that_wait_count_as_well_as_those_in_the_log() -> None:
    alice = alice_with_store()
    earlier = content(BOB, "e", lamport=NOW - 90 * SECOND, history=[HistoryEntry(MessageId("y"))])
    alice.handle(earlier, now_ms=NOW)
    waits = content(BOB, "waits", lamport=NOW, history=[entry(earlier), HINTED])
    alice.handle(waits, now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    assert asked(alice) == [window(NOW - 150 * SECOND, NOW + MINUTE)]


def test_without_an_earlier_neighbour_an_hour_before_is_asked_for() -> None:
    alice = alice_with_store()
    alice.handle(content(BOB, "waits", lamport=NOW, history=[HINTED]), now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    assert asked(alice) == [window(NOW - HOUR, NOW + MINUTE)]


def test_a_history_in_a_false_order_bounds_nothing_from_below() -> None:
    alice = alice_with_store()
    earlier, later = neighbours()
    for each in (earlier, later):
        alice.handle(each, now_ms=NOW)
    history = [entry(later), HINTED, entry(earlier)]
    alice.handle(content(BOB, "waits", lamport=NOW, history=history), now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    assert asked(alice) == [window(NOW - 100 * SECOND - HOUR, NOW - 40 * SECOND)]


def test_what_only_a_sync_message_names_has_a_time_too() -> None:
    alice = alice_with_store()
    earlier, _ = neighbours()
    alice.handle(earlier, now_ms=NOW)
    alice.handle(sync(BOB, lamport=NOW, history=[entry(earlier), HINTED]), now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    assert asked(alice) == [window(NOW - 160 * SECOND, NOW + MINUTE)]


def test_a_sync_message_from_the_far_future_does_not_lead_there() -> None:
    alice = alice_with_store()
    alice.handle(sync(BOB, lamport=2**53 - 1, history=[HINTED]), now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    assert asked(alice) == [window(NOW + 5 * MINUTE - HOUR, NOW + 6 * MINUTE)]


def test_what_gave_way_to_others_is_asked_for_at_its_own_time() -> None:
    alice = alice_with_store(replace(SMALL, max_waiting_per_sender=1))
    unknown = [HistoryEntry(MessageId("y"))]
    gives_way = content(BOB, "gives way", lamport=NOW - 3 * HOUR, history=unknown)
    alice.handle(content(CAROL, "waits", lamport=NOW, history=[entry(gives_way)]), now_ms=NOW)
    alice.handle(gives_way, now_ms=NOW)
    alice.handle(content(BOB, "older", lamport=NOW - 9 * HOUR, history=unknown), now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(gives_way),)), now_ms=NOW)
    assert window(NOW - 3 * HOUR - MINUTE, NOW - 3 * HOUR + MINUTE) in asked(alice)


def test_a_restart_forgets_no_time() -> None:
    alice = alice_with_store()
    earlier, _ = neighbours()
    alice.handle(earlier, now_ms=NOW)
    waits = content(BOB, "waits", lamport=NOW, history=[entry(earlier), HINTED])
    alice.handle(waits, now_ms=NOW)
    alice.restart(now_ms=NOW)
    alice.handle(StoreChanged(reachable=True), now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    assert asked(alice) == [window(NOW - 160 * SECOND, NOW + MINUTE)]


# --- how often ------------------------------------------------------------------------------------


def test_each_round_asks_for_four_times_the_margin_and_waits_twice_as_long() -> None:
    alice = alice_with_store()
    earlier, _ = neighbours()
    alice.handle(earlier, now_ms=NOW)
    alice.handle(content(BOB, "w", lamport=NOW, history=[entry(earlier), PLAIN]), now_ms=NOW)
    rounds = wait_and_answer(alice, 12 * HOUR)
    assert [at_s for at_s, _ in rounds] == [10, 20, 40, 80, 160, 320, 640]
    margins = [(each.until_ms - NOW) // MINUTE for _, each in rounds]
    assert margins == [1, 4, 16, 64, 240, 240, 240]
    assert all(each.since_ms == NOW - 100 * SECOND - (each.until_ms - NOW) for _, each in rounds)


def test_a_window_without_an_answer_is_asked_for_again() -> None:
    alice = alice_with_store()
    alice.handle(content(BOB, "w", lamport=NOW, history=[PLAIN]), now_ms=NOW)
    rounds = wait_and_answer(alice, MINUTE, answer=False)
    assert len(rounds) > 2
    assert len({(each.since_ms, each.until_ms) for _, each in rounds}) == 1


def test_it_is_over_as_soon_as_it_is_here() -> None:
    alice = alice_with_store()
    alice.handle(content(BOB, "w", lamport=NOW, history=[PLAIN]), now_ms=NOW)
    assert len(wait_and_answer(alice, 15 * SECOND)) == 1
    alice.handle(X, now_ms=after(16 * SECOND))
    assert wait_and_answer(alice, HOUR) == []


def test_if_the_user_wishes_it_begins_again_with_the_first_round() -> None:
    alice = alice_with_store()
    alice.handle(content(BOB, "w", lamport=NOW, history=[PLAIN]), now_ms=NOW)
    assert len(wait_and_answer(alice, 2 * HOUR)) == SMALL.time_search_rounds
    for at_ms in (2 * HOUR, 2 * HOUR + SECOND):
        alice.handle(RetrieveRequested(), now_ms=after(at_ms))
        alice.handle(DeadlineReached(), now_ms=after(at_ms))
        assert asked(alice) == [window(NOW - HOUR, NOW + MINUTE)]


def test_what_overlaps_is_asked_for_at_once_and_more_than_eight_windows_take_turns() -> None:
    alice = alice_with_store()
    for number in range(17):
        for near in range(2):
            unknown = HistoryEntry(MessageId(f"y{number}/{near}"))
            lamport = NOW - number * 80 * MINUTE - near * SECOND
            waits = content(BOB, f"{number}/{near}", lamport=lamport, history=[unknown])
            alice.handle(waits, now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    first = asked(alice)
    assert len(first) == 8
    assert all(one.until_ms < next_one.since_ms for one, next_one in pairwise(first))
    for each in first:
        alice.handle(WindowAnswered(window=each), now_ms=after(10 * SECOND))
    alice.handle(DeadlineReached(), now_ms=after(20 * SECOND))
    second = asked(alice)
    assert len(second) == 8
    assert not {each.until_ms for each in first} & {each.until_ms for each in second}


def test_who_names_what_does_not_exist_makes_us_ask_ever_less() -> None:
    alice = alice_with_store()
    times: list[int] = []
    for number in range(400):
        at_ms = after(number * 5 * SECOND)
        unknown = [HistoryEntry(MessageId(f"y{number}"))]
        alice.handle(content(BOB, f"{number}", lamport=at_ms, history=unknown), now_ms=at_ms)
        times += [at_s for at_s, _ in wait_and_answer(alice, number * 5 * SECOND)]
    questions = sorted(set(times))
    assert len(questions) <= 12
    assert questions[-1] - questions[-2] > 300


def test_when_something_is_found_we_ask_as_often_as_before() -> None:
    alice = alice_with_store()
    for number in range(150):
        at_ms = after(number * 5 * SECOND)
        unknown = [HistoryEntry(MessageId(f"y{number}"))]
        alice.handle(content(BOB, f"{number}", lamport=at_ms, history=unknown), now_ms=at_ms)
        wait_and_answer(alice, number * 5 * SECOND)
    named_ms = after(750 * SECOND)
    alice.handle(content(BOB, "w", lamport=named_ms, history=[PLAIN]), now_ms=named_ms)
    asked_ms = alice.next_deadline()
    while not (windows := asked(alice)):
        asked_ms = alice.next_deadline() or NOW
        alice.handle(DeadlineReached(), now_ms=asked_ms)
    assert asked_ms is not None
    assert asked_ms > named_ms + 60 * SECOND
    alice.handle(X, now_ms=asked_ms)
    for each in windows:
        alice.handle(WindowAnswered(window=each), now_ms=asked_ms)
    another = content(BOB, "another", lamport=asked_ms, history=[HistoryEntry(MessageId("z"))])
    alice.handle(another, now_ms=asked_ms)
    assert wait_and_answer(alice, asked_ms + 10 * SECOND - NOW), "ten seconds later, not minutes"


@pytest.mark.parametrize("back_ms", [DAY, 400 * DAY])
def test_a_clock_that_is_set_back_does_not_put_it_off(back_ms: int) -> None:
    alice = alice_with_store()
    alice.handle(content(BOB, "w", lamport=NOW, history=[PLAIN]), now_ms=NOW)
    assert wait_and_answer(alice, 30 * SECOND)
    alice.handle(DeadlineReached(), now_ms=after(-back_ms))
    assert len(asked(alice)) == 1


def test_nothing_is_asked_while_no_store_can_be_reached() -> None:
    alice = alice_with_store()
    alice.handle(StoreChanged(reachable=False), now_ms=NOW)
    alice.handle(content(BOB, "w", lamport=NOW, history=[HINTED]), now_ms=NOW)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    assert asked(alice) == []
    assert wait_and_answer(alice, HOUR) == []


# --- when it is over ------------------------------------------------------------------------------


def long_ago(alice: ChannelParticipant, history: HistoryEntry) -> MessageReceived:
    old = content(BOB, "old", lamport=NOW - 2 * DAY, history=[history])
    alice.handle(old, now_ms=NOW)
    return old


@pytest.mark.parametrize("lacking", [PLAIN, HINTED])
def test_of_long_ago_one_wide_window_decides_that_it_is_lost(lacking: HistoryEntry) -> None:
    alice = alice_with_store()
    old = long_ago(alice, lacking)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    if lacking is HINTED:
        alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=after(10 * SECOND))
    assert log_of(alice) == [], "not before its time was asked for, too"
    (wide,) = asked(alice)
    assert wide.until_ms == NOW - 2 * DAY + 4 * HOUR
    assert wide.until_ms - wide.since_ms == 7 * DAY
    alice.handle(WindowAnswered(window=wide, lacked=2), now_ms=after(11 * SECOND))
    assert log_of(alice) == [id_of(old)]
    (entry_,) = alice.channel.snapshot().missing
    assert entry_.state is MissingState.LOST
    assert entry_.stores is not None
    assert entry_.stores.lacked == 2


def test_a_wish_while_stores_are_asked_does_not_keep_their_answer_from_deciding() -> None:
    alice = alice_with_store()
    old = long_ago(alice, HINTED)
    alice.handle(StoresMissing(message_ids=(id_of(X),)), now_ms=NOW)
    (wide,) = asked(alice)
    alice.handle(RetrieveRequested(), now_ms=after(SECOND))
    alice.handle(WindowAnswered(window=wide), now_ms=after(2 * SECOND))
    assert log_of(alice) == [id_of(old)]


def test_a_smaller_window_than_was_asked_for_decides_nothing() -> None:
    alice = alice_with_store()
    long_ago(alice, PLAIN)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    (wide,) = asked(alice)
    smaller = window(wide.since_ms + 1, wide.until_ms)
    alice.handle(WindowAnswered(window=smaller), now_ms=after(11 * SECOND))
    assert log_of(alice) == []


def test_as_long_as_a_store_may_still_know_the_hint_the_time_decides_nothing() -> None:
    alice = alice_with_store()
    old = long_ago(alice, HINTED)
    absent = StoresMissing(message_ids=(id_of(X),), silent=("/dns4/silent",), decided=False)
    alice.handle(absent, now_ms=NOW)
    (wide,) = asked(alice)
    alice.handle(WindowAnswered(window=wide), now_ms=NOW)
    assert log_of(alice) == []
    alice.handle(replace(absent, decided=True), now_ms=after(SECOND))
    assert log_of(alice) == [id_of(old)]


def test_what_is_kept_back_is_not_searched_for() -> None:
    alice = alice_with_store()
    long_ago(alice, HINTED)
    kept_back = StoresMissing(message_ids=(id_of(X),), lacked=0, kept_back=True)
    alice.handle(kept_back, now_ms=NOW)
    assert asked(alice) == []


def test_of_lately_all_rounds_decide_nothing_as_members_may_still_send_it() -> None:
    alice = alice_with_store()
    alice.handle(content(BOB, "w", lamport=NOW, history=[PLAIN]), now_ms=NOW)
    assert len(wait_and_answer(alice, 12 * HOUR)) == SMALL.time_search_rounds
    assert (log_of(alice), alice.seen.lost) == ([], set())
    (entry_,) = alice.channel.snapshot().missing
    assert entry_.stores is not None, "that Stores were asked is told"


def test_a_lost_one_that_the_user_asks_for_is_searched_for_once_in_its_widest_window() -> None:
    alice = alice_with_store()
    long_ago(alice, PLAIN)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    (wide,) = asked(alice)
    alice.handle(WindowAnswered(window=wide), now_ms=after(10 * SECOND))
    alice.handle(RetrieveLostRequested(message_ids=(id_of(X),)), now_ms=after(20 * SECOND))
    assert asked(alice) == [wide]
    assert wait_and_answer(alice, HOUR) == []


# --- any history ----------------------------------------------------------------------------------

LAMPORTS = st.one_of(
    st.integers(0, 2**53 - 1), st.integers(NOW - DAY, NOW + DAY), st.integers(NOW - MINUTE, NOW)
)


@given(
    known=st.lists(LAMPORTS.filter(lambda lamport: lamport <= NOW), max_size=8, unique=True),
    named=st.lists(st.tuples(st.integers(-8, 8), LAMPORTS, st.booleans()), min_size=1, max_size=12),
)
def test_whatever_is_named_windows_are_few_and_short_and_in_our_time(
    known: list[int], named: list[tuple[int, int, bool]]
) -> None:
    alice = alice_with_store()
    here = [content(BOB, f"known {lamport}", lamport=lamport) for lamport in known]
    for each in here:
        alice.handle(each, now_ms=NOW)
    history = [entry(each) for each in here]
    for number, (place, lamport, is_sync) in enumerate(named):
        history.insert(place, HistoryEntry(MessageId(f"unknown {number}")))
        if is_sync:
            alice.handle(sync(BOB, lamport=lamport, history=history), now_ms=NOW)
        else:
            alice.handle(content(BOB, f"{number}", lamport=lamport, history=history), now_ms=NOW)
    end_ms = 2 * HOUR
    rounds = wait_and_answer(alice, end_ms)
    for at_s in {at_s for at_s, _ in rounds}:
        windows = [each for when_s, each in rounds if when_s == at_s]
        assert len(windows) <= 8
        for one in windows:
            assert 0 <= one.since_ms <= one.until_ms <= NOW + end_ms + 5 * MINUTE + 4 * HOUR


@given(
    lamports=st.lists(st.integers(NOW - 2 * HOUR, NOW), min_size=2, max_size=10, unique=True),
    lost=st.integers(0, 9),
)
def test_of_a_true_history_the_first_window_has_the_message(lamports: list[int], lost: int) -> None:
    alice = alice_with_store()
    messages = [content(BOB, f"{lamport}", lamport=lamport) for lamport in sorted(lamports)]
    missing = messages.pop(lost % len(messages))
    sent_ms = missing.message.lamport_timestamp or 0
    history = sorted([*messages, missing], key=lambda each: each.message.lamport_timestamp or 0)
    for each in messages:
        alice.handle(each, now_ms=NOW)
    waits = content(BOB, "waits", lamport=NOW, history=[entry(each) for each in history])
    alice.handle(waits, now_ms=NOW)
    alice.handle(DeadlineReached(), now_ms=after(10 * SECOND))
    (first,) = asked(alice)
    has_earlier = any((each.message.lamport_timestamp or 0) < sent_ms for each in messages)
    if has_earlier:
        assert first.since_ms <= sent_ms
    assert sent_ms <= first.until_ms
