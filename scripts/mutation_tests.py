"""A pytest plugin, the workshop of scripts/mutations.py: runs tests against mutants.

``--record-calls`` notes for each test how long it takes and which functions of the core it calls.
``--try-mutants`` takes those notes and collects the tests once; then, for each mutant, a forked
process puts the changed function in place of the original and runs the tests that call it, quickest
first, until one fails.  What is run while modules and tests are imported needs more:
``--import-mutant`` loads the changed module before all others, and is for one mutant.
"""

import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

import pytest

from scripts.mutants import Mutant, compiled, mutants_of

CORE = "engine/core/"
COLLECTING = "collecting"
"""In place of a test's name: what is called while tests are imported."""
MEMORY = 4 << 30
SLOWER = 5
"""A test that takes this many times as long with a mutant, and a little more, has no end."""
LITTLE_MORE_S = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-calls", type=Path)
    parser.addoption("--try-mutants", nargs=3, type=Path, metavar=("CALLS", "MUTANTS", "VERDICTS"))
    parser.addoption("--import-mutant", nargs=3, metavar=("CALLS", "MODULE", "NAME"))


def pytest_configure(config: pytest.Config) -> None:
    if (path := config.getoption("--record-calls")) is not None:
        config.pluginmanager.register(_Recorder(path))
    if (paths := config.getoption("--try-mutants")) is not None:
        config.pluginmanager.register(_Workshop(*paths))
    if (words := config.getoption("--import-mutant")) is not None:
        calls, module, name = words
        config.pluginmanager.register(_QuickestFirst(Calls.read(Path(calls))))
        import_mutant(module, name)


class Calls(dict[str, tuple[float, list[str]]]):
    """By test: the processor time that it took, and what it called."""

    @classmethod
    def read(cls, path: Path) -> "Calls":
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def may_notice(self, test: str, function: str) -> bool:
        """Whether it calls the function, or is not known."""
        return test not in self or function in self[test][1]

    def seconds(self, test: str) -> float:
        return self[test][0] if test in self else 0.0


def import_mutant(path: str, name: str) -> None:
    """Import the mutant in place of its module."""
    source = Path(path).read_text(encoding="utf-8")
    mutant = next(one for one in mutants_of(path, source) if one.name == name)
    package, _, own_name = dotted(path).rpartition(".")
    module = ModuleType(f"{package}.{own_name}")
    module.__file__, module.__package__ = path, package
    sys.modules[module.__name__] = module
    setattr(importlib.import_module(package), own_name, module)
    exec(compiled(mutant, source, path), module.__dict__)  # noqa: S102 -- our own, changed


def put_in_place(mutant: Mutant) -> bool:
    """Change the function where it is; False if that cannot be done."""
    source = Path(mutant.module).read_text(encoding="utf-8")
    before = _functions(compile(source, mutant.module, "exec"), mutant.function)
    after = _functions(compiled(mutant, source, mutant.module), mutant.function)
    changes = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    gc.unfreeze()  # What is frozen would not be found.
    found = [
        (function, new)
        for function in gc.get_objects()
        if isinstance(function, FunctionType) and function.__module__ == dotted(mutant.module)
        for old, new in changes
        if function.__code__ == old
    ]
    for function, new in found:
        if len(function.__code__.co_freevars) != len(new.co_freevars):
            return False
        function.__code__ = new
    return bool(found)


def dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


class _Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = Calls()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        with self._noting(COLLECTING):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._noting(item.nodeid):
            return (yield)

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        called = set[CodeType]()

        def note(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                called.add(frame.f_code)

        started = time.process_time()
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(None)
            names = {_called(code) for code in called if f"/{CORE}" in code.co_filename}
            self._found[what] = time.process_time() - started, sorted(names)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._found), encoding="utf-8")


class _QuickestFirst:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._calls.seconds(item.nodeid))


class _Workshop:
    def __init__(self, calls: Path, mutants: Path, verdicts: Path) -> None:
        self._calls = Calls.read(calls)
        self._mutants = [Mutant(*words) for words in json.loads(mutants.read_text("utf-8"))]
        self._verdicts = verdicts

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.collect()
        gc.freeze()
        for mutant in self._mutants:
            verdict = self._try(mutant, session.items)
            with self._verdicts.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*mutant, verdict]) + "\n")
        return True

    def _try(self, mutant: Mutant, items: list[pytest.Item]) -> str | None:
        """What noticed the mutant, "" if nothing did; None if it cannot be put in place."""
        function = f"{mutant.module} {mutant.function}"
        if function in self._calls.get(COLLECTING, (0.0, []))[1]:
            return None  # Tests have used what it makes already.
        chosen = [item for item in items if self._calls.may_notice(item.nodeid, function)]
        chosen.sort(key=lambda item: self._calls.seconds(item.nodeid))
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            gc.unfreeze()
            os.write(writing, json.dumps(self._first_failure(mutant, chosen)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as file:
            said = file.read()
        os.waitpid(child, 0)
        if not said:
            return "no end"
        verdict = json.loads(said)
        return None if verdict is None else str(verdict)

    def _first_failure(self, mutant: Mutant, items: list[pytest.Item]) -> str | None:
        """The end of a fork: it is over at the first test that fails, or that has no end."""
        if not put_in_place(mutant):
            return None
        for number, item in enumerate(items):
            following = items[number + 1] if number + 1 < len(items) else None
            limit_s = LITTLE_MORE_S + SLOWER * self._calls.seconds(item.nodeid)
            signal.setitimer(signal.ITIMER_PROF, limit_s)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if item.session.testsfailed:
                return item.nodeid
        return ""


def _functions(code: CodeType, name: str) -> list[CodeType]:
    """Those of this name: a property and its setter share theirs."""
    return [inner for inner in _within(code) if inner.co_qualname == name]


def _within(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _within(constant)


def _called(code: CodeType) -> str:
    """Path and name of a function; what is defined within one counts as that one."""
    path = CORE + code.co_filename.rpartition(f"/{CORE}")[2]
    return f"{path} {code.co_qualname.split('.<locals>')[0]}"
