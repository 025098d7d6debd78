"""Nobody makes us send or keep more than a share: budgets, stale claims, phantoms, room."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.budget import SLOT_MS, AnswerBudget
from engine.core.sds.config import HOUR_MS, MINUTE_MS, SdsConfig
from engine.core.sds.inputs import ConnectivityChanged, MessageReceived
from engine.core.sds.vocabulary import DependencyLost, PutNewestClaims
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
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
    opened,
    run_until,
    said,
    sync,
    syncs,
)

MALLORY = ParticipantId("mallory")
DAY_MS = 24 * HOUR_MS
SETTLED = after(2 * SMALL.repair_t_min_ms + 100)
TIGHT = replace(SMALL, answer_bytes_per_minute=10_000, answer_overhead_bytes=0)


def carols(count: int, size: int = 10) -> list[MessageReceived]:
    return [
        content(CAROL, f"{number}" + "x" * size, lamport=NOW + number, sequence=number + 1)
        for number in range(count)
    ]


def knows(messages: list[MessageReceived], config: SdsConfig = SMALL) -> ChannelParticipant:
    alice = member(config=config)
    for message in messages:
        alice.handle(message, now_ms=NOW)
    return alice


def repairs(participant: ChannelParticipant, end_ms: int) -> list[tuple[int, MessageId]]:
    """When after NOW each was sent again."""
    sent = [(at_ms - NOW, opened([item])[0]) for at_ms, item in run_until(participant, end_ms)]
    return [(at_ms, id_of(message)) for at_ms, message in sent if message.repaired_by]


# --- budgets ------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 30_000), st.booleans(), st.integers(1, 4_000)),
        min_size=1,
        max_size=80,
    )
)
def test_no_minute_has_more_than_is_due(steps: list[tuple[int, bool, int]]) -> None:
    config = replace(SMALL, answer_bytes_per_minute=6_000, answer_overhead_bytes=100)
    budget, now_ms = AnswerBudget(config), NOW
    took: list[tuple[int, int]] = []
    gave: list[tuple[int, int]] = []
    for passed_ms, takes, size in steps:
        now_ms = UnixMs(now_ms + passed_ms)
        if takes:
            budget.took(BOB, size, now_ms)
            took.append((now_ms, size))
        elif (again_ms := budget.charge([BOB], size, now_ms)) is None:
            gave.append((now_ms, size + size // 8 + 100))
        else:
            assert now_ms < again_ms <= now_ms + MINUTE_MS + SLOT_MS
    for end_ms, _ in gave:
        within = sum(size for at_ms, size in gave if end_ms - MINUTE_MS < at_ms <= end_ms)
        counted_ms = end_ms - MINUTE_MS - SLOT_MS
        taken = sum(size for at_ms, size in took if counted_ms <= at_ms <= end_ms)
        assert within <= max(8 * taken, 6_000)


def test_a_minute_has_all_that_is_due_to_the_last_byte() -> None:
    config = replace(SMALL, answer_bytes_per_minute=5, answer_overhead_bytes=0)
    budget = AnswerBudget(config)
    sent = [budget.charge([BOB], 1, NOW) is None for _ in range(6)]
    assert sent == [True] * 5 + [False]


def test_what_came_earns_its_multiple_to_the_last_byte() -> None:
    config = replace(SMALL, answer_bytes_per_minute=0, answer_overhead_bytes=0)
    for came, is_paid in ((1, True), (0, False)):
        budget = AnswerBudget(config)
        budget.took(BOB, came, NOW)
        sent = [budget.charge([BOB], 1, NOW) is None for _ in range(9)]
        assert sent == [True] + [is_paid] * 7 + [False]


def test_what_was_put_off_can_be_paid_when_it_is_tried_again() -> None:
    budget = AnswerBudget(TIGHT)
    assert budget.charge([BOB], 8_000, NOW) is None
    again_ms = budget.charge([BOB], 4_000, NOW)
    assert again_ms is not None
    assert budget.charge([BOB], 4_000, UnixMs(again_ms - 1)) is not None
    assert budget.charge([BOB], 4_000, again_ms) is None


def test_what_is_beyond_the_budget_waits_for_later_minutes_and_others_do_not() -> None:
    messages = carols(9, size=4_000)
    alice = knows(messages, TIGHT)
    for number, message in enumerate(messages[:6]):
        request = sync(BOB, lamport=NOW + number, requests=dep(message))
        alice.handle(request, now_ms=SETTLED)
    alice.handle(sync(CAROL, lamport=NOW, requests=dep(messages[8])), now_ms=SETTLED)
    sent = repairs(alice, after(6 * MINUTE_MS))
    assert sum(at_ms < MINUTE_MS for at_ms, _ in sent) == 2 + 1
    assert id_of(messages[8]) in {each for at_ms, each in sent if at_ms < MINUTE_MS}
    assert {each for _, each in sent} == {id_of(each) for each in (*messages[:6], messages[8])}
    assert alice.counters["sds.answer_put_off"]


def test_who_sends_much_is_answered_with_more() -> None:
    messages = carols(6, size=4_000)
    alice = knows(messages, TIGHT)
    alice.handle(content(BOB, "y" * 6_000, lamport=NOW + 9), now_ms=SETTLED)
    for number, message in enumerate(messages):
        request = sync(BOB, lamport=NOW + 10 + number, requests=dep(message))
        alice.handle(request, now_ms=SETTLED)
    assert len(repairs(alice, after(MINUTE_MS))) == 6


def test_what_somebody_sends_again_buys_no_answers() -> None:
    """Or two who each lack some of a flood would let each other send eight times as much of it."""
    messages = carols(6, size=4_000)
    alice = knows(messages, TIGHT)
    again = content(CAROL, "y" * 6_000, lamport=NOW + 9, repaired_by=BOB)
    alice.handle(again, now_ms=SETTLED)
    for number, message in enumerate(messages):
        request = sync(BOB, lamport=NOW + 10 + number, requests=dep(message))
        alice.handle(request, now_ms=SETTLED)
    assert sum(at_ms < MINUTE_MS for at_ms, _ in repairs(alice, after(MINUTE_MS))) == 2


def test_whoever_lacks_the_same_again_is_sent_it_less_and_less_often() -> None:
    messages = carols(1)
    alice = knows(messages)
    sent: list[int] = []
    for number in range(600):
        now_ms = UnixMs(SETTLED + 2_000 * number)
        alice.handle(sync(BOB, lamport=now_ms, holdings=holds((BOB, 1, 1))), now_ms=now_ms)
        sent += [at_ms for at_ms, _ in repairs(alice, now_ms + 1_999)]
    assert len(sent) < 12
    other = sync(CAROL, lamport=after(3_600_000), requests=dep(messages[0]))
    alice.handle(other, now_ms=after(3_600_000))
    assert len(repairs(alice, after(3_605_000))) == 1


def test_what_somebody_seems_not_to_want_is_sent_unasked_once_an_hour_at_last() -> None:
    messages = carols(1)
    alice = knows(messages)
    times = []
    for minute in range(1, 600):
        claim = sync(BOB, lamport=after(60_000 * minute), holdings=holds((BOB, 1, 1)))
        alice.handle(claim, now_ms=after(60_000 * minute))
        times += [at for at, _ in repairs(alice, after(60_000 * (minute + 1) - 1))]
    last_three = [later - earlier for earlier, later in zip(times[-4:], times[-3:], strict=False)]
    assert all(HOUR_MS <= each <= HOUR_MS + 2 * MINUTE_MS for each in last_three)


# --- stale claims -------------------------------------------------------------------------------


def test_old_claims_and_requests_are_not_answered_after_a_restart() -> None:
    messages = carols(3)
    alice = knows(messages[:1])
    alice.handle(sync(BOB, lamport=NOW + 5, holdings=holds((CAROL, 1, 1))), now_ms=NOW)
    for message in messages[1:]:
        alice.handle(message, now_ms=NOW)
    alice.restart(now_ms=NOW)
    old = [
        sync(BOB, lamport=NOW + 4, holdings=holds((BOB, 1, 1))),
        sync(BOB, lamport=NOW + 5, requests=dep(messages[0])),
        content(BOB, "old", lamport=NOW + 3, requests=dep(messages[0])),
    ]
    for message in old:
        alice.handle(message, now_ms=SETTLED)
    assert repairs(alice, after(60_000)) == []
    assert alice.counters["sds.stale_claim"] == 3
    fresh = sync(BOB, lamport=NOW + 6, holdings=holds((CAROL, 1, 1)))
    alice.handle(fresh, now_ms=after(60_000))
    assert {each for _, each in repairs(alice, after(70_000))} == {
        id_of(message) for message in messages[1:]
    }


def test_a_claim_from_a_clock_that_was_ahead_outweighs_nothing_that_comes_after() -> None:
    """Recorded or not, dated within what we believe or beyond it; each is answered once."""
    messages = carols(2)
    alice = knows(messages)
    ahead = [NOW + 290_000, NOW + 301_000, NOW + 3_600_000]
    for lamport in ahead * 2:
        claim = sync(BOB, lamport=lamport, holdings=holds((CAROL, 1, 2)))
        alice.handle(claim, now_ms=SETTLED)
    assert alice.counters["sds.stale_claim"] == len(ahead)
    honest = sync(BOB, lamport=SETTLED + 3_000, holdings=holds((CAROL, 1, 1)))
    alice.handle(honest, now_ms=UnixMs(SETTLED + 3_000))
    assert {each for _, each in repairs(alice, SETTLED + 60_000)} == {id_of(messages[1])}


def test_a_claim_is_saved_with_what_else_is_written_or_after_a_minute() -> None:
    alice = member()

    def saved(message: MessageReceived, at_ms: int) -> list[PutNewestClaims]:
        writes = alice.channel.handle(message, now_ms=after(at_ms)).writes
        return [write for write in writes if isinstance(write, PutNewestClaims)]

    claims = [sync(BOB, lamport=NOW + n, holdings=holds((BOB, 1, 1))) for n in range(4)]
    assert saved(claims[0], 0) == []
    (first,) = saved(content(CAROL, "x"), 1)
    assert [claim.lamport_timestamp for claim in first.claims] == [NOW]
    assert saved(claims[1], 2) == []
    assert saved(claims[2], 59_999) == []
    (second,) = saved(claims[3], 60_002)
    assert [claim.lamport_timestamp for claim in second.claims] == [NOW + 3]


# --- phantoms -----------------------------------------------------------------------------------


def asked_for(alice: ChannelParticipant, end_ms: int) -> list[tuple[int, MessageId]]:
    """What sync messages asked for and when after NOW."""
    sent = syncs(run_until(alice, end_ms))
    return [
        (at_ms - NOW, entry.message_id)
        for at_ms, received in sent
        for entry in received.message.repair_request
    ]


def phantoms(count: int, name: str = "phantom") -> list[str]:
    return [f"{name} {number}" for number in range(count)]


def test_who_names_what_nobody_has_is_asked_for_less_and_less_and_others_are_not() -> None:
    alice = member()
    loaded = content(MALLORY, "x", lamport=NOW, history=entries(*phantoms(200)))
    alice.handle(loaded, now_ms=NOW)
    first = asked_for(alice, after(10 * MINUTE_MS))
    later = asked_for(alice, after(60 * MINUTE_MS))
    assert SMALL.requests_in_vain <= len(first) < 100
    assert len(later) < 30
    now_ms = after(60 * MINUTE_MS)
    alice.handle(content(BOB, "y", lamport=now_ms, history=entries("real")), now_ms=now_ms)
    asked = asked_for(alice, now_ms + 5_000)
    assert MessageId("real") in {message_id for _, message_id in asked}


def test_what_somebody_else_names_is_not_in_disrepute_with_who_named_it_first() -> None:
    for names_first in (True, False):
        alice = member()
        names = [*phantoms(200), "real"]
        loaded = content(MALLORY, "x", lamport=NOW, history=entries(*names))
        honest = content(BOB, "y", lamport=NOW, history=entries("real"))
        for message in (loaded, honest) if names_first else (honest, loaded):
            alice.handle(message, now_ms=NOW)
        asked = [at_ms for at_ms, each in asked_for(alice, after(MINUTE_MS)) if each == "real"]
        assert asked
        assert asked[0] < 5_000


def test_whatever_is_found_makes_up_for_requests_in_vain() -> None:
    alice = member()
    real = carols(6)
    names = [*phantoms(40), *map(id_of, real)]
    alice.handle(content(BOB, "x", lamport=NOW + 9, history=entries(*names)), now_ms=NOW)
    asked_for(alice, after(10 * MINUTE_MS))
    before = len(asked_for(alice, after(12 * MINUTE_MS)))
    for message in real:
        alice.handle(message, now_ms=after(12 * MINUTE_MS))
    assert len(asked_for(alice, after(14 * MINUTE_MS))) > 4 * before


def test_sync_messages_of_one_member_are_looked_after_within_limits() -> None:
    alice = member()
    for number in range(10):
        names = entries(*phantoms(20, str(number)))
        alice.handle(sync(MALLORY, lamport=NOW + number, history=names), now_ms=NOW)
    assert len(alice.channel.snapshot().missing) == SMALL.max_missing_named_by_syncs
    assert alice.counters["sds.missing_overflow"] == 10
    alice.handle(sync(BOB, lamport=NOW, history=entries("real")), now_ms=NOW)
    assert alice.channel.wants(MessageId("real"))


def test_names_come_back_after_a_restart_with_the_messages_that_wait() -> None:
    alice = member()
    names = [*phantoms(60), "real"]
    alice.handle(content(MALLORY, "x", lamport=NOW, history=entries(*names)), now_ms=NOW)
    alice.handle(content(BOB, "y", lamport=NOW, history=entries("real")), now_ms=NOW)
    asked_for(alice, after(10 * MINUTE_MS))
    alice.restart(now_ms=after(10 * MINUTE_MS))
    asked = asked_for(alice, after(13 * MINUTE_MS))
    assert MessageId("real") in {message_id for _, message_id in asked}


def test_what_an_old_message_waits_for_is_lost_after_an_hour() -> None:
    for age_ms, expected_ms in ((0, DAY_MS), (25 * HOUR_MS, HOUR_MS)):
        alice = member()
        old = content(BOB, "x", lamport=NOW - age_ms, history=entries("phantom"))
        alice.handle(old, now_ms=NOW)
        lost_ms = None
        while lost_ms is None:
            deadline_ms = alice.next_deadline()
            assert deadline_ms is not None
            assert deadline_ms <= after(DAY_MS)
            alice.advance(now_ms=deadline_ms)
            if said(alice, DependencyLost):
                lost_ms = deadline_ms - NOW
        assert lost_ms == expected_ms
        assert log_of(alice) == [id_of(old)]


# --- room ---------------------------------------------------------------------------------------


def test_who_has_most_waiting_gives_way_to_who_has_less() -> None:
    alice = member(config=replace(SMALL, max_waiting=60))
    strangers = [ParticipantId(f"stranger {number}") for number in range(3)]
    for stranger in strangers:
        for number in range(20):
            phantom = entries(f"{stranger} {number}")
            message = content(stranger, str(number), lamport=NOW + number, history=phantom)
            alice.handle(message, now_ms=NOW)
    waits = [
        content(BOB, str(number), lamport=NOW + 99, history=entries("real")) for number in range(5)
    ]
    for message in waits:
        alice.handle(message, now_ms=NOW)
    state = alice.channel.snapshot()
    assert len(state.incoming) == 60
    assert {id_of(message) for message in waits} <= {e.message.message_id for e in state.incoming}
    # Nobody looks any more for what only they waited for.
    assert len(state.missing) == 55 + 1
    one_more = content(strangers[0], "more", lamport=NOW + 99, history=entries("other"))
    alice.handle(one_more, now_ms=NOW)
    assert alice.counters["sds.incoming_overflow"] == 1


def test_a_half_full_table_of_what_is_missing_leaves_room_for_everybody() -> None:
    alice = member(config=replace(SMALL, max_missing=400, max_missing_per_sender=200))
    for name in ("one", "two", "three"):
        for number in range(10):
            message = content(
                ParticipantId(name),
                str(number),
                lamport=NOW + number,
                history=entries(*phantoms(20, f"{name} {number}")),
            )
            alice.handle(message, now_ms=NOW)
    alice.handle(content(BOB, "x", history=entries(*phantoms(10, "real"))), now_ms=NOW)
    assert alice.channel.wants(MessageId("real 9"))


def test_one_asker_leaves_room_among_the_answers_that_are_planned() -> None:
    messages = carols(40)
    alice = knows(messages, replace(SMALL, repair_buffer=80))
    for number, message in enumerate(messages):
        request = sync(MALLORY, lamport=NOW + number, requests=dep(message))
        alice.handle(request, now_ms=SETTLED)
    assert alice.counters["sds.repair_answer_refused"] == 30
    alice.handle(ConnectivityChanged(online=True), now_ms=SETTLED)
    alice.handle(sync(BOB, lamport=NOW, requests=dep(messages[39])), now_ms=SETTLED)
    assert id_of(messages[39]) in {each for _, each in repairs(alice, after(10_000))}
    assert ALICE not in {message.message.sender_id for message in messages}
