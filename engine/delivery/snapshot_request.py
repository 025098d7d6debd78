"""Asks a running program to write a snapshot of its conversations to its delivery log.

Only the running program knows the final order.  It writes a snapshot every few minutes and at the
end.  To get a current one, an export creates a file beside the log, whose name starts with the
log's participant.  The program looks for such files every second, writes its snapshots and deletes
the file.  The file says only that a snapshot is wanted; its content is not read.

No program is asked if the log is closed: it has no write-ahead log beside it, or ends with
``stopped``.  A killed program does not answer.  Its log is complete but unfinished: the events tell
what was delivered after the last snapshot.
"""

import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.delivery.contract import Kind
from engine.delivery.sqlite_log import SUFFIX, DeliveryLogError, LogReader

REQUEST_SUFFIX: Final = ".snapshot-wanted"
ANSWER_WITHIN_S: Final = 5.0
LOOK_EVERY_S: Final = 0.05
MAX_REQUESTS: Final = 100
"""How many requests are handled together; others wait for the next time."""


def requests_for(directory: Path, participant: str) -> list[Path]:
    """Pending requests for a snapshot of this participant's log."""
    try:
        found = directory.glob(f"{participant}.*{REQUEST_SUFFIX}")
        return [path for path, _ in zip(found, range(MAX_REQUESTS), strict=False)]
    except OSError:
        return []


def take_away(requests: Iterable[Path]) -> None:
    """Delete requests that were answered or abandoned."""
    for path in requests:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def ask_for_snapshots(logs: Sequence[Path], *, within_s: float = ANSWER_WITHIN_S) -> list[Path]:
    """Ask for snapshots of all logs in use and wait; returns the logs without an answer."""
    asked: dict[Path, Path] = {}
    try:
        for path in _newest(logs):
            if _may_be_written_to(path):
                request = _request_beside(path)
                with suppress(OSError):  # No program can write a log there either.
                    request.touch(mode=0o600, exist_ok=False)
                    asked[path] = request
        until_s = time.monotonic() + within_s
        waiting = dict(asked)
        while waiting and time.monotonic() < until_s:
            time.sleep(LOOK_EVERY_S)
            waiting = {path: request for path, request in waiting.items() if request.exists()}
        return list(waiting)
    finally:
        take_away(asked.values())


def _newest(logs: Sequence[Path]) -> list[Path]:
    """The newest log per participant and directory: no other is written to."""
    newest: dict[tuple[Path, str], Path] = {}
    for path in sorted(logs):
        newest[path.parent, _participant_of(path)] = path
    return list(newest.values())


def _request_beside(log: Path) -> Path:
    return log.with_name(f"{_participant_of(log)}.{secrets.token_hex(8)}{REQUEST_SUFFIX}")


def _participant_of(log: Path) -> str:
    return log.name.removesuffix(SUFFIX).rpartition("-")[0] or log.name


def _may_be_written_to(path: Path) -> bool:
    if not path.with_name(f"{path.name}-wal").exists():
        return False
    try:
        with LogReader(path) as log:
            return log.last_kind() not in {None, Kind.STOPPED.value}
    except DeliveryLogError:
        return False
