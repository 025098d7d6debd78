"""The seals of a backup: nothing that was changed, moved, left out or added opens."""

import subprocess
import sys
from itertools import permutations

import pytest

from engine.core.backup import MAX_MEMORY_KIB, BackupHeader, Cost
from engine.core.errors import BackupError, BackupFlaw
from engine.core.ids import UnixMs
from engine.crypto.backup import (
    BackupSecret,
    StreamOpener,
    StreamSealer,
    derive_secret,
    pseudonym_of,
)

CHEAP = Cost(memory_kib=64, iterations=1, lanes=1)
SALT = b"s" * 16


def secret_of(passphrase: str) -> BackupSecret:
    return derive_secret(passphrase, salt=SALT, cost=CHEAP)


def header(file_salt: bytes = b"f" * 32) -> BackupHeader:
    return BackupHeader(
        cost=CHEAP,
        salt=SALT,
        file_salt=file_salt,
        schema_version=9,
        app_version="1",
        created_ms=UnixMs(1),
        pseudonym=b"12345678",
    )


def sealed(parts: list[bytes]) -> tuple[bytes, list[bytes]]:
    sealer = StreamSealer(header(), secret_of("correct horse"))
    last = len(parts) - 1
    return sealer.header, [sealer.seal(p, is_last=n == last) for n, p in enumerate(parts)]


def opened(start: bytes, parts: list[bytes]) -> list[bytes]:
    opener = StreamOpener(start, secret_of("correct horse"))
    last = len(parts) - 1
    return [opener.open(part, is_last=n == last) for n, part in enumerate(parts)]


PARTS = [b"one", b"two", b"three"]


def test_a_hostile_cost_is_refused_in_words_where_memory_is_short() -> None:
    """The most that a header may ask for, in a process that may have less."""
    most = Cost(memory_kib=MAX_MEMORY_KIB, iterations=1, lanes=1)
    assert most.is_allowed
    assert MAX_MEMORY_KIB <= 256 * 1024
    code = (
        "import resource\n"
        "from engine.core.backup import Cost\n"
        "from engine.core.errors import BackupError\n"
        "from engine.crypto.backup import derive_secret\n"
        "from pathlib import Path\n"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))\n"
        f"cost = Cost(memory_kib={MAX_MEMORY_KIB}, iterations=1, lanes=1)\n"
        "try:\n"
        "    derive_secret('correct horse', salt=b's' * 16, cost=cost)\n"
        "except BackupError as error:\n"
        "    print(error.flaw.value, error.detail)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["too_little_memory", "256"]


def test_what_was_sealed_opens_in_its_order_only() -> None:
    start, parts = sealed(PARTS)
    assert opened(start, parts) == PARTS
    for order in permutations(parts):
        if list(order) != parts:
            with pytest.raises(BackupError):
                opened(start, list(order))


def test_nothing_can_be_left_out_added_or_changed() -> None:
    start, parts = sealed(PARTS)
    for wrong in (parts[:-1], parts[1:], parts[:1], [*parts, parts[-1]], [*parts, parts[0]]):
        with pytest.raises(BackupError) as refused:
            opened(start, wrong)
        assert refused.value.flaw is BackupFlaw.DAMAGED
    for number, part in enumerate(parts):
        for place in range(8 * len(part)):
            bent = bytearray(part)
            bent[place // 8] ^= 1 << place % 8
            with pytest.raises(BackupError):
                opened(start, [*parts[:number], bytes(bent), *parts[number + 1 :]])


def test_another_passphrase_is_told_from_damage() -> None:
    start, _ = sealed(PARTS)
    with pytest.raises(BackupError) as refused:
        StreamOpener(start, secret_of("correct horsf"))
    assert refused.value.flaw is BackupFlaw.NOT_OPENED


def test_chunks_of_another_file_under_the_same_passphrase_do_not_open() -> None:
    start, _ = sealed(PARTS)
    other = StreamSealer(header(b"g" * 32), secret_of("correct horse"))
    with pytest.raises(BackupError):
        opened(start, [other.seal(b"one", is_last=True)])


def test_a_passphrase_counts_by_its_characters_and_has_enough_of_them() -> None:
    assert secret_of("caf\u00e9 au lait") == secret_of("cafe\u0301 au lait")
    assert secret_of("Correct horse") != secret_of("correct horse")
    for wrong in ("", "seven77", "x" * 1_025):
        with pytest.raises(BackupError) as refused:
            secret_of(wrong)
        assert refused.value.flaw is BackupFlaw.TOO_SHORT


def test_a_secret_shows_itself_nowhere() -> None:
    secret = secret_of("correct horse")
    assert secret.secret.hex() not in repr(secret)
    assert repr(secret.secret) not in repr(secret)


def test_a_pseudonym_is_a_profiles_own() -> None:
    assert pseudonym_of(b"k" * 32) == pseudonym_of(b"k" * 32)
    assert pseudonym_of(b"k" * 32) != pseudonym_of(b"l" * 32)
