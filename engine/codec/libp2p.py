"""libp2p messages: public keys, the Noise handshake payload, identify.

Specs: peer-ids, noise and identify of libp2p.  Bounds are checked here, where bytes become values.
A message that exceeds one is dropped whole with a RemoteProtocolError.  Only identify's lists are
cut at their bound, because real peers announce dozens of addresses that mean nothing to us.
"""

from enum import IntEnum

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from engine.core.errors import RemoteProtocolError
from proto import libp2p_pb2

MAX_PUBLIC_KEY_BYTES = 2_048
MAX_LISTEN_ADDRESSES = 32
MAX_PROTOCOLS = 256
MAX_PROTOCOL_LENGTH = 256
MAX_AGENT_LENGTH = 128


class KeyType(IntEnum):
    RSA = 0
    ED25519 = 1
    SECP256K1 = 2
    ECDSA = 3


class PublicKey(Struct, frozen=True, kw_only=True):
    """A key as in the ``PublicKey`` message: type and the type's own encoding."""

    key_type: KeyType
    data: bytes


class NoisePayload(Struct, frozen=True, kw_only=True):
    """The payload of Noise handshake messages 2 and 3 (noise-libp2p spec)."""

    identity_key: bytes
    """The encoded ``PublicKey``, exactly as sent."""
    identity_signature: bytes


class IdentifyMessage(Struct, frozen=True, kw_only=True):
    """identify 1.0.0.  None or empty: the field was missing (a push may be partial)."""

    public_key: bytes | None = None
    listen_addresses: tuple[bytes, ...] = ()
    protocols: tuple[str, ...] = ()
    observed_address: bytes | None = None
    protocol_version: str = ""
    agent_version: str = ""


def encode_public_key(key: PublicKey) -> bytes:
    message = libp2p_pb2.PublicKey(type=_wire_key_type(key.key_type), data=key.data)
    return message.SerializeToString(deterministic=True)


def decode_public_key(data: bytes) -> PublicKey:
    """Raises RemoteProtocolError ("public_key_…").

    The spec requires one encoding per key: another would give the same key a second peer id.
    """
    if len(data) > MAX_PUBLIC_KEY_BYTES:
        raise RemoteProtocolError("public_key_too_long")
    message = libp2p_pb2.PublicKey()
    _parse(message, data, "public_key_undecodable")
    if not (message.HasField("type") and message.HasField("data")):
        raise RemoteProtocolError("public_key_incomplete")
    try:
        key = PublicKey(key_type=KeyType(message.type), data=message.data)
    except ValueError as error:
        raise RemoteProtocolError("public_key_unknown_type") from error
    if encode_public_key(key) != data:
        raise RemoteProtocolError("public_key_not_canonical")
    return key


def encode_noise_payload(payload: NoisePayload) -> bytes:
    return libp2p_pb2.NoiseHandshakePayload(
        identity_key=payload.identity_key, identity_sig=payload.identity_signature
    ).SerializeToString(deterministic=True)


def decode_noise_payload(data: bytes) -> NoisePayload:
    """Raises RemoteProtocolError ("noise_payload_…").  Extensions are ignored."""
    message = libp2p_pb2.NoiseHandshakePayload()
    _parse(message, data, "noise_payload_undecodable")
    if not (message.HasField("identity_key") and message.HasField("identity_sig")):
        raise RemoteProtocolError("noise_payload_incomplete")
    return NoisePayload(identity_key=message.identity_key, identity_signature=message.identity_sig)


def encode_identify(identify: IdentifyMessage) -> bytes:
    message = libp2p_pb2.Identify(
        public_key=identify.public_key,
        listen_addrs=identify.listen_addresses,
        protocols=identify.protocols,
        observed_addr=identify.observed_address,
        protocol_version=identify.protocol_version or None,
        agent_version=identify.agent_version or None,
    )
    return message.SerializeToString(deterministic=True)


def decode_identify(data: bytes) -> IdentifyMessage:
    """Raises RemoteProtocolError("identify_undecodable")."""
    message = libp2p_pb2.Identify()
    _parse(message, data, "identify_undecodable")
    protocols = [name for name in message.protocols if 0 < len(name) <= MAX_PROTOCOL_LENGTH]
    return IdentifyMessage(
        public_key=message.public_key if message.HasField("public_key") else None,
        listen_addresses=tuple(message.listen_addrs[:MAX_LISTEN_ADDRESSES]),
        protocols=tuple(protocols[:MAX_PROTOCOLS]),
        observed_address=message.observed_addr if message.HasField("observed_addr") else None,
        protocol_version=message.protocol_version[:MAX_AGENT_LENGTH],
        agent_version=message.agent_version[:MAX_AGENT_LENGTH],
    )


def _wire_key_type(key_type: KeyType) -> libp2p_pb2.KeyType.ValueType:
    match key_type:
        case KeyType.RSA:
            return libp2p_pb2.RSA
        case KeyType.ED25519:
            return libp2p_pb2.ED25519
        case KeyType.SECP256K1:
            return libp2p_pb2.SECP256K1
        case KeyType.ECDSA:
            return libp2p_pb2.ECDSA


def _parse(message: Message, data: bytes, reason: str) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(reason) from error
