"""A session bus of a test's own, and a notification server on it that does as it is told.

The bus is the real ``dbus-daemon``, with a configuration that starts no other program.  The server
speaks through jeepney's own connection, not through the program's.
"""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.asyncio import DBusConnection, open_dbus_connection
from msgspec import Struct

from tests.patience import PATIENCE_S

NAME: Final = "org.freedesktop.Notifications"
PATH: Final = "/org/freedesktop/Notifications"
BUS: Final = DBusAddress(
    "/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus"
)
RICH: Final = ("actions", "body", "body-markup", "inline-reply", "persistence")
_CONFIGURATION: Final = """<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


_WATCHER_INTERFACE: Final = """<!DOCTYPE node PUBLIC
 "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
<node>
  <interface name="org.kde.StatusNotifierWatcher">
    <method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
    <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
  </interface>
</node>
"""


@asynccontextmanager
async def private_bus(place: Path) -> AsyncIterator[str]:
    """Its address.  ``place``: a directory with a short path."""
    program = shutil.which("dbus-daemon")
    assert program is not None, "dbus-daemon is missing: python3 -m scripts.setup test"
    configuration, socket = place / "bus.conf", place / "bus"
    configuration.write_text(_CONFIGURATION.format(socket=socket), encoding="utf-8")
    command = [program, f"--config-file={configuration}", "--nofork", "--nopidfile"]
    with subprocess.Popen(  # noqa: ASYNC220 - qasync's loop starts no processes
        [*command, "--print-address"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as daemon:
        assert daemon.stdout is not None
        try:
            yield (await asyncio.to_thread(daemon.stdout.readline)).strip()
        finally:
            daemon.kill()


class Watcher:
    """As much of a panel's ``StatusNotifierWatcher`` as Qt asks for."""

    NAME = "org.kde.StatusNotifierWatcher"

    def __init__(self, connection: DBusConnection) -> None:
        self._connection = connection
        self._changed = asyncio.Event()
        self.calls: list[str] = []
        self._task = asyncio.create_task(self._serve())

    @classmethod
    async def start(cls, address: str) -> Self:
        connection = await open_dbus_connection(address)
        watcher = cls(connection)
        await connection.send(new_method_call(BUS, "RequestName", "su", (cls.NAME, 0)))
        await watcher.until(lambda: "RequestName" in watcher.calls)
        return watcher

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._connection.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def _serve(self) -> None:
        while True:
            message = await self._connection.receive()
            if message.header.message_type is MessageType.method_return:
                self.calls.append("RequestName")
            if message.header.message_type is MessageType.method_call:
                self.calls.append(str(message.header.fields[HeaderFields.member]))
                await self._connection.send(self._answer(message))
            self._changed.set()

    def _answer(self, call: Message) -> Message:
        match self.calls[-1]:
            case "Get":
                return new_method_return(call, "v", (("b", True),))
            case "GetAll":
                properties = {"IsStatusNotifierHostRegistered": ("b", True)}
                return new_method_return(call, "a{sv}", (properties,))
            case "Introspect":
                return new_method_return(call, "s", (_WATCHER_INTERFACE,))
            case _:
                return new_method_return(call)


class Shown(Struct, frozen=True, kw_only=True):
    """One call of ``Notify``, as it came over the bus."""

    number: int
    """The id that it was given, or was shown under before."""
    application: str
    replaces_id: int
    title: str
    body: str
    actions: tuple[str, ...]
    hints: dict[str, Any]


class NotificationServer:
    """``refuses``: errors instead of answers; ``mute``: no answers at all, until it is told to."""

    def __init__(self, connection: DBusConnection, capabilities: Sequence[str], first: int) -> None:
        self._connection = connection
        self._capabilities = list(capabilities)
        self._next = first
        self._task = asyncio.create_task(self._serve())
        self._changed = asyncio.Event()
        self._kept_back: list[tuple[Message, str | None, tuple[object, ...]]] = []
        self.refuses = False
        self.says_instead: tuple[str | None, tuple[object, ...]] | None = None
        """Its answer to ``Notify``, instead of an id."""
        self.mute = False
        self.calls: list[str] = []
        self.shown: list[Shown] = []
        self.on_screen: dict[int, Shown] = {}
        self.closed: list[int] = []
        self.heard_from: list[str] = []
        """The unique name behind each call."""

    @classmethod
    async def start(
        cls, address: str, capabilities: Sequence[str] = RICH, *, first: int = 1
    ) -> "NotificationServer":
        connection = await open_dbus_connection(address)
        server = cls(connection, capabilities, first)
        await connection.send(new_method_call(BUS, "RequestName", "su", (NAME, 0)))
        await server.until(lambda: "RequestName" in server.calls)
        return server

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._connection.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def say(self, member: str, signature: str, *body: object) -> None:
        """Send a signal."""
        emitter = DBusAddress(PATH, interface=NAME)
        await self._connection.send(new_signal(emitter, member, signature, body))

    async def say_to(self, target: str, member: str, signature: str, *body: object) -> None:
        """The same, to one connection, whatever that asked to hear."""
        signal = new_signal(DBusAddress(PATH, interface=NAME), member, signature, body)
        signal.header.fields[HeaderFields.destination] = target
        await self._connection.send(signal)

    async def answer_after_all(self) -> None:
        self.mute = False
        for call, signature, body in self._kept_back:
            await self._connection.send(new_method_return(call, signature, body))
        self._kept_back.clear()

    # --- serving ------------------------------------------------------------------------------

    async def _serve(self) -> None:
        while True:
            message = await self._connection.receive()
            if message.header.message_type is MessageType.method_call:
                await self._called(message)
            elif message.header.message_type is MessageType.method_return:
                self.calls.append("RequestName")
            self._changed.set()

    async def _called(self, call: Message) -> None:
        member = str(call.header.fields[HeaderFields.member])
        self.calls.append(member)
        self.heard_from.append(str(call.header.fields[HeaderFields.sender]))
        if self.refuses:
            error = new_error(call, "org.freedesktop.DBus.Error.Failed", "s", ("not today",))
            await self._connection.send(error)
            return
        signature, body = self._did(member, call.body)
        if self.mute:
            self._kept_back.append((call, signature, body))
        else:
            await self._connection.send(new_method_return(call, signature, body))
        if member == "CloseNotification":
            await self.say("NotificationClosed", "uu", *call.body, 3)

    def _did(self, member: str, body: tuple[Any, ...]) -> tuple[str | None, tuple[object, ...]]:
        match member:
            case "GetCapabilities":
                return "as", (self._capabilities,)
            case "Notify":
                number = self._show(body)
                return self.says_instead or ("u", (number,))
            case "CloseNotification":
                self.on_screen.pop(body[0], None)
                self.closed.append(body[0])
            case _:
                pass
        return None, ()

    def _show(self, body: tuple[Any, ...]) -> int:
        application, replaces_id, _icon, title, text, actions, hints, _expires = body
        number = replaces_id or self._next
        self._next += 0 if replaces_id else 1
        shown = Shown(
            number=number,
            application=application,
            replaces_id=replaces_id,
            title=title,
            body=text,
            actions=tuple(actions),
            hints=hints,
        )
        self.shown.append(shown)
        self.on_screen[number] = shown
        return number
