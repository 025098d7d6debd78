"""A screen reader over AT-SPI: it walks the tree of a program and hears what that tells it.

It does what Orca does at its core: it asks the session bus where the accessibility bus is, says
that a screen reader is there, registers for events, and asks each thing for its role, name,
description and states.  Interfaces, events and the numbers of the states are those of at-spi2-core.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    Message,
    MessageType,
    new_method_call,
)
from jeepney.io.asyncio import DBusRouter, open_dbus_router
from msgspec import Struct

from tests.patience import PATIENCE_S

T = TypeVar("T")
_AGAIN_S: Final = 0.05
"""A tree has more in it than what it tells by itself."""
_WALK_AGAIN_S: Final = 0.2
"""To walk through it once more takes hundreds of questions, and the program has to answer them."""
_BUS: Final = DBusAddress(
    "/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus"
)
_LAUNCHER: Final = DBusAddress("/org/a11y/bus", "org.a11y.Bus", "org.a11y.Bus")
_REGISTRY: Final = DBusAddress(
    "/org/a11y/atspi/registry", "org.a11y.atspi.Registry", "org.a11y.atspi.Registry"
)
_DESKTOP: Final = "/org/a11y/atspi/accessible/root"
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_EVENTS: Final = "org.a11y.atspi.Event."
_HEARD: Final = (
    "object:state-changed:focused",
    "object:announcement",
    "object:property-change:accessible-name",
)
_SHOWING: Final = 25
_STATES: Final = {
    1: "active",
    4: "checked",
    5: "collapsed",
    7: "editable",
    8: "enabled",
    10: "expanded",
    11: "focusable",
    12: "focused",
    16: "modal",
    20: "pressed",
    23: "selected",
    _SHOWING: "showing",
    30: "visible",
    39: "default",
    41: "checkable",
    42: "has popup",
    43: "read only",
}


class Gone(Exception):  # noqa: N818 - says what happened
    """What was asked is no more, or never was."""


class Thing(Struct, frozen=True):
    """An object of a program, by where it is on the bus."""

    program: str
    path: str


class Read(Struct, frozen=True, kw_only=True):
    """What is read out of one thing."""

    thing: Thing
    role: str
    name: str
    description: str
    states: frozenset[str]
    text: str
    """What stands in it, if it is one that has text."""

    def __str__(self) -> str:
        said = f"{self.role} “{self.name}”"
        said += f" [{self.text}]" if self.text else ""
        said += f" — {self.description}" if self.description else ""
        return said


class ScreenReader:
    def __init__(self, router: DBusRouter) -> None:
        self._router = router
        self._signals: asyncio.Queue[Message] = asyncio.Queue()
        self.focus: Thing | None = None
        self.announced: list[str] = []
        self.focused: list[Thing] = []
        """Each in turn."""

    # --- asking -----------------------------------------------------------------------------------

    async def call(
        self, address: DBusAddress, member: str, signature: str = "", *body: object
    ) -> tuple[Any, ...]:  # as D-Bus has it: its types are in the specification
        message = new_method_call(address, member, signature or None, body)
        async with asyncio.timeout(PATIENCE_S):
            answer = await self._router.send_and_get_reply(message)
        if answer.header.message_type is MessageType.error:
            raise Gone(answer.header.fields.get(HeaderFields.error_name), answer.body)
        return answer.body

    async def _ask(self, thing: Thing, interface: str, member: str) -> Any:  # noqa: ANN401 - as above
        address = DBusAddress(thing.path, thing.program, f"org.a11y.atspi.{interface}")
        return (await self.call(address, member))[0]

    async def _property(self, thing: Thing, name: str, interface: str = "Accessible") -> object:
        address = DBusAddress(thing.path, thing.program, _PROPERTIES)
        asked = (f"org.a11y.atspi.{interface}", name)
        ((_signature, value),) = await self.call(address, "Get", "ss", *asked)
        return value

    async def children(self, thing: Thing) -> list[Thing]:
        return [Thing(*one) for one in await self._ask(thing, "Accessible", "GetChildren")]

    async def read(self, thing: Thing) -> Read:
        """Raises Gone."""
        (low, high), interfaces, role, name, description = await asyncio.gather(
            self._ask(thing, "Accessible", "GetState"),
            self._ask(thing, "Accessible", "GetInterfaces"),
            self._ask(thing, "Accessible", "GetRoleName"),
            self._property(thing, "Name"),
            self._property(thing, "Description"),
        )
        bits = low | high << 32
        text = ""
        if "org.a11y.atspi.Text" in interfaces:
            address = DBusAddress(thing.path, thing.program, "org.a11y.atspi.Text")
            text = str((await self.call(address, "GetText", "ii", 0, -1))[0])
        return Read(
            thing=thing,
            role=str(role),
            name=str(name),
            description=str(description),
            states=frozenset(word for bit, word in _STATES.items() if bits >> bit & 1),
            text=text,
        )

    async def programs(self) -> list[Thing]:
        return await self.children(Thing("org.a11y.atspi.Registry", _DESKTOP))

    async def in_view(self, thing: Thing) -> AsyncIterator[Thing]:
        """It and all below that is showing, as one walks through it; a program always is."""
        try:
            low, _high = await self._ask(thing, "Accessible", "GetState")
            if low >> _SHOWING & 1 or thing.path == _DESKTOP:
                yield thing
                for child in await self.children(thing):
                    async for below in self.in_view(child):
                        yield below
        except Gone:
            return

    async def tree(self, thing: Thing) -> AsyncIterator[Read]:
        """All that is in view, read."""
        async for one in self.in_view(thing):
            with suppress(Gone):
                yield await self.read(one)

    # --- hearing ----------------------------------------------------------------------------------

    async def listen(self, signals: "asyncio.Queue[Message]") -> None:
        while True:
            message = await signals.get()
            fields = message.header.fields
            interface = str(fields.get(HeaderFields.interface, ""))
            if not interface.startswith(_EVENTS):
                continue
            member, sender = fields[HeaderFields.member], str(fields[HeaderFields.sender])
            thing = Thing(sender, str(fields[HeaderFields.path]))
            body: tuple[Any, ...] = message.body
            detail, first, _second, (_signature, value), *_ = body
            if member == "StateChanged" and detail == "focused" and first == 1:
                self.focused.append(thing)
                self.focus = thing
            elif member == "Announcement":
                self.announced.append(str(value))

    async def until_focus(self, name: str, role: str = "") -> Read:
        """Until something of which this is the whole name has the focus, and what is read of it."""
        pattern = re.compile(name)

        async def look() -> Read | None:
            if self.focus is None:
                return None
            read = await self.read(self.focus)
            return read if pattern.fullmatch(read.name) and role in {"", read.role} else None

        return await until(look)

    async def read_focus(self) -> Read | None:
        """None: it is gone already, or nothing was ever focused."""
        with suppress(Gone):
            return None if self.focus is None else await self.read(self.focus)
        return None

    async def until_announced(self, words: str) -> None:
        pattern = re.compile(words)

        async def look() -> bool:
            return any(map(pattern.fullmatch, self.announced))

        await until(look)

    async def until_shown(self, program: Thing, name: str, role: str) -> Read:
        """Until such a thing is in view; ``role``: a pattern, too."""
        pattern = re.compile(name)

        async def is_it(thing: Thing) -> bool:
            said = str(await self._ask(thing, "Accessible", "GetRoleName"))
            if re.fullmatch(role, said) is None:
                return False
            return pattern.fullmatch(str(await self._property(thing, "Name"))) is not None

        async def look() -> Read | None:
            async for thing in self.in_view(program):
                with suppress(Gone):
                    if await is_it(thing):
                        return await self.read(thing)
            return None

        return await until(look, again_s=_WALK_AGAIN_S)


async def until(look: Callable[[], Awaitable[T | None]], *, again_s: float = _AGAIN_S) -> T:
    """What it found, which is true; whoever is gone while it looks is looked for again.

    A call is never cancelled on the way: its late answer would end the connection to the bus, and
    with it all that could be said of what was not found.
    """
    loop = asyncio.get_running_loop()
    last_s = loop.time() + PATIENCE_S
    while True:
        with suppress(Gone):
            if found := await look():
                return found
        assert loop.time() < last_s, "it is not there"
        await asyncio.sleep(again_s)


async def _register(reader: ScreenReader, event: str) -> bool:
    """The registry may end just then, if two of them were started; the bus starts it again."""
    await reader.call(_REGISTRY, "RegisterEvent", "sass", event, [], "")
    return True


@asynccontextmanager
async def screen_reader(session_bus: str) -> AsyncIterator[ScreenReader]:
    """Switched on, before or while programs run."""
    async with open_dbus_router(session_bus) as session:
        at_session = ScreenReader(session)
        (address,) = await until(lambda: at_session.call(_LAUNCHER, "GetAddress"))
        status = DBusAddress("/org/a11y/bus", "org.a11y.Bus", _PROPERTIES)
        switched_on = ("org.a11y.Status", "ScreenReaderEnabled", ("b", True))
        await at_session.call(status, "Set", "ssv", *switched_on)
    async with open_dbus_router(str(address)) as router:
        reader, signals = ScreenReader(router), asyncio.Queue[Message]()
        rule = MatchRule(type="signal", interface=f"{_EVENTS}Object")
        await reader.call(_BUS, "AddMatch", "s", rule.serialise())
        for event in _HEARD:
            await until(partial(_register, reader, event))
        with router.filter(MatchRule(type="signal"), queue=signals):
            task = asyncio.create_task(reader.listen(signals))
            try:
                yield reader
            finally:
                task.cancel()
                await asyncio.wait([task])
