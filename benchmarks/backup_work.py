"""A process that makes a large profile, backs one up or restores one, and says what that took.

Run as ``python -m benchmarks.backup_work make PROFILE MEGABYTES``, ``… backup PROFILE FILE`` or
``… restore PROFILE FILE``; prints ``{seconds, grown_mib, peak_mib}`` as JSON.  Each measurement has
a process of its own, so that no peak of memory is left of another one.  The time includes Argon2id;
the growth is from there on, since its 64 MiB would hide what comes after it.  ``digest PROFILE ""``
prints a hash of what the profile holds, but for what a restore makes anew.
"""

import hashlib
import json
import sys
import time
from pathlib import Path
from random import Random
from typing import Final

from engine.core.ids import InstanceId, UnixMs
from engine.core.ports import SaveProfile, SaveValue
from engine.core.records import ProfileRecord
from engine.crypto.identity import Identity
from engine.persistence.backup import BackupSource, new_secret, write_backup
from engine.persistence.carry_over import Progress
from engine.persistence.database import open_readonly
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.restore import RestorePlace, restore_backup
from engine.persistence.sqlite_store import SqliteProfileStore

MEGABYTE: Final = 1_000_000
_PASSPHRASE: Final = "a long one, for the benchmark"  # noqa: S105 - of made-up profiles
_TEXT_BYTES: Final = 10_000
_TEXTS_TOGETHER: Final = 100
_CHUNK_BYTES: Final = 262_144
_MADE_ANEW: Final = frozenset({"instance_id", "network_key"})
_OWN_NUMBERING: Final = "own_sequence"


def make(place: Path, megabytes: int) -> None:
    """Half of it in the database, half in chunks of files."""
    random = Random(megabytes)  # noqa: S311 - the same profile each time
    directory = open_profile_directory(place)
    store = SqliteProfileStore.open(directory.database, _key_of(directory))
    identity = Identity.generate(random.randbytes)
    profile = ProfileRecord(
        name="Ines",
        signing_key=identity.signing_key,
        encryption_key=identity.encryption_key,
        network_key=random.randbytes(32),
        instance_id=InstanceId(random.randbytes(16)),
        created_ms=UnixMs(1),
    )
    store.apply([SaveProfile(profile=profile)])
    half = megabytes * MEGABYTE // 2
    for first in range(0, half // _TEXT_BYTES, _TEXTS_TOGETHER):
        numbers = range(first, first + _TEXTS_TOGETHER)
        store.apply([SaveValue(key=f"text.{n}", value=_text(random)) for n in numbers])
    store.close()
    directory.files.mkdir(mode=0o700)
    for _ in range(half // _CHUNK_BYTES):
        chunk = random.randbytes(_CHUNK_BYTES)
        (directory.files / hashlib.sha256(chunk).hexdigest()).write_bytes(chunk)


def _text(random: Random) -> str:
    return random.randbytes(_TEXT_BYTES // 2).hex()


def _key_of(directory: ProfileDirectory) -> bytes:
    return obtain_database_key(directory, force_key_file=True).key


class _Memory:
    """Of this process, from the first time that progress is told: the secret is there then."""

    def __init__(self) -> None:
        self._before_mib: float | None = None
        self._peak_before_mib = 0.0

    def progress(self, share: float) -> bool:
        del share
        if self._before_mib is None:
            self._peak_before_mib = _status_mib("VmHWM")
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # The peak begins now.
            self._before_mib = _status_mib("VmRSS")
        return True

    @property
    def grown_mib(self) -> float:
        if self._before_mib is None:
            raise LookupError("nothing was done")
        return _status_mib("VmHWM") - self._before_mib

    @property
    def peak_mib(self) -> float:
        """Of the whole work."""
        return max(self._peak_before_mib, _status_mib("VmHWM"))


def back_up(place: Path, file: Path, progress: Progress) -> None:
    directory = ProfileDirectory(place)
    source = BackupSource(
        directory=directory,
        key=_key_of(directory),
        settings=place / "settings.toml",
        window=place / "window.json",
        app_version="0",
    )
    secret = new_secret(_PASSPHRASE)
    write_backup(source, file, secret, created_ms=UnixMs(1), progress=progress)


def restore(place: Path, file: Path, progress: Progress) -> None:
    into = RestorePlace(
        directory=open_profile_directory(place),
        settings=place / "settings.toml",
        window=place / "window.json",
        force_key_file=True,
    )
    restore_backup(file, _PASSPHRASE, into, progress)


def digest(place: Path) -> str:
    """Of all rows and all chunks."""
    directory, hashed = ProfileDirectory(place), hashlib.sha256()
    reading = open_readonly(directory.database, _key_of(directory))
    tables = reading.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    for (table,) in tables.fetchall():
        named = [row[1] for row in reading.execute(f"PRAGMA table_info({table})")]
        columns = ", ".join(f'"{name}"' for name in named if name not in _MADE_ANEW)
        if table != _OWN_NUMBERING:
            for row in reading.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}"):  # noqa: S608 - names from the schema
                hashed.update(repr(row).encode())
    reading.close()
    for path in sorted(directory.files.iterdir()):
        hashed.update(path.name.encode())
        hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()


def _status_mib(field: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1_024
    raise LookupError(field)


def main() -> None:
    what, place, third = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if what == "make":
        make(place, int(third))
        return
    if what == "digest":
        print(digest(place))
        return
    work = {"backup": back_up, "restore": restore}[what]
    memory, began = _Memory(), time.perf_counter()
    work(place, Path(third), memory.progress)
    seconds = time.perf_counter() - began
    said = {"seconds": seconds, "grown_mib": memory.grown_mib, "peak_mib": memory.peak_mib}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
