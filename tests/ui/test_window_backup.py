"""Backups in the window: the real sheet and real files; only the desktop's dialogs are absent."""

from pathlib import Path

import pytest

from chat_app import restoring, starting
from chat_app.backing_up import WindowBackups, make_backup
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.restoring import WindowRestore
from chat_app.starting import open_window
from chat_app.window import Keys, RestoreAskedError, WindowOptions
from engine.core.errors import StorageError, StorageFault
from engine.persistence import backup
from engine.persistence.backup import identity_in
from engine.persistence.backup_file import read_backup_header
from engine.persistence.profile_directory import ProfileDirectory
from tests.persistence.backup_examples import CHEAP, WORDS, key_of, make_profile
from tests.persistence.store_examples import PROFILE
from tests.ui.driving import play, stage, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import sheet_of, words_of
from ui.app import build_restoring
from ui.dialogs.backup import Backup
from ui.failed_start import StartAction
from ui.tasks import Tasks
from ui.window.window_context import WindowContext


@pytest.fixture(autouse=True)
def _cheap_and_without_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    monkeypatch.setattr(backup, "Cost", lambda: CHEAP)


@pytest.fixture
def paths(tmp_path: Path) -> ProfilePaths:
    make_profile(tmp_path / "ines")
    return profile_paths(None, tmp_path / "ines")


@pytest.fixture
def empty(tmp_path: Path) -> ProfilePaths:
    return profile_paths(None, tmp_path / "empty")


def is_restored(paths: ProfilePaths) -> bool:
    directory = ProfileDirectory(paths.directory)
    return (
        directory.has_database()
        and identity_in(directory.database, key_of(directory)) == PROFILE.signing_key
    )


def test_a_backup_is_made_and_checked_from_the_menu(paths: ProfilePaths, tmp_path: Path) -> None:
    target = tmp_path / "file.causerie-backup"

    async def scenario() -> None:
        port = WindowBackups(paths)
        async with stage(ScriptedEngine(), around=WindowContext(backups=port)) as it:
            it.window.backups.back_up()
            sheet = await sheet_of(it.window, Backup)
            for first, second, usable in (
                ("", "", False),
                ("short", "short", False),
                (WORDS, WORDS[:-1], False),
                (WORDS, WORDS + "x", False),
                (WORDS, WORDS, True),
            ):
                sheet.passphrase.setText(first)
                sheet.again.setText(second)
                assert sheet.confirm.isEnabled() is usable
                assert sheet.problem.isVisible() is second.endswith("x")
            assert sheet.strength.text() == "Fair: better with one more word"
            assert port.suggestion().suffix == ".causerie-backup"
            sheet.make_at(target)
            assert not sheet.passphrase.isVisible()
            await until(sheet.confirm.isVisible)
            assert "was checked" in words_of(sheet)
            assert sheet.passphrase.text() == ""
            sheet.confirm.click()
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)
    assert read_backup_header(target).cost == CHEAP


def test_parts_of_files_that_are_damaged_are_said_to_be_left_out(
    paths: ProfilePaths, tmp_path: Path
) -> None:
    min((paths.directory / "blobs").iterdir()).write_bytes(b"x")

    async def scenario() -> None:
        around = WindowContext(backups=WindowBackups(paths))
        async with stage(ScriptedEngine(), around=around) as it:
            it.window.backups.back_up()
            sheet = await sheet_of(it.window, Backup)
            sheet.passphrase.setText(WORDS)
            sheet.again.setText(WORDS)
            sheet.make_at(tmp_path / "file")
            await until(sheet.confirm.isVisible)
            assert "1 part of a file is damaged on this device" in sheet.said.text()
            assert "complete" not in sheet.said.text()
            sheet.confirm.click()

    play(scenario)


