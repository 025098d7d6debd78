"""Reads the settings file: each value by its key's rule, each complaint with its line.

What there is and what is allowed is declared in ``settings``.  The window goes on without lines
that are wrong, unless they may protect the user; commands refuse them.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from chat_app.settings import (
    DEFAULTS,
    PROTECTIVE,
    Section,
    Settings,
    find_key,
    keys_of,
    sections_of,
)
from chat_app.settings_lines import did_you_mean, line_of, resembles, shown_key
from engine.core.errors import AddressError, SettingsError, SettingsFlaw

MAX_FILE_BYTES: Final = 256 * 1024
_PROTECTIVE_SECTIONS: Final = frozenset({"network", "notifications", "privacy"})
"""In which a line that resembles nothing known is not left out."""
_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_SECTIONS: Final = tuple(name for name, _ in sections_of(DEFAULTS))

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """``complaints``: lines that count as if they were not there."""

    settings: Settings
    complaints: tuple[SettingsError, ...] = ()
    grave: SettingsError | None = None
    """The first of them that may be about a setting that protects the user."""


def load_settings(path: Path) -> Settings:
    """The settings in ``path``; the defaults if there is no such file.  Raises ConfigError."""
    return _without_complaints(_read_file(path))


def load_what_is_right(path: Path) -> ReadSettings:
    """The same, but with complaints of lines that can be left out.

    Raises ConfigError if the file cannot be read at all, or if a wrong line may be about a setting
    that protects the user: its default would tell others more than was wanted.
    """
    read = _read_file(path)
    if read.grave is not None:
        raise read.grave
    return read


def _without_complaints(read: ReadSettings) -> Settings:
    if read.complaints:
        raise read.complaints[0]
    return read.settings


def _read_file(path: Path) -> ReadSettings:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
            mode = os.fstat(file.fileno()).st_mode
    except FileNotFoundError:
        return ReadSettings(settings=DEFAULTS)
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
        raise SettingsError(text, SettingsFlaw.UNREADABLE, place=str(path)) from error
    if len(data) > MAX_FILE_BYTES:
        text = f"is larger than {MAX_FILE_BYTES // 1024} KiB"
        raise SettingsError(text, SettingsFlaw.TOO_LARGE, place=str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text, place = "is not UTF-8 text", f"{path}:{line}"
        raise SettingsError(text, SettingsFlaw.NOT_TEXT, place=place) from error
    read = read_text(text, path)
    if os.name == "posix" and mode & _FOR_OTHERS:
        _refuse_secrets(read.settings, text, path, mode)
    return read


def _refuse_secrets(settings: Settings, text: str, path: Path, mode: int) -> None:
    """Others on this machine can read the file.  Raises ConfigError if that gives anything away."""
    for section, key, is_secret in (
        ("network", "proxy", "@" in settings.network.proxy),
        ("delivery", "key", bool(settings.delivery.key)),
    ):
        if is_secret:
            line = line_of(text, section, key)
            place = f"{path}:{line}" if line else str(path)
            raise SettingsError(
                f"[{section}] {key} is a secret, and others on this machine can read the"
                f" file (its mode is {stat.S_IMODE(mode):04o}). Change the secret if they may have,"
                f" and run: chmod 600 {path}",
                SettingsFlaw.READABLE,
                place=place,
                key=f"[{section}] {key}",
            )


def parse_settings(text: str, path: Path) -> Settings:
    """``path`` is only named in complaints.  Raises ConfigError."""
    return _without_complaints(read_text(text, path))


def read_text(text: str, path: Path) -> ReadSettings:
    """Likewise, but complaints of lines are not raised."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problem = f"is not TOML: {error}"
        raise SettingsError(problem, SettingsFlaw.NOT_TOML, place=str(path)) from error
    reader = _Reader(text, path)
    reader.check_sections(document)
    settings = Settings(
        network=reader.section("network", DEFAULTS.network, document),
        node=reader.section("node", DEFAULTS.node, document),
        appearance=reader.section("appearance", DEFAULTS.appearance, document),
        notifications=reader.section("notifications", DEFAULTS.notifications, document),
        desktop=reader.section("desktop", DEFAULTS.desktop, document),
        privacy=reader.section("privacy", DEFAULTS.privacy, document),
        storage=reader.section("storage", DEFAULTS.storage, document),
        backup=reader.section("backup", DEFAULTS.backup, document),
        log=reader.section("log", DEFAULTS.log, document),
        delivery=reader.section("delivery", DEFAULTS.delivery, document),
    )
    return ReadSettings(settings=settings, complaints=tuple(reader.complaints), grave=reader.grave)


