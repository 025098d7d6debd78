"""A start that failed: what is said, what can be done about it, and what a report holds."""

import asyncio
import errno
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAccessible, QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from chat_app.failed_start import can_be_seen, erased_start, failed_start, set_settings_aside
from chat_app.one_instance import server_name
from chat_app.paths import profile_paths
from chat_app.settings_reading import load_what_is_right
from chat_app.window import require_free_port
from engine.core.errors import (
    SettingsError,
    SettingsFlaw,
    StorageError,
    StorageFault,
    TransportError,
    TransportFault,
)
from engine.persistence.connection import connect
from engine.persistence.errors import DatabaseTooNewError, ProfileInUseError
from engine.persistence.key import obtain_database_key
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.schema import SCHEMA_VERSION
from tests.chat_app.test_kept_profiles import kept_profile
from tests.patience import PATIENCE_S
from ui.app import build_failed_start
from ui.failed_start import FailedStartWindow, LeftBehind, StartAction

pytestmark = pytest.mark.usefixtures("qapp")
SALVAGE, RESTORE = StartAction.SALVAGE, StartAction.RESTORE
REPOSITORY = Path(__file__).parents[2]
DEFAULTS, AGAIN, PORT = StartAction.USE_DEFAULTS, StartAction.TRY_AGAIN, StartAction.ANY_PORT


def window_of(error: Exception, place: Path) -> FailedStartWindow:
    return build_failed_start(failed_start(error, profile_paths(None, place)))


def settings_error(flaw: SettingsFlaw) -> SettingsError:
    return SettingsError("text", flaw, place="settings.toml:2", key="[network] proxy")


@pytest.mark.parametrize(
    ("error", "actions", "said"),
    [
        (settings_error(SettingsFlaw.NOT_TOML), (DEFAULTS, AGAIN), "kept beside the new one"),
        (settings_error(SettingsFlaw.WRONG_VALUE), (AGAIN, DEFAULTS), "to protect you"),
        (settings_error(SettingsFlaw.UNREADABLE), (AGAIN,), "cannot be read"),
        (settings_error(SettingsFlaw.READABLE), (AGAIN,), "is a secret"),
        (ProfileInUseError("ines", 7), (AGAIN,), '"ines" is in use by another program'),
        (DatabaseTooNewError("x"), (), "newer version of Causerie"),
        (
            StorageError("x", StorageFault.DAMAGED),
            (SALVAGE, RESTORE, AGAIN),
            "A backup is restored into a new",
        ),
        (
            StorageError("x", StorageFault.DAMAGED),
            (SALVAGE, RESTORE, AGAIN),
            "Repairing it puts what can be read in its place",
        ),
        (StorageError("x", StorageFault.UNUSABLE, "/a: read-only"), (AGAIN,), "(/a: read-only)"),
        (StorageError("x", StorageFault.NO_KEY), (AGAIN, RESTORE), "Unlock the system's keyring"),
        (
            StorageError("x", StorageFault.KEYS_DAMAGED, "/a/database.keys"),
            (AGAIN, RESTORE),
            "its copy are damaged (/a/database.keys)",
        ),
        (
            StorageError("x", StorageFault.KEYS_FOREIGN, "/a/database.keys"),
            (AGAIN, RESTORE),
            "is another file",
        ),
        (StorageError("x", StorageFault.KEYS_TOO_NEW), (), "Install that version"),
        (
            TransportError("x", TransportFault.CANNOT_LISTEN, "0.0.0.0 port 7: in use"),
            (PORT, AGAIN),
            "port 7: in use",
        ),
        (ValueError("a secret of mine"), (), "Please send a report"),
    ],
)
def test_each_failure_has_its_words_and_what_helps_first(
    error: Exception, actions: tuple[StartAction, ...], said: str, tmp_path: Path
) -> None:
    window = window_of(error, tmp_path)
    assert tuple(window.buttons) == (*actions, StartAction.QUIT)
    assert said in window.words.text()
    assert "a secret of mine" not in window.details.text()
    chosen = list[str]()
    window.chosen.connect(chosen.append)
    window.show()
    for button in window.buttons.values():
        button.click()
    window.close()
    first = actions[0] if actions else StartAction.QUIT
    assert chosen == [first], "what is chosen first counts, and once"
    window.deleteLater()


