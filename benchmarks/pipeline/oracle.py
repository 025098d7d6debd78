"""The audit again, by plain SQL on DuckDB: no bucket, every row looked at.

Written from the definitions (docs/pipeline.md) and independent of ``pipeline``: what tests and
benchmarks compare with.  It takes the silver tables ``entry``, ``message``, ``member``, ``stay``,
``delivered`` and ``lost`` as views of a connection.
"""

from typing import Final

import duckdb

WITNESSES: Final = """
CREATE OR REPLACE TEMP TABLE whose AS
SELECT channel, participant FROM member WHERE has_log;

CREATE OR REPLACE TEMP TABLE known AS
SELECT channel, mid, lamport,
  arg_max(place, (position IS NOT NULL, -place)) AS place,
  arg_max(position, (position IS NOT NULL, -place)) AS c_position,
  arg_max(message_id, (position IS NOT NULL, -place)) AS message_id
FROM message GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE held AS
SELECT e.channel, e.participant, e.mid, e.lamport, e.position, k.place, k.c_position, k.message_id,
  row_number() OVER (
    PARTITION BY e.channel, e.participant
    ORDER BY e.lamport, k.place NULLS LAST, e.mid, e.position
  ) - 1 AS expected_position,
  row_number() OVER (
    PARTITION BY e.channel, e.participant, e.mid, e.lamport ORDER BY e.position
  ) AS copy
FROM entry e LEFT JOIN known k USING (channel, mid, lamport);

CREATE OR REPLACE TEMP TABLE edge AS
SELECT DISTINCT c.channel, c.mid, c.lamport, c.place, c.message_id, p.mid AS parent_mid,
  p.lamport AS parent_lamport, p.place AS parent_place
FROM (SELECT *, unnest(parent_mids) AS parent_mid FROM message WHERE position IS NOT NULL) c
JOIN message p ON p.channel = c.channel AND p.mid = c.parent_mid AND p.position IS NOT NULL;

CREATE OR REPLACE TEMP TABLE heard AS
SELECT channel, participant, log_id, mid, min(seq) AS seq FROM delivered GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE witness AS
SELECT channel, participant, 'missing' AS kind, mid, lamport, place,
  NULL::BIGINT AS position, NULL::BIGINT AS parent_mid, message_id
FROM (SELECT * FROM message WHERE position IS NOT NULL) AS wanted JOIN whose USING (channel)
WHERE EXISTS (
    FROM stay WHERE stay.channel = wanted.channel AND stay.participant = whose.participant
      AND wanted.sent_ms >= joined_ms + $grace
      AND (left_ms IS NULL OR wanted.sent_ms < left_ms - $grace)
  )
  AND NOT EXISTS (
    FROM held WHERE held.channel = wanted.channel AND held.participant = whose.participant
      AND held.mid = wanted.mid AND held.lamport = wanted.lamport
  )
UNION ALL
SELECT channel, participant, 'extra', mid, lamport, place, position, NULL, message_id
FROM held WHERE c_position IS NULL OR copy > 1
UNION ALL
SELECT channel, participant, 'reordered', mid, lamport, place, position, NULL, message_id
FROM held WHERE position <> expected_position
UNION ALL
SELECT DISTINCT c.channel, c.participant, 'causal', c.mid, c.lamport, c.place, c.position,
  edge.parent_mid, c.message_id
FROM edge
JOIN held c ON c.channel = edge.channel AND c.mid = edge.mid AND c.lamport = edge.lamport
LEFT JOIN held p ON p.channel = c.channel AND p.participant = c.participant
  AND p.mid = edge.parent_mid AND p.lamport = edge.parent_lamport AND p.copy = 1
WHERE c.copy = 1 AND (edge.place < edge.parent_place OR p.position > c.position)
UNION ALL
SELECT DISTINCT c.channel, c.participant, 'early', edge.mid, edge.lamport, edge.place, NULL,
  edge.parent_mid, edge.message_id
FROM edge
JOIN heard c ON c.channel = edge.channel AND c.mid = edge.mid
JOIN heard p ON p.channel = c.channel AND p.participant = c.participant AND p.log_id = c.log_id
  AND p.mid = edge.parent_mid
WHERE c.seq < p.seq AND NOT EXISTS (
    FROM lost WHERE lost.channel = c.channel AND lost.participant = c.participant
      AND lost.mid = p.mid AND (lost.log_id <> c.log_id OR lost.seq < c.seq)
  );
"""

VERDICTS: Final = """
WITH held_count AS (
  SELECT channel, participant, count(*) AS held, max(place) AS last_held FROM held GROUP BY ALL
), anomaly AS (
  SELECT channel, participant,
    count(*) FILTER (kind = 'missing') AS missing, count(*) FILTER (kind = 'extra') AS extra,
    count(*) FILTER (kind = 'reordered') AS reordered, count(*) FILTER (kind = 'causal') AS causal,
    count(*) FILTER (kind = 'early') AS early,
    min(place) FILTER (kind = 'missing') AS gap, min(place) AS first_place
  FROM witness GROUP BY ALL
), canon AS (
  SELECT channel, count(position) AS canonical FROM message GROUP BY ALL
)
SELECT channel, participant,
  CASE
    WHEN coalesce(causal, 0) + coalesce(early, 0) > 0 THEN 'causal violation'
    WHEN coalesce(reordered, 0) > 0 THEN 'reordered'
    WHEN coalesce(extra, 0) > 0 THEN 'extra'
    WHEN coalesce(missing, 0) > 0 AND coalesce(last_held < gap, true) THEN 'prefix'
    WHEN coalesce(missing, 0) > 0 THEN 'missing'
    WHEN NOT EXISTS (
        FROM stay WHERE stay.channel = whose.channel AND stay.participant = whose.participant
      ) AND coalesce(held, 0) - coalesce(extra, 0) < coalesce(canonical, 0)
      THEN 'unknown'
    ELSE 'identical'
  END AS verdict,
  coalesce(held, 0)::BIGINT AS held, coalesce(missing, 0) AS missing, coalesce(extra, 0) AS extra,
  coalesce(reordered, 0) AS reordered, coalesce(causal, 0) AS causal,
  coalesce(early, 0) AS early, first_place
FROM whose
LEFT JOIN held_count USING (channel, participant)
LEFT JOIN anomaly USING (channel, participant)
LEFT JOIN canon USING (channel)
WHERE coalesce(canonical, 0) > 0 OR held IS NOT NULL
"""

Row = tuple[object, ...]


def witnesses(connection: duckdb.DuckDBPyConnection, grace_ms: int = 0) -> list[Row]:
    """(channel, participant, kind, mid, lamport, position, parent_mid), sorted."""
    connection.execute(WITNESSES.replace("$grace", str(grace_ms)))
    return connection.execute(
        "SELECT channel, participant, kind, mid, lamport, position, parent_mid FROM witness"
        " ORDER BY ALL"
    ).fetchall()


def verdicts(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """After ``witnesses``: (channel, participant, verdict, held, missing, extra, …), sorted."""
    return connection.execute(f"{VERDICTS} ORDER BY ALL").fetchall()
