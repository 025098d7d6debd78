"""Metadata: who is of our cluster stays, who is not goes, and both are told."""

from dataclasses import dataclass, field

import pytest

from engine.codec.waku_metadata import Metadata, decode_metadata, encode_metadata
from engine.core.problems import AnswersWrongly, OtherCluster, PeerRefusal
from engine.network.libp2p.ports import PeerId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.metadata import WakuMetadata
from engine.network.waku.protocols import METADATA_PROTOCOL
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import ServiceNet, exchange, until


@dataclass
class Node:
    host: MemoryHost
    own: Metadata
    looked: int = 0
    """How often its own metadata were read."""
    metadata: WakuMetadata = field(init=False)
    refused: list[tuple[PeerId, PeerRefusal]] = field(default_factory=list)

    def look(self) -> Metadata:
        self.looked += 1
        return self.own

    def peer_refused(self, peer_id: PeerId, reason: PeerRefusal, /) -> None:
        self.refused.append((peer_id, reason))


async def node(net: ServiceNet, name: str, own: Metadata) -> Node:
    host = await net.host(name)
    made = Node(host=host, own=own)
    made.metadata = WakuMetadata(host, made.look, counters=net.counters, observer=made, grace_s=0)
    made.metadata.start()
    return made


async def test_peers_of_one_cluster_stay_whatever_their_shards() -> None:
    async with ServiceNet() as net:
        one = await node(net, "one", Metadata(cluster_id=42, shards=(0, 1)))
        other = await node(net, "other", Metadata(cluster_id=42, shards=(5,)))
        await one.host.connect("/memory/other")
        # Each looks when it asks, is answered, is asked and answers.
        await until(lambda: one.looked == other.looked == 4)
        await one.metadata.stop()
        await other.metadata.stop()
        assert one.refused == other.refused == []
        assert list(one.host.links) == [other.host.peer_id]


async def test_peers_of_other_clusters_part_and_say_why() -> None:
    async with ServiceNet() as net:
        one = await node(net, "one", Metadata(cluster_id=42))
        other = await node(net, "other", Metadata(cluster_id=1))
        await one.host.connect("/memory/other")
        await until(lambda: not one.host.links and not other.host.links)
        reasons = one.refused + other.refused
        assert reasons
        assert all(
            isinstance(why, OtherCluster) and {why.theirs, why.ours} == {1, 42}
            for _, why in reasons
        )
        await one.metadata.stop()
        await other.metadata.stop()


async def test_a_server_alone_parts_too_but_answers_first() -> None:
    async with ServiceNet() as net:
        client = await net.host("client")
        server = await node(net, "server", Metadata(cluster_id=42, shards=(3,)))
        await client.connect("/memory/server")
        request = encode_metadata(Metadata(cluster_id=1, shards=()))
        answer = await exchange(client, server.host.peer_id, METADATA_PROTOCOL, request)
        assert decode_metadata(answer) == Metadata(cluster_id=42, shards=(3,))
        await until(lambda: not client.links)
        assert [peer for peer, _ in server.refused] == [client.peer_id]
        await server.metadata.stop()


@pytest.mark.parametrize("cluster_id", [None, 42])
async def test_a_peer_that_names_no_cluster_or_ours_stays(cluster_id: int | None) -> None:
    async with ServiceNet() as net:
        client = await net.host("client")
        server = await node(net, "server", Metadata(cluster_id=42))
        await client.connect("/memory/server")
        request = encode_metadata(Metadata(cluster_id=cluster_id, shards=(9,)))
        await exchange(client, server.host.peer_id, METADATA_PROTOCOL, request)
        await server.metadata.stop()
        assert server.refused == []
        assert list(client.links) == [server.host.peer_id]


async def test_a_peer_that_answers_nonsense_is_disconnected() -> None:
    async def nonsense(stream: Stream) -> None:
        await stream.write(encode_frame(b"\xff\xff\xff"))
        await stream.close_write()

    async with ServiceNet() as net:
        one = await node(net, "one", Metadata(cluster_id=42))
        other = await net.host("other")
        other.set_stream_handler(METADATA_PROTOCOL, nonsense)
        await one.host.connect("/memory/other")
        await until(lambda: not one.host.links)
        assert one.refused == [(other.peer_id, AnswersWrongly("metadata_malformed"))]
        await one.metadata.stop()


async def test_a_peer_without_the_protocol_is_left_alone() -> None:
    async with ServiceNet() as net:
        one = await node(net, "one", Metadata(cluster_id=42))
        other = await net.host("other")
        await one.host.connect("/memory/other")
        await one.metadata.stop()
        assert list(one.host.links) == [other.peer_id]
        assert net.counters.snapshot() == {}


async def test_junk_is_answered_and_counted() -> None:
    async with ServiceNet() as net:
        client = await net.host("client")
        server = await node(net, "server", Metadata(cluster_id=42))
        await client.connect("/memory/server")
        answer = await exchange(client, server.host.peer_id, METADATA_PROTOCOL, b"\xff")
        assert decode_metadata(answer).cluster_id == 42
        assert net.counters["metadata.metadata_malformed"] == 1
        await server.metadata.stop()
