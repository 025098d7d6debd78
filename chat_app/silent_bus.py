"""Keeps Qt from a session bus that takes connections and then says nothing.

Qt speaks with the bus while it starts, through libdbus and without a limit of time: a bus that was
stopped would leave the program without a window, and without a word.  So it is greeted first, as
the specification of D-Bus begins ("Authentication Protocol"); one that does not answer is left out
of the environment.  A bus that is not there, or refuses, is no trouble of Qt's.
"""

import logging
import os
import socket
from pathlib import Path
from typing import Final
from urllib.parse import unquote

ANSWER_S: Final = 2.0
"""For an answer that takes less than a millisecond from a bus that is alive."""
NO_BUS: Final = "disabled:"
"""An address that no D-Bus library takes for one."""
_ADDRESS: Final = "DBUS_SESSION_BUS_ADDRESS"

logger = logging.getLogger(__name__)


def session_address() -> str:
    """Where the bus is, or "": as libdbus finds it, but without starting one."""
    given = os.environ.get(_ADDRESS, "")
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not given and runtime and (path := Path(runtime) / "bus").exists():
        return f"unix:path={path}"
    return given


def leave_silent_bus(answer_s: float = ANSWER_S) -> None:
    """Before Qt starts.  Waits at most twice ``answer_s``."""
    path = _socket_in(session_address())
    if path and not _answers(path, answer_s):
        logger.warning("the session bus does not answer and is left alone")
        os.environ[_ADDRESS] = NO_BUS


def _socket_in(address: str) -> str:
    """Of the first address of a list; "" if that is no socket of this machine."""
    transport, _, rest = address.partition(";")[0].partition(":")
    if transport != "unix":
        return ""
    said = dict(pair.partition("=")[::2] for pair in rest.split(","))
    if abstract := said.get("abstract"):
        return "\0" + unquote(abstract)
    return unquote(said.get("path", ""))


def _answers(path: str, answer_s: float) -> bool:
    greeting = f"\0AUTH EXTERNAL {str(os.getuid()).encode().hex()}\r\n"
    with socket.socket(socket.AF_UNIX) as bus:
        bus.settimeout(answer_s)
        try:
            bus.connect(path)
            bus.sendall(greeting.encode())
            bus.recv(1)
        except (TimeoutError, BlockingIOError):  # The latter: too many wait already.
            return False
        except (OSError, ValueError):
            return True
    return True
