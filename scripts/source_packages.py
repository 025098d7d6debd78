"""Packages that nobody publishes as wheels: made into one here, once, and kept.

PySpark is the only one, and none that a user of the desktop gets.  The lock pins its source archive
by hash like everything else; the locked setuptools packs it, and runs nothing but PySpark's own
set-up file.  The wheel stays below ``build/wheels``, under the hash of its entry in the lock, so
that a new environment costs no second download: half a gigabyte.

Only the standard library is used.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

NAMES = frozenset({"pyspark"})
BUILT_BY = ("setuptools>=80",)
"""Goes into every lock that has one of them: with a setuptools that needs no other package."""

KEPT = Path("build") / "wheels"
_NAME = re.compile(r"[A-Za-z0-9._-]+")

Run = Callable[[Sequence[str | Path]], None]
"""Takes pip's arguments."""


def split(lock: str) -> tuple[str, list[str]]:
    """The lock without them, and the entry of each of them."""
    entries = re.findall(r"^(?=[^\s#]).*(?:\n[ \t].*)*\n?", lock, flags=re.MULTILINE)
    found = [entry for entry in entries if _name(entry) in NAMES]
    rest = "".join(entry for entry in entries if entry not in found)
    return rest, found


def _name(entry: str) -> str:
    match = _NAME.match(entry)
    return match[0].lower().replace("_", "-") if match else ""


def wheel_of(root: Path, entry: str, pip: Run) -> Path:
    """Built unless it is there already; a build that fails or is killed leaves nothing in place."""
    place = root / KEPT / hashlib.sha256(entry.encode()).hexdigest()[:16]
    if not place.is_dir():
        print(f"set-up: {_name(entry)} has no wheel, making one (once)", flush=True)
        unfinished = place.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        wanted = unfinished / "wanted.txt"
        wanted.write_text(entry, encoding="utf-8")
        pip(
            [
                *("wheel", "-q", "--require-hashes", "--no-deps", "--no-build-isolation"),
                *("--no-binary", ":all:", "-w", unfinished, "-r", wanted),
            ]
        )
        unfinished.rename(place)
    return next(place.glob("*.whl"))
