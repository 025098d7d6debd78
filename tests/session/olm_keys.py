"""Which message key of Olm encrypted what was sent, read from the ciphertext alone."""

from collections.abc import Iterator

from engine.codec.olm import PRE_KEY, decode_olm_envelope


def key_used(sealed: bytes) -> tuple[bytes, int]:
    """Ratchet key and place in its chain: which message key of Olm encrypted it."""
    envelope = decode_olm_envelope(sealed)
    fields = dict(_fields(envelope.ciphertext[1:-8]))
    if envelope.kind == PRE_KEY:
        inner = dict(_fields(envelope.ciphertext[1:]))[4]
        assert isinstance(inner, bytes)
        fields = dict(_fields(inner[1:-8]))
    ratchet_key, place = fields[1], fields[2]
    assert isinstance(ratchet_key, bytes)
    assert isinstance(place, int)
    return ratchet_key, place


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer, as far as it is one."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while at < len(data):
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            length = varint()
            yield tag >> 3, data[at : at + length]
            at += length
