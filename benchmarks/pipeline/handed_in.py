"""The generated events as participants hand them in, and what one query makes of these files.

What the generator has in one table is here told by each log: its own order, the messages that it
knows, who belongs where, and what was delivered when; a directory of Parquet exports for each
channel.  ``witnesses`` is what somebody writes who trusts the logs: of each its newest order, each
message once, numbered in the canonical order if its sender or more than half hold it, and then the
hash join.  It compares no keys, asks for no gaps and corrects no clock.
"""

from pathlib import Path
from typing import Final

import duckdb

from benchmarks.pipeline import hash_join

END_MS: Final = 60_000
"""So long after the last message of its channel a log ends."""
_TOLD: Final = """
CREATE OR REPLACE TEMP TABLE person AS
SELECT channel, participant, joined_ms, row_number() OVER (ORDER BY participant) - 1 AS who
FROM '{made}/member.parquet' WHERE channel IN (SELECT channel FROM '{made}/entry/{k}' LIMIT 1);
CREATE OR REPLACE TEMP TABLE told AS
SELECT m.*, p.participant AS sender
FROM '{made}/message/*.parquet' m JOIN person p ON p.channel = m.channel
  AND p.who = m.position % (SELECT count(*) FROM person);
CREATE OR REPLACE TEMP TABLE parent AS
SELECT t.mid, list(p.message_id ORDER BY p.position) AS parents
FROM (SELECT mid, unnest(parent_mids) AS one FROM told) t JOIN told p ON p.mid = t.one
GROUP BY t.mid;
CREATE OR REPLACE TEMP TABLE heard AS
SELECT participant, seq, 'delivered' AS kind, mid, lamport + 50 AS at_ms
FROM '{made}/delivered/{k}' JOIN told USING (channel, mid)
UNION ALL
SELECT participant, 9223372036854775807, 'snapshot', NULL, (SELECT max(lamport) + {end} FROM told)
FROM person;
"""
_LOG: Final = """
3::SMALLINT AS schema_version, participant AS log_id, participant, 'eeeeeeeeeeeeeeee' AS key_id
"""
_CHANNEL: Final = "(SELECT channel FROM person LIMIT 1) AS channel, 'sds' AS protocol"
_EXPORTS: Final = {
    "delivery_event": """
      SELECT {log}, '1' AS app_version, 'bench' AS network, NULL::VARCHAR AS previous_log_id,
        row_number() OVER (PARTITION BY participant ORDER BY seq) AS seq,
        {channel}, kind, message_id, mid, NULL::BLOB AS waku_hash, lamport,
        NULL::BIGINT AS position, at_ms, at_ms * 1000 AS mono_ns, NULL::VARCHAR AS peer,
        NULL::VARCHAR AS ack_source, NULL::INTEGER AS bloom_m, NULL::INTEGER AS bloom_k,
        NULL::INTEGER AS bloom_n, NULL::INTEGER AS attempt, NULL::INTEGER AS wire_bytes,
        NULL::VARCHAR AS via, NULL::BIGINT AS amount, NULL::VARCHAR AS detail
      FROM heard LEFT JOIN (SELECT mid, message_id, lamport FROM told) USING (mid)
    """,
    "log_snapshot": """
      SELECT {log}, {channel}, (SELECT max(at_ms) FROM heard) AS snapshot_ms, e.position,
        message_id, mid, e.lamport
      FROM '{made}/entry/{k}' e JOIN (SELECT mid, message_id FROM told) USING (mid)
    """,
    "message": """
      SELECT {log}, {channel}, message_id, mid, e.lamport, sender, sent_ms,
        coalesce(parents, []) AS parents, parent_mids, substr(message_id, 1, 16) AS content
      FROM '{made}/entry/{k}' e
        JOIN (SELECT mid, message_id, sender, sent_ms, parent_mids FROM told) USING (mid)
        LEFT JOIN parent USING (mid)
    """,
    "membership": """
      SELECT {log}, {channel}, member, joined_ms, NULL::BIGINT AS left_ms
      FROM person, (SELECT participant AS member FROM person)
    """,
}


def hand_in(made: Path, place: Path) -> int:
    """Exports of what ``generator`` made, below ``place``; how many rows they have together."""
    rows = 0
    with duckdb.connect() as connection:
        for entries in sorted((made / "entry").iterdir()):
            names = {"made": made, "k": entries.name, "end": END_MS, "log": _LOG}
            names["channel"] = _CHANNEL
            connection.execute(_TOLD.format(**names))
            handed = place / entries.stem
            handed.mkdir(parents=True)
            for table, sql in _EXPORTS.items():
                copied = connection.execute(
                    f"COPY ({sql.format(**names)}) TO '{handed}/{table}.parquet'"
                    " (FORMAT parquet, COMPRESSION zstd)"
                ).fetchone()
                assert copied is not None  # noqa: S101 - COPY says how many
                rows += int(copied[0])
    return rows


_SILVER: Final = """
CREATE TEMP TABLE entry AS
SELECT channel, participant, position, lamport, mid FROM (
  SELECT *, max(snapshot_ms) OVER (PARTITION BY log_id, channel) AS newest
  FROM '{place}/*/log_snapshot.parquet'
) WHERE snapshot_ms = newest;
CREATE TEMP TABLE member AS
SELECT channel, participant, true AS has_log, joined_ms, left_ms
FROM '{place}/*/membership.parquet' WHERE member = participant;
CREATE TEMP VIEW stay AS FROM member;
CREATE TEMP TABLE message AS
WITH told AS (
  SELECT channel, mid, lamport, any_value(message_id) AS message_id, any_value(sender) AS sender,
    any_value(parent_mids) AS parent_mids, any_value(sent_ms) AS sent_ms
  FROM '{place}/*/message.parquet' GROUP BY channel, mid, lamport
), held AS (
  SELECT e.channel, e.mid, e.lamport, count(*) AS holders,
    bool_or(participant = sender) AS by_sender
  FROM entry e JOIN told USING (channel, mid, lamport) GROUP BY ALL
), logs AS (SELECT channel, count(*) AS logs FROM member GROUP BY channel)
SELECT channel, mid, lamport, message_id, parent_mids, sent_ms,
  row_number() OVER (PARTITION BY channel ORDER BY lamport, message_id) - 1 AS place,
  place AS position
FROM told JOIN held USING (channel, mid, lamport) JOIN logs USING (channel)
WHERE by_sender OR 2 * holders > logs;
CREATE TEMP TABLE delivered AS
SELECT channel, participant, log_id, seq, mid
FROM '{place}/*/delivery_event.parquet' WHERE kind = 'delivered';
"""


def witnesses(place: Path) -> set[hash_join.Row]:
    """(channel, participant, kind, mid, parent_mid), of what was handed in there."""
    with duckdb.connect() as connection:
        connection.execute(_SILVER.format(place=place))
        return hash_join.witnesses(connection)
