"""Hears from a Linux desktop that its screen is locked: from logind and from the screen saver.

``org.freedesktop.login1`` sends ``Lock`` to the session on the system bus when somebody asks for
the lock; screen savers (freedesktop's and those of GNOME, Cinnamon and MATE) send ``ActiveChanged``
on the session bus.  The buses themselves let only the owner of such a name through.  Whatever
cannot be reached is left out: then that way tells nothing.
"""

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from typing import Final

from jeepney import DBusAddress, new_method_call

from chat_app.session_bus import BusError, BusSignal, SessionBus

SAVERS: Final = (
    "org.freedesktop.ScreenSaver",
    "org.gnome.ScreenSaver",
    "org.cinnamon.ScreenSaver",
    "org.mate.ScreenSaver",
)
SYSTEM_BUS: Final = "unix:path=/run/dbus/system_bus_socket"
_LOGIND: Final = "org.freedesktop.login1"
_SESSION: Final = f"{_LOGIND}.Session"
_MANAGER: Final = DBusAddress(
    "/org/freedesktop/login1", bus_name=_LOGIND, interface=f"{_LOGIND}.Manager"
)
_ANSWER_S: Final = 5.0
_PATH: Final = re.compile(r"/[A-Za-z0-9_/]{1,250}")
"""It becomes part of a rule."""

logger = logging.getLogger(__name__)


def system_address() -> str:
    return os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "") or SYSTEM_BUS


class ScreenLock:
    """``locked`` is called on the loop, perhaps more than once for one lock."""

    def __init__(self, locked: Callable[[], None], *, session: str, system: str) -> None:
        """``session``, ``system``: addresses of the buses; "" for none."""
        self._locked = locked
        self._session = session
        self._system = system
        self.listens = asyncio.Event()
        """To whatever can be reached."""

    async def run(self) -> None:
        """Until it is cancelled, or no bus is left."""
        buses = [
            bus
            for bus in (
                await self._reached(self._session, self._hear_savers),
                await self._reached(self._system, self._hear_logind),
            )
            if bus is not None
        ]
        self.listens.set()
        try:
            await asyncio.gather(*(bus.closed.wait() for bus in buses))
        finally:
            for bus in buses:
                await bus.close()

    async def _reached(
        self, address: str, hear: Callable[[SessionBus], Awaitable[None]]
    ) -> SessionBus | None:
        if not address:
            return None
        try:
            bus = await SessionBus.connect(address)
        except BusError:
            return None
        try:
            await hear(bus)
        except BusError as error:
            logger.info("a screen lock is not heard of", extra={"error": error.name})
            await bus.close()
            return None
        return bus

    async def _hear_savers(self, bus: SessionBus) -> None:
        bus.on_signal = self._saver_said
        for name in SAVERS:
            await bus.watch(
                f"type='signal',sender='{name}',interface='{name}',member='ActiveChanged'",
                _ANSWER_S,
            )

    def _saver_said(self, signal: BusSignal) -> None:
        is_saver = signal.member == "ActiveChanged" and signal.interface in SAVERS
        if is_saver and signal.body[:1] == (True,):
            self._locked()

    async def _hear_logind(self, bus: SessionBus) -> None:
        path = await _own_session(bus)
        bus.on_signal = self._logind_said
        await bus.watch(
            f"type='signal',sender='{_LOGIND}',interface='{_SESSION}',member='Lock',path='{path}'",
            _ANSWER_S,
        )

    def _logind_said(self, signal: BusSignal) -> None:
        if (signal.interface, signal.member) == (_SESSION, "Lock"):
            self._locked()


async def _own_session(bus: SessionBus) -> str:
    """The object of the session that this process belongs to.  Raises BusError."""
    number = os.environ.get("XDG_SESSION_ID", "")
    if number:
        asked = new_method_call(_MANAGER, "GetSession", "s", (number[:64],))
    else:
        asked = new_method_call(_MANAGER, "GetSessionByPID", "u", (os.getpid(),))
    match await bus.call(asked, _ANSWER_S):
        case (str(path),) if _PATH.fullmatch(path):
            return path
        case _:
            raise BusError("", "no session")
