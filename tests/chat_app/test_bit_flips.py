"""One changed bit anywhere in a profile: it is noticed and named, and what it took comes back.

The profile was in use when its process was killed, or was closed.  Bits are chosen by a seed, which
a failure shows.  No page of SQLCipher's has a bit that does not count; bits that may change without
anybody noticing are in files that repeat what is said elsewhere, or that people may write in.
"""

import hashlib
import shutil
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from chat_app.compose import open_store
from chat_app.settings_file import default_text
from chat_app.settings_reading import load_what_is_right
from engine.core.blobs.manifest import ChunkName
from engine.core.errors import SettingsError, StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.core.ports import SaveDraft
from engine.persistence.chunk_files import ChunkFiles
from engine.persistence.file_damage import examine_files
from engine.persistence.profile_directory import (
    ProfileDirectory,
    open_profile_directory,
    write_private_file,
)
from engine.persistence.salvage import salvage
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.conftest import KEY
from tests.persistence.damage import content, copy_files, fill, flip, say
from tests.persistence.store_examples import GROUP
from ui.error_words import error_words

NOW: Final = UnixMs(1_790_000_000_000)
DAY: Final = "2026-11-26"
ROWS: Final = 300
SEED: Final = 21
CHUNK: Final = b"sealed" * 500
CHUNK_NAME: Final = ChunkName(hashlib.sha256(CHUNK).digest())
DATABASE: Final = ("causerie.db", "causerie.db-wal")
SAID_TWICE: Final = ("causerie.db-shm", "causerie.db.tables")
NO_WAY_IN: Final = (
    StorageFault.NO_KEY,
    StorageFault.NOT_DECRYPTED,
    StorageFault.KEYS_DAMAGED,
    StorageFault.KEYS_FOREIGN,
)
KEYS: Final = ("database.keys", "database.keys.copy", "database.secret")
FILES: Final = (*DATABASE, *DATABASE, *SAID_TWICE, *KEYS, "settings.toml", "blobs")
"""Those that hold everything are chosen more often."""


class Pristine:
    """A profile as a killed process left it, and as a closed one did."""

    def __init__(self, place: Path) -> None:
        live = open_profile_directory(place / "live")
        write_private_file(live.key_file, KEY.hex() + "\n")
        store = open_store(live, force_key_file=True).store
        assert isinstance(store, SqliteProfileStore)
        fill(store, ROWS)
        store.close()
        keep_chunk(live)
        (live.path / "settings.toml").write_text(default_text(), encoding="utf-8")
        again = open_store(live, force_key_file=True).store
        assert isinstance(again, SqliteProfileStore)
        say(again, ROWS, ROWS + 100)
        again.apply([SaveDraft(conversation_id=GROUP, text="and the other half")])
        self.killed, self.closed = place / "killed", place / "closed"
        shutil.copytree(live.path, self.killed)
        copy_files(live.database, self.killed / live.database.name)
        again.close()
        shutil.copytree(live.path, self.closed)
        self.content = content(live.database)


def keep_chunk(directory: ProfileDirectory) -> ChunkFiles:
    chunks = ChunkFiles(directory.files, max_bytes=10**9)
    chunks.open()
    chunks.keep(CHUNK_NAME, CHUNK)
    return chunks


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Pristine:
    return Pristine(tmp_path_factory.mktemp("pristine"))


def said(error: SettingsError | StorageError, *faults: StorageFault) -> str:
    """Words for the window, and for what is wrong."""
    assert error_words(error)
    assert isinstance(error, SettingsError) or error.fault in faults
    return "found at the start"


