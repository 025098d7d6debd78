"""Exports tell what the logs and Stores tell, whole or not at all, and say what they left out."""

import asyncio
import importlib
import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from chat_app.__main__ import main
from chat_app.delivery_options import moment_ms
from chat_app.export_paging import StoreExport
from chat_app.export_store import StoreQuery, asked_rows
from chat_app.settings import Settings
from engine.codec.waku import encode_waku_message
from engine.core.errors import TransportError
from engine.core.history.config import HistoryConfig
from engine.core.history.progress import StoreRef
from engine.core.history.queries import (
    Ask,
    Candidate,
    HistoryMessage,
    Outcome,
    Page,
    StoreVersion,
    Window,
)
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_archive import ArchivedMessage
from engine.delivery import snapshot_request as asking
from engine.delivery.check import problem_of
from engine.delivery.contract import DELIVERY_EVENT, LOG_TABLES, MESSAGE, STORE_MESSAGE, Table
from engine.delivery.log_writer import Limits, LogWriter, Owner
from engine.delivery.rows import EventRow, MessageRow, Rows, SnapshotRow
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.network.libp2p.ports import ProtocolId
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import ServiceSettings, all_services
from engine.network.node.settings import NodeSettings
from engine.network.stores.host_stores import PROTOCOLS
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.persistence.archive import Retention, SqliteArchive
from engine.persistence.archive_thread import ThreadedArchive

CHANNEL = "0123456789abcdef"
HASH = STORE_MESSAGE.names.index("waku_hash")


