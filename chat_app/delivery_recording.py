"""Whether this profile records deliveries, where, and under which key.

The settings say so, or the command line for one run.  A key is made when there is none, kept in the
settings, and shown on the terminal, so that others of a test group can be given it.  A window that
is open switches it at once, also if somebody changes the settings file.
"""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final

from msgspec import Struct

from chat_app.backing_up import on_a_thread
from chat_app.compose import unix_now_ms
from chat_app.paths import ProfilePaths
from chat_app.settings import Settings
from chat_app.settings_control import SettingsControl
from chat_app.settings_file import change_setting
from chat_app.version import version
from engine.core.errors import ChatError, StorageError, StorageFault
from engine.delivery.contract import DELIVERY_EVENT
from engine.delivery.log_writer import Limits
from engine.delivery.pseudonym import KEY_BYTES, key_text, parse_key
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.persistence.carry_over import Progress
from ui.backup_port import Follow, GoesOn
from ui.recording_port import ExportedLog, ExportWish, LogFormat, RecordingState, UnreadableLog
from ui.settings_port import SettingName

MEGABYTE: Final = 1_000_000
_SECTION: Final = "delivery"
FILES: Final = 4
"""Among which the space is shared, so that what goes when it is full is a part of it."""

logger = logging.getLogger(__name__)


class RecordOptions(Struct, frozen=True, kw_only=True):
    """What the command line said; ``directory`` None: in the profile, ``key`` None: settings."""

    wanted: bool = False
    directory: Path | None = None
    key: str | None = None


def make_recorder(
    paths: ProfilePaths, settings: Settings, options: RecordOptions
) -> Recorder | None:
    """None if nothing is to be recorded.  Raises ConfigError."""
    wanted = recorder_settings(paths, settings, options)
    return None if wanted is None else _recorder(wanted)


def _recorder(wanted: RecorderSettings) -> Recorder:
    return Recorder(wanted, now_ms=unix_now_ms, random_bytes=os.urandom)


def recorder_settings(
    paths: ProfilePaths, settings: Settings, options: RecordOptions
) -> RecorderSettings | None:
    """None if nothing is to be recorded.  Raises ConfigError."""
    chosen = settings.delivery
    if not (options.wanted or options.key is not None or chosen.record):
        return None
    directory = options.directory or paths.delivery_directory
    key = parse_key(options.key or chosen.key or _made_key(paths, directory))
    total = chosen.max_megabytes * MEGABYTE
    return RecorderSettings(
        directory=directory,
        key=key,
        app_version=version()[:32],
        network=f"waku/{settings.network.cluster}",
        limits=Limits(file_bytes=total // FILES, total_bytes=total),
    )


def _made_key(paths: ProfilePaths, directory: Path) -> str:
    key = key_text(os.urandom(KEY_BYTES))
    change_setting(paths.settings_file, "delivery", "key", key)
    sys.stderr.write(
        f"causerie: deliveries are recorded in {directory}. Others whose records are to be compared"
        f" need the same key, in a file for --record-delivery-key-file: {key}\n"
    )
    return key


class WindowRecording:
    """A ``ui.recording_port.RecordingPort``."""

    def __init__(
        self, paths: ProfilePaths, kept: SettingsControl, options: RecordOptions, *, cluster: int
    ) -> None:
        """``cluster``: of the network in this run.  Raises ConfigError."""
        self._paths = paths
        self._kept = kept
        self._options = options
        self._cluster = cluster
        self._wanted = self._wanted_now()
        self._recorder = None if self._wanted is None else _recorder(self._wanted)
        self._record: Callable[[Recorder | None], Awaitable[None]] | None = None
        self._turn = asyncio.Lock()
        self._switching: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[], None]] = []

    def recorder(self) -> Recorder | None:
        """For an engine that is about to start."""
        return self._recorder

    def follow(self, record: Callable[[Recorder | None], Awaitable[None]]) -> Callable[[], None]:
        """Call it when another recorder is wanted, or none, until it is called off."""
        self._record = record
        return self._kept.listen(self._setting_changed)

    @property
    def directory(self) -> Path:
        if self._wanted is not None:
            return self._wanted.directory
        return self._options.directory or self._paths.delivery_directory

    # --- whether it is on -------------------------------------------------------------------------

    def state(self) -> RecordingState:
        options = self._options
        return RecordingState(
            records=self._wanted is not None,
            directory=str(self.directory),
            key=options.key or self._kept.settings.delivery.key,
            lasts=options.wanted or options.key is not None,
        )

    async def switch(self, *, on: bool) -> None:
        await self._kept.change((_SECTION, "record"), on)
        await self._go_by_settings()

    def listen(self, listener: Callable[[], None], /) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _wanted_now(self) -> RecorderSettings | None:
        settings = self._kept.settings
        network = replace(settings.network, cluster=self._cluster)
        wanted = recorder_settings(self._paths, replace(settings, network=network), self._options)
        if wanted is not None and not (self._options.key or settings.delivery.key):
            self._kept.reread()  # A key was made, and is to be the only one.
        return wanted

    def _setting_changed(self, name: SettingName) -> None:
        if name[0] == _SECTION:
            task = asyncio.get_running_loop().create_task(self._try_to_go_by_settings())
            self._switching.add(task)
            task.add_done_callback(self._switching.discard)

    async def _try_to_go_by_settings(self) -> None:
        try:
            await self._go_by_settings()
        except ChatError as error:
            logger.warning("recording stays as it was", extra={"error": type(error).__name__})

    async def _go_by_settings(self) -> None:
        async with self._turn:
            wanted = self._wanted_now()
            if wanted == self._wanted or self._record is None:
                return
            recorder = None if wanted is None else _recorder(wanted)
            await self._record(recorder)
            self._wanted, self._recorder = wanted, recorder
        for listener in tuple(self._listeners):
            listener()

    # --- what was recorded ------------------------------------------------------------------------

    def formats(self) -> tuple[LogFormat, ...]:
        from chat_app.table_export import formats_here  # noqa: PLC0415 - seldom wanted

        return tuple(map(LogFormat, formats_here()))

    async def export(self, wish: ExportWish, follow: Follow, goes_on: GoesOn) -> ExportedLog:
        place = self.directory
        if self._recorder is not None:  # Or its first file may still be empty.
            await asyncio.to_thread(self._recorder.flush)
        return await on_a_thread(lambda told: _exported(place, wish, told), follow, goes_on)


def _exported(place: Path, wish: ExportWish, progress: Progress) -> ExportedLog:
    from chat_app.export_log import LogExport  # noqa: PLC0415 - seldom wanted

    if not place.exists():
        return ExportedLog(folder=None)
    export = LogExport(place, wish.since_ms, None, progress)
    folder = None
    counts: dict[str, int] = {}
    if export.logs:
        folder = _free_folder(wish.folder)
        try:
            counts = export.write(folder, wish.log_format.value)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            text = f"Cannot export records: {reason}."
            raise StorageError(text, StorageFault.FILE_NOT_WRITTEN, reason) from error
    return ExportedLog(
        folder=folder,
        events=counts.get(DELIVERY_EVENT.name, 0),
        logs=len(export.logs),
        bad_rows=export.bad_rows,
        unreadable=tuple(
            UnreadableLog(name=error.path.name, reason=error.reason) for error in export.refused
        ),
    )


def _free_folder(place: Path) -> Path:
    """A name that is not taken, for what is exported now."""
    stem = time.strftime("causerie-deliveries-%Y-%m-%d-%H%M%S")
    return next(
        path
        for number in count(1)
        if not (path := place / (stem if number == 1 else f"{stem}-{number}")).exists()
    )