def test_what_goes_wrong_is_said_and_the_passphrase_is_still_there(
    paths: ProfilePaths, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with stage(
            ScriptedEngine(), around=WindowContext(backups=WindowBackups(paths))
        ) as it:
            it.window.backups.back_up()
            sheet = await sheet_of(it.window, Backup)
            sheet.passphrase.setText(WORDS)
            sheet.again.setText(WORDS)
            sheet.make_at(tmp_path / "absent" / "file")
            await until(sheet.problem.isVisible)
            assert "cannot be written" in sheet.problem.text()
            assert sheet.confirm.isEnabled()
            sheet.reject()

    play(scenario)


def test_a_stopped_backup_leaves_nothing(paths: ProfilePaths, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(
            ScriptedEngine(), around=WindowContext(backups=WindowBackups(paths))
        ) as it:
            it.window.backups.back_up()
            sheet = await sheet_of(it.window, Backup)
            sheet.passphrase.setText(WORDS)
            sheet.make_at(tmp_path / "file")
            sheet.cancel.click()
            await it.window.tasks.settle()

    play(scenario)
    assert [path.name for path in tmp_path.iterdir()] == ["ines"]


def test_a_first_start_offers_to_restore_and_closes_for_it() -> None:
    asked: list[bool] = []
    closing = WindowContext(restore=lambda: asked.append(True))

    async def scenario() -> None:
        async with stage(ScriptedEngine(name=None), around=closing) as it:
            step = it.window.first_page.page.name_step
            assert step.restore.isVisible()
            step.restore.click()
            await until(lambda: not it.window.isVisible())

    play(scenario)
    assert asked == [True]


def test_a_backup_is_restored_in_a_window_of_its_own(
    paths: ProfilePaths, empty: ProfilePaths, tmp_path: Path
) -> None:
    file, foreign = tmp_path / "file", tmp_path / "foreign"
    make_backup(paths, file, WORDS)
    foreign.write_bytes(b"PK")
    opens: list[bool] = []

    async def scenario() -> None:
        tasks = Tasks()
        shown = build_restoring(WindowRestore(empty), tasks)
        shown.finished.connect(opens.append)
        shown.show()
        assert not shown.confirm.isEnabled()
        shown.show_file(foreign)
        assert shown.problem.text() == "This file is no backup of Causerie."
        shown.show_file(file)
        assert not shown.problem.isVisible()
        assert shown.made.text().startswith("Made on ")
        shown.passphrase.setText("another one")
        shown.confirm.click()
        await until(shown.problem.isVisible)
        assert shown.problem.text() == "This is not the passphrase of this backup."
        assert not empty.directory.exists()
        shown.passphrase.setText(WORDS)
        shown.confirm.click()
        await until(lambda: shown.confirm.isVisible() and shown.confirm.text() == "Open")
        assert "two devices" in shown.words.text()
        shown.confirm.click()
        await tasks.settle()
        shown.deleteLater()

    play(scenario)
    assert opens == [True]
    assert is_restored(empty)


def opened_after(
    monkeypatch: pytest.MonkeyPatch, first: Exception, *, restored: bool
) -> tuple[list[str], list[str]]:
    """Names of the profiles that are opened, of which the first fails so, and are restored."""
    opened: list[str] = []
    wanted: list[str] = []

    def once(paths: ProfilePaths, options: WindowOptions, keys: Keys) -> int:
        del options, keys
        opened.append(paths.name)
        if len(opened) == 1:
            raise first
        return 0

    def restore(paths: ProfilePaths) -> bool:
        wanted.append(paths.name)
        return restored

    monkeypatch.setattr(starting, "require_display", lambda: None)
    monkeypatch.setattr(starting, "can_be_seen", lambda: True)
    monkeypatch.setattr(starting, "open_or_hand_over", once)
    monkeypatch.setattr(starting, "ask_about", lambda *_: StartAction.RESTORE)
    monkeypatch.setattr(restoring, "restore_in_window", restore)
    return opened, wanted


def test_after_a_first_start_the_same_profile_opens(
    monkeypatch: pytest.MonkeyPatch, empty: ProfilePaths
) -> None:
    opened, wanted = opened_after(monkeypatch, RestoreAskedError(), restored=False)
    assert open_window(empty, WindowOptions()) == 0
    assert opened == ["empty", "empty"]
    assert wanted == ["empty"]


@pytest.mark.parametrize("restored", [True, False])
def test_after_a_start_that_failed_it_goes_beside(
    monkeypatch: pytest.MonkeyPatch, paths: ProfilePaths, restored: bool
) -> None:
    damaged = StorageError("x", StorageFault.DAMAGED)
    opened, wanted = opened_after(monkeypatch, damaged, restored=restored)
    assert open_window(paths, WindowOptions()) == 0
    assert wanted[0].startswith("ines-restored-2")
    assert opened == ["ines", wanted[0] if restored else "ines"]
