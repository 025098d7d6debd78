"""What a user hands to whoever looks into a problem: one file of text, to be read before that.

It holds the recorded deliveries of the last hour, the version, counters, the connection's state and
those settings that are switches, numbers or choices.  It holds no text, name, key, address or path.
Every id is replaced by a pseudonym under a key that is made for this report and thrown away, so
that the same id is the same one within it, and nobody can look it up elsewhere.
"""

import asyncio
import hmac
import json
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from chat_app.compose import unix_now_ms
from chat_app.delivery_recording import WindowRecording
from chat_app.settings import Settings, keys_of, sections_of
from chat_app.settings_control import SettingsControl
from chat_app.settings_rules import Choice, Flag, Whole
from chat_app.version import version
from engine.api import ChatEngine
from engine.core.errors import StorageError, StorageFault
from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.sqlite_log import DeliveryLogError, LogReader, find_logs
from ui.report_port import Report

HOUR_MS: Final = 3_600_000
MAX_EVENTS: Final = 50_000
"""The newest ones count."""
_FORMAT: Final = 1
_WORD: Final = re.compile(r"[a-z0-9_.]{1,64}", re.ASCII)
_IDS: Final = ("channel", "message_id", "peer", "waku_hash")
_WORDS: Final = ("protocol", "kind", "ack_source", "via", "detail")
_NUMBERS: Final = (
    "seq", "lamport", "position", "at_ms", "attempt", "wire_bytes", "amount", "bloom_m", "bloom_k",
    "bloom_n",
)  # fmt: skip
_COLUMNS: Final = (*_IDS, *_WORDS, *_NUMBERS)


class BugReports:
    """``ui.report_port.ReportPort``."""

    def __init__(  # noqa: PLR0913 - keyword-only, but for what it tells of
        self,
        engine: ChatEngine,
        logs: Callable[[], Path],
        settings: Callable[[], Settings],
        *,
        version: Callable[[], str],
        records: Callable[[], bool],
        now_ms: Callable[[], int],
    ) -> None:
        """``logs``: where deliveries are recorded; ``records``: whether they are now."""
        self._engine = engine
        self._logs = logs
        self._settings = settings
        self._version = version
        self._records = records
        self._now_ms = now_ms

    @property
    def records(self) -> bool:
        return self._records()

    async def make(self) -> Report:
        head = {
            "causerie_report": _FORMAT,
            "made_ms": self._now_ms(),
            "app": self._version(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "records_deliveries": self.records,
        }
        about = {
            "connection": self._connection(),
            "counters": _counters(self._engine.counters()),
            "settings": _settings(self._settings()),
        }
        key, since_ms = os.urandom(32), self._now_ms() - HOUR_MS
        rows, unreadable = await asyncio.to_thread(_events, self._logs(), since_ms, key)
        head |= {"events": len(rows), "logs_not_readable": unreadable}
        lines = (head, *({name: value} for name, value in about.items()), *rows)
        text = "".join(json.dumps(line, separators=(", ", ": ")) + "\n" for line in lines)
        return Report(text=text, events=len(rows))

    def _connection(self) -> Mapping[str, object]:
        connection = self._engine.connection()
        return {
            "level": str(connection.level),
            "peers": connection.peers,
            "bytes_in": connection.bytes_in,
            "bytes_out": connection.bytes_out,
        }

    async def save(self, report: Report, folder: Path) -> Path:
        """Raises StorageError."""
        path = folder / f"causerie-report-{self._now_ms() // 1_000}.txt"

        def write() -> None:
            try:
                path.write_text(report.text, encoding="utf-8")
            except OSError as error:
                reason = error.strerror or type(error).__name__
                text = f"Cannot write the report: {reason}."
                raise StorageError(text, StorageFault.FILE_NOT_WRITTEN, reason) from error

        await asyncio.to_thread(write)
        return path


def reports_here(
    engine: ChatEngine, recording: WindowRecording, kept: SettingsControl
) -> BugReports:
    """Of the running program, as it is set when a report is made."""
    return BugReports(
        engine,
        lambda: recording.directory,
        lambda: kept.settings,
        version=version,
        records=lambda: recording.state().records,
        now_ms=unix_now_ms,
    )


def _counters(counters: Mapping[str, int]) -> Mapping[str, int]:
    return {name: number for name, number in counters.items() if _WORD.fullmatch(name)}


def _settings(settings: Settings) -> Mapping[str, object]:
    """Only what cannot hold a secret: switches, numbers and choices."""
    return {
        f"{name}.{key.name}": getattr(section, key.name)
        for name, section in sections_of(settings)
        for key in keys_of(name)
        if isinstance(key.rule, Flag | Whole | Choice)
    }


def _events(logs: Path, since_ms: int, key: bytes) -> tuple[list[Mapping[str, object]], int]:
    """In order; and how many logs could not be read, or not to their end."""
    found: list[tuple[int, Mapping[str, object]]] = []
    unreadable = 0
    for path in find_logs(logs) if logs.is_dir() else []:
        try:
            found += _recent(path, since_ms, key)
        except DeliveryLogError:
            unreadable += 1
    found.sort(key=lambda pair: pair[0])
    return [event for _, event in found[-MAX_EVENTS:]], unreadable


def _recent(path: Path, since_ms: int, key: bytes) -> Iterator[tuple[int, Mapping[str, object]]]:
    with LogReader(path) as log:
        through = log.last_seq()
        for batch in log.batches(DELIVERY_EVENT, _COLUMNS, after_seq=max(0, through - MAX_EVENTS)):
            for row in batch:
                cells = dict(zip(_COLUMNS, row, strict=True))
                at_ms = cells["at_ms"]
                if isinstance(at_ms, int) and at_ms >= since_ms and cells["kind"] in set(Kind):
                    yield at_ms, _cleaned(cells, key)


def _cleaned(cells: Mapping[str, object], key: bytes) -> Mapping[str, object]:
    """The log may be damaged or a stranger's: only what a cell may be comes through."""
    event: dict[str, object] = {}
    for name in _COLUMNS:
        value = cells[name]
        if name in _IDS and isinstance(value, str | bytes):
            event[name] = _pseudonym(name, value, key)
        elif _is_word(name, value) or (name in _NUMBERS and isinstance(value, int)):
            event[name] = value
    return event


def _is_word(name: str, value: object) -> bool:
    return name in _WORDS and isinstance(value, str) and _WORD.fullmatch(value) is not None


def _pseudonym(name: str, value: str | bytes, key: bytes) -> str:
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    return hmac.new(key, name.encode() + b"/" + raw, sha256).hexdigest()[:12]
