import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.core.faults import FaultPlan, FaultSpec
from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.faults import MAX_PENDING, FaultyTransport
from engine.network.memory import MemoryNetwork, MemoryTransport
from engine.network.transport import Transport, TransportLevel
from tests.patience import PATIENCE_S

TOPIC = ContentTopic("/causerie/1/a/proto")


def message(number: int) -> WakuMessage:
    return WakuMessage(payload=b"%d" % number, content_topic=TOPIC, timestamp_ns=number)


@dataclass
class Script:
    """A plan that says what it was told to say, then delivers at once."""

    fates: list[tuple[int, ...]]

    def resets(self) -> bool:
        return False

    def delays_ms(self) -> tuple[int, ...]:
        return self.fates.pop(0) if self.fates else (0,)


@dataclass
class Timer:
    due_s: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class VirtualTime:
    timers: list[Timer] = field(default_factory=list)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(delay_s, callback)
        self.timers.append(timer)
        return timer

    def run(self) -> None:
        for timer in sorted(self.timers, key=lambda timer: timer.due_s):
            if not timer.cancelled:
                timer.callback()
        self.timers.clear()


def inbox_of(transport: Transport) -> list[int]:
    inbox: list[int] = []

    def take(heard: WakuMessage, _: WakuHash) -> None:
        inbox.append(int(heard.payload))

    transport.subscribe(TOPIC, take)
    return inbox


async def through(
    fates: Sequence[tuple[int, ...]], count: int
) -> tuple[list[int], FaultyTransport, VirtualTime, MemoryTransport]:
    """Publish ``count`` messages to somebody behind the fault layer."""
    network, time = MemoryNetwork(), VirtualTime()
    sender, inner = network.attach(), network.attach()
    faulty = FaultyTransport(inner, Script(list(fates)), call_later=time.call_later)
    inbox = inbox_of(faulty)
    await sender.start()
    await faulty.start()
    for number in range(count):
        assert (await sender.publish(message(number))).peers == 1
    await asyncio.sleep(0)
    return inbox, faulty, time, sender


async def test_each_fate_comes_true_and_is_counted() -> None:
    fates = [(0,), (), (200,), (100,), (0, 300), ()]
    inbox, faulty, time, _ = await through(fates, 7)
    assert inbox == [0, 4, 6]
    time.run()
    assert inbox == [0, 4, 6, 3, 2, 4]
    counted = {n: v for n, v in faulty.counters().items() if n.startswith("faults.")}
    assert counted == {"faults.lost": 2, "faults.delayed": 3, "faults.doubled": 1}


async def test_outgoing_copies_and_their_receipts_are_left_alone() -> None:
    network = MemoryNetwork()
    receiver, inner = network.attach(), network.attach()
    faulty = FaultyTransport(inner, FaultPlan(FaultSpec(loss=1.0)))
    inbox = inbox_of(receiver)
    await receiver.start()
    await faulty.start()
    for number in range(20):
        assert (await faulty.publish(message(number))).peers == 1
    await asyncio.sleep(0)
    assert inbox == list(range(20))
    assert faulty.status().level is TransportLevel.MINIMAL


async def test_receivers_lose_independently_and_alike_for_a_seed() -> None:
    async def run(seed: int) -> list[list[int]]:
        network = MemoryNetwork()
        sender = network.attach()
        await sender.start()
        inboxes = []
        for name in ("bob", "carol"):
            plan = FaultPlan(FaultSpec(loss=0.3, seed=seed), stream=name)
            faulty = FaultyTransport(network.attach(name), plan)
            await faulty.start()
            inboxes.append(inbox_of(faulty))
        for number in range(1_000):
            await sender.publish(message(number))
        await asyncio.sleep(0)
        return inboxes

    bobs, carols = await run(1)
    assert bobs != carols
    assert all(600 < len(inbox) < 800 for inbox in (bobs, carols))
    assert await run(1) == [bobs, carols]
    assert await run(2) != [bobs, carols]


async def test_two_subscribers_of_one_topic_share_a_copys_fate() -> None:
    network = MemoryNetwork()
    sender, inner = network.attach(), network.attach()
    faulty = FaultyTransport(inner, FaultPlan(FaultSpec(loss=0.5)))
    first, second = inbox_of(faulty), inbox_of(faulty)
    await sender.start()
    await faulty.start()
    for number in range(100):
        await sender.publish(message(number))
    await asyncio.sleep(0)
    assert first == second
    assert 20 < len(first) < 80


async def test_stopping_cancels_what_waits() -> None:
    inbox, faulty, time, _ = await through([(100,), (200,)], 2)
    await faulty.stop()
    assert all(timer.cancelled for timer in time.timers)
    time.run()
    assert inbox == []
    assert faulty.counters()["faults.lost_at_stop"] == 2


async def test_who_unsubscribed_gets_nothing_that_was_on_its_way() -> None:
    network, time = MemoryNetwork(), VirtualTime()
    sender, inner = network.attach(), network.attach()
    faulty = FaultyTransport(inner, Script([(50,)]), call_later=time.call_later)
    heard: list[WakuMessage] = []
    unsubscribe = faulty.subscribe(TOPIC, lambda message, _: heard.append(message))
    await sender.start()
    await faulty.start()
    await sender.publish(message(1))
    await asyncio.sleep(0)
    unsubscribe()
    unsubscribe()
    time.run()
    await sender.publish(message(2))
    await asyncio.sleep(0)
    assert heard == []
    assert faulty.counters() == {"faults.delayed": 1}  # the second copy was not even drawn


async def test_what_waits_is_bounded() -> None:
    extra = 5
    inbox, faulty, time, _ = await through([(100,)] * (MAX_PENDING + extra), MAX_PENDING + extra)
    assert faulty.counters()["faults.lost_too_many_waiting"] == extra
    time.run()
    assert len(inbox) == MAX_PENDING


async def test_on_a_real_loop_delayed_copies_arrive() -> None:
    network = MemoryNetwork()
    sender, inner = network.attach(), network.attach()
    faulty = FaultyTransport(inner, FaultPlan(FaultSpec(delay_ms=(1, 5), dup=1.0)))
    arrived = asyncio.Queue[int]()
    faulty.subscribe(TOPIC, lambda message, _: arrived.put_nowait(int(message.payload)))
    await sender.start()
    await faulty.start()
    await sender.publish(message(7))
    async with asyncio.timeout(PATIENCE_S):
        assert [await arrived.get(), await arrived.get()] == [7, 7]
    await faulty.stop()
