"""``causerie``: one profile in one window.

Order matters.  Arguments, profile directory, lock and settings are checked before Qt shows
anything, the database and the port before the window appears.  What is wrong is one line and exit
status 2, and a window of its own where that can be seen.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject

from chat_app.backing_up import WINDOW_FILE, WindowBackups, source_of
from chat_app.bug_report import reports_here
from chat_app.carrying_over import CarryingOver
from chat_app.compose import Overrides, build_engine
from chat_app.delivery_recording import RecordOptions, WindowRecording
from chat_app.desktop_session import DesktopSession
from chat_app.effective_network import listen_host
from chat_app.interrupts import Interrupts, closed_or_interrupted
from chat_app.logs import logging_to
from chat_app.network_control import NetworkControl, store_problem
from chat_app.passphrase_control import PassphraseControl
from chat_app.passphrase_options import PassphraseSource
from chat_app.paths import ProfilePaths
from chat_app.qt_loop import run_on_qt
from chat_app.rolling_backups import RollingBackups
from chat_app.settings import Settings
from chat_app.settings_control import SettingsControl
from chat_app.settings_file import write_default
from chat_app.settings_reading import ReadSettings, load_what_is_right
from chat_app.space import WindowSpace
from chat_app.unlocking import ForgottenError, Unlocked, Unlocking, unlocked
from chat_app.update_notice import UpdateNotice, channel_here, notice_here, while_open
from chat_app.version import version
from chat_app.window_memory import WindowMemory
from chat_app.window_settings import WindowSettings
from engine.api import ChatEngine
from engine.core.errors import (
    ChatError,
    StorageError,
    StorageFault,
    TransportError,
    TransportFault,
)
from engine.core.faults import FaultSpec
from engine.persistence.carry_over import Progress
from engine.persistence.earlier_profile import earlier_profile
from engine.persistence.errors import CarryOverStoppedError
from engine.persistence.key import DatabaseKey
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.runtime.engine import Engine
from ui.app import build_window
from ui.settings import UiSettings
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from chat_app.one_instance import InstanceServer
    from ui.desktop.autostart import AutostartPort

START_AGAIN: Final = -1
"""In place of an exit status: settings are to count that are read at a start."""
LOCKED: Final = b'{"locked":true}'
"""What ``causerie watch`` hears of a window that asks for the passphrase."""


class Keys:
    """Of the profile that this process has opened, so that it asks for a passphrase once."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._key: DatabaseKey | None = None

    def keep(self, paths: ProfilePaths, opened: Unlocked) -> None:
        self._directory, self._key = paths.directory, opened.key

    def of(self, paths: ProfilePaths) -> DatabaseKey | None:
        return self._key if self._directory == paths.directory else None

    def known(self, paths: ProfilePaths) -> Unlocked | None:
        key = self.of(paths)
        return None if key is None else Unlocked(key=key)


class RestoreAskedError(Exception):
    """The window closed for a backup to be restored, which needs the profile for itself."""


class EraseAskedError(Exception):
    """The window closed for the profile to be erased."""


class WindowOptions(Struct, frozen=True, kw_only=True):
    """What the command line said.

    ``measure_start_ns``: the monotonic clock when the process was started; the window then prints
    its first paint and memory as JSON, and closes.
    """

    link: str = ""
    """To be shown: of a person or an invitation."""
    minimised: bool = False
    """Start in the tray, or in the task bar where there is none."""
    start_command: tuple[str, ...] = ()
    """What starts this profile with the session; empty: that is not offered."""
    port: int | None = None
    faults: FaultSpec | None = None
    record: RecordOptions = field(default_factory=RecordOptions)
    measure_start_ns: int | None = None
    passphrase: PassphraseSource = field(default_factory=PassphraseSource)


def run_window(paths: ProfilePaths, options: WindowOptions, keys: Keys) -> int:
    """An exit status, or ``START_AGAIN``.

    Raises ConfigError, StorageError, TransportError for what keeps the window from opening, and
    RestoreAskedError, ForgottenError or EraseAskedError for what it closed for.
    """
    directory = open_profile_directory(paths.directory)
    with ProfileLock(directory):
        read = _settings(paths)
        with logging_to(read.settings.log, paths.log_directory):
            return run_on_qt(lambda: _run(paths, directory, read, options, keys))


def _settings(paths: ProfilePaths) -> ReadSettings:
    if not paths.settings_file.exists():
        write_default(paths.settings_file)
    return load_what_is_right(paths.settings_file)


