"""Backups that are made by themselves: one a day, in a folder that may vanish, and only ours go."""

import asyncio
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace as with_setting
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from chat_app.paths import ProfilePaths
from chat_app.rolling_backups import RollingBackups
from chat_app.settings import BackupSettings
from engine.core.errors import BackupError, BackupFlaw, StorageError
from engine.core.ids import UnixMs
from engine.core.ports import SaveValue
from engine.core.rolling_backups import RollingBackup
from engine.crypto.backup import BackupSecret
from engine.persistence import backup, rolling_backups
from engine.persistence.backup import BackupMade, BackupSource
from engine.persistence.carry_over import Progress
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.restore import restore_backup
from engine.persistence.rolling_backups import (
    Day,
    RollingState,
    parse_state,
    require_folder,
    state_text,
)
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.backup_examples import (
    CHEAP,
    WORDS,
    key_of,
    make_profile,
    place_in,
)
from ui.backup_port import DailyState

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


class Desk:
    """A profile, a folder for its backups, and clocks that the test sets."""

    def __init__(self, tmp_path: Path) -> None:
        self.place = tmp_path / "ines"
        make_profile(self.place)
        self.paths = ProfilePaths(name="ines", directory=self.place, settings_directory=self.place)
        self.folder = tmp_path / "stick" / "backups"
        self.folder.mkdir(parents=True)
        self.settings = BackupSettings()
        self.values: dict[str, str] = {}
        self.at = NOON
        self.counted_s = 0.0
        self.told = 0
        self.rolling = self.started()

    def started(self) -> RollingBackups:
        """As after a start of the program."""
        made = RollingBackups(
            self.paths,
            self,
            lambda: self.settings,
            set_folder=self.set_folder,
            today=self.today,
            counted_s=lambda: self.counted_s,
        )
        made.listen(self.heard)
        return made

    def heard(self) -> None:
        self.told += 1

    async def value(self, key: str) -> str | None:
        return self.values.get(key)

    async def save_value(self, key: str, value: str) -> None:
        self.values[key] = value

    async def set_folder(self, folder: str) -> None:
        self.settings = with_setting(self.settings, folder=folder)

    def today(self) -> Day:
        year, week, _ = self.at.isocalendar()
        now_ms = UnixMs(int(self.at.timestamp() * 1000))
        return Day(now_ms=now_ms, day=f"{self.at:%Y-%m-%d}", week=f"{year}-W{week:02}")

    async def on(self) -> None:
        await self.rolling.load()
        await self.rolling.turn_on(self.folder, WORDS)

    def later(self, **by: float) -> None:
        self.at += timedelta(**by)
        self.counted_s += timedelta(**by).total_seconds()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture(autouse=True)
