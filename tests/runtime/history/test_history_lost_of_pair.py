"""What a pair lost has no name to ask for: "Try again" fetches all of its time from the Stores."""

from collections.abc import Sequence
from pathlib import Path

from engine.core.ids import ConversationId, InstanceId, MessageId, Position, UnixMs
from engine.core.ports import PutLost, PutMessage, StoreWrite
from engine.core.records import LostRange, MessageRecord
from engine.core.waku_archive import ArchivePage, ArchiveQuery
from engine.events import MemberView
from engine.history_views import HistoryReason
from engine.network.waku.store.intake import Archive
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.runtime.history.bad_stores import Honest
from tests.runtime.history.history_stage import KEY, Person, StoreNode

DAY_MS = 24 * 3_600_000
NS_PER_MS = 1_000_000
INSTANCE = InstanceId(bytes(16))


class Recalls(Honest):
    """Which times it was asked for."""

    def __init__(self, inner: Archive) -> None:
        super().__init__(inner)
        self.asked: list[tuple[int, int]] = []

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        if query.content_topics:
            start_ns, end_ns = query.time_start_ns or 0, query.time_end_ns or 0
            self.asked.append((round(start_ns / NS_PER_MS), round(end_ns / NS_PER_MS)))
        return await super().query(query)


def lost_range(first: int, last: int, since_ms: int, after: str) -> LostRange:
    """Given up a day later, as everything is."""
    return LostRange(
        instance_id=INSTANCE,
        first=first,
        last=last,
        before=Position(lamport_timestamp=since_ms, message_id=MessageId(after)),
        since_ms=UnixMs(since_ms),
        given_up_ms=UnixMs(since_ms + DAY_MS),
    )


def row_of(pair: ConversationId, member: MemberView, at_ms: int) -> MessageRecord:
    return MessageRecord(
        conversation_id=pair,
        position=Position(lamport_timestamp=at_ms, message_id=MessageId(f"{at_ms}")),
        sender_id=member.participant_id,
        is_own=member.is_self,
        kind="text",
        text="said",
        spans=(),
        sent_ms=UnixMs(at_ms),
        received_ms=UnixMs(at_ms),
    )


def write(place: Path, name: str, writes: Sequence[StoreWrite]) -> None:
    store = SqliteProfileStore.open(place / f"{name}.db", KEY)
    store.apply(writes)
    store.close()


async def test_trying_again_at_a_gap_fetches_its_time_from_stores_and_no_other(
    tmp_path: Path,
) -> None:
    node, archives = StoreNode(tmp_path, "store"), list[Recalls]()

    def wrap(archive: Archive) -> Archive:
        archives.append(Recalls(archive))
        return archives[-1]

    address = await node.start(wrap)
    ann = await Person("Ann", tmp_path).start()
    bob = await Person("Bob", tmp_path).start()
    pair = await ann.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.stop()
    (view,) = await ann.engine.conversations()
    them, self_ = sorted(view.members, key=lambda member: member.is_self)
    await ann.engine.timeline.fetch_lost(pair, ())
    wished = [view for view in ann.histories() if view.reason is HistoryReason.USER]
    assert wished == [], "nothing is lost, so nothing is fetched"
    await ann.stop()
    long_ago_ms = UnixMs(ann.now_ms() - 90 * DAY_MS)
    lately_ms = UnixMs(ann.now_ms() - 50 * DAY_MS)
    long_ago = lost_range(4, 6, long_ago_ms, "after")
    lately = lost_range(8, 8, lately_ms, "later")
    heard_ms = lately_ms - 20 * DAY_MS
    rows = [row_of(pair, them, heard_ms), row_of(pair, self_, lately_ms - 5 * DAY_MS)]
    lost = [PutLost(conversation_id=pair, lost=each) for each in (long_ago, lately)]
    write(tmp_path, "Ann", [*(PutMessage(message=row) for row in rows), *lost])
    await ann.start_again(address)
    await ann.engine.timeline.fetch_lost(pair, [MessageId("after")])
    gap = await ann.engine.timeline.gap(pair)
    assert gap is not None
    told = {each.numbers: (each.sender_name, each.asked_again_ms) for each in gap.lost}
    assert told[4, 6][0] == told[8, 8][0] == "Bob"
    assert told[4, 6][1] is not None
    assert told[8, 8][1] is None, "nobody asked for that"
    await ann.until_fetched(HistoryReason.USER)
    (recalls,) = archives
    its_time = (long_ago_ms - DAY_MS, long_ago_ms + DAY_MS)
    assert its_time in recalls.asked
    assert not [asked for asked in recalls.asked if asked[0] <= lately_ms <= asked[1]]
    assert await ann.engine.timeline.gap(pair) == gap, "it stays lost until it comes"

    ann.told.clear()
    await ann.engine.timeline.fetch_lost(pair, [MessageId("later")])
    await ann.until_fetched(HistoryReason.USER)
    assert (heard_ms, lately_ms + DAY_MS) in recalls.asked, "since Bob was heard last"

    ann.told.clear()
    await ann.engine.timeline.fetch_lost(pair, ())
    await ann.until_fetched(HistoryReason.USER)
    both = (long_ago_ms - DAY_MS, lately_ms + DAY_MS)
    assert both in recalls.asked, "all, if no gap is named"
    await ann.stop()
    await node.stop()
