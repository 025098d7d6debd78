"""While the disk is busy what Stores gave next is opened; what the disk says counts as ever."""

import asyncio

import pytest

from engine.core.errors import StorageError
from engine.core.history.queries import HistoryMessage
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.runtime.open_ahead import MAX_EXPECTED, MAX_EXPECTED_BYTES, OpenAheadQueue

PATIENCE_S = 60


class Opened:
    def __init__(self) -> None:
        self.hashes: list[WakuHash] = []

    def add(self, _message: WakuMessage, waku_hash: WakuHash) -> None:
        self.hashes.append(waku_hash)


def messages(count: int, *, size: int = 1) -> list[HistoryMessage]:
    topic = ContentTopic("/causerie/1/x/proto")
    waku = WakuMessage(payload=bytes(size), content_topic=topic)
    hashes = (WakuHash(number.to_bytes(32, "big")) for number in range(count))
    return [HistoryMessage(each, waku, PubsubTopic("/waku/2/rs/42/0")) for each in hashes]


def test_all_that_is_expected_is_opened_in_order_while_the_disk_works() -> None:
    async def scene() -> None:
        opened, meanwhile, ready = Opened(), OpenAheadQueue(), asyncio.Event()

        async def saving() -> str:
            await ready.wait()
            return "saved"

        meanwhile.expect(messages(5))
        during = asyncio.create_task(meanwhile.during(saving(), opened.add))
        async with asyncio.timeout(PATIENCE_S):
            while len(opened.hashes) < 5:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0)
            assert not during.done()
            ready.set()
            assert await during == "saved"
        assert opened.hashes == [one.message_hash for one in messages(5)]

    asyncio.run(scene())


@pytest.mark.parametrize("expected", [0, 3])
def test_a_disk_that_fails_is_heard_of(expected: int) -> None:
    async def saving() -> None:
        await asyncio.sleep(0)
        raise StorageError("full")

    async def scene() -> None:
        meanwhile = OpenAheadQueue()
        meanwhile.expect(messages(expected))
        with pytest.raises(StorageError, match="full"):
            await meanwhile.during(saving(), Opened().add)

    asyncio.run(scene())


def test_who_is_cancelled_waits_for_nothing() -> None:
    async def scene() -> None:
        cancelled = asyncio.Event()

        async def saving() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        meanwhile = OpenAheadQueue()
        meanwhile.expect(messages(2))
        during = asyncio.create_task(meanwhile.during(saving(), Opened().add))
        await asyncio.sleep(0)
        during.cancel()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(asyncio.CancelledError):
                await during
            await cancelled.wait()

    asyncio.run(scene())


def opened_of(meanwhile: OpenAheadQueue, count: int) -> list[WakuHash]:
    opened = Opened()

    async def saving() -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(opened.hashes) < count:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0)

    asyncio.run(meanwhile.during(saving(), opened.add))
    return opened.hashes


def hashes(some: list[HistoryMessage]) -> list[WakuHash]:
    return [one.message_hash for one in some]


def test_no_more_is_expected_than_there_is_room_for() -> None:
    many = OpenAheadQueue()
    many.expect(messages(MAX_EXPECTED + 9))
    assert opened_of(many, MAX_EXPECTED) == hashes(messages(MAX_EXPECTED))
    large = OpenAheadQueue()
    large.expect(messages(5, size=MAX_EXPECTED_BYTES // 3))
    assert opened_of(large, 3) == hashes(messages(3))
    large.expect(messages(5, size=MAX_EXPECTED_BYTES // 3))
    assert opened_of(large, 3) == hashes(messages(3)), "what was opened makes room"


def test_what_has_its_turn_is_expected_no_more_and_makes_room() -> None:
    meanwhile = OpenAheadQueue()
    meanwhile.expect(messages(4, size=MAX_EXPECTED_BYTES // 4))
    meanwhile.begins(messages(3))
    meanwhile.expect(messages(7, size=MAX_EXPECTED_BYTES // 4)[4:])
    assert opened_of(meanwhile, 4) == hashes(messages(7))[3:]


def test_what_two_stores_gave_is_opened_once() -> None:
    meanwhile = OpenAheadQueue()
    meanwhile.expect(messages(3))
    meanwhile.expect(messages(4))
    assert opened_of(meanwhile, 4) == hashes(messages(4))
