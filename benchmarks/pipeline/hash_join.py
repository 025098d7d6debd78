"""The same audit as one machine does it best: DuckDB, and like Spark's a hash join and a GROUP BY.

It answers the same questions of the same tables and looks closer only where a cell differs; of
tables that are well-formed, without strays.  It is what the audit's time is compared with.
"""

from pathlib import Path
from typing import Final

import duckdb

_CELLS: Final = """
CREATE OR REPLACE TEMP TABLE counted AS
SELECT e.channel, e.participant, m.position // 256 AS bucket, count(*) AS n,
  min(m.position - e.position) AS least, max(m.position - e.position) AS most
FROM entry e LEFT JOIN message m
  ON m.channel = e.channel AND m.mid = e.mid AND m.lamport = e.lamport
GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE cell AS
SELECT *, begin - 256 * bucket AS shift,
  n <> c_n OR least <> -shift OR most <> -shift AS is_flagged
FROM (
  SELECT channel, participant, bucket, c_n, coalesce(n, 0) AS n, least, most,
    coalesce(sum(n) OVER (
      PARTITION BY channel, participant ORDER BY bucket
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS begin
  FROM member
  JOIN (SELECT channel, position // 256 AS bucket, count(*) AS c_n FROM message GROUP BY ALL)
    USING (channel)
  LEFT JOIN counted USING (channel, participant, bucket)
);
"""
_ROWS: Final = """
CREATE OR REPLACE TEMP TABLE spot AS
SELECT channel, mid, lamport, place, position, sent_ms, position // 256 AS bucket FROM message
SEMI JOIN (SELECT DISTINCT channel, bucket FROM cell WHERE is_flagged) f
  ON f.channel = message.channel AND f.bucket = message.position // 256;
CREATE OR REPLACE TEMP TABLE held AS
SELECT e.channel, e.participant, e.mid, e.lamport, e.position, begin - 1 + row_number() OVER (
    PARTITION BY e.channel, e.participant, s.bucket ORDER BY e.lamport, s.place
  ) AS expected
FROM entry e
JOIN spot s ON s.channel = e.channel AND s.mid = e.mid AND s.lamport = e.lamport
JOIN cell c ON c.channel = e.channel AND c.participant = e.participant AND c.bucket = s.bucket
WHERE is_flagged;
CREATE OR REPLACE TEMP TABLE moved AS FROM held WHERE position <> expected;
CREATE OR REPLACE TEMP TABLE missing AS
SELECT c.channel, c.participant, s.mid FROM spot s
JOIN cell c ON c.channel = s.channel AND c.bucket = s.bucket AND is_flagged
JOIN stay t ON t.channel = c.channel AND t.participant = c.participant
  AND s.sent_ms >= joined_ms AND (left_ms IS NULL OR s.sent_ms < left_ms)
ANTI JOIN held h ON h.channel = c.channel AND h.participant = c.participant AND h.mid = s.mid;
"""
_CAUSAL: Final = """
CREATE OR REPLACE TEMP TABLE late AS
SELECT DISTINCT channel, mid FROM (
  SELECT d.channel, d.mid, place, max(place) OVER (
    PARTITION BY d.channel, participant, log_id ORDER BY seq
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  ) AS highest
  FROM delivered d JOIN message m ON m.channel = d.channel AND m.mid = d.mid
) WHERE place < highest;
CREATE OR REPLACE TEMP TABLE edge AS
WITH touched AS (SELECT channel, mid FROM late UNION SELECT channel, mid FROM moved)
SELECT c.channel, c.mid, p.mid AS parent_mid, c.place < p.place AS is_below
FROM (SELECT channel, mid, place, unnest(parent_mids) AS parent_mid FROM message) c
JOIN message p ON p.channel = c.channel AND p.mid = c.parent_mid
WHERE c.place < p.place OR (c.channel, c.mid) IN (FROM touched)
  OR (p.channel, p.mid) IN (FROM touched);
CREATE OR REPLACE TEMP TABLE stands AS
WITH fin AS (SELECT channel, mid FROM edge UNION SELECT channel, parent_mid FROM edge)
SELECT c.channel, c.participant, m.mid, m.position + shift AS position
FROM message m SEMI JOIN fin ON fin.channel = m.channel AND fin.mid = m.mid
JOIN cell c ON c.channel = m.channel AND c.bucket = m.position // 256 AND NOT is_flagged
WHERE (c.channel, c.participant) IN (SELECT channel, participant FROM moved)
UNION ALL
SELECT channel, participant, mid, position FROM held SEMI JOIN fin USING (channel, mid);
CREATE OR REPLACE TEMP TABLE heard AS
SELECT channel, participant, log_id, mid, min(seq) AS seq FROM delivered
WHERE (channel, mid) IN (SELECT channel, mid FROM edge UNION SELECT channel, parent_mid FROM edge)
GROUP BY ALL;
"""
_FOUND: Final = """
SELECT channel, participant, 'missing', mid, NULL FROM missing
UNION ALL SELECT channel, participant, 'reordered', mid, NULL FROM moved
UNION ALL
SELECT e.channel, c.participant, 'causal', e.mid, e.parent_mid FROM edge e
JOIN stands c ON c.channel = e.channel AND c.mid = e.mid
JOIN stands p ON p.channel = e.channel AND p.mid = e.parent_mid AND p.participant = c.participant
WHERE is_below OR p.position > c.position
UNION ALL
SELECT e.channel, c.participant, 'early', e.mid, e.parent_mid FROM edge e
JOIN heard c ON c.channel = e.channel AND c.mid = e.mid
JOIN heard p ON p.channel = e.channel AND p.mid = e.parent_mid AND p.participant = c.participant
  AND p.log_id = c.log_id
WHERE c.seq < p.seq
"""

Row = tuple[object, ...]


def views(connection: duckdb.DuckDBPyConnection, place: Path) -> None:
    """The tables that ``generator`` made there."""
    tables = {
        "entry": "entry/*",
        "message": "message/*",
        "member": "member",
        "stay": "member",
        "delivered": "delivered/*",
    }
    for name, files in tables.items():
        connection.execute(f"CREATE VIEW {name} AS FROM '{place}/{files}.parquet'")
    connection.execute("CREATE VIEW lost AS FROM delivered WHERE false")


def witnesses(connection: duckdb.DuckDBPyConnection) -> set[Row]:
    """(channel, participant, kind, mid, parent_mid)."""
    for sql in (_CELLS, _ROWS, _CAUSAL):
        connection.execute(sql)
    return set(connection.execute(_FOUND).fetchall())
