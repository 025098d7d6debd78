import asyncio

import pytest

from engine.core.errors import TransportError
from engine.network.waku.send_queue import Chunk, SendQueue, SendQueueLimits

LIMITS = SendQueueLimits(soft_bytes=10, message_bytes=20, control_bytes=5, write_bytes=8)


async def test_control_overtakes_messages_and_frames_are_joined_up_to_a_write() -> None:
    queue = SendQueue(LIMITS)
    for frame in (b"aaa", b"bbb", b"ccc"):
        assert queue.add_message(frame)
    assert queue.add_control(b"K")
    assert queue.add_control(b"L")
    assert await queue.take() == Chunk(control=b"KL", frames=(b"aaa", b"bbb"))
    assert await queue.take() == Chunk(control=b"", frames=(b"ccc",))
    assert queue.queued_bytes == 0


async def test_taking_waits_for_something() -> None:
    queue = SendQueue(LIMITS)
    taking = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not taking.done()
    queue.add_message(b"a")
    assert (await taking).messages == b"a"


async def test_room_ends_at_the_soft_limit_and_comes_back_at_half_of_it() -> None:
    queue = SendQueue(LIMITS)
    room = [queue.has_room]
    for frame in (b"x" * 8, b"y" * 8):
        queue.add_message(frame)
        room.append(queue.has_room)
    waiting = asyncio.create_task(queue.wait_for_room())
    for _ in range(2):
        await queue.take()
        room.append(queue.has_room)
    assert room == [True, True, False, False, True]
    await waiting


async def test_beyond_the_hard_limits_nothing_is_taken() -> None:
    queue = SendQueue(LIMITS)
    assert queue.add_message(b"x" * 20)
    assert not queue.add_message(b"y")
    assert queue.queued_bytes == 20
    assert queue.add_control(b"K" * 5)
    assert not queue.add_control(b"L")
    with pytest.raises(TransportError, match="more control"):
        await queue.take()


async def test_a_new_stream_gets_the_messages_in_order_but_no_stale_control() -> None:
    queue = SendQueue(LIMITS)
    queue.add_control(b"K")
    queue.add_message(b"1" * 7)
    queue.add_message(b"2")
    chunk = await queue.take()
    queue.add_control(b"L")
    queue.put_back(chunk.frames)
    queue.fail("broken")
    with pytest.raises(TransportError, match="broken"):
        await queue.take()
    queue.start_anew()
    queue.add_control(b"hi")
    assert await queue.take() == Chunk(control=b"hi", frames=(b"1" * 7,))
    assert await queue.take() == Chunk(control=b"", frames=(b"2",))


async def test_what_is_put_back_can_be_taken_one_by_one() -> None:
    queue = SendQueue(LIMITS)
    for frame in (b"1", b"2", b"3"):
        queue.add_message(frame)
    chunk = await queue.take(at_most=2)
    assert chunk.frames == (b"1", b"2")
    queue.put_back(chunk.frames)
    assert queue.queued_bytes == 3
    assert [(await queue.take(at_most=1)).messages for _ in range(3)] == [b"1", b"2", b"3"]
    assert queue.queued_bytes == 0


async def test_clearing_frees_everything_and_everybody() -> None:
    queue = SendQueue(LIMITS)
    queue.add_message(b"x" * 15)
    queue.add_control(b"K")
    assert queue.clear() == 2
    assert queue.queued_bytes == 0
    await queue.wait_for_room()


async def test_room_is_waited_for_while_anything_is_taken_and_no_longer() -> None:
    limits = SendQueueLimits(soft_bytes=100, message_bytes=10_000, write_bytes=10)
    queue = SendQueue(limits)
    for _ in range(50):
        queue.add_message(b"x" * 10)
    assert not await queue.wait_while_taken(0)
    waiting = asyncio.create_task(queue.wait_while_taken(0))
    while not queue.has_room:
        assert not waiting.done()
        await queue.take()
        await asyncio.sleep(0)
    assert await waiting
