"""The content of messages, in groups and pairs: one thing that a person said or did.

SDS and MVDS treat content as opaque bytes; these are the types behind them
(``proto/content.proto``), with the bounds that author and receivers enforce.  Every content has
author sequence, previous id and nonce: they make message ids unique, reveal omissions, and let
holdings name ranges.  Bytes, signatures and permissions are handled elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from engine.core.blobs.manifest import Manifest
from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs

MAX_TEXT_BYTES = 64 * 1024
MAX_FILE_BYTES = 96 * 1024
"""Of a file that travels as content.  With its caption it fits into what MVDS carries."""
MAX_CAPTION_BYTES = 1024
MAX_PIXELS = 65_535
"""Along one side of a picture."""
MAX_NAME_CHARACTERS = 64
MAX_MENTIONS = 64
MAX_MESSAGE_ID_BYTES = 128
_SHORTEST_MENTION = 2
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


class Mention(Struct, frozen=True, kw_only=True):
    """A place in a text that means somebody: "@" and their name as it was typed.

    ``start`` and ``length`` count UTF-16 code units, as Qt does.
    """

    participant_id: ParticipantId
    start: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """1 to MAX_TEXT_BYTES bytes of UTF-8."""

    text: str = field(repr=False)
    reply_to: MessageId | None = None
    mentions: tuple[ParticipantId, ...] = ()
    """Who is meant, also without a place in the text."""
    mention_places: tuple[tuple[int, int], ...] = ()
    """Start and length of each of ``mentions`` in ``text``, as in ``Mention``; or none at all."""
    forwarded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A picture or another file: of 1 to MAX_FILE_BYTES bytes here, or with a manifest elsewhere.

    Name and media type are clean (``engine.core.file_names``) and as untrusted as the bytes.
    """

    name: str
    media_type: str
    data: bytes = field(repr=False)
    """b"" if there is a ``manifest``."""
    caption: Text = Text(text="")
    """Of 0 to MAX_CAPTION_BYTES bytes; has ``reply_to`` and mentions also without a text."""
    width: int = 0
    """Of a picture, as its author says, up to MAX_PIXELS; 0 for another file, as ``height``."""
    height: int = 0
    manifest: Manifest | None = None

    @property
    def size(self) -> int:
        return len(self.data) if self.manifest is None else self.manifest.size


class Reaction(Struct, frozen=True, kw_only=True):
    """The author chooses an emoji for a message, or takes it back."""

    target_id: MessageId
    emoji: str
    removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The author gives a text of their own, or a file, another text or caption.

    ``text`` is without ``reply_to`` and ``forwarded``.
    """

    target_id: MessageId
    text: Text


class Retraction(Struct, frozen=True, kw_only=True):
    """The author asks everybody to hide a text or a file of their own."""

    target_id: MessageId


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
    """Content of a newer version.  ``kind`` is the field's name if we know it.

    Also a malformed ``Annotation`` or profile: first versions knew these kinds by name only and
    took all of them, so that none may be refused.
    """

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


MAX_FILES_HELD = 64


class FilesHeld(Struct, frozen=True):
    """Messages of the other whose files the author has as a whole, 1 to MAX_FILES_HELD.

    ``let_go``: it had them and has them no more.  Of two statements about a file the one with the
    higher ``as_of`` counts; those of older versions have 0.
    """

    message_ids: tuple[MessageId, ...]
    let_go: bool = False
    as_of: int = 0


MAX_GOVERNING_BYTES = 52 * 1024
"""Of one of the next three; their own decoders know more."""


class AdminEntry(Struct, frozen=True):
    """An entry of a governed group's admin log, encoded and unchecked."""

    data: bytes


class PrekeyTold(Struct, frozen=True):
    """A prekey of the author's for this group, encoded and unchecked."""

    data: bytes


class KeyWraps(Struct, frozen=True):
    """The key of an epoch, sealed to members: a chunk, encoded and unchecked."""

    data: bytes


MAX_KEYS_WANTED = 64


class KeysWanted(Struct, frozen=True):
    """Commitments of 1 to MAX_KEYS_WANTED epochs whose keys the author was given and lacks."""

    commitments: tuple[bytes, ...]


Governing: TypeAlias = AdminEntry | PrekeyTold | KeyWraps | KeysWanted
"""What keeps a governed group going; it makes no row by itself."""

Annotation: TypeAlias = Reaction | Edit | Retraction
"""What speaks of another message and makes no row of its own."""
ANNOTATION_KINDS = frozenset(["reaction", "edit", "retraction"])

Body: TypeAlias = (
    Text
    | Attachment
    | Annotation
    | Created
    | Join
    | Leave
    | Profile
    | ContactRequest
    | ContactAnswer
    | ProfileUpdate
    | FilesHeld
    | Governing
    | Unsupported
)
"""Texts, files and annotations are said in groups and pairs.

``ContactRequest``, ``ContactAnswer``, ``ProfileUpdate`` and ``FilesHeld`` are said only in pairs,
``Governing`` only in groups.
"""


class Content(Struct, frozen=True, kw_only=True, gc=False):
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
    cleaned = visible_line(name)
    if not cleaned:
        raise ValueError("nothing is left of the name")
    if len(cleaned) > MAX_NAME_CHARACTERS:
        raise NameTooLongError(f"the name is longer than {MAX_NAME_CHARACTERS} characters")
    return cleaned


def visible_line(text: str) -> str:
    """``text`` on one line, without invisible characters; "" if nothing could be seen of it."""
    spaced = "".join(" " if c in _NAME_SPACES else c for c in text)
    visible = "".join(c for c in spaced if ord(c) not in _STRIPPED)
    cleaned = " ".join(visible.split())
    return cleaned if cleaned.strip(_JOINERS + " ") else ""


def utf16_length(text: str) -> int:
    """The length in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)


def are_mention_places(text: str, places: Sequence[tuple[int, int]]) -> bool:
    """Whether ``places`` ascend, are disjoint, and each is an "@" and a name in ``text``."""
    units = text.encode("utf-16-le", "surrogatepass")
    passed = 0
    for start, length in places:
        place = units[2 * start : 2 * (start + length)]
        if start < passed or length < _SHORTEST_MENTION or len(place) != 2 * length:
            return False
        try:
            if not place.decode("utf-16-le").startswith("@"):
                return False
        except UnicodeDecodeError:  # it ends within a character
            return False
        passed = start + length
    return True


def check_picture(picture: bytes) -> None:
    """Raises ValueError unless it is empty, or PNG or JPEG by its first bytes and small enough.

    The decoder must check the rest, with limits of its own.
    """
    if len(picture) > MAX_PICTURE_BYTES:
        raise PictureTooLargeError(f"the picture is larger than {MAX_PICTURE_BYTES} bytes")
    if picture and not picture.startswith((_PNG_MAGIC, _JPEG_MAGIC)):
        raise ValueError("the picture is neither PNG nor JPEG")
