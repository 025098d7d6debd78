"""An export is read as its rows are, however its texts lie in the file."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.delivery.check import problem_of
from engine.delivery.contract import DELIVERY_EVENT, LOG_TABLES, Column, Table, Type
from pipeline import copying
from pipeline.schema import arrow_schema
from pipeline.sources import arrow_rows
from pipeline.sources.delivery import read_piece
from pipeline.sources.files import PARQUET, Piece

Cell: TypeAlias = int | str | bytes | list[str] | list[int] | None
_TEXTS: Final = (
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int64(), pa.large_string()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How somebody may write it."""

    text: pa.DataType
    rows_of_group: int
    has_dictionaries: bool
    has_arrow_schema: bool


PLAIN: Final = Way(
    text=pa.string(), rows_of_group=10_000, has_dictionaries=True, has_arrow_schema=False
)
ways = st.builds(
    Way,
    text=st.sampled_from(_TEXTS),
    rows_of_group=st.integers(1, 4),
    has_dictionaries=st.booleans(),
    has_arrow_schema=st.booleans(),
)


def cells(column: Column) -> "st.SearchStrategy[Cell]":
    """Nearly all as they should be."""
    match column.type:
        case Type.TEXT:
            good = st.sampled_from(column.choices or ("a", "b", "é", "a\x00b"))
            odd = st.sampled_from(["", "x" * (column.maximum + 1), None])
            return st.one_of(good, good, good, odd)
        case Type.BINARY:
            return st.none() | st.binary(min_size=31, max_size=33)
        case Type.TEXTS:
            return st.none() | st.lists(st.sampled_from("ab"), max_size=2)
        case Type.INT64S:
            return st.none() | st.lists(st.integers(-5, 5), max_size=2)
        case _:
            least, most = column.minimum, column.maximum
            return st.integers(max(least, 1), min(most, 3)) | st.none()


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, list[tuple[Cell, ...]]]:
    table = draw(st.sampled_from(LOG_TABLES))
    rows = st.tuples(*map(cells, table.columns))
    return table, draw(st.lists(rows, max_size=9))


def write(path: Path, table: Table, rows: Sequence[tuple[Cell, ...]], way: Way) -> None:
    plain = [field.with_nullable(True) for field in arrow_schema(table)]
    columns = list(zip(*rows, strict=True)) or [()] * len(plain)
    whole = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, plain, strict=True)], pa.schema(plain)
    )
    for at, field in enumerate(plain):
        if field.type == pa.string():
            texts = whole.column(at)
            made = texts.dictionary_encode() if pa.types.is_dictionary(way.text) else texts
            whole = whole.set_column(at, field.with_type(way.text), made.cast(way.text))
    pq.write_table(
        whole,
        path,
        row_group_size=way.rows_of_group,
        use_dictionary=way.has_dictionaries,
        store_schema=way.has_arrow_schema,
    )


def _kept(column: Column, value: Cell) -> Cell:
    """Of what is too long, or of the wrong length, nothing is kept."""
    if isinstance(value, str):
        is_right = bool(column.choices) or len(value.encode()) <= column.maximum
        return value if is_right else None
    if isinstance(value, bytes):
        return value if column.minimum <= len(value) <= column.maximum else None
    return value


def expected(table: Table, row: tuple[Cell, ...]) -> str | None:
    found = problem_of(table, row)
    return found or (None if row[0] in (1, 2, 3) else "schema_version.range")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), ways)
def test_rows_and_what_is_wrong_with_them(
    made: tuple[Table, list[tuple[Cell, ...]]], way: Way
) -> None:
    table, rows = made
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "export.parquet"
        write(path, table, rows, way)
        piece = Piece(path=str(path), kind=PARQUET)
        batches = list(read_piece(piece, table))
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema == arrow_rows.batch_schema(table)
            assert arrow_rows.plain(batch, table).schema == arrow_rows.source_schema(table)
        copied = Path(place) / "copied.parquet"
        assert copying.write_part(copying.Part(table=table.name, pieces=[piece]), copied) == len(
            rows
        )
        again = pq.read_table(copied)
    found = pa.Table.from_batches(batches, arrow_rows.batch_schema(table)).to_pylist()
    wanted = [
        dict(zip(table.names, map(_kept, table.columns, row), strict=True))
        | {arrow_rows.PROBLEM: expected(table, row), arrow_rows.FILE: str(path)}
        for row in rows
    ]
    assert found == wanted
    assert again.to_pylist() == wanted
    assert not any(map(pa.types.is_dictionary, again.schema.types))


