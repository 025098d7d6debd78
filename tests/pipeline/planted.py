"""A bug planted in a module of ours, as if somebody had slipped: its source with one change."""

import inspect
import sys
from types import ModuleType

import pytest


def plant(patch: pytest.MonkeyPatch, module: ModuleType, code: str, bug: str) -> None:
    """Wherever its functions and classes are used, those with the bug are used instead."""
    source = inspect.getsource(module)
    assert code in source
    broken = ModuleType(module.__name__)
    with pytest.MonkeyPatch.context() as loading:
        loading.setitem(sys.modules, broken.__name__, broken)
        exec(compile(source.replace(code, bug, 1), broken.__name__, "exec"), vars(broken))  # noqa: S102 - our own source
    ours = "pipeline.", "tests.pipeline."
    for user in [one for name, one in sys.modules.items() if name.startswith(ours)]:
        for name, value in vars(user).copy().items():
            is_own = inspect.isfunction(value) or inspect.isclass(value)
            if is_own and value.__module__ == module.__name__ and hasattr(broken, value.__name__):
                patch.setattr(user, name, getattr(broken, value.__name__))
