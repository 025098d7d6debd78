"""Very few rows, audited in this process: the same questions in SQL, every row looked at.

To plan and compile the audit takes Spark some seconds, whatever it is of.  Five people's logs are a
few hundred rows: SQLite, which every Python has, answers in less than one.  No cells here, so this
is also the audit at its plainest; tests hold that both say the same.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pipeline.audit import Audited

Row: TypeAlias = tuple[object, ...]
_COLUMNS: Final = {
    "entry": ("channel", "participant", "position", "lamport", "mid"),
    "message": ("channel", "mid", "lamport", "message_id", "place", "position", "sent_ms"),
    "member": ("channel", "participant", "has_log"),
    "stay": ("channel", "participant", "joined_ms", "left_ms"),
    "delivered": ("channel", "participant", "log_id", "seq", "mid"),
    "lost": ("channel", "participant", "log_id", "seq", "mid"),
}
_PREPARED: Final = """
CREATE TABLE whose AS SELECT channel, participant FROM member WHERE has_log;
CREATE INDEX stay_of ON stay (channel, participant);

CREATE TABLE known AS SELECT * FROM (
  SELECT channel, mid, lamport, place, position AS c_position, message_id, sent_ms, row_number()
    OVER (PARTITION BY channel, mid, lamport ORDER BY position IS NULL, place) AS nth
  FROM message
) WHERE nth = 1;
CREATE INDEX known_id ON known (channel, mid, lamport);
CREATE TABLE canonical AS SELECT * FROM known WHERE c_position IS NOT NULL;
CREATE INDEX canonical_mid ON canonical (channel, mid);

CREATE TABLE held AS SELECT e.channel, e.participant, e.mid, e.lamport, e.position, place,
  c_position, message_id,
  row_number() OVER (
    PARTITION BY e.channel, e.participant
    ORDER BY e.lamport, place IS NULL, place, e.mid, e.position
  ) - 1 AS expected_position,
  row_number() OVER (
    PARTITION BY e.channel, e.participant, e.mid, e.lamport ORDER BY e.position
  ) AS nth
FROM whose JOIN entry e USING (channel, participant)
  LEFT JOIN known k ON k.channel = e.channel AND k.mid = e.mid AND k.lamport = e.lamport;
CREATE INDEX held_id ON held (channel, participant, mid, lamport);

CREATE TABLE edge AS
SELECT c.channel, c.mid, c.lamport, c.place, c.message_id, p.mid AS parent_mid,
  p.lamport AS parent_lamport, p.place AS parent_place, p.message_id AS parent_message_id
FROM parent JOIN canonical c ON c.channel = parent.channel AND c.mid = parent.mid
  JOIN canonical p ON p.channel = parent.channel AND p.mid = parent.parent_mid;

CREATE TABLE heard AS SELECT channel, participant, log_id, mid, min(seq) AS seq
FROM whose JOIN delivered USING (channel, participant) GROUP BY 1, 2, 3, 4;
CREATE INDEX heard_mid ON heard (channel, mid, log_id);
CREATE INDEX lost_mid ON lost (channel, mid);
"""
_WITNESSES: Final = """
CREATE TABLE witness AS
SELECT w.channel, participant, 'missing' AS kind, place, NULL AS position,
  NULL AS expected_position, lamport, mid, message_id, NULL AS parent_mid,
  NULL AS parent_message_id
FROM whose w JOIN canonical k ON k.channel = w.channel
WHERE EXISTS (
  SELECT 1 FROM stay s WHERE s.channel = w.channel AND s.participant = w.participant
    AND k.sent_ms >= joined_ms + :grace AND (left_ms IS NULL OR k.sent_ms < left_ms - :grace)
) AND NOT EXISTS (
  SELECT 1 FROM held h WHERE h.channel = w.channel AND h.participant = w.participant
    AND h.mid = k.mid AND h.lamport = k.lamport
)
UNION ALL
SELECT channel, participant, 'extra', place, position, expected_position, lamport, mid, message_id,
  NULL, NULL
FROM held WHERE c_position IS NULL OR nth > 1
UNION ALL
SELECT channel, participant, 'reordered', place, position, expected_position, lamport, mid,
  message_id, NULL, NULL
FROM held WHERE position <> expected_position
UNION ALL
SELECT c.channel, c.participant, 'causal', c.place, c.position, NULL, c.lamport, c.mid,
  c.message_id, parent_mid, parent_message_id
FROM whose w JOIN edge e ON e.channel = w.channel
  JOIN held c ON c.channel = w.channel AND c.participant = w.participant AND c.mid = e.mid
    AND c.lamport = e.lamport AND c.nth = 1
  LEFT JOIN held p ON p.channel = w.channel AND p.participant = w.participant
    AND p.mid = e.parent_mid AND p.lamport = e.parent_lamport AND p.nth = 1
WHERE e.place < e.parent_place OR p.position > c.position
UNION ALL
SELECT DISTINCT c.channel, c.participant, 'early', e.place, NULL, NULL, e.lamport, e.mid,
  e.message_id, parent_mid, parent_message_id
