"""Clogging: phantom dependencies fill a share, never the channel, and the oldest get through."""

from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    SMALL,
    content,
    dep,
    entries,
    id_of,
    log_of,
    member,
    sync,
)


def test_one_sender_clogs_only_its_own_share() -> None:
    alice = member()
    for number in range(300):
        message = content(BOB, str(number), lamport=NOW + number, history=entries(f"x{number}"))
        alice.handle(message, now_ms=NOW)
    assert len(alice.channel.snapshot().incoming) == 200
    assert alice.counters["sds.incoming_overflow"] == 100
    waiting = content(CAROL, "honest", history=entries("real"))
    alice.handle(waiting, now_ms=NOW)
    assert len(alice.channel.snapshot().incoming) == 201


def test_an_older_message_takes_the_place_of_the_newest_waiting_one() -> None:
    alice = member()
    messages = [
        content(BOB, str(number), lamport=NOW + number, history=entries("root"))
        for number in range(201)
    ]
    for message in reversed(messages):
        alice.handle(message, now_ms=NOW)
    waiting = {entry.message.message_id for entry in alice.channel.snapshot().incoming}
    assert waiting == {id_of(message) for message in messages[:200]}
    assert alice.counters["sds.incoming_gave_way"] == 1


def test_a_chain_longer_than_the_share_is_delivered_backwards_in_the_end() -> None:
    """A newcomer is told the newest first and walks back: the buffer may not lock up."""
    alice = member(config=replace(SMALL, max_waiting_per_sender=8))
    chain = [content(BOB, "0", lamport=NOW)]
    for number in range(1, 40):
        chain.append(content(BOB, str(number), lamport=NOW + number, history=dep(chain[-1])))
    by_id = {id_of(message): message for message in chain}
    alice.handle(sync(CAROL, history=dep(chain[-1])), now_ms=NOW)
    for _ in range(500):
        wanted = [entry.entry.message_id for entry in alice.channel.snapshot().missing]
        if not wanted:
            break
        for message_id in wanted:
            alice.handle(by_id[message_id], now_ms=NOW)
    # What gave way and is waited for by nobody any more is named by the next sync message.
    while len(log_of(alice)) < 40:
        before = len(log_of(alice))
        for message in chain:
            alice.handle(message, now_ms=NOW)
        assert len(log_of(alice)) > before
    assert log_of(alice) == [id_of(message) for message in chain]


def test_bytes_are_bounded_too() -> None:
    alice = member(config=replace(SMALL, max_waiting_bytes_per_sender=10_000))
    for number in range(10):
        text = f"{number}" + "x" * 2_000
        message = content(BOB, text, lamport=NOW + number, history=entries("missing"))
        alice.handle(message, now_ms=NOW)
    assert len(alice.channel.snapshot().incoming) == 4


def test_the_channel_is_bounded_over_all_senders() -> None:
    alice = member(config=replace(SMALL, max_waiting=50))
    for number in range(100):
        sender = ParticipantId(f"member-{number}")
        alice.handle(content(sender, "x", history=entries("missing")), now_ms=NOW)
    assert len(alice.channel.snapshot().incoming) == 50


def test_phantom_dependencies_are_bounded_per_sender_and_leave_room_for_others() -> None:
    alice = member()
    for number in range(20):
        phantoms = [f"{number}-{index}" for index in range(100)]
        message = content(BOB, str(number), lamport=NOW + number, history=entries(*phantoms))
        alice.handle(message, now_ms=NOW)
    assert len(alice.channel.snapshot().missing) == 1_000
    assert alice.counters["sds.missing_overflow"] == 10
    alice.handle(sync(CAROL, history=entries("real")), now_ms=NOW)
    missing = {entry.entry.message_id for entry in alice.channel.snapshot().missing}
    assert MessageId("real") in missing


def test_mutually_dependent_messages_wait_and_harm_nobody() -> None:
    alice = member()
    one = content(BOB, "1")
    two = content(BOB, "2", history=dep(one))
    one = content(BOB, "1", history=dep(two))
    for message in (one, two):
        alice.handle(message, now_ms=NOW)
    assert log_of(alice) == []
    alice.handle(content(CAROL, "fine"), now_ms=NOW)
    assert len(log_of(alice)) == 1
    assert ALICE not in {entry.sender_id for entry in alice.channel.snapshot().log}


def test_what_all_together_may_name_is_bounded_to_the_last_one() -> None:
    alice = member(config=replace(SMALL, max_missing=10))
    for sender, number in ((BOB, 6), (CAROL, 5), (CAROL, 4)):
        names = entries(*(f"{sender} {number} {each}" for each in range(number)))
        alice.handle(content(sender, str(number), history=names), now_ms=NOW)
    assert len(alice.channel.snapshot().missing) == 10
    assert alice.counters["sds.missing_overflow"] == 1
