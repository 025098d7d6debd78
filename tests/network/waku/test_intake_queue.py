"""The queue for the archive's disk: everybody's turn, and whose messages are dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.waku_archive import ArchivedMessage, Source
from engine.network.waku.intake_queue import IntakeQueue
from engine.network.waku.sources import network_of
from tests.persistence.archive_examples import archived

SOURCES = [Source(network, peer) for network in "ab" for peer in "xyz"]


def queue(*, max_messages: int = 100, max_bytes: int = 10**9) -> IntakeQueue:
    return IntakeQueue(max_messages=max_messages, max_bytes=max_bytes)


def many(count: int, source: Source, first: int = 0) -> list[ArchivedMessage]:
    return [archived(number, source=source) for number in range(first, first + count)]


def taken(from_: IntakeQueue, count: int) -> list[ArchivedMessage]:
    return from_.take(max_messages=count, max_bytes=10**9)


def test_networks_take_turns_and_so_do_the_peers_of_one() -> None:
    waiting = queue()
    x, y, other = Source("a", "x"), Source("a", "y"), Source("b", "z")
    for message in many(6, x) + many(2, y, 10) + many(3, other, 20):
        assert waiting.put(message) == []
    order = [message.source for message in taken(waiting, 20)]
    assert order == [x, other, y, other, x, other, y, x, x, x, x]


def test_a_batch_ends_at_its_bytes_and_has_one_message_at_least() -> None:
    waiting = queue()
    for message in many(5, SOURCES[0]):
        waiting.put(message)
    assert len(waiting.take(max_messages=5, max_bytes=11)) == 2
    assert len(waiting.take(max_messages=5, max_bytes=0)) == 1
    assert len(waiting) == 2


def test_what_is_too_much_is_dropped_of_whoever_has_most() -> None:
    waiting = queue(max_messages=10)
    flood = many(10, Source("a", "flood"))
    for message in flood:
        assert waiting.put(message) == []
    neighbour, other = archived(50, source=Source("a", "x")), archived(51, source=Source("b", "y"))
    assert waiting.put(neighbour) == [flood[-1]]
    assert waiting.put(other) == [flood[-2]]
    more = archived(60, source=Source("a", "flood"))
    assert waiting.put(more) == [more]
    assert {neighbour.message_hash, other.message_hash} <= {
        message.message_hash for message in taken(waiting, 3)
    }


def test_whoever_has_most_is_who_waits() -> None:
    waiting = queue()
    for message in many(20, Source("a", "flood")) + many(1, Source("a", "x"), 30):
        waiting.put(message)
    waiting.put(archived(40, source=Source("b", "y")))
    assert waiting.has_most(Source("a", "flood"))
    for source in (Source("a", "x"), Source("b", "y"), Source("c", "nobody")):
        assert not waiting.has_most(source)


@given(
    st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(1, 400)), max_size=60),
    st.integers(1, 20),
    st.integers(1, 20),
)
def test_what_is_put_in_comes_out_once_or_was_dropped(
    puts: list[tuple[Source, int]], room: int, batch: int
) -> None:
    waiting, dropped, out = queue(max_messages=room), list[ArchivedMessage](), []
    put: list[ArchivedMessage] = []
    for number, (source, size) in enumerate(puts):
        message = replace(archived(number, size=size), source=source)
        put.append(message)
        dropped += waiting.put(message)
        assert len(waiting) <= room
        if number % 7 == 0:
            back = taken(waiting, batch)
            waiting.put_back(back)
    while len(waiting):
        out += taken(waiting, batch)
    assert sorted(m.message_hash for m in out + dropped) == sorted(m.message_hash for m in put)
    for source in SOURCES:
        numbers = [put.index(message) for message in out if message.source == source]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("name.example", "name.example"),
        ("", ""),
    ],
)
def test_peers_are_counted_by_the_network_of_one_subscriber(host: str, network: str) -> None:
    assert network_of(host) == network
