"""Imports sqlite-utils without pandas and numpy, which it loads if they are installed.

The program uses neither.  Where the pipeline is installed as well, they are, and would lengthen
every start by almost a second.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

_NOT_WANTED = ("pandas", "numpy")
_NOT_THERE = cast("ModuleType", None)
"""Makes an import fail as if the module did not exist."""


@contextmanager
def _without(names: tuple[str, ...]) -> Generator[None]:
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden, _NOT_THERE))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


with _without(_NOT_WANTED):
    from sqlite_utils import Database
    from sqlite_utils.migrations import Migrations

__all__ = ["Database", "Migrations"]
