"""Checks service nodes for the doctor: whether they answer, their services, cluster and speed.

Each is dialled once, from a separate host with its own identity, all at the same time.  Nothing is
subscribed or published.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.codec.waku_metadata import (
    MAX_METADATA_BYTES,
    Metadata,
    decode_metadata,
    encode_metadata,
)
from engine.core.errors import ChatError
from engine.core.problems import CheckedProblem, NoAnswer, OffersNo, OtherCluster, unreachable
from engine.network.edge.service_nodes import Service, offers, service_address
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.libp2p.proxy import Proxy
from engine.network.waku.protocols import (
    LEGACY_STORE_PROTOCOL,
    METADATA_PROTOCOL,
    RELAY_PROTOCOL,
    STORE_QUERY_PROTOCOL,
)
from engine.network.waku.service.exchange import ExchangeLimits, ask

_NAMES: Final[dict[str, tuple[ProtocolId, ...]]] = {
    "relay": (RELAY_PROTOCOL,),
    "store": (STORE_QUERY_PROTOCOL,),
    "store (2.0.0-beta4)": (LEGACY_STORE_PROTOCOL,),
}


class Checked(Struct, frozen=True, kw_only=True):
    """``problem``: why an edge node cannot use it; None if it can."""

    address: str
    reachable: bool
    problem: CheckedProblem | None = None
    protocols: tuple[str, ...] = ()
    """Short names of the services it offers."""
    cluster: int | None = None
    round_trip_ms: float | None = None
    agent: str = ""


async def check_service_nodes(
    addresses: Sequence[str],
    *,
    cluster: int,
    proxy: Proxy | None = None,
    timeout_s: float = 10.0,
    new_key: Callable[[], bytes] = lambda: os.urandom(32),
) -> list[Checked]:
    """Results in the order of ``addresses``.  Never raises because of a node."""
    host = TcpHost(new_key(), [], proxy=proxy)
    await host.start()
    try:
        checks = (_check(host, address, cluster, timeout_s) for address in addresses)
        return list(await asyncio.gather(*checks))
    finally:
        await host.stop()


async def _check(host: TcpHost, address: str, cluster: int, timeout_s: float) -> Checked:
    try:
        async with asyncio.timeout(timeout_s):
            service_address(address)
            remote = await host.connect(address)
            round_trip_s = await host.ping(remote.peer_id)
            theirs = await _cluster_of(host, remote.peer_id, remote.protocols, cluster)
    except TimeoutError:
        return Checked(address=address, reachable=False, problem=NoAnswer(timeout_s))
    except ChatError as error:
        return Checked(address=address, reachable=False, problem=unreachable(error))
    return Checked(
        address=address,
        reachable=True,
        problem=_problem(remote.protocols, theirs, cluster),
        protocols=_short_names(remote.protocols),
        cluster=theirs,
        round_trip_ms=round(round_trip_s * 1_000, 1),
        agent=remote.agent,
    )


async def _cluster_of(
    host: TcpHost, peer_id: PeerId, protocols: Sequence[ProtocolId], cluster: int
) -> int | None:
    if METADATA_PROTOCOL not in protocols:
        return None
    request = encode_metadata(Metadata(cluster_id=cluster))
    limits = ExchangeLimits(max_response_bytes=MAX_METADATA_BYTES)
    try:
        answer = await ask(host, peer_id, METADATA_PROTOCOL, request, limits)
        return decode_metadata(answer).cluster_id
    except ChatError:
        return None


def _short_names(protocols: Sequence[ProtocolId]) -> tuple[str, ...]:
    services = [str(service) for service in Service if offers(protocols, service)]
    others = [name for name, ids in _NAMES.items() if any(each in protocols for each in ids)]
    return (*services, *others)


def _problem(
    protocols: Sequence[ProtocolId], theirs: int | None, cluster: int
) -> CheckedProblem | None:
    if theirs is not None and theirs != cluster:
        return OtherCluster(theirs, cluster)
    missing = tuple(service for service in Service if not offers(protocols, service))
    return OffersNo(missing) if missing else None