def _cheap_and_without_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    monkeypatch.setattr(backup, "Cost", lambda: CHEAP)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def played(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario()

    asyncio.run(whole())


def test_one_a_day_is_made_whole_and_the_oldest_of_ours_go(desk: Desk, tmp_path: Path) -> None:
    foreign = desk.folder / "causerie-ines-2020-01-01.causerie-backup"
    foreign.write_bytes(b"somebody else's")

    async def scenario() -> None:
        await desk.on()
        for _ in range(40):
            await desk.rolling.look()
            await desk.rolling.look()
            desk.later(days=1)

    played(scenario)
    assert foreign.read_bytes() == b"somebody else's"
    assert len(desk.names()) == 1 + 7 + 2
    assert desk.rolling.view().kept == 9
    newest = desk.folder / "causerie-ines-2026-12-11.causerie-backup"
    there = open_profile_directory(tmp_path / "there")
    restore_backup(newest, WORDS, place_in(there))
    assert newest.stat().st_mode & 0o077 == 0


def test_a_start_that_is_overdue_makes_one_and_a_second_start_does_not(desk: Desk) -> None:
    async def scenario() -> None:
        await desk.on()
        await desk.rolling.look()
        desk.later(days=3)
        for expected in (2, 2):
            again = desk.started()
            await again.load()
            await again.look()
            assert len(desk.names()) == expected

    played(scenario)


def test_no_file_that_somebody_touched_is_deleted(desk: Desk) -> None:
    """One replaced by another, one by a link, and one that was moved away."""
    desk.settings = with_setting(desk.settings, keep_daily=1, keep_weekly=0)

    async def scenario() -> None:
        await desk.on()
        await desk.rolling.look()
        first = desk.folder / "causerie-ines-2026-11-02.causerie-backup"
        moved = desk.folder / "mine.causerie-backup"
        first.rename(moved)
        first.symlink_to(moved)
        desk.later(days=1)
        await desk.rolling.look()
        second = desk.folder / "causerie-ines-2026-11-03.causerie-backup"
        second.write_bytes(b"another")
        desk.later(days=1)
        await desk.rolling.look()
        assert first.is_symlink()
        assert moved.is_file()
        assert second.read_bytes() == b"another"
        assert desk.rolling.view().kept == 1

    played(scenario)


def test_what_has_the_name_of_today_is_not_replaced(desk: Desk) -> None:
    mine = desk.folder / "causerie-ines-2026-11-02.causerie-backup"
    mine.symlink_to(desk.folder / "nowhere")

    async def scenario() -> None:
        await desk.on()
        await desk.rolling.look()

    played(scenario)
    assert mine.is_symlink()
    assert "causerie-ines-2026-11-02-2.causerie-backup" in desk.names()


def test_a_stick_that_vanished_is_said_and_not_tried_in_a_storm(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Path] = []
    real = backup.write_backup

    def counted(  # noqa: PLR0913 - as the real one
        source: BackupSource,
        target: Path,
        secret: BackupSecret,
        *,
        created_ms: UnixMs,
        progress: Progress,
        file_salt: bytes,
    ) -> BackupMade:
        tries.append(target)
        return real(
            source, target, secret, created_ms=created_ms, progress=progress, file_salt=file_salt
        )

    monkeypatch.setattr(rolling_backups, "write_backup", counted)

    async def scenario() -> None:
        await desk.on()
        await desk.rolling.look()
        aside = desk.folder.parent.rename(desk.folder.parent.with_name("unplugged"))
        desk.later(days=1)
        for _ in range(50):
            await desk.rolling.look()
            desk.later(minutes=1)
        view = desk.rolling.view()
        assert view.state is DailyState.FAILED
        assert isinstance(view.problem, BackupError)
        assert view.problem.flaw is BackupFlaw.FOLDER_GONE
        assert view.problem.detail == str(desk.folder)
        assert len(tries) == 1
        assert not desk.folder.parent.exists()
        aside.rename(desk.folder.parent)
        await desk.rolling.look()
        assert desk.rolling.view().state is DailyState.ON

    played(scenario)
    assert len(tries) == 2


def test_the_empty_place_of_a_disk_is_not_taken_for_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    stick = str(desk.folder.parent)
    mounted = {stick}
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path) in mounted or str(path) == "/")

    async def scenario() -> None:
        await desk.on()
        await desk.rolling.look()
        mounted.clear()
        desk.later(days=1)
        await desk.rolling.look()
        assert desk.rolling.view().state is DailyState.FAILED
        assert len(desk.names()) == 1

    played(scenario)


