"""Every static check in one go: all of them run, and each says how it went.

One that fails does not hide the next.  What ran is written to ``build/check.json``, by which
``.ci/run`` sees that none was left out.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "check.json"

CHECKS: dict[str, Sequence[str]] = {
    "lint": ("ruff", "check", "--quiet", "."),
    "format": ("ruff", "format", "--check", "--quiet", "."),
    "types": ("mypy", "--no-error-summary"),
    "import contracts": ("lint-imports",),
    "generated protocol code": ("python", "scripts/proto.py", "--check"),
    "house rules": ("pytest", "-q", "--no-header", "-p", "no:cacheprovider", "tests/repository"),
}


def run_all(checks: Mapping[str, Sequence[str]], root: Path) -> dict[str, int]:
    """Exit code of each check, by name; output is shown only of those that failed."""
    codes: dict[str, int] = {}
    for name, command in checks.items():
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=root,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        codes[name] = done.returncode
        verdict = "FAILED" if done.returncode else "ok"
        print(f"{verdict:>6}  {name}  ({time.monotonic() - started:.1f} s)", flush=True)
        if done.returncode:
            print(done.stdout, flush=True)
    return codes


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