@pytest.mark.parametrize(
    ("cause", "offered"),
    [
        (OSError(errno.EADDRINUSE, "in use"), True),
        (OSError(errno.EACCES, "not allowed"), True),
        (OSError(errno.EADDRNOTAVAIL, "not ours"), False),
        (socket.gaierror("no such name"), False),
    ],
)
def test_another_port_is_offered_only_where_it_helps(
    cause: OSError, offered: bool, tmp_path: Path
) -> None:
    error = TransportError("x", TransportFault.CANNOT_LISTEN, "192.0.2.1 port 7")
    error.__cause__ = cause
    window = window_of(error, tmp_path)
    assert (PORT in window.buttons) is offered
    assert AGAIN in window.buttons
    window.deleteLater()


async def listen_error(host: str) -> TransportError:
    try:
        await require_free_port(host, 40_000)
    except TransportError as error:
        return error
    raise AssertionError(host)


def test_an_address_of_another_machine_is_none_of_a_port(tmp_path: Path) -> None:
    window = window_of(asyncio.run(listen_error("192.0.2.1")), tmp_path)
    assert tuple(window.buttons) == (AGAIN, StartAction.QUIT)
    window.deleteLater()


def test_the_technical_text_is_read_aloud_and_copied_by_keys(tmp_path: Path) -> None:
    window = window_of(settings_error(SettingsFlaw.NOT_TOML), tmp_path)
    window.show()
    spoken = QAccessible.queryAccessibleInterface(window.details).text(QAccessible.Text.Name)
    assert spoken == window.details.text() == "settings.toml:2: text"
    assert window.details.focusPolicy() & Qt.FocusPolicy.TabFocus
    QTest.keyClick(window.details, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(window.details, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == window.details.text()
    window.deleteLater()


@pytest.mark.parametrize("by_key", [False, True])
def test_closing_the_window_means_to_quit(tmp_path: Path, by_key: bool) -> None:
    window, chosen = window_of(StorageError("x"), tmp_path), list[str]()
    window.chosen.connect(chosen.append)
    window.show()
    if by_key:
        QTest.keyClick(window.buttons[AGAIN], Qt.Key.Key_Escape)
    else:
        window.close()
    assert chosen == [StartAction.QUIT]
    window.deleteLater()


def test_a_folder_that_is_not_there_opens_the_nearest_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[str]()

    def open_url(url: QUrl) -> bool:
        opened.append(url.toLocalFile())
        return False

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    window = window_of(StorageError("x"), tmp_path / "a" / "b")
    window.show()
    window.folder.click()
    assert opened == [str(tmp_path)]
    assert str(tmp_path) in window.said.text()
    window.deleteLater()


def test_a_report_has_versions_files_and_the_log_and_nothing_that_anybody_wrote(
    tmp_path: Path,
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "causerie.log").write_text("".join(f"line {n}\n" for n in range(500)))
    (tmp_path / "causerie.db").write_bytes(b"see you at the quay")
    window = window_of(ValueError("what somebody wrote"), tmp_path)
    kept = tmp_path / "report.txt"
    window.save_report(kept)
    text = kept.read_text()
    assert "causerie.db" in text
    assert "error: ValueError" in text
    assert "line 499" in text
    assert "line 299" not in text
    assert "quay" not in text
    assert "what somebody wrote" not in text
    assert str(kept) in window.said.text()
    window.save_report(tmp_path / "no" / "such" / "report.txt")
    assert "cannot be written" in window.said.text()
    window.deleteLater()


def test_a_report_says_where_it_failed_and_never_what_stands_in_the_settings(
    tmp_path: Path,
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[network]\nlisten_host = "the quay"\n')
    kept = tmp_path / "report.txt"
    with pytest.raises(SettingsError) as caught:
        load_what_is_right(file)
    assert "the quay" in str(caught.value)
    window = window_of(caught.value, tmp_path)
    window.save_report(kept)
    assert "the quay" not in kept.read_text()
    assert f"wrong_value {file}:2" in kept.read_text()
    assert "settings_reading.py:" in kept.read_text(), "whoever mends it must know where it failed"
    window.deleteLater()


def test_a_report_of_a_folder_whose_name_is_no_text_is_saved(tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"caf\xe9")
    window = window_of(StorageError(f"{place}: is full"), place)
    window.save_report(tmp_path / "report.txt")
    assert "caf\\udce9" in (tmp_path / "report.txt").read_text()
    window.deleteLater()


def test_a_settings_file_is_set_aside_and_never_over_another(tmp_path: Path) -> None:
    file, kept = tmp_path / "settings.toml", set[str]()
    for number in range(3):
        file.write_text(f"# {number}")
        kept.add(set_settings_aside(file).read_text())
    assert kept == {"# 0", "# 1", "# 2"}
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        set_settings_aside(file)


def test_where_nobody_can_see_a_window_there_is_only_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen:size=800x600")
    assert not can_be_seen()
    monkeypatch.setenv("QT_QPA_PLATFORM", "wayland;xcb")
    assert can_be_seen()


_PRESSES = """
import errno, os, sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import chat_app.failed_start, chat_app.qt_loop
from chat_app.__main__ import main
from ui.failed_start import FailedStartWindow, LeftBehind, StartAction
from ui.window.main_window import MainWindow

chat_app.failed_start.UNSEEN = frozenset()
timer = QTimer(interval=50)
answered = []

def answer(window):
    if window.title.text() not in answered:
        answered.append(window.title.text())
        print("failed:", window.title.text())
        if "in words" in sys.argv:
            print(window.words.text(), [str(each) for each in window.buttons], sep="\\n")
        quits = window.buttons[StartAction.QUIT]
        window.buttons.get(StartAction(sys.argv[2]), quits).click()

def look():
    for window in QApplication.topLevelWidgets():
        if isinstance(window, FailedStartWindow) and window.isVisible():
            answer(window)
        if isinstance(window, MainWindow) and window.isVisible():
            print("open")
            window.close_at_once()

timer.timeout.connect(look)
application = QApplication([])
timer.start()
def no_rename(*paths):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))

if "read-only" in sys.argv:
    os.rename = no_rename
sys.exit(main(["--profile-dir", sys.argv[1]]))
"""


def run_pressing(*arguments: str, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """The profile's directory, the action to choose whenever a start fails, and conditions.

    ``under``: a program that starts it with fewer rights.
    """
    return subprocess.run(
        [*under, sys.executable, "-c", _PRESSES, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "CAUSERIE_KEY_FILE": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize(("action", "status"), [("use_defaults", 0), ("quit", 2)])
def test_the_program_itself_says_it_and_tries_again(
    tmp_path: Path, action: str, status: int
) -> None:
    (tmp_path / "settings.toml").write_text("[network\n")
    done = run_pressing(str(tmp_path), action)
    assert done.returncode == status, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "failed: The settings cannot be used"
    assert ("open" in said) == (status == 0)
    assert ("is not TOML" in done.stderr) == (status != 0)
    aside = list(tmp_path.glob("settings.set-aside-*.toml"))
    assert [file.read_text() for file in aside] == (["[network\n"] if status == 0 else [])


def test_settings_that_cannot_be_set_aside_are_said_in_a_window_too(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("[network\n")
    done = run_pressing(str(tmp_path), "use_defaults", "read-only")
    assert done.stdout.splitlines() == [
        "failed: The settings cannot be used",
        "failed: Causerie could not start",
    ]
    assert done.returncode == 2
    assert (tmp_path / "settings.toml").read_text() == "[network\n"


def started_before(place: Path) -> ProfileDirectory:
    """A profile with people and messages, as the program left it."""
    profile = open_profile_directory(kept_profile(place, oldest=False))
    for _ in range(2):  # After an upgrade the next start keeps anew what lists the tables.
        assert run_pressing(str(profile.path), "quit").stdout.splitlines() == ["open"]
    return profile


def of_a_newer_version(place: Path) -> ProfileDirectory:
    """What is kept of today's, as if its settings and its database had been written later."""
    profile = started_before(place)
    key = obtain_database_key(profile, force_key_file=True).key
    connection = connect(str(profile.database), key)
    connection.execute("CREATE TABLE mood (words TEXT NOT NULL) STRICT")
    connection.execute("INSERT INTO mood VALUES ('glad')")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with (profile.path / "settings.toml").open("a", encoding="utf-8") as settings:
        settings.write('\n[stickers]\nsize = "large"\n')
    return profile


def contents(place: Path) -> dict[str, bytes]:
    """Without what each start leaves: its number in the lock, and the log."""
    files = (each for each in place.rglob("*") if each.is_file())
    named = {str(file.relative_to(place)): file for file in files if file.name != "profile.lock"}
    return {name: file.read_bytes() for name, file in named.items() if not name.startswith("logs")}


def test_a_profile_of_a_newer_version_is_told_in_a_window_and_stays_as_it_is(
    tmp_path: Path,
) -> None:
    profile = of_a_newer_version(tmp_path)
    before = contents(profile.path)
    done = run_pressing(str(profile.path), "try_again", "in words")
    title, words, buttons = done.stdout.splitlines()
    assert title == "failed: Causerie could not start"
    assert "newer version" in words
    assert buttons == "['quit']"
    assert done.returncode == 2
    assert "written by a newer version" in done.stderr
    assert contents(profile.path) == before


AS_ANYBODY = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override")
"""Also who is root may not write then where the mode says so."""


@pytest.mark.parametrize("forbidden", ["folder", "database"])
def test_without_the_right_to_write_a_window_says_so_and_the_profile_stays_as_it_is(
    forbidden: str, tmp_path: Path
) -> None:
    profile = started_before(tmp_path)
    before = contents(profile.path)
    taken = profile.path if forbidden == "folder" else profile.database
    mode = taken.stat().st_mode
    taken.chmod(mode & ~0o222)
    under = AS_ANYBODY if os.geteuid() == 0 else ()
    done = run_pressing(str(profile.path), "quit", "in words", under=under)
    title, words, _ = done.stdout.splitlines()
    assert title == "failed: Causerie could not start"
    assert f"{taken}: Permission denied" in words
    assert f"{taken}" in done.stderr
    assert contents(profile.path) == before
    taken.chmod(mode)
    assert run_pressing(str(profile.path), "quit").stdout.splitlines() == ["open"]


def test_a_start_while_another_ends_waits_for_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("p")  # A test's own directory is too long for a socket's path.
    lock = ProfileLock(open_profile_directory(place))
    ending = socket.socket(socket.AF_UNIX)
    ending.bind(server_name(place) or "")
    ending.listen()

    def end() -> None:
        ending.accept()[0].close()
        lock.release()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    done = run_pressing(str(place), "quit")
    assert done.stdout.splitlines() == ["open"], done.stderr
    assert done.returncode == 0
    ending.close()


def test_what_stays_of_an_erased_profile_is_named(tmp_path: Path) -> None:
    names = tuple(str(tmp_path / f"page-{number}.txt") for number in range(10))
    left = LeftBehind(paths=names, keyring_entry="ab12")
    window = build_failed_start(erased_start(left, profile_paths(None, tmp_path)))
    window.show()
    assert window.title.text() == "The profile is erased from this device"
    assert "page-0.txt, page-1.txt" in window.words.text()
    assert "page-7.txt, and 2 more" in window.words.text()
    assert "account ab12" in window.words.text()
    assert names[9] in window.details.text()
    assert list(window.buttons) == [StartAction.QUIT]
    assert window.folder.isVisible()
    assert not window.report.isVisible()
    window.close()
