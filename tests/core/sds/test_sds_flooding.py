"""What one author may send in a day: counted by the right day, and nobody waits for more."""

import pytest
from msgspec.structs import replace

from engine.core.ids import ParticipantId, UnixMs
from engine.core.sds.config import DAY_MS, FloodLimits
from engine.core.sds.flooding import Quotas
from engine.core.sds.floods import (
    PutSetAside,
    RemoveSetAside,
    SetAsideChanged,
    SetAsideOf,
    Spent,
)
from engine.core.sds.inputs import ClockSet, MessageReceived, ShowSetAside
from engine.core.sds.step import Step
from engine.sim.channel_participant import ChannelParticipant, instance_of, open_payload
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    SMALL,
    content,
    dep,
    holds,
    id_of,
    log_of,
    member,
    sync,
)

LIMITS = FloodLimits(
    messages_per_day=4,
    bytes_per_day=4_000,
    fetched_days=2,
    waiting_messages=3,
    waiting_bytes=3_000,
    bare_ids=3,
)
FLOODED = replace(SMALL, flood=LIMITS)
MORNING = UnixMs(NOW - NOW % DAY_MS + DAY_MS)


def somebody() -> ChannelParticipant:
    return member(config=FLOODED)


def texts(sender_id: ParticipantId, count: int, *, at: int = MORNING) -> list[MessageReceived]:
    return [content(sender_id, f"{sender_id} {n} at {at}", lamport=at + n) for n in range(count)]


def hear(who: ChannelParticipant, *messages: MessageReceived, at: int = MORNING) -> None:
    for message in messages:
        who.handle(message, now_ms=UnixMs(at))


def aside(who: ChannelParticipant) -> list[tuple[str, bool]]:
    """What is set aside, and whether its bytes are kept."""
    return [(entry.message_id, entry.size > 0) for entry in who.channel.snapshot().set_aside]


def told_of(who: ChannelParticipant) -> list[SetAsideChanged]:
    return [event for event in who.events if isinstance(event, SetAsideChanged)]


def ids(messages: list[MessageReceived]) -> list[str]:
    return [id_of(message) for message in messages]


def test_what_is_beyond_a_day_waits_then_leaves_its_id_then_nothing() -> None:
    alice, flood = somebody(), texts(BOB, 12)
    hear(alice, *flood)
    assert log_of(alice) == ids(flood[:4])
    kept = [(each, True) for each in ids(flood[4:7])]
    assert aside(alice) == kept + [(each, False) for each in ids(flood[9:])]
    assert alice.store.state().set_aside == alice.channel.snapshot().set_aside
    assert alice.counters["sds.set_aside"] == 8
    hear(alice, flood[5], flood[11])
    assert alice.counters["sds.set_aside_again"] == 2
    hear(alice, *texts(CAROL, 4))
    assert len(log_of(alice)) == 8, "others have quotas of their own"


def test_bytes_count_as_well_as_messages() -> None:
    alice = somebody()
    large = [content(BOB, f"{n}" + "x" * 1_500, lamport=MORNING + n) for n in range(3)]
    hear(alice, *large)
    assert log_of(alice) == ids(large[:2])
    small = content(BOB, "small", lamport=MORNING + 9)
    hear(alice, small)
    assert id_of(small) in log_of(alice), "there is room for it"


def test_who_names_what_is_set_aside_does_not_wait() -> None:
    alice, flood = somebody(), texts(BOB, 6)
    answer = content(CAROL, "so much", lamport=MORNING + 50, history=dep(flood[5]))
    early = content(CAROL, "I see", lamport=MORNING + 51, history=dep(flood[4]))
    hear(alice, early)
    assert log_of(alice) == []
    hear(alice, *flood, answer)
    assert log_of(alice) == [*ids(flood[:4]), id_of(answer), id_of(early)]
    snapshot = alice.channel.snapshot()
    assert not snapshot.missing
    assert not snapshot.incoming
    hear(alice, sync(CAROL, lamport=MORNING + 60, history=dep(flood[5])))
    assert not alice.channel.snapshot().missing, "nor is it looked for"


def test_what_is_live_counts_for_the_day_on_which_it_comes_whatever_it_says() -> None:
    alice = somebody()
    dated = [content(BOB, str(n), lamport=MORNING - n * DAY_MS) for n in range(6)]
    hear(alice, *dated)
    assert len(log_of(alice)) == 4
    hear(alice, *texts(BOB, 4, at=MORNING + DAY_MS), at=MORNING + DAY_MS)
    assert len(log_of(alice)) == 8, "tomorrow there is room again"


