"""A keyring as a desktop has one, for tests; no test asks the machine's."""

from collections.abc import Iterator
from contextlib import contextmanager

import keyring
import keyring.backend


class DesktopKeyring(keyring.backend.KeyringBackend):
    """A keyring as a desktop has one, in memory; ``failure`` is what it raises instead."""

    priority = -2
    """Never chosen by the library itself: only who sets it gets it."""

    def __init__(self) -> None:  # the base class only reads settings from the environment
        self.entries: dict[tuple[str, str], str] = {}
        self.failure: Exception | None = None
        self.calls = 0

    def get_password(self, service: str, username: str) -> str | None:
        self._called()
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._called()
        self.entries[service, username] = password

    def _called(self) -> None:
        self.calls += 1
        if self.failure is not None:
            raise self.failure


@contextmanager
def desktop_keyring() -> Iterator[DesktopKeyring]:
    before = keyring.get_keyring()
    backend = DesktopKeyring()
    keyring.set_keyring(backend)
    try:
        yield backend
    finally:
        keyring.set_keyring(before)
