"""The libp2p messages that this node reads and writes, as our own types.

Their bytes are ``engine.codec.libp2p``'s business.  Every field of a decoded message is bounded;
what the values mean (is the key the peer's own? is an address dialable?) is judged by the protocol
that asked for them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePayload:
    """What the Noise handshake carries in messages 2 and 3 (noise-libp2p spec)."""

    identity_key: bytes
    """The encoded ``PublicKey``, exactly as sent."""
    identity_signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyMessage:
    """identify 1.0.0.  None or empty: the field was missing (a push may be partial)."""

    public_key: bytes | None = None
    listen_addresses: tuple[bytes, ...] = ()
    protocols: tuple[str, ...] = ()
    observed_address: bytes | None = None
    protocol_version: str = ""
    agent_version: str = ""