FROM edge e CROSS JOIN heard c ON c.channel = e.channel AND c.mid = e.mid
  CROSS JOIN heard p ON p.channel = e.channel AND p.mid = parent_mid AND p.log_id = c.log_id
    AND p.participant = c.participant
WHERE c.seq < p.seq AND NOT EXISTS (
  SELECT 1 FROM lost l WHERE l.channel = e.channel AND l.participant = c.participant
    AND l.mid = parent_mid AND (l.log_id <> c.log_id OR l.seq < c.seq)
);
CREATE INDEX witness_of ON witness (channel, participant);
"""
_VERDICTS: Final = """
WITH summed AS (
  SELECT w.channel, w.participant,
    (SELECT count(*) FROM canonical k WHERE k.channel = w.channel) AS canonical,
    (SELECT count(*) FROM stay s WHERE s.channel = w.channel AND s.participant = w.participant)
      AS stays,
    (SELECT count(*) FROM held h WHERE h.channel = w.channel AND h.participant = w.participant)
      AS held,
    (SELECT max(place) FROM held h WHERE h.channel = w.channel AND h.participant = w.participant)
      AS last_held,
    count(*) FILTER (WHERE kind = 'missing') AS missing,
    count(*) FILTER (WHERE kind = 'extra') AS extra,
    count(*) FILTER (WHERE kind = 'reordered') AS reordered,
    count(*) FILTER (WHERE kind = 'causal') AS causal,
    count(*) FILTER (WHERE kind = 'early') AS early,
    min(place) FILTER (WHERE kind = 'missing') AS gap
  FROM whose w LEFT JOIN witness t ON t.channel = w.channel AND t.participant = w.participant
  GROUP BY 1, 2
), first AS (
  SELECT channel, participant, place, kind, message_id, row_number() OVER (
    PARTITION BY channel, participant ORDER BY place, kind, message_id) AS nth
  FROM witness WHERE place IS NOT NULL
)
SELECT channel, participant,
  CASE
    WHEN causal + early > 0 THEN 'causal violation'
    WHEN reordered > 0 THEN 'reordered'
    WHEN extra > 0 THEN 'extra'
    WHEN missing > 0 AND coalesce(last_held < gap, 1) THEN 'prefix'
    WHEN missing > 0 THEN 'missing'
    WHEN stays = 0 AND held - extra < canonical THEN 'unknown'
    ELSE 'identical'
  END,
  held + missing - extra, held, missing, extra, reordered, causal, early, place, kind, message_id
FROM summed LEFT JOIN (SELECT * FROM first WHERE nth = 1) USING (channel, participant)
WHERE held > 0 OR canonical > 0
"""


def fetched(tables: "Audited", most: int) -> dict[str, pa.Table] | None:
    """All of the tables; None if there are more rows, or more to compare with, than ``most``."""
    if most < 0:
        return None
    found: dict[str, pa.Table] = {}
    left = most
    for name in ("member", "entry", "message", "stay", "delivered", "lost"):
        frame = getattr(tables, name)
        columns = (*_COLUMNS[name], *(["parent_mids"] if name == "message" else []))
        found[name] = frame.select(*columns).limit(left + 1).toArrow()
        left -= found[name].num_rows
        if left < 0:
            return None
    return found if _compared(found) <= most else None


def _compared(found: dict[str, pa.Table]) -> int:
    """Each log of a channel is compared with each of its messages."""
    logs, messages = (
        dict(zip(*counted.to_pydict().values(), strict=True))
        for counted in (
            found[name].group_by("channel").aggregate([([], "count_all")])
            for name in ("member", "message")
        )
    )
    return sum(count * messages.get(channel, 0) for channel, count in logs.items())


def audited(found: dict[str, pa.Table], grace_ms: int) -> tuple[list[Row], list[Row]]:
    """Verdicts and witnesses."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, columns in _COLUMNS.items():
            _fill(connection, name, columns, found[name].select(columns).to_pydict().values())
        _fill(connection, "parent", ("channel", "mid", "parent_mid"), _parents(found["message"]))
        connection.executescript(_PREPARED)
        connection.executescript(_WITNESSES.replace(":grace", str(int(grace_ms))))
        verdicts = connection.execute(_VERDICTS).fetchall()
        return verdicts, connection.execute("SELECT * FROM witness").fetchall()


def _fill(
    connection: sqlite3.Connection,
    name: str,
    columns: Sequence[str],
    values: Iterable[list[object]],
) -> None:
    connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    marks = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT INTO {name} VALUES ({marks})", zip(*values, strict=True))  # noqa: S608 - our names


def _parents(message: pa.Table) -> list[list[object]]:
    """channel, mid, parent_mid: each edge once."""
    rows = zip(
        *(message[name].to_pylist() for name in ("channel", "mid", "parent_mids")), strict=True
    )
    edges = {(channel, mid, one) for channel, mid, parents in rows for one in parents or ()}
    return list(map(list, zip(*edges, strict=True))) or [[], [], []]
