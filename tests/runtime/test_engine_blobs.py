"""Files beyond 96 KiB between engines on real nodes: sent, fetched, resumed, kept, refused."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from hashlib import sha256
from math import inf
from pathlib import Path

import pytest

from engine.api import MAX_FILE_BYTES, MAX_LARGE_FILE_BYTES, MAX_READ_BYTES
from engine.core.blobs.download import DownloadConfig
from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.core.contacts import ContactState
from engine.core.errors import (
    CommandError,
    CommandRefusal,
    InputError,
    InputFlaw,
    LocalProtocolError,
    StorageError,
    StorageFault,
)
from engine.core.ids import ChannelId, ContentTopic
from engine.core.problems import FileFault, FileProblem
from engine.core.records import ChannelName
from engine.events import EngineEvent, MessageChanged
from engine.file_views import FileProgressed, FileState
from engine.persistence import saved_file
from engine.runtime.files import transfer
from engine.runtime.files.disk import BlobDisk
from tests.runtime.blob_people import (
    MIB,
    SIZE,
    FilePerson,
    content,
    failing_with,
    keeping_node,
    people,
    random_file,
)
from tests.runtime.test_engine_annotations import own_id, shown
from tests.runtime.test_engine_contacts import state_is

PNG = b"\x89PNG\r\n\x1a\n"


async def test_a_file_goes_from_one_to_another(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    data = path.read_bytes()
    async with people(alice, bob) as group:
        sent = await alice.send(group, path)
        ours = await alice.shown(group, sent)
        assert (ours.state, ours.is_upload, ours.size) == (FileState.COMPLETE, True, SIZE)
        offered = await bob.until_state(sent, FileState.OFFERED)
        assert (offered.name, offered.size, offered.done_bytes) == ("film.bin", SIZE, 0)
        with pytest.raises(CommandError) as not_yet:
            await bob.engine.files.read(group, sent)
        assert not_yet.value.refusal is CommandRefusal.NOT_COMPLETE
        await bob.engine.files.fetch(group, sent)
        done = await bob.until_state(sent, FileState.COMPLETE)
        assert (done.done_bytes, done.problem) == (SIZE, None)
        for person in (alice, bob):
            assert await person.engine.files.read(group, sent) == data
        target = tmp_path / "saved.bin"
        target.write_bytes(b"older")
        await bob.engine.files.save_as(group, sent, str(target))
        assert target.read_bytes() == data
        opened = await bob.engine.files.open_path(group, sent)
        assert content(opened) == (data, 0o600)
        assert opened.endswith("film.bin")
        for chunk in bob.chunks.iterdir():
            sealed, mode = content(chunk)
            assert mode == 0o600
            assert data[:64] not in sealed
        with pytest.raises(CommandError) as too_large:
            await bob.engine.files.read(group, sent, limit=SIZE - 1)
        assert too_large.value.refusal is CommandRefusal.TOO_LARGE_TO_SHOW
        with pytest.raises(StorageError) as unwritable:
            await bob.engine.files.save_as(group, sent, str(tmp_path / "none" / "x"))
        assert unwritable.value.fault is StorageFault.FILE_NOT_WRITTEN
    assert not (tmp_path / "Bob.opened").exists(), "open copies go at the end"


async def test_while_a_whole_file_is_checked_nothing_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checking, may = asyncio.Event(), asyncio.Event()
    verify = BlobDisk.verify

    async def slow(disk: BlobDisk, manifest: Manifest, names: Sequence[ChunkName]) -> bool:
        checking.set()
        await may.wait()
        return await verify(disk, manifest, names)

    monkeypatch.setattr(BlobDisk, "verify", slow)
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await checking.wait()
        checked = await bob.shown(group, sent)
        assert (checked.state, checked.done_bytes) == (FileState.RUNNING, SIZE)
        assert checked.problem is None
        may.set()
        await bob.until_state(sent, FileState.COMPLETE)


async def test_the_second_gets_it_from_the_first_when_the_sender_is_gone(tmp_path: Path) -> None:
    alice, bob, carol = (FilePerson(name, tmp_path) for name in ("Alice", "Bob", "Carol"))
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob, carol) as group:
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        await carol.until_state(sent, FileState.OFFERED)
        assert carol.node is not None
        carol.node.add_peers(bob.addresses())
        await alice.engine.stop()
        await carol.engine.files.fetch(group, sent)
        await carol.until_state(sent, FileState.COMPLETE)
        assert await carol.engine.files.read(group, sent) == path.read_bytes()


async def test_who_has_it_as_a_whole_says_so(tmp_path: Path) -> None:
    alice, bob, carol = (FilePerson(name, tmp_path) for name in ("Alice", "Bob", "Carol"))
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob, carol) as group:
        sent = await alice.send(group, path)
        for person in (bob, carol):
            await person.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        for person in (alice, carol):
            held = await person.until_file(sent, lambda file: bool(file.held_whole_by))
            assert held.held_whole_by == (own_id(bob),)
        assert (await bob.shown(group, sent)).held_whole_by == ()
        await carol.engine.files.fetch(group, sent)
        both = tuple(sorted((own_id(bob), own_id(carol))))
        await alice.until_file(sent, lambda file: file.held_whole_by == both)
        await alice.restart()
        assert (await alice.shown(group, sent)).held_whole_by == both


async def test_in_a_pair_who_has_it_as_a_whole_says_so_too(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob):
        pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
        await bob.until(state_is(ContactState.ASKING))
        await bob.engine.people.accept(pair)
        await alice.until(state_is(ContactState.ACCEPTED))
        sent = await alice.send(pair, path)
        await bob.until_state(sent, FileState.OFFERED)
        assert (await alice.shown(pair, sent)).held_whole_by == ()
        await bob.engine.files.fetch(pair, sent)
        held = await alice.until_file(sent, lambda file: bool(file.held_whole_by))
        assert held.held_whole_by == (own_id(bob),)
        info = await alice.engine.timeline.info(pair, sent)
        assert info.message.file is not None
        assert info.message.file.held_whole_by == (own_id(bob),)
        assert [holder.participant_id for holder in info.holders] == [own_id(bob)]
        await alice.restart()
        assert (await alice.shown(pair, sent)).held_whole_by == (own_id(bob),)


async def test_bad_requests_and_restarts_only_take_longer(tmp_path: Path) -> None:
    """A fifth of all requests breaks off, and everybody begins anew twice."""
    alice = FilePerson("Alice", tmp_path)
    bob, carol = (FilePerson(name, tmp_path, resets=0.2) for name in ("Bob", "Carol"))
    path = random_file(tmp_path, 2 * MIB + 1)
    async with people(alice, bob, carol) as group:
        sent = await alice.send(group, path)
        for person in (bob, carol):
            await person.until_state(sent, FileState.OFFERED)
            await person.engine.files.fetch(group, sent)
        for person in (bob, alice, carol):
            for _ in range(2):
                await person.restart()
        for person in (bob, carol):
            assert person.node is not None
            person.node.add_peers(alice.addresses())
            while (await person.shown(group, sent)).state is not FileState.COMPLETE:
                await person.until_state(sent, FileState.COMPLETE)
            assert await person.engine.files.read(group, sent) == path.read_bytes()


async def test_a_node_keeps_it_while_the_sender_is_away(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    async with keeping_node(tmp_path) as node, people(alice, bob) as group:
        assert alice.node is not None
        assert bob.node is not None
        alice.chosen += node.addresses()
        alice.node.add_peers(node.addresses())
        sent = await alice.send(group, path)
        kept = await alice.until_file(
            sent, lambda file: file.state is FileState.COMPLETE and file.done_bytes == SIZE
        )
        assert (kept.is_upload, kept.problem) == (True, None)
        await bob.until_state(sent, FileState.OFFERED)
        await alice.engine.stop()
        bob.node.add_peers(node.addresses())
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        assert await bob.engine.files.read(group, sent) == path.read_bytes()


async def test_without_anybody_to_ask_the_row_says_so(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path, serves=False), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    async with people(bob, alice) as group:
        sent = await alice.send(group, path)
        await alice.until_file(sent, failing_with(FileFault.NOBODY_KEEPS_IT))
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        alone = await bob.until_file(sent, failing_with(FileFault.NEEDS_SERVICE_NODE))
        assert alone.state is FileState.WAITING
        carol = FilePerson("Carol", tmp_path)
        await carol.start()
        try:
            assert bob.node is not None
            bob.node.add_peers(carol.addresses())
            nobody = await bob.until_file(sent, failing_with(FileFault.NOBODY_HAS_IT))
            assert nobody.problem == FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=1)
        finally:
            await carol.engine.stop()


async def test_who_hears_that_another_has_all_of_it_asks_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = FilePerson("Alice", tmp_path, serves=False)
    bob, carol = FilePerson("Bob", tmp_path), FilePerson("Carol", tmp_path)
    path, at_ms = random_file(tmp_path, SIZE), 0
    async with people(bob, alice, carol) as group:
        sent = await alice.send(group, path)
        for person in (bob, carol):
            await person.until_state(sent, FileState.OFFERED)
        monkeypatch.setattr(transfer, "now_ms", lambda: at_ms)
        await bob.engine.files.fetch(group, sent)
        await bob.until_file(sent, failing_with(FileFault.NOBODY_HAS_IT))
        for chunk in alice.chunks.iterdir():
            shutil.copy(chunk, carol.chunks)
        await carol.engine.files.fetch(group, sent)
        told = await bob.until_file(sent, lambda file: bool(file.held_whole_by))
        assert told.held_whole_by == (own_id(carol),)
        at_ms += DownloadConfig().holdings_again_ms
        await bob.until_state(sent, FileState.COMPLETE)
        assert await bob.engine.files.read(group, sent) == path.read_bytes()


async def test_of_what_stands_still_no_rate_is_told_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    keep, may = BlobDisk.keep, asyncio.Semaphore(2)

    async def when_it_may(disk: BlobDisk, name: ChunkName, sealed: bytes) -> None:
        await may.acquire()
        await keep(disk, name, sealed)

    def goes_on(*, moving: bool) -> Callable[[EngineEvent], bool]:
        return lambda event: (
            isinstance(event, FileProgressed)
            and 0 < event.file.done_bytes < 2 * MIB
            and bool(event.file.rate) is moving
        )

    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, 2 * MIB))
        await bob.until_state(sent, FileState.OFFERED)
        monkeypatch.setattr(BlobDisk, "keep", when_it_may)
        await bob.engine.files.fetch(group, sent)
        await bob.until_file(sent, lambda file: file.state is FileState.RUNNING)
        may.release()
        await bob.until(goes_on(moving=True))
        bob.told.clear()
        await bob.until(goes_on(moving=False))
        assert (await bob.shown(group, sent)).state is FileState.RUNNING


async def test_pause_and_cancel(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob) as group:
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        files = bob.engine.files
        await files.fetch(group, sent)
        await files.pause(group, sent)
        assert (await bob.shown(group, sent)).state in {FileState.PAUSED, FileState.COMPLETE}
        await files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        assert list(bob.chunks.iterdir())
        await files.cancel(group, sent)
        cancelled = await bob.shown(group, sent)
        assert (cancelled.state, cancelled.thrown_away_bytes) == (FileState.OFFERED, SIZE)
        assert not list(bob.chunks.iterdir())
        await alice.engine.files.pause(group, sent)
        assert (await alice.shown(group, sent)).state is FileState.PAUSED
        await alice.engine.files.cancel(group, sent)
        assert (await alice.shown(group, sent)).state is FileState.COMPLETE
        assert list(alice.chunks.iterdir()), "others may fetch it still"


async def test_cancelling_says_that_only_what_really_went_was_thrown_away(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        stuck = max(bob.chunks.iterdir(), key=lambda chunk: chunk.stat().st_size)
        stuck.unlink()
        stuck.mkdir()  # The disk does not remove it as a file.
        bob.told.clear()
        await bob.engine.files.cancel(group, sent)
        assert list(bob.chunks.iterdir()) == [stuck]
        told = [
            file.thrown_away_bytes
            for event in bob.told
            if isinstance(event, MessageChanged) and (file := event.message.file) is not None
            if file.state is FileState.OFFERED
        ]
        assert set(told) == {4 * CHUNK_BYTES}, "it is told once they are gone"
        assert (await bob.shown(group, sent)).thrown_away_bytes == 4 * CHUNK_BYTES


async def test_what_is_paused_says_how_far_it_has_come_also_after_a_restart(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path, answers=4)
    path = random_file(tmp_path, 8 * MIB)
    async with people(alice, bob) as group:
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await bob.until(
            lambda event: isinstance(event, FileProgressed) and event.file.done_bytes > 0
        )
        await bob.engine.files.pause(group, sent)
        paused = await bob.shown(group, sent)
        assert (paused.state, paused.rate) == (FileState.PAUSED, 0)
        assert 0 < paused.done_bytes < paused.size
        await bob.restart()
        counted = await bob.until_file(sent, lambda file: file.done_bytes > 0)
        assert counted.state is FileState.PAUSED
        # The chunk that was being written when it was paused is counted now.
        assert paused.done_bytes <= counted.done_bytes < counted.size
        await bob.engine.files.cancel(group, sent)
        cancelled = await bob.shown(group, sent)
        assert cancelled.thrown_away_bytes == counted.done_bytes
        await bob.engine.files.fetch(group, sent)
        assert (await bob.shown(group, sent)).thrown_away_bytes == 0
        await bob.engine.files.cancel(group, sent)
        assert (await bob.shown(group, sent)).done_bytes == 0
        bob.answers = inf
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)


async def test_what_is_retracted_or_deleted_takes_its_bytes_with_it(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = [
            await alice.send(group, random_file(tmp_path, SIZE + n, f"{n}.bin")) for n in range(2)
        ]
        for one in sent:
            await bob.until_state(one, FileState.OFFERED)
            await bob.engine.files.fetch(group, one)
            await bob.until_state(one, FileState.COMPLETE)
        half = len(list(bob.chunks.iterdir())) // 2
        await bob.engine.timeline.delete_locally(group, sent[0])
        await alice.engine.timeline.retract(group, sent[1])
        await bob.until(shown(lambda message: message.retracted))
        await alice.restart()
        await bob.restart()
        with pytest.raises(CommandError):
            await bob.engine.files.fetch(group, sent[1])
        assert not list(bob.chunks.iterdir())
        assert len(list(alice.chunks.iterdir())) == half


async def test_chunks_of_no_message_go(tmp_path: Path) -> None:
    """What a crash left over goes at the next start, and a group's when it is left."""
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        stray = bob.chunks / sha256(b"of no message").hexdigest()
        stray.write_bytes(b"of no message")
        kept = len(list(bob.chunks.iterdir())) - 1
        await bob.restart()
        await bob.engine.files.read(group, sent)
        await bob.until_left(kept)
        assert not stray.exists()
        await bob.engine.groups.leave(group)
        await bob.until_left(0)


