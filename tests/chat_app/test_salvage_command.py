"""``causerie salvage`` and ``causerie doctor`` on a damaged profile."""

import json
from pathlib import Path

import pytest

from chat_app.__main__ import main
from engine.persistence.profile_directory import (
    ProfileDirectory,
)
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.chat_app.filled_profile import filled_profile
from tests.persistence.conftest import KEY
from tests.persistence.damage import content, copy_files, flip, ruin, say


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    return filled_profile(tmp_path / "ines").path


def salvaged(place: Path) -> int:
    return main(["--profile-dir", str(place), "salvage"])


def examined(place: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    status = main(["--profile-dir", str(place), "doctor", "--json"])
    page: dict[str, object] = json.loads(capsys.readouterr().out)
    return status, page


def test_what_is_whole_stays_as_it_is(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (place / "causerie.db").read_bytes()
    assert salvaged(place) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert (place / "causerie.db").read_bytes() == before
    assert [*place.glob("causerie.db.damaged-*")] == []


def test_one_bit_is_mended_and_doctor_says_so_before_and_after(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(place / "causerie.db")
    flip(place / "causerie.db", 8 * 40 * 4096 + 5)
    status, page = examined(place, capsys)
    assert status == 1
    assert "causerie salvage" in str(page["attention"])
    assert "damage" in json.dumps(page["database"])
    assert salvaged(place) == 0
    assert "pages mended: 41" in capsys.readouterr().out
    assert content(place / "causerie.db") == before
    _, page = examined(place, capsys)
    assert "damaged" not in str(page["attention"])
    assert "causerie.db.damaged-" in json.dumps(page["database"])


def test_a_first_page_that_is_gone_is_replaced(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(place / "causerie.db")
    ruin(place / "causerie.db", 1)
    status, page = examined(place, capsys)
    assert status == 1
    assert "its first page" in str(page["attention"])
    assert salvaged(place) == 0
    assert "replaced by copies: 1" in capsys.readouterr().out
    assert content(place / "causerie.db") == before


def test_what_is_gone_is_printed_and_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ruin(place / "causerie.db", *range(60, 70))
    assert salvaged(place) == 1
    said = capsys.readouterr().out
    (report,) = place.glob("causerie.db.damaged-*.txt")
    assert said.startswith(report.read_text("ascii"))
    assert "places that could not be read" in said


def test_a_log_with_a_changed_bit(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = ProfileDirectory(place)
    live = place.with_name("live.db")
    live.write_bytes(directory.database.read_bytes())
    store = SqliteProfileStore.open(live, KEY)
    say(store, 100, 150)
    copy_files(live, directory.database)
    store.close()
    flip(place / "causerie.db-wal", 8 * 5000)
    status, page = examined(place, capsys)
    assert status == 1
    assert "of the write-ahead log" in str(page["attention"])
    assert (place / "causerie.db-wal").exists()
    assert salvaged(place) == 0
    assert content(directory.database) == content(live)


def test_a_database_that_is_gone_is_no_first_start(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "causerie.db").unlink()
    for command in ("salvage", "doctor"):
        assert main(["--profile-dir", str(place), command]) == 2
        assert "this profile was used" in capsys.readouterr().err
    assert not (place / "causerie.db").exists()


def test_there_is_nothing_to_repair_without_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert salvaged(tmp_path / "nobody") == 2
    assert "there is no profile" in capsys.readouterr().err
    assert not (tmp_path / "nobody").exists()
