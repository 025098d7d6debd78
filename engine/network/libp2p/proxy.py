"""The user's SOCKS5 proxy: ``socks5://[USER:PASSWORD@]HOST:PORT``.

The host is an IP address or ``localhost``: resolving a name would ask the user's own network, which
a proxy is meant to avoid.  ``socks5h`` is another spelling, because the proxy always resolves
names.  A password appears in no message and no log.  ``socks.py`` implements the protocol.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

from engine.core.errors import AddressError, ProxyFlaw

EXAMPLE: Final = "socks5://127.0.0.1:9050"
MAX_PROXY_CHARACTERS: Final = 1_024
MAX_CREDENTIAL_BYTES: Final = 255  # RFC 1929: its length is one byte
_MAX_PORT: Final = 65_535
_SHAPE: Final = re.compile(
    r"(?P<scheme>[^:/@]*)://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[^\]/@]*\]|[^:/@\[\]]*)(?::(?P<port>[^:/@]*))?/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """``host`` is an IP address.  Without a user name none is offered."""

    host: str
    port: int
    username: bytes = field(default=b"", repr=False)
    password: bytes = field(default=b"", repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"socks5://{host}:{self.port}"


def parse_proxy(text: str) -> Proxy:
    """Raises AddressError, with the proxy but not its secrets, and what is wrong with it."""
    try:
        return _parse(text)
    except _BadPartError as bad:
        shown = _without_secret(text)
        raise AddressError(bad.flaw, shown=shown, part=bad.part, allowed=bad.allowed) from None


class _BadPartError(Exception):
    def __init__(self, flaw: ProxyFlaw, part: str = "", *, allowed: int | str = "") -> None:
        super().__init__(flaw)
        self.flaw = flaw
        self.part = part
        self.allowed = allowed


def _parse(text: str) -> Proxy:
    if len(text) > MAX_PROXY_CHARACTERS:
        raise _BadPartError(ProxyFlaw.TOO_LONG, allowed=MAX_PROXY_CHARACTERS)
    parts = _SHAPE.fullmatch(text)
    if parts is None:
        raise _BadPartError(ProxyFlaw.SHAPE, allowed=EXAMPLE)
    if parts["scheme"].lower() not in ("socks5", "socks5h"):
        raise _BadPartError(ProxyFlaw.SCHEME, parts["scheme"][:20])
    username, password = _credentials(parts["user"], parts["password"])
    return Proxy(
        host=_host(parts["host"]),
        port=_port(parts["port"]),
        username=username,
        password=password,
    )


def _host(text: str) -> str:
    if text.lower() == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise _BadPartError(ProxyFlaw.HOST, text[:60]) from None


def _port(text: str | None) -> int:
    if not text:
        raise _BadPartError(ProxyFlaw.NO_PORT)
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) <= _MAX_PORT):  # noqa: PLR2004 - five digits
        raise _BadPartError(ProxyFlaw.BAD_PORT, text[:20], allowed=_MAX_PORT)
    return int(text)


def _credentials(username: str | None, password: str | None) -> tuple[bytes, bytes]:
    if username is None:
        return b"", b""
    found = unquote_to_bytes(username), unquote_to_bytes(password or "")
    if not all(0 < len(part) <= MAX_CREDENTIAL_BYTES for part in found):
        raise _BadPartError(ProxyFlaw.CREDENTIALS, allowed=MAX_CREDENTIAL_BYTES)
    return found


def _without_secret(text: str) -> str:
    before, at, host = text.rpartition("@")
    if at:
        scheme, slashes, _ = before.partition("://")
        text = f"{scheme if slashes else ''}{slashes}***@{host}"
    return "".join(character if character.isprintable() else "?" for character in text[:200])
