"""Pack the program folder for Linux: a ``.deb``, an ``.rpm`` and a tarball that needs no root.

All three hold the same folder and the same things for the desktop: entry with the ``causerie:``
scheme, AppStream metadata, icons, manual page.  The .deb and the .rpm put them where the system
looks, with the node's service, which is not enabled; the tarball brings ``install.sh``, which does
it for one user.  Times and owners in them are fixed, so that two builds of one commit are alike.

Pictures in the AppStream metadata need a public address.  No such address is known here: the forge
hands its own in as ``CAUSERIE_PICTURES_AT``, and without it the metadata names none.
"""

import gzip
import lzma
import os
import platform
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts import man_page
from scripts.release import date_of, version

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BUILD = ROOT / "build" / "packages"
APPLICATION_ID = "chat.causerie.Causerie"
LINUX = ROOT / "packaging" / "linux"
NODE_SERVICE = ROOT / "packaging" / "systemd" / "causerie-node.service"
ICON_SIZES = (16, 24, 32, 48, 64, 128, 256, 512)
MAINTAINER = "The Causerie contributors <causerie@users.noreply.invalid>"
PICTURES = {
    "main-light.png": "Every message shows who holds it",
    "main-dark.png": "The same in dark colours",
    "history-light.png": "A gap that you can see, while it is being filled",
    "delivery-light.png": "The delivery of a conversation as its causal graph",
}

# Found on the system on purpose, never bundled: drivers, the font configuration and glibc's kin.
DEB_DEPENDS = ("libegl1", "libgl1", "libfontconfig1", "libdbus-1-3", "libwayland-cursor0")
DEB_RECOMMENDS = ("fonts-noto-color-emoji", "gnome-keyring | kwalletmanager | keepassxc")
RPM_REQUIRES = (
    "libEGL.so.1()(64bit)",
    "libGL.so.1()(64bit)",
    "libfontconfig.so.1()(64bit)",
    "libdbus-1.so.3()(64bit)",
    "libwayland-cursor.so.0()(64bit)",
)

CONTROL = """\
Package: causerie
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
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

DEBIAN_CHANGES = """\
causerie ({version}) unstable; urgency=medium

  * What changed is in NEWS.gz beside this file.

 -- {maintainer}  {date}
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

