"""A real node that is to have no connection with some peers, and has them again afterwards."""

import asyncio

from engine.core.errors import TransportFault
from engine.core.problems import LinkEnded, LinkReason, Unreachable
from engine.network.node.roles import Role, RoleSettings, RoleTransport
from engine.network_views import LinkEventKind
from tests.network.node.loopback import Loopback, Node, message, settings_of
from tests.patience import PATIENCE_S


def peer_id(node: Node) -> str:
    return node.node.addresses()[0].rpartition("/p2p/")[2]


async def until_told(node: Node, kind: LinkEventKind, problem: object) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            events = node.node.facts().events
            if any(event.kind is kind and event.problem == problem for event in events):
                return
            await asyncio.sleep(0.01)


async def test_who_is_cut_off_neither_hears_nor_comes_in_and_others_stay() -> None:
    async with Loopback() as net:
        bob, dave = await net.node(), await net.node()
        alice = await net.node(peers=(*bob.node.addresses(), *dave.node.addresses()))
        cleo = await net.node(peers=alice.node.addresses())
        await alice.until_peers(3)
        alice.node.cut_off((peer_id(bob), peer_id(cleo)))
        await alice.until_peers(1)
        await bob.until_peers(0)
        assert (await alice.node.publish(message(1))).peers == 1
        await dave.until_heard(1)
        # Alice dials Bob in vain, and Cleo knocks in vain.
        await until_told(alice, LinkEventKind.CLOSED, LinkEnded(LinkReason.CUT_OFF))
        cut_off = Unreachable(TransportFault.CUT_OFF)
        await until_told(alice, LinkEventKind.NOT_REACHED, cut_off)
        await until_told(alice, LinkEventKind.REFUSED, LinkEnded(LinkReason.CUT_OFF))
        assert {peer.peer_id for peer in alice.node.facts().peers} == {peer_id(dave)}
        assert (bob.inbox, cleo.inbox) == ([], [])
        alice.node.cut_off((peer_id(cleo),))
        await alice.until_peers(2)
        await bob.until_peers(1)
        alice.node.cut_off(())
        await alice.until_peers(3)
        await alice.node.publish(message(2))
        for node in (bob, cleo, dave):
            await node.until(lambda node=node: 2 in node.inbox)  # type: ignore[misc]


async def test_a_change_of_role_lets_nobody_back() -> None:
    async with Loopback() as net:
        bob = await net.node()
        settings = RoleSettings(relay=settings_of(77), role=Role.RELAY)
        alice = RoleTransport(settings)
        alice.cut_off((peer_id(bob),))
        alice.add_peers(bob.node.addresses())
        await alice.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    if alice.facts().events:
                        break
                    await asyncio.sleep(0.01)
            assert alice.facts().peers == ()
        finally:
            await alice.stop()
