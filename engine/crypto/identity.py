"""A device's identity: an Ed25519 key that signs, an X25519 key that receives secrets.

The two are independent (never converted into each other); the signing key vouches for the other in
a join statement.  A participant id is the hash of the signing key; a fingerprint is the same key in
digits that two people can compare aloud.  Keys are passed as raw 32 bytes; the caller stores them.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError

from engine.codec.tuples import tuple_bytes
from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError, LocalProtocolError
from engine.core.ids import KEY_BYTES, SIGNATURE_BYTES, ParticipantId
from engine.crypto.keys import require_public_key

_PARTICIPANT_DOMAIN = "causerie/1/participant"
_FINGERPRINT_DOMAIN = "causerie/1/fingerprint"
_PARTICIPANT_ID_BYTES = 16
_FINGERPRINT_GROUPS = 6
_BYTES_PER_GROUP = 5
_DIGITS_PER_GROUP = 5


@dataclass(frozen=True, kw_only=True)
class Identity:
    """``signing_key`` and ``encryption_key`` are private, raw, 32 bytes each.

    Raises LocalProtocolError for any other length.
    """

    signing_key: bytes = field(repr=False)
    encryption_key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.signing_key) != KEY_BYTES or len(self.encryption_key) != KEY_BYTES:
            raise LocalProtocolError(f"a private key has {KEY_BYTES} bytes")

    @classmethod
    def generate(cls, random_bytes: RandomBytes) -> "Identity":
        return cls(signing_key=random_bytes(KEY_BYTES), encryption_key=random_bytes(KEY_BYTES))

    @cached_property
    def public_key(self) -> bytes:
        """Ed25519, 32 bytes."""
        return self._private.public_key().public_bytes_raw()

    @cached_property
    def encryption_public_key(self) -> bytes:
        """X25519, 32 bytes."""
        return self.decryption_key.public_key().public_bytes_raw()

    @cached_property
    def decryption_key(self) -> X25519PrivateKey:
        """``encryption_key`` as an object, which opens what was sealed to its public half."""
        return X25519PrivateKey.from_private_bytes(self.encryption_key)

    @cached_property
    def participant_id(self) -> ParticipantId:
        return participant_id_of(self.public_key)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.public_key)

    def sign(self, message: bytes) -> bytes:
        """64 bytes.  ``message`` is a tuple with a domain (``engine.codec.tuples``)."""
        return self._private.sign(message)

    @cached_property
    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.signing_key)


@lru_cache(maxsize=4096)
def participant_id_of(public_key: bytes) -> ParticipantId:
    """22 characters of base64url: the first 16 bytes of sha256 over (domain, key).

    Every message names a dozen of them, so they are as short as message ids.
    """
    digest = sha256(tuple_bytes(_PARTICIPANT_DOMAIN, public_key)).digest()
    return ParticipantId(urlsafe_b64encode(digest[:_PARTICIPANT_ID_BYTES]).decode().rstrip("="))


@lru_cache(maxsize=4096)
def fingerprint_of(public_key: bytes) -> str:
    """30 digits in 6 groups of 5, about 99 bits: ``"01234 56789 …"``."""
    digest = sha256(tuple_bytes(_FINGERPRINT_DOMAIN, public_key)).digest()
    return digit_groups(digest, _FINGERPRINT_GROUPS)


def digit_groups(digest: bytes, count: int) -> str:
    """``count`` groups of five digits, to be read aloud and compared; five bytes make one."""
    groups = (
        int.from_bytes(digest[start : start + _BYTES_PER_GROUP], "big") % 10**_DIGITS_PER_GROUP
        for start in range(0, count * _BYTES_PER_GROUP, _BYTES_PER_GROUP)
    )
    return " ".join(f"{group:0{_DIGITS_PER_GROUP}}" for group in groups)


def verify(public_key: bytes, signature: bytes, message: bytes) -> None:
    """Raises CryptoError ``bad_signature``, or as ``require_public_key``."""
    require_public_key(public_key)
    if len(signature) != SIGNATURE_BYTES:
        raise CryptoError("bad_signature")
    try:
        crypto_sign_open(signature + message, public_key)
    except BadSignatureError as error:
        raise CryptoError("bad_signature") from error
