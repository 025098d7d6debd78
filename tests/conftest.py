"""In which order tests run, and which examples Hypothesis draws.

The simulator's trials come first: they are the longest by far, and a gate whose processes share the
rest out while one of them is at it ends earlier than one that waits for it in the end.

Of Hypothesis there are two profiles, for the gate and for the search for what is new.

``gate`` is in force unless another is asked for: the same examples on every machine and in every
choice of tests.  ``explore`` (``make test-long``) draws new ones; what it finds is pinned as an
``@example``.  In neither has an example a deadline, because a busy machine is not a defect: how
long something takes is measured in benchmarks/, on purpose and with the load beside it.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

BOTH = settings(
    settings.get_profile("default"),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("gate", BOTH, derandomize=True, database=None)
settings.register_profile("explore", BOTH, derandomize=False)
settings.load_profile("gate")

LONGEST = Path(__file__).parent / "simulation"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.is_relative_to(LONGEST))


_constants_of_imported_modules = providers._get_local_constants


def _constants() -> Constants:
    """One example in twenty has constants from our modules, of those that happen to be imported.

    That is a matter of which tests were chosen and where the tree lies, and has no setting.
    """
    chosen = settings.default
    assert chosen is not None
    return Constants() if chosen.derandomize else _constants_of_imported_modules()


providers._get_local_constants = _constants
