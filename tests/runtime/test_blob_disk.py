"""The blobs of a profile on its disk: what stays, what goes, and what one file can do to others."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.crypto.blobs import name_of, open_chunk, seal_names
from engine.persistence import chunk_files
from engine.persistence.chunk_files import write_durably
from engine.runtime.files import disk as disk_module
from engine.runtime.files.disk import BlobDisk, FilesSettings
from tests.patience import PATIENCE_S
from tests.runtime.blob_people import random_file

KEY = bytes(range(32))
OTHER_KEY = bytes(32)


async def opened(place: Path) -> BlobDisk:
    disk = BlobDisk(FilesSettings(chunks=place / "blobs", opened=place / "opened"))
    await disk.open()
    return disk


async def test_a_list_that_names_chunks_of_another_file_does_not_remove_them(
    tmp_path: Path,
) -> None:
    disk = await opened(tmp_path)
    path = random_file(tmp_path, 2 * CHUNK_BYTES)
    whole = await disk.seal(path, KEY)
    names = await disk.names(whole)
    assert names is not None
    sealed = seal_names(OTHER_KEY, names)
    liar = Manifest(key=OTHER_KEY, root=ChunkName(name_of(sealed)), size=whole.size)
    await disk.keep(liar.root, sealed)
    await disk.remove([liar], [whole])
    assert await disk.data(whole) == path.read_bytes()
    assert await disk.read(liar.root) is None
    await disk.close()


async def test_a_copy_that_is_being_opened_does_not_stay_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = await opened(tmp_path)
    whole = await disk.seal(random_file(tmp_path, CHUNK_BYTES), KEY)
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(manifest: Manifest, index: int, sealed: bytes) -> bytes:
        begun.set()
        assert may_go_on.wait(PATIENCE_S), "the loop is blocked"
        return open_chunk(manifest, index, sealed)

    monkeypatch.setattr(disk_module, "open_chunk", slowly)
    opening = asyncio.create_task(disk.open_copy(whole, "film.bin", is_received=True))
    assert await asyncio.to_thread(begun.wait, PATIENCE_S)
    closing = asyncio.create_task(disk.close())
    await asyncio.to_thread(begun.wait)  # Meanwhile it closes as far as it can.
    may_go_on.set()
    await closing
    await opening
    assert not (tmp_path / "opened").exists()


async def test_a_file_is_saved_beside_whatever_lies_there(tmp_path: Path) -> None:
    """A name that somebody could guess may be a link of theirs to a file of the user's."""
    disk = await opened(tmp_path)
    path = random_file(tmp_path, CHUNK_BYTES)
    whole = await disk.seal(path, KEY)
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / f".film.bin.{os.getpid()}.part").symlink_to(precious)
    await disk.write_to(whole, shared / "film.bin", is_received=True)
    assert precious.read_bytes() == b"precious"
    assert (shared / "film.bin").read_bytes() == path.read_bytes()
    await disk.close()


async def test_a_file_is_saved_under_the_longest_name(tmp_path: Path) -> None:
    disk = await opened(tmp_path)
    path = random_file(tmp_path, CHUNK_BYTES)
    whole = await disk.seal(path, KEY)
    place = tmp_path / ("\N{GRINNING FACE}" * 62 + ".bin")
    await disk.write_to(whole, place, is_received=True)
    assert place.read_bytes() == path.read_bytes()
    await disk.close()


async def test_an_open_copy_goes_with_its_file(tmp_path: Path) -> None:
    disk = await opened(tmp_path)
    path = random_file(tmp_path, CHUNK_BYTES)
    whole = await disk.seal(path, KEY)
    copy = await disk.open_copy(whole, "film.bin", is_received=True)
    assert copy.read_bytes() == path.read_bytes()
    await disk.remove([whole], [])
    assert not copy.exists()
    await disk.close()


async def test_a_chunk_that_is_being_written_is_there_before_its_task_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What removes the chunks of a transfer that it ended must find them all."""
    disk = await opened(tmp_path)
    sealed = b"sealed by somebody"
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(path: Path, data: bytes) -> None:
        begun.set()
        assert may_go_on.wait(PATIENCE_S)
        write_durably(path, data)

    monkeypatch.setattr(chunk_files, "write_durably", slowly)
    keeping = asyncio.create_task(disk.keep(name_of(sealed), sealed))
    assert await asyncio.to_thread(begun.wait, PATIENCE_S)
    keeping.cancel()
    asyncio.get_running_loop().call_soon(may_go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert await disk.held([name_of(sealed)]) == (True,)
    await disk.close()
