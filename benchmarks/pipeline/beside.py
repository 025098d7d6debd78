"""The same audit without Spark, in a process of its own: what one machine can do with less.

``python -m benchmarks.pipeline.beside duckdb|polars PLACE`` prints a line of JSON.  DuckDB runs the
oracle, every row looked at, and the digest pass; Polars the plain sort of every log.
"""

import json
import sys
import time
from pathlib import Path
from typing import Final

import duckdb

from benchmarks.pipeline import oracle
from benchmarks.pipeline.spark_work import truth

_DIGEST: Final = """
SELECT count(*) FROM (
  SELECT channel, participant, bucket, count(*) AS n, min(position) AS start, bit_xor(mid) AS x,
    bit_xor(keyed) AS keyed_x, sum(rest) % {p} AS s, sum(rest * (position % {p}) % {p}) % {p} AS d,
    sum(keyed_rest) % {k} AS keyed_s, sum(keyed_rest * (position % {k}) % {k}) % {k} AS keyed_d
  FROM (
    SELECT e.channel, participant, position, mid, b.bucket, mid % {p} AS rest,
      hash(5, mid, e.lamport) AS keyed, (hash(5, mid, e.lamport) % {k})::BIGINT AS keyed_rest
    FROM entry e ASOF JOIN (
      SELECT channel, lamport, position // 256 AS bucket FROM message WHERE position % 256 = 0
    ) b ON e.channel = b.channel AND e.lamport >= b.lamport
  )
  GROUP BY ALL
)
"""


def in_duckdb(place: Path) -> dict[str, object]:
    with duckdb.connect() as connection:
        for name, files in (("entry", "entry/*"), ("message", "message/*"), ("member", "member*")):
            connection.execute(f"CREATE VIEW {name} AS FROM '{place}/{files}.parquet'")
        began = time.perf_counter()
        connection.execute(_DIGEST.format(p=2**31 - 1, k=2**31 - 19)).fetchall()
        digest_s = time.perf_counter() - began
        began, cpu = time.perf_counter(), time.process_time()
        rows = oracle.witnesses(connection)
        naive_s = time.perf_counter() - began
        naive_cpu_s = time.process_time() - cpu
    found = {(*row[:4], row[6]) for row in rows}
    return {
        "digest_s": digest_s,
        "naive_s": naive_s,
        "naive_cpu_s": naive_cpu_s,
        "wrong": len(found ^ truth(place)),
    }


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
    known = {(row[0], row[1], row[3], row[2]) for row in truth(place) if row[2] != "causal"}
    return {"naive_s": seconds, "naive_cpu_s": spent, "wrong": len(found ^ known)}


if __name__ == "__main__":
    work = {"duckdb": in_duckdb, "polars": in_polars}[sys.argv[1]]
    print(json.dumps(work(Path(sys.argv[2]))))
