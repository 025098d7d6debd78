"""``proto/pair.proto`` as bytes: the envelope of a pair, and the plaintext under its seal.

A plaintext is an MVDS payload, an ephemeral content, which bypasses MVDS, the sender's keys for
Olm, or about joining a group; the signature covers which.  Every length is fixed or bounded here.
Both layers have only one form: the envelope is not authenticated, so otherwise anyone could make
ever new copies of a message that a memory of payloads does not recognise.  ``engine.crypto.pair``
checks seals and signatures.
What goes by Olm is in the same envelope with another version (``engine.codec.olm``).
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from google.protobuf.message import DecodeError
from msgspec import Struct

from engine.codec.canonical import one_form
from engine.codec.content import MAX_EPHEMERAL_BYTES
from engine.core.content import MAX_SAFE_INTEGER
from engine.core.errors import RemoteProtocolError
from engine.core.ids import UnixMs
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from proto import pair_pb2

VERSION = 2
OLM_VERSION = 3
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MvdsPart:
    """An encoded MVDS payload, never empty."""

    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralPart:
    """An encoded ephemeral content of 1 to MAX_EPHEMERAL_BYTES bytes."""

    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysPart:
    """An encoded KeyBundle, never empty."""

    keys: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningPart:
    """An encoded Joining, never empty."""

    joining: bytes = field(repr=False)


PairBody: TypeAlias = MvdsPart | EphemeralPart | KeysPart | JoiningPart


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlaintext:
    sender_public_key: bytes
    sender_encryption_key: bytes
    signed_ms: UnixMs
    signature: bytes = field(repr=False)
    body: PairBody


class SealedPair(Struct, frozen=True):
    """An envelope's content, as received."""

    version: int
    """VERSION or OLM_VERSION."""
    sealed: bytes


def encode_pair_envelope(sealed: bytes, version: int = VERSION) -> bytes:
    return pair_pb2.PairEnvelope(version=version, sealed=sealed).SerializeToString(
        deterministic=True
    )


def decode_pair_envelope(payload: bytes) -> bytes:
    """The sealed bytes of a signed one.  Raises as ``decode_any_pair_envelope``."""
    envelope = decode_any_pair_envelope(payload)
    if envelope.version != VERSION:
        raise RemoteProtocolError("unsupported_version")
    return envelope.sealed


def decode_any_pair_envelope(payload: bytes) -> SealedPair:
    """Either kind.

    Raises RemoteProtocolError ``oversized``, ``malformed``, ``unsupported_version`` or
    ``not_canonical``.
    """
    if len(payload) > MAX_WAKU_MESSAGE_BYTES:
        raise RemoteProtocolError("oversized")
    try:
        wire = pair_pb2.PairEnvelope.FromString(payload)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "pair envelope") from error
    if wire.version not in {VERSION, OLM_VERSION}:
        raise RemoteProtocolError("unsupported_version")
    if not wire.sealed:
        raise RemoteProtocolError("malformed", "pair envelope")
    if one_form(wire) != payload:
        raise RemoteProtocolError("not_canonical", "pair envelope")
    return SealedPair(wire.version, wire.sealed)


def encode_pair_plaintext(plaintext: PairPlaintext) -> bytes:
    wire = pair_pb2.PairPlaintext(
        sender_public_key=plaintext.sender_public_key,
        sender_encryption_key=plaintext.sender_encryption_key,
        signed_ms=plaintext.signed_ms,
        signature=plaintext.signature,
    )
    match plaintext.body:
        case MvdsPart(payload=payload):
            wire.mvds_payload = payload
        case EphemeralPart(content=content):
            wire.ephemeral = content
        case KeysPart(keys=keys):
            wire.keys = keys
        case JoiningPart(joining=joining):
            wire.joining = joining
    return wire.SerializeToString(deterministic=True)


def decode_pair_plaintext(plaintext: bytes) -> PairPlaintext:
    """Checks shape only, no signature.

    Raises RemoteProtocolError ``malformed``, ``not_canonical``, ``empty`` or
    ``ephemeral_oversized``.
    """
    try:
        wire = pair_pb2.PairPlaintext.FromString(plaintext)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "pair plaintext") from error
    lengths = (len(wire.sender_public_key), len(wire.sender_encryption_key), len(wire.signature))
    if lengths != (_KEY_BYTES, _KEY_BYTES, _SIGNATURE_BYTES) or wire.signed_ms > MAX_SAFE_INTEGER:
        raise RemoteProtocolError("malformed", "pair plaintext")
    if one_form(wire) != plaintext:
        raise RemoteProtocolError("not_canonical", "pair plaintext")
    return PairPlaintext(
        sender_public_key=wire.sender_public_key,
        sender_encryption_key=wire.sender_encryption_key,
        signed_ms=UnixMs(wire.signed_ms),
        signature=wire.signature,
        body=_decode_body(wire),
    )


def _decode_body(wire: pair_pb2.PairPlaintext) -> PairBody:
    if not (wire.mvds_payload or wire.ephemeral or wire.keys or wire.joining):
        raise RemoteProtocolError("empty")
    if wire.mvds_payload:
        return MvdsPart(payload=wire.mvds_payload)
    if wire.keys:
        return KeysPart(keys=wire.keys)
    if wire.joining:
        return JoiningPart(joining=wire.joining)
    if len(wire.ephemeral) > MAX_EPHEMERAL_BYTES:
        raise RemoteProtocolError("ephemeral_oversized")
    return EphemeralPart(content=wire.ephemeral)
