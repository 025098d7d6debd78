"""What a pair lost has no name to ask for: "Try again" fetches all of that time from the Stores."""

import asyncio
from pathlib import Path

from engine.core.ports import LostRange, PutLost
from engine.core.types import InstanceId, MessageId, Position, UnixMs
from engine.history_views import HistoryReason, HistoryState
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.runtime.history.history_stage import KEY, Person, StoreNode

DAY_MS = 24 * 3_600_000


def test_trying_again_in_a_pair_fetches_that_time_from_stores(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = StoreNode(tmp_path, "store")
        address = await node.start()
        ann = await Person("Ann", tmp_path).start()
        bob = await Person("Bob", tmp_path).start()
        pair = await ann.engine.add_contact(await bob.engine.make_contact_link())
        await bob.stop()
        await ann.engine.fetch_lost(pair, ())
        wished = [view for view in ann.histories() if view.reason is HistoryReason.USER]
        assert wished == [], "nothing is lost, so nothing is fetched"
        await ann.stop()
        since_ms = UnixMs(ann.now_ms() - 3 * DAY_MS)
        lost = LostRange(
            instance_id=InstanceId(bytes(16)),
            first=4,
            last=6,
            before=Position(lamport_timestamp=since_ms, message_id=MessageId("after")),
            since_ms=since_ms,
            given_up_ms=UnixMs(since_ms + DAY_MS),
        )
        store = SqliteProfileStore.open(tmp_path / "Ann.db", KEY)
        store.apply([PutLost(conversation_id=pair, lost=lost)])
        store.close()
        await ann.start_again(address)
        await ann.engine.fetch_lost(pair, ())
        gap = await ann.engine.gap(pair)
        assert gap is not None
        assert [(each.sender_name, each.numbers) for each in gap.lost] == [("Bob", (4, 6))]
        assert gap.lost[0].asked_again_ms is not None
        await ann.until(
            lambda: any(
                view.reason is HistoryReason.USER and view.state is HistoryState.DONE
                for view in ann.histories()
            )
        )
        wished = [view for view in ann.histories() if view.reason is HistoryReason.USER]
        assert {view.since_ms for view in wished} == {since_ms - DAY_MS}
        assert await ann.engine.gap(pair) == gap, "it stays lost until it comes"
        await ann.stop()
        await node.stop()

    asyncio.run(scenario())
