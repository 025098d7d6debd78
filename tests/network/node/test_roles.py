"""Forced roles, the automatic one, and changing between them without losing a message."""

import asyncio
from contextlib import AsyncExitStack
from random import Random

import pytest

from engine.core.errors import LocalProtocolError, TransportError
from engine.core.problems import ConnectionReason
from engine.network.edge.edge_node import EdgeNode
from engine.network.edge.settings import EdgeSettings, edge_key
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.roles import Role, RolePace, RoleSettings, RoleTransport
from engine.network.node.settings import NodeSettings
from engine.network.transport import Transport, TransportLevel, TransportRole
from engine.network.waku.protocols import FILTER_SUBSCRIBE_PROTOCOL
from engine.network.waku.topics import Sharding
from tests.network.edge.edge_net import QUICK, EdgeNet, Listening, addresses, message
from tests.patience import PATIENCE_S

AT_ONCE = RolePace(alone_s=0, together_s=0, handover_s=PATIENCE_S, overlap_s=0.1)


def quick_edge(settings: NodeSettings) -> EdgeNode:
    key = edge_key(settings.network_key)
    edge = EdgeSettings(network_key=key, sharding=settings.sharding, pace=QUICK)
    return EdgeNode(edge, random=Random(1))


class RoleNet(EdgeNet):
    async def device(
        self,
        role: Role,
        service_nodes: list[str],
        *,
        cluster: int = 42,
        port: int | None = None,
        pace: RolePace = AT_ONCE,
    ) -> tuple[RoleTransport, Listening]:
        settings = RoleSettings(
            relay=NodeSettings(
                network_key=self.new_key(), sharding=Sharding(cluster_id=cluster), port=port
            ),
            role=role,
            service_nodes=tuple(service_nodes),
            pace=pace,
        )
        device = RoleTransport(settings, make_edge=quick_edge)
        listening = Listening(device)
        await device.start()
        self.stack.push_async_callback(device.stop)
        return device, listening


def test_it_is_a_transport() -> None:
    def takes(transport: Transport) -> TransportLevel:
        return transport.status().level

    settings = RoleSettings(relay=NodeSettings(network_key=b"k" * 32))
    assert takes(RoleTransport(settings)) is TransportLevel.OFFLINE


@pytest.mark.parametrize("role", [Role.RELAY, Role.EDGE])
async def test_a_forced_role_is_taken_and_heard_through(role: Role) -> None:
    async with RoleNet() as net:
        nodes = await net.service_nodes(2)
        device, heard = await net.device(role, addresses(*nodes))
        other, _ = await net.edge(addresses(*nodes))
        await heard.until_peers(2)
        assert device.status().role == TransportRole(role.value)
        assert bool(device.addresses()) is (role is Role.RELAY)
        assert (await device.publish(message(1))).peers == 2
        await other.publish(message(2))
        await heard.until_heard(1)
        assert heard.inbox == [2]
        assert len(device.reach([FILTER_SUBSCRIBE_PROTOCOL])) == 2


async def test_changing_roles_in_a_burst_loses_and_doubles_nothing() -> None:
    calmly = RolePace(handover_s=PATIENCE_S, overlap_s=1.5)

    async with RoleNet() as net:
        nodes = await net.service_nodes(2)
        device, heard = await net.device(Role.RELAY, addresses(*nodes), pace=calmly)
        other, heard_by_other = await net.edge(addresses(*nodes))
        await heard.until_peers(2)
        await heard_by_other.until_level(TransportLevel.GOOD)
        done = asyncio.Event()

        async def burst(sender: Transport, start: int) -> int:
            number = start
            while not done.is_set():
                assert (await sender.publish(message(number))).peers >= 1
                number += 1
                await asyncio.sleep(0.01)  # Service nodes take no more in the long run.
            return number - start

        sending = asyncio.gather(burst(other, 0), burst(device, 100_000))
        await device.set_role(Role.EDGE)
        assert device.addresses() == ()
        await device.set_role(Role.RELAY)
        done.set()
        by_other, by_device = await sending
        await heard.until_heard(by_other)
        await heard_by_other.until_heard(by_device)
        assert sorted(heard.inbox) == list(range(by_other))
        assert sorted(heard_by_other.inbox) == list(range(100_000, 100_000 + by_device))


