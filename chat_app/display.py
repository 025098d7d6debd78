"""Whether Qt can show windows here: asked first, because Qt ends the process where it cannot.

On Linux Qt aborts, with a page about its plugins, if the display does not answer or if a library
of its X11 plugin is missing.  Both are found out here with the same library that Qt would use.
Other platforms always have a display.
"""

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

from engine.core.errors import TransportError

_WITHOUT: Final = "use `xvfb-run -a causerie`, or `causerie demo --headless`"


def require_display() -> None:
    """Raises TransportError, which says what is missing and what works without it."""
    if not sys.platform.startswith("linux") or os.environ.get("QT_QPA_PLATFORM"):
        return
    wayland, x11 = os.environ.get("WAYLAND_DISPLAY"), os.environ.get("DISPLAY")
    if wayland and _wayland_socket(wayland).exists():
        return
    if x11:
        _require_x11(x11)
    elif wayland:
        raise TransportError(f"there is no Wayland display {wayland!r}; {_WITHOUT}")
    else:
        raise TransportError(f"there is no display; {_WITHOUT}")


def _wayland_socket(name: str) -> Path:
    return Path(os.environ.get("XDG_RUNTIME_DIR", "/nonexistent")) / name


def _require_x11(display: str) -> None:
    for name in ("libxcb.so.1", "libxcb-cursor.so.0"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            raise TransportError(f"the library {name} is not installed; Qt needs it") from None
        if name == "libxcb.so.1" and not _answers(library, display):
            raise TransportError(f"the display {display!r} does not answer; {_WITHOUT}")


def _answers(xcb: ctypes.CDLL, display: str) -> bool:
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(os.fsencode(display), None)
    try:
        return not xcb.xcb_connection_has_error(connection)
    finally:
        xcb.xcb_disconnect(connection)
