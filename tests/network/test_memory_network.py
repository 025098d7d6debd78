import asyncio

import pytest

from engine.core.errors import TransportError
from engine.core.ids import ContentTopic, WakuHash
from engine.core.problems import ConnectionReason
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES, WakuMessage
from engine.network.memory import MemoryNetwork, MemoryTransport
from engine.network.transport import Receipt, Transport, TransportLevel, TransportStatus
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding

TOPIC = ContentTopic("/causerie/1/a/proto")
OTHER = ContentTopic("/causerie/1/b/proto")


def message(text: str, topic: ContentTopic = TOPIC) -> WakuMessage:
    return WakuMessage(payload=text.encode(), content_topic=topic, timestamp_ns=1)


class Inbox:
    """What one transport was handed, in order."""

    def __init__(self, transport: Transport, topic: ContentTopic = TOPIC) -> None:
        self.texts: list[str] = []
        self.hashes: list[WakuHash] = []
        self.unsubscribe = transport.subscribe(topic, self.take)

    def take(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        self.texts.append(message.payload.decode())
        self.hashes.append(waku_hash)


async def online(count: int) -> tuple[list[MemoryTransport], list[Inbox]]:
    network = MemoryNetwork()
    transports = [network.attach() for _ in range(count)]
    for transport in transports:
        await transport.start()
    return transports, [Inbox(transport) for transport in transports]


async def test_everybody_else_hears_it_once_in_order_and_never_at_once() -> None:
    (alice, *_), inboxes = await online(3)
    for text in ("one", "two", "three"):
        receipt = await alice.publish(message(text))
        assert receipt.peers == 2
    assert [inbox.texts for inbox in inboxes] == [[], [], []]
    await asyncio.sleep(0)
    assert [inbox.texts for inbox in inboxes] == [[]] + [["one", "two", "three"]] * 2


async def test_sender_and_receivers_know_the_same_hash() -> None:
    (alice, _), (_, inbox) = await online(2)
    receipt = await alice.publish(message("x"))
    await asyncio.sleep(0)
    assert inbox.hashes == [receipt.waku_hash]
    assert receipt.waku_hash == message_hash(Sharding().pubsub_topic(TOPIC), message("x"))


async def test_only_the_subscribed_topic_and_only_while_subscribed() -> None:
    (alice, bob), (_, inbox) = await online(2)
    twice = Inbox(bob)
    await alice.publish(message("wrong", OTHER))
    await alice.publish(message("right"))
    await asyncio.sleep(0)
    inbox.unsubscribe()
    inbox.unsubscribe()
    await alice.publish(message("later"))
    await asyncio.sleep(0)
    assert inbox.texts == ["right"]
    assert twice.texts == ["right", "later"]


async def test_the_plug_can_be_pulled_and_put_back() -> None:
    (alice, bob, _), (_, inbox, carols) = await online(3)
    await alice.publish(message("on its way"))
    bob.set_online(False)
    assert (await alice.publish(message("missed"))).peers == 1
    assert (await bob.publish(message("to nobody"))).peers == 0
    await asyncio.sleep(0)
    bob.set_online(True)
    assert (await alice.publish(message("again"))).peers == 2
    await asyncio.sleep(0)
    assert inbox.texts == ["again"]
    assert carols.texts == ["on its way", "missed", "again"]
    assert bob.counters()["memory.lost_offline"] == 1


async def test_status_is_told_when_it_changes_and_addresses_when_people_meet() -> None:
    network = MemoryNetwork()
    alice, bob, carol = (network.attach(name) for name in ("alice", "bob", "carol"))
    told: list[TransportStatus] = []
    met: list[str] = []
    alice.on_status(told.append)
    alice.on_peer_address(met.append)
    assert alice.status().reason is ConnectionReason.NOT_STARTED
    for transport in (alice, bob, carol):
        await transport.start()
    await carol.stop()
    alice.set_online(False)
    assert [(status.level, status.peers) for status in told] == [
        (TransportLevel.OFFLINE, 0),
        (TransportLevel.MINIMAL, 1),
        (TransportLevel.GOOD, 2),
        (TransportLevel.MINIMAL, 1),
        (TransportLevel.OFFLINE, 0),
    ]
    assert told[-1].reason is ConnectionReason.NOBODY_CONNECTED
    assert met == ["/memory/bob", "/memory/carol"]
    assert carol.addresses() == ()


async def test_a_stopped_transport_hears_nothing_more() -> None:
    (alice, bob), (_, inbox) = await online(2)
    await alice.publish(message("too late"))
    await bob.stop()
    await asyncio.sleep(0)
    assert inbox.texts == []
    await bob.start()
    await alice.publish(message("in time"))
    await asyncio.sleep(0)
    assert inbox.texts == ["in time"]


async def test_answering_from_a_handler_is_heard_on_the_next_turn() -> None:
    (alice, bob), (inbox, _) = await online(2)
    answers: list[asyncio.Task[Receipt]] = []
    heard = asyncio.Event()
    alice.subscribe(TOPIC, lambda *_: heard.set())

    def answer(question: WakuMessage, _: WakuHash) -> None:
        text = "re: " + question.payload.decode()
        answers.append(asyncio.create_task(bob.publish(message(text))))

    bob.subscribe(TOPIC, answer)
    await alice.publish(message("hello"))
    await heard.wait()
    assert inbox.texts == ["re: hello"]
    await asyncio.gather(*answers)


async def test_what_no_network_would_carry_is_refused() -> None:
    (alice, _), _ = await online(2)
    with pytest.raises(TransportError, match="at most 153600"):
        await alice.publish(message("x" * MAX_WAKU_MESSAGE_BYTES))
    with pytest.raises(TransportError, match="content_topic_malformed"):
        await alice.publish(message("x", ContentTopic("no topic")))