{licences}"""


@dataclass(frozen=True, slots=True)
class Program:
    """The folder that PyInstaller made, and when its sources are of (Unix seconds)."""

    folder: Path
    time_s: int
    level: int = 6
    """How hard xz tries, 0 to 9."""


def run(*command: str | Path, **environment: str) -> None:
    print("+", *command, flush=True)
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **environment})


def needed_glibc(folder: Path) -> str:
    """The newest glibc that any bundled library asks for, as in its version symbols."""
    found = {(2, 34)}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and (".so" in path.name or not path.suffix):
            symbols = re.findall(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())
            found.update((int(major), int(minor)) for major, minor in symbols)
    major, minor = max(found)
    return f"{major}.{minor}"


# --- what all of them hold ----------------------------------------------------------------------


def metainfo(pictures_at: str) -> str:
    """The AppStream metadata, with pictures if there is an address to fetch them from."""
    text = (LINUX / f"{APPLICATION_ID}.metainfo.xml").read_text(encoding="utf-8")
    if not pictures_at:
        return text
    if not re.fullmatch(r"https://[\w.-]+(?::\d+)?(?:/[\w.~%+-]+)*", pictures_at):
        raise SystemExit(f"CAUSERIE_PICTURES_AT: {pictures_at!r} is no https address of a folder")
    shots = "".join(
        f"    <screenshot{' type=' + chr(34) + 'default' + chr(34) if first else ''}>\n"
        f"      <caption>{caption}</caption>\n"
        f"      <image>{pictures_at}/{name}</image>\n"
        "    </screenshot>\n"
        for first, (name, caption) in zip(
            (True, *[False] * (len(PICTURES) - 1)), PICTURES.items(), strict=True
        )
    )
    before, found, after = text.partition("  <branding>")
    return f"{before}  <screenshots>\n{shots}  </screenshots>\n{found}{after}"


def lay_out_for_desktops(share: Path) -> None:
    """Entry, metadata, icons and manual page below a ``share`` folder."""
    (share / "applications").mkdir(parents=True)
    shutil.copy(LINUX / f"{APPLICATION_ID}.desktop", share / "applications")
    (share / "metainfo").mkdir()
    (share / "metainfo" / f"{APPLICATION_ID}.metainfo.xml").write_text(
        metainfo(os.environ.get("CAUSERIE_PICTURES_AT", "")), encoding="utf-8"
    )
    icons = share / "icons" / "hicolor"
    for size in ICON_SIZES:
        folder = icons / f"{size}x{size}" / "apps"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "assets" / f"icon-{size}.png", folder / f"{APPLICATION_ID}.png")
    (icons / "scalable" / "apps").mkdir(parents=True)
    shutil.copy(ROOT / "assets" / "icon.svg", icons / "scalable" / "apps" / f"{APPLICATION_ID}.svg")
    manual = share / "man" / "man1"
    manual.mkdir(parents=True)
    (manual / "causerie.1.gz").write_bytes(
        gzip.compress(man_page.PAGE.read_bytes(), compresslevel=9, mtime=0)
    )


def lay_out_for_system(program: Program, tree: Path) -> None:
    """The files of the .deb and the .rpm, as they will lie on the user's disk."""
    share = tree / "usr" / "share"
    shutil.copytree(program.folder, tree / "usr" / "lib" / "causerie", symlinks=True)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "causerie").symlink_to("../lib/causerie/causerie")
    lay_out_for_desktops(share)
    units = tree / "usr" / "lib" / "systemd" / "system"
    units.mkdir(parents=True)
    shutil.copy(NODE_SERVICE, units)
    documents = share / "doc" / "causerie"
    documents.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "operations.md", documents)
    (documents / "copyright").write_text(
        COPYRIGHT.format(licences=_debian_licences()), encoding="utf-8"
    )
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    (documents / "NEWS.gz").write_bytes(gzip.compress(changes, compresslevel=9, mtime=0))


def _debian_licences() -> str:
    """The texts that a Debian copyright file spells out; Apache's stands on every system."""
    mit = (ROOT / "LICENSE-MIT").read_text(encoding="utf-8").partition("\n\n")[2]
    ofl = (ROOT / "assets" / "fonts" / "OFL.txt").read_text(encoding="utf-8")
    apache = "On Debian systems the licence is in /usr/share/common-licenses/Apache-2.0."
    return "\n".join(
        f"License: {name}\n" + "".join(f" {line.rstrip() or '.'}\n" for line in text.splitlines())
        for name, text in (("MIT", mit), ("Apache-2.0", apache), ("OFL-1.1", ofl))
    )


