"""The window on a real bus: what it shows there, what its user does there, and a tray that comes.

The tray is a stand-in for a panel's ``StatusNotifierWatcher``; Qt speaks to it only on a screen, so
that part starts the window in a process of its own under Xvfb.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chat_app.desktop_session import DesktopSession, has_panel
from tests.patience import PATIENCE_S
from tests.ui.desktop.private_bus import NotificationServer, Watcher, private_bus
from tests.ui.driving import play, stage, until
from tests.ui.scripted_engine import ScriptedEngine

REPOSITORY = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("qapp")


def test_the_window_and_a_real_server_talk(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with private_bus(tmp_path_factory.mktemp("b")) as address:
            monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
            server = await NotificationServer.start(address)
            async with stage(engine, opening=other) as it:
                session = DesktopSession(it.window)
                engine.receive(group, "Maya", "before the desktop was reached")
                await session.begin()
                await server.until(lambda: bool(server.shown))
                assert server.shown[0].title == "Tide Gauge"
                await server.say("NotificationReplied", "us", 1, "on my way")
                await until(lambda: engine.called("send_text") == ["on my way"])
                await server.until(lambda: server.on_screen == {})
                engine.receive(group, "Maya", "good")
                await server.until(lambda: 2 in server.on_screen)
                await server.say("ActionInvoked", "us", 2, "default")
                await until(lambda: it.window.pane.is_open(group))
                it.window.open_conversation(other)
                engine.receive(group, "Maya", "the last one")
                await server.until(lambda: 3 in server.on_screen)
                await it.window.shutdown()
                await session.end()
                await server.until(lambda: server.on_screen == {})
            await server.stop()

    play(scenario)


async def test_a_panel_is_waited_for_but_not_for_ever(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with private_bus(tmp_path_factory.mktemp("b")) as address:
        assert not await has_panel(address, 0)
        waiting = asyncio.create_task(has_panel(address, PATIENCE_S))
        watcher = await Watcher.start(address)
        assert await waiting
        assert await has_panel(address, 0)
        await watcher.stop()
    assert not await has_panel(address, PATIENCE_S)
    assert not await has_panel("", PATIENCE_S)


PROGRAM = """
import asyncio, sys
from PySide6.QtWidgets import QApplication
import qasync
from chat_app.desktop_session import DesktopSession
from tests.ui.scripted_engine import ScriptedEngine
from ui.app import build_window
from ui.settings import UiSettings

async def main():
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    stored = {"close_to_tray": "yes"}
    window = build_window(engine, UiSettings(load=stored.get, save=stored.__setitem__))
    await window.start()
    session = DesktopSession(window)
    await session.begin(minimised=True)
    print("tray", window.desktop.has_tray(), "visible", window.isVisible(), flush=True)
    engine.receive(group, "Maya", "hello")
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    print("tip", window.desktop.tray.icon.toolTip(), flush=True)
    window.come_to_front()
    window.close()
    print("visible", window.isVisible(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    async with asyncio.timeout(float(sys.argv[1])):
        while not window.isVisible():  # no signal tells of a window that is shown
            await asyncio.sleep(0.01)
    print("given back", window.isMinimized(), window.desktop.has_tray(), flush=True)
    window.quit()
    await window.shutdown()
    await session.end()

application = QApplication(sys.argv)
application.setQuitOnLastWindowClosed(False)
with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
    runner.run(main())
"""


async def test_a_start_with_the_session_waits_in_the_tray(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Under Xvfb, with the panel there first: Qt's own StatusNotifierItem registers with it."""
    async with private_bus(tmp_path_factory.mktemp("b")) as address:
        watcher = await Watcher.start(address)
        xvfb_run = shutil.which("xvfb-run")
        assert xvfb_run is not None, "xvfb-run is missing: python3 -m scripts.setup test"
        environment = {
            **os.environ,
            "DBUS_SESSION_BUS_ADDRESS": address,
            "QT_QPA_PLATFORM": "xcb",
            "XDG_CURRENT_DESKTOP": "KDE",
        }
        process = subprocess.Popen(  # noqa: ASYNC220 - short, and its pipes are read in a thread
            [xvfb_run, "-a", sys.executable, "-c", PROGRAM, str(PATIENCE_S)],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            said = await asyncio.to_thread(process.stdout.readline)
            assert said == "tray True visible False\n"
            await watcher.until(lambda: "RegisterStatusNotifierItem" in watcher.calls)
            process.stdin.write("\n")
            process.stdin.flush()
            for said in ("tip Causerie: 1 unread\n", "visible False\n"):
                assert await asyncio.to_thread(process.stdout.readline) == said
            await watcher.stop()
            rest, _ = await asyncio.to_thread(process.communicate, "\n", PATIENCE_S)
            assert rest == "given back True False\n", "a panel that crashed leaves no window hidden"
            assert process.returncode == 0
        finally:
            process.kill()
            process.wait()
