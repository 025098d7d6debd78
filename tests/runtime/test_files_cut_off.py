"""A fault bench that cuts everything off cuts files off, too; nothing else is told of the peers."""

from pathlib import Path

from engine.core.fault_bench import EVERYTHING, FaultRule
from engine.core.problems import FileFault
from engine.file_views import FileState
from tests.runtime.blob_people import MIB, FilePerson, people, random_file

PAUSED = FaultRule(paused=True)


async def test_files_neither_come_nor_go_while_everything_is_cut_off(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, MIB)
    async with people(alice, bob) as group:
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        bob.engine.faults.set(EVERYTHING, PAUSED)
        await bob.engine.files.fetch(group, sent)
        cut_off = await bob.until_file(sent, lambda file: file.problem is not None)
        assert cut_off.problem is not None
        assert cut_off.problem.fault is FileFault.NOBODY_CONNECTED
        alice.engine.faults.set(EVERYTHING, PAUSED)
        bob.told.clear()
        bob.engine.faults.stop_all()
        refused = await bob.until_file(
            sent, lambda file: file.problem is not None and file.problem.peers > 0
        )
        assert refused.problem is not None
        assert refused.problem.fault is FileFault.NOBODY_HAS_IT
        alice.engine.faults.stop_all()
        await bob.until_state(sent, FileState.COMPLETE)
        assert await bob.engine.files.read(group, sent) == path.read_bytes()
