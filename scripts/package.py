"""Build what people install: ``dist/causerie`` (a folder that runs) and, on Debian, a ``.deb``.

PyInstaller does not cross-build, so each system builds its own.  The .deb puts the folder under
/usr/lib, a link to the program on the path, and desktop entry, AppStream metadata and icons where
desktops look for them.  The node's systemd service comes along and is not enabled.  Metadata is
validated before anything is packed.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PROGRAM = DIST / "causerie"
APPLICATION_ID = "chat.causerie.Causerie"
LINUX = ROOT / "packaging" / "linux"
NODE_SERVICE = ROOT / "packaging" / "systemd" / "causerie-node.service"
ICON_SIZES = (16, 24, 32, 48, 64, 128, 256, 512)

# Found on the system on purpose, never bundled: drivers, the font configuration and glibc's kin.
DEPENDS = ("libegl1", "libgl1", "libfontconfig1", "libdbus-1-3", "libwayland-cursor0")
RECOMMENDS = ("fonts-noto-color-emoji", "gnome-keyring | kwalletmanager | keepassxc")

CONTROL = """\
Package: causerie
Version: {version}
Architecture: {architecture}
Maintainer: The Causerie contributors <causerie@users.noreply.invalid>
Installed-Size: {kibibytes}
Depends: {depends}
Recommends: {recommends}
Section: net
Priority: optional
Description: group chat in which nothing gets lost
 Causerie is a group chat without accounts and without a server to trust.
 Everyone ends up with the same conversation in the same order, and every
 message shows who holds it.
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Causerie

Files: *
Copyright: 2026 The Causerie contributors
License: MIT or Apache-2.0
Comment: The licences of the bundled libraries, among them Qt and PySide6 (LGPL-3),
 are named in docs/decisions/0006-dependencies.md of the source.  The table of emoji is made
 of data of Unicode and of emojibase; emoji-licences.txt beside it has their licences.

Files: */assets/fonts/*.ttf
Copyright: 2016-2024 The Inter Project Authors
License: OFL-1.1
Comment: OFL.txt beside them is the licence.
"""


def version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def needed_glibc(folder: Path) -> str:
    """The newest glibc that any bundled library asks for, as in its version symbols."""
    found = {(2, 34)}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and (".so" in path.name or not path.suffix):
            symbols = re.findall(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())
            found.update((int(major), int(minor)) for major, minor in symbols)
    major, minor = max(found)
    return f"{major}.{minor}"


def run(*command: str | Path) -> None:
    print("+", *command, flush=True)
    subprocess.run(command, cwd=ROOT, check=True)


def build_program() -> None:
    shutil.rmtree(PROGRAM, ignore_errors=True)
    run(
        *(sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
        *("--distpath", DIST, "--workpath", ROOT / "build" / "pyinstaller"),
        ROOT / "packaging" / "causerie.spec",
    )


def strip_debugging() -> None:
    """Wheels and interpreters may come with symbols for debuggers, three quarters of their size.

    Qt's own libraries come without; rewriting them is not worth the risk.
    """
    for pattern in ("libpython*.so*", "sqlcipher3/*.so", "python*/lib-dynload/*.so"):
        libraries = sorted((PROGRAM / "_internal").glob(pattern))
        if libraries:
            run("strip", "--strip-unneeded", *libraries)


def lay_out(tree: Path) -> None:
    """The package's files, as they will lie on the user's disk."""
    share = tree / "usr" / "share"
    shutil.copytree(PROGRAM, tree / "usr" / "lib" / "causerie", symlinks=True)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "causerie").symlink_to("../lib/causerie/causerie")
    for source, folder in (
        (LINUX / f"{APPLICATION_ID}.desktop", share / "applications"),
        (LINUX / f"{APPLICATION_ID}.metainfo.xml", share / "metainfo"),
        (NODE_SERVICE, tree / "usr" / "lib" / "systemd" / "system"),
        (ROOT / "docs" / "operations.md", share / "doc" / "causerie"),
    ):
        folder.mkdir(parents=True)
        shutil.copy(source, folder)
    icons = share / "icons" / "hicolor"
    for size in ICON_SIZES:
        folder = icons / f"{size}x{size}" / "apps"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "assets" / f"icon-{size}.png", folder / f"{APPLICATION_ID}.png")
    (icons / "scalable" / "apps").mkdir(parents=True)
    shutil.copy(ROOT / "assets" / "icon.svg", icons / "scalable" / "apps" / f"{APPLICATION_ID}.svg")
    documents = share / "doc" / "causerie"
    (documents / "copyright").write_text(COPYRIGHT, encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    (documents / "changelog.gz").write_bytes(gzip.compress(changes, mtime=0))


def make_readable(tree: Path) -> None:
    """Modes as installed files have them, whatever the builder's umask was."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            is_run = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if is_run else 0o644)


def build_deb() -> Path:
    run("appstreamcli", "validate", "--no-net", LINUX / f"{APPLICATION_ID}.metainfo.xml")
    run("desktop-file-validate", LINUX / f"{APPLICATION_ID}.desktop")
    tree = ROOT / "build" / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    lay_out(tree)
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"],  # noqa: S607 -- Debian's own, on the path by definition
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout.strip()
    control = CONTROL.format(
        version=version(),
        architecture=architecture,
        kibibytes=sum(path.stat().st_size for path in files) // 1024,
        depends=", ".join((f"libc6 (>= {needed_glibc(PROGRAM)})", *DEPENDS)),
        recommends=", ".join(RECOMMENDS),
    )
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    make_readable(tree)
    package = DIST / f"causerie_{version()}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zzstd", "-z19", "--build", tree, package)
    return package


def mebibytes(path: Path) -> float:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if not p.is_symlink()]
    return sum(p.stat().st_size for p in files if p.is_file()) / 2**20


def main() -> int:
    build_program()
    if sys.platform == "linux":
        strip_debugging()
    made = [PROGRAM]
    if shutil.which("dpkg-deb"):
        made.append(build_deb())
    for path in made:
        print(f"{path.relative_to(ROOT)}: {mebibytes(path):.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
