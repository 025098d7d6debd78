"""Write ``requirements/*.txt`` from ``pyproject.toml``: every package, exact and with its hashes.

``runtime.txt`` is what the program needs and what builds its own metadata; ``dev.txt`` is the same
and the tools.  One file serves every platform and Python version (``--universal``), and none names
a registry, so that whoever installs uses the one they have.  See docs/decisions/0007-locks.md.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

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


def main() -> int:
    more = tuple(sys.argv[1:])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        backend = Path(place) / "build-system.txt"
        backend.write_text("\n".join(project["build-system"]["requires"]), encoding="utf-8")
        sources = ("pyproject.toml", str(backend))
        runtime = ROOT / "requirements" / "runtime.txt"
        compile_lock(sources, runtime, "--no-annotate", *more)
        development = ROOT / "requirements" / "dev.txt"
        same = ("-c", "requirements/runtime.txt", "--extra", "dev", "--no-annotate")
        compile_lock(sources, development, *same, *more)
    return 0


if __name__ == "__main__":
    sys.exit(main())