async def test_without_a_place_for_files_everything_else_works(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    alice.chunks.write_bytes(b"no directory")
    async with people(alice, bob) as group:
        with pytest.raises(StorageError):
            await alice.send(group, random_file(tmp_path, SIZE))
        await alice.engine.timeline.send_text(group, "Still here")
        await bob.until(shown(lambda message: message.text == "Still here"))


async def test_two_behind_routers_exchange_files_through_a_node(tmp_path: Path) -> None:
    """Neither can be dialled, and all that they have is a service node."""
    path = random_file(tmp_path, SIZE)
    async with keeping_node(tmp_path) as node:
        alice, bob = (
            FilePerson(name, tmp_path, service_nodes=node.addresses()) for name in ("Alice", "Bob")
        )
        async with people(alice, bob) as group:
            sent = await alice.send(group, path)
            await alice.until_file(sent, lambda file: file.done_bytes == SIZE)
            await bob.until_state(sent, FileState.OFFERED)
            await bob.engine.files.fetch(group, sent)
            await bob.until_state(sent, FileState.COMPLETE)
            assert await bob.engine.files.read(group, sent) == path.read_bytes()


async def test_small_pictures_are_fetched_by_themselves(tmp_path: Path) -> None:
    alice = FilePerson("Alice", tmp_path)
    bob = FilePerson("Bob", tmp_path, pictures_below=SIZE)
    carol = FilePerson("Carol", tmp_path)
    async with people(alice, bob, carol) as group:
        sent = await alice.engine.files.send(
            group,
            str(random_file(tmp_path, SIZE)),
            name="sea.png",
            media_type="image/png",
            caption="The sea",
            thumbnail=PNG,
            width=4000,
            height=3000,
        )
        done = await bob.until_state(sent, FileState.COMPLETE)
        assert (done.thumbnail, done.width, done.height) == (PNG, 4000, 3000)
        await carol.until_state(sent, FileState.OFFERED)
        carol.pictures_below = SIZE
        await carol.shown(group, sent)
        await carol.until_state(sent, FileState.COMPLETE)


async def test_files_that_cannot_be_sent(tmp_path: Path) -> None:
    alice = FilePerson("Alice", tmp_path)
    huge = tmp_path / "huge.bin"
    with huge.open("wb") as file:
        file.truncate(MAX_LARGE_FILE_BYTES + 1)
    empty = tmp_path / "empty.bin"
    empty.touch()
    async with people(alice) as group:
        for path, flaw in ((huge, InputFlaw.FILE_TOO_LARGE), (empty, InputFlaw.FILE_EMPTY)):
            with pytest.raises(InputError) as refused:
                await alice.send(group, path)
            assert refused.value.flaw is flaw
        for unreadable in (tmp_path / "none.bin", tmp_path):
            with pytest.raises((StorageError, InputError)):
                await alice.send(group, unreadable)
        channel = await alice.engine.open_channels.join(
            ChannelName(
                channel_id=ChannelId("0"),
                content_topic=ContentTopic("/toy-chat/2/huilong/proto"),
                cluster_id=alice.engine.open_channels.cluster_id(),
            ),
            label="",
            nick="Alice",
        )
        with pytest.raises(LocalProtocolError):
            await alice.send(channel, random_file(tmp_path, SIZE))
        text = await alice.engine.timeline.send_text(group, "No file")
        with pytest.raises(CommandError):
            await alice.engine.files.fetch(group, text)
        assert not list(alice.chunks.iterdir())


async def test_a_file_over_the_limit_of_reading_is_not_read(tmp_path: Path) -> None:
    alice = FilePerson("Alice", tmp_path)
    async with people(alice) as group:
        sent = await alice.send(group, random_file(tmp_path, MAX_READ_BYTES + 1))
        with pytest.raises(CommandError) as too_large:
            await alice.engine.files.read(group, sent, limit=2 * MAX_READ_BYTES)
        assert too_large.value.refusal is CommandRefusal.TOO_LARGE_TO_SHOW
        with pytest.raises(CommandError) as elsewhere:
            await alice.engine.timeline.file_data(group, sent)
        assert elsewhere.value.refusal is CommandRefusal.TOO_LARGE_TO_SHOW
        progress = [event for event in alice.told if isinstance(event, FileProgressed)]
        assert all(event.file.done_bytes <= event.file.size for event in progress)
        assert MAX_FILE_BYTES < MAX_READ_BYTES


async def test_a_file_is_forwarded_without_a_copy_in_the_clear(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob) as group:
        sent = await alice.engine.files.send(
            group, str(path), name="sea.png", media_type="image/png", caption="The sea",
            thumbnail=PNG, width=40, height=30,
        )  # fmt: skip
        await bob.until_state(sent, FileState.OFFERED)
        elsewhere = await bob.engine.groups.create("Elsewhere")
        with pytest.raises(CommandError) as not_yet:
            await bob.engine.files.forward(group, sent, elsewhere)
        assert not_yet.value.refusal is CommandRefusal.NOT_COMPLETE
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        before = {chunk.name for chunk in bob.chunks.iterdir()}
        forwarded = await bob.engine.files.forward(group, sent, elsewhere)
        assert not (tmp_path / "Bob.opened").exists()
        assert await bob.engine.files.read(elsewhere, forwarded) == path.read_bytes()
        assert len(list(bob.chunks.iterdir())) == 2 * len(before), "sealed with a key of its own"
        page = await bob.engine.timeline.latest_page(elsewhere)
        [message] = [each for each in page.messages if each.message_id == forwarded]
        assert (message.text, message.forwarded) == ("The sea", True)
        file = message.file
        assert file is not None
        assert (file.name, file.thumbnail, file.width, file.height) == ("sea.png", PNG, 40, 30)
        (bob.chunks / min(before)).unlink()
        with pytest.raises(StorageError):
            await bob.engine.files.forward(group, sent, elsewhere)
        assert len(list(bob.chunks.iterdir())) == 2 * len(before) - 1, "nothing half sealed stays"


async def test_what_came_from_somebody_else_says_so_wherever_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small or large, saved or opened; what is one's own does not."""
    marked: list[bytes] = []
    monkeypatch.setattr(
        saved_file, "mark_as_received", lambda path: marked.append(path.read_bytes())
    )
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob) as group:
        large = await alice.send(group, path)
        small = await alice.engine.timeline.send_file(
            group, name="a.exe", media_type="x/y", data=b"small"
        )
        await bob.until_state(large, FileState.OFFERED)
        await bob.engine.files.fetch(group, large)
        await bob.until_state(large, FileState.COMPLETE)
        await bob.until_state(small, FileState.INLINE)
        for person in (alice, bob):
            await person.engine.files.open_path(group, large)
            for number, sent in enumerate((large, small)):
                await person.engine.files.save_as(group, sent, str(tmp_path / f"{number}.saved"))
        assert (tmp_path / "1.saved").read_bytes() == b"small"
    assert marked == [path.read_bytes(), path.read_bytes(), b"small"]


async def test_what_one_forwards_still_came_from_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[str] = []
    monkeypatch.setattr(saved_file, "mark_as_received", lambda path: marked.append(path.name))
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        place = await bob.engine.groups.create("Elsewhere")
        large = await bob.engine.files.forward(group, sent, place)
        small = await bob.engine.timeline.send_file(
            place, name="a.exe", media_type="x/y", data=b"small", forwarded=True
        )
        await bob.engine.files.open_path(place, large)
        assert len(marked) == 1
        for count, each in enumerate((large, small), 2):
            await bob.engine.files.save_as(place, each, str(tmp_path / "saved"))
            assert len(marked) == count