class Trial:
    """One profile with one bit changed."""

    def __init__(self, pristine: Pristine, place: Path, random: Random) -> None:
        self.pristine = pristine
        self.name = random.choice(FILES)
        before = pristine.killed if random.random() < 0.7 else pristine.closed
        if not (before / self.name).exists():
            before = pristine.killed
        self.is_closed = before == pristine.closed
        self.place = place
        shutil.copytree(before, place)
        self.directory = ProfileDirectory(place)
        self.file = place / self.name
        if self.name == "blobs":
            self.file /= CHUNK_NAME.hex()
        self.bit = random.randrange(self.file.stat().st_size * 8)
        flip(self.file, self.bit)

    def copy(self) -> ProfileDirectory:
        """To be looked at: an opened database puts its log into its file."""
        there = self.place.with_name(f"{self.place.name}-copy")
        shutil.copytree(self.place, there)
        return ProfileDirectory(there)

    def run(self) -> str:
        match self.name:
            case "settings.toml":
                return self.settings()
            case "blobs":
                chunks = ChunkFiles(self.directory.files, max_bytes=10**9)
                assert chunks.held((CHUNK_NAME,)) == (True,)
                assert chunks.read(CHUNK_NAME) is None
                assert keep_chunk(self.directory).read(CHUNK_NAME) == CHUNK  # As a peer has it.
                return "found at reading it"
            case name if name in KEYS:
                return self.key()
            case _:
                return self.database()

    def settings(self) -> str:
        """Whoever reads them may have written them so, if they are allowed."""
        try:
            read = load_what_is_right(self.file)
        except SettingsError as error:
            return said(error, StorageFault.OTHER)
        if read.complaints:
            return "found at the start"
        same = read.settings == load_what_is_right(self.pristine.closed / self.name).settings
        return "without effect" if same else "another allowed value"

    def key(self) -> str:
        """The header is there twice; the secret that opens it is there once."""
        before = (self.place / "causerie.db").read_bytes()
        try:
            store = open_store(self.copy(), force_key_file=True).store
        except StorageError as error:
            return said(error, *NO_WAY_IN)
        finally:
            assert (self.place / "causerie.db").read_bytes() == before
        store.close()
        return "without effect"  # Or the other header was taken.

    def database(self) -> str:
        """A start that fails loses nothing: what it left is what is repaired."""
        opened = self.copy()
        outcome = self.noticed(opened)
        if outcome == "without effect":
            # Else the log has the page anew.
            assert self.name != "causerie.db" or not self.is_closed, "every bit of a page counts"
        else:
            self.directory = opened if outcome == "found at the start" else self.directory
            self.salvage()
        return outcome

    def noticed(self, opened: ProfileDirectory) -> str:
        try:
            damage = examine_files(opened.database, KEY)
            store = open_store(opened, force_key_file=True).store
        except StorageError as error:
            return said(error, StorageFault.DAMAGED)
        store.close()
        if damage.unreadable:
            return "found at reading it"
        assert content(opened.database) == self.pristine.content, "unnoticed"
        return "without effect"

    def salvage(self) -> None:
        place = self.directory.path
        damaged = {name: (place / name).read_bytes() for name in DATABASE
                   if (place / name).exists()}  # fmt: skip
        made = salvage(self.directory, KEY, day=DAY, now_ms=NOW)
        assert made.found.unreadable == 0
        for name, data in damaged.items():
            kept = name.replace("causerie.db", made.damaged.name)
            assert (place / kept).read_bytes() == data, "nothing is written over a damaged database"
        assert "text" not in made.report.read_text("ascii")
        open_store(self.directory, force_key_file=True).store.close()
        assert content(self.directory.database) == self.pristine.content


@pytest.mark.slow
@pytest.mark.parametrize("flips", [40, pytest.param(300, marks=pytest.mark.long)])
def test_a_changed_bit_is_noticed_and_undone(
    pristine: Pristine, tmp_path: Path, flips: int
) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    for number in range(flips):
        random = Random(f"{SEED}/{number}")
        trial = Trial(pristine, tmp_path / "trial", random)
        outcomes[trial.name, trial.run()] += 1
        for place in tmp_path.glob("trial*"):
            shutil.rmtree(place)
    assert outcomes.total() == flips
    assert sum(count for (_, how), count in outcomes.items() if how.startswith("found")) > flips / 2
    sys.stdout.writelines(f"{name:18} {how:20} {n:4}\n" for (name, how), n in outcomes.items())
