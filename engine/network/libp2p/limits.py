"""Bounds and time-outs of a host.  None is unlimited, and reaching one is counted."""

from msgspec import Struct


class HostLimits(Struct, frozen=True, kw_only=True):
    max_connections: int = 256
    """Established, in and out, and our own that are in handshake."""
    max_inbound_connections: int = 192
    """Established.  Strangers cannot take the room that our own dials need."""
    max_inbound_per_address: int = 64
    """Established and in handshake, from one IPv4 address or one /48 of IPv6."""
    reserved_inbound: int = 96
    """Part of the inbound ones, for peers that behaved; lent to others while they are away."""
    behaved_ms: int = 600_000
    """A peer connected this long without misbehaving counts as behaved."""
    max_behaved: int = 512
    """Peers remembered as behaved."""
    max_handshakes: int = 64
    """Inbound connections that have not finished their handshake."""
    max_handshakes_per_address: int = 32
    """Of those, from one IPv4 address or one /48 of IPv6."""
    max_connections_per_peer: int = 4
    max_inbound_streams: int = 256
    """Per connection; any beyond this are reset."""
    max_outbound_streams: int = 1_024
    max_unread_bytes: int = 8 * 1024 * 1024
    """Per connection, over all its streams; the stream that exceeds it is reset."""
    max_unread_bytes_per_stream: int = 4 * 1024 * 1024
    """Where the muxer has no windows (mplex); beyond it the stream is reset."""
    max_queued_bytes: int = 4 * 1024 * 1024
    """Bytes for a peer that does not read; beyond this the connection is dropped."""
    max_kept_peers: int = 64
    max_kept_addresses: int = 8
    """Per kept peer."""
    dial_timeout_ms: int = 10_000
    handshake_timeout_ms: int = 10_000
    """From the socket to the identified peer."""
    stream_timeout_ms: int = 10_000
    """To agree on a protocol for a stream."""
    write_timeout_ms: int = 15_000
    """Without any progress: the stream is reset, or the connection dropped."""
    linger_timeout_ms: int = 10_000
    """For the peer to close its half after a handler has returned."""
    close_timeout_ms: int = 1_000
    ping_interval_ms: int = 8_000
    """The peer is pinged after this much silence."""
    ping_timeout_ms: int = 8_000
    idle_timeout_ms: int = 300_000
    """Dropped after this long without a stream.  Kept peers are exempt."""
    duplicate_grace_ms: int = 2_000
    """A second connection to a peer is closed after this, as soon as it has no stream."""
    address_check_interval_ms: int = 15_000
    """How often a node that listens on all addresses looks for new ones to tell its peers."""
    retry_first_ms: int = 250
    retry_cap_near_ms: int = 5_000
    retry_cap_far_ms: int = 60_000


def limits_for(devices: int) -> HostLimits:
    """So many inbound connections; what belongs to them grows with them, but shrinks for none."""
    usual = HostLimits()
    share = max(1.0, devices / usual.max_inbound_connections)
    return HostLimits(
        max_connections=devices + usual.max_connections - usual.max_inbound_connections,
        max_inbound_connections=devices,
        reserved_inbound=devices // 2,
        max_behaved=int(usual.max_behaved * share),
        max_handshakes=int(usual.max_handshakes * share),
    )
