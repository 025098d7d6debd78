"""A desktop of a test's own: screen, session bus, accessibility bus and a keyboard.

All of them are the real programs: Xvfb, ``dbus-daemon``, ``at-spi-bus-launcher`` with the registry
that it starts, and ``xdotool``, which presses keys by the X server's extension for tests, so that
they reach whatever window has the keys.  There is no window manager: a test that has two windows
says which of them gets the keys.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from scripts.needs import which
from tests.patience import PATIENCE_S
from tests.ui.desktop.private_bus import private_bus

ROOT: Final = Path(__file__).resolve().parents[2]
_SCREEN: Final = "1400x900x24"
_SETTINGS: Final = """
[network]
listen_host = "127.0.0.1"
discovery = false

[storage]
key = "file"
"""


def program(name: str) -> str:
    found = which(name)
    assert found is not None, f"{name} is missing: python3 -m scripts.setup test"
    return found


class Desk:
    """``place`` is short: sockets lie in it."""

    def __init__(self, place: Path, bus: str, display: str, stack: AsyncExitStack) -> None:
        self.place = place
        self.bus = bus
        """Address of the session bus."""
        self._display = display
        self._stack = stack
        self._started = 0
        self.keys_at: subprocess.Popen[bytes] | None = None
        """Whose window was given the keys last."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DISPLAY": self._display,
            "DBUS_SESSION_BUS_ADDRESS": self.bus,
            "XDG_RUNTIME_DIR": str(self.place),
            "XDG_CONFIG_HOME": str(self.place / "config"),
            "QT_QPA_PLATFORM": "xcb",
            "LC_ALL": "C.UTF-8",
            "GSETTINGS_BACKEND": "memory",
            "LANGUAGE": "",
        }

    async def start(self, *command: str) -> subprocess.Popen[bytes]:
        """A program that runs until the desk is cleared; what it says is in a file of the place."""
        self._started += 1
        log = self.place / f"{self._started}-{Path(command[0]).name}.log"
        return await self._stack.enter_async_context(_running(command, self.environment, log))

    async def causerie(self, profile: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """The program itself, on loopback, in a profile of its own."""
        _prepare(profile)
        command = (sys.executable, "-m", "chat_app", "--profile-dir", str(profile), *arguments)
        return await self.start(*command)

    async def _try_xdotool(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = (program("xdotool"), *arguments)
        return await asyncio.to_thread(
            subprocess.run, command, env=self.environment, capture_output=True, check=False
        )

    async def _xdotool(self, *arguments: str) -> str:
        done = await self._try_xdotool(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode()

    async def press(self, *keys: str) -> None:
        """Names of keys as X has them: ``ctrl+k``, ``Return``, ``shift+F10``."""
        await self._xdotool("key", "--delay", "8", *keys)

    async def type(self, text: str) -> None:
        await self._xdotool("type", "--delay", "8", "--", text)

    async def give_keys_to(self, process: subprocess.Popen[bytes]) -> None:
        """As a window manager does for the window that somebody chooses."""
        looking = ("search", "--sync", "--onlyvisible", "--pid", str(process.pid))
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self._xdotool(*looking)
                given = await self._try_xdotool("windowfocus", found.split()[-1])
                if given.returncode == 0:
                    break
                # That was a menu, which closed meanwhile.
        self.keys_at = process


def _prepare(profile: Path) -> None:
    profile.mkdir(mode=0o700, exist_ok=True)
    settings = profile / "settings.toml"
    if not settings.exists():
        settings.write_text(_SETTINGS, encoding="utf-8")


@asynccontextmanager
async def _running(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> AsyncIterator[subprocess.Popen[bytes]]:
    with log.open("wb") as said:
        process = subprocess.Popen(  # noqa: ASYNC220 - it only begins here
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, PATIENCE_S)


@asynccontextmanager
async def _screen() -> AsyncIterator[str]:
    """Its name, as of ``DISPLAY``; one that is free."""
    options = ("-screen", "0", _SCREEN, "-nolisten", "tcp", "-displayfd", "1")
    with subprocess.Popen(  # noqa: ASYNC220 - it only begins here
        (program("Xvfb"), *options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield ":" + (await asyncio.to_thread(server.stdout.readline)).strip()
        finally:
            server.terminate()


@asynccontextmanager
async def desk(place: Path) -> AsyncIterator[Desk]:
    """``place``: a directory with a short path, for this user alone."""
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(private_bus(place))
        display = await stack.enter_async_context(_screen())
        made = Desk(place, bus, display, stack)
        await made.start(program("at-spi-bus-launcher"), "--launch-immediately")
        yield made
