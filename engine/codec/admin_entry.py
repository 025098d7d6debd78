"""``proto/admin.proto`` ↔ entries of the admin log, bounded both ways (docs/admin-log.md).

An entry's body is signed and hashed as it came, and never encoded again.  The frame, which is the
author's key, the body and the heads, is checked strictly.  An act that breaks a bound, or that this
version would write in another way, is ``Unsupported``: members of all versions then agree on the
places of entries, which decide what knew what, and one that does not understand an act waits for
nothing.  ``engine.crypto.admin_entry`` checks keys and signatures.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Final, TypeVar, assert_never

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from engine.codec.canonical import one_form
from engine.codec.message_id import ID_BYTES, id_bytes, id_text
from engine.codec.tuples import tuple_bytes
from engine.core.admin_log.acts import (
    COMMITMENT_BYTES,
    MAX_HEADS,
    MAX_LAST_MESSAGES,
    MAX_RECIPIENTS,
    MAX_TOPIC_CHARACTERS,
    MAX_USES,
    TOKEN_HASH_BYTES,
    TOPIC_NAME_BYTES,
    Act,
    Add,
    Create,
    DeleteMessage,
    Demote,
    EndLink,
    EntryId,
    Invite,
    LastMessage,
    Left,
    MakeEpoch,
    Promote,
    Remove,
    Rename,
    Revoke,
    Role,
    SetInviters,
    SetPicture,
    SetTopic,
    Unsupported,
)
from engine.core.content import MAX_SAFE_INTEGER, check_picture, clean_name, visible_line
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import KEY_BYTES, SIGNATURE_BYTES, InstanceId, ParticipantId, UnixMs
from proto import admin_pb2

MAX_ENTRY_BYTES: Final = 40 * 1024
"""An epoch for MAX_RECIPIENTS, with MAX_HEADS."""
ENTRY_ID_BYTES: Final = 32
_SIGNATURE_DOMAIN: Final = "causerie/2/admin-entry"
_ID_DOMAIN: Final = "causerie/2/admin-entry-id"
_M = TypeVar("_M", bound=Message)


class EntryFrame(Struct, frozen=True, kw_only=True):
    """An entry before its signature is checked."""

    author_key: bytes
    signature: bytes
    body: bytes
    """As received."""
    lamport_timestamp: int
    sent_ms: UnixMs
    heads: tuple[EntryId, ...]
    act: Act


def encode_body(
    act: Act, *, lamport_timestamp: int, sent_ms: UnixMs, heads: Iterable[EntryId]
) -> bytes:
    """What an author signs.  Raises LocalProtocolError for what others would not understand."""
    try:
        encoded_act = _encode_act(act)
        body = admin_pb2.Body(
            lamport_timestamp=lamport_timestamp,
            sent_ms=sent_ms,
            heads=sorted(map(entry_id_bytes, heads)),
            act=encoded_act,
        ).SerializeToString(deterministic=True)
        _parse_body(body)
    except (RemoteProtocolError, ValueError) as error:
        raise LocalProtocolError(f"an entry that nobody would accept: {error}") from error
    if _decode_act(encoded_act) != act:
        raise LocalProtocolError("an entry that others would understand in another way")
    return body


def encode_entry(*, author_key: bytes, body: bytes, signature: bytes) -> bytes:
    return admin_pb2.Entry(author=author_key, body=body, signature=signature).SerializeToString(
        deterministic=True
    )


def decode_entry(data: bytes) -> EntryFrame:
    """Checks shape and bounds only.

    Raises RemoteProtocolError ``entry_oversized``, ``entry_malformed``, ``not_canonical``,
    ``entry_bad_key``, ``entry_bad_signature``, ``entry_bad_time``, ``entry_bad_heads``.
    """
    if len(data) > MAX_ENTRY_BYTES:
        raise RemoteProtocolError("entry_oversized")
    wire = _parsed(admin_pb2.Entry, data)
    if len(wire.author) != KEY_BYTES:
        raise RemoteProtocolError("entry_bad_key")
    if len(wire.signature) != SIGNATURE_BYTES:
        raise RemoteProtocolError("entry_bad_signature")
    body = _parse_body(wire.body)
    return EntryFrame(
        author_key=wire.author,
        signature=wire.signature,
        body=wire.body,
        lamport_timestamp=body.lamport_timestamp,
        sent_ms=UnixMs(body.sent_ms),
        heads=tuple(map(_entry_id, body.heads)),
        act=_decode_act(body.act),
    )


def signed_bytes(group_id: bytes, author_key: bytes, body: bytes) -> bytes:
    return tuple_bytes(_SIGNATURE_DOMAIN, group_id, author_key, body)


def entry_id_of(group_id: bytes, author_key: bytes, body: bytes) -> EntryId:
    """The signature is no part of it: one may sign the same twice, in two ways."""
    return _entry_id(sha256(tuple_bytes(_ID_DOMAIN, group_id, author_key, body)).digest())


def _parse_body(data: bytes) -> admin_pb2.Body:
    wire = _parsed(admin_pb2.Body, data)
    if not 1 <= wire.lamport_timestamp <= MAX_SAFE_INTEGER or wire.sent_ms > MAX_SAFE_INTEGER:
        raise RemoteProtocolError("entry_bad_time")
    heads = wire.heads
    ascend = all(one < other for one, other in pairwise(heads))
    if not ascend or len(heads) > MAX_HEADS or any(len(h) != ENTRY_ID_BYTES for h in heads):
        raise RemoteProtocolError("entry_bad_heads")
    return wire


def _parsed(kind: type[_M], data: bytes) -> _M:
    try:
        wire = kind.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("entry_malformed") from error
    if one_form(wire) != data:
        raise RemoteProtocolError("not_canonical", "admin entry")
    return wire


# --- acts ---------------------------------------------------------------------------------------


def _encode_act(act: Act) -> bytes:  # noqa: C901, PLR0912 - one case per kind of act
    wire = admin_pb2.Act()
    match act:
        case Create(name=name):
            wire.create.name = clean_name(name)
        case EndLink():
            wire.end_link.CopyFrom(_encode_end(act))
        case Add():
            wire.add.member = id_bytes_of(act.member)
            wire.add.invitation = entry_id_bytes(act.invitation) if act.invitation else b""
            wire.add.reads_from = act.reads_from or 0
        case Remove():
            wire.remove.member = id_bytes_of(act.member)
            wire.remove.last_messages.extend(map(_encode_last, act.last_messages))
        case Promote(member=member):
            wire.promote.member = id_bytes_of(member)
        case Demote(member=member):
            wire.demote.member = id_bytes_of(member)
        case Rename(name=name):
            wire.rename.text = clean_name(name)
        case SetPicture(picture=picture):
            wire.set_picture.picture = picture
            wire.set_picture.SetInParent()
        case SetTopic(topic=topic):
            wire.set_topic.text = topic
            wire.set_topic.SetInParent()
        case SetInviters(least=least):
            wire.set_inviters.members = least is Role.MEMBER
            wire.set_inviters.SetInParent()
        case Invite():
            wire.invite.token_hash, wire.invite.uses = act.token_hash, act.uses
            wire.invite.expires_ms = act.expires_ms
        case Revoke(invitation=invitation):
            wire.revoke.invitation = entry_id_bytes(invitation)
        case DeleteMessage():
            wire.delete_message.message_id = id_bytes(act.message_id)
            wire.delete_message.author = id_bytes_of(act.author)
        case MakeEpoch():
            wire.make_epoch.commitment = act.commitment
            wire.make_epoch.recipients = b"".join(sorted(map(id_bytes_of, act.recipients)))
        case Unsupported():
            raise LocalProtocolError("what we do not understand we cannot do")
        case _:
            assert_never(act)
    return wire.SerializeToString(deterministic=True)


def _encode_end(act: EndLink) -> admin_pb2.EndLink:
    return admin_pb2.EndLink(
        name=clean_name(act.name),
        members=b"".join(sorted(map(id_bytes_of, act.members))),
        left=[
            admin_pb2.Left(
                member=id_bytes_of(one.member),
                last_messages=list(map(_encode_last, one.last_messages)),
            )
            for one in act.left
        ],
        topic_name=act.topic_name,
        create_signature=act.create_signature,
        key_commitment=act.key_commitment,
    )


def _encode_last(last: LastMessage) -> admin_pb2.LastMessage:
    return admin_pb2.LastMessage(
        instance_id=last.instance_id,
        sequence=last.sequence,
        message_id=id_bytes(last.message_id),
    )


def _decode_act(data: bytes) -> Act:
    kind = ""
    try:
        wire = admin_pb2.Act.FromString(data)
        kind = wire.WhichOneof("kind") or ""
        if not kind or one_form(wire) != data:
            return Unsupported(kind=kind)
        return _act(kind, wire)
    except (DecodeError, ValueError):
        return Unsupported(kind=kind)


def _act(kind: str, wire: admin_pb2.Act) -> Act:  # noqa: C901, PLR0911, PLR0912 - a case per kind
    """Raises ValueError."""
    match kind:
        case "create":
            return Create(name=clean_name(wire.create.name))
        case "end_link":
            return _decode_end(wire.end_link)
        case "add":
            return Add(
                member=_participant(wire.add.member),
                invitation=entry_id_from(wire.add.invitation) if wire.add.invitation else None,
                reads_from=_number(wire.add.reads_from) or None,
            )
        case "remove":
            return _decode_remove(wire.remove)
        case "promote":
            return Promote(member=_participant(wire.promote.member))
        case "demote":
            return Demote(member=_participant(wire.demote.member))
        case "rename":
            return Rename(name=clean_name(wire.rename.text))
        case "set_picture":
            check_picture(wire.set_picture.picture)
            return SetPicture(picture=wire.set_picture.picture)
        case "set_topic":
            return SetTopic(topic=_topic(wire.set_topic.text))
        case "set_inviters":
            return SetInviters(least=Role.MEMBER if wire.set_inviters.members else Role.ADMIN)
        case "invite":
            return _decode_invite(wire.invite)
        case "revoke":
            return Revoke(invitation=entry_id_from(wire.revoke.invitation))
        case "delete_message":
            return DeleteMessage(
                message_id=id_text(_exactly(ID_BYTES, wire.delete_message.message_id)),
                author=_participant(wire.delete_message.author),
            )
        case _:
            return _decode_epoch(wire.make_epoch)


def _decode_remove(wire: admin_pb2.Remove) -> Remove:
    return Remove(member=_participant(wire.member), last_messages=_decode_last(wire.last_messages))


def _decode_last(wire: Sequence[admin_pb2.LastMessage]) -> tuple[LastMessage, ...]:
    if len(wire) > MAX_LAST_MESSAGES:
        raise ValueError("too many instances")
    last = tuple(
        LastMessage(
            InstanceId(_exactly(ID_BYTES, one.instance_id)),
            _number(one.sequence, least=1),
            id_text(_exactly(ID_BYTES, one.message_id)),
        )
        for one in wire
    )
    _require_ascending([one.instance_id for one in last])
    return last


def _decode_end(wire: admin_pb2.EndLink) -> EndLink:
    _require_ascending([one.member for one in wire.left])
    return EndLink(
        name=clean_name(wire.name),
        members=_people(wire.members),
        left=tuple(
            Left(_participant(one.member), _decode_last(one.last_messages)) for one in wire.left
        ),
        topic_name=_exactly(TOPIC_NAME_BYTES, wire.topic_name),
        create_signature=_exactly(SIGNATURE_BYTES, wire.create_signature),
        key_commitment=_exactly(COMMITMENT_BYTES, wire.key_commitment),
    )


def _decode_invite(wire: admin_pb2.Invite) -> Invite:
    if not 1 <= wire.uses <= MAX_USES:
        raise ValueError("uses")
    return Invite(
        token_hash=_exactly(TOKEN_HASH_BYTES, wire.token_hash),
        uses=wire.uses,
        expires_ms=UnixMs(_number(wire.expires_ms)),
    )


def _decode_epoch(wire: admin_pb2.MakeEpoch) -> MakeEpoch:
    if not wire.recipients:
        raise ValueError("recipients")
    return MakeEpoch(
        commitment=_exactly(COMMITMENT_BYTES, wire.commitment),
        recipients=_people(wire.recipients),
    )


def _people(packed: bytes) -> frozenset[ParticipantId]:
    if len(packed) // ID_BYTES > MAX_RECIPIENTS or len(packed) % ID_BYTES:
        raise ValueError("people")
    ids = [packed[at : at + ID_BYTES] for at in range(0, len(packed), ID_BYTES)]
    _require_ascending(ids)
    return frozenset(map(_participant, ids))


def _topic(text: str) -> str:
    topic = visible_line(text)
    if len(topic) > MAX_TOPIC_CHARACTERS:
        raise ValueError("the topic is too long")
    return topic


def _number(value: int, *, least: int = 0) -> int:
    if not least <= value <= MAX_SAFE_INTEGER:
        raise ValueError("a number out of bounds")
    return value


def _exactly(length: int, value: bytes) -> bytes:
    if len(value) != length:
        raise ValueError("another length")
    return value


def _require_ascending(values: Sequence[bytes]) -> None:
    if any(one >= other for one, other in pairwise(values)):
        raise ValueError("not ascending")


# --- ids ----------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _participant(id_: bytes) -> ParticipantId:
    """Epochs name the same people again and again."""
    return ParticipantId(id_text(_exactly(ID_BYTES, id_)))


@lru_cache(maxsize=4096)
def id_bytes_of(who: ParticipantId) -> bytes:
    """The 16 bytes of a participant id.  Raises ValueError."""
    return _exactly(ID_BYTES, urlsafe_b64decode(who + "=="))


def entry_id_from(id_: bytes) -> EntryId:
    """Of its 32 bytes.  Raises ValueError."""
    return _entry_id(_exactly(ENTRY_ID_BYTES, id_))


def _entry_id(id_: bytes) -> EntryId:
    return EntryId(urlsafe_b64encode(id_).decode().rstrip("="))


def entry_id_bytes(entry_id: EntryId) -> bytes:
    """The 32 bytes of an entry's id.  Raises ValueError."""
    return _exactly(ENTRY_ID_BYTES, urlsafe_b64decode(entry_id + "="))
