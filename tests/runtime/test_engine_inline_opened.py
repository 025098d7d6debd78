"""Files of at most 96 KiB are opened as larger ones are: in a private copy that goes again."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from engine.core.errors import CommandError, CommandRefusal, StorageError, StorageFault
from engine.core.ids import ConversationId, MessageId
from tests.patience import PATIENCE_S
from tests.runtime.blob_people import FilePerson, content, people
from tests.runtime.test_engine_annotations import shown


async def notes(person: FilePerson, group: ConversationId, name: str = "notes.txt") -> MessageId:
    return await person.engine.timeline.send_file(
        group, name=name, media_type="text/plain", data=b"low water 10:52"
    )


def private(path: str) -> bool:
    return Path(path).parent.stat().st_mode & 0o777 == 0o700


async def gone(path: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while Path(path).exists():  # noqa: ASYNC110, ASYNC240 - the disk tells nobody
            await asyncio.sleep(0)


async def test_a_file_that_came_with_its_message_is_opened_in_a_private_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[Path] = []
    monkeypatch.setattr("engine.persistence.saved_file.mark_as_received", marked.append)
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await notes(alice, group)
        await bob.until(shown(lambda m: m.message_id == sent))
        own = await alice.engine.files.open_path(group, sent)
        opened = await bob.engine.files.open_path(group, sent)
        for path in (own, opened):
            assert content(path) == (b"low water 10:52", 0o600)
            assert path.endswith("notes.txt")
            assert private(path)
        assert len(marked) == 1, "only what came from somebody else says so"
        assert await bob.engine.files.open_path(group, sent) == opened, "one copy is enough"
        other = await notes(alice, group)
        await bob.until(shown(lambda m: m.message_id == other))
        assert await bob.engine.files.open_path(group, other) != opened
        text = await bob.engine.timeline.send_text(group, "Thanks")
        with pytest.raises(CommandError) as no_file:
            await bob.engine.files.open_path(group, text)
        assert no_file.value.refusal is CommandRefusal.NO_FILE
    assert not (tmp_path / "Bob.opened").exists(), "open copies go at the end"


@pytest.mark.parametrize("by_all", [True, False])
async def test_the_copy_goes_with_its_message(tmp_path: Path, by_all: bool) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent, other = await notes(alice, group), await notes(alice, group, "kept.txt")
        await bob.until(shown(lambda m: m.message_id == other))
        opened = await bob.engine.files.open_path(group, sent)
        kept = await bob.engine.files.open_path(group, other)
        if by_all:
            await alice.engine.timeline.retract(group, sent)
        else:
            await bob.engine.timeline.delete_locally(group, sent)
        await gone(opened)
        assert content(kept)[0] == b"low water 10:52"


async def test_a_full_disk_leaves_no_part_of_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        del descriptor
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    alice = FilePerson("Alice", tmp_path)
    async with people(alice) as group:
        sent = await notes(alice, group)
        with monkeypatch.context() as then:
            then.setattr("engine.persistence.saved_file.os.fsync", full)
            with pytest.raises(StorageError) as unwritten:
                await alice.engine.files.open_path(group, sent)
        assert unwritten.value.fault is StorageFault.FILE_NOT_WRITTEN
        assert content(await alice.engine.files.open_path(group, sent))[0] == b"low water 10:52"
