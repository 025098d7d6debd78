"""Inputs as long as a decoder may get them, made of as many small parts as fit.

Run as a program it feeds them to every decoder and prints by how many KiB the process has grown.
"""

import random
import resource
import sys
from collections.abc import Iterator

from engine.core.errors import BackupError, RemoteProtocolError, StorageError, TransportError
from engine.core.releases import ReleaseError
from tests.network.fuzz.decoders import DECODERS, Decoder

REFUSALS = (RemoteProtocolError, TransportError, BackupError, StorageError, ReleaseError)
"""The second where there is no more to say than that no connection comes of it."""


def is_refused(decoder: Decoder, data: bytes) -> bool:
    try:
        decoder.decode(data)
    except REFUSALS:
        return True
    return False


def crammed(decoder: Decoder) -> Iterator[bytes]:
    """Inputs of the largest size: one small thing again and again."""
    size = decoder.largest
    small = [
        *decoder.seeds,
        b"\0",
        b"\xff",
        *(bytes([number << 3 | 2, 0]) for number in (*range(1, 13), 15)),  # empty fields
        *(bytes([number << 3, 1]) for number in (1, 2, 3)),
        *(bytes([number << 3 | 2, 2, 2, 0]) for number in (1, 2, 3, 4)),  # one field deeper
        bytes([3 << 3 | 2, 4, 1 << 3 | 2, 2, 18, 0]),
        bytes([1 << 3 | 3]),  # groups in groups
        b"\x0a\x80\x80\x80\x80\x01",
    ]
    for part in small:
        if part:
            yield (part * (size // len(part) + 1))[:size]
    for number in (1, 2, 3, 4, 10, 20, 21):  # one field with all of it
        body = size - 8
        length = bytes([body & 0x7F | 0x80, body >> 7 & 0x7F | 0x80, body >> 14 & 0x7F | 0x80])
        head = (number << 3 | 2).to_bytes(1, "big") if number < 16 else bytes([162, number >> 4])
        yield head + length + bytes([body >> 21]) + b"\x01" * body
    yield random.Random(decoder.name).randbytes(size)


def largest_so_far_kib() -> int:
    largest: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest // 1024 if sys.platform == "darwin" else largest


def main() -> None:
    before = largest_so_far_kib()
    for decoder in DECODERS:
        for data in crammed(decoder):
            is_refused(decoder, data)
    sys.stdout.write(f"{largest_so_far_kib() - before}\n")


if __name__ == "__main__":
    main()
