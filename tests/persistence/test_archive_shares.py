"""Whose messages go when an archive is full: sums that hold, and who gives way first."""

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlcipher3 import dbapi2

from engine.core.errors import StorageError
from engine.core.ids import ContentTopic
from engine.core.waku_archive import OURSELVES, ArchivedMessage, Source
from engine.persistence.archive import DAY_NS, ROW_BYTES, Retention, SqliteArchive
from tests.persistence.archive_examples import (
    NOW_NS,
    OTHER_TOPIC,
    TOPIC,
    OpenArchive,
    archived,
    query,
)

LIMIT = 600_000
SIZE = 850
ALICE, BOB = Source("home", "alice"), Source("home", "bob")
MALLORY = Source("elsewhere", "mallory")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[OpenArchive]:
    made = OpenArchive(tmp_path / "archive.db", Retention(max_bytes=LIMIT))
    yield made
    made.close()


class Numbers:
    """Messages that differ."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(
        self, count: int, source: Source, topic: ContentTopic = TOPIC, *, topics: int = 0
    ) -> list[ArchivedMessage]:
        """``topics``: spread over so many, instead of the one that is named."""
        made: list[ArchivedMessage] = []
        for _ in range(count):
            self._next += 1
            message = archived(
                self._next, timestamp_ns=NOW_NS + self._next, size=SIZE, source=source
            )
            spread = ContentTopic(f"/causerie/1/{self._next % topics}/proto") if topics else topic
            made.append(replace(message, content_topic=spread))
        return made


def kept(archive: OpenArchive, messages: list[ArchivedMessage]) -> int:
    hashes = tuple(message.message_hash for message in messages)
    return len(archive.query(query(message_hashes=hashes, limit=len(hashes))).rows)


def flood(archive: OpenArchive, messages: list[ArchivedMessage]) -> None:
    for first in range(0, len(messages), 20):
        archive.append(messages[first : first + 20])
        assert archive.statistics().used_bytes <= LIMIT


def test_the_network_with_most_gives_way_whatever_its_peers_are_called(
    archive: OpenArchive,
) -> None:
    made = Numbers()
    honest = made(40, ALICE) + made(40, BOB)
    archive.append(honest)
    for number in range(50):
        flood(archive, made(20, replace(MALLORY, peer=f"mallory {number}"), topics=10))
    assert kept(archive, honest) == 80


def test_in_a_network_the_peer_with_most_gives_way(archive: OpenArchive) -> None:
    made = Numbers()
    honest = made(40, ALICE)
    archive.append(honest)
    flood(archive, made(1_000, BOB, topics=100))
    assert kept(archive, honest) == 40


def test_of_a_peer_the_largest_topic_gives_way(archive: OpenArchive) -> None:
    """A neighbour that relays passes on what others say as well as a flood."""
    made = Numbers()
    honest = made(40, ALICE, OTHER_TOPIC)
    archive.append(honest)
    flood(archive, made(1_000, ALICE))
    assert kept(archive, honest) == 40


@pytest.mark.parametrize("how", ["a day old", "asked for"])
def test_half_is_for_topics_that_are_established(archive: OpenArchive, how: str) -> None:
    """Also against a flood that comes the same way and in topics of one message each."""
    made = Numbers()
    honest = made(100, ALICE, OTHER_TOPIC)
    archive.append(honest)
    if how == "asked for":
        archive.ask_by_name(OTHER_TOPIC)
    else:
        assert archive.writer.age_topics(now_ns=NOW_NS + DAY_NS - 1) == 0
        assert archive.writer.age_topics(now_ns=NOW_NS + DAY_NS) == 1
    flood(archive, made(1_000, ALICE, topics=1_000))
    assert kept(archive, honest) == 100


def test_without_that_many_small_topics_push_out_a_large_one(archive: OpenArchive) -> None:
    """What the reserve is for: the shares of a topic alone do not show who floods."""
    made = Numbers()
    honest = made(100, ALICE, OTHER_TOPIC)
    archive.append(honest)
    flood(archive, made(1_000, ALICE, topics=1_000))
    assert kept(archive, honest) < 10


def test_established_topics_have_more_than_half_while_nobody_needs_it(
    archive: OpenArchive,
) -> None:
    made = Numbers()
    archive.append(made(20, ALICE, OTHER_TOPIC))
    archive.ask_by_name(OTHER_TOPIC)
    flood(archive, made(500, ALICE, OTHER_TOPIC))
    assert archive.statistics().used_bytes > LIMIT * 0.8
    flood(archive, made(500, BOB, topics=50))
    found = archive.query(query(content_topics=(OTHER_TOPIC,), limit=1_000)).rows
    assert len(found) >= 0.4 * archive.statistics().messages


JUNK = [ContentTopic(f"/causerie/1/{number}/proto") for number in range(100)]
"""What ``Numbers`` spreads over."""


def ask_for_junk(archive: OpenArchive, made: Numbers) -> None:
    """It comes the same way as what Alice brings."""
    for _ in range(10):
        flood(archive, made(100, ALICE, topics=100))
        for topic in JUNK:
            archive.ask_by_name(topic, MALLORY)


@pytest.mark.parametrize("asker", [BOB, Source("elsewhere", "bob")])
def test_who_asks_for_most_gives_way_however_it_came(archive: OpenArchive, asker: Source) -> None:
    """Also in the same network."""
    made = Numbers()
    honest = made(80, ALICE, OTHER_TOPIC)
    archive.append(honest)
    archive.ask_by_name(OTHER_TOPIC, asker)
    ask_for_junk(archive, made)
    assert kept(archive, honest) == 80


def test_who_asks_for_what_others_asked_for_takes_no_place_from_it(archive: OpenArchive) -> None:
    made = Numbers()
    honest = made(80, ALICE, OTHER_TOPIC)
    archive.append(honest)
    archive.ask_by_name(OTHER_TOPIC, BOB)
    archive.ask_by_name(OTHER_TOPIC, MALLORY)
    ask_for_junk(archive, made)
    assert kept(archive, honest) == 80


def test_it_counts_for_whoever_has_least_though_somebody_else_asked_first(
    archive: OpenArchive,
) -> None:
    made = Numbers()
    honest = made(80, ALICE, OTHER_TOPIC)
    archive.append(honest)
    archive.ask_by_name(OTHER_TOPIC, MALLORY)
    flood(archive, made(100, ALICE, topics=100))
    for topic in JUNK:
        archive.ask_by_name(topic, MALLORY)
    archive.ask_by_name(OTHER_TOPIC, BOB)
    ask_for_junk(archive, made)
    assert kept(archive, honest) == 80


@dataclass(frozen=True)
class Step:
    count: int
    source: Source
    topic: int
    asker: Source | None
    days: int


steps = st.builds(
    Step,
    count=st.integers(1, 60),
    source=st.sampled_from([ALICE, BOB, MALLORY, OURSELVES]),
    topic=st.integers(0, 3),
    asker=st.none() | st.sampled_from([ALICE, BOB, MALLORY]),
    days=st.integers(0, 2),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=12))
def test_the_sums_are_those_of_the_messages(taken: list[Step]) -> None:
    made, now_ns = Numbers(), NOW_NS
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "archive.db"
        archive = OpenArchive(path, Retention(max_age_ns=2 * DAY_NS, max_bytes=LIMIT))
        for step in taken:
            topic = ContentTopic(f"/causerie/1/{step.topic}/proto")
            now_ns += step.days * DAY_NS
            new = [
                replace(message, timestamp_ns=now_ns)
                for message in made(step.count, step.source, topic)
            ]
            archive.append(new, now_ns=now_ns)
            archive.writer.age_topics(now_ns=now_ns)
            while archive.retain(now_ns=now_ns):
                pass
            if step.asker is not None:
                archive.ask_by_name(topic, step.asker)
            check_sums(path)
        archive.close()


def check_sums(path: Path) -> None:
    """With the archive's own library: another one in the same process would drop its locks."""
    with closing(dbapi2.connect(str(path))) as connection:
        by_share: Counter[int] = Counter()
        for share_key, size in connection.execute("SELECT share_key, length(data) FROM message"):
            by_share[share_key] += size + ROW_BYTES
        by_source: Counter[int] = Counter()
        established = dict(connection.execute("SELECT topic_key, established FROM topic"))
        parents = dict(connection.execute("SELECT source_key, parent_key FROM source"))
        shares = connection.execute("SELECT share_key, source_key, topic_key, bytes FROM share")
        for share_key, source_key, topic_key, size in shares:
            assert by_share.pop(share_key) == size
            above = source_key
            while parents[above]:
                by_source[above] += size
                above = parents[above]
            by_source[above] += size
            assert above == (2 if established[topic_key] else 1)
        assert not by_share
        for source_key, size in connection.execute("SELECT source_key, bytes FROM source"):
            assert by_source.pop(source_key, 0) == size
            assert size > 0 or source_key in {1, 2}
        assert not by_source


def test_an_archive_of_an_earlier_test_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE message (message_key INTEGER PRIMARY KEY)")
        connection.execute("PRAGMA user_version = 1")
    before = path.read_bytes()
    with pytest.raises(StorageError, match="earlier test version"):
        SqliteArchive.open(path)
    assert path.read_bytes() == before