def test_of_files_with_other_texts_one_dictionary_is_made(tmp_path: Path) -> None:
    """A second one would leave the rest of a row group without any: each text in each row."""
    length, count = 32, 1_000
    given_cells: dict[str, Cell] = {"schema_version": 3, "kind": "sent", "at_ms": 1, "mono_ns": 1}
    pieces = []
    for version in ("a" * length, "b" * length):
        told = {**given_cells, "log_id": "l", "participant": "p", "key_id": "k", "network": "n"}
        told["app_version"] = version
        rows = [
            tuple({**told, "seq": seq}.get(name) for name in DELIVERY_EVENT.names)
            for seq in range(1, count + 1)
        ]
        write(path := tmp_path / f"{version}.parquet", DELIVERY_EVENT, rows, PLAIN)
        pieces.append(Piece(path=str(path), kind=PARQUET))
    copying.write_part(
        copying.Part(table=DELIVERY_EVENT.name, pieces=pieces),
        copied := tmp_path / "copied.parquet",
    )
    (group,) = (pq.read_metadata(copied).row_group(at) for at in range(1))
    column = group.column(DELIVERY_EVENT.names.index("app_version"))
    assert column.total_uncompressed_size < length * count
    assert group.num_rows == 2 * count


def usual(count: int) -> pa.Table:
    """Good events."""
    given_cells: dict[str, Cell] = {
        "schema_version": 3, "log_id": "l", "participant": "p", "key_id": "k", "app_version": "1",
        "network": "n", "kind": "sent", "at_ms": 1, "mono_ns": 1,
    }  # fmt: skip
    rows = [{**given_cells, "seq": seq} for seq in range(1, count + 1)]
    fields = [field.with_nullable(True) for field in arrow_schema(DELIVERY_EVENT)]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def with_column(whole: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return whole.set_column(whole.schema.get_field_index(name), name, values)


def problems(path: Path) -> list[str | None]:
    piece = Piece(path=str(path), kind=PARQUET)
    return [
        told
        for batch in read_piece(piece, DELIVERY_EVENT)
        for told in arrow_rows.plain(batch, DELIVERY_EVENT).column(arrow_rows.PROBLEM).to_pylist()
    ]


def broken(count: int) -> pa.Array:
    """Bytes that are no text, in a column that says it holds texts."""
    raw = pa.array([b"\xff\xfe"] * count, pa.binary())
    return pa.Array.from_buffers(pa.string(), count, raw.buffers())


@pytest.mark.parametrize("has_dictionaries", [True, False])
@pytest.mark.parametrize("name", ["log_id", "participant", "channel", "message_id", "detail"])
def test_a_text_that_is_none_makes_the_file_a_damaged_one(
    tmp_path: Path, name: str, has_dictionaries: bool
) -> None:
    """To sort by it DuckDB would make numbers up."""
    path = tmp_path / "export.parquet"
    whole = with_column(usual(3), name, broken(3))
    pq.write_table(whole, path, use_dictionary=has_dictionaries)
    assert problems(path) == ["file.corrupt"]


@pytest.mark.parametrize("odd", [[["p"]], [{"p": 1}], [1.5]], ids=["list", "struct", "number"])
def test_a_text_column_that_holds_something_else_is_named(
    tmp_path: Path, odd: list[object]
) -> None:
    whole = with_column(usual(1), "participant", pa.array(odd))
    pq.write_table(whole, path := tmp_path / "export.parquet")
    assert problems(path) in (["file.corrupt"], [None])
    assert (problems(path) == [None]) == (odd == [1.5]), "a number is a text"


def test_a_column_that_is_there_twice_makes_the_file_a_damaged_one(tmp_path: Path) -> None:
    whole = usual(2).append_column("participant", pa.array(["p", "q"]))
    pq.write_table(whole, path := tmp_path / "export.parquet")
    assert problems(path) == ["file.corrupt"]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_in_other_encodings_are_read_too(tmp_path: Path, encoding: str) -> None:
    names = dict.fromkeys(arrow_rows.repeating_texts(DELIVERY_EVENT), encoding)
    path = tmp_path / "export.parquet"
    pq.write_table(usual(5), path, use_dictionary=False, column_encoding=names)
    assert problems(path) == [None] * 5


def test_a_long_text_in_many_rows_is_named_and_not_carried_on(tmp_path: Path) -> None:
    """A file of some kilobytes, of which Arrow would make 2 GB."""
    count = 50_000
    texts = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), count), ["x" * 45_000]
    )
    whole = with_column(usual(count), "channel", texts)
    pq.write_table(whole, path := tmp_path / "export.parquet")
    assert path.stat().st_size < 2_000_000
    assert problems(path) == ["channel.length"] * count
