"""Giving up goes by what was waited between attempts: sleep and wrong clocks are no waiting."""

from msgspec.structs import replace

from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.vocabulary import NEVER, DeadlineReached, GivenUp
from tests.core.mvds.mvds_bench import BOB, Bench, id_of, payloads

DAY_MS = 24 * 3_600_000
YEAR_MS = 365 * DAY_MS
LONGEST_WAIT_EPOCHS = 4_500


def run(alice: Bench, for_ms: int) -> list[GivenUp]:
    """Online and awake for so long."""
    told: list[GivenUp] = []
    until_ms = alice.now_ms + for_ms
    while (deadline_ms := alice.node.next_deadline()) is not None and deadline_ms <= until_ms:
        alice.now_ms = max(deadline_ms, alice.now_ms)
        events = alice.handle(DeadlineReached()).events
        told += [event for event in events if isinstance(event, GivenUp)]
    alice.now_ms = until_ms
    return told


def test_a_clock_set_a_year_ahead_gives_nothing_up() -> None:
    alice = Bench()
    alice.append(1)
    run(alice, 3_600_000)
    alice.now_ms += YEAR_MS
    assert run(alice, DAY_MS) == []
    record = alice.record(1)
    assert record is not None
    assert record.send_epoch != NEVER
    assert record.waited_epochs <= (3_600_000 + DAY_MS) // 1_000 + 2 * LONGEST_WAIT_EPOCHS


def test_a_machine_asleep_for_months_still_has_its_thirty_days() -> None:
    alice = Bench()
    alice.append(1)
    for _ in range(12):
        assert run(alice, DAY_MS) == []
        alice.now_ms += 30 * DAY_MS
    for _ in range(6):
        assert run(alice, 2 * DAY_MS) == []
        alice = alice.restarted(now_ms=alice.now_ms + 30 * DAY_MS)
    told = run(alice, 8 * DAY_MS)
    assert told == [GivenUp(BOB, id_of(1))], "24 days and up to 18 waits were counted before"


def test_whoever_is_awake_all_the_time_gives_up_after_thirty_days() -> None:
    alice = Bench()
    alice.append(1)
    assert run(alice, 29 * DAY_MS) == []
    assert run(alice, 2 * DAY_MS) == [GivenUp(BOB, id_of(1))]


def test_what_is_brought_forward_counts_only_as_long_as_it_waited() -> None:
    alice = Bench()
    alice.append(1)
    run(alice, 3_600_000)
    before = alice.record(1)
    assert before is not None
    for _ in range(60):
        alice.now_ms += 60_000
        alice.seen()
    after = alice.record(1)
    assert after is not None
    assert after.waited_epochs - before.waited_epochs <= 3_600
    assert after.send_count > before.send_count + 50


def test_a_clock_set_back_takes_back_no_more_than_was_waited() -> None:
    alice = Bench()
    alice.append(1)
    run(alice, 10 * DAY_MS)
    alice.now_ms -= YEAR_MS
    assert run(alice, DAY_MS) == []
    record = alice.record(1)
    assert record is not None
    assert 0 <= record.waited_epochs <= 12 * DAY_MS // 1_000


def test_what_is_sent_again_on_request_has_waited_before() -> None:
    alice = Bench()
    alice.append(1)
    run(alice, DAY_MS)
    before = alice.record(1)
    assert before is not None
    alice.receive(BOB, requests=[id_of(1)])
    after = alice.record(1)
    assert after is not None
    assert before.waited_epochs - LONGEST_WAIT_EPOCHS <= after.waited_epochs
    assert after.waited_epochs <= before.waited_epochs + LONGEST_WAIT_EPOCHS


def test_what_was_given_up_and_is_resent_begins_anew() -> None:
    alice = Bench(config=replace(MvdsConfig(), give_up_after_ms=3_600_000))
    alice.append(1)
    assert run(alice, DAY_MS) == [GivenUp(BOB, id_of(1))]
    assert payloads(alice.handle(DeadlineReached())) == []
    alice.resend(1)
    record = alice.record(1)
    assert record is not None
    assert record.waited_epochs <= LONGEST_WAIT_EPOCHS
    assert run(alice, 1_800_000) == []


def test_what_was_given_up_is_sent_to_who_asks_for_it() -> None:
    alice = Bench(config=replace(MvdsConfig(), give_up_after_ms=3_600_000))
    alice.append(1)
    assert run(alice, DAY_MS) == [GivenUp(BOB, id_of(1))]
    (payload,) = payloads(alice.receive(BOB, requests=[id_of(1)]))
    assert payload.message_ids == (id_of(1),)
    record = alice.record(1)
    assert record is not None
    assert not record.given_up


def test_what_is_on_its_way_as_a_message_is_not_begun_anew_by_a_request() -> None:
    alice = Bench(config=replace(MvdsConfig(), mode=Mode.BATCH))
    alice.append(1)
    run(alice, 3_600_000)
    before = alice.record(1)
    assert before is not None
    assert before.send_count > 1
    alice.receive(BOB, requests=[id_of(1)])
    assert alice.record(1) == before
