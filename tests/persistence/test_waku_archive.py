"""The archive: every page exact, whatever is inserted meanwhile; nothing lost by a kill."""

import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlcipher3 import dbapi2

from engine.core.errors import StorageError
from engine.core.ids import WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_archive import (
    ArchivedMessage,
    ArchivedRow,
    ArchiveQuery,
    CursorUnknownError,
    Ineligible,
    ineligibility,
)
from engine.core.waku_store import HistoryIndex
from engine.persistence.archive import Retention
from engine.persistence.archive_thread import ThreadedArchive
from engine.persistence.errors import DatabaseTooNewError
from tests.persistence.archive_examples import (
    NOW_NS,
    OTHER_SHARD,
    OTHER_TOPIC,
    SHARD,
    TOPIC,
    OpenArchive,
    archived,
    query,
)

REPOSITORY = Path(__file__).parents[2]
SECOND_NS = 10**9


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[OpenArchive]:
    made = OpenArchive(tmp_path / "archive.db")
    yield made
    made.close()


def all_pages(
    archive: OpenArchive, asked: ArchiveQuery, *, between: Callable[[], None] = lambda: None
) -> list[list[ArchivedRow]]:
    """In the order in which they come; each ascending in itself."""
    pages: list[list[ArchivedRow]] = []
    while True:
        page = archive.query(asked)
        pages.append(list(page.rows))
        if not page.more:
            return pages
        last = page.rows[-1 if asked.forward else 0]
        asked = replace(asked, cursor=last.index if asked.by_digest else last.message_hash)
        between()


def hashes(rows: list[ArchivedRow]) -> list[WakuHash]:
    return [row.message_hash for row in rows]


def in_order(pages: list[list[ArchivedRow]], asked: ArchiveQuery) -> list[ArchivedRow]:
    ordered = pages if asked.forward else pages[::-1]
    return [row for page in ordered for row in page]


@dataclass(frozen=True)
class Entry:
    """What a generated message is; few values, so that ties abound."""

    number: int
    tick: int
    shard: bool
    topic: bool
    digest: int | None

    def message(self) -> ArchivedMessage:
        return archived(
            self.number,
            timestamp_ns=NOW_NS + self.tick,
            pubsub_topic=OTHER_SHARD if self.shard else SHARD,
            content_topic=OTHER_TOPIC if self.topic else TOPIC,
            digest_of=None if self.digest is None else b"same %d" % self.digest,
            size=10 + self.number % 7,
        )


entries = st.builds(
    Entry,
    number=st.integers(0, 200),
    tick=st.integers(0, 4),
    shard=st.booleans(),
    topic=st.booleans(),
    digest=st.none() | st.integers(0, 1),
)
stocks = st.lists(entries, max_size=30, unique_by=lambda entry: entry.number)
queries = st.builds(
    query,
    by_digest=st.booleans(),
    forward=st.booleans(),
    limit=st.integers(1, 9),
    max_bytes=st.sampled_from([1, 30, 1_000_000]),
    pubsub_topic=st.none() | st.sampled_from([SHARD, OTHER_SHARD]),
    content_topics=st.lists(st.sampled_from([TOPIC, OTHER_TOPIC]), max_size=2).map(tuple),
    time_start_ns=st.none() | st.integers(NOW_NS - 1, NOW_NS + 5),
    time_end_ns=st.none() | st.integers(NOW_NS - 1, NOW_NS + 5),
)


def matches(message: ArchivedMessage, asked: ArchiveQuery) -> bool:
    start, end = asked.time_start_ns, asked.time_end_ns
    return (
        (asked.pubsub_topic is None or message.pubsub_topic == asked.pubsub_topic)
        and (not asked.content_topics or message.content_topic in asked.content_topics)
        and (start is None or message.timestamp_ns >= start)
        and (end is None or message.timestamp_ns <= end)
    )


