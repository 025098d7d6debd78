"""A keyring as a desktop has one, for tests; no test asks the machine's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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

    def delete_password(self, service: str, username: str) -> None:
        self._called()
        del self.entries[service, username]

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


class FileKeyring(DesktopKeyring):
    """One that several processes share."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def get_password(self, service: str, username: str) -> str | None:
        self._load()
        return super().get_password(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._load()
        super().set_password(service, username, password)
        self._save()

    def delete_password(self, service: str, username: str) -> None:
        self._load()
        super().delete_password(service, username)
        self._save()

    def _load(self) -> None:
        if self._path.exists():
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            self.entries = {(service, name): secret for service, name, secret in stored}

    def _save(self) -> None:
        stored = [[*key, secret] for key, secret in self.entries.items()]
        self._path.write_text(json.dumps(stored), encoding="utf-8")


@contextmanager
def file_keyring(path: Path) -> Iterator[FileKeyring]:
    before = keyring.get_keyring()
    backend = FileKeyring(path)
    keyring.set_keyring(backend)
    try:
        yield backend
    finally:
        keyring.set_keyring(before)
