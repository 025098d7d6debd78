"""Reports a start that failed in a window, and tries again if the user asks for it.

Somebody who pressed an icon sees no standard error, so whatever keeps the window from opening is
shown where it would have been.  The command line gets its line and status 2 all the same, once
there is no further try.  Where nobody could see a window (Qt's platforms without a screen) there
is only the line.
"""

import asyncio
import errno
import os
import platform
import socket
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import structs

from chat_app.interrupts import Interrupts, closed_or_interrupted
from chat_app.logs import causes_of
from chat_app.paths import ProfilePaths
from chat_app.qt_loop import run_on_qt
from chat_app.version import version
from engine.core.errors import (
    ChatError,
    SettingsError,
    SettingsFlaw,
    StorageError,
    StorageFault,
    TransportError,
    TransportFault,
)
from engine.persistence.salvage import report_lines
from ui.app import build_failed_start
from ui.failed_start import FailedStart, LeftBehind, LostRows, SalvagedRows, StartAction

if TYPE_CHECKING:
    from chat_app.salvaging import SalvagedProfile
    from engine.persistence.recovery import LostMessages

UNSEEN: Final = frozenset({"offscreen", "minimal", "minimalegl", "vnc"})
_LOG_LINES: Final = 200
_LOG_BYTES: Final = 64 * 1024
_MAX_FILES: Final = 100
_LOST_WITH_THE_FILE: Final = frozenset(
    {SettingsFlaw.TOO_LARGE, SettingsFlaw.NOT_TEXT, SettingsFlaw.NOT_TOML}
)
_ONE_LINE: Final = frozenset(
    {SettingsFlaw.NO_SECTION, SettingsFlaw.UNKNOWN, SettingsFlaw.WRONG_VALUE}
)
"""Only lines about what protects the user keep the window from opening: better mended."""
_WRONG_ADDRESS: Final = frozenset(
    {
        errno.EADDRNOTAVAIL,
        errno.EAFNOSUPPORT,
        getattr(errno, "WSAEADDRNOTAVAIL", errno.EADDRNOTAVAIL),
        getattr(errno, "WSAEAFNOSUPPORT", errno.EAFNOSUPPORT),
    }
)
"""The address is none of this device; Windows has numbers of its own."""
_IN_VAIN: Final = frozenset({StorageFault.TOO_NEW, StorageFault.TOO_OLD, StorageFault.KEYS_TOO_NEW})
_NO_WAY_IN: Final = frozenset(
    {
        StorageFault.NOT_DECRYPTED,
        StorageFault.NO_KEY,
        StorageFault.KEYS_DAMAGED,
        StorageFault.KEYS_FOREIGN,
    }
)


def can_be_seen() -> bool:
    return os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0] not in UNSEEN


def ask_about(error: Exception, paths: ProfilePaths, *, offers_salvage: bool = True) -> StartAction:
    """Show a window until something is chosen.

    ``offers_salvage``: where the database is damaged; not if that was just tried.
    """
    failed = failed_start(error, paths)
    if not offers_salvage:
        rest = tuple(one for one in failed.actions if one is not StartAction.SALVAGE)
        failed = structs.replace(failed, actions=rest)
    return _ask(failed)


def ask_about_salvaged(made: "SalvagedProfile") -> StartAction:
    """Likewise: what came over and what is gone, and whether to open it."""
    return _ask(salvaged_start(made))


def tell_left(left: LeftBehind, paths: ProfilePaths) -> None:
    """What stays of a profile that was erased, until the window is closed."""
    _ask(erased_start(left, paths))


def erased_start(left: LeftBehind, paths: ProfilePaths) -> FailedStart:
    return FailedStart(
        error=None,
        details=" ".join(left.paths),
        folder=paths.directory,
        actions=(),
        report=lambda: "",
        left=left,
    )


def salvaged_start(made: "SalvagedProfile") -> FailedStart:
    found = made.salvaged.found
    rows = dict(found.rows)
    named = {kind: rows.pop(kind, 0) for kind in ("conversation", "message", "contact", "file")}
    return FailedStart(
        error=None,
        details=", ".join(f"{name}: {count}" for name, count in sorted(found.places.items())),
        folder=made.paths.directory,
        actions=(StartAction.OPEN_SALVAGED,),
        report=lambda: "\n".join(_salvage_report(made)) + "\n",
        salvaged=SalvagedRows(
            kept_as=made.salvaged.damaged.name,
            conversations=named["conversation"],
            messages=named["message"],
            people=named["contact"],
            files=named["file"],
            others=sum(rows.values()),
            unreadable=found.unreadable,
            mended=len(found.pages.mended),
            lost=tuple(_lost_words(one) for one in found.lost),
            asked_for=found.asked_for,
            keyless=found.keyless,
            is_cut_short=found.pages.frames_missing > 0,
        ),
    )


