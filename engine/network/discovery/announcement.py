"""What a node announces by mDNS, and which announcements of others are believed.

libp2p "mDNS discovery": service ``_p2p._udp.local``, a random instance name, and a TXT record with
one ``dnsaddr=MULTIADDR`` string for each address, peer id included.  TXT is RFC 6763's: strings
with a length byte, so none is longer than 255 bytes.

``Scope`` decides which addresses may be announced or believed: those of the local network or, for a
node that listens only on loopback, of this machine.  Names are never believed, because looking them
up would ask a server that is no neighbour.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from random import Random
from typing import Final

from msgspec import Struct

from engine.core.errors import ConfigError
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.ports import PeerId

SERVICE_TYPE: Final = "_p2p._udp.local."
MAX_ADDRESSES: Final = 8
"""Per node, announced and believed."""
MAX_TXT_BYTES: Final = 4_096
_MAX_STRINGS: Final = 64
_MAX_STRING_BYTES: Final = 255
_KEY: Final = b"dnsaddr="
_NAME_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_NAME_LENGTH: Final = 40


class Scope(Enum):
    """The range of addresses that may be announced and believed."""

    MACHINE = auto()
    LOCAL_NETWORK = auto()

    def holds(self, address: Multiaddr) -> bool:
        if not address.is_ip or address.port == 0:
            return False
        ip = ipaddress.ip_address(address.host)
        if ip.version == 6 and ip.ipv4_mapped is not None:  # noqa: PLR2004 - IPv6
            ip = ip.ipv4_mapped  # the one dialled; it may spell 127.0.0.1
        if self is Scope.MACHINE:
            return ip.is_loopback
        if ip.is_unspecified or ip.is_multicast or ip.is_loopback:
            return False
        if ip.version == 6 and ip.is_link_local:  # noqa: PLR2004 - IPv6
            return False  # cannot be dialled without an interface name
        if ip.version == 4 and ip.is_reserved:  # noqa: PLR2004 - IPv4
            return False  # registered as private, including broadcast
        return ip.is_private or ip.is_link_local


class Announced(Struct, frozen=True, kw_only=True):
    """One node and its announced addresses, at least one."""

    peer_id: PeerId
    addresses: tuple[str, ...]


def random_name(random: Random) -> str:
    """A random instance name, which neither identifies nor tracks the node."""
    return "".join(random.choice(_NAME_CHARACTERS) for _ in range(_NAME_LENGTH))


def encode_txt(addresses: Iterable[str]) -> bytes:
    """Encode a TXT record.  Addresses beyond the eighth, or too long, are left out."""
    strings = [_KEY + address.encode() for address in addresses]
    fitting = [each for each in strings if len(each) <= _MAX_STRING_BYTES][:MAX_ADDRESSES]
    return b"".join(bytes((len(each),)) + each for each in fitting)


def read_txt(data: bytes, scope: Scope) -> Announced | None:
    """The believable part of a TXT record, or None."""
    if len(data) > MAX_TXT_BYTES:
        return None
    peer_id: PeerId | None = None
    found: dict[str, None] = {}
    for string in _strings(data):
        address = _address(string)
        if address is None or address.peer_id is None or not scope.holds(address):
            continue
        peer_id = peer_id or address.peer_id
        if address.peer_id == peer_id:
            found[str(address)] = None
        if len(found) == MAX_ADDRESSES:
            break
    if peer_id is None:
        return None
    return Announced(peer_id=peer_id, addresses=tuple(found))


def _strings(data: bytes) -> list[bytes]:
    strings: list[bytes] = []
    offset = 0
    while offset < len(data) and len(strings) < _MAX_STRINGS:
        end = offset + 1 + data[offset]
        if end > len(data):
            break
        strings.append(data[offset + 1 : end])
        offset = end
    return strings


def _address(string: bytes) -> Multiaddr | None:
    if string[: len(_KEY)].lower() != _KEY:
        return None
    try:
        return parse_multiaddr(string[len(_KEY) :].decode("ascii"))
    except (ConfigError, UnicodeDecodeError):
        return None


def addresses_to_announce(own: Sequence[str], interfaces: Sequence[str], scope: Scope) -> list[str]:
    """Each port that ``own`` listens on, at each of the machine's ``interfaces``.

    ``own`` are the node's addresses; ``interfaces`` are IP addresses.  An interface is announced
    only if the node listens on all interfaces or on that one.
    """
    parsed = [parse_multiaddr(text) for text in own]
    hosts = {address.host for address in parsed}
    everywhere = any(address.is_loopback for address in parsed) and scope is Scope.LOCAL_NETWORK
    ports = dict.fromkeys((address.port, address.layer, address.peer_id) for address in parsed)
    kinds = {address.host_kind for address in parsed}
    found: list[str] = []
    for host in interfaces:
        if not everywhere and host not in hosts:
            continue
        kind = "ip6" if ":" in host else "ip4"
        if kind not in kinds:
            continue
        for port, layer, peer_id in ports:
            address = parse_multiaddr(f"/{kind}/{host}/tcp/{port}{f'/{layer}' if layer else ''}")
            if scope.holds(address):
                found.append(str(address.with_peer(peer_id)))
    return found[:MAX_ADDRESSES]
