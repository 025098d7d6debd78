"""What shows each of a pair that the other made an envelope, and shows nobody else anything.

The proof is an HMAC under a key that both compute from their static X25519 keys, so either of them
could have made it.  It is around everything in version 3 of the pair's envelope.  What bypasses
MVDS is sealed with another key of the same origin: AES-256-GCM, key and nonce by HKDF from 24
random bytes, without a ratchet, so that what is lost or comes late costs no key of one.
"""

import hmac
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.codec.olm import UNHELD, OlmEnvelope
from engine.codec.padding import pad, unpad
from engine.codec.tuples import tuple_bytes
from engine.core.errors import CryptoError
from engine.core.ids import KEY_BYTES, UnixMs
from engine.crypto.identity import Identity
from engine.crypto.keys import require_encryption_key, require_public_key
from engine.crypto.pair import pair_group_id

_PROOF_KEY_DOMAIN: Final = "causerie/1/olm-proof-key"
_PROOF_DOMAIN: Final = "causerie/1/olm-proof"
_UNHELD_KEY_DOMAIN: Final = "causerie/1/unheld-key"
_UNHELD_DOMAIN: Final = "causerie/1/unheld"
SALT_BYTES: Final = 24
_NONCE_BYTES: Final = 12


class StaticProof:
    def __init__(
        self, identity: Identity, *, peer_public_key: bytes, peer_encryption_key: bytes
    ) -> None:
        """Raises CryptoError if a key of the peer cannot be genuine."""
        require_public_key(peer_public_key)
        require_encryption_key(peer_encryption_key)
        peer = X25519PublicKey.from_public_bytes(peer_encryption_key)
        shared = identity.decryption_key.exchange(peer)
        group_id = pair_group_id(identity.public_key, peer_public_key)
        self._key = _derived(shared, KEY_BYTES, tuple_bytes(_PROOF_KEY_DOMAIN, group_id))
        self._unheld_key = _derived(shared, KEY_BYTES, tuple_bytes(_UNHELD_KEY_DOMAIN, group_id))
        self._ours, self._theirs = identity.public_key, peer_public_key

    def prove(
        self, kind: int, generation: int, ciphertext: bytes, *, sent_ms: UnixMs
    ) -> OlmEnvelope:
        return OlmEnvelope(
            kind=kind,
            generation=generation,
            sent_ms=sent_ms,
            proof=self._proof(self._ours, kind, generation, sent_ms, ciphertext),
            ciphertext=ciphertext,
        )

    def check(self, envelope: OlmEnvelope) -> None:
        """Raises CryptoError ``bad_proof``: the other did not make it, or not for us."""
        it = envelope
        expected = self._proof(self._theirs, it.kind, it.generation, it.sent_ms, it.ciphertext)
        if not hmac.compare_digest(expected, it.proof):
            raise CryptoError("bad_proof")

    def seal_unheld(self, content: bytes, *, salt: bytes, sent_ms: UnixMs) -> OlmEnvelope:
        """``salt``: SALT_BYTES random bytes, never used before."""
        cipher, nonce = self._once(self._ours, salt)
        return self.prove(
            UNHELD, 0, salt + cipher.encrypt(nonce, pad(content), None), sent_ms=sent_ms
        )

    def open_unheld(self, envelope: OlmEnvelope) -> bytes:
        """Of an envelope that was checked.

        Raises RemoteProtocolError ``bad_padding``, or CryptoError ``bad_seal``.
        """
        salt, sealed = envelope.ciphertext[:SALT_BYTES], envelope.ciphertext[SALT_BYTES:]
        cipher, nonce = self._once(self._theirs, salt)
        try:
            return unpad(cipher.decrypt(nonce, sealed, None))
        except InvalidTag as error:
            raise CryptoError("bad_seal") from error

    def _once(self, sender: bytes, salt: bytes) -> tuple[AESGCM, bytes]:
        info = tuple_bytes(_UNHELD_DOMAIN, sender, salt)
        derived = _derived(self._unheld_key, KEY_BYTES + _NONCE_BYTES, info)
        return AESGCM(derived[:KEY_BYTES]), derived[KEY_BYTES:]

    def _proof(
        self, sender: bytes, kind: int, generation: int, sent_ms: UnixMs, ciphertext: bytes
    ) -> bytes:
        """Who sent it is part of it, so it cannot be sent back to its author."""
        proved = tuple_bytes(_PROOF_DOMAIN, sender, kind, generation, sent_ms, ciphertext)
        return hmac.digest(self._key, proved, sha256)


def _derived(secret: bytes, length: int, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(secret)
