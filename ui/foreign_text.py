"""Text that other people wrote, made harmless before it meets words of ours."""

import re

_ONE_LINE_LIMIT = 300
_LONGEST_RUN = 30
_PEER_ID, _SHORT_PEER = 80, 12
_FILE_NAME, _END_OF_NAME = 80, 24
# Marks that turn the reading direction of what follows; a name must not turn our own words.
_BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# What terminals obey and no XML document may contain, but for what is a space.
_CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF)]
_LEFT_OUT = {ord(mark): None for mark in (*_BIDI_CONTROLS, *_CONTROLS) if not mark.isspace()}


def one_line(text: str, limit: int = _ONE_LINE_LIMIT) -> str:
    """Strangers' text for one line: no breaks, controls or direction overrides; bounded."""
    kept = text[: limit * 2].translate(_LEFT_OUT)
    line = " ".join(kept.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def file_name(name: str) -> str:
    """For one line: of one that is too long the middle is left out, never what tells its kind."""
    line = one_line(name)
    if len(line) <= _FILE_NAME:
        return line
    return f"{line[: _FILE_NAME - _END_OF_NAME - 1]}…{line[-_END_OF_NAME:]}"


def breaking(text: str, longest: int = _LONGEST_RUN) -> str:
    """To be shown only: a longer run, as of an address or a key, breaks where the line ends."""
    long_run = rf"[^\s\u200b]{{{longest + 1},}}"
    return re.sub(long_run, lambda run: "\u200b".join(run[0]), text)


def short_peer(peer_id: str) -> str:
    """The end of a peer's id: all of one kind begin alike."""
    shown = one_line(peer_id, _PEER_ID)
    return shown if len(shown) <= _SHORT_PEER else f"…{shown[-8:]}"