class _Parts:
    """What is made of a profile for its window: its engine, and what goes on beside that."""

    def __init__(
        self,
        paths: ProfilePaths,
        directory: ProfileDirectory,
        read: ReadSettings,
        options: WindowOptions,
    ) -> None:
        settings = read.settings
        self._paths = paths
        self._directory = directory
        self._read = read
        self._options = options
        self._began_s = time.time()
        self._control = NetworkControl(settings.network)
        self.kept = SettingsControl(paths.settings_file, settings, self._control)
        self.recording = WindowRecording(
            paths, self.kept, options.record, cluster=settings.network.cluster
        )
        self.memory = WindowMemory(WindowSettings(self.kept), directory.path / WINDOW_FILE)
        self.asked: list[Exception] = []
        """Whoever asks closes the window; what they asked comes after."""

    @property
    def _force_key_file(self) -> bool:
        return self._read.settings.storage.key == "file"

    def unlocking(self) -> Unlocking:
        return Unlocking(
            directory=self._directory,
            profile=self._paths.name,
            force_key_file=self._force_key_file,
            source=self._options.passphrase,
            can_ask=self._options.measure_start_ns is None,
        )

    def engine(self, key: DatabaseKey, progress: Progress) -> Engine:
        kept = self.kept
        return build_engine(
            self._directory,
            self._read.settings,
            Overrides(port=self._options.port, faults=self._options.faults),
            self._control,
            self.recording.recorder(),
            announces_presence=lambda: kept.settings.privacy.presence,
            fetches_pictures_below_mb=lambda: kept.settings.privacy.fetch_pictures_below_mb,
            mentions_when_muted=lambda: kept.settings.notifications.mentions_when_muted,
            progress=progress,
            key=key,
        )

    def backups(self, engine: Engine, key: DatabaseKey) -> RollingBackups:
        kept = self.kept
        return RollingBackups(
            self._paths,
            engine,
            lambda: kept.settings.backup,
            set_folder=lambda folder: kept.change(("backup", "folder"), folder),
            key=key,
        )

    def context(
        self,
        engine: Engine,
        daily: RollingBackups,
        updates: UpdateNotice | None,
        key: DatabaseKey,
    ) -> WindowContext:
        paths, asked = self._paths, self.asked
        return WindowContext(
            settings_port=self.kept,
            settings_file=str(paths.settings_file),
            wrong_settings=self._read.complaints,
            earlier_profile=str(earlier_profile(self._directory) or ""),
            explains_closing=True,
            autostart=_autostart(self._options.start_command),
            backups=WindowBackups(paths, daily.made_by_hand, key=key),
            daily=daily,
            passphrase=PassphraseControl(self._directory, key, force_key_file=self._force_key_file),
            restore=None if engine.identity() else partial(asked.append, RestoreAskedError()),
            restore_beside=partial(asked.append, ForgottenError()),
            space=WindowSpace(
                partial(source_of, paths, key),
                paths.delivery_directory,
                engine.alone_with_storage,
                began_s=self._began_s,
            ),
            report=reports_here(engine, self.recording, self.kept),
            recording=self.recording,
            updates=updates,
            profile_name=paths.name,
            erase=partial(asked.append, EraseAskedError()),
            repair=partial(asked.append, _damaged()),
        )


async def _run(
    paths: ProfilePaths,
    directory: ProfileDirectory,
    read: ReadSettings,
    options: WindowOptions,
    keys: Keys,
) -> int:
    settings, parts = read.settings, _Parts(paths, directory, read, options)
    kept, memory = parts.kept, parts.memory
    with Interrupts() as interrupts:
        opened = keys.known(paths) or await unlocked(
            parts.unlocking(), _ui_settings(memory), interrupts
        )
        if opened is None:
            return interrupts.status
        keys.keep(paths, opened)
        carrying_over = CarryingOver(_ui_settings(memory), interrupts)
        engine = parts.engine(opened.key, carrying_over.progress)
        daily = parts.backups(engine, opened.key)
        updates = notice_here(engine, kept, settings, channel_here())
        try:
            await require_free_port(listen_host(settings), _set_port(settings, options))
            if await _start(engine, carrying_over):
                context = parts.context(engine, daily, updates, opened.key)
                parts.recording.follow(engine.record)
                async with daily.running(kept), while_open(updates, kept):
                    window = await _show_windows(
                        engine, memory, context, options, interrupts, directory.path, opened.links
                    )
                if window.wants_restart:
                    return START_AGAIN
        finally:
            await engine.stop()
    if parts.asked:
        raise parts.asked[0]
    return interrupts.status


def _damaged() -> StorageError:
    return StorageError("The database was damaged while the program ran.", StorageFault.DAMAGED)


async def _show_windows(  # noqa: PLR0913, PLR0917 - what a window needs
    engine: Engine,
    memory: WindowMemory,
    context: WindowContext,
    options: WindowOptions,
    interrupts: Interrupts,
    directory: Path,
    links: Sequence[str],
) -> MainWindow:
    """One after another, since a window speaks one language as long as it is there.

    Returns the last, which is closed.
    """
    while True:
        window = make_window(engine, memory, context)
        for link in links:
            window.outside_links.open(link)
        await show_until_closed(window, engine, options, interrupts, directory)
        if not window.wants_another:
            return window
        links = ()
        context = replace(context, wrong_settings=(), settings_section="appearance")
        options = replace(options, link="", minimised=False)


async def _start(engine: Engine, carrying_over: CarryingOver) -> bool:
    """Whether it goes on: carrying an old profile over may be stopped.  Raises ChatError."""
    try:
        await engine.start()
    except CarryOverStoppedError:
        return False
    finally:
        carrying_over.end()
    return True


