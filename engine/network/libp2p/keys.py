"""Identity keys: our own Ed25519, and Ed25519 or secp256k1 of others.

libp2p "peer-ids" spec, "Key types". nwaku and go-waku identify themselves with secp256k1, so such
signatures are verified, but never made.  RSA and ECDSA identities are refused.  The protobuf around
a key is in ``engine.codec.libp2p``.

secp256k1 signatures are accepted as in go-libp2p: DER in its one shortest form, with either value
of s.  Some libraries refuse the higher one, so that each signature has one form only.  Here no
signature serves as a name, so a second form does no harm, and honest peers whose library does not
choose the lower value are not locked out.
"""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from engine.codec.libp2p import KeyType, PublicKey
from engine.core.errors import ConfigError, CryptoError

ED25519_BYTES = 32
_SECP256K1_BYTES = 33
_P = 2**255 - 19
# y coordinates of the eight points of small order: anyone can sign for such a key.
_SMALL_ORDER_Y = frozenset(
    {
        0,
        1,
        _P - 1,
        int.from_bytes(
            bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
            "little",
        ),
        int.from_bytes(
            bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
            "little",
        ),
    }
)


def verify(key: PublicKey, signature: bytes, message: bytes) -> None:
    """Raises CryptoError if the key is unusable or the signature is invalid."""
    try:
        match key.key_type:
            case KeyType.ED25519:
                _ed25519(key.data).verify(signature, message)
            case KeyType.SECP256K1:
                _secp256k1(key.data).verify(signature, message, ec.ECDSA(SHA256()))
            case KeyType.RSA | KeyType.ECDSA:
                raise CryptoError("identity_key_type_unsupported", key.key_type.name)
    except InvalidSignature as error:
        raise CryptoError("identity_bad_signature") from error


def _ed25519(data: bytes) -> Ed25519PublicKey:
    if len(data) != ED25519_BYTES:
        raise CryptoError("identity_bad_key")
    if int.from_bytes(data, "little") % (1 << 255) % _P in _SMALL_ORDER_Y:
        raise CryptoError("identity_small_order_key")
    return Ed25519PublicKey.from_public_bytes(data)


def _secp256k1(data: bytes) -> ec.EllipticCurvePublicKey:
    if len(data) != _SECP256K1_BYTES:
        raise CryptoError("identity_bad_key")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), data)
    except ValueError as error:
        raise CryptoError("identity_bad_key") from error


class IdentityKey:
    """Our own Ed25519 key pair, from its 32 private bytes."""

    def __init__(self, private_key: bytes) -> None:
        if len(private_key) != ED25519_BYTES:
            raise ConfigError(f"a network identity key has {ED25519_BYTES} bytes")
        self._key = Ed25519PrivateKey.from_private_bytes(private_key)
        self.public_key = PublicKey(
            key_type=KeyType.ED25519, data=self._key.public_key().public_bytes_raw()
        )

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)
