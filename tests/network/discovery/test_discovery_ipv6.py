"""Two nodes that listen on IPv6 only find each other by mDNS over IPv6: on a real interface.

IPv6 multicast does not come back on loopback, so the long test needs a machine with a unique local
address, and says so.
"""

import asyncio
import ipaddress
import os

import pytest

from engine.network.discovery.discovery import DiscoveringTransport
from engine.network.discovery.interfaces import interfaces_for, local_network_addresses
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from tests.patience import PATIENCE_S


def unique_local_address() -> str:
    for text in local_network_addresses(with_ipv6=True):
        if ipaddress.ip_address(text).version == 6:
            return text
    pytest.fail("not run: no unique local IPv6 address on this machine")


@pytest.mark.long
async def test_over_ipv6_alone_two_nodes_meet() -> None:
    host = unique_local_address()

    changed = asyncio.Event()
    nodes = [
        DiscoveringTransport(
            EmbeddedNode(NodeSettings(network_key=os.urandom(32), listen_host=host)),
            listen_host=host,
            begin_after_s=0,
        )
        for _ in range(2)
    ]
    try:
        for node in nodes:
            node.on_status(lambda _status: changed.set())
            await node.start()
        async with asyncio.timeout(PATIENCE_S):
            while not all(node.status().peers for node in nodes):
                changed.clear()
                await changed.wait()
    finally:
        for node in nodes:
            await node.stop()


def test_ipv6_is_spoken_where_the_node_listens_on_it_and_never_on_loopback() -> None:
    assert all(":" not in each for each in interfaces_for("0.0.0.0"))  # noqa: S104 - not bound
    assert interfaces_for("::1") == ()
    everywhere = interfaces_for("::")
    assert set(everywhere) == set(local_network_addresses(with_ipv6=True))
    for each in everywhere:
        ip = ipaddress.ip_address(each)
        assert not ip.is_loopback
        assert ip.version == 4 or not ip.is_link_local
