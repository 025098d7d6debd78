"""Whether the program starts with the session; how that is done differs between systems.

``chat_app/autostart.py`` has the ways.
"""

from typing import Protocol


class AutostartPort(Protocol):
    def is_on(self) -> bool: ...

    def switch(self, *, on: bool) -> None:
        """Raises ConfigError if the system refuses."""
