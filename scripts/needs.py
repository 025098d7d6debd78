"""What the operating system must bring, and how to get it.

A need is looked for by what it is, a soname that the loader finds or a program on the path, never
by a package's name: package names differ between releases, and a library that somebody built by
hand is as good as any.  What is missing is installed where that is allowed (root on Debian or
Ubuntu); elsewhere one line is printed that the reader can run, and nothing has been changed.

Only the standard library is used: this runs before there is a virtual environment.
"""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FONT_DIRECTORIES = (
    Path("/usr/share/fonts"),
    Path("/usr/local/share/fonts"),
    Path("~/.local/share/fonts").expanduser(),
    Path("~/.fonts").expanduser(),
)
DEBIAN_MARK = Path("/etc/debian_version")


LIBEXEC = ("/usr/libexec", "/usr/libexec/at-spi2-core", "/usr/lib/at-spi2-core")
"""Programs that other programs start are not on the path."""


class Kind(StrEnum):
    LIBRARY = "library"
    PROGRAM = "program"
    FONT = "font"
    MODULE = "module"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing, how it is recognised, and the Debian package that brings it."""

    kind: Kind
    name: str
    package: str


PYTHON = (Need(Kind.MODULE, "ensurepip", "python3-venv"),)

OFFSCREEN = (
    Need(Kind.LIBRARY, "libglib-2.0.so.0", "libglib2.0-0"),
    Need(Kind.LIBRARY, "libgthread-2.0.so.0", "libglib2.0-0"),
    Need(Kind.LIBRARY, "libEGL.so.1", "libegl1"),
    Need(Kind.LIBRARY, "libGL.so.1", "libgl1"),
    Need(Kind.LIBRARY, "libX11.so.6", "libx11-6"),
    Need(Kind.LIBRARY, "libxkbcommon.so.0", "libxkbcommon0"),
    Need(Kind.LIBRARY, "libdbus-1.so.3", "libdbus-1-3"),
    Need(Kind.LIBRARY, "libfontconfig.so.1", "libfontconfig1"),
    Need(Kind.LIBRARY, "libfreetype.so.6", "libfreetype6"),
    Need(Kind.LIBRARY, "libgssapi_krb5.so.2", "libgssapi-krb5-2"),
    Need(Kind.FONT, "*.[to]t[fc]", "fonts-dejavu-core"),
    Need(Kind.FONT, "*[Ee]moji*.ttf", "fonts-noto-color-emoji"),
)

WINDOW = (
    *OFFSCREEN,
    Need(Kind.LIBRARY, "libwayland-cursor.so.0", "libwayland-cursor0"),
    Need(Kind.LIBRARY, "libX11-xcb.so.1", "libx11-xcb1"),
    Need(Kind.LIBRARY, "libxcb-cursor.so.0", "libxcb-cursor0"),
    Need(Kind.LIBRARY, "libxcb-icccm.so.4", "libxcb-icccm4"),
    Need(Kind.LIBRARY, "libxcb-image.so.0", "libxcb-image0"),
    Need(Kind.LIBRARY, "libxcb-keysyms.so.1", "libxcb-keysyms1"),
    Need(Kind.LIBRARY, "libxcb-randr.so.0", "libxcb-randr0"),
    Need(Kind.LIBRARY, "libxcb-render-util.so.0", "libxcb-render-util0"),
    Need(Kind.LIBRARY, "libxcb-shape.so.0", "libxcb-shape0"),
    Need(Kind.LIBRARY, "libxcb-sync.so.1", "libxcb-sync1"),
    Need(Kind.LIBRARY, "libxcb-xfixes.so.0", "libxcb-xfixes0"),
    Need(Kind.LIBRARY, "libxcb-xkb.so.1", "libxcb-xkb1"),
    Need(Kind.LIBRARY, "libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
)

DISPLAY_SERVER = (
    Need(Kind.PROGRAM, "Xvfb", "xvfb"),
    Need(Kind.PROGRAM, "xvfb-run", "xvfb"),
    Need(Kind.PROGRAM, "xauth", "xauth"),
)


SESSION_BUS = (Need(Kind.PROGRAM, "dbus-daemon", "dbus-daemon"),)
"""On which tests put a notification server and a tray of their own."""

SCREEN_READER = (
    Need(Kind.PROGRAM, "at-spi-bus-launcher", "at-spi2-core"),
    Need(Kind.PROGRAM, "xdotool", "xdotool"),
)
"""For a test that walks through the window by keys and reads what a screen reader reads."""


def shared_python() -> tuple[Need, ...]:
    """The interpreter's own library, which PyInstaller packs; Debian's python3 does without it."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return ()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    soname = str(sysconfig.get_config_var("INSTSONAME"))
    return (Need(Kind.LIBRARY, soname, f"libpython{version}"),)


