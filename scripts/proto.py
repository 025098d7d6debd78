"""Regenerate ``proto/*_pb2.py`` and their stubs, or check that they are up to date.

Run from the repository's root, so that every file name in the descriptor pool starts with
``proto/`` and is unique.  Only ``python -m grpc_tools.protoc`` of the pinned release is used: a
distribution's protoc writes code that another protobuf runtime refuses.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def generate(out: Path) -> None:
    sources = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "proto").glob("*.proto"))
    plugin = Path(sys.executable).parent / "protoc-gen-mypy"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            "-I.",
            f"--plugin=protoc-gen-mypy={plugin}",
            f"--python_out={out}",
            f"--mypy_out=quiet:{out}",
            *sources,
        ],
        cwd=ROOT,
        check=True,
    )


def drift() -> list[str]:
    """Names of generated files that differ from what their sources give now."""
    with tempfile.TemporaryDirectory() as fresh:
        generate(Path(fresh))
        made = {p.name: p.read_bytes() for p in (Path(fresh) / "proto").iterdir()}
    kept = {p.name: p.read_bytes() for p in (ROOT / "proto").glob("*_pb2.py*")}
    return sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))


def main() -> int:
    if "--check" not in sys.argv[1:]:
        generate(ROOT)
        return 0
    stale = drift()
    if stale:
        print(f"out of date: {', '.join(stale)}; run `make proto`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