def _set_port(settings: Settings, options: WindowOptions) -> int:
    return settings.network.port if options.port is None else options.port


async def require_free_port(host: str | None, port: int) -> None:
    """A new profile listens only once it has an identity; its port is judged before that.

    ``port`` 0: the system chooses one; ``host`` None: none is needed.  Raises TransportError.
    """
    if not port or host is None:
        return
    try:
        server = await asyncio.start_server(_hang_up, host, port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TransportError(
            f"cannot listen on {host} port {port}: {reason}",
            TransportFault.CANNOT_LISTEN,
            f"{host} port {port}: {reason}",
        ) from error
    server.close()
    await server.wait_closed()


def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    del reader
    writer.close()


def make_window(
    engine: Engine, memory: WindowMemory, context: WindowContext | None = None
) -> MainWindow:
    full = replace(context or WindowContext(), version=version, store_problem=store_problem)
    return build_window(engine, _ui_settings(memory), full)


def _ui_settings(memory: WindowMemory) -> UiSettings:
    return UiSettings(load=memory.load, save=memory.save)


async def show_until_closed(
    window: MainWindow,
    engine: Engine,
    options: WindowOptions,
    interrupts: Interrupts,
    directory: Path | None = None,
) -> None:
    """``directory``: of the profile, at which later starts meet this window."""
    closed = asyncio.Event()
    window.closed.connect(closed.set)
    painted = FirstPaint(window) if options.measure_start_ns is not None else None
    if not options.minimised:
        window.show()
    await window.start()
    if painted is not None and options.measure_start_ns is not None:
        await painted.wait()
        ready_ns = time.monotonic_ns()
        await engine.loaded()
        figures = _start_figures(painted, ready_ns, options.measure_start_ns)
        sys.stdout.write(json.dumps(figures) + "\n")
    else:
        await _show_on_desktop(window, engine, options, interrupts, closed, directory)
        return
    await window.shutdown()
    window.deleteLater()


async def _show_on_desktop(  # noqa: PLR0913, PLR0917 - what a window on a desktop goes by
    window: MainWindow,
    engine: Engine,
    options: WindowOptions,
    interrupts: Interrupts,
    closed: asyncio.Event,
    directory: Path | None,
) -> None:
    """Only now what no first paint waits for: links, later starts, notifications, the tray."""
    window.outside_links.open(options.link)
    server = None if directory is None else _listen(directory, window, engine)
    session = DesktopSession(window)
    beginning = asyncio.create_task(session.begin(minimised=options.minimised))
    await closed_or_interrupted(closed, interrupts)
    beginning.cancel()
    await asyncio.wait([beginning])
    if server is not None:
        server.close()
    window.close_at_once()
    await window.shutdown()
    await session.end()
    window.deleteLater()


def _autostart(command: tuple[str, ...]) -> "AutostartPort | None":
    from chat_app.autostart import autostart_here  # noqa: PLC0415 - the window needs little of it

    return autostart_here(command) if command else None


def _listen(directory: Path, window: MainWindow, engine: Engine) -> "InstanceServer":
    from chat_app.one_instance import InstanceServer  # noqa: PLC0415 - not before the first paint

    server = InstanceServer(directory, window, figures=partial(tell_figures, window, engine))
    server.called.connect(window.come_to_front)
    server.other_version.connect(window.tell_other_version)
    window.closed.connect(server.close)  # A link that comes now is for the next window.
    return server


def tell_figures(window: MainWindow, engine: ChatEngine, answer: Callable[[bytes], None]) -> None:
    """To ``causerie watch``; a locked window tells a terminal no more than the screen."""

    async def work() -> None:
        with contextlib.suppress(ChatError):  # Whoever asked tries again.
            figures = msgspec.json.encode(await engine.inspection.figures())
            answer(LOCKED if window.lock.is_locked else figures)

    if window.lock.is_locked:
        answer(LOCKED)
    elif engine.identity() is None:
        answer(b"{}")
    else:
        window.tasks.spawn(work, purpose="figures", retry=False)


class FirstPaint(QObject):
    """Notes when the window was first painted with its conversations in it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.at_ns = 0
        self.processor_ns = 0
        self._painted = asyncio.Event()
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Paint and not self.at_ns:
            self.at_ns = time.monotonic_ns()
            self.processor_ns = time.process_time_ns()
            self._painted.set()
        return super().eventFilter(watched, event)

    async def wait(self) -> None:
        await self._painted.wait()


def _start_figures(painted: FirstPaint, ready_ns: int, started_ns: int) -> dict[str, float]:
    return {
        "first_paint_ms": (painted.at_ns - started_ns) / 1e6,
        "first_paint_processor_ms": painted.processor_ns / 1e6,
        "ready_ms": (ready_ns - started_ns) / 1e6,
        "loaded_ms": (time.monotonic_ns() - started_ns) / 1e6,
        "processor_ms": time.process_time() * 1_000,
        "resident_mib": _resident_bytes() / 2**20,
    }


def _resident_bytes() -> int:
    """Linux only; elsewhere 0, which no benchmark takes for a result."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0
    return pages * 4096