def settle(tree: Path, time_s: int) -> None:
    """Modes and times as installed files have them, whatever the builder's umask and clock."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            is_run = path.is_dir() or (os.access(path, os.X_OK) and ".so" not in path.name)
            path.chmod(0o755 if is_run else 0o644)
        os.utime(path, (time_s, time_s), follow_symlinks=False)


def files_of(tree: Path) -> Iterator[Path]:
    return (path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink())


def fresh(name: str) -> Path:
    tree = BUILD / name
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    return tree


# --- .deb ---------------------------------------------------------------------------------------


def build_deb(program: Program) -> Path:
    tree = fresh("deb")
    lay_out_for_system(program, tree)
    documents = tree / "usr" / "share" / "doc" / "causerie"
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(program.time_s))
    changes = DEBIAN_CHANGES.format(version=version(), maintainer=MAINTAINER, date=date)
    (documents / "changelog.gz").write_bytes(
        gzip.compress(changes.encode(), compresslevel=9, mtime=0)
    )
    overrides = tree / "usr" / "share" / "lintian" / "overrides"
    overrides.mkdir(parents=True)
    shutil.copy(LINUX / "lintian-overrides", overrides / "causerie")
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    control = CONTROL.format(
        version=version(),
        architecture=architecture,
        maintainer=MAINTAINER,
        kibibytes=sum(path.stat().st_size for path in files_of(tree)) // 1024,
        depends=", ".join((f"libc6 (>= {needed_glibc(program.folder)})", *DEB_DEPENDS)),
        recommends=", ".join(DEB_RECOMMENDS),
    )
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    settle(tree, program.time_s)
    package = DIST / f"causerie_{version()}_{architecture}.deb"
    run(
        *("dpkg-deb", "--root-owner-group", "-Zxz", f"-z{program.level}"),
        *("--build", tree, package),
        SOURCE_DATE_EPOCH=str(program.time_s),
    )
    return package


# --- .rpm ---------------------------------------------------------------------------------------


def build_rpm(program: Program) -> Path:
    tree = fresh("rpm-tree")
    lay_out_for_system(program, tree)
    licences = tree / "usr" / "share" / "licenses" / "causerie"
    licences.mkdir(parents=True)
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        shutil.copy(ROOT / name, licences)
    settle(tree, program.time_s)
    place = fresh("rpm")
    glibc = needed_glibc(program.folder)
    requires = (f"libc.so.6(GLIBC_{glibc})(64bit)", *RPM_REQUIRES)
    defined = {
        "_topdir": place,
        "_rpmdir": DIST,
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "_buildhost": "localhost",
        "_binary_payload": f"w{program.level}.xzdio",
        "causerie_tree": tree,
        "causerie_version": version(),
        "causerie_requires": ", ".join(requires),
        "causerie_date": time.strftime("%a %b %d %Y", time.gmtime(program.time_s)),
        "causerie_maintainer": MAINTAINER,
    }
    run(
        *("rpmbuild", "-bb", "--quiet", "--target", platform.machine()),
        *(word for name, value in defined.items() for word in ("--define", f"{name} {value}")),
        LINUX / "causerie.rpm.spec",
        SOURCE_DATE_EPOCH=str(program.time_s),
        LC_ALL="C.UTF-8",
    )
    return DIST / f"causerie-{version()}-1.{platform.machine()}.rpm"


# --- tarball ------------------------------------------------------------------------------------


def build_tarball(program: Program) -> Path:
    """``causerie-VERSION``: the program in ``program``, ``share``, ``install.sh`` and licences."""
    name = f"causerie-{version()}"
    tree = fresh("tarball") / name
    shutil.copytree(program.folder, tree / "program", symlinks=True)
    lay_out_for_desktops(tree / "share")
    for source in (
        LINUX / "install.sh",
        ROOT / "LICENSE-MIT",
        ROOT / "LICENSE-APACHE",
        ROOT / "CHANGELOG.md",
    ):
        shutil.copy(source, tree)
    settle(tree, program.time_s)
    package = DIST / f"{name}-linux-{platform.machine()}.tar.xz"
    print(f"+ tar {package.name}", flush=True)
    with (
        lzma.open(package, "wb", preset=program.level) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in (tree, *sorted(tree.rglob("*"))):
            entry = archive.gettarinfo(path, str(path.relative_to(tree.parent)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = program.time_s
            if entry.isreg():
                with path.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)
    return package


def build_all(folder: Path, level: int) -> list[Path]:
    """What can be built here of it; each that cannot says so."""
    program = Program(folder, date_of(ROOT), level)
    described = BUILD / f"{APPLICATION_ID}.metainfo.xml"
    BUILD.mkdir(parents=True, exist_ok=True)
    described.write_text(metainfo(os.environ.get("CAUSERIE_PICTURES_AT", "")), encoding="utf-8")
    run("appstreamcli", "validate", "--no-net", described)
    run("desktop-file-validate", LINUX / f"{APPLICATION_ID}.desktop")
    made = [build_tarball(program)]
    for tool, build in (("dpkg-deb", build_deb), ("rpmbuild", build_rpm)):
        if shutil.which(tool):
            made.append(build(program))
        else:
            print(f"not built: {tool} is not here")
    return made
