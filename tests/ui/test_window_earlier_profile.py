"""A profile from before the first schema: the window says once where it is kept, and goes on."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from chat_app.compose import build_engine
from chat_app.settings import Settings, StorageSettings
from chat_app.settings_control import SettingsControl
from chat_app.window import make_window
from chat_app.window_memory import WindowMemory
from chat_app.window_settings import WindowSettings
from engine.persistence.earlier_profile import earlier_profile
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from tests.persistence.old_profile import make_old_database
from tests.ui.driving import play
from ui.window.window_context import WindowContext

REPOSITORY = Path(__file__).parents[2]


def put_an_old_one(directory: ProfileDirectory) -> None:
    key = obtain_database_key(directory, force_key_file=True).key
    make_old_database(directory.database, key)


def told_at_a_start(directory: ProfileDirectory) -> list[str]:
    """The notices of a window on the real engine and disk; nobody has an identity here."""
    told: list[str] = []
    settings = Settings(storage=StorageSettings(key="file"))
    memory = WindowMemory(
        WindowSettings(SettingsControl(directory.path / "settings.toml", settings)),
        directory.path / "window.json",
    )

    async def whole() -> None:
        engine = build_engine(directory, settings)
        await engine.start()
        window = make_window(
            engine, memory, WindowContext(earlier_profile=str(earlier_profile(directory) or ""))
        )
        window.show()
        await window.start()
        assert window.first_page.page.isVisible()
        told.extend(row.words.text() for row in window.notices.rows if row.isVisible())
        window.close()
        await window.shutdown()
        window.deleteLater()
        await engine.stop()

    play(whole)
    return told


def test_the_window_says_once_where_an_earlier_profile_is_kept(tmp_path: Path) -> None:
    directory = open_profile_directory(tmp_path)
    assert told_at_a_start(directory) == [], "there was none"
    put_an_old_one(directory)
    (sentence,) = told_at_a_start(directory)
    kept = earlier_profile(directory)
    assert sentence == (
        "Your earlier profile was written by a test version whose format is not used any more. "
        f"It is kept in {kept}; a new one begins here."
    )
    assert told_at_a_start(directory) == []
    put_an_old_one(directory)
    (another,) = told_at_a_start(directory)
    assert str(earlier_profile(directory)) in another
    assert another != sentence
    assert told_at_a_start(directory) == []


def test_the_program_itself_tells_it(tmp_path: Path) -> None:
    """The whole of ``causerie``, up to its first paint."""
    directory = open_profile_directory(tmp_path)
    put_an_old_one(directory)
    (tmp_path / "settings.toml").write_text('[storage]\nkey = "file"\n')
    started = subprocess.run(
        [
            *(sys.executable, "-m", "chat_app", "--profile-dir", str(tmp_path)),
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
    kept = earlier_profile(directory)
    assert kept is not None
    remembered = json.loads((tmp_path / "window.json").read_text())
    assert remembered["earlier_profile"] == kept.name
