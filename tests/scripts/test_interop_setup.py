"""Fetching other implementations: whole or not there, and one line where they cannot be had."""

import shutil
import sys
from pathlib import Path

import pytest

from scripts import interop, testing


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, whose npm is what the test says."""
    locked = tmp_path / "locked"
    locked.mkdir()
    for name in interop.FILES:
        shutil.copy(interop.LOCKED / name, locked / name)
    monkeypatch.setattr(interop, "LOCKED", locked)
    monkeypatch.setattr(interop, "PLACE", tmp_path / "build" / "interop")
    return tmp_path


def npm_is(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(interop, "npm", lambda _node: [sys.executable, "-c", code])


def test_what_is_there_is_left_alone_until_the_lock_changes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm_is(monkeypatch, "import pathlib; pathlib.Path('node_modules').mkdir()")
    interop.ensure()
    assert interop.modules().is_dir()
    npm_is(monkeypatch, "raise SystemExit(1)")
    interop.ensure()
    lock = place / "locked" / "package-lock.json"
    lock.write_text(lock.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert not interop.is_ready()


def test_when_packages_cannot_be_had_it_is_not_ready_and_says_what_does_not_run(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm_is(monkeypatch, "raise SystemExit(1)")
    assert testing.missing_peers() == (
        "not run: tests/interop: npm could not install the packages; see above"
    )
    assert not interop.is_ready()
    assert place.exists()


def test_the_environment_brings_node_and_npm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert interop.npm(interop.node())[0] == str(interop.node())
    monkeypatch.setattr(interop, "NODE_PACKAGE", "no_such_package")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(interop.InteropUnavailable, match="no Node"):
        interop.node()


def test_the_lock_names_no_registry_and_pins_hashes() -> None:
    lock = (interop.LOCKED / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert lock.count('"integrity"') > 30
