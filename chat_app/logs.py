"""The program's log: JSON lines in the profile that never hold what people write, nor keys.

That is enforced here rather than hoped for.  A line has the record's message as it stands in the
source, with numbers filled in and every other argument replaced by its type; extra fields come
through only if they are listed below and look as listed; exceptions give their types and places,
never their texts; and what other libraries say is kept as its place only.  (A message that was
formatted before it was logged would slip through: the linter's G rules forbid that.)

Files are the user's own (0600) and turn over at a size, so the log is bounded.  Warnings go to
stderr as well, in plain words, by the same rules.
"""

import contextlib
import io
import json
import logging
import logging.handlers
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Final

from chat_app.settings import LogSettings
from engine.core.errors import ConfigError, OwnWords

OUR_LOGGERS: Final = ("chat_app", "ui", "engine", "benchmarks")
MAX_FRAMES: Final = 20
MAX_CAUSES: Final = 5

_WORD: Final = re.compile(r"[A-Za-z0-9_.:+-]{1,64}")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9_.:%/\[\]-]{1,256}")
_SENTENCE: Final = re.compile(r"[ -~]{1,400}")
FIELDS: Final[Mapping[str, re.Pattern[str] | None]] = {
    # None: a number.  Else: text of this shape, and nothing that a person or peer wrote freely.
    "address": _ADDRESS,
    "area": _WORD,
    "attempt": None,
    "bytes": None,
    "conversation": re.compile(r"[A-Za-z0-9_-]{1,8}"),
    "count": None,
    "counter": _WORD,
    "duration_ms": None,
    "errno": None,
    "error": re.compile(r"[A-Za-z0-9_.]{1,64}"),
    "limit": None,
    "message_id": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "peer": re.compile(r"[A-Za-z0-9]{1,64}"),
    "port": None,
    "problem": _SENTENCE,  # only if the caller says that the words are ours
    "profile": re.compile(r"[A-Za-z0-9._-]{1,40}"),
    "protocol": re.compile(r"/[A-Za-z0-9_./-]{1,96}"),
    "reason": _WORD,
    "state": _WORD,
    "topic": _ADDRESS,
    "version": _WORD,
}
"""Extra fields that may be logged: ``log.info("…", extra={"count": 3})``."""


def is_ours(logger_name: str) -> bool:
    return logger_name.split(".", 1)[0] in OUR_LOGGERS


def harmless(value: object) -> object:
    """Numbers and our own constants as they are; of anything else the type only."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, int | float):
        return value
    return f"<{type(value).__name__}>"


def words_of(record: logging.LogRecord) -> str:
    """What is said, without what it was said about."""
    if not is_ours(record.name):
        return "said something; its words are not kept"
    if not isinstance(record.msg, str):  # an exception, say, whose text could be anything
        return f"<{type(record.msg).__name__}>"
    template = record.msg
    arguments = record.args
    if not arguments:
        return template
    try:
        if isinstance(arguments, Mapping):
            return template % {key: harmless(value) for key, value in arguments.items()}
        return template % tuple(harmless(value) for value in arguments)
    except (TypeError, ValueError, KeyError):
        return template  # a %d was given something else; the place in the source says which


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The extra fields that are listed above and look as they should."""
    kept: dict[str, object] = {}
    for name, shape in FIELDS.items():
        value = record.__dict__.get(name)
        if value is None:
            continue
        if shape is None:
            is_good = isinstance(value, int | float) and not isinstance(value, bool)
        else:
            kind = OwnWords if shape is _SENTENCE else str
            is_good = isinstance(value, kind) and shape.fullmatch(value) is not None
        kept[name] = value if is_good else f"<{type(value).__name__}>"
    return kept


def causes_of(error: BaseException) -> list[dict[str, object]]:
    """Types and places, the last error first, without the errors' own texts."""
    causes: list[dict[str, object]] = []
    seen: BaseException | None = error
    while seen is not None and len(causes) < MAX_CAUSES:
        frames = traceback.extract_tb(seen.__traceback__)[-MAX_FRAMES:]
        places = [f"{_module(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
        kind = type(seen)
        causes.append({"type": f"{kind.__module__}.{kind.__qualname__}", "at": places})
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return causes


def _module(filename: str) -> str:
    """A file by its last two names: a full path would tell who the user is."""
    return "/".join(Path(filename).parts[-2:])


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, event, and whatever is allowed besides."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": words_of(record),
        }
        if not is_ours(record.name):
            line["at"] = f"{_module(record.pathname)}:{record.lineno}"
        line.update(fields_of(record))
        if record.exc_info and record.exc_info[1] is not None:
            line["causes"] = causes_of(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


class PlainWords(logging.Formatter):
    """For a terminal: one line without a traceback; the log has the rest."""

    def format(self, record: logging.LogRecord) -> str:
        details = [f"{name} {value}" for name, value in fields_of(record).items()]
        if record.exc_info and record.exc_info[1] is not None:
            details.append(type(record.exc_info[1]).__name__)
        about = f" ({', '.join(details)})" if details else ""
        who = "" if is_ours(record.name) else f"{record.name} "
        return f"causerie: {record.levelname.lower()}: {who}{words_of(record)}{about}"


class PrivateRotatingFile(logging.handlers.RotatingFileHandler):
    """Turns over by size; its files are 0600; when the disk refuses it says so once and goes on."""

    def __init__(self, path: Path, *, max_bytes: int, keep_files: int) -> None:
        self._has_complained = False
        super().__init__(
            path, maxBytes=max_bytes, backupCount=keep_files, encoding="utf-8", errors="replace"
        )

    def _open(self) -> io.TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="replace")

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what a full disk did not take is lost
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- logging's name
        del record
        if not self._has_complained and sys.stderr is not None:
            self._has_complained = True
            print("causerie: warning: the log cannot be written", file=sys.stderr)  # noqa: T201


def start_logging(settings: LogSettings, directory: Path) -> Callable[[], None]:
    """Log into ``directory`` from now on; returns how to stop.  Raises ConfigError."""
    path = directory / "causerie.log"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        to_file = PrivateRotatingFile(
            path, max_bytes=settings.max_bytes, keep_files=settings.keep_files
        )
    except OSError as error:
        raise ConfigError(f"{path}: the log cannot be written: {error.strerror}") from error
    to_file.setFormatter(JsonLines())
    handlers: list[logging.Handler] = [to_file]
    if sys.stderr is not None:  # a windowed program on Windows has none
        to_stderr = logging.StreamHandler()
        to_stderr.setLevel(logging.WARNING)
        to_stderr.setFormatter(PlainWords())
        handlers.append(to_stderr)
    root = logging.getLogger()
    before = root.level
    root.setLevel(settings.level.upper())
    for handler in handlers:
        root.addHandler(handler)

    def stop() -> None:
        root.setLevel(before)
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()

    return stop


@contextlib.contextmanager
def logging_to(settings: LogSettings, directory: Path) -> Iterator[None]:
    """``start_logging`` for the length of a block."""
    stop = start_logging(settings, directory)
    try:
        yield
    finally:
        stop()
