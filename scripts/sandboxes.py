"""An AppImage and a Flatpak, made of the program folder and the tarball of ``make package``.

``appimage`` lays out an AppDir and, where appimagetool is, packs it with the runtime that is named
by ``CAUSERIE_APPIMAGE_RUNTIME`` (the static one, which needs no libfuse).  ``flatpak`` writes the
manifest with the tarball's path and digest and, where flatpak-builder is, builds one file of it.
Both need more than Debian has, so the forge does it; here the layout, the manifest and a start from
the layout are looked at.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.linux_packages import (
    APPLICATION_ID,
    BUILD,
    DIST,
    ROOT,
    fresh,
    lay_out_for_desktops,
    run,
    settle,
)
from scripts.release import date_of, version

PACKAGING = ROOT / "packaging"
MANIFEST = PACKAGING / "flatpak" / f"{APPLICATION_ID}.json"
APP_RUN = PACKAGING / "appimage" / "AppRun"
DIRECTORY_LINK = ".DirIcon"


# --- AppImage -------------------------------------------------------------------------------------


def lay_out_app_dir(program: Path) -> Path:
    """As AppImages have it: entry and icon on top, everything else below ``usr``."""
    tree = fresh("appimage") / "Causerie.AppDir"
    (tree / "usr" / "lib").mkdir(parents=True)
    shutil.copytree(program, tree / "usr" / "lib" / "causerie", symlinks=True)
    lay_out_for_desktops(tree / "usr" / "share")
    shutil.copy(APP_RUN, tree / "AppRun")
    (tree / "AppRun").chmod(0o755)
    share = tree / "usr" / "share"
    shutil.copy(share / "applications" / f"{APPLICATION_ID}.desktop", tree)
    shutil.copy(ROOT / "assets" / "icon-256.png", tree / f"{APPLICATION_ID}.png")
    (tree / DIRECTORY_LINK).symlink_to(f"{APPLICATION_ID}.png")
    # appimagetool looks for the name that was usual before.
    (share / "metainfo" / f"{APPLICATION_ID}.appdata.xml").symlink_to(
        f"{APPLICATION_ID}.metainfo.xml"
    )
    settle(tree, date_of(ROOT))
    return tree


def build_app_image(program: Path) -> Path | None:
    """None where its tool is not."""
    tree = lay_out_app_dir(program)
    tool = shutil.which("appimagetool")
    if tool is None:
        print(f"laid out: {tree}; not packed: appimagetool is not here")
        return None
    target = DIST / f"causerie-{version()}-{platform.machine()}.AppImage"
    runtime = os.environ.get("CAUSERIE_APPIMAGE_RUNTIME")
    words = ("--runtime-file", runtime) if runtime else ()
    run(
        *(tool, "--no-appstream", *words, tree, target),
        SOURCE_DATE_EPOCH=str(date_of(ROOT)),
        ARCH=platform.machine(),
    )
    return target


# --- Flatpak --------------------------------------------------------------------------------------


def write_manifest(tarball: Path) -> Path:
    """The manifest with the tarball that it takes."""
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    text = MANIFEST.read_text(encoding="utf-8")
    path = json.dumps(str(tarball.resolve()))[1:-1]
    target = fresh("flatpak") / MANIFEST.name
    target.write_text(text.replace("@TARBALL@", path).replace("@SHA256@", digest), "utf-8")
    return target


def build_flatpak(tarball: Path) -> Path | None:
    """None where its tool is not."""
    manifest = write_manifest(tarball)
    if shutil.which("flatpak-builder") is None:
        print(f"written: {manifest}; not built: flatpak-builder is not here")
        return None
    place = manifest.parent
    target = DIST / f"causerie-{version()}-{platform.machine()}.flatpak"
    run(
        *("flatpak-builder", "--user", "--force-clean", "--disable-rofiles-fuse"),
        *("--install-deps-from=flathub", f"--repo={place / 'repo'}"),
        *(place / "tree", manifest),
        SOURCE_DATE_EPOCH=str(date_of(ROOT)),
    )
    run("flatpak", "build-bundle", place / "repo", target, APPLICATION_ID)
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts.sandboxes", description=__doc__)
    parser.add_argument("what", choices=("appimage", "flatpak"))
    asked = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    if asked.what == "appimage":
        made = build_app_image(DIST / "causerie")
    else:
        made = build_flatpak(DIST / f"causerie-{version()}-linux-{platform.machine()}.tar.xz")
    if made is not None:
        print(made.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
