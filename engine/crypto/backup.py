"""Keys and seals of a backup file: Argon2id, HKDF, and chunks that prove their place.

Argon2id makes a secret of the passphrase, which is slow on purpose; HKDF makes of it, of the file's
own salt and of its whole header the key of this one file, and a commitment to it, so that a wrong
passphrase is told from damage.  The content is sealed as in the STREAM construction (Hoang,
Reyhanitabar, Rogaway, Vizár 2015): ChaCha20-Poly1305 with the chunk's number and whether it is the
last one in the nonce.  A chunk that is changed, moved, left out or added does not open.
"""

import hashlib
import hmac
import unicodedata
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.codec.backup import damaged, decode_backup_header, encode_backup_header, header_fields
from engine.codec.tuples import tuple_bytes
from engine.core.backup import (
    COMMITMENT_BYTES,
    KEY_BYTES,
    MAX_PASSPHRASE_CHARACTERS,
    MIN_PASSPHRASE_CHARACTERS,
    PSEUDONYM_BYTES,
    BackupHeader,
    Cost,
)
from engine.core.errors import BackupError, BackupFlaw

CHUNK_BYTES: Final = 256 * 1024
TAG_BYTES: Final = 16
SEALED_CHUNK_BYTES: Final = CHUNK_BYTES + TAG_BYTES

_FILE_DOMAIN: Final = "causerie/1/backup"
_PSEUDONYM_DOMAIN: Final = "causerie/1/backup-pseudonym"
_NUMBER_BYTES: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSecret:
    """Made of a passphrase; opens every backup with the same salt and cost."""

    cost: Cost
    salt: bytes
    secret: bytes = field(repr=False)


def derive_secret(passphrase: str, *, salt: bytes, cost: Cost) -> BackupSecret:
    """Takes about half a second and ``cost.memory_kib``.

    The passphrase's characters count, not how a keyboard composed them (NFC).  Raises BackupError
    if there are too few or too many, or if there is not so much memory.
    """
    normal = unicodedata.normalize("NFC", passphrase)
    if not MIN_PASSPHRASE_CHARACTERS <= len(normal) <= MAX_PASSPHRASE_CHARACTERS:
        raise BackupError(
            BackupFlaw.TOO_SHORT,
            f"A passphrase has {MIN_PASSPHRASE_CHARACTERS} characters or more.",
            f"{MIN_PASSPHRASE_CHARACTERS}",
        )
    argon = Argon2id(
        salt=salt,
        length=KEY_BYTES,
        iterations=cost.iterations,
        lanes=cost.lanes,
        memory_cost=cost.memory_kib,
    )
    try:
        secret = argon.derive(normal.encode("utf-8", "surrogatepass"))
    except MemoryError as error:
        megabytes = cost.memory_kib // 1_024
        raise BackupError(
            BackupFlaw.TOO_LITTLE_MEMORY,
            f"The passphrase of this backup takes {megabytes} MB of memory, which is not there.",
            f"{megabytes}",
        ) from error
    return BackupSecret(cost=cost, salt=salt, secret=secret)


def pseudonym_of(signing_key: bytes) -> bytes:
    """The same for all backups of a profile; says nothing to those who do not know its key."""
    named = hmac.digest(signing_key, _PSEUDONYM_DOMAIN.encode(), "sha256")
    return named[:PSEUDONYM_BYTES]


class StreamSealer:
    """Seals the content of one file, chunk by chunk; ``header`` stands before them."""

    def __init__(self, header: BackupHeader, secret: BackupSecret) -> None:
        key, commitment = _file_key(header, secret)
        self._cipher = ChaCha20Poly1305(key)
        self._number = 0
        self.header: bytes = encode_backup_header(header, commitment)

    def seal(self, chunk: bytes, *, is_last: bool) -> bytes:
        """CHUNK_BYTES of content, or fewer in the last chunk."""
        sealed = self._cipher.encrypt(_nonce(self._number, is_last=is_last), chunk, None)
        self._number += 1
        return sealed


class StreamOpener:
    """Opens what ``StreamSealer`` sealed, in the same order.

    Raises BackupError, ``NOT_OPENED`` if the header was made with another secret.
    """

    def __init__(self, header: bytes, secret: BackupSecret) -> None:
        parsed, commitment = decode_backup_header(header)
        key, expected = _file_key(parsed, secret)
        if not hmac.compare_digest(commitment, expected):
            raise BackupError(BackupFlaw.NOT_OPENED, "This is not the backup's passphrase.")
        self._cipher = ChaCha20Poly1305(key)
        self._number = 0

    def open(self, sealed: bytes, *, is_last: bool) -> bytes:
        """Raises BackupError if it is not the chunk that was sealed here."""
        try:
            chunk = self._cipher.decrypt(_nonce(self._number, is_last=is_last), sealed, None)
        except InvalidTag as error:
            raise damaged(f"chunk {self._number} of its content") from error
        self._number += 1
        return chunk


def _file_key(header: BackupHeader, secret: BackupSecret) -> tuple[bytes, bytes]:
    info = tuple_bytes(_FILE_DOMAIN, hashlib.sha256(header_fields(header)).digest())
    derived = HKDF(
        algorithm=SHA256(),
        length=KEY_BYTES + COMMITMENT_BYTES,
        salt=header.file_salt,
        info=info,
    ).derive(secret.secret)
    return derived[:KEY_BYTES], derived[KEY_BYTES:]


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big") + (b"\1" if is_last else b"\0")
