"""A log's table in one call, as a store fills it from rows."""

from collections.abc import Iterable

from engine.core.sds.log_ids import BUCKET_ROWS
from engine.core.sds.log_table import PAGE_ROWS, LogTable, Row


def table_of(
    rows: Iterable[Row], *, page_rows: int = PAGE_ROWS, bucket_rows: int = BUCKET_ROWS
) -> LogTable:
    table = LogTable(page_rows=page_rows, bucket_rows=bucket_rows)
    table.add_rows(rows)
    return table
