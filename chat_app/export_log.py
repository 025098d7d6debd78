"""``causerie export-log``: recorded deliveries as Parquet or JSON lines, one file for each table.

A log may be written to meanwhile.  The program that writes it is asked for the order of
conversations as of now; if it does not answer, as after a kill, the output says so.  A log that
cannot be read is named with the reason and left out, a row that breaks the contract is counted and
left out; the exit status tells of both.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chat_app.paths import profile_paths
from chat_app.table_export import Row, check_place, unwritable, write_tables, writer_of
from engine.core.errors import ConfigError
from engine.delivery.contract import DELIVERY_EVENT, LOG_TABLES, Table
from engine.delivery.snapshot_request import ask_for_snapshots
from engine.delivery.sqlite_log import DeliveryLogError, LogReader, find_logs
from engine.persistence.carry_over import Progress, unheard
from ui.recording_port import ExportStoppedError

BATCH: Final = 10_000
_TELL_EVERY: Final = 1_000
"""Rows between two looks at whether to go on."""
EXIT_INCOMPLETE: Final = 1
_HOW: Final = "they are recorded with causerie --record-delivery"
_UNFINISHED: Final = (
    "nobody who writes it answers; its final order is of the last snapshot, and what was delivered"
    " after it stands in the events"
)
_AT: Final = DELIVERY_EVENT.names.index("at_ms")


class LogExport:
    """All logs at a place, within a span of time.  None if there is nothing to be read."""

    def __init__(
        self,
        place: Path,
        since_ms: int | None,
        until_ms: int | None,
        progress: Progress = unheard,
    ) -> None:
        """``progress`` is told the share of the rows that were read, and whether to go on."""
        self._since_ms = 0 if since_ms is None else since_ms
        self._until_ms = 2**63 if until_ms is None else until_ms
        self._progress = progress
        self._rows_in_all, self._rows_read = 0, 0
        self._told: set[tuple[Path, str]] = set()
        self.refused: list[DeliveryLogError] = []
        """Each log once for each reason."""
        self.unfinished: list[Path] = []
        """Nobody who writes them answers."""
        self.bad_rows = 0
        self.logs = [path for path in find_logs(place) if self._is_readable(path)]

    def _is_readable(self, path: Path) -> bool:
        try:
            with LogReader(path) as log:
                self._rows_in_all += sum(map(log.count, LOG_TABLES))
        except DeliveryLogError as error:
            self._refuse(error)
            return False
        return True

    def _refuse(self, error: DeliveryLogError) -> None:
        if (error.path, error.reason) not in self._told:
            self._told.add((error.path, error.reason))
            self.refused.append(error)

    def write(self, out: Path, format_: str) -> dict[str, int]:
        """How many rows each table has.  Raises ConfigError, OSError, ExportStoppedError."""
        make = writer_of(format_)  # before anybody is asked
        self.unfinished = ask_for_snapshots(self.logs)
        return write_tables(out, format_, make, {each: self.batches(each) for each in LOG_TABLES})

    def batches(self, table: Table) -> Iterator[list[Row]]:
        """``since`` and ``until`` bound the events; the other tables are whole."""
        batch: list[Row] = []
        for path in self.logs:
            try:
                for row in self._rows(path, table):
                    batch.append(row)
                    if len(batch) == BATCH:
                        yield batch
                        batch = []
            except DeliveryLogError as error:
                self._refuse(error)
        if batch:
            yield batch

    def _rows(self, path: Path, table: Table) -> Iterator[Row]:
        self._tell()
        with LogReader(path) as log:
            for row, problem in log.checked(table):
                self._rows_read += 1
                if not self._rows_read % _TELL_EVERY:
                    self._tell()
                if problem is not None:
                    self.bad_rows += 1
                elif table is not DELIVERY_EVENT or self._is_within(row[_AT]):
                    yield row

    def _tell(self) -> None:
        if not self._progress(min(self._rows_read / max(self._rows_in_all, 1), 1.0)):
            raise ExportStoppedError

    def _is_within(self, at_ms: object) -> bool:
        return isinstance(at_ms, int) and self._since_ms <= at_ms < self._until_ms


def export_log(asked: argparse.Namespace) -> int:
    """Returns the exit status: 1 if something could not be exported.  Raises ConfigError."""
    place: Path = asked.logs or profile_paths(asked.profile, asked.profile_dir).delivery_directory
    if asked.logs is None and not place.exists():
        raise ConfigError(f"{place.parent}: no deliveries were recorded there; {_HOW}")
    export = LogExport(place, asked.since, asked.until)
    if not export.logs:  # before anything is made in whose way the next try would be
        nothing = f"{place}: there are no recorded deliveries; {_HOW}"
        raise ConfigError("; ".join(map(str, export.refused)) or nothing)
    check_place(asked.out)  # before anybody is asked
    try:
        counts = export.write(asked.out, asked.format)
    except OSError as error:
        raise unwritable(asked.out, error) from error
    for path in export.unfinished:
        sys.stderr.write(f"causerie: {path}: {_UNFINISHED}\n")
    said = ", ".join(f"{count} of {name}" for name, count in counts.items())
    sys.stdout.write(f"{asked.out}: {len(export.logs)} logs; {said}\n")
    for reason in export.refused:
        sys.stderr.write(f"causerie: {reason}\n")
    if export.bad_rows:
        sys.stderr.write(f"causerie: {export.bad_rows} rows do not keep to the contract\n")
    return EXIT_INCOMPLETE if export.refused or export.bad_rows else 0
