"""What is said by mDNS, and what is believed of it: the network is hostile."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.network.discovery.announcement import (
    MAX_ADDRESSES,
    MAX_TXT_BYTES,
    Scope,
    addresses_to_announce,
    encode_txt,
    random_name,
    read_txt,
)
from engine.network.libp2p.multiaddr import parse_multiaddr

ANN = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
BOB = "16Uiu2HAkukebeXjTQ9QDBeNDWuGfbaSg79wkkhK4vPocLgR6QFDf"
LAN = Scope.LOCAL_NETWORK


def txt(*strings: str | bytes) -> bytes:
    raw = [each if isinstance(each, bytes) else each.encode() for each in strings]
    return b"".join(bytes((len(each),)) + each for each in raw)


def said(*hosts: str, peer: str = ANN) -> bytes:
    return txt(*(f"dnsaddr=/{host}/tcp/60000/p2p/{peer}" for host in hosts))


def believed(data: bytes, scope: Scope = LAN) -> list[str]:
    found = read_txt(data, scope)
    return [] if found is None else [parse_multiaddr(text).host for text in found.addresses]


def test_what_is_said_is_what_the_spec_says() -> None:
    address = f"/ip4/192.168.1.7/tcp/60000/p2p/{ANN}"
    data = encode_txt([address])
    assert data == bytes((8 + len(address),)) + b"dnsaddr=" + address.encode()
    found = read_txt(data, LAN)
    assert found is not None
    assert (found.peer_id, found.addresses) == (ANN, (address,))


@pytest.mark.parametrize(
    ("host", "scope", "is_believed"),
    [
        ("ip4/192.168.1.7", LAN, True),
        ("ip4/10.0.0.1", LAN, True),
        ("ip4/172.31.255.255", LAN, True),
        ("ip4/169.254.9.9", LAN, True),
        ("ip6/fd00::7", LAN, True),
        ("ip6/fe80::1", LAN, False),  # nobody can dial it without an interface
        ("ip4/8.8.8.8", LAN, False),
        ("ip4/172.32.0.1", LAN, False),
        ("ip6/2606:4700::1", LAN, False),
        ("ip4/127.0.0.1", LAN, False),  # would be this machine's own services
        ("ip6/::ffff:127.0.0.1", LAN, False),  # the same, spelt otherwise
        ("ip6/::ffff:0.0.0.0", LAN, False),
        ("ip6/::ffff:192.168.1.7", LAN, True),
        ("ip4/0.0.0.0", LAN, False),
        ("ip4/224.0.0.251", LAN, False),
        ("ip4/255.255.255.255", LAN, False),
        ("ip4/240.0.0.1", LAN, False),
        ("ip6/::1", LAN, False),
        ("dns4/router.local", LAN, False),
        ("dns/localhost", Scope.MACHINE, False),
        ("ip4/127.0.0.1", Scope.MACHINE, True),
        ("ip4/192.168.1.7", Scope.MACHINE, False),
    ],
)
def test_only_near_addresses_are_believed(host: str, scope: Scope, is_believed: bool) -> None:
    assert bool(believed(said(host), scope)) == is_believed


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\xff",
        b"\x05dnsad",
        txt("dnsaddr="),
        txt("dnsaddr=/ip4/192.168.1.7/tcp/60000"),
        txt(f"dnsaddr=/ip4/192.168.1.7/tcp/0/p2p/{ANN}"),
        txt(f"dnsaddr=/ip4/192.168.1.7/udp/1/quic-v1/p2p/{ANN}"),
        txt(f"address=/ip4/192.168.1.7/tcp/1/p2p/{ANN}"),
        txt("dnsaddr=/ip4/192.168.1.7/tcp/1/p2p/12D3KooW"),
        txt(b"dnsaddr=/ip4/192.168.1.7/tcp/1/p2p/\xff\xfe"),
        said(*["ip4/192.168.1.7"] * 60)[: MAX_TXT_BYTES + 1] + bytes(MAX_TXT_BYTES),
    ],
)
def test_what_is_none_is_nothing(data: bytes) -> None:
    assert read_txt(data, LAN) is None


def test_an_announcement_is_of_one_peer_and_at_most_eight_addresses() -> None:
    hosts = [f"ip4/10.0.0.{number}" for number in range(1, 30)]
    assert len(believed(said(*hosts))) == MAX_ADDRESSES
    mixed = said("ip4/10.0.0.1") + said("ip4/10.0.0.2", peer=BOB) + said("ip4/10.0.0.3")
    assert believed(mixed) == ["10.0.0.1", "10.0.0.3"]
    assert len(encode_txt(f"/ip4/10.0.0.{n}/tcp/1/p2p/{ANN}" for n in range(99))) < 1_400
    assert not encode_txt(["/dns/" + "x" * 250 + "/tcp/1"])


def test_good_ones_among_junk_are_found() -> None:
    data = txt("x=y", "", b"\xff\xfe") + said("ip4/8.8.8.8", "ip4/10.0.0.1") + b"\x99cut"
    assert believed(data) == ["10.0.0.1"]


@given(st.binary(max_size=5_000) | st.lists(st.binary(max_size=80)).map(lambda each: txt(*each)))
def test_any_bytes_are_an_announcement_or_nothing(data: bytes) -> None:
    found = read_txt(data, LAN)
    if found is not None:
        assert 0 < len(found.addresses) <= MAX_ADDRESSES


def test_names_are_random_and_fit_a_label() -> None:
    random = Random(1)
    names = {random_name(random) for _ in range(100)}
    assert len(names) == 100
    assert all(32 <= len(name) <= 63 and name.isalnum() and name.islower() for name in names)


@pytest.mark.parametrize(
    ("own", "interfaces", "scope", "expected"),
    [
        # on all interfaces: each is said, loopback never
        (
            [f"/ip4/192.168.1.7/tcp/6/p2p/{ANN}", f"/ip4/127.0.0.1/tcp/6/p2p/{ANN}"],
            ["192.168.1.7", "10.8.0.2"],
            LAN,
            [f"/ip4/192.168.1.7/tcp/6/p2p/{ANN}", f"/ip4/10.8.0.2/tcp/6/p2p/{ANN}"],
        ),
        # on one: that one
        (
            [f"/ip4/10.8.0.2/tcp/6/p2p/{ANN}", f"/ip4/10.8.0.2/tcp/7/ws/p2p/{ANN}"],
            ["192.168.1.7", "10.8.0.2"],
            LAN,
            [f"/ip4/10.8.0.2/tcp/6/p2p/{ANN}", f"/ip4/10.8.0.2/tcp/7/ws/p2p/{ANN}"],
        ),
        # on loopback: to this machine only
        (
            [f"/ip4/127.0.0.1/tcp/6/p2p/{ANN}"],
            ["127.0.0.1"],
            Scope.MACHINE,
            [f"/ip4/127.0.0.1/tcp/6/p2p/{ANN}"],
        ),
        ([f"/ip4/203.0.113.9/tcp/6/p2p/{ANN}"], ["192.168.1.7"], LAN, []),
        ([], ["192.168.1.7"], LAN, []),
    ],
)
def test_what_is_announced(
    own: list[str], interfaces: list[str], scope: Scope, expected: list[str]
) -> None:
    assert addresses_to_announce(own, interfaces, scope) == expected
