"""What the window asks of the outside about the profile's passphrase.

A passphrase is tried on a thread of its own, because that takes long on purpose.  Everything raises
ChatError.
"""

from typing import Protocol

from msgspec import Struct


class KeyWaysView(Struct, frozen=True, kw_only=True):
    """What leads to the key of the profile."""

    has_passphrase: bool = False
    place: str = ""
    """What else does, as ``IdentityView.key_storage``; "": nothing."""


class UnlockPort(Protocol):
    def wait_ms(self) -> int:
        """How long none can be tried, after wrong ones."""

    async def try_passphrase(self, passphrase: str) -> None:
        """Raises StorageError, WRONG_PASSPHRASE or TOO_SOON, if it is not right."""


class PassphrasePort(UnlockPort, Protocol):
    def ways(self) -> KeyWaysView: ...

    async def set_passphrase(self, passphrase: str, *, alone: bool) -> bool:
        """``alone``: nothing else opens the profile from now on.

        Whether what opened it before is gone, if it should be.
        """

    async def remove_passphrase(self) -> str:
        """What opens the profile now, as ``IdentityView.key_storage``."""
