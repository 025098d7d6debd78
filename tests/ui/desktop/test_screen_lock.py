"""What a real bus carries of a screen that is locked, from its saver and from logind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from jeepney import (
    DBusAddress,
    Message,
    MessageType,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.asyncio import DBusConnection, open_dbus_connection

from chat_app.screen_lock import SAVERS, ScreenLock
from tests.ui.desktop.private_bus import BUS, private_bus
from tests.ui.driving import play, turn, until


@pytest.fixture
def short_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("b")


pytestmark = pytest.mark.usefixtures("qapp")
LOGIND = "org.freedesktop.login1"
OURS = "/org/freedesktop/login1/session/_37"


@asynccontextmanager
async def named(address: str, name: str) -> AsyncIterator[DBusConnection]:
    """A program of the desktop that has this name."""
    connection = await open_dbus_connection(address)
    try:
        await connection.send(new_method_call(BUS, "RequestName", "su", (name, 0)))
        yield connection
    finally:
        await connection.close()


async def answer(connection: DBusConnection, path: object) -> None:
    """As logind when it is asked for a session."""
    while True:
        message = await connection.receive()
        if message.header.message_type is not MessageType.method_call:
            continue
        if path is None:
            await connection.send(new_error(message, f"{LOGIND}.NoSessionForPID"))
        else:
            kind = "o" if isinstance(path, str) and path.startswith("/") else "s"
            await connection.send(new_method_return(message, kind, (path,)))


def said_by(name: str, path: str, member: str, *body: object) -> Message:
    interface = f"{name}.Session" if name == LOGIND else name
    address = DBusAddress(path, bus_name=name, interface=interface)
    return new_signal(address, member, "b" * len(body) or None, body)


@pytest.mark.parametrize("saver", SAVERS)
def test_a_saver_that_locks_is_heard_and_one_that_unlocks_is_not(
    short_place: Path, saver: str
) -> None:
    async def scenario() -> None:
        heard = list[int]()
        async with private_bus(short_place) as address, named(address, saver) as desktop:
            lock = ScreenLock(lambda: heard.append(1), session=address, system="")
            task = asyncio.create_task(lock.run())
            await asyncio.wait_for(lock.listens.wait(), 30)
            path = "/" + saver.replace(".", "/")
            await desktop.send(said_by(saver, path, "ActiveChanged", False))
            await desktop.send(said_by(saver, path, "Something", True))
            await desktop.send(said_by(saver, path, "ActiveChanged", True))
            await until(lambda: heard == [1])
            async with named(address, "org.example.Anybody") as other:
                await other.send(said_by(saver, path, "ActiveChanged", True))
                await desktop.send(said_by(saver, path, "ActiveChanged", True))
                await until(lambda: len(heard) > 1)
            await turn()
            assert heard == [1, 1], "nobody else speaks for the saver"
            task.cancel()
            await asyncio.wait([task])

    play(scenario)


def test_logind_is_heard_of_the_own_session_only(
    short_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_SESSION_ID", "7")

    async def scenario() -> None:
        heard = list[int]()
        async with private_bus(short_place) as address, named(address, LOGIND) as logind:
            answering = asyncio.create_task(answer(logind, OURS))
            lock = ScreenLock(lambda: heard.append(1), session="", system=address)
            task = asyncio.create_task(lock.run())
            await asyncio.wait_for(lock.listens.wait(), 30)
            await logind.send(said_by(LOGIND, OURS + "x", "Lock"))
            await logind.send(said_by(LOGIND, OURS, "Unlock"))
            await logind.send(said_by(LOGIND, OURS, "Lock"))
            await until(lambda: bool(heard))
            await turn()
            assert heard == [1]
            for each in (task, answering):
                each.cancel()
            await asyncio.wait([task, answering])

    play(scenario)


@pytest.mark.parametrize("path", [None, "no path", "/evil',member='*", "/" + "x" * 300])
def test_a_logind_that_knows_no_session_tells_nothing_and_harms_nothing(
    short_place: Path, path: str | None
) -> None:
    async def scenario() -> None:
        async with private_bus(short_place) as address, named(address, LOGIND) as logind:
            answering = asyncio.create_task(answer(logind, path))
            lock = ScreenLock(lambda: None, session="unix:path=/nowhere", system=address)
            await asyncio.wait_for(lock.run(), 30)
            answering.cancel()
            await asyncio.wait([answering])

    play(scenario)
