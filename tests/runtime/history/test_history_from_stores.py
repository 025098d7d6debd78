"""What nobody sends any more comes from Store nodes: verified, in order, once, and durable."""

import asyncio
from pathlib import Path

from engine.history_views import HistoryReason, HistoryState, StoreHealth, StoreOrigin
from tests.runtime.history.history_stage import Person, StoreNode, until_stored

MANY = 500


def test_a_newcomer_gets_what_no_member_sends_any_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = StoreNode(tmp_path, "store")
        address = await node.start()
        ann = await Person("Ann", tmp_path, peers=(address,)).start()
        group = await ann.engine.create_group("Friends")
        await ann.until_online()
        said = await ann.say(group, MANY)
        link = await ann.engine.make_invite_link(group)
        await until_stored(node, MANY)
        logged = await ann.log(group)
        await ann.stop()
        bob = await Person("Bob", tmp_path, peers=(address,)).start()
        assert await bob.engine.join_group(link) == group
        await bob.until_told(group, MANY)
        assert await bob.has_once(group, said)
        theirs = await bob.log(group)
        assert [row for row in theirs if row[2] in set(said)] == [
            row for row in logged if row[2] in set(said)
        ]
        await bob.until(lambda: any(v.state is HistoryState.DONE for v in bob.histories()))
        done = next(v for v in bob.histories() if v.state is HistoryState.DONE)
        assert (done.reason, done.arrived) == (HistoryReason.CONNECT, MANY)
        (store,) = bob.engine.stores()
        assert (store.origin, store.health) == (StoreOrigin.FOUND, StoreHealth.GOOD)
        assert store.messages >= MANY
        await bob.stop()
        await node.stop()

    asyncio.run(scenario())


def test_on_a_local_network_the_other_desktop_is_the_store_without_any_settings(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        ann = await Person("Ann", tmp_path, keeps=True).start()
        group = await ann.engine.create_group("Friends")
        eve = await Person("Eve", tmp_path, keeps=True).start()
        await eve.engine.join_group(await ann.engine.make_invite_link(group))
        await eve.until_online()
        await ann.until_online()
        said = await ann.say(group, 50)
        await eve.until_told(group, len(said))
        await ann.stop()
        link = await eve.engine.make_invite_link(group)
        bob = await Person("Bob", tmp_path, keeps=True).start()
        await bob.engine.join_group(link)
        await bob.until_told(group, len(said))
        assert await bob.has_once(group, said)
        await bob.until(lambda: any(v.state is HistoryState.DONE for v in bob.histories()))
        (store,) = bob.engine.stores()
        assert store.origin is StoreOrigin.FOUND
        assert store.messages >= len(said)
        assert "127.0.0.1" in store.multiaddr
        await bob.stop()
        await eve.stop()

    asyncio.run(scenario())
