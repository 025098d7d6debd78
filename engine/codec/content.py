"""``proto/content.proto`` ↔ ``engine.core.content``: the content of messages, bounded both ways.

Decoding raises ``RemoteProtocolError`` with the reason for anything out of bounds, and for bytes in
a non-canonical encoding.  Unknown fields are allowed only inside the body: an unknown kind decodes
to ``Unsupported``, so that it is shown and never dropped.  Groups and pairs share the form, but not
the kinds.  A kind of the other sort decodes to ``Unsupported`` without being parsed, so that
members of all versions judge the same bytes alike.  Channels, members and signatures are checked
elsewhere; a decoded ``Join`` has not been verified.
"""

import re
from dataclasses import replace
from itertools import chain
from typing import Literal, assert_never

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from engine.codec.join import decode_join
from engine.core.admin_log.acts import COMMITMENT_BYTES
from engine.core.blobs.manifest import ChunkName, Manifest, usable, usable_thumbnail
from engine.core.content import (
    INSTANCE_ID_BYTES,
    MAX_CAPTION_BYTES,
    MAX_FILE_BYTES,
    MAX_FILES_HELD,
    MAX_GOVERNING_BYTES,
    MAX_KEYS_WANTED,
    MAX_MENTIONS,
    MAX_MESSAGE_ID_BYTES,
    MAX_PIXELS,
    MAX_SAFE_INTEGER,
    MAX_TEXT_BYTES,
    NONCE_BYTES,
    AdminEntry,
    Annotation,
    Attachment,
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    Edit,
    EphemeralContent,
    FilesHeld,
    Governing,
    Join,
    KeysWanted,
    KeyWraps,
    Leave,
    PrekeyTold,
    Presence,
    Profile,
    ProfileUpdate,
    Reaction,
    Retraction,
    Text,
    Typing,
    Unsupported,
    are_mention_places,
    check_picture,
    clean_name,
)
from engine.core.emoji import is_emoji
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.file_names import NAMELESS, clean_file_name, clean_media_type
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs
from proto import content_pb2

MAX_CONTENT_BYTES = 100 * 1024
"""A file with all that may go with it, and the most that MVDS takes."""
MAX_EPHEMERAL_BYTES = 1024
_PARTICIPANT_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
"""16 bytes as base64url: the last character carries two bits of them."""


def encode_content(content: Content) -> bytes:
    """Encode content of a group (``lamport_timestamp`` 0) or of a pair.

    Raises LocalProtocolError for content that receivers would refuse or not understand.
    """
    try:
        wire = content_pb2.Content(
            instance_id=content.author.instance_id,
            sequence=content.author.sequence,
            previous_id=content.previous_id or "",
            nonce=content.nonce,
            sent_ms=content.sent_ms,
            lamport_timestamp=content.lamport_timestamp,
            replaces=content.replaces or "",
            body=_encode_body(content.body),
        )
        encoded = wire.SerializeToString(deterministic=True)
        is_of_pair = content.lamport_timestamp or isinstance(
            content.body, ContactRequest | ContactAnswer | ProfileUpdate | FilesHeld
        )
        read = decode_pair_content(encoded) if is_of_pair else decode_content(encoded)
    except (DecodeError, RemoteProtocolError, ValueError) as error:
        raise LocalProtocolError(f"content that nobody would accept: {error}") from error
    if read.body != content.body and isinstance(read.body, Unsupported | Text | Attachment | Edit):
        raise LocalProtocolError("content that others would understand in another way")
    return encoded


def decode_content(content: bytes) -> Content:
    """Decode content of a group.  Raises RemoteProtocolError."""
    wire = _parse(content)
    if wire.lamport_timestamp:
        raise RemoteProtocolError("content_bad_lamport_timestamp")
    return _content(wire, _decode_group_body(_parse_body(wire)))


