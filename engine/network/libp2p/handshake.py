"""The secured channel: Noise XX with the libp2p payload, and the framing around it.

noise-libp2p spec: each Noise message follows its length in two bytes, big endian.  Messages 2 and 3
carry the sender's identity key and its signature over "noise-libp2p-static-key:" and the sender's
static key.  Nothing is trusted before that signature is verified, and an initiator also checks the
expected peer id before it sends its own identity.  Static keys live for one session, no prologue is
used, and extensions are neither sent nor read.
"""

import struct

from engine.codec.libp2p import (
    NoisePayload,
    decode_noise_payload,
    decode_public_key,
    encode_noise_payload,
    encode_public_key,
)
from engine.core.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
from engine.network.libp2p.keys import IdentityKey, verify
from engine.network.libp2p.noise import (
    MAX_PLAINTEXT_BYTES,
    NoiseSession,
    XXHandshake,
)
from engine.network.libp2p.peer_id import peer_id_of_key
from engine.network.libp2p.pipe import Pipe, PipeOnPipe
from engine.network.libp2p.ports import PeerId, ProtocolId

NOISE = ProtocolId("/noise")
SIGNATURE_PREFIX = b"noise-libp2p-static-key:"
_LENGTH = struct.Struct(">H")
MESSAGES_PER_TURN = 512
"""A chunk from the socket can hold 14 000 empty messages, each to be authenticated."""


class SecureHandshake:
    """Sans-I/O: Noise messages in, Noise messages out, and finally the peer's identity."""

    def __init__(
        self,
        *,
        initiator: bool,
        identity: IdentityKey,
        static_private_key: bytes,
        ephemeral_private_key: bytes,
        expected_peer: PeerId | None = None,
    ) -> None:
        self._noise = XXHandshake(
            initiator=initiator,
            static_private_key=static_private_key,
            ephemeral_private_key=ephemeral_private_key,
        )
        self._initiator = initiator
        self._identity = identity
        self._expected_peer = expected_peer
        self._peer_id: PeerId | None = None

    @property
    def writes_next(self) -> bool:
        return self._noise.writes_next

    @property
    def finished(self) -> bool:
        return self._noise.finished

    @property
    def peer_id(self) -> PeerId:
        if self._peer_id is None:
            raise LocalProtocolError("the peer has not been authenticated yet")
        return self._peer_id

    def session(self) -> NoiseSession:
        return self._noise.session()

    def write_message(self) -> bytes:
        if self._initiator and self._peer_id is None:  # message 1 is in the clear: no payload
            return self._noise.write_message()
        static_public_key = self._noise.static_public_key
        return self._noise.write_message(
            encode_noise_payload(
                NoisePayload(
                    identity_key=encode_public_key(self._identity.public_key),
                    identity_signature=self._identity.sign(SIGNATURE_PREFIX + static_public_key),
                )
            )
        )

    def read_message(self, message: bytes) -> None:
        """Raises RemoteProtocolError; TransportError if it is another peer than expected."""
        payload = self._noise.read_message(message)
        remote_static_key = self._noise.remote_static_key
        if remote_static_key is None:  # message 1; a payload there has no meaning
            return
        self._peer_id = self._authenticate(payload, remote_static_key)
        if self._expected_peer not in (None, self._peer_id):
            raise WrongPeerError(expected=self._expected_peer, found=self._peer_id)

    @staticmethod
    def _authenticate(payload_bytes: bytes, remote_static_key: bytes) -> PeerId:
        payload = decode_noise_payload(payload_bytes)
        key = decode_public_key(payload.identity_key)
        verify(key, payload.identity_signature, SIGNATURE_PREFIX + remote_static_key)
        return peer_id_of_key(payload.identity_key)


class WrongPeerError(TransportError):
    """Another peer answered at the address."""

    def __init__(self, *, expected: PeerId | None, found: PeerId) -> None:
        text = f"the peer is {found}, expected was {expected}"
        super().__init__(text, TransportFault.WRONG_PEER, f"{found} {expected}")


async def secure(pipe: Pipe, handshake: SecureHandshake) -> "SecuredPipe":
    """Run the handshake over ``pipe``.  Raises RemoteProtocolError, TransportError."""
    while not handshake.finished:
        if handshake.writes_next:
            message = handshake.write_message()
            pipe.write(_LENGTH.pack(len(message)) + message)
        else:
            (length,) = _LENGTH.unpack(await pipe.read_exactly(_LENGTH.size))
            handshake.read_message(await pipe.read_exactly(length))
    return SecuredPipe(pipe, handshake.session())


class SecuredPipe(PipeOnPipe):
    """A pipe whose bytes travel in Noise transport messages of at most 65 535 bytes."""

    def __init__(self, inner: Pipe, session: NoiseSession) -> None:
        super().__init__(inner)
        self._sending = session.sending
        self._receiving = session.receiving
        self._partial = bytearray()
        self._wanted = 0
        """Length of ``_partial`` at which decoding can continue."""
        inner.attach(self)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        messages: list[bytes] = []
        for start in range(0, len(view), MAX_PLAINTEXT_BYTES):
            ciphertext = self._sending.encrypt(view[start : start + MAX_PLAINTEXT_BYTES])
            messages += (_LENGTH.pack(len(ciphertext)), ciphertext)
        self._inner.write(b"".join(messages))

    def pipe_lost(self, error: Exception | None) -> None:
        if not self._broken:
            self._broken = True
            self.lost(error)

    def _handle(self, data: bytes) -> bool:
        if self._partial:
            self._partial += data
            if len(self._partial) < self._wanted:
                return False
            data = bytes(self._partial)
            self._partial.clear()
        try:
            plaintext, used = self._decrypt_some(data)
            self._partial += memoryview(data)[used:]
            if plaintext:
                self.deliver(plaintext)
        except RemoteProtocolError as error:
            self._broken = True
            self.lost(error)
            self._inner.abort()
            return False
        return len(self._partial) >= self._wanted

    def _decrypt_some(self, data: bytes) -> tuple[bytes, int]:
        """Plaintext of the first whole messages, and how many bytes they took."""
        view = memoryview(data)
        plaintexts: list[bytes] = []
        offset = 0
        self._wanted = _LENGTH.size
        while len(data) - offset >= _LENGTH.size and len(plaintexts) < MESSAGES_PER_TURN:
            (length,) = _LENGTH.unpack_from(data, offset)
            start = offset + _LENGTH.size
            if start + length > len(data):
                self._wanted = _LENGTH.size + length
                break
            plaintexts.append(self._receiving.decrypt(view[start : start + length]))
            offset = start + length
        return (plaintexts[0] if len(plaintexts) == 1 else b"".join(plaintexts)), offset
