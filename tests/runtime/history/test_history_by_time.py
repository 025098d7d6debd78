"""A Store that finds nothing by hash gives what is missing when it is asked for its time."""

from pathlib import Path

import pytest

from engine.core.ids import UnixMs, WakuHash
from engine.core.sds.vocabulary import AskStore, StoreWindow
from engine.core.waku_archive import ArchivePage, ArchiveQuery
from engine.history_views import HistoryReason
from engine.network.waku.store.intake import Archive
from tests.runtime.history.bad_stores import Honest
from tests.runtime.history.history_stage import (
    Person,
    StoreNode,
    ask_stores_soon,
    say_in_a_group,
    until,
)

SECOND_NS = 10**9
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class KnowsNoHash(Honest):
    """It receives one message only when it has been asked for it by hash, in vain."""

    def __init__(self, inner: Archive) -> None:
        super().__init__(inner)
        self.late = WakuHash(b"")
        self.asked_for: list[WakuHash] = []

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        if query.message_hashes:
            self.asked_for += query.message_hashes
            return ArchivePage()
        page = await super().query(query)
        if self.late in self.asked_for:
            return page
        rows = tuple(row for row in page.rows if row.message_hash != self.late)
        return ArchivePage(rows=rows, more=page.more)


async def test_what_a_store_does_not_find_by_its_hash_is_found_by_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_stores_soon(monkeypatch)
    node, archives = StoreNode(tmp_path, "store"), list[KnowsNoHash]()

    def lose_one(inner: Archive) -> Archive:
        archives.append(KnowsNoHash(inner))
        return archives[-1]

    address = await node.start(wrap=lose_one)
    (archive,) = archives
    past = await say_in_a_group(tmp_path, 5, node)
    page = await archive.query(ArchiveQuery(limit=100, max_bytes=10**6))
    archive.late = page.rows[-3].message_hash
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, len(past.said))
    assert archive.asked_for == [archive.late]
    assert await bob.log_of(past.group, past.said) == past.logged
    await bob.stop()
    await node.stop()


class Listens(Honest):
    def __init__(self, inner: Archive) -> None:
        super().__init__(inner)
        self.moments_ns: list[int] = []
        """The beginnings of what was asked for moments, not for everything since some time."""

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        start_ns, end_ns = query.time_start_ns, query.time_end_ns
        if start_ns is not None and end_ns is not None and end_ns - start_ns < SECOND_NS:
            self.moments_ns.append(start_ns)
        return await super().query(query)


async def test_what_is_older_than_anything_one_wants_to_see_is_not_asked_for(
    tmp_path: Path,
) -> None:
    """Else each message would lead to an older one, back to the first."""
    node, archives = StoreNode(tmp_path, "store"), list[Listens]()

    def listen(inner: Archive) -> Archive:
        archives.append(Listens(inner))
        return archives[-1]

    address = await node.start(wrap=listen)
    (archive,) = archives
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    group = await bob.engine.groups.create("Friends")
    await bob.until_online()
    await bob.until_fetched(HistoryReason.CONNECT)
    now_ms = bob.now_ms()
    for days in (365, 20):
        since_ms, until_ms = UnixMs(now_ms - days * DAY_MS), UnixMs(now_ms - days * DAY_MS + 1)
        ask = AskStore(windows=(StoreWindow(since_ms=since_ms, until_ms=until_ms),))
        bob.engine.history.ask(group, ask)
    await until(lambda: len(archive.moments_ns) == 2)
    beyond, within = sorted(archive.moments_ns)
    assert abs(beyond // 10**6 - (now_ms - 30 * DAY_MS)) < HOUR_MS
    assert abs(within // 10**6 - (now_ms - 20 * DAY_MS)) < HOUR_MS
    await bob.stop()
    await node.stop()
