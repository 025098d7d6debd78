"""Keeps over a restart how many wrong passphrases were tried; a file that is no such count is none.

A try is counted before it is made, and forgotten if it was right: ending the program in between
gains nothing.
"""

from contextlib import suppress
from typing import Final

from engine.core.ids import UnixMs
from engine.core.unlocking import MAX_COUNTED, Attempts
from engine.persistence.profile_directory import ProfileDirectory, write_private_file

_MAX_BYTES: Final = 64
_LATEST_MS: Final = 1 << 53


def read_attempts(directory: ProfileDirectory, now_ms: UnixMs) -> Attempts:
    try:
        with directory.unlock_attempts.open("rb") as file:
            words = file.read(_MAX_BYTES).split()
    except OSError:
        return Attempts()
    if len(words) != 2 or not all(word.isdigit() for word in words):  # noqa: PLR2004 - a count, a time
        return Attempts()
    failures, last_ms = (int(word) for word in words)
    if failures > MAX_COUNTED or last_ms > _LATEST_MS:
        return Attempts()
    found = Attempts(failures=failures, last_ms=UnixMs(last_ms))
    seen = found.seen_at(now_ms)
    if seen != found:
        _write(directory, seen)
    return seen


def count_attempt(directory: ProfileDirectory, before: Attempts, now_ms: UnixMs) -> None:
    _write(directory, before.failed(now_ms))


def forget_attempts(directory: ProfileDirectory) -> None:
    with suppress(OSError):
        directory.unlock_attempts.unlink(missing_ok=True)


def _write(directory: ProfileDirectory, attempts: Attempts) -> None:
    with suppress(OSError):  # A full or read-only disk keeps nobody out.
        write_private_file(directory.unlock_attempts, f"{attempts.failures} {attempts.last_ms}\n")