def decode_pair_content(content: bytes) -> Content:
    """Decode content of a pair.  Raises RemoteProtocolError."""
    wire = _parse(content)
    if wire.lamport_timestamp > MAX_SAFE_INTEGER:
        raise RemoteProtocolError("content_bad_lamport_timestamp")
    if wire.replaces:
        raise RemoteProtocolError("content_bad_replacement")
    return _content(wire, _decode_pair_body(_parse_body(wire)))


def encode_ephemeral(content: EphemeralContent) -> bytes:
    wire = content_pb2.Ephemeral()
    match content:
        case Typing():
            wire.typing.active = content.active
            wire.typing.SetInParent()
        case Presence():
            wire.presence.answer_wanted = content.answer_wanted
            wire.presence.SetInParent()
        case _:
            assert_never(content)
    return wire.SerializeToString(deterministic=True)


def decode_ephemeral(content: bytes) -> Typing:
    """Decode ephemeral content of a group.  Raises RemoteProtocolError.

    That includes other kinds, because they may be dropped.
    """
    said = decode_pair_ephemeral(content)
    if not isinstance(said, Typing):
        raise RemoteProtocolError("ephemeral_unsupported")
    return said


def decode_pair_ephemeral(content: bytes) -> EphemeralContent:
    """Decode ephemeral content of a pair.  Raises RemoteProtocolError.

    That includes kinds of a newer version.
    """
    if len(content) > MAX_EPHEMERAL_BYTES:
        raise RemoteProtocolError("ephemeral_oversized")
    try:
        wire = content_pb2.Ephemeral.FromString(content)
    except DecodeError as error:
        raise RemoteProtocolError("ephemeral_malformed") from error
    match wire.WhichOneof("body"):
        case "typing":
            return Typing(active=wire.typing.active)
        case "presence":
            return Presence(answer_wanted=wire.presence.answer_wanted)
        case _:
            raise RemoteProtocolError("ephemeral_unsupported")


def _encode_body(body: Body) -> bytes:  # noqa: C901, PLR0912 - one case per kind of content
    wire = content_pb2.Body()
    match body:
        case Text():
            _encode_text(wire.text, body)
        case Attachment():
            _encode_attachment(wire.attachment, body)
        case Reaction():
            wire.reaction.target_id = body.target_id
            wire.reaction.emoji = body.emoji
            wire.reaction.removed = body.removed
        case Edit():
            wire.edit.target_id = body.target_id
            _encode_text(wire.edit.text, body.text)
        case Retraction():
            wire.retraction.target_id = body.target_id
        case Created():
            wire.created.name = clean_name(body.name)
        case Join():
            wire.join.ParseFromString(body.statement)
        case Leave():
            wire.leave.SetInParent()
        case Profile():
            wire.profile.name = clean_name(body.name)
        case ContactRequest():
            wire.contact_request.name = clean_name(body.name)
            wire.contact_request.picture = body.picture
            wire.contact_request.round = body.round
        case ContactAnswer():
            _encode_answer(wire.contact_answer, body)
        case ProfileUpdate():
            wire.profile_update.name = clean_name(body.name)
            wire.profile_update.picture = body.picture
        case FilesHeld():
            held = wire.files_held
            held.message_ids.extend(body.message_ids)
            held.let_go, held.as_of = body.let_go, body.as_of
        case AdminEntry(data=data):
            wire.admin_entry = data
        case PrekeyTold(data=data):
            wire.prekey = data
        case KeyWraps(data=data):
            wire.wraps = data
        case KeysWanted(commitments=commitments):
            wire.keys_wanted.commitments.extend(commitments)
        case Unsupported():
            raise LocalProtocolError("what we do not understand we cannot say")
        case _:
            assert_never(body)
    return wire.SerializeToString(deterministic=True)


def _encode_text(wire: content_pb2.Text, text: Text) -> None:
    wire.text = text.text
    wire.reply_to = text.reply_to or ""
    wire.mentions.extend(text.mentions)
    wire.forwarded = text.forwarded
    wire.mention_places.extend(chain.from_iterable(text.mention_places))


