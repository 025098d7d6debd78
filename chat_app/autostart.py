"""Starting with the session: an autostart entry (Linux), a Run value (Windows), an agent (macOS).

What is switched on is a start of this profile that shows no window but an icon in the tray
(``--minimised``).  Whether it is on is read from the system each time, because the user can change
it there, too.  The ways of Windows and macOS were never run on these systems.
"""

import errno
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from chat_app.paths import DEFAULT_PROFILE
from engine.core.errors import SettingsUnwritableError
from ui.desktop.autostart import AutostartPort

APPLICATION_ID: Final = "chat.causerie.Causerie"
RUN_KEY: Final = r"Software\Microsoft\Windows\CurrentVersion\Run"
_QUOTED: Final = str.maketrans(
    {
        "\\": "\\\\\\\\",
        '"': '\\\\"',
        "`": "\\\\`",
        "$": "\\\\$",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
    }
)
"""The specification of desktop entries escapes twice: as a string, and inside quotes."""
_CHOOSING: Final = frozenset({"--profile", "--profile-dir"})
_OFF: Final = frozenset({"hidden=true", "x-gnome-autostart-enabled=false"})


def start_command(profile: str | None, directory: Path | None) -> tuple[str, ...]:
    """As this process was started, but minimised."""
    frozen = bool(getattr(sys, "frozen", False))
    program = (sys.executable,) if frozen else (sys.executable, "-m", "chat_app")
    chosen: tuple[str, ...] = ()
    if directory is not None:
        chosen = ("--profile-dir", str(directory.absolute()))
    elif profile is not None and profile != DEFAULT_PROFILE:
        chosen = ("--profile", profile)
    return (*program, *chosen, "--minimised")


def entry_name(command: Sequence[str]) -> str:
    """One for each profile, wherever the program is; the default profile's has no addition."""
    at = next((i for i, word in enumerate(command) if word in _CHOOSING), None)
    if at is None:
        return APPLICATION_ID
    digest = hashlib.sha256("\0".join(command[at:]).encode("utf-8", "surrogateescape"))
    return f"{APPLICATION_ID}.{digest.hexdigest()[:12]}"


def autostart_here(command: Sequence[str]) -> AutostartPort:
    if sys.platform == "win32":
        from chat_app.windows_registry import CurrentUserRun  # noqa: PLC0415 - Windows only

        return RunValue(CurrentUserRun(RUN_KEY), command)
    if sys.platform == "darwin":
        return LaunchAgent(Path.home() / "Library" / "LaunchAgents", command)
    configuration = os.environ.get("XDG_CONFIG_HOME") or ""
    base = Path(configuration) if Path(configuration).is_absolute() else Path.home() / ".config"
    return AutostartEntry(base / "autostart", command)


class AutostartEntry:
    """A desktop entry in the user's autostart directory (XDG)."""

    def __init__(self, directory: Path, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self.file = directory / f"{entry_name(command)}.desktop"

    def is_on(self) -> bool:
        """Desktops switch an entry off by a line in it."""
        try:
            text = self.file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        lines = {line.replace(" ", "").casefold() for line in text.splitlines()}
        return not lines & _OFF

    def switch(self, *, on: bool) -> None:
        try:
            content = self._entry().encode() if on else None
        except UnicodeEncodeError as error:  # A name in the file system that is not UTF-8.
            reason = OSError(errno.EILSEQ, os.strerror(errno.EILSEQ))
            raise _refused(str(self.file), reason) from error
        _write(self.file, content)

    def _entry(self) -> str:
        words = (f'"{word.translate(_QUOTED).replace("%", "%%")}"' for word in self._command)
        return (
            "[Desktop Entry]\nType=Application\nName=Causerie\n"
            f"Exec={' '.join(words)}\nIcon={APPLICATION_ID}\nTerminal=false\n"
            "X-GNOME-Autostart-enabled=true\n"
        )


class LaunchAgent:
    """A property list that macOS reads when the user logs in."""

    def __init__(self, directory: Path, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self.file = directory / f"{entry_name(command)}.plist"

    def is_on(self) -> bool:
        import plistlib  # noqa: PLC0415 - macOS only

        try:
            found = plistlib.loads(self.file.read_bytes())
        except (OSError, ValueError, plistlib.InvalidFileException):
            return False
        return isinstance(found, dict) and found.get("RunAtLoad") is True

    def switch(self, *, on: bool) -> None:
        import plistlib  # noqa: PLC0415 - macOS only

        wanted = {
            "Label": entry_name(self._command),
            "ProgramArguments": list(self._command),
            "RunAtLoad": True,
            "ProcessType": "Interactive",
        }
        _write(self.file, plistlib.dumps(wanted) if on else None)


class RunKey(Protocol):
    """The registry's key whose values are started when the user logs in."""

    def read(self, name: str, /) -> str | None: ...

    def write(self, name: str, value: str, /) -> None:
        """Raises OSError."""

    def remove(self, name: str, /) -> None:
        """Harmless if there is none.  Raises OSError."""


class RunValue:
    def __init__(self, key: RunKey, command: Sequence[str]) -> None:
        self._key = key
        self._name = entry_name(command)
        self._line = command_line(command)

    def is_on(self) -> bool:
        return self._key.read(self._name) is not None

    def switch(self, *, on: bool) -> None:
        try:
            if on:
                self._key.write(self._name, self._line)
            else:
                self._key.remove(self._name)
        except OSError as error:
            raise _refused(RUN_KEY, error) from error


def command_line(command: Sequence[str]) -> str:
    """One line of which Windows makes the same words again."""
    import subprocess  # noqa: PLC0415 - rarely

    return subprocess.list2cmdline(command)


def _write(file: Path, content: bytes | None) -> None:
    """None: remove it.  Raises SettingsUnwritableError."""
    try:
        if content is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f".{file.name}.unfinished")
        unfinished.write_bytes(content)
        unfinished.replace(file)
    except OSError as error:
        raise _refused(str(file), error) from error


def _refused(place: str, error: OSError) -> SettingsUnwritableError:
    return SettingsUnwritableError(place, error.strerror or type(error).__name__)
