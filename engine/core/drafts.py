"""A draft as it is kept: one text, with those whom its names mention behind a mark at its end.

A mention is a place in the text and a participant id.  A text without mentions is kept as it is,
unless it has the mark in it: then an empty list follows, so that nothing of it is read as one.
"""

import re
from collections.abc import Sequence
from typing import Final

from engine.core.content import MAX_MENTIONS, Mention
from engine.core.ids import ParticipantId

_MARK: Final = "\x1e"
_LISTED: Final = re.compile(r"(\d{1,9}) (\d{1,9}) ([^ ,]{1,128})")


def kept_draft(text: str, mentions: Sequence[Mention]) -> str:
    if not mentions and _MARK not in text:
        return text
    listed = (f"{each.start} {each.length} {each.participant_id}" for each in mentions)
    return f"{text}{_MARK}{','.join(listed)}"


def draft_text(kept: str) -> str:
    return _parts(kept)[0]


def draft_mentions(kept: str) -> tuple[Mention, ...]:
    listed = _parts(kept)[1]
    found = (_LISTED.fullmatch(each) for each in listed.split(",")[:MAX_MENTIONS])
    return tuple(
        Mention(participant_id=ParticipantId(who), start=int(start), length=int(length))
        for start, length, who in (match.groups() for match in found if match is not None)
    )


def _parts(kept: str) -> tuple[str, str]:
    text, mark, listed = kept.rpartition(_MARK)
    return (text, listed) if mark else (kept, "")
