"""The choice that the network page offers, and the port that keeps it and puts it into force."""

from typing import Protocol

from msgspec import Struct

from engine.core.errors import ConfigError


class NetworkChoice(Struct, frozen=True, kw_only=True):
    """``role`` is "auto", "relay" or "edge"; the nodes are multiaddrs."""

    role: str
    service_nodes: tuple[str, ...]
    discovery: bool = True
    proxy: str = ""
    """Of SOCKS5; it may hold a password.  Empty: none."""


class NetworkPort(Protocol):
    """Where the choice is kept and put into force."""

    def chosen(self) -> NetworkChoice: ...

    def problem(self, choice: NetworkChoice, /) -> ConfigError | None:
        """Why it is not possible; None if it is."""

    async def change(self, choice: NetworkChoice, /) -> None:
        """Raises ChatError if it cannot be."""
