"""Messages to one peer and from it are lost or delayed on purpose; all others go on."""

import asyncio

import pytest

from engine.codec.waku import decode_waku_message
from engine.network.libp2p.ports import PeerCopy
from tests.network.edge import edge_net
from tests.network.node.loopback import Loopback, message
from tests.network.node.test_cut_off import peer_id
from tests.patience import PATIENCE_S


class Judge:
    """Lets nothing of one peer pass, and can let go what it kept."""

    def __init__(self, spoiled: str) -> None:
        self.spoiled = spoiled
        self.kept: list[PeerCopy] = []
        self.news = asyncio.Event()

    def __call__(self, copy: PeerCopy) -> bool:
        if copy.peer_id == self.spoiled:
            self.kept.append(copy)
            self.news.set()
        return copy.peer_id != self.spoiled

    async def until_kept(self, payload: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while payload not in [decode_waku_message(copy.data).payload for copy in self.kept]:
                self.news.clear()
                await self.news.wait()

    def let_go(self) -> None:
        kept, self.kept = self.kept, []
        for copy in kept:
            copy.go_on()


async def test_what_goes_to_one_peer_is_kept_and_what_comes_from_it() -> None:
    async with Loopback() as net:
        bob, cleo = await net.node(), await net.node()
        alice = await net.node(peers=(*bob.node.addresses(), *cleo.node.addresses()))
        await alice.until_peers(2)
        judge = Judge(peer_id(bob))
        alice.node.judge_copies_by(judge)
        assert (await alice.node.publish(message(1))).peers == 1
        await cleo.until_heard(1)
        await bob.node.publish(message(2))
        await cleo.node.publish(message(3))
        await alice.until(lambda: 3 in alice.inbox)
        await judge.until_kept(b"2 ")
        assert (bob.inbox, alice.inbox, cleo.inbox) == ([], [3], [1])
        judge.let_go()
        alice.node.judge_copies_by(None)
        await alice.until(lambda: 2 in alice.inbox)
        await bob.until(lambda: {1, 3} <= set(bob.inbox))
        await cleo.until(lambda: 2 in cleo.inbox)


@pytest.mark.parametrize("spoils", ["edge", "service node"])
async def test_an_edge_node_and_its_service_node_can_each_spoil_the_other(spoils: str) -> None:
    async with edge_net.EdgeNet() as net:
        (server,) = await net.service_nodes(1)
        other, heard_by_other = await net.relaying(server.addresses())
        edge, heard_by_edge = await net.edge(server.addresses())
        await heard_by_edge.until_peers(1)
        await heard_by_other.until_peers(1)
        ids = {peer.peer_id for peer in server.facts().peers}
        others_id, servers_id = (each.addresses()[0].rpartition("/")[2] for each in (other, server))
        (edges_id,) = ids - {others_id}
        transport, judge = (
            (edge, Judge(servers_id)) if spoils == "edge" else (server, Judge(edges_id))
        )
        transport.judge_copies_by(judge)
        publishing = asyncio.create_task(edge.publish(edge_net.message(1)))
        await judge.until_kept(b"1")
        assert not heard_by_other.inbox
        judge.let_go()
        await heard_by_other.until_heard(1)
        assert (await publishing).peers == 1
        await other.publish(edge_net.message(2))
        await judge.until_kept(b"2")
        assert 2 not in heard_by_edge.inbox
        judge.let_go()
        await heard_by_edge.until(lambda: 2 in heard_by_edge.inbox)
