"""What docs/conformance.md names exists, and each requirement says how a person reaches it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
TITLE = "requirement"
NOT_BUILT = "not built"


class Row(NamedTuple):
    requirement: str
    level: str
    where: str
    test: str
    reachable: str

    @property
    def modules(self) -> list[str]:
        return re.findall(r"`([\w/]+\.py)`", self.where)

    @property
    def tests(self) -> list[tuple[str, str]]:
        return re.findall(r"`([\w/]+\.py)::(\w+)`", self.test)


def rows() -> Iterator[Row]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == len(Row._fields) and set(cells[0]) != {"-"}:
            row = Row(*cells)
            if row.requirement != TITLE:
                yield row


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def test_there_is_a_row_for_each_level_of_requirement() -> None:
    levels = {row.level for row in rows()}
    assert {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "RECOMMENDED"} <= levels
    assert len(list(rows())) > 100


def test_modules_and_tests_exist() -> None:
    gone = [
        module
        for row in rows()
        for module in row.modules
        if not (ROOT / "engine" / module).exists()
    ]
    gone += [
        f"{path}::{name}"
        for row in rows()
        for path, name in row.tests
        if not (ROOT / "tests" / path).exists() or name not in functions_of(ROOT / "tests" / path)
    ]
    assert gone == []


def test_each_requirement_has_a_module_and_a_test_and_a_way_to_it_or_is_not_built() -> None:
    poor = [
        row.requirement
        for row in rows()
        if not row.reachable
        or not (row.reachable.startswith(NOT_BUILT) or (row.modules and row.tests))
    ]
    assert poor == []


def test_nothing_but_tests_is_named_as_a_test() -> None:
    """A name without its module, or with a slip in it, would not be looked for."""
    odd = [
        span
        for row in rows()
        for span in re.findall(r"`([^`]+)`", row.test)
        if not re.fullmatch(r"[\w/]+/test_\w+\.py::test_\w+", span)
    ]
    assert odd == []