def test_a_full_disk_is_tried_again_by_hand_or_after_hours(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[float] = []

    def full(*_given: object, **_named: object) -> object:
        tries.append(desk.counted_s)
        raise StorageError("full")

    monkeypatch.setattr(rolling_backups, "write_backup", full)

    async def scenario() -> None:
        await desk.on()
        for _ in range(12):
            await desk.rolling.look()
            desk.later(minutes=10)
        assert len(tries) == 1
        desk.rolling.try_again()
        await desk.rolling.look()
        assert len(tries) == 2
        desk.later(hours=7)
        await desk.rolling.look()
        assert len(tries) == 3
        assert desk.rolling.view().state is DailyState.FAILED

    played(scenario)
    assert desk.names() == []


def test_a_clock_that_jumps_neither_stops_backups_nor_makes_many(desk: Desk) -> None:
    async def scenario() -> None:
        await desk.on()
        desk.at += timedelta(days=4000)
        await desk.rolling.look()
        desk.at -= timedelta(days=4000)
        for _ in range(10):
            await desk.rolling.look()
        assert len(desk.names()) == 1
        desk.counted_s += 4_000
        await desk.rolling.look()
        assert len(desk.names()) == 2
        again = desk.started()
        await again.load()
        desk.later(days=31)
        assert again.view().is_late

    played(scenario)


def test_a_backup_whose_process_was_killed_before_it_was_noted_counts(desk: Desk) -> None:
    """The file has its name, and the profile only knows that it was begun."""

    async def scenario() -> None:
        await desk.on()
        begun: list[str] = []
        save = desk.save_value

        async def noting(key: str, value: str) -> None:
            begun.append(value)
            await save(key, value)

        desk.save_value = noting  # type: ignore[method-assign]
        await desk.rolling.look()
        desk.values = {rolling_backups.STATE_KEY: begun[0]}
        again = desk.started()
        await again.load()
        await again.look()
        assert len(desk.names()) == again.view().kept == 1

    played(scenario)


def test_turning_it_off_keeps_what_was_made_and_forgets_the_secret(desk: Desk) -> None:
    async def scenario() -> None:
        await desk.on()
        await desk.rolling.look()
        await desk.rolling.turn_off()
        desk.later(days=2)
        await desk.rolling.look()
        assert desk.rolling.view().state is DailyState.OFF

    played(scenario)
    assert len(desk.names()) == 1
    assert parse_state(desk.values[rolling_backups.STATE_KEY]).secret is None


def test_a_bad_folder_and_a_bad_passphrase_change_nothing(desk: Desk) -> None:
    async def scenario() -> None:
        await desk.rolling.load()
        for folder, words, flaw in (
            (desk.folder / "absent", WORDS, BackupFlaw.FOLDER_GONE),
            (desk.place, WORDS, BackupFlaw.IN_PROFILE),
            (desk.place / "blobs", WORDS, BackupFlaw.IN_PROFILE),
            (desk.folder, "short", BackupFlaw.TOO_SHORT),
        ):
            with pytest.raises(BackupError) as raised:
                await desk.rolling.turn_on(folder, words)
            assert raised.value.flaw is flaw
        assert desk.rolling.view().state is DailyState.OFF
        await desk.rolling.look()

    played(scenario)
    assert desk.names() == []


def test_a_restored_profile_asks_for_the_passphrase_and_deletes_nothing(
    desk: Desk, tmp_path: Path
) -> None:
    """Two devices with one folder: neither takes the other's backups for its own."""

    async def scenario() -> None:
        await desk.on()
        directory = ProfileDirectory(desk.place)
        store = SqliteProfileStore.open(directory.database, key_of(directory))
        key = rolling_backups.STATE_KEY
        store.apply([SaveValue(key=key, value=desk.values[key])])
        store.close()
        await desk.rolling.look()

    played(scenario)
    there = open_profile_directory(tmp_path / "there")
    restore_backup(desk.folder / desk.names()[0], WORDS, place_in(there))
    restored = SqliteProfileStore.open(there.database, key_of(there))
    assert restored.value(rolling_backups.STATE_KEY) is None
    restored.close()
    desk.values = {}
    again = desk.started()

    async def elsewhere() -> None:
        await again.load()
        await again.look()
        assert again.view().state is DailyState.NEEDS_PASSPHRASE

    played(elsewhere)
    assert len(desk.names()) == 1


def test_the_reminder_counts_backups_by_hand_and_can_be_turned_off(desk: Desk) -> None:
    async def scenario() -> None:
        await desk.rolling.load()
        assert not desk.rolling.view().is_late
        desk.later(days=31)
        assert desk.rolling.view().is_late
        await desk.rolling.made_by_hand()
        assert not desk.rolling.view().is_late
        desk.later(days=31)
        assert desk.rolling.view().is_late
        desk.settings = with_setting(desk.settings, remind=False)
        assert not desk.rolling.view().is_late

    played(scenario)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"made": 1}', '{"salt": "zz", "cost": {}}', None])
