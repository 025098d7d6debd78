"""Checks and cleans the user's input; raises InputError."""

from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.content import (
    MAX_NAME_CHARACTERS,
    MAX_TEXT_BYTES,
    NameTooLongError,
    PictureTooLargeError,
    Text,
    check_picture,
    clean_name,
)
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


def usable_text(text: str) -> Text:
    size = len(text.encode("utf-8", "replace"))
    if not text.strip():
        raise InputError(InputFlaw.TEXT_EMPTY)
    if size > MAX_TEXT_BYTES:
        raise InputError(InputFlaw.TEXT_TOO_LONG, given=size, limit=MAX_TEXT_BYTES)
    return Text(text=text.encode("utf-8", "replace").decode())