@dataclass(slots=True)
class _Reader:
    """Turns a parsed document into settings and knows where in the text each thing stands."""

    text: str
    path: Path
    complaints: list[SettingsError] = field(default_factory=list)
    grave: SettingsError | None = None

    def check_sections(self, document: Mapping[str, object]) -> None:
        for name in document:
            if name in _SECTIONS:
                continue
            home = _section_with(name)
            if home and not isinstance(document[name], dict):
                hint = f"it belongs under [{home}]"
            else:
                sections = ", ".join(f"[{known}]" for known in _SECTIONS)
                hint = f"{did_you_mean(name, list(_SECTIONS))}there are {sections}"
            self._complain("", name, f"unknown; {hint}", SettingsFlaw.UNKNOWN)
            self._look_into(document[name])

    def _look_into(self, unknown: object) -> None:
        """A section under a name of its own may hold what protects the user all the same."""
        is_grave = isinstance(unknown, dict) and any(_may_protect("", key) for key in unknown)
        if is_grave and self.grave is None:
            self.grave = self.complaints[-1]

    def section(self, name: str, defaults: S, document: Mapping[str, object]) -> S:
        found = document.get(name, {})
        if not isinstance(found, dict):
            problem = f"is a section, to be written [{name}]"
            self._complain("", name, problem, SettingsFlaw.NO_SECTION)
            return defaults
        values: dict[str, Any] = {}  # each was read by the rule that its field was declared with
        for key_name, value in found.items():
            key = find_key(name, key_name)
            if key is None:
                problem = f"unknown; {_hint(name, key_name)}"
                self._complain(name, key_name, problem, SettingsFlaw.UNKNOWN)
                continue
            try:
                values[key_name] = key.rule.read(value)
            except ValueError as error:
                self._complain(name, key_name, str(error))
            except AddressError as error:
                from ui.address_words import address_words  # noqa: PLC0415 - only to complain

                self._complain(name, key_name, address_words(error))
        return replace(defaults, **values)

    def _complain(
        self,
        section: str,
        key: str,
        problem: str,
        flaw: SettingsFlaw = SettingsFlaw.WRONG_VALUE,
    ) -> None:
        line = line_of(self.text, section, key)
        place = f"{self.path}:{line}" if line else str(self.path)
        name = f"[{section}] {shown_key(key)}" if section else shown_key(key)
        known = find_key(section, key)
        complaint = SettingsError(
            f"{name}: {problem}",
            flaw,
            place=place,
            key=name,
            allowed=None if known is None else known.rule.allowed,
        )
        self.complaints.append(complaint)
        if self.grave is None and _may_protect(section, key):
            self.grave = complaint


def _may_protect(section: str, key: str) -> bool:
    """Whether a wrong line may be meant for a setting that protects; ``section`` "": a section."""
    if find_key(section, key) is not None:
        return (section, key) in PROTECTIVE
    names = {name for _, name in PROTECTIVE}
    if not section:
        names |= _PROTECTIVE_SECTIONS
    if resembles(key, names):
        return True
    known = {each.name for each in keys_of(section)}
    return section in _PROTECTIVE_SECTIONS and not resembles(key, known)


def _hint(section: str, name: str) -> str:
    home = _section_with(name)
    if home:
        return f"it belongs under [{home}]"
    names = [key.name for key in keys_of(section)]
    return f"{did_you_mean(name, names)}[{section}] has {', '.join(names)}"


def _section_with(name: str) -> str | None:
    return next((section for section in _SECTIONS if find_key(section, name)), None)
