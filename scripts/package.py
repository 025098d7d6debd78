"""Build what people install: ``dist/causerie``, a folder that runs, and packages of it.

PyInstaller does not cross-build, so each system builds its own: on Linux a .deb, an .rpm and a
tarball (scripts/linux_packages.py), on Windows an installer (windows_package.py), on macOS a disk
image with the bundle (macos_package.py).  Two builds of one commit are alike: hashes are seeded,
and times are those of the commit.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts import linux_packages, macos_package, release_channel, translations, windows_package
from scripts.linux_packages import DIST, ROOT, run
from scripts.release import date_of

PROGRAM = DIST / "causerie"


def build_program() -> None:
    shutil.rmtree(PROGRAM, ignore_errors=True)
    run(
        *(sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
        *("--distpath", DIST, "--workpath", ROOT / "build" / "pyinstaller"),
        ROOT / "packaging" / "causerie.spec",
        PYTHONHASHSEED="1",
        SOURCE_DATE_EPOCH=str(date_of(ROOT)),
    )


def tidy_libraries() -> None:
    """Without symbols for debuggers, and without places that are only on this machine.

    Interpreters and wheels may come with such symbols, three quarters of their size, and an
    interpreter that somebody built looks for libraries where it was built first.  Qt's own
    libraries come without both; rewriting them is not worth the risk.
    """
    for pattern in ("libpython*.so*", "sqlcipher3/*.so", "python*/lib-dynload/*.so"):
        libraries = sorted((PROGRAM / "_internal").glob(pattern))
        if libraries:
            run("patchelf", "--remove-rpath", *libraries)
            run("strip", "--strip-unneeded", *libraries)


def mebibytes(path: Path) -> float:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if not p.is_symlink()]
    return sum(p.stat().st_size for p in files if p.is_file()) / 2**20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts.package", description=__doc__)
    parser.add_argument("--again", action="store_true", help="pack the folder that is there")
    parser.add_argument(
        "--level", type=int, choices=range(10), default=6, help="how hard xz tries (default: 6)"
    )
    asked = parser.parse_args(arguments)
    if not asked.again:
        translations.build(ROOT, Path(sys.executable).parent)
        with release_channel.told(ROOT):
            build_program()
        if sys.platform == "linux":
            tidy_libraries()
    made = [PROGRAM]
    if sys.platform == "win32":
        made.append(windows_package.build(DIST))
    elif sys.platform == "darwin":
        made.append(macos_package.build(DIST))
    else:
        made += linux_packages.build_all(PROGRAM, asked.level)
    for path in made:
        print(f"{path.relative_to(ROOT)}: {mebibytes(path):.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
