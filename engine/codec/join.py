"""The bytes of a join statement: a newcomer's keys and name for one group, signed by itself.

It is signed apart from the message that carries it, so that it can be shown later to a member who
never saw that message.  The signature covers (domain, group, public key, X25519 key, name, time),
the name exactly as written.  The statement is checked, kept and passed on as received, so it has
only one form.  ``engine.crypto.join`` checks keys and signature.
"""

from google.protobuf.message import DecodeError

from engine.codec.canonical import one_form
from engine.codec.envelope import MAX_STATEMENT_BYTES
from engine.codec.tuples import tuple_bytes
from engine.core.content import MAX_SAFE_INTEGER, Join, clean_name
from engine.core.errors import RemoteProtocolError
from engine.core.ids import KEY_BYTES, SIGNATURE_BYTES, UnixMs
from proto import content_pb2

_DOMAIN = "causerie/2/join"


def encode_join(
    *,
    public_key: bytes,
    encryption_key: bytes,
    name: str,
    joined_ms: UnixMs,
    signature: bytes,
) -> bytes:
    """A statement.  Raises ValueError if the name is unusable."""
    return content_pb2.Join(
        public_key=public_key,
        encryption_key=encryption_key,
        name=clean_name(name),
        joined_ms=joined_ms,
        signature=signature,
    ).SerializeToString(deterministic=True)


def decode_join(statement: bytes) -> Join:
    """Checks shape and bounds only, no signature.  Raises RemoteProtocolError."""
    wire = _parse(statement)
    if len(wire.public_key) != KEY_BYTES or len(wire.encryption_key) != KEY_BYTES:
        raise RemoteProtocolError("join_bad_key")
    if len(wire.signature) != SIGNATURE_BYTES:
        raise RemoteProtocolError("join_bad_signature")
    if not 1 <= wire.joined_ms <= MAX_SAFE_INTEGER:
        raise RemoteProtocolError("join_bad_time")
    try:
        name = clean_name(wire.name)
    except ValueError as error:
        raise RemoteProtocolError("join_bad_name") from error
    return Join(
        statement=statement,
        public_key=wire.public_key,
        encryption_key=wire.encryption_key,
        name=name,
        joined_ms=UnixMs(wire.joined_ms),
    )


def signed_join(statement: bytes, *, group_id: bytes) -> tuple[bytes, bytes]:
    """(signature, signed bytes).  Raises RemoteProtocolError."""
    wire = _parse(statement)
    return wire.signature, tuple_bytes(
        _DOMAIN, group_id, wire.public_key, wire.encryption_key, wire.name, wire.joined_ms
    )


def _parse(statement: bytes) -> content_pb2.Join:
    if len(statement) > MAX_STATEMENT_BYTES:
        raise RemoteProtocolError("join_oversized")
    try:
        wire = content_pb2.Join.FromString(statement)
    except DecodeError as error:
        raise RemoteProtocolError("join_malformed") from error
    if one_form(wire) != statement:
        raise RemoteProtocolError("not_canonical", "join statement")
    return wire
