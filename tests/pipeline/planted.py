"""A bug planted in a module of ours, as if somebody had slipped: its source with one change."""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import pytest


@dataclass(frozen=True)
class Bug:
    """``code`` of the module reads ``wrong`` instead, where it first stands."""

    module: ModuleType
    code: str
    wrong: str


def each_of(bugs: Sequence[Bug]) -> pytest.MarkDecorator:
    """The test's ``bug``, by its module and what is changed."""
    names = [f"{bug.module.__name__.rpartition('.')[2]}: {bug.code}" for bug in bugs]
    return pytest.mark.parametrize("bug", bugs, ids=names)


def plant(patch: pytest.MonkeyPatch, bug: Bug) -> None:
    """Wherever functions and classes of its module are used, those with the bug are instead."""
    module = bug.module
    source = inspect.getsource(module)
    assert bug.code in source
    broken = ModuleType(module.__name__)
    with pytest.MonkeyPatch.context() as loading:
        loading.setitem(sys.modules, broken.__name__, broken)
        slipped = source.replace(bug.code, bug.wrong, 1)
        exec(compile(slipped, broken.__name__, "exec"), vars(broken))  # noqa: S102 - our own source
    ours = "pipeline.", "tests.pipeline."
    for user in [one for name, one in sys.modules.items() if name.startswith(ours)]:
        for name, value in vars(user).copy().items():
            is_own = inspect.isfunction(value) or inspect.isclass(value)
            if is_own and value.__module__ == module.__name__ and hasattr(broken, value.__name__):
                patch.setattr(user, name, getattr(broken, value.__name__))
