"""The locks: exact, hashed, without a registry's name, and what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("runtime", "dev")


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
    if lock == "dev":
        names += settings["project"]["optional-dependencies"]["dev"]
    return [Requirement(name) for name in names]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_with_hashes_and_without_an_address(lock: str) -> None:
    assert len(entries(lock)) > 20
    for entry in entries(lock):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
        assert "://" not in entry
        assert " @ " not in entry
    assert not any(entry.startswith("-") for entry in entries(lock))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_the_project_asks_for(lock: str) -> None:
    """Else somebody changed pyproject.toml and forgot `make lock`."""
    found = pins(lock)
    for requirement in wanted(lock):
        name = canonicalize_name(requirement.name)
        assert name in found, f"{name} is not in requirements/{lock}.txt: run `make lock`"
        assert requirement.specifier.contains(found[name]), f"{requirement}: run `make lock`"


def test_tools_are_added_to_the_runtime_and_change_nothing_of_it() -> None:
    runtime, development = pins("runtime"), pins("dev")
    assert runtime.items() <= development.items()
    assert {"pytest", "ruff", "mypy"} <= development.keys()
    assert not {"pytest", "ruff", "mypy"} & runtime.keys()


@pytest.mark.parametrize("lock", LOCKS)
def test_qt_stays_where_it_works(lock: str) -> None:
    """6.12.0 aborts on Python 3.11; docs/decisions/0005-pyside6-pin.md."""
    assert re.fullmatch(r"6\.11\.\d+", pins(lock)["pyside6-essentials"])
    requirement = next(r for r in wanted(lock) if r.name == "PySide6-Essentials")
    assert not requirement.specifier.contains("6.12.0")


@pytest.mark.parametrize("lock", LOCKS)
def test_what_must_not_be_there_is_not(lock: str) -> None:
    """proto-plus brings a package named proto; the whole PySide6 is three times as large."""
    assert not {"proto-plus", "pyside6", "pyside6-addons", "pyspark", "libp2p"} & pins(lock).keys()


def test_generated_code_and_its_runtime_belong_together() -> None:
    assert re.fullmatch(r"7\.\d+\.\d+", pins("runtime")["protobuf"])
    exact = {str(Requirement(name).specifier) for name in ("grpcio-tools==1.85.1",)}
    declared = [r for r in wanted("dev") if r.name == "grpcio-tools"]
    assert {str(r.specifier) for r in declared} == exact


def test_the_pipeline_is_an_extra_that_the_desktop_does_not_get() -> None:
    extras = project()["project"]["optional-dependencies"]
    assert any(Requirement(name).name == "pyspark" for name in extras["pipeline"])
