"""Check the forge's workflows with actionlint, and by rules of our own.

actionlint is a Go program, pinned with its modules in ``scripts/actionlint`` and built once into
``build/actionlint``.  Where there is no Go it does not run, which is said, and with ``CI`` set that
is a failure.  Our own rules: every action is pinned by a commit, with its version beside it; a job
has no more rights than it names; nothing that others chose gets into a shell.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = Path(".github") / "workflows"
SOURCE = ROOT / "scripts" / "actionlint"
PLACE = ROOT / "build" / "actionlint"
PACKAGE = "github.com/rhysd/actionlint/cmd/actionlint"
BUILD_TIMEOUT_S = 300
_USES = re.compile(r"^\s*(?:- )?uses:\s*(\S+)(.*)$", re.MULTILINE)
_PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
_RUN = re.compile(r"^( *)(?:- )?run:(.*(?:\n\1  +.*|\n(?= *\n))*)", re.MULTILINE)


class LinterMissing(Exception):  # noqa: N818 -- says how it is; it is no error of the program
    """actionlint cannot be built here; the text says why, on one line."""


def linter() -> Path:
    """actionlint, built from what go.sum pins unless it is there already."""
    sources = b"\0".join((SOURCE / name).read_bytes() for name in ("go.mod", "go.sum"))
    program = PLACE / f"actionlint-{hashlib.sha256(sources).hexdigest()[:16]}"
    if program.exists():
        return program
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise LinterMissing("there is no Go to build actionlint with")
    PLACE.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
    unfinished = program.with_suffix(f".{os.getpid()}")
    try:
        done = subprocess.run(
            [go, "build", "-trimpath", "-buildvcs=false", "-o", unfinished, PACKAGE],
            cwd=SOURCE,
            env={**environment, "GOWORK": "off", "CGO_ENABLED": "0"},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as slow:
        raise LinterMissing(f"actionlint was not built within {BUILD_TIMEOUT_S} s") from slow
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ["go build failed"]
        raise LinterMissing(f"actionlint cannot be built: {lines[-1]}")
    unfinished.replace(program)
    return program


def read(root: Path) -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted((root / WORKFLOWS).glob("*.yml"))
    }


def complaints(texts: Mapping[str, str]) -> Iterator[str]:
    """What breaks our own rules."""
    for name, text in texts.items():
        for complaint in (*_about_actions(text), *_about_rights(text), *_about_shells(text)):
            yield f"{name}: {complaint}"


def _about_actions(text: str) -> Iterator[str]:
    for action, rest in _USES.findall(text):
        if action.startswith("./"):
            continue
        if not _PINNED.fullmatch(action):
            yield f"{action} is not pinned by a commit"
        elif not re.match(r" # v\d+\.\d+\.\d+$", rest):
            yield f"{action} does not say which version it is"


def _about_rights(text: str) -> Iterator[str]:
    if not re.search(r"^permissions:", text, re.MULTILINE):
        yield "says nothing of its rights"
    if re.search(r"^permissions:\s*(write-all|read-all)", text, re.MULTILINE):
        yield "asks for all rights"
    if re.search(r"pull_request_target|workflow_run", text):
        yield "runs code of others with rights of ours"
    if text.count("uses: actions/checkout@") != text.count("persist-credentials: false"):
        yield "a checkout leaves its token behind"


def _about_shells(text: str) -> Iterator[str]:
    for _, script in _RUN.findall(text):
        if "${{" in script:
            yield f"a value gets into a shell: {script.strip().splitlines()[0][:60]}"


def main() -> int:
    found = list(complaints(read(ROOT)))
    for line in found:
        print(line)
    try:
        program = linter()
    except LinterMissing as reason:
        print(f"not run: {reason}")
        return 1 if found or os.environ.get("CI") else 0
    files = [str(path) for path in sorted((ROOT / WORKFLOWS).glob("*.yml"))]
    # Shell scripts and Python in workflows are a line or two; other linters may not be here.
    options = ("-no-color", "-shellcheck=", "-pyflakes=")
    return subprocess.run([program, *options, *files], cwd=ROOT, check=False).returncode or bool(
        found
    )


if __name__ == "__main__":
    sys.exit(main())
