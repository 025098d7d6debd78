"""One window per profile: a second start hands its link to the window that is open, and ends.

``causerie watch`` asks at the same place for figures, one answer for each call.

The profile's lock says that somebody has it open; this says to whom to speak.  Both sides meet at a
local socket in the profile's directory, which is the user's alone, or where its path would be too
long in the session's (Windows: a pipe that only the user may open, and whose maker is looked at).
The second says one line of JSON, the first answers one word and comes to the front, or answers a
line of figures and stays where it is.  Of a version that is not known it takes the link, which all
have at the same place, and the window says that another version was started.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import Final

from PySide6.QtCore import QDeadlineTimer, QObject, QTimer, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from engine.core.invite import MAX_LINK_CHARACTERS

VERSION: Final = 1
MAX_LINE_BYTES: Final = 12 * MAX_LINK_CHARACTERS + 1024
"""JSON takes up to twelve bytes for a character that is not ASCII."""
_ANSWER: Final = b"here\n"
_MAX_CALLERS: Final = 8
CALLER_MS: Final = 5_000
MAX_ANSWER_BYTES: Final = 1024 * 1024
_FIGURES: Final = "figures"
_CALL_MS: Final = 1_000
ANSWER_MS: Final = 3_000
"""A window that is busy for longer still reads what it was told, so it is told only once."""
_LONGEST_PATH: Final = 100
"""macOS allows 103 bytes, Linux 107."""


class HandOver(Enum):
    """What came of telling a window of this start."""

    TAKEN = auto()
    NOT_TOLD = auto()
    """Nobody listens there, or not any more: another try does no harm."""
    UNANSWERED = auto()
    """It was told, and reads that once it can, but did not answer in time."""


def server_name(directory: Path) -> str | None:
    """Where the window of this profile listens; None where no private place for it can be had."""
    whole = directory.resolve()
    digest = hashlib.sha256(os.fsencode(whole)).hexdigest()[:16]
    if os.name == "nt":
        return f"causerie-{digest}"
    session = os.environ.get("XDG_RUNTIME_DIR")
    places = [
        (whole, "window.socket"),
        *([(Path(session), f"causerie-{digest}")] if session else []),
    ]
    for place, name in places:
        if _is_private(place) and len(os.fsencode(place / name)) <= _LONGEST_PATH:
            return str(place / name)
    return None


def _is_private(place: Path) -> bool:
    try:
        found = place.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & 0o077


class InstanceServer(QObject):
    """Make it only while holding the profile's lock: what stands at the name is stale then."""

    called = Signal(str)
    """A second start: its link, or "" if it had none."""
    other_version = Signal()
    """It speaks as a version does that is not known here; what it said besides a link is not."""

    def __init__(
        self,
        directory: Path,
        parent: QObject | None = None,
        *,
        figures: Callable[[Callable[[bytes], None]], None] | None = None,
    ) -> None:
        """``figures``: makes a line of figures and then calls what it is given."""
        super().__init__(parent)
        self._figures = figures
        self._callers: set[QLocalSocket] = set()
        self._server = QLocalServer(self)
        if os.name == "nt":  # Elsewhere the directory is private.
            self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._accept)
        name = server_name(directory)
        if name is not None:
            QLocalServer.removeServer(name)
            self._server.listen(name)

    def close(self) -> None:
        self._server.close()
        for caller in tuple(self._callers):
            caller.abort()

    def _accept(self) -> None:
        while (caller := self._server.nextPendingConnection()) is not None:
            if len(self._callers) >= _MAX_CALLERS:
                caller.abort()
                caller.deleteLater()
                continue
            self._callers.add(caller)
            # Its signals keep this object, whose end may be in its own: that must not end it again.
            caller.setParent(None)
            caller.setReadBufferSize(MAX_LINE_BYTES)
            caller.readyRead.connect(lambda caller=caller: self._read(caller))
            caller.disconnected.connect(lambda caller=caller: self._forget(caller))
            QTimer.singleShot(CALLER_MS, caller, caller.abort)
            self._read(caller)

    def _read(self, caller: QLocalSocket) -> None:
        if caller.canReadLine():
            line = bytes(caller.readLine(MAX_LINE_BYTES).data())
            said = _said_in(line)
            is_known = said.get("version") == VERSION
            if is_known and said.get("ask") == _FIGURES:
                self._answer_figures(caller)
                return
            caller.write(_ANSWER)
            caller.disconnectFromServer()
            self.called.emit(_link_in(said))
            if said and not is_known:
                self.other_version.emit()
        elif caller.bytesAvailable() >= MAX_LINE_BYTES:
            caller.abort()

    def _answer_figures(self, caller: QLocalSocket) -> None:
        if self._figures is None:
            caller.abort()
            return

        def answer(line: bytes) -> None:
            if caller in self._callers and len(line) < MAX_ANSWER_BYTES:
                caller.write(line + b"\n")
                caller.disconnectFromServer()

        self._figures(answer)

    def _forget(self, caller: QLocalSocket) -> None:
        self._callers.discard(caller)
        caller.deleteLater()


