"""Searching a million messages: how long it takes, how large the index is, what it costs to keep.

The profiles are those of ``scale``, in copies, which are indexed as an old profile is.  Each text
has its own number and the same words, so every question is either about one message or about all
of them.  Then the texts of one profile are made Chinese: 28 characters of 20 000 made-up words of
one to three characters, drawn by Zipf's law.  A search is what the window's thread does: a
connection of its own, the newest 50.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Final

from msgspec import structs

from benchmarks.report import Figure, Report, figure_of
from benchmarks.scale import MILLION, PATIENCE_S, PLACE, QUICK
from benchmarks.scale_profile import STEP_MS, make_profile
from benchmarks.scale_twin import load_session, read_messages
from chat_app.compose import open_store, unix_now_ms
from engine.answers import FOUND_SIZE
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.ports import ProfileStore, StoreWrite
from engine.core.search import SearchQuery, SearchReader
from engine.core.search_text import wanted
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.persistence.connection import transaction
from engine.persistence.database import open_database
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.inputs import MessageArrived

GROUPS: Final = 200
RUNS: Final = 40
RECEIVED: Final = 2_000
TOGETHER: Final = 100
FIND_BAR_MS: Final = 30.0
SIZE_BAR: Final = 1.0
INTAKE_BAR: Final = 1.05
TEXT_BYTES: Final = 80
CHINESE_CHARACTERS: Final = 28
IDEOGRAPHS: Final = 3_500
CHINESE_WORDS: Final = 20_000
RARE_FROM: Final = 8_000
ASKED_WORDS: Final = 40


def run(quick: bool) -> Report:
    report = Report(name="search")
    texts = QUICK if quick else MILLION
    for groups in (1, GROUPS):
        name = "one group" if groups == 1 else f"{groups} groups"
        made = make_profile(PLACE / f"{groups}-{texts}", groups, texts)
        with tempfile.TemporaryDirectory(dir=PLACE) as copies:
            place = Path(copies) / "profile"
            shutil.copytree(PLACE / f"{groups}-{texts}", place)
            report.figures += _indexed(place, name, TEXT_BYTES * texts)
            report.figures += _found(place, name, texts)
            if groups == 1:
                report.figures += _received(place, made[0], Path(copies) / "said")
                report.figures += _chinese(place)
    return report


def _store(place: Path) -> ProfileStore:
    return open_store(open_profile_directory(place), force_key_file=True).store


def _open(place: Path) -> sqlite3.Connection:
    directory = open_profile_directory(place)
    key = obtain_database_key(directory, force_key_file=True).key
    return open_database(directory.database, key)


def _indexed(place: Path, name: str, text_bytes: int) -> list[Figure]:
    connection = _open(place)
    texts = connection.execute("SELECT count(*) FROM message").fetchone()[0]
    searching = SqliteProfileStore(connection).searching
    searching.rebuild()
    size = _used_bytes(connection)
    spent: list[float] = []
    began = time.process_time()
    while True:
        before = time.perf_counter()
        indexed = searching.index_some(old=True)
        spent.append(1_000 * (time.perf_counter() - before))
        if not (indexed.is_more or indexed.old_left):
            break
    each = 1_000_000 * (time.process_time() - began) / texts
    grown = _used_bytes(connection) - size
    connection.close()
    return [
        figure_of(f"{name}: index per byte of text", [grown / text_bytes], "", SIZE_BAR),
        figure_of(f"{name}: to index a message, processor time", [each], "µs"),
        figure_of(f"{name}: a slice of an old profile", spent, "ms"),
    ]


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _found(place: Path, name: str, texts: int) -> list[Figure]:
    store = _store(place)
    reader = store.searching.reader()
    if reader is None:
        raise ValueError("a profile on disk")
    now_ms, long_ago = unix_now_ms(), texts // 2 * STEP_MS
    person = ParticipantId("nobody who wrote")
    (one,) = store.searching.find(SearchQuery(wanted=wanted("people")), limit=1, stop=Event())
    asked = {
        "a word of every message": SearchQuery(wanted=wanted("people")),
        "one letter": SearchQuery(wanted=wanted("p")),
        "a word and a person": SearchQuery(wanted=wanted("people"), sender_id=one.sender_id),
        "a word and nobody's": SearchQuery(wanted=wanted("people"), sender_id=person),
        "a word, long ago": SearchQuery(
            wanted=wanted("people"), until_ms=UnixMs(now_ms - long_ago)
        ),
        "a word, with a file": SearchQuery(wanted=wanted("people"), has_file=True),
        "one message": SearchQuery(wanted=wanted(f"{texts // GROUPS // 3} people")),
        "nothing": SearchQuery(wanted=wanted("zebra")),
    }
    figures = [_timed(f"{name}: {what}", reader, [one] * RUNS) for what, one in asked.items()]
    reader.close()
    store.close()
    return figures


def _timed(name: str, reader: SearchReader, queries: Sequence[SearchQuery]) -> Figure:
    taken: list[float] = []
    for query in queries:
        began = time.perf_counter()
        reader.find(query, limit=FOUND_SIZE, stop=Event())
        taken.append(1_000 * (time.perf_counter() - began))
    taken.sort()
    return Figure(
        figure=f"{name}, p95",
        value=taken[int(0.95 * (len(taken) - 1))],
        unit="ms",
        spread=(taken[0], taken[-1]),
        bar=FIND_BAR_MS,
    )


def _chinese(place: Path) -> list[Figure]:
    chance = random.Random(1)  # noqa: S311 - what is said, nothing else
    signs = [chr(0x4E00 + 5 * number) for number in range(IDEOGRAPHS)]
    by_rank = [1 / (number + 3) for number in range(CHINESE_WORDS)]
    words = [
        "".join(chance.choices(signs, by_rank[:IDEOGRAPHS], k=chance.choice((1, 2, 2, 2, 3))))
        for _ in range(CHINESE_WORDS)
    ]
    figures = _indexed(
        place,
        "Chinese",
        _rewritten(place, lambda count: chance.choices(words, by_rank, k=count)),
    )
    store = _store(place)
    reader = store.searching.reader()
    if reader is None:
        raise ValueError("a profile on disk")
    pairs = [word for word in words if len(word) == 2]
    asked = {
        "frequent words": pairs[:ASKED_WORDS],
        "rare words": pairs[RARE_FROM : RARE_FROM + ASKED_WORDS],
        "two frequent characters": [one + signs[7] for one in signs[10 : 10 + ASKED_WORDS]],
        "one character": signs[:ASKED_WORDS],
        "a rare character": signs[-ASKED_WORDS:],
    }
    (one,) = store.searching.find(SearchQuery(wanted=wanted(signs[0])), limit=1, stop=Event())
    figures += [
        _timed(f"Chinese: {what}", reader, [SearchQuery(wanted=wanted(one)) for one in queries])
        for what, queries in asked.items()
    ]
    filters = {
        "a person": SearchQuery(wanted=wanted(""), sender_id=one.sender_id),
        "nobody's": SearchQuery(wanted=wanted(""), sender_id=ParticipantId("nobody who wrote")),
        "with a file": SearchQuery(wanted=wanted(""), has_file=True),
    }
    for what, filtered in filters.items():
        queries = [structs.replace(filtered, wanted=wanted(one)) for one in asked["frequent words"]]
        figures.append(_timed(f"Chinese: frequent words, {what}", reader, queries))
    reader.close()
    store.close()
    return figures


def _rewritten(place: Path, draw: Callable[[int], Sequence[str]]) -> int:
    """All texts of the profile are of words so drawn; returns their bytes."""
    connection = _open(place)
    keys = [key for (key,) in connection.execute("SELECT message_key FROM message")]
    words = iter(draw(CHINESE_CHARACTERS * len(keys)))
    texts = [_filled(words) for _ in keys]
    with transaction(connection):
        connection.executemany(
            "UPDATE message SET text = ? WHERE message_key = ?", zip(texts, keys, strict=True)
        )
    connection.close()
    return sum(len(text.encode()) for text in texts)


def _filled(words: Iterator[str]) -> str:
    text = ""
    while len(text) < CHINESE_CHARACTERS:
        text += next(words)
    return text[:CHINESE_CHARACTERS]


def _received(place: Path, group: ConversationId, said: Path) -> list[Figure]:
    """What indexing adds to receiving, as history comes: a hundred messages a transaction."""
    arguments = (str(place), group, str(RECEIVED), str(said))
    twin = [sys.executable, "-m", "benchmarks.scale_twin", *arguments]
    subprocess.run(twin, check=True, timeout=PATIENCE_S, stdout=sys.stderr, env=os.environ)  # noqa: S603
    store = _store(place)
    session = load_session(store, group)
    ratios: list[float] = []
    each: list[float] = []
    pending: list[StoreWrite] = []
    spent = 0.0
    for number, message in enumerate(read_messages(said), start=1):
        topic = Sharding().pubsub_topic(message.content_topic)
        began = time.process_time()
        arrived = MessageArrived(message, message_hash(topic, message))
        pending += session.handle(arrived, now_ms=unix_now_ms()).writes
        if number % TOGETHER == 0:
            store.apply(pending)
            pending.clear()
        spent += time.process_time() - began
        if number % (5 * TOGETHER) == 0:
            began = time.process_time()
            while store.searching.index_some(old=False).is_more:
                pass
            added = time.process_time() - began
            ratios.append((spent + added) / spent)
            each.append(1_000_000 * spent / (5 * TOGETHER))
            spent = 0.0
    store.close()
    return [
        figure_of("to receive a message, without the index, processor time", each, "µs"),
        figure_of("receive, with the index relative to without", ratios, "times", INTAKE_BAR),
    ]
