"""Text that other people wrote, made harmless before it meets words of ours."""

import re

_ONE_LINE_LIMIT = 300
_LONG_RUN = re.compile(r"[^\s\u200b]{31,}")
# Marks that turn the reading direction of what follows; a name must not turn our own words.
_BIDI_CONTROLS = {
    ord(mark): None for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}


def one_line(text: str, limit: int = _ONE_LINE_LIMIT) -> str:
    """Strangers' text for one line: no breaks, no direction overrides, no unbounded length."""
    kept = text[: limit * 2].translate(_BIDI_CONTROLS)
    line = " ".join(kept.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def breaking(text: str) -> str:
    """To be shown only: an address or a key in it breaks where the line ends."""
    return _LONG_RUN.sub(lambda run: "\u200b".join(run[0]), text)
