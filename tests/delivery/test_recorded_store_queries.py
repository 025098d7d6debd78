"""What Stores were asked for is recorded with what it brought, and when it brought nothing."""

import os
import time
from pathlib import Path

from engine.core.ids import UnixMs
from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.sqlite_log import LogReader, find_logs
from tests.runtime.history.history_stage import Person, StoreNode, until, until_stored

MANY = 30
COLUMNS = ("seq", "channel", "kind", "message_id", "attempt", "amount", "detail", "via")
Row = dict[str, object]


def recorder_in(place: Path) -> Recorder:
    return Recorder(
        RecorderSettings(
            directory=place, key=bytes(32), app_version="1", network="test", linger_ms=1
        ),
        now_ms=lambda: UnixMs(time.time_ns() // 1_000_000),
        random_bytes=os.urandom,
    )


def rows_of(place: Path, *kinds: Kind) -> list[Row]:
    (path,) = find_logs(place)
    with LogReader(path) as log:
        rows = [row for rows in log.batches(DELIVERY_EVENT, COLUMNS) for row in rows]
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    return [row for row in found if row["kind"] in {kind.value for kind in kinds}]


def queries_in(place: Path) -> list[tuple[Row, list[Row]]]:
    """Each that is over, with its hits, which stand before it."""
    found: list[tuple[Row, list[Row]]] = []
    hits: list[Row] = []
    for row in rows_of(place, Kind.STORE_QUERY, Kind.STORE_HIT):
        if row["kind"] == Kind.STORE_HIT.value:
            hits.append(row)
            continue
        mine = [hit for hit in hits if hit["attempt"] == row["attempt"]]
        hits = [hit for hit in hits if hit not in mine]
        found.append((row, mine))
    return found


async def test_a_query_says_what_it_brought_and_the_one_after_it_that_it_brought_nothing(
    tmp_path: Path,
) -> None:
    recorder, logs = recorder_in(tmp_path / "logs"), tmp_path / "logs"

    node = StoreNode(tmp_path, "store")
    address = await node.start()
    ann = await Person("Ann", tmp_path, peers=(address,)).start()
    group = await ann.engine.groups.create("Friends")
    await ann.until_online()
    await ann.say(group, MANY)
    link = await ann.engine.groups.make_invite_link(group)
    await until_stored(node, MANY)
    await ann.stop()
    bob = await Person("Bob", tmp_path, peers=(address,), recorder=recorder).start()
    await bob.engine.groups.join(link)
    await bob.until_told(group, MANY)
    # What was stored while a window was paged is asked for once more: there is nothing.
    await until(lambda: recorder.flush() and any(not hits for _, hits in queries_in(logs)))
    await bob.stop()
    await node.stop()
    queries = queries_in(logs)
    assert len(rows_of(logs, Kind.STORE_HIT)) == sum(len(hits) for _, hits in queries)
    brought = [str(hit["message_id"]) for _, hits in queries for hit in hits]
    received = rows_of(logs, Kind.RECEIVED)
    assert len(brought) == len(set(brought)) >= MANY
    assert set(brought) == {row["message_id"] for row in received if row["via"] == "store"}
    numbers = [query["attempt"] for query, _ in queries]
    assert len(numbers) == len(set(numbers))
    assert {query["detail"] for query, _ in queries} <= {"complete", "cancelled"}
    assert len({query["channel"] for query, _ in queries}) == 1
