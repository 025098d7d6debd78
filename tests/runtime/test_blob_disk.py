"""The blobs of a profile on its disk: what stays, what goes, and what one file can do to others."""

from pathlib import Path

from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.crypto.blobs import name_of, seal_names
from engine.runtime.files.disk import BlobDisk, FilesSettings
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
