"""Checks and cleans the user's input; raises InputError."""

from collections.abc import Sequence

from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.content import (
    MAX_CAPTION_BYTES,
    MAX_FILE_BYTES,
    MAX_MENTIONS,
    MAX_NAME_CHARACTERS,
    MAX_PIXELS,
    MAX_TEXT_BYTES,
    Attachment,
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
from engine.core.file_names import clean_file_name, clean_media_type


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
    if not text.strip():
        raise InputError(InputFlaw.TEXT_EMPTY)
    return _text(text, mentions, MAX_TEXT_BYTES)


def usable_caption(text: str, mentions: Sequence[Mention] = ()) -> Text:
    """It may be empty."""
    return _text(text if text.strip() else "", mentions, MAX_CAPTION_BYTES)


def usable_file(  # noqa: PLR0913 - one per fact of the file
    name: str, media_type: str, data: bytes, caption: Text, *, width: int, height: int
) -> Attachment:
    """A picture has a media type of pictures, a width and a height; else both become 0."""
    if not data:
        raise InputError(InputFlaw.FILE_EMPTY)
    if len(data) > MAX_FILE_BYTES:
        raise InputError(InputFlaw.FILE_TOO_LARGE, given=len(data), limit=MAX_FILE_BYTES)
    return usable_attachment(name, media_type, caption, data=data, width=width, height=height)


def usable_attachment(  # noqa: PLR0913 - one per fact of the file
    name: str,
    media_type: str,
    caption: Text,
    *,
    data: bytes = b"",
    width: int,
    height: int,
) -> Attachment:
    """Without ``data``, for a manifest that is still to be made."""
    cleaned = clean_file_name(name.encode("utf-8", "replace").decode())
    if not cleaned:
        raise InputError(InputFlaw.FILE_NAME)
    usable_type = clean_media_type(media_type)
    is_picture = usable_type.startswith("image/") and all(
        0 < side <= MAX_PIXELS for side in (width, height)
    )
    return Attachment(
        name=cleaned,
        media_type=usable_type,
        data=data,
        caption=caption,
        width=width if is_picture else 0,
        height=height if is_picture else 0,
    )


def _text(text: str, mentions: Sequence[Mention], max_bytes: int) -> Text:
    size = len(text.encode("utf-8", "replace"))
    if size > max_bytes:
        raise InputError(InputFlaw.TEXT_TOO_LONG, given=size, limit=max_bytes)
    ordered = sorted(mentions, key=lambda mention: mention.start)
    places = tuple((mention.start, mention.length) for mention in ordered)
    if len(places) > MAX_MENTIONS or not are_mention_places(text, places):
        raise InputError(InputFlaw.MENTION, limit=MAX_MENTIONS)
    return Text(
        text=text.encode("utf-8", "replace").decode(),
        mentions=tuple(mention.participant_id for mention in ordered),
        mention_places=places,
    )
