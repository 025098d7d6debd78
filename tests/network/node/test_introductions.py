"""Which addresses of peers are remembered, and that nobody can fill the book with theirs."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.core.counters import Counters
from engine.network.libp2p.peer_id import peer_id_of_key
from engine.network.libp2p.ports import PeerId, RemotePeer
from engine.network.node.introductions import (
    MAX_INBOUND,
    MAX_OF_A_PEER,
    MAX_OF_A_PLACE,
    Introductions,
)


def peer_id(number: int) -> PeerId:
    return peer_id_of_key(b"\x08\x01\x12\x20" + number.to_bytes(32, "big"))


def peer(number: int, host: str, *claimed: str, outbound: bool = False) -> RemotePeer:
    who = peer_id(number)
    return RemotePeer(
        peer_id=who,
        protocols=(),
        listen_addresses=tuple(f"{address}/p2p/{who}" for address in claimed),
        agent="",
        outbound=outbound,
        host=host,
    )


def tcp(host: str, port: int = 4000) -> str:
    return f"/ip6/{host}/tcp/{port}" if ":" in host else f"/ip4/{host}/tcp/{port}"


def test_whoever_dialled_us_is_believed_to_be_where_it_is_seen_and_nowhere_else() -> None:
    counters = Counters()
    met = peer(1, "192.168.1.7", tcp("8.8.8.8"), tcp("192.168.1.7"), tcp("192.168.1.1"))
    told = Introductions(counters).worth_remembering(met)
    assert told == [f"{tcp('192.168.1.7')}/p2p/{peer_id(1)}"]
    assert counters["node.peer_addresses_elsewhere"] == 1


def test_whoever_we_dialled_is_believed_within_bounds() -> None:
    claimed = [tcp("8.8.8.8", port) for port in range(1, 20)]
    met = peer(1, "192.168.1.7", *claimed, outbound=True)
    told = Introductions(Counters()).worth_remembering(met)
    assert list(told) == list(met.listen_addresses[:MAX_OF_A_PEER])


def test_a_neighbour_with_a_thousand_names_fills_its_own_place_only() -> None:
    counters = Counters()
    book = Introductions(counters)
    flood = [
        address
        for number in range(1_000)
        for address in book.worth_remembering(peer(number, "192.168.1.66", tcp("192.168.1.66")))
    ]
    assert len(flood) == MAX_OF_A_PLACE
    assert counters["node.too_many_introductions"] == 1_000 - MAX_OF_A_PLACE
    friend = peer(2_000, "192.168.1.7", tcp("192.168.1.7"))
    assert len(book.worth_remembering(friend)) == 1
    again = peer(0, "192.168.1.66", tcp("192.168.1.66"))
    assert book.worth_remembering(again) == flood[:1]  # Known already: nothing new is displaced.


def test_an_ipv6_neighbour_has_one_place_however_many_addresses_it_has() -> None:
    book = Introductions(Counters())
    told = [
        address
        for number in range(1, 100)
        for address in book.worth_remembering(
            peer(number, f"fd00::{number:x}", tcp(f"fd00::{number:x}"))
        )
    ]
    assert len(told) == MAX_OF_A_PLACE


@given(
    meetings=st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 30), st.integers(1, 5), st.booleans()),
        max_size=200,
    )
)
def test_however_many_come_from_wherever_the_book_is_not_theirs(
    meetings: list[tuple[int, int, int, bool]],
) -> None:
    book = Introductions(Counters())
    inbound: dict[str, str] = {}
    for number, place, count, outbound in meetings:
        host = f"10.0.0.{place}"
        claimed = [tcp(host, port) for port in range(1, count + 1)]
        told = book.worth_remembering(peer(number, host, *claimed, outbound=outbound))
        assert len(told) <= MAX_OF_A_PEER
        if not outbound:
            inbound.update(dict.fromkeys(told, host))
    assert len(inbound) <= MAX_INBOUND
    assert all(count <= MAX_OF_A_PLACE for count in Counter(inbound.values()).values())
