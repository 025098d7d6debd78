"""The pages of a SQLCipher 4 file: which of them are as they were written, and mending one.

Each page of 4096 bytes ends with the vector of AES-256-CBC and an HMAC-SHA512 over both and the
page's number (zetetic.net/sqlcipher/design).  The first 16 bytes of the file, in place of SQLite's
magic, are the salt of the HMAC's key.  SQLCipher itself opens nothing whose first page fails, and
reads no page after one that failed, so what a damaged file still holds is found here.

The HMAC also says what a single changed bit, the commonest damage, was before: of 32 768 pages
that differ in one bit at most one is authentic.
"""

import hashlib
import hmac
import secrets
import struct
from typing import Final, Self

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

PAGE_BYTES: Final = 4096
SALT_BYTES: Final = 16
_MAC_BYTES: Final = 64
_VECTOR_BYTES: Final = 16
_PLAIN_BYTES: Final = PAGE_BYTES - _VECTOR_BYTES - _MAC_BYTES
_SALT_MASK: Final = bytes([0x3A]) * SALT_BYTES
_MAC_KEY_ROUNDS: Final = 2
_MAC_KEY_BYTES: Final = 32
_NUMBER: Final = struct.Struct("<I")
_MAGIC: Final = b"SQLite format 3\0"
_SIZE_AT: Final = slice(28, 32)
"""Of the database header in a first page: how many pages there are."""
_CHANGES_AT: Final = slice(24, 28)
_SIZE_VALID_FOR_AT: Final = slice(92, 96)
"""The size counts if these two agree."""


class PageCipher:
    """Of one file: its raw key and its salt."""

    def __init__(self, key: bytes, salt: bytes) -> None:
        mac_salt = bytes(a ^ b for a, b in zip(salt, _SALT_MASK, strict=True))
        mac_key = hashlib.pbkdf2_hmac("sha512", key, mac_salt, _MAC_KEY_ROUNDS, _MAC_KEY_BYTES)
        self._key = key
        self._mac = hmac.new(mac_key, digestmod=hashlib.sha512)
        self.salt = salt

    @classmethod
    def of_first_page(cls, key: bytes, page: bytes) -> Self:
        return cls(key, page[:SALT_BYTES])

    def is_authentic(self, page: bytes, number: int) -> bool:
        """``page`` as it lies in the file; numbers begin with 1."""
        if len(page) != PAGE_BYTES:
            return False
        start = _start(number)
        return hmac.compare_digest(self._tag(page[start:-_MAC_BYTES], number), page[-_MAC_BYTES:])

    def mended(self, page: bytes, number: int) -> bytes | None:
        """The authentic page that differs from this one in one bit, if there is one.

        A seventh of a second.  The salt is not among the bits that are tried.
        """
        if len(page) != PAGE_BYTES:
            return None
        start, stored = _start(number), page[-_MAC_BYTES:]
        body = page[start:-_MAC_BYTES]
        tag = self._tag(body, number)
        if _differing_bits(tag, stored) == 1:
            return page[:-_MAC_BYTES] + tag
        before = self._mac.copy()  # of what comes before the byte in which a bit is tried
        for at, byte in enumerate(body):
            rest = body[at + 1 :] + _NUMBER.pack(number)
            for bit in range(8):
                tried, mac = bytes([byte ^ 1 << bit]), before.copy()
                mac.update(tried + rest)
                if mac.digest() == stored:
                    return page[:start] + body[:at] + tried + body[at + 1 :] + stored
            before.update(body[at : at + 1])
        return None

    def with_size(self, first_page: bytes, pages: int) -> bytes:
        """The same first page, saying that the file has so many."""
        plain = bytearray(self.opened(first_page, 1))
        plain[_SIZE_AT] = pages.to_bytes(4, "big")
        plain[_SIZE_VALID_FOR_AT] = plain[_CHANGES_AT]
        return self._sealed(bytes(plain), 1)

    def size_in(self, first_page: bytes) -> int:
        """How many pages the file has by its authentic first page."""
        return int.from_bytes(self.opened(first_page, 1)[_SIZE_AT], "big")

    def opened(self, page: bytes, number: int) -> bytes:
        """The content of an authentic page, without vector and HMAC.

        The first one has SQLite's magic in place of the salt, as SQLite reads it.
        """
        start = _start(number)
        vector = page[_PLAIN_BYTES : _PLAIN_BYTES + _VECTOR_BYTES]
        opening = Cipher(AES(self._key), CBC(vector)).decryptor()
        plain = opening.update(page[start:_PLAIN_BYTES]) + opening.finalize()
        return _MAGIC[:start] + plain

    def _sealed(self, plain: bytes, number: int) -> bytes:
        start, vector = _start(number), secrets.token_bytes(_VECTOR_BYTES)
        sealing = Cipher(AES(self._key), CBC(vector)).encryptor()
        body = sealing.update(plain[start:]) + sealing.finalize() + vector
        return self.salt[:start] + body + self._tag(body, number)

    def _tag(self, body: bytes | bytearray, number: int) -> bytes:
        mac = self._mac.copy()
        mac.update(body)
        mac.update(_NUMBER.pack(number))
        return mac.digest()


def cipher_of(key: bytes, first_page: bytes) -> PageCipher | None:
    """For a first page that is authentic but for one bit of its salt at most; None: it is not."""
    if len(first_page) != PAGE_BYTES:
        return None
    salt = bytearray(first_page[:SALT_BYTES])
    for bit in (None, *range(SALT_BYTES * 8)):
        if bit is not None:
            salt[bit // 8] ^= 1 << bit % 8
        cipher = PageCipher(key, bytes(salt))
        if cipher.is_authentic(first_page, 1):
            return cipher
        if bit is not None:
            salt[bit // 8] ^= 1 << bit % 8
    return None


def _start(number: int) -> int:
    return SALT_BYTES if number == 1 else 0


def _differing_bits(one: bytes, other: bytes) -> int:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()
