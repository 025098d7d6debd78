"""Where messages to single peers, and from them, may be lost or delayed on purpose.

The fault bench decides, and hosts know whom to ask (``Host.judge_copy``).  Each protocol that
carries messages shows them here, once for each peer: the relay, filter pushes and lightpush
requests.  What else is said, above all which topics are wanted and how a mesh is made, goes on.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from engine.codec.waku import decode_waku_message
from engine.core.errors import RemoteProtocolError, TransportError, TransportFault
from engine.core.ids import PubsubTopic, WakuHash
from engine.network.libp2p.ports import Host, PeerCopy, PeerId
from engine.network.waku.message_hash import message_hash

REQUEST_TIMEOUT_S: Final = 10.0
"""How long one waits for an answer to a request that is lost: as for any other peer's first byte.
"""


def goes_on(  # noqa: PLR0913 - keyword-only: which copy
    host: Host,
    peer_id: PeerId,
    *,
    is_out: bool,
    topic: PubsubTopic,
    data: bytes,
    go_on: Callable[[], object],
    doubles: bool = True,
) -> bool:
    """Whether the copy goes on now; if not, it is lost, or ``go_on`` is called later."""
    judge = host.judge_copy
    return judge is None or judge(
        PeerCopy(
            peer_id=peer_id, is_out=is_out, topic=topic, data=data, go_on=go_on, doubles=doubles
        )
    )


async def until_it_goes_on(
    host: Host, peer_id: PeerId, *, is_out: bool, topic: PubsubTopic, data: bytes
) -> None:
    """For a request that carries a message.  Raises TransportError if it is lost."""
    let_go = asyncio.Event()
    if goes_on(
        host, peer_id, is_out=is_out, topic=topic, data=data, go_on=let_go.set, doubles=False
    ):
        return
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            await let_go.wait()
    except TimeoutError:
        text = f"a request was lost on purpose: {peer_id}"
        raise TransportError(text, TransportFault.NO_ANSWER) from None


def hash_of(copy: PeerCopy) -> WakuHash | None:
    """None: it is no Waku message."""
    try:
        return message_hash(PubsubTopic(copy.topic), decode_waku_message(copy.data))
    except RemoteProtocolError:
        return None
