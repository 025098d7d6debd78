"""Who runs which tests and when, which examples Hypothesis draws, and that no bug is only logged.

The directories with the longest files come first, and a worker that has done a file gets the next:
so none waits long for another in the end.  Those against other implementations are the last of
these, because the implementations may still be being set up.  What is about Spark is one worker's,
because to start a second Spark takes longer than most that is done with it.  Each worker imports
another part of the modules first: where nothing is compiled yet, as in a fresh clone, each compiles
its part only.  What modules and thousands of tests consist of is not looked through when garbage is
collected, nor while it is being made, nor is what the modules before have left, such as trees of
all sources.

Of Hypothesis there are two profiles, for the gate and for the search for what is new.

``gate`` is in force unless another is asked for: the same examples on every machine and in every
choice of tests.  ``explore`` (``make test-long``) draws new ones; what it finds is pinned as an
``@example``.  In neither has an example a deadline, because a busy machine is not a defect: how
long something takes is measured in benchmarks/, on purpose and with the load beside it.

Where the program survives a bug of its own, it counts it and logs the traceback, as of a runner
that ended and was begun again.  A test must not survive it: whatever else it asserts, it fails when
the program logged a traceback, unless it is marked ``logs_a_traceback``, and then when it did not.
"""

import gc
import importlib
import logging
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

BOTH = settings(
    settings.get_profile("default"),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("gate", BOTH, derandomize=True, database=None)
settings.register_profile("explore", BOTH, derandomize=False)
settings.load_profile("gate")

PROGRAM = ("chat_app", "engine", "pipeline", "ui")
HERE = Path(__file__).parent
SPARK = HERE / "pipeline"
LONGEST = (SPARK, HERE / "simulation", HERE / "processes", HERE / "runtime", HERE / "interop")


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    asked = [HERE.parent / argument.partition("::")[0] for argument in session.config.args]
    modules = sorted(module for place in asked for module in place.rglob("test_*.py"))
    first = int(worker["workerid"].removeprefix("gw"))
    for module in modules[first :: worker["workercount"]]:
        name = ".".join(module.relative_to(HERE.parent).with_suffix("").parts)
        with suppress(Exception):  # It is told when the module is collected.
            importlib.import_module(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    @cache
    def rank(module: Path) -> int:
        places = (at for at, place in enumerate(LONGEST) if module.is_relative_to(place))
        return next(places, len(LONGEST))

    items.sort(key=lambda item: rank(item.path))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # Some libraries name what is still there at the very end.


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist tells no types
    """In the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return str(SPARK) if (HERE.parent / path).is_relative_to(SPARK) else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Unless another way is asked for."""
    if config.getvalue("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return _ByFile(config, log)


class _Tracebacks(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.logged: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.logged.append(record)


_TRACEBACKS = _Tracebacks()


def pytest_configure() -> None:
    for name in PROGRAM:
        logging.getLogger(name).addHandler(_TRACEBACKS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    logged = [logging.Formatter().format(record) for record in _TRACEBACKS.logged]
    _TRACEBACKS.logged.clear()
    is_expected = item.get_closest_marker("logs_a_traceback") is not None
    if is_expected and not logged:
        pytest.fail("no traceback was logged")
    if logged and not is_expected:
        pytest.fail("a traceback was only logged:\n" + "\n".join(logged), pytrace=False)


_constants_of_imported_modules = providers._get_local_constants


def _constants() -> Constants:
    """One example in twenty has constants from our modules, of those that happen to be imported.

    That is a matter of which tests were chosen and where the tree lies, and has no setting.
    """
    chosen = settings.default
    assert chosen is not None
    return Constants() if chosen.derandomize else _constants_of_imported_modules()


providers._get_local_constants = _constants
