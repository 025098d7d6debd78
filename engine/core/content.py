"""The content of messages, in groups and pairs: one thing that a person said or did.

SDS and MVDS treat content as opaque bytes; these are the types behind them
(``proto/content.proto``), with the bounds that author and receivers enforce.  Every content has
author sequence, previous id and nonce: they make message ids unique, reveal omissions, and let
holdings name ranges.  Bytes, signatures and permissions are handled elsewhere.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs

MAX_TEXT_BYTES = 64 * 1024
MAX_NAME_CHARACTERS = 64
MAX_MENTIONS = 64
MAX_MESSAGE_ID_BYTES = 128
NONCE_BYTES = 16
INSTANCE_ID_BYTES = 16
NOBODY = InstanceId(b"")
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_JPEG_MAGIC = b"\xff\xd8\xff"
MAX_SAFE_INTEGER = 2**53 - 1
"""The largest number of milliseconds or sequence that every peer can represent exactly."""

# Bidirectional controls turn "exe.gpj" into "jpg.exe".  Invisible characters make two names look
# alike or empty.  U+200C and U+200D stay: Persian and composed emoji need them.
_STRIPPED = frozenset(
    [
        *range(0x20),
        *range(0x7F, 0xA0),
        0xAD,
        0x61C,
        0x115F,
        0x1160,
        0x180E,
        0x200B,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
        0x3164,
        0xFEFF,
        0xFFA0,
        *range(0xFFF9, 0xFFFC),
        *range(0xE0000, 0xE0080),
    ]
)
_JOINERS = "\u200c\u200d"
_NAME_SPACES = frozenset("\t\n\r\x0b\x0c\u2028\u2029")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """1 to MAX_TEXT_BYTES bytes of UTF-8."""

    text: str = field(repr=False)
    reply_to: MessageId | None = None
    mentions: tuple[ParticipantId, ...] = ()


class Created(Struct, frozen=True, kw_only=True):
    """The group was created."""

    name: str


class Join(Struct, frozen=True, kw_only=True):
    """A self-signed membership statement.

    ``statement`` is what was signed, as received, and can be shown to others.  The fields are its
    content, with the name cleaned for display.  Decoding proves nothing: verify it.
    """

    statement: bytes
    public_key: bytes
    encryption_key: bytes
    name: str
    joined_ms: UnixMs


class Leave(Struct, frozen=True, kw_only=True):
    """The author leaves the group, at the content's ``sent_ms``."""


class Profile(Struct, frozen=True, kw_only=True):
    """The author's name in this group from the content's ``sent_ms`` on."""

    name: str


class Unsupported(Struct, frozen=True, kw_only=True):
    """Content of a newer version.  ``kind`` is the field's name if we know it."""

    kind: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRequest:
    """The author asks to talk one to one.  ``picture`` is PNG or JPEG, b"" if there is none.

    ``round``: see ``engine.core.agreement``.
    """

    name: str
    round: int
    picture: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactAnswer:
    """Yes or no, in a round.  A decline carries no name."""

    accepted: bool
    round: int
    answered_instance: InstanceId = NOBODY
    """The peer instance that is answered; b"" when we withdraw a request to a peer never heard."""
    withdrawn: bool = False
    """A decline of the author's own request."""
    name: str = ""
    picture: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileUpdate:
    """The author's name and picture from now on, sent to a contact."""

    name: str
    picture: bytes = field(default=b"", repr=False)


Body: TypeAlias = (
    Text
    | Created
    | Join
    | Leave
    | Profile
    | ContactRequest
    | ContactAnswer
    | ProfileUpdate
    | Unsupported
)
"""In groups: the first five.  In pairs: Text and the three about contacts."""


class Content(Struct, frozen=True, kw_only=True):
    author: AuthorSequence
    previous_id: MessageId | None
    """This instance's previous content in the channel; None for its first."""
    nonce: bytes
    sent_ms: UnixMs
    body: Body
    lamport_timestamp: int = 0
    """Used in pairs; 0 in a group, where SDS carries it."""
    replaces: MessageId | None = None
    """In a group: the author's own message, dated by a wrong clock, that this one replaces."""


class Typing(Struct, frozen=True, kw_only=True):
    active: bool


class Presence(Struct, frozen=True, kw_only=True):
    """The author is online; ``answer_wanted`` asks whether the peer is, too."""

    answer_wanted: bool


EphemeralContent: TypeAlias = Typing | Presence
"""The content of an ephemeral message; ``Presence`` only in pairs."""


class NameTooLongError(ValueError):
    """More than MAX_NAME_CHARACTERS are left."""


class PictureTooLargeError(ValueError):
    """More than MAX_PICTURE_BYTES."""


def clean_name(name: str) -> str:
    """``name`` as it may be shown: no bidirectional, control or invisible characters, one line.

    Raises ValueError unless 1 to MAX_NAME_CHARACTERS characters are left.
    """
    spaced = "".join(" " if c in _NAME_SPACES else c for c in name)
    visible = "".join(c for c in spaced if ord(c) not in _STRIPPED)
    cleaned = " ".join(visible.split())
    if not cleaned.strip(_JOINERS + " "):
        raise ValueError("nothing is left of the name")
    if len(cleaned) > MAX_NAME_CHARACTERS:
        raise NameTooLongError(f"the name is longer than {MAX_NAME_CHARACTERS} characters")
    return cleaned


def check_picture(picture: bytes) -> None:
    """Raises ValueError unless it is empty, or PNG or JPEG by its first bytes and small enough.

    The decoder must check the rest, with limits of its own.
    """
    if len(picture) > MAX_PICTURE_BYTES:
        raise PictureTooLargeError(f"the picture is larger than {MAX_PICTURE_BYTES} bytes")
    if picture and not picture.startswith((_PNG_MAGIC, _JPEG_MAGIC)):
        raise ValueError("the picture is neither PNG nor JPEG")
