"""The same audit without Spark, in a process of its own: what one machine can do with less.

``python -m benchmarks.pipeline.beside WAY PLACE`` prints a line of JSON.  ``hash_join``: DuckDB
with the plan that the audit has; ``every_row``: DuckDB with the oracle; ``polars``: the plain sort
of every log.
"""

import json
import sys
import time
from pathlib import Path

import duckdb

from benchmarks.pipeline import handed_in, hash_join, oracle
from benchmarks.pipeline.spark_work import truth, wrong

ROUNDS = 3


def by_hash_join(place: Path) -> dict[str, object]:
    seconds, spent, most_wrong = [], [], 0
    with duckdb.connect() as connection:
        hash_join.views(connection, place)
        for _ in range(ROUNDS):
            began, cpu = time.perf_counter(), time.process_time()
            found = hash_join.witnesses(connection)
            seconds.append(time.perf_counter() - began)
            spent.append(time.process_time() - cpu)
            most_wrong = max(most_wrong, wrong(place, found))
    return {"seconds": seconds, "cpu_seconds": spent, "wrong": most_wrong}


def by_every_row(place: Path) -> dict[str, object]:
    with duckdb.connect() as connection:
        hash_join.views(connection, place)
        began, cpu = time.perf_counter(), time.process_time()
        rows = oracle.witnesses(connection)
        seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    found = {(*row[:4], row[6]) for row in rows}
    return {"seconds": [seconds], "cpu_seconds": [spent], "wrong": wrong(place, found)}


def by_one_query(place: Path) -> dict[str, object]:
    """Of what was handed in, so from reading files on; the process is timed by who starts it."""
    return {"wrong": wrong(place / "made", handed_in.witnesses(place / "logs"))}


def in_polars(place: Path) -> dict[str, object]:
    """Missing and reordered entries: there are no extra ones, and causality is left out."""
    import polars as pl  # noqa: PLC0415 - only this process needs it

    whose = ["channel", "participant"]
    began, cpu = time.perf_counter(), time.process_time()
    entry = pl.scan_parquet(place / "entry" / "*.parquet")
    message = pl.scan_parquet(place / "message" / "*.parquet")
    member = pl.scan_parquet(place / "member.parquet")
    held = entry.sort(*whose, "lamport", "mid").with_columns(
        (pl.int_range(pl.len()).over(whose)).alias("expected")
    )
    moved = held.filter(pl.col("position") != pl.col("expected")).select(*whose, "mid")
    wanted = message.select("channel", "mid").join(member.select(whose), on="channel")
    absent = wanted.join(entry.select(*whose, "mid"), on=[*whose, "mid"], how="anti")
    found = {
        (*row, kind)
        for kind, rows in (("reordered", moved), ("missing", absent.select(*whose, "mid")))
        for row in rows.collect(engine="streaming").iter_rows()
    }
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    known = {
        (row[0], row[1], row[3], row[2])
        for row in truth(place)
        if row[2] in ("missing", "reordered")
    }
    return {"seconds": [seconds], "cpu_seconds": [spent], "wrong": len(found ^ known)}


if __name__ == "__main__":
    work = {
        "hash_join": by_hash_join,
        "every_row": by_every_row,
        "polars": in_polars,
        "handed_in": by_one_query,
    }
    print(json.dumps(work[sys.argv[1]](Path(sys.argv[2]))))
