"""``proto/envelope.proto`` as bytes: sealed envelope, header, plaintext, signed part.

Header and signed part are opaque bytes, passed on exactly as received, because they are what was
authenticated.  Every length is fixed or bounded here.  Each part has only one form: a signature
covers the fields of a signed part, but nothing that could be appended to it.
``engine.crypto.sealed`` checks seals and signatures.
"""

from collections.abc import Sequence

from google.protobuf.message import DecodeError
from msgspec import Struct

from engine.codec.canonical import one_form
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ParticipantId, UnixMs
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from proto import envelope_pb2, sds_pb2

VERSION = 2
GROUP_TAG_BYTES = 8
EPOCH_ID_BYTES = 8
SALT_BYTES = 24
COMMITMENT_BYTES = 32
MAX_HEADER_BYTES = 256
MAX_STATEMENTS = 2
MAX_STATEMENT_BYTES = 1024
MAX_TIME_MS = 2**53 - 1
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64


class EnvelopeHeader(Struct, frozen=True, kw_only=True):
    group_tag: bytes
    epoch_id: bytes
    salt: bytes
    commitment: bytes


class SignedPart(Struct, frozen=True, kw_only=True):
    """Exactly one of ``sds_message`` and ``original`` is not empty."""

    sender_public_key: bytes
    epoch_id: bytes
    signed_ms: UnixMs
    signature: bytes
    sds_message: bytes = b""
    original: bytes = b""
    claims: bytes = b""


def encode_envelope(header: bytes, ciphertext: bytes) -> bytes:
    return envelope_pb2.SealedEnvelope(header=header, ciphertext=ciphertext).SerializeToString(
        deterministic=True
    )


def decode_envelope(payload: bytes) -> tuple[bytes, bytes]:
    """(header, ciphertext), as received.

    Raises RemoteProtocolError ``oversized``, ``malformed`` or ``not_canonical``.
    """
    if len(payload) > MAX_WAKU_MESSAGE_BYTES:
        raise RemoteProtocolError("oversized")
    try:
        wire = envelope_pb2.SealedEnvelope.FromString(payload)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "envelope") from error
    if not wire.header or not wire.ciphertext:
        raise RemoteProtocolError("malformed", "envelope")
    if one_form(wire) != payload:
        raise RemoteProtocolError("not_canonical", "envelope")
    return wire.header, wire.ciphertext


def encode_plaintext(signed_part: bytes, statements: Sequence[bytes]) -> bytes:
    """Raises LocalProtocolError for statements that receivers would refuse."""
    if not _are_statements(statements):
        raise LocalProtocolError("too many join statements, or too large ones")
    return envelope_pb2.SealedPlaintext(
        signed_part=signed_part, statements=statements
    ).SerializeToString(deterministic=True)


def decode_plaintext(plaintext: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """(signed part, join statements), as received.

    Raises RemoteProtocolError ``malformed`` or ``not_canonical``.
    """
    try:
        wire = envelope_pb2.SealedPlaintext.FromString(plaintext)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "plaintext") from error
    statements = tuple(wire.statements)
    if not wire.signed_part or not _are_statements(statements):
        raise RemoteProtocolError("malformed", "plaintext")
    if one_form(wire) != plaintext:
        raise RemoteProtocolError("not_canonical", "plaintext")
    return wire.signed_part, statements


def _are_statements(statements: Sequence[bytes]) -> bool:
    return len(statements) <= MAX_STATEMENTS and all(
        len(statement) <= MAX_STATEMENT_BYTES for statement in statements
    )


def encode_header(header: EnvelopeHeader) -> bytes:
    return envelope_pb2.EnvelopeHeader(
        version=VERSION,
        group_tag=header.group_tag,
        epoch_id=header.epoch_id,
        salt=header.salt,
        commitment=header.commitment,
    ).SerializeToString(deterministic=True)


def decode_header(header: bytes) -> EnvelopeHeader:
    """Raises RemoteProtocolError ``malformed``, ``unsupported_version`` or ``not_canonical``."""
    if len(header) > MAX_HEADER_BYTES:
        raise RemoteProtocolError("malformed", "header too long")
    try:
        wire = envelope_pb2.EnvelopeHeader.FromString(header)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "header") from error
    if wire.version != VERSION:
        raise RemoteProtocolError("unsupported_version")
    lengths = (len(wire.group_tag), len(wire.epoch_id), len(wire.salt), len(wire.commitment))
    if lengths != (GROUP_TAG_BYTES, EPOCH_ID_BYTES, SALT_BYTES, COMMITMENT_BYTES):
        raise RemoteProtocolError("malformed", "header")
    if one_form(wire) != header:
        raise RemoteProtocolError("not_canonical", "header")
    return EnvelopeHeader(
        group_tag=wire.group_tag,
        epoch_id=wire.epoch_id,
        salt=wire.salt,
        commitment=wire.commitment,
    )


def encode_signed_part(part: SignedPart) -> bytes:
    return envelope_pb2.SignedPart(
        sender_public_key=part.sender_public_key,
        sds_message=part.sds_message,
        claims=part.claims,
        signed_ms=part.signed_ms,
        signature=part.signature,
        original=part.original,
        epoch_id=part.epoch_id,
    ).SerializeToString(deterministic=True)


def decode_signed_part(signed_part: bytes) -> SignedPart:
    """Checks shape only, no signature.

    Raises RemoteProtocolError ``oversized``, ``malformed`` or ``not_canonical``.
    """
    if len(signed_part) > MAX_WAKU_MESSAGE_BYTES:
        raise RemoteProtocolError("oversized")
    try:
        wire = envelope_pb2.SignedPart.FromString(signed_part)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "signed part") from error
    lengths = (len(wire.sender_public_key), len(wire.epoch_id), len(wire.signature))
    if lengths != (_KEY_BYTES, EPOCH_ID_BYTES, _SIGNATURE_BYTES):
        raise RemoteProtocolError("malformed", "signed part")
    if bool(wire.sds_message) == bool(wire.original) or wire.signed_ms > MAX_TIME_MS:
        raise RemoteProtocolError("malformed", "signed part")
    if one_form(wire) != signed_part:
        raise RemoteProtocolError("not_canonical", "signed part")
    return SignedPart(
        sender_public_key=wire.sender_public_key,
        epoch_id=wire.epoch_id,
        signed_ms=UnixMs(wire.signed_ms),
        signature=wire.signature,
        sds_message=wire.sds_message,
        original=wire.original,
        claims=wire.claims,
    )


def sds_sender_of(sds_message: bytes) -> ParticipantId:
    """The claimed ``sender_id`` of SDS bytes.  Raises RemoteProtocolError ``malformed``.

    The whole message is parsed, with the channel's own parser, so that both agree on which of
    several ``sender_id`` fields counts.
    """
    try:
        return ParticipantId(sds_pb2.MessageFrame.FromString(sds_message).sender_id)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "SDS message") from error
