"""SDS-R: js-waku's times, requests repeated with back-off, one answer silences the others."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import MessageReceived, RetrieveRequested
from engine.core.sds.repair import RepairTimes
from engine.core.sds.vocabulary import HistoryEntry, RepairRequested
from engine.sim.channel_participant import ChannelParticipant, hash64
from engine.sim.network import Outgoing
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
    opened,
    run_until,
    said,
    sync,
    syncs,
)

Vector = dict[str, Any]
VECTORS = cast(
    "dict[str, list[Vector]]",
    json.loads(
        (Path(__file__).parents[2] / "vectors" / "sds" / "repair.json").read_text(encoding="utf-8")
    ),
)


def _times(vector: Vector) -> RepairTimes:
    config = SdsConfig()
    if isinstance(vector.get("config"), dict):
        config = replace(
            config,
            repair_t_min_ms=vector["config"]["tMin"],
            repair_t_max_ms=vector["config"]["tMax"],
        )
    participant_id = ParticipantId(vector.get("participantId", "x"))
    return RepairTimes(participant_id, config=config, hash64=hash64)


def test_hash() -> None:
    assert [str(hash64(vector["input"])) for vector in VECTORS["hashes"]] == [
        vector["value"] for vector in VECTORS["hashes"]
    ]


@pytest.mark.parametrize("vector", VECTORS["tReq"], ids=str)
def test_request_times(vector: Vector) -> None:
    delay = _times(vector).request_delay_ms(MessageId(vector["messageId"]))
    assert delay == vector["offsetMs"]


@pytest.mark.parametrize("vector", VECTORS["tResp"], ids=str)
def test_response_times(vector: Vector) -> None:
    times, sender_id = _times(vector), ParticipantId(vector["senderId"])
    delay = times.response_delay_ms(MessageId(vector["messageId"]), sender_id)
    assert delay == vector["offsetMs"]


def test_response_groups() -> None:
    for vector in VECTORS["groups"]:
        groups = vector["numResponseGroups"]
        config = SdsConfig(repair_group_size=1)
        times = RepairTimes(ParticipantId(vector["participantId"]), config=config, hash64=hash64)
        message_id, sender_id = MessageId(vector["messageId"]), ParticipantId(vector["senderId"])
        found = times.in_response_group(message_id, sender_id, members=groups)
        assert found == vector["inGroup"], vector


@pytest.mark.parametrize("vector", VECTORS["updateResponseGroups"], ids=str)
def test_number_of_response_groups(vector: Vector) -> None:
    groups = _times({}).response_groups(vector["numParticipants"])
    assert groups == vector["numResponseGroups"]


def requests(received: MessageReceived) -> list[MessageId]:
    return [entry.message_id for entry in received.message.repair_request]


def test_at_most_three_requests_travel_with_a_message_and_all_are_asked_in_turn() -> None:
    alice = member()
    wanted = [f"missing-{number}" for number in range(8)]
    alice.handle(sync(BOB, history=entries(*wanted)), now_ms=NOW)
    sent = [opened([item])[0] for _, item in run_until(alice, after(15_000))]
    assert all(len(requests(item)) <= 3 for item in sent)
    assert {request for item in sent for request in requests(item)} == set(wanted)


def test_own_content_carries_requests_that_are_due() -> None:
    alice = member()
    alice.handle(sync(BOB, history=entries("missing")), now_ms=NOW)
    (sent,) = opened(alice.send("x", now_ms=after(SMALL.repair_t_max_ms)))
    assert requests(sent) == ["missing"]
    (event,) = said(alice, RepairRequested)
    assert event == RepairRequested(message_ids=(MessageId("missing"),))


def test_requests_name_hint_and_sender_so_that_anybody_can_look() -> None:
    alice = member()
    wanted = HistoryEntry(message_id=MessageId("m"), retrieval_hint=b"h" * 32, sender_id=BOB)
    alice.handle(sync(BOB, history=(wanted,)), now_ms=NOW)
    (sent,) = opened(alice.send("x", now_ms=after(10_000)))
    assert sent.message.repair_request == (wanted,)


def test_asked_again_with_growing_waits_until_held() -> None:
    alice = member()
    missing = content(BOB, "missing")
    alice.handle(sync(BOB, history=dep(missing)), now_ms=NOW)
    asked = [at for at, item in syncs(run_until(alice, after(3_600_000))) if requests(item)]
    assert len(asked) >= 8
    gaps = [b - a for a, b in pairwise(asked)]
    assert gaps[0] < 12_000
    assert gaps[5] > 8 * gaps[0]
    assert max(gaps) <= SMALL.repair_backoff_max_ms + SMALL.sync_interval_ms
    now_ms = after(3_600_001)
    alice.handle(missing, now_ms=now_ms)
    assert log_of(alice) == [id_of(missing)]
    later = run_until(alice, after(4_000_000))
    assert not any(requests(item) for _, item in syncs(later))


def test_somebody_elses_request_postpones_ours() -> None:
    alice = member()
    alice.handle(sync(BOB, history=entries("missing")), now_ms=NOW)
    (before,) = alice.channel.snapshot().missing
    heard_at = UnixMs(before.request_at_ms - 1)
    alice.handle(sync(CAROL, requests=entries("missing")), now_ms=heard_at)
    (postponed,) = alice.channel.snapshot().missing
    assert postponed.request_at_ms > before.request_at_ms
    assert postponed.requests == 0


def test_the_author_answers_at_once_and_not_again_for_an_echo() -> None:
    alice = member()
    (mine,) = opened(alice.send("x", now_ms=NOW))
    requests = [sync(BOB, lamport=NOW + number, requests=dep(mine)) for number in range(3)]
    (answer,) = opened(alice.handle(requests[0], now_ms=after(1)))
    assert (answer.raw, answer.repaired_by) == (mine.raw, ALICE)
    assert opened(alice.handle(requests[1], now_ms=after(2))) == []
    later = after(SMALL.repair_t_min_ms)
    assert len(opened(alice.handle(requests[2], now_ms=later))) == 1


def repairs(participant: ChannelParticipant, end_ms: int) -> list[tuple[int, MessageId]]:
    found = []
    for at_ms, item in run_until(participant, end_ms):
        (received,) = opened([item])
        if received.repaired_by is not None:
            found.append((at_ms - NOW, id_of(received)))
    return found


def test_others_answer_within_t_max() -> None:
    alice = member()
    theirs = content(BOB, "x")
    alice.handle(theirs, now_ms=NOW)
    assert opened(alice.handle(sync(CAROL, requests=dep(theirs)), now_ms=NOW)) == []
    ((at_ms, message_id),) = repairs(alice, after(60_000))
    assert message_id == id_of(theirs)
    assert at_ms <= SMALL.repair_t_max_ms


def test_an_answer_heard_first_cancels_ours() -> None:
    alice = member()
    theirs = content(BOB, "x")
    alice.handle(theirs, now_ms=NOW)
    alice.handle(sync(CAROL, requests=dep(theirs)), now_ms=NOW)
    alice.handle(replace(theirs, repaired_by=BOB), now_ms=after(1))
    assert repairs(alice, after(60_000)) == []


def pushed(outgoing: list[Outgoing]) -> list[MessageId]:
    return [id_of(item) for item in opened(outgoing) if item.repaired_by is not None]


SETTLED = after(2 * SMALL.repair_t_min_ms)


def knows(theirs: MessageReceived) -> ChannelParticipant:
    """Alice, who holds Carol's message."""
    alice = member()
    alice.handle(theirs, now_ms=NOW)
    return alice


