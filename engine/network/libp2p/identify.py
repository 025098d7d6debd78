"""identify and identify/push 1.0.0: a peer's description of itself and where it listens.

Only the peer id is proved, by the handshake; all else is the peer's claim.  Its addresses are
accepted only if they have a dialable shape, name no other peer, and are not loopback addresses of
another machine.
"""

from engine.codec.libp2p import IdentifyMessage, decode_identify, encode_identify
from engine.core.errors import RemoteProtocolError
from engine.network.libp2p.multiaddr import Multiaddr, multiaddr_from_bytes
from engine.network.libp2p.ports import PeerId, ProtocolId, RemotePeer, Stream
from engine.network.libp2p.varint import encode_varint

IDENTIFY = ProtocolId("/ipfs/id/1.0.0")
IDENTIFY_PUSH = ProtocolId("/ipfs/id/push/1.0.0")
MAX_IDENTIFY_BYTES = 64 * 1024
MAX_ADDRESSES = 16
_MAX_LENGTH_BYTES = 3


async def send_identify(stream: Stream, message: IdentifyMessage) -> None:
    encoded = encode_identify(message)
    await stream.write(encode_varint(len(encoded)) + encoded)
    await stream.close_write()


async def receive_identify(stream: Stream) -> IdentifyMessage:
    """The first message of the stream; go-libp2p may append its signed record as a second.

    Raises RemoteProtocolError, TransportError.
    """
    length = 0
    for position in range(_MAX_LENGTH_BYTES):
        (byte,) = await stream.read_exactly(1)
        length |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:  # noqa: PLR2004 - the varint's continuation bit
            break
    else:
        raise RemoteProtocolError("identify_too_long")
    if length > MAX_IDENTIFY_BYTES:
        raise RemoteProtocolError("identify_too_long")
    return decode_identify(await stream.read_exactly(length))


def remote_peer(
    message: IdentifyMessage, *, peer_id: PeerId, seen_at: Multiaddr, outbound: bool
) -> RemotePeer:
    """The accepted part of a peer's message, which came over a connection with ``seen_at``."""
    return RemotePeer(
        peer_id=peer_id,
        protocols=tuple(ProtocolId(name) for name in message.protocols),
        listen_addresses=dialable_addresses(message, peer_id=peer_id, seen_at=seen_at),
        agent="".join(character for character in message.agent_version if character.isprintable()),
        outbound=outbound,
        host=seen_at.host,
    )


def updated_peer(known: RemotePeer, message: IdentifyMessage, *, seen_at: Multiaddr) -> RemotePeer:
    """Apply a push: fields missing from it keep their values."""
    pushed = remote_peer(message, peer_id=known.peer_id, seen_at=seen_at, outbound=known.outbound)
    return RemotePeer(
        peer_id=known.peer_id,
        protocols=pushed.protocols or known.protocols,
        listen_addresses=pushed.listen_addresses or known.listen_addresses,
        agent=pushed.agent or known.agent,
        outbound=known.outbound,
        host=known.host,
    )


def dialable_addresses(
    message: IdentifyMessage, *, peer_id: PeerId, seen_at: Multiaddr
) -> tuple[str, ...]:
    """Multiaddrs with /p2p/, in the peer's order, without duplicates; at most 16."""
    found: dict[str, None] = {}
    for encoded in message.listen_addresses:
        try:
            address = multiaddr_from_bytes(encoded)
        except RemoteProtocolError:
            continue  # a transport that this node does not have
        foreign = address.peer_id not in (None, peer_id)
        elsewhere = address.is_loopback and not seen_at.is_loopback
        if foreign or elsewhere or address.is_unspecified or address.port == 0:
            continue
        found[str(address.with_peer(peer_id))] = None
    return tuple(found)[:MAX_ADDRESSES]
