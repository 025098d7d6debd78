"""A file beyond 96 KiB between two real windows on real nodes: dropped, fetched, kept."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtTest import QTest

from engine.api import MAX_FILE_BYTES
from tests.runtime.blob_people import FilePerson, people, random_file
from tests.ui.desks import Desk
from tests.ui.driving import play, until
from ui.file_words import size_words
from ui.timeline.rows import message_key

pytestmark = pytest.mark.usefixtures("qapp")
SIZE = MAX_FILE_BYTES + 400_000


def test_what_one_drops_the_other_fetches_and_keeps(tmp_path: Path) -> None:
    path, kept = random_file(tmp_path, SIZE), tmp_path / "kept.bin"
    data, words = path.read_bytes(), size_words(SIZE)

    async def scenario() -> None:
        both = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
        async with people(*both) as group:
            alice, bob = (Desk(person) for person in both)
            for desk in (alice, bob):
                await desk.open()
                desk.window.open_conversation(group)
            dropped = QMimeData()
            dropped.setUrls([QUrl.fromLocalFile(str(path))])
            alice.window.pane.attaching.take_mime(dropped)
            await until(alice.window.pane.attachment_bar.isVisible)
            alice.type_and_enter("the logs")
            await until(lambda: alice.has_row("You", f"File {path.name}: the logs", words))
            await until(lambda: bob.has_row("Alice", "the logs", "not fetched yet"))
            timeline = bob.window.pane.timeline
            scene = timeline.scene
            newest = message_key(scene.loaded.messages[-1].message_id)
            await until(lambda: scene.rect(newest) is not None)
            timeline.setFocus()
            QTest.keyClick(timeline, Qt.Key.Key_Up)
            QTest.keyClick(timeline, Qt.Key.Key_Return)
            await until(lambda: bob.has_row(f"the logs, {words}, "))
            await until(lambda: alice.has_row("held as a whole by 1 of 1"))
            bob.window.pane.files.write(scene.loaded.messages[-1], kept)
            await until(kept.exists)
            assert kept.read_bytes() == data
            for desk in (alice, bob):
                await desk.close()

    play(scenario)
