"""Every static check in one go: all of them run, and each says how it went.

As many run beside each other as there are processors, the longest first.  One that fails does not
hide the next.  What ran is written to ``build/check.json``, by which ``.ci/run`` sees that none was
left out.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "check.json"

CHECKS: dict[str, Sequence[str]] = {
    "types": ("mypy", "--no-error-summary"),
    "house rules": ("pytest", "-q", "--no-header", "-p", "no:cacheprovider", "tests/repository"),
    "lint": ("ruff", "check", "--quiet", "."),
    "format": ("ruff", "format", "--check", "--quiet", "."),
    "import contracts": ("lint-imports",),
    "generated protocol code": ("python", "scripts/proto.py", "--check"),
    "workflows": ("python", "-m", "scripts.workflows"),
}


def run(name: str, command: Sequence[str], root: Path) -> int:
    """Its exit code; its output is shown only if it failed."""
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=root,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    verdict = "FAILED" if done.returncode else "ok"
    said = f"{verdict:>6}  {name}  ({time.monotonic() - started:.1f} s)\n"
    sys.stdout.write(said + (f"{done.stdout}\n" if done.returncode else ""))
    sys.stdout.flush()
    return done.returncode


def run_all(checks: Mapping[str, Sequence[str]], root: Path) -> dict[str, int]:
    """Exit code of each check, by name."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        codes = pool.map(lambda name: run(name, checks[name], root), checks)
        return dict(zip(checks, codes, strict=True))


def main() -> int:
    codes = run_all(CHECKS, ROOT)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(codes, indent=2) + "\n", encoding="utf-8")
    failed = [name for name, code in codes.items() if code]
    summary = f"check: {len(codes)} ran, {len(failed)} failed"
    print(summary + (f" ({', '.join(failed)})" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
