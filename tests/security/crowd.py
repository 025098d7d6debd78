"""Connections from addresses of one's choosing: 127.0.0.0/8 is ours, so a crowd costs nothing.

Each is a real socket with a real handshake, made as any libp2p peer would make it, with an identity
of its own; it says who it is and then nothing more, which is what takes slots.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.codec.libp2p import IdentifyMessage, encode_identify, encode_public_key
from engine.core.errors import ChatError
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.identify import IDENTIFY
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.multistream import HEADER, encode_message
from engine.network.libp2p.tcp import TcpPipe, Traffic
from engine.network.libp2p.upgrade import upgrade
from engine.network.libp2p.varint import encode_varint
from engine.network.libp2p.yamux import HEADER as FRAME
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from engine.network.libp2p.handshake import SecuredPipe

AT_ONCE = 8


class Crowd:
    """What somebody with a few addresses opens towards one node."""

    def __init__(self, target: str) -> None:
        self._target: Multiaddr = parse_multiaddr(target)
        self._pipes: list[SecuredPipe] = []
        self._half_open: list[TcpPipe] = []
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def connect(self, addresses: Sequence[str]) -> None:
        """One connection from each; who is refused does not mind."""
        await asyncio.gather(*(self._connect(address) for address in addresses))

    async def _connect(self, address: str) -> None:
        async with self._turns:
            try:
                pipe = await self.socket(address)
                identity = IdentityKey(os.urandom(32))
                upgraded = await upgrade(
                    pipe,
                    initiator=True,
                    identity=identity,
                    expected_peer=self._target.peer_id,
                    entropy=os.urandom,
                    limits=HostLimits(),
                )
            except (ChatError, OSError):
                return
            upgraded.pipe.write(identified_as(identity))
            self._pipes.append(upgraded.pipe)

    async def socket(self, address: str) -> TcpPipe:
        """Open, and silent.  Raises OSError."""
        loop = asyncio.get_running_loop()
        _, pipe = await loop.create_connection(
            lambda: TcpPipe(Traffic()),
            self._target.host,
            self._target.port,
            local_addr=(address, 0),
        )
        self._half_open.append(pipe)
        return pipe

    async def leave(self) -> None:
        for pipe in self._half_open:
            pipe.abort()
        await asyncio.gather(*(pipe.wait_closed() for pipe in self._half_open))


def identified_as(identity: IdentityKey) -> bytes:
    """The answer to the first thing that a listener asks; without it it hangs up after 10 s."""
    said = encode_identify(IdentifyMessage(public_key=encode_public_key(identity.public_key)))
    answer = encode_message(HEADER) + encode_message(IDENTIFY) + encode_varint(len(said)) + said
    return FRAME.pack(0, 0, 2, 2, len(answer)) + answer  # The listener's first stream is 2.


def node_of(number: int, limits: HostLimits | None = None) -> EmbeddedNode:
    """As the application makes it; ``limits`` are those of its sockets."""
    return EmbeddedNode(
        NodeSettings(network_key=number.to_bytes(32, "big")),
        make_host=lambda settings, listen: TcpHost(settings.network_key, [listen], limits=limits),
    )


async def until_peers(node: EmbeddedNode, count: int) -> None:
    """So many relay for it."""
    changed = asyncio.Event()
    undo = node.on_status(lambda _status: changed.set())
    async with asyncio.timeout(PATIENCE_S):
        while node.status().peers != count:
            changed.clear()
            await changed.wait()
    undo()