async def test_automatically_it_relays_and_uses_service_nodes_only_while_nobody_relays_for_it() -> (
    None
):
    async with RoleNet() as net:
        serving = [await net.scripted_node(), await net.scripted_node()]
        device, heard = await net.device(Role.AUTO, addresses(*(node.host for node in serving)))
        await heard.until(lambda: device.status().role is TransportRole.EDGE)
        await heard.until_level(TransportLevel.GOOD)
        assert device.addresses(), "it still relays, for whoever comes"
        friend, heard_by_friend = await net.relaying(device.addresses())
        await heard.until(lambda: device.status().role is TransportRole.RELAY)
        await heard_by_friend.until_peers(1)
        await friend.publish(message(1))
        await heard.until_heard(1)
        await friend.stop()
        await heard.until(lambda: device.status().role is TransportRole.EDGE)
        await heard.until_level(TransportLevel.GOOD)
        assert (await device.publish(message(2))).peers == 2
        assert device.counters()["roles.changed"] == 3


async def test_without_service_nodes_it_relays_until_a_group_names_some() -> None:
    async with RoleNet() as net:
        device, heard = await net.device(Role.AUTO, [])
        serving = await net.scripted_node()
        assert device.status().role is TransportRole.RELAY
        device.add_service_nodes(addresses(serving.host))
        await heard.until(lambda: device.status().role is TransportRole.EDGE)
        await heard.until_peers(1)


async def test_on_the_public_network_it_is_an_edge_node_from_the_start() -> None:
    async with RoleNet() as net:
        node = await net.scripted_node(cluster=1)
        device, heard = await net.device(Role.AUTO, addresses(node.host), cluster=1)
        await heard.until_peers(1)
        assert device.status().role is TransportRole.EDGE
        assert device.addresses() == ()


async def test_both_roles_at_once_hand_each_message_on_once() -> None:
    async with RoleNet() as net:
        nodes = await net.service_nodes(2)
        slowly = RolePace(alone_s=0, together_s=3_600)
        device, heard = await net.device(Role.EDGE, addresses(*nodes), pace=slowly)
        await heard.until_level(TransportLevel.GOOD)
        await device.set_role(Role.AUTO)
        await heard.until(lambda: len(device.reach([FILTER_SUBSCRIBE_PROTOCOL])) == 4)
        other, heard_by_other = await net.edge(addresses(*nodes))
        await heard_by_other.until_level(TransportLevel.GOOD)
        for number in range(20):
            await other.publish(message(number))
            await device.publish(message(100 + number))
        await heard.until_heard(20)
        await heard_by_other.until_heard(20)
        assert sorted(heard.inbox) == list(range(20))
        assert sorted(heard_by_other.inbox) == list(range(100, 120))


async def test_a_role_that_cannot_be_had_changes_nothing() -> None:
    async with RoleNet() as net:
        nodes = await net.service_nodes(2)
        taken = int(nodes[0].addresses()[0].split("/")[4])
        device, heard = await net.device(Role.EDGE, addresses(*nodes), port=taken)
        await heard.until_level(TransportLevel.GOOD)
        with pytest.raises(TransportError, match="cannot listen"):
            await device.set_role(Role.RELAY)
        assert device.role is Role.EDGE
        assert device.status().level is TransportLevel.GOOD


async def test_other_service_nodes_and_roles_may_be_set_before_it_starts_and_after_it_stops() -> (
    None
):
    async with RoleNet() as net:
        nodes = await net.service_nodes(2)
        device, heard = await net.device(Role.RELAY, [])
        with pytest.raises(LocalProtocolError):
            await device.start()
        await device.stop()
        assert device.status().reason is ConnectionReason.NOT_STARTED
        assert (await device.publish(message(1))).peers == 0
        await device.set_role(Role.EDGE)
        await device.set_service_nodes(addresses(*nodes))
        await device.start()
        await heard.until_level(TransportLevel.GOOD)
        await device.set_service_nodes(addresses(nodes[1]))
        await heard.until_level(TransportLevel.MINIMAL)


async def test_a_stop_does_not_wait_for_a_role_that_never_connects() -> None:
    async with RoleNet() as net:
        patient = RolePace(handover_s=3_600)
        device, _ = await net.device(Role.RELAY, [], pace=patient)
        changing = asyncio.create_task(device.set_role(Role.EDGE))
        await asyncio.sleep(0)
        await device.stop()
        await changing


async def test_peers_are_for_the_relay_and_their_addresses_are_told() -> None:
    async with RoleNet() as net, AsyncExitStack() as stack:
        device, heard = await net.device(Role.RELAY, [])
        told: list[str] = []
        device.on_peer_address(told.append)
        friend = EmbeddedNode(NodeSettings(network_key=net.new_key()))
        await friend.start()
        stack.push_async_callback(friend.stop)
        device.add_peers(friend.addresses())
        await heard.until_peers(1)
        assert told == list(friend.addresses())
