"""A damaged profile: what can be read takes its place, what is gone is said, and it is opened."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from chat_app import restoring, salvaging, starting
from chat_app.compose import open_store
from chat_app.failed_start import salvaged_start
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.salvaging import SalvagedProfile, salvage_profile
from chat_app.starting import open_window
from chat_app.window import Keys, WindowOptions
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.core.ports import PutContact, PutGroup, SaveProfile
from engine.events import DatabaseDamaged, SearchMadeAgain
from engine.persistence.carry_over import unheard
from engine.persistence.errors import CarryOverStoppedError
from engine.persistence.key import DatabaseKey
from engine.persistence.profile_directory import open_profile_directory
from tests.persistence.store_examples import GROUP, PROFILE, contact, group, row
from ui.app import build_carrying_over, build_failed_start
from ui.failed_start import LostRows, SalvagedRows, StartAction, salvaged_words
from ui.settings import UiSettings
from ui.window.notices import repairing

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


def names(paths: ProfilePaths) -> list[str]:
    return sorted({path.name for path in paths.directory.iterdir()} - {"profile.lock"})


def made_of(paths: ProfilePaths, key: DatabaseKey | None = None) -> SalvagedProfile:
    return salvage_profile(paths, unheard, day=DAY, key=key)


def test_the_profile_opens_again_and_the_damaged_database_is_kept(paths: ProfilePaths) -> None:
    before = (paths.directory / "causerie.db").read_bytes()
    made = made_of(paths)
    assert made.salvaged.damaged.name == f"causerie.db.damaged-{DAY}"
    assert made.salvaged.damaged.read_bytes() == before
    assert "message: 30" in made.salvaged.report.read_text("ascii")
    opened = open_store(open_profile_directory(paths.directory), force_key_file=True)
    assert opened.store.latest_page(GROUP, limit=1).total == 30
    opened.store.close()
    assert made_of(paths).salvaged.damaged.name == f"causerie.db.damaged-{DAY}-2"


def test_what_came_over_is_said_by_kind(paths: ProfilePaths, qtbot: QtBot) -> None:
    made = made_of(paths)
    shown = build_failed_start(salvaged_start(made))
    qtbot.addWidget(shown)
    assert shown.title.text() == "The database was repaired"
    assert shown.words.text().startswith("Came over: 2 conversations, 30 messages, 1 person, 0 ")
    assert "Nothing that could be found is missing." in shown.words.text()
    assert made.salvaged.damaged.name in shown.words.text()
    assert tuple(shown.buttons) == (StartAction.OPEN_SALVAGED, StartAction.QUIT)
    working = build_carrying_over(UiSettings(), is_salvage=True)
    qtbot.addWidget(working)
    assert working.title.text() == "The database is being repaired"


def test_what_is_gone_is_said_by_conversation() -> None:
    day = 24 * 3_600_000
    lost = tuple(
        LostRows(
            conversation=f"Tide {n}", messages=n, first_ms=UnixMs(day * 20_000),
            last_ms=UnixMs(day * (20_000 + n)),
        )
        for n in range(7)
    )  # fmt: skip
    rows = SalvagedRows(
        kept_as="causerie.db.damaged-2026-11-24", conversations=7, messages=100, people=1, files=0,
        others=3, unreadable=2, lost=lost, asked_for=21, keyless=2, is_cut_short=True,
    )  # fmt: skip
    words = salvaged_words(rows)
    assert "2 places could not be read." in words
    assert "Tide 0: 0 messages gone, of 4 October 2024\n" in words
    assert "Tide 2: 2 messages gone, of 4 October 2024 to 6 October 2024" in words
    assert "Tide 5" not in words
    assert "… and in 2 others." in words
    assert "21 messages are asked for again" in words
    assert "What was saved last is gone" in words
    assert "2 groups lost their key" in words


def test_a_log_that_lost_its_end_is_not_called_whole() -> None:
    rows = SalvagedRows(
        kept_as="causerie.db.damaged-2026-11-24", conversations=1, messages=1, people=0, files=0,
        others=0, unreadable=0, is_cut_short=True,
    )  # fmt: skip
    words = salvaged_words(rows)
    assert "What was saved last is gone" in words
    assert "Nothing that could be found is missing" not in words


def test_a_notice_about_damage_leads_to_the_repair() -> None:
    asked: list[str] = []
    ((words, repair),) = repairing(DatabaseDamaged(), lambda: asked.append("repair"))
    repair()
    assert (words, asked) == ("Close and repair…", ["repair"])
    assert repairing(DatabaseDamaged(), None) == ()
    assert repairing(SearchMadeAgain(), lambda: None) == ()


def test_nothing_has_changed_if_it_could_not_be_done(paths: ProfilePaths) -> None:
    database = paths.directory / "causerie.db"
    database.with_name("causerie.db.tables").unlink(missing_ok=True)
    data = bytearray(database.read_bytes())
    data[100:200] = bytes(100)
    database.write_bytes(data)
    before = names(paths)
    with pytest.raises(StorageError, match="there is no copy of it"):
        made_of(paths)
    assert names(paths) == before
    assert database.read_bytes() == data


def test_it_can_be_stopped_and_nothing_has_changed(paths: ProfilePaths) -> None:
    def stopped(share: float) -> bool:
        return share < 0

    before = names(paths)
    with pytest.raises(CarryOverStoppedError):
        salvage_profile(paths, stopped, day=DAY)
    assert names(paths) == before


def opening(
    monkeypatch: pytest.MonkeyPatch, chosen: StartAction
) -> tuple[list[str], Callable[[ProfilePaths], int]]:
    """What is opened, one after the other; the first is damaged."""
    opened: list[str] = []

    def once(paths: ProfilePaths, options: WindowOptions, keys: Keys) -> int:
        del options, keys
        opened.append(paths.name)
        if len(opened) == 1:
            raise StorageError("x", StorageFault.DAMAGED)
        return 0

    monkeypatch.setattr(starting, "require_display", lambda: None)
    monkeypatch.setattr(starting, "can_be_seen", lambda: True)
    monkeypatch.setattr(starting, "open_or_hand_over", once)
    monkeypatch.setattr(starting, "ask_about", lambda *_, **__: StartAction.SALVAGE)
    monkeypatch.setattr(starting, "ask_about_salvaged", lambda _: chosen)
    monkeypatch.setattr(salvaging, "salvage_in_window", made_of)
    return opened, lambda paths: open_window(paths, WindowOptions())


def test_it_is_opened_again_if_so_wished(
    paths: ProfilePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, start = opening(monkeypatch, StartAction.OPEN_SALVAGED)
    assert start(paths) == 0
    assert opened == ["ines", "ines"]


def test_it_is_not_opened_otherwise(paths: ProfilePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, start = opening(monkeypatch, StartAction.QUIT)
    assert start(paths) == 0
    assert opened == ["ines"]


def test_where_it_cannot_be_repaired_a_backup_is_still_offered(
    paths: ProfilePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, start = opening(monkeypatch, StartAction.QUIT)
    asked: list[dict[str, bool]] = []

    def ask(*_: object, **how: bool) -> StartAction:
        asked.append(how)
        return StartAction.RESTORE if how else StartAction.SALVAGE

    def fails(*_: object) -> SalvagedProfile:
        raise StorageError("x", StorageFault.DAMAGED)

    def restored(beside: ProfilePaths) -> bool:
        return "restored" in beside.name

    monkeypatch.setattr(starting, "ask_about", ask)
    monkeypatch.setattr(salvaging, "salvage_in_window", fails)
    monkeypatch.setattr(restoring, "restore_in_window", restored)
    assert start(paths) == 0
    assert asked == [{}, {"offers_salvage": False}]
    assert opened[1].startswith("ines-restored-")
