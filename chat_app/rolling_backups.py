"""Makes a backup a day by itself while the window is open, and knows how old the last one is.

The folder is a setting, the secret that was made of the passphrase is in the profile's database.
Every few minutes it is looked whether a backup is due, so also soon after a start.  One that fails
is not tried again before hours have passed, or the folder is back, or the user asks for it.  The
work is done on a thread of its own, at the lowest priority and with pauses.
"""

import asyncio
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from chat_app.backing_up import source_of
from chat_app.paths import ProfilePaths
from chat_app.settings import BackupSettings
from engine.core.errors import BackupError, BackupFlaw, ChatError
from engine.core.ids import UnixMs
from engine.core.rolling_backups import Kept, is_due, is_reminder_due
from engine.persistence.backup import new_secret
from engine.persistence.key import DatabaseKey
from engine.persistence.rolling_backups import (
    STATE_KEY,
    Day,
    RollingState,
    RollingWork,
    in_folder,
    make_rolling,
    parse_state,
    require_folder,
    state_text,
    with_unsure,
)
from ui.backup_port import DailyBackups, DailyState
from ui.settings_port import SettingName, SettingsPort

LOOK_EVERY_S: Final = 600.0
FIRST_LOOK_S: Final = 60.0
"""After a start, which has other work."""
_TRY_AGAIN_S: Final = 6 * 3_600.0
_LEAST_APART_S: Final = 3_600.0
"""Also if the date changes all the time."""
_PAUSE_S: Final = 0.004
"""After each megabyte or two."""
_NS_PER_MS: Final = 1_000_000

logger = logging.getLogger(__name__)


class Keeping(Protocol):
    """Small values in the profile's database; an engine is one."""

    async def value(self, key: str, /) -> str | None: ...

    async def save_value(self, key: str, value: str, /) -> None: ...


