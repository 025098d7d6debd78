"""Rules that no linter knows: what must not be in the tree, and what must stay as it is."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import proto

ROOT = Path(__file__).resolve().parents[2]
LONGEST_MODULE = 600
PACKAGES = ("chat_app", "ui", "engine", "assets", "benchmarks", "scripts")

# Spelt in parts, so that this file does not hold what it looks for.
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("py" + "pi", "org"),
            ("files", "python" + "hosted"),
            ("registry", "np" + "mjs"),
            ("registry", "yarn" + "pkg"),
            ("deb", "deb" + "ian", "org"),
            ("proxy", "go" + "lang", "org"),
        )
    )
)
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(" + "|".join(["ho" + "me", "Us" + "ers", "wo" + "rk"]) + ")/"
)


def tracked() -> list[Path]:
    """Files that belong to the project, also those not committed yet."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def texts() -> Iterator[tuple[Path, str]]:
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            yield path.relative_to(ROOT), data.decode("utf-8")


def modules(*folders: str) -> Iterator[tuple[Path, str]]:
    for path, text in texts():
        if path.suffix == ".py" and path.parts[0] in folders and "_pb2" not in path.name:
            yield path, text


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, text in texts()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_there_is_a_tree_to_look_at() -> None:
    names = {path.name for path in tracked()}
    assert {"Makefile", "pyproject.toml", "README.md", "sds.proto"} <= names


def test_no_file_names_a_package_registry() -> None:
    assert lines_with(REGISTRY_HOSTS) == []


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    assert lines_with(MACHINE_PATHS) == []


def test_our_own_protocol_package_is_the_one_that_is_imported() -> None:
    """A library of the same name exists; whichever comes first on the path would win."""
    assert proto.__file__ is not None
    assert Path(proto.__file__).parent == ROOT / "proto"


@pytest.mark.parametrize("folder", ["packaging", "tests", "scripts"])
def test_folders_that_must_not_be_packages_are_none(folder: str) -> None:
    """``packaging`` would hide the library of its name; tests are imported by their paths."""
    assert list((ROOT / folder).rglob("__init__.py")) == []


def test_every_module_opens_with_what_it_is() -> None:
    silent = [
        str(path)
        for path, text in modules(*PACKAGES, "packaging")
        if text.strip() and not ast.get_docstring(ast.parse(text))
    ]
    assert silent == []


def test_modules_are_short_enough_to_do_one_thing() -> None:
    long = {
        str(path): text.count("\n")
        for path, text in modules(*PACKAGES)
        if text.count("\n") > LONGEST_MODULE
    }
    assert long == {}


def test_no_module_is_named_after_nothing() -> None:
    vague = re.compile(r"(utils?|helpers?|misc|common|manager)\.py")
    assert [str(path) for path, _ in modules(*PACKAGES) if vague.fullmatch(path.name)] == []


def blind_sleeps(tree: ast.AST) -> Iterator[int]:
    """Lines that sleep for a while; to sleep inside a loop that looks at something is to wait."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.While):
            continue
        if isinstance(child, ast.Call) and child.args:
            first = child.args[0]
            is_yield = isinstance(first, ast.Constant) and first.value == 0
            if ast.unparse(child.func) in {"time.sleep", "asyncio.sleep"} and not is_yield:
                yield child.lineno
        yield from blind_sleeps(child)


def test_no_test_sleeps() -> None:
    """A test waits for what it tests, or it is slow on one machine and wrong on another."""
    assert [
        f"{path}:{line}"
        for path, text in modules("tests")
        if "sleep" in text
        for line in blind_sleeps(ast.parse(text))
    ] == []


def test_no_test_is_skipped() -> None:
    marks = re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b")
    assert [
        str(path)
        for path, text in modules("tests")
        if path.name != Path(__file__).name and marks.search(text)
    ] == []


PUBLIC_WITH_A_LINE: Final = {"_asdict", "_exit", "_fields", "_make", "_replace"}
"""Of named tuples and of ``os``: private names by their look only."""

READ_ALL_THE_SAME: Final = {
    # Hypothesis has no setting for where its constants come from.
    "tests/conftest.py": {"_get_local_constants"},
    # py-libp2p drops a peer that Waku does not consider at fault.
    "tests/interop/py_libp2p/waku_gossip.py": {"_check_equivocation"},
    # Another implementation of yamux, made from ours: it forgets streams sooner.
    "tests/network/waku/test_forgetful_muxer.py": {"_forget", "_queue", "_receive_stream_frame"},
    # Queues that only grow show nowhere but in memory.
    "tests/core/sds/test_sds_forgetting.py": {"_losses", "_namers", "_parts", "_turns"},
}


def private_reads(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What a module takes from inside of others: attributes, imports, and what it patches."""
    for node in ast.walk(tree):
        names: list[str] = []
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name):
                names = [name]
            case ast.ImportFrom():
                names = [alias.name for alias in node.names]
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[_, ast.Constant(value=str(name)), *_]
            ):
                names = [name]
            case _:
                pass
        for name in names:
            if re.match("_[^_]", name) and name not in PUBLIC_WITH_A_LINE:
                yield getattr(node, "lineno", 0), name


def test_tests_read_what_is_public() -> None:
    """A test of what is inside holds the code as it is, and fails when it becomes better."""
    assert [
        f"{path}:{line}: {name}"
        for path, text in modules("tests")
        for line, name in private_reads(ast.parse(text))
        if name not in READ_ALL_THE_SAME.get(path.as_posix(), set())
    ] == []


NONE_RETURNING_CALLS = """
from PySide6.QtCore import QObject
thing = QObject()
for _ in range(10_000):
    assert thing.setObjectName("x") is None
print("alive")
"""


def test_qt_calls_that_return_none_do_not_use_none_up() -> None:
    """PySide6 6.12.0 gave away a reference to None at each, and Python 3.11 aborted after 5 000."""
    done = subprocess.run(
        [sys.executable, "-c", NONE_RETURNING_CALLS],
        check=False,
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")
