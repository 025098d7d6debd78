"""Helps to complain about a line of the settings file: where it stands, and what may be meant."""

import difflib
import re
from collections.abc import Mapping
from typing import Final

_HEADER: Final = re.compile(r"\s*\[\s*(?P<name>[A-Za-z0-9_-]+)\s*\]\s*(#.*)?")


def resembles(key: str, names: set[str]) -> bool:
    return bool(difflib.get_close_matches(key[:64].casefold(), names, n=1))


def shown_key(key: str) -> str:
    """A key is the user's own text, but may be anything: on one line and not endless."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", key) else f"{key[:64]!r}"


def did_you_mean(name: str, known: Mapping[str, object] | list[str]) -> str:
    close = difflib.get_close_matches(name[:64], list(known), n=1)
    return f"did you mean {close[0]}? " if close else ""


def line_of(text: str, section: str, key: str) -> int | None:
    """The line of a key in the usual way of writing it; None for dotted or quoted spellings."""
    assignment = re.compile(rf"\s*{re.escape(key)}\s*=")
    header_of_key = re.compile(rf"\s*\[\[?\s*{re.escape(key)}\s*[\].]")
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.fullmatch(line)
        if not section and header_of_key.match(line):
            return number
        if header:
            current = header["name"]
        elif current == section and assignment.match(line):
            return number
    return None
