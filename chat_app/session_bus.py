"""A connection to the session bus of D-Bus, on the loop that runs everything else.

Messages are jeepney's; who waits for which answer, and for how long, is decided here: nobody who
asks blocks the window, an answer that never comes costs one entry of a bounded table, and one that
comes too late still reaches who asked for it.  What is not D-Bus ends the connection.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from jeepney import DBusAddress, HeaderFields, Message, MessageType, Parser, new_method_call
from jeepney.auth import BEGIN, AuthenticationError, Authenticator
from jeepney.bus import get_bus
from msgspec import Struct

CONNECT_S: Final = 5.0
MOST_WAITING: Final = 64
"""Answers; the one that was asked for first is given up then."""
MAX_UNPARSED_BYTES: Final = 1024 * 1024
"""Of a message that is not complete: none that concerns us is nearly as large."""
MAX_UNSENT_BYTES: Final = 1024 * 1024
"""That the bus has not read; then it is left."""
_CLOSE_S: Final = 1.0
"""For which the bus may take to read the rest."""
_READ_BYTES: Final = 16_384
_MESSAGES_AT_ONCE: Final = 32
_BUS: Final = DBusAddress(
    "/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus"
)
_NO_DBUS: Final = (ValueError, LookupError, struct.error, TypeError)
"""What jeepney raises for bytes that are no message."""

logger = logging.getLogger(__name__)


class BusError(Exception):
    """``name``: of the D-Bus error, or "" if the bus could not be asked."""

    def __init__(self, name: str, text: str = "") -> None:
        super().__init__(f"{name}: {text}" if name else text)
        self.name = name


class BusSignal(Struct, frozen=True, kw_only=True):
    sender: str
    """The unique name, which the bus vouches for."""
    interface: str
    member: str
    body: tuple[object, ...]


SignalHeard: TypeAlias = Callable[[BusSignal], None]


class SessionBus:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._serial = 0
        self._waiting: dict[int, asyncio.Future[tuple[object, ...]]] = {}
        self._task: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()
        self.on_signal: SignalHeard = lambda _signal: None

    @classmethod
    async def connect(cls, address: str, *, timeout_s: float = CONNECT_S) -> "SessionBus":
        """Raises BusError if there is no bus, or it does not answer."""
        try:
            path = get_bus(address)
        except (ValueError, LookupError, RuntimeError, StopIteration) as error:
            raise BusError("", f"no address of a bus: {address[:80]!r}") from error
        try:
            async with asyncio.timeout(timeout_s):
                bus = cls(*await asyncio.open_unix_connection(path))
                try:
                    await bus._greet()
                except BaseException:
                    await bus.close()
                    raise
        except (OSError, EOFError, AuthenticationError, TimeoutError) as error:
            raise BusError("", f"no bus: {type(error).__name__}") from error
        return bus

    async def _greet(self) -> None:
        dialogue = Authenticator()
        for request in dialogue:
            self._writer.write(request)
            answer = await self._reader.read(1024)
            if not answer:
                raise EOFError
            dialogue.feed(answer)
        self._writer.write(BEGIN)
        self._task = asyncio.create_task(self._read(), name="session bus")
        await self.ask(new_method_call(_BUS, "Hello"))

    # --- asking -----------------------------------------------------------------------------------

    def ask(self, call: Message) -> asyncio.Future[tuple[object, ...]]:
        """The answer's body; the future may fail with BusError, or never be done."""
        future: asyncio.Future[tuple[object, ...]] = asyncio.get_running_loop().create_future()
        if self.closed.is_set():
            future.set_exception(BusError("", "the bus is gone"))
            return future
        self._serial += 1
        try:
            data = call.serialise(self._serial)
        except _NO_DBUS as error:
            future.set_exception(BusError("", f"not to be said in D-Bus: {type(error).__name__}"))
            return future
        while len(self._waiting) >= MOST_WAITING:
            given_up = self._waiting.pop(next(iter(self._waiting)))
            _fail(given_up, BusError("", "given up"))
        self._waiting[self._serial] = future
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            logger.warning("the session bus does not read what is sent")
            self._writer.transport.abort()
        return future

    async def call(self, call: Message, timeout_s: float) -> tuple[object, ...]:
        """Raises BusError, also if there is no answer in time."""
        try:
            return await asyncio.wait_for(self.ask(call), timeout_s)
        except TimeoutError as error:
            raise BusError("org.freedesktop.DBus.Error.NoReply", "no answer") from error

    async def watch(self, rule: str, timeout_s: float) -> None:
        """Hear signals that match a rule.  Raises BusError."""
        await self.call(new_method_call(_BUS, "AddMatch", "s", (rule,)), timeout_s)

    async def owner_of(self, name: str, timeout_s: float) -> str:
        """The unique name, or "" if nobody has it.  Raises BusError."""
        try:
            body = await self.call(new_method_call(_BUS, "GetNameOwner", "s", (name,)), timeout_s)
        except BusError as error:
            if error.name == "org.freedesktop.DBus.Error.NameHasNoOwner":
                return ""
            raise
        return str(body[0]) if body else ""

    async def close(self) -> None:
        """What was asked before is sent, if the bus reads it soon."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._writer.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            pass

    # --- hearing ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        parser, unparsed, taken = Parser(), 0, 0
        try:
            while data := await self._reader.read(_READ_BYTES):
                parser.add_data(data)
                unparsed += len(data)
                while (message := parser.get_next_message()) is not None:
                    unparsed = 0
                    self._take(message)
                    taken += 1
                    if taken % _MESSAGES_AT_ONCE == 0:
                        await asyncio.sleep(0)  # A flood must not hold up the window.
                if unparsed > MAX_UNPARSED_BYTES:
                    logger.warning("the session bus sent more than is taken")
                    return
        except OSError:
            pass
        except _NO_DBUS as error:
            logger.warning("not D-Bus", extra={"error": type(error).__name__})
        finally:
            self.closed.set()
            self._writer.close()
            for future in self._waiting.values():
                _fail(future, BusError("", "the bus is gone"))
            self._waiting.clear()

    def _take(self, message: Message) -> None:
        kind, fields = message.header.message_type, message.header.fields
        if kind is MessageType.signal:
            signal = BusSignal(
                sender=str(fields.get(HeaderFields.sender, "")),
                interface=str(fields.get(HeaderFields.interface, "")),
                member=str(fields.get(HeaderFields.member, "")),
                body=message.body,
            )
            # After those who wait for an answer that came before it.
            asyncio.get_running_loop().call_soon(self.on_signal, signal)
            return
        future = self._waiting.pop(fields.get(HeaderFields.reply_serial, 0), None)
        if future is None or future.done():
            return
        if kind is MessageType.error:
            text = str(message.body[0]) if message.body else ""
            _fail(future, BusError(str(fields.get(HeaderFields.error_name, "")), text))
        elif kind is MessageType.method_return:
            future.set_result(message.body)


def _fail(future: asyncio.Future[tuple[object, ...]], error: BusError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # Who asked may have stopped waiting.
