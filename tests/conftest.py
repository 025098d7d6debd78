"""Which examples Hypothesis draws: two profiles, for the gate and for the search for what is new.

``gate`` is in force unless another is asked for: the same examples on every machine and in every
choice of tests.  ``explore`` (``make test-long``) draws new ones; what it finds is pinned as an
``@example``.  In neither has an example a deadline, because a busy machine is not a defect: how
long something takes is measured in benchmarks/, on purpose and with the load beside it.
"""

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

_constants_of_imported_modules = providers._get_local_constants


def _constants() -> Constants:
    """One example in twenty has constants from our modules, of those that happen to be imported.

    That is a matter of which tests were chosen and where the tree lies, and has no setting.
    """
    chosen = settings.default
    assert chosen is not None
    return Constants() if chosen.derandomize else _constants_of_imported_modules()


providers._get_local_constants = _constants
