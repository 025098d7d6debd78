"""Checks and cleans the user's input; raises InputError."""

from collections.abc import Sequence

from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.content import (
    MAX_MENTIONS,
    MAX_NAME_CHARACTERS,
    MAX_TEXT_BYTES,
    Mention,
    NameTooLongError,
    PictureTooLargeError,
    Text,
    are_mention_places,
    check_picture,
    clean_name,
)
from engine.core.emoji import is_emoji
from engine.core.errors import InputError, InputFlaw


def usable_name(name: str) -> str:
    try:
        return clean_name(name)
    except NameTooLongError as error:
        raise InputError(InputFlaw.NAME_TOO_LONG, limit=MAX_NAME_CHARACTERS) from error
    except ValueError as error:
        raise InputError(InputFlaw.NAME_EMPTY) from error


def require_usable_picture(picture: bytes) -> None:
    try:
        check_picture(picture)
    except PictureTooLargeError as error:
        raise InputError(InputFlaw.PICTURE_TOO_LARGE, limit=MAX_PICTURE_BYTES) from error
    except ValueError as error:
        raise InputError(InputFlaw.PICTURE_UNKNOWN) from error


def usable_emoji(emoji: str) -> str:
    if not is_emoji(emoji):
        raise InputError(InputFlaw.NO_EMOJI)
    return emoji


def usable_text(text: str, mentions: Sequence[Mention] = ()) -> Text:
    size = len(text.encode("utf-8", "replace"))
    if not text.strip():
        raise InputError(InputFlaw.TEXT_EMPTY)
    if size > MAX_TEXT_BYTES:
        raise InputError(InputFlaw.TEXT_TOO_LONG, given=size, limit=MAX_TEXT_BYTES)
    ordered = sorted(mentions, key=lambda mention: mention.start)
    places = tuple((mention.start, mention.length) for mention in ordered)
    if len(places) > MAX_MENTIONS or not are_mention_places(text, places):
        raise InputError(InputFlaw.MENTION, limit=MAX_MENTIONS)
    return Text(
        text=text.encode("utf-8", "replace").decode(),
        mentions=tuple(mention.participant_id for mention in ordered),
        mention_places=places,
    )
