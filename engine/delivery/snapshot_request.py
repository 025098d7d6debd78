"""Asking whoever writes a log to write down how its conversations stand now.

Their final order is known to the running program alone, which writes it every few minutes and at
the end.  An export wants it as of now: it puts a file beside the log, whose name begins as the log
of that participant does, and waits until the program, which looks for such files every second, has
written its snapshots and taken the file away.  A log without a write-ahead log beside it is closed,
one that ends with ``stopped`` as well, and nobody is asked.  A program that was killed does not
answer; its log is complete without, only unfinished: what was delivered after the last snapshot
stands in the events.

Nothing is told by such a file but that somebody wants a snapshot; what stands in it is not read.
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
"""That are looked at together; more wait for the next time."""


def requests_for(directory: Path, participant: str) -> list[Path]:
    """Whoever wants a snapshot of this participant's log now."""
    try:
        found = directory.glob(f"{participant}.*{REQUEST_SUFFIX}")
        return [path for path, _ in zip(found, range(MAX_REQUESTS), strict=False)]
    except OSError:
        return []


def take_away(requests: Iterable[Path]) -> None:
    """They were answered, or nobody waits any more."""
    for path in requests:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def ask_for_snapshots(logs: Sequence[Path], *, within_s: float = ANSWER_WITHIN_S) -> list[Path]:
    """Of all that may be written to, and wait; those of whom nobody answered."""
    asked: dict[Path, Path] = {}
    try:
        for path in _newest(logs):
            if _may_be_written_to(path):
                request = _request_beside(path)
                with suppress(OSError):  # Where nothing can be put nobody writes a log either.
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
    """Of each participant in each directory: only that one is written to."""
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