def today_now() -> Day:
    now_ms = UnixMs(time.time_ns() // _NS_PER_MS)
    local = datetime.fromtimestamp(now_ms / 1000, tz=UTC).astimezone()
    year, week, _ = local.isocalendar()
    return Day(now_ms=now_ms, day=f"{local:%Y-%m-%d}", week=f"{year}-W{week:02}")


class _Failure(Struct, frozen=True):
    error: ChatError
    at_s: float


class RollingBackups:
    """A ``ui.backup_port.DailyPort``.  ``load`` first; ``run`` is a task, ``stop`` ends it."""

    def __init__(  # noqa: PLR0913 - keyword-only: what it asks
        self,
        paths: ProfilePaths,
        keeping: Keeping,
        settings: Callable[[], BackupSettings],
        *,
        set_folder: Callable[[str], Awaitable[None]],
        today: Callable[[], Day] = today_now,
        counted_s: Callable[[], float] = time.monotonic,
        key: DatabaseKey | None = None,
    ) -> None:
        """``set_folder`` writes the setting; it raises ConfigError.

        ``key``: of the database, if it was had already.
        """
        self._key = key
        self._paths = paths
        self._keeping = keeping
        self._settings = settings
        self._set_folder = set_folder
        self._today = today
        self._counted_s = counted_s
        self._state = RollingState()
        self._failure: _Failure | None = None
        self._made_s: float | None = None
        self._share: float | None = None
        self._is_loaded = self._is_ending = self._is_given_up = False
        self._turn = asyncio.Lock()
        self._awake = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    # --- life -------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def running(self, settings: SettingsPort) -> AsyncIterator[None]:
        """As long as the window is open."""
        call_off = settings.listen(self._heard)
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            call_off()
            self.stop()
            await task

    def _heard(self, name: SettingName) -> None:
        if name[0] == "backup":
            self.settings_changed()

    async def load(self) -> None:
        """Until then they seem to be off.  Raises StorageError."""
        kept = parse_state(await self._keeping.value(STATE_KEY))
        # A network drive that is away may take minutes to say so: never on the window's thread.
        self._state = await asyncio.to_thread(with_unsure, kept)
        now_ms = self._today().now_ms
        state = self._state
        # A clock that was ahead must not silence the reminder for years.
        last_ms = min(state.last_good_ms, now_ms)
        since_ms = min(state.since_ms, now_ms) or now_ms
        sane = replace(state, last_good_ms=last_ms, since_ms=since_ms)
        if sane != state:
            await self._save(sane)
        self._is_loaded = True
        self._tell()

    async def run(self) -> None:
        """Without a readable state there are no daily backups."""
        try:
            await self.load()
        except ChatError as error:
            logger.warning("daily backups are off", extra={"error": type(error).__name__})
            return
        pause_s = FIRST_LOOK_S
        while not self._is_ending:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), pause_s)
            self._awake.clear()
            await self.look()
            pause_s = LOOK_EVERY_S

    def stop(self) -> None:
        """``run`` ends soon, and what is being made is given up."""
        self._is_ending = True
        self._awake.set()

    async def look(self) -> None:
        """Make a backup if one is due."""
        async with self._turn:
            if await self._wants_one():
                await self._make()
            self._tell()

    async def _wants_one(self) -> bool:
        state, folder = self._state, self._folder()
        if folder is None or state.secret is None or self._is_ending:
            return False
        failure, now_s = self._failure, self._counted_s()
        if failure is not None and now_s - failure.at_s < _TRY_AGAIN_S:
            if not _is_away(failure.error):
                return False
            if not await asyncio.to_thread(self._is_there, folder):
                return False
        if self._made_s is not None and now_s - self._made_s < _LEAST_APART_S:
            return False
        return is_due(in_folder(state.made, folder), self._today().day)

    def _is_there(self, folder: Path) -> bool:
        try:
            require_folder(source_of(self._paths, self._key), folder, self._state)
        except ChatError:
            return False
        return True

    # --- the work ---------------------------------------------------------------------------------

    async def _make(self) -> None:
        folder, secret = self._folder(), self._state.secret
        if folder is None or secret is None:
            return
        settings, loop = self._settings(), asyncio.get_running_loop()
        today, state = self._today(), self._state
        self._share = 0.0
        self._tell()

        def save(state: RollingState) -> None:
            asyncio.run_coroutine_threadsafe(self._save(state), loop).result()

        def progress(share: float) -> bool:
            loop.call_soon_threadsafe(self._follow, share)
            time.sleep(_PAUSE_S)
            return not (self._is_ending or self._is_given_up)

        def make() -> None:
            work = RollingWork(
                source=source_of(self._paths, self._key),
                folder=folder,
                name=self._paths.name,
                secret=secret,
                kept=Kept(daily=settings.keep_daily, weekly=settings.keep_weekly),
            )
            make_rolling(work, state, today, save=save, progress=progress)

        try:
            await _on_a_quiet_thread(make)
        except ChatError as error:
            if not (isinstance(error, BackupError) and error.flaw is BackupFlaw.STOPPED):
                logger.warning("no daily backup", extra={"error": type(error).__name__})
                self._failure = _Failure(error, self._counted_s())
        else:
            self._failure, self._made_s = None, self._counted_s()
        finally:
            self._share = None

    def _follow(self, share: float) -> None:
        if self._share is not None and int(share * 100) > int(self._share * 100):
            self._share = share
            self._tell()

    async def _save(self, state: RollingState) -> None:
        await self._keeping.save_value(STATE_KEY, state_text(state))
        self._state = state

    # --- the window's part ------------------------------------------------------------------------

    def view(self) -> DailyBackups:
        settings, state, folder = self._settings(), self._state, self._folder()
        known_ms = state.last_good_ms or state.since_ms
        is_late = self._is_loaded and is_reminder_due(known_ms, self._today().now_ms)
        kept = () if folder is None else in_folder(state.made, folder)
        return DailyBackups(
            folder=settings.folder,
            state=self._what(folder),
            problem=None if self._failure is None or folder is None else self._failure.error,
            share=self._share or 0.0,
            last_good_ms=state.last_good_ms,
            kept=len(kept),
            is_late=settings.remind and is_late,
        )

    def _what(self, folder: Path | None) -> DailyState:
        if folder is None or not self._is_loaded:
            return DailyState.OFF
        if self._state.secret is None:
            return DailyState.NEEDS_PASSPHRASE
        if self._share is not None:
            return DailyState.WORKING
        return DailyState.ON if self._failure is None else DailyState.FAILED

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def turn_on(self, folder: Path, passphrase: str) -> None:
        """Raises BackupError, and ConfigError; then nothing has changed."""
        source = source_of(self._paths, self._key)
        await asyncio.to_thread(require_folder, source, folder, RollingState())
        secret = await asyncio.to_thread(new_secret, passphrase)
        async with self._turn:
            await self._set_folder(str(folder))
            self._failure = self._made_s = None
            await self._save(replace(self._state, secret=secret, disk=("", "")))
        self._tell()
        self._awake.set()

    async def turn_off(self) -> None:
        """What was made stays where it is.  Raises ConfigError."""
        await self._set_folder("")
        self._is_given_up = True
        async with self._turn:
            self._is_given_up = False
            self._failure = None
            await self._save(replace(self._state, secret=None))
        self._tell()

    def try_again(self) -> None:
        """Now, and not in some hours."""
        self._failure = self._made_s = None
        self._tell()
        self._awake.set()

    async def made_by_hand(self) -> None:
        """The user made a backup elsewhere: that counts as the last one, too."""
        await self._save(replace(self._state, last_good_ms=self._today().now_ms))
        self._tell()

    def settings_changed(self) -> None:
        """The folder may be another one, which deserves a try of its own."""
        self._failure = None
        self._tell()
        self._awake.set()

    def _folder(self) -> Path | None:
        folder = self._settings().folder
        return Path(folder) if folder else None

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


def _is_away(error: ChatError) -> bool:
    return isinstance(error, BackupError) and error.flaw is BackupFlaw.FOLDER_GONE


async def _on_a_quiet_thread(work: Callable[[], None]) -> None:
    threads = ThreadPoolExecutor(1, "daily-backup", initializer=_stand_back)
    try:
        await asyncio.get_running_loop().run_in_executor(threads, work)
    finally:
        threads.shutdown(wait=False)


def _stand_back() -> None:
    """Linux has a priority for each thread; elsewhere the pauses have to do."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
