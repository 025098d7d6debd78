"""Noise_XX_25519_ChaChaPoly_SHA256: the state machine of the Noise Protocol Framework, rev. 34.

Names are the specification's: CipherState (5.1), SymmetricState (5.2), HandshakeState (5.3), and
the pattern XX of section 7.5::

    -> e
    <- e, ee, s, es
    -> s, se

No socket, no framing, no randomness: static and ephemeral private keys are arguments, so that the
published vectors can be replayed.  ``handshake.py`` adds libp2p's payload.
"""

import hashlib
import hmac
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from msgspec import Struct

from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError

PROTOCOL_NAME = b"Noise_XX_25519_ChaChaPoly_SHA256"
DH_BYTES = 32
TAG_BYTES = 16
MAX_MESSAGE_BYTES = 65_535
MAX_PLAINTEXT_BYTES = MAX_MESSAGE_BYTES - TAG_BYTES
_MAX_NONCE = 2**64 - 1  # reserved by the specification: never used
_NONCE = struct.Struct("<4xQ")
_MESSAGES = 3


class CipherState:
    """A key and a counter of messages.  Section 5.1; without ``Rekey``, which libp2p never uses."""

    __slots__ = ("_cipher", "_nonce")

    def __init__(self, key: bytes, *, first_nonce: int = 0) -> None:
        self._cipher = ChaCha20Poly1305(key)
        self._nonce = first_nonce

    def encrypt(self, plaintext: bytes | memoryview, associated_data: bytes = b"") -> bytes:
        if self._nonce >= _MAX_NONCE:
            raise LocalProtocolError("the nonces of this Noise session are used up")
        ciphertext = self._cipher.encrypt(_NONCE.pack(self._nonce), plaintext, associated_data)
        self._nonce += 1
        return ciphertext

    def decrypt(self, ciphertext: bytes | memoryview, associated_data: bytes = b"") -> bytes:
        """Raises CryptoError; the nonce then stays, and the session must be dropped."""
        if self._nonce >= _MAX_NONCE:
            raise RemoteProtocolError("noise_nonce_exhausted")
        if len(ciphertext) < TAG_BYTES:
            raise CryptoError("noise_message_too_short")
        try:
            plaintext = self._cipher.decrypt(_NONCE.pack(self._nonce), ciphertext, associated_data)
        except InvalidTag as error:
            raise CryptoError("noise_bad_tag") from error
        self._nonce += 1
        return plaintext


def _hkdf(chaining_key: bytes, input_key_material: bytes) -> tuple[bytes, bytes]:
    """HKDF of section 4.3, with two outputs."""
    temporary = hmac.digest(chaining_key, input_key_material, "sha256")
    first = hmac.digest(temporary, b"\x01", "sha256")
    return first, hmac.digest(temporary, first + b"\x02", "sha256")


class _SymmetricState:
    """Section 5.2.  ``_cipher`` is None until the first MixKey: k is empty."""

    def __init__(self) -> None:
        # The name has exactly HASHLEN bytes, so it is h unchanged.
        self.handshake_hash = PROTOCOL_NAME
        self._chaining_key = PROTOCOL_NAME
        self._cipher: CipherState | None = None

    def mix_key(self, input_key_material: bytes) -> None:
        self._chaining_key, key = _hkdf(self._chaining_key, input_key_material)
        self._cipher = CipherState(key)

    def mix_hash(self, data: bytes) -> None:
        self.handshake_hash = hashlib.sha256(self.handshake_hash + data).digest()

    def encrypt_and_hash(self, plaintext: bytes) -> bytes:
        ciphertext = plaintext
        if self._cipher is not None:
            ciphertext = self._cipher.encrypt(plaintext, self.handshake_hash)
        self.mix_hash(ciphertext)
        return ciphertext

    def decrypt_and_hash(self, ciphertext: bytes) -> bytes:
        plaintext = ciphertext
        if self._cipher is not None:
            plaintext = self._cipher.decrypt(ciphertext, self.handshake_hash)
        self.mix_hash(ciphertext)
        return plaintext

    def split(self) -> tuple[CipherState, CipherState]:
        first, second = _hkdf(self._chaining_key, b"")
        return CipherState(first), CipherState(second)


class NoiseSession(Struct, frozen=True, kw_only=True):
    """The result of a finished handshake."""

    sending: CipherState
    receiving: CipherState
    handshake_hash: bytes
    remote_static_key: bytes


