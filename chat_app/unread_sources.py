"""Qt for Python leaves the program's sources unread.

After its first import it looks through the source of every module that is imported, for whether the
module chose other names for Qt's methods (``from __feature__ import …``).  All those lines stay in
memory, about 10 MiB, and reading them delays the first paint.  Nothing here chooses other names, so
nothing needs to be looked through.  A frozen program has no sources, and loses nothing.
"""

import importlib

_WHO_LOOKS = "shibokensupport.feature"


def leave_sources_unread() -> bool:
    """Whether it could be arranged; to be called before the modules that make a window."""
    importlib.import_module("PySide6.QtCore")
    try:
        feature = importlib.import_module(_WHO_LOOKS)
    except ImportError:
        return False
    if not hasattr(feature, "feature_imported"):
        return False
    vars(feature)["feature_imported"] = _look_at_nothing
    return True


def _look_at_nothing(module: object) -> None:
    del module