def test_a_state_that_cannot_be_read_begins_anew(text: str | None) -> None:
    assert parse_state(text).made == ()


def test_ending_the_program_gives_up_what_is_being_made(desk: Desk) -> None:
    async def scenario() -> None:
        await desk.on()

        def end() -> None:
            if desk.rolling.view().state is DailyState.WORKING:
                desk.rolling.stop()

        desk.rolling.listen(end)
        await asyncio.wait_for(desk.rolling.run(), 60)

    played(scenario)
    assert desk.names() == []
    assert not (desk.place / "causerie.db.backup").exists()
    shutil.rmtree(desk.folder)


def test_what_the_user_removed_takes_no_place_among_those_that_stay(desk: Desk) -> None:
    """Else the ones that are left would go for files that nobody has any more."""
    desk.settings = with_setting(desk.settings, keep_daily=3, keep_weekly=0)

    async def scenario() -> None:
        await desk.on()
        for _ in range(3):
            await desk.rolling.look()
            desk.later(days=1)
        for day in ("03", "04"):
            (desk.folder / f"causerie-ines-2026-11-{day}.causerie-backup").unlink()
        await desk.rolling.look()
        assert [name[22:24] for name in desk.names()] == ["02", "05"]
        assert desk.rolling.view().kept == 2

    played(scenario)


def test_a_place_that_cannot_be_looked_at_ends_neither_daily_backups_nor_the_window(
    desk: Desk,
) -> None:
    """The disk may answer with an error; here the name is longer than any disk allows."""

    async def scenario() -> None:
        await desk.on()
        lost = RollingBackup(path="/" + "x" * 300, mark="ab", day="2026-11-01", week="2026-W44")
        state = parse_state(desk.values[rolling_backups.STATE_KEY])
        desk.values[rolling_backups.STATE_KEY] = state_text(replace(state, unsure=lost))
        again = desk.started()
        await again.load()
        await again.look()
        assert again.view().state is DailyState.ON
        assert len(desk.names()) == 1

    played(scenario)


def test_a_disk_that_does_not_answer_keeps_nobody_from_the_window(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network drive that is away may take minutes to say so."""
    by_window: list[bool] = []

    def looked_at(*given: object) -> None:
        by_window.append(threading.current_thread() is threading.main_thread())
        require_folder(*given)  # type: ignore[arg-type]

    def unsure(state: RollingState) -> RollingState:
        by_window.append(threading.current_thread() is threading.main_thread())
        return state

    async def scenario() -> None:
        monkeypatch.setattr("chat_app.rolling_backups.require_folder", looked_at)
        monkeypatch.setattr("chat_app.rolling_backups.with_unsure", unsure)
        await desk.on()
        shutil.rmtree(desk.folder)
        await desk.rolling.look()
        assert desk.rolling.view().state is DailyState.FAILED
        await desk.rolling.look()

    played(scenario)
    assert len(by_window) == 3
    assert not any(by_window)


def test_the_backup_of_another_device_that_took_the_name_meanwhile_is_not_replaced(
    desk: Desk,
) -> None:
    theirs = desk.folder / "causerie-ines-2026-11-02.causerie-backup"

    async def scenario() -> None:
        await desk.on()
        save = desk.save_value

        async def meanwhile(key: str, value: str) -> None:
            if not theirs.exists():
                theirs.write_bytes(b"another device's")
            await save(key, value)

        desk.save_value = meanwhile  # type: ignore[method-assign]
        await desk.rolling.look()
        assert desk.rolling.view().state is DailyState.FAILED
        desk.rolling.try_again()
        await desk.rolling.look()
        assert desk.rolling.view().state is DailyState.ON

    played(scenario)
    assert theirs.read_bytes() == b"another device's"
    assert desk.names() == ["causerie-ines-2026-11-02-2.causerie-backup", theirs.name]
