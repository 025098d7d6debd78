"""A channel with a shared key, live: js-waku with @waku/message-encryption, and ours, two of each.

The room is that of ``test_js_open_channel.py``, and so are its members; only the key is new.  Who
has another key is connected to the same node and asks it for the same topic.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from engine.codec.sds import decode_message
from engine.codec.waku import decode_waku_message
from engine.core.faults import FaultSpec
from engine.core.ids import MessageId
from engine.core.waku_archive import ArchiveQuery
from engine.network.waku.topics import Sharding
from tests.interop.js_waku import JsWaku
from tests.interop.test_js_open_channel import NAME, PATIENCE_S, Room, ids
from tests.runtime.history.history_stage import Person

KEYED = replace(NAME, key=bytes(range(32)))
STRANGE = replace(NAME, key=bytes(range(1, 33)))


async def until_js_has(js: JsWaku, texts: list[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not ids(texts) <= set((await js.ask("look"))["delivered"]):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.2)


def message_id_of(payload: str) -> MessageId:
    return decode_message(bytes.fromhex(payload)).message_id


async def acknowledged(room: Room) -> int:
    """How many of js-waku's messages are: others have named them in their causal histories."""
    counted = [(await js.ask("look"))["counts"] for js in room.js]
    assert not any(counts.get("sds:error-task", 0) for counts in counted)
    return sum(counts.get("message-acknowledged", 0) for counts in counted)


async def stored_payloads(room: Room) -> list[bytes]:
    assert room.node.archive is not None
    topic = Sharding().pubsub_topic(NAME.content_topic)
    query = ArchiveQuery(pubsub_topic=topic, forward=True, limit=100, max_bytes=10**7)
    rows = (await room.node.archive.query(query)).rows
    return [decode_waku_message(row.data).payload for row in rows]


async def test_whoever_has_the_key_is_in_it_and_nobody_else(tmp_path: Path) -> None:
    room = Room(tmp_path, FaultSpec(), KEYED)
    async with AsyncExitStack() as stack:
        await room.open(stack)
        eve = await Person("Eve", tmp_path, peers=(room.tcp,)).start()
        stack.push_async_callback(eve.stop)
        elsewhere = await eve.engine.open_channels.join(STRANGE, label="", nick="Eve")
        await eve.until_online()
        await room.talk(1, seed=3)
        await room.until_ours_are_complete()
        for number, js in enumerate(room.js, start=2):
            await until_js_has(js, [each for each in room.said if not each.endswith(str(number))])
        await room.say(0, "all of you are heard")
        async with asyncio.timeout(PATIENCE_S):
            while not await acknowledged(room):  # noqa: ASYNC110 - they tell nobody
                await asyncio.sleep(0.2)

        late = await Person("Late", tmp_path, peers=(room.tcp,)).start()
        stack.push_async_callback(late.stop)
        link = await room.ours[0].engine.open_channels.make_link(room.channel)
        name = late.engine.open_channels.preview_link(link)
        assert await late.engine.open_channels.join(name, label="", nick="Late") == room.channel
        await late.until(lambda: set(late.texts(room.channel)) >= set(room.said))
        opened = {
            message_id_of(payload) for payload in (await room.js[0].ask("stored"))["payloads"]
        }
        assert opened >= ids(room.said)

        await eve.until(lambda: eve.engine.counters().get("open.other_key", 0) > 0)
        assert eve.texts(elsewhere) == []
        assert await eve.engine.timeline.gap(elsewhere) is None
        payloads = await stored_payloads(room)
        assert payloads
        assert not any(text.encode() in each for text in room.said for each in payloads)
    assert room.violations() == 0