@pytest.mark.parametrize("by", [None, CAROL])
def test_what_is_fetched_counts_for_the_day_that_it_is_of(by: ParticipantId | None) -> None:
    """From a Store, or brought by another member."""
    alice = somebody()
    for day in (3, 2):
        for message in texts(BOB, 5, at=MORNING - day * DAY_MS):
            hear(alice, replace(message, stored=by is None, repaired_by=by))
    assert len(log_of(alice)) == 8
    assert len(aside(alice)) == 2
    hear(alice, *texts(BOB, 4))
    assert len(log_of(alice)) == 12, "and leaves today's room alone"


def test_whoever_dates_messages_back_is_bound_by_what_is_fetched_in_a_day() -> None:
    alice = somebody()
    for day in range(1, 20):
        for message in texts(BOB, 1, at=MORNING - day * DAY_MS):
            hear(alice, replace(message, stored=True))
    assert len(log_of(alice)) == LIMITS.fetched_days * LIMITS.messages_per_day
    for message in texts(BOB, 6, at=MORNING - 30 * DAY_MS):
        hear(alice, replace(message, repaired_by=BOB))
    assert len(log_of(alice)) == 8, "by whomever it is brought"


def test_who_catches_up_from_an_author_alone_reads_all_of_several_days() -> None:
    """There is no Store, and whoever wrote it answers first."""
    alice, days = somebody(), range(LIMITS.fetched_days)
    for day in days:
        for message in texts(BOB, 4, at=MORNING - (day + 1) * DAY_MS):
            hear(alice, replace(message, repaired_by=BOB))
    assert len(log_of(alice)) == 4 * len(days)
    assert not aside(alice)


def test_a_hundred_thousand_messages_of_two_authors_and_a_week_are_within_the_limits() -> None:
    quotas, step, size = Quotas(FloodLimits()), Step(NOW), 700
    for number in range(100_000):
        author = (BOB, CAROL)[number % 2]
        lamport = NOW - number % 7 * DAY_MS
        accounts = quotas.accounts(author, lamport, NOW, live=False)
        assert quotas.have_room(accounts, size)
        for account in accounts:
            account.spend(size, step)
    assert len(step.writes) < 200, "and hardly anything is saved for it"


