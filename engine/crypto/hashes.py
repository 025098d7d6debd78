"""SDS-R's H, which is injected into the core."""

from hashlib import sha256


def hash64(text: str) -> int:
    """First 8 bytes, big-endian, of sha256 of the UTF-8 text."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")
