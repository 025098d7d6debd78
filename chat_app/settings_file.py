"""The text of the settings file: written at the first start, and changed in place afterwards.

A first start writes every key with what it does and what is allowed, each commented out: a default
that a later version improves then improves here too.  A change made in the window replaces one line
and leaves everything else, comments included, as the user wrote it.
"""

import errno
import json
import os
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chat_app.settings import DEFAULTS, Key, find_key, keys_of, sections_of
from chat_app.settings_reading import load_what_is_right, read_text
from chat_app.settings_rules import allowed_by
from engine.core.errors import SettingsError, SettingsFlaw, SettingsUnwritableError

_WIDTH: Final = 88
_PRIVATE: Final = 0o600
_WRITABLE: Final = 0o222
"""By anybody at all."""


def toml_value(value: object) -> str:
    """A setting's value as TOML: text and lists of text in JSON's spelling, which TOML shares."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case tuple():
            return "[" + ", ".join(toml_value(entry) for entry in value) + "]"
        case _:
            raise TypeError(type(value).__name__)


def default_text() -> str:
    """The file that a first start writes; it means the same as no file at all."""
    return "\n".join(_default_lines()) + "\n"


def _default_lines() -> Iterator[str]:
    yield "# Causerie's settings. Each line shows a default: remove its # to change it."
    yield "# Causerie reads this file when it starts."
    for name, section in sections_of(DEFAULTS):
        yield ""
        yield from _comment(section.__doc__ or "")
        yield f"[{name}]"
        for key in keys_of(name):
            yield ""
            yield from _comment(f"{key.text} Allowed: {allowed_by(key.rule)}.")
            yield f"# {key.name} = {toml_value(key.default)}"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def write_default(path: Path) -> None:
    """Write the file unless there is one.  Raises ConfigError if that is impossible."""
    if path.exists():
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, default_text())
    except OSError as error:
        raise SettingsUnwritableError(str(path), str(error.strerror)) from error


def change_setting(path: Path, section: str, name: str, value: object) -> None:
    """Set one key, where it stands or where it belongs.  Raises ConfigError."""
    key = find_key(section, name)
    if key is None:
        shown = f"[{section}] {name}"
        text = f"{shown}: there is no such setting"
        raise SettingsError(text, SettingsFlaw.UNKNOWN, place=str(path), key=shown)
    try:
        key.rule.read(list(value) if isinstance(value, tuple) else value)
    except ValueError as error:
        shown = f"[{section}] {name}"
        flaw = SettingsFlaw.WRONG_VALUE
        raise SettingsError(
            f"{shown}: {error}", flaw, place=str(path), key=shown, allowed=key.rule.allowed
        ) from error
    load_what_is_right(path)  # a file that cannot be read is not ours to overwrite
    try:
        is_there = path.exists()
        old = _text_of(path) if is_there else default_text()
        ends = "\r\n" if "\r\n" in old else "\n"
        new = _changed(old.replace("\r\n", "\n"), key, toml_value(value)).replace("\n", ends)
        read_text(new, path)
        if is_there and not path.stat().st_mode & _WRITABLE:  # Replacing it asks nobody.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        _replace(path.resolve(), new)
    except OSError as error:
        raise SettingsUnwritableError(str(path), str(error.strerror)) from error


def _text_of(path: Path) -> str:
    """With the ends of its lines as they are."""
    return path.read_bytes().decode("utf-8-sig")


def _changed(text: str, key: Key, value: str) -> str:
    """The text with one line replaced, else added at the head of its section."""
    # TOML knows fewer ends of a line than Python.
    lines = text.removesuffix("\n").split("\n") if text else []
    line = f"{key.name} = {value}"
    header = _header_of(lines, key.section)
    if header is None:
        return "\n".join([*lines, "", f"[{key.section}]", line]) + "\n"
    for pattern in (rf"\s*{key.name}\s*=", rf"#\s*{key.name}\s*="):
        for number in range(header + 1, _end_of(lines, header)):
            if re.match(pattern, lines[number]):
                end = _value_end(lines, number)
                lines[number:end] = [line + _comment_of(lines[end - 1], pattern)]
                return "\n".join(lines) + "\n"
    lines.insert(header + 1, line)
    return "\n".join(lines) + "\n"


def _comment_of(line: str, pattern: str) -> str:
    """What stands behind a value on its line; of a line that is all comment nothing."""
    if "#" in pattern:
        return ""
    for found in re.finditer("#", line):
        try:
            tomllib.loads(line[: found.start()])
        except tomllib.TOMLDecodeError:
            continue
        return f" {line[found.start() :]}"
    return ""


def _header_of(lines: list[str], section: str) -> int | None:
    header = re.compile(rf"\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?")
    return next((number for number, line in enumerate(lines) if header.fullmatch(line)), None)


def _end_of(lines: list[str], header: int) -> int:
    following = range(header + 1, len(lines))
    return next((n for n in following if re.match(r"\s*\[", lines[n])), len(lines))


def _value_end(lines: list[str], number: int) -> int:
    """The line after a setting, whose list may go over several."""
    for end in range(number + 1, len(lines) + 1):
        try:
            tomllib.loads("\n".join(lines[number:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return number + 1


def _replace(path: Path, text: str) -> None:
    """The old file or the new one, whatever happens in between, and readable by its owner only."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)  # or a mode that it has from before would stay
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def page() -> str:
    """docs/settings.md: the same declaration for readers."""
    return "\n".join(_page_lines()) + "\n"


def _page_lines() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "<!-- Made by `make docs` from chat_app/settings.py; change it there. -->"
    yield ""
    yield from textwrap.wrap(
        "Causerie reads one TOML file when it starts: `settings.toml` in the profile's settings"
        " folder (see the README), or in the folder given with `--profile-dir`. The first start"
        " writes it with every key commented out. A key that is unknown or holds something else"
        " than allowed is named, with its line. The window goes on with that key's default, unless"
        " the line may be about what protects you (the proxy, where to listen and be found, what is"
        " kept for others, notifications, privacy): then it asks first. Commands do not start.",
        100,
    )
    for name, section in sections_of(DEFAULTS):
        yield ""
        yield f"## [{name}]"
        yield ""
        yield section.__doc__ or ""
        yield ""
        yield "| key | default | allowed | what it does |"
        yield "| --- | --- | --- | --- |"
        for key in keys_of(name):
            cells = (
                f"`{key.name}`",
                f"`{toml_value(key.default)}`",
                allowed_by(key.rule),
                key.text,
            )
            yield "| " + " | ".join(cells) + " |"
