"""Make the Windows installer of the program folder, with Inno Setup: on Windows, by the forge.

It is signed where a certificate is there: ``CAUSERIE_SIGNTOOL`` is the command line that signs one
file, which it names ``$f``, as Inno Setup has it.  Without it the installer is unsigned, and says
so here.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath

from scripts.release import ROOT, version

SCRIPT = ROOT / "packaging" / "windows" / "causerie.iss"
USUAL_PLACE = PureWindowsPath(r"C:\Program Files (x86)\Inno Setup 6\ISCC.exe")
INSTALLER = "causerie-{version}-windows-x64.exe"


class NoInnoSetup(Exception):  # noqa: N818 -- says how it is
    """Inno Setup is not here."""


def compiler() -> str:
    found = shutil.which("iscc") or shutil.which(str(USUAL_PLACE))
    if found is None:
        raise NoInnoSetup("Inno Setup 6 (ISCC.exe) is not here")
    return found


def command(iscc: str, environment: Mapping[str, str]) -> list[str]:
    """What makes the installer of this version."""
    words = [iscc, "/Qp", f"/DVersion={version()}"]
    signer = environment.get("CAUSERIE_SIGNTOOL", "")
    if signer:
        words += ["/DSigned", f"/Scauserie={signer}"]
    return [*words, str(SCRIPT)]


def build(dist: Path) -> Path:
    """Raises NoInnoSetup, CalledProcessError."""
    words = command(compiler(), os.environ)
    if "/DSigned" not in words:
        print("not signed: CAUSERIE_SIGNTOOL is not set")
    subprocess.run(words, cwd=ROOT, check=True)
    return dist / INSTALLER.format(version=version())