@settings(max_examples=150, deadline=None)
@given(stock=stocks, arriving=stocks, asked=queries)
def test_each_message_comes_once_in_order_and_at_any_page_size(
    stock: list[Entry], arriving: list[Entry], asked: ArchiveQuery
) -> None:
    held = [entry.message() for entry in stock]
    known = {message.message_hash for message in held}
    later = [m for m in (entry.message() for entry in arriving) if m.message_hash not in known]
    with tempfile.TemporaryDirectory() as place:
        archive = OpenArchive(Path(place) / "archive.db")
        archive.append(held, now_ns=NOW_NS)
        waiting = list(later)
        seen_before: list[list[WakuHash]] = []

        def insert_one() -> None:
            if waiting:
                archive.append([waiting.pop()], now_ns=NOW_NS)

        pages = all_pages(archive, asked, between=insert_one)
        seen_before = [hashes(page) for page in pages]
        archive.close()
    found = in_order(pages, asked)
    wanted = {m.message_hash: m for m in held + later if matches(m, asked)}
    seen = hashes(found)
    assert len(set(seen)) == len(seen)
    assert {m.message_hash for m in held if matches(m, asked)} <= set(seen) <= set(wanted)
    assert all(1 <= len(page) <= asked.limit for page in seen_before[:-1])
    if asked.by_digest:
        keys = [
            (row.index.sender_time_ns, row.index.digest, row.index.receiver_time_ns)
            for row in found
        ]
        assert keys == sorted(set(keys))
    else:
        order = [(row.index.sender_time_ns, row.message_hash) for row in found]
        assert order == sorted(order)
    assert [row.data for row in found] == [wanted[row.message_hash].data for row in found]


def test_what_arrives_ahead_of_the_cursor_is_still_seen(archive: OpenArchive) -> None:
    archive.append([archived(n, timestamp_ns=NOW_NS + n) for n in range(0, 10, 2)], now_ns=NOW_NS)
    first = archive.query(query(limit=2))
    archive.append([archived(n, timestamp_ns=NOW_NS + n) for n in (1, 3)], now_ns=NOW_NS)
    rest = archive.query(query(cursor=first.rows[-1].message_hash))
    assert [row.index.sender_time_ns - NOW_NS for row in rest.rows] == [3, 4, 6, 8]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("by_digest", [True, False])
def test_a_page_that_is_just_full_is_the_last(
    archive: OpenArchive, forward: bool, by_digest: bool
) -> None:
    archive.append([archived(n) for n in range(6)], now_ns=NOW_NS)
    pages = all_pages(archive, query(limit=3, forward=forward, by_digest=by_digest))
    assert [len(page) for page in pages] == [3, 3]


def test_nothing_is_an_empty_page_without_more(archive: OpenArchive) -> None:
    for asked in (query(), query(content_topics=(TOPIC,)), query(message_hashes=())):
        page = archive.query(asked)
        assert (page.rows, page.more) == ((), False)


def test_a_cursor_of_somewhere_else_is_refused(archive: OpenArchive) -> None:
    archive.append([archived(1)], now_ns=NOW_NS)
    here = archive.query(query()).rows[0].index
    for cursor in (
        WakuHash(bytes(32)),
        replace(here, digest=bytes(32)),
        replace(here, pubsub_topic=OTHER_SHARD),
        replace(here, sender_time_ns=1),
    ):
        with pytest.raises(CursorUnknownError):
            archive.query(query(cursor=cursor, by_digest=isinstance(cursor, HistoryIndex)))


@pytest.mark.parametrize("forward", [True, False])
def test_a_made_up_time_of_receipt_skips_nothing(archive: OpenArchive, forward: bool) -> None:
    """js-waku makes cursors with the sender's time in both places."""
    archive.append([archived(n, digest_of=b"same") for n in range(4)], now_ns=NOW_NS + SECOND_NS)
    first = archive.query(query(limit=2, forward=forward, by_digest=True))
    edge = first.rows[-1 if forward else 0]
    made_up = replace(edge.index, receiver_time_ns=edge.index.sender_time_ns)
    rest = archive.query(query(forward=forward, by_digest=True, cursor=made_up))
    assert {*hashes(list(first.rows)), *hashes(list(rest.rows))} == {
        archived(n).message_hash for n in range(4)
    }


def test_messages_are_looked_up_by_hash(archive: OpenArchive) -> None:
    archive.append([archived(n, timestamp_ns=NOW_NS + n) for n in range(30)], now_ns=NOW_NS)
    wanted = tuple(archived(n).message_hash for n in (25, 3, 7, 99))
    pages = all_pages(archive, query(message_hashes=wanted, limit=2, forward=False))
    assert [[row.index.sender_time_ns - NOW_NS for row in page] for page in pages] == [[7, 25], [3]]


