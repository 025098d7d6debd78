"""What Windows and macOS are told of a file that came from somebody else."""

import re
from pathlib import Path

import pytest

from engine.core.errors import StorageError, StorageFault
from engine.persistence import saved_file
from engine.persistence.origin_mark import QUARANTINE, mark_as_received
from engine.persistence.saved_file import write_whole


class Disk:
    """Streams and attributes as NTFS and APFS have them; ``refuses`` as FAT does."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.streams: dict[str, bytes] = {}
        self.attributes: dict[tuple[str, str], bytes] = {}
        self._refuses = refuses

    def write(self, path: str, data: bytes) -> None:
        if self._refuses:
            raise OSError
        self.streams[path] = data

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        if self._refuses:
            raise OSError
        self.attributes[path, name] = value

    def mark(self, system: str) -> None:
        mark_as_received(
            Path("/d/setup.exe"),
            system=system,
            write=self.write,
            set_attribute=self.set_attribute,
        )


def test_windows_learns_that_it_came_from_the_internet() -> None:
    disk = Disk()
    disk.mark("win32")
    zone = b"[ZoneTransfer]\r\nZoneId=3\r\n"
    assert disk.streams == {f"{Path('/d/setup.exe')}:Zone.Identifier": zone}
    assert not disk.attributes


def test_macos_lets_gatekeeper_look_at_it() -> None:
    disk = Disk()
    disk.mark("darwin")
    [((path, name), value)] = disk.attributes.items()
    assert (path, name) == (str(Path("/d/setup.exe")), QUARANTINE)
    assert re.fullmatch(rb"0083;[0-9a-f]{8};Causerie;", value)
    assert not disk.streams


def test_elsewhere_nothing_is_said() -> None:
    disk = Disk()
    disk.mark("linux")
    assert (disk.streams, disk.attributes) == ({}, {})


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_a_disk_without_room_for_the_mark_leaves_it_out(system: str) -> None:
    Disk(refuses=True).mark(system)


@pytest.mark.parametrize("is_received", [True, False])
def test_a_saved_file_has_the_mark_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_received: bool
) -> None:
    target, marked = tmp_path / "setup.exe", list[bytes]()

    def mark(path: Path) -> None:
        assert not target.exists()
        marked.append(path.read_bytes())

    monkeypatch.setattr(saved_file, "mark_as_received", mark)
    write_whole(target, (b"ab", b"c"), is_received=is_received)
    assert target.read_bytes() == b"abc"
    assert marked == ([b"abc"] if is_received else [])
    assert list(tmp_path.iterdir()) == [target]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> list[bytes]:
        raise StorageError("a part is gone", StorageFault.DAMAGED)

    target = tmp_path / "a.bin"
    target.write_bytes(b"older")
    with pytest.raises(StorageError) as gone:
        write_whole(target, (piece for _ in "x" for piece in pieces()), is_received=True)
    assert gone.value.fault is StorageFault.DAMAGED
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.bin", b"older")]
    with pytest.raises(StorageError) as unwritable:
        write_whole(tmp_path / "none" / "a.bin", (b"a",), is_received=True)
    assert unwritable.value.fault is StorageFault.FILE_NOT_WRITTEN