@pytest.fixture(autouse=True)
def _nobody_is_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs are written here and look as if a program still had them; none answers."""
    monkeypatch.setattr(asking.ask_for_snapshots, "__kwdefaults__", {"within_s": 0.2})


def _log(place: Path, participant: str = "a" * 16) -> Path:
    writer = LogWriter(
        place,
        Owner(participant=participant, key_id="b" * 16, app_version="1.0", network="test"),
        limits=Limits(),
        now_ms=lambda: 1,
        random_bytes=os.urandom,
    )
    events = [
        EventRow(CHANNEL, "sds", "received", f"m{n}", n, bytes(32), at_ms=n * 1_000, mono_ns=n)
        for n in range(10)
    ]
    message = MessageRow(CHANNEL, "sds", "m1", -7, 5, CHANNEL, None, '["p\\u00e9"]', "[-9]")
    snapshot = SnapshotRow(CHANNEL, "sds", 3, 0, "m1", -7, 5)
    writer.append(Rows(events=events, messages=[message], snapshots=[snapshot]))
    writer.close()
    return writer.path


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _row_of(table: Table, line: dict[str, object]) -> tuple[object, ...]:
    def value(name: str) -> object:
        found = line.get(name)
        is_bytes = table.column(name).type == "binary"
        return bytes.fromhex(str(found)) if is_bytes and found is not None else found

    return tuple(map(value, table.names))


def test_json_lines_make_the_same_rows_again(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for participant in ("a" * 16, "c" * 16):
        _log(logs, participant)
    out = tmp_path / "out"
    assert main(["export-log", "--logs", str(logs), "--format", "jsonl", "--out", str(out)]) == 0
    for table in LOG_TABLES:
        read = [_row_of(table, line) for line in _lines(out / f"{table.name}.jsonl")]
        there = []
        for path in find_logs(logs):
            with LogReader(path) as log:
                there += [row for row, _ in log.checked(table)]
        assert read == there
        assert [row for row in read if problem_of(table, row)] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "out"]


def test_since_and_until_bound_the_events_and_nothing_else(tmp_path: Path) -> None:
    path, out = _log(tmp_path), tmp_path / "out"
    since, until = "1970-01-01T00:00:03", "1970-01-01T00:00:05+00:00"
    arguments = ["--format", "jsonl", "--since", since, "--until", until, "--out", str(out)]
    assert main(["export-log", "--logs", str(path), *arguments]) == 0
    assert [line["at_ms"] for line in _lines(out / "delivery_event.jsonl")] == [3_000, 4_000]
    assert len(_lines(out / "message.jsonl")) == 1


def test_a_bad_log_and_bad_rows_are_told_and_the_rest_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = _log(tmp_path), tmp_path / "bad.delivery.db"
    bad.write_bytes(b"nothing of the kind" * 50)
    connection = sqlite3.connect(good)
    connection.execute("UPDATE delivery_event SET kind = 'invented' WHERE seq = 2")
    connection.commit()
    connection.close()
    out = tmp_path / "out"
    arguments = ["--logs", str(tmp_path), "--format", "jsonl", "--out", str(out)]
    assert main(["export-log", *arguments]) == 1
    told = capsys.readouterr().err
    assert str(bad) in told
    assert "1 rows do not keep to the contract" in told
    assert len(_lines(out / "delivery_event.jsonl")) == 9


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--logs", "none", "--out", "out"], "no such file"),
        (["--out", "there"], "is there already"),
        (["--since", "yesterday", "--out", "out"], "allowed is a time"),
        (["--format", "csv", "--out", "out"], "csv"),
    ],
)
def test_what_cannot_be_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    log = [] if "--logs" in arguments else ["--logs", str(_log(tmp_path))]
    chosen = [] if "--format" in arguments else ["--format", "jsonl"]
    status = main(["export-log", *log, *chosen, *arguments])
    assert status in {1, 2}
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_a_profile_without_records_is_told_how_to_make_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "profile" / "delivery").mkdir(parents=True)
    profile = ["--profile-dir", str(tmp_path / "profile")]
    out = ["--format", "jsonl", "--out", str(tmp_path / "out")]
    assert main(["export-log", *profile, *out]) == 2
    assert "--record-delivery" in capsys.readouterr().err
    nobody = ["--profile-dir", str(tmp_path / "nobody")]
    assert main(["export-log", *nobody, *out]) == 2
    assert "--record-delivery" in capsys.readouterr().err


def test_nothing_is_made_where_nothing_can_be_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    chosen = ["--format", "jsonl", "--out", str(out)]
    assert main(["export-log", "--logs", str(tmp_path / "none"), *chosen]) == 2
    assert "no such file" in capsys.readouterr().err
    assert not out.exists(), "or the next try would find it in its way"
    assert main(["export-log", "--logs", str(_log(tmp_path)), *chosen]) == 0


def test_parquet_holds_the_same_rows_or_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = _log(tmp_path / "logs"), tmp_path / "out"
    status = main(["export-log", "--logs", str(path), "--out", str(out)])
    try:
        parquet = importlib.import_module("pyarrow.parquet")  # an extra, which may lack
    except ImportError:
        assert status == 2
        assert "causerie[pipeline]" in capsys.readouterr().err
        assert not out.exists()
        return
    assert status == 0
    with LogReader(path) as log:
        for table in LOG_TABLES:
            read = parquet.read_table(out / f"{table.name}.parquet")
            columns = [read.column(name).to_pylist() for name in table.names]
            assert list(zip(*columns, strict=True)) == [row for row, _ in log.checked(table)]


def test_moments() -> None:
    assert moment_ms("2026-11-20") == moment_ms("2026-11-20T00:00:00+00:00") == 1_795_132_800_000
    assert moment_ms("2h") - moment_ms("3h") in range(3_599_000, 3_601_001)
    assert DELIVERY_EVENT.names.index("at_ms") != MESSAGE.names.index("mid")


# --- Stores ---------------------------------------------------------------------------------------


def _archive(path: Path, count: int) -> list[WakuMessage]:
    archive, shard_of = SqliteArchive.open(path), Sharding().pubsub_topic
    messages = [
        WakuMessage(
            payload=bytes(number + 1),
            content_topic=ContentTopic(f"/test/1/{number % 2}/proto"),
            timestamp_ns=(number + 1) * 10**9,
        )
        for number in range(count)
    ]
    archive.append(
        [
            ArchivedMessage(
                message_hash=WakuHash(message_hash(shard_of(message.content_topic), message)),
                pubsub_topic=shard_of(message.content_topic),
                content_topic=message.content_topic,
                timestamp_ns=message.timestamp_ns or 0,
                digest=bytes([number]) * 32,
                data=encode_waku_message(message),
            )
            for number, message in enumerate(messages)
        ],
        now_ns=10**18,
    )
    archive.close()
    return messages


def test_an_archive_of_ours_is_exported_by_time_and_topic(tmp_path: Path) -> None:
    messages = _archive(tmp_path / "archive.db", 20)
    source = ["--archive", str(tmp_path / "archive.db"), "--format", "jsonl"]
    assert main(["export-store", *source, "--out", str(tmp_path / "all")]) == 0
    rows = _lines(tmp_path / "all" / "store_message.jsonl")
    assert [row["payload_bytes"] for row in rows] == [len(one.payload) for one in messages]
    for row in rows:
        assert problem_of(STORE_MESSAGE, _row_of(STORE_MESSAGE, row)) is None
    chosen = ["--since", "1970-01-01T00:00:05", "--until", "1970-01-01T00:00:10"]
    topics = ["--topics", "/test/1/0/proto", "/unknown/1/x/proto"]
    assert main(["export-store", *source, *chosen, *topics, "--out", str(tmp_path / "some")]) == 0
    some = _lines(tmp_path / "some" / "store_message.jsonl")
    assert [row["timestamp_ns"] for row in some] == [5 * 10**9, 7 * 10**9, 9 * 10**9]


def test_what_is_no_archive_and_who_is_no_store_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no").write_bytes(b"no archive" * 100)
    out = ["--format", "jsonl", "--out", str(tmp_path / "out"), "--profile-dir", str(tmp_path)]
    peer = "/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
    for source, told in (
        (["--archive", str(tmp_path / "no")], "no archive"),
        (["--archive", str(tmp_path / "absent")], "no such file"),
        (["--store", "/ip4/127.0.0.1/tcp/1"], "peer id"),
        (["--store", f"/ip4/127.0.0.1/tcp/1{peer}"], "--store"),
        (["--store", "nonsense"], "nonsense"),
    ):
        assert main(["export-store", *source, *out]) == 2
        error = capsys.readouterr().err
        assert told in error
        assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


async def _ask_node(place: Path, query: StoreQuery) -> list[Sequence[object]]:
    """Of a node of ours that has this archive."""
    archive = await ThreadedArchive.open(place / "archive.db", Retention(max_age_ns=0))
    services = ServiceSettings(store=all_services().store)
    node = EmbeddedNode(NodeSettings(network_key=b"k" * 32, services=services), archive=archive)
    try:
        await node.start()
        return await asked_rows(node.addresses()[0], Settings(), query)
    finally:
        await node.stop()
        await archive.close()


def test_a_node_that_serves_store_is_paged_to_its_end(tmp_path: Path) -> None:
    messages = _archive(tmp_path / "archive.db", 250)

    rows = asyncio.run(_ask_node(tmp_path, StoreQuery()))
    assert [problem_of(STORE_MESSAGE, row) for row in rows if problem_of(STORE_MESSAGE, row)] == []
    sizes = STORE_MESSAGE.names.index("payload_bytes")
    assert [row[sizes] for row in rows] == [len(one.payload) for one in messages]
    topic = ContentTopic("/test/1/1/proto")
    query = StoreQuery(content_topics=(topic,), since_ns=200 * 10**9)
    some = asyncio.run(_ask_node(tmp_path, query))
    assert [row[sizes] for row in some] == list(range(200, 251, 2))


def test_a_store_that_speaks_the_older_version_alone_is_paged_by_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own node's older version, for real; the newer is not to be had."""
    monkeypatch.setitem(PROTOCOLS, StoreVersion.V3, ProtocolId("/of/nobody/1"))
    messages = _archive(tmp_path / "archive.db", 250)
    topics = tuple(ContentTopic(f"/test/1/{number}/proto") for number in range(2))
    rows = asyncio.run(_ask_node(tmp_path, StoreQuery(content_topics=topics)))
    assert {row[HASH] for row in rows} == {
        message_hash(Sharding().pubsub_topic(one.content_topic), one) for one in messages
    }
    assert len(rows) == len(messages)
    with pytest.raises(TransportError, match="--topics"):
        asyncio.run(_ask_node(tmp_path, StoreQuery()))


