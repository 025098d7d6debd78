"""From a pipe to a peer: security, then a muxer, each agreed on by multistream-select.

libp2p "connections" spec, "Upgrading Connections".  We propose yamux first.  Of a peer's proposals,
the first one that we have is accepted, as multistream-select requires.
"""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.network.libp2p.handshake import NOISE, SecuredPipe, SecureHandshake, secure
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.mplex import Mplex
from engine.network.libp2p.multistream import Initiator, Responder, negotiate
from engine.network.libp2p.muxer import Muxer
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.libp2p.yamux import Yamux

_PRIVATE_KEY_BYTES = 32


def _yamux(initiator: bool, limits: HostLimits) -> Muxer:
    return Yamux(
        client=initiator,
        max_inbound=limits.max_inbound_streams,
        max_outbound=limits.max_outbound_streams,
    )


def _mplex(initiator: bool, limits: HostLimits) -> Muxer:
    del initiator  # both sides of mplex are alike
    return Mplex(
        max_inbound=limits.max_inbound_streams,
        max_outbound=limits.max_outbound_streams,
        max_unread=limits.max_unread_bytes_per_stream,
        now=asyncio.get_running_loop().time,
    )


YAMUX, MPLEX = ProtocolId("/yamux/1.0.0"), ProtocolId("/mplex/6.7.0")
MUXERS: dict[ProtocolId, Callable[[bool, HostLimits], Muxer]] = {
    YAMUX: _yamux,
    MPLEX: _mplex,
}
"""In order of preference."""
ALL_MUXERS = tuple(MUXERS)


class Upgraded(Struct, frozen=True, kw_only=True):
    pipe: SecuredPipe
    muxer: Muxer
    peer_id: PeerId


async def upgrade(  # noqa: PLR0913 - each is a different thing, and all are needed
    pipe: Pipe,
    *,
    initiator: bool,
    identity: IdentityKey,
    expected_peer: PeerId | None,
    entropy: Callable[[int], bytes],
    limits: HostLimits,
    muxers: Sequence[ProtocolId] = ALL_MUXERS,
) -> Upgraded:
    """Raises RemoteProtocolError, TransportError; the caller then aborts the pipe."""
    await negotiate(Initiator([NOISE]) if initiator else Responder({NOISE}), pipe, pipe.write)
    handshake = SecureHandshake(
        initiator=initiator,
        identity=identity,
        static_private_key=entropy(_PRIVATE_KEY_BYTES),
        ephemeral_private_key=entropy(_PRIVATE_KEY_BYTES),
        expected_peer=expected_peer,
    )
    secured = await secure(pipe, handshake)
    machine = Initiator(muxers) if initiator else Responder(muxers)
    chosen = await negotiate(machine, secured, secured.write)
    return Upgraded(
        pipe=secured, muxer=MUXERS[chosen](initiator, limits), peer_id=handshake.peer_id
    )
