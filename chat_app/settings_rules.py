"""The rules of settings: each describes what is allowed, and reads a value or says what is wrong.

A rule is given what TOML made of the file and trusts nothing about it: TOML's booleans are
Python's, and Python's are integers, so types are compared exactly.
"""

import ipaddress
from pathlib import Path
from typing import Final, Protocol

from engine.core.errors import (
    AddressError,
    AddressFlaw,
    AllowedValue,
    ConfigError,
    SettingKind,
)
from engine.delivery.pseudonym import parse_key
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.proxy import EXAMPLE, parse_proxy

_SHOWN_CHARACTERS: Final = 60
_TYPES: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
    str: "text in quotes",
    list: "a list",
    dict: "a table",
}


def shown(value: object) -> str:
    """A value from the file, on one line and not endless."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


class Rule(Protocol):
    @property
    def allowed(self) -> AllowedValue: ...

    def read(self, value: object) -> object:
        """The setting's value.  Raises ValueError with the complaint, or AddressError."""


def allowed_by(rule: Rule) -> str:
    """What is allowed, to follow "must be"."""
    from ui.setting_words import allowed_words  # noqa: PLC0415 - only to complain or explain

    return allowed_words(rule.allowed)


def _refuse(value: object, rule: Rule) -> ValueError:
    kind = _TYPES.get(type(value), "a date or time")
    return ValueError(f"{shown(value)} ({kind}) is not allowed; must be {allowed_by(rule)}")


def _refuse_unseen(value: object, rule: Rule) -> ValueError:
    """Of a secret: it may stand inside a list or a table, too."""
    kind = _TYPES.get(type(value), "a date or time")
    return ValueError(f"{kind} is not allowed; must be {allowed_by(rule)}")


class Flag:
    allowed = AllowedValue(SettingKind.FLAG)

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise _refuse(value, self)
        return value


class Whole:
    """An integer from ``minimum`` to ``maximum``, both included."""

    def __init__(self, minimum: int, maximum: int) -> None:
        self._range = range(minimum, maximum + 1)

    @property
    def allowed(self) -> AllowedValue:
        limits = str(self._range[0]), str(self._range[-1])
        return AllowedValue(SettingKind.WHOLE, limits)

    def read(self, value: object) -> int:
        if type(value) is not int or value not in self._range:
            raise _refuse(value, self)
        return value


class Choice:
    def __init__(self, *values: str) -> None:
        self.values = values

    @property
    def allowed(self) -> AllowedValue:
        return AllowedValue(SettingKind.CHOICE, self.values)

    def read(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise _refuse(value, self)
        return value


AUTOMATIC: Final = "auto"


class HostAddress:
    """An address to listen on: numbers only, since a name may stand for something else tomorrow."""

    allowed = AllowedValue(SettingKind.HOST_ADDRESS)

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise _refuse(value, self)
        if value == AUTOMATIC:
            return value
        try:
            return str(ipaddress.ip_address(value))
        except ValueError:
            raise _refuse(value, self) from None


class Multiaddrs:
    _kind = SettingKind.MULTIADDRS

    def __init__(self, *, max_count: int) -> None:
        self._max_count = max_count

    @property
    def allowed(self) -> AllowedValue:
        example = '["/ip4/192.0.2.1/tcp/60000/p2p/16Uiu2…"]'
        return AllowedValue(self._kind, (str(self._max_count), example))

    def read(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) > self._max_count:
            raise _refuse(value, self)
        return tuple(self._one(entry) for entry in value)

    def _one(self, entry: object) -> str:
        if not isinstance(entry, str):
            raise _refuse(entry, self)
        return str(parse_multiaddr(entry))


class ServiceNodes(Multiaddrs):
    """Multiaddrs with the peer at their end, so that nobody else can answer in its place."""

    _kind = SettingKind.SERVICE_NODES

    def read(self, value: object) -> tuple[str, ...]:
        found = super().read(value)
        for address in found:
            if parse_multiaddr(address).peer_id is None:
                raise AddressError(AddressFlaw.PEER_NOT_NAMED, shown=address)
        return found


class DeliveryKey:
    allowed = AllowedValue(SettingKind.DELIVERY_KEY)

    def read(self, value: object) -> str:
        """The text as it is; no complaint repeats it."""
        if not isinstance(value, str):
            raise _refuse_unseen(value, self)
        if value:
            try:
                parse_key(value)
            except ConfigError as error:
                raise ValueError(f"this is no key; must be {allowed_by(self)}") from error
        return value


class Folder:
    allowed = AllowedValue(SettingKind.FOLDER)

    def read(self, value: object) -> str:
        """Whether it is there is asked when it is needed: a stick comes and goes."""
        if not isinstance(value, str):
            raise _refuse(value, self)
        if value and not (Path(value).is_absolute() and value.isprintable()):
            raise _refuse(value, self)
        return value


class ProxyAddress:
    allowed = AllowedValue(SettingKind.PROXY, (EXAMPLE,))

    def read(self, value: object) -> str:
        """The text as it is: it may hold a password, and no complaint repeats that."""
        if not isinstance(value, str):
            raise _refuse_unseen(value, self)
        if value:
            parse_proxy(value)
        return value
