"""A session bus that takes connections and says nothing keeps no window from its user."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from chat_app.silent_bus import NO_BUS, leave_silent_bus
from tests.patience import PATIENCE_S
from tests.ui.desktop.private_bus import private_bus

REPOSITORY = Path(__file__).parents[3]
ADDRESS = "DBUS_SESSION_BUS_ADDRESS"

PROGRAM = """
from PySide6.QtWidgets import QLabel, QSystemTrayIcon
from chat_app.qt_loop import run_on_qt

async def main():
    label = QLabel("here")
    label.show()
    print("visible", label.isVisible(), QSystemTrayIcon.isSystemTrayAvailable(), flush=True)
    return 0

run_on_qt(main)
"""


@pytest.mark.parametrize("desktop", ["KDE", ""])
def test_a_window_comes_though_the_bus_says_nothing(
    desktop: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("b") / "bus"
    xvfb_run = shutil.which("xvfb-run")
    assert xvfb_run is not None, "xvfb-run is missing: python3 -m scripts.setup test"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        environment = {
            **os.environ,
            ADDRESS: f"unix:path={path}",
            "QT_QPA_PLATFORM": "xcb",
            "XDG_CURRENT_DESKTOP": desktop,
        }
        done = subprocess.run(
            [xvfb_run, "-a", sys.executable, "-c", PROGRAM],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    assert done.stdout == "visible True False\n"


@pytest.mark.parametrize("waiting", [0, 3])
def test_only_a_silent_bus_is_left(
    waiting: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path_factory.mktemp("b") / "bus")
    monkeypatch.setenv(ADDRESS, f"unix:path={path},guid=00")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen(0)
        others = [socket.socket(socket.AF_UNIX) for _ in range(waiting)]
        for other in others:
            other.setblocking(False)
            other.connect_ex(path)
        leave_silent_bus(answer_s=0.01)
        for other in others:
            other.close()
    assert os.environ[ADDRESS] == NO_BUS


@pytest.mark.parametrize(
    "address",
    ["", NO_BUS, "unix:", "unix:path=/not/there", "tcp:host=a,port=1", "unix:path=/%00", "x;y"],
)
def test_what_is_no_bus_stays_what_it_is(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv(ADDRESS, address)
    leave_silent_bus()
    assert os.environ[ADDRESS] == address


async def test_a_bus_that_answers_stays(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with private_bus(tmp_path_factory.mktemp("b")) as address:
        monkeypatch.setenv(ADDRESS, address)
        await asyncio.to_thread(leave_silent_bus, PATIENCE_S)
        assert os.environ[ADDRESS] == address
