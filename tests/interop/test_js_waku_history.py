"""js-waku reads, from our Store, what an application of ours wrote: the same set, bit by bit."""

from pathlib import Path

import pytest

from engine.codec.waku import decode_waku_message
from engine.core.waku_archive import ArchiveQuery
from engine.crypto.links import parse_invite
from engine.crypto.sealed import content_topic_of
from engine.network.waku.topics import Sharding, parse_pubsub_topic
from tests.interop.js_waku import js_waku
from tests.runtime.history.history_stage import Person, StoreNode

MANY = 130
"""More than a page."""
SHARDING = Sharding()


@pytest.mark.parametrize("generation", ["current", "legacy"], ids=["3.0.0", "2.0.0-beta4"])
async def test_js_reads_what_our_application_wrote(tmp_path: Path, generation: str) -> None:
    node = StoreNode(tmp_path, "store")
    ann = await Person("Ann", tmp_path, peers=(await node.start(websocket_port=0),)).start()
    group = await ann.engine.groups.create("Friends")
    await ann.until_online()
    await ann.say(group, MANY)
    await ann.until_out(group)
    topic = content_topic_of(
        parse_invite(await ann.engine.groups.make_invite_link(group)).epoch_key
    )
    await ann.stop()
    assert node.node is not None
    assert node.archive is not None
    everything = ArchiveQuery(
        content_topics=(topic,), forward=True, limit=10 * MANY, max_bytes=10**8
    )
    rows = (await node.archive.query(everything)).rows
    kept = [decode_waku_message(row.data).payload.hex() for row in rows]
    assert len(kept) > MANY
    (address,) = [each for each in node.node.addresses() if "/ws/" in each]
    async with js_waku(generation) as js:
        await js.ask(
            "start",
            address=address,
            cluster=SHARDING.cluster_id,
            shardCount=SHARDING.shard_count,
            shard=parse_pubsub_topic(SHARDING.pubsub_topic(topic)).shard,
            topic=topic,
        )
        if generation == "current":
            await js.ask("ready", topic=topic)
        found = (await js.ask("payloads", limit=50))["found"]
    assert sorted(found) == sorted(kept), "each once"
    await node.stop()
