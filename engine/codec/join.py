"""The join statement: a newcomer's keys and name for one group, signed by itself.

It is signed apart from the message that carries it, so that it can be shown later to somebody who
never saw that message.  The signature is over (domain, group, public key, X25519 key, name, time),
the name exactly as written; the statement as received is what is checked, kept and passed on, so it
has one form only.  Whether the newcomer may join is not known here: in a simple group whoever has
the key may.
"""

from google.protobuf.message import DecodeError

from engine.codec.canonical import one_form
from engine.codec.envelope import MAX_STATEMENT_BYTES
from engine.codec.tuples import tuple_bytes
from engine.core.content import MAX_SAFE_INTEGER, Join, clean_name
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ParticipantId, UnixMs
from engine.crypto.identity import SIGNATURE_BYTES, Identity, participant_id_of, verify
from engine.crypto.keys import KEY_BYTES, require_encryption_key
from proto import content_pb2

_DOMAIN = "causerie/2/join"


def build_join(identity: Identity, *, group_id: bytes, name: str, joined_ms: UnixMs) -> Join:
    """A signed statement.  Raises LocalProtocolError if the name is unusable."""
    try:
        wire = content_pb2.Join(
            public_key=identity.public_key,
            encryption_key=identity.encryption_public_key,
            name=clean_name(name),
            joined_ms=joined_ms,
        )
        wire.signature = identity.sign(_signed_bytes(group_id, wire))
        return decode_join(wire.SerializeToString(deterministic=True))
    except (RemoteProtocolError, ValueError) as error:
        raise LocalProtocolError(f"a join that nobody would accept: {error}") from error


def decode_join(statement: bytes) -> Join:
    """Shape and bounds only, no signature.  Raises RemoteProtocolError."""
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


def verify_join(join: Join, *, group_id: bytes) -> ParticipantId:
    """Who joined this group, proved.  Only ``join.statement`` is believed.

    Raises RemoteProtocolError or CryptoError; also if the fields do not say what was signed.
    """
    if decode_join(join.statement) != join:
        raise RemoteProtocolError("join_malformed")
    require_encryption_key(join.encryption_key)
    wire = _parse(join.statement)
    verify(join.public_key, wire.signature, _signed_bytes(group_id, wire))
    return participant_id_of(join.public_key)


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


def _signed_bytes(group_id: bytes, wire: content_pb2.Join) -> bytes:
    return tuple_bytes(
        _DOMAIN, group_id, wire.public_key, wire.encryption_key, wire.name, wire.joined_ms
    )
