"""The passphrase of a profile for the window: tried, set, changed and removed, on threads.

``StartUnlock`` has no key yet and finds it; ``PassphraseControl`` has it, because the profile is
open.  Keys and passphrases are never logged.
"""

import asyncio

from engine.persistence.key import DatabaseKey, obtain_database_key, wall_clock_ms
from engine.persistence.key_changes import (
    check_passphrase,
    key_ways,
    remove_passphrase,
    set_passphrase,
)
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.unlock_attempts import read_attempts
from ui.lock_port import KeyWaysView


class StartUnlock:
    """A ``ui.lock_port.UnlockPort`` before the profile opens."""

    def __init__(self, directory: ProfileDirectory, *, force_key_file: bool) -> None:
        self._directory = directory
        self._force_key_file = force_key_file
        self.key: DatabaseKey | None = None

    def wait_ms(self) -> int:
        now_ms = wall_clock_ms()
        return read_attempts(self._directory, now_ms).wait_ms(now_ms)

    async def try_passphrase(self, passphrase: str) -> None:
        self.key = await asyncio.to_thread(
            obtain_database_key,
            self._directory,
            force_key_file=self._force_key_file,
            passphrase=passphrase,
        )


class PassphraseControl:
    """A ``ui.lock_port.PassphrasePort`` of the profile that is open."""

    def __init__(
        self, directory: ProfileDirectory, key: DatabaseKey, *, force_key_file: bool
    ) -> None:
        self._directory = directory
        self._key = key
        self._force_key_file = force_key_file

    def ways(self) -> KeyWaysView:
        found = key_ways(self._directory)
        place = "" if found.place is None else found.place.value
        return KeyWaysView(has_passphrase=found.has_passphrase, place=place)

    def wait_ms(self) -> int:
        now_ms = wall_clock_ms()
        return read_attempts(self._directory, now_ms).wait_ms(now_ms)

    async def try_passphrase(self, passphrase: str) -> None:
        await asyncio.to_thread(check_passphrase, self._directory, passphrase)

    async def set_passphrase(self, passphrase: str, *, alone: bool) -> bool:
        return await asyncio.to_thread(
            set_passphrase,
            self._directory,
            self._key.key,
            passphrase,
            alone=alone,
            force_key_file=self._force_key_file,
        )

    async def remove_passphrase(self) -> str:
        place = await asyncio.to_thread(
            remove_passphrase,
            self._directory,
            self._key.key,
            force_key_file=self._force_key_file,
        )
        return place.value
