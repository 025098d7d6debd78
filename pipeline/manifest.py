"""Parquet that is whole or not there: directories that a manifest names, swapped in one step.

A directory is written under a name that begins with a dot, renamed when it is complete, and counts
only once the manifest, itself replaced in one step, names it.  Readers follow the manifest and
never see a part; the next run removes what a killed one left behind.  It takes a file system whose
rename is atomic: a disk, NFS, CephFS; not an object store.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
_UNFINISHED: Final = "."

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


class LakeError(Exception):
    """The output directory cannot be used; the text says why."""


def read_manifest(place: Path) -> dict[str, Json]:
    """Empty if there is none yet.  Raises LakeError."""
    path = place / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise LakeError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise LakeError(f"{path} is of another format than {FORMAT}")
    return found


def write_manifest(place: Path, content: Mapping[str, Json]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    unfinished = place / f"{_UNFINISHED}{MANIFEST}"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **content}, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(place / MANIFEST)


def unfinished(place: Path) -> Path:
    """Where to write what is to become ``place``; nothing is there."""
    path = place.with_name(_UNFINISHED + place.name)
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def finish(place: Path) -> None:
    """What ``unfinished`` named becomes ``place``."""
    shutil.rmtree(place, ignore_errors=True)  # Of a run that was killed before its manifest.
    place.with_name(_UNFINISHED + place.name).replace(place)


def remove_but(place: Path, kept: set[str]) -> None:
    """Directories in ``place`` that the manifest does not name any more."""
    if place.is_dir():
        for path in place.iterdir():
            if path.is_dir() and path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def only_writer(root: Path) -> Iterator[None]:
    """Raises LakeError if another process writes there."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = (root / ".lock").open("a")
    except OSError as error:
        raise LakeError(f"{root} cannot be written: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LakeError(f"another process is writing to {root}") from error
        yield
