"""The settings while the program runs: one value of each, the file behind them, and who listens.

The file stays the truth.  A change is judged by its key's rule, put into force where that can be
done at once, and written as one line; a change that somebody makes in the file meanwhile is picked
up by ``reread`` and never overwritten.  If the file cannot be written nothing changes.
"""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from chat_app.network_control import NetworkControl
from chat_app.settings import Key, Settings, find_key, keys_of, sections_of
from chat_app.settings_file import change_setting
from chat_app.settings_reading import ReadSettings, load_what_is_right
from engine.core.errors import (
    AddressError,
    AllowedValue,
    ConfigError,
    SettingsError,
    SettingsFlaw,
    TransportError,
)
from engine.delivery.pseudonym import KEY_BYTES, key_text
from ui.settings_port import SettingName, SettingValue

AT_ONCE: Final = frozenset(
    {
        ("network", "role"),
        ("network", "service_nodes"),
        ("appearance", "theme"),
        ("appearance", "language"),
        ("appearance", "density"),
        ("appearance", "text_size"),
        ("notifications", "enabled"),
        ("notifications", "preview"),
        ("notifications", "mentions_when_muted"),
        ("desktop", "close_to_tray"),
        ("privacy", "typing"),
        ("privacy", "presence"),
        ("privacy", "confirm_links"),
        ("privacy", "fetch_pictures_below_mb"),
        ("privacy", "ask_for_updates"),
        ("privacy", "lock_after"),
        ("privacy", "lock_with_screen"),
        ("delivery", "record"),
        ("delivery", "key"),
        ("delivery", "max_megabytes"),
        ("backup", "folder"),
        ("backup", "keep_daily"),
        ("backup", "keep_weekly"),
        ("backup", "remind"),
    }
)
"""In force as soon as they are changed; the others from the next start on."""
_ROLE: Final = ("network", "role")
_SERVICE_NODES: Final = ("network", "service_nodes")
_RECORD: Final = ("delivery", "record")
_KEY: Final = ("delivery", "key")

logger = logging.getLogger(__name__)


class SettingsControl:
    """A ``ui.settings_port.SettingsPort``."""

    def __init__(self, path: Path, began: Settings, network: NetworkControl | None = None) -> None:
        """``began``: what the program started with."""
        self._path = path
        self._began = began
        self._now = began
        self._network = network
        self._listeners: list[Callable[[SettingName], None]] = []
        self.trouble: ConfigError | None = None

    @property
    def settings(self) -> Settings:
        """As the file has them."""
        return self._now

    @property
    def file(self) -> str:
        return str(self._path)

    # --- what there is ----------------------------------------------------------------------------

    def value(self, name: SettingName) -> SettingValue:
        return _value(self._now, name)

    def allowed(self, name: SettingName) -> AllowedValue:
        return _key(name).rule.allowed

    def counts_at_once(self, name: SettingName) -> bool:
        return name in AT_ONCE

    def waiting(self) -> tuple[SettingName, ...]:
        """What counts from the next start on, and is not yet what it will be then."""
        return tuple(name for name in _names(self._now) if self._waits(name))

    def _waits(self, name: SettingName) -> bool:
        if name in {_ROLE, _SERVICE_NODES} and self._network is not None:
            return bool(getattr(self._network.settings, name[1]) != self.value(name))
        return name not in AT_ONCE and self.value(name) != _value(self._began, name)

    def problem(self, name: SettingName, value: SettingValue) -> ConfigError | None:
        """Why it cannot have this value; None if it can."""
        key = _key(name)
        try:
            key.rule.read(list(value) if isinstance(value, tuple) else value)
        except AddressError as error:
            return error
        except ValueError as error:
            flaw, shown = SettingsFlaw.WRONG_VALUE, f"[{key.section}] {key.name}"
            return SettingsError(str(error), flaw, key=shown, allowed=key.rule.allowed)
        return None

    # --- changes ----------------------------------------------------------------------------------

    def listen(self, listener: Callable[[SettingName], None]) -> Callable[[], None]:
        """Called after each change, in the window or in the file, until it is called off."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def change(self, name: SettingName, value: SettingValue) -> None:
        """Raises ConfigError, or TransportError if a role cannot be had; then nothing changes."""
        problem = self.problem(name, value)
        if problem is not None:
            raise problem
        network = self._network
        if network is None or name not in {_ROLE, _SERVICE_NODES}:
            self.write(name, value)
            return
        before = network.settings
        role, nodes = before.role, before.service_nodes
        if name == _ROLE:
            role = str(value)
        elif isinstance(value, tuple):
            nodes = value
        await network.change(role, nodes)
        try:
            self.write(name, value)
        except ConfigError:
            await self._put_back(network, before.role, before.service_nodes)
            raise

    async def _put_back(self, network: NetworkControl, role: str, nodes: tuple[str, ...]) -> None:
        try:
            await network.change(role, nodes)
        except TransportError:
            logger.warning("The network stays as it was chosen, though it is not written down.")

    def write(self, name: SettingName, value: SettingValue) -> None:
        """What needs no network.  Raises ConfigError; then nothing changes."""
        if name == _RECORD and value and not _value(load_what_is_right(self._path).settings, _KEY):
            change_setting(self._path, *_KEY, key_text(os.urandom(KEY_BYTES)))
        change_setting(self._path, *name, value)
        self._take(load_what_is_right(self._path))

    def reread(self) -> None:
        """Somebody may have changed the file; ``trouble`` says if it cannot be read."""
        try:
            read = load_what_is_right(self._path)
        except ConfigError as error:
            self.trouble = error
        else:
            self._take(read)

    def _take(self, read: ReadSettings) -> None:
        self.trouble = read.complaints[0] if read.complaints else None
        before, self._now = self._now, read.settings
        if self._network is not None:
            outward = read.settings.network
            self._network.keep_for_the_next_start(discovery=outward.discovery, proxy=outward.proxy)
        for name in _names(read.settings):
            if self.value(name) != _value(before, name):
                for listener in self._listeners:
                    listener(name)


def _names(settings: Settings) -> Iterator[SettingName]:
    for section, _ in sections_of(settings):
        for key in keys_of(section):
            yield section, key.name


def _key(name: SettingName) -> Key:
    key = find_key(*name)
    if key is None:
        raise ConfigError(f"[{name[0]}] {name[1]}: there is no such setting")
    return key


def _value(settings: Settings, name: SettingName) -> SettingValue:
    _key(name)
    value: SettingValue = getattr(getattr(settings, name[0]), name[1])
    return value