def _encode_attachment(wire: content_pb2.Attachment, attachment: Attachment) -> None:
    wire.name = attachment.name
    wire.media_type = attachment.media_type
    wire.size = attachment.size
    _encode_text(wire.caption, attachment.caption)
    if (manifest := attachment.manifest) is None:
        wire.inline = attachment.data
    else:
        wire.key, wire.root = manifest.key, manifest.root
        wire.chunk_count, wire.thumbnail = manifest.chunk_count, manifest.thumbnail
    wire.width = attachment.width
    wire.height = attachment.height


def _encode_answer(wire: content_pb2.ContactAnswer, answer: ContactAnswer) -> None:
    wire.SetInParent()
    wire.round = answer.round
    wire.answered_instance_id = answer.answered_instance
    wire.withdrawn = answer.withdrawn
    if answer.accepted:
        wire.accepted = True
        wire.name = clean_name(answer.name)
        wire.picture = answer.picture
    elif answer.name or answer.picture:
        raise LocalProtocolError("who declines says nothing about themselves")


def _parse(content: bytes) -> content_pb2.Content:
    """The part that groups and pairs share: size and shape, and the author."""
    if len(content) > MAX_CONTENT_BYTES:
        raise RemoteProtocolError("content_oversized")
    try:
        wire = content_pb2.Content.FromString(content)
    except DecodeError as error:
        raise RemoteProtocolError("content_malformed") from error
    if wire.SerializeToString(deterministic=True) != content or UnknownFieldSet(wire):
        raise RemoteProtocolError("content_not_canonical")
    if len(wire.instance_id) != INSTANCE_ID_BYTES:
        raise RemoteProtocolError("content_bad_instance_id")
    if len(wire.nonce) != NONCE_BYTES:
        raise RemoteProtocolError("content_bad_nonce")
    if not 1 <= wire.sequence <= MAX_SAFE_INTEGER:
        raise RemoteProtocolError("content_bad_sequence")
    if bool(wire.previous_id) == (wire.sequence == 1):
        raise RemoteProtocolError("content_bad_previous_id")
    if wire.sent_ms > MAX_SAFE_INTEGER:
        raise RemoteProtocolError("content_bad_time")
    return wire


def _parse_body(wire: content_pb2.Content) -> content_pb2.Body:
    try:
        return content_pb2.Body.FromString(wire.body)
    except DecodeError as error:
        raise RemoteProtocolError("content_malformed", "body") from error


def _content(wire: content_pb2.Content, body: Body) -> Content:
    return Content(
        author=AuthorSequence(
            instance_id=InstanceId(wire.instance_id),
            sequence=wire.sequence,
        ),
        previous_id=_message_id(wire.previous_id),
        nonce=wire.nonce,
        sent_ms=UnixMs(wire.sent_ms),
        body=body,
        lamport_timestamp=wire.lamport_timestamp,
        replaces=_message_id(wire.replaces),
    )


def _decode_group_body(wire: content_pb2.Body) -> Body:  # noqa: PLR0911 - one per kind
    match wire.WhichOneof("kind"):
        case "text":
            return _decode_text(wire.text)
        case "attachment":
            return _decode_attachment(wire.attachment)
        case "reaction" | "edit" | "retraction" as kind:
            return _decode_annotation(wire, kind)
        case "created":
            return Created(name=_name(wire.created.name))
        case "join":
            return decode_join(wire.join.SerializeToString(deterministic=True))
        case "leave":
            return Leave()
        case "profile":
            return _decode_profile(wire.profile)
        case "admin_entry" | "prekey" | "wraps" | "keys_wanted" as kind:
            return _decode_governing(wire, kind)
        case other:
            return _unsupported(other)


