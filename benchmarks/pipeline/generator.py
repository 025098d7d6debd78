"""Silver tables of a made-up year of group chat, with faults at known places.

Channels differ in size as in life (the k-th has 1/k of the largest's messages); people write in
bursts, seconds apart, with minutes and hours between, so Lamport timestamps, which are
milliseconds, are as uneven as real ones.  Every message names the two before the last one as its
parents.  A fault is far from the next of the same log: a missing message, two neighbours swapped,
or a message that stands before its parent.  As they happen, neighbours are often delivered in
the other order, which is no fault; now and then a message before its parent, which is.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

PARTICIPANTS: Final = 10
SPACING: Final = 100
"""At least so many messages lie between two faults of a log."""
MISSING_PER_MILLION: Final = 76
SWAPPED_PER_MILLION: Final = 16
CAUSAL_PER_MILLION: Final = 7
EARLY_PER_MILLION: Final = 5
START_MS: Final = 1_700_000_000_000

_SETUP: Final = """
CREATE MACRO chance(a, b, salt) AS hash(a, b, salt)::DOUBLE / 18446744073709551616.0;
CREATE MACRO signed(h) AS (CASE WHEN h >= 9223372036854775808::HUGEINT
  THEN h - 18446744073709551616::HUGEINT ELSE h END)::BIGINT;
CREATE TABLE sizes AS
  SELECT k::INT AS k, substr(sha256('channel ' || k), 1, 16) AS channel,
    greatest(500, round({messages} / (k + 1) / {harmonic}))::BIGINT AS n
  FROM range({channels}) t(k);
