"""Cuts a received RPC into parts that the router handles in a moment each.

An RPC within the codec's bounds can hold 2 048 messages and request 5 000 more; in one step it
would block the loop too long.  Order is kept: subscriptions, messages, control.  The contents are
opaque here.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from engine.codec.gossipsub import DecodedRpc, Rpc

PUBLISHED_PER_SLICE = 64
WANTED_PER_SLICE = 64


def rpc_slices(decoded: DecodedRpc) -> Iterator[DecodedRpc]:
    """Yield at least one slice; the first reports what was refused."""
    rpc, refused = decoded.rpc, decoded.refused
    if len(rpc.publish) <= PUBLISHED_PER_SLICE and len(rpc.iwant) <= WANTED_PER_SLICE:
        yield decoded
        return
    publish, iwant = rpc.publish, rpc.iwant
    yield DecodedRpc(
        rpc=Rpc(subscriptions=rpc.subscriptions, publish=publish[:PUBLISHED_PER_SLICE]),
        refused=refused,
    )
    for start in range(PUBLISHED_PER_SLICE, len(publish), PUBLISHED_PER_SLICE):
        yield DecodedRpc(rpc=Rpc(publish=publish[start : start + PUBLISHED_PER_SLICE]))
    yield DecodedRpc(rpc=replace(rpc, subscriptions=(), publish=(), iwant=iwant[:WANTED_PER_SLICE]))
    for start in range(WANTED_PER_SLICE, len(iwant), WANTED_PER_SLICE):
        yield DecodedRpc(rpc=Rpc(iwant=iwant[start : start + WANTED_PER_SLICE]))
