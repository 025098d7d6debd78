"""sqlite-utils without pandas and numpy, which it loads if it finds them.

The program uses neither.  Where the pipeline is installed besides they are there, and would make
every start almost a second longer.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

_NOT_WANTED = ("pandas", "numpy")
_NOT_THERE = cast("ModuleType", None)
"""What makes an import say that there is no such module."""


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