def test_what_holdings_lack_is_sent_unasked_by_its_author_at_once() -> None:
    alice = member()
    (mine,) = opened(alice.send("x", now_ms=NOW))
    lacking = sync(BOB, lamport=NOW + 1, holdings=holds())
    assert pushed(alice.handle(lacking, now_ms=UnixMs(SETTLED - 1))) == []  # Still on its way.
    lacking = sync(BOB, lamport=NOW + 2, holdings=holds())
    assert pushed(alice.handle(lacking, now_ms=SETTLED)) == [id_of(mine)]


def test_others_send_it_later_unless_it_arrived_meanwhile() -> None:
    theirs = content(CAROL, "x", sequence=1)
    lacking = sync(BOB, lamport=NOW + 1, holdings=holds())
    alice, other = knows(theirs), knows(theirs)
    for person in (alice, other):
        assert pushed(person.handle(lacking, now_ms=SETTLED)) == []
    arrived = sync(BOB, lamport=NOW + 2, holdings=holds((CAROL, 1, 1)))
    other.handle(arrived, now_ms=SETTLED)
    assert [message_id for _, message_id in repairs(alice, after(8_000))] == [id_of(theirs)]
    assert repairs(other, after(8_000)) == []


def test_a_claim_that_may_have_crossed_with_a_copy_moves_nobody() -> None:
    """Ours or somebody else's copy: the next claim can tell better."""
    theirs = content(CAROL, "x", sequence=1)
    alice = knows(theirs)
    alice.handle(replace(theirs, repaired_by=CAROL), now_ms=SETTLED)
    for delay_ms in range(0, SMALL.push_again_ms, 100):
        claim = sync(BOB, lamport=NOW + delay_ms, holdings=holds())
        alice.handle(claim, now_ms=UnixMs(SETTLED + delay_ms))
    assert repairs(alice, after(60_000)) == []
    still = sync(BOB, lamport=NOW + 9_000, holdings=holds())
    alice.handle(still, now_ms=UnixMs(SETTLED + SMALL.push_again_ms))
    assert [message_id for _, message_id in repairs(alice, after(60_000))] == [id_of(theirs)]