PACKAGER = (
    *shared_python(),
    Need(Kind.PROGRAM, "objdump", "binutils"),
    Need(Kind.PROGRAM, "strip", "binutils"),
    Need(Kind.PROGRAM, "patchelf", "patchelf"),
    Need(Kind.PROGRAM, "dpkg-deb", "dpkg"),
    Need(Kind.PROGRAM, "rpmbuild", "rpm"),
    Need(Kind.PROGRAM, "appstreamcli", "appstream"),
    Need(Kind.PROGRAM, "desktop-file-validate", "desktop-file-utils"),
)


LEVELS: Mapping[str, tuple[Need, ...]] = {
    "tools": PYTHON,
    "run": (*PYTHON, *WINDOW),
    "pipeline": PYTHON,
    "test": (
        *PYTHON,
        *WINDOW,
        *DISPLAY_SERVER,
        *SESSION_BUS,
        *SCREEN_READER,
    ),
    "package": (
        *PYTHON,
        *WINDOW,
        *DISPLAY_SERVER,
        *SESSION_BUS,
        *SCREEN_READER,
        *PACKAGER,
    ),
}


class NeedsMissing(Exception):  # noqa: N818 -- says what happened; it is no error of the program
    """Something is missing that may not be installed here; ``line`` is what to run."""

    def __init__(self, needs: Sequence[Need], line: str) -> None:
        super().__init__(line)
        self.needs = needs
        self.line = line


def which(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path=os.pathsep.join(LIBEXEC))


def is_met(need: Need) -> bool:
    match need.kind:
        case Kind.LIBRARY:
            try:
                ctypes.CDLL(need.name)
            except OSError:
                return False
            return True
        case Kind.PROGRAM:
            return which(need.name) is not None
        case Kind.MODULE:
            return importlib.util.find_spec(need.name) is not None
        case Kind.FONT:
            return any(
                next(place.rglob(need.name), None) for place in FONT_DIRECTORIES if place.is_dir()
            )


def missing(needs: Iterable[Need]) -> tuple[Need, ...]:
    return tuple(need for need in needs if not is_met(need))


def packages_of(needs: Iterable[Need]) -> tuple[str, ...]:
    return tuple(sorted({need.package for need in needs}))


def may_install() -> bool:
    """Root on a Debian: elsewhere a password or another package manager is in the way."""
    return os.geteuid() == 0 and DEBIAN_MARK.exists() and shutil.which("apt-get") is not None


def line_to_run(needs: Sequence[Need]) -> str:
    """One line for the shell where we know the package manager, else the names to look for."""
    if shutil.which("apt-get"):
        packages = " ".join(packages_of(needs))
        return f"sudo apt-get update && sudo apt-get install --no-install-recommends -y {packages}"
    if shutil.which("dnf"):
        return "sudo dnf install -y " + " ".join(sorted({_for_dnf(need) for need in needs}))
    names = " ".join(sorted({need.name for need in needs}))
    return f"install with your package manager whatever holds: {names}"


def _for_dnf(need: Need) -> str:
    match need.kind:
        case Kind.LIBRARY:
            return f"'{need.name}()(64bit)'"
        case Kind.PROGRAM:
            return f"/usr/bin/{need.name}"
        case Kind.FONT:
            return "google-noto-color-emoji-fonts dejavu-sans-fonts"
        case Kind.MODULE:
            return "python3"


def _install(needs: Sequence[Need]) -> None:
    packages = packages_of(needs)
    print(f"set-up: installing {len(packages)} system packages: {' '.join(packages)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    for command in (
        [*apt, "update"],
        [*apt, "install", "-y", "--no-install-recommends", *packages],
    ):
        # apt's own chatter goes to a pipe and is shown only when it failed.
        done = subprocess.run(  # noqa: PLW1510 -- the return code is looked at below
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            raise NeedsMissing(needs, line_to_run(needs))


def meet(needs: Iterable[Need]) -> None:
    """See that every need is met; where it may not install, it changes nothing: NeedsMissing."""
    if sys.platform != "linux":
        return
    lacking = missing(needs)
    if not lacking:
        return
    if not may_install():
        raise NeedsMissing(lacking, line_to_run(lacking))
    _install(lacking)
    importlib.invalidate_caches()
    still = missing(lacking)
    if still:
        raise NeedsMissing(still, line_to_run(still))


def main(arguments: Sequence[str]) -> int:
    """Print which Debian packages a level lacks here, one a line, and install nothing."""
    if len(arguments) != 1 or arguments[0] not in LEVELS:
        print(f"scripts.needs: one of {', '.join(sorted(LEVELS))}", file=sys.stderr)
        return 2
    for package in packages_of(missing(LEVELS[arguments[0]])):
        print(package)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
