"""Multiaddrs of the shape that this node can listen on or dial.

``/(ip4|ip6|dns|dns4|dns6)/host/tcp/port[/ws|/wss|/tls/ws][/p2p/peer-id]``; ``/tls/ws`` is another
spelling of ``/wss``.  Users type the text form, and invitations carry it: an error there is an
AddressError that names the part and what is allowed.  Identify carries the binary form from peers:
an error there is a RemoteProtocolError.  Other shapes (QUIC, relays) are refused.
"""

import ipaddress
import re
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from engine.core.errors import AddressError, AddressFlaw, RemoteProtocolError
from engine.network.libp2p.peer_id import (
    parse_peer_id,
    peer_id_from_bytes,
    peer_id_to_bytes,
)
from engine.network.libp2p.ports import PeerId
from engine.network.libp2p.varint import decode_varint, encode_varint

MAX_MULTIADDR_TEXT = 512
MAX_MULTIADDR_BYTES = 512
_MAX_PORT = 65_535
_MAX_PARTS = 12
_EXAMPLE = "/ip4/192.0.2.1/tcp/60000"
_HOST_NAME = re.compile(r"(?=.{1,253}\Z)(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


class HostKind(StrEnum):
    IP4 = "ip4"
    IP6 = "ip6"
    DNS = "dns"
    DNS4 = "dns4"
    DNS6 = "dns6"


class Layer(StrEnum):
    """What carries the bytes on top of the TCP connection."""

    RAW = ""
    WS = "ws"
    WSS = "wss"


_HOST_CODES = {
    HostKind.IP4: 4,
    HostKind.IP6: 41,
    HostKind.DNS: 53,
    HostKind.DNS4: 54,
    HostKind.DNS6: 55,
}
_HOST_KINDS = {code: kind for kind, code in _HOST_CODES.items()}
_ADDRESS_BYTES = {HostKind.IP4: 4, HostKind.IP6: 16}
_TCP, _P2P, _TLS, _WS, _WSS = 6, 421, 448, 477, 478


class Multiaddr(Struct, frozen=True, kw_only=True):
    """One address.  ``host`` is canonical: IP addresses are in their shortest form."""

    host_kind: HostKind
    host: str
    port: int
    layer: Layer = Layer.RAW
    peer_id: PeerId | None = None

    def __str__(self) -> str:
        layer = f"/{self.layer}" if self.layer is not Layer.RAW else ""
        peer = f"/p2p/{self.peer_id}" if self.peer_id is not None else ""
        return f"/{self.host_kind}/{self.host}/tcp/{self.port}{layer}{peer}"

    @property
    def is_ip(self) -> bool:
        return self.host_kind in _ADDRESS_BYTES

    @property
    def is_unspecified(self) -> bool:
        return self.is_ip and ipaddress.ip_address(self.host).is_unspecified

    @property
    def is_loopback(self) -> bool:
        if self.is_ip:
            return ipaddress.ip_address(self.host).is_loopback
        return self.host.rstrip(".").lower() == "localhost"

    @property
    def is_near(self) -> bool:
        """Loopback, private or link-local: on this machine or its network."""
        return self.is_loopback or (self.is_ip and ipaddress.ip_address(self.host).is_private)

    def with_peer(self, peer_id: PeerId | None) -> "Multiaddr":
        return replace(self, peer_id=peer_id)

    def to_bytes(self) -> bytes:
        """The binary form, as identify carries it."""
        if self.is_ip:
            host = ipaddress.ip_address(self.host).packed
        else:
            name = self.host.encode()
            host = encode_varint(len(name)) + name
        parts = [encode_varint(_HOST_CODES[self.host_kind]), host]
        parts += [encode_varint(_TCP), self.port.to_bytes(2, "big")]
        if self.layer is not Layer.RAW:
            parts.append(encode_varint(_WS if self.layer is Layer.WS else _WSS))
        if self.peer_id is not None:
            multihash = peer_id_to_bytes(self.peer_id)
            parts += [encode_varint(_P2P), encode_varint(len(multihash)), multihash]
        return b"".join(parts)


def parse_multiaddr(text: str) -> Multiaddr:
    """Raises AddressError, with the address and what is wrong with it."""
    if len(text) > MAX_MULTIADDR_TEXT:
        raise AddressError(AddressFlaw.TOO_LONG, allowed=MAX_MULTIADDR_TEXT)
    try:
        return _parse_parts(text.split("/"))
    except _BadPartError as bad:
        shown = "".join(character if character.isprintable() else "?" for character in text)
        raise AddressError(bad.flaw, shown=shown, part=bad.part, allowed=bad.allowed) from None


class _BadPartError(Exception):
    def __init__(self, flaw: AddressFlaw, part: str = "", *, allowed: int | str = "") -> None:
        super().__init__(flaw)
        self.flaw = flaw
        self.part = part
        self.allowed = allowed


def _parse_parts(parts: list[str]) -> Multiaddr:
    if parts[0] or len(parts) == 1:
        raise _BadPartError(AddressFlaw.NO_SLASH, allowed=_EXAMPLE)
    parts = parts[1:]
    if len(parts) > _MAX_PARTS:
        raise _BadPartError(AddressFlaw.TOO_MANY_PARTS, allowed=_MAX_PARTS)
    if parts[0] not in tuple(HostKind):
        raise _BadPartError(AddressFlaw.BAD_KIND, parts[0], allowed=", ".join(HostKind))
    if len(parts) > 1 and not parts[-1]:
        raise _BadPartError(AddressFlaw.ENDS_WITH_SLASH)
    kind = HostKind(parts[0])
    if len(parts) > 2 and parts[2] != "tcp":  # noqa: PLR2004 - /kind/host/tcp/port
        raise _BadPartError(AddressFlaw.NO_TCP, parts[2])
    if len(parts) < 4:  # noqa: PLR2004 - /kind/host/tcp/port
        raise _BadPartError(AddressFlaw.NO_PORT)
    layer, rest = _parse_layer(parts[4:])
    return Multiaddr(
        host_kind=kind,
        host=_parse_host(kind, parts[1]),
        port=_parse_port(parts[3]),
        layer=layer,
        peer_id=_parse_peer(rest),
    )


def _parse_host(kind: HostKind, text: str) -> str:
    match kind:
        case HostKind.IP4 | HostKind.IP6:
            parse = ipaddress.IPv4Address if kind is HostKind.IP4 else ipaddress.IPv6Address
            try:
                address = parse(text)
            except ValueError:
                raise _BadPartError(AddressFlaw.BAD_IP, text, allowed=kind) from None
            if "%" in text:
                raise _BadPartError(AddressFlaw.ZONE, text)
            return str(address)
        case HostKind.DNS | HostKind.DNS4 | HostKind.DNS6:
            if not _HOST_NAME.fullmatch(text):
                raise _BadPartError(AddressFlaw.BAD_HOST, text)
            return text


def _parse_port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= _MAX_PORT):  # noqa: PLR2004 - five digits
        raise _BadPartError(AddressFlaw.BAD_PORT, text, allowed=_MAX_PORT)
    return int(text)


