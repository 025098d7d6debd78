"""Daily backups in the window: set up after one by hand, and said where one looks if they fail."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from chat_app.settings_control import SettingsControl
from chat_app.settings_reading import load_settings
from engine.core.errors import BackupError, BackupFlaw
from tests.ui.driving import play, stage, until
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from tests.ui.seeing import sheet_of, words_of
from ui.backup_port import BackupDone, DailyBackups, DailyState, Follow, GoesOn
from ui.dialogs.backup import Backup
from ui.dialogs.daily_backup import DailyBackup
from ui.settings_page.backup_rows import BackupRow, DailyRow
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
WORDS = "correct horse battery"
GONE = BackupError(BackupFlaw.FOLDER_GONE, "gone", "/media/stick")
OFF = DailyBackups(
    folder="",
    state=DailyState.OFF,
    problem=None,
    share=0.0,
    last_good_ms=0,
    kept=0,
    is_late=False,
)


class Hands:
    """A ``BackupPort`` that makes one at once."""

    def suggestion(self) -> Path:
        return Path("/nowhere/file")

    async def make(
        self, path: Path, passphrase: str, follow: Follow, goes_on: GoesOn
    ) -> BackupDone:
        del passphrase, follow, goes_on
        return BackupDone(path=path, size=1_000, left_out=0)


class Daily:
    """A ``DailyPort`` whose state the test sets."""

    def __init__(self) -> None:
        self.now = OFF
        self.listeners: list[Callable[[], None]] = []
        self.turned_on: list[tuple[Path, str]] = []
        self.tries = 0
        self.refuses = False

    def view(self) -> DailyBackups:
        return self.now

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def become(self, **changes: object) -> None:
        self.now = replace(self.now, **changes)
        for listener in self.listeners:
            listener()

    async def turn_on(self, folder: Path, passphrase: str) -> None:
        if self.refuses:
            raise GONE
        self.turned_on.append((folder, passphrase))
        self.become(state=DailyState.ON, folder=str(folder))

    async def turn_off(self) -> None:
        self.become(state=DailyState.OFF, folder="")

    def try_again(self) -> None:
        self.tries += 1
        self.become(state=DailyState.ON, problem=None)


def control_in(tmp_path: Path) -> SettingsControl:
    path = tmp_path / "settings.toml"
    return SettingsControl(path, load_settings(path))


def test_after_a_backup_by_hand_one_every_day_is_offered_with_its_passphrase(
    tmp_path: Path,
) -> None:
    daily = Daily()

    async def scenario() -> None:
        around = WindowContext(backups=Hands(), daily=daily)
        async with stage(ScriptedEngine(), around=around) as it:
            it.window.backups.back_up()
            sheet = await sheet_of(it.window, Backup)
            sheet.passphrase.setText(WORDS)
            sheet.again.setText(WORDS)
            sheet.make_at(tmp_path / "file")
            await until(lambda: sheet.cancel.isVisible() and "every day" in sheet.cancel.text())
            sheet.cancel.click()
            second = await sheet_of(it.window, DailyBackup)
            assert str(tmp_path) in second.folder.text().replace("\u200b", "")
            assert not second.passphrase.isVisible()
            daily.refuses = True
            second.confirm.click()
            await until(second.problem.isVisible)
            assert "/media/stick" in second.problem.text()
            daily.refuses = False
            second.confirm.click()
            await until(lambda: it.window.flows.sheet is None)
            it.window.backups.back_up()
            third = await sheet_of(it.window, Backup)
            third.passphrase.setText(WORDS)
            third.again.setText(WORDS)
            third.make_at(tmp_path / "file")
            await until(third.confirm.isVisible)
            assert not third.cancel.isVisible()
            third.confirm.click()

    play(scenario)
    assert daily.turned_on == [(tmp_path, WORDS)]


def test_the_settings_show_it_set_it_up_and_turn_it_off(tmp_path: Path) -> None:
    daily = Daily()

    async def chosen(_parent: object) -> Path:
        return tmp_path

    async def scenario() -> None:
        around = WindowContext(
            backups=Hands(),
            daily=daily,
            choose_folder=chosen,
        )
        async with stage(ScriptedEngine(), around=around, control=control_in(tmp_path)) as it:
            it.window.settings.open("data")
            assert it.window.settings.page is not None
            section = it.window.settings.page.section("data")
            row = next(each for each in section.rows if isinstance(each, DailyRow))
            by_hand = next(each for each in section.rows if isinstance(each, BackupRow))
            assert "No backup of this device is known yet." in by_hand.hint.text()
            assert row.hint.text().startswith("Off.")
            assert not row.off.isVisible()
            row.set_up.click()
            sheet = await sheet_of(it.window, DailyBackup)
            assert not sheet.confirm.isEnabled()
            sheet.browse.click()
            await until(lambda: str(tmp_path) in sheet.folder.text().replace("\u200b", ""))
            sheet.passphrase.setText(WORDS)
            assert not sheet.confirm.isEnabled()
            sheet.again.setText(WORDS)
            sheet.confirm.click()
            await until(lambda: it.window.flows.sheet is None)
            daily.become(kept=3, last_good_ms=START_MS)
            assert "3 are kept there." in row.hint.text()
            assert "The last good backup: " in by_hand.hint.text()
            daily.become(state=DailyState.FAILED, problem=GONE)
            assert "/media/stick" in row.problem.text()
            row.set_narrow(True)
            await until(lambda: row.set_up.x() < row.off.x())
            row.set_narrow(False)
            await until(lambda: row.off.x() < row.set_up.x())
            row.again.click()
            assert not row.problem.isVisible()
            row.off.click()
            await until(lambda: row.hint.text().startswith("Off."))

    play(scenario)
    assert daily.tries == 1


def test_a_failure_is_one_notice_with_actions_and_comes_back_only_for_other_news() -> None:
    daily = Daily()

    async def scenario() -> None:
        around = WindowContext(backups=Hands(), daily=daily)
        async with stage(ScriptedEngine(), around=around) as it:
            notices = it.window.notices
            daily.become(state=DailyState.FAILED, problem=GONE, folder="/media/stick")
            (row,) = notices.rows
            assert "/media/stick" in row.words.text()
            row.close_button.click()
            daily.become(share=0.5)
            assert notices.rows == []
            daily.become(state=DailyState.ON, problem=None)
            daily.become(state=DailyState.FAILED, problem=GONE)
            (row,) = notices.rows
            row.acts[0].click()
            assert daily.tries == 1
            assert notices.rows == []
            daily.become(state=DailyState.NEEDS_PASSPHRASE)
            (row,) = notices.rows
            row.acts[0].click()
            sheet = await sheet_of(it.window, DailyBackup)
            assert "/media/stick" in words_of(sheet).replace("\u200b", "")
            sheet.reject()

    play(scenario)


def test_the_reminder_is_calm_and_can_be_turned_off(tmp_path: Path) -> None:
    daily = Daily()
    control = control_in(tmp_path)

    async def scenario() -> None:
        around = WindowContext(backups=Hands(), daily=daily)
        async with stage(ScriptedEngine(), around=around, control=control) as it:
            daily.become(is_late=True)
            (row,) = it.window.notices.rows
            assert row.accessibleName().startswith("info: ")
            assert [act.text() for act in row.acts] == ["Back up…", "Do not remind me"]
            row.acts[1].click()
            await until(lambda: control.settings.backup.remind is False)
            daily.become(is_late=False)
            assert it.window.notices.rows == []

    play(scenario)