def test_what_is_from_the_future_is_counted_before_it_is_held() -> None:
    alice = somebody()
    ahead = texts(BOB, 6, at=MORNING + DAY_MS // 2)
    hear(alice, *ahead)
    assert len(alice.channel.snapshot().incoming) == 4
    assert len(aside(alice)) == 2
    alice.handle(ClockSet(offset_ms=DAY_MS // 2), now_ms=MORNING)
    assert log_of(alice) == ids(ahead[:4])


def test_a_day_that_is_spent_stays_so_after_a_restart() -> None:
    alice = somebody()
    hear(alice, *texts(BOB, 6))
    before = alice.channel.snapshot().set_aside
    alice.restart(now_ms=MORNING)
    assert alice.channel.snapshot().set_aside == before
    late = content(BOB, "after the restart", lamport=MORNING + 70)
    hear(alice, late)
    assert id_of(late) not in log_of(alice)
    assert len(told_of(alice)) == 1, "it is told again"


def test_an_account_is_saved_now_and_then_only() -> None:
    limits = replace(LIMITS, messages_per_day=1_600, bytes_per_day=10**9)
    alice = member(config=replace(SMALL, flood=limits))
    for number in range(250):
        alice.handle(content(BOB, f"{number}", lamport=NOW + number), now_ms=NOW)
    (saved,) = alice.store.state().spent
    day = NOW // DAY_MS
    assert saved == Spent(sender_id=BOB, day=day, fetched=False, messages=200, size=saved.size)


def test_shown_messages_take_their_places_and_today_is_open() -> None:
    alice, flood = somebody(), texts(BOB, 12)
    hear(alice, *flood)
    assert told_of(alice) == []
    alice.handle(ShowSetAside(sender_id=BOB), now_ms=MORNING)
    (told,) = told_of(alice)
    assert [(one.sender_id, one.waiting, one.bare) for one in told.senders] == [(BOB, 3, 0)]
    for message in flood[4:7]:
        hear(alice, replace(message, wanted=True))
    assert told_of(alice) == [SetAsideChanged(senders=())]
    assert log_of(alice) == ids(flood[:7])
    hear(alice, flood[10], *texts(BOB, 9, at=MORNING + 100))
    assert len(log_of(alice)) == 17, "what was forgotten may come again, and more"
    alice.restart(now_ms=MORNING)
    for message in texts(BOB, 6, at=MORNING - DAY_MS):
        hear(alice, replace(message, stored=True))
    assert len(log_of(alice)) == 23, "what is fetched as well"
    hear(alice, *texts(BOB, 3, at=MORNING + 200))
    assert len(log_of(alice)) == 26
    hear(alice, *texts(BOB, 6, at=MORNING + DAY_MS), at=MORNING + DAY_MS)
    assert len(log_of(alice)) == 30, "for that day only"
    assert alice.store.state().set_aside == alice.channel.snapshot().set_aside


def test_what_is_to_be_shown_and_finds_no_room_behind_a_gap_stays() -> None:
    """There is room for two that wait, and one message before all of them is missing."""
    alice = member(config=replace(FLOODED, max_waiting_per_sender=2))
    gap = content(BOB, "never came", lamport=MORNING)
    behind = [content(BOB, f"{n}", lamport=MORNING + 9 + n, history=dep(gap)) for n in range(3)]
    hear(alice, *texts(BOB, 4), *behind)
    assert len(aside(alice)) == 3
    alice.handle(ShowSetAside(sender_id=BOB), now_ms=MORNING)
    for message in behind:
        hear(alice, replace(message, wanted=True))
    assert aside(alice) == [(id_of(behind[2]), True)]
    hear(alice, gap)
    hear(alice, replace(behind[2], wanted=True))
    assert set(ids(behind)) < set(log_of(alice))
    assert not aside(alice)
    assert alice.store.state().set_aside == ()


def test_of_whom_most_is_kept_gives_way_to_others() -> None:
    alice, flood = somebody(), texts(BOB, 9)
    hear(alice, *flood)
    of_carol = [content(CAROL, f"{n}", lamport=MORNING + n) for n in range(5)]
    hear(alice, *of_carol)
    kept = [message_id for message_id, has_bytes in aside(alice) if has_bytes]
    assert kept == [*ids(flood[4:6]), id_of(of_carol[4])]
    assert len(aside(alice)) == 6
    assert alice.store.state().set_aside != ()


def test_what_is_set_aside_is_told_when_it_begins_and_not_for_every_message() -> None:
    alice, flood = somebody(), texts(BOB, 6)
    hear(alice, *flood[:5])
    (told,) = told_of(alice)
    (one,) = told.senders
    assert one == SetAsideOf(sender_id=BOB, waiting=1, size=one.size, bare=0)
    hear(alice, flood[5])
    assert told_of(alice) == []


def test_our_own_and_what_nobody_proves_count_for_nobody() -> None:
    alice = somebody()
    hear(alice, *texts(ALICE, 9))
    hear(alice, *(replace(message, verified=False) for message in texts(BOB, 9)))
    assert len(log_of(alice)) == 18


def test_what_is_set_aside_is_not_claimed_asked_for_or_sent_to_others() -> None:
    alice = somebody()
    flood = [content(BOB, f"{n}", lamport=MORNING + n, sequence=n + 1) for n in range(6)]
    hear(alice, *flood)
    lacks_all = sync(CAROL, lamport=MORNING + 90, holdings=holds(), requests=dep(flood[5]))
    outgoing = alice.handle(lacks_all, now_ms=MORNING)
    for minute in range(60):
        outgoing += alice.advance(now_ms=UnixMs(MORNING + minute * 60_000))
    heard = [open_payload(each.payload) for each in outgoing]
    claims = [each.holdings[instance_of(BOB)] for each in heard if each.holdings]
    assert {item.last for claim in claims for item in claim} == {4}
    assert not any(each.message.repair_request for each in heard)
    assert not [each for each in heard if each.repaired_by], "nor is the author's rest pressed on"


def test_writes_of_what_is_kept_bear_its_bytes() -> None:
    alice, flood = somebody(), texts(BOB, 5)
    hear(alice, *flood)
    transition = alice.channel.handle(texts(BOB, 6)[5], now_ms=MORNING)
    (write,) = [each for each in transition.writes if isinstance(each, PutSetAside)]
    assert write.entry.size == len(write.raw) > 0
    wanted = replace(flood[4], wanted=True)
    transition = alice.channel.handle(wanted, now_ms=MORNING)
    assert RemoveSetAside(message_id=flood[4].message.message_id) in transition.writes