class XXHandshake:
    """One side of the handshake.  Call ``write_message`` and ``read_message`` in turn.

    After a RemoteProtocolError the machine is unusable: drop the connection.
    """

    def __init__(
        self,
        *,
        initiator: bool,
        static_private_key: bytes,
        ephemeral_private_key: bytes,
        prologue: bytes = b"",
    ) -> None:
        self._initiator = initiator
        self._static = X25519PrivateKey.from_private_bytes(static_private_key)
        self._ephemeral = X25519PrivateKey.from_private_bytes(ephemeral_private_key)
        self._remote_static: X25519PublicKey | None = None
        self._remote_ephemeral: X25519PublicKey | None = None
        self._messages_done = 0
        self._symmetric = _SymmetricState()
        self._symmetric.mix_hash(prologue)

    @property
    def writes_next(self) -> bool:
        """Whose turn it is; meaningless once ``finished``."""
        return (self._messages_done % 2 == 0) == self._initiator

    @property
    def finished(self) -> bool:
        return self._messages_done == _MESSAGES

    def write_message(self, payload: bytes = b"") -> bytes:
        if self.finished or not self.writes_next:
            raise LocalProtocolError("it is not this side's turn to write")
        message = self._write_tokens() + self._symmetric.encrypt_and_hash(payload)
        if len(message) > MAX_MESSAGE_BYTES:
            raise LocalProtocolError("the handshake payload is too long for a Noise message")
        self._messages_done += 1
        return message

    def read_message(self, message: bytes) -> bytes:
        """The payload.  Raises RemoteProtocolError ("noise_…")."""
        if self.finished or self.writes_next:
            raise LocalProtocolError("it is not this side's turn to read")
        if len(message) > MAX_MESSAGE_BYTES:
            raise RemoteProtocolError("noise_message_too_long")
        payload = self._symmetric.decrypt_and_hash(self._read_tokens(message))
        self._messages_done += 1
        return payload

    def session(self) -> NoiseSession:
        """Split (5.2): the first cipher is the initiator's for sending."""
        if not self.finished or self._remote_static is None:
            raise LocalProtocolError("the handshake is not finished")
        first, second = self._symmetric.split()
        return NoiseSession(
            sending=first if self._initiator else second,
            receiving=second if self._initiator else first,
            handshake_hash=self._symmetric.handshake_hash,
            remote_static_key=self._remote_static.public_bytes_raw(),
        )

    @property
    def static_public_key(self) -> bytes:
        return self._static.public_key().public_bytes_raw()

    @property
    def remote_static_key(self) -> bytes | None:
        """Known after message 2 (initiator) or 3 (responder); not yet authenticated by itself."""
        return None if self._remote_static is None else self._remote_static.public_bytes_raw()

    # --- tokens of the pattern ------------------------------------------------------------------

    def _write_tokens(self) -> bytes:
        match self._messages_done:
            case 0:
                return self._write_e()
            case 1:
                ephemeral = self._write_e()
                self._mix_ee()
                static = self._write_s()
                self._mix_es()
                return ephemeral + static
            case _:
                static = self._write_s()
                self._mix_se()
                return static

    def _read_tokens(self, message: bytes) -> bytes:
        """The rest of the message: its payload, still encrypted if there is a key."""
        match self._messages_done:
            case 0:
                return self._read_e(message)
            case 1:
                rest = self._read_e(message)
                self._mix_ee()
                rest = self._read_s(rest)
                self._mix_es()
                return rest
            case _:
                rest = self._read_s(message)
                self._mix_se()
                return rest

    def _write_e(self) -> bytes:
        public = self._ephemeral.public_key().public_bytes_raw()
        self._symmetric.mix_hash(public)
        return public

    def _read_e(self, message: bytes) -> bytes:
        if len(message) < DH_BYTES:
            raise RemoteProtocolError("noise_message_too_short")
        self._remote_ephemeral = X25519PublicKey.from_public_bytes(message[:DH_BYTES])
        self._symmetric.mix_hash(message[:DH_BYTES])
        return message[DH_BYTES:]

    def _write_s(self) -> bytes:
        return self._symmetric.encrypt_and_hash(self.static_public_key)

    def _read_s(self, message: bytes) -> bytes:
        length = DH_BYTES + TAG_BYTES  # a key has been mixed in before any "s" of XX
        if len(message) < length:
            raise RemoteProtocolError("noise_message_too_short")
        public = self._symmetric.decrypt_and_hash(message[:length])
        self._remote_static = X25519PublicKey.from_public_bytes(public)
        return message[length:]

    def _mix_ee(self) -> None:
        self._symmetric.mix_key(_dh(self._ephemeral, self._remote_ephemeral))

    def _mix_es(self) -> None:
        """The initiator's ephemeral key with the responder's static key."""
        if self._initiator:
            self._symmetric.mix_key(_dh(self._ephemeral, self._remote_static))
        else:
            self._symmetric.mix_key(_dh(self._static, self._remote_ephemeral))

    def _mix_se(self) -> None:
        """The initiator's static key with the responder's ephemeral key."""
        if self._initiator:
            self._symmetric.mix_key(_dh(self._static, self._remote_ephemeral))
        else:
            self._symmetric.mix_key(_dh(self._ephemeral, self._remote_static))


def _dh(private: X25519PrivateKey, public: X25519PublicKey | None) -> bytes:
    if public is None:
        raise LocalProtocolError("a Diffie-Hellman before the peer's key is known")
    try:
        return private.exchange(public)
    except ValueError as error:  # all zero: the peer sent a point of small order
        raise CryptoError("noise_weak_key") from error
