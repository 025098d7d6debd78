"""Olm between two people; ``vodozemac`` does the ratchet.

An account has a long-term key, one-time keys and a fallback key, from which the other begins a
session; a session encrypts each message with a key of its own, which is forgotten afterwards.  A
session keeps the keys of 40 messages that it skipped, and skips at most 2 000 at once; what is
beyond cannot be decrypted and has to be encrypted afresh.  The proof around a message is in
``engine.crypto.pair_proof``.

Pickles are encrypted with a key that the caller keeps; the randomness is vodozemac's own.
"""

from typing import Final

import vodozemac

from engine.core.errors import CryptoError, LocalProtocolError
from engine.core.ratchet import KeyBundle

SKIPPED_KEYS: Final = 40
MAX_GAP: Final = 2_000


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

    def new_bundle(self, one_time_keys: int, *, number: int) -> KeyBundle:
        """New one-time keys, and a new fallback key; of the latter the one before stays good."""
        account = self._account
        account.generate_one_time_keys(one_time_keys)
        account.generate_fallback_key()
        (fallback,) = account.fallback_key.values()
        bundle = KeyBundle(
            number=number,
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
