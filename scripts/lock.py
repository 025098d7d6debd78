"""Write ``requirements/*.txt`` from ``pyproject.toml``: every package, exact and with its hashes.

``runtime.txt`` is what the program needs and what builds its own metadata; ``pipeline.txt`` is the
same with what the pipeline needs; ``dev.txt`` is that and the tools.  ``package.txt`` is what
builds a package on any system: the runtime and PyInstaller, as ``dev.txt`` has it.  One file serves
every platform and Python version (``--universal``), and none names a registry, so that whoever
installs uses the one they have.  See docs/decisions/0007-locks.md.  The Python and Go peers of
tests/interop, and the object store of tests/pipeline, have locks of their own, made the same way.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from scripts import interop_go, interop_python, object_store, source_packages

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = (
    "--quiet",
    "--universal",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-header",
    "--only-binary=:all:",
    "--no-config",
)


def compile_lock(sources: tuple[str, ...], output: Path, *more: str) -> None:
    """Existing pins in ``output`` are kept unless ``--upgrade`` is among ``more``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    subprocess.run(
        [
            Path(sys.executable).parent / "uv",
            "pip",
            "compile",
            *OPTIONS,
            *more,
            *sources,
            "-o",
            str(output),
        ],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _compile_python_peer(*more: str) -> None:
    """What scripts/interop_python.py installs; a word on each oddity is in the sources."""
    place = interop_python.LOCKED
    same = ("--no-annotate", "--python-version", "3.11", *more)
    compile_lock((str(place / "build.in"),), place / "build.txt", *same)
    built = [f"--no-binary={name}" for name in interop_python.NOT_AS_WHEELS.split(",")]
    override = ("--override", str(place / "overrides.in"))
    source = (str(place / "requirements.in"),)
    compile_lock(source, place / "requirements.txt", *same, *built, *override)


def _compile_go(*more: str) -> None:
    """The Go and the C compiler that scripts/interop_go.py installs where there is none."""
    for name in (interop_go.TOOLCHAIN_LOCK, interop_go.COMPILER_LOCK):
        lock = interop_go.SOURCE / name
        compile_lock((str(lock.with_suffix(".in")),), lock, "--no-annotate", *more)


def _compile_object_store(*more: str) -> None:
    """The S3 that scripts/object_store.py installs."""
    source = (str(object_store.LOCK.with_suffix(".in")),)
    compile_lock(source, object_store.LOCK, "--no-annotate", "--python-version", "3.11", *more)


def main() -> int:
    more = tuple(sys.argv[1:])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        backend = Path(place) / "build-system.txt"
        backend.write_text("\n".join(project["build-system"]["requires"]), encoding="utf-8")
        builders = Path(place) / "builders.txt"
        builders.write_text("\n".join(source_packages.BUILT_BY), encoding="utf-8")
        locked = ROOT / "requirements"
        sources = ("pyproject.toml", str(backend))
        compile_lock(sources, locked / "runtime.txt", "--no-annotate", *more)
        more_sources = (*sources, str(builders))
        same = ["--no-annotate", *(f"--no-binary={name}" for name in source_packages.NAMES)]
        same += ["-c", "requirements/runtime.txt", "--extra", "pipeline"]
        compile_lock(more_sources, locked / "pipeline.txt", *same, *more)
        same += ["-c", "requirements/pipeline.txt", "--extra", "dev"]
        compile_lock(more_sources, locked / "dev.txt", *same, *more)
        packer = Path(place) / "packer.txt"
        tools = project["project"]["optional-dependencies"]["dev"]
        packer.write_text(
            "\n".join(tool for tool in tools if tool.startswith("pyinstaller")), encoding="utf-8"
        )
        same = ["--no-annotate", "-c", "requirements/dev.txt"]
        compile_lock((*sources, str(packer)), locked / "package.txt", *same, *more)
    _compile_python_peer(*more)
    _compile_go(*more)
    _compile_object_store(*more)
    return 0


if __name__ == "__main__":
    sys.exit(main())
