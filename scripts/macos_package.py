"""Sign the macOS bundle and put it into a disk image: on macOS, by the forge.

``CAUSERIE_CODESIGN_IDENTITY`` names a Developer ID certificate in the keychain; without it the
bundle is signed ad hoc, which runs on one's own machine after a question.  With
``CAUSERIE_NOTARY_PROFILE``, the name of credentials that notarytool keeps in the keychain, Apple is
asked to notarise the image.  No secret is read here.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from scripts.release import ROOT, version

ENTITLEMENTS = ROOT / "packaging" / "macos" / "entitlements.plist"
BUNDLE = "Causerie.app"


def image(dist: Path) -> Path:
    return dist / f"causerie-{version()}-macos-{platform.machine()}.dmg"


def commands(dist: Path, folder: Path, environment: Mapping[str, str]) -> Iterator[list[str]]:
    """What is run, in order; ``folder`` is what the image shows: the bundle and Applications."""
    identity = environment.get("CAUSERIE_CODESIGN_IDENTITY", "")
    bundle, made = folder / BUNDLE, image(dist)
    sign = ["codesign", "--force", "--sign", identity or "-"]
    hardened = ["--options", "runtime", "--timestamp"] if identity else []
    # The bundle's own libraries are signed by PyInstaller's order already, but ad hoc.
    yield [*sign, "--deep", *hardened, "--entitlements", str(ENTITLEMENTS), str(bundle)]
    yield ["codesign", "--verify", "--deep", "--strict", str(bundle)]
    yield [
        *("hdiutil", "create", "-volname", f"Causerie {version()}", "-srcfolder", str(folder)),
        *("-fs", "HFS+", "-format", "UDZO", "-ov", str(made)),
    ]
    if not identity:
        return
    yield [*sign, "--timestamp", str(made)]
    profile = environment.get("CAUSERIE_NOTARY_PROFILE", "")
    if profile:
        yield ["xcrun", "notarytool", "submit", "--keychain-profile", profile, "--wait", str(made)]
        yield ["xcrun", "stapler", "staple", str(made)]


def build(dist: Path) -> Path:
    """Raises CalledProcessError."""
    folder = ROOT / "build" / "packages" / "dmg"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(dist / BUNDLE, folder / BUNDLE, symlinks=True)
    (folder / "Applications").symlink_to("/Applications")
    if not os.environ.get("CAUSERIE_CODESIGN_IDENTITY"):
        print("signed ad hoc: CAUSERIE_CODESIGN_IDENTITY is not set")
    for words in commands(dist, folder, os.environ):
        subprocess.run(words, check=True)
    return image(dist)
