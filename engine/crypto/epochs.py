"""Seals epoch keys to members' prekeys, and opens them.

Each wrap is HPKE (RFC 9180, base mode: X25519, HKDF-SHA256, AES-256-GCM) to one person's prekey, or
to the X25519 key of their identity if none is known; group, commitment and recipient are in its
``info``.  HPKE is anonymous, and need not be more: a key is taken only if it fits a commitment in
the signed log, whoever wrapped it.  So nobody can give two members different keys, and any member
can wrap a key again.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from msgspec import Struct

from engine.codec.admin_entry import id_bytes_of
from engine.codec.epochs import (
    MAX_EARLIER_KEYS,
    TAG_BYTES,
    EarlierKeys,
    PrekeyFrame,
    WrapRecord,
    decode_earlier_keys,
    decode_prekey,
    decode_wraps,
    encode_earlier_keys,
    encode_prekey,
    encode_wraps,
    signed_prekey,
)
from engine.codec.tuples import tuple_bytes
from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import KEY_BYTES, ParticipantId, UnixMs
from engine.core.invite import EPOCH_KEY_BYTES
from engine.core.prekeys import OwnPrekey, TheirPrekey, next_number
from engine.crypto.identity import Identity, participant_id_of, verify
from engine.crypto.keys import require_encryption_key
from engine.crypto.sealed import epoch_commitment

_WRAP_DOMAIN: Final = "causerie/2/epoch-wrap"
_EARLIER_DOMAIN: Final = "causerie/2/earlier-keys"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class EpochKey(Struct, frozen=True, kw_only=True):
    commitment: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"EpochKey(commitment={self.commitment.hex()})"


# --- prekeys --------------------------------------------------------------------------------------


def make_prekey(
    own: Sequence[OwnPrekey], *, now_ms: UnixMs, random_bytes: RandomBytes
) -> OwnPrekey:
    """The one after ``own``."""
    number = next_number(own, now_ms=now_ms)
    return OwnPrekey(number=number, private_key=random_bytes(KEY_BYTES), made_ms=now_ms)


def sign_prekey(identity: Identity, prekey: OwnPrekey, *, group_id: bytes) -> bytes:
    """The public half, which others may keep and show."""
    frame = PrekeyFrame(
        author_key=identity.public_key,
        number=prekey.number,
        key=_private(prekey.private_key).public_key().public_bytes_raw(),
        signature=b"",
    )
    signature = identity.sign(signed_prekey(group_id, frame))
    return encode_prekey(frame._replace(signature=signature))


def verify_prekey(data: bytes, *, group_id: bytes) -> TheirPrekey:
    """Raises RemoteProtocolError, CryptoError."""
    frame = decode_prekey(data)
    require_encryption_key(frame.key)
    verify(frame.author_key, frame.signature, signed_prekey(group_id, frame))
    return read_prekey(data)


def read_prekey(data: bytes) -> TheirPrekey:
    """One that was verified before."""
    frame = decode_prekey(data)
    return TheirPrekey(
        author=participant_id_of(frame.author_key),
        number=frame.number,
        key=frame.key,
        signed=data,
    )


# --- wraps ----------------------------------------------------------------------------------------


def wrap_epoch_key(
    epoch_key: bytes, recipients: Mapping[ParticipantId, bytes], *, group_id: bytes
) -> tuple[bytes, ...]:
    """Chunks with one wrap for each of ``recipients``, whose keys were checked on import."""
    commitment = epoch_commitment(group_id, epoch_key)
    return encode_wraps(
        commitment,
        (
            WrapRecord(
                recipient=id_bytes_of(who),
                tag=_tag(key),
                sealed=_SUITE.encrypt(
                    epoch_key,
                    X25519PublicKey.from_public_bytes(key),
                    _wrap_info(group_id, commitment, who),
                ),
            )
            for who, key in recipients.items()
        ),
    )


class WrapOpener:
    """Opens what was wrapped for one member of one group."""

    def __init__(
        self, own_id: ParticipantId, private_keys: Iterable[bytes], *, group_id: bytes
    ) -> None:
        """``private_keys``: of the prekeys that are still kept, and of the identity."""
        self._own_id = own_id
        self._own_bytes = id_bytes_of(own_id)
        self._group_id = group_id
        pairs = map(_private, private_keys)
        self._keys = {_tag(pair.public_key().public_bytes_raw()): pair for pair in pairs}

    def open(self, chunk: bytes, *, wanted: Container[bytes]) -> EpochKey | None:
        """None if there is nothing for us, or not of an epoch that is ``wanted``.

        ``wanted``: commitments of the log's epochs that we were given and have no key of.  Raises
        RemoteProtocolError ``bad_wraps``, ``not_canonical``, ``wrap_unknown_prekey`` (ask again);
        CryptoError ``bad_wrap``, ``wrap_other_key``.
        """
        wraps = decode_wraps(chunk)
        record = wraps.find(self._own_bytes) if wraps.commitment in wanted else None
        if record is None:
            return None
        info = _wrap_info(self._group_id, wraps.commitment, self._own_id)
        key = self._open(record.tag, record.sealed, info)
        if epoch_commitment(self._group_id, key) != wraps.commitment:
            raise CryptoError("wrap_other_key")
        return EpochKey(commitment=wraps.commitment, key=key)

    def open_earlier(self, data: bytes, *, wanted: Container[bytes]) -> tuple[EpochKey, ...]:
        """Those of an ``EarlierKeys`` for us that are ``wanted``; raises as ``open``."""
        sealed = decode_earlier_keys(data)
        if sealed.recipient != self._own_bytes:
            return ()
        info = _earlier_info(self._group_id, self._own_id)
        packed = self._open(sealed.tag, sealed.sealed, info)
        keys = [packed[at : at + EPOCH_KEY_BYTES] for at in range(0, len(packed), EPOCH_KEY_BYTES)]
        named = ((epoch_commitment(self._group_id, key), key) for key in keys)
        return tuple(
            EpochKey(commitment=commitment, key=key)
            for commitment, key in named
            if commitment in wanted
        )

    def _open(self, tag: bytes, sealed: bytes, info: bytes) -> bytes:
        private_key = self._keys.get(tag)
        if private_key is None:
            raise RemoteProtocolError("wrap_unknown_prekey")
        try:
            return _SUITE.decrypt(sealed, private_key, info)
        except InvalidTag as error:
            raise CryptoError("bad_wrap") from error


def seal_earlier_keys(
    epoch_keys: Iterable[bytes], recipient: ParticipantId, key: bytes, *, group_id: bytes
) -> bytes:
    """The keys of earlier epochs for a newcomer; which ones is decided by the log.

    Raises LocalProtocolError for none or too many.
    """
    keys = tuple(epoch_keys)
    if not 1 <= len(keys) <= MAX_EARLIER_KEYS:
        raise LocalProtocolError(f"{len(keys)} keys")
    sealed = _SUITE.encrypt(
        b"".join(keys),
        X25519PublicKey.from_public_bytes(key),
        _earlier_info(group_id, recipient),
    )
    return encode_earlier_keys(EarlierKeys(id_bytes_of(recipient), _tag(key), sealed))


def _wrap_info(group_id: bytes, commitment: bytes, recipient: ParticipantId) -> bytes:
    return tuple_bytes(_WRAP_DOMAIN, group_id, commitment, recipient)


def _earlier_info(group_id: bytes, recipient: ParticipantId) -> bytes:
    return tuple_bytes(_EARLIER_DOMAIN, group_id, recipient)


def _tag(public_key: bytes) -> bytes:
    """Which of the recipient's keys it is sealed to."""
    return sha256(public_key).digest()[:TAG_BYTES]


def _private(key: bytes) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(key)
