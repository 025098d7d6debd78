"""From a pipe to a peer: security, then a muxer, each agreed on by multistream-select.

libp2p "connections" spec, "Upgrading Connections".  ``MUXERS`` is the place for another muxer.
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine.network.libp2p.handshake import NOISE, SecuredPipe, SecureHandshake, secure
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
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


MUXERS: dict[ProtocolId, Callable[[bool, HostLimits], Muxer]] = {
    ProtocolId("/yamux/1.0.0"): _yamux,
}
"""In order of preference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
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
    machine = Initiator(tuple(MUXERS)) if initiator else Responder(MUXERS)
    chosen = await negotiate(machine, secured, secured.write)
    return Upgraded(
        pipe=secured, muxer=MUXERS[chosen](initiator, limits), peer_id=handshake.peer_id
    )
