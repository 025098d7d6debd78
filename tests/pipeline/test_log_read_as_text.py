"""Rows read as text are what they are cell by cell, whatever stands in a file."""

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_TABLES,
    MESSAGE,
    Column,
    Table,
    Type,
)
from engine.delivery.sqlite_log import BATCH_ROWS, DeliveryLogError, LogReader
from pipeline.bronze import FoundLog, planned
from pipeline.sources import arrow_rows, log_text
from pipeline.sources.delivery import read_piece
from pipeline.sources.files import LOG, Piece
from tests.pipeline.log_files import add_to, event, header, write_log

Cell = int | float | str | bytes | None
BROKEN = b"\xffbroken"
"""Stored as text, though it is none."""
HOSTILE: tuple[Cell, ...] = (
    None,
    "",
    " ",
    " x",
    "-",
    "NULL",
    "12",
    "1e3",
    "0x10",
    "ada\x00bob",
    "\x00",
    "a\tb",
    "a\x1fb",
    "\x1f",
    "a\nb",
    "a\r",
    "\r\n",
    '"quoted"',
    "it's",
    "\ufeffmark",
    "é",
    "\U0010ffff",
    "x" * 200,
    "x" * 70_000,
    "[" * 50_000,
    "[]",
    "[1]",
    '["a"]',
    '["\\ud800"]',
    "[99999999999999999999]",
    "[9999999999999999999]",
    b"",
    b"12",
    b"\x00" * 32,
    b"h" * 33,
    BROKEN,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    -(2**63),
    1.0,
    1.5,
    1e300,
    float("inf"),
)


def honest(column: Column) -> "st.SearchStrategy[Cell]":
    found: st.SearchStrategy[Cell]
    match column.type:
        case Type.TEXT if column.choices:
            found = st.sampled_from(column.choices)
        case Type.TEXT:
            found = st.text("abcdef0123456789", min_size=1, max_size=min(16, column.maximum))
        case Type.BINARY:
            found = st.binary(min_size=32, max_size=32)
        case Type.TEXTS:
            found = st.sampled_from(["[]", '["a","b"]'])
        case Type.INT64S:
            found = st.sampled_from(["[]", "[1,-2]"])
        case _:
            found = st.integers(column.minimum, min(column.maximum, 2**63 - 1))
    return st.none() | found if column.nullable else found


@st.composite
def tables_of_rows(draw: st.DrawFn) -> tuple[Table, list[list[Cell]]]:
    """Nearly all cells are as they should be, so that a few odd ones are not lost among others."""
    table = draw(st.sampled_from(LOG_TABLES))
    columns = table.row_columns
    rows = draw(st.lists(st.tuples(*map(honest, columns)).map(list[Cell]), min_size=1, max_size=6))
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.integers(0, len(rows) - 1))
        rows[row][draw(st.integers(0, len(columns) - 1))] = draw(st.sampled_from(HOSTILE))
    return table, rows


def write_rows(path: Path, table: Table, rows: Sequence[Sequence[Cell]], *, declared: bool) -> None:
    """A log whose table took whatever there is, and may say afterwards that it never would."""
    write_log(path, header("ada"), {})
    names = ", ".join(column.name for column in table.row_columns)
    with closing(sqlite3.connect(path, isolation_level=None)) as log:
        ((made,),) = log.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table.name])
        log.execute("PRAGMA synchronous = OFF")
        log.execute(f"DROP TABLE {table.name}")
        log.execute(f"CREATE TABLE {table.name} ({names})")
        for row in rows:
            marks = ", ".join("CAST(? AS TEXT)" if cell is BROKEN else "?" for cell in row)
            log.execute(f"INSERT INTO {table.name} VALUES ({marks})", row)  # noqa: S608
        if declared:
            # Only the row's own number and what belongs to it cannot be claimed afterwards.
            text = made.split("PRIMARY KEY")[0].rstrip().rstrip(",") + ")"
            log.execute("PRAGMA writable_schema = ON")
            log.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", [text, table.name])


def cell_by_cell(path: Path, table: Table) -> Iterator[pa.RecordBatch]:
    own = [column.name for column in table.row_columns]
    with LogReader(path) as log:
        same = {column.name: log.header.value(column.name) for column in header_columns(table)}
        try:
            for rows in log.batches(table, own):
                yield arrow_rows.batch_of(table, rows, str(path), same)
        except DeliveryLogError as error:
            yield arrow_rows.refused(table, str(path), f"file.{error.reason}")


def header_columns(table: Table) -> Iterable[Column]:
    return (column for column in table.columns if column.per_log)