class _Circle:
    """A Store that never ends, or never says anything new."""

    def __init__(self, *, old: bool) -> None:
        self._old = old
        self._number = 0

    async def perform(self, _ask: Ask) -> Outcome:
        self._number += 1
        number = 0 if self._old else self._number
        topic = ContentTopic("/t/1/x/proto")
        message = WakuMessage(payload=b"", content_topic=topic, timestamp_ns=number + 1)
        item = HistoryMessage(WakuHash(number.to_bytes(32, "big")), message, PubsubTopic("p"))
        return Page(messages=(item,), cursor=WakuHash(self._number.to_bytes(32, "big")))


@pytest.mark.parametrize(("old", "told"), [(True, "nothing new"), (False, "more pages")])
def test_an_endless_store_ends(old: bool, told: str) -> None:
    async def ask() -> None:
        store = Candidate(store=StoreRef("s"), versions=(StoreVersion.V3,))
        config = HistoryConfig(max_pages=9)
        export = StoreExport(store, _Circle(old=old).perform, config=config)
        window = Window(pubsub_topic=None, content_topics=(), start_ns=0, end_ns=10**18)
        async for page in export.messages(window):
            assert len(page) == 1

    with pytest.raises(TransportError, match=told):
        asyncio.run(ask())


def test_who_was_killed_is_not_waited_for_for_ever_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _log(tmp_path / "logs")
    beside = path.with_name(f"{path.name}-wal")
    beside.touch()  # as a process leaves it that was killed
    arguments = ["--logs", str(path), "--format", "jsonl"]
    assert main(["export-log", *arguments, "--out", str(tmp_path / "out")]) == 0
    assert "nobody who writes it answers" in capsys.readouterr().err
    assert len(_lines(tmp_path / "out" / "delivery_event.jsonl")) == 10
    assert list(path.parent.glob("*wanted")) == []
