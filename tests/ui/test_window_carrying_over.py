"""A start on a profile of version 1: the window says how far it is and may stop it."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from chat_app.carrying_over import CarryingOver
from chat_app.compose import build_engine
from chat_app.interrupts import Interrupts
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.persistence import carry_over
from engine.persistence.connection import connect
from engine.persistence.errors import CarryOverStoppedError
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.schema import SCHEMA_VERSION
from engine.runtime.engine import Engine
from tests.patience import PATIENCE_S
from tests.persistence.version_1 import make_long_version_1
from tests.ui.driving import play, until
from ui.carrying_over import CarryingOverWindow
from ui.settings import UiSettings

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileDirectory:
    made = open_profile_directory(tmp_path / "profile")
    make_long_version_1(made.database, key_of(made), texts=300)
    old = connect(str(made.database), key_of(made))
    old.execute("DELETE FROM profile")  # Its keys are none that an engine would work with.
    old.close()
    monkeypatch.setattr(carry_over, "SLICE", 64)
    return made


def key_of(directory: ProfileDirectory) -> bytes:
    return obtain_database_key(directory, force_key_file=True).key


def version(directory: ProfileDirectory) -> int:
    connection = connect(str(directory.database), key_of(directory))
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(found)


class Start:
    """The start of an engine, which stands still half-way until ``go_on``."""

    def __init__(self, directory: ProfileDirectory, interrupts: Interrupts) -> None:
        settings = UiSettings(load=lambda _: None, save=lambda *_: None)
        self.carrying_over = CarryingOver(settings, interrupts, shown_after_s=0)
        self._directory = directory
        self._half = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._may_go_on = threading.Event()
        self.engine = self._engine()
        self.started = asyncio.create_task(self.engine.start())

    def _engine(self) -> Engine:
        return build_engine(
            self._directory,
            Settings(
                storage=StorageSettings(key="file"),
                network=NetworkSettings(listen_host="127.0.0.1", discovery=False),
            ),
            progress=self._progress,
        )

    def _progress(self, share: float) -> bool:
        if 0.5 < share < 1 and not self._may_go_on.is_set():
            self.carrying_over.progress(share)
            self._loop.call_soon_threadsafe(self._half.set)
            assert self._may_go_on.wait(PATIENCE_S)
        return self.carrying_over.progress(share)

    async def half_way(self) -> CarryingOverWindow:
        await asyncio.wait_for(self._half.wait(), PATIENCE_S)
        await until(lambda: self.carrying_over.window is not None)
        assert self.carrying_over.window is not None
        return self.carrying_over.window

    def go_on(self) -> None:
        self._may_go_on.set()


def played(directory: ProfileDirectory, scenario: Callable[[Start], Awaitable[None]]) -> None:
    async def whole() -> None:
        with Interrupts() as interrupts:
            start = Start(directory, interrupts)
            try:
                await scenario(start)
            finally:
                start.go_on()
                start.carrying_over.end()
                await asyncio.gather(start.started, return_exceptions=True)
                await start.engine.stop()

    play(whole)


def test_the_window_says_how_far_it_is_and_goes_when_it_is_done(
    directory: ProfileDirectory,
) -> None:
    async def scenario(start: Start) -> None:
        window = await start.half_way()
        assert window.isVisible()
        assert 50 <= int(window.percent.text().removesuffix(" %")) < 100
        assert window.title.text() == "Your messages are carried over to this version"
        assert version(directory) == 1
        start.go_on()
        await start.started
        await until(lambda: start.carrying_over.window is None)
        assert version(directory) == SCHEMA_VERSION

    played(directory, scenario)


def test_closing_it_stops_and_the_next_start_begins_anew(directory: ProfileDirectory) -> None:
    async def closed(start: Start) -> None:
        window = await start.half_way()
        window.stop.click()
        start.go_on()
        with pytest.raises(CarryOverStoppedError):
            await start.started

    async def whole(start: Start) -> None:
        start.go_on()
        await start.started

    played(directory, closed)
    assert version(directory) == 1
    played(directory, whole)
    assert version(directory) == SCHEMA_VERSION


def test_a_signal_stops_it(directory: ProfileDirectory) -> None:
    async def scenario(start: Start) -> None:
        await start.half_way()
        signal.raise_signal(signal.SIGTERM)
        start.go_on()
        with pytest.raises(CarryOverStoppedError):
            await start.started

    played(directory, scenario)
    assert version(directory) == 1


def test_the_program_itself_carries_it_over(directory: ProfileDirectory) -> None:
    """The whole of ``causerie``, up to its first paint."""
    (directory.path / "settings.toml").write_text('[storage]\nkey = "file"\n')
    started = subprocess.run(
        [
            *(sys.executable, "-m", "chat_app", "--profile-dir", str(directory.path)),
            *("--port", "0", "--measure-start-ns", str(time.monotonic_ns())),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert started.returncode == 0, started.stderr
    assert version(directory) == SCHEMA_VERSION
