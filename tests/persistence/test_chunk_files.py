"""Chunks on disk: private, whole or not there, bounded, and checked whenever they are read."""

import asyncio
import errno
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import PutStatus
from engine.core.errors import RemoteProtocolError, StorageError, StorageFault
from engine.persistence import chunk_files, kept_chunks
from engine.persistence.chunk_files import ChunkFiles, write_durably
from engine.persistence.kept_chunks import DAY_S, LEAST_BYTES, KeptChunks
from tests.patience import PATIENCE_S


def chunk(number: int, size: int = 100) -> tuple[ChunkName, bytes]:
    sealed = number.to_bytes(4, "big") * (size // 4)
    return ChunkName(hashlib.sha256(sealed).digest()), sealed


def opened(path: Path, max_bytes: int = 10**6) -> ChunkFiles:
    files = ChunkFiles(path / "blobs", max_bytes=max_bytes)
    files.open()
    return files


def test_what_is_kept_comes_back_and_is_private(tmp_path: Path) -> None:
    files, (name, sealed), (other, _) = opened(tmp_path), chunk(1), chunk(2)
    files.keep(name, sealed)
    files.keep(name, sealed)
    assert files.held((name, other)) == (True, False)
    assert (files.read(name), files.read(other)) == (sealed, None)
    assert (files.used_bytes, files.names()) == (100, {name})
    place = tmp_path / "blobs" / name.hex()
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    again = opened(tmp_path)
    assert (again.read(name), again.used_bytes) == (sealed, 100)
    again.remove((name, other))
    assert (again.names(), again.used_bytes) == (set(), 0)


def test_bytes_of_another_name_are_refused(tmp_path: Path) -> None:
    files, (name, _), (_, other) = opened(tmp_path), chunk(1), chunk(2)
    with pytest.raises(RemoteProtocolError, match="blob_chunk_forged"):
        files.keep(name, other)
    assert not files.names()


@pytest.mark.parametrize("damage", [b"", b"other bytes"])
def test_what_was_damaged_is_gone(tmp_path: Path, damage: bytes) -> None:
    files, (name, sealed) = opened(tmp_path), chunk(1)
    files.keep(name, sealed)
    (tmp_path / "blobs" / name.hex()).write_bytes(damage)
    assert files.read(name) is None
    assert files.held((name,)) == (False,)


def test_what_a_crash_left_half_written_goes_at_the_next_start(tmp_path: Path) -> None:
    files, (name, sealed) = opened(tmp_path), chunk(1)
    files.keep(name, sealed)
    (tmp_path / "blobs" / f"{name.hex()}.7.new").write_bytes(sealed[:9])
    (tmp_path / "blobs" / "what is this").write_bytes(b"x")
    again = opened(tmp_path)
    assert again.names() == {name}
    assert not list((tmp_path / "blobs").glob("*.new"))


def test_there_is_a_limit(tmp_path: Path) -> None:
    files = opened(tmp_path, max_bytes=250)
    for number in range(2):
        files.keep(*chunk(number))
    with pytest.raises(StorageError) as full:
        files.keep(*chunk(2))
    assert full.value.fault is StorageFault.FILES_FULL
    files.remove(files.names())
    files.keep(*chunk(2))


def test_what_the_disk_does_not_let_go_is_not_said_to_be_gone(tmp_path: Path) -> None:
    files, (name, sealed), (stuck, _) = opened(tmp_path), chunk(1), chunk(2)
    files.keep(name, sealed)
    (tmp_path / "blobs" / stuck.hex()).mkdir()
    assert files.remove((name, stuck, chunk(3)[0])) == {name}
    assert files.held((name, stuck)) == (False, True)


def test_a_chunk_that_two_write_at_once_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, (name, sealed) = opened(tmp_path), chunk(1)
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def together(path: Path, data: bytes) -> None:
        both.wait()
        write_durably(path, data)

    monkeypatch.setattr(chunk_files, "write_durably", together)
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(files.keep, name, sealed) for _ in range(2)]:
            done.result()
    assert files.used_bytes == len(sealed)
    files.remove((name,))
    assert files.used_bytes == 0


def test_the_limit_holds_for_chunks_that_are_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = opened(tmp_path, max_bytes=150)
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(path: Path, data: bytes) -> None:
        begun.set()
        assert may_go_on.wait(PATIENCE_S)
        write_durably(path, data)

    monkeypatch.setattr(chunk_files, "write_durably", slowly)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(files.keep, *chunk(1))
        assert begun.wait(PATIENCE_S)
        monkeypatch.setattr(chunk_files, "write_durably", write_durably)
        with pytest.raises(StorageError):
            files.keep(*chunk(2))
        may_go_on.set()
        first.result()
    assert files.used_bytes == 100


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ENOSPC, StorageFault.DISK_FULL),
        (errno.EDQUOT, StorageFault.DISK_FULL),
        (errno.EROFS, StorageFault.READ_ONLY),
        (errno.EIO, StorageFault.DISK_ERROR),
    ],
)
def test_a_disk_that_refuses_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, fault: StorageFault
) -> None:
    files, (name, sealed) = opened(tmp_path), chunk(1)

    def fails(descriptor: int) -> None:
        del descriptor
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as then:
        then.setattr(os, "fsync", fails)
        with pytest.raises(StorageError) as refused:
            files.keep(name, sealed)
    assert refused.value.fault is fault
    assert not list((tmp_path / "blobs").iterdir())
    files.keep(name, sealed)
    assert files.read(name) == sealed


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_bytes(b"")
    with pytest.raises(StorageError):
        opened(tmp_path)


