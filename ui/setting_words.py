"""Says what is wrong with the settings file or one of its settings, and what is allowed.

What is allowed is a clause that follows "must be" on the command line, stands in the comments of
the settings file and in its documentation, and ends the window's sentence.
"""

from collections.abc import Callable, Mapping
from typing import Final

from engine.core.errors import (
    AllowedValue,
    SettingKind,
    SettingsError,
    SettingsFlaw,
    SettingsUnwritableError,
)
from ui.foreign_text import one_line
from ui.translate import tr

_LONGEST_KEY: Final = 140

_FLAWS: Final[Mapping[SettingsFlaw, Callable[[], str]]] = {
    SettingsFlaw.UNREADABLE: lambda: tr("The settings file cannot be read ({place})."),
    SettingsFlaw.TOO_LARGE: lambda: tr("The settings file is too large ({place})."),
    SettingsFlaw.NOT_TEXT: lambda: tr("The settings file is not UTF-8 text ({place})."),
    SettingsFlaw.NOT_TOML: lambda: tr("The settings file is not TOML ({place})."),
    SettingsFlaw.NO_SECTION: lambda: tr(
        'In the settings file "{key}" must be a section ({place}).'
    ),
    SettingsFlaw.UNKNOWN: lambda: tr('There is no setting "{key}" ({place}).'),
    SettingsFlaw.WRONG_VALUE: lambda: tr('The setting "{key}" has an impossible value ({place}).'),
    SettingsFlaw.READABLE: lambda: tr(
        'The setting "{key}" is a secret, and others on this machine can read the settings file'
        " ({place})."
    ),
}

_ALLOWED: Final[Mapping[SettingKind, Callable[[], str]]] = {
    SettingKind.FLAG: lambda: tr("true or false"),
    SettingKind.WHOLE: lambda: tr("a whole number from {least} to {most}"),
    SettingKind.CHOICE: lambda: tr("{most} or {last}"),
    SettingKind.HOST_ADDRESS: lambda: tr(
        '"auto" or an IPv4 or IPv6 address in quotes, such as "127.0.0.1"'
    ),
    SettingKind.MULTIADDRS: lambda: tr("a list of at most {most} multiaddrs, such as {example}"),
    SettingKind.SERVICE_NODES: lambda: tr(
        "a list of at most {most} multiaddrs, such as {example}, each with its /p2p/ part"
    ),
    SettingKind.DELIVERY_KEY: lambda: tr(
        "empty, or the 43 characters that another member of the test group was shown"
    ),
    SettingKind.PROXY: lambda: tr(
        'empty, or a SOCKS5 proxy by its IP address, such as "{example}"'
    ),
    SettingKind.FOLDER: lambda: tr("empty, or the full path of a folder"),
}

_PARTS: Final[Mapping[SettingKind, tuple[str, ...]]] = {
    SettingKind.WHOLE: ("least", "most"),
    SettingKind.MULTIADDRS: ("most", "example"),
    SettingKind.SERVICE_NODES: ("most", "example"),
    SettingKind.PROXY: ("example",),
}
"""What the clause calls the parts of an allowed value, in their order."""


def settings_words(error: SettingsError | SettingsUnwritableError) -> str:
    if isinstance(error, SettingsUnwritableError):
        words = tr("{path} cannot be written: {reason}.")
        return words.format(path=error.path, reason=error.reason)
    words = _FLAWS[error.flaw]()
    if not error.place:
        words = words.replace(" ({place})", "")
    said = words.format(key=one_line(error.key, _LONGEST_KEY), place=one_line(error.place))
    if error.allowed is None:
        return said
    allowed = allowed_words(error.allowed)
    return tr("{problem} Allowed: {allowed}.").format(problem=said, allowed=allowed)


def allowed_words(allowed: AllowedValue) -> str:
    """A clause, without a full stop."""
    if allowed.kind is SettingKind.CHOICE:
        *most, last = (f'"{value}"' for value in allowed.parts)
        return _ALLOWED[allowed.kind]().format(most=", ".join(most), last=last)
    names = _PARTS.get(allowed.kind, ())
    return _ALLOWED[allowed.kind]().format(**dict(zip(names, allowed.parts, strict=False)))