def _decode_governing(
    wire: content_pb2.Body, kind: Literal["admin_entry", "prekey", "wraps", "keys_wanted"]
) -> Governing | Unsupported:
    """Earlier versions decode all of them to ``Unsupported``, so none may be refused."""
    match kind:
        case "admin_entry" if len(wire.admin_entry) <= MAX_GOVERNING_BYTES:
            return AdminEntry(wire.admin_entry)
        case "prekey" if len(wire.prekey) <= MAX_GOVERNING_BYTES:
            return PrekeyTold(wire.prekey)
        case "wraps" if len(wire.wraps) <= MAX_GOVERNING_BYTES:
            return KeyWraps(wire.wraps)
        case "keys_wanted":
            commitments = tuple(wire.keys_wanted.commitments)
            lengths = {len(each) for each in commitments}
            if len(commitments) <= MAX_KEYS_WANTED and lengths == {COMMITMENT_BYTES}:
                return KeysWanted(commitments)
        case _:
            pass
    return Unsupported(kind=kind)


def _decode_pair_body(wire: content_pb2.Body) -> Body:  # noqa: PLR0911 - one per kind
    match wire.WhichOneof("kind"):
        case "text":
            return _decode_text(wire.text)
        case "attachment":
            return _decode_attachment(wire.attachment)
        case "reaction" | "edit" | "retraction" as kind:
            return _decode_annotation(wire, kind)
        case "contact_request":
            request = wire.contact_request
            return ContactRequest(
                name=_name(request.name),
                picture=_picture(request.picture),
                round=_round(request.round),
            )
        case "contact_answer":
            return _decode_answer(wire.contact_answer)
        case "profile_update":
            update = wire.profile_update
            return ProfileUpdate(name=_name(update.name), picture=_picture(update.picture))
        case "files_held":
            return _decode_files_held(wire.files_held)
        case other:
            return _unsupported(other)


def _decode_files_held(wire: content_pb2.FilesHeld) -> FilesHeld:
    if not 1 <= len(wire.message_ids) <= MAX_FILES_HELD or wire.as_of > MAX_SAFE_INTEGER:
        raise RemoteProtocolError("content_bad_files_held")
    found = [_message_id(each) for each in wire.message_ids]
    if not all(found):
        raise RemoteProtocolError("content_bad_files_held")
    message_ids = tuple(each for each in found if each is not None)
    return FilesHeld(message_ids, wire.let_go, wire.as_of)


def _decode_answer(wire: content_pb2.ContactAnswer) -> ContactAnswer:
    round_, answered = _round(wire.round), InstanceId(wire.answered_instance_id)
    if len(answered) != INSTANCE_ID_BYTES and (answered or wire.accepted):
        raise RemoteProtocolError("content_bad_answered_instance")
    if not wire.accepted:
        return ContactAnswer(
            accepted=False, round=round_, answered_instance=answered, withdrawn=wire.withdrawn
        )
    if wire.withdrawn:
        raise RemoteProtocolError("content_accepted_and_withdrawn")
    return ContactAnswer(
        accepted=True,
        round=round_,
        answered_instance=answered,
        name=_name(wire.name),
        picture=_picture(wire.picture),
    )


def _round(round_: int) -> int:
    if not 1 <= round_ <= MAX_SAFE_INTEGER:
        raise RemoteProtocolError("content_bad_round")
    return round_


def _decode_profile(wire: content_pb2.Profile) -> Body:
    """A first version decodes every profile to ``Unsupported``, so none may be refused."""
    try:
        return Profile(name=clean_name(wire.name))
    except ValueError:
        return Unsupported(kind="profile")


def _decode_annotation(
    wire: content_pb2.Body, kind: Literal["reaction", "edit", "retraction"]
) -> Annotation | Unsupported:
    """First versions decode all of them to ``Unsupported``, so none may be refused."""
    try:
        match kind:
            case "reaction":
                return _decode_reaction(wire.reaction)
            case "edit":
                text = _decode_text(wire.edit.text)
                target_id = _target_id(wire.edit.target_id)
                return Edit(target_id=target_id, text=replace(text, reply_to=None, forwarded=False))
            case "retraction":
                return Retraction(target_id=_target_id(wire.retraction.target_id))
            case _:
                assert_never(kind)
    except RemoteProtocolError:
        return Unsupported(kind=kind)


