"""What the settings page asks of the settings: their values, what is allowed, and changes.

The window knows a setting by the section and the key it has in the settings file, and neither the
file's format nor where it lies.
"""

from collections.abc import Callable
from typing import Protocol

from engine.core.errors import AllowedValue, ConfigError

SettingName = tuple[str, str]
"""Section and key."""
SettingValue = bool | int | str | tuple[str, ...]


class SettingsPort(Protocol):
    @property
    def file(self) -> str:
        """The path of the settings file."""

    @property
    def trouble(self) -> ConfigError | None:
        """Why the file, or a line of it, does not count; None if all of it does."""

    def value(self, name: SettingName, /) -> SettingValue: ...

    def allowed(self, name: SettingName, /) -> AllowedValue: ...

    def counts_at_once(self, name: SettingName, /) -> bool:
        """Or else from the next start on."""

    def waiting(self) -> tuple[SettingName, ...]:
        """What counts only from the next start on, and was changed since this one."""

    def problem(self, name: SettingName, value: SettingValue, /) -> ConfigError | None:
        """Why it cannot have this value; None if it can."""

    async def change(self, name: SettingName, value: SettingValue, /) -> None:
        """Put it into force and write it down.  Raises ChatError; then nothing changes."""

    def reread(self) -> None:
        """Somebody may have changed the file."""

    def listen(self, listener: Callable[[SettingName], None], /) -> Callable[[], None]:
        """It is called after each change, in the window or in the file, until it is called off."""
