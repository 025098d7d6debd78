"""Reaches the desktop around the window once that is painted: notifications, tray, motion, session.

Linux has D-Bus for both.  Qt looks for a tray on the bus once and keeps to what it found, and a
program that starts with the session may be earlier than the panel: therefore it waits for the panel
first, in the task bar.  Windows and macOS have what Qt offers.
"""

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Final

from chat_app.motion import begin_motion
from chat_app.opened_links import lead_links_to
from ui.desktop.port import NoNotifications
from ui.desktop.tray import TrayNotifications, make_tray
from ui.motion import allow_motion

if TYPE_CHECKING:
    from chat_app.dbus_notifications import DBusNotifications
    from ui.window.main_window import MainWindow

WATCHER: Final = "org.kde.StatusNotifierWatcher"
PANEL_S: Final = 10.0
"""For which a start with the session waits for the panel."""
_ANSWER_S: Final = 2.0
_END_S: Final = 1.0
_HAS_DBUS: Final = sys.platform not in {"win32", "darwin"}


class DesktopSession:
    def __init__(self, window: "MainWindow") -> None:
        self._window = window
        self._port: DBusNotifications | None = None
        self._task: asyncio.Task[None] | None = None
        self._motion: asyncio.Task[None] | None = None
        self._screen: asyncio.Task[None] | None = None

    async def begin(self, *, minimised: bool = False, panel_s: float = PANEL_S) -> None:
        """The window is shown already, unless ``minimised``."""
        desktop = self._window.desktop
        if not _HAS_DBUS:
            await begin_motion(self._window.looks.motion, "")
            desktop.begin(NoNotifications(), make_tray)
            if desktop.tray is not None:
                desktop.notifications.use(TrayNotifications(desktop.tray.icon))
            desktop.show_at_start(minimised=minimised)
            lead_links_to(self._window.outside_links.open)
            return
        from chat_app.dbus_notifications import DBusNotifications  # noqa: PLC0415 - after the paint
        from chat_app.silent_bus import session_address  # noqa: PLC0415 - likewise

        address = session_address()
        self._port = DBusNotifications(address)
        self._motion = asyncio.create_task(
            begin_motion(self._window.looks.motion, address), name="motion"
        )
        self._task = asyncio.create_task(self._port.run(), name="notifications")
        if self._window.lock.is_offered:
            self._screen = asyncio.create_task(self._watch_screen(address), name="screen lock")
        if minimised and not await has_panel(address, 0):
            self._window.showMinimized()
            await has_panel(address, panel_s)
        desktop.begin(self._port, make_tray)
        if not minimised:
            return
        if not self._window.isVisible():
            desktop.show_at_start(minimised=True)
        elif self._window.isMinimized() and desktop.has_tray():
            desktop.hide()

    async def _watch_screen(self, address: str) -> None:
        """Once there is a passphrase to lock with."""
        from chat_app.screen_lock import ScreenLock, system_address  # noqa: PLC0415 - likewise

        lock = self._window.lock
        await lock.usable.wait()
        await ScreenLock(lock.screen_locked, session=address, system=system_address()).run()

    async def end(self) -> None:
        """What is shown is withdrawn, if the server answers."""
        if self._screen is not None:
            self._screen.cancel()
            await asyncio.wait([self._screen])
        if self._motion is not None:
            self._motion.cancel()
            await asyncio.wait([self._motion])
        allow_motion(False)
        if self._task is None or self._port is None:
            lead_links_to(None)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._port.idle(), _END_S)
        self._task.cancel()
        await asyncio.wait([self._task])


async def has_panel(address: str, patience_s: float) -> bool:
    """Whether something on the bus looks after tray icons, now or before the time is over."""
    from chat_app.session_bus import BusError, SessionBus  # noqa: PLC0415 - after the first paint

    try:
        bus = await SessionBus.connect(address)
    except BusError:
        return False
    appeared = asyncio.Event()
    bus.on_signal = lambda signal: appeared.set() if WATCHER in signal.body[:1] else None
    try:
        await bus.watch(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
            f"member='NameOwnerChanged',arg0='{WATCHER}'",
            _ANSWER_S,
        )
        if await bus.owner_of(WATCHER, _ANSWER_S):
            return True
        async with asyncio.timeout(patience_s):
            await appeared.wait()
    except (BusError, TimeoutError):
        return False
    finally:
        await bus.close()
    return True