CREATE TABLE message AS
  SELECT *, {start} + sum(gap) OVER (PARTITION BY channel ORDER BY i)::BIGINT AS lamport
  FROM (
    SELECT k, channel, i, sha256(channel || i) AS message_id,
      1 + floor(-ln(1 - chance(k, i, 1)) * (
        CASE WHEN chance(k, i, 2) < 0.03 THEN 3.6e6 WHEN chance(k, i // 40, 3) < 0.5 THEN 2e3
        ELSE 2e4 END))::BIGINT AS gap
    FROM sizes, range(n) r(i)
  );
ALTER TABLE message ADD COLUMN mid BIGINT;
UPDATE message
  SET mid = signed(('0x' || substr(sha256(message_id), 1, 16))::UBIGINT::HUGEINT);
CREATE TABLE people AS
  SELECT k, channel, n, who, substr(sha256('participant ' || k || ' ' || who), 1, 16) AS participant
  FROM sizes, range({participants}) r(who);
CREATE TABLE spot AS
  SELECT k, channel, who, participant, s * {spacing} + 50 AS i, chance(k * 1000 + who, s, 4) AS c
  FROM people, range(n // {spacing} - 1) r(s)
  ORDER BY c LIMIT {faults};
CREATE TABLE fault AS
  SELECT *, CASE WHEN row_number() OVER (ORDER BY c) <= {missing} THEN 'missing'
    WHEN row_number() OVER (ORDER BY c) <= {missing} + {swapped} THEN 'swapped'
    WHEN row_number() OVER (ORDER BY c) <= {missing} + {swapped} + {causal} THEN 'causal'
    ELSE 'early' END AS kind FROM spot;
CREATE TABLE gone AS
  SELECT k, who, i, count(*) OVER (PARTITION BY k, who ORDER BY i) AS so_far
  FROM fault WHERE kind = 'missing';
CREATE TABLE moved AS
  SELECT k, who, i, 1 AS step FROM fault WHERE kind = 'swapped'
  UNION ALL SELECT k, who, i + 1, -1 FROM fault WHERE kind = 'swapped'
  UNION ALL SELECT k, who, i, 2 FROM fault WHERE kind = 'causal'
  UNION ALL SELECT k, who, i + 2, -2 FROM fault WHERE kind = 'causal';
CREATE TABLE heard AS
  SELECT k, who, i, CASE kind WHEN 'early' THEN 25 ELSE 15 END AS step
  FROM fault WHERE kind IN ('early', 'swapped')
  UNION ALL SELECT k, who, i + 30, 15 FROM fault WHERE kind = 'missing';
"""
_MESSAGE: Final = """
COPY (
  SELECT channel, mid, lamport, message_id, list_filter([
      lag(mid, 3) OVER w, lag(mid, 2) OVER w], lambda x: x IS NOT NULL) AS parent_mids,
    i AS place, i AS position, lamport AS sent_ms
  FROM message WINDOW w AS (PARTITION BY channel ORDER BY i) ORDER BY k, i
) TO '{place}/message' (FORMAT parquet, COMPRESSION zstd, PER_THREAD_OUTPUT)
"""
_MEMBER: Final = """
COPY (
  SELECT channel, participant, true AS has_log, 0::BIGINT AS joined_ms, NULL::BIGINT AS left_ms
  FROM people
) TO '{place}/member.parquet' (FORMAT parquet)
"""
_TRUTH: Final = """
COPY (
  SELECT f.channel, f.participant, f.found AS kind, m.mid, p.mid AS parent_mid
  FROM (
    SELECT *, 'missing' AS found, i AS at, NULL AS parent FROM fault WHERE kind = 'missing'
    UNION ALL SELECT *, 'reordered', i, NULL FROM fault
      WHERE kind IN ('swapped', 'causal')
    UNION ALL SELECT *, 'reordered', i + 1, NULL FROM fault WHERE kind = 'swapped'
    UNION ALL SELECT *, 'reordered', i + 2, NULL FROM fault WHERE kind = 'causal'
    UNION ALL SELECT *, 'causal', i + 2, i FROM fault WHERE kind = 'causal'
    UNION ALL SELECT *, 'early', i + 2, i FROM fault WHERE kind = 'early'
  ) AS f
  JOIN message m ON m.k = f.k AND m.i = f.at
  LEFT JOIN message p ON p.k = f.k AND p.i = f.parent
) TO '{place}/truth.parquet' (FORMAT parquet)
"""
_ENTRY: Final = """
COPY (
  SELECT p.channel, p.participant,
    m.i - coalesce(g.so_far, 0) + coalesce(v.step, 0) AS position, m.lamport, m.mid
  FROM people p JOIN message m ON m.k = p.k
  ASOF LEFT JOIN gone g ON g.k = p.k AND g.who = p.who AND m.i >= g.i
  LEFT JOIN moved v ON v.k = p.k AND v.who = p.who AND v.i = m.i
  WHERE p.k = {k} AND g.i IS DISTINCT FROM m.i
  ORDER BY p.who, position
) TO '{place}/entry/{k:05}.parquet' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 500000)
"""
_DELIVERED: Final = """
COPY (
  SELECT p.channel, p.participant, p.participant AS log_id,
    1000 + 10 * m.i + coalesce(v.step, 0) AS seq, m.mid
  FROM people p JOIN message m ON m.k = p.k
  LEFT JOIN (FROM fault WHERE kind = 'missing') g ON g.k = p.k AND g.who = p.who AND g.i = m.i
  LEFT JOIN heard v ON v.k = p.k AND v.who = p.who AND v.i = m.i
  WHERE p.k = {k} AND g.i IS NULL
  ORDER BY p.who, seq
) TO '{place}/delivered/{k:05}.parquet' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 500000)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    events: int
    missing: int
    reordered: int
    causal: int
    early: int

    def as_counts(self) -> dict[str, int]:
        return {
            "missing": self.missing,
            "reordered": self.reordered,
            "causal": self.causal,
            "early": self.early,
        }


def generate(place: Path, events: int) -> Injected:
    """Parquet tables entry, message, member (with its stay) and delivered in ``place``."""
    messages = events // PARTICIPANTS
    channels = max(4, min(200, messages // 5_000))
    missing, swapped, causal, early = (
        max(2, round(per * events / 1e6))
        for per in (MISSING_PER_MILLION, SWAPPED_PER_MILLION, CAUSAL_PER_MILLION, EARLY_PER_MILLION)
    )
    for name in ("entry", "delivered"):
        (place / name).mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.execute(
            _SETUP.format(
                messages=messages,
                channels=channels,
                harmonic=math.fsum(1 / k for k in range(1, channels + 1)),
                start=START_MS,
                participants=PARTICIPANTS,
                spacing=SPACING,
                faults=missing + swapped + causal + early,
                missing=missing,
                swapped=swapped,
                causal=causal,
            )
        )
        for sql in (_MESSAGE, _MEMBER, _TRUTH):
            connection.execute(sql.format(place=place))
        for k in range(channels):
            connection.execute(_ENTRY.format(place=place, k=k))
            connection.execute(_DELIVERED.format(place=place, k=k))
        counted = connection.execute("SELECT sum(n) FROM sizes").fetchone()
    assert counted is not None  # noqa: S101 - an aggregate has one row
    return Injected(
        events=int(counted[0]) * PARTICIPANTS - missing,
        missing=missing,
        reordered=2 * (swapped + causal),
        causal=causal,
        early=early,
    )
