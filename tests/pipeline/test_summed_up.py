"""What is asked of sums first, and of rows only where these say so, is what rows say."""

import random
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline import coverage, silver

_EVENT: Final = (
    "log_id string, participant string, key_id string, app_version string, network string,"
    " previous_log_id string, file string, channel string, schema_version int, seq bigint,"
    " kind string, at_ms bigint, amount bigint, position bigint, mid bigint, lamport bigint,"
    " message_id string"
)
_NAMES: Final = tuple(column.split()[0] for column in _EVENT.split(", "))
_NEWEST: Final = (
    "channel string, participant string, snapshot_ms bigint, segment int, log_id string"
)
Row = dict[str, object]


def events(chance: random.Random) -> list[Row]:
    """Of ada, whose two logs have a snapshot between them, and of bob, who has none."""
    rows: list[Row] = []
    for participant, log in (("ada", "a1"), ("ada", "a2"), ("bob", "b1")):
        for seq in range(1, chance.choice([3, 40])):
            kind = chance.choice(["delivered", "delivered", "sent", "snapshot"])
            if participant == "bob" and kind == "snapshot":
                kind = "lost"
            mid = chance.choice([None, seq, seq, seq])
            rows.append(
                {
                    "log_id": log,
                    "participant": participant,
                    "channel": chance.choice(["c", "c", "d", None]),
                    "seq": seq,
                    "kind": kind,
                    "at_ms": chance.randrange(100),
                    "mid": mid,
                    "lamport": mid,
                    "message_id": f"{log} {seq}",
                }
            )
    return rows


def delivered_later(rows: list[Row], shot_ms: int) -> set[object]:
    """By the definition: after the snapshot by ``seq`` in its log, by the clock in others."""
    marks: dict[object, int] = {}
    for row in rows:
        if row["kind"] == "snapshot" and row["log_id"] == "a1":
            marks[row["channel"]] = max(marks.get(row["channel"], 0), int(str(row["seq"])))
    found: set[object] = set()
    for row in rows:
        if row["kind"] != "delivered" or row["channel"] is None or row["mid"] is None:
            continue
        is_here = row["participant"] == "ada" and row["channel"] == "c"
        mark = marks.get("c") if row["log_id"] == "a1" else None
        by_seq = mark is not None and int(str(row["seq"])) > mark
        by_clock = mark is None and int(str(row["at_ms"])) > shot_ms
        if not is_here or by_seq or by_clock:
            found.add(row["message_id"])
    return found


def told(chance: random.Random) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Rows of messages and of entries, few of which are told otherwise."""
    messages: list[tuple[object, ...]] = []
    entries: list[tuple[object, ...]] = []
    for mid in range(60):
        sender = chance.choice("abc")
        for participant in "abc":
            odd = chance.randrange(40)
            lamport = 5
            parents: list[int] | None = [1]
            content: str | None = "x"
            if odd == 0:
                lamport = 6
            elif odd == 1:
                parents = None if chance.random() < 0.5 else []
            elif odd == 2:
                content = None
            message_id = "other" if odd == 3 else f"m{mid}"
            by = "d" if odd == 4 else sender
            row = (None, "c", mid, lamport, message_id, "sds", by, participant, parents, content)
            messages += [row] * (0 if odd == 5 else 2 if odd == 6 else 1)
            entry = ("c", mid, 6 if odd == 7 else 5, "other" if odd == 8 else f"m{mid}")
            entries += [entry] * (0 if odd == 9 else 1)
    entries.append(("c", 99, 5, "m99"))
    return messages, entries


def plain(messages: list[tuple[object, ...]], entries: list[tuple[object, ...]]) -> dict[int, int]:
    """Of ids that one row of the sender's tells and nobody tells otherwise how many hold them."""
    found: dict[int, int] = {}
    for mid in range(100):
        said = [row for row in messages if row[2] == mid]
        held = [row for row in entries if row[1] == mid]
        own = sum(row[6] == row[7] for row in said)
        alike = {repr((*row[3:7], *row[8:])) for row in said}
        ids = {(row[3], row[4]) for row in said} | {(row[2], row[3]) for row in held}
        if own == 1 and len(alike) == 1 and len(ids) == 1:
            found[mid] = len(held)
    return found


_MESSAGE: Final = (
    "problem string, channel string, mid bigint, lamport bigint, message_id string,"
    " protocol string, sender string, participant string, parent_mids array<bigint>,"
    " content string"
)
_ENTRY: Final = "channel string, mid bigint, lamport bigint, message_id string"


@pytest.mark.parametrize("seed", range(3))
def test_of_what_is_plain_one_row_says_everything(spark: SparkSession, seed: int) -> None:
    messages, entries = told(random.Random(seed))
    message = spark.createDataFrame(messages, _MESSAGE)
    rows = silver.told_of(spark.createDataFrame(entries, _ENTRY), message).collect()
    ids = {row[2] for row in messages} | {row[1] for row in entries}
    assert {row["mid"] for row in rows} == ids
    found = {row["mid"]: row["holders"] for row in rows if row["is_plain"]}
    assert found == plain(messages, entries)
    assert 0 < len(found) < len(ids)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_plain_is_the_same_as_if_all_were_looked_at(spark: SparkSession, seed: int) -> None:
    """Also where a few ids are told of in two channels."""
    chance = random.Random(seed)
    messages, entries = told(chance)
    shared = set(chance.sample(range(60), 6))
    messages += [(row[0], "d", *row[2:]) for row in messages if row[2] in shared]
    entries += [("d", *row[1:]) for row in entries if row[1] in shared and chance.random() < 0.7]
    message = spark.createDataFrame(
        [(*row, chance.randrange(100)) for row in messages], f"{_MESSAGE}, sent_ms bigint"
    )
    entry = spark.createDataFrame(
        [(*row, f"p{number}") for number, row in enumerate(entries)],
        f"{_ENTRY}, participant string",
    )
    clock = spark.createDataFrame([("a", 7)], "participant string, offset_ms bigint")
    told_of = silver.told_of(entry, message)
    chosen = told_of.where("NOT is_plain").select("mid")
    holding = entry.join(chosen, "mid", "left_semi")
    alike = silver.told_alike(message.join(chosen, "mid", "left_semi"))
    quick = silver.plain_messages(message, told_of.where("is_plain"), clock)
    assert {row["mid"] for row in quick.collect()}.isdisjoint(shared)
    both = quick.unionByName(silver.known_messages(holding, alike, clock))
    slow = silver.known_messages(entry, silver.told_alike(message), clock)
    assert sorted(map(repr, both.collect())) == sorted(map(repr, slow.collect()))


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row.get(name) for name in _NAMES) for row in rows], _EVENT)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_delivered_after_a_snapshot_is_found_by_what_came_last(
    spark: SparkSession, seed: int
) -> None:
    chance = random.Random(seed)
    rows, shot_ms = events(chance), chance.choice([-1, 50, 100])
    newest = spark.createDataFrame([("c", "ada", shot_ms, 1, "a1")], _NEWEST)
    event = frame(spark, rows)
    unfinished = silver.unfinished(newest, coverage.heard(coverage.heard_in_blocks(event)))
    found = silver.delivered_later(event, unfinished).select("message_id").collect()
    assert {row["message_id"] for row in found} == delivered_later(rows, shot_ms)