def _decode_attachment(wire: content_pb2.Attachment) -> Attachment | Unsupported:
    """First versions decode all of them to ``Unsupported``, so none may be refused.

    What it says of itself is cleaned, or believed only where it cannot lie.
    """
    manifest = None if wire.inline else _manifest(wire)
    if manifest is None and not 1 <= len(wire.inline) <= MAX_FILE_BYTES:
        return Unsupported(kind="attachment")
    try:
        caption = _decode_said(wire.caption, MAX_CAPTION_BYTES)
    except RemoteProtocolError:
        return Unsupported(kind="attachment")
    media_type = clean_media_type(wire.media_type)
    sides = wire.width, wire.height
    is_picture = media_type.startswith("image/") and all(0 < side <= MAX_PIXELS for side in sides)
    width, height = sides if is_picture else (0, 0)
    return Attachment(
        name=clean_file_name(wire.name) or NAMELESS,
        media_type=media_type,
        data=wire.inline,
        caption=caption,
        width=width,
        height=height,
        manifest=manifest,
    )


def _manifest(wire: content_pb2.Attachment) -> Manifest | None:
    """None if it contradicts itself; who else lies is found out when the chunks come."""
    manifest = Manifest(
        key=wire.key,
        root=ChunkName(wire.root),
        size=wire.size,
        thumbnail=usable_thumbnail(wire.thumbnail),
    )
    return manifest if usable(manifest, wire.chunk_count) else None


def _decode_reaction(wire: content_pb2.Reaction) -> Reaction:
    if not is_emoji(wire.emoji):
        raise RemoteProtocolError("content_bad_emoji")
    return Reaction(target_id=_target_id(wire.target_id), emoji=wire.emoji, removed=wire.removed)


def _target_id(text: str) -> MessageId:
    target_id = _message_id(text)
    if target_id is None:
        raise RemoteProtocolError("content_bad_message_id")
    return target_id


def _unsupported(kind: str | None) -> Unsupported:
    return Unsupported() if kind is None else Unsupported(kind=kind)


def _decode_text(wire: content_pb2.Text) -> Text:
    if not wire.text:
        raise RemoteProtocolError("content_empty_text")
    return _decode_said(wire, MAX_TEXT_BYTES)


def _decode_said(wire: content_pb2.Text, max_bytes: int) -> Text:
    text, mentions = wire.text, tuple(map(ParticipantId, wire.mentions))
    if len(text.encode()) > max_bytes:
        raise RemoteProtocolError("content_text_too_long")
    if len(mentions) > MAX_MENTIONS:
        raise RemoteProtocolError("content_too_many_mentions")
    if not all(map(_PARTICIPANT_ID.fullmatch, mentions)):
        raise RemoteProtocolError("content_bad_mention")
    return Text(
        text=text,
        reply_to=_message_id(wire.reply_to),
        mentions=mentions,
        mention_places=_mention_places(wire),
        forwarded=wire.forwarded,
    )


def _mention_places(wire: content_pb2.Text) -> tuple[tuple[int, int], ...]:
    """None at all if they are wrong: versions that do not know them take the text, too."""
    flat = wire.mention_places
    if not flat or len(flat) != 2 * len(wire.mentions):
        return ()
    places = tuple(zip(flat[::2], flat[1::2], strict=True))
    return places if are_mention_places(wire.text, places) else ()


def _name(name: str) -> str:
    try:
        return clean_name(name)
    except ValueError as error:
        raise RemoteProtocolError("content_bad_name") from error


def _picture(picture: bytes) -> bytes:
    try:
        check_picture(picture)
    except ValueError as error:
        raise RemoteProtocolError("content_bad_picture") from error
    return picture


def _message_id(text: str) -> MessageId | None:
    if not text:
        return None
    if len(text.encode()) > MAX_MESSAGE_ID_BYTES:
        raise RemoteProtocolError("content_bad_message_id")
    return MessageId(text)
