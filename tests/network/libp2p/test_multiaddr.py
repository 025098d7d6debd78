"""Multiaddrs and varints: text and bytes, there and back, and what is refused with which words."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import AddressError, LocalProtocolError, RemoteProtocolError
from engine.network.libp2p.multiaddr import (
    HostKind,
    Layer,
    Multiaddr,
    multiaddr_from_bytes,
    multiaddr_of_socket,
    parse_multiaddr,
)
from engine.network.libp2p.ports import PeerId
from engine.network.libp2p.varint import decode_varint, encode_varint
from ui.address_words import address_words

PEER = PeerId("12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")


@st.composite
def multiaddrs(draw: st.DrawFn) -> Multiaddr:
    kind = draw(st.sampled_from(HostKind))
    match kind:
        case HostKind.IP4:
            host = str(draw(st.ip_addresses(v=4)))
        case HostKind.IP6:
            host = str(draw(st.ip_addresses(v=6)))
        case _:
            host = draw(st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}(\.[a-z]{2,5})?", fullmatch=True))
    return Multiaddr(
        host_kind=kind,
        host=host,
        port=draw(st.integers(0, 65_535)),
        layer=draw(st.sampled_from(Layer)),
        peer_id=draw(st.sampled_from([None, PEER])),
    )


@given(multiaddrs())
def test_text_and_bytes_round_trip(address: Multiaddr) -> None:
    assert parse_multiaddr(str(address)) == address
    assert multiaddr_from_bytes(address.to_bytes()) == address


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("/ip4/127.0.0.1/tcp/1234", "047f000001" + "0604d2"),
        ("/ip6/::1/tcp/80/ws", "29" + "00" * 15 + "01" + "060050" + "dd03"),
        ("/dns4/a.b/tcp/443/wss", "3603612e62" + "0601bb" + "de03"),
    ],
)
def test_known_bytes(text: str, encoded: str) -> None:
    assert parse_multiaddr(text).to_bytes().hex() == encoded
    assert str(multiaddr_from_bytes(bytes.fromhex(encoded))) == text


def test_other_spellings_become_canonical() -> None:
    assert str(parse_multiaddr("/ip6/0:0::0:1/tcp/1")) == "/ip6/::1/tcp/1"
    assert str(parse_multiaddr("/dns/a/tcp/1/tls/ws")) == "/dns/a/tcp/1/wss"
    assert str(parse_multiaddr(f"/dns6/a/tcp/1/ipfs/{PEER}")) == f"/dns6/a/tcp/1/p2p/{PEER}"
    tls_ws = bytes.fromhex("047f000001" + "060001" + "c003" + "dd03")
    assert str(multiaddr_from_bytes(tls_ws)) == "/ip4/127.0.0.1/tcp/1/wss"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'must start with "/"'),
        ("/", '"" is not one of ip4, ip6'),
        ("ip4/1.2.3.4/tcp/1", 'must start with "/"'),
        ("/ip5/1.2.3.4/tcp/1", '"ip5" is not one of ip4, ip6, dns, dns4, dns6'),
        ("/ip4/1.2.3/tcp/1", '"1.2.3" is no ip4 address'),
        ("/ip4/::1/tcp/1", '"::1" is no ip4 address'),
        ("/ip6/fe80::1%eth0/tcp/1", "zone"),
        ("/dns4/-bad-/tcp/1", '"-bad-" is no host name'),
        ("/dns4//tcp/1", '"" is no host name'),
        ("/ip4/1.2.3.4", "/tcp/PORT is needed"),
        ("/ip4/1.2.3.4/tcp", "/tcp/PORT is needed"),
        (
            "/ip4/1.2.3.4/udp/1/quic-v1",
            '"/udp" is unsupported after the host, where /tcp/PORT is needed',
        ),
        ("ws://example.org:8000", 'must start with "/", as in /ip4/192.0.2.1/tcp/60000'),
        ("/dnsaddr/example.org", '"dnsaddr" is not one of ip4, ip6, dns, dns4, dns6'),
        ("/onion3/abc:1", '"onion3" is not one of'),
        ("/ip4/1.2.3.4/tcp/1/", 'must not end in "/"'),
        ("/ip4/1.2.3.4/tcp/1/tls", "/tls is supported only in /tls/ws"),
        ("/dns4/a.b/tcp/443/tls/sni/a.b/ws", "/tls is supported only in /tls/ws"),
        ("/ip4/1.2.3.4/tcp/1/ws/ws", '"/ws" is unsupported: after the port'),
        ("/ip4/1.2.3.4/tcp/1/ws/http-path/x", '"/http-path" is unsupported: after the port'),
        ("/ip4/1.2.3.4/tcp/65536", '"65536" is no port'),
        ("/ip4/1.2.3.4/tcp/-1", '"-1" is no port'),
        ("/ip4/1.2.3.4/tcp/٣", "is no port"),
        ("/ip4/1.2.3.4/tcp/1/p2p", "/p2p needs a peer id"),
        ("/ip4/1.2.3.4/tcp/1/p2p/nobody", '"nobody" is no peer id'),
        (
            f"/ip4/1.2.3.4/tcp/1/p2p/{PEER}/p2p-circuit",
            '"/p2p-circuit" is unsupported: nothing may',
        ),
        (
            "/ip4/1.2.3.4/tcp/1/http",
            '"/http" is unsupported: after the port there may be one of /ws, /wss and /tls/ws, and',
        ),
        ("/" * 600, "longer than 512"),
        ("/" * 100, "too many parts (12 at most)"),
    ],
)
def test_a_mistake_is_named(text: str, words: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse_multiaddr(text)
    assert words in address_words(caught.value)


@given(st.text(max_size=100) | st.from_regex(r"/(ip4|dns4)/[a-z0-9.]*/tcp/[0-9]*(/.*)?"))
def test_text_parser_lets_only_address_errors_out(text: str) -> None:
    try:
        address = parse_multiaddr(text)
    except AddressError:
        return
    assert parse_multiaddr(str(address)) == address


@given(st.binary(max_size=64) | multiaddrs().map(lambda each: each.to_bytes()[:-1]))
def test_binary_parser_lets_only_remote_errors_out(data: bytes) -> None:
    try:
        address = multiaddr_from_bytes(data)
    except RemoteProtocolError:
        return
    assert multiaddr_from_bytes(address.to_bytes()) == address


def test_an_endless_binary_address_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="multiaddr_too_long"):
        multiaddr_from_bytes(bytes(513))


def test_what_is_near() -> None:
    near = ["/ip4/127.0.0.1/tcp/1", "/ip4/192.168.1.2/tcp/1", "/ip6/fe80::1/tcp/1",
            "/dns4/localhost/tcp/1"]  # fmt: skip
    far = ["/ip4/8.8.8.8/tcp/1", "/dns4/example.org/tcp/1", "/ip6/2606:4700::1/tcp/1"]
    assert all(parse_multiaddr(text).is_near for text in near)
    assert not any(parse_multiaddr(text).is_near for text in far)


def test_socket_addresses_lose_zone_and_mapping() -> None:
    assert str(multiaddr_of_socket("fe80::1%eth0", 5)) == "/ip6/fe80::1/tcp/5"
    assert str(multiaddr_of_socket("::ffff:10.0.0.1", 5)) == "/ip4/10.0.0.1/tcp/5"


@given(st.integers(0, 2**63 - 1), st.binary(max_size=3))
def test_varints_round_trip(value: int, tail: bytes) -> None:
    encoded = encode_varint(value)
    assert decode_varint(encoded + tail) == (value, len(encoded))


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [(b"", "truncated"), (b"\x80", "truncated"), (b"\x81\x00", "not_minimal"),
     (b"\xff" * 10, "too_long")],
)  # fmt: skip
def test_bad_varints(encoded: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        decode_varint(encoded)


@pytest.mark.parametrize("value", [-1, 2**63])
def test_what_no_varint_can_hold(value: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_varint(value)


@given(st.ip_addresses())
def test_every_ip_address_is_a_socket_address(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert multiaddr_of_socket(str(address), 1).is_ip