def _said_in(line: bytes) -> dict[str, object]:
    """Nothing, if it is no object of JSON."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _link_in(said: dict[str, object]) -> str:
    link = said.get("link")
    return link if isinstance(link, str) and len(link) <= MAX_LINK_CHARACTERS + 1 else ""


def hand_over(
    directory: Path, link: str, *, is_ours: Callable[[int], bool] | None = None
) -> HandOver:
    """Give the link to the window that has this profile open, which comes to the front.

    ``is_ours``: whether a process of this user is at the other end of a handle; else it hears
    nothing.  None: what the system needs, which is a look at the owner on Windows only.
    """
    name = server_name(directory)
    if name is None:
        return HandOver.NOT_TOLD
    line = json.dumps({"version": VERSION, "link": link}).encode("ascii") + b"\n"
    answer = _call(name, line, is_ours or _is_ours, most=len(_ANSWER))
    if answer is None:
        return HandOver.UNANSWERED
    return HandOver.TAKEN if answer == _ANSWER else HandOver.NOT_TOLD


def ask_figures(
    directory: Path, *, is_ours: Callable[[int], bool] | None = None
) -> dict[str, object] | None:
    """What the window that has this profile open says of it; None: there is none, or it is busy."""
    name = server_name(directory)
    if name is None:
        return None
    line = json.dumps({"version": VERSION, "ask": _FIGURES}).encode("ascii") + b"\n"
    answer = _call(name, line, is_ours or _is_ours, most=MAX_ANSWER_BYTES)
    try:
        figures = json.loads(answer or b"")
    except (ValueError, RecursionError):
        return None
    return figures if isinstance(figures, dict) else None


def _is_ours(handle: int) -> bool:
    """Names of pipes are everybody's on Windows; elsewhere the place is private."""
    if sys.platform == "win32":
        from chat_app.pipe_owner import WindowsUsers, is_own_pipe  # noqa: PLC0415 - there only

        return is_own_pipe(handle, WindowsUsers())
    del handle
    return True


def _call(name: str, line: bytes, is_ours: Callable[[int], bool], *, most: int) -> bytes | None:
    """The line that is answered, of at most ``most`` bytes; empty if there is none.

    None: it was told, and reads that once it can, but did not answer in time.
    """
    socket = QLocalSocket()
    socket.connectToServer(name)
    try:
        if not socket.waitForConnected(_CALL_MS):
            return b""
        if not is_ours(int(socket.socketDescriptor())):
            return b""
        socket.write(line)
        until = QDeadlineTimer(ANSWER_MS)
        while not socket.canReadLine():
            if socket.bytesAvailable() > most:
                return b""
            if not socket.waitForReadyRead(max(1, until.remainingTime())):
                return None if _is_told(socket) else b""
        return bytes(socket.readLine(most + 1).data())
    finally:
        socket.abort()


def _is_told(socket: QLocalSocket) -> bool:
    """A line that did not leave as a whole is not read, nor is one whose reader ended."""
    is_connected = socket.state() is QLocalSocket.LocalSocketState.ConnectedState
    return is_connected and not socket.bytesToWrite()
