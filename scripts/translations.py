"""The texts of ``ui`` into translators' files, ``ui/translations/*.ts``, and those into ``.qm``.

``python -m scripts.translations`` does both.  A text that left the source leaves the file, one that
is not translated yet waits there as unfinished, and nothing says on which line it stands, so that a
file changes only where words do.  The ``.qm`` files are what the window loads.  They are not
committed; set-up builds those that are older than their ``.ts``.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = Path("ui", "translations")


def stale(root: Path) -> Iterator[tuple[Path, Path]]:
    """Each ``.ts`` whose ``.qm`` is older, or is not there, with that."""
    for source in sorted((root / FOLDER).glob("*.ts")):
        built = source.with_suffix(".qm")
        if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
            yield source, built


def build(root: Path, tools: Path) -> None:
    """Make what is stale, with the tool in ``tools``.  Raises CalledProcessError, OSError."""
    for source, built in stale(root):
        fresh = built.with_suffix(f".{os.getpid()}.new")
        command = (tools / "pyside6-lrelease", "-silent", source, "-qm", fresh)
        subprocess.run(command, check=True)
        fresh.replace(built)


def update(root: Path, tools: Path, made: Path) -> None:
    """Bring the texts of ``ui`` into ``made``, whose translations stay."""
    modules = sorted(str(path.relative_to(root)) for path in (root / "ui").rglob("*.py"))
    options = ("-silent", "-locations", "none", "-no-obsolete", "-sort-messages")
    # A text that merely resembles one has no translation yet: it may say the contrary.
    guesses = ("-disable-heuristic", "sametext", "-disable-heuristic", "similartext")
    language = made.stem.rpartition("_")[2]
    command = (tools / "pyside6-lupdate", *options, *guesses, "-target-language", language)
    subprocess.run((*command, *modules, "-ts", made), cwd=root, check=True)


def main() -> int:
    tools = Path(sys.executable).parent
    for source in sorted((ROOT / FOLDER).glob("*.ts")):
        update(ROOT, tools, source)
    build(ROOT, tools)
    return 0


if __name__ == "__main__":
    sys.exit(main())