def assert_alike(path: Path, table: Table) -> list[pa.RecordBatch]:
    found = list(read_piece(Piece(path=str(path), kind=LOG), table))
    wanted = list(cell_by_cell(path, table))
    for batch in found:
        batch.validate(full=True)
    assert [batch.num_rows for batch in found] == [batch.num_rows for batch in wanted]
    assert all(one.equals(other) for one, other in zip(found, wanted, strict=True))
    return found


def rows_as_text(path: Path, table: Table) -> int:
    with LogReader(path) as log:
        blocks = log_text.blocks(log, table, after_seq=0, through_seq=None)
        return sum(len(next(iter(block.values()))) for block in blocks)


def one_event(**cells: Cell) -> list[list[Cell]]:
    given_cells: dict[str, Cell] = {"seq": 1, "kind": "sent", "at_ms": 1, "mono_ns": 1, **cells}
    return [[given_cells.get(column.name) for column in DELIVERY_EVENT.row_columns]]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables_of_rows(), st.booleans())
@example((DELIVERY_EVENT, one_event(lamport="12", message_id="m", mid=1)), True)
@example((DELIVERY_EVENT, one_event(message_id=12, mid=1)), True)
@example((DELIVERY_EVENT, one_event(kind="sent\x00xyz")), False)
@example((DELIVERY_EVENT, one_event(detail="a\x1f1\n2\x1fb")), False)
def test_odd_cells_are_read_as_they_are_cell_by_cell(
    made: tuple[Table, list[list[Cell]]], declared: bool
) -> None:
    table, rows = made
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "odd.delivery.db"
        write_rows(path, table, rows, declared=declared)
        assert_alike(path, table)


def test_each_odd_cell_in_each_kind_of_column(tmp_path: Path) -> None:
    """Each with a good row before it and nothing else that is wrong."""
    path = tmp_path / "odd.delivery.db"
    (good,) = one_event(channel="c", protocol="sds", message_id="m", mid=5, waku_hash=b"h" * 32)
    write_rows(path, DELIVERY_EVENT, [good, [2, *good[1:]]], declared=False)
    columns = ("seq", "channel", "kind", "message_id", "mid", "waku_hash", "bloom_m")
    assert rows_as_text(path, DELIVERY_EVENT) == 2
    with closing(sqlite3.connect(path, isolation_level=None)) as log:
        log.execute("PRAGMA synchronous = OFF")
        for column in columns:
            ((before,),) = log.execute(f"SELECT {column} FROM delivery_event WHERE rowid = 2")  # noqa: S608
            change = f"UPDATE delivery_event SET {column} = ? WHERE rowid = 2"  # noqa: S608
            for cell in HOSTILE:
                as_text = change.replace("?", "CAST(? AS TEXT)") if cell is BROKEN else change
                log.execute(as_text, [cell])
                assert_alike(path, DELIVERY_EVENT)
            log.execute(change, [before])


def test_a_usual_log_is_read_as_text_and_an_odd_row_ends_it(tmp_path: Path) -> None:
    events = [
        event(seq, "received", message_id=f"m{seq}", lamport=seq, waku_hash=b"%032d" % seq)
        for seq in range(1, 2 * BATCH_ROWS + 100)
    ]
    path = write_log(tmp_path / "ada.delivery.db", header("ada"), {DELIVERY_EVENT: events})
    assert rows_as_text(path, DELIVERY_EVENT) == len(events)
    assert_alike(path, DELIVERY_EVENT)
    odd = BATCH_ROWS + 50
    add_to(path, DELIVERY_EVENT, [event(odd, "received", message_id="m\x1f", lamport=odd)])
    assert rows_as_text(path, DELIVERY_EVENT) == BATCH_ROWS
    found = assert_alike(path, DELIVERY_EVENT)
    assert sum(batch.num_rows for batch in found) == len(events)


def test_lists_that_no_column_takes_are_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "odd.delivery.db"
    usual: list[Cell] = ["c", "sds", "m", 1, 1, "s", 1, "[]", "[]", None]
    odd = ("[" * 50_000, '["\\ud800"]', "[99999999999999999999]", "[9999999999999999999]")
    rows = [[*usual[:7], text, "[]", None] for text in odd] + [
        [*usual[:8], text, None] for text in odd
    ]
    write_rows(path, MESSAGE, [usual, *rows], declared=True)
    (found,) = assert_alike(path, MESSAGE)
    told = found.column(arrow_rows.PROBLEM).to_pylist()
    assert told == [None] + ["parents.type"] * len(odd) + ["parent_mids.type"] * len(odd)


def test_what_a_log_claims_of_its_length_makes_no_work() -> None:
    log = FoundLog(
        file="a.delivery.db",
        kind=LOG,
        bytes=40_000,
        changed="",
        log_id="a",
        last_seq=2**63 - 1,
        problem=None,
    )
    (piece,) = planned([log], {}).events
    assert (piece.after_seq, piece.through_seq) == (0, 2**63 - 1)
