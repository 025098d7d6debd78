"""Real nodes that find each other by real multicast, and a local network that lies to them."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

import pytest

from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.network.discovery import interfaces
from engine.network.discovery.discovery import DiscoveringTransport
from engine.network.discovery.neighbours import MAX_NEIGHBOURS
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from tests.network.discovery.multicast import (
    PTR,
    SERVICE,
    SRV,
    A,
    Speaker,
    answer,
    name,
    pointer,
    question,
    record,
    require_multicast,
    text_of,
)
from tests.patience import PATIENCE_S

TOPIC = ContentTopic("/causerie/1/tests/proto")


class Found:
    """A node with discovery; other nodes of this machine may be found as well."""

    def __init__(self) -> None:
        settings = NodeSettings(network_key=os.urandom(32))
        self.hosts: list[TcpHost] = []
        self.node = EmbeddedNode(settings, make_host=self._make_host)
        self.transport = DiscoveringTransport(
            self.node, listen_host="127.0.0.1", begin_after_s=0.01
        )
        self.news = asyncio.Event()
        self.payloads: set[bytes] = set()
        self.transport.on_status(lambda _: self.news.set())
        self.transport.subscribe(TOPIC, self._take)

    def _make_host(self, settings: NodeSettings, listen: str) -> TcpHost:
        host = TcpHost(settings.network_key, [listen])
        host.on_peer_connected(lambda _: self.news.set())
        self.hosts.append(host)
        return host

    def _take(self, message: WakuMessage, _: object) -> None:
        self.payloads.add(message.payload)
        self.news.set()

    @property
    def peer_id(self) -> PeerId:
        return self.hosts[-1].peer_id

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.news.clear()
                await self.news.wait()

    async def until_heard(self, payload: bytes) -> None:
        await self.until(lambda: payload in self.payloads)

    async def until_connected(self, peer_id: PeerId) -> None:
        await self.until(lambda: any(peer.peer_id == peer_id for peer in self.hosts[-1].peers()))


@asynccontextmanager
async def found(count: int) -> AsyncIterator[Sequence[Found]]:
    """At the end there is no task and no thread more than before."""
    require_multicast()
    tasks, threads = asyncio.all_tasks(), threading.active_count()
    nodes = [Found() for _ in range(count)]
    try:
        for each in nodes:
            await each.transport.start()
        yield nodes
    finally:
        await asyncio.gather(*(each.transport.stop() for each in nodes))
    assert asyncio.all_tasks() <= tasks
    workers = [each for each in threading.enumerate() if not each.name.startswith("asyncio_")]
    assert len(workers) <= threads


async def test_nodes_that_know_nobody_meet_and_talk() -> None:
    async with found(3) as nodes:
        for each in nodes:
            for other in nodes:
                if other is not each:
                    await each.until_connected(other.peer_id)
        ann, *others = nodes
        await ann.until(lambda: ann.transport.status().peers >= 2)
        message = WakuMessage(payload=os.urandom(16), content_topic=TOPIC, timestamp_ns=1)
        receipt = await ann.transport.publish(message)
        assert receipt.peers >= 1
        for each in others:
            await each.until_heard(message.payload)
        assert ann.transport.counters()["discovery.heard"] >= 2


async def test_who_comes_back_elsewhere_is_found_again() -> None:
    async with found(2) as (ann, bob):
        await ann.until_connected(bob.peer_id)
        await bob.transport.stop()
        await bob.transport.start()
        await ann.until_connected(bob.peer_id)
        await bob.until_connected(ann.peer_id)


async def test_a_network_that_comes_later_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interface at first, as before the wireless network is joined; then one; then none."""
    now: list[str] = []
    monkeypatch.setattr(interfaces, "interfaces_for", lambda _: tuple(now))
    monkeypatch.setattr("engine.network.discovery.discovery.CHECK_EVERY_S", 0.05)
    async with found(2) as (ann, bob):
        assert not ann.hosts[-1].peers()
        now.append("127.0.0.1")
        await ann.until_connected(bob.peer_id)
        async with Speaker() as speaker:
            now.clear()
            await speaker.hear(b"dnsaddr=")  # goodbye


@pytest.mark.parametrize("style", ["as js", "as go", "pointer first"])
async def test_other_implementations_are_heard(style: str) -> None:
    """Answers as they are put together elsewhere."""
    stranger = TcpHost(os.urandom(32), ["/ip4/127.0.0.1/tcp/0"])
    await stranger.start()
    (address,) = stranger.addresses()
    instance = f"{stranger.peer_id[-20:].lower()}{'x' * 20}"
    try:
        async with found(1) as (ann,), Speaker() as speaker:
            await speaker.hear(b"_p2p")  # its question: it listens
            if style == "as js":
                speaker.say(answer([pointer(instance), text_of(instance, address)]))
            elif style == "as go":
                target = b"\0\0\0\0\x0f\xa1" + name(f"{instance}.local")
                more = [
                    record(f"{instance}.{SERVICE}", SRV, target),
                    text_of(instance, address),
                    record(f"{instance}.local", A, bytes((127, 0, 0, 1))),
                ]
                speaker.say(answer([pointer(instance)], more))
            else:
                speaker.say(answer([pointer(instance)]))
                await speaker.hear(name(instance)[:-1])  # the answer, heard by ourselves
                await speaker.hear(name(instance)[:-1])  # and then asked about
                speaker.say(answer([text_of(instance, address)]))
            await ann.until_connected(stranger.peer_id)
    finally:
        await stranger.stop()


async def test_a_question_is_answered_as_the_spec_says() -> None:
    async with found(1) as (ann,), Speaker() as speaker:
        (own,) = ann.transport.addresses()
        await speaker.hear(b"dnsaddr=" + own.encode())  # announced
        speaker.say(question(SERVICE, PTR))
        packet = await speaker.hear(b"dnsaddr=" + own.encode())
        assert packet[2:4] == b"\x84\x00"  # an authoritative answer
        assert b"\x04_p2p\x04_udp\x05local\x00" in packet


async def test_a_lying_network_is_borne() -> None:
    """Junk packets, nodes that are not there and move all the time, ourselves elsewhere."""
    random = Random(5)
    listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    fake = [TcpHost(number.to_bytes(32, "big"), []).peer_id for number in range(1, 17)]
    async with found(2) as (ann, bob), Speaker() as speaker:
        for number in range(2_000):
            peer = fake[number % len(fake)]
            instance = f"not-there-{peer.lower()}"
            hosts = ["127.0.0.1", "127.0.0.9", "8.8.8.8", "192.168.0.1", "169.254.169.254"]
            random.shuffle(hosts)
            places = [f"/ip4/{host}/tcp/{port}/p2p/{peer}" for host in hosts]
            speaker.say(answer([pointer(instance), text_of(instance, *places)]))
            speaker.say(random.randbytes(random.randrange(1, 400)))
            if number % 100 == 0:
                await asyncio.sleep(0)
        own = ann.transport.addresses()[0]
        elsewhere = parse_multiaddr(own).with_peer(ann.peer_id)
        speaker.say(answer([pointer("me"), text_of("me", str(elsewhere))]))
        await ann.until_connected(bob.peer_id)
        await bob.until_connected(ann.peer_id)
        counters = ann.transport.counters()
        assert counters["discovery.heard"] <= 4 * MAX_NEIGHBOURS
        assert ann.peer_id not in {peer.peer_id for peer in ann.hosts[-1].peers()}
    listening.close()
    await listening.wait_closed()
