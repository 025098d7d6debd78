"""Olm between two people, and the proof around it; ``vodozemac`` does the ratchet.

An account has a long-term key, one-time keys and a fallback key, from which the other begins a
session; a session encrypts each message with a key of its own, which is forgotten afterwards.  A
session keeps the keys of 40 messages that it skipped, and skips at most 2 000 at once; what is
beyond cannot be decrypted and has to be encrypted afresh.

The proof is an HMAC under a key that both compute from their static X25519 keys.  It shows each
that the other made an envelope, and shows nobody else anything, as either of them could have made
it.  Pickles are encrypted with a key that the caller keeps; the randomness is vodozemac's own.
"""

import hmac
from hashlib import sha256
from typing import Final

import vodozemac
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from engine.codec.olm import OlmEnvelope
from engine.codec.tuples import tuple_bytes
from engine.core.errors import CryptoError, LocalProtocolError
from engine.crypto.identity import Identity
from engine.crypto.keys import require_encryption_key, require_public_key
from engine.crypto.pair import pair_group_id

SKIPPED_KEYS: Final = 40
MAX_GAP: Final = 2_000
_PROOF_KEY_DOMAIN: Final = "causerie/1/olm-proof-key"
_PROOF_DOMAIN: Final = "causerie/1/olm-proof"
_KEY_BYTES: Final = 32


class KeyBundle(Struct, frozen=True, kw_only=True):
    """What the other needs to begin sessions, raw.  Whoever hands it over has to authenticate it.

    Only the fallback key may be used more than once, so only it may be public.
    """

    identity_key: bytes
    one_time_keys: tuple[bytes, ...]
    fallback_key: bytes


class StaticProof:
    """Shows each of a pair that the other made an envelope, and nobody else."""

    def __init__(
        self, identity: Identity, *, peer_public_key: bytes, peer_encryption_key: bytes
    ) -> None:
        """Raises CryptoError if a key of the peer cannot be genuine."""
        require_public_key(peer_public_key)
        require_encryption_key(peer_encryption_key)
        peer = X25519PublicKey.from_public_bytes(peer_encryption_key)
        group_id = pair_group_id(identity.public_key, peer_public_key)
        self._key = HKDF(
            algorithm=SHA256(),
            length=_KEY_BYTES,
            salt=None,
            info=tuple_bytes(_PROOF_KEY_DOMAIN, group_id),
        ).derive(identity.decryption_key.exchange(peer))
        self._ours, self._theirs = identity.public_key, peer_public_key

    def prove(self, kind: int, generation: int, ciphertext: bytes) -> OlmEnvelope:
        proof = self._proof(self._ours, kind, generation, ciphertext)
        return OlmEnvelope(kind=kind, generation=generation, proof=proof, ciphertext=ciphertext)

    def check(self, envelope: OlmEnvelope) -> None:
        """Raises CryptoError ``bad_proof``: the other did not make it, or not for us."""
        it = envelope
        expected = self._proof(self._theirs, it.kind, it.generation, it.ciphertext)
        if not hmac.compare_digest(expected, it.proof):
            raise CryptoError("bad_proof")

    def _proof(self, sender: bytes, kind: int, generation: int, ciphertext: bytes) -> bytes:
        """Who sent it is part of it, so it cannot be sent back to its author."""
        proved = tuple_bytes(_PROOF_DOMAIN, sender, kind, generation, ciphertext)
        return hmac.digest(self._key, proved, sha256)


class OlmSession:
    def __init__(self, session: vodozemac.Session) -> None:
        self._session = session

    @classmethod
    def from_pickle(cls, pickle: str, key: bytes) -> "OlmSession":
        """Raises LocalProtocolError: it is another key's, or damaged."""
        try:
            return cls(vodozemac.Session.from_pickle(pickle, key))
        except vodozemac.PickleException as error:
            raise LocalProtocolError("a session that cannot be read") from error

    def pickle(self, key: bytes) -> str:
        return self._session.pickle(key)

    @property
    def session_id(self) -> str:
        """The same on both sides."""
        return self._session.session_id

    def encrypt(self, plaintext: bytes) -> tuple[int, bytes]:
        """Kind and ciphertext."""
        return self._session.encrypt(plaintext).to_parts()

    def decrypt(self, message: vodozemac.AnyOlmMessage) -> bytes:
        """Raises CryptoError ``not_decrypted``; the session is as before then."""
        try:
            return self._session.decrypt(message)
        except vodozemac.OlmDecryptionException as error:
            raise CryptoError("not_decrypted") from error

    def began_with(self, message: vodozemac.AnyOlmMessage) -> bool:
        """Whether it is the session that a message of kind PRE_KEY begins."""
        pre_key = message.to_pre_key()
        return pre_key is not None and self._session.session_matches(pre_key)


class OlmAccount:
    def __init__(self, account: vodozemac.Account | None = None) -> None:
        """A new one, unless one is given."""
        self._account = account or vodozemac.Account()

    @classmethod
    def from_pickle(cls, pickle: str, key: bytes) -> "OlmAccount":
        """Raises LocalProtocolError: it is another key's, or damaged."""
        try:
            return cls(vodozemac.Account.from_pickle(pickle, key))
        except vodozemac.PickleException as error:
            raise LocalProtocolError("an account that cannot be read") from error

    def pickle(self, key: bytes) -> str:
        return self._account.pickle(key)

    def new_bundle(self, one_time_keys: int) -> KeyBundle:
        """New one-time keys, and a new fallback key; of the latter the one before stays good."""
        account = self._account
        account.generate_one_time_keys(one_time_keys)
        account.generate_fallback_key()
        (fallback,) = account.fallback_key.values()
        bundle = KeyBundle(
            identity_key=account.curve25519_key.to_bytes(),
            one_time_keys=tuple(key.to_bytes() for key in account.one_time_keys.values()),
            fallback_key=fallback.to_bytes(),
        )
        account.mark_keys_as_published()
        return bundle

    def begin(self, identity_key: bytes, one_time_key: bytes) -> OlmSession:
        """A session with whoever has the private halves.  Raises CryptoError ``bad_olm_key``."""
        try:
            return OlmSession(
                self._account.create_outbound_session(
                    vodozemac.Curve25519PublicKey.from_bytes(identity_key),
                    vodozemac.Curve25519PublicKey.from_bytes(one_time_key),
                )
            )
        except (vodozemac.KeyException, vodozemac.SessionCreationException) as error:
            raise CryptoError("bad_olm_key") from error

    def answer(
        self, identity_key: bytes, message: vodozemac.AnyOlmMessage
    ) -> tuple[OlmSession, bytes]:
        """The session that a message of kind PRE_KEY begins, and its plaintext.

        The one-time key is gone afterwards.  Raises CryptoError ``not_decrypted``.
        """
        pre_key = message.to_pre_key()
        if pre_key is None:
            raise CryptoError("not_decrypted", "no session")
        try:
            key = vodozemac.Curve25519PublicKey.from_bytes(identity_key)
            session, plaintext = self._account.create_inbound_session(key, pre_key)
        except (vodozemac.KeyException, vodozemac.SessionCreationException) as error:
            raise CryptoError("not_decrypted", "no such key") from error
        return OlmSession(session), plaintext


def olm_message(kind: int, ciphertext: bytes) -> vodozemac.AnyOlmMessage:
    """Raises CryptoError ``not_decrypted`` for what is no message of Olm."""
    try:
        return vodozemac.AnyOlmMessage.from_parts(kind, ciphertext)
    except vodozemac.DecodeException as error:
        raise CryptoError("not_decrypted", "no message") from error