def test_more_topics_than_ranges_are_read_all_the_same(archive: OpenArchive) -> None:
    def topic(number: int) -> ArchivedMessage:
        made = archived(number, timestamp_ns=NOW_NS + number // 3)
        return replace(made, content_topic=type(TOPIC)(f"/causerie/1/{number}/proto"))

    stock = [topic(number) for number in range(300)]
    archive.append(stock, now_ns=NOW_NS)
    pages = all_pages(archive, query(pubsub_topic=SHARD, limit=70))
    assert sorted(hashes(in_order(pages, query()))) == sorted(m.message_hash for m in stock)


def test_the_same_message_is_kept_once(archive: OpenArchive) -> None:
    assert archive.append([archived(1), archived(1)]).added == 1
    assert archive.append([archived(1)]).added == 0
    assert archive.statistics().messages == 1


def test_the_oldest_go_first_when_they_are_too_old(tmp_path: Path) -> None:
    kept = Retention(max_age_ns=10 * SECOND_NS, max_bytes=0)
    archive = OpenArchive(tmp_path / "archive.db", kept)
    archive.append(
        [archived(n, timestamp_ns=NOW_NS + n * SECOND_NS) for n in range(20)], now_ns=NOW_NS
    )
    assert archive.retain(now_ns=NOW_NS + 15 * SECOND_NS) == 5
    assert archive.retain(now_ns=NOW_NS + 15 * SECOND_NS) == 0
    assert archive.query(query(limit=1)).rows[0].index.sender_time_ns == NOW_NS + 5 * SECOND_NS
    assert archive.statistics().messages == 15
    archive.close()


def test_the_oldest_go_first_when_they_are_too_much(tmp_path: Path) -> None:
    limit, batch, size = 400_000, 100, 1_000
    archive = OpenArchive(tmp_path / "archive.db", Retention(max_age_ns=0, max_bytes=limit))
    evicted = 0
    for first in range(0, 1_000, batch):
        numbers = range(first, first + batch)
        evicted += archive.append(
            [archived(n, timestamp_ns=NOW_NS + n, size=size) for n in numbers]
        ).evicted
        assert archive.statistics().used_bytes <= limit
    statistics = archive.statistics()
    assert limit * 0.8 < statistics.used_bytes
    assert statistics.messages == 1_000 - evicted
    rows = archive.query(query(limit=1_000)).rows
    assert [row.index.sender_time_ns - NOW_NS for row in rows] == list(range(evicted, 1_000))
    archive.close()
    assert (tmp_path / "archive.db").stat().st_size <= limit + 2 * batch * size


def test_topics_go_with_their_last_message(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    archive = OpenArchive(path, Retention(max_age_ns=SECOND_NS, max_bytes=0))
    archive.append([archived(1), archived(2, content_topic=OTHER_TOPIC)], now_ns=NOW_NS)
    archive.append([archived(3, timestamp_ns=NOW_NS + 9 * SECOND_NS)], now_ns=NOW_NS)
    assert archive.retain(now_ns=NOW_NS + 9 * SECOND_NS) == 2
    archive.append(
        [archived(4, timestamp_ns=NOW_NS + 9 * SECOND_NS, content_topic=OTHER_TOPIC)],
        now_ns=NOW_NS,
    )
    for topic, number in ((TOPIC, 3), (OTHER_TOPIC, 4)):
        found = archive.query(query(content_topics=(topic,), pubsub_topic=SHARD))
        assert hashes(list(found.rows)) == [archived(number).message_hash]
    archive.close()


def test_a_transaction_that_fails_leaves_nothing(archive: OpenArchive) -> None:
    broken = replace(archived(2), timestamp_ns=2**63)
    with pytest.raises(StorageError):
        archive.append([archived(1, content_topic=OTHER_TOPIC), broken], now_ns=NOW_NS)
    assert archive.statistics().messages == 0
    archive.append([archived(1, content_topic=OTHER_TOPIC)], now_ns=NOW_NS)
    assert len(archive.query(query(content_topics=(OTHER_TOPIC,))).rows) == 1


def test_what_was_archived_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    archive = OpenArchive(path)
    archive.append([archived(n) for n in range(5)], now_ns=NOW_NS)
    before = archive.query(query())
    archive.close()
    again = OpenArchive(path)
    assert again.query(query()) == before
    assert again.statistics().messages == 5
    again.append([archived(9)], now_ns=0)  # A clock that was set back.
    newest = again.query(query(by_digest=True, message_hashes=(archived(9).message_hash,)))
    assert newest.rows[0].index.receiver_time_ns > max(
        r.index.receiver_time_ns for r in before.rows
    )
    again.close()
    assert path.stat().st_mode & 0o777 == 0o600


COPYING = re.compile(
    r"^sudo sqlite3 /var/lib/causerie-node/archive\.db \"(.*)\"$", flags=re.MULTILINE
)


def told_to_operators(page: str, copy: Path) -> str:
    """The SQL by which a page says that an archive is copied, with this place in it."""
    told = COPYING.search((REPOSITORY / "docs" / page).read_text(encoding="utf-8"))
    assert told is not None
    return told[1].replace("/srv/backup/archive.db", str(copy))


@pytest.mark.parametrize("page", ["operations.md", "guide/operator.md"])
def test_a_copy_ends_and_is_whole_however_much_the_node_writes(tmp_path: Path, page: str) -> None:
    archive = OpenArchive(tmp_path / "archive.db")
    archive.append([archived(n) for n in range(500)])
    before = archive.query(query())
    written = 500

    def write_on() -> None:
        nonlocal written
        archive.append([archived(written)])
        written += 1

    live = dbapi2.connect(str(tmp_path / "archive.db"))
    live.set_progress_handler(write_on, 1_000)
    live.execute(told_to_operators(page, tmp_path / "copy.db"))
    live.close()
    archive.close()
    assert written > 510
    copy = OpenArchive(tmp_path / "copy.db")
    assert copy.query(query()) == before
    assert copy.statistics().messages == 500
    copy.append([archived(written)])
    copy.close()


def test_a_newer_versions_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseTooNewError):
        OpenArchive(path)
    assert path.read_bytes() == before


def test_a_path_that_cannot_be_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        OpenArchive(tmp_path / "missing" / "archive.db")


def test_a_killed_process_loses_nothing_that_it_said_was_archived(tmp_path: Path) -> None:
    path, first = tmp_path / "archive.db", 0
    chance = random.Random(20260101)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.persistence.archiving_process", str(path), str(first)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            lines = [process.stdout.readline() for _ in range(chance.randrange(12))]
            timer = threading.Timer(chance.uniform(0, 0.05), process.kill)
            timer.start()
            lines += process.stdout.readlines()
            said = [int(line) for line in lines if line.endswith("\n")]
            timer.join()
        assert process.returncode == -signal.SIGKILL
        archive = OpenArchive(path)
        found = in_order(all_pages(archive, query(limit=100)), query())
        archive.close()
        assert [row.data for row in found] == [archived(n).data for n in range(len(found))]
        assert len(found) >= (said[-1] + 1 if said else first)
        first = len(found)
    assert first > 0


async def test_the_threaded_archive_works_on_its_own_thread(tmp_path: Path) -> None:
    archive = await ThreadedArchive.open(tmp_path / "archive.db", clock_ns=lambda: NOW_NS)
    assert (await archive.append([archived(n) for n in range(3)])).added == 3
    assert len((await archive.query(query())).rows) == 3
    assert (await archive.statistics()).messages == 3
    assert await archive.retain() == 0
    await archive.close()
    with pytest.raises(StorageError):
        await archive.statistics()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (WakuMessage(payload=b"", content_topic=TOPIC, timestamp_ns=NOW_NS), None),
        (
            WakuMessage(payload=b"", content_topic=TOPIC, timestamp_ns=NOW_NS, ephemeral=True),
            Ineligible.EPHEMERAL,
        ),
        (WakuMessage(payload=b"", content_topic=TOPIC), None),
        (WakuMessage(payload=b"", content_topic=TOPIC, timestamp_ns=0), None),
        (
            WakuMessage(payload=b"", content_topic=TOPIC, timestamp_ns=NOW_NS + 20 * SECOND_NS),
            None,
        ),
        (
            WakuMessage(payload=b"", content_topic=TOPIC, timestamp_ns=NOW_NS + 20 * SECOND_NS + 1),
            Ineligible.CLOCK,
        ),
        (
            WakuMessage(payload=b"", content_topic=TOPIC, timestamp_ns=NOW_NS - 20 * SECOND_NS - 1),
            Ineligible.CLOCK,
        ),
    ],
)
def test_what_may_be_archived(message: WakuMessage, expected: Ineligible | None) -> None:
    assert ineligibility(message, now_ns=NOW_NS) == expected
