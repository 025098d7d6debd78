"""A damaged profile: what can be read is copied beside it, said, and opened if so wished."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs
from pytestqt.qtbot import QtBot

from chat_app import recovering, window
from chat_app.compose import open_store
from chat_app.failed_start import recovered_start
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.recovering import RecoveredProfile, recover_profile, recovered_paths
from chat_app.window import WindowOptions, open_window
from engine.core.errors import StorageError, StorageFault
from engine.core.ports import PutContact, PutGroup, SaveProfile
from engine.persistence.carry_over import unheard
from engine.persistence.errors import CarryOverStoppedError
from engine.persistence.key import DatabaseKey
from engine.persistence.profile_directory import open_profile_directory
from tests.persistence.store_examples import GROUP, PROFILE, contact, group, row
from ui.app import build_carrying_over, build_failed_start
from ui.failed_start import StartAction
from ui.settings import UiSettings

DAY = "2026-11-24"


@pytest.fixture(autouse=True)
def _key_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")


@pytest.fixture
def paths(tmp_path: Path) -> ProfilePaths:
    """A profile with a group and a person, and settings of its own."""
    found = profile_paths(None, tmp_path / "ines")
    opened = open_store(open_profile_directory(found.directory), force_key_file=True)
    opened.store.apply([SaveProfile(profile=PROFILE), PutGroup(group=group())])
    opened.store.apply([PutContact(contact=contact()), *(row(n, f"m{n}") for n in range(30))])
    opened.store.close()
    found.settings_file.write_text("[network]\nport = 4711\n", encoding="utf-8")
    return found


def made_of(paths: ProfilePaths, key: DatabaseKey | None = None) -> RecoveredProfile:
    return recover_profile(paths, unheard, day=DAY, key=key)


def test_the_new_profile_opens_with_the_old_key_and_settings(paths: ProfilePaths) -> None:
    before = {path.name: path.read_bytes() for path in paths.directory.glob("causerie.db*")}
    made = made_of(paths)
    assert made.paths.name == f"ines-recovered-{DAY}"
    assert made.paths.settings_file.read_text(encoding="utf-8") == "[network]\nport = 4711\n"
    opened = open_store(open_profile_directory(made.paths.directory), force_key_file=True)
    assert opened.store.latest_page(GROUP, limit=1).total == 30
    opened.store.close()
    after = {path.name: path.read_bytes() for path in paths.directory.glob("causerie.db*")}
    assert after == before
    assert made_of(paths).paths.name == f"ines-recovered-{DAY}-2"


def test_what_came_over_is_said_by_kind(paths: ProfilePaths, qtbot: QtBot) -> None:
    made = made_of(paths)
    shown = build_failed_start(recovered_start(made))
    qtbot.addWidget(shown)
    assert shown.title.text() == "What could be read was copied"
    assert shown.words.text().startswith("Came over: 2 conversations, 30 messages, 1 person, 0 ")
    assert "Nothing that could be found was left out." in shown.words.text()
    assert made.paths.name in shown.words.text()
    assert tuple(shown.buttons) == (StartAction.OPEN_RECOVERED, StartAction.QUIT)
    assert "message: 30" in shown.details.text()
    working = build_carrying_over(UiSettings(), is_recovery=True)
    qtbot.addWidget(working)
    assert working.title.text() == "What can be read is copied"


def test_nothing_is_left_of_a_profile_that_could_not_be_made(paths: ProfilePaths) -> None:
    database = paths.directory / "causerie.db"
    data = bytearray(database.read_bytes())
    data[100] ^= 0xFF
    database.write_bytes(data)
    with pytest.raises(StorageError):
        made_of(paths)
    assert [place.name for place in paths.directory.parent.iterdir()] == ["ines"]


def test_a_long_name_and_a_settings_directory_of_its_own(tmp_path: Path) -> None:
    paths = ProfilePaths(
        name="n" * 40, directory=tmp_path / "data" / "n", settings_directory=tmp_path / "set" / "n"
    )
    there = recovered_paths(paths, DAY)
    assert len(there.name) <= 40
    assert there.directory == tmp_path / "data" / there.name
    assert there.settings_directory == tmp_path / "set" / there.name


@pytest.fixture
def apart(tmp_path: Path, paths: ProfilePaths) -> ProfilePaths:
    """The same profile with its settings in another place, as on most desktops."""
    settings = tmp_path / "config" / "ines"
    settings.mkdir(parents=True)
    paths.settings_file.rename(settings / "settings.toml")
    return structs.replace(paths, settings_directory=settings)


def test_nothing_is_left_of_its_settings_either(apart: ProfilePaths) -> None:
    def stopped(share: float) -> bool:
        return share < 0

    with pytest.raises(CarryOverStoppedError):
        recover_profile(apart, stopped, day=DAY)
    for place in (apart.directory, apart.settings_directory):
        assert [one.name for one in place.parent.iterdir() if "recovered" in one.name] == []


def test_settings_of_another_profile_are_not_written_over(apart: ProfilePaths) -> None:
    theirs = recovered_paths(apart, DAY).settings_file
    theirs.parent.mkdir()
    theirs.write_text("[network]\nport = 1\n", encoding="utf-8")
    made = made_of(apart)
    assert made.paths.settings_file != theirs
    assert theirs.read_text(encoding="utf-8") == "[network]\nport = 1\n"


def opening(
    monkeypatch: pytest.MonkeyPatch, chosen: StartAction
) -> tuple[list[str], Callable[[ProfilePaths], int]]:
    """What is opened, one after the other; the first is damaged."""
    opened: list[str] = []

    def once(paths: ProfilePaths, options: WindowOptions, keys: window.Keys) -> int:
        del options, keys
        opened.append(paths.name)
        if len(opened) == 1:
            raise StorageError("x", StorageFault.DAMAGED)
        return 0

    monkeypatch.setattr(window, "require_display", lambda: None)
    monkeypatch.setattr(window, "can_be_seen", lambda: True)
    monkeypatch.setattr(window, "open_or_hand_over", once)
    monkeypatch.setattr(window, "ask_about", lambda *_: StartAction.READ_WHAT_CAN_BE)
    monkeypatch.setattr(window, "ask_about_recovered", lambda _: chosen)
    monkeypatch.setattr(recovering, "recover_in_window", made_of)
    return opened, lambda paths: open_window(paths, WindowOptions())


def test_the_new_profile_is_opened_if_so_wished(
    paths: ProfilePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, start = opening(monkeypatch, StartAction.OPEN_RECOVERED)
    assert start(paths) == 0
    assert opened == ["ines", f"ines-recovered-{DAY}"]


def test_it_is_not_opened_otherwise(paths: ProfilePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, start = opening(monkeypatch, StartAction.QUIT)
    with pytest.raises(StorageError):
        start(paths)
    assert opened == ["ines"]
