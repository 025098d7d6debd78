"""A bare mDNS speaker of the tests' own, written from RFC 1035 and 6762: no library in between."""

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Final

import pytest

from tests.patience import PATIENCE_S

GROUP: Final = ("224.0.0.251", 5353)
SERVICE: Final = "_p2p._udp.local"
PTR, TXT, SRV, A = 12, 16, 33, 1
_PROBE: Final = b"causerie multicast probe"


def multicast_problem(host: str = "127.0.0.1") -> str:
    """Why this machine cannot speak mDNS on the interface with this address; empty if it can."""
    try:
        return "" if _hears_itself(host) else f"no multicast on {host}: something else came back"
    except OSError as error:
        return f"no multicast on {host}: {error}"


def require_multicast(host: str = "127.0.0.1") -> None:
    problem = multicast_problem(host)
    if problem:
        pytest.fail(problem)


def _hears_itself(host: str) -> bool:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("", 0))
        _join(receiver, host)
        receiver.settimeout(5)
        _speak_on(sender, host)
        sender.sendto(_PROBE, (GROUP[0], receiver.getsockname()[1]))
        return receiver.recv(100) == _PROBE


def _join(receiver: socket.socket, host: str) -> None:
    member = socket.inet_aton(GROUP[0]) + socket.inet_aton(host)
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)


def _speak_on(sender: socket.socket, host: str) -> None:
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(host))
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)


# --- packets --------------------------------------------------------------------------------------


def name(text: str) -> bytes:
    labels = [part.encode() for part in text.rstrip(".").split(".")]
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"


def record(owner: str, kind: int, data: bytes, *, ttl: int = 120) -> bytes:
    return name(owner) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def answer(answers: Sequence[bytes], additional: Sequence[bytes] = ()) -> bytes:
    counts = struct.pack("!6H", 0, 0x8400, 0, len(answers), 0, len(additional))
    return counts + b"".join(answers) + b"".join(additional)


def question(owner: str, kind: int) -> bytes:
    return struct.pack("!6H", 0, 0, 1, 0, 0, 0) + name(owner) + struct.pack("!HH", kind, 1)


def strings(*values: bytes) -> bytes:
    return b"".join(bytes((len(each),)) + each for each in values)


def pointer(instance: str, *, ttl: int = 120) -> bytes:
    return record(SERVICE, PTR, name(f"{instance}.{SERVICE}"), ttl=ttl)


def text_of(instance: str, *addresses: str, ttl: int = 120) -> bytes:
    data = strings(*(b"dnsaddr=" + address.encode() for address in addresses))
    return record(f"{instance}.{SERVICE}", TXT, data, ttl=ttl)


# --- a speaker ------------------------------------------------------------------------------------


class Speaker(asyncio.DatagramProtocol):
    """Sends packets to the group and keeps those that it hears."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        self._transport: asyncio.DatagramTransport | None = None

    async def __aenter__(self) -> "Speaker":  # noqa: PYI034 - it is never subclassed
        listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(("", GROUP[1]))
        _join(listening, self._host)
        _speak_on(listening, self._host)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=listening)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._transport is not None
        self._transport.close()

    def datagram_received(self, data: bytes, addr: object) -> None:
        del addr
        self.heard.put_nowait(data)

    def say(self, packet: bytes) -> None:
        assert self._transport is not None
        self._transport.sendto(packet, GROUP)

    async def hear(self, wanted: bytes) -> bytes:
        """The next packet with ``wanted`` in it."""
        async with asyncio.timeout(PATIENCE_S):
            while wanted not in (packet := await self.heard.get()):
                pass
        return packet