# --- what a node keeps for others -----------------------------------------------------------------


class Clock:
    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def keeping(path: Path, clock: Clock | None = None, max_bytes: int = 10**6) -> KeptChunks:
    kept = KeptChunks(path / "kept", max_bytes=max_bytes, max_days=30, now_s=clock or Clock())
    kept.open()
    return kept


async def test_a_node_keeps_what_it_took_and_finds_it_again(tmp_path: Path) -> None:
    kept, (name, sealed), (other, _) = keeping(tmp_path), chunk(1), chunk(2)
    for _ in range(2):
        assert await kept.take(sealed, source="s", keep_days=7) is PutStatus.TAKEN
    assert await kept.held((name, other)) == (True, False)
    assert (await kept.read(name), await kept.read(other)) == (sealed, None)
    (tmp_path / "kept" / "s" / "half.new").write_bytes(b"x")
    again = keeping(tmp_path)
    assert (await again.read(name), again.chunks, again.used_bytes) == (sealed, 1, LEAST_BYTES)
    (tmp_path / "kept" / "s" / name.hex()).write_bytes(b"damaged")
    assert await again.read(name) is None
    assert again.used_bytes == 0


@pytest.mark.parametrize(("keep_days", "kept_days"), [(7, 7), (0, 30), (9_999, 30)])
async def test_it_keeps_so_long_and_no_longer(
    tmp_path: Path, keep_days: int, kept_days: int
) -> None:
    clock = Clock()
    kept, (name, sealed) = keeping(tmp_path, clock), chunk(1)
    await kept.take(sealed, source="s", keep_days=keep_days)
    clock.now_s += kept_days * DAY_S - 1
    assert await keeping(tmp_path, clock).held((name,)) == (True,)
    clock.now_s += 1
    assert (await kept.held((name,)), await kept.read(name)) == ((False,), None)
    assert keeping(tmp_path, clock).chunks == 0
    assert not list((tmp_path / "kept").iterdir())


async def test_who_puts_most_loses_their_own_first(tmp_path: Path) -> None:
    kept = keeping(tmp_path, max_bytes=10 * LEAST_BYTES)
    mine = chunk(1)
    await kept.take(mine[1], source="mine", keep_days=7)
    for number in range(2, 40):
        status = await kept.take(chunk(number)[1], source="greedy", keep_days=7)
        assert status is PutStatus.TAKEN
    assert kept.used_bytes <= 10 * LEAST_BYTES
    assert await kept.held((mine[0], chunk(2)[0], chunk(39)[0])) == (True, False, True)
    assert (
        await kept.take(bytes(10 * LEAST_BYTES + 1), source="mine", keep_days=7) is PutStatus.FULL
    )


async def test_a_disk_that_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, (name, sealed) = keeping(tmp_path), chunk(1)

    def fails(path: Path, data: bytes) -> None:
        del path, data
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as then:
        then.setattr(kept_chunks, "write_durably", fails)
        assert await kept.take(sealed, source="s", keep_days=7) is PutStatus.FAILED
    assert (await kept.held((name,)), kept.used_bytes) == ((False,), 0)
    assert await kept.take(sealed, source="s", keep_days=7) is PutStatus.TAKEN


async def test_small_chunks_count_as_much_as_they_take(tmp_path: Path) -> None:
    """A file has its price, however little is in it: in blocks, in names and in memory."""
    kept = keeping(tmp_path, max_bytes=10 * LEAST_BYTES)
    for number in range(20):
        assert await kept.take(chunk(number, 17)[1], source="s", keep_days=7) is PutStatus.TAKEN
    assert kept.chunks == len(list((tmp_path / "kept" / "s").iterdir())) == 10
    assert keeping(tmp_path, max_bytes=5 * LEAST_BYTES).chunks == 5


async def test_what_expired_is_taken_anew(tmp_path: Path) -> None:
    clock = Clock()
    kept, (name, sealed) = keeping(tmp_path, clock), chunk(1)
    await kept.take(sealed, source="s", keep_days=1)
    clock.now_s += DAY_S
    assert await kept.take(sealed, source="s", keep_days=1) is PutStatus.TAKEN
    assert (await kept.held((name,)), await kept.read(name)) == ((True,), sealed)


async def test_what_expired_goes_although_nobody_puts_anything(tmp_path: Path) -> None:
    clock = Clock()
    kept, (name, sealed), (stays, other) = keeping(tmp_path, clock), chunk(1), chunk(2)
    await kept.take(sealed, source="s", keep_days=1)
    await kept.take(other, source="s", keep_days=2)
    looking = asyncio.create_task(kept.remove_expired_for_ever(every_s=0))
    clock.now_s += DAY_S
    async with asyncio.timeout(PATIENCE_S):
        while kept.chunks != 1:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert [entry.name for entry in (tmp_path / "kept" / "s").iterdir()] == [stays.hex()]
    assert await kept.held((name, stays)) == (False, True)