def _parse_layer(parts: list[str]) -> tuple[Layer, list[str]]:
    if parts[:2] == ["tls", "ws"]:
        return Layer.WSS, parts[2:]
    if parts[:1] == ["tls"]:
        raise _BadPartError(AddressFlaw.BARE_TLS)
    if parts[:1] == ["wss"]:
        return Layer.WSS, parts[1:]
    if parts[:1] == ["ws"]:
        return Layer.WS, parts[1:]
    return Layer.RAW, parts


def _parse_peer(parts: list[str]) -> PeerId | None:
    if not parts:
        return None
    if parts[0] not in ("p2p", "ipfs"):  # "ipfs" is the old name of the same part
        raise _BadPartError(AddressFlaw.UNSUPPORTED, parts[0])
    if len(parts) == 1:
        raise _BadPartError(AddressFlaw.NO_PEER_ID, parts[0])
    if len(parts) > 2:  # noqa: PLR2004 - /p2p/id
        raise _BadPartError(AddressFlaw.AFTER_PEER_ID, parts[2])
    try:
        return parse_peer_id(parts[1])
    except RemoteProtocolError:
        raise _BadPartError(AddressFlaw.BAD_PEER_ID, parts[1]) from None


def multiaddr_from_bytes(data: bytes) -> Multiaddr:
    """Raises RemoteProtocolError ("multiaddr_…", "varint_…", "peer_id_…")."""
    if len(data) > MAX_MULTIADDR_BYTES:
        raise RemoteProtocolError("multiaddr_too_long")
    code, offset = decode_varint(data)
    kind = _HOST_KINDS.get(code)
    if kind is None:
        raise RemoteProtocolError("multiaddr_unsupported")
    host, offset = _read_host(kind, data, offset)
    code, offset = decode_varint(data, offset)
    if code != _TCP:
        raise RemoteProtocolError("multiaddr_unsupported")
    port, offset = _take(data, offset, 2)
    layer, offset = _read_layer(data, offset)
    peer_id: PeerId | None = None
    if offset < len(data):
        code, offset = decode_varint(data, offset)
        if code != _P2P:
            raise RemoteProtocolError("multiaddr_unsupported")
        length, offset = decode_varint(data, offset)
        multihash, offset = _take(data, offset, length)
        peer_id = peer_id_from_bytes(multihash)
    if offset != len(data):
        raise RemoteProtocolError("multiaddr_unsupported")
    return Multiaddr(
        host_kind=kind,
        host=host,
        port=int.from_bytes(port, "big"),
        layer=layer,
        peer_id=peer_id,
    )


def _read_host(kind: HostKind, data: bytes, offset: int) -> tuple[str, int]:
    if kind in _ADDRESS_BYTES:
        packed, offset = _take(data, offset, _ADDRESS_BYTES[kind])
        return str(ipaddress.ip_address(packed)), offset
    length, offset = decode_varint(data, offset)
    raw, offset = _take(data, offset, length)
    name = raw.decode("ascii", errors="replace")
    if not _HOST_NAME.fullmatch(name):
        raise RemoteProtocolError("multiaddr_bad_host")
    return name, offset


def _read_layer(data: bytes, offset: int) -> tuple[Layer, int]:
    if offset == len(data):
        return Layer.RAW, offset
    code, after = decode_varint(data, offset)
    if code == _TLS:
        code, after = decode_varint(data, after)
        if code != _WS:
            raise RemoteProtocolError("multiaddr_unsupported")
        return Layer.WSS, after
    if code in (_WS, _WSS):
        return (Layer.WS if code == _WS else Layer.WSS), after
    return Layer.RAW, offset


def _take(data: bytes, offset: int, count: int) -> tuple[bytes, int]:
    if count > len(data) - offset:
        raise RemoteProtocolError("multiaddr_truncated")
    return data[offset : offset + count], offset + count


def multiaddr_of_socket(host: str, port: int) -> Multiaddr:
    """The address of one end of a socket, as the operating system reports it."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    kind = HostKind.IP4 if address.version == 4 else HostKind.IP6  # noqa: PLR2004 - IPv4
    return Multiaddr(host_kind=kind, host=str(address), port=port)