def test_what_waits_at_the_other_for_another_message_is_not_sent_to_it() -> None:
    """Its filter has it, its log has not; but a filter may err, so not when it says so twice."""
    alice = member()
    first, second = (opened(alice.send(text, now_ms=NOW))[0] for text in ("x", "y"))
    bloom = BloomFilter(capacity=256, fixed=False)
    bloom.add(id_of(second))
    claim = sync(BOB, lamport=NOW + 1, holdings=holds(), bloom=bytes(bloom))
    assert pushed(alice.handle(claim, now_ms=SETTLED)) == [id_of(first)]
    stuck = replace(claim, message=replace(claim.message, lamport_timestamp=NOW + 60_000))
    assert pushed(alice.handle(stuck, now_ms=after(60_000))) == [id_of(first), id_of(second)]


def test_what_a_member_cannot_read_is_not_sent_to_it_unasked() -> None:
    alice = member()
    first, second = (opened(alice.send(text, now_ms=NOW))[0] for text in ("x", "y"))
    place = alice.channel.snapshot().log[0].position
    assert place.message_id == id_of(first)
    alice.channel.send_nothing_before({BOB: place}.get)
    claim = sync(BOB, lamport=NOW + 1, holdings=holds())
    assert pushed(alice.handle(claim, now_ms=after(60_000))) == [id_of(second)]
    by_another = sync(CAROL, lamport=NOW + 2, holdings=holds())
    assert id_of(first) in pushed(alice.handle(by_another, now_ms=after(60_000)))


def test_who_asked_and_then_claims_to_hold_it_gets_no_answer() -> None:
    theirs = content(CAROL, "x", sequence=1)
    alice = knows(theirs)
    asked = sync(BOB, lamport=NOW + 1, holdings=holds(), requests=dep(theirs))
    assert pushed(alice.handle(asked, now_ms=NOW)) == []
    alice.handle(sync(BOB, lamport=NOW + 2, holdings=holds((CAROL, 1, 1))), now_ms=NOW)
    assert repairs(alice, after(8_000)) == []


def test_a_burst_of_claims_is_answered_oldest_first_and_bounded() -> None:
    alice = member()
    for number in range(100):
        alice.send(str(number), now_ms=after(number))
    sent: list[MessageId] = []
    for number in range(20):
        claim = sync(BOB, lamport=NOW + number, holdings=holds())
        sent += pushed(alice.handle(claim, now_ms=after(10_000)))
    sent += [message_id for _, message_id in repairs(alice, after(30_000))]
    assert len(sent) == SMALL.push_per_claim + SMALL.repair_answers_per_sweep
    assert sent == alice.seen.sent[: len(sent)]


def test_who_asks_for_what_is_planned_for_another_already_is_not_refused() -> None:
    alice = member()
    message = content(CAROL, "x", lamport=NOW - 60_000, sequence=1)
    alice.handle(message, now_ms=NOW)
    for number, asker in enumerate((BOB, CAROL)):
        request = sync(asker, lamport=NOW + number, requests=dep(message))
        assert pushed(alice.handle(request, now_ms=NOW)) == []
    assert alice.counters["sds.repair_answer_refused"] == 0


def test_the_user_may_have_everything_asked_for_now() -> None:
    alice = member(members=MEMBERS)
    alice.handle(sync(BOB, history=entries("missing")), now_ms=NOW)
    run_until(alice, after(1_000_000))
    alice.handle(RetrieveRequested(), now_ms=after(1_000_001))
    found = [item for at, item in syncs(run_until(alice, after(1_003_000))) if at > NOW + 1_000_000]
    assert [requests(item) for item in found][:1] == [["missing"]]
