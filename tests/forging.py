"""What a member can sign and seal by the format, where our own code would refuse to.

Written from docs/security.md and not from ``engine.crypto.sealed``, so that each of the two also
tests the other.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.codec.envelope import (
    SALT_BYTES,
    VERSION,
    EnvelopeHeader,
    SignedPart,
    encode_envelope,
    encode_header,
    encode_signed_part,
)
from engine.codec.holdings import encode_claim
from engine.codec.tuples import tuple_bytes
from engine.core.ids import UnixMs
from engine.core.invite import group_id_of
from engine.core.records import GroupRecord
from engine.core.sds.vocabulary import Claim
from engine.crypto.identity import Identity
from engine.crypto.sealed import SealedGroup
from proto import envelope_pb2


class MessageKeys(NamedTuple):
    key: bytes
    nonce: bytes
    commitment: bytes


def message_keys(group: SealedGroup, salt: bytes) -> MessageKeys:
    """Of one message in the newest epoch."""
    derived = HKDF(
        algorithm=SHA256(),
        length=32 + 12 + 32,
        salt=salt,
        info=tuple_bytes("causerie/2/seal", VERSION, group.group_id, group.epoch_id),
    ).derive(group.epoch_keys[-1])
    return MessageKeys(derived[:32], derived[32:44], derived[44:])


def sealed_group_of(group: GroupRecord) -> SealedGroup:
    return SealedGroup(group_id=group_id_of(group.conversation_id), epoch_keys=group.epoch_keys)


def seal_padded(
    group: SealedGroup, padded: bytes, random_bytes: Callable[[int], bytes] = os.urandom
) -> bytes:
    """Any bytes under a good seal."""
    salt = random_bytes(SALT_BYTES)
    header = EnvelopeHeader(
        group_tag=group.group_tag,
        epoch_id=group.epoch_id,
        salt=salt,
        commitment=message_keys(group, salt).commitment,
    )
    return seal_under(group, encode_header(header), padded)


def seal_under(group: SealedGroup, header: bytes, padded: bytes) -> bytes:
    """Under somebody's header, whatever else it holds: its salt gives the key to any member."""
    keys = message_keys(group, envelope_pb2.EnvelopeHeader.FromString(header).salt)
    return encode_envelope(header, AESGCM(keys.key).encrypt(keys.nonce, padded, header))


def signed_message(
    group: SealedGroup,
    identity: Identity,
    sds_bytes: bytes,
    *,
    claim: Claim | bytes | None = None,
    signed_ms: UnixMs,
) -> bytes:
    """A signed part with any SDS bytes, of any length, and with any claims."""
    return _signed(group, identity, "causerie/2/message", sds_bytes, claim, signed_ms)


def signed_repair(
    group: SealedGroup,
    identity: Identity,
    original: bytes,
    *,
    claim: Claim | bytes | None = None,
    signed_ms: UnixMs,
) -> bytes:
    """A signed part around anything."""
    return _signed(group, identity, "causerie/2/repair", original, claim, signed_ms)


def _signed(  # noqa: PLR0913, PLR0917 - one argument per part of the tuple
    group: SealedGroup,
    identity: Identity,
    domain: str,
    body: bytes,
    claim: Claim | bytes | None,
    signed_ms: UnixMs,
) -> bytes:
    claims = claim if isinstance(claim, bytes) else encode_claim(claim)
    key, epoch_id = identity.public_key, group.epoch_id
    to_sign = tuple_bytes(domain, group.group_id, epoch_id, key, signed_ms, body, claims)
    is_repair = domain == "causerie/2/repair"
    return encode_signed_part(
        SignedPart(
            sender_public_key=key,
            epoch_id=epoch_id,
            signed_ms=signed_ms,
            signature=identity.sign(to_sign),
            sds_message=b"" if is_repair else body,
            original=body if is_repair else b"",
            claims=claims,
        )
    )