def _lost_words(one: "LostMessages") -> LostRows:
    return LostRows(
        conversation=one.conversation,
        messages=one.messages,
        first_ms=one.first_ms,
        last_ms=one.last_ms,
    )


def _salvage_report(made: "SalvagedProfile") -> Iterator[str]:
    yield f"causerie {version()}"
    yield f"salvaged in {made.paths.directory}"
    yield from report_lines(made.salvaged.found)


def _ask(failed: FailedStart) -> StartAction:
    chosen = [StartAction.QUIT]

    async def ask() -> int:
        window = build_failed_start(failed)
        answered = asyncio.Event()

        def choose(action: str) -> None:
            chosen.append(StartAction(action))
            answered.set()

        window.chosen.connect(choose)
        with Interrupts() as interrupts:
            window.show()
            await closed_or_interrupted(answered, interrupts)
            window.close()
        window.deleteLater()
        return 0

    run_on_qt(ask)
    return chosen[1] if len(chosen) > 1 else StartAction.QUIT


def failed_start(error: Exception, paths: ProfilePaths) -> FailedStart:
    is_ours = isinstance(error, ChatError)
    is_settings = isinstance(error, SettingsError) or _is_of_address(error)
    folder = paths.settings_directory if is_settings else paths.directory
    return FailedStart(
        error=error if isinstance(error, ChatError) else None,
        details=str(error) if is_ours else type(error).__name__,
        folder=folder,
        actions=_actions(error),
        report=lambda: "\n".join(_report(error, paths)) + "\n",
    )


def _actions(error: Exception) -> tuple[StartAction, ...]:  # noqa: PLR0911 - a table of errors
    match error:
        case SettingsError(flaw=flaw) if flaw in _LOST_WITH_THE_FILE:
            return StartAction.USE_DEFAULTS, StartAction.TRY_AGAIN
        case SettingsError(flaw=flaw) if flaw in _ONE_LINE:
            return StartAction.TRY_AGAIN, StartAction.USE_DEFAULTS
        case TransportError(fault=TransportFault.CANNOT_LISTEN) if not _is_of_address(error):
            return StartAction.ANY_PORT, StartAction.TRY_AGAIN
        case StorageError(fault=StorageFault.DAMAGED):
            return StartAction.SALVAGE, StartAction.RESTORE, StartAction.TRY_AGAIN
        case StorageError(fault=StorageFault.DATABASE_GONE):
            return StartAction.RESTORE, StartAction.TRY_AGAIN
        case StorageError(fault=fault) if fault in _NO_WAY_IN:
            return StartAction.TRY_AGAIN, StartAction.RESTORE
        case _:
            is_in_vain = isinstance(error, StorageError) and error.fault in _IN_VAIN
            may_pass = isinstance(error, ChatError) and not is_in_vain
            return (StartAction.TRY_AGAIN,) if may_pass else ()


def _is_of_address(error: Exception) -> bool:
    """Whether this device cannot listen there on any port."""
    cause = error.__cause__
    return isinstance(cause, socket.gaierror) or (
        isinstance(cause, OSError) and cause.errno in _WRONG_ADDRESS
    )


def set_settings_aside(path: Path) -> Path:
    """Rename the file, over no other; returns its new path.  Raises OSError."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.stem}.set-aside-{stamp}{path.suffix}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.stem}.set-aside-{stamp}-{number}{path.suffix}")
    path.rename(aside)
    return aside


# --- the report -----------------------------------------------------------------------------------


def _report(error: Exception, paths: ProfilePaths) -> Iterator[str]:
    """Nothing that anybody wrote: versions, the error, names and sizes of files, the log's end."""
    yield f"causerie {version()}"
    yield f"python {platform.python_version()}, {platform.platform()}"
    yield datetime.now(UTC).isoformat(timespec="seconds")
    yield f"error: {type(error).__name__}: {_said(error)}"
    for cause in causes_of(error):
        yield f"  {cause}"
    yield f"profile: {paths.directory}"
    yield from _files(paths.directory)
    yield "log:"
    yield from _log_end(paths.log_directory / "causerie.log")


def _said(error: Exception) -> str:
    match error:
        case SettingsError(flaw=flaw, place=place):
            return f"{flaw} {place}"  # Its text repeats what stands in the file.
        case ChatError():
            return str(error)
        case _:
            return ""


def _files(directory: Path) -> Iterator[str]:
    try:
        for path in sorted(directory.iterdir())[:_MAX_FILES]:
            found = path.lstat()
            yield f"  {stat.filemode(found.st_mode)} {found.st_size:>12} {path.name!a}"
    except OSError as error:
        yield f"  cannot be listed: {error.strerror}"


def _log_end(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LOG_BYTES))
            lines = file.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        yield f"  cannot be read: {error.strerror}"
        return
    yield from (f"  {line}" for line in lines[-_LOG_LINES:])
